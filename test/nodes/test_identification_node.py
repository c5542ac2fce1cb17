# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The identification node over real DDS, in a process of its own."""

import itertools
import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

import numpy as np
import pytest
import yaml
from identification_helpers import TWO_LINKS, dataset, fourier_motion, pinocchio_torque, swept

from robotid_ros.data import Recording, write_csv
from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import IdentificationError, MissingDependencyError
from robotid_ros.identification import IdentificationResult, TorquePredictor, identify, validate
from robotid_ros.loads import PayloadResult
from robotid_ros.loads.wrench import WrenchResult
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters

pytest.importorskip('rclpy', reason='needs the ros extra')

from geometry_msgs.msg import InertiaStamped, WrenchStamped
from identification_client import COULOMB, MODEL, VISCOUS, Client, averaged, motion_with_torque
from recorder_helpers import joint_state as serialized_state
from ros_helpers import NodeProcess, ros_environment
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.nodes.messages import trajectory_message

pytestmark = pytest.mark.ros

ARGUMENTS = (
    *('-m', 'robotid_ros.nodes.identification', '--ros-args'),
    *('-p', 'tip_link:=tool'),
    *('-p', 'friction:=coulomb_viscous+offset'),
    *('-p', 'stop_when:=1.0'),
    *('-p', 'monitor_rate:=1000.0'),
    *('-p', 'joints:=[shoulder,elbow]'),
    *('-p', 'effort:=current'),
    *('-p', 'torque_constants:=0.2'),
    *('-p', 'gear_ratios:=50.0'),
)


@contextmanager
def running(*arguments: str) -> Iterator[tuple[Client, NodeProcess]]:
    environment = ros_environment()
    with NodeProcess([*ARGUMENTS, *arguments], environment) as node:
        client = Client(environment)
        try:
            yield client, node
        finally:
            client.close()


@pytest.fixture
def loop() -> Iterator[tuple[Client, NodeProcess]]:
    with running() as both:
        yield both


