# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A report as one HTML page that needs nothing else: charts, script and style are inside, nothing is requested."""

import base64
import gzip
import json
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import robotid_ros
from robotid_ros.errors import MissingDependencyError
from robotid_ros.files import write_text
from robotid_ros.report.content import Chart, Item, Level, Report, Table, Verdict

_SHORT = 24  # characters of a row's name that fit into one line on a phone
_LIGHTS: dict[Level, tuple[str, str]] = {  # a word for those who see no colour, and a shape
    'good': ('Green', '<circle cx="12" cy="12" r="11"/><path d="M7 12.5l3.4 3.4L17 9"/>'),
    'caution': (
        'Amber',
        '<path class="s" d="M12 1.5L23.5 22H.5z"/><path d="M12 9v5.2"/><circle class="dot" cx="12" cy="18" r="1.5"/>',
    ),
    'bad': ('Red', '<path class="s" d="M7.4 1h9.2L23 7.4v9.2L16.6 23H7.4L1 16.6V7.4z"/><path d="M8 8l8 8M16 8l-8 8"/>'),
}


def can_draw() -> bool:
    """Return whether plotly and trimesh are installed, which pages need."""
    return find_spec('plotly') is not None and find_spec('trimesh') is not None


def write_report(report: Report, path: str | Path) -> None:
    """Write a report as one self-contained HTML file.

    Raises
    ------
    MissingDependencyError
        If plotly is not installed.
    DataError
        If the file cannot be written.
    """
    write_text(path, render_report(report))


def render_report(report: Report, *, before: str = '', data: Any = None, script: str = '') -> str:
    """Return a report as the text of one HTML page, with the HTML ``before`` between its head and its sections.

    For data and script see :func:`html_page`.

    Raises
    ------
    MissingDependencyError
        If plotly is not installed.
    """
    charts: dict[str, Chart] = {}
    links, sections = '', []
    for k, (title, items) in enumerate(report.sections, 1):
        inside = '\n'.join(_item(item, f'chart-{k}-{number}', charts) for number, item in enumerate(items, 1))
        links += f'<a href="#section-{k}">{escape(title)}</a>'
        sections.append(f'<section id="section-{k}"><h2>{escape(title)}</h2>\n{inside}\n</section>')
    facts = ''
    for label, value, note in report.facts:
        below = f'<dd class="note">{escape(note)}</dd>' if note else ''
        facts += f'<div><dt>{escape(label)}</dt><dd>{escape(value)}</dd>{below}</div>'
    body = (
        f'<header>\n<p class="kind">{escape(report.kind)}</p>\n<h1>{escape(report.title)}</h1>\n'
        f'{_verdict(report.verdict)}\n<p class="summary">{escape(report.summary)}</p>\n'
        f'<dl class="facts">{facts}</dl>\n</header>\n'
        f'<nav aria-label="Contents">{links}</nav>\n{before}<main>\n' + '\n'.join(sections) + '\n</main>'
    )
    return html_page(f'{report.title} – {report.kind.lower()}', body, charts, data=data, script=script)


def html_page(title: str, body: str, charts: Mapping[str, Chart], *, data: Any = None, script: str = '') -> str:
    """Return a page with plotly.js, charts and data inside.

    The body is HTML with an element ``<div class="chart" id=NAME>`` for each chart. ``data`` is what the script, of
    which ``script`` names one more in the ``templates`` folder, gets as ``window.robotid.data``; arrays become typed
    arrays. A MissingDependencyError says that plotly is not installed.
    """
    templates = files('robotid_ros.report') / 'templates'

    def read(name: str) -> str:
        return (templates / name).read_text(encoding='utf-8')

    drawn = {name: {'data': chart.traces, 'layout': chart.layout} for name, chart in charts.items()}
    return Template(read('page.html')).substitute(
        title=escape(title),
        style=read('page.css'),
        body=body,
        library=_library(),
        content=_packed(json.dumps({'charts': drawn, 'data': data}, default=_plain, separators=(',', ':'))),
        script=read('page.js') + (read(script) if script else ''),
        version=escape(robotid_ros.__version__),
    )


