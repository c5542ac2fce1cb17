# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The excitation node on a controller's action FollowJointTrajectory, over DDS, with every fault it can answer with."""

import re
import signal
from contextlib import contextmanager
from pathlib import Path

import pytest
from excitation_helpers import UR10E
from ros_helpers import NodeProcess, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('control_msgs', reason='needs the ROS package control_msgs, which is not on PyPI')
pytestmark = pytest.mark.ros

from action_msgs.msg import GoalStatus  # noqa: E402
from control_msgs.action import FollowJointTrajectory  # noqa: E402
from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from excitation_user import (  # noqa: E402
    JOINTS,
    NODE,
    User,
    arguments,
    assert_at_rest_within_limits,
    start,
)

from robotid_ros.nodes.controller_link import action_name, outcome  # noqa: E402

ACTION = '/arm_controller/follow_joint_trajectory'
PATIENT = {'feedback_timeout': 10.0, 'joint_state_timeout': 10.0}  # a busy machine is no fault
REMAPPED = ['-r', 'joint_trajectory:=/arm_controller/joint_trajectory']


def program(**settings):
    return [*NODE, *REMAPPED, *arguments(controller_interface='action', **{**PATIENT, **settings})]


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    environment = ros_environment()
    arm = [str(Path(__file__).parents[1] / 'excitation_fake_action.py'), ','.join(JOINTS), ACTION]
    saved = tmp_path_factory.mktemp('design') / 'excitation.yaml'
    settings = {'save_to': saved, 'urdf_file': UR10E, 'window_points': 300}
    with (
        NodeProcess(program(**settings), environment) as node,
        NodeProcess(arm, environment) as arm_process,
    ):
        user = User(int(environment['ROS_DOMAIN_ID']))
        arm_process.wait_for_line('ready')
        assert user.call('/excitation/design').success
        yield user, node, environment, saved, arm
        user.close()


@pytest.fixture
def user(world):
    """Return the user, with the arm in order and at rest."""
    user, *_ = world
    user.fault('none')
    user.until_state('ready', 'stopped', 'finished')
    user.report()
    return user


def until_moving(user):
    user.until_phase('period')
    user.until_it_moves()


def assert_rested_by_a_goal(user):
    """The way to rest was a goal; nothing was held in motion."""
    assert_at_rest_within_limits(user, cancelled=0, held_at=[], following=False)


def test_a_whole_run_is_a_sequence_of_goals(user):
    user.set(periods=4, path_tolerance=[0.5], goal_tolerance=[0.1] * 5 + [0.2], goal_time_tolerance=3.0)
    start(user)
    user.until(lambda: user.value('controller_error') is not None, 'feedback')
    assert float(user.value('controller_error')) == pytest.approx(-0.01)
    assert user.value('controller_error_joint') in JOINTS
    user.until_state('finished', 'stopped')
    assert user.text == 'the run is complete; the arm is at rest'
    assert user.statuses[-1].level == DiagnosticStatus.OK
    assert user.node.count_publishers('/arm_controller/joint_trajectory') == 0
    report = assert_at_rest_within_limits(user, cancelled=0, held_at=[], following=False)
    assert report['accepted'] == report['preempted'] + 1 > 2
    assert report['tolerances'] == {
        'path': dict.fromkeys(JOINTS, 0.5),
        'goal': {**dict.fromkeys(JOINTS, 0.1), JOINTS[-1]: 0.2},
        'time': 3.0,
    }
    user.set(periods=30, path_tolerance=[0.0], goal_tolerance=[0.0], goal_time_tolerance=0.0)


def test_stop_on_request_leads_to_rest_by_a_goal(user):
    start(user)
    until_moving(user)
    assert user.call('/excitation/stop').success
    user.until_state('stopped')
    assert user.text == 'stopped: stopped on request'
    report = assert_at_rest_within_limits(user, cancelled=0, held_at=[], following=False)
    assert report['tolerances'] == {'path': {}, 'goal': {}, 'time': 0.0}


def test_a_goal_that_lies_ahead_may_be_passed_over_until_it_begins(user):
    """A controller at 6.9.0 follows what it has until then, and says nothing of the next goal."""
    user.fault('defer')
    user.set(start_delay=4.0, feedback_timeout=1.5)
    start(user)
    user.set(start_delay=0.3, feedback_timeout=PATIENT['feedback_timeout'])
    until_moving(user)
    assert user.call('/excitation/stop').success
    user.until_state('stopped')
    assert user.text == 'stopped: stopped on request'


