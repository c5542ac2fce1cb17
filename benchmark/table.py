# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The table of all rows, as text for a terminal and as Markdown for the manual."""

import textwrap
from collections.abc import Sequence
from typing import Any

from benchmark.row import STATES, Row, figures

# What the page begins with, by the beginning of each row's name.
SUMMARY = (
    'UR10 recording, first half to second half, RMSE per joint, defaults, against FIGAROH',
    'torque error on another trajectory: and flexible joints',
    '60 standard columns, full_regressor',
    'generated C, one call',
    'processor time of the recorder at 1 kHz',
)
HEAD = ('area', 'what', 'anchor', 'its figure', 'this package', 'ratio', 'to reach', '')


def cells(row: Row) -> tuple[str, ...]:
    """Return the columns of HEAD."""
    unit = f' {row.unit}' if row.unit else ''
    name, value = '', ''
    if row.anchor is not None:
        name = f'{row.anchor.name} ({row.anchor.source})'
        value = f'{figures(row.anchor.values)}{unit}' if row.anchor.values else ''
    own = f'{figures(row.values)}{unit}' if row.values else (row.failure or row.note)
    ratio = '' if row.ratio is None else figures((row.ratio,))
    return row.area, row.what, name, value, own, ratio, '' if row.bar is None else str(row.bar), row.state


def text(rows: Sequence[Row], width: int = 160) -> str:
    """Return the table with wrapped columns."""
    body = [cells(row) for row in rows]
    natural = [max(len(line[k]) for line in (*body, HEAD)) for k in range(len(HEAD))]
    limits = [14, 44, 40, 20, 24, 7, 20, 8]
    widths = [min(a, b) for a, b in zip(natural, limits, strict=True)]
    lines = []
    for k, line in enumerate((HEAD, *body)):
        parts = [textwrap.wrap(cell, size) or [''] for cell, size in zip(line, widths, strict=True)]
        for level in range(max(map(len, parts))):
            row = [part[level] if level < len(part) else '' for part in parts]
            lines.append('  '.join(f'{cell:<{size}}' for cell, size in zip(row, widths, strict=True)).rstrip())
        if k == 0:
            lines.append('-' * min(width, sum(widths) + 2 * len(widths)))
    return '\n'.join([*lines, '', summary(rows)])


def summary(rows: Sequence[Row]) -> str:
    """Return how many rows are in which state."""
    counts = {state: sum(row.state == state for row in rows) for state in STATES}
    return ', '.join(f'{count} {state}' for state, count in counts.items() if count) or 'no rows'


def markdown(results: dict[str, Any]) -> str:
    """Return what the manual shows of a results file: machine, table by area, remarks."""
    rows = [Row.of(entry) for entry in results['rows']]
    machine = results['machine']
    versions = ', '.join(f'{name} {version}' for name, version in machine['packages'].items())
    states = summary(rows)
    quick = 'A quick run, few repetitions: ' if results['quick'] else ''
    about = (
        f'{quick}{machine["date"]}, commit `{machine["commit"]}`: {machine["cpu"]}, {machine["cores"]} cores, '
        f'{machine["memory"]} of memory, {machine["system"]}, Python {machine["python"]}, {versions}, '
        f'{machine["blas"]}, {machine["threads"]} thread; load at the start {machine["load_at_start"]:.1f}, '
        f'{results["seconds"] / 60.0:.0f} minutes. {states[0].upper()}{states[1:]}.'
    )
    lines = [about]
    first = [row for what in SUMMARY for row in rows if row.what.startswith(what)]
    lines += _section('In short', first)
    own = [row for row in rows if not row.quoted]
    for area in dict.fromkeys(row.area for row in own):
        lines += _section(area.capitalize().replace('_', '-'), [row for row in own if row.area == area], remarks=True)
    lines += _section('Quoted: the other side was not run here', [row for row in rows if row.quoted], remarks=True)
    return '\n'.join(lines).rstrip() + '\n'


def _section(title: str, rows: Sequence[Row], *, remarks: bool = False) -> list[str]:
    if not rows:
        return []
    lines = ['', f'### {title}', '', _markdown_row(HEAD[1:]), '|---' * 7 + '|']
    lines += [_markdown_row(cells(row)[1:]) for row in rows]
    if remarks:
        known = [(row.what, ', '.join(filter(None, (row.runs, row.note)))) for row in rows if row.values]
        lines += ['', *(f'- {what}: {text}' for what, text in known if text)]
    return lines


def _markdown_row(columns: Sequence[str]) -> str:
    return '| ' + ' | '.join(column.replace('|', '\\|') for column in columns) + ' |'
