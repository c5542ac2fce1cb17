# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The stop of an arm: one point at rest, which every controller follows at once from where it is; and along a path.

The way to it is the controller's own quintic. It begins at the measured state or at the controller's reference, and
when the message comes; the time is long enough for the acceleration limits from all of them.

Stops along a path are for the end of every window, and for the way out of a motion that never rests.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.excitation.reference import Eased, Reference, ReferenceCheck
from robotid_ros.execution.joint_motion import JointMotion, quintic_basis
from robotid_ros.model.joint_limits import JointLimits

GENTLE_BRAKING = 5.0
"""Acceleration of a stop where no limit is given [rad/s^2 or m/s^2]: a quarter to a half of what arms allow."""
_LEAST_PART = 0.01
"""Part of the acceleration limit that is planned with where one that falls with the position leaves less."""

_SHARE = 0.95
"""Part of the acceleration limits that is used: the rest is for what the arm does besides."""
_MARGIN = 0.01
"""Distance from a position limit that a stop ends at, where it can [rad or m]: a start is not refused there."""
_SHORTEST = 0.2
"""Somebody else may have set an arm at rest in motion while the message was on its way: this bears that [s]."""
_IN_ANY_CASE = 1.0
"""So long any stop may take [s], for an end that is better than that of the quickest: 1.3 s from the decision to rest,
less 0.1 s of latency, and what a drive lags."""
_STILL_ACCELERATES = 3.0 / np.sqrt(2.0)
"""Least T in |v| / a_max that brings a joint to rest within a_max whatever its acceleration is, up to a_max."""
_FINER = 1.1
"""Ratio of the durations that are looked at."""
_CHECKED = np.linspace(0.0, 1.0, 16)
"""At which moments of a candidate all limits are looked at: 50 ms apart in a stop of 0.8 s."""
_MEASURED = 3
"""So many starts, the first, are checked against all limits; all of them against those of the joints."""
_EVEN = np.array([[0.5, 1.0 / 12.0], [1.0, 0.0], [0.0, 1.0]])
"""Way, T v0 and T^2 a0 of a joint that goes to the end it comes to of itself, from T v0 and T^2 a0."""
_LOOKED_AT = tuple(
    (basis[:, :3] @ _EVEN, 1.0 / np.abs(basis[:, 0, None, None, None]), -(basis[:, :3] @ _EVEN) / basis[:, :1])
    for basis in quintic_basis(np.linspace(0.0, 1.0, 14)[1:-1])[1:]
)
"""Where velocities and accelerations are looked at: those on the way to that end, how much further an end may be for
one more of them, and how much further it is where they are 0."""
_ROUND_OFF = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PathPlace:
    """Where an arm is on a path, and which joints move along it, shape (n,): one that is held does not."""

    reference: Reference
    time: float
    along: BoolArray

    def ahead(self, times: Array) -> Array:
        """Return the places that times after this one lead to, shape (K, n)."""
        places: Array = self.reference.evaluate(np.clip(self.time + times, 0.0, self.reference.duration))[0]
        return places


