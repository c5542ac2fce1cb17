# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From a reference to the messages of a trajectory controller: overlapping windows that end at rest.

A joint_trajectory_controller replaces its trajectory by each new message, refuses a last point that
moves, and loses messages that are too large. A long run is therefore a sequence of windows of few
knots that share one absolute start time. Knots lie on one grid, so where windows overlap they are
equal; each window ends in a stop along the path, so that the arm comes to rest by itself when no
more windows come.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.constraints import Constraint
from robotid_ros.excitation.motion import Motion
from robotid_ros.excitation.observation import Observation
from robotid_ros.excitation.reference import Reference, SlowedDown
from robotid_ros.excitation.verification import Peak, require_within
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel

__all__ = ['KnotPlan', 'ReferenceCheck', 'Window', 'WindowPlan', 'plan_stop', 'stop_durations']

_SHORTEST_STOP, _USUAL_STOP, _LONGEST_STOP, _STOP_LENGTHS = 0.1, 1.6, 8.0, 11
_LEAST_SPAN = 1.0
_CHECK_RATE = 250.0
_STOP_TOLERANCE = 1e-3
_GENTLE_BRAKING = 5.0  # rad/s^2, where no limit is given


@dataclass(frozen=True, slots=True, kw_only=True)
class KnotPlan:
    """How a reference is cut into knots and windows.

    Attributes
    ----------
    rate : float
        Knots per second [Hz].
    points : int
        Most knots in one window.
    history : float
        How far a window reaches back before the moment it is due [s]. A controller that replaces
        its trajectory at once finds the present inside the window, and nothing jumps. A controller
        that goes on until the new start, and shifts a start that is past, wants it in the future:
        then this is negative.
    """

    rate: float = 50.0
    points: int = 1000
    history: float = 0.5

    def __post_init__(self) -> None:
        if not (self.rate > 0.0 and self.points > 2):
            raise ExcitationError(
                f'expected a positive rate and more than 2 knots, got {self.rate:g} and {self.points}'
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One message to the controller.

    Attributes
    ----------
    due : float
        When it is to be sent, from the start of the run [s].
    stamp : float
        What the message's times count from: 0 for the start of the run, or the window's own start
        where that has to lie in the future [s].
    times : ndarray, shape (K,)
        Of the knots, from the start of the run, strictly increasing [s].
    position, velocity, acceleration : ndarray, shape (K, n)
        [rad, rad/s, rad/s^2]
    last : bool
        It ends with the reference itself, not with a stop before its end.
    """

    due: float
    stamp: float
    times: Array
    position: Array
    velocity: Array
    acceleration: Array
    last: bool


@dataclass(frozen=True, kw_only=True)
class ReferenceCheck:
    """The limits a reference has to keep, whatever it is made of.

    Attributes
    ----------
    model : RobotModel
    limits : JointLimits
    constraints : tuple of Constraint
        Everything to keep, joint limits included.
    observation : Observation or None
        Needed by torque limits.
    """

    model: RobotModel
    limits: JointLimits
    constraints: tuple[Constraint, ...]
    observation: Observation | None

    def peaks(self, reference: Reference, *, rate: float = _CHECK_RATE, start: float = 0.0) -> list[Peak]:
        """Return how close a reference comes to every bound.

        Parameters
        ----------
        reference : Reference
        rate : float
            Samples per second [Hz].
        start : float
            Added to the times in messages [s].
        """
        times = np.linspace(0.0, reference.duration, max(2, int(np.ceil(reference.duration * rate)) + 1))
        position, velocity, acceleration = reference.evaluate(times)
        jerk = np.gradient(acceleration, times, axis=0)
        result: list[Peak] = []
        worst: dict[int, tuple[float, float]] = {}
        bounds = [bound for constraint in self.constraints for bound in constraint.bounds]
        regressor_of = None if self.observation is None else self.observation.regressor
        for k in range(0, len(times), 4000):
            part = slice(k, k + 4000)
            motion = Motion(
                self.model,
                times[part],
                (position[part], velocity[part], acceleration[part], jerk[part]),
                regressor_of,
            )
            excess = np.hstack([constraint.evaluate(motion)[0] for constraint in self.constraints])
            for column in range(excess.shape[1]):
                row = int(np.argmax(excess[:, column]))
                if column not in worst or excess[row, column] > worst[column][0]:
                    worst[column] = float(excess[row, column]), float(times[part][row])
        for column, (value, time) in worst.items():
            result.append(Peak(bound=bounds[column], excess=value, time=time + start))
        return result

    def excess(self, reference: Reference, *, rate: float = _CHECK_RATE) -> float:
        """Return the largest normalised excess of a reference over all bounds."""
        return max((peak.excess for peak in self.peaks(reference, rate=rate)), default=-np.inf)

    def require(self, reference: Reference, what: str) -> list[Peak]:
        """Refuse a reference that breaks a limit.

        Raises
        ------
        ExcitationError
            Naming what breaks which limit of which joint, and when.
        """
        peaks = self.peaks(reference)
        try:
            require_within(peaks)
        except ExcitationError as cause:
            raise ExcitationError(f'{what}: {cause}') from cause
        return peaks


def plan_stop(
    reference: Reference,
    check: ReferenceCheck,
    at: Sequence[float] | Array,
    *,
    hurry: bool,
    durations: Sequence[float] = (),
    tolerance: float = 1e-6,
) -> tuple[float, SlowedDown]:
    """Return where to begin a stop along the path, and the stop, so that all limits are kept.

    Slowing down adds an acceleration, which does not fit where the motion already uses all of it;
    a few hundredths of a second before or after, it does.

    Parameters
    ----------
    reference : Reference
    check : ReferenceCheck
    at : sequence of float
        Moments at which the stop may begin, in the order of preference [s].
    hurry : bool
        Take the stop that ends first, for an emergency; else the one that comes first in ``at``.
    durations : sequence of float
        How long the stop may take; by default what :func:`stop_durations` says [s].
    tolerance : float
        Excess still taken as none.

    Returns
    -------
    at : float
        [s]
    stop : SlowedDown
        The best there is: where none keeps all limits, the one that breaks them least.
    """
    limits = _braking_limits(reference, check.limits, at)
    candidates = [
        (moment, duration) for moment in at for duration in durations or stop_durations(reference, check.limits)
    ]
    if hurry:
        candidates.sort(key=lambda pair: pair[0] + pair[1])
    least, best = np.inf, candidates[0]
    for moment, duration in candidates:
        stop = SlowedDown(reference=reference, at=moment, duration=duration)
        joints = _joint_excess(stop, limits)
        if joints > min(tolerance, least):
            if joints < least:
                least, best = joints, (moment, duration)
            continue
        excess = max(joints, check.excess(stop, rate=100.0))
        if excess <= tolerance:
            return moment, stop
        if excess < least:
            least, best = excess, (moment, duration)
    moment, duration = best
    return moment, SlowedDown(reference=reference, at=moment, duration=duration)


def stop_durations(reference: Reference, limits: JointLimits) -> tuple[float, ...]:
    """Return how long stops may take: up to twice what the highest speed takes at the acceleration limits.

    Parameters
    ----------
    reference : Reference
    limits : JointLimits
    """
    length = min(reference.duration, 200.0)
    velocity = np.abs(reference.evaluate(np.linspace(0.0, length, 2000))[1]).max(axis=0)
    needed = float((1.875 * velocity / limits.acceleration).max())
    longest = min(max(_USUAL_STOP, 2.0 * needed), _LONGEST_STOP)
    return tuple(np.geomspace(_SHORTEST_STOP, longest, _STOP_LENGTHS).tolist())


def _braking_limits(reference: Reference, limits: JointLimits, at: Sequence[float] | Array) -> Array:
    """Return the acceleration limits of a stop, shape (n,); where there are none, what is usual nearby."""
    times = np.clip(np.linspace(min(at), max(at) + 1.0, 101), 0.0, reference.duration)
    usual = np.abs(reference.evaluate(times)[2]).max(axis=0)
    result: Array = np.where(
        np.isfinite(limits.acceleration), limits.acceleration, np.maximum(1.2 * usual, _GENTLE_BRAKING)
    )
    return result


def _joint_excess(reference: Reference, acceleration_limits: Array) -> float:
    """Return the largest normalised excess over the acceleration limits: quick, for many candidates."""
    _, _, acceleration = reference.evaluate(np.linspace(0.0, reference.duration, 41))
    return float((np.abs(acceleration).max(axis=0) / acceleration_limits).max() - 1.0)


class WindowPlan:
    """The windows of one run, made when they are due.

    Parameters
    ----------
    reference : Reference
        Begins and ends at rest.
    check : ReferenceCheck
        The limits the stops have to keep.
    knots : KnotPlan, optional
    """

    def __init__(
        self,
        reference: Reference,
        check: ReferenceCheck,
        knots: KnotPlan | None = None,
    ) -> None:
        self.reference, self.check = reference, check
        self.knots = KnotPlan() if knots is None else knots
        step = 1.0 / self.knots.rate
        self._durations = stop_durations(reference, check.limits)
        longest = self._durations[-1]
        self._search = max(0.8, 0.5 * longest)  # a stop that does not fit here may fit a little earlier or later
        self._span = (self.knots.points - 2) * step - abs(self.knots.history) - longest
        if self._span < self._search + _LEAST_SPAN:
            raise ExcitationError(
                f'windows of {self.knots.points} knots at {self.knots.rate:g} Hz are too short: with a stop of '
                f'{longest:.1f} s at the end they need '
                f'{abs(self.knots.history) + longest + self._search + _LEAST_SPAN:.1f} s'
            )
        # two windows later is still before this one's stop: one lost message costs nothing
        self._advance = max(step, round(0.4 * (self._span - self._search) / step) * step)

    @cached_property
    def count(self) -> int:
        """Number of windows."""
        return 1 + max(0, int(np.ceil((self.reference.duration - self._span) / self._advance - 1e-9)))

    def __iter__(self) -> Iterator[Window]:
        return (self.window(k) for k in range(self.count))

    def due(self, k: int) -> float:
        """Return when window ``k`` is to be sent, from the start of the run [s]; 0 for the first."""
        return k * self._advance

    def window(self, k: int) -> Window:
        """Return window ``k``, 0-based."""
        begin = max(0.0, self.due(k) - self.knots.history) if k else 0.0
        if k == self.count - 1:
            return self._cut(begin, self.reference.duration, None, self.due(k))
        at, stop = self._planned_stop(k)
        return self._cut(begin, at, stop, self.due(k))

    def _planned_stop(self, k: int) -> tuple[float, SlowedDown]:
        """Return where window ``k`` begins to stop, and its stop."""
        step = 1.0 / self.knots.rate
        end = round((self.due(k) + self._span) * self.knots.rate) * step
        moments = (end - step * np.round(np.linspace(0.0, self._search / step, 40))).tolist()
        return plan_stop(self.reference, self.check, moments, hurry=False, durations=self._durations)

    def require_stops(self, until: float) -> None:
        """Refuse a run if the stop of a window breaks a limit.

        Parameters
        ----------
        until : float
            Windows due later are not looked at: a periodic motion repeats [s].

        Raises
        ------
        ExcitationError
            Naming the limit, joint and time.
        """
        for k in range(self.count - 1):
            if self.due(k) > until:
                return
            at, stop = self._planned_stop(k)
            worst = max(self.check.peaks(stop, start=at), key=lambda peak: peak.excess)
            if worst.excess > _STOP_TOLERANCE:
                raise ExcitationError(
                    f'no stop around t = {at:.1f} s of the run keeps all limits: {worst}; '
                    'design with some reserve, such as velocity_scaling and acceleration_scaling of 0.9'
                )

    def stop(self, now: float, latency: float) -> tuple[float, Window]:
        """Return a window that brings the arm to rest as soon as the limits allow.

        Parameters
        ----------
        now : float
            Time from the start of the run [s].
        latency : float
            What the message takes to reach the controller [s].

        Returns
        -------
        rest : float
            When the arm is at rest, from the start of the run [s].
        window : Window
        """
        step = 1.0 / self.knots.rate
        first = np.ceil((max(now, 0.0) + latency) * self.knots.rate) * step
        if first >= self.reference.duration:
            return self.reference.duration, self._rest(float(first), now)
        later = np.round(np.linspace(0.0, self._search / step, 25))
        moments = [first + step * k for k in later if first + step * k < self.reference.duration]
        at, stop = plan_stop(self.reference, self.check, moments, hurry=True, durations=self._durations)
        begin = first if self.knots.history < 0.0 else max(0.0, first - latency - self.knots.history)
        return at + stop.duration, self._cut(begin, at, stop, now)

    def _rest(self, begin: float, due: float) -> Window:
        """Return two knots at the reference's end, where the arm arrives by itself."""
        position, velocity, _ = self.reference.evaluate([self.reference.duration] * 2)
        still = np.zeros_like(velocity)
        times = begin + np.array([0.0, 1.0 / self.knots.rate])
        stamp = begin if self.knots.history < 0.0 else 0.0
        return Window(
            due=due, stamp=stamp, times=times, position=position, velocity=still, acceleration=still, last=True
        )

    def _cut(self, begin: float, end: float, stop: SlowedDown | None, due: float) -> Window:
        """Return the knots of the reference from ``begin`` to ``end``, and those of the stop after it."""
        step = 1.0 / self.knots.rate
        times = step * np.arange(
            int(np.floor(begin * self.knots.rate + 1e-6)), int(np.ceil(end * self.knots.rate - 1e-6))
        )
        parts = [(times, self.reference.evaluate(times))] if len(times) else []
        if stop is None:
            parts.append((np.array([end]), self.reference.evaluate([end])))
        else:
            local = np.linspace(0.0, stop.duration, max(2, round(stop.duration / step) + 1))
            parts.append((end + local, stop.evaluate(local)))
        position, velocity, acceleration = (np.concatenate([part[1][k] for part in parts]) for k in range(3))
        velocity[-1] = acceleration[-1] = 0.0
        return Window(
            due=due,
            stamp=float(parts[0][0][0]) if self.knots.history < 0.0 else 0.0,
            times=np.concatenate([part[0] for part in parts]),
            position=position,
            velocity=velocity,
            acceleration=acceleration,
            last=stop is None,
        )
