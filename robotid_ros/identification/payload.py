# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Payload of the last link: its mass, centre of mass and inertia; and drive gains from a known payload.

With the arm's own parameters known, or identified from runs without the payload, the rest of the
torque is linear in the ten parameters of the payload, expressed in the frame of the link that
carries it:

    tau_with - tau_arm = Y_link(q, dq, ddq) pi_payload + d tau_f
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import full_regressor
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.identification.covariance import covariance_of_estimate
from robotid_ros.identification.information import solve
from robotid_ros.identification.physical import physical_parameters
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.model.inertia import INERTIAL_NAMES, split_inertial_parameters
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PayloadResult:
    """An identified payload.

    Attributes
    ----------
    link : str
        The link that carries it, in whose frame everything is expressed.
    inertial : ndarray, shape (10,)
        Physically consistent parameters.
    free : ndarray, shape (10,)
        The same without that constraint.
    std : ndarray, shape (10,)
        Standard deviations of the unconstrained ones; inf where the motion does not tell a parameter.
    rmse_without, rmse_with : ndarray, shape (n,)
        Torque error along the runs with the payload, of the arm without and with it [N m].
    """

    link: str
    inertial: Array
    free: Array
    std: Array
    rmse_without: Array
    rmse_with: Array

    @property
    def mass(self) -> float:
        """Mass [kg]."""
        return float(self.inertial[9])

    @property
    def centre_of_mass(self) -> Array:
        """In the link's frame, shape (3,) [m]."""
        return split_inertial_parameters(self.inertial)[1]

    @property
    def inertia(self) -> Array:
        """About the centre of mass, along the link's axes, shape (3, 3) [kg m^2]."""
        return split_inertial_parameters(self.inertial)[2]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers."""
        return {
            'link': self.link,
            'mass': self.mass,
            'centre_of_mass': self.centre_of_mass.tolist(),
            'inertia': self.inertia.tolist(),
            'parameters': {
                name: {
                    'value': float(self.inertial[k]),
                    'unconstrained': float(self.free[k]),
                    'std': float(self.std[k]),
                }
                for k, name in enumerate(INERTIAL_NAMES)
            },
            'rmse_without': self.rmse_without.tolist(),
            'rmse_with': self.rmse_with.tolist(),
        }


def identify_payload(
    loaded: Dataset | Sequence[Dataset], model: RobotModel, arm: IdentificationResult
) -> PayloadResult:
    """Return the payload that the last link carried.

    Parameters
    ----------
    loaded : Dataset or sequence of Dataset
        Runs with the payload.
    model : RobotModel
    arm : IdentificationResult
        From runs without it; frozen.

    Raises
    ------
    IdentificationError
        If there is no data, or the result belongs to another arm.
    """
    model = replace(model, drives=np.eye(model.n))  # a payload acts on the joints
    predictor = TorquePredictor(model, arm)
    model = replace(model, gravity=arm.gravity)  # the payload hangs as the arm does
    samples = as_samples(predictor.in_arm_coordinates(loaded), model, standstill_speed=0.02, standstill_weight=0.01)
    samples = samples.with_bandwidth(arm.torque_bandwidth).coarse()
    rest = samples.target - samples.filtered(predictor.torque(samples.q, samples.dq, samples.ddq))
    rows = samples.filtered(_payload_rows(model, samples))
    precision = np.ones(samples.n)
    for _ in range(10):
        weight = samples.weight * precision
        matrix = np.einsum('Nnp,Nn,Nnq->pq', rows, weight, rows, optimize=True)
        vector = np.einsum('Nnp,Nn,Nn->p', rows, weight, rest, optimize=True)
        solution = np.linalg.lstsq(matrix, vector, rcond=1e-12)[0]
        residual = rest - rows @ solution
        precision = 1.0 / np.maximum(np.mean(residual**2, axis=0), 1e-12 * max(float(np.mean(rest**2)), 1e-12))
    found = solve(matrix, vector, len(vector), None)
    inverse = found.inverse
    root = np.sqrt(samples.weight)
    # every parameter is common to all joints here, as base parameters are
    covariance = covariance_of_estimate(
        rows * root[..., None], residual * root, samples.run_labels, precision, inverse, rows.shape[2], 1
    )
    inertial, constrained = _physical(matrix, vector, float(np.sum(weight * rest**2)), model)
    return PayloadResult(
        link=model.link_names[-1],
        inertial=inertial,
        free=solution[:10],
        std=np.where(found.determined[:10], np.sqrt(np.maximum(np.diag(covariance)[:10], 0.0)), np.inf),
        rmse_without=np.sqrt(np.mean(rest**2, axis=0)),
        rmse_with=np.sqrt(np.mean((rest - rows @ constrained) ** 2, axis=0)),
    )


def _payload_rows(model: RobotModel, samples: Samples) -> Array:
    """Return the columns of the last link's parameters, and of changes in friction, shape (N, n, 10 + 2 n)."""
    last = full_regressor(model, samples.q, samples.dq, samples.ddq)[:, :, -10:]
    own = friction_model('coulomb_viscous').columns(samples.dq, np.zeros((samples.n, 0)))
    spread = own[:, :, :, None] * np.eye(samples.n)[:, None, :]
    return np.concatenate([last, spread.reshape(len(samples), samples.n, -1)], axis=2)


