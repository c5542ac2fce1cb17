# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters with their error bars, beside the robot description and, in a simulation, the truth."""

import re
from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.report.content import Figure, Level, Table, number, percent, quantities, unit, words
from robotid_ros.report.plot import Chart, Trace, axis, intervals, rule
from robotid_ros.report.subject import Subject

NORMAL_95 = 1.96
_GOOD_SHARE, FAIR_SHARE = 10.0, 50.0  # one deviation in percent of the value: known well, and hardly
STRONG_CORRELATION = 0.9
_LEVEL_COLOURS: dict[Level, str] = {'good': '#007d5d', 'caution': '#b07a00', 'bad': '#c0391b'}
_SHARE_TICKS: Trace = {
    'tickvals': [0.1, 1, 10, 100, 1000],
    'ticktext': ['0.1', '1', '10', '100', '10³'],
    'tickangle': 0,
}


def short_name(name: str) -> str:
    """Return the first term of a base parameter's name, with dots where there are more."""
    first, *more = name.split(' ')
    return f'{first} …' if more and more[0] in '+-' else name


def by_link(names: Sequence[str], links: Sequence[str]) -> dict[str, list[int]]:
    """Return the indices of base parameters by the link of their first term; what names no link comes last."""
    groups: dict[str, list[int]] = {link: [] for link in links}
    for k, name in enumerate(names):
        found = re.match(r'[A-Za-z]+(\d+)', name)
        link = links[int(found[1]) - 1] if found and 0 < int(found[1]) <= len(links) else 'other'
        groups.setdefault(link, []).append(k)
    return {link: members for link, members in groups.items() if members}


def link_figure(subject: Subject) -> Figure:
    """Return how far the data moved each base parameter, and how well they determine it, one chart per link."""
    result, prior, truth = subject.result, subject.prior, subject.true_base
    names, units, values, std = result.base_names, result.base_units, result.base_values, result.base_std
    share = np.clip(relative_deviation(values, std), 1e-2, 1e4)
    moved = _stretched((values - prior) / std)
    charts = []
    for link, members in by_link(names, result.link_names).items():
        labels = [short_name(names[k]) for k in members]
        full = [
            f'{names[k]}<br>found {number(values[k], 4)} ± {number(std[k], 2)} {unit(units[k])}'
            f'<br>described {number(prior[k], 4)} {unit(units[k])}'
            for k in members
        ]
        levels = [share_level(share[k]) for k in members]
        traces = [
            _bars(moved[members], full, '#0072b2', 'x'),
            _bars(share[members], full, [_LEVEL_COLOURS[level] for level in levels], 'x2'),
        ]
        if truth is not None:
            traces.append(intervals('truth', _stretched((truth - prior) / std)[members], 'true', full))
        open_ = sum(level == 'bad' for level in levels)
        largest = float(np.abs((values - prior) / std)[members].max())
        charts.append(
            Chart(
                title=link,
                note=f'{len(members) - open_} of {len(members)} determined',
                alt=f'{link}: {len(members)} base parameters; the data moved them by up to {number(largest, 2)} '
                f'deviations from the robot description; {open_} are not determined. The table gives the numbers.',
                traces=tuple(traces),
                layout={
                    'xaxis': axis('change [σ]', domain=[0.0, 0.47], **_STRETCHED_TICKS),
                    'xaxis2': axis('σ [% of value]', domain=[0.53, 1.0], log=True, limits=(0.05, 2e3), **_SHARE_TICKS),
                    'yaxis': axis(rows=labels, showgrid=False),
                    'shapes': [rule('x', float(_stretched(np.array(sign * NORMAL_95)))) for sign in (-1.0, 1.0)],
                    'bargap': 0.35,
                },
                height=90 + 22 * max(len(members), 3),
            )
        )
    return Figure(
        name='parameters',
        caption='Base parameters by link: what the data changed, and how well they know it',
        reading='Left: found less described, in standard deviations; between the dotted lines the data do not '
        'contradict the robot description. Right: the standard deviation in percent of the value; green is known to '
        f'{_GOOD_SHARE:.0f} %, amber to {FAIR_SHARE:.0f} %, red is not determined. Point at a bar for the whole name.'
        + (' Crosses: the true values.' if truth is not None else ''),
        charts=tuple(charts),
    )


def _stretched(value: Array) -> Array:
    """Return sign(z) log10(1 + |z|): a scale on which 2 and 2000 deviations are both read."""
    value = np.nan_to_num(np.clip(value, -1e6, 1e6))
    return np.asarray(np.sign(value) * np.log10(1.0 + np.abs(value)))


_STRETCHED_TICKS: Trace = {
    'tickvals': [float(_stretched(np.array(z))) for z in (-1e5, -1e3, -10.0, 0.0, 10.0, 1e3, 1e5)],
    'ticktext': ['−10⁵', '−10³', '−10', '0', '10', '10³', '10⁵'],
    'tickangle': 0,
}


