# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The excitation node in a process of its own, over DDS, with an arm that breaks in every way."""

import re
import signal
from pathlib import Path

import numpy as np
import pytest
import yaml
from excitation_helpers import UR10E
from ros_helpers import CALLS_AND_WAITS, NodeProcess, assert_refused, ros_environment, wait_until

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue  # noqa: E402
from excitation_user import (  # noqa: E402
    ANYWAY,
    JOINTS,
    NODE,
    User,
    arguments,
    assert_at_rest_within_limits,
    start,
)
from rcl_interfaces.srv import SetParameters  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import Bool, Float64, String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from robotid_ros.excitation import load_excitation  # noqa: E402
from robotid_ros.model import RobotModel  # noqa: E402
from robotid_ros.model.kinematics import link_transforms  # noqa: E402
from robotid_ros.nodes.loop_client import introduce  # noqa: E402


@pytest.fixture(scope='module')
def world(tmp_path_factory):
    environment = ros_environment()
    arm = [str(Path(__file__).parents[1] / 'excitation_fake_arm.py'), ','.join(JOINTS)]
    saved = tmp_path_factory.mktemp('design') / 'excitation.yaml'
    with (
        NodeProcess([*NODE, *arguments(save_to=saved)], environment) as node,
        NodeProcess(arm, environment) as arm_process,
    ):
        user = User(int(environment['ROS_DOMAIN_ID']))
        arm_process.wait_for_line('ready')
        yield user, node, environment, saved
        user.close()


@pytest.fixture
def user(world):
    """Return the user, with the trajectory designed and the arm in order."""
    user, *_ = world
    user.fault('none')
    user.until_state('idle', 'ready', 'stopped', 'finished')
    if user.value('condition_number') is None:
        user.descriptions.publish(String(data=UR10E.read_text()))
        user.until(lambda: user.call('/excitation/design').success, 'a design')
    user.report()
    return user


def test_tells_what_to_do_before_it_can_do_it(world):
    user, *_ = world
    answer = user.call('/excitation/start')
    assert not answer.success
    assert 'no robot description yet' in answer.message
    user.descriptions.publish(String(data='<robot/>'))
    user.until(lambda: 'cannot be used' in (user.text or ''), 'the description is refused')
    assert user.statuses[-1].level == DiagnosticStatus.ERROR
    user.descriptions.publish(String(data=UR10E.read_text()))
    user.until(lambda: 'call ~/design first' in user.call('/excitation/start').message, 'the description is taken')


@pytest.mark.slow
def test_a_design_is_answered_and_saved(world, user):
    *_, saved = world
    answer = user.call('/excitation/design')
    assert answer.success
    assert '40 base parameters and 18 of friction and offset' in answer.message
    design = load_excitation(saved)
    assert float(user.value('condition_number')) == pytest.approx(design.excitation.condition, rel=1e-3)
    assert design.trajectory.period == 2.0


def test_a_design_under_way_can_be_given_up_and_is_not_disturbed(user):
    user.set(starts=500)
    try:
        client = user.node.create_client(Trigger, '/excitation/design')
        user.until(client.service_is_ready, 'the service')
        future = client.call_async(Trigger.Request())
        user.until_state('designing')
        for service in ('design', 'start'):
            assert 'design is under way' in user.call(f'/excitation/{service}').message
        assert user.value('state') == 'designing'
        assert 'design is being given up' in user.call('/excitation/stop').message
        user.until(future.done, 'the design ends')
        assert future.result().message == 'the design was given up on request'
        user.node.destroy_client(client)
    finally:
        user.set(starts=1)


@pytest.mark.slow
def test_a_client_that_is_killed_changes_nothing_and_cancel_ends_what_it_began(world, user):
    _, node, environment, _ = world
    user.set(starts=500)
    try:
        with NodeProcess(['-c', CALLS_AND_WAITS, '/excitation/design'], environment) as caller:
            user.until_state('designing')
            caller.signal(signal.SIGKILL)
            caller.wait()
        user.until(lambda: float(user.value('share') or 0.0) > 0.0, 'it goes on')
        assert user.value('state') == 'designing'
        assert 'design is being given up' in user.call('/excitation/cancel').message
        user.until_state('ready')
        assert 'given up on request' in user.text
    finally:
        user.set(starts=1)
    with NodeProcess(['-c', CALLS_AND_WAITS, '/excitation/start'], environment) as caller:
        user.until_state('running')
        caller.signal(signal.SIGKILL)
        caller.wait()
    user.until_phase('period 1')
    assert float(user.value('share')) > 0.0
    assert float(user.value('remaining')) > 0.0
    assert user.call('/excitation/cancel').message.startswith('the arm is brought to rest')
    user.until_state('stopped')
    assert_at_rest_within_limits(user)
    assert 'stopped on request' in user.text
    assert user.call('/excitation/cancel').message == 'the arm is not moving under this node'
    assert not node.ended