def _physical(matrix: Array, vector: Array, square: float, model: RobotModel) -> tuple[Array, Array]:
    """Return the physically consistent payload, and all parameters with it."""
    rest = slice(10, len(vector))
    # friction has no bounds: it is eliminated from the normal equations first
    gain = np.linalg.lstsq(matrix[rest, rest], matrix[rest, :10], rcond=1e-12)[0]
    own = np.linalg.lstsq(matrix[rest, rest], vector[rest], rcond=1e-12)[0]
    small = matrix[:10, :10] - matrix[:10, rest] @ gain
    right = vector[:10] - matrix[:10, rest] @ own
    one = RobotModel(
        name='payload',
        joint_names=('carrier',),
        joint_types=('revolute',),
        placements=np.eye(4)[None],
        axes=np.array([[0.0, 0.0, 1.0]]),
        inertial=np.array([[0.01, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.0, 1.0]]),
    )
    fit = physical_parameters(small, right, square - float(vector[rest] @ own), np.eye(10), one)
    inertial = fit.inertial[0]
    return inertial, np.concatenate([inertial, own - gain @ inertial])


def drive_gains(
    without: Dataset | Sequence[Dataset],
    loaded: Dataset | Sequence[Dataset],
    model: RobotModel,
    payload: Array,
    arm: IdentificationResult,
) -> tuple[Array, Array]:
    """Return the factor by which each joint's measured torque must be multiplied, from a known payload.

    A wrong torque constant scales everything that is identified with it, which no motion of the arm
    alone reveals. The additional torque of a known payload does (Gautier and Briot, ICRA 2014): for
    joint j, over the loaded runs,

        k_j (tau_measured - tau_arm)_j = (Y_link pi_payload)_j + friction,

    with tau_arm the model identified from the same measured torques without the payload.

    Parameters
    ----------
    without, loaded : Dataset or sequence of Dataset
        Runs without and with the payload; the former only serves to check the arm's model.
    model : RobotModel
    payload : ndarray, shape (10,)
        Known parameters in the last link's frame.
    arm : IdentificationResult
        From runs without the payload, with the torques as measured.

    Returns
    -------
    gains, std : ndarray, shape (n,)
        Infinite deviation for a joint that the payload does not load.

    Raises
    ------
    IdentificationError
        If the arm's model does not explain its own runs.
    """
    model = replace(model, drives=np.eye(model.n))
    predictor = TorquePredictor(model, arm)
    model = replace(model, gravity=arm.gravity)  # the payload hangs as the arm does
    check, samples = (
        as_samples(
            predictor.in_arm_coordinates(each), model, standstill_speed=0.02, standstill_weight=0.01
        ).with_bandwidth(arm.torque_bandwidth)
        for each in (without, loaded)
    )
    misfit = check.target - check.filtered(predictor.torque(check.q, check.dq, check.ddq))
    if np.sum(misfit**2) > 0.25 * np.sum(check.target**2):
        raise IdentificationError(
            'the arm model leaves more than half of the torque of the runs without payload unexplained; identify it '
            'from these runs'
        )
    rest = samples.target - samples.filtered(predictor.torque(samples.q, samples.dq, samples.ddq))
    added = samples.filtered(full_regressor(model, samples.q, samples.dq, samples.ddq)[:, :, -10:] @ payload)
    own = samples.filtered(friction_model('coulomb_viscous').columns(samples.dq, np.zeros((samples.n, 0))))
    gains, std = np.ones(samples.n), np.full(samples.n, np.inf)
    for j in range(samples.n):
        # rest = (1/k) added + friction: the measured torque has the noise and is the left side
        rows = np.concatenate([added[:, j, None], own[:, j]], axis=1) * np.sqrt(samples.weight[:, j, None])
        right = rest[:, j] * np.sqrt(samples.weight[:, j])
        if np.linalg.norm(added[:, j]) < 1e-3 * max(float(np.linalg.norm(samples.target[:, j])), 1e-12):
            continue
        solution = np.linalg.lstsq(rows, right, rcond=1e-12)[0]
        residual = right - rows @ solution
        inverse = np.linalg.pinv(rows.T @ rows)
        covariance = covariance_of_estimate(
            rows[:, None], residual[:, None], samples.run_labels, np.ones(1), inverse, rows.shape[1], 1
        )
        gains[j] = 1.0 / solution[0]
        std[j] = float(np.sqrt(max(covariance[0, 0], 0.0))) * gains[j] ** 2
    return gains, std
