# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The recorder over DDS: node, publisher and client in processes of their own."""

import json
import os
import re
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
import yaml
from identification_helpers import TWO_LINKS
from recorder_helpers import JOINTS, START, harmonics, joint_state, stream, write_plan
from ros_helpers import DEADLINE, NodeProcess, assert_refused, ros_environment, wait_until

rclpy = pytest.importorskip('rclpy', reason='rclpy (the ros extra) is not installed')

from diagnostic_msgs.msg import DiagnosticStatus  # noqa: E402
from geometry_msgs.msg import WrenchStamped  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402
from rclpy.signals import SignalHandlerOptions  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402
from trajectory_msgs.msg import JointTrajectory  # noqa: E402

from robotid_ros.data import load_dataset, read_recording  # noqa: E402
from robotid_ros.data.bag import Bag  # noqa: E402

pytestmark = pytest.mark.ros

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PERIOD, RATE = 0.5, 500
MS = 1_000_000


class Client:
    """Follows the recorder and calls its services."""

    def __init__(self, domain):
        self.context = rclpy.Context()
        rclpy.init(context=self.context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node('client', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.averaged, self.currents, self.noise, self.status = [], [], [], []
        self.node.create_subscription(JointTrajectory, 'recorder/averaged', self.averaged.append, LATCHED)
        self.node.create_subscription(JointTrajectory, 'recorder/averaged_current', self.currents.append, LATCHED)
        self.node.create_subscription(JointState, 'recorder/noise', self.noise.append, LATCHED)
        self.node.create_subscription(DiagnosticStatus, 'recorder/status', self.status.append, 10)
        self.thread = threading.Thread(target=self.executor.spin, daemon=True)
        self.thread.start()

    def call(self, name):
        client = self.node.create_client(Trigger, f'recorder/{name}')
        wait_until(client.service_is_ready, f'service {name}')
        future = client.call_async(Trigger.Request())
        wait_until(future.done, f'answer of {name}')
        self.node.destroy_client(client)
        return future.result().success, future.result().message

    def values(self):
        return {item.key: item.value for item in self.status[-1].values} if self.status else {}

    def wait_for_status(self, condition, what):
        wait_until(lambda: bool(self.status) and condition(self.values()), what)

    def wait_for_messages(self, count):
        """Wait until the recorder has so many: what is sent last may be on its way for a while."""
        self.wait_for_status(lambda v: v.get('messages') == str(count), f'{count} messages')

    def close(self):
        self.executor.shutdown()
        self.thread.join(timeout=10)
        self.node.destroy_node()
        rclpy.shutdown(context=self.context)


class Publisher(NodeProcess):
    """The process that publishes a plan, step by step."""

    def __init__(self, path, runs, environment):
        write_plan(path, runs)
        super().__init__([str(Path(__file__).parents[1] / 'recorder_helpers.py'), str(path)], environment)

    def go(self):
        self.tell('go')

    def run(self):
        self.expect('ready')
        self.go()
        self.expect('sent')


@pytest.fixture
def arena(tmp_path, monkeypatch):
    """Yield (start a recorder, start a publisher, client), all in one domain of their own."""
    environment = ros_environment()
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    client = Client(int(environment['ROS_DOMAIN_ID']))
    started = []

    def recorder(*parameters, effort='torque'):
        pairs = [f'output_folder:={tmp_path / "out"}', f'start_timeout:={DEADLINE}']
        pairs += [*([f'effort:={effort}'] if effort else []), *parameters]
        arguments = [word for pair in pairs for word in ('-p', pair)]
        process = NodeProcess(['-m', 'robotid_ros.nodes.recorder', '--ros-args', *arguments], environment)
        started.append(process)
        return process

    def publisher(*runs):
        process = Publisher(tmp_path / 'plan.npz', list(runs), environment)
        started.append(process)
        return process

    try:
        yield recorder, publisher, client
    finally:
        for process in started:
            process.__exit__()
        client.close()


def periodic(periods, start=START, amplitude=1.0, seed=0, **others):
    messages, _ = stream(PERIOD, periods, RATE, np.random.default_rng(seed), start=start, amplitude=amplitude, lead=0.3)
    return {
        'messages': messages,
        'rate': RATE,
        'period': PERIOD,
        'start': start,
        'joints': list(JOINTS),
        'settle': 0.3,
        **others,
    }


def folders(tmp_path):
    return sorted((tmp_path / 'out').iterdir())


def periods_in(client):
    """Return over how many periods the last average was taken."""
    return json.loads(client.averaged[-1].header.frame_id)['periods'] if client.averaged else 0


def assert_average(message, start, amplitude):
    assert tuple(message.joint_names) == JOINTS
    assert message.header.stamp.sec * 10**9 + message.header.stamp.nanosec == start
    times = np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points])
    assert len(times) == 250
    assert np.allclose(np.diff(times), PERIOD / 250, atol=1e-8)
    exact = harmonics(times, PERIOD, amplitude=amplitude)
    fields = ('positions', 'velocities', 'accelerations', 'effort')
    for field, values, share in zip(fields, exact, (1e-4, 1e-3, 1e-2, 1e-2), strict=True):
        found = np.array([getattr(point, field) for point in message.points])
        assert np.std(found - values) < share * max(np.std(values), 0.1)


