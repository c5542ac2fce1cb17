# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Joint and torque limits along a motion: excesses, exact gradients and names; how close a trajectory comes to them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.fourier import FourierTrajectory, trajectory_extremes
from robotid_ros.excitation.motion import Motion, MotionGradient, Observation
from robotid_ros.model.inertia import joint_unit
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel

Pullback: TypeAlias = Callable[[Array, MotionGradient], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """One bound: sign * value <= sign * bound."""

    quantity: str  # such as 'velocity', of "joint 'elbow'", in 'rad/s'
    subject: str
    unit: str
    bound: float  # the largest value allowed (sign +1), or the smallest one (sign -1)
    sign: float  # +1 or -1
    scale: float  # divisor of an excess, so that excesses of different units can be compared

    @property
    def label(self) -> str:
        """The bound in words: "velocity of joint 'elbow' <= 3.14 rad/s"."""
        return f'{self.quantity} of {self.subject} {"<=" if self.sign > 0 else ">="} {self.bound:.6g} {self.unit}'

    def spell(self, excess: float, time: float | None) -> str:
        """Return a clause that says how the bound was broken, by which normalised excess, and when [s]."""
        value = self.bound + self.sign * self.scale * excess
        when = '' if time is None else f' at t = {time:.3f} s'
        side = 'largest' if self.sign > 0 else 'smallest'
        return (
            f'{self.quantity} of {self.subject} is {value:.6g} {self.unit}{when}, '
            f'the {side} allowed is {self.bound:.6g} {self.unit}'
        )


def joint_bound(model: RobotModel, j: int, quantity: str, per: str, bound: float, sign: float, scale: float) -> Bound:
    """Return a bound of a joint's motion, whose unit is that of its position ``per`` something, or of its torque."""
    revolute = model.joint_types[j] == 'revolute'
    unit = ('N m' if revolute else 'N') if 'torque' in quantity else joint_unit('rad', model.joint_types[j]) + per
    subject = f"joint '{model.joint_names[j]}'"
    return Bound(quantity=quantity, subject=subject, unit=unit, bound=bound, sign=sign, scale=scale)


class Constraint(Protocol):
    """Bounds on a motion that hold at every instant."""

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The m bounds, in the order of the columns of :meth:`evaluate`."""
        ...

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses and their pull-back.

        The excess of bound k is sign (value - bound) / scale, shape (N, m): positive where it is broken. The pull-back
        takes weights of the same shape and adds the gradient of their weighted sum.
        """
        ...


def excess_at_rest(
    constraints: Sequence[Constraint], model: RobotModel, poses: Array, observation: Observation | None = None
) -> Array:
    """Return the largest normalised excess of an arm that stands in each of some poses (P, n), shape (P,).

    It is minus infinity where there are no bounds. Torque limits need the observation.
    """
    still = np.zeros_like(poses)
    motion = Motion(model, (poses, still, still, still), observation)
    parts = [np.full((len(poses), 1), -np.inf), *(constraint.evaluate(motion)[0] for constraint in constraints)]
    return np.asarray(np.hstack(parts).max(axis=1))


def sides_of(limits: JointLimits) -> tuple[tuple[str, str, Array, Array], ...]:
    """Return what is limited, from position to jerk, the suffix of its unit, and its lower and upper limits."""
    return (
        ('position', '', limits.lower, limits.upper),
        ('velocity', '/s', -limits.velocity, limits.velocity),
        ('acceleration', '/s^2', -limits.acceleration, limits.acceleration),
        ('jerk', '/s^3', -limits.jerk, limits.jerk),
    )


def usual_ranges(limits: JointLimits) -> tuple[Array, Array]:
    """Return the lowest and highest position of each joint; half a turn to either side where there is no limit."""
    low = np.where(np.isfinite(limits.lower), limits.lower, -np.pi)
    return low, np.where(np.isfinite(limits.upper), limits.upper, np.pi)


class JointRanges:
    """Position, velocity, acceleration and jerk limits of the joints; the model gives names and units."""

    def __init__(self, model: RobotModel, limits: JointLimits) -> None:
        bounds: list[Bound] = []
        columns: list[int] = []
        for order, (quantity, suffix, lower, upper) in enumerate(sides_of(limits)):
            for j in range(model.n):
                half = float(upper[j] - lower[j]) / 2.0
                scale = half if np.isfinite(half) and half > 1e-6 else 1.0
                for sign, bound in ((-1.0, lower[j]), (1.0, upper[j])):
                    if np.isfinite(bound):
                        bounds.append(joint_bound(model, j, quantity, suffix, float(bound), sign, scale))
                        columns.append(order * model.n + j)
        self.bounds = tuple(bounds)
        self._bound = np.array([bound.bound for bound in bounds])
        self._factor = np.array([bound.sign / bound.scale for bound in bounds])
        self._column = np.array(columns, dtype=np.int64)

    def _excess(self, values: Array) -> Array:
        """Return the normalised excesses of positions and their derivatives side by side, shape (N, 4 n)."""
        return np.asarray(self._factor * (values[:, self._column] - self._bound))

    def extreme_excess(self, trajectory: FourierTrajectory) -> float:
        """Return the largest normalised excess of a trajectory over all bounds, exactly."""
        extremes, _ = trajectory_extremes(trajectory)
        return float(self._excess(extremes.reshape(-1, 2).T).max(initial=-np.inf))

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see :class:`Constraint`."""

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            for column, scaled in zip(self._column, (weights * self._factor).T, strict=True):
                order, j = divmod(column, motion.model.n)
                gradient.derivatives[order, :, j] += scaled

        return self._excess(np.hstack(motion.derivatives)), pullback


_FALLING = {'velocity': 1, 'acceleration': 2, 'effort': None}  # derivative of the position, for a torque none


class FallingLimits:
    """Limits of a quantity that fall towards the ends of the range; the model gives names and units.

        |x| <= max(0, sqrt(slope * distance) - offset)

    with a velocity, an acceleration or a torque x, and the distance to the end that it acts to.

    ``quantity`` is 'velocity', 'acceleration' or 'effort', of which a torque is that of the prior model.
    """

    def __init__(self, model: RobotModel, limits: JointLimits, quantity: str) -> None:
        slope, offset, *ends = limits.falling(quantity) or 4 * (np.full(model.n, np.inf),)
        self._rows = [
            (j, sign, float(slope[j]), float(offset[j]), float(end[j]))
            for sign, end in zip((-1.0, 1.0), ends, strict=True)
            for j in range(model.n)
            if np.isfinite(slope[j]) and np.isfinite(end[j])
        ]
        largest = getattr(limits, quantity)
        self._scale = np.where(np.isfinite(largest), largest, 1.0)
        self._order = _FALLING[quantity]
        called = f'{"torque" if quantity == "effort" else quantity} beyond what its position allows'
        per = '/s' if quantity == 'velocity' else '/s^2'
        self.bounds = tuple(
            joint_bound(model, j, called, per, 0.0, sign, float(self._scale[j])) for j, sign, *_ in self._rows
        )

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see :class:`Constraint`."""
        order = self._order
        values = motion.torque if order is None else motion.derivatives[order]
        excess = np.empty((len(motion), len(self._rows)))
        slopes = np.empty_like(excess)
        for k, (j, sign, slope, offset, end) in enumerate(self._rows):
            distance = np.maximum(sign * (end - motion.q[:, j]), 1e-9)
            allowed = np.sqrt(slope * distance) - offset
            excess[:, k] = (sign * values[:, j] - np.maximum(allowed, 0.0)) / self._scale[j]
            slopes[:, k] = np.where(allowed > 0.0, 0.5 * slope / np.sqrt(slope * distance), 0.0)

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            forces = np.zeros(motion.q.shape)
            for k, (j, sign, *_) in enumerate(self._rows):
                scaled = sign * weights[:, k] / self._scale[j]
                forces[:, j] += scaled
                gradient.derivatives[0, :, j] += scaled * slopes[:, k]
            if order is None:
                gradient.add_torque(motion, forces)
            else:
                gradient.derivatives[order] += forces

        return excess, pullback


class TorqueLimits:
    """Torque limits of the joints under the prior model: tau = Y beta.

    The torque is linear in the regressor, so its gradient goes through the regressor's. ``effort``, shape (n,), are the
    largest torque magnitudes [N m or N], infinity where there is none.
    """

    def __init__(self, model: RobotModel, effort: Array) -> None:
        self._joints = np.flatnonzero(np.isfinite(effort))
        self._effort = np.asarray(effort)[self._joints]
        self.bounds = tuple(
            joint_bound(model, int(j), 'torque', '', sign * float(effort[j]), sign, float(effort[j]))
            for sign in (-1.0, 1.0)
            for j in self._joints
        )

    def evaluate(self, motion: Motion) -> tuple[Array, Pullback]:
        """Return the normalised excesses, shape (N, m), and their pull-back; see :class:`Constraint`."""
        relative = motion.torque[:, self._joints] / self._effort

        def pullback(weights: Array, gradient: MotionGradient) -> None:
            half = len(self._joints)
            per_joint = (weights[:, half:] - weights[:, :half]) / self._effort
            full = np.zeros(motion.q.shape)
            full[:, self._joints] = per_joint
            gradient.add_torque(motion, full)

        return np.hstack([-relative - 1.0, relative - 1.0]), pullback


def check_reachable(model: RobotModel, limits: JointLimits, start: Sequence[float]) -> None:
    """Refuse limits that no periodic motion can satisfy, and limits that do not bound it.

    Raises an ExcitationError naming the joint and the limit.
    """
    for j, name in enumerate(model.joint_names):
        unit = joint_unit('rad', model.joint_types[j])
        lower, upper = limits.lower[j], limits.upper[j]
        if not upper - lower > 1e-6:
            raise ExcitationError(
                f"position limits of joint '{name}' leave no room to move: lower {lower:g} {unit}, "
                f'upper {upper:g} {unit}; widen them, or leave the joint out'
            )
        reach = upper - lower
        if not np.isfinite([reach, limits.velocity[j], limits.acceleration[j]]).any():
            raise ExcitationError(
                f"joint '{name}' has no finite position range, velocity limit or acceleration limit, "
                'so its best motion is unbounded; give at least one of them'
            )
        if len(start) and not lower <= start[j] <= upper:
            raise ExcitationError(
                f"start position of joint '{name}' is {start[j]:g} {unit}, "
                f'outside its limits {lower:g} to {upper:g} {unit}'
            )


_FINE_RATE, _COARSE_RATE = 10_000.0, 1_000.0
_CHUNK = 4_000
_NEAR = 0.01  # normalised distance from a bound below which a maximum is resolved finely
_TOLERANCE = 1e-9  # normalised excess that is round-off


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """Closest approach of a motion to one bound."""

    bound: Bound
    excess: float  # largest normalised excess; positive where the bound is broken
    time: float  # when [s]

    def __str__(self) -> str:
        return self.bound.spell(self.excess, self.time)


def worst_excesses(
    trajectory: FourierTrajectory,
    model: RobotModel,
    constraints: Sequence[Constraint],
    observation: Observation | None = None,
    *,
    rate: float = _FINE_RATE,
) -> list[Peak]:
    """Return, for every bound, how close one period of the trajectory comes to it.

    The motion is sampled at 1 kHz, and at ``rate`` [Hz] around every local maximum within one per cent of a bound or
    beyond it; between two samples at 1 kHz a smooth excess changes by far less. Torque limits need the observation.
    """

    def excess_of(constraint: Constraint, times: Array) -> Array:
        chunks = (times[k : k + _CHUNK] for k in range(0, len(times), _CHUNK))  # they fit the cache
        return np.concatenate(
            [constraint.evaluate(Motion.of(trajectory, model, chunk, observation))[0] for chunk in chunks]
        )

    peaks: list[Peak] = []
    coarse = trajectory.sample_times(min(rate, _COARSE_RATE))
    step = trajectory.period / len(coarse)
    factor = max(1, int(np.ceil(rate * step - 1e-9)))
    for constraint in constraints:
        if not constraint.bounds:
            continue
        excess = excess_of(constraint, coarse)
        times, worst = coarse[np.argmax(excess, axis=0)], excess.max(axis=0)
        peaked = (excess >= np.roll(excess, 1, axis=0)) & (excess >= np.roll(excess, -1, axis=0))
        near = np.flatnonzero((peaked & (excess > -_NEAR)).any(axis=1))
        if factor > 1 and len(near):
            offsets = np.arange(-factor + 1, factor) * (step / factor)
            fine = np.unique(np.add.outer(coarse[near], offsets))
            closer = excess_of(constraint, fine)
            better = closer.max(axis=0) > worst
            times = np.where(better, np.mod(fine[np.argmax(closer, axis=0)], trajectory.period), times)
            worst = np.maximum(worst, closer.max(axis=0))
        peaks += [
            Peak(bound=bound, excess=float(worst[k]), time=float(times[k])) for k, bound in enumerate(constraint.bounds)
        ]
    return peaks


def require_within(peaks: Sequence[Peak], what: str = '') -> None:
    """Refuse what breaks a bound, naming the quantity, joint or link, limit and time; ``what`` begins the message."""
    broken = sorted((peak for peak in peaks if peak.excess > _TOLERANCE), key=lambda peak: -peak.excess)
    if broken:
        more = f' ({len(broken) - 1} more limits are broken)' if len(broken) > 1 else ''
        raise ExcitationError(f'{what}{broken[0]}{more}')


def scale_into_joint_limits(
    trajectory: FourierTrajectory, limits: JointLimits, start: Array | None = None
) -> FourierTrajectory:
    """Return the trajectory with each joint's amplitude reduced until all its joint limits hold.

    The extremes are exact, and so is the result. Scaling keeps zero velocity and acceleration at the start; with a
    given start position, shape (n,), the joint is scaled about it, otherwise its mean position moves as far as needed.
    """
    extremes, _ = trajectory_extremes(trajectory)
    low, high = extremes[0, :, 0], extremes[0, :, 1]
    with np.errstate(divide='ignore', invalid='ignore'):
        ratios = [
            limit / np.abs(extremes[order]).max(axis=1)
            for order, limit in ((1, limits.velocity), (2, limits.acceleration), (3, limits.jerk))
        ]
        if start is None:
            ratios.append((limits.upper - limits.lower) / (high - low))
        else:
            ratios += [(limits.upper - start) / (high - start), (limits.lower - start) / (low - start)]
    # 1e-9 of the range stays free, so that rounding elsewhere never breaks a limit
    ratios = [np.where(np.isnan(ratio) | (ratio * (1.0 - 1e-9) >= 1.0), 1.0, ratio * (1.0 - 1e-9)) for ratio in ratios]
    factor = np.clip(np.min(ratios, axis=0), 0.0, 1.0)
    if start is not None:
        offset = start + factor * (trajectory.offset - start)
    else:
        below, above = factor * (low - trajectory.offset), factor * (high - trajectory.offset)
        slack = 5e-10 * np.where(np.isfinite(limits.upper - limits.lower), limits.upper - limits.lower, 0.0)
        offset = np.clip(trajectory.offset, limits.lower - below + slack, limits.upper - above - slack)
    return replace(trajectory, a=trajectory.a * factor[:, None], b=trajectory.b * factor[:, None], offset=offset)


def scale_into_limits(
    trajectory: FourierTrajectory,
    model: RobotModel,
    limits: JointLimits,
    constraints: Sequence[Constraint],
    observation: Observation | None = None,
    start: Array | None = None,
) -> tuple[FourierTrajectory, list[Peak]]:
    """Return the trajectory scaled back until every limit holds, and how close it comes to each.

    Joint limits are met exactly, joint by joint. For the others all amplitudes shrink together about the mean (or given
    start) position. Where even standing still breaks a limit, the error names it.
    """
    inside = scale_into_joint_limits(trajectory, limits, start)
    centre = inside.offset if start is None else start
    factor = 1.0
    for attempt in range(40):
        scaled = replace(
            inside, a=factor * inside.a, b=factor * inside.b, offset=centre + factor * (inside.offset - centre)
        )
        # a tenth of the rate already shows most of the excess
        for rate in (_COARSE_RATE / 10.0, _FINE_RATE):
            peaks = worst_excesses(scaled, model, constraints, observation, rate=rate)
            worst = max((peak.excess for peak in peaks), default=0.0)
            if worst > 0.0:
                break
        else:
            return scaled, peaks
        # static parts, such as the torque of gravity, do not shrink with the amplitude: scale further, step by step
        factor *= 1.0 - min(max(1.2 * worst, 1e-6) * 1.6**attempt, 0.3)
    require_within(peaks)
    return scaled, peaks