@cache
def _library() -> str:
    try:
        from plotly.offline import get_plotlyjs
    except ImportError as cause:
        raise MissingDependencyError.of('plotly', 'plot', 'draw charts') from cause
    return _packed(get_plotlyjs())


def _packed(text: str) -> str:
    """Return a text as base64 of gzip, which every browser since 2023 unpacks: 2 MB for the 5 MB of plotly.js."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _plain(value: Any) -> Any:
    """Return an array in plotly.js's form for typed arrays: seven digits, in a third of the bytes of text."""
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, np.ndarray):
        raise TypeError(f'a page cannot hold {type(value).__name__}')
    kind = 'i4' if value.dtype.kind in 'iu' else 'f4'
    packed = {'dtype': kind, 'bdata': base64.b64encode(value.astype(f'<{kind}').tobytes()).decode()}
    return packed if value.ndim == 1 else {**packed, 'shape': ','.join(map(str, value.shape))}


def _light(level: Level) -> str:
    word, shape = _LIGHTS[level]
    return f'<svg class="light {level}" viewBox="0 0 24 24" role="img" aria-label="{word} light">{shape}</svg>'


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return ''
    reasons = ''.join(f'<p>{escape(reason)}</p>' for reason in verdict.reasons)
    return (
        f'<div class="verdict {verdict.level}">{_light(verdict.level)}'
        f'<div><p class="headline">{escape(verdict.headline)}</p>{reasons}</div></div>'
    )


def _item(item: Item, name: str, charts: dict[str, Chart]) -> str:
    """Return an item as HTML; its charts get names that begin with ``name``, and join the others."""
    if isinstance(item, Table):
        return _table(item)
    if isinstance(item, str):
        return f'<p>{escape(item)}</p>'
    own = {f'{name}-{k}': chart for k, chart in enumerate(item.charts, 1)}
    charts.update(own)
    panels = ''.join(panel(chart, key, item.caption) for key, chart in own.items())
    return (
        f'<figure><figcaption><h3>{escape(item.caption)}</h3><p '
        f'class="reading">{escape(item.reading)}</p></figcaption>'
        f'<div class="panels{" wide" if item.wide else ""}">{panels}</div></figure>'
    )


def panel(chart: Chart, name: str, caption: str = '') -> str:
    """Return the place of a chart: its title, and the element the script draws it into."""
    note = f'<span>{escape(chart.note)}</span>' if chart.note else ''
    alt = chart.alt or '; '.join(filter(None, (f'{caption}, {chart.title}', chart.note)))
    return (
        f'<div class="panel"><p class="panel-title"><b>{escape(chart.title)}</b>{note}</p>'
        f'<div class="chart" id="{name}" role="img" aria-label="{escape(alt)}" style="height:{chart.height}px">'
        '</div></div>'
    )


def _table(table: Table) -> str:
    text = ['' if numeric else ' class=text' for _, _, numeric in table.columns]
    heads = ''
    for (name, below, _), kind in zip(table.columns, text, strict=True):
        heads += f'<th scope="col"{kind}>{escape(name)}{f"<small>{escape(below)}</small>" if below else ""}</th>'
    rows = ''
    for (first, *others), level in zip(table.rows, table.levels or [None] * len(table.rows), strict=True):
        cells = ''.join(f'<td{kind}>{escape(cell)}</td>' for kind, cell in zip(text[1:], others, strict=True))
        short = ' class="short"' if len(first) <= _SHORT else ''
        light = '' if level is None else _light(level)
        rows += f'<tr><th scope="row"{short}>{light}{escape(first)}</th>{cells}</tr>'
    reading = f'<p class="reading">{escape(table.reading)}</p>' if table.reading else ''
    return (
        f'<div class="table"><h3>{escape(table.caption)}</h3>{reading}'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f'<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></div>'
    )