@pytest.mark.parametrize(
    ('fault', 'reason'),
    [
        ('mute', 'no feedback from the controller for|the states of the controller cannot be watched'),
        ('astray', 'the controller leads joint'),
        ('blind', 'the controller measures nan for joint'),
        ('mixed', "'shoulder_pan_joint'"),
        ('nan', "the position of joint 'elbow_joint' is nan"),
        ('deaf', 'away from its reference|does not move|off the path'),
    ],
)
def test_faults_bring_the_arm_to_rest_by_a_goal_and_say_why(user, fault, reason):
    user.set(feedback_timeout=3.0 if fault == 'mute' else 10.0)
    start(user)
    until_moving(user)
    user.fault(fault)
    if fault == 'nan':  # nothing shows that the arm rests, and the node goes on to own it
        user.until(lambda: 'no joint state shows that the arm rests' in user.text, 'the doubt')
        user.fault('none')
    user.until_state('stopped')
    user.set(feedback_timeout=10.0)
    assert re.search(reason, user.text), user.text
    assert user.statuses[-1].level == DiagnosticStatus.ERROR
    user.fault('none')
    user.until(lambda: not user.report()['following'], 'the last goal ends')
    report = user.report()
    assert report['velocity'] < 1e-9
    assert report['cancelled'] == 0
    assert report['held_at'] == []
    assert user.references[-1].points == []


def test_a_refused_start_moves_nothing(user):
    user.fault('refuse')
    start(user)
    user.until_state('stopped')
    assert 'the controller refuses the trajectory; its log says why' in user.text
    report = user.report()
    assert report['accepted'] == 0
    assert report['velocity_peak'] == 0.0


def test_where_even_the_way_to_rest_is_refused_the_arm_is_held(user):
    user.fault('refuse_later')
    start(user)
    user.until_state('stopped')
    assert 'refuses the trajectory' in user.text
    assert 'what it followed was cancelled' in user.text
    user.fault('none')
    report = user.report()
    assert report['accepted'] == report['cancelled'] == len(report['held_at']) == 1
    assert report['velocity'] == 0.0


def test_after_an_abort_nothing_is_sent(user):
    """The controller holds the arm where it is: whatever is sent would make it jump."""
    user.set(periods=6, window_points=1000)  # one goal for all, so that none is on its way
    start(user)
    until_moving(user)
    assert user.report()['accepted'] == 1
    user.fault('abort')
    user.until_state('stopped')
    user.set(periods=30, window_points=300)
    assert 'PATH_TOLERANCE_VIOLATED (a joint was too far from the trajectory)' in user.text
    assert 'Aborted due to path tolerance violation' in user.text
    assert user.statuses[-1].level == DiagnosticStatus.ERROR
    report = user.report()
    assert report['accepted'] == report['cancelled'] == 0
    assert report['velocity'] == 0.0
    assert user.references[-1].points == []


def test_an_abort_is_noticed_when_the_next_goal_is_on_its_way(user):
    start(user)
    until_moving(user)
    user.fault('overlap')
    user.until_state('stopped')
    assert 'PATH_TOLERANCE_VIOLATED' in user.text
    assert_rested_by_a_goal(user)


def test_a_goal_that_does_not_end_is_cancelled_at_rest(user):
    user.fault('unreached')
    user.set(periods=1, feedback_timeout=6.0)
    start(user)
    user.until_state('finished', 'stopped')
    user.set(periods=30, feedback_timeout=10.0)
    assert user.value('state') == 'finished', user.text
    assert 'the controller does not say that the end was reached' in user.text
    assert user.statuses[-1].level == DiagnosticStatus.WARN
    user.until(lambda: user.report()['cancelled'] or not user.report()['following'], 'the goal is cancelled')
    report = user.report()
    assert report['velocity'] == 0.0
    assert max(report['held_at'], default=0.0) < 1e-9


def test_another_run_begins_after_all_that(user):
    user.set(periods=1)
    start(user)
    user.until_state('finished', 'stopped')
    assert user.text == 'the run is complete; the arm is at rest'
    assert_rested_by_a_goal(user)
    user.set(periods=30)


