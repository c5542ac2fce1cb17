# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is shipped is there, agrees with itself, and is pinned."""

import ast
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

import robotid_ros
from robotid_ros.tables import write_table

ROOT = Path(__file__).parents[1]
MANIFEST = ElementTree.parse(ROOT / 'package.xml').getroot()


def _setup(field: str) -> str:
    command = [sys.executable, 'setup.py', '--quiet', f'--{field}']
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=600).stdout.strip()


def test_one_version_everywhere() -> None:
    version = MANIFEST.findtext('version')
    assert robotid_ros.__version__ == version
    assert _setup('version') == version


def test_every_requirement_is_pinned() -> None:
    text = (ROOT / 'setup.py').read_text(encoding='utf-8')
    wanted = set(re.findall(r"'((?:ros-)?[A-Za-z][\w-]*)(?:\[\w+\])?(?:[<>=,.\d]+)?',?", text)) & {
        *re.findall(r"'(ros-[\w-]+)", text),
        *('numpy', 'scipy', 'PyYAML', 'joblib', 'mcap', 'trimesh', 'mujoco', 'pytest', 'hypothesis', 'pin'),
        *('plotly', 'tornado', 'rosbags', 'ruff', 'mypy', 'types-PyYAML'),
    }
    pins = re.findall(r'^([\w.-]+)==', (ROOT / 'constraints.txt').read_text(encoding='utf-8'), re.MULTILINE)
    pinned = {name.lower().replace('_', '-') for name in pins}
    assert len(wanted) >= 18
    assert {name.lower() for name in wanted} <= pinned


def test_what_is_installed_with_the_package_has_both_bounds_and_is_tested_within_them() -> None:
    specifiers = pytest.importorskip('packaging.specifiers')
    text = (ROOT / 'setup.py').read_text(encoding='utf-8')
    needed = {}
    for line in re.findall(r'^(?:BAG|CSV|PLOT|WEB|SIM) = .*|^ +install_requires=.*', text, re.MULTILINE):
        needed |= dict(re.findall(r"'([A-Za-z][\w-]*)([<>=][^']*)'", line))
    assert {'numpy', 'scipy', 'PyYAML', 'joblib', 'rosbags', 'pyarrow', 'mujoco', 'plotly'} <= set(needed)
    pins: dict[str, list[str]] = {}
    for name, version in re.findall(r'^([\w.-]+)==([\w.]+)', (ROOT / 'constraints.txt').read_text(), re.MULTILINE):
        pins.setdefault(name.lower(), []).append(version)
    for name, bounds in needed.items():
        assert '>=' in bounds, name
        assert '<' in bounds.replace('<=', ''), name
        for version in pins[name.lower()]:
            assert version in specifiers.SpecifierSet(bounds), (name, version)


