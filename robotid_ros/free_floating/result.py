# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The result of a target identification, with its deviations and verdict."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.criteria import condition_numbers
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.measurement import FloatingMeasurement
from robotid_ros.free_floating.recursive import ConvergenceHistory
from robotid_ros.free_floating.regression import Regression, whitening_of
from robotid_ros.free_floating.robot import FreeFloatingRobot

_SUSPICIOUS = 1.5  # residual relative to the stated noise; a base 5 % too heavy in the description gives 1.9


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
    history : ConvergenceHistory
        Estimates sample by sample.
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
    history: ConvergenceHistory
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """An estimate and the weights it was made with.

    ``jacobian`` has the columns of everything estimated, ``whitening`` the weights of each sample's
    rows (None where they are equal).
    """

    unknowns: Array
    jacobian: Array
    whitening: Array | None
    converged: bool = True


def target_identification(
    *,
    robot: FreeFloatingRobot,
    measurement: FloatingMeasurement,
    regression: Regression,
    residual_covariance: Array,
    estimate: Estimate,
    history: ConvergenceHistory,
    estimator: str,
    momentum: Array,
    momentum_source: str,
) -> TargetIdentification:
    """Judge an estimate: deviations, condition, residual, physical consistency."""
    unknowns, count = estimate.unknowns, estimate.jacobian.shape[2]
    residual = regression.A @ unknowns - regression.Y
    scale = _noise_scale(residual, residual_covariance, count)
    full = scale**2 * _estimate_covariance(estimate.jacobian, estimate.whitening, residual_covariance)
    covariance = full[:10, :10]
    body = RigidBody.estimated(unknowns)
    bare = robot.arm.inertial[-1]

    def alone(values: Array) -> Array:
        parameters = RigidBody.estimated(values).parameters - bare
        return _physical_values(RigidBody.from_parameters(parameters))

    def merged(values: Array) -> Array:
        return _physical_values(RigidBody.estimated(values))

    stacked = regression.A.reshape(-1, 10)
    si, scaled = condition_numbers(stacked.T @ stacked)
    body_deviation = _propagated(merged, unknowns, covariance)
    usable, reason = _judge(body, body_deviation, estimate.converged, scale)
    return TargetIdentification(
        robot_name=robot.arm.name,
        joint_names=robot.arm.joint_names,
        body=body,
        target=RigidBody.from_parameters(body.parameters - bare),
        unknowns=unknowns,
        covariance=covariance,
        body_deviation=body_deviation,
        target_deviation=_propagated(alone, unknowns, covariance),
        condition_si=si,
        condition_scaled=scaled,
        residual_rms=np.sqrt(np.mean(residual.reshape(-1, 2, 3) ** 2, axis=(0, 2))),
        noise_scale=scale,
        momentum=np.array(momentum, dtype=float),
        momentum_deviation=np.sqrt(np.diag(full)[10:]) if count > 10 else None,
        momentum_source=momentum_source,
        estimator=estimator,
        history=history,
        samples=len(measurement),
        usable=usable,
        reason=reason,
        provenance=measurement.provenance,
    )


def _judge(body: RigidBody, deviation: Array, converged: bool, scale: float) -> tuple[bool, str]:
    violation = body.violation
    if violation is not None:
        return False, f'the estimate is no physical body: {violation}'
    if deviation[0] > 0.5 * body.mass:
        return False, f'the mass has a standard deviation of {100.0 * deviation[0] / body.mass:.0f} %'
    if not converged:
        return False, 'the weights did not settle'
    if scale > _SUSPICIOUS:
        return True, (
            f'the residual is {scale:.3g} times what the stated sensor noise predicts: the noise is larger, '
            'or base and links are not what the description says, which the deviations do not cover'
        )
    return True, ''


def _noise_scale(residual: Array, covariance: Array, unknowns: int) -> float:
    white = whitening_of(covariance) @ residual[..., None]
    freedom = max(1, white.size - unknowns)
    return float(np.sqrt(np.sum(white**2) / freedom))


def _estimate_covariance(jacobian: Array, whitening: Array | None, covariance: Array) -> Array:
    """Return (J^T W J)^-1 J^T W S W J (J^T W J)^-1, valid for any W."""
    rows = jacobian if whitening is None else whitening @ jacobian
    scale = np.sqrt(np.sum(rows**2, axis=(0, 1)))
    scaled = rows / scale
    gain = np.linalg.inv(np.einsum('nki,nkj->ij', scaled, scaled))
    spread = covariance if whitening is None else whitening @ covariance @ np.swapaxes(whitening, 1, 2)
    middle = np.einsum('nki,nkl,nlj->ij', scaled, spread, scaled, optimize=True)
    result: Array = gain @ middle @ gain / np.outer(scale, scale)
    return result


def _physical_values(body: RigidBody) -> Array:
    return np.concatenate([[body.mass], body.unknowns[1:]])


def _propagated(function: Callable[[Array], Array], unknowns: Array, covariance: Array) -> Array:
    """Return standard deviations of a function of the unknowns, by central differences."""
    steps = 1e-5 * np.maximum(np.abs(unknowns), [1e-6 * abs(unknowns[0]), *np.full(9, 1e-2)])
    slope = np.stack(
        [(function(unknowns + step) - function(unknowns - step)) / (2.0 * step.sum()) for step in np.diag(steps)],
        axis=1,
    )
    deviation: Array = np.sqrt(np.diag(slope @ covariance @ slope.T))
    return deviation


def _with_deviation(body: RigidBody, deviation: Array) -> dict[str, Any]:
    return {
        **body.to_dict(),
        'std': {
            'mass': float(deviation[0]),
            'center_of_mass': deviation[1:4].tolist(),
            'inertia': deviation[4:].tolist(),
        },
    }
