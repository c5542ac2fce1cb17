# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Final check of a trajectory, also between samples, and scaling into the limits."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.constraints import Bound, Constraint
from robotid_ros.excitation.fourier import FourierTrajectory, trajectory_extremes
from robotid_ros.excitation.motion import Motion
from robotid_ros.excitation.observation import Observation
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel

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
    regressor_of = None if observation is None else observation.regressor

    def excess_of(constraint: Constraint, times: Array) -> Array:
        chunks = (times[k : k + _CHUNK] for k in range(0, len(times), _CHUNK))  # they fit the cache
        return np.concatenate(
            [constraint.evaluate(Motion.of(trajectory, model, chunk, regressor_of))[0] for chunk in chunks]
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


def require_within(peaks: Sequence[Peak]) -> None:
    """Refuse a trajectory that breaks a bound, naming the quantity, joint or link, limit and time."""
    broken = sorted((peak for peak in peaks if peak.excess > _TOLERANCE), key=lambda peak: -peak.excess)
    if broken:
        more = f' ({len(broken) - 1} more limits are broken)' if len(broken) > 1 else ''
        raise ExcitationError(f'{broken[0]}{more}')


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
