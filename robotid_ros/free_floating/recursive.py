# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recursive least squares on the triangular factor (QR-RLS), and the convergence of its estimate."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.criteria import condition_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceHistory:
    """The estimate after each sample.

    Attributes
    ----------
    time : ndarray, shape (N,)
        [s]
    estimates : ndarray, shape (N, p)
        NaN while the samples so far do not determine the unknowns.
    condition_si, condition_scaled : ndarray, shape (N,)
        Of the rows of all samples so far; infinite while their rank is not full.
    """

    time: Array
    estimates: Array
    condition_si: Array
    condition_scaled: Array


def triangular_factors(rows: Array, right: Array) -> Array:
    """Return the triangular factor of all equations so far, after each sample, shape (N, p, p + 1).

    [R; A_k  Y_k] = Q R': the factor R of [A Y] is kept, never A^T A, so that its condition number is that of A
    itself. Rows have the shape (N, k, p), right sides (N, k).
    """
    equations = np.concatenate([rows, right[..., None]], axis=2)
    unknowns = rows.shape[2]
    factors = np.empty((len(rows), unknowns, unknowns + 1))
    factor = np.zeros((unknowns, unknowns + 1))
    for k, new in enumerate(equations):
        triangle = np.asarray(np.linalg.qr(np.vstack([factor, new]), mode='r'))
        factors[k] = factor = triangle[:unknowns]
    return factors


def convergence_history(time: Array, A: Array, Y: Array, whitening: Array | None = None) -> ConvergenceHistory:
    """Run the recursion over all samples, rows A (N, k, p) and right sides Y (N, k) at times (N,) [s].

    ``whitening``, shape (N, k, k), are left factors that make each sample's residual white with unit variance. The
    condition numbers reported are those of A itself.
    """
    seen = triangular_factors(A, Y)
    factors = seen
    if whitening is not None:
        factors = triangular_factors(whitening @ A, (whitening @ Y[..., None])[..., 0])
    estimates = np.full((len(A), A.shape[2]), np.nan)
    length = np.linalg.norm(factors[..., :-1], axis=1, keepdims=True)
    known = np.linalg.matrix_rank(factors[..., :-1] / np.where(length > 0.0, length, 1.0)) == A.shape[2]
    estimates[known] = np.linalg.solve(factors[known, :, :-1], factors[known, :, -1:])[..., 0]
    conditions = np.array([condition_numbers(root.T @ root) for root in seen[..., :-1]])
    return ConvergenceHistory(
        time=time,
        estimates=estimates,
        condition_si=conditions[:, 0],
        condition_scaled=conditions[:, 1],
    )
