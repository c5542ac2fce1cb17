# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The report of a dynamic identification: its sections, and how the result came about."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data.dataset import Dataset
from robotid_ros.export.replay import Replayed
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.model.inertia import joint_unit, split_inertial_parameters
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.content import (
    Figure,
    Item,
    Level,
    Report,
    Section,
    Table,
    integer,
    number,
    percent,
    quantities,
    unit,
    words,
)
from robotid_ros.report.motion import condition_table, coverage_figure
from robotid_ros.report.parameters import (
    FAIR_SHARE,
    STRONG_CORRELATION,
    by_link,
    correlation_figure,
    interval_chart,
    link_figure,
    parameter_table,
    relative_deviation,
    share_level,
    short_name,
)
from robotid_ros.report.plot import Chart, axis, line
from robotid_ros.report.subject import Subject, consistent_error, friction_used, parameter_correlation, predicted_run
from robotid_ros.report.torque import (
    friction_figure,
    friction_gain_figure,
    replay_items,
    residual_spectrum_figure,
    residual_velocity_figure,
    ripple_figure,
    torque_figure,
)
from robotid_ros.report.verdict import (
    FAIR_MATCH,
    GOOD_MATCH,
    facts,
    good_for,
    joint_level,
    joint_table,
    match_text,
    summary,
    verdict,
)

_MOST = 24  # entries of a list
_SHOWN = 6  # alternatives of a decision, the best first
_USES = ('training', 'validation', 'test')
_SETS = ('validation', 'test', 'training')


def provenance_items(result: IdentificationResult) -> Iterator[Item]:
    """Yield tables of decisions, files, settings, and what else the result keeps about its making."""
    if result.decisions:
        yield Table(
            caption='What was tried and chosen',
            columns=words('Choice', 'Chosen', 'Tried, with the held-out torque error'),
            rows=tuple(
                (each.subject, each.chosen, '; '.join(_alternatives(each.alternatives))) for each in result.decisions
            ),
            reading='The error is the root mean square over all joints against the torque as recorded, in groups of '
            'states that the fit had not seen. A choice that is not the best of its list held first, and no other was '
            'better by more than the scatter.',
        )
    origin = result.provenance
    if 'search' in origin:
        yield _search_figure(np.array(origin['search'], dtype=float))
    files = tuple(_files(origin))
    if files:
        yield Table(
            caption='Files',
            columns=(*words('File', 'Use'), *quantities('Samples'), *words('SHA-256')),
            rows=files,
            reading='Compare with sha256sum. A file without a hash was not read here: its samples came over ROS or '
            'from a program.',
        )
    if origin.get('command'):
        yield Table(
            caption='Command',
            columns=words('Run in', 'Words'),
            rows=((str(origin.get('folder', '')), str(origin['command'])),),
            reading='Repeats the identification with the same files, versions and settings.',
        )
    rest = {key: value for key, value in origin.items() if key not in (*_USES, 'command', 'folder', 'robot')}
    rows = tuple(_flat(rest)) + tuple(row for name in _USES for row in _flat({name: origin.get(name) or {}}))
    if rows:
        yield Table(
            caption='Settings, versions, and how each recording was processed',
            columns=words('Entry', 'Value'),
            rows=rows,
        )


def _alternatives(tried: Any) -> Iterator[str]:
    errors = [float(np.sqrt(np.mean(np.square(each.error)))) for each in tried]
    order = np.argsort(errors)
    for k in order[:_SHOWN]:
        yield f'{tried[k].name} {number(errors[k])}'
    if len(order) > _SHOWN:
        yield f'and {len(order) - _SHOWN} worse'


