# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The launch files by their text alone: what they name exists. ROS is not needed."""

import argparse
import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from robotid_ros.commands import identify
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.reference import PoseTourConfig
from robotid_ros.execution.run import RunConfig
from robotid_ros.identification import IdentificationConfig, SelectionConfig
from robotid_ros.nodes.identified_arm import IdentificationNodeConfig
from robotid_ros.settings import settings_of

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / 'launch').glob('*.launch.py'))
IDENTIFY = ROOT / 'launch' / 'identify.launch.py'
INCLUDING = ('demo.launch.py', 'gazebo.launch.py', 'real_arm.launch.py')
KINDS = (IdentificationConfig, SelectionConfig, IdentificationNodeConfig)
SETTINGS = {item.name for kind in KINDS for item in settings_of(kind)}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding='utf-8'), str(path))


def constant(path: Path, name: str) -> object:
    """Return a module's constant by its literal value."""
    for node in tree(path).body:
        if isinstance(node, ast.Assign) and [target.id for target in node.targets] == [name]:
            return ast.literal_eval(node.value)
    raise AssertionError(f'{path.name} has no {name}')


def arguments(path: Path) -> list[str]:
    """Return the arguments of a launch file: its own, and those of the one it includes that it does not decide."""
    own = [argument[0] for argument in constant(path, 'ARGUMENTS')]
    if path.name not in INCLUDING:
        return own
    included = sorted({argument[0] for argument in constant(IDENTIFY, 'ARGUMENTS')} | SETTINGS)
    return own + [name for name in included if name not in {*own, *constant(path, 'DECIDED')}]


def test_there_are_launch_files() -> None:
    assert {path.name for path in FILES} >= {
        'demo.launch.py',
        'gazebo.launch.py',
        'identify.launch.py',
        'real_arm.launch.py',
    }


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_a_launch_file_has_an_entry_point_and_described_arguments(path: Path) -> None:
    functions = {node.name for node in tree(path).body if isinstance(node, ast.FunctionDef)}
    assert 'generate_launch_description' in functions
    assert ast.get_docstring(tree(path))
    declared, names = constant(path, 'ARGUMENTS'), arguments(path)
    assert len(set(names)) == len(names)
    assert all(len(argument[-1]) > 10 for argument in declared), 'each with a description'
    assert 'namespace' in names


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_what_a_launch_file_starts_and_reads_exists(path: Path) -> None:
    nodes = [
        {keyword.arg: keyword.value for keyword in node.keywords}
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and getattr(node.func, 'id', '') == 'Node'
    ]
    own = [node['executable'].value for node in nodes if node['package'].value == 'robotid_ros' and _literal(node)]
    for executable in own:
        assert (ROOT / 'resource' / 'executables' / executable).is_file()
    texts = [node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant) and type(node.value) is str]
    for name in (text for text in texts if text.endswith('.launch.py') and text != 'gz_sim.launch.py'):
        assert (ROOT / 'launch' / name).is_file(), name
    values = [
        node.args[0].value
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call)
        and getattr(node.func, 'id', '') in ('value', 'LaunchConfiguration')
        and isinstance(node.args[0], ast.Constant)
    ]
    assert set(values) <= set(arguments(path))


def _literal(node: dict[str, ast.expr]) -> bool:
    return isinstance(node['executable'], ast.Constant)


def test_the_simulated_the_gazebo_and_the_real_launch_take_the_same_of_a_run() -> None:
    wanted = {'run', 'poses', 'start_at_rest', 'period', 'periods', 'seed', 'trajectory', 'recordings', 'output_folder'}
    wanted |= {'chain', 'friction_sweep', 'validation', 'trajectories', 'method', 'controller_interface', 'namespace'}
    wanted |= {'estimator', 'friction', 'friction_sequence', 'torque_threshold', 'select', 'prior', 'rotor_inertia'}
    for path in (IDENTIFY, *(ROOT / 'launch' / name for name in INCLUDING)):
        names = {*arguments(path), *SETTINGS}
        assert wanted <= names, path.name
        text = path.read_text(encoding='utf-8')
        if path != IDENTIFY:
            assert "['passed_on'](context, DECIDED)" in text
            assert "['declared'](ARGUMENTS, DECIDED)" in text
            assert set(constant(path, 'DECIDED')) <= set(arguments(IDENTIFY)) - wanted


