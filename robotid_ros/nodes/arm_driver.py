# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Drives an arm along a planned run: windows out, joint states in, and a stop when anything looks wrong.

Whatever goes wrong while the arm moves ends in the same way: the arm is brought to rest from what it does then, and
the status says why.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from std_msgs.msg import Float64
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.following import Following, StopKind
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.watchdog import Watchdog, WatchdogConfig
from robotid_ros.execution.windows import Window
from robotid_ros.model import RobotModel
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.nodes.arm_state import ArmState
from robotid_ros.nodes.controller_link import ControllerFeedback, ControllerLink
from robotid_ros.nodes.conversions import LATCHED
from robotid_ros.nodes.excitation_config import ExcitationNodeConfig
from robotid_ros.nodes.excitation_stream import RunStream
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.publishing import Status, publish
from robotid_ros.nodes.runtime import BackgroundWorker, failure
from robotid_ros.nodes.simulated_time import steady_timer

_MONITOR_PERIOD = 0.02
_FULL_SPEED = 100.0
_SCALING_TOLERANCE = 0.1
"""Deviation of the speed scaling that a run goes on with [%]: 1 ms of delay in a second."""
_HALT = 0.06
"""How long it takes to see that an arm that has just become slow rests [s]."""
_CLOCK_JUMP = 0.25
"""Change of the clock against a steady one, from one look to the next, that ends a run [s]."""
_CONFIRMATION = 2.0
"""How long the joint states may take to show that a stopped arm rests [s]."""


