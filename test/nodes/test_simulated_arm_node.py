# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The simulated_arm node in a process of its own, over DDS, as a user of a real arm would meet it."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from ros_helpers import NodeProcess, assert_refused, ros_environment
from simulation_helpers import CRANE, UR10E

pytest.importorskip('rclpy', reason='needs the ros extra')
pytest.importorskip('mujoco', reason='needs the sim extra')
pytestmark = pytest.mark.ros

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy  # noqa: E402
from rclpy.serialization import deserialize_message  # noqa: E402
from ros_client import GraphClient  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402
from std_msgs.msg import String  # noqa: E402
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint  # noqa: E402

from robotid_ros.errors import ModelError  # noqa: E402
from robotid_ros.model import RobotModel  # noqa: E402
from robotid_ros.nodes.messages import JointStateTemplate  # noqa: E402
from robotid_ros.nodes.simulated_arm import SimulatedArm  # noqa: E402
from robotid_ros.nodes.simulated_arm_config import SimulatedArmConfig, SimulatedArmParts  # noqa: E402
from robotid_ros.simulation import read_truth  # noqa: E402

ARM = ['-m', 'robotid_ros.nodes.simulated_arm']


class Listener(GraphClient):
    """Hears everything the arm says, and can command it."""

    def __init__(self, domain: int) -> None:
        super().__init__(domain)
        self.states: list[JointState] = []
        self.descriptions: list[str] = []
        self.clocks: list[float] = []
        deep = QoSProfile(depth=10000, reliability=ReliabilityPolicy.RELIABLE)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.node.create_subscription(JointState, 'joint_states', self.states.append, deep)
        self.node.create_subscription(String, 'robot_description', lambda m: self.descriptions.append(m.data), latched)
        clock = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.node.create_subscription(Clock, '/clock', lambda m: self.clocks.append(seconds(m.clock)), clock)
        self.publisher = self.node.create_publisher(JointTrajectory, 'joint_trajectory', 10)

    def send(
        self, names: list[str], points: list[tuple], stamp: float = 0.0, *, taken: Callable[[], bool], what: str
    ) -> None:
        """Send a trajectory until it shows: a best-effort subscriber that is just being found may miss one."""
        message = JointTrajectory(joint_names=names)
        message.header.stamp.sec, message.header.stamp.nanosec = int(stamp), int(stamp % 1 * 1e9)
        for moment, *columns in points:
            point = JointTrajectoryPoint()
            point.time_from_start.sec, point.time_from_start.nanosec = int(moment), round(moment % 1 * 1e9)
            for name, values in zip(('positions', 'velocities', 'accelerations'), columns, strict=False):
                setattr(point, name, list(map(float, values)))
            message.points.append(point)
        self.until(lambda: self.publisher.get_subscription_count() == 1, 'a subscriber')
        sent = -math.inf

        def shows() -> bool:
            nonlocal sent
            if taken():
                return True
            if time.monotonic() - sent > 2.0:
                sent = time.monotonic()
                self.publisher.publish(message)
            return False

        self.until(shows, what)

    def latest(self) -> float:
        """Return the newest stamp."""
        self.until(lambda: bool(self.states), 'a joint state')
        return seconds(self.states[-1].header.stamp)

    def until_stamp(self, stamp: float) -> None:
        self.until(lambda: self.latest() >= stamp, f'stamp {stamp}')

    def signals(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        stamps = np.array([seconds(s.header.stamp) for s in self.states])
        return stamps, *(np.array([getattr(s, f) for s in self.states]) for f in ('position', 'velocity', 'effort'))


def seconds(stamp) -> float:
    return stamp.sec + 1e-9 * stamp.nanosec


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    values = ros_environment()
    for name in ('ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE'):
        monkeypatch.setenv(name, values[name])
    return values


@pytest.fixture
def listener(environment: dict[str, str]) -> Iterator[Listener]:
    heard = Listener(int(environment['ROS_DOMAIN_ID']))
    yield heard
    heard.close()


def arguments(**parameters: object) -> list[str]:
    words = ['--ros-args']
    for name, value in parameters.items():
        words += ['-p', f'{name}:={value}']
    return [*ARM, *words]


@pytest.mark.slow
def test_speaks_and_moves_like_a_real_arm(environment, listener, tmp_path) -> None:
    truth_file = tmp_path / 'truth.yaml'
    began = time.time()
    with NodeProcess(arguments(truth_file=truth_file, seed=11), environment) as arm:
        listener.until(lambda: bool(listener.descriptions) and bool(listener.states), 'description and joint states')
        assert listener.descriptions == [UR10E.read_text()]
        model = RobotModel.from_urdf(listener.descriptions[0])
        assert tuple(listener.states[0].name) == model.joint_names
        truth = read_truth(truth_file, model)
        assert np.abs(truth.model.inertial - model.inertial).max() > 1e-3

        # A quintic of all joints, joints in reverse order, with a stamp: from zero to the target in 2 s.
        target = np.array([0.5, -0.8, 0.6, -0.4, 0.3, 0.2])
        start = listener.latest() + 3.0
        assert abs(start - time.time()) < 10.0
        zero = np.zeros(6)
        points = [(0.0, zero, zero, zero), (2.0, target[::-1], zero, zero)]
        arrived = lambda: listener.latest() > start + 2.3 and abs(listener.states[-1].position[0]) > 0.1  # noqa: E731
        listener.send(list(model.joint_names)[::-1], points, start, taken=arrived, what='the motion')
        arm.signal(signal.SIGINT)
        assert arm.wait() == 0
    assert 'Traceback' not in arm.output

    stamps, position, velocity, effort = listener.signals()
    assert stamps[0] > began
    np.testing.assert_allclose(np.diff(stamps), 0.002, atol=1e-6)  # not one left out
    s = np.clip((stamps - start) / 2.0, 0.0, 1.0)[:, None]
    blend = 10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5
    np.testing.assert_allclose(position, blend * target, atol=3e-3)
    np.testing.assert_allclose(velocity, np.gradient(blend[:, 0], stamps)[:, None] * target, atol=0.03)
    moving = ((s > 0.1) & (s < 0.9))[:, 0]
    acceleration = ((60.0 * s - 180.0 * s**2 + 120.0 * s**3) / 4.0) * target
    expected = truth.torque(blend * target, velocity, acceleration)
    error = np.linalg.norm((effort - expected)[moving], axis=0) / np.linalg.norm(expected[moving], axis=0)
    assert (error < 0.15).all()
    described = np.linalg.norm((effort - expected)[moving])
    assert described < 0.05 * np.linalg.norm(expected[moving])


def test_refuses_trajectories_as_the_controller_does_and_goes_on(environment, listener) -> None:
    with NodeProcess(arguments(robot='ur10e', position_noise=0.0), environment) as arm:
        names = list(RobotModel.from_urdf(UR10E).joint_names)
        zero = [0.0] * 6
        now = listener.latest()
        for sent, answer in (
            (([], []), 'joints of the trajectory (none)'),
            ((names, []), 'the trajectory is empty'),
            ((names[:5], [(1.0, zero[:5])]), 'wrist_2_joint) are not those of the controller'),
            ((names, [(1.0, zero), (1.0, zero)]), 'times must strictly increase'),
            ((names, [(1.0, zero, [0.1] * 6)]), 'ends in motion'),
            ((names, [(1.0, zero)], now - 10.0), 'ended in the past'),
            ((names, [(1.0, [math.nan] * 6)]), 'not finite'),
        ):
            refused = lambda answer=answer: any(answer in line for line in arm.lines)  # noqa: E731
            listener.send(*sent, taken=refused, what=f'the answer {answer!r}')
        assert all('trajectory rejected' in line for line in arm.lines if 'ERROR' in line)
        there = lambda: np.allclose(listener.states[-1].position, 0.05, atol=2e-3)  # noqa: E731
        listener.send(names, [(0.2, [0.05] * 6)], taken=there, what='the way to 0.05')
        arm.signal(signal.SIGTERM)
        assert arm.wait() == 0
    assert 'Traceback' not in arm.output


def test_a_running_trajectory_is_replaced_at_once(environment, listener) -> None:
    with NodeProcess(arguments(), environment):
        names = list(RobotModel.from_urdf(UR10E).joint_names)
        listener.until(lambda: bool(listener.states), 'joint states')
        listener.send(names, [(5.0, [1.0] * 6)], taken=lambda: listener.states[-1].position[0] > 0.1, what='the motion')
        listener.send(
            names, [(0.5, [0.0] * 6)], taken=lambda: abs(listener.states[-1].position[0]) < 1e-3, what='the way back'
        )
        assert max(s.position[0] for s in listener.states) < 0.9


def test_a_stalled_machine_does_not_change_the_motion(environment, listener) -> None:
    """Physics that make up for a delay must not obey what was sent only after the moment they are at."""
    with NodeProcess(arguments(), environment) as arm:
        names = list(RobotModel.from_urdf(UR10E).joint_names)
        listener.until(lambda: bool(listener.states), 'joint states')
        moving = lambda: listener.states[-1].position[0] > 0.05  # noqa: E731
        listener.send(names, [(10.0, [1.0] * 6)], taken=moving, what='the motion')
        arm.signal(signal.SIGSTOP)
        stalled = time.time()
        while time.time() < stalled + 1.5:
            listener.executor.spin_once(timeout_sec=0.1)
        sent = time.time()
        arm.signal(signal.SIGCONT)
        back = lambda: listener.states[-1].velocity[0] < -0.1  # noqa: E731
        listener.send(names, [(0.5, [0.0] * 6)], taken=back, what='the way back')
    stamps, _, velocity, _ = listener.signals()
    np.testing.assert_allclose(np.diff(stamps), 0.002, atol=1e-6)
    assert stamps[np.argmax(velocity[:, 0] < -0.05)] > sent - 0.01


def test_runs_faster_than_real_time_and_says_so_on_the_clock(environment, listener) -> None:
    fast = arguments(speed=5.0, publish_clock=True, publish_rate=100.0, physics_rate=500.0)
    with NodeProcess(fast, environment) as arm:
        listener.until(lambda: len(listener.states) > 5 and len(listener.clocks) > 5, 'joint states and clock')
        # Never ahead of its schedule, and a stalled machine only makes it later.
        first, wall = listener.latest(), time.monotonic()
        listener.until_stamp(first + 1.5)
        assert time.monotonic() - wall > 1.2  # at rest
        names = list(RobotModel.from_urdf(UR10E).joint_names)
        moving = lambda: listener.states[-1].position[0] > 0.01  # noqa: E731
        listener.send(names, [(9.0, [1.0] * 6)], taken=moving, what='the motion')
        first, wall = listener.latest(), time.monotonic()
        listener.until_stamp(first + 5.0)
        assert time.monotonic() - wall > 0.8
        stamps = listener.signals()[0]
        np.testing.assert_allclose(np.diff(stamps), 0.01, atol=1e-6)
        assert (np.diff(listener.clocks) > 0.0).all()
        assert np.isclose(np.array(listener.clocks)[-1], stamps, atol=1e-6).any() or listener.clocks[-1] > stamps[-1]
        assert 'no clock is published' not in arm.output


def test_who_gives_the_time_is_fast_in_motion_and_in_no_hurry_at_rest() -> None:
    def pace(now: float, *, clock: bool = True, listeners: int = 1, speed: float = 5.0) -> float:
        states = SimpleNamespace(get_subscription_count=lambda: listeners)
        config = SimpleNamespace(speed=speed)
        arm = SimpleNamespace(_config=config, _clock_publisher=clock or None, _moves_until=3.0, _states=states)
        return SimulatedArm._pace(arm, now)

    assert pace(2.0) == pace(2.0, listeners=0) == pace(9.0, clock=False) == 5.0
    assert pace(9.0) == 1.0
    assert pace(9.0, listeners=0) == pace(9.0, listeners=0, speed=1.0) == 0.25
    assert pace(9.0, speed=0.5) == pace(2.0, speed=0.5) == 0.5


def test_effort_can_be_the_motors_current(environment, listener, tmp_path) -> None:
    """A robot configuration says which joints show a current, with their torque constants and gears."""
    robot = tmp_path / 'crane.urdf'
    robot.write_text(CRANE)
    config = {
        'joints': ['turn', 'luff', 'reach'],
        'effort': {'turn': 'torque', 'luff': 'current', 'reach': 'current'},
        'torque_constants': {'turn': 0.1, 'luff': 0.2, 'reach': 0.25},
        'gear_ratios': {'turn': 50.0, 'luff': 80.0, 'reach': 100.0},
        'urdf': str(robot),
    }
    settings = {'inertial_perturbation': 0.0, 'friction_perturbation': 0.0, 'effort_noise': 0.0, 'torque_noise': 0.0}
    path = tmp_path / 'crane.yaml'
    path.write_text(yaml.safe_dump({'/**': {'ros__parameters': {**config, **settings}}}))
    truth_file = tmp_path / 'truth.yaml'
    command = [*arguments(truth_file=truth_file), '--params-file', str(path)]
    with NodeProcess(command, environment):
        listener.until(lambda: len(listener.states) > 500, 'joint states')
    truth = read_truth(truth_file, RobotModel.from_urdf(CRANE))
    gain = np.array([1.0, 16.0, 25.0])
    np.testing.assert_allclose(truth.drive_gain, [5.0, 16.0, 25.0])
    _, position, _, effort = listener.signals()
    held = position[-1:]
    gravity = truth.torque(held, 0.0 * held, 0.0 * held)[0]
    # At rest dry friction may carry a part of gravity.
    assert (np.abs(effort[-1] * gain - gravity) <= truth.friction.coulomb + 1e-6).all()
    assert np.abs(gravity[1:]).min() > 2.0 * truth.friction.coulomb[1:].max()


def test_refuses_bad_parameters_with_one_line(environment) -> None:
    cases = {
        "robot 'absent.urdf': no such file, and no packaged arm of that name": ['robot:=absent.urdf'],
        "parameter 'inertial_perturbation': ": ['inertial_perturbation:=0.9'],
        "parameter 'effort_content': expected one of torque, current": ['effort_content:=volts'],
        'cannot write /absent/truth.yaml': ['truth_file:=/absent/truth.yaml'],
    }
    assert_refused('robotid_ros.nodes.simulated_arm', cases, environment)


@pytest.mark.parametrize(
    ('parameters', 'message'),
    [
        ({'publish_rate': 300.0}, r"'publish_rate': expected a divisor of physics_rate \(1000 Hz\), got 300 Hz"),
        ({'bandwidth': 200.0}, 'bandwidth: expected a positive number up to rate/15'),
        ({'initial_position': (0.0, 1.0)}, "'initial_position': expected 6 numbers, got 2"),
        ({'initial_position': (9.0, 0.0, 0.0, 0.0, 0.0, 0.0)}, "joint 'shoulder_pan_joint' is limited to -6.28"),
        ({'robot': __file__}, 'is not a URDF: expected XML'),
        ({'tip': 'hand'}, "tip link 'hand' is not in the URDF"),
    ],
)
def test_refuses_what_cannot_be_simulated(parameters: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        SimulatedArmParts(SimulatedArmConfig(**parameters), None)


def test_starts_clear_of_the_limits(tmp_path) -> None:
    shifted = tmp_path / 'shifted.urdf'
    shifted.write_text(CRANE.replace('lower="-3" upper="3"', 'lower="0.5" upper="3"'))
    parts = SimulatedArmParts(SimulatedArmConfig(robot=str(shifted)), None)
    np.testing.assert_array_equal(parts.controller.follower.sample(np.zeros(1))[0], [[0.6, 0.0, 0.0]])


def test_a_serialised_template_is_the_message_it_stands_for() -> None:
    values = np.random.default_rng(0).normal(size=(3, 2))
    template = JointStateTemplate(['left', 'the right one'])
    template.filled(1, *values[::-1])
    message = deserialize_message(template.filled(1_795_000_000_123_456_789, *values), JointState)
    position, velocity, effort = values.tolist()
    expected = JointState(name=['left', 'the right one'], position=position, velocity=velocity, effort=effort)
    expected.header.stamp.sec, expected.header.stamp.nanosec = 1_795_000_000, 123_456_789
    assert message == expected
