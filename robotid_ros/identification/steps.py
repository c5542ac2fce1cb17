# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification from datasets to result: rows, choices, fit, verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.identification.assembly import assemble, fit_metrics, provenance_of, thresholds
from robotid_ros.identification.automatic import with_rest
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.cross_validation import Alternative, Decision
from robotid_ros.identification.drive_choice import choose_drives
from robotid_ros.identification.estimation import estimate
from robotid_ros.identification.least_squares import normal_equations
from robotid_ros.identification.model_choice import Data, choose_model, prepare, samples_of_datasets, without_ripple
from robotid_ros.identification.physical import PhysicalFit, physical_parameters
from robotid_ros.identification.plausibility import (
    TorqueFault,
    doubts,
    open_parameters,
    remarks,
    require_radians,
    torque_faults,
)
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples, evenly_weighted
from robotid_ros.identification.signal_choice import like_training, plain_errors, with_turned
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.identification.verdict import judge_joints, moved, overall
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_LOAD_PASSES = 3
_SIGN_SAMPLES = 3000  # at most, by which the two signs are compared
# Fall of the held-out error, over all joints and in the geometric mean, that turned signs must bring: of an arm on a
# tilted base that the description has upright, five seem reversed, and turned they fit one joint better and four worse.
_SIGN_GAIN = 0.10
_CONSISTENT = 0.10  # largest rise of the training error at which physically consistent parameters are taken


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
        With a verdict per joint; ``usable`` is False, with the reason, where the data do not support the model.

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
        friction_model(without_ripple(config.friction))  # refuses unknown options before any work
    training = _listed(datasets)
    listed = [friction_data] if isinstance(friction_data, FrictionStrokes) else list(friction_data)
    strokes = FrictionStrokes.joined([each.of_joints(model.joint_names) for each in listed]) if listed else None
    if strokes is not None and model.has_coupled_drives:
        raise IdentificationError(
            'in a friction sweep one joint moves at a time, but with coupled drives several motors turn: identify '
            'this arm without friction data'
        )
    report = progress if progress is not None else silent
    thresholds(config, model)  # refuses a wrong number of them before any work
    base = base_parameters(model.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    require_data(training, model, base, config)
    require_radians(training, model)
    notes = remarks(training, model)
    prepared = _prepared(training, model, base, config, report, strokes)
    faults: tuple[TorqueFault, ...] = ()
    if config.automatic and strokes is None:
        prepared, faults = _turned(prepared, training, model, base, config, report)
    model, base, data = prepared.model, prepared.base, prepared.data
    samples, decisions = prepared.samples, prepared.decisions
    turned = [model.joint_names[fault.joint] for fault in faults]
    chosen = choose_model(base, samples, config, report, strokes)
    report(0.7, 'estimate parameters')
    fit, estimated = estimate(chosen, model, config)
    decisions = (*decisions, *chosen.choice.decisions, *estimated)
    if config.automatic:
        fit, rest = with_rest(fit, chosen.rows, config)
        decisions = (*decisions, rest)
    report(0.85, 'make the parameters physically consistent')
    sets = {'training': list(data.datasets)}
    for name, given in (('validation', validation), ('test', test)):
        if _listed(given):
            samples_of = partial(evenly_weighted, model=model, bandwidth=fit.bandwidth) if config.automatic else None
            given = with_turned(_listed(given), turned)
            sets[name], delays = like_training(given, data.cutoff, base, samples_of)
            decisions = (*decisions, *delays)
    result = conclude(
        chosen.rows,
        fit,
        model,
        config,
        sets,
        doubt=doubts(training, model),
        notes=notes,
        decisions=decisions,
        cutoff=data.cutoff,
        sources=training,
        friction_data=listed,
        faults=faults,
    )
    report(1.0, 'done')
    return replace(result, provenance={**result.provenance, 'turned': turned}) if turned else result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Prepared:
    """Training data with the choices that come before the friction model."""

    model: RobotModel
    base: BaseParameters
    data: Data
    samples: Samples
    decisions: tuple[Decision, ...]


def _prepared(
    training: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    report: Progress,
    strokes: FrictionStrokes | None,
) -> _Prepared:
    """Choose what concerns the signals, and which drives are coupled."""
    data = prepare(training, model, base, config, report)
    samples, decisions = data.samples, data.decisions
    if config.automatic and not strokes and not model.has_coupled_drives and model.n > 1:
        report(0.18, 'look for coupled drives')
        model, coupled = choose_drives(data.datasets, model, config)
        decisions = (*decisions, coupled)
        if model.has_coupled_drives:
            base = base_parameters(model.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
            bandwidth = samples.runs[0].bandwidth
            samples = samples_of_datasets(data.datasets, model, config).with_bandwidth(bandwidth)
    return _Prepared(model=model, base=base, data=data, samples=samples, decisions=decisions)


def _turned(
    recorded: _Prepared,
    training: Sequence[Dataset],
    model: RobotModel,
    base: BaseParameters,
    config: IdentificationConfig,
    report: Progress,
) -> tuple[_Prepared, tuple[TorqueFault, ...]]:
    """Turn the torques whose sign is reversed, where that lowers the held-out error, and say which they are.

    A reversed sign spoils what the joint shares with all others. The verdict names it all the same: a controller
    that gets the identified torque has the reversed sign too.
    """
    if recorded.model.has_coupled_drives:  # a torque at a motor is that of two joints
        return recorded, ()
    faults = tuple(fault for fault in torque_faults(Rows(base, recorded.samples.coarse())) if fault.turned)
    if not faults:
        return recorded, ()
    names = [model.joint_names[fault.joint] for fault in faults]
    turned = _prepared(with_turned(training, names), model, base, config, report, None)
    errors = [plain_errors(each.base, each.samples.coarse().thinned(_SIGN_SAMPLES)).rmse for each in (recorded, turned)]
    before, after = np.maximum(errors, 1e-300)
    falls = -float(np.mean(np.log(after / before))), float(np.log(np.linalg.norm(before) / np.linalg.norm(after)))
    better = min(falls) > -np.log(1.0 - _SIGN_GAIN)
    decision = Decision(
        subject='sign of the torque',
        chosen=f'turned for {", ".join(names)}' if better else 'as recorded',
        alternatives=tuple(
            Alternative(name=name, error=error) for name, error in zip(('as recorded', 'turned'), errors, strict=True)
        ),
    )
    kept = turned if better else recorded
    return replace(kept, decisions=(decision, *kept.decisions)), faults if better else ()


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
    faults: tuple[TorqueFault, ...] = (),
) -> IdentificationResult:
    """Make a fit physically consistent, judge it on all data, and return the result.

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
        What is wrong with the data as a whole, or empty.
    notes : tuple of str
    decisions : tuple of Decision
    cutoff : float or None
        Of the low-pass that was chosen [Hz].
    sources : list of Dataset
        The training data as given.
    friction_data : sequence of FrictionStrokes
    faults : tuple of TorqueFault
        Of torques that were mended for the fit, to be named beside those that are left.
    """
    base = rows.base
    assert isinstance(base, BaseParameters)
    limit = thresholds(config, model)
    solid = fit
    for _ in range(_LOAD_PASSES if fit.friction.needs_load else 1):
        # Load-dependent friction uses the load of the previous pass.
        physical = consistent(rows, solid, model, base, config)
        shape = fit.friction_parameters[:, physical.linear.shape[1] :]
        solid = replace(
            fit,
            base_values=base.map @ physical.standard(rotor_inertia=config.rotor_inertia),
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
    turned = [fault.joint for fault in faults]
    faults = (*faults, *torque_faults(rows))
    verdicts = judge_joints(
        metrics[judge],
        np.sqrt(np.mean(((samples.measured - samples.target) @ model.drives) ** 2, axis=0)),
        moved(samples.q),
        [next(((each.reason, each.advice) for each in faults if each.joint == j), None) for j in range(model.n)],
        limit,
        judged_by=judge,
    )
    still_open = np.flatnonzero(open_parameters(rows)).tolist() if moved(samples.q).all() else []
    usable, reason = overall(
        verdicts,
        metrics[judge],
        doubt or _no_numbers(fit, samples) or _spreading(faults, turned, model),
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


def _spreading(faults: Sequence[TorqueFault], turned: Sequence[int], model: RobotModel) -> str:
    """Return the faults that falsify shared parameters as one sentence, or nothing."""
    spoiling = [fault for fault in faults if fault.spreads]
    named = '; '.join(f'{model.joint_names[each.joint]}: {each.reason}; {each.advice}' for each in spoiling)
    if not spoiling:
        return ''
    if all(fault.joint in turned for fault in spoiling):
        return f'{named}; the parameters are those of the torque with its sign turned'
    return f'{named}; what this joint shares with the others is wrong too'


def _no_numbers(fit: TorqueFit, samples: Samples) -> str:
    if not np.isfinite(fit.base_values).all():
        return 'the fit gave no finite numbers'
    if not samples.measured.any():
        return 'the measured torque is zero throughout; is effort recorded?'
    return ''


def require_data(
    datasets: Sequence[Dataset], model: RobotModel, base: BaseParameters, config: IdentificationConfig
) -> None:
    """Refuse data that nothing can be identified from.

    Raises
    ------
    IdentificationError
        If there are no samples, fewer equations than unknowns, or nothing moves.
    """
    samples = samples_of_datasets(datasets, model, config)
    equations, unknowns = len(samples) * samples.n, len(base.independent) + 2 * model.n
    if equations < unknowns:
        raise IdentificationError(
            f'{len(samples)} samples of {samples.n} joints give {equations} equations for {unknowns} parameters; '
            'record a longer trajectory'
        )
    if not (np.ptp(samples.q, axis=0) > 1e-6).any():
        raise IdentificationError(
            f'no joint moves in the data ({", ".join(model.joint_names)}); record an exciting trajectory'
        )


def _listed(datasets: Dataset | Sequence[Dataset]) -> list[Dataset]:
    return [datasets] if isinstance(datasets, Dataset) else list(datasets)


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
