# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A run under way: what is sent to the controller, and when."""

import time
from collections.abc import Callable

from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.errors import RobotIdError
from robotid_ros.execution.following import Following, StopKind
from robotid_ros.execution.windows import Window
from robotid_ros.nodes.controller_link import ControllerLink
from robotid_ros.nodes.conversions import trajectory_message
from robotid_ros.nodes.runtime import BackgroundWorker

_LATE = 1.0
"""How long a window may be overdue before the run is given up [s]; its predecessor lasts longer."""

_PLANNINGS = 4
"""How often a stop is planned at most before it is sent, late or not."""

_REPEAT = 0.1
"""How often the first window is sent again until the motion begins [s]: a controller may be found late."""


class RunStream:
    """Sends the windows of a run, and its stop; the worker makes them off the executor's thread.

    Attributes
    ----------
    rest : float or None
        When the arm comes to rest after a stop, from the start of the run [s]; None while it runs.
    reason : str
        Why it was stopped.
    fault : bool
        The reason is a fault, not a request.
    held : bool
        Nothing was sent: the arm rested already, or its controller had brought it to a halt.
    """

    def __init__(self, following: Following, worker: BackgroundWorker, link: ControllerLink) -> None:
        self.following, self.plan, self.begin = following, following.plan, following.begin
        self._worker, self._link = worker, link
        self._next = 0
        self._first: tuple[JointTrajectory, float] | None = None
        self._late = False
        self._looked = time.monotonic()
        self._prepared: Future | None = None
        self.rest: float | None = None
        self.reason, self.fault, self.held = '', False, False

    def start(self, first: Window) -> None:
        """Send the first window and have the next one made."""
        message = self._message(first)
        self._link.send(message)
        self._first = message, time.monotonic()
        self._prepare_next()

    def reference_message(self) -> JointTrajectory:
        """Return one period of the reference, stamped with the start of the first period."""
        times, *motion = self.plan.one_period(self.plan.windows.knots.rate)
        return trajectory_message(self.plan.joint_names, self.begin + self.plan.begin, times, *motion)

    def advance(self, elapsed: float) -> str | None:
        """Send what is due ``elapsed`` seconds after the start; return a sentence if the run cannot go on."""
        now = time.monotonic()
        # A late tick runs before the joint states that queued meanwhile are processed: the next tick decides.
        late, self._looked = now - self._looked > 0.5 * self.following.watchdog.config.joint_state_timeout, now
        excused, self._late = late and not self._late, late
        problem = None if excused else self.following.watchdog.silence(now)
        if problem is not None:
            return problem
        self._repeat_first(elapsed, now)
        if self._prepared is None:
            return None
        overdue = elapsed - self.plan.windows.due(self._next)
        if overdue < 0.0:
            return None
        if not self._prepared.done():
            return 'the next piece of the trajectory was not ready in time' if overdue > _LATE else None
        shift = self.following.shift(now)
        if shift is None:
            return 'the arm, or what its controller leads it to, is off the path where the next piece begins'
        try:
            self._link.send(self._message(self._prepared.result(), shift))
        except RobotIdError as cause:
            return str(cause)
        self._prepare_next()
        return None

    def _repeat_first(self, elapsed: float, now: float) -> None:
        """Send the first window again: a topic does not tell whether the controller was among its subscribers."""
        if self._first is None:
            return
        message, sent = self._first
        if self._link.answers or elapsed >= 0.0:  # from the first motion on, it would make an arm at rest jump
            self._first = None
        elif now - sent >= _REPEAT:
            self._link.send(message)
            self._first = message, now

    def stop(self, reason: str, clock: Callable[[], float], latency: float, *, fault: bool) -> StopKind:
        """Bring the arm to rest from what it does now, and return how; from then on ``rest`` is known.

        A stop is planned for the moment it reaches the controller, ``latency`` seconds after it is sent. If planning
        took too long, on a busy machine, it is planned again from what the arm does then. ``clock`` returns the node's
        time [s].
        """
        self.reason, self.fault, self._prepared, self._first = reason, fault, None, None
        lead = latency
        for _ in range(_PLANNINGS):
            elapsed = clock() - self.begin
            stop = self.following.stop(elapsed, time.monotonic(), lead)
            message = None if stop.window is None else self._message(stop.window, stop.shift)
            took = clock() - self.begin - elapsed
            if took <= lead - 0.5 * latency:
                break
            lead = latency + 2.0 * took
        self.rest, self.held = stop.rest, message is None
        if message is not None:
            self._link.stop(message)
        return stop.kind

    def abandon(self, reason: str, elapsed: float) -> None:
        """Send nothing more: the controller holds the arm, and any trajectory would override that."""
        self.rest, self.reason, self.fault, self._prepared = elapsed, reason, True, None
        self._first, self.held = None, True

    def _message(self, window: Window, shift: float = 0.0) -> JointTrajectory:
        start = 0.0 if window.stamp is None else self.begin + window.stamp + shift
        return trajectory_message(
            self.plan.joint_names,
            start,
            window.times - (window.stamp or 0.0),
            window.position,
            window.velocity,
            window.acceleration,
        )

    def _prepare_next(self) -> None:
        self._next += 1
        windows = self.plan.windows
        self._prepared = self._worker.run(windows.window, self._next) if self._next < windows.count else None
