# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The linear regression of the target: A x = Y, with its covariance, at once or sample by sample.

The equations of the method, with Q = P^ - P and with L^ about p_n:

    [ Q   [w_n]x R   0          ]       [ dp_n/dt                ]
    [ 0   [Q]x R     R Omega(w) ] x = - [ L^ - (L - p_n x P)     ],   x = [1/m, c, I about c]

P^ and L^ are the momenta of the known bodies (base and links 1 .. n - 1); P and L those of the whole system about the
inertial origin, zero unless said otherwise. All rows are turned into the frame of body n, which changes neither the
solution nor any condition number; the columns of I are those of the tensor's entries (Ixy = -integral(x y dm)).

In the frame of body n a sample's regressor depends on six numbers only, its angular velocity w and the momentum of the
known bodies u, and is linear in them: A(z) = sum_a z_a A_a, z = [w; u]. Over a whole motion

    G = (1/N) sum_k A_k^T A_k = sum_ab S_ab A_a^T A_b,      S = (1/N) sum_k z_k z_k^T,

so a criterion is a function of the 21 second moments S, and its gradient with respect to every sample is
2 z_k dF/dS / N.
"""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError
from robotid_ros.excitation.criteria import condition_numbers
from robotid_ros.free_floating.body import cross
from robotid_ros.free_floating.measurement import FloatingMeasurement, SensorNoise
from robotid_ros.free_floating.robot import FreeFloatingRobot, momentum_in_base, momentum_map
from robotid_ros.model.transforms import cross_matrix, rotation_of_quaternion


def body_regressor(motion: Array) -> Array:
    """Return the regressor of samples in the frame of body n.

        A = [ u  [w]x  0        ]
            [ 0  [u]x  Omega(w) ],   Omega(w) = [x y z 0 0 0; 0 x 0 y z 0; 0 0 x 0 y z]

    ``motion``, shape (N, 6) [w; u]: angular velocity of body n [rad/s] and linear momentum of the known bodies less
    that of the whole system [kg m/s], both in the frame of body n. The result has the shape (N, 6, 10): columns [1/m, c
    (3), Ixx, Ixy, Ixz, Iyy, Iyz, Izz].
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
    return np.asarray(np.einsum('ab,abij->ij', motion.T @ motion / len(motion), _GRAM))


def information_gradient(motion: Array, slope: Array) -> Array:
    """Return the derivative of a function of G by each sample of the motion, shape (N, 6), from that by G (10, 10)."""
    moments = np.einsum('abij,ij->ab', _GRAM, slope)
    return np.asarray(motion @ (moments + moments.T) / len(motion))


def base_pose(measurement: FloatingMeasurement) -> tuple[Array, Array]:
    """Return the base's position (N, 3) and rotation (N, 3, 3), which momentum other than zero needs.

    Raises a DataError if they were not measured.
    """
    if measurement.base_position is None or measurement.base_orientation is None:
        raise DataError(
            'momentum other than zero needs the base pose; the measurement has no base/position and base/orientation'
        )
    return measurement.base_position, rotation_of_quaternion(measurement.base_orientation)


def target_regression(
    robot: FreeFloatingRobot, measurement: FloatingMeasurement, momentum: Array | None = None
) -> tuple[Array, Array]:
    """Return the equations A x = Y of body n from N samples of a measurement; ``robot.body`` is not used.

    A has the shape (N, 6, 10), Y the shape (N, 6): three rows of velocity [m/s], then three of angular momentum
    [kg m^2/s], in frame n. ``momentum``, shape (6,), is a constant one [P; L] about the inertial origin; zero if
    absent. Raises a DataError if joints differ, or there is momentum and the base pose was not measured.
    """
    if measurement.joint_names != robot.arm.joint_names:
        message = (
            f'expected the joints {", ".join(robot.arm.joint_names)}; '
            f'the measurement has {", ".join(measurement.joint_names)}'
        )
        raise DataError(message, expected=robot.arm.joint_names, found=measurement.joint_names)
    known = robot.arm.inertial.copy()
    known[-1] = 0.0
    maps = momentum_map(robot.arm.with_inertial(known), measurement.q)
    rest = maps.momentum(measurement.base_twist, measurement.dq)
    if momentum is not None and np.any(momentum):
        rest = rest - momentum_in_base(momentum, *base_pose(measurement))
    last = maps.link_twists(measurement.base_twist, measurement.dq)[:, -1]
    rotation, origin = maps.poses[:, -1, :3, :3], maps.poses[:, -1, :3, 3]
    velocity = last[:, :3] + cross(last[:, 3:], origin)
    angular = rest[:, 3:] - cross(origin, rest[:, :3])

    def turned(vectors: Array) -> Array:
        return np.asarray(np.einsum('nba,nb->na', rotation, vectors))

    motion = np.concatenate([turned(last[:, 3:]), turned(rest[:, :3])], axis=1)
    return body_regressor(motion), -np.concatenate([turned(velocity), turned(angular)], axis=1)