NO_NETWORK = """
import os, sys
def watch(event, arguments):
    remote = event == 'socket.connect' and not isinstance(arguments[1], (str, bytes))
    if remote or event in ('socket.getaddrinfo', 'socket.gethostbyname', 'urllib.Request'):
        os.write(2, f'{event} {arguments}'.encode())
        os._exit(99)
sys.addaudithook(watch)
from robotid_ros.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_no_command_reaches_for_the_network(tmp_path: Path) -> None:
    design = ['design', '--robot', 'ur10e', '--starts', '1', '--iterations', '5', '--period', '5', '--out', 'x.yaml']
    times = np.arange(400) * 0.01
    angle = np.sin(2.0 * times)
    columns = {'time': times, 'position/hinge': angle, 'effort/hinge': 3.0 * angle + np.cos(times)}
    write_table(tmp_path / 'x.csv', columns)
    for arguments in (design, ['process', 'x.csv', '--out', 'x.npz'], ['--help']):
        done = subprocess.run(
            [sys.executable, '-c', NO_NETWORK, *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
    reach = "import socket; socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run(
        [sys.executable, '-c', NO_NETWORK.replace('from robotid_ros.cli import main', reach)],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 99  # the watch sees what it is to see


def test_shipped_yaml_and_launch_files_parse() -> None:
    for path in (ROOT / 'config').glob('*.yaml'):
        assert yaml.safe_load(path.read_text(encoding='utf-8')), path
    for path in (ROOT / 'launch').glob('*.launch.py'):
        compile(path.read_text(encoding='utf-8'), str(path), 'exec')


def test_node_executables_name_modules_that_exist() -> None:
    for path in (ROOT / 'resource' / 'executables').iterdir():
        assert path.stat().st_mode & 0o111, f'{path.name} is not executable'
        module = re.search(r'-m (robotid_ros(?:\.nodes\.\w+)?) ', path.read_text(encoding='utf-8'))
        assert module is not None
        name = f'{module[1]}.__main__' if module[1] == 'robotid_ros' else module[1]
        assert (ROOT / (name.replace('.', '/') + '.py')).is_file()


def _foreign_imports(folder: Path) -> set[str]:
    """Return the packages that the files of a folder import, but for this one and Python's own."""
    found: set[str] = set()
    for path in folder.rglob('*.py'):
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            if isinstance(node, ast.Import):
                found.update(alias.name.partition('.')[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                found.add(str(node.module).partition('.')[0])
    return found - {'robotid_ros', *sys.stdlib_module_names}


ROSDEP = {'numpy': 'python3-numpy', 'scipy': 'python3-scipy', 'yaml': 'python3-yaml', 'joblib': 'python3-joblib'}
ROSDEP |= {'tornado': 'python3-tornado', 'rosbags': 'python3-rosbags-pip'}
# Imported only where they are installed.
FROM_PYPI = {
    'mujoco',
    'plotly',
    'trimesh',
    'pyarrow',
    'pinocchio',
    'coal',
    'control_msgs',
    'tf2_msgs',
    'nav_msgs',
    'distributed',
}


@pytest.mark.parametrize('folder', ['robotid_ros', 'launch'])
def test_the_manifest_names_what_is_imported(folder: str) -> None:
    names = _foreign_imports(ROOT / folder)
    assert len(names) > 1
    declared = {element.text for element in MANIFEST.iter('exec_depend')}
    wanted = {ROSDEP.get(name, name) for name in names - FROM_PYPI}
    assert wanted <= declared, wanted - declared


def test_pip_installs_the_messages_that_nodes_import() -> None:
    extra = set(re.findall(r"'ros-([\w-]+)", (ROOT / 'setup.py').read_text(encoding='utf-8')))
    names = _foreign_imports(ROOT / 'robotid_ros' / 'nodes') - {*ROSDEP, *FROM_PYPI}
    assert {name.replace('_', '-') for name in names} <= extra


def test_the_manifest_has_what_its_format_demands() -> None:
    """Of package format 3 (REP-149); test_xmllint holds it to the schema where ament is at hand."""
    assert MANIFEST.get('format') == '3'
    assert [element.tag for element in MANIFEST][:5] == ['name', 'version', 'description', 'maintainer', 'license']
    assert re.fullmatch(r'\d+\.\d+\.\d+', MANIFEST.findtext('version') or '')
    assert MANIFEST.findtext('export/build_type') == 'ament_python'
    depends = [element.text for element in MANIFEST if element.tag.endswith('_depend')]
    assert len(depends) == len(set(depends))


@pytest.fixture(scope='module')
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with an sdist and an installation, made from a copy: nothing is left beside the source."""
    folder = tmp_path_factory.mktemp('build')
    unwanted = shutil.ignore_patterns('.git', '.venv*', '.*_cache', '*.egg-info', 'build', 'dist', '_api', '_build')
    shutil.copytree(ROOT, folder / 'source', ignore=unwanted)
    command = [sys.executable, 'setup.py', '--quiet', 'sdist', '--dist-dir', str(folder)]
    command += ['build_py', '--build-lib', str(folder / 'lib'), 'install_data', '--install-dir', str(folder / 'data')]
    done = subprocess.run(command, cwd=folder / 'source', capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return folder


def _files(folder: Path) -> set[str]:
    found = {str(path.relative_to(folder)) for path in folder.rglob('*') if path.is_file()}
    return {name for name in found if '__pycache__' not in name and not name.endswith('.egg-info')}


def test_the_source_distribution_can_be_tested(distribution: Path) -> None:
    (archive,) = distribution.glob('*.tar.gz')
    with tarfile.open(archive) as opened:
        shipped = {name.partition('/')[2] for name in opened.getnames()}
    for folder in ('test', 'config', 'launch', 'resource', 'robotid_ros'):
        files = {f'{folder}/{name}' for name in _files(ROOT / folder)}
        assert files
        assert files <= shipped, files - shipped
    assert {'package.xml', 'LICENSE', 'CHANGELOG.rst', 'constraints.txt', 'docs/index.md'} <= shipped


def test_everything_that_runs_is_installed(distribution: Path) -> None:
    package, installed = _files(ROOT / 'robotid_ros'), _files(distribution / 'lib' / 'robotid_ros')
    assert package == installed, package ^ installed
    data = distribution / 'data'
    assert _files(data / 'share' / 'robotid_ros' / 'config') == _files(ROOT / 'config')
    assert _files(data / 'share' / 'robotid_ros' / 'launch') == _files(ROOT / 'launch')
    programs = _files(ROOT / 'resource' / 'executables')
    assert _files(data / 'lib' / 'robotid_ros') | _files(data / 'bin') == programs
    assert {str(path) for path in _files(data / 'bin')} == {'robotid'}  # the path that colcon puts on PATH
    assert (data / 'share' / 'robotid_ros' / 'package.xml').is_file()
    assert (data / 'share' / 'ament_index' / 'resource_index' / 'packages' / 'robotid_ros').is_file()
