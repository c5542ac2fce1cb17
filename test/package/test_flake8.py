# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""flake8 as ament runs it, with the project's configuration (setup.cfg)."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.flake8
@pytest.mark.linter
def test_flake8() -> None:
    main = pytest.importorskip('ament_flake8.main', reason='needs ament_flake8, which comes with ROS 2')
    folders = [str(ROOT / name) for name in ('robotid_ros', 'launch', 'test', 'setup.py')]
    code, found = main.main_with_errors(argv=['--config', str(ROOT / 'setup.cfg'), *folders])
    assert code == 0, '\n'.join(found)
