# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Two or more results of one arm over each other: months apart, or before and after a repair."""

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.report.content import Figure, Level, Report, Table, Trace, Verdict, axis
from robotid_ros.report.parameters import by_link, short_name
from robotid_ros.report.subject import judged, parameters_of, velocity_steps
from robotid_ros.report.wording import friction_label, listed, number, percent, unit, units_of

_FALSE_ALARM = 0.01  # chance that any parameter of an unchanged arm is said to have moved
_FASTEST = 1.5  # rad/s or m/s, of the friction curves


def comparison_report(results: Sequence[tuple[str, IdentificationResult]]) -> Report:
    """Return the report of how the parameters of an arm moved from the first result to the last, in the order of time.

    An IdentificationError says that there are fewer than two, or that they are not of one arm.
    """
    names = [name for name, _ in results]
    if len(results) < 2:
        raise IdentificationError(f'expected two or more results to compare, got {len(results)}')
    first = results[0][1]
    for name, other in results[1:]:
        if other.joint_names != first.joint_names or other.base_names != first.base_names:
            raise IdentificationError(
                f'{name} is not of the arm of {names[0]}: expected the joints {", ".join(first.joint_names)} and the '
                f'same {len(first.base_names)} base parameters'
            )
    # Values and deviations, shape (R, p), of the base parameters and the friction terms that all results have.
    found = [parameters_of(result) for _, result in results]
    labels = [name for name in found[0] if all(name in other for other in found)]
    values, std = np.array([[each[name][:2] for name in labels] for each in found]).transpose(2, 0, 1)
    drift, limit = changes(values, std), threshold(len(labels))
    moved = drift[-1]
    order = np.argsort(-np.abs(moved))
    beyond = [k for k in order if abs(moved[k]) > limit]
    reading = 'The largest change first. Amber: moved.'
    table = Table('First and last', ('Parameter', '#First', '#Last', '#Change [σ]', 'Unit'), reading=reading)
    for k in order:
        ends = (f'{number(values[n, k], 4)} ± {number(std[n, k], 2)}' for n in (0, -1))
        level: Level = 'caution' if abs(moved[k]) > limit else 'good'
        table.add(labels[k], *ends, number(moved[k], 2), unit(found[0][labels[k]][2]), level=level)
    on_what = [judged(result) for _, result in results]
    explained = [percent(100.0 - metrics.relative_error_total) for _, metrics in on_what]
    errors = Table('Match of each joint', ('Result', 'On', *(f'#{joint}' for joint in first.joint_names)))
    for name, (on, metrics) in zip(names, on_what, strict=True):
        errors.add(name, on, *map(percent, metrics.match))
    return Report(
        kind='Comparison',
        title=first.robot,
        summary=f'{len(results)} results of {first.robot}, from {names[0]} to {names[-1]}. A parameter has moved '
        f'when the last value differs from the first by more than {number(limit, 2)} deviations of both together, '
        f'which in one of {1.0 / _FALSE_ALARM:.0f} comparisons of an unchanged arm happens to any of its '
        f'{len(labels)} parameters.',
        verdict=_verdict([f'{short_name(labels[k])} ({number(moved[k], 2)} σ)' for k in beyond], results),
        facts=(
            ('Moved', f'{len(beyond)} of {len(labels)}', 'parameters'),
            ('Largest change', f'{number(abs(moved[order[0]]), 2)} σ', labels[order[0]]),
            ('Torque explained, first', explained[0], names[0]),
            ('Torque explained, last', explained[-1], names[-1]),
        ),
        sections={
            'Parameters': (_drift_figure(results, labels, drift, limit), table),
            'Friction': (_friction_figure(results),),
            'Errors': (errors,),
        },
    )


def changes(values: Array, std: Array) -> Array:
    """Return (value - first) / sqrt(first variance + variance) of values and deviations; all of shape (R, p)."""
    with np.errstate(divide='ignore', invalid='ignore'):
        result = (values - values[0]) / np.hypot(std, std[0])
    return np.asarray(np.where(np.isfinite(result), result, 0.0))