def _bars(x: Array, text: Sequence[str], colour: str | Sequence[str], along: str) -> Trace:
    return {
        'type': 'bar',
        'orientation': 'h',
        'x': x,
        'y': np.arange(len(x)),
        'xaxis': along,
        'customdata': list(text),
        'hovertemplate': '%{customdata}<extra></extra>',
        'marker': {'color': colour if isinstance(colour, str) else list(colour)},
    }


def correlation_figure(names: Sequence[str], correlation: Array) -> Figure:
    """Return a map of how the errors of p parameters go together; the correlation has the shape (p, p)."""
    labels = [short_name(name) for name in names]
    count = len(names)
    strong = int((np.abs(correlation[np.triu_indices(count, 1)]) > STRONG_CORRELATION).sum())
    rows: Trace = {
        'tickvals': list(range(count)),
        'ticktext': labels,
        'showgrid': False,
        'tickfont': {'size': 9},
        'ticks': '',
    }
    chart = Chart(
        title=f'{count} parameters',
        note=f'{strong} {"pair" if strong == 1 else "pairs"} above {STRONG_CORRELATION:g}',
        traces=(
            {
                'type': 'heatmap',
                'z': correlation,
                'customdata': [[f'{a}<br>{b}' for b in names] for a in names],
                'hovertemplate': '%{customdata}<br>correlation %{z:.2f}<extra></extra>',
                'zmin': -1,
                'zmax': 1,
                'colorscale': [[0, '#a34a00'], [0.25, '#efb98a'], [0.5, '#ffffff'], [0.75, '#8fc1e3'], [1, '#00507d']],
                'colorbar': {'thickness': 10, 'outlinewidth': 0, 'tickvals': [-1, -0.5, 0, 0.5, 1]},
            },
        ),
        layout={
            'xaxis': axis(tickangle=-90, automargin=True, **rows),
            'yaxis': axis(autorange='reversed', automargin=True, **rows),
        },
        height=130 + 13 * count,
    )
    return Figure(
        name='correlation',
        caption='Correlation of the parameters',
        reading='Dark off the diagonal: the motion tells only a combination of the two apart, so both deviations are '
        'large although their common effect is known. Another motion separates them.',
        charts=(chart,),
        wide=True,
    )


def interval_chart(title: str, rows: Sequence[str], of: str, values: Array, std: Array) -> Chart:
    """Return one chart of values with 95 % intervals, a row for each, arrays of shape (p,), in a unit as printed."""
    half = np.where(np.isfinite(std), NORMAL_95 * std, np.nan)
    clear = int(np.sum(np.abs(values) > half))
    return Chart(
        title=title,
        note=f'{clear} of {len(rows)} differ from 0',
        alt=f'{title}: {rows[0]} to {rows[-1]}, from {number(values.min())} to '
        f'{number(values.max())} {of}; {clear} of {len(rows)} clearly differ from zero.',
        traces=(intervals('predicted', values, 'found, 95 %', rows, half),),
        layout={'xaxis': axis(of), 'yaxis': axis(rows=rows, showgrid=False), 'shapes': [rule('x', 0.0)]},
        height=75 + 24 * max(len(rows), 3),
    )


def parameter_table(subject: Subject) -> Table:
    """Return all base parameters by link, with a light for how well each is determined."""
    result, prior, truth = subject.result, subject.prior, subject.true_base
    found, std = result.base_values, result.base_std
    share = relative_deviation(found, std)
    rows: list[tuple[str, ...]] = []
    levels: list[Level | None] = []
    for link, members in by_link(result.base_names, result.link_names).items():
        for k in members:
            cells = [number(prior[k], 4), number(found[k], 4), number(std[k], 2)]
            cells += [] if truth is None else [number(truth[k], 4)]
            cells += [_share(share[k]), unit(result.base_units[k])]
            rows.append((result.base_names[k], link, *cells))
            levels.append(share_level(share[k]))
    heads = ['Described', 'Found', 'Deviation [1 σ]', *([] if truth is None else ['True']), 'Relative [1 σ]']
    return Table(
        caption='Base parameters',
        columns=(*words('Parameter', 'Link'), *quantities(*heads), *words('Unit')),
        rows=tuple(rows),
        levels=tuple(levels),
        reading=f'Green: known to {_GOOD_SHARE:.0f} % or better (1 σ). Amber: to {FAIR_SHARE:.0f} %. Red: the data '
        'do not determine it; do not use it on its own.',
    )


def relative_deviation(values: Array, std: Array) -> Array:
    """Return 100 std / |value| [%], infinite for a value of zero; all of shape (p,)."""
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.nan_to_num(100.0 * std / np.abs(values), nan=np.inf, posinf=np.inf)


def share_level(share: float) -> Level:
    """Return the traffic light of a relative deviation [%]."""
    return 'good' if share <= _GOOD_SHARE else 'caution' if share <= FAIR_SHARE else 'bad'


def _share(share: float) -> str:
    return '> 1000 %' if share > 1000.0 else '< 0.1 %' if share < 0.1 else percent(share)
