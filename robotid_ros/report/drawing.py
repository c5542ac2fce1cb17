# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Charts drawn with matplotlib: as SVG for the page, as PNG, SVG or PDF files."""

import io
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.errors import MissingDependencyError
from robotid_ros.files import atomic_file
from robotid_ros.report.chart import Band, Chart, Dots, Intervals, Line, Rule, Series
from robotid_ros.report.content import Figure
from robotid_ros.report.numbers import tick
from robotid_ros.report.palette import GRID, INK, STYLES, Style

__all__ = ['chart_svg', 'save_figure', 'save_figures']

_WIDTH = 5.0  # inches; a panel of the page is about 360 pixels wide, and an inch of SVG is 72 of them
_LEGEND = 0.5  # inches below the charts of a figure that stands alone
_HALF_LETTER = 3.4  # points, of a label of 10.5 points; a little more than a digit takes

_SETTINGS: dict[str, Any] = {
    'svg.fonttype': 'none',
    'svg.hashsalt': 'robotid',
    'path.simplify': False,
    'font.family': ['DejaVu Sans'],
    'font.size': 10.5,
    'axes.edgecolor': '#aeb5be',
    'axes.linewidth': 0.8,
    'axes.labelcolor': INK,
    'axes.labelsize': 10.5,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'axes.axisbelow': True,
    'grid.color': GRID,
    'grid.linewidth': 0.7,
    'xtick.color': '#aeb5be',
    'ytick.color': '#aeb5be',
    'xtick.labelcolor': INK,
    'ytick.labelcolor': INK,
    'xtick.labelsize': 10.5,
    'ytick.labelsize': 10.5,
    'text.color': INK,
    'figure.facecolor': 'white',
}


def _matplotlib() -> Any:
    try:
        import matplotlib.figure
    except ImportError as cause:
        raise MissingDependencyError.of('matplotlib', 'plot', 'draw charts') from cause
    return matplotlib


