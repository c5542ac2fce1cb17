# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From datasets to an identified model: the one entry."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.alternating import alternate
from robotid_ros.identification.assembly import assemble, fit_metrics, provenance_of, thresholds
from robotid_ros.identification.bee_colony import BeeColony, bee_colony_friction, separable_friction
from robotid_ros.identification.channel import Channel, coarse, find_bandwidth
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.friction_choice import FrictionChoice, add_ripple, choose_friction, fit_friction_shape
from robotid_ros.identification.least_squares import (
    fit_of_parameters,
    least_squares,
    normal_equations,
)
from robotid_ros.identification.physical import PhysicalFit, physical_parameters
from robotid_ros.identification.plausibility import other_unit, remarks, require_radians
from robotid_ros.identification.result import NOTE, IdentificationResult
from robotid_ros.identification.rigid import ModelRows
from robotid_ros.identification.samples import Samples, as_samples, require_moving
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

__all__ = ['Progress', 'identify']

_SEARCH_SAMPLES = 3000
_BEE_SAMPLES = 1000


def identify(
    datasets: Dataset | Sequence[Dataset],
    model: RobotModel,
    *,
    friction: str | None = None,
    estimator: str | None = None,
    friction_data: Dataset | Sequence[Dataset] = (),
    validation: Dataset | Sequence[Dataset] = (),
    test: Dataset | Sequence[Dataset] = (),
    config: IdentificationConfig | None = None,
    progress: Progress | None = None,
) -> IdentificationResult:
    """Identify the dynamic and friction parameters of an arm.

    Parameters
    ----------
    datasets : Dataset or sequence of Dataset
        Training data; joints are matched by name and may be more than the model's.
    model : RobotModel
        Kinematics, and inertial parameters as a prior for what the data leave open.
    friction, estimator : str, optional
        In place of the configuration's.
    friction_data : Dataset or sequence of Dataset
        Slow motion at constant speeds, from which the alternating estimator takes friction while the
        training data give the dynamics; the other estimators use both at once.
    validation, test : Dataset or sequence of Dataset
        Data that only the metrics see.
    config : IdentificationConfig, optional
    progress : callable, optional
        Called with a share from 0 to 1 and a text.

    Returns
    -------
    IdentificationResult
        ``usable`` is False, with the reason, where the data do not carry the model.

    Raises
    ------
    IdentificationError
        If no model can be computed at all: no data, nothing moves, too few samples, a joint missing, positions
        in degrees, or motion of a joint that the model holds still.
    """
    config = IdentificationConfig() if config is None else config
    config = config if friction is None else replace(config, friction=friction)
    config = config if estimator is None else replace(config, estimator=estimator)
    if config.friction != 'auto':
        friction_model(_without_ripple(config.friction))  # refuses unknown options before any work
    training, slow = _listed(datasets), _listed(friction_data)
    if config.estimator != 'alternating':
        training, slow = training + slow, []
    report = progress if progress is not None else _silent
    thresholds(config, model)
    base = base_parameters(model, rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    samples = require_data(training, model, base, config)
    require_radians(training + slow, model)
    odd = tuple(f'{NOTE}{sentence}' for sentence in remarks(training + slow, model))
    prepared = prepare(base, samples, config, report)
    report(0.6, 'estimate parameters')
    friction_rows = _rows(slow, prepared.rows, model, config) if slow else prepared.rows
    fit, notes = _estimate(prepared, friction_rows, model, config)
    report(0.85, 'make the parameters physically consistent')
    physical = consistent(prepared.rows, fit, model, base, config)
    if config.estimator == 'physical':
        fit = replace(
            fit,
            base_values=base.map @ _standard(physical, config.rotor_inertia),
            friction_parameters=np.concatenate([physical.linear, prepared.choice.shape], axis=1),
        )
        notes = (*notes, f'physical: torque error {physical.error_ratio:.4f} of the unconstrained one')
    metrics = {'training': fit_metrics(base, fit, model, training)}
    for name, held_out in (('validation', validation), ('test', test)):
        listed = _listed(held_out)
        if listed:
            metrics[name] = fit_metrics(base, fit, model, listed)
    report(1.0, 'done')
    return assemble(
        fit,
        physical,
        model,
        base,
        metrics,
        config,
        doubt=other_unit(training + slow, model),
        decisions=(*odd, *prepared.choice.decisions, *notes),
        provenance=provenance_of(training + slow, _listed(validation), _listed(test), config),
        samples=samples,
    )


def require_data(
    datasets: list[Dataset], model: RobotModel, base: BaseParameters, config: IdentificationConfig
) -> Samples:
    """Return the samples of datasets that can tell something.

    Raises
    ------
    IdentificationError
        If there is nothing to identify from.
    """
    samples = as_samples(
        datasets, model, standstill_speed=config.standstill_speed, standstill_weight=config.standstill_weight
    )
    require_moving(samples, model, len(base.independent) + 2 * model.n)
    return samples


def _silent(share: float, text: str) -> None:
    """Report nothing."""


def _listed(datasets: Dataset | Sequence[Dataset]) -> list[Dataset]:
    return [datasets] if isinstance(datasets, Dataset) else list(datasets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Samples with their channel and friction model chosen.

    Attributes
    ----------
    rows : ModelRows
    choice : FrictionChoice
    """

    rows: ModelRows
    choice: FrictionChoice


def prepare(base: BaseParameters, samples: Samples, config: IdentificationConfig, report: Progress) -> Prepared:
    """Find the torque channel and the friction model."""
    notes: tuple[str, ...] = ()
    bandwidth: float | None = None
    if config.torque_bandwidth > 0.0:
        bandwidth = config.torque_bandwidth
    elif config.torque_bandwidth == 0.0:
        report(0.05, 'find the bandwidth of the torque')
        bandwidth = find_bandwidth(base, samples)
        notes = (f'torque bandwidth: {"not limited" if bandwidth is None else f"{bandwidth:.3g} Hz"}',)
    samples = coarse(samples, bandwidth)
    channel = Channel.of(samples, bandwidth)
    rows = ModelRows(base, samples, channel)
    report(0.15, 'choose the friction model')
    name = config.friction
    if name == 'auto' and config.estimator == 'bee-colony':
        name = 'daemi_heimann+offset'  # the model the method was published for
    ripple = name == 'auto' or name != _without_ripple(name)
    name = _without_ripple(name)
    known = None if name == 'auto' else friction_model(name)
    if known is not None and channel.open and not known.shape_names and not ripple:
        choice = FrictionChoice(friction=known, shape=np.zeros((samples.n, 0)), decisions=(f'{name}, as asked for',))
    else:
        few = samples.thinned(_SEARCH_SAMPLES) if channel.open else samples.excerpts(_SEARCH_SAMPLES)
        thin = Channel.of(few, bandwidth)
        rigid = base.regressor(few.q, few.dq, few.ddq)
        if name == 'auto':
            choice = choose_friction(rigid, few, thin, progress=lambda share, text: report(0.15 + 0.4 * share, text))
        else:
            choice = fit_friction_shape(rigid, few, thin, name)
        if ripple:
            report(0.55, 'look for a torque ripple')
            choice = add_ripple(base, few, thin, choice)
    return Prepared(rows=rows, choice=replace(choice, decisions=(*notes, *choice.decisions)))


def _without_ripple(name: str) -> str:
    """Return a friction model's name without the option whose frequencies the data have to tell."""
    return '+'.join(part for part in name.split('+') if part != 'ripple')


def _rows(datasets: list[Dataset], like: ModelRows, model: RobotModel, config: IdentificationConfig) -> ModelRows:
    """Return rows of other datasets, of the same channel."""
    samples = as_samples(
        datasets, model, standstill_speed=config.standstill_speed, standstill_weight=config.standstill_weight
    )
    samples = coarse(samples, like.channel.bandwidth)
    return ModelRows(like.base, samples, Channel.of(samples, like.channel.bandwidth))


def _estimate(
    prepared: Prepared, friction_rows: ModelRows, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[str, ...]]:
    """Run the estimator asked for; the physical one starts from weighted least squares."""
    friction, shape = prepared.choice.friction, prepared.choice.shape
    if config.estimator == 'alternating':
        return _alternating(prepared, friction_rows, model, config)
    if config.estimator == 'bee-colony':
        return _bees(prepared, model, config)
    method = 'wls' if config.estimator == 'physical' else config.estimator
    fit = least_squares(prepared.rows, friction, shape, estimator=method)  # type: ignore[arg-type]
    return fit, (f'estimator: {config.estimator}',)


def _alternating(
    prepared: Prepared, friction_rows: ModelRows, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[str, ...]]:
    rows, friction = prepared.rows, prepared.choice.friction
    limit = thresholds(config, model)
    found = alternate(rows, friction_rows, friction, thresholds=limit, max_iterations=config.max_iterations)
    reason = '' if found.usable else f'the alternation did not end within {config.max_iterations} iterations'
    fit = fit_of_parameters(
        rows, friction, found.base_values, found.friction_parameters, converged=found.usable, reason=reason
    )
    error = ' '.join(f'{value:.3g}' for value in found.errors[-1])
    note = f'estimator: alternating, {len(found.errors)} iterations, torque error {error} N m'
    return fit, (note if found.usable else f'{note}, not usable',)


def _bees(prepared: Prepared, model: RobotModel, config: IdentificationConfig) -> tuple[TorqueFit, tuple[str, ...]]:
    """Alternate twice with a bee colony as the friction step, and say what separable least squares reaches."""
    rows, friction = prepared.rows, prepared.choice.friction
    rng = np.random.default_rng(config.seed)
    few = rows.samples.thinned(_BEE_SAMPLES) if rows.channel.open else rows.samples.excerpts(_BEE_SAMPLES)
    thin = ModelRows(rows.base, few, Channel.of(few, rows.channel.bandwidth))
    channel = None if thin.channel.open else thin.channel
    notes: list[str] = []

    def fit(part: ModelRows, model: FrictionModel, torque: Array, load: Array) -> Array:
        s = part.samples
        colony = BeeColony(cycles=config.max_iterations)
        bees = bee_colony_friction(model, s.dq, torque, rng, colony=colony, load=load, position=s.q, channel=channel)
        direct = separable_friction(model, s.dq, torque, load=load, position=s.q, channel=channel)
        notes.append(
            f'bee colony: mean square error {bees.cost.sum():.6g} (N m)^2, {bees.evaluations} evaluations, '
            f'{bees.seconds:.2f} s; separable least squares: {direct.cost.sum():.6g} (N m)^2, '
            f'{direct.evaluations} evaluations, {direct.seconds:.2f} s'
        )
        return bees.parameters

    start = least_squares(rows, friction, prepared.choice.shape, covariance=False).base_values
    found = alternate(rows, thin, friction, max_iterations=2, start=start, fit=fit)
    result = fit_of_parameters(rows, friction, found.base_values, found.friction_parameters, converged=True, reason='')
    return result, (f'estimator: bee-colony, {config.max_iterations} cycles', *notes)


def consistent(
    rows: ModelRows, fit: TorqueFit, model: RobotModel, base: BaseParameters, config: IdentificationConfig
) -> PhysicalFit:
    """Return physically consistent standard parameters for a fit."""
    shape = fit.friction_parameters[:, len(fit.friction.linear_names) :]
    matrix, vector, square = normal_equations(rows, fit, shape)
    return physical_parameters(
        matrix,
        vector,
        square,
        base.map,
        model,
        friction=fit.friction,
        regularisation=config.regularisation if config.regularisation > 0.0 else None,
    )


def _standard(physical: PhysicalFit, rotor_inertia: bool) -> Array:
    flat = physical.inertial.ravel()
    return np.concatenate([flat, physical.rotor_inertia]) if rotor_inertia else flat
