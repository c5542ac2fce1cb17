# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The report of a free-floating run: what the captured target weighs, and how soon that was known."""

from collections.abc import Iterator

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.result import TargetIdentification
from robotid_ros.report.chart import Axis, Chart, Line, Role, Rule, Series
from robotid_ros.report.content import Column, Fact, Figure, Item, Level, Report, Section, Table, Verdict
from robotid_ros.report.decimate import envelope
from robotid_ros.report.numbers import integer, number, percent, unit
from robotid_ros.report.wording import sentence

__all__ = ['free_floating_report']

_NAMES = ('m', 'cx', 'cy', 'cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
_UNITS = ('kg', 'm', 'm', 'm', *('kg*m^2',) * 6)


def free_floating_report(result: TargetIdentification, *, truth: RigidBody | None = None) -> Report:
    """Return the report of a target identification.

    Parameters
    ----------
    result : TargetIdentification
    truth : RigidBody, optional
        The true last link merged with the target, where a simulation knows it.
    """
    target, deviation = result.target, result.target_deviation
    share = 100.0 * float(deviation[0]) / abs(target.mass)
    summary = (
        f'The base of {result.robot_name} floats freely, so momentum is conserved whatever the arm does. From '
        f'{integer(result.samples)} samples of base twist and joint motion, the mass, centre of mass and inertia of '
        f'the captured target follow by least squares ({result.estimator}). The target weighs '
        f'{number(target.mass, 4)} ± {number(float(deviation[0]), 2)} kg (1 σ).'
    )
    sections = [
        Section(title='Target', items=tuple(_target_items(result, truth))),
        Section(title='Convergence', items=tuple(_history_items(result, truth))),
    ]
    return Report(
        kind='Free-floating identification',
        title=result.robot_name,
        summary=summary,
        verdict=_verdict(result),
        facts=(
            Fact(label='Mass of the target', value=f'{number(target.mass, 4)} kg', note=f'± {percent(share, 3)} (1 σ)'),
            Fact(
                label='Condition number',
                value=number(result.condition_scaled),
                note=f'column-scaled; {number(result.condition_si)} in SI',
            ),
            Fact(
                label='Residual against noise',
                value=number(result.noise_scale),
                note='1 where the model explains everything but noise',
            ),
            Fact(label='Samples', value=integer(result.samples), note=f'momentum: {result.momentum_source}'),
        ),
        sections=tuple(sections),
    )


def _verdict(result: TargetIdentification) -> Verdict:
    if not result.usable:
        return Verdict(level='bad', headline='Not usable', reasons=(sentence(result.reason),))
    cautions = [sentence(result.reason)] if result.reason else []
    if result.condition_scaled > 10.0:
        cautions.append(
            f'The column-scaled condition number is {number(result.condition_scaled)}; a designed trajectory reaches '
            'about 1.'
        )
    if cautions:
        return Verdict(level='caution', headline='Usable with care', reasons=tuple(cautions))
    reason = 'The estimate is a physical body, and the residual is what the sensor noise explains.'
    return Verdict(level='good', headline='Usable', reasons=(reason,))


def _target_items(result: TargetIdentification, truth: RigidBody | None) -> Iterator[Item]:
    yield _body_table('Target alone, in the frame of the last link', result.target, result.target_deviation, None)
    yield _body_table('Last link merged with the target', result.body, result.body_deviation, truth)
    if result.momentum_deviation is not None:
        yield Table(
            caption='Momentum of the whole system, estimated',
            columns=(
                Column(name='Component', numeric=False),
                Column(name='Found'),
                Column(name='Deviation', unit='1 σ'),
                Column(name='Unit', numeric=False),
            ),
            rows=tuple(
                (name, number(float(value)), number(float(std), 2), of)
                for name, of, value, std in zip(
                    ('Px', 'Py', 'Pz', 'Lx', 'Ly', 'Lz'),
                    ('kg·m/s',) * 3 + ('kg·m²/s',) * 3,
                    result.momentum,
                    result.momentum_deviation,
                    strict=True,
                )
            ),
        )


def _body_table(caption: str, body: RigidBody, deviation: Array, truth: RigidBody | None) -> Table:
    values = _values(body)
    columns = [Column(name='Parameter', numeric=False), Column(name='Found'), Column(name='Deviation', unit='1 σ')]
    if truth is not None:
        columns.append(Column(name='True'))
    columns.append(Column(name='Unit', numeric=False))
    rows, levels = [], []
    sizes = np.array([values[0], *(np.linalg.norm(values[1:4]),) * 3, *(np.abs(values[4:]).max(),) * 6])
    for k, name in enumerate(_NAMES):
        row = [name, number(float(values[k]), 5), number(float(deviation[k]), 2)]
        if truth is not None:
            row.append(number(float(_values(truth)[k]), 5))
        rows.append((*row, unit(_UNITS[k])))
        share = float(deviation[k]) / max(float(sizes[k]), 1e-300)
        level: Level = 'good' if share < 0.05 else 'caution' if share < 0.3 else 'bad'
        levels.append(level)
    return Table(
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        levels=tuple(levels),
        reading='Inertia about the centre of mass, entries of the tensor itself (Ixy = −∫xy dm). Green: deviation '
        'below 5 % of the largest entry of its kind; red: above 30 %.',
    )


def _history_items(result: TargetIdentification, truth: RigidBody | None) -> Iterator[Item]:
    history = result.history
    kept = np.isfinite(history.estimates).all(axis=1)
    if int(kept.sum()) < 2:
        yield 'Too few samples to show how the estimate converged.'
        return
    time = history.time[kept]
    with np.errstate(divide='ignore'):
        mass = 1.0 / history.estimates[kept, 0]
    values = np.column_stack([mass, history.estimates[kept, 1:]])
    final = _values(result.body)
    true = None if truth is None else _values(truth)
    charts = [_history_chart(k, time, values[:, k], final, true) for k in range(len(_NAMES))]
    yield Figure(
        name='convergence',
        caption='Estimates while the run went on',
        reading='Curves should settle early and stay; where they still move at the end, record longer. Axes show the '
        'last nine tenths of the run.',
        charts=tuple(charts),
    )
    series: list[Series] = []
    conditions: tuple[tuple[Role, str, Array], ...] = (
        ('predicted', 'column-scaled', history.condition_scaled[kept]),
        ('residual', 'SI units', history.condition_si[kept]),
    )
    for role, label, condition in conditions:
        finite = np.isfinite(condition)
        x, y = envelope(time[finite], condition[finite])
        series.append(Line(role=role, x=x, y=y, label=label))
    chart = Chart(
        title='Condition number',
        note=f'ends at {number(result.condition_scaled)} and {number(result.condition_si)}',
        alt=f'Condition numbers over time; they end at {number(result.condition_scaled)} (column-scaled) and '
        f'{number(result.condition_si)} (SI).',
        x=Axis(label='time [s]'),
        y=Axis(label='condition number', log=True),
        series=tuple(series),
        height=0.62,
    )
    yield Figure(
        name='condition',
        caption='Condition number while the run went on',
        reading='It falls as the motion shows the unknowns from all sides; the column-scaled number does not depend on '
        'units, and 1 is perfect.',
        charts=(chart,),
    )


def _history_chart(k: int, time: Array, values: Array, final: Array, true: Array | None) -> Chart:
    name, of = _NAMES[k], unit(_UNITS[k])
    x, y = envelope(time, values)
    series: list[Series] = [Line(role='predicted', x=x, y=y, label='estimate')]
    ends = [float(final[k])]
    if true is not None:
        series.append(Rule(axis='y', at=float(true[k]), role='truth', label='true'))
        ends.append(float(true[k]))
    low, high = (float(q) for q in np.quantile(values[len(values) // 10 :], [0.02, 0.98]))
    low, high = min(low, *ends), max(high, *ends)
    margin = 0.15 * (high - low) + 1e-3 * max(abs(low), abs(high)) + 1e-12
    return Chart(
        title=name,
        note=f'{number(float(final[k]), 4)} {of}',
        alt=f'{name} over time; it ends at {number(float(final[k]), 4)} {of}.',
        x=Axis(label='time [s]'),
        y=Axis(label=of, limits=(low - margin, high + margin)),
        series=tuple(series),
    )


def _values(body: RigidBody) -> Array:
    return np.concatenate([[body.mass], body.unknowns[1:]])