def _files(origin: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, use, number of samples and hash of each file; of the robot description too."""
    robot = origin.get('robot')
    if isinstance(robot, Mapping):
        yield str(robot.get('file', '')), 'robot description', '', str(robot.get('sha256', ''))
    for use in _USES:
        for entry in origin.get(use) or ():
            if not isinstance(entry, Mapping):
                continue
            recording = entry.get('recording')
            samples = integer(int(entry['samples'])) if 'samples' in entry else ''
            if not isinstance(recording, Mapping):
                yield ', '.join(map(str, entry.get('sources', ()))), use, samples, ''
                continue
            hashes = recording.get('sha256', '')
            name = str(recording.get('file', ''))
            if isinstance(hashes, Mapping):
                for part, value in hashes.items():
                    yield f'{name}/{part}' if name != part else name, use, samples, str(value)
            else:
                yield name, use, samples, str(hashes)


def _flat(content: Mapping[str, Any], name: str = '') -> Iterator[tuple[str, str]]:
    """Yield one row for the plain entries of each mapping; what is empty is left out."""
    plain = {key: value for key, value in content.items() if not _nested(value) and value not in (None, '', [], ())}
    if plain:
        yield name or 'run', '; '.join(f'{key.replace("_", " ")}: {_brief(value)}' for key, value in plain.items())
    for key, value in content.items():
        below = f'{name} · {key}' if name else key
        if isinstance(value, Mapping):
            yield from _flat(value, below)
        elif _nested(value):
            for k, item in enumerate(value):
                yield from _flat(item, f'{below} {k + 1}') if isinstance(item, Mapping) else [(below, _brief(item))]


def _nested(value: Any) -> bool:
    several = isinstance(value, list | tuple)
    return isinstance(value, Mapping) or (several and any(isinstance(item, Mapping) for item in value))


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        shown = ', '.join(_brief(item) for item in value[:_MOST])
        return shown + (' …' if len(value) > _MOST else '')
    return f'{value:.6g}' if isinstance(value, float) else str(value)


def _search_figure(cost: Array) -> Figure:
    """Return the fitness of the best parameters over the cycles of a search."""
    cycle, fitness = np.arange(float(len(cost))), 1.0 / (1.0 + cost)
    chart = Chart(
        title='Bee colony',
        note=f'{number(fitness[-1])} after {len(cost) - 1} cycles',
        alt=f'The fitness rises from {number(fitness[0])} to {number(fitness[-1])} in {len(cost) - 1} cycles.',
        traces=(line('predicted', cycle, fitness, 'best source'),),
        layout={'xaxis': axis('cycle'), 'yaxis': axis('fitness 1 / (1 + F)')},
    )
    return Figure(
        name='search',
        caption='Fitness of the bee colony',
        reading='1 / (1 + F) of the best source so far; F is the sum over the joints of the squared torque error '
        'relative to the squared torque. A curve that still rises at its end asks for more cycles.',
        charts=(chart,),
        wide=True,
    )


def identification_report(
    model: RobotModel,
    result: IdentificationResult,
    training: Dataset | Sequence[Dataset],
    *,
    validation: Dataset | Sequence[Dataset] = (),
    true_base: Array | None = None,
    true_friction: Callable[[Array, Array], Array] | None = None,
    replayed: Replayed | None = None,
) -> Report:
    """Return the report of an identification.

    Parameters
    ----------
    model : RobotModel
        The arm as described: its inertial parameters are the prior that is shown.
    result : IdentificationResult
    training : Dataset or sequence of Dataset
        What the model was fitted to.
    validation : Dataset or sequence of Dataset
        What it had not seen.
    true_base : ndarray, shape (b,), optional
        True base parameters, where a simulation knows them.
    true_friction : callable, optional
        True friction torque [N m or N] of velocities and loads, all of shape (K, n).
    replayed : Replayed, optional
        The replay of a recording by the identified arm.

    Raises
    ------
    IdentificationError
        If the result belongs to another arm, or a joint is not in the data.
    """
    predictor = TorquePredictor(model, result)
    trained = predicted_run('Training', training, predictor)
    held_out = [validation] if isinstance(validation, Dataset) else list(validation)
    unseen = predicted_run('Validation', held_out, predictor) if held_out else None
    subject = Subject(
        model=model,
        result=result,
        predictor=predictor,
        training=trained,
        unseen=unseen,
        true_base=true_base,
        true_friction=true_friction,
        consistent_error=consistent_error(predictor, unseen or trained),
    )
    kinds, residuals = result.joint_types, (residual_velocity_figure, residual_spectrum_figure)
    sections = [
        *([Section(title='Good for', items=(good_for(result),))] if result.good_for else []),
        Section(title='Joints', items=(joint_table(subject),)),
        Section(title='Torque', items=tuple(_torque_items(subject))),
        Section(title='Difference', items=tuple(figure(subject.judged, kinds) for figure in residuals)),
        Section(title='Friction', items=tuple(_friction_items(subject))),
        Section(title='Parameters', items=tuple(_parameter_items(subject))),
        Section(
            title='Excitation',
            items=(condition_table(result), coverage_figure(subject.training.dataset, kinds, model.limits)),
        ),
        *([] if replayed is None else [Section(title='Replay', items=tuple(replay_items(replayed)))]),
        Section(title='How it was done', items=tuple(provenance_items(result))),
    ]
    return Report(
        kind='Dynamic identification',
        title=result.robot,
        summary=summary(subject),
        verdict=verdict(subject),
        facts=facts(subject),
        sections=tuple(sections),
    )


def _torque_items(subject: Subject) -> Iterator[Item]:
    yield _error_table(subject)
    for run in (subject.unseen, subject.training):
        if run is not None:
            yield torque_figure(run, subject.result.joint_types)


def _error_table(subject: Subject) -> Table:
    metrics, before, after = subject.result.metrics, subject.before, subject.metrics
    judged = subject.judged.title.lower()
    heads = ['Match [before]', 'Match [after]', 'RMSE [before]', 'RMSE [after]']
    others = [name for name in _SETS if name in metrics and name != judged]
    heads += [f'{title} [{name}]' for name in others for title in ('RMSE', 'Match')]
    heads += [] if subject.noise is None else [f'Noise [{judged}]']
    rows: list[tuple[str, ...]] = []
    levels: list[Level | None] = []
    for j, joint in enumerate(subject.result.joint_names):
        cells = [match_text(errors.match[j]) for errors in (before, after)]
        cells += [number(errors.rmse[j]) for errors in (before, after)]
        for name in others:
            cells += [number(metrics[name].rmse[j]), match_text(metrics[name].match[j])]
        cells += [] if subject.noise is None else [number(subject.noise[j])]
        rows.append((joint, *cells, subject.torque_unit(j)))
        levels.append(joint_level(subject, j))
    total = [match_text(100.0 - errors.relative_error_total) for errors in (before, after)] + ['', '']
    for name in others:
        total += ['', match_text(100.0 - metrics[name].relative_error_total)]
    rows.append(('All joints', *total, *('' for _ in heads[len(total) :]), ''))
    levels.append(None)
    return Table(
        caption='Error per joint, before and after',
        columns=(*words('Joint'), *quantities(*heads), *words('Unit')),
        rows=tuple(rows),
        levels=tuple(levels),
        reading=f'On the {judged} data. Before: the prediction of the robot description, with its friction where that '
        'is nearer; after: of the identified model. Match is 100 % less the relative error. Green: '
        f'{GOOD_MATCH:.0f} % or more; amber: {FAIR_MATCH:.0f} % or more. Joints that carry little torque match less: '
        'look at their rmse'
        + ('.' if subject.noise is None else '; where it is no more than the noise, nothing is left to explain.'),
    )


def _friction_items(subject: Subject) -> Iterator[Item]:
    result = subject.result
    if not result.friction_names:
        yield 'No friction was identified.'
        return
    yield friction_figure(subject)
    gain = friction_gain_figure(subject)
    if gain is not None:
        yield gain
    yield from _ripple_items(subject)
    used = friction_used(result)
    yield Figure(
        name='friction_parameters',
        caption='Friction parameters with 95 % intervals',
        reading='A bar that crosses zero: this joint does not need that term, or did not move fast or slowly enough '
        'to show it.',
        charts=tuple(_friction_chart(result, k, used[:, k]) for k in range(len(result.friction_names))),
    )


def _friction_chart(result: IdentificationResult, k: int, used: BoolArray) -> Chart:
    unit_ = result.friction_units[0][k]
    return interval_chart(
        result.friction_names[k].replace('_', ' '),
        [joint for joint, kept in zip(result.joint_names, used, strict=True) if kept],
        'ratio' if unit_ == '1' else unit(unit_),
        result.friction_values[used, k],
        result.friction_std[used, k],
    )


def _ripple_items(subject: Subject) -> Iterator[Item]:
    frequency, run = subject.result.friction.ripple_frequency, subject.training
    if frequency is None:
        return

    def ripple(dq: Array, q: Array) -> Array:
        load = np.zeros_like(dq)
        torque = subject.predictor.friction_torque
        return torque(dq, load, q) - torque(dq, load)

    yield ripple_figure(run.dataset, run.predicted, ripple, np.asarray(frequency), subject.result.joint_types)


def _parameter_items(subject: Subject) -> Iterator[Item]:
    result = subject.result
    yield _undetermined(subject)
    yield link_figure(subject)
    names, correlation = parameter_correlation(subject)
    # A paragraph about the pairs of parameters that the motion tells apart least.
    first, second = np.triu_indices(len(names), 1)
    size = np.abs(correlation[first, second])
    worst = [k for k in np.argsort(-size)[:5] if size[k] > STRONG_CORRELATION]
    if worst:
        pairs = '; '.join(
            f'{short_name(names[first[k]])} and {short_name(names[second[k]])} '
            f'({number(correlation[first[k], second[k]], 2)})'
            for k in worst
        )
        yield f'Hardest to tell apart (correlation of their errors): {pairs}.'
    yield correlation_figure(names, correlation)
    yield parameter_table(subject)
    impossible = [
        name
        for name, value, std in zip(result.base_names, result.base_values, result.base_std, strict=True)
        if name.startswith('Ia') and ' ' not in name and value < -2.0 * std
    ]
    if impossible:
        yield (
            f'No rotor can have a negative inertia, as {", ".join(impossible)} here: the motion, or the torque signal, '
            'does not tell it from other terms. The table of links below holds what a real arm can have.'
        )
    yield _link_table(subject)


def _undetermined(subject: Subject) -> str:
    """Return a paragraph about the base parameters that the data do not determine."""
    result = subject.result
    share = relative_deviation(result.base_values, result.base_std)
    groups = by_link(result.base_names, result.link_names)
    open_ = {
        link: [short_name(result.base_names[k]) for k in members if share_level(share[k]) == 'bad']
        for link, members in groups.items()
    }
    listed = '; '.join(f'{link}: {", ".join(names)}' for link, names in open_.items() if names)
    count, total = sum(map(len, open_.values())), len(result.base_names)
    if not count:
        return (
            f'The data determine all {total} base parameters: each deviation is below {FAIR_SHARE:.0f} % of its value.'
        )
    return (
        f'The data do not determine {count} of the {total} base parameters: their deviation exceeds {FAIR_SHARE:.0f} '
        '% of the value. The torque of these motions hardly depends on them, so the prediction does not need them, '
        f'but do not use them on their own. They are, by link: {listed}. A motion with more acceleration of these '
        'links, or a heavier load on them, would determine more of them.'
    )


def _link_table(subject: Subject) -> Table:
    result = subject.result
    mass, centre, inertia = split_inertial_parameters(result.inertial)
    prior, _, _ = split_inertial_parameters(subject.model.inertial)
    rows = []
    for k, link in enumerate(result.link_names):
        cells = [number(prior[k]), number(mass[k])]
        cells += [number(value) for value in centre[k]]
        cells += [number(value) for value in np.linalg.eigvalsh(inertia[k])]
        if result.has_rotor_inertia:
            cells.append(number(result.rotor_inertia[k]))
        rows.append((link, *cells))
    heads = ['Prior mass [kg]', 'Mass [kg]']
    heads += [*(f'c{axis} [m]' for axis in 'xyz'), *(f'I{k} [kg·m²]' for k in (1, 2, 3))]
    if result.has_rotor_inertia:
        units = {joint_unit('kg*m^2', kind).replace('*m^2', '·m²') for kind in result.joint_types}
        heads.append(f'Ia [{" or ".join(sorted(units))}]')
    return Table(
        caption='Links: physically consistent standard parameters',
        columns=(*words('Link'), *quantities(*heads)),
        rows=tuple(rows),
        reading='One set out of many with the same torques, the one closest to the robot description that a real body '
        'can have. c: centre of mass in the link frame; I1 to I3: principal moments about it; Ia: rotor inertia seen '
        f'at the joint. They leave {percent(subject.consistent_error, 2)} of the torque unexplained, the base '
        f'parameters {percent(subject.metrics.relative_error_total, 2)} ({subject.judged.title.lower()}).',
    )