def test_a_run_is_stopped_once_its_parameters_are_known(loop: tuple[Client, NodeProcess]) -> None:
    client, node = loop
    stops: list[str] = []

    def stop(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        stops.append(client.status.get('periods', ''))
        response.success = True
        return response

    client.node.create_service(Trigger, '/excitation/stop', stop)
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
    (time, q, dq, ddq), torque = motion_with_torque(1)
    exact = pinocchio_torque(MODEL, q, dq, ddq) + COULOMB * np.sign(dq) + VISCOUS * dq
    for periods in (1, 2, 4, 16, 64):
        noise = np.random.default_rng(periods).normal(0.0, 1.0 / np.sqrt(periods), torque.shape)
        message = trajectory_message(MODEL.joint_names, 10.0, time, q, dq, ddq, exact + noise)
        message.header.frame_id = json.dumps({'periods': periods})
        client.averaged.publish(message)
        client.until(lambda periods=periods: client.status.get('periods') == str(periods), 'the average')
    client.until(lambda: bool(stops), 'the stop')
    assert stops[0] in ('16', '64')  # the deviation halves from 2 % at 4 periods to 1 % at 16
    assert len(stops) == 1
    assert float(client.status['worst_deviation']) < 0.7
    assert '+-' in client.status['parameter/' + client.status['worst_parameter']]
    node.wait_for_line('the excitation is stopped')


@pytest.mark.slow
def test_identifies_from_averaged_periods_and_watches_the_torque(loop: tuple[Client, NodeProcess]) -> None:
    client, node = loop
    early = client.call('identify')
    assert not early.success
    assert early.message == 'no robot description has come yet'

    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
    refused = client.call('identify')
    assert not refused.success
    assert 'no recording yet' in refused.message
    assert '\n' not in refused.message

    strokes = swept(MODEL, COULOMB, VISCOUS)
    rest = np.zeros_like(strokes.dq)
    client.friction.publish(
        trajectory_message(strokes.joint_names, 5.0, strokes.time, strokes.q, strokes.dq, rest, strokes.tau)
    )
    client.until(lambda: client.status.get('friction_strokes') == '12', 'the friction sweep')
    client.averaged.publish(averaged(1, 10.0))
    client.until(lambda: client.status.get('recordings') == '1', 'the first recording')
    client.averaged.publish(averaged(2, 10.0))  # the same run, averaged over more periods
    client.averaged.publish(averaged(3, 99.0))
    client.until(lambda: client.status.get('recordings') == '2', 'the second run')
    assert client.status['persistently_exciting'] == 'True'
    unseen = averaged(7, 200.0)
    unseen.header.frame_id = json.dumps({'periods': 3, 'purpose': 'validation'})
    client.averaged.publish(unseen)
    client.until(lambda: client.status.get('validation_recordings') == '1', 'the run for validation')

    answer = client.call('identify')
    assert answer.success, answer.message
    result = IdentificationResult.from_yaml(answer.message)
    assert result.usable
    assert result.metrics['validation'].samples == len(unseen.points)
    assert len(result.provenance['training']) == 2
    assert yaml.safe_load(answer.message)['joints'] == ['shoulder', 'elbow']
    assert any('by 12 strokes of 2 joints' in str(decision) for decision in result.decisions)
    np.testing.assert_allclose(result.friction_values[:, 0], COULOMB, atol=0.02)
    np.testing.assert_allclose(result.friction_values[:, 1], VISCOUS, atol=0.03)
    motion, torque = motion_with_torque(4)
    assert (validate(result, MODEL, dataset(MODEL, motion, torque)).match > 99.0).all()

    client.until(lambda: len(client.seen) >= 2, 'the latched results')
    assert client.seen['/identification/result'].data == answer.message
    calibrated = RobotModel.from_urdf(client.seen['/identification/robot_description'].data, tip='tool')
    np.testing.assert_allclose(calibrated.inertial, result.inertial, atol=1e-9)

    time, q, dq, _ = motion
    rows = iter(range(len(time)))

    def step() -> bool:
        k = next(rows)
        push = np.array([6.0, 0.0]) if k > 150 else np.zeros(2)
        state = joint_state(time[k], q[k], dq[k], torque[k] + push)
        client.states.publish(state)
        # The next one goes out when the node has answered this one, or lost it: what it sees is no matter of its speed.
        patience = monotonic() + 0.5
        while k > 20 and monotonic() < patience:
            client.executor.spin_once(timeout_sec=0.02)
            answer = client.seen.get('/identification/contact_torque')
            if answer is not None and answer.header.stamp == state.header.stamp:
                break
        if k == 140:
            client.before = dict(client.seen)
        contact = client.seen.get('/identification/contact_torque')
        return k > 150 and contact is not None and contact.effort[0] != 0.0

    client.until(step, 'a contact')
    assert 0.0 < client.seen['/identification/contact_torque'].effort[0] < 8.0  # felt while the filters still rise
    assert not np.any(client.before['/identification/contact_torque'].effort)
    gravity = client.before['/identification/gravity_torque']
    assert 0.0 < np.abs(gravity.effort).max() < 100.0
    predicted, external = (client.before[f'/identification/{name}_torque'] for name in ('predicted', 'external'))
    assert list(predicted.name) == ['shoulder', 'elbow']
    assert np.abs(external.effort).max() < 5.0
    assert np.isfinite(predicted.effort).all()

    # A trajectory comes back with the torques of its points; joints of others get none.
    planned = trajectory_message(
        ('elbow', 'finger', 'shoulder'), 1.0, time[:9], *[x[:9, [1, 0, 0]] for x in motion[1:]]
    )
    client.planned.publish(planned)
    client.until(lambda: '/identification/feedforward' in client.seen, 'the feed-forward')
    answered = client.seen['/identification/feedforward']
    assert answered.header == planned.header
    efforts = np.array([point.effort for point in answered.points])
    np.testing.assert_allclose(efforts[:, [2, 0]], torque[:9], atol=0.3)
    assert not efforts[:, 1].any()
    good, planned.points[3].accelerations = planned.points[3].accelerations, []
    began = monotonic()
    for _ in range(30):
        client.planned.publish(planned)
        client.executor.spin_once(timeout_sec=0.0)
    planned.points[3].accelerations, planned.header.stamp.sec = good, 2
    client.until(lambda: refused_or_sent(client, planned), 'the next feed-forward')

    def said() -> int:
        return sum('expected velocities and accelerations in every point' in line for line in node.lines)

    client.until(said, 'the refusal')  # its line takes another way than the messages
    assert said() <= 2 + (monotonic() - began) / 5.0  # a planner may send a hundred a second
    planned.points[3].accelerations = [np.nan] * 3
    client.until(
        lambda: client.planned.publish(planned) or 'expected finite positions, velocities and acc' in node.output,
        'the warning of what is not finite',
    )

    assert client.call('clear').success
    assert not client.call('identify').success
    node.signal()
    assert node.wait() == 0, node.output
    assert 'Traceback' not in node.output


def joint_state(time: float, q: np.ndarray, dq: np.ndarray, torque: np.ndarray) -> JointState:
    """Return what the driver publishes: joints in its own order, currents of the motors."""
    current = torque / (0.2 * 50.0)
    state = JointState(name=['elbow', 'shoulder'], position=q[::-1], velocity=dq[::-1], effort=current[::-1])
    state.header.stamp.sec, state.header.stamp.nanosec = divmod(round(time * 1e9), 1_000_000_000)
    return state


def player(client: Client, seed: int) -> Callable[[], int]:
    """Return what publishes the joint states of a motion, one at each call, and tells which one it was."""
    (time, q, dq, _), torque = motion_with_torque(seed)
    rows = iter(range(len(time)))

    def publish() -> int:
        k = next(rows)
        client.states.publish(joint_state(time[k], q[k], dq[k], torque[k]))
        return k

    return publish


def test_a_payload_is_weighed_by_what_was_recorded_since_the_start(
    loop: tuple[Client, NodeProcess], tmp_path: Path
) -> None:
    client, node = loop
    assert client.call('payload').message == 'no robot description has come yet'
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
    assert 'the arm alone is not known' in client.call('payload').message
    runs = [dataset(MODEL, *motion_with_torque(seed)) for seed in (1, 2)]
    identify(runs, MODEL, friction='coulomb_viscous+offset').save(tmp_path / 'result.yaml')
    assert not client.set(arm_result=str(tmp_path / 'result.yaml'))
    assert 'nothing was recorded: call ~/payload_start' in client.call('payload').message
    assert 'call ~/payload first' in client.call('payload_to_driver').message

    assert client.call('payload_start').success
    assert 'no joint state with efforts came' in client.call('payload').message
    inertial = np.array(MODEL.inertial)
    inertial[-1] += inertial_parameters(1.5, np.array([0.3, 0.0, 0.05]), np.diag([0.004, 0.005, 0.003]))
    time, q, dq, ddq = fourier_motion(2, np.random.default_rng(9))
    torque = pinocchio_torque(MODEL.with_inertial(inertial), q, dq, ddq) + COULOMB * np.sign(dq) + VISCOUS * dq
    states = client.node.create_publisher(JointState, '/joint_states', 2 * len(time))
    client.until(lambda: states.get_subscription_count() > 0, 'the node at the joint states')
    for k in range(len(time)):
        states.publish(joint_state(100.0 + time[k], q[k], dq[k], torque[k]))
    client.until(lambda: client.status.get('payload_samples') == str(len(time)), 'all joint states')
    answer = client.call('payload')
    assert answer.success, answer.message
    found = yaml.safe_load(answer.message)['payload']
    assert found['mass'] == pytest.approx(1.5, abs=max(2.0 * found['mass_std'], 0.05))
    assert found['mass_std_with_torque_constants'] > 0.05 * found['mass']
    assert found['centre_of_mass'][0] == pytest.approx(0.3, abs=0.03)
    assert 'centre of mass' in found['undetermined']  # a planar arm does not show it out of its plane
    client.until(lambda: '/identification/payload_result' in client.seen, 'the latched payload')
    assert client.seen['/identification/payload_result'].data == answer.message
    assert 'no joint state with efforts came' in client.call('payload').message  # since the last call

    assert 'is not named: set payload_service' in client.call('payload_to_driver').message
    client.set(payload_service='/driver/set_payload', payload_service_type='no_such_msgs/srv/SetPayload')
    assert 'not handed over: its centre of mass are not known' in client.call('payload_to_driver').message
    node.signal()
    assert node.wait() == 0, node.output
    assert 'Traceback' not in node.output


@pytest.mark.slow
def test_a_wrench_is_published_without_bias_and_weight(tmp_path: Path) -> None:
    """A tool of 2 kg, 0.1 m along x of the flange, on a sensor that is turned by a quarter: by hand."""
    bias = np.arange(1.0, 7.0)
    zeros = np.zeros(10)
    found = WrenchResult(
        frame='tool',
        rotation=np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]),
        rotation_std=np.zeros(3),
        sign=1,
        bias=bias,
        bias_std=np.zeros(6),
        inertial=np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.0, 0.0, 2.0]),
        std=zeros,
        centre_std=np.zeros(3),
        rmse_without=np.zeros(6),
        rmse_with=np.zeros(6),
    )
    (tmp_path / 'wrench.yaml').write_text(yaml.safe_dump({'wrench': found.to_dict()}))
    (tmp_path / 'other.yaml').write_text('wrench: {frame: tool}')
    (tmp_path / 'arm.urdf').write_text(TWO_LINKS)
    environment = ros_environment()
    arguments = ['-m', 'robotid_ros.nodes.identification', '--ros-args', '-p', 'tip_link:=tool', '-p']
    arguments += [f'urdf_file:={tmp_path / "arm.urdf"}', '-p']
    with NodeProcess([*arguments, f'wrench_result:={tmp_path / "other.yaml"}'], environment) as node:
        assert node.wait() == 2
        assert 'not a result of robotid wrench' in node.output
    with NodeProcess([*arguments, f'wrench_result:={tmp_path / "wrench.yaml"}'], environment) as node:
        client = Client(environment)
        try:
            seen: list[WrenchStamped] = []
            client.node.create_subscription(WrenchStamped, '/identification/wrench', seen.append, 10)
            sensor = client.node.create_publisher(WrenchStamped, '/wrench', 10)
            # the flange is level: shoulder and elbow undo the 0.4 rad by which it is fixed
            state = joint_state(1.0, np.array([0.0, -0.4]), np.zeros(2), np.zeros(2))
            message = WrenchStamped()
            message.header.frame_id = 'sensor'
            weight = 2.0 * 9.80665
            force, torque = np.array([0.0, 0.0, weight]), np.array([0.1 * weight, 0.0, 0.0])
            pushed = np.array([7.0, 0.0, 0.0, 0.0, 0.0, 1.0])
            values = bias + np.concatenate([force, torque]) + pushed
            message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = values[:3].tolist()
            message.wrench.torque.x, message.wrench.torque.y, message.wrench.torque.z = values[3:].tolist()

            def came() -> bool:
                client.states.publish(state)
                sensor.publish(message)
                return bool(seen)

            client.until(came, 'the compensated wrench')
            assert seen[0].header == message.header
            out = seen[0].wrench
            shown = [out.force.x, out.force.y, out.force.z, out.torque.x, out.torque.y, out.torque.z]
            np.testing.assert_allclose(shown, pushed, atol=0.02)
        finally:
            client.close()