def test_the_motion_can_be_looked_at_before_it_is_run(world, user):
    user, _, _, saved = world
    trajectory = load_excitation(saved).trajectory
    user.windows.clear()
    (answer,) = user.set(preview_speed=4.0)
    assert answer.successful, answer.reason
    shown = []
    subscription = user.node.create_subscription(JointState, '/excitation/preview', shown.append, 10)
    user.until(lambda: len(shown) > 60, 'a preview')
    user.node.destroy_subscription(subscription)
    grid = np.arange(0.0, trajectory.period, 1e-3)
    path = trajectory.position(grid)
    assert list(shown[0].name) == list(JOINTS)
    phases, stamps = [], []
    for message in shown[:50]:
        apart = np.abs(path - np.array(message.position)).max(axis=1)
        assert apart.min() < 5e-3
        phases.append(grid[apart.argmin()])
        stamps.append(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec)
    passed = np.unwrap(phases, period=trajectory.period)
    assert passed[-1] - passed[0] == pytest.approx(4.0 * (stamps[-1] - stamps[0]), rel=0.1, abs=0.3)
    assert user.windows == []  # nothing was sent to the arm


def test_the_motion_is_drawn_for_whoever_comes_later(world, user):
    messages = pytest.importorskip('visualization_msgs.msg', reason='needs the ROS package visualization_msgs')
    _, _, _, saved = world
    trajectory = load_excitation(saved).trajectory
    drawn = []
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    subscription = user.node.create_subscription(
        messages.MarkerArray, '/excitation/preview_markers', drawn.append, latched
    )
    user.until(lambda: drawn, 'markers')
    user.node.destroy_subscription(subscription)
    path = next(marker for marker in drawn[-1].markers if marker.ns == 'path')
    arm = RobotModel.from_urdf(UR10E)
    poses = link_transforms(arm, trajectory.position(np.linspace(0.0, trajectory.period, len(path.points))))
    np.testing.assert_allclose([[p.x, p.y, p.z] for p in path.points], (poses[:, -1] @ arm.tip)[:, :3, 3], atol=1e-9)
    assert path.header.frame_id == f'preview/{arm.base_name}'


def test_bad_values_are_refused_with_the_reason(user):
    (result,) = user.set(period=-1.0)
    assert not result.successful
    assert 'period' in result.reason
    (result,) = user.set(start_position=[1.0])
    assert result.successful
    answer = user.call('/excitation/design')
    assert not answer.success
    assert 'start_position: expected shape (6)' in answer.message
    user.set(start_position=[0.0] * 6)


@pytest.mark.slow
def test_a_whole_run(user):
    user.set(periods=2)
    try:
        start(user)
        reference = user.references[-1]
        assert reference.joint_names == list(JOINTS)
        last = reference.points[-1]
        assert last.time_from_start.sec + 1e-9 * last.time_from_start.nanosec == pytest.approx(2.0)
        assert len(last.accelerations) == 6
        user.until_phase('period')
        user.until_state('finished', 'stopped')
    finally:
        user.set(periods=30)
    assert user.value('state') == 'finished', user.text
    assert_at_rest_within_limits(user)


def test_long_runs_are_streamed_without_gaps(user):
    user.set(window_points=200, knot_rate=25.0)
    try:
        start(user)
        user.until_phase('period')
        user.until(lambda: len(user.windows) >= 4, 'four windows')
        assert float(user.value('tracking_error')) < 0.02
        assert all(len(window.points) <= 200 for window in user.windows)
        stamps = {(window.header.stamp.sec, window.header.stamp.nanosec) for window in user.windows}
        assert len(stamps) == 1
        user.call('/excitation/stop')
        user.until_state('stopped')
    finally:
        user.set(window_points=1000, knot_rate=50.0)
    assert_at_rest_within_limits(user)


