# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The contents of a report, independent of their form: charts, tables, figures, numbers and sentences.

Charts are as plotly.js takes them (https://plotly.com/javascript/reference), traces and axes as plain mappings; the
browser draws them. Colours: M. Okabe, K. Ito, "Color Universal Design" (2008). Dash and marker differ too, so that a
curve can be told without its colour.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, IntArray

Role: TypeAlias = Literal['measured', 'predicted', 'residual', 'prior', 'truth', 'limit', 'accent']
Trace: TypeAlias = dict[str, Any]

_COLOURS: dict[Role, str] = {
    'measured': '#848e9a',
    'predicted': '#0072b2',
    'residual': '#d55e00',
    'prior': '#b07a00',
    'truth': '#007d5d',
    'limit': '#8b5a83',
    'accent': '#5b6573',
}
_DASHES: dict[Role, str] = {'prior': 'dot', 'truth': 'dashdot', 'limit': 'dot'}
_MARKERS: dict[Role, str] = {'prior': 'diamond-open', 'truth': 'x-thin-open', 'accent': 'square'}
_SERIES = ('#0072b2', '#d55e00', '#007d5d', '#b07a00', '#8b5a83', '#4aa3d8', '#5b6573', '#a3314a', '#6b8e23', '#24292f')

_POINTS = 3000  # of a curve, several for each pixel of a wide screen, so that zooming in shows more
_DOTS = 800  # SVG draws each dot as an element; a page with some thousand still scrolls smoothly


class Chart:
    """Traces over two axes, each an axis or its name with unit, and what else plotly.js's layout may hold.

    ``note`` holds a few figures that belong to it. ``alt`` says what it shows beyond title and note, in a sentence, for
    those who do not see it. The height is in px.
    """

    def __init__(
        self,
        title: str,
        x: str | Trace,
        y: str | Trace,
        *traces: Trace,
        note: str = '',
        alt: str = '',
        height: int = 290,
        **layout: Any,
    ) -> None:
        axes = {key: axis(each) if isinstance(each, str) else each for key, each in (('xaxis', x), ('yaxis', y))}
        self.title, self.traces, self.layout = title, traces, {**axes, **layout}
        self.note, self.alt, self.height = note, alt, height


def line(role: Role, x: Array, y: Array, label: str, **more: Any) -> Trace:
    """Return a curve through points; ``x`` and ``y`` have shape (N,). Of long ones only the extremes are kept.

    ``more`` is passed on to plotly.js, here and below.
    """
    x, y = envelope(x, y)
    style = {'color': _COLOURS[role], 'width': 1.4, 'dash': _DASHES.get(role, 'solid')}
    return {'type': 'scatter', 'mode': 'lines', 'x': x, 'y': y, 'name': label, 'line': style, **more}


def curve(number: int, x: Array, y: Array, label: str, **more: Any) -> Trace:
    """Return a curve that has no role, such as that of one joint, in the colour of its number."""
    return line('accent', x, y, label, line={'color': _SERIES[number % len(_SERIES)], 'width': 1.4}, **more)


def dots(role: Role, x: Array, y: Array, label: str, size: float = 3.5, **more: Any) -> Trace:
    """Return a cloud of points; ``x`` and ``y`` have shape (N,). Of many, evenly spread ones are kept."""
    keep = spread(len(x))
    marker = {'color': _COLOURS[role], 'size': size, 'opacity': 0.55, 'symbol': _MARKERS.get(role, 'circle')}
    return {'type': 'scatter', 'mode': 'markers', 'x': x[keep], 'y': y[keep], 'name': label, 'marker': marker, **more}


def band(role: Role, x: Array, low: Array, high: Array, label: str) -> Trace:
    """Return the area between two curves over ``x``; all have shape (N,)."""
    outline = {'x': np.concatenate([x, x[::-1]]), 'y': np.concatenate([high, low[::-1]])}
    colour = {'fillcolor': f'{_COLOURS[role]}38', 'line': {'width': 0}}
    return {
        'type': 'scatter',
        'mode': 'lines',
        **outline,
        'fill': 'toself',
        'name': label,
        'hoverinfo': 'skip',
        **colour,
    }


def intervals(
    role: Role, values: Array, label: str, rows: Sequence[str], half: Array | None = None, shift: float = 0.0
) -> Trace:
    """Return a marker on each named row, with a bar of ``half`` on either side; both have shape (N,).

    The marker stands ``shift`` rows above its row.
    """
    trace: Trace = {
        'type': 'scatter',
        'mode': 'markers',
        'x': values,
        'y': np.arange(len(values)) - shift,
        'text': list(rows),
        'name': label,
        'hovertemplate': '%{text}: %{x:.5g}<extra>%{fullData.name}</extra>',
        'marker': {'color': _COLOURS[role], 'size': 7, 'symbol': _MARKERS.get(role, 'circle'), 'line': {'width': 1.5}},
    }
    if half is not None:
        trace['error_x'] = {'type': 'data', 'array': half, 'color': _COLOURS[role], 'thickness': 1.3, 'width': 3}
    return trace


def rule(along: Literal['x', 'y'], at: float, role: Role = 'limit') -> Trace:
    """Return a straight line across the whole chart, at one value of an axis."""
    this, other = ('x', 'y') if along == 'x' else ('y', 'x')
    ends = {f'{this}0': at, f'{this}1': at, f'{this}ref': along, f'{other}0': 0, f'{other}1': 1, f'{other}ref': 'paper'}
    return {'type': 'line', **ends, 'line': {'color': _COLOURS[role], 'width': 1, 'dash': 'dot'}}


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


_SUPERSCRIPT = str.maketrans('0123456789-', '⁰¹²³⁴⁵⁶⁷⁸⁹⁻')
_MINUS = '−'
Level: TypeAlias = Literal['good', 'caution', 'bad']
GOOD_CONDITION, POOR_CONDITION = 30.0, 200.0  # of a column-scaled observation matrix


def number(value: float, digits: int = 3) -> str:
    """Return a value with some significant digits: 4.06, −0.0312, 1.2·10⁻⁵, ∞; a dash for NaN."""
    if math.isnan(value):
        return '–'
    if math.isinf(value):
        return '∞' if value > 0 else f'{_MINUS}∞'
    if value == 0.0:
        return '0'
    mantissa, exponent = f'{value:.{digits - 1}e}'.split('e')
    power = int(exponent)
    if -5 < power < 6:
        text = f'{float(f"{mantissa}e{power}"):.{max(digits - 1 - power, 0)}f}'
    else:
        text = f'{mantissa}·10{str(power).translate(_SUPERSCRIPT)}'
    return text.replace('-', _MINUS, 1) if text.startswith('-') else text


def percent(value: float, digits: int = 1) -> str:
    """Return a share in percent: 97.3 %."""
    if not math.isfinite(value):
        return number(value)
    return f'{value:.{digits}f} %'.replace('-', _MINUS)


def integer(value: int) -> str:
    """Return a count with narrow spaces between thousands."""
    return f'{value:,}'.replace(',', '\u202f')


def unit(text: str) -> str:
    """Return a unit as it is printed: N·m·s/rad for N*m*s/rad, kg·m² for kg*m^2."""
    return text.replace('*', '·').replace('^2', '²').replace('^3', '³')


def units_of(joint_type: str) -> tuple[str, str, str]:
    """Return the units of torque, speed and position of a joint, as printed."""
    return ('N', 'm/s', 'm') if joint_type == 'prismatic' else ('N·m', 'rad/s', 'rad')


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a stop at its end."""
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '!', '?')) else '.')


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first of some names, and how many more there are: 'a, b and 3 more'."""
    return ', '.join(names[:most]) + (f' and {len(names) - most} more' if len(names) > most else '')


def friction_label(name: str) -> str:
    """Return a friction model's name as people say it: Coulomb + viscous + offset."""
    words = name.replace('daemi_heimann', 'Daemi-Heimann').replace('_', '+').split('+')
    return ' + '.join(word.capitalize() if word in ('coulomb', 'stribeck') else word for word in words)


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

    def draw(self, title: str, x: str | Trace, y: str | Trace, *traces: Trace, **more: Any) -> None:
        """Add a chart; see :class:`Chart`."""
        self.charts.append(Chart(title, x, y, *traces, **more))


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
