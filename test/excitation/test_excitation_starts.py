# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Starts and designs that are refused: each with its reason, and the parameter that allows it."""

import numpy as np
import pytest
from excitation_helpers import UR10E, ur10e
from ros_helpers import NodeProcess, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

import rclpy  # noqa: E402
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue  # noqa: E402
from excitation_user import JOINTS, NODE, User, arguments  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Float64  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from robotid_ros.dynamics import inverse_dynamics  # noqa: E402

START = [0.0, -1.2, 1.2, -1.2, -1.5, 0.0]
WEIGHT = inverse_dynamics(ur10e(), np.array([START]), np.zeros((1, 6)), np.zeros((1, 6)))[0]
WHOLE = (WEIGHT + 0.5).tolist()  # of a driver that tells all of the torque


class Arm:
    """Publishes joint states, and a speed scaling, as a driver does, good or bad."""

    def __init__(self, user):
        self.node = user.node
        self.states = self.node.create_publisher(JointState, '/joint_states', 10)
        self.effort, self.stamped, self.scaling = WHOLE, True, user.scaling
        self.scales, self.lies = True, False
        self.timer = self.node.create_timer(0.01, self.publish)

    def publish(self):
        message = JointState(name=list(JOINTS), position=START, velocity=[0.0] * 6, effort=self.effort)
        if self.stamped:
            message.header.stamp = self.node.get_clock().now().to_msg()
        self.states.publish(message)
        if self.lies:
            message.position = [1.0, *START[1:]]
            self.states.publish(message)
        if self.scales:
            self.scaling.publish(Float64(data=100.0))


@pytest.fixture(scope='module')
def world():
    environment = ros_environment()
    settings = arguments(urdf_file=UR10E, controller_timeout=0.2, joints=f'[{", ".join(JOINTS)}]', effort='torque')
    with NodeProcess([*NODE, *settings], environment) as node:
        user = User(int(environment['ROS_DOMAIN_ID']))
        user.node.destroy_subscription(user.windows_subscription)  # it would count as a controller
        arm = Arm(user)
        node.wait_for_line('robot ur10e')
        yield user, arm
        user.close()


@pytest.fixture
def ready(world):
    """Return the user and an arm, with everything in order but the controller, which is not there."""
    user, arm = world
    arm.effort, arm.stamped, arm.scales = WHOLE, True, True
    user.set(ground=True, least_joint_state_rate=1.0, largest_velocity_limit=20.0)
    user.set(acceleration_limit=8.0, largest_condition_number=1e6, start_anyway=['no_recorder'])
    if user.value('condition_number') is None:
        assert user.call('/excitation/design').success
    user.set(start_anyway=['no_effort'])
    return user, arm


def refusal(user):
    answer = user.call('/excitation/start')
    assert not answer.success
    return answer.message


@pytest.mark.slow
def test_with_everything_in_order_only_the_controller_is_missed(ready):
    user, _ = ready
    assert 'no controller listens' in refusal(user)


@pytest.mark.parametrize(
    ('effort', 'said'),
    [
        ([], 'have no effort for shoulder_pan_joint, shoulder_lift_joint'),
        ([1.0] * 5 + [float('nan')], 'have no effort for wrist_3_joint:'),
        ([0.0] * 6, 'have efforts that are all exactly zero'),
    ],
)
def test_joint_states_without_effort_are_refused(ready, effort, said):
    user, arm = ready
    arm.effort = effort
    user.set(start_anyway=['unstamped'])
    message = refusal(user)
    assert said in message
    assert '(or allow it: start_anyway: [no_effort])' in message
    user.set(start_anyway=['no_effort'])
    assert 'no controller listens' in refusal(user)


def test_efforts_that_the_driver_has_compensated_for_gravity_are_refused(ready):
    user, arm = ready
    arm.effort = (np.array(WHOLE) - WEIGHT).tolist()
    user.set(start_anyway=['no_recorder'])
    message = refusal(user)
    assert 'the efforts of the arm at rest hold nothing of its weight' in message
    assert '(or allow it: start_anyway: [no_gravity])' in message
    user.set(start_anyway=['no_recorder', 'no_gravity'])
    assert 'no controller listens' in refusal(user)