@dataclass(frozen=True, slots=True, kw_only=True)
class StopPlan:
    """What brings an arm to rest from all that it may do then, and what it breaks: '' where it keeps all limits.

    From each start it is one quintic, as a controller interpolates to a single point,

        q(0) = q0, q'(0) = v0, q''(0) = a0;   q(T) = goal, q'(T) = q''(T) = 0

    With a0 = 0 and goal = q0 + v0 T/2 the speed only falls: v(t) = v0 (1 - 3 s^2 + 2 s^3), s = t/T. The goal has the
    shape (n,) [rad or m], the duration T is in s.
    """

    starts: tuple[JointMotion, ...]
    goal: Array
    duration: float
    breaks: str = ''
    added: Array | None = None  # normalised, to each bound, shape (B,); None where it keeps all limits

    def ways(self, time: float) -> list[JointMotion]:
        """Return what it leads to after a time [s], from all starts; after its end, rest, once."""
        rows = zip(*(values[:, 0] for values in self.motions([min(time, self.duration)])), strict=True)
        ways = [JointMotion(position=q, velocity=dq, acceleration=ddq) for q, dq, ddq in rows]
        return ways if time < self.duration else ways[:1]

    def motions(self, times: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration at times up to T [s], from each start, shape (S, K, n) each."""
        s, duration = np.atleast_1d(np.asarray(times, dtype=np.float64)) / self.duration, self.duration
        still = np.zeros_like(self.goal)
        position = np.array([start.position for start in self.starts])
        velocity = np.array([start.velocity for start in self.starts])
        acceleration = np.array([still if start.acceleration is None else start.acceleration for start in self.starts])
        parts = np.stack([self.goal - position, duration * velocity, duration**2 * acceleration], axis=1)
        moved, velocity, acceleration = (basis[:, :3] @ parts for basis in quintic_basis(s))
        return position[:, None] + moved, velocity / duration, acceleration / duration**2

    def evaluate(self, times: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the same from the first start alone, shape (K, n) each."""
        position, velocity, acceleration = (values[0] for values in self.motions(times))
        return position, velocity, acceleration


def plan_stop(
    starts: Sequence[JointMotion],
    checks: Sequence[ReferenceCheck],
    path: PathPlace | None = None,
    back_to: Array | None = None,
    shown: Array | None = None,
    goal: Array | None = None,
    likely: int | None = None,
    patience: float = 1.0,
) -> StopPlan:
    """Return the quickest stop of an arm that keeps all limits, or else the one with the least way.

    Parameters
    ----------
    starts : sequence of JointMotion
        What the arm, or its controller, may do when the stop takes effect, the most likely first.
    checks : sequence of ReferenceCheck
        The limits to keep, and what counts in turn where nothing keeps those: the limits of the arm itself, where a
        run keeps to a part of them. A limit that is broken where the arm is counts for what the stop adds.
    path : PathPlace, optional
        Where the first start is on its path: stops that end on the path are tried before those that end straight ahead.
    back_to : ndarray, shape (n,), optional
        Where joints come to rest, instead of as soon as they can: places that they have just passed; NaN for the
        others [rad or m].
    shown : ndarray, shape (n,), optional
        Accelerations of the run itself, which a joint without a limit brakes with too [rad/s^2 or m/s^2].
    goal : ndarray, shape (n,), optional
        Where the stop before ends, which the arm may have obeyed: the next to it is tried first [rad or m].
    likely : int, optional
        How many of the starts count in any case. Where not all limits can be kept from the rest too, that counts as far
        as these leave it, or not at all.
    patience : float
        How many times as long as any other it may take, to end at ``back_to``.
    """
    check, *others = checks
    first, limits = starts[0], check.limits
    gentle = np.maximum(GENTLE_BRAKING, 0.0 if shown is None else 1.2 * shown)
    allowed = limits.allowed('acceleration', first.position, -first.velocity)
    allowed = np.maximum(allowed, _LEAST_PART * limits.acceleration)
    braking = _SHARE * np.where(np.isfinite(allowed), allowed, gentle)
    longest = _longest(starts, braking)
    times = _durations(patience * longest)
    low, high, agree = _admissible_ends(starts, times, limits.velocity, braking)
    if back_to is not None:
        left = agree[:, None] & (low <= back_to) & (back_to <= high)  # of a joint for which no time suffices: never
        count = max(int((times <= longest * (1.0 + _ROUND_OFF)).sum()), int(left.argmax(axis=0).max()) + 1)
        times, low, high, agree = times[:count], low[:count], high[:count], agree[:count]
    admissible = low, high, agree
    straight = first.position + 0.5 * times[:, None] * first.velocity
    # What holds a joint lets its controller's reference go on: that is led back to where the joint can be by the end,
    # at the speed that it shows.
    between = [first.position + part * times[:, None] * first.velocity for part in (0.0, 1.0)]
    inside = _inside(first.position, limits)
    straight, *between = (np.clip(ends, *inside) for ends in (straight, np.minimum(*between), np.maximum(*between)))
    wanted = [(straight, between)]
    if path is not None:
        bounds = [np.where(path.along, bound, other) for bound, other in zip(inside, between, strict=True)]
        wanted.insert(0, (np.where(path.along, path.ahead(0.5 * times), straight), bounds))
    if goal is not None:
        wanted.insert(0, (goal + 0.0 * straight, list(inside)))
    if back_to is not None:
        wanted = [
            (ends, [np.where(np.isfinite(back_to), back_to, bound) for bound in bounds]) for ends, bounds in wanted
        ]
    measured = starts[:_MEASURED]
    distinct: dict[tuple[float, ...], StopPlan] = {}
    for ends, bounds in wanted:
        move = _move(measured, times, np.clip(ends, *bounds), bounds, admissible)
        distinct.setdefault((move.duration, *move.goal.tolist()), move)
    moves = sorted(distinct.values(), key=lambda move: move.duration)  # stable: along the path before straight ahead
    few = moves[:1] if others else moves[:]  # mostly the first one does; where it does not, often none of these
    added = _added(check, few)
    if added.max() > 0.0 and likely is not None and likely < len(starts):
        ends, bounds = wanted[0]
        own = _admissible_ends(starts[:likely], times, limits.velocity, braking)
        for low, high, _ in (admissible, own):  # the rest counts as far as these leave it, or else not at all
            moves.append(_move(measured, times, np.clip(ends, *bounds), bounds, (low, high, own[2])))
    if added.max() > 0.0 and len(moves) > len(few):
        added = np.vstack([added, _added(check, moves[len(few) :])])
    kept = np.flatnonzero(added.max(axis=1) <= 0.0)
    if len(kept):
        return replace(moves[int(kept[0])], starts=tuple(starts))
    if others:
        return plan_stop(starts, others, path, back_to, shown, goal, likely, patience)
    ways = [float(np.abs(move.goal - first.position).sum()) for move in moves]
    k = int(np.argmin(ways))
    return replace(moves[k], starts=tuple(starts), breaks=check.spell(added[k]), added=added[k])


def _added(check: ReferenceCheck, moves: Sequence[StopPlan]) -> Array:
    """Return what each move adds to the normalised excesses over all bounds, from the worst of its starts, (M, B)."""
    motions = [way for move in moves for way in zip(*move.motions(move.duration * _CHECKED), strict=True)]
    result: Array = check.added_by(motions).reshape(len(moves), len(moves[0].starts), -1).max(axis=1)
    return result


def _longest(starts: Sequence[JointMotion], braking: Array) -> float:
    """Return how long a stop may take [s]: see "How long it takes" in docs/stopping.md."""
    speed = np.abs([start.velocity for start in starts]).max(axis=0)
    needed = float(_STILL_ACCELERATES * (speed / braking).max())
    return max(_IN_ANY_CASE, needed)


def _durations(longest: float) -> Array:
    """Return the durations that are looked at [s], shape (D,)."""
    count = 1 + int(np.ceil(np.log(longest / _SHORTEST) / np.log(_FINER)))
    times: Array = _SHORTEST * (longest / _SHORTEST) ** np.linspace(0.0, 1.0, count)
    return times


def _inside(position: Array, limits: JointLimits) -> tuple[Array, Array]:
    """Return between what ends lie within the position limits by a margin, or are no further out than the arm is."""
    low, high = limits.lower + _MARGIN, limits.upper - _MARGIN
    closed = low <= high
    low, high = np.where(closed, low, limits.lower), np.where(closed, high, limits.upper)
    return np.minimum(low, position), np.maximum(high, position)


def _admissible_ends(
    starts: Sequence[JointMotion], times: Array, velocity: Array, braking: Array
) -> tuple[Array, Array, BoolArray]:
    """Return between what ends velocity and acceleration limits are kept from all starts, and at which durations.

    Shape (D, n) each, and (D,). Both are linear in the end, so that each start leaves an interval of it. Where these
    have nothing in common, what the earlier starts leave counts, and of that what is next to the others.
    """
    still = np.zeros_like(braking)
    position, speed, gain = (
        np.array([still if value is None else value for value in values])[:, None]
        for values in zip(*((start.position, start.velocity, start.acceleration) for start in starts), strict=True)
    )
    time = times[:, None]
    parts = np.array([time * speed, time**2 * gain])
    even = position + np.tensordot(_EVEN[0], parts, 1)
    fastest, hardest = time * np.maximum(velocity, np.abs(speed)), time**2 * np.maximum(braking, np.abs(gain))
    lows, highs = [], []
    for (own, further, still), most in zip(_LOOKED_AT, (fastest, hardest), strict=True):
        if most is fastest:  # a joint that still accelerates gets faster first
            most = np.maximum(most, np.abs(np.tensordot(own, parts, 1)).max(axis=0))
        middle, reach = np.tensordot(still, parts, 1), (1.0 + _ROUND_OFF) * most * further
        lows.append((middle - reach).max(axis=0))
        highs.append((middle + reach).min(axis=0))
    low, high = even + np.maximum(*lows), even + np.minimum(*highs)
    agree = (low.max(axis=0) <= high.min(axis=0) + _ROUND_OFF).all(axis=1)
    least, most = low[0], high[0]
    for bounds in zip(low[1:], high[1:], strict=True):
        least, most = (np.minimum(np.maximum(bound, least), most) for bound in bounds)
    return least, most, agree


def _move(
    starts: Sequence[JointMotion],
    times: Array,
    ends: Array,
    between: Sequence[Array],
    admissible: tuple[Array, Array, BoolArray],
) -> StopPlan:
    """Return the quickest move to an admissible end next to some, shape (D, n), that is ``between`` bounds.

    Where none is, that is the longest.
    """
    low, high, agree = admissible
    goals = np.clip(ends, low, high)
    met = (goals >= between[0] - _ROUND_OFF) & (goals <= between[1] + _ROUND_OFF)
    met = agree & met.all(axis=1)
    k = int(np.argmax(met)) if met.any() else len(times) - 1
    return StopPlan(starts=tuple(starts), goal=goals[k], duration=float(times[k]))


_SHORTEST_STOP, _USUAL_STOP, _LONGEST_STOP, _STOP_LENGTHS = 0.1, 1.0, 8.0, 11
_NO_EXCESS = 1e-6  # of a limit, relative: round-off


def easiest(candidates: Sequence[Eased], check: ReferenceCheck, *, rate: float = 100.0) -> Eased:
    """Return the first of some stops or ways in along one path that keeps all limits, or that which breaks them least.

    A clock that changes adds an acceleration, which does not fit where the motion already uses all of it; a few
    hundredths of a second before or after, it does. ``rate``: of the check [Hz].
    """
    # Where there are no acceleration limits, what is usual nearby.
    reference, begins = candidates[0].reference, [each.at for each in candidates]
    times = np.minimum(np.linspace(min(begins), max(begins) + 1.0, 101), reference.duration)
    usual = np.abs(reference.evaluate(times)[2]).max(axis=0)
    limits = check.limits.acceleration
    limits = np.where(np.isfinite(limits), limits, np.maximum(1.2 * usual, GENTLE_BRAKING))
    least, best = np.inf, candidates[0]
    for each in candidates:
        # The largest normalised excess over the acceleration limits: quick, for many candidates
        _, _, acceleration = each.evaluate(np.linspace(0.0, each.duration, 41))
        joints = float((np.abs(acceleration).max(axis=0) / limits).max() - 1.0)
        if joints > min(_NO_EXCESS, least):
            if joints < least:
                least, best = joints, each
            continue
        excess = max(joints, check.excess(each, rate=rate))
        if excess <= _NO_EXCESS:
            return each
        if excess < least:
            least, best = excess, each
    return best


def stop_durations(reference: Reference, limits: JointLimits) -> tuple[float, ...]:
    """Return how long stops may take [s]: up to twice what the highest speed takes at acceleration and jerk limits."""
    length = min(reference.duration, 200.0)
    velocity = np.abs(reference.evaluate(np.linspace(0.0, length, 2000))[1]).max(axis=0)
    braking = 1.875 * velocity / limits.acceleration
    needed = float(np.maximum(braking, np.sqrt(12.0 * velocity / limits.jerk)).max())
    longest = min(max(_USUAL_STOP, 2.0 * needed), _LONGEST_STOP)
    return tuple(np.geomspace(_SHORTEST_STOP, longest, _STOP_LENGTHS).tolist())
