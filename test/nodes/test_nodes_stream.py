# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What is sent when, without an arm: a stop that cannot be planned, clocks that stand and jump, lost messages."""

import threading
from time import time
from types import SimpleNamespace

import numpy as np
import pytest
from execution_loop import MODEL, PLAN
from ros_helpers import ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

import rclpy  # noqa: E402
from builtin_interfaces.msg import Time  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from rclpy.subscription import Subscription  # noqa: E402
from rclpy.task import Future  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

from robotid_ros.errors import ExcitationError  # noqa: E402
from robotid_ros.execution.following import WatchdogConfig  # noqa: E402
from robotid_ros.execution.supervisor import Supervisor  # noqa: E402
from robotid_ros.nodes import arm_driver  # noqa: E402
from robotid_ros.nodes.arm_driver import ArmDriver, ArmDriverConfig  # noqa: E402
from robotid_ros.nodes.controller_link import ControllerLink  # noqa: E402
from robotid_ros.nodes.messages import NAMELESS  # noqa: E402
from robotid_ros.nodes.parameters import declare_parameters  # noqa: E402
from robotid_ros.nodes.start_checks import StartChecks, StartConfig  # noqa: E402
from robotid_ros.nodes.status import Status  # noqa: E402
from robotid_ros.nodes.surroundings import Commanders, Surroundings  # noqa: E402


class Controller(ControllerLink):
    """Takes trajectories and keeps them."""

    answers = True

    def __init__(self, node):
        super().__init__(node)
        self.sent, self.stops = [], []

    def send(self, message):
        self.sent.append(message)

    def stop(self, message):
        self.stops.append(message)

    def begin(self, joint_names, listener):
        super().begin(joint_names, listener)
        self.begun = joint_names


class Worker:
    """Does nothing until it is told to."""

    def run(self, function, *arguments):
        self.work, self.future = (function, arguments), Future()
        return self.future

    def finish(self):
        function, arguments = self.work
        self.future.set_result(function(*arguments))


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
    checks = start_checks(node)
    for begin in range(1_790_000_000_000_000_000, 1_790_000_001_000_000_000, 20_408_163):  # ns
        messages = []
        for k in range(27):
            message = JointState(name=list(MODEL.joint_names), position=[0.0] * MODEL.n, effort=[1.0] * MODEL.n)
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(begin + round(k * 1e9 / rate), 10**9)
            messages.append(message)
        reasons = checks._recording_reasons(MODEL, StartConfig(least_joint_state_rate=50.0), messages)
        assert ('slow_joint_states' in reasons) is slow


@pytest.mark.parametrize(('kept', 'said'), [(1, None), (20, 'busy_computer')])
def test_messages_that_are_lost_here_are_no_slow_driver(node, kept, said):
    """Of 500 Hz every twentieth arrives, two in a row now and then: the computer is too busy."""
    checks, messages = start_checks(node), []
    for k in range(27 * kept):
        if k % kept == 0 or (kept > 1 and k % (2 * kept) == 1):
            message = JointState(name=list(MODEL.joint_names), position=[0.0] * MODEL.n, effort=[1.0] * MODEL.n)
            message.header.stamp.sec, message.header.stamp.nanosec = 1_790_000_000 + k // 500, (k % 500) * 2_000_000
            messages.append(message)
    reasons = checks._recording_reasons(MODEL, StartConfig(least_joint_state_rate=50.0), messages)
    assert ('busy_computer' in reasons) is (said is not None)
    assert 'slow_joint_states' not in reasons


def test_a_controller_is_known_by_its_name_before_it_is_asked(node, monkeypatch):
    """It is discovered before its name: asked by what stands in for that, a start ended in a fault of our own."""
    answers = iter([[NAMELESS], [NAMELESS, '/other'], ['/other', '/controller'], *2 * [[NAMELESS, '/other']]])
    monkeypatch.setattr('robotid_ros.nodes.surroundings.node_names', lambda _: next(answers))
    commanders = Commanders(node, 'joint_trajectory', 'follow_joint_trajectory', acts=False)
    assert commanders.controllers(300.0) == ['/controller', '/other']
    assert commanders.controllers() == ['/other']
    cancelled = threading.Event()
    cancelled.set()
    assert commanders.controllers(300.0, cancelled) == ['/other']


def start_checks(node):
    commanders = Commanders(node, 'joint_trajectory', 'follow_joint_trajectory', acts=False)
    return StartChecks(
        node,
        Worker(),
        Surroundings(node, commanders, print, speed_scaling_topic='', program_running_topic=''),
    )


@pytest.fixture
def driver(node):
    """Return a driver in simulated time, whose clock has not come yet."""
    declare_parameters(node, WatchdogConfig)
    declare_parameters(node, ArmDriverConfig)
    made = ArmDriver(node, Status(node, 1, dict), Worker())
    made.link = Controller(node)
    return made


def tick(driver, moment, begin=np.inf, *, stands=False):
    """Let the clock come, and a joint state of an arm on its path, or that stands there."""
    stamp = Time(sec=int(moment), nanosec=round(moment % 1.0 * 1e9))
    driver.state.time._take(Clock(clock=stamp))
    position, velocity, _ = PLAN.reference.evaluate([max(moment - begin, 0.0)])
    velocity = np.zeros_like(velocity) if stands else velocity
    message = JointState(name=list(MODEL.joint_names), position=position[0], velocity=velocity[0])
    message.header.stamp = stamp
    driver.state._on_message(message)


def set_out(driver):
    """Begin a run, up to where the arm moves."""
    driver.state.listen(MODEL.joint_names)
    tick(driver, 100.0)
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, 'excitation', recorded=False)
    for moment in np.arange(100.01, 100.8, 0.01):
        tick(driver, moment, 100.5)


