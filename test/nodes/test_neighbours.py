# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What the shipped layouts of Foxglove, PlotJuggler and RViz show, against what the running nodes publish and serve."""

import json
import re
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from excitation_helpers import UR10E
from ros_helpers import NodeProcess, ros_environment

from robotid_ros.model import RobotModel

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='the sim extra is not installed')
pytestmark = pytest.mark.ros

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from excitation_user import User, arguments  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

CONFIG = Path(__file__).parents[2] / 'config'
FOXGLOVE = json.loads((CONFIG / 'foxglove_ur.json').read_text(encoding='utf-8'))
# Published by robot_state_publisher, which view.launch.py starts; test_launch_files.py compares.
ELSEWHERE = {'/preview/robot_description', '/robot_description'}


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    """Return a user beside the three nodes and an arm, and the values that statuses had while a design went on."""
    environment = ros_environment()
    folder = tmp_path_factory.mktemp('runs')
    nodes = {
        'simulated_arm': ['-p', 'robot:=ur10e'],
        'recorder': ['-p', f'output_folder:={folder}', '-p', 'effort:=torque'],
        'excitation': arguments(urdf_file=UR10E, starts=20, acceleration_limit=8.0),
        'identification': [],
    }
    running = []
    try:
        for node, given in nodes.items():
            running.append(NodeProcess(['-m', f'robotid_ros.nodes.{node}', '--ros-args', *given], environment))
        user = User(int(environment['ROS_DOMAIN_ID']))
        said = {name: {} for name in ('excitation', 'recorder', 'identification')}
        states = []
        for name, kept in said.items():

            def keep(status, kept=kept):
                kept.update({item.key: item.value for item in status.values})

            user.node.create_subscription(DiagnosticStatus, f'/{name}/status', keep, 10)
        user.node.create_subscription(JointState, '/joint_states', states.append, 10)
        client = user.node.create_client(import_module('std_srvs.srv').Trigger, '/excitation/design')
        user.until(client.service_is_ready, 'a design can be asked for')
        client.call_async(import_module('std_srvs.srv').Trigger.Request())
        user.until(lambda: 'share' in said['excitation'] and said['recorder'] and states, 'all have spoken')
        yield user, said, states[-1]
        user.close()
    finally:
        for process in running:
            process.__exit__(None, None, None)


def published(user, topic):
    """Return a message of the type that a node publishes on a topic."""
    user.until(lambda: user.node.get_publishers_info_by_topic(topic), f'a publisher of {topic}')
    found = user.node.get_publishers_info_by_topic(topic)
    package, _, name = found[0].topic_type.split('/')
    return getattr(import_module(f'{package}.msg'), name)()


def every_path():
    """Return the topic and the field of each path in the layout of Foxglove."""
    for panel in FOXGLOVE['configById'].values():
        texts = [each['value'] for each in panel.get('paths', ())] + (
            [panel['topicPath']] if 'topicPath' in panel else []
        )
        for text in texts:
            match = re.fullmatch(r'(/[\w/]+)\.([\w.]+)(?:\[(\d+|:)\](?:\{key=="(\w+)"\}\.value)?)?', text)
            assert match, text
            yield text, *match.groups()


def test_what_foxglove_shows_is_published(world) -> None:
    user, said, state = world
    count = 0
    for text, topic, field, index, key in every_path():
        message = published(user, topic)
        for part in field.split('.'):
            assert hasattr(message, part), text
            message = getattr(message, part)
        if key is not None:
            assert key in said[topic.split('/')[1]], text
        elif index is not None:
            assert int(index) < len(state.name), text
        count += 1
    assert count == 6 * 4 + 6 + 2 + 1 + 3


def test_what_foxglove_draws_and_calls_is_there(world) -> None:
    user, *_ = world
    panels = FOXGLOVE['configById']
    for name in panels['3D!preview']['topics']:
        if name.endswith('markers'):
            pytest.importorskip('visualization_msgs', reason='needs the ROS package visualization_msgs')
        assert published(user, name)
    for layer in panels['3D!preview']['layers'].values():
        assert layer['topic'] in ELSEWHERE
    assert published(user, panels['DiagnosticSummary!all']['topicToRender'])
    called = panels['CallService!stop']['serviceName']
    user.until(lambda: called in dict(user.node.get_service_names_and_types()), f'the service {called}')
    assert dict(user.node.get_service_names_and_types())[called] == ['std_srvs/srv/Trigger']


def test_the_plots_are_named_after_the_joints_they_show() -> None:
    """Torques come in the order of the description's joints, whatever that of the joint states is."""
    joints = RobotModel.from_urdf(UR10E).joint_names
    for k, joint in enumerate(joints):
        panel = FOXGLOVE['configById'][f'Plot!torque{k}']
        assert panel['foxglovePanelTitle'].startswith(f'{joint}:')
        assert {re.search(r'\[(\d)\]', each['value'])[1] for each in panel['paths']} == {str(k)}


def test_every_panel_has_its_place_once() -> None:
    """The tree that Foxglove's LayoutData holds: a panel's name, or a direction with a first and a second."""

    def leaves(tree):
        if isinstance(tree, str):
            return [tree]
        assert set(tree) == {'direction', 'first', 'second', 'splitPercentage'}
        assert tree['direction'] in ('row', 'column')
        return [*leaves(tree['first']), *leaves(tree['second'])]

    panels = FOXGLOVE['configById']
    placed = leaves(FOXGLOVE['layout'])
    placed += [leaf for tab in panels['Tab!right']['tabs'] for leaf in leaves(tab['layout'])]
    assert sorted(placed) == sorted(panels)


def test_what_plotjuggler_shows_is_published(world) -> None:
    user, _, state = world
    curves = [each.get('name') for each in ElementTree.parse(CONFIG / 'plotjuggler_ur.xml').iter('curve')]
    for curve in curves:
        topic, joint, field = curve.rsplit('/', 2)
        assert isinstance(published(user, topic), JointState), curve
        assert joint in state.name, curve
        assert hasattr(state, field), curve
    assert len(curves) == 42


def test_what_rviz_shows_is_published(world) -> None:
    pytest.importorskip('visualization_msgs', reason='needs the ROS package visualization_msgs')
    user, *_ = world
    content = yaml.safe_load((CONFIG / 'preview.rviz').read_text(encoding='utf-8'))
    topics = [
        part['Value']
        for each in content['Visualization Manager']['Displays']
        for part in (each.get('Topic'), each.get('Description Topic'))
        if part
    ]
    assert len(topics) == 3
    for topic in topics:
        assert topic in ELSEWHERE or published(user, topic)
