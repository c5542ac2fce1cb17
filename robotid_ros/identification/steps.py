# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The one way from datasets to an identified model: rows, choices, fit, verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.alternating import alternate
from robotid_ros.identification.assembly import assemble, fit_metrics, provenance_of, thresholds
from robotid_ros.identification.bee_colony import BeeColony, bee_colony
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.cross_validation import Alternative, Decision, Folds, HeldOut, LinearFolds
from robotid_ros.identification.friction_choice import FrictionChoice, add_ripple, choose_friction, fit_friction_shape
from robotid_ros.identification.information import Information
from robotid_ros.identification.least_squares import (
    fit_of_parameters,
    least_squares,
    normal_equations,
    weighted_solution,
)
from robotid_ros.identification.physical import PhysicalFit, physical_parameters
from robotid_ros.identification.plausibility import doubts, open_parameters, remarks, require_radians, torque_faults
from robotid_ros.identification.prior import Prior, description_prior, is_placeholder
from robotid_ros.identification.rest_friction import RestFriction, last_direction
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples, as_samples, require_moving
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.shrinkage import choose_prior, total_error
from robotid_ros.identification.signal_choice import (
    PLAIN,
    choose_bandwidth,
    choose_cutoff,
    choose_delay,
    plain_errors,
    with_cutoff,
)
from robotid_ros.identification.stroke_friction import choose_stroke_model, stroke_friction
from robotid_ros.identification.torque_fit import TorqueFit, predicted_torque
from robotid_ros.identification.verdict import judge_joints, moved, overall
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

__all__ = ['Chosen', 'Data', 'conclude', 'consistent', 'estimate', 'identify', 'prepare', 'require_data']

_SEARCH_SAMPLES = 3000
_BEE_SAMPLES = 1000
_RIPPLE_SAMPLES = 2000
_LOAD_PASSES = 3
# Rise of the held-out error, over all joints and in the geometric mean, at which parameters of bodies that can exist
# are still taken: on a 300 kg arm they predict another trajectory with less than half the error of those that cannot.
_CONSISTENT, _CONSISTENT_JOINTS = 0.10, 0.05
_FREE_GAIN = 0.02  # fall of the held-out error at which friction may drive a joint
_REST_GAIN = 0.05  # fall of the mean square error at rest that a coefficient of its own must bring
_REST_SHARE = 0.005  # of the samples: less rest than this is not worth a parameter
_AT_REST = 0.02  # of a joint's largest speed, where the configuration does not say


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Training data with the choices that concern its signals.

    Attributes
    ----------
    datasets : tuple of Dataset
    samples : Samples
        With the bandwidth of the torque signal.
    cutoff : float or None
        Chosen for all recordings [Hz]; None where nothing was chosen.
    decisions : tuple of Decision
    """

    datasets: tuple[Dataset, ...]
    samples: Samples
    cutoff: float | None
    decisions: tuple[Decision, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A model that competes: friction with its shape, the signal's bandwidth, friction data where there are some."""

    rows: Rows
    choice: FrictionChoice
    strokes: FrictionStrokes | None = None


