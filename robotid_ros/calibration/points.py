# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Measured points or poses of targets on the tool, with the joints they were taken at, and their files."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray, freeze_fields, frozen_array, require_names, rows_of
from robotid_ros.errors import CalibrationError
from robotid_ros.model.dh_table import ANGLE_UNITS, LENGTH_UNITS
from robotid_ros.reading import refusing
from robotid_ros.tables import read_table, write_table

_JOINT = 'position/'
_OPTIONAL = {
    'orientation': ('qw', 'qx', 'qy', 'qz'),
    'std': ('std',),
    'axis_std': ('std_x', 'std_y', 'std_z'),
    'angle_std': ('std_angle',),
}
_LABELS = ('set', 'point')
_ARRAYS = ('q', 'position', 'orientation', 'std', 'angle_std')
_KNOWN = ('x', 'y', 'z', *(name for group in _OPTIONAL.values() for name in group), *_LABELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredPoints:
    """N measurements of the position or pose of targets on the tool.

    Attributes
    ----------
    joint_names : tuple of str
    q : ndarray, shape (N, n)
        Joint coordinates [rad or m].
    position : ndarray, shape (N, 3)
        Of the target in the measurement frame of its set [m].
    orientation : ndarray, shape (N, 4), or None
        Unit quaternions (w, x, y, z) of the target's frame; a row of NaN where only the position
        was measured.
    sets : tuple of str
        Set of each measurement; every set has a measurement frame of its own.
    points : tuple of str
        Target on the tool that was measured.
    std : ndarray, shape (N, 3), or None
        Standard deviation of the measured coordinates [m].
    angle_std : ndarray, shape (N,), or None
        Standard deviation of the measured orientation about each axis [rad].

    Raises
    ------
    CalibrationError
        If shapes differ, a number is not finite, a quaternion has no length, a standard deviation
        is not positive, or an orientation has a deviation and its position has none or vice versa.
    """

    joint_names: tuple[str, ...]
    q: Array
    position: Array
    orientation: Array | None = None
    sets: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    std: Array | None = None
    angle_std: Array | None = None

    def __post_init__(self) -> None:
        count, n = len(self.q), len(self.joint_names)
        for name, called, shape in (
            ('q', 'joint positions', (None, n)),
            ('position', 'measured positions', (count, 3)),
        ):
            object.__setattr__(self, name, frozen_array(getattr(self, name), called, shape, CalibrationError))
        for name in ('sets', 'points'):
            labels = getattr(self, name) or ('',) * count
            if len(labels) != count:
                message = f'{name}: expected {count} labels, got {len(labels)}'
                raise CalibrationError(message, name=name, expected=count, found=len(labels))
            object.__setattr__(self, name, tuple(str(label) for label in labels))
        if self.orientation is not None:
            object.__setattr__(self, 'orientation', _unit_quaternions(self.orientation, count))
        freeze_fields(self, CalibrationError, {'std': (count, 3), 'angle_std': (count,)}, above=0.0)
        if self.orientation is not None and (self.std is None) != (self.angle_std is None):
            raise CalibrationError(
                'measured poses need both standard deviations, of positions and of orientations, or neither; '
                f'only {"std_angle" if self.std is None else "std"} is given'
            )

    def __len__(self) -> int:
        return len(self.q)

    @property
    def has_orientation(self) -> BoolArray:
        """Whether each measurement has an orientation, bool, shape (N,)."""
        if self.orientation is None:
            return np.zeros(len(self), dtype=bool)
        return np.asarray(np.isfinite(self.orientation[:, 0]))

    def select(self, index: BoolArray | IntArray) -> 'MeasuredPoints':
        """Return some measurements, by a boolean mask or indices."""
        rows = np.arange(len(self))[index]
        return replace(
            self,
            **rows_of(self, _ARRAYS, rows),
            sets=tuple(self.sets[k] for k in rows),
            points=tuple(self.points[k] for k in rows),
        )

    @staticmethod
    def joined(*parts: 'MeasuredPoints') -> 'MeasuredPoints':
        """Return several sets of measurements as one, in the joint order of the first.

        Raises
        ------
        CalibrationError
            If joints differ, or only some of them have standard deviations.
        """
        first = parts[0]
        parts = tuple(part.for_joints(first.joint_names) for part in parts)
        arrays: dict[str, Array] = {}
        for name in _ARRAYS:
            values = [getattr(part, name) for part in parts]
            if name == 'orientation' and any(value is not None for value in values):
                values = [np.full((len(p), 4), np.nan) if v is None else v for p, v in zip(parts, values, strict=True)]
            if all(value is not None for value in values):
                arrays[name] = np.concatenate(values)
            elif any(value is not None for value in values):
                raise CalibrationError(f'{name}: expected it for all measurements or for none', name=name)
        return MeasuredPoints(
            joint_names=first.joint_names,
            **arrays,
            sets=tuple(label for part in parts for label in part.sets),
            points=tuple(label for part in parts for label in part.points),
        )

    def for_joints(self, joints: Sequence[str]) -> 'MeasuredPoints':
        """Return the measurements with the joint columns in another order.

        Raises
        ------
        CalibrationError
            If a joint has no column, or a column names a joint that is not asked for.
        """
        index = require_names(tuple(joints), self.joint_names, 'joint', 'the points file', CalibrationError)
        for name in self.joint_names:
            if name not in joints:
                message = f"joint '{name}' of the points file is not in the robot; it has: {', '.join(joints)}"
                raise CalibrationError(message, name=name, expected=tuple(joints))
        return replace(self, joint_names=tuple(joints), q=self.q[:, index])


def _unit_quaternions(value: Array, count: int) -> Array:
    quaternions = np.array(frozen_array(value, 'measured orientations', (count, 4), CalibrationError, finite=False))
    missing = np.isnan(quaternions).any(axis=1)
    partly = missing & ~np.isnan(quaternions).all(axis=1)
    if partly.any() or np.isinf(quaternions).any():
        row = int(np.argmax(partly | np.isinf(quaternions).any(axis=1)))
        message = f'measured orientations: row {row + 1} is not a quaternion: {quaternions[row].tolist()}'
        raise CalibrationError(message, name='orientations')
    length = np.linalg.norm(quaternions, axis=1)
    wrong = ~missing & (np.abs(length - 1.0) > 0.01)
    if wrong.any():
        row = int(np.argmax(wrong))
        message = (
            f'measured orientations: expected unit quaternions (w, x, y, z); row {row + 1} has length {length[row]:.4g}'
        )
        raise CalibrationError(message, name='orientations', found=float(length[row]))
    quaternions /= np.where(missing, 1.0, length)[:, None]
    quaternions.flags.writeable = False
    return quaternions


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
            message = f"{what} unit: expected one of {', '.join(units)}, got '{unit}'"
            raise CalibrationError(message, name=f'{what} unit', expected=tuple(units), found=unit)

    what = f"points file '{path}'"
    with refusing(what, CalibrationError, file=str(path)):
        table = read_table(
            path,
            lambda names: _layout(names, what),
            what=what,
            text=_LABELS,
            blank=('orientation',),
            error=CalibrationError,
        )
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


def _layout(names: tuple[str, ...], what: str) -> dict[str, Sequence[str]]:
    """Return which columns form which array, after checking them."""
    joints = [name for name in names if name.startswith(_JOINT)]
    if not joints:
        message = f'{what}: expected columns position/<joint>, got: {", ".join(names)}'
        raise CalibrationError(message, expected='position/<joint>', found=names)
    require_names([name for name in names if name not in joints], _KNOWN, 'column', 'a points file', CalibrationError)
    given = {key: group for key, group in _OPTIONAL.items() if any(name in names for name in group)}
    if 'std' in given and 'axis_std' in given:
        raise CalibrationError(f"{what}: expected either 'std' or 'std_x,std_y,std_z', got both")
    return {'joints': joints, 'position': ('x', 'y', 'z'), **given}


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

    Raises a CalibrationError if the file cannot be read, a joint has no column, or a cell is not a finite number.
    """
    what = f"joints file '{path}'"
    with refusing(what, CalibrationError, file=str(path)):
        columns = [_JOINT + name for name in joint_names]
        return read_table(path, {'joints': columns}, what=what, error=CalibrationError).arrays['joints']


def write_joints(path: str | Path, joint_names: Sequence[str], q: Array) -> None:
    """Write joint coordinates, shape (N, n), as CSV with columns ``position/<joint>`` [rad or m]."""
    write_table(path, {_JOINT + name: column for name, column in zip(joint_names, q.T, strict=True)})
