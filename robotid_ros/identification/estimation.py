# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The estimators, on the rows of a chosen model."""

import time
from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics import BaseParameters
from robotid_ros.identification.alternating import alternate
from robotid_ros.identification.assembly import thresholds
from robotid_ros.identification.bee_colony import bee_colony
from robotid_ros.identification.candidates import automatic
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.least_squares import LinearEstimator, fit_of_parameters, least_squares
from robotid_ros.identification.model_choice import Chosen, stroke_prior
from robotid_ros.identification.prior import is_placeholder
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.stroke_friction import stroke_friction
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.model.robot_model import RobotModel

_BEE_SAMPLES = 2500  # as many as the source has
_METHODS: dict[str, LinearEstimator] = {'ols': 'ols', 'wls': 'wls', 'irls': 'irls', 'physical': 'wls'}


def estimate(chosen: Chosen, model: RobotModel, config: IdentificationConfig) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Run the estimator asked for; the physical one starts from weighted least squares."""
    rows, choice = chosen.rows, chosen.choice
    if config.estimator == 'alternating':
        return _alternating(chosen, model, config)
    if config.estimator == 'bee-colony':
        return _bees(chosen, model, config)
    if config.estimator == 'auto':
        return automatic(chosen, model, config)
    method = _METHODS[config.estimator]
    variance = 1.0
    if method == 'ols' and chosen.strokes is not None:  # the rows' weight is 1, and that of the strokes relative to it
        alone = least_squares(rows, choice.friction, choice.shape, estimator='wls', covariance=False)
        variance = float(1.0 / alone.precision.mean())
    prior = stroke_prior(chosen, variance)
    fit = least_squares(rows, choice.friction, choice.shape, estimator=method, prior=prior)
    return fit, (Decision(subject='estimator', chosen=config.estimator),)


def _alternating(
    chosen: Chosen, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Alternate from the description's parameters, where it has some; friction data give the friction."""
    rows, friction, strokes = chosen.rows, chosen.choice.friction, chosen.strokes
    base, limit = rows.base, thresholds(config, model)
    assert isinstance(base, BaseParameters)

    def step(values: Array) -> Array:
        assert strokes is not None
        gravity = base.regressor(strokes.q, strokes.dq, np.zeros_like(strokes.q)) @ values
        own = gravity[np.arange(len(strokes)), strokes.joint]
        return stroke_friction(friction, strokes, own).parameters

    found = alternate(
        rows,
        friction,
        thresholds=limit,
        max_iterations=config.max_iterations,
        start=None if is_placeholder(model) else np.array(base.values),
        step=None if strokes is None else step,
    )
    fit = fit_of_parameters(
        rows,
        friction,
        found.base_values,
        found.friction_parameters,
        converged=found.usable,
        reason=found.reason(model.joint_names, limit),
        prior=stroke_prior(chosen),
    )
    note = f'alternating, {len(found.errors)} iterations{"" if found.usable else ", not usable"}'
    last = Alternative(name='last iteration', error=found.errors[-1])
    return fit, (Decision(subject='estimator', chosen=note, alternatives=(last,)),)


def _bees(chosen: Chosen, model: RobotModel, config: IdentificationConfig) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Search for all parameters by a bee colony, and say what separable least squares reaches on the same rows."""
    rows, friction = chosen.rows, chosen.choice.friction
    base = rows.base
    assert isinstance(base, BaseParameters)
    few = rows.samples.thinned(_BEE_SAMPLES)
    rigid = base.regressor(few.q, few.dq, few.ddq)
    size, limit, cycles = config.colony_size, config.colony_limit, config.colony_cycles
    rng = np.random.default_rng(config.seed)
    described = np.zeros(len(base.independent)) if is_placeholder(model) else np.array(base.values)
    strokes = None if chosen.strokes is None else stroke_friction(friction, chosen.strokes)
    data, begin = (rigid, few.dq, few.target, friction, described), time.perf_counter()
    found = bee_colony(*data, rng, position=few.q, strokes=strokes, size=size, limit=limit, cycles=cycles)
    seconds = time.perf_counter() - begin
    direct = separable_least_squares(rigid, few, friction, fit_scale=False)

    def rmse(values: Array, parameters: Array) -> Array:
        torque = rigid @ values + friction.torque(few.dq, parameters, few.target, few.q)
        return np.asarray(np.sqrt(np.mean((few.target - torque) ** 2, axis=0)))

    count = len(found.base_values) + found.friction_parameters.size
    curve = ' '.join(f'{found.cost[k]:.3g}' for k in np.linspace(0, len(found.cost) - 1, 11).astype(int))
    decision = Decision(
        subject='estimator',
        chosen=f'bee-colony: {count} parameters, {size} bees, limit {limit}, {cycles} cycles, '
        f'{found.evaluations} evaluations in {seconds:.1f} s; relative squared error {curve}',
        alternatives=(
            Alternative(name='bee colony', error=rmse(found.base_values, found.friction_parameters)),
            Alternative(
                name=f'separable least squares, {direct.evaluations} linear problems',
                error=rmse(direct.base_values, np.concatenate([direct.linear, direct.shape], axis=1)),
            ),
        ),
    )
    fit = fit_of_parameters(rows, friction, found.base_values, found.friction_parameters, converged=True, reason='')
    return replace(fit, search=found.cost), (decision,)