def residual_covariance(
    robot: FreeFloatingRobot, measurement: FloatingMeasurement, noise: SensorNoise, momentum: Array
) -> Array:
    """Return the covariance that sensor noise gives the residual A x - Y of each sample, shape (N, 6, 6).

    For a given x, the residual is the error of the momentum of the whole system: its linear part divided by
    body n's mass, and its angular part about body n's centre of mass (substituting Q for body n's own momentum
    moves it there from p_n). Its derivatives are therefore those of the momentum. ``robot.body`` is an estimate or
    a prior; ``momentum`` is as in :func:`target_regression`.
    """
    maps = momentum_map(robot.model, measurement.q)
    # The covariance of the momentum's error about the base origin, shape (N, 6, 6)
    twist = np.repeat([noise.base_linear_velocity, noise.base_angular_velocity], 3)
    parts = [maps.base * twist, maps.joints * noise.joint_velocity]
    if noise.joint_position > 0.0:
        parts.append(maps.position_derivative(measurement.base_twist, measurement.dq) * noise.joint_position)
    if momentum.any():
        position, rotation = base_pose(measurement)
        seen = momentum_in_base(momentum, position, rotation)
        turned = np.concatenate([cross_matrix(seen[:, :3]), cross_matrix(seen[:, 3:])], axis=1)
        moved = np.zeros_like(turned)
        moved[:, 3:] = np.swapaxes(rotation, 1, 2) @ cross_matrix(momentum[None, :3])
        parts += [turned * noise.base_orientation, moved * noise.base_position]
    root = np.concatenate(parts, axis=2)
    spread = np.asarray(root @ np.swapaxes(root, 1, 2))
    rotation = np.swapaxes(maps.poses[:, -1, :3, :3], 1, 2)
    change = np.zeros_like(spread)
    change[:, :3, :3] = rotation / robot.body.mass
    change[:, 3:, 3:] = rotation
    center = maps.poses[:, -1, :3, 3] + maps.poses[:, -1, :3, :3] @ robot.body.center_of_mass
    change[:, 3:, :3] = -rotation @ cross_matrix(center)
    return np.asarray(change @ spread @ np.swapaxes(change, 1, 2))


def scaled_solution(rows: Array, right: Array) -> tuple[Array, int]:
    """Return the least-squares solution of rows x = right, shape (p,), by columns of equal length, and the rank.

    Rows have the shape (N, k, p), right sides (N, k).
    """
    stacked = rows.reshape(-1, rows.shape[2])
    scale = np.linalg.norm(stacked, axis=0)
    scale[scale == 0.0] = 1.0
    solution, _, rank, _ = np.linalg.lstsq(stacked / scale, right.ravel(), rcond=1e-11)
    return solution / scale, int(rank)


def whitening_of(covariance: Array) -> Array:
    """Return lower-triangular factors W with W covariance W^T = E, shape (N, 6, 6).

    Directions without noise get the smallest noise that is numerically possible beside the others.
    """
    floor = 1e-13 * np.trace(covariance, axis1=1, axis2=2)[:, None, None] * np.eye(6)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(covariance + floor)))


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


def convergence_history(A: Array, Y: Array, whitening: Array) -> tuple[Array, Array]:
    """Return the estimate after each sample, shape (N, p), and the condition numbers, shape (N, 2).

    Rows A have the shape (N, k, p), right sides Y (N, k); ``whitening``, shape (N, k, k), are left factors that make
    each sample's residual white with unit variance. An estimate is NaN while the samples so far do not determine the
    unknowns. The condition numbers, in SI units and column-scaled, are those of all rows of A so far, without
    whitening; infinite while their rank is not full.
    """
    factors = triangular_factors(whitening @ A, (whitening @ Y[..., None])[..., 0])
    estimates = np.full((len(A), A.shape[2]), np.nan)
    length = np.linalg.norm(factors[..., :-1], axis=1, keepdims=True)
    known = np.linalg.matrix_rank(factors[..., :-1] / np.where(length > 0.0, length, 1.0)) == A.shape[2]
    estimates[known] = np.linalg.solve(factors[known, :, :-1], factors[known, :, -1:])[..., 0]
    return estimates, np.array([condition_numbers(root.T @ root) for root in triangular_factors(A, Y)[..., :-1]])
