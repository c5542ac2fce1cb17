# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Points CSV: ``position/<joint>`` columns, ``x,y,z`` and optional columns, one measurement per row."""

import csv
import io
from collections.abc import Collection
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.errors import CalibrationError

__all__ = ['ANGLE_UNITS', 'LENGTH_UNITS', 'points_csv', 'read_points']

LENGTH_UNITS = {'m': 1.0, 'mm': 1e-3}
ANGLE_UNITS = {'rad': 1.0, 'deg': np.pi / 180.0}

_JOINT = 'position/'
_QUATERNION = ('qw', 'qx', 'qy', 'qz')
_DEVIATIONS = ('std_x', 'std_y', 'std_z')
_LABELS = ('set', 'point')
_KNOWN = ('x', 'y', 'z', *_QUATERNION, *_LABELS, 'std', *_DEVIATIONS, 'std_angle')


def read_points(
    path: str | Path, *, length_unit: str = 'm', angle_unit: str = 'rad', prismatic: Collection[str] = ()
) -> MeasuredPoints:
    """Read a points CSV.

    Parameters
    ----------
    path : str or Path
        Columns ``position/<joint>``, ``x,y,z``, optionally ``qw,qx,qy,qz`` (blank where only the
        position was measured), ``set``, ``point``, ``std`` or ``std_x,std_y,std_z`` and
        ``std_angle``, in any order. Lines that start with # are skipped.
    length_unit : {'m', 'mm'}
        Unit of ``x,y,z``, ``std`` and prismatic joints.
    angle_unit : {'rad', 'deg'}
        Unit of revolute joints' positions and of ``std_angle``.
    prismatic : collection of str
        Which joints are prismatic, as far as the unit matters.

    Raises
    ------
    CalibrationError
        If the file is absent or unreadable, a column is missing or unknown, or a cell is not a
        finite number; the message names line and column.
    """
    path = Path(path).expanduser()
    for unit, units, what in ((length_unit, LENGTH_UNITS, 'length'), (angle_unit, ANGLE_UNITS, 'angle')):
        if unit not in units:
            raise CalibrationError(f"{what} unit: expected one of {', '.join(units)}, got '{unit}'")
    header, lines, rows = _table(path)
    joints = tuple(name.removeprefix(_JOINT) for name in header if name.startswith(_JOINT))
    _check_columns(header, joints, path)
    cells = {name: [row[k] for row in rows] for k, name in enumerate(header)}

    def numbers(name: str, *, blank: bool = False) -> Array:
        return _numbers(cells[name], name, lines, path, blank)

    def labels(name: str) -> tuple[str, ...]:
        return tuple(cells[name]) if name in cells else ()

    length, angle = LENGTH_UNITS[length_unit], ANGLE_UNITS[angle_unit]
    std = None
    if 'std' in cells:
        std = np.repeat(length * numbers('std')[:, None], 3, axis=1)
    elif 'std_x' in cells:
        std = length * np.stack([numbers(name) for name in _DEVIATIONS], axis=1)
    return MeasuredPoints(
        joint_names=joints,
        q=np.stack([numbers(_JOINT + name) * (length if name in prismatic else angle) for name in joints], axis=1),
        position=length * np.stack([numbers(name) for name in 'xyz'], axis=1),
        orientation=(np.stack([numbers(name, blank=True) for name in _QUATERNION], axis=1) if 'qw' in cells else None),
        sets=labels('set'),
        points=labels('point'),
        std=std,
        angle_std=angle * numbers('std_angle') if 'std_angle' in cells else None,
    )


def points_csv(points: MeasuredPoints) -> str:
    """Return measurements as the text of a points CSV [m, rad], with all digits."""
    columns: dict[str, list[str]] = {
        _JOINT + name: [repr(float(v)) for v in points.q[:, k]] for k, name in enumerate(points.joint_names)
    }
    for k, name in enumerate('xyz'):
        columns[name] = [repr(float(v)) for v in points.position[:, k]]
    if points.orientation is not None:
        for k, name in enumerate(_QUATERNION):
            columns[name] = ['' if np.isnan(v) else repr(float(v)) for v in points.orientation[:, k]]
    for name, labels in zip(_LABELS, (points.sets, points.points), strict=True):
        if any(labels):
            columns[name] = list(labels)
    if points.std is not None:
        for k, name in enumerate(_DEVIATIONS):
            columns[name] = [repr(float(v)) for v in points.std[:, k]]
    if points.angle_std is not None:
        columns['std_angle'] = [repr(float(v)) for v in points.angle_std]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _table(path: Path) -> tuple[list[str], list[int], list[list[str]]]:
    """Return header, line number of each row, and the rows."""
    try:
        text = path.read_text(encoding='utf-8-sig')
    except FileNotFoundError as cause:
        raise CalibrationError(f"points file '{path}' does not exist") from cause
    except (OSError, UnicodeDecodeError) as cause:
        raise CalibrationError(f"points file '{path}' cannot be read: {cause}") from cause
    header: list[str] = []
    lines: list[int] = []
    rows: list[list[str]] = []
    for number, row in enumerate(csv.reader(text.splitlines()), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith('#'):
            continue
        if not header:
            header = cells
            continue
        if len(cells) != len(header):
            raise CalibrationError(
                f"points file '{path}', line {number}: expected {len(header)} cells, got {len(cells)}"
            )
        lines.append(number)
        rows.append(cells)
    if not rows:
        raise CalibrationError(f"points file '{path}' has no measurements")
    return header, lines, rows


def _check_columns(header: list[str], joints: tuple[str, ...], path: Path) -> None:
    where = f"points file '{path}'"
    for name in header:
        if header.count(name) > 1:
            raise CalibrationError(f"{where}: column '{name}' appears more than once")
        if not name.startswith(_JOINT) and name not in _KNOWN:
            raise CalibrationError(f"{where}: unknown column '{name}'; known are position/<joint>, {', '.join(_KNOWN)}")
    if not joints:
        raise CalibrationError(f'{where}: expected columns position/<joint>, got: {", ".join(header)}')
    groups: list[tuple[str, ...]] = [('x', 'y', 'z')]
    groups += [group for group in (_QUATERNION, _DEVIATIONS) if any(name in header for name in group)]
    for group in groups:
        for name in group:
            if name not in header:
                raise CalibrationError(f"{where}: column '{name}' is missing; it has: {', '.join(header)}")
    if 'std' in header and 'std_x' in header:
        raise CalibrationError(f"{where}: expected either 'std' or 'std_x,std_y,std_z', got both")


def _numbers(cells: list[str], name: str, lines: list[int], path: Path, blank: bool) -> Array:
    values = np.empty(len(cells))
    for k, cell in enumerate(cells):
        try:
            values[k] = np.nan if blank and not cell else float(cell)
        except ValueError:
            values[k] = np.nan
            blank_ok = False
        else:
            blank_ok = blank and not cell
        if not blank_ok and not np.isfinite(values[k]):
            raise CalibrationError(
                f"points file '{path}', line {lines[k]}, column '{name}': expected a finite number, got '{cell}'"
            )
    return values
