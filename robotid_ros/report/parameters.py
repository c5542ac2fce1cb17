# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters with their error bars, beside the prior and, in a simulation, the truth."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.report.chart import Axis, Chart, Intervals, Rule, Series
from robotid_ros.report.content import Column, Figure, Level, Table
from robotid_ros.report.numbers import number, percent, unit

__all__ = ['interval_chart', 'parameter_figure', 'parameter_table']

_NORMAL_95 = 1.96
_ROWS = 14
_KINDS = {'kg*m^2': 'Inertia', 'kg*m': 'First moment', 'kg': 'Mass', 'N*m': 'Torque', 'N*m*s/rad': 'Damping'}


def parameter_figure(
    names: Sequence[str],
    units: Sequence[str],
    values: Array,
    std: Array,
    *,
    name: str = 'parameters',
    caption: str = 'Parameters with 95 % intervals',
    prior: Array | None = None,
    truth: Array | None = None,
) -> Figure:
    """Return values with 95 % intervals, one chart per unit and size.

    Parameters
    ----------
    names, units : sequence of str, length p
        Only the first word of a name is shown.
    values, std : ndarray, shape (p,)
    name : str
        File name of the figure.
    caption : str
    prior, truth : ndarray, shape (p,), optional
        NaN where there is none.
    """

    def pick(array: Array | None, members: list[int]) -> Array | None:
        return None if array is None else array[members]

    charts = [
        interval_chart(
            title,
            tuple(names[k].split(' ')[0] for k in members),
            unit(units[members[0]]),
            values[members],
            std[members],
            prior=pick(prior, members),
            truth=pick(truth, members),
        )
        for title, members in _groups(units, values, prior)
    ]
    return Figure(
        name=name,
        caption=caption,
        reading='A short bar is a well-determined parameter; one that crosses zero cannot be told from nothing. '
        'A prior outside the bar was corrected by the data.',
        charts=tuple(charts),
    )


def interval_chart(
    title: str,
    rows: tuple[str, ...],
    of: str,
    values: Array,
    std: Array,
    *,
    prior: Array | None = None,
    truth: Array | None = None,
) -> Chart:
    """Return one chart of values with 95 % intervals.

    Parameters
    ----------
    title : str
    rows : tuple of str, length p
    of : str
        The unit, as printed.
    values, std : ndarray, shape (p,)
    prior, truth : ndarray, shape (p,), optional
    """
    half = np.where(np.isfinite(std), _NORMAL_95 * std, np.nan)
    series: list[Series] = [Rule(axis='x', at=0.0)]
    if prior is not None:
        series.append(Intervals(role='prior', value=prior, label='prior (robot description)', shift=-0.24))
    if truth is not None:
        series.append(Intervals(role='truth', value=truth, label='true', shift=0.24))
    series.append(Intervals(role='predicted', value=values, half_width=half, label='found, 95 %'))
    clear = int(np.sum(np.abs(values) > half))
    return Chart(
        title=title,
        note=f'{clear} of {len(rows)} differ from 0',
        alt=f'{title}: {rows[0]} to {rows[-1]}, from {number(float(values.min()))} to '
        f'{number(float(values.max()))} {of}; {clear} of {len(rows)} clearly differ from zero. '
        'The table gives the numbers.',
        x=Axis(label=of),
        y=Axis(label=''),
        series=tuple(series),
        rows=rows,
        height=0.17 + 0.058 * max(len(rows), 3),
    )


def parameter_table(
    names: Sequence[str],
    units: Sequence[str],
    values: Array,
    std: Array,
    *,
    caption: str,
    prior: Array | None = None,
    truth: Array | None = None,
) -> Table:
    """Return all numbers, with a light for how well each is determined.

    Parameters
    ----------
    names, units : sequence of str, length p
    values, std : ndarray, shape (p,)
    caption : str
    prior, truth : ndarray, shape (p,), optional
        NaN where there is none.
    """
    columns = [Column(name='Parameter', numeric=False), Column(name='Found'), Column(name='Deviation', unit='1 σ')]
    columns += [Column(name='Relative'), Column(name='Unit', numeric=False)]
    extra = [(title, other) for title, other in (('Prior', prior), ('True', truth)) if other is not None]
    columns[3:3] = [Column(name=title) for title, _ in extra]
    rows, levels = [], []
    for k, label in enumerate(names):
        share = 100.0 * float(std[k]) / abs(float(values[k])) if values[k] != 0.0 else float('inf')
        cells = [label, number(float(values[k]), 4), number(float(std[k]), 2)]
        cells += [number(float(other[k]), 4) for _, other in extra]
        rows.append((*cells, _share(share), unit(units[k])))
        levels.append(_level(share))
    return Table(
        caption=caption,
        columns=tuple(columns),
        rows=tuple(rows),
        levels=tuple(levels),
        reading='Green: known to 10 % or better (1 σ). Amber: to 50 %. Red: the data do not determine it; do not use '
        'it on its own.',
    )


def _share(share: float) -> str:
    return '> 1000 %' if share > 1000.0 else '< 0.1 %' if share < 0.1 else percent(share)


def _level(share: float) -> Level:
    return 'good' if share <= 10.0 else 'caution' if share <= 50.0 else 'bad'


def _groups(units: Sequence[str], values: Array, prior: Array | None) -> list[tuple[str, list[int]]]:
    """Return parameters of one unit and similar size together, in charts of bounded height."""
    order = {label: k for k, label in enumerate(dict.fromkeys(units))}
    reference = values if prior is None else np.fmax(np.abs(values), np.abs(prior))

    def large(k: int) -> bool:
        same = [abs(float(reference[m])) for m in range(len(units)) if units[m] == units[k]]
        return abs(float(reference[k])) > 0.08 * max(same)

    ranked = sorted(range(len(units)), key=lambda k: (order[units[k]], not large(k), k))
    groups: list[tuple[str, list[int]]] = []
    for (label, is_large), found in groupby(ranked, key=lambda k: (units[k], large(k))):
        members = list(found)
        parts = -(-len(members) // _ROWS)
        alone = all(large(k) for k in range(len(units)) if units[k] == label)
        for part in range(parts):
            title = _KINDS.get(label, unit(label)) + ('' if alone else ', large' if is_large else ', small')
            piece = members[part * len(members) // parts : (part + 1) * len(members) // parts]
            groups.append((title, piece))
    return groups
