# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether an arm follows its run, and how it is brought to rest when it does not, or is told to stop.

A window of knots is continuous only for a controller that is on the path already: it makes the controller's
reference step there. So a window, and a stop along the path, is for an arm on its path. An arm that moves elsewhere
is stopped from its measured state. An arm that rests elsewhere is sent nothing: whatever holds it there
(another commander, a controller that holds or was switched off, a protective stop) would be overridden. Only where
its controller leads on, so that it presses on something, it is held where it is.
"""

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.execution.delay import DelayGrowth, delay_on_path, motion_at
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.measured_stop import JointMotion, plan_measured_stop
from robotid_ros.execution.recent_motion import RecentMotion
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.watchdog import Watchdog
from robotid_ros.execution.windows import Window

_SHOWS = 0.02
"""How far the reference gets before an arm that has not moved counts as not following [rad or m]."""
_SHOWS_LED = 5e-3
"""The same for the reference of the controller, which does not lag [rad or m]."""
_MOVED = 0.15
"""Part of that way that an arm has to be on: one that lags is not further, one that rests is at 0."""
_FRESH = 0.15
"""How old the controller's feedback may be to decide on a stop [s]; it comes at 20 Hz or more."""
_CONTROLLER_ON_PATH = 5e-3
"""Distance from the path at which a controller's own reference still counts as on it [rad or m]; knots at 50 Hz
meet the path to 1e-6."""
_STEADY = 0.004
"""Change of the delay that a healthy arm shows from place to place [s]; measured positions tell no less."""
_REPEATED = 0.05
"""How long positions stay equal to the last bit before nobody seems to measure them [s]; encoders flicker."""
_STRETCHED = 0.01
"""Delay from which an arm is no longer stopped along its path [s]: it grows while the message is on its way."""
_CLOSE = 1.0 / 3.0
"""Part of ``path_distance`` within which an arm that is late counts as late, and not as elsewhere."""
_FASTER = 1.2
"""Factor on the velocity limits above which a velocity is not believed: no healthy drive gets there."""
_BLIND = 3.0
"""Factor on the latency where the arm may move unseen: it is not where it is thought to be for longer."""
_RESTED = 0.06
"""How long an arm must have kept its place to count as resting where a stop is decided [s]."""
_RESTING_SPEED = 0.05
"""Below this speed an arm that kept its place counts as resting [rad/s or m/s]."""


class StopKind(Enum):
    """How an arm is brought to rest."""

    ALONG_PATH = 'along its path'
    MEASURED = 'from its measured state'
    NOTHING = 'by sending nothing'


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """What brings an arm to rest.

    Attributes
    ----------
    kind : StopKind
    rest : float
        When the arm rests, from the start of the run [s].
    window : Window or None
        What is sent.
    shift : float
        By how much it is later than the schedule of the run [s].
    """

    kind: StopKind
    rest: float
    window: Window | None
    shift: float = 0.0


