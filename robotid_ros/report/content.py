# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The contents of a report, independent of their form: charts, tables, figures and a verdict.

Charts are as plotly.js takes them (https://plotly.com/javascript/reference), traces and axes as plain mappings; the
browser draws them. Colours: M. Okabe, K. Ito, "Color Universal Design" (2008). Dash and marker differ too, so that a
curve can be told without its colour.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.report.wording import number

Role: TypeAlias = Literal['measured', 'predicted', 'residual', 'prior', 'truth', 'limit']
Trace: TypeAlias = dict[str, Any]

_COLOURS: dict[Role, str] = {
    'measured': '#848e9a',
    'predicted': '#0072b2',
    'residual': '#d55e00',
    'prior': '#b07a00',
    'truth': '#007d5d',
    'limit': '#8b5a83',
}
_DASHES: dict[Role, str] = {'prior': 'dot', 'truth': 'dashdot', 'limit': 'dot'}
_MARKERS: dict[Role, str] = {'prior': 'diamond-open', 'truth': 'x-thin-open'}
_SERIES = ('#0072b2', '#d55e00', '#007d5d', '#b07a00', '#8b5a83', '#4aa3d8', '#5b6573', '#a3314a', '#6b8e23', '#24292f')

_POINTS = 3000  # of a curve, several for each pixel of a wide screen, so that zooming in shows more
_DOTS = 800  # SVG draws each dot as an element; a page with some thousand still scrolls smoothly


class Chart:
    """Two axes, each an axis or its name with unit, what is drawn over them, and what else plotly.js's layout may hold.

    ``note`` holds a few figures that belong to it. ``alt`` says what it shows beyond title and note, in a sentence, for
    those who do not see it. The height is in px.

    What is drawn has a role, which gives its colour, and a label; ``more`` is passed on to plotly.js.
    """

    def __init__(
        self,
        title: str,
        x: str | Trace,
        y: str | Trace,
        *,
        note: str = '',
        alt: str = '',
        height: int = 290,
        **layout: Any,
    ) -> None:
        axes = {key: axis(each) if isinstance(each, str) else each for key, each in (('xaxis', x), ('yaxis', y))}
        self.title, self.layout, self.traces = title, {**axes, 'shapes': [], **layout}, list[Trace]()
        self.note, self.alt, self.height = note, alt, height

    def _scatter(self, x: Array, y: Array, label: str, **style: Any) -> None:
        self.traces.append({'type': 'scatter', 'x': x, 'y': y, 'name': label, **style})

    def line(self, role: Role | int, x: Array, y: Array, label: str, dash: str = '', **more: Any) -> None:
        """Draw a curve through points; ``x`` and ``y`` have shape (N,). Of long ones only the extremes are kept.

        One that has no role, such as that of one joint, has the colour of its number.
        """
        colour = _SERIES[role % len(_SERIES)] if isinstance(role, int) else _COLOURS[role]
        usual = 'solid' if isinstance(role, int) else _DASHES.get(role, 'solid')
        style = {'color': colour, 'width': 1.4, 'dash': dash or usual}
        self._scatter(*envelope(x, y), label, **{'mode': 'lines', 'line': style, **more})

    def dots(self, role: Role, x: Array, y: Array, label: str, size: float = 3.5, **more: Any) -> None:
        """Draw a cloud of points; ``x`` and ``y`` have shape (N,). Of many, evenly spread ones are kept."""
        keep = spread(len(x))
        marker = {'color': _COLOURS[role], 'size': size, 'opacity': 0.55, 'symbol': _MARKERS.get(role, 'circle')}
        self._scatter(x[keep], y[keep], label, mode='markers', marker=marker, **more)

    def band(self, role: Role, x: Array, low: Array, high: Array, label: str) -> None:
        """Draw the area between two curves over ``x``; all have shape (N,)."""
        around, ends = np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]])
        colour = {'fillcolor': f'{_COLOURS[role]}38', 'line': {'width': 0}}
        self._scatter(around, ends, label, mode='lines', fill='toself', hoverinfo='skip', **colour)

    def intervals(
        self, role: Role, values: Array, label: str, rows: Sequence[str], half: Array | None = None, shift: float = 0.0
    ) -> None:
        """Draw a marker on each named row, with a bar of ``half`` on either side; both have shape (N,).

        The marker stands ``shift`` rows above its row.
        """
        symbol = _MARKERS.get(role, 'circle')
        more: Trace = {'marker': {'color': _COLOURS[role], 'size': 7, 'symbol': symbol, 'line': {'width': 1.5}}}
        if half is not None:
            more['error_x'] = {'type': 'data', 'array': half, 'color': _COLOURS[role], 'thickness': 1.3, 'width': 3}
        said = '%{text}: %{x:.5g}<extra>%{fullData.name}</extra>'
        at = np.arange(float(len(values))) - shift
        self._scatter(values, at, label, mode='markers', text=list(rows), hovertemplate=said, **more)

    def rule(self, along: Literal['x', 'y'], at: float, role: Role = 'limit', **more: Any) -> None:
        """Draw a straight line across the whole chart, at one value of an axis."""
        this, other = ('x', 'y') if along == 'x' else ('y', 'x')
        ends: Trace = {f'{this}0': at, f'{this}1': at, f'{this}ref': along}
        ends |= {f'{other}0': 0, f'{other}1': 1, f'{other}ref': 'paper'}
        style = {'color': _COLOURS[role], 'width': 1, 'dash': 'dot'}
        self.layout['shapes'].append({'type': 'line', **ends, 'line': style, **more})


