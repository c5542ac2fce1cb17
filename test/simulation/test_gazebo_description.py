# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The URDF that Gazebo gets: nothing of the arm lost, everything of ros2_control there."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from errors_helpers import refused
from simulation_helpers import CRANE, UR10E

from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.packaged import arm_description, packaged_arms
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.simulation import gazebo_controllers, gazebo_description, world_physics

CONFIG = Path(__file__).parents[2] / 'config'


def controllers() -> dict:
    return yaml.safe_load((CONFIG / 'gazebo_controllers.yaml').read_text())


@pytest.mark.parametrize('arm', [UR10E.read_text(), CRANE], ids=['ur10e', 'crane'])
def test_every_joint_takes_both_commands_and_shows_position_velocity_and_effort(arm: str) -> None:
    robot = ElementTree.fromstring(gazebo_description(arm, '/etc/controllers.yaml'))
    control = robot.find('ros2_control')
    assert control.get('type') == 'system'
    assert control.findtext('hardware/plugin') == 'gz_ros2_control/GazeboSimSystem'
    joints = control.findall('joint')
    assert tuple(joint.get('name') for joint in joints) == RobotModel.from_urdf(arm).joint_names
    for joint in joints:
        assert [entry.get('name') for entry in joint.findall('command_interface')] == ['position', 'velocity']
        assert [entry.get('name') for entry in joint.findall('state_interface')] == ['position', 'velocity', 'effort']
    plugin = robot.find('gazebo/plugin')
    assert plugin.get('filename') == 'gz_ros2_control-system'
    assert plugin.get('name') == 'gz_ros2_control::GazeboSimROS2ControlPlugin'
    assert plugin.findtext('parameters') == '/etc/controllers.yaml'
    assert plugin.find('ros') is None


@pytest.mark.parametrize('arm', [UR10E.read_text(), CRANE], ids=['ur10e', 'crane'])
def test_the_arm_stays_the_same(arm: str) -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    text = gazebo_description(arm, 'c.yaml')
    assert text.startswith(arm.rstrip().removesuffix('</robot>').rstrip())
    before, after = pinocchio.buildModelFromXML(arm), pinocchio.buildModelFromXML(text)
    q = np.linspace(0.1, 0.5, before.nq)
    for model in (before, after):
        model.gravity = pinocchio.Motion(np.array([0.0, 0.0, -9.81]), np.zeros(3))
    torques = [pinocchio.rnea(model, model.createData(), q, q, q) for model in (before, after)]
    np.testing.assert_allclose(torques[0], torques[1], atol=1e-12)
    assert after.existFrame('world')


def test_a_namespace_and_awkward_names_are_spelled_as_xml() -> None:
    odd = CRANE.replace('"turn"', '"turn &amp; roll"')
    robot = ElementTree.fromstring(gazebo_description(odd, '/a&b/<c>.yaml', namespace='cell/left/'))
    assert robot.findtext('gazebo/plugin/ros/namespace') == '/cell/left'
    assert robot.findtext('gazebo/plugin/parameters') == '/a&b/<c>.yaml'
    assert robot.find('ros2_control/joint').get('name') == 'turn & roll'


def test_an_arm_on_a_world_link_is_not_fixed_twice() -> None:
    robot = ElementTree.fromstring(gazebo_description(CRANE.replace('"base"', '"world"'), 'c.yaml'))
    assert sum(link.get('name') == 'world' for link in robot.findall('link')) == 1
    assert len(robot.findall('joint')) == 3