def test_a_payload_fills_the_requests_of_drivers() -> None:
    """Each in the frame of the flange, which the description turns and moves against the last link."""
    from robotid_ros.nodes.identified_arm import fill, service_type

    inertia = np.array([[0.03, 0.002, 0.0], [0.002, 0.02, 0.001], [0.0, 0.001, 0.01]])
    body = inertial_parameters(2.0, np.array([0.1, 0.2, 0.3]), inertia)
    found = PayloadResult(
        link='lower',
        inertial=body,
        free=body,
        covariance=np.zeros((10, 10)),
        std=np.zeros(10),
        rmse_without=np.zeros(2),
        rmse_with=np.zeros(2),
        rmse_free=np.zeros(2),
        enough=(0.05, 0.02, 0.05),
    )
    flange = np.array([[0.0, -1.0, 0.0, 0.1], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.05], [0.0, 0.0, 0.0, 1.0]])
    request = InertiaStamped()  # Franka's request holds one, UR's a part of it
    fill(request, found, flange, 'fr3_link8', 1.0)
    assert request.header.frame_id == 'fr3_link8'
    assert request.inertia.m == pytest.approx(2.0)
    centre = (request.inertia.com.x, request.inertia.com.y, request.inertia.com.z)
    assert centre == pytest.approx((0.2, 0.0, 0.25))
    assert (request.inertia.ixx, request.inertia.iyy) == pytest.approx((0.02, 0.03))
    assert (request.inertia.ixy, request.inertia.ixz) == pytest.approx((-0.002, 0.001))
    with pytest.raises(IdentificationError, match='no place for a mass and its centre, but: data'):
        fill(String(), found, flange, '', 1.0)
    with pytest.raises(MissingDependencyError, match="needs the ROS package 'no_such_msgs', which is not here"):
        service_type('no_such_msgs/srv/SetPayload')
    for wrong in ('std_srvs/Trigger', 'std_srvs/srv/', 'Trigger', ''):
        with pytest.raises((IdentificationError, MissingDependencyError)):
            service_type(wrong)
    assert service_type('std_srvs/srv/Trigger') is Trigger