@pytest.mark.parametrize('phase', ['ramp', 'period'])
def test_stop_on_request(user, phase):
    start(user)
    user.until_phase(phase)
    user.until_it_moves()
    assert user.call('/excitation/stop').success
    user.until_state('stopped')
    assert user.text.startswith('stopped: stopped on request')
    assert_at_rest_within_limits(user)


def test_a_stop_that_the_controller_misses_is_sent_again(user):
    """It rejects what ended before it came, and a topic tells nobody."""
    start(user)
    user.until_phase('period')
    user.fault('misses')
    user.until(lambda: user.report()['fault'] == 'misses', 'the arm is told')
    assert user.call('/excitation/stop').success
    user.until_state('stopped')
    assert user.text.startswith('stopped: stopped on request')
    assert_at_rest_within_limits(user, fault='missed')


@pytest.mark.slow
@pytest.mark.parametrize(
    ('fault', 'reason'),
    [
        ('silent', 'no joint state for '),
        ('nan', "the position of joint 'elbow_joint' is nan"),
        # Where a busy machine leaves joint states out, the joint may have gone that far.
        ('jump', 'jumps by|away from its reference'),
        ('deaf', 'away from its reference|does not move|off the path'),
        ('unstamped', 'the joint states carry no stamps, and what was late on its way looks like a lag|off the path'),
    ],
)
def test_faults_bring_the_arm_to_rest_and_say_why(user, fault, reason):
    # What is unseen for so long is doubted.
    user.set(joint_state_timeout={'silent': 0.5, 'nan': 5.0}.get(fault, 30.0))
    try:
        start(user)
        user.until_phase('period')
        if fault != 'silent':  # which is worst before the arm moves: nothing shows then that it follows
            user.until_it_moves()
        user.fault(fault)
        unseen = fault in ('silent', 'nan')
        if unseen:  # nothing shows that the arm rests, and the node goes on to own it
            user.until(lambda: 'no joint state shows that the arm rests' in user.text, 'the doubt')
            assert user.value('state') == 'stopping'
            assert 'the arm is moving' in user.call('/excitation/start').message
            user.fault('none')
        user.until_state('stopped')
    finally:
        user.set(joint_state_timeout=30.0)
    assert re.search(reason, user.text), user.text
    assert user.statuses[-1].level == DiagnosticStatus.ERROR
    user.fault('none')
    assert_at_rest_within_limits(user)


def test_another_commander_is_noticed_and_the_arm_is_not_led_back(user):
    """Its controller holds it in mid-run: before, a stop along the path made it leap there."""
    start(user)
    user.until_phase('period')
    others = user.node.create_publisher(JointTrajectory, '/joint_trajectory', 10)
    user.until(lambda: others.get_subscription_count() > 1, 'the controller listens')
    place = user.report()['position']
    point = JointTrajectoryPoint(positions=place, velocities=[0.0] * 6, accelerations=[0.0] * 6)
    point.time_from_start.sec = 1
    user.windows.clear()
    others.publish(JointTrajectory(joint_names=list(JOINTS), points=[point]))
    user.until_state('stopped')
    user.node.destroy_publisher(others)
    # Its name may come after its publisher.
    who = '(/user|a node without a name yet)'
    assert re.search(f'{who} can command the arm too now|away from its reference|off the path', user.text), user.text
    (only,) = user.windows[-1].points
    assert np.abs(np.subtract(only.positions, place)).max() < 1.5  # the arm went on until it was told
    assert not np.any(only.velocities)
    # What keeps its place within 5 mrad for 0.05 s counts as resting, also where the other's trajectory turns round. It
    # goes on from there: 0.112 rad/s was seen in one of twenty runs.
    assert user.report()['velocity'] < 0.2
    user.until(lambda: user.report()['velocity'] < 1e-9, 'rest')


@pytest.mark.slow
def test_another_joint_order_and_other_joints_do_not_matter(user):
    user.fault('reorder')
    user.set(periods=2)
    try:
        start(user)
        user.until_state('finished', 'stopped')
    finally:
        user.set(periods=30)
    assert user.value('state') == 'finished', user.text
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_starts_only_from_a_fresh_state(user):
    user.fault('silent')
    user.until(lambda: user.report()['fault'] == 'silent', 'silence')  # else the start before it is a good one
    user.until(lambda: 'none has come on /joint_states' in user.call('/excitation/start').message, 'a refusal')
    user.fault('nan')
    user.until(lambda: 'not finite' in user.call('/excitation/start').message, 'a refusal')
    user.fault('ahead')
    user.until(
        lambda: "s ahead of this node's clock" in user.call('/excitation/start').message, 'a refusal by the clock'
    )


