# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The fits of a calibration, which the cross-validation repeats for every fold, and the choice of joint terms."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.calibration.config import CalibrationConfig
from robotid_ros.calibration.identifiability import independent_columns
from robotid_ros.calibration.joint_terms import JointTerms
from robotid_ros.calibration.problem import Problem, State
from robotid_ros.calibration.solver import Fit, fit

_SELECTION_FOLDS = 10
_SMALLEST_GAIN = 0.005  # of the squared error
_STANDARD_ERRORS = 1.5  # of the gain, that the best of many candidates must bring
_LARGEST_OFFSET = 0.01  # [rad], prior deviation of a term's root mean square


def folds_of(q: Array, set_index: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return the fold, 0 to count - 1, of each measurement: those of one pose together, every set over all folds."""
    poses = np.unique(np.round(q, 3), axis=0, return_inverse=True)[1].ravel()
    fold = np.full(len(q), -1, dtype=np.int64)
    dealt: dict[int, int] = {}
    next_fold = 0
    for s in range(int(set_index.max()) + 1):
        for pose in rng.permutation(np.unique(poses[set_index == s])):
            if int(pose) not in dealt:
                dealt[int(pose)] = next_fold % count
                next_fold += 1
    for k, pose in enumerate(poses):
        fold[k] = dealt[int(pose)]
    return fold


def select_terms(
    problem: Problem, geometric: Fit, groups: Sequence[Sequence[int]], splits: Sequence[IntArray]
) -> list[int]:
    """Return the joint terms, in increasing order, whose cross-validated squared error is lower with them.

    The model is linearised at the geometric fit, so that each candidate costs a few small solves.
    A group of terms enters if it lowers the error by at least half a per cent and by 1.5 standard
    errors of the gain over the measurements, for every way of splitting them: random folds are
    optimistic where successive poses are similar, blocks in the order of measuring where the same poses
    were measured repeatedly.

    Parameters
    ----------
    problem : Problem
        With all candidates among its terms.
    geometric : Fit
        Of the same measurements without terms.
    groups : sequence of sequence of int
        Terms that enter together.
    splits : sequence of ndarray of int, shape (N,)
        Fold of every measurement.
    """
    terms = problem.blocks[3]
    count = terms.stop - terms.start
    start = geometric.state
    state = State(frames=start.frames, tools=start.tools, geometry=start.geometry, coefficients=np.zeros(count))
    residual, jacobian = problem.linearise(state)
    scale = problem.scale * np.sqrt(geometric.weights)[:, None]
    scale[:, 3:] *= geometric.orientation_scale
    kept = len(geometric.free)
    columns = np.concatenate([geometric.free, np.arange(terms.start, terms.stop)])
    design = jacobian[:, :, columns] * scale[:, :, None]
    right = residual * scale
    size = np.sqrt(np.mean(np.square(problem.basis), axis=0))
    prior = np.concatenate([geometric.prior, _LARGEST_OFFSET / np.maximum(size, 1e-12)])
    penalty = geometric.noise**2 / np.square(prior)
    validations = [ValidatedColumns(design, right, penalty, folds) for folds in splits]

    chosen: list[int] = []
    left = [list(group) for group in groups if np.all(size[list(group)] > 1e-9)]
    while left:
        used = [*range(kept), *(kept + k for k in chosen)]
        offered = [[kept + k for k in group] for group in left]
        found = [validation.errors(used, offered) for validation in validations]
        now = np.stack([without for without, _ in found])
        trials = np.stack([each for _, each in found], axis=1)  # (groups, splits, N)
        k = int(np.argmin(trials.sum(axis=(1, 2))))
        gain = now - trials[k]
        total = gain.sum(axis=1)
        doubtful = total < _STANDARD_ERRORS * np.std(gain, axis=1) * np.sqrt(gain.shape[1])
        if doubtful.any() or (total < _SMALLEST_GAIN * now.sum(axis=1)).any():
            break
        chosen += left.pop(k)
    return sorted(chosen)


@dataclass(slots=True)
class _Part:
    """One fold: the normal equations of the others, and its own rows."""

    members: IntArray
    normal: Array
    gradient: Array
    design: Array  # (rows, columns)
    right: Array  # (rows,)


class ValidatedColumns:
    """Held-out squared errors of a linear problem with any of its columns.

    Parameters
    ----------
    design : ndarray, shape (N, m, columns)
    right : ndarray, shape (N, m)
    penalty : ndarray, shape (columns,)
        Added to the diagonal of the normal equations.
    folds : ndarray of int, shape (N,)
    """

    def __init__(self, design: Array, right: Array, penalty: Array, folds: IntArray) -> None:
        flat = design.reshape(-1, design.shape[2])
        normal, gradient = flat.T @ flat + np.diag(penalty + 1e-300), flat.T @ right.ravel()
        scale = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
        self.count = len(right)
        self.parts: list[_Part] = []
        for fold in np.unique(folds):
            members = np.flatnonzero(folds == fold)
            rows, wanted = design[members].reshape(-1, design.shape[2]), right[members].ravel()
            self.parts.append(
                _Part(
                    members=members,
                    normal=(normal - rows.T @ rows) * np.outer(scale, scale) + 1e-12 * np.eye(len(scale)),
                    gradient=(gradient - rows.T @ wanted) * scale,
                    design=rows * scale,
                    right=wanted,
                )
            )

    def errors(self, columns: list[int], groups: list[list[int]]) -> tuple[Array, Array]:
        """Return the squared scaled errors of all measurements, predicted from the other folds.

        With the columns alone, shape (N,), and with the columns and one group each, shape (len(groups), N). The normal
        equations are solved once per fold for the columns in use; each group is added by its Schur complement.
        """
        without, each = np.empty(self.count), np.empty((len(groups), self.count))
        offered = [k for group in groups for k in group]
        starts = np.cumsum([0, *(len(group) for group in groups)])
        for part in self.parts:
            cross = part.normal[np.ix_(columns, offered)]
            solved = np.linalg.solve(
                part.normal[np.ix_(columns, columns)], np.column_stack([part.gradient[columns], cross])
            )
            used = part.design[:, columns]
            left = part.right - used @ solved[:, 0]
            beyond = part.design[:, offered] - used @ solved[:, 1:]
            schur = part.normal[np.ix_(offered, offered)] - cross.T @ solved[:, 1:]
            rest = part.gradient[offered] - cross.T @ solved[:, 0]
            without[part.members] = np.square(left).reshape(len(part.members), -1).sum(axis=1)
            for g, (first, last) in enumerate(pairwise(starts)):
                size = np.linalg.lstsq(schur[first:last, first:last], rest[first:last], rcond=1e-9)[0]
                error = np.square(left - beyond[:, first:last] @ size)
                each[g, part.members] = error.reshape(len(part.members), -1).sum(axis=1)
        return without, each


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Start, parameters and settings of the fits.

    Attributes
    ----------
    start : State
        Frames and targets in closed form, nominal geometry.
    placed : ndarray of int
        Identifiable frame and target parameters.
    free : ndarray of int
        All identifiable parameters, without joint terms.
    candidates : JointTerms
    groups : tuple of tuple of int
        Candidates that enter together.
    config : CalibrationConfig
    """

    start: State
    placed: IntArray
    free: IntArray
    candidates: JointTerms
    groups: tuple[tuple[int, ...], ...]
    config: CalibrationConfig

    def nominal(self, problem: Problem) -> Fit:
        """Fit frames and targets to the nominal geometry."""
        return fit(problem, self.start, self.placed, loss=self.config.loss)

    def geometric(self, problem: Problem, nominal: Fit) -> Fit:
        """Fit geometry, frames and targets."""
        return self._fit(problem, nominal.state, self.free)

    def _fit(self, problem: Problem, start: State, free: IntArray) -> Fit:
        return fit(problem, start, free, loss=self.config.loss, prior=self.config.prior)

    def least_norm(self, problem: Problem, nominal: Fit) -> Fit:
        """Return the geometry nearest to the nominal one of all that explain too few measurements."""
        prior = self.config.prior
        return fit(problem, nominal.state, self.free, loss='linear', prior=prior, least_norm=True)

    def averaged(self, problem: Problem, nominal: Fit) -> Fit:
        """Return the average of the geometries that are each nearest to the nominal and explain one measurement.

        Frames and targets, which one measurement cannot show, are those of the nominal geometry there, and fitted to
        the average.
        """
        geometry, prior = problem.blocks[2], self.config.prior
        free = self.free[(self.free >= geometry.start) & (self.free < geometry.stop)]
        alone = [
            fit(problem.subset(np.array([k])), nominal.state, free, loss='linear', prior=prior, least_norm=True)
            for k in range(len(problem))
        ]
        mean = np.mean([each.state.geometry for each in alone], axis=0)
        return fit(problem, replace(nominal.state, geometry=mean), self.placed, loss='linear')

    def with_terms(self, problem: Problem, geometric: Fit) -> tuple[Problem, Fit]:
        """Add the joint terms that lower the cross-validated error, and fit all again."""
        if not self.groups:
            return problem, geometric
        rng = np.random.default_rng(1)
        count = min(_SELECTION_FOLDS, len(problem))
        blocks = np.arange(len(problem)) * count // len(problem)
        splits = [folds_of(problem.q, problem.set_index, count, rng), blocks]
        chosen = select_terms(problem.with_terms(self.candidates), geometric, self.groups, splits)
        if not chosen:
            return problem, geometric
        extended = problem.with_terms(self.candidates.selected(chosen))
        start = replace(geometric.state, coefficients=np.zeros(len(chosen)))
        jacobian = extended.linearise(start)[1] * extended.scale[:, :, None]
        terms = extended.blocks[3]
        free, _ = independent_columns(
            jacobian.reshape(-1, jacobian.shape[2]), [self.free, np.arange(terms.start, terms.stop)], smallest=0.0
        )
        return extended, self._fit(extended, start, free)
