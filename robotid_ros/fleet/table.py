# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The table of a fleet: one row for each recording, as CSV."""

import csv
import io
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from robotid_ros.files import write_text
from robotid_ros.fleet.outcome import Outcome
from robotid_ros.report.subject import judged


def write_table(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write a row for each recording: its state, its errors, and every parameter with its standard deviation.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    rows = [_row(outcome) for outcome in outcomes]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def date_of(time: float | None) -> str:
    """Return a time [s since 1970] as a date, 2026-05-31 14:00 (UTC); empty for None."""
    return '' if time is None else datetime.fromtimestamp(time, timezone.utc).strftime('%Y-%m-%d %H:%M')


def _row(outcome: Outcome) -> dict[str, object]:
    entry, result = outcome.entry, outcome.result
    row: dict[str, object] = {
        'arm': entry.arm,
        'recording': entry.name,
        'file': entry.recording,
        'time': date_of(entry.time),
        'state': outcome.state,
        'reason': outcome.reason,
        'seconds': round(outcome.seconds, 2),
        'errors on': '',
        'relative error [%]': '',
        'weakest joint': '',
        'error by the previous result [%]': '' if outcome.finding is None else f'{outcome.finding.error:.4g}',
        'change': '' if outcome.finding is None else outcome.finding.cause,
        'friction model': '',
    }
    if result is None:
        return row
    on, metrics = judged(result)
    row |= {
        'errors on': on,
        'relative error [%]': f'{metrics.relative_error_total:.4g}',
        'weakest joint': metrics.joint_names[int(metrics.match.argmin())],
        'friction model': result.friction_name,
    }
    for name, value, std, unit in zip(
        result.base_names, result.base_values, result.base_std, result.base_units, strict=True
    ):
        row |= {f'{name} [{unit}]': f'{value:.8g}', f'std of {name}': f'{std:.4g}'}
    for j, joint in enumerate(result.joint_names):
        for k, term in enumerate(result.friction_names):
            name = f'{term} {joint}'
            row |= {
                f'{name} [{result.friction_units[j][k]}]': f'{result.friction_values[j, k]:.8g}',
                f'std of {name}': f'{result.friction_std[j, k]:.4g}',
            }
    return row
