"""From datasets to an identified model: the one entry."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import scipy

import robotid_ros
from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.dynamics import BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model, unit_of
from robotid_ros.friction.options import TorqueRipple
from robotid_ros.identification.alternating import alternate
from robotid_ros.identification.bee_colony import BeeColony, bee_colony_friction, separable_friction
from robotid_ros.identification.channel import Channel, coarse, find_bandwidth
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.friction_choice import FrictionChoice, add_ripple, choose_friction, fit_friction_shape
from robotid_ros.identification.least_squares import (
    essential_parameters,
    fit_of_parameters,
    least_squares,
    normal_equations,
)
from robotid_ros.identification.metrics import Metrics, torque_metrics
from robotid_ros.identification.physical import PhysicalFit, physical_parameters
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.rigid import ModelRows
from robotid_ros.identification.samples import Samples, as_samples, joint_columns, require_moving
from robotid_ros.identification.torque_fit import TorqueFit, predicted_torque
from robotid_ros.model.inertia import INERTIAL_UNITS
from robotid_ros.model.robot_model import RobotModel

__all__ = ['Progress', 'identify']

Progress = Callable[[float, str], None]

_SEARCH_SAMPLES = 3000
_BEE_SAMPLES = 1000


def identify(
    datasets: Dataset | Sequence[Dataset],
    model: RobotModel,
    *,
    friction: str | None = None,
    estimator: str | None = None,
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
        If no model can be computed at all: no data, nothing moves, too few samples, a joint missing.
    """
    config = IdentificationConfig() if config is None else config
    changes = {key: value for key, value in (('friction', friction), ('estimator', estimator)) if value is not None}
    config = replace(config, **changes)  # type: ignore[arg-type]
    if config.friction != 'auto':
        friction_model(config.friction)  # refuses unknown options before any work
    training = _listed(datasets)
    report = progress if progress is not None else _silent
    thresholds(config, model)
    base = base_parameters(model, rotor_inertia=config.rotor_inertia)
    samples = require_data(training, model, base, config)
    prepared = prepare(base, samples, config, report)
    report(0.6, 'estimate parameters')
    fit, notes = _estimate(prepared, model, config)
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
        decisions=(*prepared.choice.decisions, *notes),
        provenance=provenance_of(training, _listed(validation), _listed(test), config),
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
    known = None if name == 'auto' else friction_model(name)
    if known is not None and bandwidth is None and not known.shape_names:
        choice = FrictionChoice(friction=known, shape=np.zeros((samples.n, 0)), decisions=(f'{name}, as asked for',))
    else:
        few = samples.thinned(_SEARCH_SAMPLES) if channel.open else samples.excerpts(_SEARCH_SAMPLES)
        thin = Channel.of(few, bandwidth)
        rigid = base.regressor(few.q, few.dq, few.ddq)
        if name == 'auto':
            choice = choose_friction(rigid, few, thin, progress=lambda share, text: report(0.15 + 0.4 * share, text))
            report(0.55, 'look for a torque ripple')
            choice = add_ripple(base, few, thin, choice)
        else:
            choice = fit_friction_shape(rigid, few, thin, name)
    return Prepared(rows=rows, choice=replace(choice, decisions=(*notes, *choice.decisions)))


def _estimate(prepared: Prepared, model: RobotModel, config: IdentificationConfig) -> tuple[TorqueFit, tuple[str, ...]]:
    """Run the estimator asked for; the physical one starts from weighted least squares."""
    friction, shape = prepared.choice.friction, prepared.choice.shape
    if config.estimator == 'alternating':
        return _alternating(prepared, model, config)
    if config.estimator == 'bee-colony':
        return _bees(prepared, model, config)
    method = 'wls' if config.estimator == 'physical' else config.estimator
    fit = least_squares(prepared.rows, friction, shape, estimator=method)  # type: ignore[arg-type]
    return fit, (f'estimator: {config.estimator}',)


def _alternating(
    prepared: Prepared, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[str, ...]]:
    rows, friction = prepared.rows, prepared.choice.friction
    limit = thresholds(config, model)
    found = alternate(rows, rows, friction, thresholds=limit, max_iterations=config.max_iterations)
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


def fit_metrics(base: BaseParameters, fit: TorqueFit, model: RobotModel, datasets: list[Dataset]) -> Metrics:
    """Return the errors against the torque as recorded, on every sample."""
    measured, predicted = [], []
    for dataset in datasets:
        columns = joint_columns(dataset, model)
        measured.append(dataset.tau[:, columns])
        predicted.append(
            predicted_torque(
                base,
                fit.friction,
                fit.base_values,
                fit.friction_parameters,
                dataset.q[:, columns],
                dataset.dq[:, columns],
                dataset.ddq[:, columns],
                bandwidth=fit.bandwidth,
                rate=dataset.rate,
                trajectory=dataset.trajectory,
            )
        )
    return torque_metrics(model.joint_names, np.concatenate(measured), np.concatenate(predicted))


