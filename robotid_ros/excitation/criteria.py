# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Criteria of excitation of the base parameters: condition number, D-, A- and E-optimality.

All are functions of the information matrix of the weighted observation matrix W (rows divided by
each joint's noise, and by the square root of the number of samples):

    M = W^T W

so their gradients with respect to the regressor's entries are 2 W (dJ/dM).
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError

CriterionName: TypeAlias = Literal['condition', 'condition-scaled', 'd-optimal', 'a-optimal', 'e-optimal']
CRITERIA: tuple[CriterionName, ...] = get_args(CriterionName)

_SCALED_PART = 0.1  # weight of the column-scaled condition number in 'condition', see criterion_gradient


@dataclass(frozen=True, slots=True, kw_only=True)
class Excitation:
    """The criteria of one motion, all of them."""

    condition: float  # condition number of the observation matrix in SI units
    condition_scaled: float  # the same after its columns are scaled to unit length, so that units do not matter
    log_det: float  # ln det M, per sample; larger is better (D-optimality)
    mean_variance: float  # tr(M^-1) / b, of one sample's worth of information; smaller is better (A-optimality)
    worst_variance: float  # 1 / smallest eigenvalue of M; smaller is better (E-optimality)

    def value(self, criterion: CriterionName) -> float:
        """Return the criterion by name, turned so that smaller is better."""
        return {
            'condition': self.condition,
            'condition-scaled': self.condition_scaled,
            'd-optimal': -self.log_det,
            'a-optimal': self.mean_variance,
            'e-optimal': self.worst_variance,
        }[criterion]


def information_matrix(regressor: Array, noise: Array) -> Array:
    """Return the mean information of one sample, M = sum_k Y_k^T diag(1/noise^2) Y_k / N, shape (b, b).

    Regressors have the shape (N, n, b); the noise, shape (n,), is the standard deviation of each joint's torque [N m].
    """
    rows = (regressor / noise[:, None]).reshape(-1, regressor.shape[2])
    return np.asarray(rows.T @ rows / len(regressor))


def condition_numbers(information: Array) -> tuple[float, float]:
    """Return the condition numbers of an observation matrix W from M = W^T W, in SI units and column-scaled.

    Column-scaled means every column divided by its norm: that number does not depend on units. Both are infinite where
    the scaled matrix is singular to working precision.
    """
    diagonal = np.diag(information)
    if not np.isfinite(information).all() or not (diagonal > 0.0).all():
        return np.inf, np.inf
    values = np.linalg.eigvalsh(information)
    scaled = np.linalg.eigvalsh(information / np.sqrt(np.outer(diagonal, diagonal)))
    small = len(values) * np.finfo(float).eps
    if values[0] <= small * values[-1] * 1e-6 or scaled[0] <= small * scaled[-1]:
        return np.inf, np.inf
    return float(np.sqrt(values[-1] / values[0])), float(np.sqrt(scaled[-1] / scaled[0]))


def measure_excitation(information: Array) -> Excitation:
    """Return all criteria of an information matrix, shape (b, b).

    The condition numbers are those of the observation matrix, hence square roots of M's. A matrix that is singular to
    working precision gives infinities; one with a zero column, a parameter that does not show in the torque at all, is
    refused.
    """
    diagonal = np.diag(information)
    if not (diagonal > 0.0).all():
        raise ExcitationError(
            f'base parameter {int(np.argmin(diagonal)) + 1} of {len(diagonal)} acts on no torque of this motion'
        )
    condition, scaled = condition_numbers(information)
    if not np.isfinite(condition):
        return Excitation(
            condition=np.inf, condition_scaled=np.inf, log_det=-np.inf, mean_variance=np.inf, worst_variance=np.inf
        )
    values = np.linalg.eigvalsh(information)
    return Excitation(
        condition=condition,
        condition_scaled=scaled,
        log_det=float(np.log(values).sum()),
        mean_variance=float((1.0 / values).mean()),
        worst_variance=float(1.0 / values[0]),
    )


def criterion_gradient(information: Array, criterion: CriterionName, sharpness: float) -> tuple[float, Array]:
    """Return a smooth form of the criterion, ln-like, and its gradient with respect to M.

    Extreme eigenvalues are not differentiable where two of them meet, and at the optimum they do.
    They are replaced by Schatten norms of finite order r, which bound them and tend to them:

        ln cond ~ (ln tr M^r + ln tr M^-r) / (2 r)

    At r = 1 this is the condition number in the Frobenius norm. To 'condition', in SI units, a
    tenth of the column-scaled one is added: of motions that are equally good in SI units, this prefers
    those that are good in other units too. The sharpness is the order r, used by the condition numbers and
    E-optimality. The value is infinite where M, shape (b, b), is singular.
    """
    if criterion == 'condition-scaled':
        return _scaled_condition(information, sharpness)
    if criterion == 'condition':
        value, gradient = _condition(information, sharpness)
        second, second_gradient = _scaled_condition(information, sharpness)
        return value + _SCALED_PART * second, gradient + _SCALED_PART * second_gradient
    values, vectors = np.linalg.eigh(information)
    if not values[0] > 0.0:
        return np.inf, np.zeros_like(information)
    if criterion == 'd-optimal':
        count = len(values)
        value, slope = -np.log(values).sum() / count, -1.0 / values / count
    elif criterion == 'a-optimal':
        value, slope = _log_power_sum(values, -1.0)
    else:
        value, slope = _log_power_sum(values, -sharpness)
    return float(value), (vectors * slope) @ vectors.T


def _condition(information: Array, sharpness: float) -> tuple[float, Array]:
    """Return the smooth ln cond and its gradient with respect to M."""
    values, vectors = np.linalg.eigh(information)
    if not values[0] > 0.0:
        return np.inf, np.zeros_like(information)
    high, high_slope = _log_power_sum(values, sharpness)
    low, low_slope = _log_power_sum(values, -sharpness)
    return 0.5 * (high + low), (vectors * (0.5 * (high_slope + low_slope))) @ vectors.T


def _log_power_sum(values: Array, power: float) -> tuple[float, Array]:
    """Return ln(sum values^power) / |power| and its gradient."""
    logs = power * np.log(values)
    peak = logs.max()
    weights = np.exp(logs - peak)
    total = weights.sum()
    return float((peak + np.log(total)) / abs(power)), np.sign(power) * weights / total / values


def _scaled_condition(information: Array, sharpness: float) -> tuple[float, Array]:
    """Return the smooth ln cond of D M D, D = diag(M)^-1/2, and its gradient with respect to M."""
    scale = 1.0 / np.sqrt(np.diag(information))
    normalised = information * np.outer(scale, scale)
    value, inner = _condition(normalised, sharpness)
    gradient = inner * np.outer(scale, scale)
    # M_kl appears in its own entry, and M_kk besides in the scaling of row and column k
    gradient[np.diag_indices_from(gradient)] -= (inner * normalised).sum(axis=1) * scale**2
    return value, gradient