def test_tolerances_for_other_joints_are_refused_before_anything_moves(user):
    user.set(path_tolerance=[0.1, 0.2])
    try:
        answers = []

        def refused():
            answers.append(user.call('/excitation/start'))
            return 'path_tolerance' in answers[-1].message

        user.until(refused, 'a refusal')
        assert not any(answer.success for answer in answers)
        assert 'one for each of the 6 joints, got 2' in answers[-1].message
    finally:
        user.set(path_tolerance=[0.0])
    assert user.report()['accepted'] == 0


@contextmanager
def alone(world, **settings):
    """Run a node and an arm in a domain of their own, where no other node can command the arm too."""
    _, _, _, saved, arm = world
    environment = ros_environment()
    with (
        NodeProcess(program(trajectory=saved, urdf_file=UR10E, **settings), environment) as node,
        NodeProcess(arm, environment) as arm_process,
    ):
        user = User(int(environment['ROS_DOMAIN_ID']))
        try:
            arm_process.wait_for_line('ready')
            user.until(lambda: user.call('/excitation/start').success, 'a start')
            user.until_it_moves()
            yield user, node, arm_process
        finally:
            user.close()


def test_a_node_that_dies_leaves_the_arm_at_rest(world):
    with alone(world, window_points=300) as (user, node, _):
        node.signal(signal.SIGKILL)
        node.wait()
        user.until(lambda: user.report()['velocity'] == 0.0, 'the arm rests')
        reports = []

        def over():
            reports.append(user.report())
            return not reports[-1]['following']

        user.until(over, 'the goal ends')
    assert reports[-1]['velocity'] == 0.0
    assert all(report['refused'] == report['held_at'] == [] for report in reports)
    assert max(report['acceleration_peak'] for report in reports) < 8.0 * 1.01


def test_a_node_that_is_told_to_end_leads_the_arm_to_rest(world):
    with alone(world) as (user, node, _):
        node.signal(signal.SIGINT)
        assert node.wait() == 0
        assert 'the node is shut down' in node.output
        report = user.report()
    assert report['velocity'] < 1e-9
    assert report['cancelled'] == 0
    assert report['held_at'] == []


def test_a_controller_that_dies_is_noticed(world):
    settings = {'joint_state_timeout': 60.0, 'feedback_timeout': 5.0, 'controller_timeout': 0.5}
    with alone(world, **settings) as (user, _, dying):
        user.until_phase('period')
        dying.signal(signal.SIGKILL)
        dying.wait()
        # Nothing shows that the arm rests, and the node goes on to own it.
        user.until(lambda: 'no joint state shows that the arm rests' in user.text, 'the doubt')
        assert user.value('state') == 'stopping'
        reasons = ('no feedback from the controller for', 'no answer from the controller for', f'{ACTION} has gone')
        assert any(reason in user.text for reason in reasons), user.text
        assert user.statuses[-1].level == DiagnosticStatus.ERROR


def test_without_a_controller_nothing_starts(world, user):
    _, _, environment, saved, _ = world
    elsewhere = program(trajectory=saved, urdf_file=UR10E, follow_joint_trajectory_action='nowhere/follow')
    with NodeProcess([*elsewhere, '-p', 'controller_timeout:=0.2', '-r', '__node:=fourth'], environment):
        answers = []

        def refused():
            answers.append(user.call('/fourth/start'))
            return 'no controller serves the action /nowhere/follow' in answers[-1].message

        user.until(refused, 'a refusal')
        assert not any(answer.success for answer in answers)


@pytest.mark.parametrize(
    'name',
    [
        'INVALID_GOAL',
        'INVALID_JOINTS',
        'OLD_HEADER_TIMESTAMP',
        'PATH_TOLERANCE_VIOLATED',
        'GOAL_TOLERANCE_VIOLATED',
    ],
)
def test_error_codes_are_named(name):
    result = FollowJointTrajectory.Result(error_code=getattr(FollowJointTrajectory.Result, name), error_string='why')
    text = outcome(GoalStatus.STATUS_ABORTED, result)
    assert text.startswith(f'the controller aborted the trajectory: {name} (')
    assert text.endswith(': why')
    assert outcome(GoalStatus.STATUS_SUCCEEDED, FollowJointTrajectory.Result()) == ''
    assert 'cancelled' in outcome(GoalStatus.STATUS_CANCELED, FollowJointTrajectory.Result())


def test_the_action_is_beside_the_topic():
    assert action_name('/lbr/joint_trajectory_controller/joint_trajectory') == (
        '/lbr/joint_trajectory_controller/follow_joint_trajectory'
    )
    assert action_name('/joint_trajectory') == '/follow_joint_trajectory'
