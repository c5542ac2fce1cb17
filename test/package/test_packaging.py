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
import signal
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

ROOT = Path(__file__).parents[2]
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
for words in sys.argv[1:]:
    if code := main(words.split()):
        sys.exit(code)
"""


@pytest.mark.slow
def test_no_command_reaches_for_the_network(tmp_path: Path) -> None:
    design = 'design --robot ur10e --starts 1 --iterations 5 --period 5 --out x.yaml'
    times = np.arange(400) * 0.01
    angle = np.sin(2.0 * times)
    columns = {'time': times, 'position/hinge': angle, 'effort/hinge': 3.0 * angle + np.cos(times)}
    write_table(tmp_path / 'x.csv', columns)
    words = [sys.executable, '-c', NO_NETWORK, design, 'process x.csv --out x.npz', '--help']
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert 'usage: robotid' in done.stdout  # the last one was reached
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
ROSDEP |= {'mujoco': 'python3-mujoco-pip', 'trimesh': 'python3-trimesh-pip'}
# Imported only where they are installed, and without a key in rosdistro; nothing of the loop needs them.
FROM_PYPI = {'plotly', 'pyarrow', 'pinocchio', 'coal', 'distributed'}
# Nodes ask for these only where their user does; they are not on PyPI.
ONLY_WITH_ROS = {'control_msgs', 'tf2_msgs', 'nav_msgs', 'moveit_msgs'}


@pytest.mark.slow
@pytest.mark.parametrize('folder', ['robotid_ros', 'launch'])
def test_the_manifest_names_what_is_imported(folder: str) -> None:
    names = _foreign_imports(ROOT / folder)
    assert len(names) > 1
    declared = {element.text for element in MANIFEST.iter('exec_depend')}
    wanted = {ROSDEP.get(name, name) for name in names - FROM_PYPI}
    if folder == 'launch':  # packages whose nodes are started are named in words
        texts = [path.read_text(encoding='utf-8') for path in (ROOT / folder).glob('*.py')]
        wanted |= {name for text in texts for name in re.findall(r"package='(\w+)'", text)} - {'robotid_ros'}
        assert {'robot_state_publisher', 'rviz2'} <= wanted
    assert wanted <= declared, wanted - declared


# Lets a process import Python's own modules, this package, and what package.xml names with what that needs in its turn.
ONLY_NAMED = """
import importlib.metadata as metadata, re, runpy, sys
named = set(sys.argv.pop(1).split(','))
normal = lambda name: re.sub(r'[-_.]+', '-', name).lower()
wanted, found = [normal(name) for name in named], set()
while wanted:
    name = wanted.pop()
    if name in found:
        continue
    found.add(name)
    try:
        needed = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        continue
    wanted += [normal(re.match(r'[\\w.-]+', each)[0]) for each in needed if 'extra ==' not in each]
owners = metadata.packages_distributions()
class Named:
    @staticmethod
    def find_spec(name, path=None, target=None):
        top = name.partition('.')[0]
        if top in sys.stdlib_module_names or top in ('robotid_ros', 'sitecustomize'):
            return None
        if top in named or not owners.get(top) or found & {normal(each) for each in owners[top]}:
            return None
        raise ModuleNotFoundError(f'{name} is not in package.xml', name=name)
sys.meta_path.insert(0, Named)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)
"""


@pytest.mark.slow
@pytest.mark.ros
def test_the_nodes_run_with_what_the_manifest_names(tmp_path: Path) -> None:
    """What is not in package.xml cannot be imported, as in a workspace that rosdep has prepared."""
    pytest.importorskip('rclpy', reason='needs the ros extra')
    pytest.importorskip('mujoco', reason='the sim extra is not installed')
    from ros_helpers import NodeProcess, ros_environment

    declared = {str(element.text) for element in MANIFEST.iter('exec_depend')}
    modules = {key: module for module, key in ROSDEP.items()}
    wheels = {'python3-yaml': 'pyyaml'}
    named = {name for key in declared for name in (modules.get(key, key), wheels.get(key, f'ros-{key}'))}
    environment = ros_environment()

    def started(node: str, names: set[str], *settings: str) -> NodeProcess:
        words = [word for each in settings for word in ('-p', each)]
        module = f'robotid_ros.nodes.{node}'
        return NodeProcess(['-c', ONLY_NAMED, ','.join(names), module, '--ros-args', *words], environment)

    settings = {
        'simulated_arm': ['robot:=ur10e'],
        'recorder': [f'output_folder:={tmp_path}', 'effort:=torque'],
        'excitation': [],
        'identification': [],
    }
    running = {}
    try:
        for node, given in settings.items():
            running[node] = started(node, named, *given)
        running['excitation'].wait_for_line('robot ')  # the description came over ROS from the simulated arm
        for node, process in running.items():
            assert not process.ended, (node, process.output)
    finally:
        codes = {}
        for node, process in running.items():
            if not process.ended:
                process.signal(signal.SIGINT)
            codes[node] = process.wait()
    assert set(codes.values()) == {0}, {node: running[node].output for node in running}
    without = started('simulated_arm', named - {'mujoco'}, 'robot:=ur10e')  # the block blocks
    assert without.wait() == 2, without.output
    assert 'mujoco' in without.output


def test_pip_installs_the_messages_that_nodes_import() -> None:
    extra = set(re.findall(r"'ros-([\w-]+)", (ROOT / 'setup.py').read_text(encoding='utf-8')))
    names = _foreign_imports(ROOT / 'robotid_ros' / 'nodes') - {*ROSDEP, *FROM_PYPI, *ONLY_WITH_ROS}
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


@pytest.mark.slow
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
