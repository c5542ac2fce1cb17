"""The report of a dynamic identification."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.friction.options import TorqueRipple
from robotid_ros.identification.metrics import Metrics, torque_metrics
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.samples import joint_columns
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.content import Column, Fact, Figure, Item, Level, Report, Section, Table, Verdict
from robotid_ros.report.excitation import condition_level, condition_table, coverage_figure
from robotid_ros.report.friction import friction_figure, ripple_figure
from robotid_ros.report.numbers import integer, number, percent, unit
from robotid_ros.report.parameters import interval_chart, parameter_figure, parameter_table
from robotid_ros.report.torque import residual_spectrum_figure, residual_velocity_figure, torque_figure

__all__ = ['identification_report']

_GOOD_MATCH = 85.0
_FAIR_MATCH = 65.0
_WORSE_THAN_TRAINING = 1.5
_LARGE_ERROR = 5.0  # %; below, twice the training error is still a good model
_TITLES = {'validation': 'Validation', 'test': 'Test', 'training': 'Training'}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A dataset in the model's joint order, with what the identified model predicts for it."""

    title: str
    dataset: Dataset
    predicted: Array
    friction: Array


@dataclass(frozen=True, slots=True, kw_only=True)
class _Subject:
    """What a report is about."""

    model: RobotModel
    result: IdentificationResult
    predictor: TorquePredictor
    training: _Run
    unseen: _Run | None
    true_base: Array | None
    true_friction: Callable[[Array], Array] | None

    @property
    def judged(self) -> _Run:
        """What tells most about new motions."""
        return self.unseen or self.training

    @property
    def metrics(self) -> Metrics:
        """The errors on it."""
        run = self.judged
        known = self.result.metrics.get(run.title.lower())
        return known or torque_metrics(run.dataset.joint_names, run.dataset.tau, run.predicted)

    @property
    def prismatic(self) -> tuple[bool, ...]:
        """Which joints are."""
        return tuple(kind == 'prismatic' for kind in self.result.joint_types)


def identification_report(
    model: RobotModel,
    result: IdentificationResult,
    training: Dataset,
    *,
    validation: Dataset | None = None,
    true_base: Array | None = None,
    true_friction: Callable[[Array], Array] | None = None,
) -> Report:
    """Return the report of an identification.

    Parameters
    ----------
    model : RobotModel
        The arm as described: its inertial parameters are the prior that is shown.
    result : IdentificationResult
    training : Dataset
        What the model was fitted to.
    validation : Dataset, optional
        What it had not seen.
    true_base : ndarray, shape (b,), optional
        True base parameters, where a simulation knows them.
    true_friction : callable, optional
        True friction torque [N m or N] of velocities, both of shape (K, n).

    Raises
    ------
    IdentificationError
        If the result belongs to another arm, or a joint is not in the data.
    """
    predictor = TorquePredictor(model, result)
    subject = _Subject(
        model=model,
        result=result,
        predictor=predictor,
        training=_run('Training', training, predictor),
        unseen=None if validation is None else _run('Validation', validation, predictor),
        true_base=true_base,
        true_friction=true_friction,
    )
    sections = [
        Section(title='Torque', items=tuple(_torque_items(subject))),
        Section(title='What is left', items=tuple(_residual_items(subject))),
        Section(title='Friction', items=tuple(_friction_items(subject))),
        Section(title='Parameters', items=tuple(_parameter_items(subject))),
        Section(title='Excitation', items=tuple(_excitation_items(subject))),
        Section(title='How it was done', items=tuple(_provenance_items(result))),
    ]
    return Report(
        kind='Dynamic identification',
        title=result.robot,
        summary=_summary(subject),
        verdict=_verdict(subject),
        facts=_facts(subject),
        sections=tuple(sections),
    )


def _run(title: str, dataset: Dataset, predictor: TorquePredictor) -> _Run:
    names = predictor.model.joint_names
    columns = joint_columns(dataset, predictor.model)
    signals = {name: getattr(dataset, name)[:, columns] for name in ('q', 'dq', 'ddq', 'tau', 'tau_filtered')}
    noise = None if dataset.noise_std is None else dataset.noise_std[columns]
    ordered = replace(dataset, joint_names=names, noise_std=noise, **signals)
    load = predictor.rigid_torque(ordered.q, ordered.dq, ordered.ddq)
    return _Run(
        title=title,
        dataset=ordered,
        predicted=predictor.measured_torque(ordered),
        friction=predictor.friction_torque(ordered.dq, load),
    )


