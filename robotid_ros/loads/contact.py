# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Contact of a moving arm: a torque residual beyond what its own noise and friction at standstill explain.

Predicted and measured torque while the arm moves; their difference shows contact.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, frozen_array
from robotid_ros.errors import IdentificationError
from robotid_ros.friction.model import FrictionModel
from robotid_ros.friction.terms import BREAKAWAY_SPEED
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.model.kinematics import link_transforms, tip_transforms
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueResidual:
    """Torques at one instant, each of shape (n,) [N m]."""

    predicted: Array
    measured: Array  # passed through the same low-passes as the motion; in the coordinates of the description
    external: Array  # measured - predicted: what acts on the arm from outside, or what the model lacks
    velocity: Array  # of the prediction [rad/s]; at standstill friction is indeterminate


@dataclass(slots=True)
class TorqueMonitor:
    """Predicts the torque of each joint state as it comes.

    Position, velocity, acceleration (the slope of the filtered velocity) and torque pass the same
    two first-order low-passes, so that they are delayed alike.
    """

    predictor: TorquePredictor
    cutoff: float = 10.0  # of each low-pass [Hz]
    # the same torques in another way, from positions, velocities and accelerations of shape (1, n): generated code
    torque: Callable[[Array, Array, Array], Array] | None = None
    _time: float | None = None
    _state: Array = field(default_factory=lambda: np.zeros(0))
    _count: int = 0

    def update(self, time: float, position: Array, velocity: Array, torque: Array) -> TorqueResidual | None:
        """Return the torques after one more joint state, or None until the filters have settled.

        ``time``: stamp [s]. ``position``, ``velocity``, ``torque``, shape (n,) [rad, rad/s, N m].
        """
        row = self.predictor.setup.state(position, velocity, torque)
        step = 0.0 if self._time is None else time - self._time
        if self._time is None or not 0.0 < step < 0.5:
            self._time, self._count = time, 0
            self._state = np.stack([row, row])
            return None
        share = 1.0 - np.exp(-2.0 * np.pi * self.cutoff * step)
        before = self._state[1, 1].copy()
        self._state[0] += share * (row - self._state[0])
        self._state[1] += share * (self._state[0] - self._state[1])
        self._time = time
        self._count += 1
        if self._count * step < 1.0 / self.cutoff:
            return None
        q, dq, tau = self._state[1]
        ddq = (dq - before) / step
        predicted = (self.torque or self.predictor.torque)(q[None], dq[None], ddq[None])[0]
        return TorqueResidual(predicted=predicted, measured=tau.copy(), external=tau - predicted, velocity=dq.copy())


_MEMORY = 60.0  # the spread of the residual is that of about the last minute without contact [s]
RELEASE = 0.5  # a contact ends below this part of the threshold, so that it does not flicker at it
# Below this speed [rad/s or m/s] a joint may stick; the smooth sign of identified models is 0.01 to 0.1 wide.
_SLOW = 0.05
_PIECE = 5.0  # periods of the cutoff in which one peak counts
_TAIL = 0.8  # quantile of the largest residuals beyond which they are a tail
_DIRECTIONS = 64  # of a push
_LEAST = 5.0  # s of recordings without contact