def test_refuses_to_start_when_a_check_fails(user):
    user.set(workspace_frames=['tip'], workspace_lower=[-9.0, -9.0, 5.0])
    try:
        answers = []

        def refused():
            answers.append(user.call('/excitation/start'))
            return "z of frame 'tip'" in answers[-1].message

        user.until(refused, 'a refusal')
        assert not any(answer.success for answer in answers)
        assert 'at t =' in answers[-1].message
    finally:
        user.set(workspace_lower=[-9.0, -9.0, -9.0])
    assert user.call('/excitation/stop').message == 'the arm is not moving under this node'


def test_one_thing_at_a_time(world, user):
    _, node, *_ = world
    start(user)
    user.descriptions.publish(String(data=UR10E.read_text().replace('effort="330.0"', 'effort="1.0"') + '<!-- -->'))
    node.wait_for_line('another robot description came while this one is in use; it is taken after that')
    assert 'the arm is moving' in user.call('/excitation/start').message
    assert 'the arm is moving' in user.call('/excitation/design').message
    assert user.value('state') == 'running'
    user.until_it_moves()
    user.call('/excitation/stop')
    user.until_state('stopped')
    assert_at_rest_within_limits(user)
    taken = sum('robot ur10e: ' in line for line in node.lines)
    assert 'no trajectory yet' in user.call('/excitation/start').message  # that of the arm as it was described is none
    wait_until(lambda: sum('robot ur10e: ' in line for line in node.lines) == taken + 1, 'the description is taken')


@pytest.mark.slow
def test_speed_scaling_is_watched(user):
    user.until(lambda: user.scaling.get_subscription_count() > 0, 'the node watches the speed scaling')
    start(user)
    user.until_phase('period')
    user.scaling.publish(Float64(data=50.0))
    try:
        user.until_state('stopped', 'finished')
        assert 'the controller runs at 50 % of its speed' in user.text
        user.until(lambda: len(user.windows[-1].points) == 1, 'a stop from the measured state')
        assert_at_rest_within_limits(user)
        assert 'the controller runs at 50 %' in user.call('/excitation/start').message
    finally:
        user.scaling.publish(Float64(data=100.0))


def test_a_run_ends_when_nobody_takes_its_reference_any_more(user):
    """As when ros2 bag record is ended."""
    user.set(start_anyway=[name for name in ANYWAY if name != 'no_recorder'])
    try:
        start(user)
        user.node.destroy_subscription(user.reference_subscription)
        user.until_state('stopped')
        assert user.text.startswith('stopped: nobody takes the reference any more: nothing is recorded'), user.text
    finally:
        user.follow_reference()
        user.set(start_anyway=ANYWAY)
    user.until(lambda: user.references and user.references[-1].points == [], 'the reference that ended')
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_a_recorder_that_has_the_run_keeps_it_and_one_that_has_not_ends_it(user):
    """That no joint state comes for a while is for the excitation node to judge."""
    said = DiagnosticStatus(level=DiagnosticStatus.ERROR, message='no joint state for 2.1 s')
    told = {'follow_reference': 'True', 'state': 'recording'}
    statuses = user.node.create_publisher(DiagnosticStatus, '/recorder/status', 10)

    def speak():
        said.values = [KeyValue(key=key, value=value) for key, value in told.items()]
        statuses.publish(said)

    beat = user.node.create_timer(0.1, speak)
    try:
        start(user)
        user.until_phase('period 3')
        assert user.value('state') == 'running'
        told['state'] = 'idle'
        user.until_state('stopped')
        assert user.text.startswith('stopped: the recorder does not record: no joint state for 2.1 s'), user.text
    finally:
        user.node.destroy_timer(beat)
        user.node.destroy_publisher(statuses)
    assert_at_rest_within_limits(user)