def refused_or_sent(client: Client, planned: JointTrajectory) -> bool:
    """Send a trajectory until it comes back: messages may be lost, but come in order."""
    client.planned.publish(planned)
    return client.seen['/identification/feedforward'].header == planned.header


def test_a_result_that_is_not_usable_gives_no_torques_that_others_act_on(loop: tuple[Client, NodeProcess]) -> None:
    client, node = loop
    client.description.publish(String(data=TWO_LINKS))
    message = averaged(1, 10.0)
    noise = np.random.default_rng(0).normal(0.0, 1e3, (len(message.points), 2))
    for point, effort in zip(message.points, noise, strict=True):
        point.effort = effort.tolist()
    client.averaged.publish(message)
    client.until(lambda: client.status.get('recordings') == '1', 'the recording')
    answer = client.call('identify')
    assert answer.success
    assert not IdentificationResult.from_yaml(answer.message).usable
    client.until(
        lambda: 'gravity, contact and feed-forward torques are not published' in client.status['message'], 'it'
    )
    publish, told = player(client, 1), {f'/identification/{name}_torque' for name in ('predicted', 'external')}
    client.until(lambda: publish() > 40 and told <= set(client.seen), 'predicted and external torques')
    time, q, dq, ddq = motion_with_torque(1)[0]
    planned = trajectory_message(('shoulder', 'elbow'), 1.0, time[:9], q[:9], dq[:9], ddq[:9])
    client.until(lambda: client.planned.publish(planned) or 'the result is not usable' in node.output, 'the warning')
    acted_on = ('gravity_torque', 'contact_torque', 'feedforward')
    assert not {f'/identification/{name}' for name in acted_on} & set(client.seen)