def thresholds(config: IdentificationConfig, model: RobotModel) -> Array | None:
    """Return the largest acceptable torque error of each joint, or None.

    Raises
    ------
    IdentificationError
        If there are neither none, nor one, nor one per joint.
    """
    given = config.torque_threshold
    if not given:
        return None
    if len(given) not in (1, model.n):
        raise IdentificationError(f'torque_threshold: expected 1 or {model.n} torques, got {len(given)}')
    return np.broadcast_to(np.array(given), (model.n,))


def verdict(fit: TorqueFit, metrics: Metrics, limit: Array | None, names: Sequence[str]) -> tuple[bool, str]:
    """Return whether a fit is usable, and what to know about it."""
    if not np.isfinite(fit.base_values).all():
        return False, 'the fit gave no finite numbers'
    if not fit.converged and limit is not None:
        return False, fit.reason
    if limit is not None and (metrics.rmse > limit).any():
        worst = int(np.argmax(metrics.rmse / limit))
        return False, (
            f'the torque error of {metrics.joint_names[worst]} is {metrics.rmse[worst]:.3g} N m, '
            f'above its threshold of {limit[worst]:.3g} N m'
        )
    if metrics.relative_error_total > 50.0:
        return False, f'the model leaves {metrics.relative_error_total:.0f} % of the torque unexplained'
    count = len(fit.base_values)
    still_open = [names[k] for k in np.flatnonzero(~fit.determined[:count]).tolist()]
    if still_open:
        return False, f'the data leave {len(still_open)} of {count} base parameters open: {", ".join(still_open[:3])}'
    return True, fit.reason


def assemble(
    fit: TorqueFit,
    physical: PhysicalFit,
    model: RobotModel,
    base: BaseParameters,
    metrics: dict[str, Metrics],
    config: IdentificationConfig,
    *,
    decisions: tuple[str, ...],
    provenance: dict[str, object],
) -> IdentificationResult:
    """Put a fit into the form that users get."""
    n, count = model.n, len(fit.base_values)
    std = fit.std
    friction: FrictionModel = fit.friction
    names = (*friction.linear_names, *friction.shape_names)
    usable, reason = verdict(fit, metrics['training'], thresholds(config, model), base.names)
    values = np.concatenate([fit.base_values, fit.friction_parameters.ravel()])
    return IdentificationResult(
        robot=model.name,
        joint_names=model.joint_names,
        joint_types=model.joint_types,
        link_names=model.link_names,
        gravity=model.gravity,
        base_names=base.names,
        base_units=tuple(INERTIAL_UNITS[k % 10] if k < 10 * n else 'kg*m^2' for k in base.independent.tolist()),
        base_values=fit.base_values,
        base_std=std[:count],
        base_essential=tuple(bool(x) for x in essential_parameters(fit.covariance, values, std, count)),
        inertial=physical.inertial,
        rotor_inertia=physical.rotor_inertia,
        has_rotor_inertia=config.rotor_inertia,
        friction_name=friction.name,
        velocity_scale=None if friction.velocity_scale is None else np.broadcast_to(friction.velocity_scale, (n,)),
        ripple_frequency=friction.ripple_frequency if isinstance(friction, TorqueRipple) else None,
        ripple_limit=friction.ripple_limit if isinstance(friction, TorqueRipple) else 10.0,
        friction_names=names,
        friction_units=tuple(tuple(unit_of(q, kind) for q in friction.quantities) for kind in model.joint_types),
        friction_values=fit.friction_parameters,
        friction_std=std[count:].reshape(n, len(names)),
        torque_bandwidth=fit.bandwidth,
        condition_si=fit.condition_si,
        condition_scaled=fit.condition_scaled,
        usable=usable,
        reason=reason,
        metrics=metrics,
        decisions=decisions,
        provenance=provenance,
    )


def provenance_of(
    training: list[Dataset], validation: list[Dataset], test: list[Dataset], config: IdentificationConfig
) -> dict[str, object]:
    """Return what a result was made from: data, settings, versions, seed."""

    def described(datasets: list[Dataset]) -> list[dict[str, object]]:
        return [
            {'sources': list(d.sources), 'samples': len(d), 'rate': d.rate, 'cutoff': d.cutoff, **dict(d.provenance)}
            for d in datasets
        ]

    return {
        'training': described(training),
        'validation': described(validation),
        'test': described(test),
        'settings': asdict(config),
        'versions': {
            'robotid_ros': robotid_ros.__version__,
            'python': platform.python_version(),
            'numpy': np.__version__,
            'scipy': scipy.__version__,
        },
        'seed': config.seed,
    }
