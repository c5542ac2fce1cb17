# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The simulated arm's action FollowJointTrajectory over DDS, as a client of a real controller would meet it."""

import numpy as np
import pytest
from ros_helpers import NodeProcess, ros_environment
from simulation_helpers import UR10E

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='needs the sim extra')
pytest.importorskip('control_msgs', reason='needs the ROS package control_msgs, which is not on PyPI')
pytestmark = pytest.mark.ros

from action_msgs.msg import GoalStatus  # noqa: E402
from builtin_interfaces.msg import Duration  # noqa: E402
from control_msgs.action import FollowJointTrajectory  # noqa: E402
from control_msgs.msg import JointTolerance  # noqa: E402
from excitation_user import User, arguments  # noqa: E402
from rclpy.action import ActionClient  # noqa: E402
from ros_client import GraphClient  # noqa: E402

from robotid_ros.model import RobotModel  # noqa: E402
from robotid_ros.nodes.messages import seconds, trajectory_message  # noqa: E402

# All wait for the arm's clock, so that a busy machine changes nothing but how long it takes. A goal begins where and as
# fast as the sensors say: without their noise, at rest.
ARM = ['-m', 'robotid_ros.nodes.simulated_arm', '--ros-args', '-p', 'physics_rate:=500.0', '-p', 'publish_rate:=100.0']
ARM += ['-p', 'publish_clock:=true', '-p', 'position_noise:=0.0', '-p', 'velocity_noise:=0.0']
NAMES = list(RobotModel.from_urdf(UR10E).joint_names)
TARGET = np.array([0.5, -0.8, 0.6, -0.4, 0.3, 0.2])
ZERO = np.zeros(6)
Result = FollowJointTrajectory.Result


class Client(GraphClient):
    """Sends goals, and keeps all feedback."""

    def __init__(self, domain):
        super().__init__(domain)
        self.action = ActionClient(self.node, FollowJointTrajectory, 'follow_joint_trajectory')
        self.feedback = []

    def send(self, target, duration, *, names=NAMES, stamp=0.0, speed=ZERO, **tolerances):
        self.until(self.action.server_is_ready, 'the action appears')
        rows = [np.array([row[NAMES.index(name)] for name in names]) for row in (target, speed, ZERO)]
        points = [row[None] for row in rows] if duration else [np.zeros((0, len(names)))] * 3
        times = np.array([duration] if duration else [])
        goal = FollowJointTrajectory.Goal(trajectory=trajectory_message(names, stamp, times, *points), **tolerances)
        sent = self.action.send_goal_async(goal, lambda message: self.feedback.append(message.feedback))
        return self.answer(sent, 'an answer to the goal')

    def result(self, handle):
        response = self.answer(handle.get_result_async(), 'the result')
        return response.status, response.result.error_code, response.result.error_string

    def part(self):
        """Return the parts of the way to TARGET, from zero, where the last feedback wants the joints."""
        return np.array(self.feedback[-1].desired.positions) / TARGET


@pytest.fixture(scope='module')
def world():
    environment = ros_environment()
    client = Client(int(environment['ROS_DOMAIN_ID']))
    with NodeProcess(ARM, environment) as arm:
        yield client, arm, environment
    client.close()


@pytest.fixture
def client(world):
    client, *_ = world
    assert client.result(client.send(ZERO, 1.0))[0] == GoalStatus.STATUS_SUCCEEDED
    client.feedback.clear()
    return client


def test_a_goal_moves_the_arm_with_feedback_to_its_end(client):
    handle = client.send(TARGET, 2.0, names=NAMES[::-1])
    assert handle.accepted
    assert client.result(handle) == (GoalStatus.STATUS_SUCCEEDED, Result.SUCCESSFUL, 'Goal successfully reached!')
    assert len(client.feedback) > 3
    stamps = np.array([seconds(item.header.stamp) for item in client.feedback])
    desired, actual, error = (
        np.array([getattr(item, name).positions for item in client.feedback]) for name in ('desired', 'actual', 'error')
    )
    assert all(item.joint_names == NAMES for item in client.feedback)
    assert (np.diff(stamps) > 0.0).all()
    # A quintic from rest to rest, whenever it began: the first joint tells the time of the others.
    s = desired / TARGET
    np.testing.assert_allclose(s, s[:, :1] * np.ones(6), atol=1e-3)
    assert s.min() > -1e-3
    assert s.max() < 1.001
    np.testing.assert_allclose(actual, desired, atol=3e-3)
    np.testing.assert_allclose(error, desired - actual, atol=1e-12)


