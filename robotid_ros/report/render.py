# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A report written as one HTML page that needs nothing else: no script, no font, no request."""

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from robotid_ros import __version__
from robotid_ros.files import write_text
from robotid_ros.report.chart import Band, Chart, Line, Rule, Series
from robotid_ros.report.content import Fact, Figure, Item, Level, Report, Section, Table, Verdict
from robotid_ros.report.drawing import chart_svg
from robotid_ros.report.palette import STYLES

__all__ = ['render_report', 'write_report']

_SHORT = 24  # characters of a row's name that fit into one line on a phone
_LIGHTS: dict[Level, tuple[str, str]] = {  # word for those who see no colour, shape for those who skim
    'good': ('Green', '<circle cx="12" cy="12" r="11"/><path d="M7 12.5l3.4 3.4L17 9"/>'),
    'caution': (
        'Amber',
        '<path class="s" d="M12 1.5L23.5 22H.5z"/><path d="M12 9v5.2"/><circle class="dot" cx="12" cy="18" r="1.5"/>',
    ),
    'bad': ('Red', '<path class="s" d="M7.4 1h9.2L23 7.4v9.2L16.6 23H7.4L1 16.6V7.4z"/><path d="M8 8l8 8M16 8l-8 8"/>'),
}


def write_report(report: Report, path: str | Path) -> None:
    """Write a report as one self-contained HTML file.

    Parameters
    ----------
    report : Report
    path : str or Path

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    DataError
        If the file cannot be written.
    """
    write_text(path, render_report(report))


def render_report(report: Report) -> str:
    """Return a report as the text of one HTML page.

    Raises
    ------
    MissingDependencyError
        If matplotlib is not installed.
    """
    templates = files('robotid_ros.report') / 'templates'
    page = Template((templates / 'report.html').read_text(encoding='utf-8'))
    sections = [_section(section, k + 1) for k, section in enumerate(report.sections)]
    links = [f'<a href="#section-{k + 1}">{escape(s.title)}</a>' for k, s in enumerate(report.sections)]
    return page.substitute(
        title=escape(f'{report.title} – {report.kind.lower()}'),
        style=(templates / 'report.css').read_text(encoding='utf-8'),
        kind=escape(report.kind),
        name=escape(report.title),
        summary=escape(report.summary),
        verdict=_verdict(report.verdict),
        facts=''.join(_fact(fact) for fact in report.facts),
        contents=''.join(links),
        sections='\n'.join(sections),
        version=escape(__version__),
    )


def _light(level: Level) -> str:
    word, shape = _LIGHTS[level]
    return f'<svg class="light {level}" viewBox="0 0 24 24" role="img" aria-label="{word} light">{shape}</svg>'


def _verdict(verdict: Verdict) -> str:
    reasons = ''.join(f'<p>{escape(reason)}</p>' for reason in verdict.reasons)
    return (
        f'<div class="verdict {verdict.level}">{_light(verdict.level)}'
        f'<div><p class="headline">{escape(verdict.headline)}</p>{reasons}</div></div>'
    )


def _fact(fact: Fact) -> str:
    note = f'<dd class="note">{escape(fact.note)}</dd>' if fact.note else ''
    return f'<div><dt>{escape(fact.label)}</dt><dd>{escape(fact.value)}</dd>{note}</div>'


def _section(section: Section, index: int) -> str:
    items = '\n'.join(_item(item, f'{index}-{k + 1}') for k, item in enumerate(section.items))
    return f'<section id="section-{index}"><h2>{escape(section.title)}</h2>\n{items}\n</section>'


def _item(item: Item, number: str) -> str:
    if isinstance(item, Figure):
        return _figure(item, f'figure-{number}')
    if isinstance(item, Table):
        return _table(item)
    return f'<p>{escape(item)}</p>'


def _figure(figure: Figure, name: str) -> str:
    panels = ''.join(_panel(chart, f'{name}-{k + 1}') for k, chart in enumerate(figure.charts))
    return (
        f'<figure id="{name}"><figcaption><h3>{escape(figure.caption)}</h3>'
        f'<p class="reading">{escape(figure.reading)}</p>{_legend(figure.charts)}</figcaption>'
        f'<div class="panels">{panels}</div></figure>'
    )


def _panel(chart: Chart, name: str) -> str:
    note = f'<span>{escape(chart.note)}</span>' if chart.note else ''
    return (
        f'<div class="panel"><p class="panel-title"><b>{escape(chart.title)}</b>{note}</p>'
        f'<div class="chart" role="img" aria-label="{escape(chart.alt)}">{chart_svg(chart, name + "-")}</div></div>'
    )


def _legend(charts: Sequence[Chart]) -> str:
    entries: dict[str, Series] = {}
    for chart in charts:
        for series in chart.series:
            if series.label:
                entries.setdefault(series.label, series)
    if not entries:
        return ''
    items = ''.join(f'<li>{_swatch(series)}{escape(label)}</li>' for label, series in entries.items())
    return f'<ul class="legend">{items}</ul>'


def _swatch(series: Series) -> str:
    style = STYLES[series.role]
    fill = 'none' if style.hollow else style.colour
    if isinstance(series, Line | Rule):
        dashes = {'-': '', '--': '5 3', '-.': '6 3 1.5 3', ':': '1.5 2.5'}[style.dash]
        drawn = f'<path d="M1 6H23" stroke="{style.colour}" stroke-width="2.4" stroke-dasharray="{dashes}"/>'
    elif isinstance(series, Band):
        drawn = f'<path d="M2 1.5H22V10.5H2Z" fill="{style.colour}" opacity="0.3"/>'
    elif style.marker == 'x':
        drawn = f'<path d="M8 2l8 8M16 2l-8 8" stroke="{style.colour}" stroke-width="2.2"/>'
    elif style.marker == 'D':
        drawn = f'<path d="M12 1.5L16.5 6L12 10.5L7.5 6z" fill="{fill}" stroke="{style.colour}" stroke-width="1.6"/>'
    elif style.marker == 's':
        drawn = f'<path d="M8 2h8v8H8z" fill="{fill}" stroke="{style.colour}"/>'
    else:
        drawn = f'<circle cx="12" cy="6" r="3.6" fill="{fill}" stroke="{style.colour}"/>'
    return f'<svg viewBox="0 0 24 12" aria-hidden="true">{drawn}</svg>'


def _table(table: Table) -> str:
    heads = ''.join(
        f'<th scope="col"{"" if column.numeric else " class=text"}>{escape(column.name)}'
        + (f'<small>{escape(column.unit)}</small>' if column.unit else '')
        + '</th>'
        for column in table.columns
    )
    levels: Sequence[Level | None] = table.levels or [None] * len(table.rows)
    rows = ''.join(_row(table, row, level) for row, level in zip(table.rows, levels, strict=True))
    reading = f'<p class="reading">{escape(table.reading)}</p>' if table.reading else ''
    return (
        f'<div class="table"><h3>{escape(table.caption)}</h3>{reading}'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.caption)}">'
        f'<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div></div>'
    )


def _row(table: Table, row: Sequence[str], level: Level | None) -> str:
    light = '' if level is None else _light(level)
    cells = ''.join(
        f'<td{"" if column.numeric else " class=text"}>{escape(cell)}</td>'
        for column, cell in zip(table.columns[1:], row[1:], strict=True)
    )
    short = ' class="short"' if len(row[0]) <= _SHORT else ''
    return f'<tr><th scope="row"{short}>{light}{escape(row[0])}</th>{cells}</tr>'
