# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Points and joints files: CSV with ``position/<joint>`` columns, one measurement or pose per row."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.errors import CalibrationError
from robotid_ros.reading import refusing
from robotid_ros.tables import read_table, write_table

LENGTH_UNITS = {'m': 1.0, 'mm': 1e-3}
ANGLE_UNITS = {'rad': 1.0, 'deg': np.pi / 180.0}

_JOINT = 'position/'
_OPTIONAL = {
    'orientation': ('qw', 'qx', 'qy', 'qz'),
    'std': ('std',),
    'axis_std': ('std_x', 'std_y', 'std_z'),
    'angle_std': ('std_angle',),
}
_LABELS = ('set', 'point')
_KNOWN = ('x', 'y', 'z', *(name for group in _OPTIONAL.values() for name in group), *_LABELS)


def read_points(
    path: str | Path, *, length_unit: str = 'm', angle_unit: str = 'rad', prismatic: Collection[str] = ()
) -> MeasuredPoints:
    """Read a points file.

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
    for unit, units, what in ((length_unit, LENGTH_UNITS, 'length'), (angle_unit, ANGLE_UNITS, 'angle')):
        if unit not in units:
            raise CalibrationError(f"{what} unit: expected one of {', '.join(units)}, got '{unit}'")

    def layout(names: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
        return _layout(names, path)

    with refusing(f"points file '{path}'", CalibrationError):
        table = read_table(path, layout, text=_LABELS, blank=('orientation',), error=CalibrationError)
        arrays = table.arrays
        joints = tuple(name.removeprefix(_JOINT) for name in table.names if name.startswith(_JOINT))
        length, angle = LENGTH_UNITS[length_unit], ANGLE_UNITS[angle_unit]
        std = np.repeat(arrays['std'], 3, axis=1) if 'std' in arrays else arrays.get('axis_std')
        return MeasuredPoints(
            joint_names=joints,
            q=arrays['joints'] * [length if name in prismatic else angle for name in joints],
            position=length * arrays['position'],
            orientation=arrays.get('orientation'),
            sets=table.text.get('set', ()),
            points=table.text.get('point', ()),
            std=None if std is None else length * std,
            angle_std=angle * arrays['angle_std'][:, 0] if 'angle_std' in arrays else None,
        )


def _layout(names: tuple[str, ...], path: str | Path) -> dict[str, Sequence[str]]:
    """Return which columns form which array, after checking them."""
    where = f"points file '{path}'"
    joints = [name for name in names if name.startswith(_JOINT)]
    if not joints:
        raise CalibrationError(f'{where}: expected columns position/<joint>, got: {", ".join(names)}')
    require_names([name for name in names if name not in joints], _KNOWN, 'column', 'a points file', CalibrationError)
    given = {key: group for key, group in _OPTIONAL.items() if any(name in names for name in group)}
    layout: dict[str, Sequence[str]] = {'joints': joints, 'position': ('x', 'y', 'z'), **given}
    for group in layout.values():
        require_names(group, names, 'column', where, CalibrationError)
    if 'std' in given and 'axis_std' in given:
        raise CalibrationError(f"{where}: expected either 'std' or 'std_x,std_y,std_z', got both")
    return layout


def write_points(path: str | Path, points: MeasuredPoints) -> None:
    """Write measurements as a points file [m, rad], numbers to the last digit.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    columns: dict[str, Array | Sequence[str]] = {
        _JOINT + name: points.q[:, k] for k, name in enumerate(points.joint_names)
    }
    columns |= dict(zip('xyz', points.position.T, strict=True))
    if points.orientation is not None:
        for k, name in enumerate(_OPTIONAL['orientation']):
            columns[name] = ['' if np.isnan(v) else repr(v) for v in points.orientation[:, k].tolist()]
    columns |= {name: labels for name, labels in zip(_LABELS, (points.sets, points.points), strict=True) if any(labels)}
    if points.std is not None:
        columns |= dict(zip(_OPTIONAL['axis_std'], points.std.T, strict=True))
    if points.angle_std is not None:
        columns['std_angle'] = points.angle_std
    write_table(path, columns)


def append_points(path: str | Path, points: MeasuredPoints) -> int:
    """Add measurements to a points file, or begin one; return how many it then holds.

    The file is written anew and takes its name when it is complete, so that none of its rows can be lost.

    Raises
    ------
    CalibrationError
        If the file cannot be read or is of other joints.
    DataError
        If it cannot be written.
    """
    path = Path(path).expanduser()
    if path.exists():
        points = MeasuredPoints.joined(read_points(path), points)
    write_points(path, points)
    return len(points)


def read_joints(path: str | Path, joint_names: Sequence[str]) -> Array:
    """Read joint coordinates, shape (N, n), from CSV columns ``position/<joint>``; others are ignored.

    Raises
    ------
    CalibrationError
        If the file cannot be read, a joint has no column, or a cell is not a finite number.
    """

    def layout(names: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
        wanted = [_JOINT + name for name in joint_names]
        require_names(wanted, names, 'column', f"joints file '{path}'", CalibrationError)
        return {'joints': wanted}

    with refusing(f"joints file '{path}'", CalibrationError):
        return read_table(path, layout, error=CalibrationError).arrays['joints']


def write_joints(path: str | Path, joint_names: Sequence[str], q: Array) -> None:
    """Write joint coordinates, shape (N, n), as CSV with columns ``position/<joint>`` [rad or m]."""
    write_table(path, {_JOINT + name: column for name, column in zip(joint_names, q.T, strict=True)})