@pytest.fixture
def recorder(world, user, tmp_path):
    """Return a recorder in a process of its own that records the run that goes on."""
    _, _, environment, _ = world
    told = ['-p', f'output_folder:={tmp_path / "runs"}', '-p', 'effort:=torque']
    said, topic = [], '/recorder/status'
    subscription = user.node.create_subscription(DiagnosticStatus, topic, said.append, 10)
    try:
        with NodeProcess(['-m', 'robotid_ros.nodes.recorder', '--ros-args', *told], environment) as process:
            user.until(lambda: said, 'it speaks')
            start(user)

            def records():
                if user.value('state') == 'stopped':  # the graph told the recorder of the reference too late
                    start(user)
                return said[-1].message.startswith('recording')

            user.until(records, 'it records')
            yield process
    finally:
        user.node.destroy_subscription(subscription)


@pytest.mark.slow
def test_a_recorder_that_is_killed_ends_the_run(user, recorder):
    recorder.signal(signal.SIGKILL)
    user.until_state('stopped')
    assert user.text.startswith('stopped: the recorder is gone: nothing is recorded any more')
    assert user.statuses[-1].level == DiagnosticStatus.ERROR
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_a_recorder_that_is_killed_is_missed_though_its_words_go_on(user, recorder):
    """Silence is not what tells: another publisher repeats what it said."""
    last = DiagnosticStatus(values=[KeyValue(key='state', value='recording')])
    statuses = user.node.create_publisher(DiagnosticStatus, '/recorder/status', 10)
    beat = user.node.create_timer(0.1, lambda: statuses.publish(last))
    try:
        recorder.signal(signal.SIGKILL)
        user.until_state('stopped')
        assert user.text.startswith('stopped: the recorder is gone: nothing is recorded any more'), user.text
    finally:
        user.node.destroy_timer(beat)
        user.node.destroy_publisher(statuses)
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_a_start_is_refused_where_the_recorder_was_killed(user, recorder):
    """The graph shows what it subscribed to for 20 s yet."""
    recorder.signal(signal.SIGKILL)
    user.until_state('stopped')
    user.set(start_anyway=[name for name in ANYWAY if name != 'no_recorder'])
    user.node.destroy_subscription(user.reference_subscription)
    try:
        answer = user.call('/excitation/start')
    finally:
        user.follow_reference()
        user.set(start_anyway=ANYWAY)
    assert not answer.success
    assert 'nobody records' in answer.message, answer.message


@pytest.mark.slow
def test_a_recorder_that_lives_and_says_nothing_more_is_gone(user):
    statuses = user.node.create_publisher(DiagnosticStatus, '/recorder/status', 10)
    try:
        start(user)
        statuses.publish(DiagnosticStatus(values=[KeyValue(key='state', value='recording')]))
        user.until_state('stopped')
        assert user.text.startswith('stopped: the recorder is gone: nothing is recorded any more'), user.text
    finally:
        user.node.destroy_publisher(statuses)
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_a_recorder_that_is_told_to_stop_ends_the_run(user, recorder):
    answer = user.call('/recorder/stop')
    assert answer.success, answer.message
    user.until_state('stopped')
    assert re.match('stopped: the recorder (does not|cannot) record: ', user.text), user.text
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_a_recorder_that_cannot_record_any_more_ends_the_run(user, recorder, tmp_path):
    """As when its disk is full: it looks at the folder that it would record to, which is taken away here."""
    (tmp_path / 'file').write_text('no folder')
    request = SetParameters.Request(
        parameters=[Parameter('output_folder', value=str(tmp_path / 'file')).to_parameter_msg()]
    )
    (result,) = user.call('/recorder/set_parameters', SetParameters, request).results
    assert result.successful, result.reason
    user.until_state('stopped')
    assert re.search('the recorder cannot record: .*file is not a folder', user.text), user.text
    assert_at_rest_within_limits(user)


