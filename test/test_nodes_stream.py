# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What is sent when, without an arm: overdue windows, the latency of a stop, late looks, a clock that stands."""

import time

import numpy as np
import pytest
from execution_loop import MODEL, PLAN
from ros_helpers import ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

import rclpy  # noqa: E402
from builtin_interfaces.msg import Time  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.task import Future  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from robotid_ros.errors import ExcitationError  # noqa: E402
from robotid_ros.execution.following import Following, StopKind  # noqa: E402
from robotid_ros.execution.watchdog import Watchdog, WatchdogConfig  # noqa: E402
from robotid_ros.nodes.arm_driver import ArmDriver  # noqa: E402
from robotid_ros.nodes.conversions import seconds  # noqa: E402
from robotid_ros.nodes.excitation_config import ExcitationNodeConfig, StartConfig  # noqa: E402
from robotid_ros.nodes.excitation_stream import RunStream  # noqa: E402
from robotid_ros.nodes.parameters import declare_parameters  # noqa: E402
from robotid_ros.nodes.publishing import Status  # noqa: E402
from robotid_ros.nodes.start_checks import StartChecks  # noqa: E402

BEGIN = 1000.0


class Controller:
    """Takes trajectories and keeps them."""

    answers, result_delay = True, 0.0

    def __init__(self):
        self.sent = []

    def send(self, message):
        self.sent.append(message)

    stop = send

    def begin(self, joints, listener):
        self.begun = joints

    def fault(self):
        return None

    def conclusion(self, waited):
        return ''


class Worker:
    """Does nothing until it is told to."""

    def run(self, function, *arguments):
        self.work, self.future = (function, arguments), Future()
        return self.future

    def finish(self):
        function, arguments = self.work
        self.future.set_result(function(*arguments))


def stream(**settings):
    watchdog = Watchdog(MODEL.joint_names, MODEL.limits.velocity, WatchdogConfig(**settings))
    watchdog.receive(np.zeros(3), None, BEGIN - 0.5, time.monotonic())
    run = RunStream(Following(PLAN, BEGIN, watchdog), Worker(), Controller())
    run.start(PLAN.windows.window(0))
    return run


def follow(run, elapsed):
    """Let the arm be seen on its path up to a moment."""
    for moment in np.arange(elapsed - 1.0, elapsed + 1e-9, 0.008):
        state = run.following.reference(BEGIN + moment)
        assert run.following.receive(state.position, state.velocity, BEGIN + moment, time.monotonic()) is None


def test_a_window_that_is_not_ready_ends_the_run_a_second_after_it_is_due():
    run = stream(joint_state_timeout=60.0)
    due = PLAN.windows.due(1)
    follow(run, due)
    assert run.advance(due + 0.5) is None
    assert run.advance(due + 1.1) == 'the next piece of the trajectory was not ready in time'
    assert len(run._link.sent) == 1
    run._worker.finish()
    assert run.advance(due + 0.1) is None
    assert len(run._link.sent) == 2


@pytest.mark.parametrize(('latency', 'took'), [(0.1, 0.0), (0.3, 0.0), (0.1, 0.2)])
def test_a_stop_leaves_the_path_no_sooner_than_it_arrives(latency, took):
    """Also where planning takes long: then it is planned again, from further on."""
    run = stream(joint_state_timeout=60.0)
    asked = PLAN.begin + 1.234
    follow(run, asked)
    looks = []

    def clock():
        looks.append(asked + took * len(looks))
        return BEGIN + looks[-1]

    assert run.stop('on request', clock, latency, fault=False) is StopKind.ALONG_PATH
    message = run._link.sent[-1]
    times = np.array([seconds(point.time_from_start) for point in message.points]) + seconds(message.header.stamp)
    positions = np.array([point.positions for point in message.points])
    path = PLAN.reference.evaluate(times - BEGIN)[0]
    left = times[np.abs(positions - path).max(axis=1) > 1e-7][0] - BEGIN
    arrives = looks[-1] + latency
    assert arrives - 1e-9 <= left
    assert left < arrives + 1.3 + took
    assert run.rest > left
    np.testing.assert_allclose(message.points[-1].velocities, 0.0, atol=1e-12)


def test_a_late_look_is_excused_once(monkeypatch):
    """Joint states may have waited with it; when it is late again, they have not come."""
    run = stream(joint_state_timeout=0.4)
    now = time.monotonic()
    monkeypatch.setattr(time, 'monotonic', lambda: now + 0.6)
    assert run.advance(-0.1) is None
    monkeypatch.setattr(time, 'monotonic', lambda: now + 1.2)
    assert 'no joint state for' in run.advance(-0.1)


