# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Cross-validated torque errors, by which every automatic choice is judged.

A fit minimises the error against the filtered torque; it is judged by the torque as recorded, on stretches of the
recordings that were held out. A linear model needs only a small Gram matrix of each stretch, so that weights and
priors can be tried without another pass over the samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from warnings import catch_warnings, simplefilter

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.identification.information import Information, gather
from robotid_ros.identification.samples import Samples

STRETCHES = 12
_FOLDS = 4  # each fit learns from three quarters of the data
_MOST_RECORDINGS = 6  # up to so many recordings, each is a fold; more of them share so many folds
_SAME_STATE = 0.15  # root-mean-square distance over the joints, in standard deviations of position and speed
_REGIONS = 4  # as many as folds; with eight, those left are too near to the one held out to tell
_SLIGHT = 0.1  # of the largest spread of a joint: less counts as so much, so that noise of a parked joint is no motion
_BLOCK = 256  # samples compared with all earlier ones at a time, for memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One of several possibilities, and its error on data that it was not fitted to.

    Attributes
    ----------
    name : str
    error : ndarray, shape (n,)
        Root-mean-square torque error of each joint against the torque as recorded [N m].
    """

    name: str
    error: Array

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {'name': self.name, 'error': [float(f'{x:.6g}') for x in self.error]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An automatic choice with its alternatives.

    Attributes
    ----------
    subject : str
        What was chosen: 'cutoff', 'friction', ...
    chosen : str
    alternatives : tuple of Alternative
        Empty where there was nothing to compare.
    """

    subject: str
    chosen: str
    alternatives: tuple[Alternative, ...] = ()

    def __str__(self) -> str:
        return f'{self.subject}: {self.chosen}'

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        return {
            'subject': self.subject,
            'chosen': self.chosen,
            'alternatives': [each.to_dict() for each in self.alternatives],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Mean square torque errors on stretches that a fit did not see.

    Attributes
    ----------
    filtered : ndarray, shape (K, n)
        Against the torque that is fitted [(N m)^2].
    recorded : ndarray, shape (K, n)
        Against the torque as recorded, which has more noise. Only this one shows errors that the filter hides, a
        spike of the model at each reversal for example.
    """

    filtered: Array
    recorded: Array

    @property
    def rmse(self) -> Array:
        """Root mean square against the torque as recorded, shape (n,) [N m]."""
        return np.asarray(np.sqrt(self.recorded.mean(axis=0)))

    def gain(self, new: 'HeldOut') -> Array:
        """Return by how much each joint's error falls, in the filtered torque and in the recorded one, shape (n,)."""
        filtered = (self.filtered - new.filtered).mean(axis=0)
        return np.asarray(np.minimum(filtered, (self.recorded - new.recorded).mean(axis=0)))

    def joints_better(self, new: 'HeldOut', share: float) -> BoolArray:
        """Return which joints' errors fall by more than this share and one standard error over the stretches."""
        gain = self.filtered - new.filtered
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
        least = self.filtered.mean(axis=0) * (1.0 - (1.0 - share) ** 2)
        return np.asarray(self.gain(new) > np.maximum(error, least))

    def better(self, new: 'HeldOut', share: float) -> bool:
        """Return whether the joints' errors fall, in the geometric mean, by more than this share and one
        standard error over the stretches.
        """
        before = np.maximum(self.filtered.mean(axis=0), 1e-300)
        change = float(np.mean(np.log1p(-np.minimum(self.gain(new) / before, 1.0 - 1e-9))))
        gain = np.mean((self.filtered - new.filtered) / before, axis=1)
        error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
        return bool(change < 2.0 * np.log(1.0 - share) and float(gain.mean()) > error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folds:
    """Assignment of samples to stretches and folds for cross-validation.

    Attributes
    ----------
    stretch : ndarray of int, shape (N,)
        Number of the stretch that a sample belongs to.
    fold : ndarray of int, shape (N,)
        Number of the fold; a fold holds whole stretches.
    """

    stretch: IntArray
    fold: IntArray

    @classmethod
    def of(cls, samples: Samples) -> 'Folds':
        """Return folds of whole recordings where there are several, of stretches of time where there is one."""
        recording = samples.recordings
        count = len(set(recording.tolist()))
        stretch = stretches(samples)
        if count == 1:
            return cls(stretch=stretch, fold=stretch % _FOLDS)
        within = np.minimum(stretch * 3 // STRETCHES, 2)  # three parts of each recording, for a standard error
        return cls(stretch=3 * recording + within, fold=recording % _MOST_RECORDINGS)

    @classmethod
    def of_regions(cls, samples: Samples) -> 'Folds':
        """Return folds of regions of joint space: groups of neighbouring positions, by k-means.

        A stretch of time lies between others, and most of the positions in it are near to some that were fitted. The
        error in a region that was left out tells what the parameters do where the arm has not been (Roberts et al.,
        Ecography 40 (2017), 913-929: blocks of the predictors' space for extrapolation).
        """
        from scipy.cluster.vq import kmeans2  # not at the top: see robotid_ros.signals.filtering

        spread = np.std(samples.q, axis=0)
        places = (samples.q - samples.q.mean(axis=0)) / np.maximum(spread, max(_SLIGHT * float(spread.max()), 1e-9))
        axis = np.linalg.svd(places, full_matrices=False)[2][0]
        order = np.argsort(places @ axis, kind='stable')
        centres = places[order[(2 * np.arange(_REGIONS) + 1) * len(order) // (2 * _REGIONS)]]
        with catch_warnings():
            simplefilter('ignore', UserWarning)  # a region may stay empty
            region = kmeans2(places, centres, minit='matrix')[1]
        fold = np.unique(region, return_inverse=True)[1].reshape(-1)
        part = STRETCHES * fold + stretches(samples)
        return cls(stretch=np.unique(part, return_inverse=True)[1].reshape(-1), fold=fold)

    @property
    def held(self) -> list[BoolArray]:
        """Masks of the samples that each fold holds out."""
        return [self.fold == k for k in np.unique(self.fold)]

    def mean_squares(self, residual: Array, weight: Array) -> Array:
        """Return the weighted mean square of residuals (N, n) on each stretch, shape (K, n)."""
        count = int(self.stretch.max()) + 1
        squares, total = np.zeros((count, residual.shape[1])), np.zeros((count, residual.shape[1]))
        np.add.at(squares, self.stretch, weight * residual**2)
        np.add.at(total, self.stretch, weight)
        seen = total.sum(axis=1) > 0.0
        return np.asarray(squares[seen] / np.maximum(total[seen], 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearFolds:
    """Gram matrices of a linear model, fold by fold: to fit by, and to be judged by.

    Attributes
    ----------
    fit : tuple of Information
        Rows and torque out of the low-passes.
    judge : tuple of Information
        Rows as the torque as recorded would show them, and that torque.
    """

    fit: tuple[Information, ...]
    judge: tuple[Information, ...]

    @classmethod
    def of(cls, samples: Samples, folds: Folds, rigid: Array, own: Array) -> 'LinearFolds':
        """Return the Gram matrices of unfiltered base regressors (N, n, b) and friction columns (N, n, k)."""
        return cls.of_rows(
            samples,
            folds,
            samples.filtered(rigid),
            samples.filtered(own),
            samples.recorded(rigid),
            samples.recorded(own),
        )

    @classmethod
    def of_rows(
        cls, samples: Samples, folds: Folds, rigid: Array, own: Array, rigid_recorded: Array, own_recorded: Array
    ) -> 'LinearFolds':
        """Return the Gram matrices of rows that are filtered already."""
        held, weight = folds.held, samples.weight
        return cls(
            fit=tuple(gather(rigid[rows], own[rows], samples.target[rows], weight[rows]) for rows in held),
            judge=tuple(
                gather(rigid_recorded[rows], own_recorded[rows], samples.measured[rows], weight[rows]) for rows in held
            ),
        )

    @property
    def whole(self) -> Information:
        """Of all folds together, to fit by."""
        return _sum(self.fit)

    def errors(self, solve: Callable[[Information], Array]) -> HeldOut:
        """Return the held-out errors of a solver, from the Gram matrices of the training folds to parameters (P,)."""
        filtered, recorded = [], []
        for k, (fit, judge) in enumerate(zip(self.fit, self.judge, strict=True)):
            found = solve(_sum([other for i, other in enumerate(self.fit) if i != k]))
            count = np.maximum(fit.count, 1e-9)
            filtered.append(fit.residual_squares(found) / count)
            recorded.append(judge.residual_squares(found) / count)
        return HeldOut(filtered=np.array(filtered), recorded=np.array(recorded))


def _sum(parts: Sequence[Information]) -> Information:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def stretches(samples: Samples) -> IntArray:
    """Number stretches of the motion, shape (N,), from 0 to ``STRETCHES - 1``.

    Adjacent samples are correlated, so a stretch is contiguous in time. Samples that pass through the same state
    again are correlated too: the second period of an excitation repeats the first, so that one of them is no
    held-out data for a fit to the other. A sample with the positions and velocities of an earlier one therefore gets
    the number of that earlier sample; the others are numbered in order of time, equally many in each stretch.
    """
    total = len(samples)
    # Recent samples of a slow motion are near too; they do not count as a return.
    before = _visited_before(_states(samples), max(1, total // (2 * STRETCHES)))
    fresh = before < 0
    label = np.zeros(total, dtype=np.int64)
    label[fresh] = np.arange(int(fresh.sum())) * STRETCHES // max(1, int(fresh.sum()))
    for k in np.flatnonzero(~fresh).tolist():
        label[k] = label[before[k]]
    return label


def _states(samples: Samples) -> Array:
    """Return positions and velocities, each joint in units of its own spread, shape (N, 2 n)."""
    moving = np.std(samples.q, axis=0) > 1e-6
    columns = [x[:, moving] / np.maximum(np.std(x[:, moving], axis=0), 1e-12) for x in (samples.q, samples.dq)]
    return np.concatenate(columns, axis=1)


def _visited_before(states: Array, recent: int) -> IntArray:
    """Return the sample nearest in state of those more than ``recent`` samples earlier, -1 where none is near."""
    square = np.sum(states**2, axis=1)
    limit = _SAME_STATE**2 * max(1, states.shape[1])
    before = np.full(len(states), -1)
    for start in range(recent + 1, len(states), _BLOCK):
        stop = min(start + _BLOCK, len(states))
        rows = np.arange(start, stop)
        distance = square[rows, None] + square[: stop - recent] - 2.0 * states[rows] @ states[: stop - recent].T
        distance[np.arange(stop - recent) >= rows[:, None] - recent] = np.inf
        nearest = np.argmin(distance, axis=1)
        near = distance[np.arange(len(rows)), nearest] <= limit
        before[rows[near]] = nearest[near]
    return before
