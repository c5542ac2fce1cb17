# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Every source file states its copyright and licence, as ament checks it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.copyright
@pytest.mark.linter
def test_copyright() -> None:
    main = pytest.importorskip('ament_copyright.main', reason='needs ament_copyright, which comes with ROS 2')
    folders = [str(ROOT / name) for name in ('robotid_ros', 'launch', 'test', 'CONTRIBUTING.md', 'LICENSE')]
    assert main.main(argv=folders) == 0