def chart_svg(chart: Chart, prefix: str) -> str:
    """Return a chart as an ``svg`` element to stand inside a page.

    Parameters
    ----------
    chart : Chart
        Its title and note are left to the page.
    prefix : str
        What makes its identifiers differ from those of the other charts of the page.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_SETTINGS):
        figure = matplotlib.figure.Figure(figsize=(_WIDTH, _WIDTH * chart.height))
        _draw(chart, figure.add_axes(_frame(chart)), dense=True)
        buffer = io.StringIO()
        figure.savefig(buffer, format='svg', metadata={'Date': None, 'Creator': None})
    return _inline(buffer.getvalue(), prefix)


def _frame(chart: Chart) -> tuple[float, float, float, float]:
    """Return left, bottom, width and height of the axes; measuring the labels instead takes as long as drawing."""
    width, height = 72.0 * _WIDTH, 72.0 * _WIDTH * chart.height
    longest = max((len(row) for row in chart.rows), default=0)
    left = 12.0 + 6.6 * longest if chart.rows else 49.0
    bottom, top = 38.0, 19.0 if chart.y.label else 6.0
    return left / width, bottom / height, 1.0 - (left + 8.0) / width, 1.0 - (bottom + top) / height


def save_figure(figure: Figure, path: str | Path, *, columns: int | None = None) -> None:
    """Write a figure to a file of its own.

    Parameters
    ----------
    figure : Figure
    path : str or Path
        Its ending says the format: ``.png``, ``.svg`` or ``.pdf``.
    columns : int, optional
        Charts side by side; by default 3, or as few as there are.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    DataError
        If the file cannot be written.
    """
    matplotlib = _matplotlib()
    count = len(figure.charts)
    wide = min(count, 3) if columns is None else columns
    rows = [figure.charts[k : k + wide] for k in range(0, count, wide)]
    heights = [max(chart.height for chart in row) for row in rows]
    with matplotlib.rc_context({**_SETTINGS, 'svg.fonttype': 'path'}):
        tall = _WIDTH * sum(heights) + 0.35 * len(rows) + 0.4
        canvas = matplotlib.figure.Figure(figsize=(_WIDTH * wide, tall + _LEGEND), layout='constrained')
        # A strip of its own: a legend outside the axes asks for matplotlib 3.7, Ubuntu 24.04 has 3.6.
        charts, strip = canvas.subfigures(2, 1, height_ratios=(tall, _LEGEND))
        axes = charts.subplots(len(rows), wide, squeeze=False, gridspec_kw={'height_ratios': heights})
        for axis in axes.flat[count:]:
            axis.set_axis_off()
        for axis, chart in zip(axes.flat, figure.charts, strict=False):
            _draw(chart, axis, dense=False)
            axis.set_title(chart.title, loc='left', fontsize=11, fontweight='bold')
            axis.set_title(chart.note, loc='right', fontsize=9.5, color='#5b6573')
        charts.suptitle(figure.caption, fontsize=13, fontweight='bold')
        handles = _handles(matplotlib, figure.charts)
        if handles:
            strip.legend(handles=handles, loc='center', ncol=len(handles), frameon=False)
        with atomic_file(path) as file:
            canvas.savefig(file, format=Path(path).suffix.lstrip('.').lower() or 'png', dpi=110)


def _handles(matplotlib: Any, charts: Sequence[Chart]) -> list[Any]:
    from matplotlib.lines import Line2D

    seen: dict[str, Any] = {}
    for chart in charts:
        for series in chart.series:
            if not series.label or series.label in seen:
                continue
            style = STYLES[series.role]
            if isinstance(series, Line | Rule):
                look: dict[str, Any] = {'linestyle': style.dash, 'linewidth': 2.0}
            elif isinstance(series, Band):
                look = {'linestyle': '-', 'linewidth': 7.0, 'alpha': 0.5}
            else:
                fill = 'none' if style.hollow else style.colour
                look = {'linestyle': '', 'marker': style.marker, 'markersize': 6.0, 'markerfacecolor': fill}
            seen[series.label] = Line2D([], [], color=style.colour, label=series.label, **look)
    return list(seen.values())


def _draw(chart: Chart, axes: Any, *, dense: bool) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for series in chart.series:
        _draw_series(series, axes, len(chart.rows), dense=dense)
    axes.set_xlabel(chart.x.label)
    if dense:  # upright above the axis: easier to read, and the chart keeps its width
        axes.annotate(chart.y.label, (0, 1), (2, -2), xycoords='figure fraction', textcoords='offset points', va='top')
    else:
        axes.set_ylabel(chart.y.label)
    for axis, name in ((chart.x, 'x'), (chart.y, 'y')):
        ticks = getattr(axes, f'{name}axis')
        if axis.limits is not None:
            getattr(axes, f'set_{name}lim')(*axis.limits)
        if name == 'y' and chart.rows:
            continue
        if axis.log:
            getattr(axes, f'set_{name}scale')('log')
            ticks.set_minor_formatter(NullFormatter())
        else:
            axes.locator_params(axis=name, nbins=6 if name == 'x' else 5)
        ticks.set_major_formatter(FuncFormatter(_labels(axes, inside=dense and name == 'x')))
    if chart.rows:
        axes.set_yticks(np.arange(len(chart.rows)), chart.rows)
        axes.set_ylim(len(chart.rows) - 0.4, -0.6)
        axes.tick_params(axis='y', length=0)


def _labels(axes: Any, *, inside: bool) -> Callable[[float, int], str]:
    """Return what writes the labels of an axis; a label that the edge of the picture would cut is left out."""

    def label(value: float, _: int) -> str:
        text = tick(value)
        if not inside:
            return text
        place = axes.get_xaxis_transform().transform((value, 0.0))[0] * 72.0 / axes.figure.dpi
        half = _HALF_LETTER * len(text)
        return text if half <= place <= 72.0 * _WIDTH - half else ''

    return label


def _draw_series(series: Series, axes: Any, rows: int, *, dense: bool) -> None:
    style = STYLES[series.role]
    if isinstance(series, Line):
        axes.plot(
            series.x,
            series.y,
            style.dash,
            color=style.colour,
            linewidth=style.width,
            zorder=style.order,
            solid_joinstyle='round',
        )
    elif isinstance(series, Dots):
        _draw_dots(series, style, axes, dense=dense)
    elif isinstance(series, Band):
        axes.fill_between(series.x, series.low, series.high, color=style.colour, alpha=0.22, linewidth=0.0, zorder=1)
    elif isinstance(series, Intervals):
        axes.errorbar(
            series.value,
            np.arange(rows) - series.shift,
            xerr=series.half_width,
            linestyle='none',
            marker=style.marker,
            markersize=4.2,
            markerfacecolor='white' if style.hollow else style.colour,
            color=style.colour,
            elinewidth=1.3,
            capsize=2.0,
            zorder=style.order,
        )
    else:
        draw = axes.axvline if series.axis == 'x' else axes.axhline
        draw(series.at, linestyle=style.dash, color=style.colour, linewidth=style.width, zorder=style.order)


def _draw_dots(series: Dots, style: Style, axes: Any, *, dense: bool) -> None:
    if not dense:
        axes.plot(
            series.x,
            series.y,
            '.',
            color=style.colour,
            markersize=2.6 * series.size,
            markeredgewidth=0.0,
            alpha=0.55,
            zorder=style.order,
        )
        return
    # One path of round-capped strokes without length takes a third of the bytes of as many markers.
    x, y = np.repeat(series.x, 3), np.repeat(series.y, 3).astype(float)
    y[2::3] = np.nan
    axes.plot(
        x, y, color=style.colour, linewidth=1.3 * series.size, solid_capstyle='round', alpha=0.5, zorder=style.order
    )


def save_figures(figures: Iterable[Figure], folder: str | Path, *, suffix: str = '.png') -> list[Path]:
    """Write figures to files named after them, and return their paths.

    Parameters
    ----------
    figures : iterable of Figure
    folder : str or Path
        Made where it does not exist.
    suffix : str
        ``.png``, ``.svg`` or ``.pdf``.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    DataError
        If a file cannot be written.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for figure in figures:
        paths.append(folder / f'{figure.name}{suffix}')
        save_figure(figure, paths[-1])
    return paths


_TAG = re.compile(r'<[^>]*>')
_NUMBER = re.compile(r'-?\d+\.\d{3,}')
_IDENTIFIER = re.compile(r'(\bid="|href="#|url\(#)')
# Its style would hold for the whole page.
_NOISE = re.compile(r'<metadata>.*?</metadata>\s*|<!--.*?-->\s*|<style\b.*?</style>\s*', re.DOTALL)


def _inline(svg: str, prefix: str) -> str:
    """Return the bare element: identifiers made unique, coordinates to a hundredth of a pixel."""
    svg = _NOISE.sub('', svg[svg.index('<svg') :])
    head, body = svg.split('>', 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    assert box is not None
    body = _TAG.sub(lambda tag: _NUMBER.sub(_round, _IDENTIFIER.sub(rf'\g<1>{prefix}', tag[0])), body)
    body = re.sub(r'\s*\n\s*', '\n', body).replace('xlink:href', 'href')
    return f'<svg viewBox="{box[1]}" aria-hidden="true">{body}'.strip()


def _round(match: re.Match[str]) -> str:
    return f'{float(match[0]):.2f}'.rstrip('0').rstrip('.')
