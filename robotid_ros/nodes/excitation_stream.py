# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A run under way: which window is to be sent when, and whether the arm follows."""

import time
from collections.abc import Callable

import numpy as np
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.errors import RobotIdError
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.watchdog import Watchdog
from robotid_ros.execution.windows import Window
from robotid_ros.nodes.controller_link import ControllerFeedback, ControllerLink
from robotid_ros.nodes.conversions import trajectory_message
from robotid_ros.nodes.runtime import BackgroundWorker

__all__ = ['RunStream']

_LATE = 1.0
"""How long a window may be overdue before the run is given up [s]; its predecessor lasts longer."""

_PLANNINGS = 4
"""How often a stop is planned at most before it is sent, late or not."""


class RunStream:
    """Sends the windows of a run and watches the arm.

    Attributes
    ----------
    rest : float or None
        When the arm comes to rest after a stop, from the start of the run [s]; None while it runs.
    reason : str
        Why it was stopped.
    fault : bool
        The reason is a fault, not a request.
    held : bool
        The controller brought the arm to a halt by itself.

    Parameters
    ----------
    plan : RunPlan
    begin : float
        The node's time at which the run begins [s].
    watchdog : Watchdog
    worker : BackgroundWorker
        Makes the windows off the executor's thread.
    link : ControllerLink
        Takes the windows to the controller.
    """

    def __init__(
        self,
        plan: RunPlan,
        begin: float,
        watchdog: Watchdog,
        worker: BackgroundWorker,
        link: ControllerLink,
    ) -> None:
        self.plan, self.begin, self.watchdog = plan, begin, watchdog
        self._worker, self._link = worker, link
        self._next = 0
        self._looked = time.monotonic()
        self._prepared: Future | None = None
        self.rest: float | None = None
        self.reason, self.fault, self.held = '', False, False

    def start(self, first: Window) -> None:
        """Send the first window and have the next one made."""
        self._link.send(self._message(first))
        self._prepare_next()

    def reference_message(self) -> JointTrajectory:
        """Return one period of the reference, stamped with the start of the first period."""
        times, *motion = self.plan.one_period(self.plan.windows.knots.rate)
        return trajectory_message(self.plan.joint_names, self.begin + self.plan.begin, times, *motion)

    def judge(self, position: Array, velocity: Array | None, stamp: float) -> str | None:
        """Return what is wrong with a joint state, measured at ``stamp`` [s], or None."""
        problem = self.watchdog.receive(position, velocity, stamp, time.monotonic())
        if problem is not None:
            return problem
        return self.watchdog.compare(position, self._reference_at(stamp - self.watchdog.config.tracking_delay))

    def judge_feedback(self, feedback: ControllerFeedback) -> str | None:
        """Return what is wrong with what the controller says of itself, or None."""
        names, tolerance = self.plan.joint_names, self.watchdog.config.tracking_tolerance
        for what, values in (('leads to', feedback.desired), ('measures', feedback.actual)):
            if not np.isfinite(values).all():
                k = int(np.argmin(np.isfinite(values)))
                return f"the controller {what} {values[k]} for joint '{names[k]}'"
        astray = np.abs(feedback.desired - self._reference_at(feedback.stamp))
        if astray.max() > tolerance:
            k = int(np.argmax(astray))
            return (
                f"the controller leads joint '{names[k]}' {astray[k]:.3g} away from its reference "
                f'(allowed: {tolerance:g}): somebody else commands it too, or it stretches time'
            )
        problem = self.watchdog.compare(
            feedback.actual, self._reference_at(feedback.stamp - self.watchdog.config.tracking_delay)
        )
        return None if problem is None else f'by the feedback of the controller, {problem}'

    def _reference_at(self, stamp: float) -> Array:
        """Return the position of the reference, shape (n,), at a time of the node's clock [s]."""
        inside = min(max(stamp - self.begin, 0.0), self.plan.reference.duration)
        position: Array = self.plan.reference.evaluate([inside])[0][0]
        return position

    def advance(self, elapsed: float) -> str | None:
        """Send what is due; return a sentence if the run cannot go on.

        Parameters
        ----------
        elapsed : float
            Time from the start of the run [s].
        """
        now = time.monotonic()
        # Kept from looking, we may not have heard what has come: the queue first, then the judgement.
        slept, self._looked = now - self._looked > 0.5 * self.watchdog.config.joint_state_timeout, now
        problem = None if slept else self.watchdog.silence(now)
        if problem is not None or self._prepared is None:
            return problem
        late = elapsed - self.plan.windows.due(self._next)
        if late < 0.0:
            return None
        if not self._prepared.done():
            return 'the next piece of the trajectory was not ready in time' if late > _LATE else None
        try:
            self._link.send(self._message(self._prepared.result()))
        except RobotIdError as cause:
            return str(cause)
        self._prepare_next()
        return None

    def follows(self, position: Array, stamp: float) -> bool:
        """Return whether the arm, seen at ``stamp`` [s], still moves along the reference."""
        away = np.abs(position - self._reference_at(stamp - self.watchdog.config.tracking_delay))
        inside = stamp - self.begin < self.plan.reference.duration
        return inside and bool((away <= self.watchdog.config.tracking_tolerance).all())

    def stop(self, reason: str, clock: Callable[[], float], latency: float, *, fault: bool) -> None:
        """Send a stop along the path; from then on ``rest`` is known.

        A stop that reaches the controller after it should have begun makes the arm jump to it. So one
        whose planning took too long, on a busy machine, is planned again from further on.

        Parameters
        ----------
        reason : str
        clock : callable
            Returns the node's time [s].
        latency : float
            What the message takes to the controller [s].
        fault : bool
        """
        self.reason, self.fault, self._prepared = reason, fault, None
        lead = latency
        for _ in range(_PLANNINGS):
            elapsed = clock() - self.begin
            self.rest, window = self.plan.windows.stop(elapsed, lead)
            message = self._message(window)
            took = clock() - self.begin - elapsed
            if took <= lead - 0.5 * latency:
                break
            lead = latency + 2.0 * took
        self._link.stop(message)

    def abandon(self, reason: str, elapsed: float) -> None:
        """Send nothing more: the controller holds the arm, and any trajectory would make it jump."""
        self.rest, self.reason, self.fault, self._prepared = elapsed, reason, True, None
        self.held = True

    def _message(self, window: Window) -> JointTrajectory:
        return trajectory_message(
            self.plan.joint_names,
            self.begin + window.stamp,
            window.times - window.stamp,
            window.position,
            window.velocity,
            window.acceleration,
        )

    def _prepare_next(self) -> None:
        self._next += 1
        windows = self.plan.windows
        self._prepared = self._worker.run(windows.window, self._next) if self._next < windows.count else None