def test_only_an_arm_that_is_new_at_each_start_has_no_past() -> None:
    for name in INCLUDING:
        own = {argument[0]: argument[1] for argument in constant(ROOT / 'launch' / name, 'ARGUMENTS')}
        assert own.get('recordings') == ('none' if name == 'demo.launch.py' else None)


def test_the_identification_is_given_the_folder_of_the_recorder_unless_told_others() -> None:
    path = ROOT / 'launch' / 'identify.launch.py'
    parts = [
        item
        for item in tree(path).body
        if (isinstance(item, ast.FunctionDef) and item.name == 'recording_folders')
        or (isinstance(item, ast.Import) and item.names[0].name == 'os')
    ]
    found: dict[str, Any] = {}
    exec(compile(ast.Module(parts, []), str(path), 'exec'), found)
    recorder = (ROOT / 'robotid_ros' / 'nodes' / 'recorder.py').read_text(encoding='utf-8')
    assert "Path(config.output_folder).expanduser() / self.get_namespace().strip('/')" in recorder
    folders = found['recording_folders']
    assert folders([], '~/kept', '/left/') == ['~/kept/left']
    assert [path.rstrip('/') for path in folders([], '~/kept', '')] == ['~/kept']
    assert folders(['a', 'b'], '~/kept', 'left') == ['a', 'b']
    assert folders(['none'], '~/kept', 'left') == []
    text = path.read_text(encoding='utf-8')
    assert "asked |= {'recordings': recordings} if recordings else {}" in text
    assert "'identification': {**folder, **asked}" in text


def test_parameters_that_are_arguments_are_those_of_the_node() -> None:
    nodes = ROOT / 'robotid_ros' / 'nodes'
    node = ''.join((nodes / name).read_text(encoding='utf-8') for name in ('excitation.py', 'arm_driver.py'))
    declared = {item.name for config in (ExcitationConfig, RunConfig, PoseTourConfig) for item in fields(config)}
    for path in (IDENTIFY,):
        own = next(
            item.value
            for item in tree(path).body
            if isinstance(item, ast.Assign) and [target.id for target in item.targets] == ['EXCITATION']
        )
        names = [key.value for key in own.keys]
        assert {'period', 'periods'} <= set(names)
        for name in names:
            assert name in declared or f'    {name}: ' in node, name


def test_the_view_shows_what_the_preview_publishes() -> None:
    """RViz itself is not at hand: its configuration is read, and compared with what the launch file starts."""
    content = yaml.safe_load((ROOT / 'config' / 'preview.rviz').read_text(encoding='utf-8'))
    manager = content['Visualization Manager']
    shown = next(each for each in manager['Displays'] if each['Name'] == 'Preview of the excitation')
    text = (ROOT / 'launch' / 'view.launch.py').read_text(encoding='utf-8')
    assert shown['Class'] == 'rviz_default_plugins/RobotModel'
    namespace, prefix = shown['Description Topic']['Value'].split('/')[1], shown['TF Prefix']
    assert f"namespace='{namespace}'" in text
    assert f"'frame_prefix': '{prefix}/'" in text
    assert manager['Global Options']['Fixed Frame'] == f'{prefix}/base_link'
    assert "create_publisher(JointState, '~/preview'" in (ROOT / 'robotid_ros/nodes/scene.py').read_text()
    drawn = next(each for each in manager['Displays'] if each['Class'] == 'rviz_default_plugins/MarkerArray')
    markers = (ROOT / 'robotid_ros' / 'nodes' / 'scene.py').read_text(encoding='utf-8')
    assert drawn['Topic']['Value'] == '/excitation/preview_markers'
    assert "create_publisher(MarkerArray, '~/preview_markers', LATCHED)" in markers
    assert drawn['Topic']['Durability Policy'] == 'Transient Local'
    assert all(f"'{name}'" in markers for name in drawn['Namespaces'])
    assert f"PREFIX = '{prefix}/'" in markers
    assert "replace('/excitation/preview_markers'" in text


