"""Which joint terms earn their place: forward selection by cross-validated error."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.calibration.masks import Mask
from robotid_ros.calibration.problem import Problem, State
from robotid_ros.calibration.solver import Fit

__all__ = ['folds_of', 'select_terms']

_SMALLEST_GAIN = 0.005  # of the squared error
_STANDARD_ERRORS = 1.5  # of the gain, which the best of many candidates must exceed
_LARGEST_OFFSET = 0.01  # [rad], prior deviation of a term's root mean square


def folds_of(q: Array, set_index: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Deal measurements to folds: those of one pose together, every set over all folds.

    Returns
    -------
    ndarray of int, shape (N,)
        0 to count - 1.
    """
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


def select_terms(problem: Problem, geometric: Fit, groups: Sequence[Sequence[int]], folds: IntArray) -> list[int]:
    """Choose joint terms whose cross-validated squared error is lower with them.

    The model is linearised at the geometric fit, so that each candidate costs a few small solves.
    A group of terms enters if it lowers the error by at least half a per cent and by 1.5 standard
    errors of the gain over the measurements.

    Parameters
    ----------
    problem : Problem
        With all candidates among its terms.
    geometric : Fit
        Of the same measurements without terms.
    groups : sequence of sequence of int
        Terms that enter together.
    folds : ndarray of int, shape (N,)

    Returns
    -------
    list of int
        Chosen terms, in increasing order.
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
    validation = _Validation(design, right, geometric.noise**2 / np.square(prior), folds)

    chosen: list[int] = []
    best = validation.errors(list(range(kept)))
    left = [list(group) for group in groups if np.all(size[list(group)] > 1e-9)]
    while left:
        trials = [validation.errors([*range(kept), *(kept + k for k in (*chosen, *group))]) for group in left]
        k = int(np.argmin([trial.sum() for trial in trials]))
        gain = best - trials[k]
        doubtful = gain.sum() < _STANDARD_ERRORS * np.std(gain) * np.sqrt(len(gain))
        if doubtful or gain.sum() < _SMALLEST_GAIN * best.sum():
            break
        chosen += left.pop(k)
        best = trials[k]
    return sorted(chosen)


@dataclass(slots=True)
class _Validation:
    """Held-out squared errors of the linear problem for any subset of columns."""

    design: Array
    right: Array
    penalty: Array
    folds: IntArray

    def errors(self, columns: list[int]) -> Array:
        """Return the squared scaled error of every measurement, predicted from the other folds."""
        result = np.empty(len(self.right))
        design = self.design[:, :, columns]
        flat = design.reshape(-1, len(columns))
        normal, gradient = flat.T @ flat, flat.T @ self.right.ravel()
        scale = 1.0 / np.sqrt(np.maximum(np.diag(normal) + self.penalty[columns], 1e-300))
        for fold in range(int(self.folds.max()) + 1):
            test: Mask = self.folds == fold
            part = design[test].reshape(-1, len(columns))
            wanted = self.right[test]
            hessian = (normal - part.T @ part + np.diag(self.penalty[columns])) * np.outer(scale, scale)
            hessian[np.diag_indices_from(hessian)] += 1e-12
            solution = scale * np.linalg.solve(hessian, scale * (gradient - part.T @ wanted.ravel()))
            result[test] = np.square(wanted - (part @ solution).reshape(wanted.shape)).sum(axis=1)
        return result