@pytest.mark.slow
def test_levels_of_recordings_take_the_place_of_the_residuals(tmp_path: Path) -> None:
    """A push of 6 N m, which the residual's own threshold feels, is below the shoulder's level; 3 pass the elbow's."""
    content = {'cutoff': 10.0, 'alarms_per_hour': 1.0, 'seconds': 60.0}
    for name, levels in (
        ('contact', {'shoulder': 20.0, 'elbow': 1.0}),
        ('swapped', {'elbow': 1.0, 'shoulder': 20.0}),
        ('bad', {'shoulder': 'much', 'elbow': 1.0}),
    ):
        (tmp_path / f'{name}.yaml').write_text(
            yaml.safe_dump({'contact': {**content, 'levels': levels}}, sort_keys=False)
        )
    environment = ros_environment()
    with NodeProcess([*ARGUMENTS, '-p', f'contact_levels:={tmp_path / "bad.yaml"}'], environment) as node:
        assert node.wait() == 2
        assert 'no levels of robotid contact' in node.output
    motion, torque = motion_with_torque(4)
    time, q, dq, _ = motion
    for name, felt in (('contact', [False, True]), ('swapped', [True, True])):
        environment = ros_environment()
        with NodeProcess([*ARGUMENTS, '-p', f'contact_levels:={tmp_path / f"{name}.yaml"}'], environment) as node:
            client = Client(environment)
            try:
                client.description.publish(String(data=TWO_LINKS))
                client.averaged.publish(averaged(1, 10.0))
                client.until(lambda client=client: client.status.get('recordings') == '1', 'the recording')
                assert client.call('identify').success
                if name == 'swapped':
                    client.until(
                        lambda node=node: 'is of other joints than the arm: it is not used' in node.output, 'a line'
                    )
                client.until(lambda client=client: client.states.get_subscription_count() == 1, 'a follower')
                touched = np.zeros(2, dtype=bool)
                for k in range(260):  # first nothing, then the shoulder is pushed, then the elbow
                    push = np.array([6.0 * (100 < k <= 180), 3.0 * (k > 180)])
                    state = joint_state(time[k], q[k], dq[k], torque[k] + push)
                    client.states.publish(state)
                    patience = monotonic() + 0.5
                    while k > 20 and monotonic() < patience:
                        client.executor.spin_once(timeout_sec=0.02)
                        answer = client.seen.get('/identification/contact_torque')
                        if answer is not None and answer.header.stamp == state.header.stamp:
                            # A state that is lost on the way looks like a step until the filters have forgotten it.
                            touched |= (np.array(answer.effort) != 0.0) & (k > 60)
                            break
                    if k == 100:
                        assert not touched.any()
                assert touched.tolist() == felt
            finally:
                client.close()


def test_torques_are_throttled_and_computed_only_while_somebody_listens(tmp_path: Path) -> None:
    """By the stamps of the joint states, so that it does not matter how many of them the node gets, or when.

    No contact can begin, which would be told at once: a state that is lost looks like a push.
    """
    levels = {'cutoff': 10.0, 'alarms_per_hour': 1.0, 'seconds': 60.0, 'levels': {'shoulder': 1e6, 'elbow': 1e6}}
    (tmp_path / 'contact.yaml').write_text(yaml.safe_dump({'contact': levels}, sort_keys=False))
    with running('-p', f'contact_levels:={tmp_path / "contact.yaml"}') as (client, _):
        client.description.publish(String(data=TWO_LINKS))
        client.averaged.publish(averaged(1, 10.0))
        client.until(lambda: client.status.get('recordings') == '1', 'the recording')
        assert client.set(monitor_rate=10.0) == ''
        assert client.call('identify').success
        client.until(lambda: client.states.get_subscription_count() == 1, 'the node follows the joint states')

        (_, q, dq, _), torque = motion_with_torque(1)
        stamps: list[int] = []
        numbers = itertools.count()

        def told(message: JointState) -> None:
            stamps.append(1_000_000_000 * message.header.stamp.sec + message.header.stamp.nanosec)

        def publish() -> bool:
            k = next(numbers)
            row = k % len(q)
            client.states.publish(joint_state(0.01 * k, q[row], dq[row], torque[row]))
            return len(stamps) > 5

        subscription = client.node.create_subscription(JointState, '/identification/predicted_torque', told, 1000)
        for listener in client.listeners:
            client.node.destroy_subscription(listener)
        client.until(publish, 'six torques')
        assert np.diff(stamps).min() >= 0.1e9

        client.node.destroy_subscription(subscription)
        client.until(lambda: client.states.get_subscription_count() == 0, 'the node leaves the joint states')


def test_generated_code_predicts_the_torques_of_an_identified_arm(
    loop: tuple[Client, NodeProcess], tmp_path: Path
) -> None:
    client, _ = loop
    assert 'nothing is identified yet' in client.call('generate').message
    client.description.publish(String(data=TWO_LINKS))
    for count, seed in (('1', 1), ('2', 3)):  # one by one: a latched topic keeps the last for who comes late
        client.averaged.publish(averaged(seed, 10.0 * seed))
        client.until(lambda count=count: client.status.get('recordings') == count, f'{count} runs')
    assert client.call('identify').success
    assert 'set output_folder' in client.call('generate').message
    assert client.set(output_folder=str(tmp_path)) == ''
    result = IdentificationResult.from_yaml(client.call('identify').message)
    answer = client.call('generate')
    assert answer.success, answer.message
    assert 'multiplications' in answer.message
    (source,) = tmp_path.glob('*/code/inverse_dynamics.c')
    assert str(source) in answer.message

    publish = player(client, 4)
    client.until(lambda: publish() > 0 and 'torques/share_of_a_core' in client.status, 'torques by generated code')
    assert client.status['torques/source'] == 'generated code'
    assert 0.0 < float(client.status['torques/share_of_a_core']) < 1.0
    client.until(lambda: publish() > 40 and '/identification/external_torque' in client.seen, 'an external torque')
    predicted = client.seen['/identification/predicted_torque']
    motion, torque = motion_with_torque(4)
    at_rest = TorquePredictor(MODEL, result).gravity_torque(motion[1])
    assert np.abs(predicted.effort).max() < 2.0 * max(np.abs(torque).max(), np.abs(at_rest).max())
    assert np.abs(client.seen['/identification/external_torque'].effort).max() < 5.0


