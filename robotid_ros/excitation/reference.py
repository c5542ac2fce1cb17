# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""References: motions over time, made of pieces that join smoothly, and stops along the path.

A reference is a function of time on [0, duration] that begins and ends at rest. A stop slows the
clock of the reference down: the velocity only decreases, and the arm stays on the path that was
checked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.constraints import Constraint, Peak, require_within
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.motion import Motion, Observation
from robotid_ros.excitation.workspace import random_positions
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.settings import Settings, setting

_PEAK_VELOCITY, _PEAK_ACCELERATION, _PEAK_JERK = 1.875, 10.0 / np.sqrt(3.0), 60.0
# Part of the velocity limits that a move uses: at the limit itself, a controller that clamps its commands loses the
# path. In Gazebo a joint limited to 2.0 rad/s, led at 2.0, went 0.6 rad too far.
_SHARE = 0.97
_SHORTEST_MOVE = 0.5  # [s], so that small moves too have a low acceleration
_ROUND_OFF = 1e-6
_CHECK_RATE = 250.0  # [Hz]: 12 mrad apart at 3 rad/s
_TRIES = 60  # poses to go by
_COARSE = 20.0  # [Hz], of a first check: 25 mrad apart at the usual 0.5 rad/s
_REST = 0.01  # [s], of an arm that stands


class Reference(Protocol):
    """Joint motion over a stretch of time."""

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        ...

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration at times within [0, duration], shape (N, n) each."""
        ...


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Standing still."""

    position: Array  # shape (n,): [rad or m]
    duration: float  # [s]

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration; see :class:`Reference`."""
        count = np.size(t)
        zero = np.zeros((count, len(self.position)))
        return np.tile(self.position, (count, 1)), zero, zero.copy()


@dataclass(frozen=True, kw_only=True)
class Move:
    """A straight move of all joints from rest to rest, of least jerk.

    q = q0 + (q1 - q0)(10 s^3 - 15 s^4 + 6 s^5),   s = t / duration
    """

    start: Array  # shape (n,): [rad or m]
    goal: Array
    duration: float  # [s]

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration; see :class:`Reference`."""
        s = np.atleast_1d(np.asarray(t, dtype=np.float64))[:, None] / self.duration
        way, (_, done, rate) = np.asarray(self.goal) - self.start, smooth_step(s)
        position, velocity = self.start + way * done, way / self.duration * rate
        acceleration = way / self.duration**2 * (60.0 * s * (1.0 - s) * (1.0 - 2.0 * s))
        return position, velocity, acceleration


def move_duration(start: Array, goal: Array, limits: JointLimits, velocity: float) -> float:
    """Return how long a :class:`Move` has to take to keep the limits, at least half a second [s].

    97 % of the velocity limits, and the acceleration and jerk limits are kept, and no joint is faster than
    ``velocity``.
    """
    way = np.abs(np.asarray(goal) - start)
    times = [
        _PEAK_VELOCITY * way / np.minimum(_SHARE * limits.velocity, velocity),
        np.sqrt(_PEAK_ACCELERATION * way / limits.acceleration),
        np.cbrt(_PEAK_JERK * way / limits.jerk),
    ]
    return max(_SHORTEST_MOVE, float(np.max(times)) * (1.0 + 1e-9))


@dataclass(frozen=True, kw_only=True)
class FourierRun:
    """Periods of a Fourier trajectory, from its beginning; the duration is in s."""

    trajectory: FourierTrajectory
    duration: float

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration; see :class:`Reference`."""
        return self.trajectory.evaluate(np.asarray(t, dtype=np.float64))


def smooth_step(s: Array) -> tuple[Array, Array, Array]:
    """Return the integral, value and slope of the smooth step 10 s^3 - 15 s^4 + 6 s^5, for s from 0 to 1."""
    integral = s**4 * (2.5 + s * (s - 3.0))
    return integral, s**3 * (10.0 + s * (6.0 * s - 15.0)), 30.0 * s**2 * (1.0 - s) ** 2


@dataclass(frozen=True, kw_only=True)
class Eased:
    """The motion q(phi(t)) of a reference whose clock goes smoothly from one rate to another; by default a stop.

    phi = at at the beginning, and phi' = first + (last - first) (10 s^3 - 15 s^4 + 6 s^5),   s = t / duration

    A stop is along the path, within duration/2 of the reference, and so is the way from rest to its full rate.
    """

    reference: Reference
    at: float  # time in the reference at which it begins [s]
    duration: float  # [s]
    first: float = 1.0
    last: float = 0.0

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration, by the chain rule; see :class:`Reference`."""
        duration, first, last = self.duration, self.first, self.last
        s = np.atleast_1d(np.asarray(t, dtype=np.float64)) / duration
        integral, value, slope = smooth_step(s)
        clock = self.at + duration * (first * s + (last - first) * integral)
        position, velocity, acceleration = self.reference.evaluate(np.minimum(clock, self.reference.duration))
        rate, change = (first + (last - first) * value)[:, None], ((last - first) / duration * slope)[:, None]
        return position, velocity * rate, acceleration * rate**2 + velocity * change


