# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recursive least squares on the triangular factor (QR-RLS), with its convergence history."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.errors import IdentificationError
from robotid_ros.free_floating.criteria import condition_numbers

__all__ = ['ConvergenceHistory', 'RecursiveLeastSquares', 'convergence_history']


class RecursiveLeastSquares:
    """Least squares updated sample by sample: the triangular factor R of [A Y] is kept, never A^T A.

    [sqrt(forgetting) R; A_k  Y_k] = Q R'. The condition number of R is that of all rows seen so far.

    Parameters
    ----------
    unknowns : int
    forgetting : float
        Weight of what came before at every update, in (0, 1]; 1 forgets nothing.
    prior : ndarray, shape (p,), optional
        An estimate to start from.
    information : ndarray, shape (p, p), optional
        Inverse of the prior's covariance; required with a prior.

    Raises
    ------
    IdentificationError
        If the forgetting factor is out of range, or a prior comes without its information.
    """

    def __init__(
        self,
        unknowns: int,
        *,
        forgetting: float = 1.0,
        prior: Array | None = None,
        information: Array | None = None,
    ) -> None:
        if not 0.0 < forgetting <= 1.0:
            raise IdentificationError(f'forgetting: expected a factor in (0, 1], got {forgetting:g}')
        if (prior is None) != (information is None):
            raise IdentificationError('a prior needs both its values and their information matrix')
        self.forgetting = forgetting
        self.factor = np.zeros((unknowns, unknowns + 1))
        if prior is not None and information is not None:
            values = frozen_array(prior, 'prior', (unknowns,), IdentificationError)
            matrix = frozen_array(information, 'information', (unknowns, unknowns), IdentificationError)
            try:
                root = np.linalg.cholesky(matrix).T
            except np.linalg.LinAlgError as cause:
                raise IdentificationError('information: expected a symmetric positive definite matrix') from cause
            self.factor = np.hstack([root, (root @ values)[:, None]])

    def update(self, rows: Array, right: Array) -> None:
        """Add equations ``rows @ x = right``, shapes (k, p) and (k,)."""
        stacked = np.vstack([np.sqrt(self.forgetting) * self.factor, np.column_stack([rows, right])])
        triangle: Array = np.asarray(np.linalg.qr(stacked, mode='r'))
        self.factor = triangle[: len(self.factor)]

    @property
    def rank(self) -> int:
        """Numerical rank of all rows seen so far."""
        return int(_ranks(self.factor[None])[0])

    @property
    def condition_numbers(self) -> tuple[float, float]:
        """Condition numbers of all rows seen so far, in SI units and column-scaled."""
        root = self.factor[:, :-1]
        return condition_numbers(root.T @ root)

    @property
    def estimate(self) -> Array:
        """The least-squares solution, shape (p,); NaN while the rows do not determine it."""
        root = self.factor[:, :-1]
        if self.rank < len(root):
            return np.full(len(root), np.nan)
        solution: Array = solve_triangular(root, self.factor[:, -1], check_finite=False)
        return solution


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceHistory:
    """What the estimate was after each sample.

    Attributes
    ----------
    time : ndarray, shape (N,)
        [s]
    estimates : ndarray, shape (N, p)
        NaN while the samples so far do not determine the unknowns.
    rank : ndarray of int, shape (N,)
    condition_si, condition_scaled : ndarray, shape (N,)
        Of the rows of all samples so far; infinite while their rank is not full.
    """

    time: Array
    estimates: Array
    rank: IntArray
    condition_si: Array
    condition_scaled: Array


def convergence_history(
    time: Array,
    A: Array,
    Y: Array,
    *,
    whitening: Array | None = None,
    forgetting: float = 1.0,
    prior: Array | None = None,
    information: Array | None = None,
) -> ConvergenceHistory:
    """Run the recursion over all samples.

    Parameters
    ----------
    time : ndarray, shape (N,)
    A : ndarray, shape (N, k, p)
    Y : ndarray, shape (N, k)
    whitening : ndarray, shape (N, k, k), optional
        Left factors that make each sample's residual white with unit variance. The condition
        numbers reported are those of A itself.
    forgetting, prior, information
        As for :class:`RecursiveLeastSquares`.
    """
    unknowns = A.shape[2]
    filtered = RecursiveLeastSquares(unknowns, forgetting=forgetting, prior=prior, information=information)
    if whitening is None:
        factors = _factors(filtered, A, Y)
    else:
        factors = _factors(filtered, whitening @ A, (whitening @ Y[..., None])[..., 0])
    seen = factors
    if whitening is not None or prior is not None:
        seen = _factors(RecursiveLeastSquares(unknowns, forgetting=forgetting), A, Y)
    estimates = np.full((len(A), unknowns), np.nan)
    known = _ranks(factors) == unknowns
    estimates[known] = np.linalg.solve(factors[known, :, :-1], factors[known, :, -1:])[..., 0]
    grams = np.swapaxes(seen[..., :-1], 1, 2) @ seen[..., :-1]
    conditions = np.array([condition_numbers(gram) for gram in grams])
    return ConvergenceHistory(
        time=time,
        estimates=estimates,
        rank=_ranks(seen),
        condition_si=conditions[:, 0],
        condition_scaled=conditions[:, 1],
    )


def _factors(recursion: RecursiveLeastSquares, rows: Array, right: Array) -> Array:
    """Return the triangular factor after each sample, shape (N, p, p + 1)."""
    factors = np.empty((len(rows), *recursion.factor.shape))
    for k in range(len(rows)):
        recursion.update(rows[k], right[k])
        factors[k] = recursion.factor
    return factors


def _ranks(factors: Array) -> IntArray:
    """Return numerical ranks of factors whose columns are scaled to equal length, shape (N,)."""
    roots = factors[..., :-1]
    length = np.linalg.norm(roots, axis=-2, keepdims=True)
    ranks: IntArray = np.linalg.matrix_rank(roots / np.where(length > 0.0, length, 1.0)).astype(np.int64)
    return ranks
