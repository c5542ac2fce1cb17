# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification of the captured target from momentum conservation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import yaml

import robotid_ros
from robotid_ros.arrays import Array, frozen_array, numerical_slope
from robotid_ros.errors import IdentificationError
from robotid_ros.excitation.criteria import condition_numbers
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.measurement import FloatingMeasurement, SensorNoise
from robotid_ros.free_floating.regression import (
    base_pose,
    body_regressor,
    convergence_history,
    residual_covariance,
    scaled_solution,
    target_regression,
    whitening_of,
)
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import cross_matrix

Estimator: TypeAlias = Literal['weighted', 'ordinary', 'recursive']

ESTIMATORS: tuple[Estimator, ...] = ('weighted', 'ordinary', 'recursive')

_SWEEPS = 30
_SUSPICIOUS = 1.5  # residual relative to the stated noise; a base 5 % too heavy in the description gives 1.9
_STRAY = 10.0  # times the median of the samples' residuals: neither noise nor a wrong description gives that


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetIdentification:
    """Result of :func:`robotid_ros.free_floating.identify_target`.

    Attributes
    ----------
    robot_name : str
    joint_names : tuple of str
    body : RigidBody
        The last link merged with the target, in the last link's frame.
    target : RigidBody
        The target alone: ``body`` less the bare last link.
    unknowns : ndarray, shape (10,)
        [1/m, c, Ixx Ixy Ixz Iyy Iyz Izz about c] of ``body``.
    covariance : ndarray, shape (10, 10)
        Of the unknowns, from the sensor noise, scaled to the residual.
    body_deviation, target_deviation : ndarray, shape (10,)
        Standard deviations of [m, c, Ixx Ixy Ixz Iyy Iyz Izz] [kg, m, kg m^2].
    condition_si, condition_scaled : float
        Of the stacked regressor, in SI units and with columns scaled to equal length.
    residual_rms : ndarray, shape (2,)
        Of the velocity rows [m/s] and of the angular-momentum rows [kg m^2/s].
    noise_scale : float
        Residual relative to what the stated noise predicts; near one where the model fits.
    momentum : ndarray, shape (6,)
        [P; L] about the inertial origin [kg m/s, kg m^2/s].
    momentum_deviation : ndarray, shape (6,), or None
        Where it was estimated.
    momentum_source : {'zero', 'given', 'estimated'}
    estimator : str
    time : ndarray, shape (N,)
        Of the samples [s].
    estimates : ndarray, shape (N, 10)
        Unknowns after each sample; NaN while the samples so far do not determine them.
    conditions : ndarray, shape (N, 2)
        Condition numbers after each sample, in SI units and with columns scaled.
    samples : int
    usable : bool
    reason : str
        Why it is not usable, or a remark; may be empty.
    provenance : mapping
    """

    robot_name: str
    joint_names: tuple[str, ...]
    body: RigidBody
    target: RigidBody
    unknowns: Array
    covariance: Array
    body_deviation: Array
    target_deviation: Array
    condition_si: float
    condition_scaled: float
    residual_rms: Array
    noise_scale: float
    momentum: Array
    momentum_deviation: Array | None
    momentum_source: str
    estimator: str
    time: Array
    estimates: Array
    conditions: Array
    samples: int
    usable: bool
    reason: str
    provenance: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, as ``result.yaml`` holds them."""
        momentum: dict[str, Any] = {
            'source': self.momentum_source,
            'linear': self.momentum[:3].tolist(),
            'angular': self.momentum[3:].tolist(),
        }
        if self.momentum_deviation is not None:
            momentum['linear_std'] = self.momentum_deviation[:3].tolist()
            momentum['angular_std'] = self.momentum_deviation[3:].tolist()
        return {
            'robot': self.robot_name,
            'joints': list(self.joint_names),
            'target': _with_deviation(self.target, self.target_deviation),
            'last_link_with_target': _with_deviation(self.body, self.body_deviation),
            'condition_number': {'si': self.condition_si, 'scaled': self.condition_scaled},
            'momentum': momentum,
            'estimator': self.estimator,
            'samples': self.samples,
            'residual': {
                'velocity_rms': float(self.residual_rms[0]),
                'angular_momentum_rms': float(self.residual_rms[1]),
                'noise_scale': self.noise_scale,
            },
            'usable': self.usable,
            'reason': self.reason,
            'provenance': dict(self.provenance),
        }

    def to_yaml(self, **made_with: Any) -> str:
        """Return the text of ``result.yaml``, with what it was made with beside the version."""
        content = self.to_dict()
        content['provenance'] |= {**made_with, 'version': robotid_ros.__version__}
        return str(yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100))


def _with_deviation(body: RigidBody, deviation: Array) -> dict[str, Any]:
    return {
        **body.to_dict(),
        'std': {
            'mass': float(deviation[0]),
            'center_of_mass': deviation[1:4].tolist(),
            'inertia': deviation[4:].tolist(),
        },
    }


def identify_target(
    robot: FreeFloatingRobot,
    measurement: FloatingMeasurement,
    *,
    estimator: Estimator = 'weighted',
    noise: SensorNoise | None = None,
    momentum: Literal['zero', 'estimated'] | Sequence[float] | Array = 'zero',
    forgetting: float = 1.0,
) -> TargetIdentification:
    """Identify the last link merged with the target, and the target alone.

    Parameters
    ----------
    robot : FreeFloatingRobot
        Base and links are known; ``robot.body`` is used by the recursive estimator only, as the
        prior that weights the samples.
    measurement : FloatingMeasurement
    estimator : {'weighted', 'ordinary', 'recursive'}
        ``ordinary`` is plain least squares on the equations as they are, which weigh metres per second
        and kg m^2/s alike. ``weighted`` weighs every sample with the covariance that the sensor
        noise gives its residual, recomputed at the estimate until it no longer changes.
        ``recursive`` does the same in one pass, sample by sample, with weights from the prior.
    noise : SensorNoise, optional
        Only the ratios change the estimate; the deviations reported are scaled by what the residual
        says. By default those of :class:`SensorNoise`.
    momentum : 'zero', 'estimated' or ndarray, shape (6,)
        Constant momentum [P; L] of the system about the inertial origin [kg m/s, kg m^2/s]; any but
        zero needs the base pose, and 'estimated' the weighted estimator.
    forgetting : float
        Of the recursive estimator.

    Raises
    ------
    DataError
        If joints differ, or the base pose is needed and missing.
    IdentificationError
        If the motion does not determine all ten unknowns, the data carry momentum although zero was
        assumed, or a setting is unknown.
    """
    if estimator not in ESTIMATORS:
        message = f"estimator '{estimator}' is not known; available: {', '.join(ESTIMATORS)}"
        raise IdentificationError(message, name='estimator', expected=tuple(ESTIMATORS), found=estimator)
    if not 0.0 < forgetting <= 1.0:
        message = f'forgetting: expected a factor in (0, 1], got {forgetting:g}'
        raise IdentificationError(message, name='forgetting', expected=(0.0, 1.0), found=forgetting)
    if forgetting != 1.0 and estimator != 'recursive':
        message = f"forgetting belongs to the recursive estimator; got it with '{estimator}'"
        raise IdentificationError(message, name='forgetting', expected='recursive', found=estimator)
    stated = SensorNoise() if noise is None or not any(noise.to_dict().values()) else noise
    source, total, transfer = momentum if isinstance(momentum, str) else 'given', np.zeros(6), None
    if source == 'given':
        total = frozen_array(momentum, 'momentum', (6,), IdentificationError)
    elif source not in ('zero', 'estimated'):
        message = f"momentum: expected 'zero', 'estimated' or six numbers; got '{momentum}'"
        raise IdentificationError(message, name='momentum', expected=('zero', 'estimated'), found=momentum)
    if source == 'estimated' and estimator != 'weighted':
        message = (
            "momentum='estimated' needs the estimator 'weighted', which weighs both kinds of unknowns; "
            f"got '{estimator}'"
        )
        raise IdentificationError(message, name='momentum', expected='weighted', found=estimator)
    if source == 'estimated':
        body, total, transfer = _start_with_momentum(robot, measurement)
    else:
        rows, right = target_regression(robot, measurement, total)
        solution, rank = scaled_solution(rows, right)
        if not np.isfinite(_conditions(rows)[1]):
            message = (
                f'the motion determines {min(rank, 9)} of the ten unknowns; at least three samples are needed, with '
                'angular velocities of the last link about different axes: record more of the designed trajectory'
            )
            raise IdentificationError(message, expected=10, found=min(rank, 9))
        body = RigidBody.estimated(solution)
    # seen from the end, forgetting is a weight that grows from sample to sample
    age = np.sqrt(forgetting ** np.arange(len(measurement))[::-1])[:, None, None]

    def weigh(body: RigidBody, momentum: Array) -> Array:
        if estimator == 'ordinary':
            return np.broadcast_to(np.eye(6), (len(measurement), 6, 6))
        assumed = robot if estimator == 'recursive' else robot.with_body(body)
        return np.asarray(age * whitening_of(residual_covariance(assumed, measurement, stated, momentum)))

    estimate, jacobian, weights, converged = _weighted_fit(robot, measurement, body, total, transfer, weigh)
    unknowns, total = estimate[:10], total if transfer is None else estimate[10:]
    found = robot.with_body(RigidBody.estimated(unknowns))
    covariance = residual_covariance(found, measurement, stated, total)
    if source == 'zero':
        check_zero_momentum(found, measurement, covariance)
    rows, right = target_regression(robot, measurement, total)
    residual = rows @ unknowns - right
    white = whitening_of(covariance) @ residual[..., None]
    scale = float(np.sqrt(np.sum(white**2) / max(1, white.size - len(estimate))))
    full = scale**2 * _estimate_covariance(jacobian, weights, covariance)
    si, scaled = _conditions(rows)

    def deviation(values: Callable[[FreeFloatingRobot], RigidBody]) -> Array:
        step = 1e-5 * np.maximum(np.abs(unknowns), [0.0, *np.full(9, 1e-2)])
        slope = numerical_slope(lambda x: values(robot.with_body(RigidBody.estimated(x))).values, unknowns, step)
        return np.asarray(np.sqrt(np.diag(slope @ full[:10, :10] @ slope.T)))

    body_deviation = deviation(lambda each: each.body)
    estimates, conditions = convergence_history(rows, right, weights)
    apart = np.linalg.norm(white[..., 0], axis=1)
    usable, reason = _judge(found.body, body_deviation, converged, scale, measurement.time, apart)
    return TargetIdentification(
        robot_name=robot.arm.name,
        joint_names=robot.arm.joint_names,
        body=found.body,
        target=found.target,
        unknowns=unknowns,
        covariance=full[:10, :10],
        body_deviation=body_deviation,
        target_deviation=deviation(lambda each: each.target),
        condition_si=si,
        condition_scaled=scaled,
        residual_rms=np.sqrt(np.mean(residual.reshape(-1, 2, 3) ** 2, axis=(0, 2))),
        noise_scale=scale,
        momentum=np.array(total, dtype=float),
        momentum_deviation=np.sqrt(np.diag(full)[10:]) if source == 'estimated' else None,
        momentum_source=source,
        estimator=estimator,
        time=measurement.time,
        estimates=estimates,
        conditions=conditions,
        samples=len(measurement),
        usable=usable,
        reason=reason,
        provenance=measurement.provenance,
    )


def _conditions(A: Array) -> tuple[float, float]:
    """Return the condition numbers of rows (N, 6, 10), in SI units and with scaled columns."""
    stacked = A.reshape(-1, A.shape[2])
    return condition_numbers(stacked.T @ stacked)


def _start_with_momentum(robot: FreeFloatingRobot, measurement: FloatingMeasurement) -> tuple[RigidBody, Array, Array]:
    """Return body n and momentum [P; L], exact for exact data, and the derivative of the equations by the momentum.

    In the standard parameters [m, m c, I about p_n] the momentum of body n is linear, and so is the whole system of 16
    unknowns. Raises a DataError if the base pose was not measured. Raises an IdentificationError if the motion does not
    determine the 16 unknowns.
    """
    rows, transfer, right = _linear_system(robot, measurement)
    solution, rank = scaled_solution(np.concatenate([rows, -transfer], axis=2), right)
    if rank < 16:
        message = (
            f'the motion determines {rank} of the 16 unknowns of target and momentum; '
            'record a longer, more varied motion, or give the momentum'
        )
        raise IdentificationError(message, expected=16, found=rank)
    # The order of [m, m c, I about p_n] is not that of the standard parameters.
    body = RigidBody.from_parameters(np.concatenate([solution[4:10], solution[1:4], solution[:1]]))
    return body, solution[10:], transfer


def _weighted_fit(
    robot: FreeFloatingRobot,
    measurement: FloatingMeasurement,
    body: RigidBody,
    momentum: Array,
    transfer: Array | None,
    weigh: Callable[[RigidBody, Array], Array],
) -> tuple[Array, Array, Array, bool]:
    """Estimate body n by Gauss-Newton from a body on, with weights that may depend on the estimate itself.

    With ``transfer``, the derivative of the equations by the momentum, the momentum [P; L] [kg m/s, kg m^2/s] is
    estimated too, and stands after the 10 unknowns. Returned are the estimate, shape (p,), the derivative of the
    residual A x - Y, shape (N, 6, p), the left factors of each sample's rows, shape (N, 6, 6), from ``weigh`` of body
    and momentum, and whether it converged.
    """
    estimate = body.unknowns if transfer is None else np.concatenate([body.unknowns, momentum])
    rows, right = target_regression(robot, measurement, momentum)
    converged = False
    for _ in range(_SWEEPS):
        body = RigidBody.estimated(estimate[:10])
        jacobian = rows if transfer is None else _jacobian(body, rows, transfer)
        weights = weigh(body, momentum)
        residual = right - rows @ body.unknowns
        step, _ = scaled_solution(weights @ jacobian, (weights @ residual[..., None])[..., 0])
        columns = np.linalg.norm(weights @ jacobian, axis=(0, 1))
        estimate = estimate + step
        if np.abs(step * columns).max() <= 1e-12 * np.abs(estimate * columns).max():
            converged = True
            break
        if transfer is not None:
            momentum = estimate[10:]
            rows, right = target_regression(robot, measurement, momentum)
    return estimate, jacobian, weights, converged


def _judge(
    body: RigidBody, deviation: Array, converged: bool, scale: float, time: Array, apart: Array
) -> tuple[bool, str]:
    """Return whether body n is usable, and why not or a remark; ``apart``, shape (N,), are the samples' residuals."""
    misfit = f'the residual is {scale:.3g} times what the stated sensor noise predicts'
    stray = time[apart > _STRAY * float(np.median(apart))]
    if scale > _SUSPICIOUS and len(stray):
        at = ', '.join(f'{each:.6g}' for each in stray[:5]) + (' ...' if len(stray) > 5 else '')
        return False, f'{misfit}, and {len(stray)} samples stand out from the others; leave them out: at {at} s'
    violation = body.violation
    if violation is not None:
        return False, f'the estimate is no physical body: {violation}' + (
            f'; {misfit}: check units, signs and stamps, and that the twist is along the axes of the base'
            if scale > _SUSPICIOUS
            else ''
        )
    if not deviation[0] <= 0.5 * body.mass:
        return False, f'the mass has a standard deviation of {100.0 * deviation[0] / body.mass:.0f} %'
    if not converged:
        return False, 'the weights did not settle'
    if scale > _SUSPICIOUS:
        return True, (
            f'{misfit}: the noise is larger, or base and links are not what the description says, which the '
            'deviations do not cover'
        )
    return True, ''