def test_a_joint_state_timeout_that_no_look_can_hold_is_refused():
    with pytest.raises(ExcitationError, match=r'joint_state_timeout: expected 0\.1 to 60 s, got 0\.04'):
        WatchdogConfig(joint_state_timeout=0.04)


@pytest.fixture
def node():
    """Return a node in simulated time, whose clock has not come yet."""
    context = rclpy.Context()
    context.init(domain_id=int(ros_environment()['ROS_DOMAIN_ID']))
    made = rclpy.create_node('driver', context=context, parameter_overrides=[Parameter('use_sim_time', value=True)])
    yield made
    made.destroy_node()
    rclpy.shutdown(context=context)


@pytest.mark.parametrize(('rate', 'slow'), [(50.0, False), (49.5, False), (46.0, True)])
def test_an_arm_at_the_rate_asked_for_is_not_refused_by_the_rounding_of_its_stamps(node, rate, slow):
    checks = StartChecks(node, Worker(), None)
    for begin in range(1_790_000_000_000_000_000, 1_790_000_001_000_000_000, 20_408_163):  # ns
        checks._messages = []
        for k in range(27):
            message = JointState(name=list(MODEL.joint_names), position=[0.0] * MODEL.n, effort=[1.0] * MODEL.n)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(begin + round(k * 1e9 / rate), 10**9)
            checks._messages.append((0.0, message))
        reasons = checks._recording_reasons(MODEL.joint_names, StartConfig(least_joint_state_rate=50.0))
        assert ('slow_joint_states' in reasons) is slow


@pytest.fixture
def driver(node):
    """Return a driver in simulated time, whose clock has not come yet."""
    declare_parameters(node, WatchdogConfig)
    return ArmDriver(node, Controller(), Status(node, 1, dict), Worker(), None)


def tick(driver, moment, begin=np.inf):
    """Let the clock come, and a joint state of an arm on its path."""
    stamp = Time(sec=int(moment), nanosec=round(moment % 1.0 * 1e9))
    driver.state.time._take(Clock(clock=stamp))
    position, velocity, _ = PLAN.reference.evaluate([max(moment - begin, 0.0)])
    message = JointState(name=list(MODEL.joint_names), position=position[0], velocity=velocity[0])
    message.header.stamp = stamp
    driver.state._on_message(message)


def test_a_stop_that_cannot_be_planned_is_said_and_tried_once_more(driver, monkeypatch):
    driver.state.listen(MODEL.joint_names)
    tick(driver, 100.0)
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, ExcitationNodeConfig(start_delay=0.5))
    moments = iter(np.arange(100.01, 104.0, 0.01))
    for moment in moments:
        tick(driver, moment, 100.5)
        if moment > 102.5:
            break
    planned = Following.stop

    def broken(*arguments):
        monkeypatch.setattr(Following, 'stop', planned)
        raise ZeroDivisionError('made by a test')

    monkeypatch.setattr(Following, 'stop', broken)
    driver.stop('a fault', fault=True)
    assert 'no stop could be sent: use the stop of the arm itself' in driver._status.text
    assert 'ZeroDivisionError: made by a test' in driver._status.text
    sent = len(driver._link.sent)
    for moment in moments:
        tick(driver, moment, 100.5)
        driver._on_monitor()
        if len(driver._link.sent) > sent:
            break
    assert len(driver._link.sent) == sent + 1
    assert moment < 102.7
    assert driver.run.rest > moment - 100.5


def test_a_clock_that_stands_still_starts_nothing(driver):
    with pytest.raises(ExcitationError, match='the clock stands still: use_sim_time is set'):
        driver.begin(PLAN, PLAN.windows.window(0), MODEL, ExcitationNodeConfig())
    assert driver._link.sent == []
    assert driver.run is None


def test_a_clock_that_jumps_back_ends_the_run_at_once(driver):
    """As when a simulated world is reset: the times of the run mean nothing any more, and nothing is sent."""
    driver.state.listen(MODEL.joint_names)
    tick(driver, 100.0)
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, ExcitationNodeConfig(start_delay=30.0))
    tick(driver, 101.0)
    driver._on_monitor()
    assert driver.run is not None
    tick(driver, 3.0)
    driver._on_monitor()
    assert driver.run is None
    assert driver.rested.is_set()
    assert driver._status.text == 'stopped: the clock jumped back by 98.00 s, as when a simulated world is reset'
    assert len(driver._link.sent) == 1
