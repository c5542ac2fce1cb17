# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Writes the results file as tables, which the manual includes: ``python -m benchmark.page``."""

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmark.area import AREAS
from benchmark.row import Row, figures

RESULTS = Path(__file__).parent / 'results.json'
PAGE = Path(__file__).parent / 'RESULTS.md'
HEAD = ('what', 'anchor', 'here', 'better')


def write_page(results: dict[str, Any]) -> None:
    """Write the page anew; nothing in it is written by hand."""
    PAGE.write_text(markdown(results), encoding='utf-8')


def summary(rows: Sequence[Row]) -> str:
    """Return how many rows are in which state."""
    return ', '.join(f'{count} {state}' for state, count in Counter(row.state for row in rows).most_common())


def markdown(results: dict[str, Any]) -> str:
    """Return what the manual shows of a results file: machine, table by area, remarks."""
    rows = [Row.of(entry) for entry in results['rows']]
    quick = 'A quick run, few repetitions: ' if results['quick'] else ''
    lines = [f'{quick}{results["machine"]}. Rows: {summary(rows)}.']
    absent = [area for area in AREAS if area not in {row.area for row in rows}]
    if absent:
        lines += ['', f'Not measured since its code changed: {", ".join(absent)}.']
    own = [row for row in rows if not row.quoted]
    real = [row for row in own if row.area == 'recordings' and row.values]  # first, where there are any
    lines += _recordings(real)
    own = [row for row in own if row not in real and not (real and row.area == 'recordings')]
    behind = [f'{row.what} ({row.ahead.partition(", ")[2]})' for row in own if row.ahead.startswith('theirs')]
    if behind:
        lines += ['', '### Where others are ahead', '', f'{"; ".join(behind)}.']
    for area in dict.fromkeys(row.area for row in own):
        lines += _section(area.capitalize().replace('_', '-'), [row for row in own if row.area == area])
    lines += _section('Quoted: the other side was not run here', [row for row in rows if row.quoted])
    return '\n'.join(lines) + '\n'


def _recordings(rows: Sequence[Row]) -> list[str]:
    """Return a line for each arm: geometric means over its pairs of recordings of the errors of the total torque.

    A pair's error is that of the recording that judges; over FIGAROH's is the RMSE of the joints.
    """
    beside = {row.what.partition(', RMSE')[0]: row for row in rows if row.what.endswith('against FIGAROH')}
    totals = [row for row in rows if row.what.endswith(', total error')]
    if not totals:
        return []
    lines = ['', '### Recordings of real arms', '', f'Measured {_when(rows)}.', '']
    heads = ('arm', 'plain [%]', 'here [%]', 'here / plain', 'FIGAROH / here')
    lines += [_line(heads), '|---' * len(heads) + '|']
    arms = [(arm, [row for row in totals if row.case == arm]) for arm in dict.fromkeys(row.case for row in totals)]
    for arm, own in arms:
        others = [beside.get(row.what.removesuffix(', total error')) for row in own]
        times = [_mean_ratio(row) for row in others if row is not None and row.theirs]
        means = _mean([row.theirs[0] for row in own]), _mean([row.values[0] for row in own]), _losses(own)[0]
        shown = [figures((value,)) for value in (*means, *([_mean(times)] if times else []))]
        lines.append(_line((arm, *shown, *([] if times else ['']))))
    some = [('all', totals), ('usable', [row for row in totals if row.note == 'usable'])]
    told = [
        '{} {}: geometric mean {}, largest {}'.format(len(each), name, *(figures((value,)) for value in _losses(each)))
        for name, each in some
        if each
    ]
    behind = [row for row in totals if row.state == 'missed']
    missed = [f'{row.what.removesuffix(", total error")} ({figures(_losses([row])[:1])})' for row in behind]
    told += [f'{len(missed)} missed: {"; ".join(missed)}'] if missed else []
    return [*lines, '', f'Error here over that of the better plain fit, by pairs. {"; ".join(told)}.']


def _losses(rows: Sequence[Row]) -> tuple[float, float]:
    """Return geometric mean and largest of the errors here over those of the other side."""
    losses = [1.0 / (row.ratio or np.inf) for row in rows]
    return _mean(losses), max(losses)


def _mean_ratio(row: Row) -> float:
    """Return the geometric mean over joints of their figures over ours."""
    return _mean(
        [theirs / own for theirs, own in zip(row.theirs, row.values, strict=True) if theirs > 0.0 and own > 0.0]
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else float('nan')


def _when(rows: Sequence[Row]) -> str:
    """Return the days on which rows were measured; time, commit and load stay in the file."""
    return ', '.join(dict.fromkeys(row.measured.split(' ')[0] for row in rows if row.measured))


def _section(title: str, rows: Sequence[Row]) -> list[str]:
    """Return a table of rows, and below it the anchors, once each with a letter."""
    if not rows:
        return []
    anchors = _letters(map(_anchor, rows))
    lines = [
        '',
        f'### {title}',
        '',
        *([f'Measured {_when(rows)}.', ''] if _when(rows) else []),
        _line(HEAD),
        '|---' * len(HEAD) + '|',
        *(
            _line(_cells(row, name, anchors.get(_anchor(row), '')))
            for row, name in zip(rows, _names(rows), strict=True)
        ),
    ]
    told = [f'- {letter} {text}' for text, letter in anchors.items()]
    return [*lines, '', *told] if told else lines


def _names(rows: Sequence[Row]) -> list[str]:
    """Return what each row measures; dots stand for the parts that it begins with as the row above does."""
    names, above = [], list[str]()
    for row in rows:
        parts = re.split(r'(?<=[,:]) ', row.what)
        shared = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(parts, above, strict=False)))
        names.append(' '.join(['…', *parts[min(shared, len(parts) - 1) :]] if shared else parts))
        above = parts
    return names


def _letters(texts: Iterable[str]) -> dict[str, str]:
    """Return a letter in brackets for each text that is not empty."""
    return {text: f'({chr(ord("A") + k)})' for k, text in enumerate(filter(None, dict.fromkeys(texts)))}


def _anchor(row: Row) -> str:
    return row.anchor and (row.anchor if row.source == 'measured' else f'{row.anchor} ({row.source})')


def _cells(row: Row, name: str, anchor: str) -> tuple[str, ...]:
    """Return a row's cells; behind a figure that did not reach what it was to reach stands what that was."""
    unit = f' {row.unit}' if row.unit else ''
    here = f'{figures(row.values)}{unit}{_spread(row.spread)}' if row.values else (row.failure or row.note)
    if row.state not in ('met', 'compared'):
        here += f', **{row.state}** {row.bar.removesuffix(" (this project)").replace(" x anchor", " x")}'
    return (
        name,
        f'{figures(row.theirs)}{_spread(row.their_spread)} {anchor}'.strip(),
        here,
        row.ahead.removeprefix('here, '),
    )


def _spread(part: float) -> str:
    """Return the spread behind a figure; a figure without one was measured once."""
    return f' ±{100.0 * part:.2g} %' if math.isfinite(part) else ''


def _line(cells: Sequence[str]) -> str:
    return '| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |'


if __name__ == '__main__':
    write_page(json.loads(RESULTS.read_text(encoding='utf-8')))