def _summary(subject: _Subject) -> str:
    result, data = subject.result, subject.training.dataset
    runs = len(data.sources)
    text = (
        f'The dynamics of {result.robot} ({len(result.joint_names)} joints) were identified from '
        f'{integer(len(data))} samples of {f"{runs} runs" if runs > 1 else "one run"} at {number(data.rate)} Hz'
    )
    if data.periods > 1:
        text += f', each the average of {data.periods} periods'
    text += (
        f': {len(result.base_names)} base parameters and, for each joint, friction as '
        f'{_friction_label(result.friction_name)}. '
    )
    if subject.unseen is None:
        return text + 'No data were kept back, so nothing here says how well the model predicts other motions.'
    count = integer(len(subject.unseen.dataset))
    return text + (
        f'The model then predicted the torque of {count} samples that it had not seen; every error below is against '
        'the torque as recorded, without filtering.'
    )


def _verdict(subject: _Subject) -> Verdict:
    result, metrics = subject.result, subject.metrics
    if not result.usable:
        return Verdict(level='bad', headline='Not usable', reasons=(_sentence(result.reason),))
    worst = int(metrics.match.argmin())
    where = 'On motions it had not seen' if subject.unseen is not None else 'On the motions it was fitted to'
    gain = (
        f'{where}, the model explains {percent(100.0 - metrics.relative_error_total)} of the torque; the weakest joint '
        f'is {metrics.joint_names[worst]} with {percent(float(metrics.match[worst]))}.'
    )
    cautions = list(_cautions(subject))
    if cautions:
        return Verdict(level='caution', headline='Usable with care', reasons=(gain, *cautions))
    return Verdict(level='good', headline='Usable', reasons=(gain,))


def _cautions(subject: _Subject) -> Iterator[str]:
    result, metrics = subject.result, subject.metrics
    if result.reason:
        yield _sentence(result.reason)
    if subject.unseen is None:
        yield 'It was not checked on other motions: record a second trajectory and validate with it.'
    else:
        ratio = metrics.relative_error_total / max(result.metrics['training'].relative_error_total, 1e-12)
        if ratio > _WORSE_THAN_TRAINING and metrics.relative_error_total > _LARGE_ERROR:
            yield (
                f'The error on new motions is {number(ratio, 2)} times that of the training: record more varied '
                'motion, or use fewer parameters.'
            )
    if condition_level(result.condition_scaled) == 'bad':
        yield (
            f'The condition number is {number(result.condition_scaled)}: the motion left some parameters '
            'undetermined. The torque may be right where single parameters are not.'
        )
    weak = [name for name, match in zip(metrics.joint_names, metrics.match, strict=True) if match < _FAIR_MATCH]
    if weak:
        yield f'Less than {_FAIR_MATCH:.0f} % of the torque is explained at {", ".join(weak)}.'


def _facts(subject: _Subject) -> tuple[Fact, ...]:
    result, metrics, data = subject.result, subject.metrics, subject.training.dataset
    where = subject.judged.title.lower()
    worst = int(metrics.rmse.argmax())
    training = result.metrics['training'].relative_error_total
    return (
        Fact(
            label=f'Torque explained, {where}',
            value=percent(100.0 - metrics.relative_error_total),
            note=f'training {percent(100.0 - training)}',
        ),
        Fact(
            label='Largest rmse of a joint',
            value=f'{number(float(metrics.rmse[worst]))} {_torque_unit(subject, worst)}',
            note=metrics.joint_names[worst],
        ),
        Fact(
            label='Condition number',
            value=number(result.condition_scaled),
            note=f'column-scaled; {number(result.condition_si)} in SI',
        ),
        Fact(
            label='Samples',
            value=integer(len(data)),
            note=f'{number(data.rate)} Hz, '
            + (f'bandwidth {number(data.cutoff)} Hz' if data.cutoff < 0.49 * data.rate else 'not filtered'),
        ),
    )


def _torque_items(subject: _Subject) -> Iterator[Item]:
    yield _error_table(subject)
    for run in (subject.unseen, subject.training):
        if run is not None:
            yield torque_figure(
                run.dataset,
                run.predicted,
                name=f'torque_{run.title.lower()}',
                title=run.title,
                prismatic=subject.prismatic,
            )