class Following:
    """Compares an arm with its run, joint state after joint state.

    Attributes
    ----------
    confirmed : bool
        The arm, or its controller, was seen to follow.
    growth : DelayGrowth
        How much further the arm is behind its reference than at the beginning.
    pushing : bool
        The efforts show that the arm presses on something.
    clock_lag : float
        How far the stamps are behind the clock of ``begin`` at least: what they are more was spent waiting [s].
    stretched : bool
        Set when the controller was heard to stretch time. It is behind its schedule then by more from cycle to cycle,
        so that any piece of the path would make its reference leap.

    Parameters
    ----------
    plan : RunPlan
    begin : float
        When the run begins, on the clock of the stamps [s].
    watchdog : Watchdog
        With the first joint state received.
    efforts : EffortWatch, optional
        Judges the efforts, where they are watched.
    """

    def __init__(self, plan: RunPlan, begin: float, watchdog: Watchdog, efforts: EffortWatch | None = None) -> None:
        self.plan, self.begin, self.watchdog, self.efforts = plan, begin, watchdog, efforts
        self.pushing = self.stretched = False
        self.clock_lag = 0.0
        self.recent = RecentMotion()
        self.confirmed = False
        self._start = plan.reference.evaluate([0.0])[0][0]
        self.growth = DelayGrowth(len(self._start))
        self._jumped, self._received = False, -np.inf
        self._feedback: tuple[float, float] | None = None
        self._led, self._told = RecentMotion(), RecentMotion()
        self._not_taken = False
        self._same_since: float | None = None

    def reference(self, stamp: float) -> JointMotion:
        """Return the reference at a time of the stamps' clock [s]."""
        return motion_at(self.plan.reference, stamp - self.begin)

    def receive(
        self, position: Array, velocity: Array | None, stamp: float, now: float, effort: Array | None = None
    ) -> str | None:
        """Take in a joint state, see :meth:`Watchdog.receive`, and its efforts; return why the run cannot go on."""
        problem = self.watchdog.receive(position, velocity, stamp, now)
        before = self.recent.latest
        if problem is not None:
            here = self.watchdog.position
            elsewhere = here is not None and before is not None and not np.array_equal(here, before.position)
            self._jumped = self._jumped or (elsewhere and self.shift(now) is not None)
            return problem
        if before is None or not np.array_equal(before.position, position):
            self._same_since = stamp
        self.recent.receive(stamp, position, velocity)
        self._received = now
        delay = self.watchdog.config.tracking_delay
        expected = self.reference(stamp - delay)
        return (
            self._watch_effort(expected, position, effort, stamp - delay)
            or self._watch_limits(position)
            or self.watchdog.compare(position, expected.position)
            or self._confirm(position, expected.position, _SHOWS, 'the arm')
            or self._watch_delay(expected, stamp)
        )

    def _watch_effort(self, expected: JointMotion, position: Array, effort: Array | None, stamp: float) -> str | None:
        """Return that the arm presses on something, if its efforts show it."""
        if self.efforts is None or effort is None:
            return None
        problem = self.efforts.receive(stamp - self.begin, expected, position, effort)
        self.pushing = self.pushing or problem is not None
        return problem

    def _watch_limits(self, position: Array) -> str | None:
        """Return that a joint is beyond its limits by more than a healthy arm strays from its path."""
        limits, stray = self.plan.windows.check.model.limits, self.watchdog.config.path_distance
        beyond = np.maximum(limits.lower - position, position - limits.upper)
        k = int(np.argmax(beyond))
        if beyond[k] <= stray:
            return None
        return (
            f"joint '{self.plan.joint_names[k]}' is at {position[k]:.4g}, outside its limits {limits.lower[k]:.4g} to "
            f'{limits.upper[k]:.4g}'
        )

    def _confirm(self, position: Array, expected: Array, shows: float, who: str) -> str | None:
        """Return that the controller did not take the run, if the arm or the controller's reference shows it."""
        if self.confirmed:
            return None
        start = self._start
        way = expected - start
        length = float(np.abs(way).max())
        moved = float((position - start) @ way / max(float(way @ way), 1e-12))
        if length > 0.5 * shows and moved > _MOVED:
            self.confirmed = True
        elif length > shows:
            self._not_taken = True
            return f'the controller did not take the trajectory: {who} does not move'
        return None

    def _watch_delay(self, expected: JointMotion, stamp: float) -> str | None:
        """Return that the arm falls ever further behind its reference, if it goes on along its path."""
        motion, reference, close = self.recent.latest, self.plan.reference, _CLOSE * self.watchdog.config.path_distance
        if motion is None or not self.growth.receive(motion, expected, stamp):
            return None
        problem = self._delay_problem(self.growth.value, 'the arm')
        # An arm that is elsewhere is not late. The search along the path takes as long as all the rest, and comes last.
        if problem and delay_on_path(reference, motion, self._usual_place(stamp), close, at_speed=False) is None:
            return None
        return problem

    def _usual_place(self, stamp: float) -> float:
        """Return where on its path an arm is at a stamp that is as late as at the beginning [s]."""
        return stamp - self.begin - self.watchdog.config.tracking_delay - self.growth.usual

    def _delay_problem(self, growth: float, who: str) -> str | None:
        allowed = self.watchdog.config.delay_tolerance
        if abs(growth) <= allowed:
            return None
        side = 'behind' if growth > 0.0 else 'ahead of'
        return (
            f'{who} is {abs(growth) * 1e3:.0f} ms further {side} the reference than at the start (allowed: '
            f'{allowed * 1e3:.0f} ms): time is stretched (speed scaling), or the speed limited'
        )

    def receive_feedback(self, stamp: float, desired: Array, actual: Array, now: float) -> str | None:
        """Take in what the controller says of its own work; return why the run cannot go on, or None.

        ``desired`` is the position it leads to, ``actual`` the one it measures, shape (n,) [rad or m]; ``now`` is when
        this came, on a clock that never stands still [s].
        """
        names, tolerance = self.plan.joint_names, self.watchdog.config.tracking_tolerance
        for what, values in (('leads to', desired), ('measures', actual)):
            if not np.isfinite(values).all():
                k = int(np.argmin(np.isfinite(values)))
                return f"the controller {what} {values[k]} for joint '{names[k]}'"
        self._feedback = stamp, now
        self._led.receive(stamp, desired)
        self._told.receive(stamp, actual)
        expected = self.reference(stamp)
        problem = self._confirm(desired, expected.position, _SHOWS_LED, 'its own reference')
        if problem is not None:
            return problem
        place = self._controller_place(now)[1] if self.confirmed else None
        problem = None if place is None else self._delay_problem(place, 'the controller')
        if problem is not None:
            return problem
        astray = np.abs(desired - expected.position)
        if astray.max() > tolerance:
            k = int(np.argmax(astray))
            return (
                f"the controller leads joint '{names[k]}' {astray[k]:.3g} away from its reference "
                f'(allowed: {tolerance:g}): somebody else commands it too, or it stretches time'
            )
        problem = self.watchdog.compare(actual, self.reference(stamp - self.watchdog.config.tracking_delay).position)
        return None if problem is None else f'by the state of the controller, {problem}'

    def _controller_place(self, now: float) -> tuple[bool, float | None]:
        """Return whether the controller says where it leads, and how far behind schedule [s]; None: elsewhere."""
        feedback = self._feedback
        if feedback is None or now - feedback[1] > _FRESH:
            return False, None
        led = self._led.latest
        assert led is not None
        return True, delay_on_path(self.plan.reference, led, feedback[0] - self.begin, _CONTROLLER_ON_PATH)

    def _measured(self, now: float) -> tuple[JointMotion, float, float] | None:
        """Return the newest measured motion, its stamp and its age [s]."""
        recent, arrival = self._newest()
        motion, stamp = recent.latest, recent.stamp
        if motion is None or stamp is None:
            return None
        fastest = _FASTER * self.plan.windows.check.model.limits.velocity
        motion = replace(motion, velocity=np.clip(motion.velocity, -fastest, fastest))
        return motion, stamp, now - arrival

    def _newest(self) -> tuple[RecentMotion, float]:
        """Return what was measured last, and when it came: by the joint states, or by the controller."""
        feedback = self._feedback
        if feedback is not None and feedback[1] > self._received + _FRESH:
            return self._told, feedback[1]
        return self.recent, self._received

    def shift(self, now: float) -> float | None:
        """Return by how much the arm is behind its schedule [s], or None if it is not on its path.

        ``now`` is on the clock of the arrivals [s].
        """
        measured, distance = self._measured(now), self.watchdog.config.path_distance
        if measured is None:
            return 0.0
        motion, stamp, _ = measured
        place = delay_on_path(self.plan.reference, motion, self._usual_place(stamp), distance)
        known, led = self._controller_place(now)
        if place is None or (known and led is None):
            return None
        if known:
            return led
        return self.growth.value if abs(self.growth.value) > _STEADY else 0.0

    def stop(self, elapsed: float, now: float, latency: float) -> Stop:
        """Return how the arm is brought to rest from what it does now.

        ``elapsed`` counts from the start of the run, ``now`` is on the clock of the arrivals, and ``latency`` is what a
        message takes to the controller [s].
        """
        shift, measured = self.shift(now), self._measured(now)
        path = self.reference(self.begin + elapsed)
        known, led = self._controller_place(now)
        position = self.watchdog.position
        if self._jumped and position is not None and not known:
            # A joint jumped. Either the measurement is wrong, and the arm is on its path, or it is right. What came
            # after the jump tells no more, and a velocity across it is none.
            doubted = JointMotion(position=position, velocity=path.velocity)
            return self._measured_stop([*self._path(elapsed, _BLIND * latency), doubted], elapsed, latency)
        on_path = shift is not None and abs(shift) < _STRETCHED and (self.confirmed or elapsed < 0.0)
        if on_path and shift is not None and not self.pushing and not self.stretched:
            rest, window = self.plan.windows.stop(elapsed - shift, latency)
            return Stop(kind=StopKind.ALONG_PATH, rest=rest + shift, window=window, shift=shift)
        driven = led is not None if known else self.pushing or self._repeats() or not self.confirmed
        # Positions that repeat to the last bit may be those of a driver that is stuck: the arm may move unseen.
        not_taken = self._not_taken and (known or not self._repeats())
        if not_taken or (self.resting() and not driven and not self.stretched):
            return Stop(kind=StopKind.NOTHING, rest=elapsed, window=None)
        # Where no joint state came since the start, the arm may have set out from there all the same.
        at_start = JointMotion(position=self._start, velocity=np.zeros_like(self._start)), self.begin, 0.0
        motion, stamp, age = measured or at_start
        # On a busy machine a joint state waits in its queue: what it tells is older than its arrival.
        age = max(age, self.begin + elapsed - stamp - self.clock_lag) if measured else age
        if self._repeats():
            latency *= _BLIND
        stale = age > _FRESH
        near = np.abs(path.position - motion.position).max() < 2.0 * self.watchdog.config.tracking_tolerance
        motion = motion.after(min(age, _FRESH))
        starts = [motion.after(0.5 * latency), motion, motion.after(latency)]
        if stale and shift is not None and not self.pushing:
            # It was on its path when it was seen last, and has gone on along it since, if its controller leads it.
            starts = [*self._path(elapsed, latency), *starts]
        elif near:
            starts += self._path(elapsed, latency)
        # A joint that presses on something is led back to where it did not: held in place, it would go on pressing.
        back_to = self.efforts.clear if self.pushing and self.efforts is not None else None
        return self._measured_stop(starts, elapsed, latency, back_to)

    def _path(self, elapsed: float, latency: float) -> list[JointMotion]:
        """Return what an arm on its path may do when a message takes effect, the middle of it first."""
        return [self.reference(self.begin + elapsed + part * latency) for part in (0.5, 0.0, 1.0)]

    def on_run(self, stamp: float) -> bool:
        """Return whether the arm, seen at ``stamp`` [s], still moves along its run."""
        motion = self.recent.latest
        if motion is None or stamp - self.begin >= self.plan.reference.duration:
            return False
        expected = self.reference(stamp - self.watchdog.config.tracking_delay).position
        return bool((np.abs(motion.position - expected) <= self.watchdog.config.tracking_tolerance).all())

    def _measured_stop(
        self, starts: list[JointMotion], elapsed: float, latency: float, back_to: Array | None = None
    ) -> Stop:
        stop = plan_measured_stop(starts, self.plan.windows.check, back_to)
        zero = np.zeros((1, len(stop.goal)))
        window = Window(
            due=elapsed, stamp=None, times=np.array([stop.duration]), position=stop.goal[None], velocity=zero,
            acceleration=zero, last=True,
        )  # fmt: skip
        return Stop(kind=StopKind.MEASURED, rest=elapsed + latency + stop.duration, window=window)

    def _repeats(self) -> bool:
        """Return whether the joint states only repeat the last one: the arm may then move unmeasured."""
        stamp = self.recent.stamp
        return stamp is not None and self._same_since is not None and stamp - self._same_since > _REPEATED

    def resting(self) -> bool | None:
        """Return whether the arm rests; None: it is slow, but it was not for long enough to say so."""
        recent, _ = self._newest()
        motion, stamp = recent.latest, recent.stamp
        if motion is None or stamp is None or float(np.abs(motion.velocity).max()) >= _RESTING_SPEED:
            return False
        return True if recent.resting(stamp - _RESTED) else None