def test_the_start_is_clear_of_the_limits() -> None:
    shifted = CRANE.replace('lower="-2" upper="2"', 'lower="-2" upper="-0.5"')
    joints = ElementTree.fromstring(gazebo_description(shifted, 'c.yaml')).findall('ros2_control/joint')
    assert [float(joint.findtext('state_interface/param')) for joint in joints] == [0.0, -0.6, 0.0]
    text = gazebo_description(CRANE, 'c.yaml', initial_position=np.array([0.1, 0.2, 0.3]))
    joints = ElementTree.fromstring(text).findall('ros2_control/joint')
    assert [float(joint.findtext('state_interface/param')) for joint in joints] == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ('arm', 'message'),
    [
        ('<robot', 'not well-formed XML'),
        (gazebo_description(CRANE, 'c.yaml'), 'has a <ros2_control> element already'),
        ('<robot name="x"><link name="a"/></robot>', 'no moving joint'),
    ],
)
def test_what_cannot_be_prepared_is_refused(arm: str, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        gazebo_description(arm, 'c.yaml')


def test_packaged_arms_go_by_their_names() -> None:
    assert 'ur10e' in packaged_arms()
    assert arm_description('ur10e') == UR10E.read_text()
    with refused(ModelError, name='ur99', expected=packaged_arms()):
        arm_description('ur99')


def test_the_shipped_controllers_are_those_of_the_shipped_arm() -> None:
    names = list(RobotModel.from_urdf(UR10E).joint_names)
    parameters = controllers()
    trajectory = parameters['/**/joint_trajectory_controller']['ros__parameters']
    assert trajectory['joints'] == names
    assert trajectory['command_interfaces'] == ['velocity']
    assert list(trajectory['gains']) == names  # without its velocity fed forward, a joint would lag by a second
    assert {gains['ff_velocity_scale'] for gains in trajectory['gains'].values()} == {1.0}
    assert trajectory['interpolate_from_desired_state'] is False  # controllers of Jazzy would leave the gains out
    assert trajectory['state_interfaces'] == ['position', 'velocity']
    manager = parameters['/**/controller_manager']['ros__parameters']
    _, rate = world_physics(CONFIG / 'gazebo_world.sdf')
    assert manager['update_rate'] == rate == 1000
    assert manager['joint_state_broadcaster']['type'] == 'joint_state_broadcaster/JointStateBroadcaster'
    assert manager['joint_trajectory_controller']['type'] == 'joint_trajectory_controller/JointTrajectoryController'
    config = RobotConfig.from_yaml(CONFIG / 'gazebo_ur10e.yaml')
    assert list(config.joints) == names
    assert set(config.meaning(config.joints)) == {'torque'}
    assert config.joint_trajectory_topic == 'joint_trajectory_controller/joint_trajectory'


def test_controllers_are_those_of_the_arm_at_the_rate_of_the_physics() -> None:
    template = (CONFIG / 'gazebo_controllers.yaml').read_text()
    text = gazebo_controllers(template, ['a', 'b'], 500.0)
    assert '&' not in text  # rcl refuses the aliases of YAML
    made = yaml.safe_load(text)
    given = controllers()
    gains = given['/**/joint_trajectory_controller']['ros__parameters'].pop('gains')
    assert made['/**/joint_trajectory_controller']['ros__parameters'].pop('gains') == dict.fromkeys(
        ['a', 'b'], gains['elbow_joint']
    )
    assert made['/**/joint_trajectory_controller']['ros__parameters'].pop('joints') == ['a', 'b']
    assert made['/**/controller_manager']['ros__parameters'].pop('update_rate') == 500
    del given['/**/joint_trajectory_controller']['ros__parameters']['joints']
    del given['/**/controller_manager']['ros__parameters']['update_rate']
    assert made == given
    with pytest.raises(ModelError, match=r'the physics runs at 333\.333 Hz; controllers need a whole number'):
        gazebo_controllers(template, ['a'], 1.0 / 0.003)


def test_gravity_and_rate_are_those_of_the_world(tmp_path: Path) -> None:
    assert world_physics(CONFIG / 'gazebo_world.sdf') == ((0.0, 0.0, -9.81), pytest.approx(1000.0))
    world = tmp_path / 'w.sdf'
    for text, expected in (
        ('<sdf><world name="w"/></sdf>', ((0.0, 0.0, -9.8), 1000.0)),  # the defaults of the SDF specification
        (
            (
                '<sdf><world name="w"><gravity>0 1 -2</gravity>'
                '<physics><max_step_size>0.002</max_step_size></physics></world></sdf>'
            ),
            ((0.0, 1.0, -2.0), 500.0),
        ),
    ):
        world.write_text(text)
        gravity, rate = world_physics(world)
        assert gravity == expected[0]
        assert rate == pytest.approx(expected[1])
    for text in (
        '<sdf',
        '<sdf/>',
        '<sdf><world><gravity>down</gravity></world></sdf>',
        '<sdf><world><gravity>1</gravity></world></sdf>',
    ):
        world.write_text(text)
        with pytest.raises(ModelError, match='world file'):
            world_physics(world)
    with pytest.raises(ModelError, match='cannot be read'):
        world_physics(tmp_path / 'none.sdf')