def threshold(count: int) -> float:
    """Return how many deviations any of ``count`` normal variables exceeds with a chance of one per cent.

    By Bonferroni's inequality.
    """
    return float(ndtri(1.0 - 0.5 * _FALSE_ALARM / max(count, 1)))


def _verdict(beyond: Sequence[str], results: Sequence[tuple[str, IdentificationResult]]) -> Verdict:
    cautions = [f'{name} is not usable: {result.reason}.' for name, result in results if not result.usable]
    models = list(dict.fromkeys(friction_label(result.friction.name) for _, result in results))
    if len(models) > 1:
        cautions.append(f'The friction models differ ({"; ".join(models)}): only the terms they share are compared.')
    if beyond:
        reason = f'Moved beyond their deviations: {listed(beyond)}.'
        causes = (
            'Friction moves with temperature, grease and wear; inertias and first moments only with a load, a tool or '
            'a part that was exchanged.'
        )
        return Verdict(level='caution', headline='The arm has changed', reasons=(reason, causes, *cautions))
    level: Level = 'caution' if cautions else 'good'
    reason = 'No parameter has moved further than its deviations allow.'
    return Verdict(level=level, headline='No change to be seen', reasons=(reason, *cautions))


def _drift_figure(
    results: Sequence[tuple[str, IdentificationResult]], labels: Sequence[str], drift: Array, limit: float
) -> Figure:
    first, steps = results[0][1], np.arange(float(len(results)))
    count = len(first.base_names)
    groups = by_link(first.base_names, first.link_names)
    if len(labels) > count:
        groups['friction'] = list(range(count, len(labels)))
    figure = Figure(
        'drift',
        'Change against the first result, by link',
        'In deviations of both results together. Lines that leave the dotted band have moved; point at one '
        'for its name. A steady slope over many results is wear or drift, a single step is an event.',
    )
    for title, members in groups.items():
        chart = figure.chart(
            title,
            axis(tickvals=steps.tolist(), ticktext=[name for name, _ in results], tickangle=0),
            'change [σ]',
            note=f'{int((np.abs(drift[-1, members]) > limit).sum())} of {len(members)} moved',
            alt=f'{title}: change of {len(members)} parameters from result to result, in deviations; the largest '
            f'is {number(np.abs(drift[:, members]).max(), 2)}.',
        )
        for n, k in enumerate(members):
            said = f'{labels[k]}: %{{y:.2f}} σ<extra></extra>'
            drawn: Trace = {'mode': 'lines+markers', 'showlegend': False}
            chart.line(n, steps, drift[:, k], labels[k], hovertemplate=said, **drawn)
        chart.rule('y', limit)
        chart.rule('y', -limit)
    return figure


def _friction_figure(results: Sequence[tuple[str, IdentificationResult]]) -> Figure:
    first = results[0][1]
    speed = velocity_steps() * _FASTEST
    velocity = np.repeat(speed[:, None], len(first.joint_names), axis=1)
    torques = [
        (name, result.friction.torque_of_motion(velocity, result.friction_values, np.zeros_like(velocity)))
        for name, result in results
    ]
    before, after = torques[0][1], torques[-1][1]
    figure = Figure(
        'friction',
        'Friction curves over each other',
        'Without load, springs and ripple. Where a joint never moved as fast as shown, its curve is an extrapolation.',
    )
    for j, joint in enumerate(first.joint_names):
        torque, rate, _ = units_of(first.joint_types[j])
        note = f'changed by up to {number(float(np.abs(after[:, j] - before[:, j]).max()), 2)} {torque}'
        chart = figure.chart(joint, f'velocity [{rate}]', f'friction [{torque}]', note=note)
        for k, (name, friction) in enumerate(torques):
            chart.line(k, speed, friction[:, j], name)
    return figure