@pytest.mark.slow
def test_a_robot_that_takes_no_commands_refuses_a_start_and_ends_a_run(world, user):
    """Its driver says so by std_msgs/Bool, as ur_robot_driver does on robot_program_running."""
    _, _, environment, saved = world
    topic = '/io_and_status_controller/robot_program_running'
    latched = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    running = user.node.create_publisher(Bool, topic, latched)
    running.publish(Bool(data=False))  # said once, before there is a node to hear it
    named = [*NODE, '-r', '__node:=third', *arguments(trajectory=saved, urdf_file=UR10E, program_running_topic=topic)]
    sentence = f'the robot takes no commands ({topic} is false): a protective stop, locked brakes'
    said = []
    subscription = user.node.create_subscription(DiagnosticStatus, '/third/status', said.append, latched)
    with NodeProcess(named, environment):
        user.until(lambda: sentence in user.call('/third/start').message, 'a refusal')
        running.publish(Bool(data=True))
        until_started(user, '/third/start')
        running.publish(Bool(data=False))
        user.until(lambda: said[-1].message.startswith('stopped: '), 'the stop')
        assert sentence in said[-1].message
        assert said[-1].level == DiagnosticStatus.ERROR
        report = user.report()
        assert report['velocity'] < 1e-9
        assert report['acceleration_peak'] < 8.0 * 1.01
    user.node.destroy_subscription(subscription)
    user.node.destroy_publisher(running)


@pytest.mark.slow
@pytest.mark.parametrize('number', range(5))
def test_what_is_said_while_a_start_is_planned_is_heard(user, number):
    """A mode is a state: it counts whether it came before, while or after the start was checked."""
    client = user.node.create_client(Trigger, '/excitation/start')
    user.until(lambda: client.service_is_ready() and user.scaling.get_subscription_count() > 0, 'the node is met')
    introduce(user.node, '/excitation/start', lambda known: user.until(known, 'the node knows this client'))
    answer = client.call_async(Trigger.Request())
    for _ in range(number):  # a little later each time
        user.executor.spin_once(timeout_sec=0.02)
    user.scaling.publish(Float64(data=50.0))
    user.until(answer.done, 'an answer')
    slow = 'the controller runs at 50 % of its speed'
    if answer.result().success:
        user.until_state('stopped')
        assert slow in user.text
    else:
        assert slow in answer.result().message
    assert user.report()['velocity'] < 1e-9
    user.node.destroy_client(client)
    user.scaling.publish(Float64(data=100.0))
    user.until(lambda: slow not in user.call('/excitation/start').message, 'full speed')
    user.until(lambda: user.call('/excitation/stop').message == 'the arm is not moving under this node', 'rest')


@pytest.mark.slow
def test_friction_sweeps_run_too(user):
    user.set(run='friction_sweep', sweep_levels=1, sweep_stroke_time=0.1, sweep_pause=0.0, sweep_fastest=0.3)
    try:
        answer = user.call('/excitation/design')
        assert answer.success
        assert 'friction sweep of 12 strokes' in answer.message
        start(user)
        user.until_it_moves()
        user.call('/excitation/stop')
        user.until_state('stopped')
        assert_at_rest_within_limits(user)
    finally:
        user.set(run='excitation')
        assert user.call('/excitation/design').success


def until_started(user, service):
    """Start until the arm moves: what a new node sends may come before the arm has found it, which ends the run."""
    user.until(lambda: user.report()['velocity'] > 0.1 or not user.call(service), 'it moves')


@pytest.mark.slow
def test_a_saved_trajectory_runs_and_sigint_stops_the_arm(world, user):
    _, _, environment, saved = world
    renamed = [*NODE, '-r', '__node:=second', *arguments(trajectory=saved, urdf_file=UR10E)]
    with NodeProcess(renamed, environment) as second:
        until_started(user, '/second/start')
        second.signal(signal.SIGINT)
        assert second.wait() == 0
        # The other node of this file may be found late, or its name: then the arm is being stopped for it already.
        assert 'the node is shut down' in second.output or 'can command the arm too now' in second.output
    report = user.report()
    assert report['velocity'] < 1e-9
    assert report['refused'] == []
    assert report['acceleration_peak'] < 8.0 * 1.01


@pytest.mark.slow
def test_of_two_nodes_of_one_name_the_second_says_so_and_ends(world, user):
    _, first, environment, _ = world
    with NodeProcess([*NODE, *arguments()], environment) as second:
        assert second.wait() == 2
    assert f'another node /excitation runs already (process {first.process.pid})' in second.output
    assert 'this one ends' in second.output
    assert 'Traceback' not in second.output
    assert not first.ended
    start(user)
    user.until_it_moves()
    with NodeProcess([*NODE, *arguments()], environment) as second:  # in mid-run, too
        assert second.wait() == 2
    # A busy computer lets it be heard of, as of another commander, before or after it ends: so the run is begun again.
    user.call('/excitation/stop')
    user.until_state('stopped')
    until_started(user, '/excitation/start')
    # Nor does an older claim, as of a computer whose clock is behind, end a node that moves an arm.
    claims = user.node.create_publisher(
        String, '/excitation/claim', QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    )
    claims.publish(String(data=f'{0:020d} 7 '))
    first.wait_for_line('this one moves it, so the other has to end')
    assert user.value('state') == 'running'
    user.node.destroy_publisher(claims)
    user.call('/excitation/stop')
    user.until_state('stopped')
    assert_at_rest_within_limits(user)
    assert not first.ended