@pytest.mark.slow
def test_two_runs_one_after_the_other(arena, tmp_path):
    recorder, publisher, client = arena
    node = recorder()
    later = START + 100 * 10**9
    sender = publisher(periodic(8), periodic(6, later, amplitude=0.4, seed=1))
    sender.run()
    client.wait_for_messages(8 * 250 + 150)
    wait_until(lambda: periods_in(client) > 0, 'an average while the run goes on')
    sender.go()  # ends the run
    wait_until(lambda: periods_in(client) == 7, 'the first average')
    assert_average(client.averaged[-1], START, 1.0)
    counts = [json.loads(message.header.frame_id)['periods'] for message in client.averaged]
    assert counts == sorted(counts)
    assert {message.header.stamp.sec for message in client.averaged} == {START // 10**9}
    wait_until(lambda: np.allclose(client.noise[-1].effort, 0.05 / np.sqrt(7), rtol=0.2), 'the noise')
    assert np.allclose(client.noise[-1].position, 1e-4 / np.sqrt(7), rtol=0.2)
    assert client.call('save')[0]

    sender.run()
    client.wait_for_messages(6 * 250 + 150)
    sender.go()
    wait_until(lambda: periods_in(client) == 5, 'the second average')
    assert_average(client.averaged[-1], later, 0.4)
    client.wait_for_status(lambda v: v['state'] == 'finished' and v['periods_averaged'] == '5', 'the second end')
    values = client.values()
    assert values['left_out/0'] == 'transient'
    assert client.status[-1].level == DiagnosticStatus.OK, client.status[-1].message
    first, second = folders(tmp_path)
    assert len(read_recording(first)) == 8 * 250 + 150
    assert len(read_recording(second)) == 6 * 250 + 150
    dataset = load_dataset(first / 'dataset.npz')
    assert dataset.periods == 7
    assert np.std(dataset.q - harmonics(dataset.time, PERIOD)[0]) < 1e-4
    node.signal(signal.SIGINT)
    assert node.wait() == 0, node.output
    assert 'Traceback' not in node.output


@pytest.mark.slow
def test_faults_are_named_in_the_status_with_their_counts(arena):
    recorder, publisher, client = arena
    run = periodic(12)
    messages = run['messages']
    count = len(messages)
    stamps = [START - 300 * MS + k * 2 * MS for k in range(count)]

    def made(k, names=JOINTS, q=None, effort=None, stamp=None):
        elapsed = np.array([k * 2e-3 - 0.3])
        exact = harmonics(elapsed, PERIOD)
        columns = [list(exact[0][0]) if q is None else q, list(exact[1][0]), list(exact[3][0])]
        columns[2] = columns[2] if effort is None else effort
        order = [JOINTS.index(name) for name in names]
        columns = [[c[j] for j in order] if len(c) == len(JOINTS) else c for c in columns]
        return joint_state(stamps[k] if stamp is None else stamp, names, *columns)

    for k in range(800, 840):
        messages[k] = made(k, names=JOINTS[::-1])
    for k in (900, 901):
        messages[k] = made(k, q=[0.0, float('nan'), 0.0])
    for k in range(1000, 1004):
        messages[k] = made(k, effort=[])
    messages[1100] = made(1100, stamp=stamps[1099])
    messages[1101] = made(1101, stamp=stamps[1095])
    for k in range(1200, 1203):
        messages[k] = joint_state(stamps[k], ('finger',), (0.5,))
    for k in range(1500, 1600):  # the clock of the arm is off for a while
        messages[k] = made(k, stamp=stamps[k] + 3600 * 10**9)
    del messages[1300:1310]
    recorder()
    sender = publisher(run)
    sender.run()
    client.wait_for_messages(count - 10)
    sender.go()
    client.wait_for_status(lambda v: v['state'] == 'finished', 'the end')
    wait_until(lambda: periods_in(client) == int(client.values()['periods_averaged']), 'the average')
    assert_average(client.averaged[-1], START, 1.0)
    values = client.values()
    expected = {
        'messages': count - 10,
        'order_changes': 2,
        'not_a_number': 2,
        'not_a_number/position/elbow': 2,
        'missing_effort': 4,
        'repeated': 1,
        'backward': 1,
        'clock_jumps': 2,
        'displaced': 100,
        'gaps': 3,
        'missing': 2 + 3 + 10,
    }
    assert {name: values.get(name) for name in expected} == {name: str(value) for name, value in expected.items()}
    assert values['extra_joints'] == 'finger'
    assert client.status[-1].level == DiagnosticStatus.WARN
    for words in ('2 order changes', '2 not a number', '4 missing effort', '1 repeated', '2 clock jumps', '3 gaps'):
        assert words in client.status[-1].message


@pytest.mark.slow
def test_kill_9_in_mid_run_leaves_everything_up_to_the_last_second(arena, tmp_path):
    recorder, publisher, client = arena
    node = recorder()
    messages, _ = stream(PERIOD, 40, RATE, np.random.default_rng(2))
    sender = publisher({'messages': messages, 'rate': RATE, 'settle': 0.3})
    sender.expect('ready')
    sender.go()
    success, text = client.call('start')
    assert success, text
    client.wait_for_status(lambda v: int(v.get('messages', 0)) > 1000, 'a thousand messages')
    told = int(client.values()['messages'])
    os.killpg(node.process.pid, signal.SIGKILL)
    node.process.wait()
    (folder,) = folders(tmp_path)
    recording = read_recording(folder)
    # The status was sent before the kill: what it told is on disk, and so is all but the last chunk.
    assert len(recording) >= told
    assert recording.provenance['ended_properly'] is False
    steps = np.rint(np.diff(recording.time) * RATE)
    assert (steps == 1).all()


@pytest.mark.slow
def test_a_recording_without_reference_is_started_stopped_and_saved(arena, tmp_path):
    recorder, publisher, client = arena
    node = recorder()
    messages, _ = stream(PERIOD, 8, RATE, np.random.default_rng(3))
    sender = publisher({'messages': messages, 'rate': RATE, 'settle': 0.3})
    sender.expect('ready')
    sender.go()
    success, text = client.call('start')
    assert success, text
    assert client.call('save') == (False, 'the recording is still going on; stop it first')
    assert client.call('start')[1].startswith('recording already, to ')
    sender.expect('sent')
    client.wait_for_messages(len(messages))
    client.wait_for_status(lambda v: client.status[-1].level == DiagnosticStatus.ERROR, 'silence in the status')
    assert client.status[-1].message.startswith('no joint state for')
    success, text = client.call('stop')
    assert success, text
    assert f'{len(messages)} messages' in text
    success, path = client.call('save')
    assert success, path
    assert load_dataset(path).provenance['motion'].endswith('as its positions show')
    node.signal(signal.SIGTERM)
    assert node.wait() == 0, node.output


def test_of_two_equal_arms_the_configuration_names_the_one_whose_joint_states_come(arena):
    """Nothing names the joints: the node's own description of the arm tells them, as in the other nodes."""
    recorder, _, client = arena
    told = []
    client.node.create_subscription(String, 'recorder/robot_configuration', lambda m: told.append(m.data), LATCHED)
    other = re.sub(r'"(upper|lower|tool|shoulder|elbow|flange)"', r'"other_\1"', TWO_LINKS)
    other = other[other.index('<link name="other_upper">') : other.index('</robot>')]
    description = client.node.create_publisher(String, 'robot_description', LATCHED)
    description.publish(String(data=TWO_LINKS.replace('</robot>', f'{other}</robot>')))
    states = client.node.create_publisher(JointState, 'joint_states', 10)
    recorder()

    def heard():
        states.publish(JointState(name=['elbow', 'shoulder'], position=[0.0, 0.0]))
        return bool(told)

    wait_until(heard, 'the configuration')
    content = yaml.safe_load(told[0])
    assert content['joints'] == ['shoulder', 'elbow']
    assert content['effort'] == {'shoulder': 'torque', 'elbow': 'torque'}


@pytest.mark.slow
def test_wrenches_are_recorded_beside(arena, tmp_path):
    recorder, publisher, client = arena
    node = recorder('wrench_topic:=/ft')
    messages, _ = stream(PERIOD, 4, RATE, np.random.default_rng(3))
    sender = publisher({'messages': messages, 'rate': RATE, 'settle': 0.3})
    sensor = client.node.create_publisher(WrenchStamped, '/ft', 100)
    sender.expect('ready')
    sender.go()
    success, text = client.call('start')
    assert success, text
    wait_until(lambda: bool(sensor.get_subscription_count()), 'the recorder at the sensor')
    for k in range(50):
        message = WrenchStamped()
        message.wrench.force.x = float(k)
        sensor.publish(message)
    sender.expect('sent')
    client.wait_for_messages(len(messages))
    success, text = client.call('stop')
    assert success, text
    bag = Bag.open(folders(tmp_path)[0])
    assert bag.topics['/ft'] == 'geometry_msgs/WrenchStamped'
    assert sum(len(chunk) for _, chunk in bag.messages(['/ft'])) == 50
    node.signal(signal.SIGTERM)
    assert node.wait() == 0, node.output


def test_a_publisher_of_best_effort_is_understood(arena):
    recorder, publisher, client = arena
    recorder()
    messages, _ = stream(PERIOD, 4, RATE, np.random.default_rng(3))
    sender = publisher({'messages': messages, 'rate': RATE, 'settle': 0.3, 'best_effort': True})
    sender.expect('ready')
    sender.go()
    success, text = client.call('start')  # answered once a message has come
    assert success, text
    assert client.call('stop')[0]


@pytest.mark.slow
def test_a_node_that_is_shut_down_ends_its_recording(arena, tmp_path):
    recorder, publisher, client = arena
    node = recorder()
    sender = publisher(periodic(20, end=False))
    sender.expect('ready')
    sender.go()
    client.wait_for_status(lambda v: int(v.get('periods_averaged', 0)) >= 5, 'five periods')
    node.signal(signal.SIGTERM)
    assert node.wait() == 0, node.output
    assert 'the node is shut down' in node.output
    (folder,) = folders(tmp_path)
    assert read_recording(folder).provenance['ended_properly']


@pytest.mark.slow
def test_an_excitation_node_that_dies_ends_the_recording(arena):
    recorder, publisher, client = arena
    node = recorder()
    sender = publisher(periodic(30))
    sender.expect('ready')
    sender.go()
    client.wait_for_status(lambda v: int(v.get('periods_averaged', 0)) >= 5, 'five periods')
    sender.process.terminate()  # after a kill the middleware itself takes 20 s to notice
    node.wait_for_line('the excitation node is gone')
    client.wait_for_status(lambda v: v['state'] == 'finished', 'the end')
    wait_until(lambda: periods_in(client) == int(client.values()['periods_averaged']), 'the average of what there is')
    assert_average(client.averaged[-1], START, 1.0)


def test_what_cannot_be_done_is_refused_with_the_reason(arena):
    recorder, _, client = arena
    recorder('start_timeout:=0.5')
    success, text = client.call('start')
    assert not success
    assert text.startswith('nobody publishes /joint_states')
    assert client.call('stop') == (False, 'nothing is being recorded')
    assert client.call('save') == (False, 'nothing has been recorded yet')
    client.wait_for_status(lambda v: v['state'] == 'idle', 'an idle status')


def test_a_configuration_that_cannot_work_ends_the_node_at_once():
    cases = {
        'what JointState.effort holds is not said, and it is never guessed': [],
        "does not say what JointState.effort of joint 'b' holds": ['joints:=[a, b]', 'effort.a:=torque'],
        "parameter 'effort': expected one of '', torque, current, unknown; got 'volts'": ['effort:=volts'],
        "parameter 'depth'": ['effort:=torque', 'depth:=0'],
    }
    assert_refused('robotid_ros.nodes.recorder', cases, ros_environment())


@pytest.mark.slow
def test_currents_are_recorded_without_any_torque_constant(arena, tmp_path):
    """Constants are for the identification; a run that is recorded without them is whole, and no error."""
    recorder, publisher, client = arena
    node = recorder(f'joints:=[{", ".join(JOINTS)}]', effort='current')
    node.wait_for_line(f'{", ".join(JOINTS)}: motor currents without a torque constant are recorded and averaged')
    node.wait_for_line('robotid payload --mass')
    arm = publisher(periodic(4))
    arm.run()
    arm.go()  # ends the run
    client.wait_for_status(lambda v: v['state'] in ('finished', 'failed'), 'the end')
    assert client.status[-1].level == DiagnosticStatus.WARN, client.status[-1].message
    assert f'that of {", ".join(JOINTS)} needs a torque constant' in client.status[-1].message
    wait_until(
        lambda: client.currents and json.loads(client.currents[-1].header.frame_id)['periods'] == 3, 'the average'
    )
    assert list(client.currents[-1].joint_names) == list(JOINTS)
    current = np.array([point.effort for point in client.currents[-1].points])
    exact = harmonics(np.arange(250) * PERIOD / 250, PERIOD, amplitude=1.0)[3]
    assert (np.std(current - exact, axis=0) < 0.02 * np.std(exact, axis=0)).all()
    assert not client.averaged  # amperes are no torques
    success, text = client.call('save')
    assert not success
    assert 'needs a torque constant' in text
    (folder,) = folders(tmp_path)
    assert len(read_recording(folder)) == 4 * PERIOD * RATE + 150  # the periods, and 0.3 s of rest before them


@pytest.mark.slow
def test_motor_currents_are_averaged_beside_the_torques_that_they_give(arena):
    recorder, publisher, client = arena
    constants = [f'torque_constants.{JOINTS[0]}:=0.1', f'gear_ratios.{JOINTS[0]}:=50.0', f'effort.{JOINTS[0]}:=current']
    others = [f'effort.{name}:=torque' for name in JOINTS[1:]]
    recorder(f'joints:=[{", ".join(JOINTS)}]', *constants, *others, effort='')
    arm = publisher(periodic(4))
    arm.run()
    client.wait_for_messages(4 * 250 + 150)
    arm.go()
    wait_until(lambda: periods_in(client) == 3 and client.currents, 'the average')
    header = client.averaged[-1].header
    wait_until(lambda: client.currents[-1].header == header, 'the average of the currents')
    assert list(client.currents[-1].joint_names) == [JOINTS[0]]
    torque = np.array([point.effort[0] for point in client.averaged[-1].points])
    current = np.array([point.effort[0] for point in client.currents[-1].points])
    np.testing.assert_allclose(torque, 0.1 * 50.0 * current, rtol=1e-9)
    exact = harmonics(np.arange(250) * PERIOD / 250, PERIOD, amplitude=1.0)[3][:, 0]
    assert np.std(current - exact) < 0.02 * np.std(exact)  # as it was published, smoothed


def test_a_folder_that_cannot_hold_a_recording_is_in_the_status(arena, tmp_path):
    recorder, _, client = arena
    (tmp_path / 'out').write_text('a file')
    recorder()
    client.wait_for_status(lambda v: 'is not a folder' in v.get('refusal', ''), 'the refusal')


STALLING = """
import ctypes, sys, threading, time
import rclpy
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from robotid_ros.nodes.messages import Capture
rclpy.init()
node = rclpy.create_node('stalling')
numbers = []
take = lambda chunk: numbers.extend(chunk.sequence.tolist())
capture = Capture(node, JointState, 'joint_states', take, depth={count})
def stall():
    ctypes.PyDLL(None).usleep(300_000)  # and the whole interpreter with it
node.create_timer(1.0, stall)
executor = SingleThreadedExecutor()
executor.add_node(node)
threading.Thread(target=executor.spin, daemon=True).start()
end = time.monotonic() + 240
while len(numbers) < {count} and time.monotonic() < end:
    time.sleep(0.05)
capture.stop()
steps = [b - a for a, b in zip(numbers, numbers[1:])]
gaps = [(k, numbers[k], step) for k, step in enumerate(steps) if step != 1]
print('received', len(numbers), 'in order', not gaps, gaps[:9], flush=True)
executor.shutdown()
rclpy.try_shutdown()
"""


def test_nothing_is_lost_at_4_khz_while_callbacks_stall(arena):
    _, publisher, client = arena
    messages, _ = stream(2.0, 1, 4000, np.random.default_rng(4))
    count = 2 * len(messages)
    sender = publisher({'messages': messages * 2, 'rate': 4000, 'settle': 0.3})
    environment = {**os.environ, 'ROS_DOMAIN_ID': str(client.context.get_domain_id()), 'PYTHONUNBUFFERED': '1'}
    with NodeProcess(['-c', STALLING.format(count=count)], environment) as child:
        sender.run()
        child.wait_for_line('received')
        assert f'received {count} in order True' in child.output
