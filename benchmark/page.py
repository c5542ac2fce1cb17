# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Puts the table of the results file into the manual, between its two marks: ``python -m benchmark.page``."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmark.row import Row, figures

PAGE = Path(__file__).parents[1] / 'docs' / 'benchmarks.md'
RESULTS = Path(__file__).parent / 'results.json'
BEGIN, END = '<!-- table: begin -->\n', '<!-- table: end -->\n'
HEAD = ('what', 'anchor', 'its figure', 'this package', 'ahead', 'to reach', '')
# What the page begins with, by the beginning of each row's name.
SUMMARY = (
    'UR10 recording, first half to second half, RMSE per joint, defaults, against FIGAROH',
    'torque error on another trajectory: and flexible joints',
    'full_regressor, 60 columns, UR10, 1000000',
    'generated C, one call',
    'inverse_dynamics(model, ...), one sample from Python',
    'processor time of the recorder at 1 kHz',
)


def write_page(results: dict[str, Any]) -> None:
    """Replace what is between the marks of the page."""
    before, _, rest = PAGE.read_text(encoding='utf-8').partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f'expected {BEGIN!r} and {END!r} in {PAGE.name}')
    PAGE.write_text(f'{before}{BEGIN}{markdown(results)}{END}{after}', encoding='utf-8')


def summary(rows: Sequence[Row]) -> str:
    """Return how many rows are in which state."""
    return ', '.join(f'{count} {state}' for state, count in Counter(row.state for row in rows).most_common())


def markdown(results: dict[str, Any]) -> str:
    """Return what the manual shows of a results file: machine, table by area, remarks."""
    rows = [Row.of(entry) for entry in results['rows']]
    quick = 'A quick run, few repetitions: ' if results['quick'] else ''
    lines = [f'{quick}{results["machine"]}. Rows: {summary(rows)}.']
    own = [row for row in rows if not row.quoted]
    real = [row for row in own if row.area == 'recordings' and row.values]  # first, where there are any
    lines += _section('Recordings of real arms', real)
    lines += _section('In short', [row for what in SUMMARY for row in rows if row.what.startswith(what)], remarks=False)
    behind = [row for row in own if row.ratio is not None and row.ahead.startswith('theirs')]
    lines += _section('Where others are ahead', behind, remarks=False)
    own = [row for row in own if row not in real]
    for area in dict.fromkeys(row.area for row in own):
        lines += _section(area.capitalize().replace('_', '-'), [row for row in own if row.area == area])
    lines += _section('Quoted: the other side was not run here', [row for row in rows if row.quoted])
    return '\n'.join(lines) + '\n'


def _section(title: str, rows: Sequence[Row], *, remarks: bool = True) -> list[str]:
    if not rows:
        return []
    when = '; '.join(dict.fromkeys(row.measured for row in rows if row.measured))
    lines = [
        '',
        f'### {title}',
        '',
        *([f'Measured {when}.', ''] if when and remarks else []),
        _line(HEAD),
        '|---' * len(HEAD) + '|',
        *(_line(_cells(row)) for row in rows),
    ]
    known = {row.what: ', '.join(filter(None, (row.runs, row.note))) for row in rows if row.values and remarks}
    remarked = [f'- {what}: {text}' for what, text in known.items() if text not in ('', 'one run')]
    return [*lines, '', *remarked] if remarked else lines


def _cells(row: Row) -> tuple[str, ...]:
    unit = f' {row.unit}' if row.unit else ''
    anchor = f'{row.anchor} ({row.source})' if row.anchor else ''
    theirs = f'{figures(row.theirs)}{unit}' if row.theirs else ''
    own = f'{figures(row.values)}{unit}' if row.values else (row.failure or row.note)
    return row.what, anchor, theirs, own, row.ahead, row.bar, row.state


def _line(cells: Sequence[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


if __name__ == '__main__':
    write_page(json.loads(RESULTS.read_text(encoding='utf-8')))
