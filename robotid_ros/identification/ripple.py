# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Torque ripple: its frequency per joint, where held-out data confirm it."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.samples import Samples

_FREQUENCIES = (20.0, 1000.0)  # 1/rad: 2 N of a gear of 10 to 4 N of one of 250
_EVIDENCE = 10.0  # gain of the log-likelihood, beyond what the best of so many frequencies gains by chance
_SHARE = 0.3  # least share of the residual's squares that a ripple must explain
_PREDICTED = 0.1  # least share of the squares that it must explain in held-out motion
_MOST = 1500  # frequencies tried at most
_BLOCK = 250  # frequencies computed at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Unexplained:
    """Residual of a fit without ripple, and its friction columns.

    Attributes
    ----------
    filtered, recorded : ndarray, shape (N, n)
        Residual of the torque as filtered for the fit, and as recorded [N m].
    own, own_recorded : ndarray, shape (N, n, k)
        Friction columns, filtered like the one and like the other.
    """

    filtered: Array
    recorded: Array
    own: Array
    own_recorded: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class RippleEvidence:
    """Evidence of a torque ripple, joint by joint.

    Attributes
    ----------
    frequency : ndarray, shape (n,)
        0 where there is none [1/rad].
    gain : ndarray, shape (n,)
        Of the log-likelihood, beyond chance.
    predicted : ndarray, shape (n,)
        Share of a held-out fold's squared residual that a ripple found in the other folds takes away; 0
        where the gain was too small to be tested.
    """

    frequency: Array
    gain: Array
    predicted: Array


def find_ripple(samples: Samples, unexplained: Unexplained, limit: float, fold: IntArray) -> RippleEvidence:
    """Find the ripple of each joint, and test it on held-out motion.

    For every frequency of a grid as fine as the joint's range of motion allows, what the two ripple
    columns explain of the residual beyond the friction columns:
    gain = N_e/2 log(rss_0 / rss), with N_e = 2 f T independent samples of a channel of bandwidth f.

    Errors at reversals are systematic, and among a thousand frequencies one fits them all. Frequency and
    amplitudes are therefore found again without each fold, and have to explain a part of the squares of that fold,
    in the torque as filtered and as recorded.

    Parameters
    ----------
    samples : Samples
    unexplained : Unexplained
    limit : float
        Fastest ripple that counts [Hz].
    fold : ndarray of int, shape (N,)
        From 0; see :class:`robotid_ros.identification.cross_validation.Folds`.

    Returns
    -------
    RippleEvidence
    """
    frequency, gains, predicted = np.zeros(samples.n), np.zeros(samples.n), np.zeros(samples.n)
    per_sample = samples.independent_per_sample
    for j in range(samples.n):
        spread = float(np.ptp(samples.q[:, j]))
        count = min(int((_FREQUENCIES[1] - _FREQUENCIES[0]) * spread / 1.5), _MOST)
        search = _Search(samples, unexplained, limit, fold, j)
        if count < 2 or search.square <= 0.0:
            continue
        grid = np.linspace(*_FREQUENCIES, count)
        sums = np.concatenate([search.sums(part) for part in _blocks(grid)], axis=2)
        explained = _explained(sums.sum(axis=0))
        best = int(np.argmax(explained))
        share = min(float(explained[best]) / search.square, 1.0 - 1e-12)
        independent = per_sample * float(samples.weight[:, j].sum())
        gains[j] = -0.5 * independent * np.log1p(-share) - np.log(count)
        if gains[j] > _EVIDENCE and share > _SHARE:
            others = sums.sum(axis=0) - sums
            predicted[j] = search.predicted([float(grid[np.argmax(_explained(other))]) for other in others])
            frequency[j] = grid[best] if predicted[j] > _PREDICTED else 0.0
    return RippleEvidence(frequency=frequency, gain=gains, predicted=predicted)


def _blocks(grid: Array) -> list[Array]:
    return [grid[start : start + _BLOCK] for start in range(0, len(grid), _BLOCK)]


def _explained(sums: Array) -> Array:
    """Return how much of the sum of squares two columns explain, shape (F,), from their products (5, F)."""
    a, b, c, x, y = sums
    determinant = np.maximum(a * c - b * b, 1e-6 * a * c + 1e-300)
    return np.asarray((c * x * x - 2.0 * b * x * y + a * y * y) / determinant)


class _Search:
    """One joint's residual and ripple columns, weighted, and without what its friction columns explain."""

    def __init__(self, samples: Samples, unexplained: Unexplained, limit: float, fold: IntArray, joint: int) -> None:
        self.samples, self.limit, self.fold = samples, limit, fold
        self.q, self.dq = samples.q[:, joint, None], samples.dq[:, joint, None]
        self.root = np.sqrt(samples.weight[:, joint, None])
        self.own_recorded = unexplained.own_recorded[:, joint]
        self.own = unexplained.own[:, joint] * self.root
        self.inverse = np.linalg.pinv(self.own, rcond=1e-9)
        self.recorded = unexplained.recorded[:, joint, None]
        target = unexplained.filtered[:, joint, None] * self.root
        self.target = target - self.own @ (self.inverse @ target)
        self.square = float(np.sum(self.target**2))

    def waves(self, grid: Array) -> Array:
        """Return the two columns of each frequency before any channel, shape (N, 2 F)."""
        damping = 1.0 / (1.0 + (grid * self.dq / (2.0 * np.pi * self.limit)) ** 4)
        return np.concatenate([np.sin(grid * self.q) * damping, np.cos(grid * self.q) * damping], axis=1)

    def sums(self, grid: Array) -> Array:
        """Return the products of sine, cosine and residual, fold by fold, shape (folds, 5, F)."""
        columns = self.samples.filtered(self.waves(grid)) * self.root
        columns -= self.own @ (self.inverse @ columns)
        result = np.empty((int(self.fold.max()) + 1, 5, len(grid)))
        for k in range(len(result)):
            rows = self.fold == k
            s, c, r = columns[rows, : len(grid)], columns[rows, len(grid) :], self.target[rows]
            result[k] = [(s * s).sum(0), (s * c).sum(0), (c * c).sum(0), (s * r).sum(0), (c * r).sum(0)]
        return result

    def predicted(self, frequencies: list[float]) -> float:
        """Return the share of squares that ripples found in the other folds take away, one frequency per fold."""
        filtered, recorded = 0.0, 0.0
        for k, frequency in enumerate(frequencies):
            held = self.fold == k
            waves = self.waves(np.array([frequency]))
            columns = self.samples.filtered(waves) * self.root
            along = self.inverse @ columns
            columns = columns - self.own @ along
            amplitudes = np.linalg.lstsq(columns[~held], self.target[~held], rcond=None)[0]
            before = self.target[held]
            filtered += float(np.sum(before**2) - np.sum((before - columns[held] @ amplitudes) ** 2))
            plain = (self.samples.recorded(waves) - self.own_recorded @ along)[held] * self.root[held]
            before = self.recorded[held] * self.root[held]
            recorded += float(np.sum(before**2) - np.sum((before - plain @ amplitudes) ** 2))
        return min(filtered, recorded) / self.square


def with_ripple(friction: FrictionModel, frequency: Array, limit: float) -> FrictionModel:
    """Return a friction model with a ripple added to some of its joints."""
    return friction_model(
        friction.name,
        velocity_scale=friction.velocity_scale,
        ripple_frequency=frequency,
        ripple_limit=limit,
        spring=friction.spring,
    )