@pytest.mark.slow
def test_of_two_nodes_launched_at_once_one_is_left():
    environment = ros_environment()
    with NodeProcess([*NODE, *arguments()], environment) as one, NodeProcess([*NODE, *arguments()], environment) as two:
        wait_until(lambda: one.ended or two.ended, 'the end of one of them')
        ended, left = (one, two) if one.ended else (two, one)
        assert f'runs already (process {left.process.pid})' in ended.output
        assert not left.ended
        left.signal()
        assert left.wait() == 0
    assert 'runs already' not in left.output


BROKEN = """
from robotid_ros.execution.following import Following
from robotid_ros.nodes import excitation

def broken(*_, **__):
    raise ZeroDivisionError('made by a test')

def receive(self, position, velocity, time, *rest, receive=Following.receive):
    return broken() if time > 0.8 else receive(self, position, velocity, time, *rest)

excitation.stoppable_design, Following.receive = broken, receive
excitation.main()
"""


@pytest.mark.slow
def test_a_fault_of_our_own_is_answered_and_stops_the_arm_and_the_node_lives_on(world, user):
    _, _, environment, saved = world
    settings = [*NODE[2:], '-r', '__node:=second', *arguments(trajectory=saved, urdf_file=UR10E)]
    with NodeProcess(['-c', BROKEN, *settings], environment) as second:
        answer = user.call('/second/design')
        assert not answer.success
        assert answer.message.startswith('a fault of robotid_ros')
        assert 'ZeroDivisionError: made by a test' in answer.message
        answers = []

        def started():
            answers.append(user.call('/second/start'))
            return answers[-1].success

        user.until(started, 'a start')

        def faulty():
            if second.lines[-1].endswith('can command the arm too now'):  # /excitation, which was discovered late
                user.call('/second/start')
            return any('stopped: a fault of robotid_ros' in line for line in second.lines)

        user.until(faulty, 'the fault')
        assert 'Traceback' in second.output
        report = user.report()
        assert report['velocity'] < 1e-9
        assert report['refused'] == []
        assert 0.0 < report['acceleration_peak'] < 8.0 * 1.01
        assert user.call('/second/stop').success


def test_bad_parameters_end_the_node_with_one_line():
    cases = {
        "parameter 'period'": ['period:=long'],
        "parameter 'criterion'": ['criterion:=best'],
        'nowhere.urdf': ['urdf_file:=nowhere.urdf'],
        "parameter 'controller_interface': expected one of topic, action": ['controller_interface:=telepathy'],
    }
    assert_refused('robotid_ros.nodes.excitation', cases, ros_environment())


def test_the_action_is_refused_where_control_msgs_is_missing():
    program = (
        "import sys; sys.modules['control_msgs'] = None\n"
        'from robotid_ros.nodes.excitation import main\n'
        'sys.exit(main())'
    )
    options = ['--ros-args', *arguments(controller_interface='action')]
    environment = {**ros_environment(), 'ROS_DISTRO': 'kilted'}
    with NodeProcess(['-c', program, *options], environment) as node:
        assert node.wait() == 2
    (line,) = node.lines
    assert 'control_msgs' in line
    assert 'apt install ros-kilted-control-msgs' in line
    assert 'controller_interface to topic' in line


def test_a_trajectory_file_of_another_robot_is_refused(world, user, tmp_path):
    _, _, environment, saved = world
    content = yaml.safe_load(saved.read_text())
    content['joints'][0] = 'other'
    file = tmp_path / 'other.yaml'
    file.write_text(yaml.safe_dump(content))
    renamed = [*NODE, '-r', '__node:=third', *arguments(trajectory=file, urdf_file=UR10E)]
    with NodeProcess(renamed, environment):
        answer = user.call('/third/start')
        assert not answer.success
        assert 'the trajectory moves other' in answer.message
