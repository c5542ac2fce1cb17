# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A fitted torque model: what every estimator hands back."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.information import BaseRegressor

__all__ = ['TorqueFit', 'predicted_torque']

_CHUNK = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueFit:
    """Base and friction parameters with their covariance.

    Attributes
    ----------
    friction : FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    precision : ndarray, shape (n,)
        Weight of each joint's equations, the inverse variance of its residual [1/(N m)^2].
    covariance : ndarray, shape (P, P)
        Of ``[base_values, friction_parameters.ravel()]``, sample correlation taken into account.
    determined : ndarray of bool, shape (P,)
        False where the data leave a parameter open.
    condition_si, condition_scaled : float
        Condition number of the weighted observation matrix, in SI units and with unit columns.
    bounded : bool
        Whether friction had to be kept from generating energy.
    bandwidth : float or None
        Of the torque channel [Hz].
    converged : bool
    reason : str
        Why it did not converge, or empty.
    """

    friction: FrictionModel
    base_values: Array
    friction_parameters: Array
    precision: Array
    covariance: Array
    determined: BoolArray
    condition_si: float
    condition_scaled: float
    bounded: bool
    bandwidth: float | None
    converged: bool = True
    reason: str = ''

    @property
    def std(self) -> Array:
        """Standard deviation of all parameters, shape (P,); inf where the data leave one open."""
        deviation = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(self.determined, deviation, np.inf)


def predicted_torque(
    base: BaseRegressor,
    friction: FrictionModel,
    base_values: Array,
    friction_parameters: Array,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    bandwidth: float | None = None,
    rate: float = 1.0,
    trajectory: IntArray | None = None,
) -> Array:
    """Return the torque that a fitted model predicts.

    tau = Y_b(q, dq, ddq) beta + tau_f(dq, parameters, load = Y_b beta), passed through the torque channel.

    Parameters
    ----------
    base, friction : BaseRegressor, FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    q, dq, ddq : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2]
    bandwidth : float, optional
        Of the torque channel [Hz]; None for the torque at the joint itself.
    rate : float
        Sampling rate, where there is a bandwidth [Hz].
    trajectory : ndarray of int, shape (N,), optional
        Runs, which pass the channel one by one.

    Returns
    -------
    ndarray, shape (N, n)
        [N m]
    """
    torque = np.empty(np.shape(q))
    for start in range(0, len(q), _CHUNK):
        rows = slice(start, start + _CHUNK)
        load = base.regressor(q[rows], dq[rows], ddq[rows]) @ base_values
        torque[rows] = load + friction.torque(dq[rows], friction_parameters, load, q[rows])
    if bandwidth is None or len(torque) == 0:
        return torque
    runs = np.zeros(len(torque), dtype=np.int64) if trajectory is None else trajectory
    return Channel(bandwidth=bandwidth, rate=rate, trajectory=runs)(torque)