@dataclass(frozen=True, kw_only=True)
class Chain:
    """References one after the other."""

    parts: tuple[Reference, ...]

    def __post_init__(self) -> None:
        if not self.parts:
            raise ExcitationError('a reference needs at least one part')

    @cached_property
    def starts(self) -> Array:
        """Start of each part, and end of the last one, shape (k + 1,) [s]."""
        return np.concatenate([[0.0], np.cumsum([part.duration for part in self.parts])])

    @property
    def duration(self) -> float:
        """How long it takes [s]."""
        return float(self.starts[-1])

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration; see :class:`Reference`."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        index = np.searchsorted(self.starts[1:-1], times, side='right')
        if len(times) and (index == index[0]).all():  # as for a single moment, which a run asks for at each joint state
            return self._part(int(index[0]), times)
        joints = self.parts[0].evaluate([0.0])[0].shape[1]
        position, velocity, acceleration = (np.empty((len(times), joints)) for _ in range(3))
        for k in np.unique(index):
            chosen = index == k
            position[chosen], velocity[chosen], acceleration[chosen] = self._part(int(k), times[chosen])
        return position, velocity, acceleration

    def _part(self, k: int, times: Array) -> tuple[Array, Array, Array]:
        part = self.parts[k]
        return part.evaluate(np.minimum(np.maximum(times - self.starts[k], 0.0), part.duration))


@dataclass(frozen=True, kw_only=True)
class ReferenceCheck:
    """The limits that every reference has to keep."""

    model: RobotModel
    limits: JointLimits
    constraints: tuple[Constraint, ...]  # everything to keep, joint limits included
    observation: Observation  # of the torque limits
    # shape (B,), or float: excess over every bound that counts as kept: that of where an arm stands, see
    # :meth:`leaving`
    broken: Array | float = 0.0

    def leaving(self, position: Array, least: 'ReferenceCheck | None') -> 'ReferenceCheck':
        """Return the limits of an arm that stands where it breaks some: it may not break these further.

        A stop may end closer to something than a motion may come, and the next motion begins there. ``least`` has the
        limits that every place has to keep, whatever it is for; where ``position``, shape (n,) [rad or m], breaks one
        of them, or ``least`` is None, nothing is allowed.
        """
        rest = Rest(position=position, duration=_REST)
        if least is None or least.excess(rest) > 0.0:
            return self
        return replace(self, broken=np.maximum([peak.excess for peak in self.peaks(rest)], 0.0))

    def peaks(self, reference: Reference, *, rate: float = _CHECK_RATE, start: float = 0.0) -> list[Peak]:
        """Return how close a reference comes to every bound, at a rate [Hz]; ``start`` is added to the times [s]."""
        bounds = [bound for constraint in self.constraints for bound in constraint.bounds]
        worst, when = np.full(len(bounds), -np.inf), np.zeros(len(bounds))
        times = np.linspace(0.0, reference.duration, max(2, int(np.ceil(reference.duration * rate)) + 1))
        position, velocity, acceleration = reference.evaluate(times)
        jerk = np.gradient(acceleration, times, axis=0)
        for k in range(0, len(times), 4000):
            part = slice(k, k + 4000)
            excess = self._excess(position[part], velocity[part], acceleration[part], jerk[part])
            higher = excess.max(axis=0) > worst
            worst[higher], when[higher] = excess.max(axis=0)[higher], times[part][excess.argmax(axis=0)[higher]]
        found = zip(bounds, worst.tolist(), when.tolist(), strict=True)
        return [Peak(bound=bound, excess=value, time=time + start) for bound, value, time in found]

    def _excess(self, position: Array, velocity: Array, acceleration: Array, jerk: Array) -> Array:
        """Return the normalised excess over every bound, shape (N, B), of a motion, shape (N, n) each."""
        motion = Motion(self.model, (position, velocity, acceleration, jerk), self.observation)
        return np.hstack([constraint.evaluate(motion)[0] for constraint in self.constraints]) - self.broken

    def excess(self, reference: Reference, *, rate: float = _CHECK_RATE) -> float:
        """Return the largest normalised excess of a reference over all bounds."""
        return max((peak.excess for peak in self.peaks(reference, rate=rate)), default=-np.inf)

    def added_by(self, motions: Sequence[tuple[Array, Array, Array]]) -> Array:
        """Return what motions add to the normalised excesses at their beginnings, shape (M, B), none below 0.

        Each motion has its position, velocity and acceleration, shape (N, n) each, equal for all. A bound that is kept
        at the beginning counts with its excess.
        """
        position, velocity, acceleration = (np.concatenate([motion[k] for motion in motions]) for k in range(3))
        rows, count = len(motions[0][0]), len(motions)
        excess = self._excess(position, velocity, acceleration, np.zeros_like(position)).reshape(count, rows, -1)
        added: Array = np.maximum((excess - np.maximum(excess[:, :1], 0.0)).max(axis=1), 0.0)
        return np.where(added > _ROUND_OFF, added, 0.0)

    def spell(self, excess: Array) -> str:
        """Return what is broken by excesses, shape (B,), the most first, and of how many more bounds."""
        bounds = [bound for constraint in self.constraints for bound in constraint.bounds]
        broken = np.argsort(-excess)[: int((excess > 0.0).sum())]
        more = f' ({len(broken) - 1} more limits are broken)' if len(broken) > 1 else ''
        return f'{bounds[int(broken[0])].spell(float(excess[broken[0]]), None)}{more}' if len(broken) else ''

    def require(self, reference: Reference, what: str) -> None:
        """Refuse a reference that breaks a limit, naming what breaks which limit of which joint, and when."""
        require_within(self.peaks(reference), f'{what}: ')