def test_without_torque_constants_the_node_goes_on_and_says_what_is_missing() -> None:
    """A launched stack ends when one of its nodes does, and a recording needs no constants."""
    environment = ros_environment()
    settings = {'urdf_file': TWO_LINKS, 'tip_link': 'tool', 'joints': '[shoulder,elbow]', 'effort': 'current'}
    arguments = [part for name, value in settings.items() for part in ('-p', f'{name}:={value}')]
    with NodeProcess(['-m', 'robotid_ros.nodes.identification', '--ros-args', *arguments], environment):
        client = Client(environment)
        answer = client.call('identify')
        client.close()
    assert not answer.success
    assert answer.message.startswith("nothing can be identified: joint 'shoulder' reports a current")


def test_refuses_a_recording_without_effort_with_one_line(loop: tuple[Client, NodeProcess]) -> None:
    client, node = loop
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
    message = averaged(1, 10.0)
    for point in message.points:
        point.effort = []
    client.averaged.publish(message)
    client.until(lambda: 'effort' in client.status['message'], 'the refusal')
    assert 'Traceback' not in node.output


def test_refuses_a_bad_parameter_at_start() -> None:
    arguments = ['-m', 'robotid_ros.nodes.identification', '--ros-args', '-p', 'estimator:=best']
    with NodeProcess(arguments, ros_environment()) as node:
        assert node.wait() == 2
        assert "parameter 'estimator'" in node.output
        assert 'Traceback' not in node.output


def test_bad_names_are_refused_when_they_are_set(loop: tuple[Client, NodeProcess]) -> None:
    client, _ = loop
    assert "parameter 'friction': friction model 'glue' is unknown; there are: auto, coulomb, " in client.set(
        friction='glue'
    )
    assert "option 'wet' is unknown" in client.set(friction='coulomb+wet')
    assert "model 'glue' is unknown" in client.set(friction_sequence=['coulomb', 'glue'])
    assert 'expected one of auto, ols' in client.set(estimator='best')
    assert client.set(stop_parameters=['m elbow'], torque_threshold=[1.0, 1.0, 1.0]) == ''  # no arm to compare with yet
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: 'expected 1 or 2 torques, got 3' in client.status.get('message', ''), 'the warning')
    assert client.set(torque_threshold=[1.0]) == ''
    assert client.set(torque_threshold=[1.0, 2.0]) == ''
    assert client.set(torque_threshold=[1.0, 2.0, 3.0]) == 'torque_threshold: expected 1 or 2 torques, got 3'
    assert 'expected 1e-06 to 1000000 N m, got -1' in client.set(torque_threshold=[-1.0])
    refusal = client.set(stop_parameters=['m elbow'])
    assert refusal.startswith("base parameter 'm elbow' is not in the arm; it has: ")
    assert client.set(stop_parameters=[refusal.split(': ')[1].split(', ')[0]]) == ''
    assert client.set(stop_parameters=[]) == ''


def test_recordings_compete_and_the_result_is_written(loop: tuple[Client, NodeProcess], tmp_path: Path) -> None:
    client, _ = loop
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
    for seed in range(4):
        message = averaged(seed, 10.0 * seed)
        message.header.frame_id = json.dumps({'periods': 3, 'recording': f'recording-{seed}'})
        client.averaged.publish(message)
        client.until(lambda seed=seed: client.status.get('recordings') == str(seed + 1), 'a recording')
    asked = averaged(4, 50.0)
    asked.header.frame_id = json.dumps({'periods': 3, 'purpose': 'validation', 'recording': 'recording-4'})
    client.averaged.publish(asked)
    client.until(lambda: client.status.get('validation_recordings') == '1', 'the run for validation')
    sequence = ['coulomb', 'coulomb_viscous+offset']
    assert client.set(friction_sequence=sequence) == ''
    refused = client.call('identify')
    assert not refused.success
    assert 'needs select' in refused.message
    assert client.set(select=True, output_folder=str(tmp_path)) == ''
    refused = client.call('identify')
    assert not refused.success
    assert refused.message == 'selection decides by torque thresholds; give torque_threshold'
    assert client.set(torque_threshold=[0.05], estimator='irls') == ''
    answer = client.call('identify')
    assert answer.success, answer.message
    result = IdentificationResult.from_yaml(answer.message)
    assert result.usable, result.reason
    assert result.friction.name == 'coulomb_viscous+offset'
    log = [str(decision) for decision in result.decisions]
    sets = {kind: next(line for line in log if f' {kind}: ' in line) for kind in ('training', 'validation', 'test')}
    assert sum(text.count('recording-') for text in sets.values()) == 5
    assert 'recording-4' in sets['validation']  # beside the one that was dealt out
    assert sets['validation'].count('recording-') == 2
    assert any('coulomb: no usable result' in line for line in log)
    assert any('passed; ' in line and 'with friction fitted again' in line for line in log)
    assert any('estimator: irls' in line for line in log)
    assert set(result.metrics) == {'training', 'validation', 'test'}
    (folder,) = tmp_path.iterdir()
    assert (folder / 'result.yaml').read_text(encoding='utf-8') == answer.message
    assert {'calibrated.urdf', 'training_4.npz', 'validation_1.npz'} <= {path.name for path in folder.iterdir()}
    assert client.status['written'] == str(folder)

    assert client.set(select=False, friction_sequence=[], output_folder='/proc/nowhere') == ''
    answer = client.call('identify')
    assert answer.success
    assert 'nothing: ' in client.status['written']


