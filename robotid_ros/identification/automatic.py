# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The default estimator: weight of the description, plain or not, bounds of the friction, bodies that can exist."""

from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics import BaseParameters
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.cross_validation import Alternative, Decision, Folds, HeldOut, LinearFolds
from robotid_ros.identification.information import Information
from robotid_ros.identification.least_squares import LinearEstimator, least_squares, weighted_solution
from robotid_ros.identification.model_choice import Chosen, stroke_prior
from robotid_ros.identification.physical import physical_parameters
from robotid_ros.identification.prior import Prior, description_prior
from robotid_ros.identification.rest_friction import RestFriction, last_direction
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.shrinkage import choose_prior, total_error
from robotid_ros.identification.signal_choice import PLAIN, log_error
from robotid_ros.identification.torque_fit import TorqueFit, predicted_torque
from robotid_ros.model.robot_model import RobotModel

_SAMPLES = 6000  # at most, by which a choice is judged
# Largest rise of the held-out error, over all joints and in the geometric mean, at which physically consistent
# parameters are taken: on a 300 kg arm they predict another trajectory with less than half the error of free ones.
_CONSISTENT, _CONSISTENT_JOINTS = 0.10, 0.05
_IN_REGIONS = 2.0  # times that in regions left out, where errors are larger and scatter more
# Fall of the error in regions left out, and largest rise of that in stretches, at which the weight of the description
# counts for physically consistent parameters too.
_WEIGHT = 0.01
_PLAIN_GAIN = 0.02  # fall of the error, in stretches and in regions left out, that the plain model must bring
_FREE_GAIN = 0.02  # fall of the held-out error that friction without bounds must bring
_REST_GAIN = 0.05  # fall of the mean square error at rest that a coefficient of its own must bring
_REST_SHARE = 0.005  # of the samples: less rest than this is not worth a parameter
_AT_REST = 0.02  # of a joint's largest speed, where the configuration does not say


