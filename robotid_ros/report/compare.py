# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Two or more results of one arm over each other: months apart, or before and after a repair."""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.special import ndtri

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.report.content import (
    Column,
    Fact,
    Figure,
    Item,
    Level,
    Report,
    Section,
    Table,
    Verdict,
    friction_label,
    number,
    percent,
    quantities,
    unit,
    units_of,
    words,
)
from robotid_ros.report.parameters import by_link, short_name
from robotid_ros.report.plot import Chart, axis, curve, rule
from robotid_ros.report.subject import judged, parameters_of, velocity_steps

_FALSE_ALARM = 0.01  # chance that any parameter of an unchanged arm is said to have moved
_CAUSES = (
    'Friction moves with temperature, grease and wear; inertias and first moments only with a load, a tool or a part '
    'that was exchanged.'
)
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
    labels, units, values, std = _table(results)
    moved = changes(values, std)
    limit = threshold(len(labels))
    beyond = [int(k) for k in np.argsort(-np.abs(moved)) if abs(moved[k]) > limit]
    return Report(
        kind='Comparison',
        title=first.robot,
        summary=f'{len(results)} results of {first.robot}, from {names[0]} to {names[-1]}. A parameter has moved '
        f'when the last value differs from the first by more than {number(limit, 2)} deviations of both together, '
        f'which in one of {1.0 / _FALSE_ALARM:.0f} comparisons of an unchanged arm happens to any of its '
        f'{len(labels)} parameters.',
        verdict=_verdict(labels, moved, beyond, results),
        facts=(
            Fact(label='Moved', value=f'{len(beyond)} of {len(labels)}', note='parameters'),
            Fact(
                label='Largest change',
                value=f'{number(np.abs(moved).max(), 2)} σ',
                note=labels[int(np.abs(moved).argmax())],
            ),
            _explained('first', *results[0]),
            _explained('last', *results[-1]),
        ),
        sections=(
            Section(
                title='Parameters', items=tuple(_parameter_items(results, labels, units, values, std, moved, limit))
            ),
            Section(title='Friction', items=(_friction_figure(results),)),
            Section(title='Errors', items=(_error_table(results),)),
        ),
    )


def changes(values: Array, std: Array) -> Array:
    """Return (last - first) / sqrt(first variance + last variance), shape (p,), of values and deviations (R, p)."""
    spread = np.sqrt(std[0] ** 2 + std[-1] ** 2)
    with np.errstate(divide='ignore', invalid='ignore'):
        result = (values[-1] - values[0]) / spread
    return np.asarray(np.where(np.isfinite(result), result, 0.0))


def threshold(count: int) -> float:
    """Return how many deviations any of ``count`` normal variables exceeds with a chance of one per cent.

    By Bonferroni's inequality.
    """
    return float(ndtri(1.0 - 0.5 * _FALSE_ALARM / max(count, 1)))


def _table(results: Sequence[tuple[str, IdentificationResult]]) -> tuple[list[str], list[str], Array, Array]:
    """Return names, units, values and deviations (R, p) of the base parameters and the friction terms all have."""
    found = [parameters_of(result) for _, result in results]
    labels = [name for name in found[0] if all(name in other for other in found)]
    table = np.array([[each[name][:2] for name in labels] for each in found])
    return labels, [found[0][name][2] for name in labels], table[:, :, 0], table[:, :, 1]


def _verdict(
    labels: Sequence[str], moved: Array, beyond: list[int], results: Sequence[tuple[str, IdentificationResult]]
) -> Verdict:
    cautions = [f'{name} is not usable: {result.reason}.' for name, result in results if not result.usable]
    models = list(dict.fromkeys(friction_label(result.friction_name) for _, result in results))
    if len(models) > 1:
        cautions.append(f'The friction models differ ({"; ".join(models)}): only the terms they share are compared.')
    if beyond:
        listed = ', '.join(f'{short_name(labels[k])} ({number(moved[k], 2)} σ)' for k in beyond[:8])
        more = f' and {len(beyond) - 8} more' if len(beyond) > 8 else ''
        return Verdict(
            level='caution',
            headline='The arm has changed',
            reasons=(f'Moved beyond their deviations: {listed}{more}.', _CAUSES, *cautions),
        )
    level: Level = 'caution' if cautions else 'good'
    reason = 'No parameter has moved further than its deviations allow.'
    return Verdict(level=level, headline='No change to be seen', reasons=(reason, *cautions))