@pytest.mark.slow
def test_a_restarted_node_takes_its_recordings_from_their_folder_and_keeps_them_across_descriptions(
    tmp_path: Path,
) -> None:
    """Nothing is sent but descriptions; the second has the same joints and other masses, the third other joints."""
    for name, seed in (('one', 1), ('two', 2)):
        (time, q, *_), torque = motion_with_torque(seed)
        recording = Recording(joint_names=MODEL.joint_names, time=time, position=q, effort=torque)
        write_csv(tmp_path / f'{name}.csv', recording)
    (tmp_path / 'broken.csv').write_text('time\n', encoding='utf-8')
    kept = tmp_path / 'identification-1'  # what ~/identify wrote is not a recording more
    kept.mkdir()
    (kept / 'result.yaml').touch()
    (kept / 'training_1.npz').touch()
    environment = ros_environment()
    words = ['--ros-args', '-p', 'friction:=coulomb_viscous+offset', '-p', f'recordings:=[{tmp_path},/no/such/folder]']
    for _ in range(2):  # the second is a restart
        with NodeProcess(['-m', 'robotid_ros.nodes.identification', *words], environment) as node:
            client = Client(environment)
            try:
                _give_descriptions(client, node, tmp_path)
            finally:
                client.close()


def test_the_arm_of_a_folder_is_identified_without_the_arm(tmp_path: Path) -> None:
    """Nobody publishes anything; of the two arms that the recording describes, the one that it has is taken."""
    pytest.importorskip('rosbags')
    (time, q, *_), torque = motion_with_torque(1)
    names = [f'right_{joint}' for joint in MODEL.joint_names]
    stamps = [1_700_000_000_000_000_000 + round(1e9 * t) for t in time]
    states = [serialized_state(t, names, a, (), b) for t, a, b in zip(stamps, q.tolist(), torque.tolist(), strict=True)]
    writer = BagWriter(tmp_path / 'bag', {'/joint_states': 'sensor_msgs/msg/JointState'})
    writer.say('/robot_description', two_arms(), stamps[0])
    writer.append('/joint_states', MessageChunk.of(states, stamps))
    writer.close()
    environment = ros_environment()
    words = ['--ros-args', '-p', 'friction:=coulomb_viscous+offset', '-p', f'recordings:=[{tmp_path}]']
    with NodeProcess(['-m', 'robotid_ros.nodes.identification', *words], environment):
        client = Client(environment)
        try:
            client.until(lambda: client.status.get('recordings') == '1', 'the recording')
            answer = client.call('identify')
            assert answer.success, answer.message
            assert IdentificationResult.from_yaml(answer.message).joint_names == tuple(names)
            client.description.publish(String(data=TWO_LINKS))  # another arm, which runs
            client.until(lambda: 'bag' in client.status.get('left_out', ''), 'what does not fit')
        finally:
            client.close()


def _give_descriptions(client: Client, node: NodeProcess, folder: Path) -> None:
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: client.status.get('recordings') == '2', 'both recordings')
    assert 'broken.csv' in client.status['left_out']
    assert 'training_1' not in client.status['left_out']
    assert 'no/such' not in client.status['left_out']  # a recorder that has not recorded yet
    heavier = TWO_LINKS.replace('<mass value="', '<mass value="1').replace('two_links', 'heavier')
    for description, name in ((TWO_LINKS, 'robot two_links'), (heavier, 'robot heavier')):
        client.description.publish(String(data=description))
        node.wait_for_line(name)
        answer = client.call('identify')
        assert answer.success, answer.message
        assert IdentificationResult.from_yaml(answer.message).metrics['training'].relative_error_total < 3.0
    client.description.publish(String(data=TWO_LINKS.replace('"elbow"', '"knee"')))
    client.until(lambda: 'one.csv' in client.status.get('left_out', ''), 'what does not fit any more')
    assert 'does not fit the new description' in client.status['left_out']
    client.description.publish(String(data=TWO_LINKS))
    client.until(lambda: client.status.get('recordings') == '2', 'both recordings once more')
    (again := folder / 'more').mkdir(exist_ok=True)
    (again / 'one.csv').write_bytes((folder / 'two.csv').read_bytes())  # another recording of the same name
    (folder / 'broken.csv').write_bytes((folder / 'two.csv').read_bytes())  # one that was not whole when it was read
    assert client.call('identify').success
    client.until(lambda: client.status.get('recordings') == '4', 'what is new in the folder')
    (again / 'one.csv').unlink()
    (folder / 'broken.csv').write_text('time\n', encoding='utf-8')
    assert client.call('clear').success
    assert not client.call('identify').success  # the files are there, and forgotten
    client.description.publish(String(data=heavier))  # by another arm too
    client.until(lambda: node.output.count('robot heavier') == 2, 'the other arm being taken')
    assert not client.call('identify').success


