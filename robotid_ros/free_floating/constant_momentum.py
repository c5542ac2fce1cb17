# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A constant momentum other than zero: estimated with the target, or detected where zero was assumed."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.measurement import FloatingMeasurement, SensorNoise
from robotid_ros.free_floating.regression import (
    Estimate,
    Regression,
    body_regressor,
    residual_covariance,
    scaled_solution,
    target_regression,
    whitening_of,
)
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.free_floating.spatial import cross_matrix
from robotid_ros.model.transforms import rotation_of_quaternion

_SWEEPS = 30


def estimate_with_momentum(robot: FreeFloatingRobot, measurement: FloatingMeasurement, noise: SensorNoise) -> Estimate:
    """Estimate body n together with a constant momentum, by weighted Gauss-Newton.

    The start is exact for exact data: in the standard parameters [m, m c, I about p_n] the momentum
    of body n is linear, and so is the whole system of 16 unknowns. Only the ratios of the noise matter.

    Returns
    -------
    Estimate
        Of the 10 unknowns of body n, then the momentum [P; L] about the inertial origin [kg m/s, kg m^2/s].

    Raises
    ------
    DataError
        If the base pose was not measured.
    IdentificationError
        If the motion does not determine the 16 unknowns.
    """
    rows, transfer, right = _linear_system(robot, measurement)
    solution, rank = scaled_solution(np.concatenate([rows, -transfer], axis=2), right)
    if rank < 16:
        raise IdentificationError(
            f'the motion determines {rank} of the 16 unknowns of target and momentum; '
            'record a longer, more varied motion, or give the momentum'
        )
    # The order of [m, m c, I about p_n] is not that of the standard parameters.
    body = RigidBody.from_parameters(np.concatenate([solution[4:10], solution[1:4], solution[:1]]))
    momentum = solution[10:]
    converged = False
    for _ in range(_SWEEPS):
        regression = target_regression(robot, measurement, momentum)
        covariance = residual_covariance(robot.with_body(body), measurement, noise, momentum)
        jacobian = _jacobian(body, regression, transfer)
        residual = regression.A @ body.unknowns - regression.Y
        white = whitening_of(covariance)
        step, _ = scaled_solution(white @ jacobian, -(white @ residual[..., None])[..., 0])
        columns = np.linalg.norm(white @ jacobian, axis=(0, 1))
        body, momentum = RigidBody.estimated(body.unknowns + step[:10]), momentum + step[10:]
        if np.abs(step * columns).max() <= 1e-12 * np.abs(np.concatenate([body.unknowns, momentum]) * columns).max():
            converged = True
            break
    return Estimate(
        unknowns=np.concatenate([body.unknowns, momentum]), jacobian=jacobian, whitening=white, converged=converged
    )


def check_zero_momentum(robot: FreeFloatingRobot, measurement: FloatingMeasurement, covariance: Array) -> None:
    """Refuse data that a momentum other than zero explains far better.

    An F test of the 16-parameter model against the 10-parameter one, that also asks for half the
    residual to go: model errors are not white, and a small but significant improvement is not yet momentum.
    ``robot`` has the estimate of body n; ``covariance``, shape (N, 6, 6), is that of the residual A x - Y. Nothing
    can be tested without the base pose or with fewer than four samples.

    Raises
    ------
    IdentificationError
        If the data carry momentum.
    """
    if not measurement.has_pose or len(measurement) < 4:
        return
    rows, transfer, right = _linear_system(robot, measurement)
    to_residual = np.eye(6)
    to_residual[:3, :3] /= robot.body.mass
    to_residual[3:, :3] = -cross_matrix(robot.body.center_of_mass)
    white = whitening_of(covariance) @ to_residual

    target = (white @ right[..., None])[..., 0]

    def fit(matrix: Array) -> tuple[float, Array]:
        solution, _ = scaled_solution(white @ matrix, target)
        return float(np.sum((white @ matrix @ solution - target) ** 2)), solution

    without, _ = fit(rows)
    with_it, solution = fit(np.concatenate([rows, -transfer], axis=2))
    size = float(np.sum(target**2))
    if without <= 1e-16 * size:
        return
    statistic = (without - with_it) / 6.0 / max(with_it / (right.size - 16), 1e-20 * size)
    if statistic > 100.0 and with_it < 0.25 * without:
        linear, angular = solution[10:13], solution[13:]
        raise IdentificationError(
            f'the data carry momentum, P = {_spell(linear)} kg m/s and L = {_spell(angular)} kg m^2/s about the '
            "inertial origin, but zero was assumed; pass momentum='estimated', or the momentum if it is known"
        )


def _linear_system(robot: FreeFloatingRobot, measurement: FloatingMeasurement) -> tuple[Array, Array, Array]:
    """Return rows (N, 6, 10), transfer (N, 6, 6) and right (N, 6): rows @ [m, m c, I_p] - transfer @ [P; L] = right."""
    if measurement.base_position is None or measurement.base_orientation is None:
        raise DataError('estimating the momentum needs base/position and base/orientation; the measurement has neither')
    plain = target_regression(robot, measurement)
    momentum = plain.A[:, :3, 0]
    velocity, angular = -plain.Y[:, :3], -plain.Y[:, 3:]
    w = plain.A[:, 3, 4:7]
    rows = body_regressor(np.hstack([w, velocity]))
    rows[:, 3:, 1:4] *= -1.0
    turn = np.swapaxes(rotation_of_quaternion(measurement.base_orientation) @ plain.rotation, 1, 2)
    joint = measurement.base_position + np.einsum(
        'nab,nb->na', rotation_of_quaternion(measurement.base_orientation), plain.origin
    )
    transfer = np.zeros((len(w), 6, 6))
    transfer[:, :3, :3] = turn
    transfer[:, 3:, 3:] = turn
    transfer[:, 3:, :3] = -turn @ cross_matrix(joint)
    return rows, transfer, -np.concatenate([momentum, angular], axis=1)


def _jacobian(body: RigidBody, regression: Regression, transfer: Array) -> Array:
    """Return the derivative of A(P, L) x - Y(P, L) with respect to x, P and L."""
    through = np.zeros((len(regression.A), 6, 6))
    through[:, :3, :3] = -transfer[:, :3, :3] / body.mass
    # [Q]x c turns with -P, and -c x (.) is -[c]x
    through[:, 3:, :3] = cross_matrix(body.center_of_mass[None]) @ transfer[:, :3, :3] - transfer[:, 3:, :3]
    through[:, 3:, 3:] = -transfer[:, 3:, 3:]
    return np.concatenate([regression.A, through], axis=2)


def _spell(vector: Array) -> str:
    return '(' + ', '.join(f'{value:.3g}' for value in vector) + ')'