class ArmDriver:
    """Moves one arm; everything is for the executor's thread.

    What its joint states say is in ``state``, what the arm moves along in ``run``, and ``rested`` is set whenever a run
    has ended with the arm at rest. The node has declared the parameters of :class:`WatchdogConfig`. The topic of the
    speed scaling, where there is one, carries ``std_msgs/Float64`` (100 is full speed); the robot configuration says
    what the efforts of the joint states are.
    """

    def __init__(
        self,
        node: Node,
        link: ControllerLink,
        status: Status,
        worker: BackgroundWorker,
        speed_scaling_topic: str | None,
        robot: RobotConfig | None = None,
    ) -> None:
        self._robot = robot
        self._node, self._link, self._status, self._worker = node, link, status, worker
        self.run: RunStream | None = None
        self.rested = threading.Event()
        self.state = ArmState(node, worker, self._take, self._guarded)
        self._speed_scaling = _FULL_SPEED
        self._latency = 0.0
        self._suspicion: tuple[str, float] | None = None
        self._clocks = 0.0, 0.0
        self._reference = node.create_publisher(JointTrajectory, '~/reference', LATCHED)
        if speed_scaling_topic:
            node.create_subscription(Float64, speed_scaling_topic, self._on_speed_scaling, 10)
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
                if run is not None and run.rest is None:
                    self.stop(said, fault=True)
                elif run is not None:  # it cannot be seen that the arm rests
                    self._conclude(float('inf'), f'{said}; look at the arm')

        return guarded

    def _take(self, position: Array, velocity: Array | None, effort: Array | None, stamp: float, now: float) -> None:
        run = self.run
        if run is None:
            return
        if run.rest is not None:
            if np.isfinite(position).all():
                run.following.recent.receive(stamp, position, velocity)
            return
        problem = run.following.receive(position, velocity, stamp, now, effort)
        if problem is not None:
            remark = self.state.clock_remark(run.following.watchdog.config.clock_tolerance)
            self._suspect('; '.join(filter(None, (problem, remark))))

    def _on_feedback(self, feedback: ControllerFeedback) -> None:
        run = self.run
        if run is None or run.rest is not None:
            return
        if feedback.speed is not None and not self._at_full_speed(feedback.speed):
            return
        problem = run.following.receive_feedback(feedback.stamp, feedback.desired, feedback.actual, time.monotonic())
        if problem is not None:
            self._suspect(problem)

    def _suspect(self, problem: str) -> None:
        """Stop the arm for what was observed, unless it was brought to a halt just now, or that may be told soon."""
        run = self.run
        assert run is not None
        if self._suspicion is not None:
            return
        if self._link.result_delay == 0.0 and (run.following.pushing or run.following.resting() is not None):
            self.stop(problem, fault=True)
        else:
            self._suspicion = problem, time.monotonic()

    def _on_speed_scaling(self, message: Float64) -> None:
        self._speed_scaling = message.data
        self._at_full_speed(message.data)

    def _at_full_speed(self, percent: float) -> bool:
        """Return whether time is not stretched; end the run if it is."""
        full, run = _is_full(percent), self.run
        if not full and run is not None and run.rest is None:
            run.following.stretched = True
            self.stop(f'speed scaling went to {percent:g} %: it stretches time', fault=True)
        return full

    def require_full_speed(self) -> None:
        """Refuse, with an ExcitationError, to begin while the controller stretches time."""
        if not _is_full(self._speed_scaling):
            raise ExcitationError(
                f'the controller runs at {self._speed_scaling:g} % of its speed, which stretches time; set it to 100 %'
            )

    # -- the run ------------------------------------------------------------------------------------

    def _now(self) -> float:
        return float(self._node.get_clock().now().nanoseconds) * 1e-9

    def begin(self, plan: RunPlan, first: Window, model: RobotModel, config: ExcitationNodeConfig) -> None:
        """Send the first window, and the others as they become due.

        Raises
        ------
        ExcitationError
            If the clock or the joint states do not allow it; nothing has been sent then.
        """
        now = self._now()
        if now <= 0.0 or not self.state.time.came.is_set():
            raise ExcitationError('the clock stands still: use_sim_time is set, but nothing has come on /clock')
        watchdog = Watchdog(model.joint_names, model.limits.velocity, read_parameters(self._node, WatchdogConfig))
        watchdog.receive(self.state.fresh_position(), None, now, time.monotonic())
        self._link.begin(model.joint_names, self._guarded(self._on_feedback))
        self._latency, self._suspicion, self._clocks = config.latency, None, self._both_clocks()
        self.rested.clear()
        efforts = None
        if watchdog.config.push_tolerance > 0.0:
            unit = self._effort_unit(model.joint_names)
            efforts = EffortWatch(plan, unit, watchdog.config.push_tolerance)
            if np.isnan(unit).any():
                self._node.get_logger().info(
                    'efforts are only compared with those of the period before: the robot configuration does not say '
                    'what they are (effort, torque_constants)'
                )
        following = Following(plan, now + config.start_delay, watchdog, efforts)
        self.run = RunStream(following, self._worker, self._link)
        self.run.start(first)
        reference = self.run.reference_message()
        reference.header.frame_id = config.run
        publish(self._reference, reference)
        self._status.set(DiagnosticStatus.OK, 'on the way to the start', 'running')
        self._monitor.reset()

    def _effort_unit(self, joints: tuple[str, ...]) -> Array:
        """Return the torque per unit of the efforts in the joint states, NaN where it is not stated."""
        return np.full(len(joints), np.nan) if self._robot is None else self._robot.torque_per_effort(joints)

    def _on_monitor(self) -> None:
        run = self.run
        if run is None:
            self._monitor.cancel()
            return
        jump = self._clock_jump()
        if jump < -_CLOCK_JUMP:
            self._end_at_once(run, f'the clock jumped back by {-jump:.2f} s, as when a simulated world is reset')
            return
        elapsed = self._now() - run.begin
        if run.rest is not None:
            if elapsed >= run.rest + _MONITOR_PERIOD:
                self._confirm_rest(run, elapsed)
            return
        over = elapsed - run.plan.reference.duration
        problem = run.advance(elapsed)
        fault = self._link.fault() if over < 0.0 else None
        if fault is not None:
            self.stop(fault.reason, fault=True, held=fault.held)
        elif self._suspicion is not None:
            reason, since = self._suspicion
            if time.monotonic() - since >= max(self._link.result_delay, 0.0 if run.following.pushing else _HALT):
                self.stop(reason, fault=True)
        elif problem is not None:
            # Joint states may have come that could not be used.
            self.stop('; '.join(filter(None, (problem, self.state.problem))), fault=True)
        elif jump > _CLOCK_JUMP:
            self.stop(f'the clock jumped ahead by {jump:.2f} s', fault=True)
        elif over >= 0.0:
            self._conclude(over)
        else:
            phase = run.plan.phase(elapsed)
            self._status.text = {'ramp': 'on the way to the start', 'end': 'coming to rest'}.get(phase, phase)

    def _clock_jump(self) -> float:
        """Return by how much the clock jumped since the last look [s]; simulated time is only seen to go back."""
        before, self._clocks = self._clocks, self._both_clocks()
        went, passed = (new - old for new, old in zip(self._clocks, before, strict=True))
        return min(went, 0.0) if self._node.get_clock().ros_time_is_active else went - passed

    def _both_clocks(self) -> tuple[float, float]:
        """Return the node's time and that of a steady clock [s], read at one moment."""
        while True:
            first, clock, second = time.monotonic(), self._now(), time.monotonic()
            if second - first < 0.1 * _CLOCK_JUMP:  # else the thread was kept from running between them
                return clock, second

    def stop(self, reason: str, *, fault: bool, held: bool = False) -> None:
        """Bring the arm to rest, unless its controller ``held`` it already, and say why."""
        run = self.run
        if run is None or run.rest is not None:
            return
        if held:
            run.abandon(reason, self._now() - run.begin)
        else:
            self._bring_to_rest(run, reason, fault=fault)
        publish(self._reference, JointTrajectory(joint_names=list(run.plan.joint_names)))
        level = DiagnosticStatus.ERROR if fault else DiagnosticStatus.WARN
        self._status.set(level, f'stopping: {run.reason}', 'stopping')
        self._monitor.reset()

    def _bring_to_rest(self, run: RunStream, reason: str, *, fault: bool) -> None:
        run.following.clock_lag = self.state.offset.behind
        try:
            kind = run.stop(reason, self._now, self._latency, fault=fault)
        except Exception as cause:
            said = failure(self._node, cause)
            text = f'{reason}; no stop could be sent: use the stop of the arm itself, or wait for the end of the window'
            run.abandon(f'{text} ({said})', self._now() - run.begin)
            run.held = False  # nobody holds it: it is stopped once more where it is seen to move on
            return
        self._node.get_logger().info(f'the arm is brought to rest {kind.value}')
        if kind is StopKind.NOTHING:
            run.reason = f'{reason}; {self._likely_cause()}'

    def _likely_cause(self) -> str:
        """Return why an arm may rest off its path."""
        others = self._link.other_commanders()
        if others:
            return f'the arm rests off its path, and nothing was sent: {", ".join(others)} may have commanded it too'
        return (
            'the arm rests off its path, and nothing was sent: its controller was commanded by somebody else, holds, '
            'or was switched off, or the arm is in a protective stop'
        )

    def _confirm_rest(self, run: RunStream, elapsed: float) -> None:
        """End a stopped run when the arm was seen to rest; stop it again if the controller missed the stop."""
        assert run.rest is not None
        recent = run.following.recent
        resting, stamp = recent.resting(run.begin + run.rest), recent.stamp
        if resting:
            self._conclude(elapsed - run.rest)
        elif resting is not None and stamp is not None and not run.held and run.following.on_run(stamp):
            # A controller rejects what ended before it came: a message can be lost, and a computer can stall.
            self._node.get_logger().warning('the arm moves on: the stop was lost or came too late; stopping it again')
            run.stop(run.reason, self._now, 2.0 * self._latency, fault=run.fault)
        elif elapsed >= run.rest + _CONFIRMATION:
            seen = 'no joint state shows' if resting is None else 'the joint states do not show'
            self._conclude(elapsed - run.rest, f'{seen} that the arm rests: look at it')

    def _end_at_once(self, run: RunStream, reason: str) -> None:
        """End a run whose times mean nothing any more; nothing is sent."""
        if run.rest is None:
            run.abandon(reason, 0.0)
            publish(self._reference, JointTrajectory(joint_names=list(run.plan.joint_names)))
        else:
            run.reason = f'{run.reason}; then {reason}'
        self._conclude(float('inf'))

    def _conclude(self, waited: float, doubt: str = '') -> None:
        """End the run, ``waited`` seconds after the arm came to rest, once the controller has had its say."""
        problem = self._link.conclusion(waited)
        if problem is None:
            return
        problem = '; '.join(filter(None, (problem, doubt)))
        run = self.run
        assert run is not None
        self.run = None
        self._monitor.cancel()
        self.state.stop_listening()
        if run.rest is None:
            publish(self._reference, JointTrajectory(joint_names=list(run.plan.joint_names)))
            level, text = DiagnosticStatus.OK, 'the run is complete; the arm is at rest'
            state = 'finished'
        else:
            level = DiagnosticStatus.ERROR if run.fault else DiagnosticStatus.WARN
            state, text = 'stopped', f'stopped: {run.reason}'
        if problem:
            level, text = max(level, DiagnosticStatus.WARN), f'{text}; but {problem}'
        self._status.set(level, text, state)
        self.rested.set()

    def values(self) -> dict[str, object]:
        """Return what is worth a place in the status."""
        run = self.run
        if run is None:
            return {}
        elapsed = self._now() - run.begin
        return {
            'phase': run.plan.phase(elapsed),
            'tracking_error': run.following.watchdog.tracking_error,
            'elapsed': elapsed,
            'duration': run.plan.reference.duration,
            **self._link.values(),
        }


def _is_full(percent: float) -> bool:
    return abs(percent - _FULL_SPEED) <= _SCALING_TOLERANCE
