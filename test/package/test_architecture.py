# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Imports go downwards only; the core needs no ROS, no MuJoCo, no compiler."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / 'robotid_ros'

LAYERS = [
    {'errors', 'imports'},
    {'arrays', 'files', 'jobs', 'progress', 'reading', 'settings'},
    {'tables'},
    {'model', 'signals'},
    {'dynamics', 'friction', 'data'},
    {'excitation', 'identification', 'calibration'},
    {'loads'},
    {'simulation'},  # what it measures is what a calibration takes
    {'execution'},
    {'free_floating'},  # its trajectories are those of excitation
    {'export'},
    {'report'},
    {'workflow'},
    {'fleet'},
    {'nodes'},
    {'demo'},
    {'commands'},
    {'cli'},
    {'__main__'},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

OPTIONAL = {
    'rclpy': {'nodes'},
    'sensor_msgs': {'nodes'},
    'geometry_msgs': {'nodes'},
    'trajectory_msgs': {'nodes'},
    'std_msgs': {'nodes'},
    'std_srvs': {'nodes'},
    'diagnostic_msgs': {'nodes'},
    'builtin_interfaces': {'nodes'},
    'rcl_interfaces': {'nodes'},
    'tf2_msgs': {'nodes'},
    'nav_msgs': {'nodes'},
    'mujoco': {'simulation', 'export'},
}


def _area(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix('.py')


def _imports(path: Path) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f'{path}:{node.lineno}: relative import'
            found.append((node.module or '', node.lineno))
    return found


FILES = sorted(path for path in PACKAGE.rglob('*.py') if path != PACKAGE / '__init__.py')


@pytest.mark.slow
def test_no_file_gives_a_name_twice() -> None:
    """A constant of how a stop is watched was once overwritten by one of the same name, further down."""
    for path in FILES:
        given = [
            name.id
            for statement in ast.parse(path.read_text(encoding='utf-8')).body
            if isinstance(statement, ast.Assign | ast.AnnAssign)
            for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
            for name in ast.walk(target)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        ]
        assert len(given) == len(set(given)), f'{path}: {sorted(given)}'


@pytest.mark.slow
@pytest.mark.parametrize('path', FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down(path: Path) -> None:
    area = _area(path)
    assert area in LEVEL, f'{area} has no place in the architecture'
    for module, line in _imports(path):
        top, *below = module.split('.')
        if top == 'robotid_ros' and below:
            other = below[0]
            same = other == area or other == '__version__'
            assert same or LEVEL[other] < LEVEL[area], f'{path}:{line}: {area} must not import {other}'
        elif top in OPTIONAL:
            assert area in OPTIONAL[top], f'{path}:{line}: {area} must not import {top}'


@pytest.mark.slow
def test_the_core_imports_with_everything_optional_hidden() -> None:
    core = [
        '.'.join(path.relative_to(ROOT).with_suffix('').parts)
        for path in FILES
        if _area(path) not in ('nodes', 'simulation')
    ]
    hidden = [
        *OPTIONAL,
        'plotly',
        'tornado',
        'distributed',
        'trimesh',
        'mcap',
        'zstandard',
        'pyarrow',
        'rosbags',
        'pinocchio',
        'pytest',
        'hypothesis',
    ]
    program = (
        'import importlib, os, sys\n'
        "os.environ['PATH'] = ''\n"
        f'for name in {hidden}: sys.modules[name] = None\n'
        f'for name in {core}: importlib.import_module(name)\n'
    )
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_what_a_room_offers_is_there_whichever_file_of_it_came_first() -> None:
    """A file that is called as a name of its room takes the name's place when it is imported.

    Each room in a fork of a process that has imported nothing but the libraries of others.
    """
    code = """if True:
        import importlib, os, pathlib, sys, types
        import numpy, scipy, yaml
        failed = 0
        for name in sys.argv[1:]:
            if (child := os.fork()) == 0:
                room = importlib.import_module(f'robotid_ros.{name}')
                for path in pathlib.Path(room.__file__).parent.glob('[!_]*.py'):
                    importlib.import_module(f'robotid_ros.{name}.{path.stem}')
                wrong = [each for each in room.__all__ if isinstance(getattr(room, each), types.ModuleType)]
                sys.exit(f'{name}: {wrong}' if wrong else 0)
            failed += os.waitpid(child, 0)[1] != 0
        sys.exit(failed)
        """
    rooms = ['calibration', 'data', 'dynamics', 'excitation', 'identification', 'model', 'simulation']
    done = subprocess.run([sys.executable, '-c', code, *rooms], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
