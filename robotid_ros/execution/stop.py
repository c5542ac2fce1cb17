# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The stop of an arm: one point at rest, which every controller follows at once from where it is.

The way to it is the controller's own quintic. It begins at the measured state or at the controller's reference, and
when the message comes; the time is long enough for the acceleration limits from all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.excitation.reference import Reference, ReferenceCheck
from robotid_ros.execution.joint_motion import JointMotion, MoveToRest, quintic_basis
from robotid_ros.model.joint_limits import JointLimits

GENTLE_BRAKING = 5.0
"""Acceleration of a stop where no limit is given [rad/s^2 or m/s^2]: a quarter to a half of what arms allow."""
_LEAST_BRAKING = 0.1
"""What is planned with where a limit that falls with the position leaves less [rad/s^2 or m/s^2]."""

_SHARE = 0.95
"""Part of the acceleration limits that is used: the rest is for what the arm does besides."""
_MARGIN = 0.01
"""Distance from a position limit that a stop ends at, where it can [rad or m]: a start is not refused there."""
_SHORTEST, _LONGEST = 0.2, 8.0
"""Somebody else may have set an arm at rest in motion while the message was on its way: 0.2 s bear that [s]."""
_USUALLY_LONGEST = 1.1
"""A stop may take 1.5 times as long as braking has to, or 2.5 times where that is less than this [s]."""
_TIMES = np.geomspace(_SHORTEST, _LONGEST, 37)
_LONGER = (1.0, 1.2, 1.5, 2.0)
"""Candidates, relative to the shortest time that keeps the joint limits."""
_SAMPLES = 16
"""Per candidate: 50 ms apart in a stop of 0.8 s."""
_IN_SIGHT = 4.0
"""Candidates last up to so many times what braking, and the way between the starts, take of the slowest joint."""
_MEASURED = 3
"""So many starts, the first, are checked against all limits; all of them against those of the joints."""
_CHECKED = quintic_basis(np.linspace(0.0, 1.0, 13))[1:]
"""Where velocities and accelerations of all candidates are looked at."""


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
    """What brings an arm to rest, and what it breaks: '' where it keeps all limits."""

    move: MoveToRest
    starts: tuple[JointMotion, ...]
    breaks: str = ''
    added: Array | None = None  # normalised, to each bound, shape (B,); None where it keeps all limits

    def ways(self, time: float) -> list[JointMotion]:
        """Return what it leads to after a time [s], from all starts."""
        return [replace(self.move, start=start).at(time) for start in self.starts]

    def fastest(self, times: ArrayLike) -> Array:
        """Return the highest speed of each joint at some times [s], over all starts, shape (n,) [rad/s or m/s]."""
        ways = [replace(self.move, start=start).evaluate(times)[1] for start in self.starts]
        result: Array = np.abs(ways).max(axis=(0, 1))
        return result


def plan_stop(
    starts: Sequence[JointMotion],
    check: ReferenceCheck,
    path: PathPlace | None = None,
    back_to: Array | None = None,
    shown: Array | None = None,
    harder: ReferenceCheck | None = None,
) -> StopPlan:
    """Return the quickest stop of an arm that keeps all limits, or else the one with the least way.

    Parameters
    ----------
    starts : sequence of JointMotion
        What the arm, or its controller, may do when the stop takes effect, the most likely first.
    check : ReferenceCheck
        The limits to keep. A limit that is broken where the arm is counts for what the stop adds.
    path : PathPlace, optional
        Where the first start is on its path: stops that end on the path are tried before those that end straight ahead.
    back_to : ndarray, shape (n,), optional
        Where joints come to rest, instead of as soon as they can: places that they have just passed; NaN for the
        others [rad or m].
    shown : ndarray, shape (n,), optional
        Accelerations of the run itself, which a joint without a limit brakes with too [rad/s^2 or m/s^2].
    harder : ReferenceCheck, optional
        What counts where nothing keeps ``check``: the limits of the arm itself, where a run keeps to a part of them.
    """
    first, limits = starts[0], check.limits
    gentle = np.maximum(GENTLE_BRAKING, 0.0 if shown is None else 1.2 * shown)
    allowed = np.maximum(limits.allowed('acceleration', first.position, -first.velocity), _LEAST_BRAKING)
    braking = np.where(np.isfinite(allowed), allowed, gentle)
    times = _durations(starts, braking)
    places = np.array([start.position for start in starts])
    middle = 0.5 * (places.min(axis=0) + places.max(axis=0))  # what holds a joint lets its controller's reference go on
    straight = middle + 0.5 * times[:, None] * first.velocity
    inside = _inside(straight, first.position, limits)
    ends = [inside] if np.array_equal(inside, straight) else [inside, straight]
    if path is not None:
        ends.insert(0, np.where(path.along, path.ahead(0.5 * times), inside))
    if back_to is not None:
        ends = [np.where(np.isfinite(back_to), back_to, goals) for goals in ends]
    families = [_feasible(starts, times, goals, limits.velocity, braking) for goals in ends]
    quickest = families[-1][0].duration
    longest = max(1.5 * quickest, min(2.5 * quickest, _USUALLY_LONGEST))
    moves = [move for family in families for move in family if move.duration <= longest]
    moves.sort(key=lambda move: move.duration)  # stable: along the path before straight ahead
    added: list[Array] = []
    for move in moves:  # one by one: mostly the first one does
        added.append(_added(check, move, starts[:_MEASURED]))
        if added[-1].max() <= 0.0:
            return StopPlan(move=move, starts=tuple(starts))
    if harder is not None:
        return plan_stop(starts, harder, path, back_to, shown)
    ways = [float(np.abs(move.goal - first.position).sum()) for move in moves]
    k = int(np.argmin(ways))
    return StopPlan(move=moves[k], starts=tuple(starts), breaks=check.spell(added[k]), added=added[k])