def test_the_plotjuggler_layout_is_what_its_reader_takes_and_shows_what_the_nodes_publish() -> None:
    """PlotJuggler itself is not at hand: what its PlotDocker::restoreSplitter and PlotWidget::xmlLoadState take."""
    root = ElementTree.parse(ROOT / 'config' / 'plotjuggler_ur.xml').getroot()
    assert root.find('tabbed_widget').get('parent') == 'main_window'
    for tab in root.iter('Tab'):
        assert len(tab.findall('Container')) == int(tab.get('containers'))
    for splitter in root.iter('DockSplitter'):
        assert splitter.get('orientation') in ('|', '-')
        assert len(splitter) == int(splitter.get('count')) == len(splitter.get('sizes').split(';'))
        assert {child.tag for child in splitter} <= {'DockSplitter', 'DockArea'}
    assert all(plot.get('mode') == 'TimeSeries' for plot in root.iter('plot'))
    robot = ElementTree.parse(ROOT / 'robotid_ros' / 'robots' / 'ur10e.urdf').getroot()
    joints = {joint.get('name') for joint in robot.iterfind('joint') if joint.get('type') == 'revolute'}
    node = (ROOT / 'robotid_ros' / 'nodes' / 'identified_arm.py').read_text(encoding='utf-8')
    assert "create_publisher(JointState, f'~/{name}_torque'" in node
    kinds = re.search(r'for name in \(([^)]*)\)', node)
    topics = {f'/{name}_torque' for name in re.findall(r"'(\w+)'", kinds.group(1))}
    curves = [curve.get('name') for curve in root.iter('curve')]
    assert len(curves) == 6 * 7
    for curve in curves:
        topic, joint, quantity = curve.rsplit('/', 2)
        assert topic == '/joint_states' or topic.removeprefix('/identification') in topics, curve
        assert joint in joints, curve
        assert quantity in ('position', 'velocity', 'effort'), curve


ELSEWHERE = {
    'recordings': 'recorder/averaged, recordings',
    'robot': 'robot_description, urdf_file',
    'out': 'output_folder',
    'friction_data': 'recorder/friction',
    'validate': 'run: validation',
    'config': 'the parameter file itself',
    'tip': 'tip_link',
    'excitation': 'excitation/reference',
    'validate_excitation': 'excitation/reference',
    'topic': 'joint_states, remapped',
}
WITHOUT = {
    'train_fraction': 'averages over periods cannot be cut in two',
    'parameters': 'the answer holds every parameter',
    'period': 'the reference has it',
    'cutoff': 'averages are smoothed by a Fourier series and the five-point cubic',
    'differentiation': 'of a Fourier series it is exact',
}


def test_whatever_the_command_can_choose_a_parameter_and_a_launch_argument_can_choose_too() -> None:
    parser = argparse.ArgumentParser()
    identify.add_arguments(parser)
    options = {action.dest for action in parser._actions} - {'help'}
    assert ELSEWHERE.keys() | WITHOUT.keys() <= options
    asked = options - ELSEWHERE.keys() - WITHOUT.keys()
    assert asked <= SETTINGS
    assert {item.name for kind in KINDS[:2] for item in settings_of(kind)} <= asked
    node = (ROOT / 'robotid_ros' / 'nodes' / 'identification.py').read_text(encoding='utf-8')
    for kind in KINDS:
        assert f'declare_parameters(self, {kind.__name__})' in node
    launch = (ROOT / 'launch' / 'identify.launch.py').read_text(encoding='utf-8')
    assert f'for kind in ({", ".join(kind.__name__ for kind in KINDS)})' in launch
