# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification from datasets to result: rows, choices, fit, verdict."""

import platform
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np
import scipy

import robotid_ros
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import friction_model
from robotid_ros.identification.assessment import (
    HeldOut,
    error_at_rest,
    errors_in_motion,
    first_answer,
    fit_metrics,
    held_out,
    left_by_bodies,
    preferred_in_validation,
    spread_elsewhere,
)
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.estimation import Candidate, estimate
from robotid_ros.identification.information import PASSES
from robotid_ros.identification.judge import DOUBTFUL, WORTH, Decision
from robotid_ros.identification.least_squares import essential_parameters, normal_equations
from robotid_ros.identification.model_choice import (
    Chosen,
    choose_signals_and_model,
    without_ripple,
)
from robotid_ros.identification.physical import PhysicalFit, physical_parameters
from robotid_ros.identification.plausibility import (
    joint_faults,
    open_parameters,
    remarks,
    require_radians,
    torque_size,
)
from robotid_ros.identification.predictor import described_by
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import Samples, listed, samples_of_datasets
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.setup_search import find_setups
from robotid_ros.identification.signal_choice import like_training
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.identification.verdict import (
    COMPARE,
    good_for,
    good_for_nothing,
    judge_joints,
    known_parameters,
    moved,
    of_a_constant,
    of_another_motion,
    overall,
)
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_ELSEWHERE = 2.0, 10.0  # times the training's error, and % of the torque: more on another motion has a cause


def _after(progress: Progress, first: str, share: float, text: str) -> None:
    """Report a step with the first answer behind it."""
    progress(share, f'{text}; so far: {first}')