def axis(
    title: str = '',
    *,
    log: bool = False,
    limits: tuple[float, float] | None = None,
    rows: Sequence[str] = (),
    **more: Any,
) -> Trace:
    """Return an axis: its name with unit, its scale, and its range where it is not that of the data.

    With ``rows``, the axis is a list of names, the first on top.
    """
    result: Trace = {'title': {'text': title}, **more}
    if log:
        result |= {'type': 'log', 'dtick': 1, 'exponentformat': 'power'}
    if limits is not None:
        result['range'] = [float(np.log10(x)) for x in limits] if log else [float(x) for x in limits]
    if rows:
        places = {'tickvals': list(range(len(rows))), 'ticktext': list(rows), 'range': [len(rows) - 0.4, -0.6]}
        result |= {'tickmode': 'array', 'automargin': True, 'zeroline': False, **places}
    return result


def envelope(x: Array, y: Array, points: int = _POINTS) -> tuple[Array, Array]:
    """Return the smallest and the largest value of each stretch of a long curve, in their order.

    A curve drawn through them covers the same pixels as one through all points: no peak is lost. Up to ``points`` + 2
    points are returned as they are, x and y of shape (N,); of more, at most that many are left.
    """
    count = len(x)
    if count <= points + 2:
        return x, y
    size = -(-count // (points // 2))
    full = count // size * size
    starts = np.arange(0, full, size)
    blocks = np.asarray(y)[:full].reshape(-1, size)
    tail = np.arange(full, count)
    last = tail[[y[tail].argmin(), y[tail].argmax()]] if len(tail) else tail
    keep = np.unique(
        np.concatenate([starts + blocks.argmin(axis=1), starts + blocks.argmax(axis=1), last, [0, count - 1]])
    )
    return x[keep], y[keep]


def spread(count: int, at_most: int = _DOTS) -> IntArray:
    """Return indices of evenly spread samples of a series of ``count``."""
    if count <= at_most:
        return np.arange(count)
    return np.linspace(0, count - 1, at_most).astype(np.int64)


Level: TypeAlias = Literal['good', 'caution', 'bad']
GOOD_CONDITION, POOR_CONDITION = 30.0, 200.0  # of a column-scaled observation matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to "can I use this?": a traffic light, a few words ("Usable"), and the reasons, a sentence each."""

    level: Level
    headline: str
    reasons: tuple[str, ...]


def usable(gain: Sequence[str], cautions: Sequence[str]) -> Verdict:
    """Return the verdict on a result that can be used, with care where there are cautions."""
    if cautions:
        return Verdict(level='caution', headline='Usable with care', reasons=(*gain, *cautions))
    return Verdict(level='good', headline='Usable', reasons=tuple(gain))


Fact: TypeAlias = tuple[str, str, str]
"""A number that everybody wants to see first: what it is, the number with its unit, what to compare it with or ''."""


def condition_level(scaled: float) -> Level:
    """Return the traffic light of a column-scaled condition number."""
    return 'good' if scaled <= GOOD_CONDITION else 'caution' if scaled <= POOR_CONDITION else 'bad'


def condition_fact(scaled: float, si: float) -> Fact:
    """Return a condition number as a fact, column-scaled and in SI units."""
    return ('Condition number', number(scaled), f'column-scaled; {number(si)} in SI')


class Figure:
    """Charts of one kind side by side, usually one per joint, each over the whole width where they are ``wide``.

    The ``name`` is for programs, ``reading`` one line that says how to read them.
    """

    def __init__(self, name: str, caption: str, reading: str, charts: Iterable[Chart] = (), *, wide: bool = False):
        self.name, self.caption, self.reading = name, caption, reading
        self.charts, self.wide = list(charts), wide

    def chart(self, title: str, x: str | Trace, y: str | Trace, **more: Any) -> Chart:
        """Add a chart and return it, to be drawn on; see :class:`Chart`."""
        self.charts.append(Chart(title, x, y, **more))
        return self.charts[-1]


class Table:
    """Rows of text; the first cell names the row.

    Heads that begin with # are those of numbers; what stands in brackets is printed below the name: '#Mass [kg]'. The
    ``columns`` are their names, what is printed below, and whether they hold numbers. ``levels`` are the traffic lights
    of the rows, if they have some, ``reading`` is one line that says how to read it.
    """

    def __init__(
        self,
        caption: str,
        heads: Sequence[str],
        rows: Iterable[tuple[str, ...]] = (),
        levels: Iterable[Level | None] = (),
        *,
        reading: str = '',
    ) -> None:
        split = [head.removesuffix(']').partition(' [') for head in heads]
        self.columns = tuple((name.removeprefix('#'), below, name.startswith('#')) for name, _, below in split)
        self.caption, self.reading, self.rows, self.levels = caption, reading, tuple(rows), tuple(levels)

    def add(self, *cells: str, level: Level | None = None) -> None:
        """Add a row and its light."""
        self.rows, self.levels = (*self.rows, cells), (*self.levels, level)


Item: TypeAlias = Figure | Table | str


class Report:
    """A whole report: what was done (kind: "Dynamic identification") with what (title: the robot's name).

    The summary is one paragraph. There is no verdict where there is nothing to judge. A section is a heading with what
    stands under it, where a plain string is a paragraph; one with nothing under it is left out.
    """

    def __init__(
        self,
        kind: str,
        title: str,
        summary: str,
        sections: Mapping[str, Iterable[Item]],
        *,
        facts: Iterable[Fact] = (),
        verdict: Verdict | None = None,
    ) -> None:
        self.kind, self.title, self.summary, self.facts, self.verdict = kind, title, summary, tuple(facts), verdict
        filled = ((heading, tuple(items)) for heading, items in sections.items())
        self.sections = tuple((heading, items) for heading, items in filled if items)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        return tuple(item for _, items in self.sections for item in items if isinstance(item, Figure))
