# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification of the captured target from momentum conservation."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import IdentificationError
from robotid_ros.excitation.criteria import condition_numbers
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.constant_momentum import check_zero_momentum, estimate_with_momentum
from robotid_ros.free_floating.measurement import FloatingMeasurement, SensorNoise
from robotid_ros.free_floating.recursive import convergence_history
from robotid_ros.free_floating.regression import (
    Estimate,
    Regression,
    residual_covariance,
    scaled_solution,
    target_regression,
    whitening_of,
)
from robotid_ros.free_floating.result import TargetIdentification
from robotid_ros.free_floating.robot import FreeFloatingRobot

Estimator: TypeAlias = Literal['weighted', 'ordinary', 'recursive']

ESTIMATORS: tuple[Estimator, ...] = ('weighted', 'ordinary', 'recursive')

_SWEEPS = 30
_SUSPICIOUS = 1.5  # residual relative to the stated noise; a base 5 % too heavy in the description gives 1.9


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

    Returns
    -------
    TargetIdentification

    Raises
    ------
    DataError
        If joints differ, or the base pose is needed and missing.
    IdentificationError
        If the motion does not determine all ten unknowns, the data carry momentum although zero was
        assumed, or a setting is unknown.
    """
    if estimator not in ESTIMATORS:
        raise IdentificationError(f"estimator '{estimator}' is not known; available: {', '.join(ESTIMATORS)}")
    if not 0.0 < forgetting <= 1.0:
        raise IdentificationError(f'forgetting: expected a factor in (0, 1], got {forgetting:g}')
    if forgetting != 1.0 and estimator != 'recursive':
        raise IdentificationError(f"forgetting belongs to the recursive estimator; got it with '{estimator}'")
    stated = SensorNoise() if noise is None or not any(noise.to_dict().values()) else noise
    source, total = _momentum_setting(momentum, estimator)
    if source == 'estimated':
        fit = estimate_with_momentum(robot, measurement, stated)
        total = fit.unknowns[10:]
    regression = target_regression(robot, measurement, total)
    si, scaled = _require_rank(regression.A)
    if estimator == 'recursive':
        # seen from the end, forgetting is a weight that grows from sample to sample
        weight = np.sqrt(forgetting ** np.arange(len(measurement))[::-1])
        whitening = weight[:, None, None] * whitening_of(residual_covariance(robot, measurement, stated, total))
        fit = Estimate(unknowns=_solve(regression, whitening), jacobian=regression.A, whitening=whitening)
    elif source != 'estimated':
        fit = _batch_fit(robot, measurement, regression, stated, total, weighted=estimator == 'weighted')
    unknowns = fit.unknowns[:10]
    found = robot.with_body(RigidBody.estimated(unknowns))
    covariance = residual_covariance(found, measurement, stated, total)
    if source == 'zero':
        check_zero_momentum(found, measurement, covariance)
    residual = regression.A @ unknowns - regression.Y
    white = whitening_of(covariance) @ residual[..., None]
    scale = float(np.sqrt(np.sum(white**2) / max(1, white.size - len(fit.unknowns))))
    full = scale**2 * _estimate_covariance(fit, covariance)

    def deviation(values: Callable[[FreeFloatingRobot], RigidBody]) -> Array:
        return _propagated(lambda x: values(robot.with_body(RigidBody.estimated(x))).values, unknowns, full[:10, :10])

    body_deviation = deviation(lambda each: each.body)
    usable, reason = _judge(found.body, body_deviation, fit.converged, scale)
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
        history=convergence_history(measurement.time, regression.A, regression.Y, fit.whitening),
        samples=len(measurement),
        usable=usable,
        reason=reason,
        provenance=measurement.provenance,
    )


def _momentum_setting(momentum: str | Sequence[float] | Array, estimator: Estimator) -> tuple[str, Array]:
    """Return where the momentum comes from, and its value where that is known."""
    if not isinstance(momentum, str):
        return 'given', frozen_array(momentum, 'momentum', (6,), IdentificationError)
    if momentum not in ('zero', 'estimated'):
        raise IdentificationError(f"momentum: expected 'zero', 'estimated' or six numbers; got '{momentum}'")
    if momentum == 'estimated' and estimator != 'weighted':
        raise IdentificationError(
            "momentum='estimated' needs the estimator 'weighted', which weighs both kinds of unknowns; "
            f"got '{estimator}'"
        )
    return momentum, np.zeros(6)


def _require_rank(A: Array) -> tuple[float, float]:
    """Return the condition numbers in SI units and with scaled columns; refuse what determines fewer unknowns."""
    stacked = A.reshape(-1, A.shape[2])
    si, scaled = condition_numbers(stacked.T @ stacked)
    if np.isfinite(scaled):
        return si, scaled
    _, rank = scaled_solution(A, np.zeros(A.shape[:2]))
    raise IdentificationError(
        f'the motion determines {min(rank, 9)} of the ten unknowns; at least three samples are needed, with '
        'angular velocities of the last link about different axes: record more of the designed trajectory'
    )


def _batch_fit(
    robot: FreeFloatingRobot,
    measurement: FloatingMeasurement,
    regression: Regression,
    noise: SensorNoise,
    total: Array,
    *,
    weighted: bool,
) -> Estimate:
    unknowns = _solve(regression, None)
    whitening = None
    converged = not weighted
    for _ in range(_SWEEPS if weighted else 0):
        found = robot.with_body(RigidBody.estimated(unknowns))
        whitening = whitening_of(residual_covariance(found, measurement, noise, total))
        previous, unknowns = unknowns, _solve(regression, whitening)
        if np.abs(unknowns - previous).max() <= 1e-12 * np.abs(unknowns).max():
            converged = True
            break
    return Estimate(unknowns=unknowns, jacobian=regression.A, whitening=whitening, converged=converged)


def _solve(regression: Regression, whitening: Array | None) -> Array:
    if whitening is None:
        return scaled_solution(regression.A, regression.Y)[0]
    return scaled_solution(whitening @ regression.A, (whitening @ regression.Y[..., None])[..., 0])[0]


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


def _estimate_covariance(fit: Estimate, covariance: Array) -> Array:
    """Return (J^T W J)^-1 J^T W S W J (J^T W J)^-1, valid for any W."""
    whitening = fit.whitening
    rows = fit.jacobian if whitening is None else whitening @ fit.jacobian
    scale = np.sqrt(np.sum(rows**2, axis=(0, 1)))
    scaled = rows / scale
    gain = np.linalg.inv(np.einsum('nki,nkj->ij', scaled, scaled))
    spread = covariance if whitening is None else whitening @ covariance @ np.swapaxes(whitening, 1, 2)
    middle = np.einsum('nki,nkl,nlj->ij', scaled, spread, scaled, optimize=True)
    result: Array = gain @ middle @ gain / np.outer(scale, scale)
    return result


def _propagated(function: Callable[[Array], Array], unknowns: Array, covariance: Array) -> Array:
    """Return standard deviations of a function of the unknowns, by central differences."""
    steps = 1e-5 * np.maximum(np.abs(unknowns), [1e-6 * abs(unknowns[0]), *np.full(9, 1e-2)])
    slope = np.stack(
        [(function(unknowns + step) - function(unknowns - step)) / (2.0 * step.sum()) for step in np.diag(steps)],
        axis=1,
    )
    deviation: Array = np.sqrt(np.diag(slope @ covariance @ slope.T))
    return deviation