def test_a_stop_that_cannot_be_planned_is_said_and_tried_once_more(driver, monkeypatch):
    driver.state.listen(MODEL.joint_names)
    tick(driver, 100.0)
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, 'excitation', recorded=False)
    moments = iter(np.arange(100.01, 104.0, 0.01))
    for moment in moments:
        tick(driver, moment, 100.5)
        if moment > 100.8:
            break
    planned = Supervisor._planned

    def broken(*arguments):
        monkeypatch.setattr(Supervisor, '_planned', planned)
        raise ZeroDivisionError('made by a test')

    monkeypatch.setattr(Supervisor, '_planned', broken)
    driver.stop('a fault', fault=True)
    assert driver.link.stops == []
    assert 'ZeroDivisionError: made by a test' in driver._status.text
    tick(driver, next(moments), 100.5)
    driver._on_monitor()
    (stop,) = driver.link.stops
    assert stop.header.stamp == Time()
    assert driver.rest_text()


@pytest.mark.parametrize('part', ['surroundings', 'link'])
def test_what_fails_at_every_look_ends_the_run_and_the_arm_is_stopped(driver, monkeypatch, part):
    set_out(driver)

    def broken():
        raise ZeroDivisionError('made by a test')

    monkeypatch.setattr(getattr(driver, part), {'surroundings': 'look', 'link': 'fault'}[part], broken)
    driver._on_monitor()
    (stop,) = driver.link.stops
    assert stop.header.stamp == Time()
    assert 'ZeroDivisionError: made by a test' in driver._status.text


@pytest.mark.parametrize('holds', [True, False])
def test_an_arm_that_stands_is_stopped_again_unless_its_controller_holds_it(driver, monkeypatch, holds):
    """A controller that only lost its goal may still lead it; one that ended it by itself does not."""
    set_out(driver)
    monkeypatch.setattr(driver.link, 'holds', holds)
    monkeypatch.setattr(driver.link, 'fault', lambda: 'the controller aborted its goal')
    driver._on_monitor()
    assert len(driver.link.stops) == 1
    assert driver._status.text.startswith('stopping: the controller aborted its goal')
    for moment in np.arange(100.8, 103.0, 0.01):
        tick(driver, moment, moment - 0.3, stands=True)
        driver._on_monitor()
    assert len(driver.link.stops) == (1 if holds else 2)


def test_a_clock_that_stands_still_starts_nothing(driver):
    with pytest.raises(ExcitationError, match='the clock stands still: use_sim_time is set'):
        driver.begin(PLAN, PLAN.windows.window(0), MODEL, 'excitation', recorded=False)
    assert driver.link.sent == []
    assert driver.run is None


def test_the_first_window_is_sent_again_more_often_as_the_motion_comes_near(node, driver, monkeypatch):
    moment = [0.0]
    monkeypatch.setattr(arm_driver, 'time', SimpleNamespace(monotonic=lambda: moment[0]))
    monkeypatch.setattr(driver.link, 'answers', False)
    driver.state.listen(MODEL.joint_names)
    tick(driver, 100.0)
    node.set_parameters([Parameter('start_delay', value=5.0)])
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, 'excitation', recorded=False)
    times = []
    for k in range(1, 510):
        moment[0] = 0.01 * k
        tick(driver, 100.0 + moment[0], 105.0)
        driver._on_monitor()
        times += [moment[0]] * (len(driver.link.sent) - 1 - len(times))
    gaps = np.diff([0.0, *times])
    assert gaps[0] == pytest.approx(0.46, abs=0.02)
    assert gaps[-1] == pytest.approx(0.1, abs=0.011)
    assert 20 <= len(gaps) <= 30
    assert 4.85 < times[-1] < 5.0


def test_a_run_knows_when_its_simulated_time_was_sent(node, driver):
    """However late the node hears it."""
    if not hasattr(Subscription, 'CallbackType'):
        pytest.skip('needs an rclpy that tells when a message was sent, Iron or newer')
    publisher = node.create_publisher(Clock, '/clock', 1)
    driver.state.listen(MODEL.joint_names)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    begun, times = time(), driver.state.time
    while not times.came.is_set():
        publisher.publish(Clock(clock=Time(sec=100)))
        executor.spin_once(timeout_sec=0.1)
    assert begun <= times.sent <= time()
    seen = []
    tick(driver, 100.0)
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, 'excitation', recorded=False)
    read = driver.run.clock.read
    driver.run.clock.read = lambda *_, sent, **__: seen.append(sent) or read(*_, **__)
    tick(driver, 100.01)
    driver._on_monitor()
    assert seen == [times.sent] * 2
    times.leave()
    assert times.sent is None


def test_a_clock_that_jumps_back_stops_the_arm_and_rest_has_to_be_seen(node, driver):
    """As when a simulated world is reset: the times of the run mean nothing any more; a stop needs none."""
    driver.state.listen(MODEL.joint_names)
    tick(driver, 100.0)
    node.set_parameters([Parameter('start_delay', value=30.0)])
    driver.begin(PLAN, PLAN.windows.window(0), MODEL, 'excitation', recorded=False)
    tick(driver, 101.0)
    driver._on_monitor()
    assert driver.run is not None
    tick(driver, 3.0)
    driver._on_monitor()
    assert driver.run is not None
    assert not driver.rested.is_set()
    assert driver._status.text.startswith(
        'stopping: the clock jumped back by 98.00 s, as when a simulated world is reset'
    )
    (stop,) = driver.link.stops
    assert stop.header.stamp == Time()
    assert len(stop.points) == 1
