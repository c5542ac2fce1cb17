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
    chosen: list[int] = []
    left = [list(group) for group in groups if np.all(size[list(group)] > 1e-9)]
    while left:
        used = [*range(kept), *(kept + k for k in chosen)]
        choices = [used, *([*used, *(kept + k for k in group)] for group in left)]
        errors = np.stack([held_out_errors(design, right, penalty, folds, choices) for folds in splits], axis=1)
        now, trials = errors[0], errors[1:]  # (splits, N), (groups, splits, N)
        k = int(np.argmin(trials.sum(axis=(1, 2))))
        gain = now - trials[k]
        total = gain.sum(axis=1)
        doubtful = total < _STANDARD_ERRORS * np.std(gain, axis=1) * np.sqrt(gain.shape[1])
        if doubtful.any() or (total < _SMALLEST_GAIN * now.sum(axis=1)).any():
            break
        chosen += left.pop(k)
    return sorted(chosen)


def held_out_errors(
    design: Array, right: Array, penalty: Array, folds: IntArray, choices: Sequence[Sequence[int]]
) -> Array:
    """Return the squared errors of all measurements, each predicted from the other folds, for some choices of columns.

    Parameters
    ----------
    design : ndarray, shape (N, m, columns)
    right : ndarray, shape (N, m)
    penalty : ndarray, shape (columns,)
        Added to the diagonal of the normal equations.
    folds : ndarray of int, shape (N,)
        Those from 0 to their largest.
    choices : sequence of sequence of int

    Returns
    -------
    ndarray, shape (len(choices), N)
    """
    members = [folds == fold for fold in range(int(folds.max()) + 1)]
    grams = np.stack([np.einsum('nmi,nmj->ij', design[rows], design[rows], optimize=True) for rows in members])
    slopes = np.stack([np.einsum('nmi,nm->i', design[rows], right[rows]) for rows in members])
    normal = grams.sum(axis=0) - grams + np.diag(penalty)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(grams.sum(axis=0)) + penalty, 1e-300))
    normal = normal * np.outer(scale, scale) + 1e-12 * np.eye(len(scale))
    gradient = (slopes.sum(axis=0) - slopes) * scale
    errors = np.empty((len(choices), len(right)))
    for found, choice in zip(errors, choices, strict=True):
        columns = np.array(choice, dtype=np.int64)
        solved = np.linalg.solve(normal[:, columns[:, None], columns], gradient[:, columns, None])[..., 0]
        predicted = (design[:, :, columns] @ (solved * scale[columns])[folds][..., None])[..., 0]
        found[:] = np.square(right - predicted).sum(axis=1)
    return errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Start, parameters and settings of the fits."""

    start: State  # frames and targets in closed form, nominal geometry
    placed: IntArray  # identifiable frame and target parameters
    free: IntArray  # all identifiable parameters, without joint terms
    candidates: JointTerms
    groups: tuple[tuple[int, ...], ...]  # candidates that enter together
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