def _explained(which: str, name: str, result: IdentificationResult) -> Fact:
    share = 100.0 - judged(result)[1].relative_error_total
    return Fact(label=f'Torque explained, {which}', value=percent(share), note=name)


def _parameter_items(
    results: Sequence[tuple[str, IdentificationResult]],
    labels: Sequence[str],
    units: Sequence[str],
    values: Array,
    std: Array,
    moved: Array,
    limit: float,
) -> Iterator[Item]:
    first = results[0][1]
    groups = by_link(first.base_names, first.link_names)
    count = len(first.base_names)
    if len(labels) > count:
        groups['friction'] = list(range(count, len(labels)))
    charts = []
    for title, members in groups.items():
        drift = (values[:, members] - values[0, members]) / np.hypot(std[:, members], std[0, members])
        drift = np.where(np.isfinite(drift), drift, 0.0)
        steps = np.arange(float(len(results)))
        charts.append(
            Chart(
                title=title,
                note=f'{int((np.abs(moved[members]) > limit).sum())} of {len(members)} moved',
                alt=f'{title}: change of {len(members)} parameters from result to result, in deviations; the largest '
                f'is {number(np.abs(drift).max(), 2)}.',
                traces=tuple(
                    curve(
                        n,
                        steps,
                        drift[:, n],
                        labels[k],
                        mode='lines+markers',
                        showlegend=False,
                        hovertemplate=f'{labels[k]}: %{{y:.2f}} σ<extra></extra>',
                    )
                    for n, k in enumerate(members)
                ),
                layout={
                    'xaxis': axis(tickvals=steps.tolist(), ticktext=[name for name, _ in results], tickangle=0),
                    'yaxis': axis('change [σ]'),
                    'shapes': [rule('y', limit), rule('y', -limit)],
                },
            )
        )
    yield Figure(
        name='drift',
        caption='Change against the first result, by link',
        reading='In deviations of both results together. Lines that leave the dotted band have moved; point at one '
        'for its name. A steady slope over many results is wear or drift, a single step is an event.',
        charts=tuple(charts),
    )
    order = np.argsort(-np.abs(moved))
    yield Table(
        caption='First and last',
        columns=(*words('Parameter'), *quantities('First', 'Last', 'Change [σ]'), *words('Unit')),
        rows=tuple(
            (
                labels[k],
                f'{number(values[0, k], 4)} ± {number(std[0, k], 2)}',
                f'{number(values[-1, k], 4)} ± {number(std[-1, k], 2)}',
                number(moved[k], 2),
                unit(units[k]),
            )
            for k in order
        ),
        levels=tuple('caution' if abs(moved[k]) > limit else 'good' for k in order),
        reading='The largest change first. Amber: moved.',
    )


def _friction_figure(results: Sequence[tuple[str, IdentificationResult]]) -> Figure:
    first = results[0][1]
    speed = velocity_steps() * _FASTEST
    velocity = np.repeat(speed[:, None], len(first.joint_names), axis=1)
    curves = [
        result.friction.torque(velocity, result.friction_values, np.zeros_like(velocity), None) for _, result in results
    ]
    charts = []
    for j, joint in enumerate(first.joint_names):
        torque, rate, _ = units_of(first.joint_types[j])
        change = float(np.abs(curves[-1][:, j] - curves[0][:, j]).max())
        charts.append(
            Chart(
                title=joint,
                note=f'changed by up to {number(change, 2)} {torque}',
                traces=tuple(
                    curve(k, speed, friction[:, j], name)
                    for k, ((name, _), friction) in enumerate(zip(results, curves, strict=True))
                ),
                layout={'xaxis': axis(f'velocity [{rate}]'), 'yaxis': axis(f'friction [{torque}]')},
            )
        )
    return Figure(
        name='friction',
        caption='Friction curves over each other',
        reading='Without load. Where a joint never moved as fast as shown, its curve is an extrapolation.',
        charts=tuple(charts),
    )


def _error_table(results: Sequence[tuple[str, IdentificationResult]]) -> Table:
    rows = []
    for name, result in results:
        on, metrics = judged(result)
        rows.append((name, on, *(percent(match) for match in metrics.match)))
    return Table(
        caption='Match of each joint',
        columns=(*words('Result', 'On'), *(Column(name=joint) for joint in results[0][1].joint_names)),
        rows=tuple(rows),
    )