def _estimate_covariance(jacobian: Array, weights: Array, covariance: Array) -> Array:
    """Return (J^T W J)^-1 J^T W S W J (J^T W J)^-1, valid for any W."""
    rows = weights @ jacobian
    scale = np.sqrt(np.sum(rows**2, axis=(0, 1)))
    scaled = rows / scale
    gain = np.linalg.inv(np.einsum('nki,nkj->ij', scaled, scaled))
    spread = weights @ covariance @ np.swapaxes(weights, 1, 2)
    middle = np.einsum('nki,nkl,nlj->ij', scaled, spread, scaled, optimize=True)
    return np.asarray(gain @ middle @ gain / np.outer(scale, scale))


def check_zero_momentum(robot: FreeFloatingRobot, measurement: FloatingMeasurement, covariance: Array) -> None:
    """Refuse data that a momentum other than zero explains far better.

    An F test of the 16-parameter model against the 10-parameter one, that also asks for half the residual to go: model
    errors are not white, and a small but significant improvement is not yet momentum. ``robot`` has the estimate of
    body n; ``covariance``, shape (N, 6, 6), is that of the residual A x - Y. Nothing can be tested without the base
    pose or with fewer than four samples. Raises an IdentificationError if the data carry momentum.
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
        linear, angular = (', '.join(f'{value:.3g}' for value in part) for part in (solution[10:13], solution[13:]))
        raise IdentificationError(
            f'the data carry momentum, P = ({linear}) kg m/s and L = ({angular}) kg m^2/s about the '
            "inertial origin, but zero was assumed; pass momentum='estimated', or the momentum if it is known"
        )


def _linear_system(robot: FreeFloatingRobot, measurement: FloatingMeasurement) -> tuple[Array, Array, Array]:
    """Return rows (N, 6, 10), transfer (N, 6, 6) and right (N, 6): rows @ [m, m c, I_p] - transfer @ [P; L] = right."""
    position, rotation = base_pose(measurement)
    plain, opposite = target_regression(robot, measurement)
    velocity, angular = -opposite[:, :3], -opposite[:, 3:]
    momentum, w = plain[:, :3, 0], plain[:, 3, 4:7]
    last = link_transforms(robot.arm, measurement.q)[:, -1]
    rows = body_regressor(np.hstack([w, velocity]))
    rows[:, 3:, 1:4] *= -1.0
    turn = np.swapaxes(rotation @ last[:, :3, :3], 1, 2)
    joint = position + np.einsum('nab,nb->na', rotation, last[:, :3, 3])
    transfer = np.zeros((len(w), 6, 6))
    transfer[:, :3, :3] = turn
    transfer[:, 3:, 3:] = turn
    transfer[:, 3:, :3] = -turn @ cross_matrix(joint)
    return rows, transfer, -np.concatenate([momentum, angular], axis=1)


def _jacobian(body: RigidBody, rows: Array, transfer: Array) -> Array:
    """Return the derivative of A(P, L) x - Y(P, L) with respect to x, P and L."""
    through = np.zeros((len(rows), 6, 6))
    through[:, :3, :3] = -transfer[:, :3, :3] / body.mass
    # [Q]x c turns with -P, and -c x (.) is -[c]x
    through[:, 3:, :3] = cross_matrix(body.center_of_mass[None]) @ transfer[:, :3, :3] - transfer[:, 3:, :3]
    through[:, 3:, 3:] = -transfer[:, 3:, 3:]
    return np.concatenate([rows, through], axis=2)
