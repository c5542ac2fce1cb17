# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is shown on a terminal: tables, and the progress of what takes longer than two seconds."""

import math
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from robotid_ros.arrays import Array
from robotid_ros.errors import MissingDependencyError
from robotid_ros.files import write_text
from robotid_ros.progress import Progress

if TYPE_CHECKING:  # at the top only what options need: a command starts as fast as its libraries
    from robotid_ros.identification import IdentificationResult, Metrics
    from robotid_ros.report import Report
    from robotid_ros.report.content import Table

PATIENCE = 2.0  # seconds before a bar appears
INTERVAL = 0.1  # seconds between two drawings
SILENCE = 10.0  # seconds until a line says what takes long, and twice as many until the next
WIDTH = 28


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]], sides: str = '<') -> str:
    """Return cells as lines, each column as wide as it needs; the heads may be empty.

    ``sides`` says for the first columns where their cells stand, '<' or '>'. All further ones stand on the right.
    """
    table = [heads, *rows] if heads else rows
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    sides = sides.ljust(len(widths), '>')
    lines = (zip(row, sides, widths, strict=True) for row in table)
    return '\n'.join('  '.join(f'{cell:{side}{width}}' for cell, side, width in line).rstrip() for line in lines)


def report_table(table: 'Table') -> str:
    """Return a table of a report as lines."""
    heads = [name.lower() + (f' [{below}]' if below else '') for name, below, _ in table.columns]
    sides = ['>' if numeric else '<' for _, _, numeric in table.columns]
    return text_table(heads, table.rows, ''.join(sides))


def verdict_text(before: str, report: 'Report') -> str:
    """Return the verdict of a report as lines below some others."""
    assert report.verdict is not None
    return '\n'.join((before, '', report.verdict.headline, *report.verdict.reasons))


def say_written(*paths: str | Path) -> None:
    """Print a line for each file that was written."""
    for path in paths:
        print(f'written: {path}')


def save_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write plain values as YAML, and print that it was done."""
    write_text(path, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
    say_written(path)


def page_written(report: 'Report', path: Path) -> str:
    """Write the page of a report and return a line that says so, or why there is none."""
    from robotid_ros.report import write_report

    try:
        write_report(report, path)
        return f'written: {path}'
    except MissingDependencyError as cause:
        return f'no page: {cause}'


def joint_table(joints: Sequence[str], columns: Mapping[str, Array], digits: int = 3) -> str:
    """Return a table with a row per joint and a column per figure, of small ones with as many digits that count."""
    finite = [[abs(each) for each in map(float, values) if math.isfinite(each)] for values in columns.values()]
    largest = [max(values, default=0.0) for values in finite]
    places = [digits if not 0.0 < most < 0.01 else digits - 1 - math.floor(math.log10(most)) for most in largest]
    rows = [
        (joint, *(f'{value:.{place}f}' for value, place in zip(values, places, strict=True)))
        for joint, *values in zip(joints, *columns.values(), strict=True)
    ]
    return text_table(('joint', *columns), rows)


def metrics_table(metrics: 'Mapping[str, Metrics]') -> str:
    """Return rms error [N m] and match [%] per joint, for each set."""
    columns: dict[str, Array] = {}
    for name, found in metrics.items():
        columns[f'{name} rmse'] = found.rmse
        columns[f'{name} match %'] = found.match
    joints = next(iter(metrics.values())).joint_names
    totals = ', '.join(f'{name} {found.relative_error_total:.2f} %' for name, found in metrics.items())
    return (
        f'{joint_table(joints, columns)}\nrmse in N m, or N of a sliding joint; relative error of all joints: {totals}'
    )


def parameter_table(result: 'IdentificationResult') -> str:
    """Return base and friction parameters with their standard deviations."""
    from robotid_ros.report.subject import parameters_of

    found = parameters_of(result).items()
    rows = [(name[:60], f'{value:.5g}', f'± {std:.2g}', unit) for name, (value, std, unit) in found]
    return text_table((), rows, '<><<')


@contextmanager
def progress_bar(title: str, *, plain: bool = False) -> Iterator[Progress]:
    """Yield a callback that draws a bar on a terminal, and a line per tenth elsewhere or where it is to be plain.

    It writes to standard error; the title stands before the bar. What it was told last is said again while it hears
    nothing.
    """
    out = sys.stderr
    terminal = out.isatty() and not plain
    begun = time.monotonic()
    drawn = 0.0
    tenth = -1
    shown = False
    last, over = (0.0, 'prepare'), threading.Event()

    def remind() -> None:
        wait = SILENCE
        while not over.wait(wait):
            wait *= 2.0
            start = '\r\033[K' if terminal else ''
            out.write(f'{start}{title}: after {time.monotonic() - begun:.0f} s at {100 * last[0]:.0f} %, {last[1]}\n')
            out.flush()

    def report(fraction: float, message: str) -> None:
        nonlocal drawn, tenth, shown, last
        now, fraction = time.monotonic(), min(max(fraction, 0.0), 1.0)
        last = fraction, message
        if now - begun < PATIENCE:
            return
        if terminal and now - drawn >= INTERVAL:
            drawn, shown = now, True
            filled = round(WIDTH * fraction)
            bar = '█' * filled + '·' * (WIDTH - filled)
            out.write(f'\r\033[K{title} {bar} {100 * fraction:3.0f} % {message}'[:200])
            out.flush()
        elif not terminal and int(10 * fraction) > tenth:
            tenth = int(10 * fraction)
            out.write(f'{title}: {100 * fraction:.0f} % {message}\n')
            out.flush()

    reminder = threading.Thread(target=remind, daemon=True)
    reminder.start()
    try:
        yield report
    finally:
        over.set()
        reminder.join()
        if shown:
            out.write('\r\033[K')
            out.flush()