def identify(
    datasets: Dataset | Sequence[Dataset],
    model: RobotModel,
    *,
    friction: str | None = None,
    estimator: str | None = None,
    friction_data: FrictionStrokes | Sequence[FrictionStrokes] = (),
    validation: Dataset | Sequence[Dataset] = (),
    test: Dataset | Sequence[Dataset] = (),
    config: IdentificationConfig | None = None,
    progress: Progress | None = None,
) -> IdentificationResult:
    """Identify the dynamic and friction parameters of an arm.

    Parameters
    ----------
    datasets : Dataset or sequence of Dataset
        Training data, one dataset per recording; joints are matched by name and may be more than the model's.
    model : RobotModel
        Kinematics, and inertial parameters as a prior for what the data leave open.
    friction, estimator : str, optional
        In place of the configuration's.
    friction_data : FrictionStrokes or sequence of FrictionStrokes
        Steady strokes of friction sweeps. They choose the friction model, where it is not given, and its shape
        parameters, and count for the linear ones beside the training data; the alternating estimator takes all
        friction from them.
    validation, test : Dataset or sequence of Dataset
        Data that only the metrics and the verdict see. They are filtered like the training data.
    config : IdentificationConfig, optional
    progress : callable, optional
        Called with a share from 0 to 1 and a text.

    Returns
    -------
    IdentificationResult
        With a verdict per joint; ``usable`` is False, with the reason, where the data do not carry the model.

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
    training = _listed(datasets)
    listed = [friction_data] if isinstance(friction_data, FrictionStrokes) else list(friction_data)
    strokes = FrictionStrokes.joined([each.of_joints(model.joint_names) for each in listed]) if listed else None
    report = progress if progress is not None else _silent
    thresholds(config, model)  # refuses a wrong number of them before any work
    base = base_parameters(model, rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    require_data(training, model, base, config)
    require_radians(training, model)
    notes = remarks(training, model)
    data = prepare(training, model, base, config, report)
    chosen = choose_model(base, data.samples, config, report, strokes)
    report(0.7, 'estimate parameters')
    fit, decisions = estimate(chosen, model, config)
    if config.automatic:
        fit, rest = _with_rest(fit, chosen.rows, config)
        decisions = (*decisions, rest)
    report(0.85, 'make the parameters physically consistent')
    sets = {'training': list(data.datasets)}
    for name, given in (('validation', validation), ('test', test)):
        if _listed(given):
            held_out = _listed(given)
            sets[name] = held_out if data.cutoff is None else with_cutoff(held_out, data.cutoff)
    result = conclude(
        chosen.rows,
        fit,
        model,
        config,
        sets,
        doubt=doubts(training, model),
        notes=notes,
        decisions=(*data.decisions, *chosen.choice.decisions, *decisions),
        cutoff=data.cutoff,
        sources=training,
        friction_data=listed,
    )
    report(1.0, 'done')
    return result


def conclude(
    rows: Rows,
    fit: TorqueFit,
    model: RobotModel,
    config: IdentificationConfig,
    sets: dict[str, list[Dataset]],
    *,
    doubt: str,
    notes: tuple[str, ...],
    decisions: tuple[Decision, ...],
    cutoff: float | None,
    sources: list[Dataset],
    friction_data: Sequence[FrictionStrokes] = (),
) -> IdentificationResult:
    """Make a fit physically consistent, judge it on all data, and put it into the form that users get.

    Parameters
    ----------
    rows : Rows
        Of the training data.
    fit : TorqueFit
    model : RobotModel
    config : IdentificationConfig
    sets : dict
        Datasets of 'training', and of 'validation' and 'test' where there are some.
    doubt : str
        What speaks against the data as a whole, or empty.
    notes : tuple of str
    decisions : tuple of Decision
    cutoff : float or None
        Of the low-pass that was chosen [Hz].
    sources : list of Dataset
        The training data as they came.
    friction_data : sequence of FrictionStrokes
    """
    base = rows.base
    assert isinstance(base, BaseParameters)
    limit = thresholds(config, model)
    solid = fit
    for _ in range(_LOAD_PASSES if fit.friction.needs_load else 1):
        # Friction that grows with the load is solved for the load of the pass before.
        physical = consistent(rows, solid, model, base, config)
        shape = fit.friction_parameters[:, physical.linear.shape[1] :]
        solid = replace(
            fit,
            base_values=base.map @ _standard(physical, config.rotor_inertia),
            friction_parameters=np.concatenate([physical.linear, shape], axis=1),
        )
    if fit.consistent:
        free, held = (fit_metrics(base, each, model, sets['training']) for each in (fit, solid))
        kept = held.relative_error_total <= (1.0 + _CONSISTENT) * free.relative_error_total
        fit = replace(fit, consistent=kept)
        if not kept:
            tried = tuple(
                Alternative(name=name, error=each.rmse)
                for name, each in (('least squares', free), ('physically consistent', held))
            )
            text = 'least squares: on the training data as a whole, bodies that can exist fit too badly'
            decisions = (*decisions, Decision(subject='parameters', chosen=text, alternatives=tried))
    if config.estimator == 'physical' or fit.consistent:
        fit = solid
        chosen = f'physically consistent; {physical.error_ratio:.4f} times the unconstrained torque error'
        decisions = (*decisions, Decision(subject='parameters', chosen=chosen))
    metrics = {name: fit_metrics(base, fit, model, listed) for name, listed in sets.items()}
    judge = 'validation' if 'validation' in metrics else 'training'
    samples = rows.samples
    verdicts = judge_joints(
        metrics[judge],
        np.sqrt(np.mean((samples.measured - samples.target) ** 2, axis=0)),
        moved(samples.q),
        torque_faults(rows),
        limit,
        judged_by=judge,
    )
    still_open = np.flatnonzero(open_parameters(rows)).tolist() if moved(samples.q).all() else []
    usable, reason = overall(
        verdicts,
        metrics[judge],
        doubt or _no_numbers(fit, samples),
        [base.names[k] for k in still_open],
        base=len(base.names),
        judged_by=judge,
    )
    if not fit.converged and limit is not None:
        usable, reason = False, fit.reason
    return assemble(
        fit,
        physical,
        model,
        base,
        metrics,
        {name: fit_metrics(base, solid, model, listed) for name, listed in sets.items()},
        config,
        verdicts=verdicts,
        usable=usable,
        reason=reason,
        notes=(*notes, *((fit.reason,) if fit.reason and usable else ())),
        decisions=decisions,
        cutoff=cutoff,
        provenance={
            **provenance_of(sources, sets.get('validation', []), sets.get('test', []), config, friction_data),
            **({} if fit.search is None else {'search': fit.search.tolist()}),
        },
        samples=samples,
    )


def _no_numbers(fit: TorqueFit, samples: Samples) -> str:
    if not np.isfinite(fit.base_values).all():
        return 'the fit gave no finite numbers'
    if not samples.measured.any():
        return 'the measured torque is zero throughout; is effort recorded?'
    return ''


def _samples_of(datasets: Sequence[Dataset], model: RobotModel, config: IdentificationConfig) -> Samples:
    return as_samples(
        datasets, model, standstill_speed=config.standstill_speed, standstill_weight=config.standstill_weight
    )


def require_data(
    datasets: Sequence[Dataset], model: RobotModel, base: BaseParameters, config: IdentificationConfig
) -> Samples:
    """Return the samples of datasets that can tell something.

    Raises
    ------
    IdentificationError
        If there is nothing to identify from.
    """
    samples = _samples_of(datasets, model, config)
    require_moving(samples, model, len(base.independent) + 2 * model.n)
    return samples


def _silent(share: float, text: str) -> None:
    """Report nothing."""


def _listed(datasets: Dataset | Sequence[Dataset]) -> list[Dataset]:
    return [datasets] if isinstance(datasets, Dataset) else list(datasets)


def prepare(
    datasets: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    report: Progress = _silent,
) -> Data:
    """Choose the bandwidth of the torque, the cutoff and the delays, and return the samples."""
    plain = partial(_samples_of, model=model, config=config)
    decisions: list[Decision] = []
    bandwidth = config.torque_bandwidth if config.torque_bandwidth > 0.0 else None
    if config.automatic and config.torque_bandwidth == 0.0:
        report(0.02, 'find the bandwidth of the torque')
        bandwidth, decision = choose_bandwidth(base, plain(datasets))
        decisions.append(decision)

    def samples_of(some: Sequence[Dataset]) -> Samples:
        return plain(some).with_bandwidth(bandwidth)

    report(0.08, 'choose the cutoff')
    listed, choice = choose_cutoff(datasets, base, samples_of)
    cutoff = None
    if choice is not None:
        decisions.append(choice)
        cutoff = max(dataset.cutoff for dataset in listed if dataset.unfiltered is not None)
    if config.automatic:
        report(0.15, 'look for a delay of the torque')
        found = [choose_delay(dataset, base, samples_of) for dataset in listed]
        listed = [dataset for dataset, _ in found]
        decisions += [decision for _, decision in found]
    return Data(datasets=tuple(listed), samples=samples_of(listed), cutoff=cutoff, decisions=tuple(decisions))


def choose_model(
    base: BaseParameters,
    samples: Samples,
    config: IdentificationConfig,
    report: Progress,
    strokes: FrictionStrokes | None = None,
) -> Chosen:
    """Choose the friction model and, where it was not asked for, whether it pays at all."""
    report(0.2, 'choose the friction model')
    rows = Rows(base, samples.coarse())
    name = config.friction
    if name == 'auto' and config.estimator == 'bee-colony':
        name = 'daemi_heimann'  # the model the method was published for
    ripple = name == 'auto' or name != _without_ripple(name)
    name = _without_ripple(name)
    few = rows.samples.thinned(_SEARCH_SAMPLES) if rows.samples.open else rows.samples.excerpts(_SEARCH_SAMPLES)
    rigid = base.regressor(few.q, few.dq, few.ddq)
    if strokes is not None:
        choice = _choice_by_strokes(name, strokes)
    elif name == 'auto':
        choice = choose_friction(rigid, few, progress=lambda share, text: report(0.2 + 0.4 * share, text))
    elif not friction_model(name).shape_names and not config.automatic:
        as_asked = Decision(subject='friction', chosen=f'{name}, as asked')
        choice = FrictionChoice(friction=friction_model(name), shape=np.zeros((few.n, 0)), decisions=(as_asked,))
    else:
        choice = fit_friction_shape(rigid, few, name, smooth=config.automatic)
    if ripple:
        report(0.62, 'look for a torque ripple')
        choice = add_ripple(base, few.excerpts(_RIPPLE_SAMPLES), choice)
    return Chosen(rows=rows, choice=choice, strokes=strokes)


def _choice_by_strokes(name: str, strokes: FrictionStrokes) -> FrictionChoice:
    """Return the friction model asked for, or the one that describes the strokes best, with its shape."""
    alternatives: tuple[Alternative, ...] = ()
    if name == 'auto':
        best, tried = choose_stroke_model(strokes)
        alternatives = tuple(Alternative(name=each, error=error) for each, error in tried)
        name = f'{best}+offset'
    friction = friction_model(name)
    shape = stroke_friction(friction, strokes).shape
    still = [joint for j, joint in enumerate(strokes.joint_names) if not (strokes.joint == j).any()]
    if still and friction.shape_names:
        raise IdentificationError(
            f'the friction data have no stroke of {", ".join(still)}, which {name} needs for its '
            f'{friction.shape_names[0]}; sweep all joints, or choose a model without, coulomb_viscous for example'
        )
    text = f'{friction.name}, by {strokes.count} strokes of {len(strokes.joint_names) - len(still)} joints'
    decision = Decision(subject='friction', chosen=text, alternatives=alternatives)
    return FrictionChoice(friction=friction, shape=shape, decisions=(decision,))


def _stroke_prior(chosen: Chosen, variance: float = 1.0) -> Prior | None:
    """Return what the strokes say of the friction parameters, beside rows of this variance; None without strokes.

    The normal equations count every sample, also those that are correlated; the strokes count in the same proportion.
    """
    if chosen.strokes is None:
        return None
    found = stroke_friction(chosen.choice.friction, chosen.strokes)
    weight = variance / chosen.rows.samples.independent_per_sample
    return Prior.of_strokes(found.weighted(weight), len(chosen.rows.base.independent))


def _without_ripple(name: str) -> str:
    """Return a friction model's name without the option whose frequencies the data have to tell."""
    return '+'.join(part for part in name.split('+') if part != 'ripple')


