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

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash
from robotid_ros.tables import read_table, write_table

QUANTITIES = ('position', 'velocity', 'acceleration', 'effort', 'current')


def read_csv(path: str | Path) -> Recording:
    """Read a recording from CSV.

    Parameters
    ----------
    path : str or Path
        Separated by commas; a blank field or ``nan`` is a missing value.

    Returns
    -------
    Recording
        Columns of a quantity that some joint lacks are NaN for that joint.

    Raises
    ------
    DataError
        If there is no such file, no ``time`` or position column, a column twice, a line of another
        length, something that is no number, or no sample.
    """
    path = Path(path)
    layout: dict[str, Sequence[str | None]] = {}
    unknown: list[str] = []

    def assign(names: tuple[str, ...]) -> Mapping[str, Sequence[str | None]]:
        layout.update(_layout(names, path))
        known = {name for columns in layout.values() for name in columns}
        unknown.extend(name for name in names if name not in known)
        return layout

    arrays: dict[str, Any] = dict(read_table(path, assign, blank=QUANTITIES).arrays)
    joints = tuple(str(name).partition('/')[2] for name in layout['position'])
    provenance: dict[str, Any] = {
        'file': path.name,
        'sha256': file_hash(path),
        'format': 'csv',
        'ignored_columns': unknown,
    }
    return Recording(joint_names=joints, time=arrays.pop('time')[:, 0], provenance=provenance, **arrays)


def write_csv(path: str | Path, recording: Recording) -> None:
    """Write a recording as CSV, to the last digit; times are the recording's own, from its origin."""
    columns = {'time': recording.time}
    for quantity in QUANTITIES:
        value = getattr(recording, quantity)
        if value is not None:
            columns |= {f'{quantity}/{joint}': value[:, k] for k, joint in enumerate(recording.joint_names)}
    write_table(path, columns)


def _layout(names: tuple[str, ...], path: Path) -> dict[str, Sequence[str | None]]:
    """Return the columns of each quantity, joint by joint."""
    have = dict.fromkeys(names)
    joints = [name.partition('/')[2] for name in names if name.startswith('position/') and name != 'position/']
    found = ', '.join(names)[:200]
    if 'time' not in have:
        raise DataError(f"{path}: expected a column 'time' [s] in the first line; it has: {found}")
    if not joints:
        raise DataError(f"{path}: expected columns 'position/<joint>' [rad]; it has: {found}")
    layout: dict[str, Sequence[str | None]] = {'time': ('time',)}
    for quantity in QUANTITIES:
        columns = [name if (name := f'{quantity}/{joint}') in have else None for joint in joints]
        if any(columns):
            layout[quantity] = columns
    expected = {f'{quantity}/{joint}' for quantity in QUANTITIES for joint in joints}
    for name in names:
        quantity, _, joint = name.partition('/')
        if joint and quantity in QUANTITIES and name not in expected:
            raise DataError(f"{path}: column '{name}' has no 'position/{joint}' beside it")
    return layout