def approach(position: Array, goal: Array, check: ReferenceCheck, velocity: float) -> tuple[Move, ...]:
    """Return one move straight to the goal, or two by way of a pose that keeps all limits.

    Present pose and goal, at rest, have the shape (n,) [rad or m]; no joint moves faster than ``velocity``. Where
    neither the straight way nor another keeps the limits, the error names the limit that the straight one breaks.
    """

    def move(start: Array, end: Array) -> Move:
        return Move(
            start=np.array(start), goal=np.array(end), duration=move_duration(start, end, check.limits, velocity)
        )

    straight = move(position, goal)
    try:
        check.require(straight, 'the straight way to the start of the trajectory')
    except ExcitationError as cause:
        # Poses to go by, those with the least detour first.
        poses = random_positions(check.model, 20 * _TRIES, check.limits)
        detour = np.abs(poses - position).max(axis=1) + np.abs(goal - poses).max(axis=1)
        for middle in poses[np.argsort(detour)[:_TRIES]]:
            parts = (move(position, middle), move(middle, goal))
            if all(check.excess(part, rate=rate) <= 0.0 for rate in (_COARSE, _CHECK_RATE) for part in parts):
                return parts
        raise ExcitationError(f'{cause}; no other way was found: move the arm to a pose with more room') from cause
    return (straight,)


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseTourConfig(Settings):
    """Settings of a tour of poses."""

    error = ExcitationError

    poses: str = setting('', 'CSV file of the poses to visit, columns position/<joint>; "robotid calibrate" writes one')
    dwell: float = setting(3.0, 'Rest at each pose', unit='s', range=(0.1, 600.0))


@dataclass(frozen=True, kw_only=True)
class PoseTour:
    """A reference that visits poses and rests at each."""

    reference: Chain  # begins and ends at rest
    poses: Array  # shape (K, n): those that are visited [rad or m]
    skipped: tuple[str, ...]  # for each pose that is not visited, the limit that the way to it from the last one breaks


def pose_tour(start: Array, poses: Array, check: ReferenceCheck, *, velocity: float, dwell: float) -> PoseTour:
    """Plan a tour: straight, each time, to the nearest pose left whose way breaks no limit.

    A pose that cannot be reached from one place waits for another. The start is where the arm stands, shape (n,), the
    poses have the shape (K, n) [rad or m]. No joint moves faster than ``velocity``; the arm rests ``dwell`` [s] at each
    pose. Refused where no pose can be reached.
    """
    parts: list[Reference] = []
    visited: list[Array] = []
    skipped: list[str] = []
    at, left = start, dict(enumerate(poses, start=1))
    while left:
        ways = [(move_duration(at, goal, check.limits, velocity), k) for k, goal in left.items()]
        skipped = []
        for duration, k in sorted(ways):
            way = Move(start=at, goal=left[k], duration=duration)
            try:
                check.require(way, f'the straight way to pose {k}')
            except ExcitationError as cause:
                skipped.append(str(cause))
                continue
            at = left.pop(k)
            parts += [way, Rest(position=at, duration=dwell)]
            visited.append(at)
            break
        else:
            break
    if not parts:
        raise ExcitationError('no pose can be reached: ' + (skipped[0] if skipped else 'the file has none'))
    return PoseTour(reference=Chain(parts=tuple(parts)), poses=np.array(visited), skipped=tuple(skipped))