def estimate(chosen: Chosen, model: RobotModel, config: IdentificationConfig) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Run the estimator asked for; the physical one starts from weighted least squares."""
    rows, choice = chosen.rows, chosen.choice
    if config.estimator == 'alternating':
        return _alternating(chosen, model, config)
    if config.estimator == 'bee-colony':
        return _bees(chosen, model, config)
    if config.estimator == 'auto':
        return _automatic(chosen, model, config)
    method = 'wls' if config.estimator == 'physical' else config.estimator
    variance = 1.0
    if method == 'ols' and chosen.strokes is not None:  # the rows' weight is 1, and that of the strokes relative to it
        alone = least_squares(rows, choice.friction, choice.shape, estimator='wls', covariance=False)
        variance = float(1.0 / alone.precision.mean())
    prior = _stroke_prior(chosen, variance)
    fit = least_squares(rows, choice.friction, choice.shape, estimator=method, prior=prior)  # type: ignore[arg-type]
    return fit, (Decision(subject='estimator', chosen=config.estimator),)


def _automatic(
    chosen: Chosen, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Fit with the prior's weight chosen; fall back to the plain model where that predicts held-out torque better."""
    rows, choice = chosen.rows, chosen.choice
    base = rows.base
    assert isinstance(base, BaseParameters)
    prior = description_prior(model, base, rotor_inertia=config.rotor_inertia)
    samples = rows.samples
    few = samples.thinned(2 * _SEARCH_SAMPLES) if samples.open else samples.excerpts(2 * _SEARCH_SAMPLES)

    def candidate(
        friction: FrictionModel, shape: Array, few: Samples, dissipative: bool = True
    ) -> tuple[Prior | None, HeldOut, Decision]:
        load = None
        if friction.needs_load:
            fitted = least_squares(Rows(base, few), friction, shape, covariance=False)
            load = Rows(base, few).torque(fitted.base_values)
        return choose_prior(base, few, friction, shape, load, prior, dissipative=dissipative)

    strength, errors, decision = candidate(choice.friction, choice.shape, few)
    decisions = [decision]
    if config.friction == 'auto' and chosen.strokes is None:
        plain, unlimited = friction_model(PLAIN), few.with_bandwidth(None)
        ordinary = plain_errors(base, unlimited, equal=True)
        plain_prior, plain_found, plain_decision = candidate(plain, np.zeros((samples.n, 0)), unlimited)
        best_plain = min(total_error(ordinary), total_error(plain_found))
        keep = total_error(errors) <= best_plain
        decisions.append(
            Decision(
                subject='model',
                chosen='as chosen' if keep else f'plain: {PLAIN}, exact sign, torque not limited',
                alternatives=(
                    Alternative(name='chosen', error=errors.rmse),
                    Alternative(name='plain, with the description', error=plain_found.rmse),
                    Alternative(name='plain, ordinary least squares', error=ordinary.rmse),
                ),
            )
        )
        if not keep:
            rows, few = Rows(base, samples.with_bandwidth(None)), unlimited
            strength, errors, choice = (
                plain_prior,
                plain_found,
                replace(choice, friction=plain, shape=np.zeros((samples.n, 0))),
            )
            decisions[0] = plain_decision
    by_strokes = _stroke_prior(chosen)

    def fitted(strength: Prior | None, dissipative: bool) -> TorqueFit:
        scale = few.independent_per_sample / samples.independent_per_sample
        used = None if strength is None else strength.scaled(strength.strength * scale)
        if by_strokes is not None:
            used = by_strokes if used is None else replace(used, friction=by_strokes.friction)
        return least_squares(rows, choice.friction, choice.shape, prior=used, dissipative=dissipative)

    fit = fitted(strength, True)
    if fit.bounded:
        # Friction that wants to drive a joint is a fault of the data, which the verdict names; the fit describes them.
        free_strength, free_errors, _ = candidate(choice.friction, choice.shape, few, False)
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
    held_out = _consistent_errors(base, few, fit, model)
    rise = total_error(held_out) / max(total_error(errors), 1e-300)
    joints = float(np.exp(np.mean(np.log(held_out.rmse / np.maximum(errors.rmse, 1e-300)))))
    keep = rise <= 1.0 + _CONSISTENT and joints <= 1.0 + _CONSISTENT_JOINTS
    decisions.append(
        Decision(
            subject='bodies that can exist',
            chosen='yes' if keep else 'no: held-out torque contradicts them',
            alternatives=(
                Alternative(name='free', error=errors.rmse),
                Alternative(name='physically consistent', error=held_out.rmse),
            ),
        )
    )
    return replace(fit, consistent=keep), tuple(decisions)