def test_goals_are_refused_by_the_rules_of_the_topic(world, client):
    _, arm, _ = world
    for sent, answer in (
        ({'duration': 0.0}, 'the trajectory is empty'),
        ({'duration': 1.0, 'names': NAMES[:5]}, 'are not those of the controller'),
        ({'duration': 1.0, 'speed': np.full(6, 0.1)}, 'ends in motion'),
        ({'duration': 1.0, 'stamp': 1.0}, 'ended in the past'),
    ):
        assert not client.send(TARGET, **sent).accepted
        arm.wait_for_line(answer)
    assert client.result(client.send(0.1 * TARGET, 0.5))[1] == Result.SUCCESSFUL


def test_a_cancelled_goal_holds_the_arm_where_it_is(client):
    handle = client.send(TARGET, 60.0)
    client.until(lambda: client.feedback and client.part().min() > 0.02, 'all joints are on their way')
    assert client.answer(handle.cancel_goal_async(), 'an answer').goals_canceling
    assert client.result(handle) == (GoalStatus.STATUS_CANCELED, Result.SUCCESSFUL, '')
    client.feedback.clear()
    held = client.send(TARGET, 1e6)  # nowhere in the time of this test
    client.until(lambda: client.feedback, 'feedback')
    part = client.part()
    assert 0.01 < part.min() < part.max() < 0.9
    client.answer(held.cancel_goal_async(), 'an answer')


def test_a_joint_beyond_its_path_tolerance_aborts_the_goal_and_holds_the_arm(client):
    tight = [JointTolerance(name=NAMES[1], position=1e-6)]
    status, code, text = client.result(client.send(TARGET, 2.0, path_tolerance=tight))
    assert (status, code) == (GoalStatus.STATUS_ABORTED, Result.PATH_TOLERANCE_VIOLATED)
    assert f"joint '{NAMES[1]}' is " in text
    assert 'away from the trajectory (allowed: 1e-06)' in text


def test_an_end_out_of_tolerance_aborts_the_goal_after_its_time(client):
    tight = [JointTolerance(name=name, position=1e-12) for name in NAMES]
    late = Duration(nanosec=200_000_000)
    status, code, text = client.result(client.send(TARGET, 1.0, goal_tolerance=tight, goal_time_tolerance=late))
    assert (status, code) == (GoalStatus.STATUS_ABORTED, Result.GOAL_TOLERANCE_VIOLATED)
    assert 'after the end (allowed: 0.2 s)' in text


def test_a_new_goal_takes_the_place_of_the_running_one(client):
    first = client.send(TARGET, 60.0)
    client.until(lambda: client.feedback, 'feedback')
    second = client.send(0.1 * TARGET, 1.0)
    assert client.result(first) == (
        GoalStatus.STATUS_ABORTED,
        Result.INVALID_GOAL,
        'Current goal preempted by new incoming action.',
    )
    assert client.result(second)[1] == Result.SUCCESSFUL


def test_tolerances_of_unknown_joints_are_left_aside_with_a_word(world, client):
    _, arm, _ = world
    assert client.result(client.send(TARGET, 0.5, path_tolerance=[JointTolerance(name='hand', position=1e-9)]))[1] == 0
    arm.wait_for_line("the tolerances of a goal are left aside: path_tolerance: joint 'hand'")


def test_an_excitation_runs_on_it_by_goals(world, client):
    _, _, environment = world
    node = ['-m', 'robotid_ros.nodes.excitation', '--ros-args']
    settings = {'controller_interface': 'action', 'feedback_timeout': 60.0, 'joint_state_timeout': 60.0}
    settings |= {'use_sim_time': True}
    patient = arguments(periods=4, window_points=300, path_tolerance=[0.2], goal_tolerance=[0.05], **settings)
    with NodeProcess([*node, *patient], environment) as excitation:
        user = User(int(environment['ROS_DOMAIN_ID']))
        try:
            user.until(lambda: user.call('/excitation/design').success, 'a design')
            user.until(lambda: user.call('/excitation/start').success, 'a start')
            user.until_state('finished', 'stopped')
            assert user.text == 'the run is complete; the arm is at rest', excitation.output
            user.until(lambda: user.references[-1].points == [], 'the end of the reference')
        finally:
            user.close()