def identify(
    datasets: Dataset | Sequence[Dataset],
    model: RobotModel,
    *,
    friction_data: FrictionStrokes | Sequence[FrictionStrokes] = (),
    validation: Dataset | Sequence[Dataset] = (),
    test: Dataset | Sequence[Dataset] = (),
    config: IdentificationConfig | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> IdentificationResult:
    """Identify the dynamic and friction parameters of an arm.

    Parameters
    ----------
    datasets : Dataset or sequence of Dataset
        Training data, one dataset per recording; joints are matched by name and may be more than the model's.
    model : RobotModel
        Kinematics, and inertial parameters as a prior for what the data leave open.
    friction_data : FrictionStrokes or sequence of FrictionStrokes
        Steady strokes of friction sweeps. They choose the friction model, where it is not given, and its shape
        parameters, and count for the linear ones beside the training data; the alternating estimator takes all
        friction from them.
    validation, test : Dataset or sequence of Dataset
        Data that the metrics and the verdict see, filtered like the training data. A validation also chooses between
        all ways to fit the parameters, see
        :func:`~robotid_ros.identification.assessment.preferred_in_validation`; a test chooses nothing.
    config : IdentificationConfig, optional
    progress : callable, optional
        Called with a share from 0 to 1 and a text.
    **settings
        Of the configuration, in place of its own: ``friction='coulomb_viscous+offset', estimator='wls'``.

    Returns
    -------
    IdentificationResult
        With a verdict per joint; ``usable`` is False, with the reason, where the data do not support the model.

    Raises
    ------
    IdentificationError
        If a setting is not known, or if no model can be computed at all: no data, nothing moves, too few samples, a
        joint missing, positions in degrees, or motion of a joint that the model holds still.
    """
    config = (config or IdentificationConfig()).changed(settings)
    if config.friction != 'auto':
        friction_model(without_ripple(config.friction))  # refuses unknown options before any work
    training = listed(datasets)
    sweeps = [friction_data] if isinstance(friction_data, FrictionStrokes) else list(friction_data)
    strokes = FrictionStrokes.joined([each.of_joints(model.joint_names) for each in sweeps]) if sweeps else None
    if strokes is not None and model.has_coupled_drives:
        raise IdentificationError(
            'in a friction sweep one joint moves at a time, but with coupled drives several motors turn: identify '
            'this arm without friction data'
        )
    report = progress if progress is not None else silent
    if config.prior:
        model = described_by(model, config.prior)
    config.thresholds(model)  # refuses a wrong number of them before any work
    base = base_parameters(model.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    require_data(training, model, base, config)
    require_radians(training, model)
    stated = SetUp.as_described(model)  # what the configuration says of efforts holds for all that looks at them
    told = [stated.dataset(each, model.joint_names) for each in training]
    notes = remarks(told, model)
    if progress is not None:
        first = first_answer(told, model, base)
        report = partial(_after, progress, f'plain least squares leave {first:.3g} % of the torque')
        report(0.0, 'the first answer')
    report(0.01, 'compare the recording with the description')
    setups, found = find_setups(training, model, units_only=not config.automatic or strokes is not None)
    *simpler, setup = setups
    kept = _fitted(training, model, setup, config, report, strokes)
    while simpler and setup.findings[-1].kind not in ('change', 'magnitude'):  # no set-up tells these
        # What a simple model takes for another set-up may be friction that the whole one knows.
        report(0.75, 'compare with the set-up without its last finding')
        other = _fitted(training, model, simpler[-1], config, silent, strokes)
        new, old = (held_out(chosen, fit) for chosen, fit, _ in (kept, other))
        gained, last, held = old.score.gain(new.score)[0], setup.findings[-1], simpler.pop()
        if gained > (WORTH if setup.lost and not held.lost else 0.0):  # what cannot be undone has to be worth a refusal
            break
        left = [f'{each.metrics.relative_error_total:.3g} %' for each in (old, new)]
        said = f'the whole model leaves {left[0]} of held-out torque, and predicts no better with {left[1]} and this'
        found = replace(found, chosen=f'{held}: {said}: {last.text}')
        setup, kept = replace(held, doubt=last if gained > -DOUBTFUL else None), other
    if any(each.kind == 'units' for each in setup.findings):  # the factors are known only up to a common one
        setup = replace(stated, findings=tuple(replace(each, undone=False) for each in setup.findings))
        kept = _fitted(training, model, setup, config, silent, strokes)
    chosen, fit, ways = kept
    chosen = replace(chosen, setup=setup, decisions=(found, *chosen.decisions))
    report(0.85, 'make the parameters physically consistent')
    judges = {}
    for name, given in (('validation', validation), ('test', test)):
        if listed(given):
            ready = [setup.dataset(each, model.joint_names) for each in listed(given)]
            judges[name] = like_training(ready, chosen.cutoff, chosen.delay)
    beaten = ''
    if len(ways) > 1 and 'validation' in judges:
        rows, fit, decision, beaten = preferred_in_validation(chosen, fit, ways, judges['validation'])
        chosen = replace(chosen, rows=rows, decisions=(*chosen.decisions, decision))
    result = conclude(chosen, fit, config, judges, provenance_of(training, judges, config, sweeps), doubt=beaten)
    late = (
        f'the recorded torques come {1e3 * abs(chosen.delay):.3g} ms {"after" if chosen.delay > 0.0 else "before"} the '
        'motion that they belong to: that is taken out here, and of what judges, which is taken to be recorded alike'
    )
    notes = (*setup.notes, *([late] if chosen.delay else []), *notes, *result.notes)
    judged, learnt = (result.metrics.get(name) for name in ('validation', 'training'))
    if config.automatic and judged is not None and learnt is not None:
        error = judged.relative_error_total
        if error > max(_ELSEWHERE[0] * learnt.relative_error_total, _ELSEWHERE[1]):
            report(0.97, 'compare the recordings to judge by with the description')
            notes = (*notes, *_apart(training, listed(validation), model, setup))
    result = replace(result, notes=notes)
    report(1.0, 'done')
    return result


def _apart(training: Sequence[Dataset], judging: Sequence[Dataset], model: RobotModel, setup: SetUp) -> list[str]:
    """Return a sentence for each difference that training and recordings to judge by do not share, or show together."""
    found, both = (find_setups(datasets, model)[0][-1].findings for datasets in (judging, [*training, *judging]))
    here, there = ({each.about: each for each in findings} for findings in (setup.findings, found))
    there |= {each.about: each for each in both if each.kind == 'change'}
    said = 'the recordings to judge by were made in another set-up'
    new = [f'{said}: {each.text}; {each.remedy}' for key, each in there.items() if key not in here]
    return new + [f'{said}, in which this is not so: {each.text}' for key, each in here.items() if key not in there]


def _fitted(
    training: Sequence[Dataset],
    model: RobotModel,
    setup: SetUp,
    config: IdentificationConfig,
    report: Progress,
    strokes: FrictionStrokes | None,
) -> tuple[Chosen, TorqueFit, Sequence[Candidate]]:
    """Return the data of an arm in a set-up with all choices, their fit, and the other ways to fit."""
    arm = setup.model(model)
    base = base_parameters(arm.at_motors(), rotor_inertia=config.rotor_inertia, tolerance=DATA_TOLERANCE)
    as_found = [setup.dataset(each, model.joint_names) for each in training]
    chosen = choose_signals_and_model(as_found, arm, base, config, setup, report, strokes)
    report(0.7, 'estimate parameters')
    fit, estimated, ways = estimate(chosen, config)
    return replace(chosen, decisions=(*chosen.decisions, *estimated)), fit, ways


def conclude(
    chosen: Chosen,
    fit: TorqueFit,
    config: IdentificationConfig,
    judges: dict[str, list[Dataset]],
    provenance: dict[str, object],
    doubt: str = '',
) -> IdentificationResult:
    """Make a fit physically consistent, judge it on all data, and return the result.

    Parameters
    ----------
    chosen : Chosen
        The training data, with all choices.
    fit : TorqueFit
    config : IdentificationConfig
    judges : dict
        Datasets of 'validation' and 'test', where there are some.
    provenance : dict
        See :func:`provenance_of`.
    doubt : str
        What is wrong with the fit as a whole, or empty.
    """
    model, rows, base = chosen.model, chosen.rows, chosen.rows.base
    limit, decisions = config.thresholds(model), chosen.decisions
    notes: tuple[str, ...] = ()
    physical, solid = _consistent(chosen, fit, config)
    if config.estimator == 'physical':
        fit = solid
        text = f'physically consistent; {physical.error_ratio:.4f} times the unconstrained torque error'
        decisions = (*decisions, Decision(subject='parameters', chosen=text))
    sets = {'training': list(chosen.datasets), **judges}
    metrics = {name: fit_metrics(chosen, fit, each) for name, each in sets.items()}
    seen = judge = 'validation' if 'validation' in metrics else 'training'
    left_out: HeldOut | None = None
    if judge == 'training' and config.automatic:
        judge, left_out = 'held_out', held_out(chosen, fit)
        metrics[judge] = left_out.metrics
    samples = rows.samples
    size = torque_size(sets['training'], model)
    verdicts = judge_joints(
        metrics[judge],
        np.sqrt(np.mean(((samples.measured - samples.target) @ model.drives) ** 2, axis=0)),
        moved(samples.q),
        joint_faults(rows),
        limit,
        None if limit is None else errors_in_motion(chosen, fit, sets[seen], config),
        judged_by=judge,
    )
    still_open = np.flatnonzero(open_parameters(rows)).tolist() if moved(samples.q).all() else []
    usable, reason = overall(
        verdicts,
        metrics[seen],
        '; '.join(filter(None, (chosen.setup.obstacle, size.doubt))) or doubt or _no_numbers(fit, samples),
        [base.names[k] for k in still_open],
        base=len(base.names),
        judged_by=seen,
        cause=size.cause,
    )
    spread, remedy = 0.0, size.cause or COMPARE
    if left_out is not None:
        spread = spread_elsewhere(fit, rows, left_out.without)
        left = left_out.metrics
        said, refused, advice = of_another_motion(left.relative_error_total, spread, left.left_of_variation)
        remedy = size.cause or advice
        if usable and refused:
            usable, reason = False, f'{said}; {remedy}'
        else:
            notes = (said,)
    elif flat := of_a_constant(metrics[seen].left_of_variation, f' in the {seen}'):
        notes = (flat,)
    if not fit.converged and limit is not None:
        usable, reason = False, fit.reason
    solid_metrics = {name: fit_metrics(chosen, solid, each) for name, each in sets.items()}
    uses = good_for(
        metrics[judge],
        left_by_bodies(metrics[judge], metrics[seen], solid_metrics[seen]),
        error_at_rest(chosen, fit, judges.get('validation', ()), left_out and left_out.without),
        known_parameters(fit.base_values, fit.std[: len(fit.base_values)]),
        usable,
        spread,
    )
    if usable and (idle := good_for_nothing(uses, remedy)):
        usable, reason = False, idle
        uses = tuple(replace(use, good=False) for use in uses)
    count, std = len(fit.base_values), fit.std
    values = np.concatenate([fit.base_values, fit.friction_parameters.ravel()])
    return IdentificationResult(
        robot=model.name,
        joint_names=model.joint_names,
        joint_types=model.joint_types,
        link_names=model.link_names,
        gravity=model.gravity,
        base_names=base.names,
        base_combinations=base.combinations,
        base_units=base.units,
        base_values=fit.base_values,
        base_std=std[:count],
        base_essential=tuple(bool(x) for x in essential_parameters(fit.covariance, values, std, count)),
        inertial=physical.inertial,
        rotor_inertia=physical.rotor_inertia,
        has_rotor_inertia=config.rotor_inertia,
        drives=model.drives if model.has_coupled_drives else None,
        friction=fit.friction,
        friction_values=fit.friction_parameters,
        friction_std=std[count:].reshape(model.n, -1),
        plain_friction=fit.plain_friction(base, samples, model.drives),
        torque_bandwidth=fit.bandwidth,
        condition_si=fit.condition_si,
        condition_scaled=fit.condition_scaled,
        usable=usable,
        reason=reason,
        metrics=metrics,
        consistent_metrics=solid_metrics,
        joints=verdicts,
        notes=(*notes, *size.notes, *((fit.reason,) if fit.reason and usable else ())),
        decisions=decisions,
        cutoff=chosen.cutoff,
        delay=chosen.delay,
        setup=chosen.setup,
        good_for=uses,
        provenance=provenance if fit.search is None else {**provenance, 'search': fit.search.tolist()},
    )


def _consistent(chosen: Chosen, fit: TorqueFit, config: IdentificationConfig) -> tuple[PhysicalFit, TorqueFit]:
    """Return the physically consistent parameters that explain the torque best, and a fit with them."""
    base, solid = chosen.rows.base, fit
    for _ in range(PASSES if fit.friction.needs_load else 1):
        # Load-dependent friction uses the load of the previous pass.
        matrix, vector, square = normal_equations(chosen.rows, solid)
        physical = physical_parameters(
            matrix,
            vector,
            square,
            base.map,
            chosen.model,
            friction=fit.friction,
            regularisation=config.regularisation if config.regularisation > 0.0 else None,
            described=fit.prior is not None and fit.prior.strength > 0.0,
        )
        solid = replace(
            fit,
            base_values=base.map @ physical.standard(rotor_inertia=config.rotor_inertia),
            friction_parameters=np.concatenate([physical.linear, fit.shape], axis=1),
        )
    return physical, solid


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


def provenance_of(
    training: list[Dataset],
    judges: dict[str, list[Dataset]],
    config: IdentificationConfig,
    friction_data: Sequence[FrictionStrokes] = (),
) -> dict[str, object]:
    """Return what a result was made from: data, settings, versions, seed."""

    def described(datasets: list[Dataset]) -> list[dict[str, object]]:
        return [
            {'sources': list(d.sources), 'samples': len(d), 'rate': d.rate, 'cutoff': d.cutoff, **dict(d.provenance)}
            for d in datasets
        ]

    return {
        'training': described(training),
        'friction_data': [{'strokes': each.count, **dict(each.provenance)} for each in friction_data],
        **{name: described(judges.get(name, [])) for name in ('validation', 'test')},
        'settings': asdict(config),
        'versions': {
            'robotid_ros': robotid_ros.__version__,
            'python': platform.python_version(),
            'numpy': np.__version__,
            'scipy': scipy.__version__,
        },
        'seed': config.seed,
    }