def automatic(
    chosen: Chosen, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Fit with the prior's weight chosen; fall back to the plain model where that predicts held-out torque better."""
    rows, choice = chosen.rows, chosen.choice
    base = rows.base
    assert isinstance(base, BaseParameters)
    prior = description_prior(model, base, rotor_inertia=config.rotor_inertia)
    samples = rows.samples
    few = samples.thinned(_SAMPLES) if samples.open else samples.excerpts(_SAMPLES)

    def candidate(
        friction: FrictionModel, shape: Array, few: Samples, *, dissipative: bool = True, equal: bool = False
    ) -> tuple[Prior | None, tuple[HeldOut, HeldOut], tuple[Decision, Decision]]:
        load = None
        if friction.needs_load:
            fitted = least_squares(Rows(base, few), friction, shape, covariance=False)
            load = Rows(base, few).torque(fitted.base_values)
        return choose_prior(base, few, friction, shape, load, prior, dissipative=dissipative, equal=equal)

    strength, (errors, afar), weights = candidate(choice.friction, choice.shape, few)
    decisions: list[Decision] = [*weights]
    equal = False
    if config.friction == 'auto' and chosen.strokes is None:
        plain, unlimited = friction_model(PLAIN), few.with_bandwidth(None)
        name = f'plain: {PLAIN}, exact sign, torque not limited'
        tried = {'as chosen': (strength, (errors, afar), weights)}
        tried[name] = candidate(plain, np.zeros((samples.n, 0)), unlimited)
        alike = f'{name}, all joints alike'
        tried[alike] = candidate(plain, np.zeros((samples.n, 0)), unlimited, equal=True)
        # What predicts every stretch of a trajectory and fails in a region left out has fitted that trajectory.
        scores = {name: 0.5 * (log_error(near) + log_error(far)) for name, (_, (near, far), _) in tried.items()}
        best = min(tried, key=lambda name: scores[name])
        if not scores[best] < scores['as chosen'] + np.log1p(-_PLAIN_GAIN):
            best = 'as chosen'
        if best != 'as chosen':
            rows, few = Rows(base, samples.with_bandwidth(None)), unlimited
            choice = replace(choice, friction=plain, shape=np.zeros((samples.n, 0)))
            strength, (errors, afar), weights = tried[best]
            decisions = [*weights]
            equal = best == alike
        alternatives = tuple(
            Alternative(name=name + where, error=errors.rmse)
            for name, (_, found, _) in tried.items()
            for where, errors in zip(('', ', in regions left out'), found, strict=True)
        )
        decisions.append(Decision(subject='model', chosen=best, alternatives=alternatives))
    by_strokes = stroke_prior(chosen)

    def fitted(strength: Prior | None, dissipative: bool) -> TorqueFit:
        scale = few.independent_per_sample / samples.independent_per_sample
        used = None if strength is None else replace(strength, strength=strength.strength * scale)
        if by_strokes is not None:
            used = by_strokes if used is None else replace(used, friction=by_strokes.friction)
        estimator: LinearEstimator = 'ols' if equal else 'wls'
        return least_squares(
            rows, choice.friction, choice.shape, estimator=estimator, prior=used, dissipative=dissipative
        )

    fit = fitted(strength, True)
    if fit.bounded:
        # Friction that drives a joint is a fault in the data, which the verdict names; the fit may still describe it.
        free_strength, (free_errors, _), _ = candidate(
            choice.friction, choice.shape, few, dissipative=False, equal=equal
        )
        free = total_error(free_errors) < (1.0 - _FREE_GAIN) * total_error(errors)
        decisions.append(
            Decision(
                subject='bounds of the friction',
                chosen='none: some friction drives its joint' if free else 'it dissipates',
                alternatives=(
                    Alternative(name='dissipates', error=errors.rmse),
                    Alternative(name='free', error=free_errors.rmse),
                ),
            )
        )
        if free:
            return fitted(free_strength, False), tuple(decisions)
    if chosen.strokes is not None:
        return fit, tuple(decisions)  # the friction is that of the sweep, which the next step would change
    fit, bodies = _with_bodies(base, few, fit, model, strength, (errors, afar), equal=equal)
    return fit, (*decisions, bodies)


def _with_bodies(
    base: BaseParameters,
    few: Samples,
    fit: TorqueFit,
    model: RobotModel,
    prior: Prior | None,
    free: tuple[HeldOut, HeldOut],
    *,
    equal: bool,
) -> tuple[TorqueFit, Decision]:
    """Decide whether the parameters are to be physically consistent, with the weight of the description or without."""
    best = _consistent_errors(base, few, fit, model, None, equal)
    tried, described = {'free': free, 'physically consistent': best}, False
    if prior is not None:
        weighted = _consistent_errors(base, few, fit, model, prior, equal)
        tried['physically consistent, weight of the description'] = weighted
        described = _not_worse(weighted[0], best[0], _WEIGHT, _WEIGHT) and _not_worse(
            weighted[1], best[1], -_WEIGHT, -_WEIGHT
        )
        best = weighted if described else best
    keep = _not_worse(best[0], free[0], _CONSISTENT, _CONSISTENT_JOINTS) and _not_worse(
        best[1], free[1], _IN_REGIONS * _CONSISTENT, _IN_REGIONS * _CONSISTENT_JOINTS
    )
    decision = Decision(
        subject='bodies that can exist',
        chosen=f'yes{", with the weight of the description" * described}'
        if keep
        else 'no: held-out torque contradicts them',
        alternatives=tuple(
            Alternative(name=name + where, error=errors.rmse)
            for name, both in tried.items()
            for where, errors in zip(('', ', in regions left out'), both, strict=True)
        ),
    )
    return replace(fit, consistent=keep, described=described), decision


def _not_worse(new: HeldOut, old: HeldOut, total: float, joints: float) -> bool:
    """Return whether errors rise by at most these shares, over all joints and in the geometric mean."""
    rise = total_error(new) / max(total_error(old), 1e-300)
    mean = float(np.exp(np.mean(np.log(new.rmse / np.maximum(old.rmse, 1e-300)))))
    return rise <= 1.0 + total and mean <= 1.0 + joints


def _consistent_errors(
    base: BaseParameters, samples: Samples, fit: TorqueFit, model: RobotModel, prior: Prior | None, equal: bool
) -> tuple[HeldOut, HeldOut]:
    """Return the errors of physically consistent parameters in stretches and in regions that were held out.

    The friction's shape is that of a fit.
    """
    friction = fit.friction
    k = len(friction.linear_names)
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    own = friction.columns(samples.dq, fit.friction_parameters[:, k:], rigid @ fit.base_values, samples.q)
    rows = [passed(values) for passed in (samples.filtered, samples.recorded) for values in (rigid, own)]

    def solve(info: Information) -> Array:
        _, precision = weighted_solution(info, friction, fit.precision, equal=equal)
        matrix, vector = info.normal(precision)
        square = float(info.gram[:, -1, -1] @ precision) + (0.0 if prior is None else prior.add(matrix, vector))
        found = physical_parameters(matrix, vector, square, base.map, model, friction=friction)
        values = base.map @ found.standard(rotor_inertia=base.map.shape[1] > 10 * model.n)
        return np.concatenate([values, found.linear.ravel()])

    in_time, in_space = (
        LinearFolds.of_rows(samples, folds, *rows).errors(solve)
        for folds in (Folds.of(samples), Folds.of_regions(samples))
    )
    return in_time, in_space


def with_rest(fit: TorqueFit, rows: Rows, config: IdentificationConfig) -> tuple[TorqueFit, Decision]:
    """Find the friction at rest, joint by joint, where held-out torque confirms it."""
    samples = rows.samples.with_bandwidth(fit.bandwidth)
    speed = (config.standstill_speed or _AT_REST) * np.abs(samples.dq).max(axis=0)
    runs = [(run.start, run.stop) for run in samples.runs]
    zero = RestFriction(speed=speed, torque=np.zeros(samples.n))
    still = zero.resting(samples.dq)
    direction = samples.recorded(last_direction(samples.dq, speed, runs))

    def residual(rest: RestFriction | None) -> Array:
        torque = predicted_torque(rows.base, fit.friction, fit.base_values, fit.friction_parameters, samples, rest)
        return samples.measured - torque

    plain, left = residual(None), residual(zero)
    folds = Folds.of(samples)
    predicted = np.zeros_like(left)
    for held in folds.held:
        seen = still & ~held[:, None]
        rho = np.sum(seen * direction * left, axis=0) / np.maximum(np.sum(seen * direction**2, axis=0), 1e-12)
        predicted[held] = direction[held] * rho
    count = np.maximum(still.sum(axis=0), 1)
    before = np.sum(still * plain**2, axis=0) / count
    after = np.sum(still * (left - predicted) ** 2, axis=0) / count
    chosen = (after < (1.0 - _REST_GAIN) * before) & (still.mean(axis=0) > _REST_SHARE)
    rho = np.sum(still * direction * left, axis=0) / np.maximum(np.sum(still * direction**2, axis=0), 1e-12)
    decision = Decision(
        subject='friction at rest',
        chosen=f'from the last direction for {int(chosen.sum())} of {samples.n} joints' if chosen.any() else 'none',
        alternatives=(
            Alternative(name='friction model', error=np.sqrt(before)),
            Alternative(name='last direction', error=np.sqrt(after)),
        ),
    )
    if not chosen.any():
        return fit, decision
    rest = RestFriction(speed=np.where(chosen, speed, 0.0), torque=np.where(chosen, rho, 0.0))
    return replace(fit, rest=rest), decision
