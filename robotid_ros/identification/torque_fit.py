# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A fitted torque model, the result of every estimator."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.rest_friction import RestFriction
from robotid_ros.identification.samples import Samples

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
        False for a parameter that the data do not determine.
    condition_si, condition_scaled : float
        Condition number of the weighted observation matrix, in SI units and with unit columns.
    bounded : bool
        Whether friction had to be kept from generating energy.
    bandwidth : float or None
        Of the torque channel [Hz].
    converged : bool
    reason : str
        Why it did not converge, or empty.
    rest : RestFriction or None
        Friction of joints that stand.
    prior : Prior or None
        What counts beside the data.
    search : ndarray or None, shape (cycles + 1,)
        Relative squared error of a search before its first cycle and after each.
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
    rest: RestFriction | None = None
    prior: Prior | None = None
    search: Array | None = None

    @property
    def std(self) -> Array:
        """Standard deviation of all parameters, shape (P,); inf for undetermined ones."""
        deviation = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(self.determined, deviation, np.inf)


def predicted_torque(
    base: BaseRegressor,
    friction: FrictionModel,
    base_values: Array,
    friction_parameters: Array,
    samples: Samples,
    rest: RestFriction | None = None,
) -> Array:
    """Return the prediction of the recorded torque along some samples.

    tau = Y_b(q, dq, ddq) beta + tau_f(dq, parameters, load = Y_b beta), through the bandwidth of the torque signal.

    Parameters
    ----------
    base, friction : BaseRegressor, FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    samples : Samples
        Their runs give the bandwidth.
    rest : RestFriction, optional
        Friction of joints that stand.

    Returns
    -------
    ndarray, shape (N, n)
        [N m]
    """
    torque = np.empty_like(samples.q)
    if samples.slide is None or friction.presliding is None:
        samples = samples.sliding(friction.presliding)
    if rest is not None and samples.slide is not None:
        rest = replace(rest, speed=np.where(np.isnan(samples.slide[0, :, 0]), rest.speed, 0.0))
    speed = samples.dq if rest is None else rest.friction_speed(samples.dq)
    for start in range(0, len(torque), _CHUNK):
        rows = slice(start, start + _CHUNK)
        load = base.regressor(samples.q[rows], samples.dq[rows], samples.ddq[rows]) @ base_values
        slide = None if samples.slide is None else samples.slide[rows]
        torque[rows] = load + friction.torque(speed[rows], friction_parameters, load, samples.q[rows], slide)
    if rest is not None:
        torque += rest.rest_torque(samples.dq, [(run.start, run.stop) for run in samples.runs])
    return samples.recorded(torque)