def test_joint_states_that_are_slow_or_unstamped_are_refused(ready):
    user, arm = ready
    user.set(least_joint_state_rate=1e4)
    assert 'expected at least 10000 Hz (least_joint_state_rate)' in refusal(user)
    user.set(least_joint_state_rate=1.0)
    arm.stamped = False
    assert 'the joint states have no stamp' in refusal(user)


def test_joint_states_of_two_arms_are_refused(ready):
    """A stop from where the arm is not made one that rested leap at four times its limit."""
    user, arm = ready
    arm.lies = True
    message = refusal(user)
    arm.lies = False
    assert "joint 'shoulder_pan_joint' moved while the run was planned" in message
    assert 'its joint states are 1 apart, or two nodes publish some' in message
    assert 'no controller listens' in refusal(user)


def test_somebody_else_who_can_command_the_arm_is_named(ready):
    user, _ = ready
    other = user.node.create_publisher(JointTrajectory, '/joint_trajectory', 10)
    user.until(lambda: '/user can command the arm too' in refusal(user), 'the other is seen')
    user.node.destroy_publisher(other)
    user.until(lambda: 'can command' not in refusal(user), 'the other is gone')


def test_a_controller_that_reads_another_clock_is_named(ready):
    user, _ = ready
    simulated = [Parameter('use_sim_time', value=True)]
    controller = rclpy.create_node('controller', context=user.context, parameter_overrides=simulated)
    controller.create_subscription(JointTrajectory, '/joint_trajectory', lambda _: None, 10)
    user.executor.add_node(controller)
    try:
        said = []
        user.until(lambda: 'no controller' not in (said.append(refusal(user)) or said[-1]), 'the controller is seen')
        assert '/controller runs on simulated time (use_sim_time: true) and this node on this computer' in said[-1]
        clock = controller.create_publisher(Clock, '/clock', 10)  # who sets the clock does not read it
        user.until(lambda: 'does not say how it replaces' in refusal(user), 'it is the one that sets the clock')
        controller.destroy_publisher(clock)
    finally:
        user.executor.remove_node(controller)
        controller.destroy_node()


def test_a_speed_scaling_topic_that_is_silent_is_refused(ready):
    user, arm = ready
    arm.scales = False
    assert 'nothing comes on the speed scaling topic /speed_scaling' in refusal(user)


def test_a_recorder_that_is_absent_or_cannot_record_is_refused(ready):
    user, _ = ready
    statuses = user.node.create_publisher(DiagnosticStatus, '/recorder/status', 10)
    broken = DiagnosticStatus(values=[KeyValue(key='refusal', value='the disk is full')])
    beat = user.node.create_timer(0.05, lambda: statuses.publish(broken))
    user.until(lambda: 'the recorder cannot record: the disk is full' in refusal(user), 'the recorder is heard')
    broken.values = []
    user.until(lambda: 'recorder' not in refusal(user), 'the recorder is mended')
    user.node.destroy_timer(beat)
    user.node.destroy_subscription(user.reference_subscription)
    user.until(lambda: 'nobody records: no recorder takes /excitation/reference' in refusal(user), 'none is seen')


def test_what_a_design_cannot_keep_safe_is_refused_by_the_design_and_by_the_start(ready):
    user, _ = ready
    user.set(ground=False, acceleration_limit=0.0, largest_velocity_limit=1.0, largest_condition_number=1.0)
    for service in ('/excitation/design', '/excitation/start'):
        lines = user.call(service).message.splitlines()
        named = {line.rpartition('[')[2].rstrip('])') for line in lines}
        wanted = {'unchecked_workspace', 'no_acceleration_limit', 'implausible_velocity'}
        assert wanted <= named, lines
        assert ('poor_condition' in named) == service.endswith('start')
    assert 'nothing keeps the arm off the ground' in lines[0]
    results = user.set(start_anyway=['courage'])
    assert not results[0].successful
    assert 'expected one of no_recorder, no_effort' in results[0].reason


def test_the_status_is_among_the_diagnostics_under_its_full_name(ready):
    user, _ = ready
    arrays = []
    user.node.create_subscription(DiagnosticArray, '/diagnostics', arrays.append, 10)
    user.until(lambda: arrays, 'diagnostics come')
    (status,) = arrays[-1].status
    assert status.name == '/excitation'
    assert 'condition_number' in {item.key for item in status.values}
    assert arrays[-1].header.stamp.sec > 0
