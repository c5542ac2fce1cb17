# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings as CSV: one header line, one line per sample, SI units.

The header reads ``time,position/<joint>,...,velocity/<joint>,...``; the quantities are position,
velocity, acceleration, effort [N m] and current [A]. Columns are found by name, in any order.
"""

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.files import atomic_file, file_hash

__all__ = ['read_csv', 'write_csv']

QUANTITIES = ('position', 'velocity', 'acceleration', 'effort', 'current')


def read_csv(path: str | Path) -> Recording:
    """Read a recording from CSV.

    Parameters
    ----------
    path : str or Path
        Separated by commas; an empty field or ``nan`` is a missing value.

    Returns
    -------
    Recording
        Columns of a quantity that some joint lacks are filled with NaN for that joint.

    Raises
    ------
    DataError
        If there is no file, no ``time`` or position column, a column twice, a line of another
        length, something that is no number, or no sample.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding='utf-8-sig')
    except FileNotFoundError as cause:
        raise DataError(f'{path} does not exist') from cause
    except UnicodeDecodeError as cause:
        raise DataError(f'{path}: expected CSV text in UTF-8, got bytes that are none') from cause
    first, _, rest = text.partition('\n')
    header = [name.strip() for name in next(csv.reader([first]), [])]
    joints, unknown = _columns(header, path)
    table = _numbers(rest, len(header), path)
    if not np.isfinite(time := table[:, header.index('time')]).all():
        line = int(np.argmin(np.isfinite(time))) + 2
        raise DataError(f'{path}, line {line}: expected a time in seconds, got {time[line - 2]}')
    where = {name: k for k, name in enumerate(header)}
    values: dict[str, Any] = {}
    for quantity in QUANTITIES:
        index = [where.get(f'{quantity}/{joint}', -1) for joint in joints]
        if max(index) >= 0:
            values[quantity] = np.where(np.array(index) >= 0, table[:, index], np.nan)
    provenance = {'file': path.name, 'sha256': file_hash(path), 'format': 'csv', 'ignored_columns': unknown}
    return Recording(joint_names=joints, time=time, provenance=provenance, **values)


def write_csv(path: str | Path, recording: Recording) -> None:
    """Write a recording as CSV, to the last digit; times are the recording's own, from its origin."""
    header, columns = ['time'], [recording.time[:, None]]
    for quantity in QUANTITIES:
        value = getattr(recording, quantity)
        if value is not None:
            header += [f'{quantity}/{joint}' for joint in recording.joint_names]
            columns.append(value)
    with atomic_file(path) as file:
        file.write((','.join(header) + '\n').encode())
        np.savetxt(file, np.concatenate(columns, axis=1), fmt='%.17g', delimiter=',')


def _columns(header: list[str], path: Path) -> tuple[tuple[str, ...], list[str]]:
    joints: list[str] = []
    unknown: list[str] = []
    for name in header:
        quantity, _, joint = name.partition('/')
        if header.count(name) > 1:
            raise DataError(f"{path}: column '{name}' is there {header.count(name)} times; expected each once")
        if quantity == 'position' and joint:
            joints.append(joint)
        elif name != 'time' and not (quantity in QUANTITIES and joint):
            unknown.append(name)
    found = ', '.join(header)[:200] or 'nothing'
    if 'time' not in header:
        raise DataError(f"{path}: expected a column 'time' [s] in the first line; it has: {found}")
    if not joints:
        raise DataError(f"{path}: expected columns 'position/<joint>' [rad]; it has: {found}")
    for name in header:
        quantity, _, joint = name.partition('/')
        if joint and quantity in QUANTITIES and joint not in joints:
            raise DataError(f"{path}: column '{name}' has no 'position/{joint}' beside it")
    return tuple(joints), unknown


def _numbers(text: str, width: int, path: Path) -> Array:
    """Return the table; the quick parser first, the one that names the line where that fails."""
    if not text.strip():
        raise DataError(f'{path}: expected samples below the first line, got none')
    try:
        table = np.loadtxt(io.StringIO(text), delimiter=',', ndmin=2, comments=None)
    except ValueError:
        table = _careful_numbers(text, width, path)
    if table.shape[1] != width:
        raise DataError(f'{path}: expected {width} numbers per line, as the first line has names; got {table.shape[1]}')
    return table


def _careful_numbers(text: str, width: int, path: Path) -> Array:
    rows = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=2):
        if not row:
            continue
        if len(row) != width:
            raise DataError(f'{path}, line {number}: expected {width} fields, got {len(row)}')
        try:
            rows.append([float(field) if field.strip() else np.nan for field in row])
        except ValueError as cause:
            raise DataError(f'{path}, line {number}: {cause}') from cause
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)