def _consistent_errors(base: BaseParameters, samples: Samples, fit: TorqueFit, model: RobotModel) -> HeldOut:
    """Return the held-out errors of physically consistent parameters, with the friction's shape of a fit."""
    friction = fit.friction
    k = len(friction.linear_names)
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    own = friction.columns(samples.dq, fit.friction_parameters[:, k:], rigid @ fit.base_values, samples.q)
    parts = LinearFolds.of(samples, Folds.of(samples), rigid, own)

    def solve(info: Information) -> Array:
        _, precision = weighted_solution(info, friction, fit.precision)
        matrix, vector = info.normal(precision)
        square = float(info.gram[:, -1, -1] @ precision)
        found = physical_parameters(matrix, vector, square, base.map, model, friction=friction)
        values = base.map @ _standard(found, base.map.shape[1] > 10 * model.n)
        return np.concatenate([values, found.linear.ravel()])

    return parts.errors(solve)


def _with_rest(fit: TorqueFit, rows: Rows, config: IdentificationConfig) -> tuple[TorqueFit, Decision]:
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
        prior=_stroke_prior(chosen),
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
    colony = BeeColony(bees=config.colony_size, limit=config.colony_limit, cycles=config.colony_cycles)
    rng = np.random.default_rng(config.seed)
    described = np.zeros(len(base.independent)) if is_placeholder(model) else np.array(base.values)
    strokes = None if chosen.strokes is None else stroke_friction(friction, chosen.strokes)
    found = bee_colony(
        rigid, few.dq, few.target, friction, described, rng, colony=colony, position=few.q, strokes=strokes
    )
    direct = separable_least_squares(rigid, few, friction, fit_scale=False)

    def rmse(values: Array, parameters: Array) -> Array:
        torque = rigid @ values + friction.torque(few.dq, parameters, few.target, few.q)
        return np.asarray(np.sqrt(np.mean((few.target - torque) ** 2, axis=0)))

    count = len(found.base_values) + found.friction_parameters.size
    curve = ' '.join(f'{found.cost[k]:.3g}' for k in np.linspace(0, len(found.cost) - 1, 11).astype(int))
    decision = Decision(
        subject='estimator',
        chosen=f'bee-colony: {count} parameters, {colony.bees} sources, limit {colony.limit}, {colony.cycles} cycles, '
        f'{found.evaluations} evaluations in {found.seconds:.1f} s; relative squared error {curve}',
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


def consistent(
    rows: Rows, fit: TorqueFit, model: RobotModel, base: BaseParameters, config: IdentificationConfig
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
