# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether an arm, and its controller, follow a run."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.execution.belief import Belief
from robotid_ros.execution.delay import DelayGrowth, delay_on_path, goes_on, motion_at
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.run import OUTSIDE, RunPlan
from robotid_ros.execution.stop import GENTLE_BRAKING
from robotid_ros.settings import Settings, setting

_SHOWS = 0.02
"""How far the reference gets before an arm that has not moved counts as not following [rad or m]."""
_SHOWS_LED = 5e-3
"""The same for the reference of the controller, which does not lag [rad or m]."""
_MOVED = 0.15
"""Part of that way that an arm has to be on: one that lags is not further, one that rests is at 0."""
_FRESH = 0.15
"""How old the controller's feedback may be to tell where it leads [s]; it comes at 20 Hz or more."""
_CONTROLLER_ON_PATH = 5e-3
"""Distance from the path at which a controller's own reference still counts as on it [rad or m]; knots at 50 Hz
meet the path to 1e-6."""
_STEADY = 0.004
"""Change of the delay that a healthy arm shows from place to place [s]; measured positions tell no less."""
_LASTS = 0.1
"""How long a controller has to be late until it is: one cycle of it may be [s]."""
_LEAP = 0.01
"""Way from which a delay at a single moment is believed [rad or m]: arms give way under load by less."""
_CLOSE = 1.0 / 3.0
"""Part of ``path_distance`` within which an arm that is late counts as late, and not as elsewhere."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogConfig(Settings):
    """What is still taken as right; each field's ``metadata`` has its description, unit and range."""

    error = ExcitationError

    # Less than 0.1 s cannot be told from a tick that came late.
    joint_state_timeout: float = setting(
        0.5,
        'Longest time without a joint state before the arm is stopped; after 0.3 of it the arm is led no further',
        unit='s',
        range=(0.1, 60.0),
    )
    tracking_tolerance: float = setting(
        0.2,
        'Largest distance between a joint and its reference before the arm is stopped',
        unit='rad or m',
        range=(1e-4, 10.0),
    )
    tracking_delay: float = setting(
        0.0, 'Known delay of the arm behind its reference, taken out of the tracking error', unit='s', range=(0.0, 1.0)
    )
    path_distance: float = setting(
        0.03,
        'Largest distance between a joint and its path, apart from a delay, at which the arm counts as being on it: '
        'only then it is sent the next piece, or stopped along the path',
        unit='rad or m',
        range=(1e-4, 10.0),
    )
    delay_tolerance: float = setting(
        0.02,
        'Largest growth of the delay behind the reference before the arm is stopped: 0.02 s are reached after 20 s '
        'at 99.9 % of the speed',
        unit='s',
        range=(1e-3, 1.0),
    )
    push_tolerance: float = setting(
        1.0,
        'Factor on how far efforts may be from those of the model, and of the period before, until the arm counts as '
        'pressing on something and is stopped; 0: efforts are not watched',
        range=(0.0, 100.0),
    )
    # A window begins half a second in the past: with clocks apart by more, the arm would be led off its path.
    clock_tolerance: float = setting(
        0.25,
        "Largest difference between the joint states' clock and the node's at which a run starts",
        unit='s',
        range=(0.01, 0.4),
    )
    stamp_error: float = setting(
        0.0,
        'How wrong single stamps of joint states may be, beyond 10 ms: a position jumps where no joint can have moved '
        'so far in the time between two stamps and this',
        unit='s',
        range=(0.0, 1.0),
    )


_LEAST = 1.0, GENTLE_BRAKING
"""Least limits of velocity and acceleration of a joint that has none [rad/s, rad/s^2 or m]."""


