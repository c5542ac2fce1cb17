# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is shipped is there, agrees with itself, and is pinned."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import yaml

import robotid_ros

ROOT = Path(__file__).parents[1]


def _setup(field: str) -> str:
    command = [sys.executable, 'setup.py', '--quiet', f'--{field}']
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_one_version_everywhere() -> None:
    version = ElementTree.parse(ROOT / 'package.xml').getroot().findtext('version')
    assert robotid_ros.__version__ == version
    assert _setup('version') == version


def test_every_requirement_is_pinned() -> None:
    text = (ROOT / 'setup.py').read_text(encoding='utf-8')
    wanted = set(re.findall(r"'((?:ros-)?[A-Za-z][\w-]*)(?:\[\w+\])?(?:[<>=,.\d]+)?',?", text)) & {
        *re.findall(r"'(ros-[\w-]+)", text),
        *('numpy', 'scipy', 'PyYAML', 'joblib', 'rosbags', 'matplotlib', 'mujoco', 'pytest', 'hypothesis', 'pin'),
        *('ruff', 'mypy', 'types-PyYAML'),
    }
    pins = re.findall(r'^([\w.-]+)==', (ROOT / 'constraints.txt').read_text(encoding='utf-8'), re.MULTILINE)
    pinned = {name.lower().replace('_', '-') for name in pins}
    assert len(wanted) >= 18
    assert {name.lower() for name in wanted} <= pinned


def test_shipped_yaml_and_launch_files_parse() -> None:
    for path in (ROOT / 'config').glob('*.yaml'):
        assert yaml.safe_load(path.read_text(encoding='utf-8')), path
    for path in (ROOT / 'launch').glob('*.launch.py'):
        compile(path.read_text(encoding='utf-8'), str(path), 'exec')


def test_node_executables_name_modules_that_exist() -> None:
    for path in (ROOT / 'resource' / 'executables').iterdir():
        assert path.stat().st_mode & 0o111, f'{path.name} is not executable'
        module = re.search(r'-m (robotid_ros\.nodes\.\w+)', path.read_text(encoding='utf-8'))
        assert module is not None
        assert (ROOT / (module[1].replace('.', '/') + '.py')).is_file()
