# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Moves one arm along a plan: hands what comes in to the supervisor, and sends what it returns.

Where the arm is, how it moves, and how old that is, its joint states tell, which are followed while they are needed.

All decisions are those of :class:`robotid_ros.execution.supervisor.Supervisor`.
"""

import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from rclpy.task import Future
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, ExcitationError, RobotIdError
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.following import WatchdogConfig
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.run_clock import ClockOffset, RunClock
from robotid_ros.execution.supervisor import Order, State, Supervisor
from robotid_ros.execution.windows import Window
from robotid_ros.model import RobotModel
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.nodes.controller_link import ActionLink, ControllerLink, TopicLink, action_name
from robotid_ros.nodes.messages import LATCHED, joint_state_values, newest, publish, seconds, trajectory_message
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, SimulatedTime, failure, steady_timer, wait_for
from robotid_ros.nodes.status import Status
from robotid_ros.nodes.surroundings import Commanders, Surroundings
from robotid_ros.settings import Settings, setting

_FIRST = 3.0
"""How long the first joint state may take [s]."""
_CATCH_UP = 10.0
"""How long a driver that lags because its computer is busy may take to be in time again [s]."""
_MONITOR_PERIOD = 0.02
_REPEAT = 0.1
"""How often the first window is sent again until the motion begins [s]: a controller may be found late."""
_REPEAT_LEFT = 0.1
"""The same as a part of the time that is left until then: a window is large, and a long wait is not full of them."""
_SAYS_AGAIN = 1.0
"""How often the status of an arm that does not come to rest is renewed [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDriverConfig(Settings):
    """How an arm is reached, and when it sets off."""

    error = ExcitationError

    start_delay: float = setting(0.5, 'From ~/start to the first motion', unit='s', range=(0.1, 60.0))
    latency: float = setting(0.1, 'What a message takes to the controller', unit='s', range=(0.0, 1.0))
    controller_timeout: float = setting(
        5.0, 'How long ~/start waits for the controller to listen', unit='s', range=(0.0, 60.0)
    )
    speed_scaling_topic: str = setting(
        '', 'Topic of the speed scaling to watch (std_msgs/Float64, 100 is full speed)', read_only=True
    )
    program_running_topic: str = setting(
        '',
        'Topic on which the driver says whether its robot takes commands (std_msgs/Bool): false in a protective stop, '
        'with locked brakes, or while the program is paused',
        read_only=True,
    )
    controller_interface: str = setting(
        'topic',
        'How trajectories reach the controller: on the topic joint_trajectory, or by the action '
        'FollowJointTrajectory, with answers and feedback; the action needs control_msgs',
        choices=('topic', 'action'),
        read_only=True,
    )
    follow_joint_trajectory_action: str = setting(
        '',
        "Name of the controller's action; empty: follow_joint_trajectory beside the topic joint_trajectory",
        read_only=True,
    )


class ArmState:
    """Follows the joint states of an arm; everything but :meth:`measure` is for the executor's thread.

    Why the last joint state cannot be used is in ``problem``, empty where it can; ``offset`` is that of the clock that
    stamps the joint states. The node has declared the parameters of :class:`WatchdogConfig`.

    ``take``: gets position, velocity, effort, stamp [s] or None, and when it came, by a clock that never stands still
    [s], of every joint state with all joints. ``guarded``: returns a callback that deals with whatever the given one
    raises.
    """

    def __init__(
        self,
        node: Node,
        worker: BackgroundWorker,
        take: Callable[[Array, Array | None, Array | None, float | None, float], None],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._node, self._worker, self._take, self._guarded = node, worker, take, guarded
        self._joint_names: tuple[str, ...] = ()
        self._latest: tuple[Array, float] | None = None
        self._joint_states: Subscription | None = None
        self.problem = ''
        self._least = self._most = np.zeros(0)
        self._heard = threading.Event()
        self.offset = ClockOffset()
        self.time = SimulatedTime(node)
        self._unstamped = False

    def listen(self, joint_names: tuple[str, ...]) -> None:
        """Follow the joint states: only while they are needed, since every single one costs time."""
        self.time.follow()
        self._joint_names = joint_names
        self._latest = None
        self._least, self._most = (np.full(len(joint_names), side) for side in (np.inf, -np.inf))
        self._heard.clear()
        self.offset = ClockOffset()
        if self._joint_states is not None:
            return
        self._joint_states = self._node.create_subscription(
            JointState,
            'joint_states',
            self._guarded(self._on_message),
            newest(10),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self.problem = f'none has come on {self._joint_states.topic_name}'

    def stop_listening(self) -> None:
        """Follow the joint states no longer."""
        if self._joint_states is not None:
            self._node.destroy_subscription(self._joint_states)
            self._joint_states = None
        self.time.leave()

    def _on_message(self, message: JointState) -> None:
        try:
            position, velocity, effort = joint_state_values(message, self._joint_names)
        except DataError as cause:
            self.problem = str(cause)  # joints of a gripper, say, may come by themselves
            return
        now = time.monotonic()
        stamp, clock = seconds(message.header.stamp), 1e-9 * self._node.get_clock().now().nanoseconds
        self._unstamped = not stamp
        if stamp and self.time.came.is_set():
            self.offset.update(stamp, clock)
        if np.isfinite(position).all():
            self._latest, self.problem = (position, now), ''
            self._least, self._most = np.minimum(self._least, position), np.maximum(self._most, position)
            self._heard.set()
        else:
            self._latest = None
            self.problem = 'the last one has positions that are not finite'
        self._take(position, velocity, effort, stamp or None, now)

    @property
    def spread(self) -> Array:
        """How far apart all positions are that came since :meth:`listen`, shape (n,)."""
        return np.maximum(self._most - self._least, 0.0)

    def clock_remark(self, tolerance: float) -> str | None:
        """Return what of the stamps may explain that the arm does not seem to follow; ``tolerance`` in s."""
        if self._unstamped:
            return 'the joint states carry no stamps, and what was late on its way looks like a lag'
        return self.offset.remark(tolerance)

    async def measure(self, joint_names: tuple[str, ...]) -> Array:
        """Return the measured position, shape (n,), as soon as a joint state comes; go on listening.

        Raises an ExcitationError if none comes, or it cannot be used.
        """
        self.listen(joint_names)
        tolerance = read_parameters(self._node, WatchdogConfig).clock_tolerance

        def wait() -> None:
            if self._heard.wait(_FIRST) and self.time.came.wait(_FIRST):
                wait_for(lambda: self.offset.behind <= tolerance, _CATCH_UP)

        await self._worker.run(wait)
        return self.fresh_position()

    def fresh_position(self) -> Array:
        """Return the measured position, shape (n,); an ExcitationError where it is missing, broken or old."""
        config = read_parameters(self._node, WatchdogConfig)
        if self._latest is None:
            hint = '; a simulated world that was reset has to be started anew' if self.time.simulated else ''
            raise ExcitationError(f'no usable joint state: {self.problem}{hint}')
        position, received = self._latest
        age = time.monotonic() - received
        if age > config.joint_state_timeout:
            raise ExcitationError(
                f'the last joint state is {age:.1f} s old (allowed: {config.joint_state_timeout:g} s)'
            )
        problem = self.offset.problem(config.clock_tolerance)
        if problem is not None:
            raise ExcitationError(problem)
        return position


class ArmDriver:
    """Moves one arm; everything but ``link`` is for the executor's thread.

    What its joint states say is in ``state``, its supervisor while it is owned in ``run``, and ``rested`` is set
    whenever a run has ended with the arm at rest. The node has declared the parameters of :class:`ArmDriverConfig` and
    :class:`WatchdogConfig`. The robot configuration says what the efforts of the joint states are.
    """

    def __init__(self, node: Node, status: Status, worker: BackgroundWorker, robot: RobotConfig | None = None) -> None:
        self._node, self._status, self._worker, self._robot = node, status, worker, robot
        config = read_parameters(node, ArmDriverConfig)
        acts, topic = config.controller_interface == 'action', 'joint_trajectory'
        action = config.follow_joint_trajectory_action or action_name(node.resolve_topic_name(topic))
        self.link: ControllerLink = ActionLink(node, action) if acts else TopicLink(node)
        self.run: Supervisor | None = None
        self._ended = 0
        self.rested = threading.Event()
        self.state = ArmState(node, worker, self._take, self._guarded)
        self.surroundings = Surroundings(
            node,
            Commanders(node, topic, action, acts=acts),
            self._report,
            speed_scaling_topic=config.speed_scaling_topic,
            program_running_topic=config.program_running_topic,
        )
        self._first: tuple[JointTrajectory, float] | None = None
        self._prepared: Future | None = None
        self._prepared_for: int | None = None
        self._said = -np.inf
        self._after: list[str] = []  # what the controller said once the arm was being stopped
        self._rest_since: float | None = None
        self._reference = node.create_publisher(JointTrajectory, '~/reference', LATCHED)
        self._monitor = steady_timer(node, _MONITOR_PERIOD, self._guarded(self._on_monitor))
        self._monitor.cancel()

    # -- what comes in ------------------------------------------------------------------------------

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Return a callback that brings the arm to rest where it fails, instead of ending the node."""

        def guarded(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as cause:
                said, run = failure(self._node, cause), self.run
                if run is None:
                    return
                if run.state is State.RUNNING:
                    run.report(said)
                else:
                    self._status.set(DiagnosticStatus.ERROR, f'stopping: {run.reason}; {said}', 'stopping')

        return guarded

    def _take(
        self, position: Array, velocity: Array | None, effort: Array | None, stamp: float | None, now: float
    ) -> None:
        run = self.run
        if run is None:
            return
        self._read_clock(run)
        run.joint_state(position, velocity, effort, stamp, now)
        if run.urgent:
            self._on_monitor()

    def _on_feedback(self, desired: Array, actual: Array, stamp: float, speed: float | None) -> None:
        run = self.run
        if run is None:
            return
        if speed is not None and not self.surroundings.take_speed(speed):
            return  # the next look ends the run for that
        self._read_clock(run)
        run.controller_state(desired, actual, stamp, time.monotonic())

    def _report(self, problem: str, *, foreign: bool = False) -> None:
        if self.run is not None:
            self.run.report(problem, foreign=foreign)

    # -- the run ------------------------------------------------------------------------------------

    def _both_clocks(self) -> tuple[float, float]:
        """Return the node's time and that of a steady clock [s], read at one moment."""
        while True:
            first, clock, second = time.monotonic(), self._node.get_clock().now(), time.monotonic()
            if second - first < 1e-3:  # else the thread was kept from running between them
                return 1e-9 * clock.nanoseconds, second

    def _read_clock(self, run: Supervisor) -> None:
        time = self.state.time
        run.clock.read(*self._both_clocks(), simulated=time.simulated, sent=time.sent)

    def begin(self, plan: RunPlan, first: Window, model: RobotModel, purpose: str, *, recorded: bool) -> None:
        """Send the first window, and the others as they become due; a run that is ``recorded`` ends with its recorder.

        The reference tells the ``purpose``.

        Raises an ExcitationError if the clock, the joint states or the mode of the robot do not allow it; nothing has
        been sent then.
        """
        self.surroundings.require()
        gc.freeze()  # else a collection of all that was ever imported may come in the middle of a stop: 50 ms
        clock, now = self._both_clocks()
        if clock <= 0.0 or not self.state.time.came.is_set():
            raise ExcitationError('the clock stands still: use_sim_time is set, but nothing has come on /clock')
        config, watchdog = read_parameters(self._node, ArmDriverConfig), read_parameters(self._node, WatchdogConfig)
        position = self.state.fresh_position()
        self.link.begin(model.joint_names, self._guarded(self._on_feedback))
        self.rested.clear()
        stall = watchdog.joint_state_timeout
        run_clock = RunClock(clock + config.start_delay, clock, now, simulated=self.state.time.simulated, stall=stall)
        efforts = None
        if watchdog.push_tolerance > 0.0:
            robot, count = self._robot, len(model.joint_names)
            unit = np.full(count, np.nan) if robot is None else robot.torque_per_effort(model.joint_names)
            if np.isnan(unit).any():
                self._node.get_logger().info(
                    'efforts are only compared with those of the period before: the robot configuration does not say '
                    'what they are (effort, torque_constants)'
                )
            efforts = EffortWatch(plan, unit, watchdog.push_tolerance)
        run = Supervisor(plan, first, watchdog, run_clock, config.latency, time.monotonic, efforts)
        run.sights += self.surroundings.begin(watchdog.joint_state_timeout, recorded=recorded)
        run.joint_state(position, None, None, None, now)
        self.run, self._rest_since, self._said, self._after = run, None, -np.inf, []
        message = self._message(run, Order(window=first))
        self.link.send(message)
        self._first = message, now
        self._prepare(run)
        reference = trajectory_message(plan.joint_names, run_clock.begin + plan.begin, *plan.one_period())
        reference.header.frame_id = purpose
        publish(self._reference, reference)
        self._status.set(DiagnosticStatus.OK, 'on the way to the start', 'running')
        self._monitor.reset()

    def _message(self, run: Supervisor, order: Order) -> JointTrajectory:
        window = order.window
        start = 0.0 if window.stamp is None else run.clock.begin + window.stamp + order.shift
        times = window.times - (window.stamp or 0.0)
        return trajectory_message(
            run.plan.joint_names, start, times, window.position, window.velocity, window.acceleration
        )

    def _prepare(self, run: Supervisor) -> None:
        """Have the window made that is wanted next, off the executor's thread."""
        if run.wanted is not None and run.wanted != self._prepared_for:
            self._prepared_for = run.wanted
            self._prepared = self._worker.run(run.plan.windows.window, run.wanted)

    def _look(self, run: Supervisor) -> None:
        """Tell the run what others say: the controller, the surroundings, who prepares its windows."""
        fault = self.link.fault()
        if run.state is State.RUNNING:
            self.surroundings.look()
            if fault is not None and run.time < run.plan.reference.duration:
                run.report(fault)
            if self._prepared is not None and self._prepared.done():
                run.supply(self._prepared.result())
                self._prepared = None
        elif fault is not None and fault not in self._after:
            self._after.append(fault)
        if self.link.holds:
            run.hold()

    def _on_monitor(self) -> None:
        run = self.run
        if run is None:
            self._monitor.cancel()
            return
        # What fails in it ends the run like any fault: the next lines see to that.
        self._guarded(self._look)(run)
        before = run.state
        clock, now = self._both_clocks()
        for order in run.tick(clock, now, simulated=self.state.time.simulated, sent=self.state.time.sent):
            self._send(run, order)
        if run.state is State.RUNNING:
            if self.link.answers or run.time >= 0.0:  # from the first motion on, it would make an arm at rest jump
                self._first = None
            elif self._first is not None and now - self._first[1] >= max(_REPEAT, -_REPEAT_LEFT * run.time):
                # A topic does not tell whether the controller was among its subscribers.
                self.link.send(self._first[0])
                self._first = self._first[0], now
            self._prepare(run)
            phase = run.plan.phase(run.time)
            self._status.text = {'ramp': 'on the way to the start', 'end': 'coming to rest'}.get(phase, phase)
        elif run.state is State.STOPPING:
            begins = before is State.RUNNING
            if begins:
                self._first, self._prepared = None, None
                publish(self._reference, JointTrajectory(joint_names=list(run.plan.joint_names)))
            if begins or now - self._said > _SAYS_AGAIN:
                self._said = now
                level, reason = self._account(run)
                does = '' if begins else f'; {run.rest_text(now)}'
                self._status.set(level, f'stopping: {reason}{does}', 'stopping')
        if run.state is State.RESTED:
            self._conclude(run, now)

    def _send(self, run: Supervisor, order: Order) -> None:
        message = self._message(run, order)
        try:
            if not order.stop:
                self.link.send(message)
                return
            self.link.stop(message)
        except RobotIdError as cause:
            run.report(str(cause))
            return
        self._node.get_logger().info(
            f'stop {run.stops}: to rest in {order.window.times[-1]:.2f} s'
            + (f'; it breaks a limit: {run.breaks}' if run.breaks else '')
        )

    def _account(self, run: Supervisor) -> tuple[bytes, str]:
        """Return the level of a run that is being stopped, and all that is known of why."""
        remark = self.state.clock_remark(run.config.clock_tolerance) if run.strays else None
        sees = self.state.problem if run.unseen else ''
        breaks = f'the stop breaks a limit: {run.breaks}' if run.breaks else ''
        mode = self.surroundings.mode_problem()  # what ended a run early may be told only now
        # What ended the run may be told by two.
        reason = '; '.join(dict.fromkeys(filter(None, (run.reason, remark, sees, mode, *self._after, breaks))))
        return DiagnosticStatus.ERROR if run.fault else DiagnosticStatus.WARN, reason

    def stop(self, reason: str, *, fault: bool) -> None:
        """Bring the arm to rest, and say why."""
        run = self.run
        if run is not None:
            run.report(reason, fault=fault)
            self._guarded(self._on_monitor)()

    def rest_text(self) -> str:
        """Return what the arm measurably does."""
        return '' if self.run is None else self.run.rest_text(time.monotonic())

    def _conclude(self, run: Supervisor, now: float) -> None:
        """End a run whose arm was seen to rest, once the controller has had its say."""
        self._rest_since = now if self._rest_since is None else self._rest_since
        problem = self.link.conclusion(now - self._rest_since)
        if problem is None:
            return
        self.run, self._prepared_for = None, None
        gc.unfreeze()
        self._monitor.cancel()
        self.state.stop_listening()
        if run.reason:
            level, reason = self._account(run)
            state, text = 'stopped', f'stopped: {reason}'
        else:
            publish(self._reference, JointTrajectory(joint_names=list(run.plan.joint_names)))
            level, state, text = DiagnosticStatus.OK, 'finished', 'the run is complete; the arm is at rest'
        if problem:
            level, text = max(level, DiagnosticStatus.WARN), f'{text}; but {problem}'
        self._ended += 1
        self._status.set(level, text, state)
        self.rested.set()

    def values(self) -> dict[str, object]:
        """Return what is worth a place in the status."""
        run = self.run
        # A client that slept through a short run still sees that there was one.
        ended: dict[str, object] = {'runs_ended': self._ended}
        if run is None:
            return ended
        phase, elapsed, duration = run.plan.phase(run.time), run.time, run.plan.reference.duration
        return ended | {
            'phase': phase,
            'tracking_error': run.following.tracking_error,
            'elapsed': elapsed,
            'duration': duration,
            'share': min(max(elapsed / duration, 0.0), 1.0),
            'step': phase,
            'remaining': max(duration - elapsed, 0.0),
            **{f'{sight.name}/rate': sight.rate for sight in run.sights if sight.on},
            **{f'{sight.name}/finite': sight.share for sight in run.sights if sight.on},
            **self.link.values(),
        }