def _error_table(subject: _Subject) -> Table:
    metrics = subject.result.metrics
    names = [name for name in _TITLES if name in metrics]
    columns = [Column(name='Joint', numeric=False)]
    columns += [Column(name='RMSE', unit=_TITLES[name].lower()) for name in names]
    columns += [Column(name='Match', unit=_TITLES[name].lower()) for name in names]
    columns += [Column(name='Unit', numeric=False)]
    rows: list[tuple[str, ...]] = []
    levels: list[Level | None] = []
    for j, joint in enumerate(subject.result.joint_names):
        cells = [number(float(metrics[name].rmse[j])) for name in names]
        cells += [percent(float(metrics[name].match[j])) for name in names]
        rows.append((joint, *cells, _torque_unit(subject, j)))
        levels.append(_match_level(float(subject.metrics.match[j])))
    rows.append(
        (
            'All joints',
            *('' for _ in names),
            *(percent(100.0 - metrics[name].relative_error_total) for name in names),
            '',
        )
    )
    levels.append(None)
    return Table(
        caption='Error per joint',
        columns=tuple(columns),
        rows=tuple(rows),
        levels=tuple(levels),
        reading=f'Match is 100 % less the relative error. Green: {_GOOD_MATCH:.0f} % or more; amber: '
        f'{_FAIR_MATCH:.0f} % or more. Joints that carry little torque match less: look at their rmse.',
    )


def _match_level(match: float) -> Level:
    return 'good' if match >= _GOOD_MATCH else 'caution' if match >= _FAIR_MATCH else 'bad'


def _torque_unit(subject: _Subject, joint: int) -> str:
    return 'N' if subject.prismatic[joint] else 'N·m'


def _residual_items(subject: _Subject) -> Iterator[Item]:
    run = subject.judged
    yield residual_velocity_figure(run.dataset, run.predicted, title=run.title, prismatic=subject.prismatic)
    yield residual_spectrum_figure(run.dataset, run.predicted, title=run.title, prismatic=subject.prismatic)


def _friction_items(subject: _Subject) -> Iterator[Item]:
    result, run = subject.result, subject.training
    if not result.friction_names:
        yield 'No friction was identified.'
        return
    fastest = np.abs(run.dataset.dq).max(axis=0)
    steps = np.sinh(np.linspace(-4.0, 4.0, 161)) / np.sinh(4.0)  # dense around zero, where friction bends
    velocity = steps[:, None] * fastest
    load = np.median(np.abs(subject.predictor.rigid_torque(run.dataset.q, run.dataset.dq, run.dataset.ddq)), axis=0)
    yield friction_figure(
        run.dataset,
        run.predicted,
        run.friction,
        model_name=_friction_label(result.friction_name),
        velocity=velocity,
        curve=subject.predictor.friction_torque(velocity, np.broadcast_to(load, velocity.shape)),
        truth=None if subject.true_friction is None else subject.true_friction(velocity),
        prismatic=subject.prismatic,
    )
    yield from _ripple_items(subject)
    yield Figure(
        name='friction_parameters',
        caption='Friction parameters with 95 % intervals',
        reading='A bar that crosses zero: this joint does not need that term, or did not move fast or slowly enough '
        'to show it.',
        charts=tuple(
            interval_chart(
                name.replace('_', ' '),
                result.joint_names,
                'ratio' if result.friction_units[0][k] == '1' else unit(result.friction_units[0][k]),
                result.friction_values[:, k],
                result.friction_std[:, k],
            )
            for k, name in enumerate(result.friction_names)
        ),
    )


def _ripple_items(subject: _Subject) -> Iterator[Item]:
    friction, run = subject.result.friction, subject.training
    if not isinstance(friction, TorqueRipple):
        return
    data = run.dataset
    frequency = np.asarray(friction.ripple_frequency)
    slowest = np.abs(data.dq).argmin(axis=0)  # the curve is drawn where the joint creeps, over at most ten ripples
    centre = data.q[slowest, np.arange(data.n)]
    half = np.minimum(10.0 * np.pi / np.where(frequency > 0.0, frequency, np.inf), np.inf)
    low, high = (np.clip(centre + sign * half, data.q.min(axis=0), data.q.max(axis=0)) for sign in (-1.0, 1.0))
    position = low + np.linspace(0.0, 1.0, 400)[:, None] * (high - low)
    creeping = np.full_like(position, 1e-6)

    def ripple(dq: Array, q: Array) -> Array:
        load = np.zeros_like(dq)
        torque = subject.predictor.friction_torque
        return torque(dq, load, q) - torque(dq, load)

    yield ripple_figure(
        data,
        run.predicted,
        ripple(data.dq, data.q),
        position=position,
        curve=ripple(creeping, position),
        frequency=frequency,
        prismatic=subject.prismatic,
    )