def _added(check: ReferenceCheck, move: MoveToRest, starts: Sequence[JointMotion]) -> Array:
    """Return what a move adds to the normalised excesses over all bounds, from the worst of some starts, shape (B,)."""
    s = np.linspace(0.0, 1.0, _SAMPLES)
    motions = [replace(move, start=start).evaluate(move.duration * s) for start in starts]
    result: Array = check.added_by(motions).max(axis=0)
    return result


def _durations(starts: Sequence[JointMotion], braking: Array) -> Array:
    """Return the durations that candidates are made of [s]."""
    apart = np.ptp([start.position for start in starts], axis=0)
    speed = np.abs([start.velocity for start in starts]).max(axis=0)
    slowest = float(np.maximum(1.5 * speed / braking, np.sqrt(6.0 * apart / braking)).max())
    return _TIMES[: np.searchsorted(_TIMES, _IN_SIGHT * max(slowest, _SHORTEST)) + 1]


def _inside(goals: Array, position: Array, limits: JointLimits) -> Array:
    """Return ends that lie within the position limits by a margin, or are no further out than the arm is."""
    low, high = limits.lower + _MARGIN, limits.upper - _MARGIN
    closed = low <= high
    low, high = np.where(closed, low, limits.lower), np.where(closed, high, limits.upper)
    result: Array = np.clip(goals, np.minimum(low, position), np.maximum(high, position))
    return result


def _feasible(
    starts: Sequence[JointMotion], times: Array, goals: Array, velocity: Array, braking: Array
) -> list[MoveToRest]:
    """Return moves of some durations from the shortest on that keeps velocity and acceleration from all starts.

    ``goals``, shape (D, n), belong to the durations ``times``, shape (D,) [s]. Where none keeps them, the durations are
    those about the one that breaks them least.
    """
    excess = _joint_excess(starts, times, goals, velocity, braking)
    kept = excess <= 0.0
    shortest = int(np.argmax(kept) if kept.any() else np.argmin(excess))
    wanted = np.searchsorted(times, times[shortest] * np.array(_LONGER) - 1e-9)
    wanted = np.unique(np.minimum(wanted, len(times) - 1))
    return [
        MoveToRest(start=starts[0], goal=goals[k], duration=float(times[k]))
        for k in wanted.tolist()
        if k == shortest or excess[k] <= max(0.0, float(excess[shortest]))
    ]


def _joint_excess(
    starts: Sequence[JointMotion], durations: Array, goals: Array, velocity: Array, braking: Array
) -> Array:
    """Return by how much the worst start breaks a velocity or acceleration limit, relative, shape (D,)."""
    still = np.zeros_like(goals[0])
    position, speed, gain = (
        np.array([still if value is None else value for value in values])
        for values in zip(*((start.position, start.velocity, start.acceleration) for start in starts), strict=True)
    )
    times = durations[:, None, None]
    parts = np.empty((3, len(goals), *position.shape))
    parts[0], parts[1], parts[2] = goals[:, None] - position, times * speed, times**2 * gain
    fast, hard = (np.abs(basis @ parts.reshape(3, -1)).max(axis=0).reshape(parts.shape[1:]) for basis in _CHECKED)
    fastest = np.maximum(velocity, np.abs(speed) * (1.0 + 1e-9))
    hardest = np.maximum(_SHARE * braking, np.abs(gain))
    worst = np.maximum(hard / times**2 / hardest, fast / times / fastest)
    result: Array = worst.max(axis=(1, 2)) - 1.0
    return result