def standstill_friction(friction: FrictionModel, parameters: Array) -> Array:
    """Return how much friction a sticking joint may have, shape (n,) [N m]: the larger one of both directions."""
    n = len(parameters)
    speed = np.stack([np.full(n, sign * size) for size in (0.5 * BREAKAWAY_SPEED, _SLOW) for sign in (-1.0, 1.0)])
    still = np.zeros_like(speed)
    return np.asarray(np.abs(friction.torque(speed, parameters, still, still)).max(axis=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ContactLevels:
    """External torque beyond which a joint feels a contact, as recordings without contact show it."""

    joint_names: tuple[str, ...]
    cutoff: float  # of the two low-passes in front [Hz]
    alarms_per_hour: float  # stated rate of false alarms of the whole arm
    seconds: float  # of the recordings that they are from
    levels: Array  # shape (n,) [N m or N]

    def __post_init__(self) -> None:
        shape = (len(self.joint_names),)
        object.__setattr__(self, 'levels', frozen_array(self.levels, 'levels', shape, IdentificationError))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {
            'cutoff': self.cutoff,
            'alarms_per_hour': self.alarms_per_hour,
            'seconds': self.seconds,
            'levels': dict(zip(self.joint_names, self.levels.tolist(), strict=True)),
        }

    @classmethod
    def from_dict(cls, content: Any) -> 'ContactLevels':
        """Return what :meth:`to_dict` gave.

        Raises an IdentificationError if something is missing or has another form.
        """
        try:
            return cls(
                joint_names=tuple(content['levels']),
                cutoff=float(content['cutoff']),
                alarms_per_hour=float(content['alarms_per_hour']),
                seconds=float(content['seconds']),
                levels=np.array(list(content['levels'].values()), dtype=float),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as cause:
            raise IdentificationError(f'no levels of robotid contact: {cause}') from cause


def contact_levels(
    runs: Sequence[tuple[float, Array]], joint_names: tuple[str, ...], cutoff: float, alarms_per_hour: float = 1.0
) -> ContactLevels:
    """Return the levels that recordings without contact pass as often as is stated, however short they are.

    Of a joint's largest external torques in pieces of 5/f, those beyond the quantile u0 exceed it by exponentially
    distributed amounts (peaks over threshold); k of them, of mean theta, in the time T predict that a level u is passed

        k / T (1 + (u - u0) / (k theta))^-k

    times per unit of time, theta being known no better than k excesses tell (its posterior, without a prior). At u that
    is the rate of false alarms. Rice's formula, for a Gaussian residual, is far below it on real arms: models err.
    They err differently in each motion: where there are several recordings, each is compared with the levels of the
    others, and a joint's level is raised by the largest ratio by which one passes it. Raises an IdentificationError if
    the runs are too short.

    ``runs``: of each recording the rate [Hz] and the external torque, shape (N, n) [N m], as :func:`monitored` returns
    it. ``cutoff``: f, of each low-pass [Hz].

    Source: S. Coles, An Introduction to Statistical Modeling of Extreme Values, Springer 2001, chapter 4.
    """
    seconds = sum(len(external) / rate for rate, external in runs)
    if seconds < _LEAST:
        raise IdentificationError(f'expected at least {_LEAST:g} s without contact, got {seconds:.3g} s')
    if not alarms_per_hour > 0.0:
        raise IdentificationError(f'alarms per hour: expected a positive number, got {alarms_per_hour:g}')
    peaks = [_peaks(rate, external, cutoff) for rate, external in runs]
    levels = _tail_levels(peaks, cutoff, alarms_per_hour)
    if len(peaks) > 1:
        others = [_tail_levels([*peaks[:k], *peaks[k + 1 :]], cutoff, alarms_per_hour) for k in range(len(peaks))]
        ratio = np.array([each.max(axis=0) / level for each, level in zip(peaks, others, strict=True)])
        levels = levels * np.maximum(ratio.max(axis=0), 1.0)
    return ContactLevels(
        joint_names=joint_names, cutoff=cutoff, alarms_per_hour=alarms_per_hour, seconds=seconds, levels=levels
    )


def _peaks(rate: float, external: Array, cutoff: float) -> Array:
    """Return the largest external torque in each piece of 5/f, shape (B, n)."""
    length = min(max(1, round(_PIECE * rate / cutoff)), len(external))
    count = len(external) // length
    return np.asarray(np.abs(external[: count * length]).reshape(count, length, -1).max(axis=1))


def _tail_levels(peaks: Sequence[Array], cutoff: float, alarms_per_hour: float) -> Array:
    highest = np.concatenate(peaks)
    seconds, n = len(highest) * _PIECE / cutoff, highest.shape[1]
    levels = np.empty(n)
    for j in range(n):
        start = float(np.quantile(highest[:, j], _TAIL))
        excess = highest[highest[:, j] > start, j] - start
        k, mean = max(len(excess), 1), float(excess.mean()) if len(excess) else 0.0
        often = max(k / seconds * 3600.0 * n / alarms_per_hour, 1.0)
        levels[j] = start + k * mean * (often ** (1.0 / k) - 1.0)
    return np.maximum(levels, 1e-9)


def monitored(
    predictor: TorquePredictor,
    rate: float,
    position: Array,
    torque: Array,
    cutoff: float,
) -> Array:
    """Return the external torque along an even recording as the live monitor sees it, shape (N - M, n).

    The first M samples, until its filters have settled, are left out.
    """
    from scipy.signal import lfilter  # not at the top: see robotid_ros.signals.filtering

    velocity = np.gradient(position, 1.0 / rate, axis=0)
    rows = np.stack([predictor.setup.state(*row) for row in zip(position, velocity, torque, strict=True)])
    share = 1.0 - np.exp(-2.0 * np.pi * cutoff / rate)
    for _ in range(2):
        rows = lfilter([share], [1.0, share - 1.0], rows - rows[0], axis=0) + rows[0]
    q, dq, tau = rows[1:].transpose(1, 0, 2)
    ddq = np.diff(rows[:, 1], axis=0) * rate
    settled = int(np.ceil(2.0 * rate / cutoff))
    return np.asarray((tau - predictor.torque(q, dq, ddq))[settled:])


def smallest_push(model: RobotModel, levels: Array, q: Array) -> tuple[float, float]:
    """Return the force at the tip that some joint feels [N]: in the median, and for nine of ten poses and directions.

    A force F along d loads joint j by F J_j d, with J the Jacobian of the tip; ``levels`` has the shape (n,), q (N, n).
    """
    frames, tip = link_transforms(model, q), tip_transforms(model, q)[:, :3, 3]
    axes = np.einsum('Nnij,nj->Nni', frames[:, :, :3, :3], model.axes)
    lever = np.cross(axes, tip[:, None] - frames[:, :, :3, 3])
    jacobian = np.einsum('Nni,nm->Nmi', np.where(model.revolute[:, None], lever, axes), model.coupling)
    # evenly over the sphere (Fibonacci's lattice)
    index = np.arange(_DIRECTIONS) + 0.5
    height, turn = 1.0 - 2.0 * index / _DIRECTIONS, np.pi * (1.0 + 5.0**0.5) * index
    across = np.sqrt(1.0 - height**2)
    directions = np.stack([across * np.cos(turn), across * np.sin(turn), height], axis=1)
    load = np.abs(np.einsum('Nni,di->Ndn', jacobian, directions))
    force = 1.0 / np.max(load / levels, axis=2)
    return float(np.median(force)), float(np.quantile(force, 0.9))


@dataclass(slots=True)
class ContactDetector:
    """Tells contact from noise, with a stated rate of false alarms.

    A Gaussian residual of n joints with standard deviation s, behind two first-order low-passes of the
    frequency f, exceeds the threshold

        u = s sqrt(2 ln(2 n f T / a))

    a times in the time T (S. O. Rice, Bell System Technical Journal 23 (1944), eq. 3.3-11: a process
    crosses zero upwards f times a second here). s follows the residual outside of contacts. A joint
    slower than 0.05 rad/s may stick; its threshold is larger by the friction that it may then have, for
    1/f longer: so long the filters still mix both directions.
    """

    spread: Array  # shape (n,): first standard deviation, for example the residual of the identification [N m]
    bandwidth: float  # f [Hz]
    friction: Array  # shape (n,): see :func:`standstill_friction` [N m]
    alarms_per_hour: float = 1.0  # a / T
    # take the place of the threshold above, which real arms exceed more often than stated
    levels: ContactLevels | None = None
    touched: BoolArray = field(init=False)  # shape (n,): which joints felt a contact at the last update
    _variance: Array = field(init=False)
    _slow_until: Array = field(init=False)
    _time: float | None = None

    def __post_init__(self) -> None:
        self._variance = np.asarray(self.spread, dtype=float) ** 2
        self.touched = np.zeros(len(self._variance), dtype=bool)
        self._slow_until = np.full(len(self._variance), -np.inf)

    @property
    def threshold(self) -> Array:
        """Threshold of joints in motion, shape (n,) [N m]."""
        crossings = 2.0 * len(self._variance) * self.bandwidth * 3600.0
        return np.asarray(np.sqrt(2.0 * np.log(max(crossings / self.alarms_per_hour, np.e)) * self._variance))

    def update(self, time: float, external: Array, velocity: Array) -> BoolArray:
        """Return which joints feel a contact at a stamp [s], shape (n,) of bool.

        ``external`` is the measured less the predicted torque [N m], of shape (n,) as the velocities are [rad/s].
        """
        size = np.abs(external)
        self._slow_until = np.where(np.abs(velocity) < _SLOW, time + 1.0 / self.bandwidth, self._slow_until)
        slow = time < self._slow_until
        limit = self.threshold + slow * self.friction if self.levels is None else self.levels.levels
        self.touched = size > np.where(self.touched, RELEASE, 1.0) * limit
        step = 0.0 if self._time is None else time - self._time
        self._time = time
        if 0.0 < step < 1.0 and not self.touched.any():
            share = 1.0 - np.exp(-step / _MEMORY)
            self._variance = np.where(slow, self._variance, self._variance + share * (size**2 - self._variance))
        return self.touched.copy()