def _parameter_items(subject: _Subject) -> Iterator[Item]:
    result = subject.result
    prior = subject.predictor.base.values
    yield parameter_figure(
        result.base_names,
        result.base_units,
        result.base_values,
        result.base_std,
        caption='Base parameters with 95 % intervals',
        prior=prior,
        truth=subject.true_base,
    )
    yield parameter_table(
        result.base_names,
        result.base_units,
        result.base_values,
        result.base_std,
        caption='Base parameters',
        prior=prior,
        truth=subject.true_base,
    )
    yield _link_table(subject)


def _link_table(subject: _Subject) -> Table:
    result = subject.result
    mass, centre, inertia = split_inertial_parameters(result.inertial)
    prior, _, _ = split_inertial_parameters(subject.model.inertial)
    rows = []
    for k, link in enumerate(result.link_names):
        cells = [number(float(prior[k])), number(float(mass[k]))]
        cells += [number(float(value)) for value in centre[k]]
        cells += [number(float(value)) for value in np.linalg.eigvalsh(inertia[k])]
        if result.has_rotor_inertia:
            cells.append(number(float(result.rotor_inertia[k])))
        rows.append((link, *cells))
    columns = [Column(name='Link', numeric=False), Column(name='Prior mass', unit='kg'), Column(name='Mass', unit='kg')]
    columns += [Column(name=f'c{axis}', unit='m') for axis in 'xyz']
    columns += [Column(name=f'I{k}', unit='kg·m²') for k in (1, 2, 3)]
    if result.has_rotor_inertia:
        columns.append(Column(name='Ia', unit='kg·m²'))
    return Table(
        caption='Links: physically consistent standard parameters',
        columns=tuple(columns),
        rows=tuple(rows),
        reading='One set out of many with the same torques, the one closest to the robot description that a real body '
        'can have. c: centre of mass in the link frame; I1 to I3: principal moments about it; Ia: rotor inertia seen '
        'at the joint.',
    )


def _excitation_items(subject: _Subject) -> Iterator[Item]:
    result = subject.result
    yield condition_table((('Training data', result.condition_si, result.condition_scaled),))
    yield coverage_figure(subject.training.dataset, subject.model.limits)


def _provenance_items(result: IdentificationResult) -> Iterator[Item]:
    if result.decisions:
        yield Table(
            caption='What was tried and chosen',
            columns=(Column(name='Step', numeric=False), Column(name='Decision', numeric=False)),
            rows=tuple((str(k + 1), _sentence(text)) for k, text in enumerate(result.decisions)),
        )
    rows = tuple(_flat(result.provenance))
    if rows:
        yield Table(
            caption='Where it came from',
            columns=(Column(name='Entry', numeric=False), Column(name='Value', numeric=False)),
            rows=rows,
            reading='Files with their hashes, settings and seed: enough to repeat it.',
        )


def _flat(content: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, str]]:
    for key, value in content.items():
        name = f'{prefix}{key}'
        if isinstance(value, Mapping):
            yield from _flat(value, f'{name} · ')
        elif isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value):
            for k, item in enumerate(value):
                yield from _flat(item, f'{name} {k + 1} · ') if isinstance(item, Mapping) else [(name, str(item))]
        elif isinstance(value, list | tuple):
            yield name, ', '.join(_brief(item) for item in value[:24]) + (' …' if len(value) > 24 else '')
        else:
            yield name, _brief(value)


def _brief(value: Any) -> str:
    return number(value, 6) if isinstance(value, float) else str(value)


def _friction_label(name: str) -> str:
    """Return a friction model's name as people say it: Coulomb + viscous + offset."""
    words = name.replace('daemi_heimann', 'Daemi-Heimann').replace('_', '+').split('+')
    return ' + '.join(word.capitalize() if word in ('coulomb', 'stribeck') else word for word in words)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '!', '?')) else '.')
