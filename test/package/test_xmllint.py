# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The manifest against its schema, as ament checks it."""

import shutil
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCHEMA = 'http://download.ros.org/schema/package_format3.xsd'


def _schema_is_in_reach() -> bool:
    try:
        urllib.request.urlopen(SCHEMA, timeout=20.0).close()
    except OSError:
        return False
    return True


@pytest.mark.xmllint
@pytest.mark.linter
def test_xmllint(capfd: pytest.CaptureFixture[str]) -> None:
    main = pytest.importorskip('ament_xmllint.main', reason='needs ament_xmllint, which comes with ROS 2')
    if shutil.which('xmllint') is None:
        pytest.skip('needs xmllint (libxml2-utils)')
    code = main.main(argv=[str(ROOT / 'package.xml')])
    if code and 'failed to load' in capfd.readouterr().err and not _schema_is_in_reach():
        pytest.skip(f'{SCHEMA} is out of reach')
    assert code == 0
