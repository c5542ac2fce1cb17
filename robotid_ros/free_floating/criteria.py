# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How well a motion determines the ten unknowns: condition numbers and D-optimality, differentiable.

Written in the frame of body n, a sample's regressor depends on six numbers only, its angular velocity
w and the momentum of the known bodies u (see :mod:`robotid_ros.free_floating.regression`), and is
linear in them: A(z) = sum_a z_a A_a, z = [w; u]. Over a whole motion

    G = (1/N) sum_k A_k^T A_k = sum_ab S_ab A_a^T A_b,      S = (1/N) sum_k z_k z_k^T,

so a criterion is a function of the 21 second moments S, and its gradient with respect to every
sample is 2 z_k dF/dS / N.
"""

from typing import Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.free_floating.spatial import cross_matrix

__all__ = [
    'CRITERIA',
    'Criterion',
    'SCALED_BOUND',
    'SI_BOUND',
    'condition_numbers',
    'body_regressor',
    'criterion_gradient',
    'information',
]

Criterion: TypeAlias = Literal['scaled', 'si', 'd-optimal']

CRITERIA: tuple[Criterion, ...] = ('scaled', 'si', 'd-optimal')

SI_BOUND = float(np.sqrt(8.0 / 3.0))
"""Least SI condition number of all ten unknowns. With s the ratio of the mean squares of u and w, and
those of w in unit of their mean, diagonal entries of G are 3 s (1/m), 2 + 2 s on average (c) and 1 on
average (Ixx, Iyy, Izz); eigenvalues lie outside them, so cond^2 >= (2 + 2 s)/min(1, 3 s) >= 8/3."""

SCALED_BOUND = 1.0
"""Least column-scaled condition number: orthogonal columns."""


def body_regressor(motion: Array) -> Array:
    """Return the seed's regressor rows in the frame of body n.

        A = [ u  [w]x  0        ]
            [ 0  [u]x  Omega(w) ],   Omega(w) = [x y z 0 0 0; 0 x 0 y z 0; 0 0 x 0 y z]

    Parameters
    ----------
    motion : ndarray, shape (N, 6)
        [w; u]: angular velocity of body n [rad/s] and linear momentum of the known bodies less that
        of the whole system [kg m/s], both in the frame of body n.

    Returns
    -------
    ndarray, shape (N, 6, 10)
        Columns [1/m, c (3), Ixx, Ixy, Ixz, Iyy, Iyz, Izz].
    """
    w, u = motion[:, :3], motion[:, 3:]
    result = np.zeros((len(motion), 6, 10))
    result[:, :3, 0] = u
    result[:, :3, 1:4] = cross_matrix(w)
    result[:, 3:, 1:4] = cross_matrix(u)
    result[:, 3, 4:7] = w
    result[:, 4, 5] = w[:, 0]
    result[:, 4, 7:9] = w[:, 1:]
    result[:, 5, 6] = w[:, 0]
    result[:, 5, 8:] = w[:, 1:]
    return result


_UNIT_ROWS = body_regressor(np.eye(6))
_GRAM = np.einsum('aki,bkj->abij', _UNIT_ROWS, _UNIT_ROWS)


def information(motion: Array) -> Array:
    """Return G = (1/N) sum A^T A of a motion [w; u] of shape (N, 6), shape (10, 10)."""
    gram: Array = np.einsum('ab,abij->ij', motion.T @ motion / len(motion), _GRAM)
    return gram


def condition_numbers(gram: Array) -> tuple[float, float]:
    """Return the spectral condition numbers of A from G = A^T A, in SI units and column-scaled.

    Column-scaled means every column divided by its norm: the number does not depend on units.
    A matrix that is singular to working precision has infinity.
    """
    return _condition(gram), _condition(_correlation(gram)[0])


def _condition(gram: Array) -> float:
    values = np.linalg.eigvalsh(gram)
    if not np.isfinite(values).all() or values[0] <= 1e-14 * values[-1]:
        return float('inf')
    return float(np.sqrt(values[-1] / values[0]))


def _correlation(gram: Array) -> tuple[Array, Array]:
    diagonal = np.diag(gram)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    correlation: Array = gram * np.outer(scale, scale)
    return correlation, scale


def criterion_gradient(criterion: Criterion, motion: Array, sharpness: float) -> tuple[float, Array]:
    """Return a criterion of a motion and its exact gradient with respect to every sample.

    The condition numbers are not differentiable where eigenvalues coincide, and at the optimum most
    do; so they are smoothed with Schatten norms,

        log cond^2(G) <= (log tr G^p + log tr G^-p) / p,

    which tends to the condition number as the sharpness p grows.

    Parameters
    ----------
    criterion : {'scaled', 'si', 'd-optimal'}
        ``d-optimal`` is -log det G.
    motion : ndarray, shape (N, 6)
        [w; u].
    sharpness : float
        p; ignored by ``d-optimal``.

    Returns
    -------
    value : float
    gradient : ndarray, shape (N, 6)
    """
    gram = information(motion)
    if criterion == 'd-optimal':
        value = -float(np.linalg.slogdet(gram)[1])
        slope: Array = -np.linalg.inv(gram).astype(np.float64, copy=False)
    elif criterion == 'si':
        value, slope = _smooth_condition(gram, sharpness)
    else:
        correlation, scale = _correlation(gram)
        value, inner = _smooth_condition(correlation, sharpness)
        slope = inner * np.outer(scale, scale) - np.diag(np.sum(inner * correlation, axis=1) * scale**2)
    moments = np.einsum('abij,ij->ab', _GRAM, slope)
    return value, motion @ (moments + moments.T) / len(motion)


def _smooth_condition(gram: Array, sharpness: float) -> tuple[float, Array]:
    values, vectors = np.linalg.eigh(gram)
    logs = np.log(np.maximum(values, 1e-16 * values[-1]))
    large = np.exp(sharpness * (logs - logs[-1]))
    small = np.exp(sharpness * (logs[0] - logs))
    value = logs[-1] - logs[0] + (np.log(large.sum()) + np.log(small.sum())) / sharpness
    weights = (large / large.sum() - small / small.sum()) / np.exp(logs)
    slope: Array = (vectors * weights) @ vectors.T
    return float(value), slope