def two_arms() -> str:
    """Return a description of two equal arms on one base, whose names begin with left_ and right_."""
    arm = TWO_LINKS[TWO_LINKS.index('<link name="base"') : TWO_LINKS.index('</robot>')]
    sides = (arm.replace('name="', f'name="{s}_').replace('link="', f'link="{s}_') for s in ('left', 'right'))
    mounts = (
        f'<joint name="{s}_mount" type="fixed"><parent link="world"/><child link="{s}_base"/></joint>'
        for s in ('left', 'right')
    )
    return f'<robot name="pair"><link name="world"/>{"".join(sides)}{"".join(mounts)}</robot>'


def publish_while(client: Client, names: list[str], heard: Callable[[], bool]) -> None:
    """Publish joint states until they were heard."""
    state = JointState(name=names, position=[0.1] * len(names))
    timer = client.node.create_timer(0.02, lambda: client.states.publish(state))
    client.until(heard, f'joint states of {names} being heard')
    client.node.destroy_timer(timer)


@pytest.mark.slow
def test_of_two_arms_the_one_whose_joint_states_come_is_taken() -> None:
    """By the identification and the excitation alike; where the joints of both come, none is."""
    environment = ros_environment()
    node = ['-m', 'robotid_ros.nodes.identification', '--ros-args', '-p', 'friction:=coulomb_viscous+offset']
    with (
        NodeProcess(node, environment),
        NodeProcess(['-m', 'robotid_ros.nodes.excitation'], environment) as excitation,
    ):
        client = Client(environment)
        try:
            client.description.publish(String(data=two_arms()))
            client.until(lambda: 'whose joint states come' in client.status.get('message', ''), 'the choice')
            both = [f'{side}_{joint}' for side in ('left', 'right') for joint in MODEL.joint_names]
            publish_while(client, both, lambda: 'whose' not in client.status['message'])
            assert 'several parts move' in client.status['message']
            client.description.publish(String(data=two_arms()))  # what was not taken may come again
            chosen = 'robot pair: right_shoulder, right_elbow'
            publish_while(
                client,
                ['gripper', *both[2:]],
                lambda: 'waiting for recordings' in client.status['message'] and chosen in excitation.output,
            )
            (time, q, dq, ddq), torque = motion_with_torque(1)
            client.averaged.publish(trajectory_message(both[2:], 3.0, time, q, dq, ddq, torque))
            client.until(lambda: client.status.get('recordings') == '1', 'the recording')
            answer = client.call('identify')
            assert answer.success, answer.message
            assert IdentificationResult.from_yaml(answer.message).joint_names == tuple(both[2:])
        finally:
            client.close()


@pytest.mark.ros
def test_a_cancelled_identification_keeps_its_recordings_and_says_how_far_it_was() -> None:
    environment = ros_environment()
    node = ['-m', 'robotid_ros.nodes.identification', '--ros-args', '-p', 'tip_link:=tool']
    with NodeProcess(node, environment) as process:
        client = Client(environment)
        try:
            client.description.publish(String(data=TWO_LINKS))
            client.until(lambda: 'waiting for recordings' in client.status.get('message', ''), 'the robot being taken')
            assert 'nothing is under way' in client.call('cancel').message
            for run in (1, 2):
                client.averaged.publish(averaged(run, 10.0 * run))
                client.until(lambda run=run: client.status.get('recordings') == str(run), 'a recording')
            names = ('/identification/identify', '/identification/cancel')
            identify, cancel = (client.node.create_client(Trigger, name) for name in names)
            client.until(lambda: identify.service_is_ready() and cancel.service_is_ready(), 'the services')
            asked = identify.call_async(Trigger.Request())
            client.until(lambda: 'share' in client.status or asked.done(), 'progress')
            assert not asked.done()
            assert 0.0 <= float(client.status['share']) <= 1.0
            assert client.status['step']
            told = cancel.call_async(Trigger.Request())
            client.until(lambda: told.done() and asked.done(), 'both answers')
            assert 'the recordings stay' in told.result().message
            assert not asked.result().success
            assert 'given up on request' in asked.result().message
            client.until(lambda: 'share' not in client.status, 'nothing goes on')
            assert client.status['recordings'] == '2'
            assert client.call('identify').success  # with what was recorded
        finally:
            client.close()
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.output


_TWO = """
import rclpy
from rclpy.parameter import Parameter
from robotid_ros.nodes.excitation import ExcitationNode
from robotid_ros.nodes.identification import IdentificationNode
rclpy.init()
for kind in (ExcitationNode, IdentificationNode):
    for name, periods in (('arm_1', 3), ('arm_2', 4)):
        given = [Parameter('use_sim_time', value=False), Parameter('tip_link', value=f'tool_{periods}')]
        node = kind(namespace=name, parameter_overrides=given)
        print(node.get_fully_qualified_name(), node.get_parameter('tip_link').value, flush=True)
"""


@pytest.mark.ros
def test_nodes_take_the_keyword_arguments_of_rclpys() -> None:
    """Two arms in one process, told apart by their namespaces."""
    with NodeProcess(['-c', _TWO], ros_environment()) as process:
        process.wait()
        for node in ('excitation', 'identification'):
            assert f'/arm_1/{node} tool_3' in process.output
            assert f'/arm_2/{node} tool_4' in process.output
