# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Charts as plotly.js takes them: traces and axes as plain mappings.

The browser draws them (https://plotly.com/javascript/reference). Colours: M. Okabe, K. Ito, "Color Universal Design"
(2008). Dash and marker differ too, so that a curve can be told without its colour.
"""

from collections.abc import Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart: traces and layout (axes and shapes) of plotly.js, whose arrays are numpy's; the height is in px.

    ``note`` holds a few figures that belong to it. ``alt`` says what it shows beyond title and note, in a sentence, for
    those who do not see it.
    """

    title: str
    traces: tuple[Trace, ...]
    layout: Trace
    note: str = ''
    alt: str = ''
    height: int = 290


def chart(
    title: str,
    x: str | Trace,
    y: str | Trace,
    *traces: Trace,
    note: str = '',
    alt: str = '',
    height: int = 290,
    **layout: Any,
) -> Chart:
    """Return traces over two axes, each an axis or its name with unit, and what else plotly.js's layout may hold."""
    axes = {key: axis(each) if isinstance(each, str) else each for key, each in (('xaxis', x), ('yaxis', y))}
    return Chart(title=title, traces=traces, layout={**axes, **layout}, note=note, alt=alt, height=height)


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