class Following:
    """Compares what is believed of an arm with its run; all times count from the start of the run [s].

    ``confirmed``: the arm, or its controller, was seen to follow. ``growth``: how much further the arm is behind its
    reference than at the beginning. ``tracking_error``: of the last joint state [rad or m]. ``efforts``: judges
    the efforts, where they are watched.
    """

    def __init__(self, plan: RunPlan, config: WatchdogConfig, efforts: EffortWatch | None = None) -> None:
        self.plan, self.config, self.efforts = plan, config, efforts
        self.belief = Belief(plan.joint_names, *_limits(plan), config.stamp_error)
        self._start = plan.reference.evaluate([0.0])[0][0]
        self.growth = DelayGrowth(len(self._start))
        self._outside = np.full(len(self._start), OUTSIDE)
        self.tracking_error = 0.0
        self.confirmed = False
        self._led: tuple[Array, float] | None = None
        self._on_time = -np.inf

    @property
    def usual_delay(self) -> float:
        """How far the arm was behind its reference at the beginning [s]."""
        return self.config.tracking_delay + self.growth.usual

    def reference(self, time: float) -> JointMotion:
        """Return the reference at a time."""
        return motion_at(self.plan.reference, time)

    def receive(
        self, position: Array, velocity: Array | None, time: float, now: float, effort: Array | None = None
    ) -> str | None:
        """Take in a joint state made at ``time``, and its efforts; return why the run cannot go on, or None."""
        problem = self.belief.receive(position, velocity, time, now)
        if problem is not None:
            return problem
        place = self.belief.motion.position
        expected = self.reference(time - self.config.tracking_delay)
        return (
            self._confirm(place, expected.position, _SHOWS, 'the arm')
            or self._watch_effort(expected, effort, time - self.config.tracking_delay)
            or self._watch_limits(place)
            or self._compare(place, expected.position)
            or self._watch_delay(expected, time)
        )

    def _compare(self, position: Array, expected: Array) -> str | None:
        """Return that the arm is too far from its reference, if it is."""
        error, allowed = np.abs(position - expected), self.config.tracking_tolerance
        self.tracking_error = float(error.max())
        if self.tracking_error <= allowed:
            return None
        k = int(np.argmax(error))
        return f"joint '{self.plan.joint_names[k]}' is {error[k]:.3g} away from its reference (allowed: {allowed:g})"

    def _watch_effort(self, expected: JointMotion, effort: Array | None, time: float) -> str | None:
        """Return that the arm presses on something, if its efforts show it."""
        if self.efforts is None or effort is None or not np.isfinite(effort).all():
            return None
        return self.efforts.receive(time, expected, self.belief.motion, effort)

    def _watch_limits(self, position: Array) -> str | None:
        """Return that a joint is beyond its limits by more than a healthy arm strays from its path.

        One that stood outside at the start is led inside, and may be no further out than it was.
        """
        limits, stray = self.plan.windows.check.model.limits, self.config.path_distance
        outside = np.maximum(np.maximum(limits.lower - position, position - limits.upper), 0.0)
        beyond = outside - self._outside
        self._outside = np.minimum(self._outside, outside)
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
            return f'the controller did not take the trajectory: {who} does not move'
        return None

    def _watch_delay(self, expected: JointMotion, time: float) -> str | None:
        """Return that the arm falls ever further behind its reference, if it goes on along its path."""
        motion, close = self.belief.motion, _CLOSE * self.config.path_distance
        if not self.growth.receive(motion, expected, time):
            return None
        problem = self._delay_problem(self.growth.value, 'the arm')
        # An arm that is elsewhere is not late. The search along the path takes as long as all the rest, and comes last.
        if problem and self._delay(motion, time, close) is None:
            return None
        return problem

    def _delay(self, motion: JointMotion, time: float, distance: float, *, at_speed: bool = False) -> float | None:
        """Return how far a motion is behind its usual place on the path [s], or None if it is not on the path."""
        usual = time - self.usual_delay
        return delay_on_path(self.plan.reference, motion, usual, distance, at_speed=at_speed)

    def _delay_problem(self, growth: float, who: str) -> str | None:
        allowed = self.config.delay_tolerance
        if abs(growth) <= allowed:
            return None
        side = 'behind' if growth > 0.0 else 'ahead of'
        return (
            f'{who} is {abs(growth) * 1e3:.0f} ms further {side} the reference than at the start (allowed: '
            f'{allowed * 1e3:.0f} ms): time is stretched (speed scaling), or the speed limited'
        )

    def receive_feedback(self, desired: Array, actual: Array, time: float) -> str | None:
        """Take in what the controller says of its own work at ``time``; return why the run cannot go on, or None.

        ``desired`` is the position it leads to, ``actual`` the one it measures, shape (n,) [rad or m].
        """
        names, allowed = self.plan.joint_names, self.config.tracking_tolerance
        for what, values in (('leads to', desired), ('measures', actual)):
            if not np.isfinite(values).all():
                k = int(np.argmin(np.isfinite(values)))
                return f"the controller {what} {values[k]} for joint '{names[k]}'"
        self._led = desired, time
        expected = self.reference(time)
        problem = self._confirm(desired, expected.position, _SHOWS_LED, 'its own reference')
        if problem is not None:
            return problem
        place = self._led_delay(time)[1] if self.confirmed else None
        far = place is not None and abs(place) * np.abs(expected.velocity).max() > _LEAP
        problem = self._delay_problem(place, 'the controller') if place is not None and far else None
        if problem is None:
            self._on_time = time
        elif time - self._on_time > _LASTS:
            return problem
        astray = np.abs(desired - expected.position)
        if astray.max() > allowed:
            k = int(np.argmax(astray))
            return (
                f"the controller leads joint '{names[k]}' {astray[k]:.3g} away from its reference "
                f'(allowed: {allowed:g}): somebody else commands it too, or it stretches time'
            )
        problem = self._compare(actual, self.reference(time - self.config.tracking_delay).position)
        return None if problem is None else f'by the state of the controller, {problem}'

    def _led_delay(self, time: float) -> tuple[bool, float | None]:
        """Return whether the controller says where it leads, and how far behind schedule [s]; None: elsewhere."""
        if self._led is None or time - self._led[1] > _FRESH:
            return False, None
        led, when = self._led
        motion = JointMotion(position=led, velocity=np.zeros_like(led))
        return True, delay_on_path(self.plan.reference, motion, when, _CONTROLLER_ON_PATH, at_speed=False)

    def shift(self, time: float, taken: float) -> float | None:
        """Return by how much the next piece has to be later than its schedule [s], or None if the arm is elsewhere.

        What a controller that replaces its trajectory at once would leap by is kept below a hundredth of a radian, as
        far as positions tell it: ``taken`` is when it does so [s]. An arm that stands while its path goes on would leap
        by all that the path does until then.
        """
        known, led = self._led_delay(time)
        if known and led is None:
            return None
        belief, growth = self.belief, self.growth
        if np.isneginf(belief.place_time):
            return 0.0
        when, distance = belief.place_time, self.config.path_distance
        delay = None if belief.lying.any() else self._delay(belief.motion, when, distance, at_speed=True)
        if delay is None:
            return None
        if known:
            return led
        usual = self.usual_delay
        leap = np.abs(self.reference(taken - usual).position - belief.motion.position).max()
        if leap > _LEAP and not goes_on(belief.motion, self.reference(when - usual)):
            return None
        fastest = float(np.abs(self.reference(when - delay).velocity).max())
        if growth.known and abs(delay) * fastest > _LEAP:
            return None if abs(delay) > self.config.delay_tolerance else delay
        return growth.value if abs(growth.value) > _STEADY else 0.0

    def path_place(self, distance: float | None = None) -> float | None:
        """Return by how much the arm is behind the time of its last believed place [s]; None: not on the path.

        On the path is what is within a distance of it [rad or m]; by default ``path_distance``.
        """
        belief, distance = self.belief, self.config.path_distance if distance is None else distance
        if np.isneginf(belief.place_time):
            return 0.0
        motion, when = belief.motion, belief.place_time
        return delay_on_path(self.plan.reference, motion, when, distance, at_speed=False)


def _limits(plan: RunPlan) -> tuple[Array, Array]:
    """Return the limits of velocity and acceleration, and where there is none, twice what the run needs.

    Shape (n,) each [rad/s, rad/s^2 or m].
    """
    limits = plan.checks[-1].limits
    velocity, acceleration = (
        np.where(np.isfinite(limit), limit, np.maximum(2.0 * most, least))
        for limit, most, least in zip((limits.velocity, limits.acceleration), plan.needs(), _LEAST, strict=True)
    )
    return velocity, acceleration
