# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Measured points or poses of targets on the tool, with the joint coordinates they were taken at."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray, frozen_array, require_names
from robotid_ros.errors import CalibrationError


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
        object.__setattr__(self, 'q', frozen_array(self.q, 'joint positions', (None, n), CalibrationError))
        object.__setattr__(
            self, 'position', frozen_array(self.position, 'measured positions', (count, 3), CalibrationError)
        )
        for name in ('sets', 'points'):
            labels = getattr(self, name) or ('',) * count
            if len(labels) != count:
                raise CalibrationError(f'{name}: expected {count} labels, got {len(labels)}')
            object.__setattr__(self, name, tuple(str(label) for label in labels))
        if self.orientation is not None:
            object.__setattr__(self, 'orientation', _unit_quaternions(self.orientation, count))
        for name, shape in (('std', (count, 3)), ('angle_std', (count,))):
            value = getattr(self, name)
            if value is None:
                continue
            value = frozen_array(value, name, shape, CalibrationError)
            if (value <= 0.0).any():
                raise CalibrationError(f'{name}: expected positive standard deviations, got {value.min():g}')
            object.__setattr__(self, name, value)
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
        result: BoolArray = np.isfinite(self.orientation[:, 0])
        return result

    def select(self, index: BoolArray | IntArray) -> 'MeasuredPoints':
        """Return some measurements, by a boolean mask or indices."""
        rows = np.arange(len(self))[index]
        arrays = {name: getattr(self, name) for name in ('q', 'position', 'orientation', 'std', 'angle_std')}
        return replace(
            self,
            **{name: value[rows] for name, value in arrays.items() if value is not None},
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
        for name in ('std', 'angle_std'):
            if len({getattr(part, name) is None for part in parts}) > 1:
                raise CalibrationError(f'{name}: expected it for all measurements or for none')

        def stack(name: str) -> Array | None:
            return None if getattr(first, name) is None else np.concatenate([getattr(part, name) for part in parts])

        turned = any(part.orientation is not None for part in parts)
        unknown = [np.full((len(p), 4), np.nan) if p.orientation is None else p.orientation for p in parts]
        return MeasuredPoints(
            joint_names=first.joint_names,
            q=np.concatenate([part.q for part in parts]),
            position=np.concatenate([part.position for part in parts]),
            orientation=np.concatenate(unknown) if turned else None,
            sets=tuple(label for part in parts for label in part.sets),
            points=tuple(label for part in parts for label in part.points),
            std=stack('std'),
            angle_std=stack('angle_std'),
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
                raise CalibrationError(
                    f"joint '{name}' of the points file is not in the robot; it has: {', '.join(joints)}"
                )
        return replace(self, joint_names=tuple(joints), q=self.q[:, index])


def _unit_quaternions(value: Array, count: int) -> Array:
    quaternions = np.array(frozen_array(value, 'measured orientations', (count, 4), CalibrationError, finite=False))
    missing = np.isnan(quaternions).any(axis=1)
    partly = missing & ~np.isnan(quaternions).all(axis=1)
    if partly.any() or np.isinf(quaternions).any():
        row = int(np.argmax(partly | np.isinf(quaternions).any(axis=1)))
        raise CalibrationError(f'measured orientations: row {row + 1} is not a quaternion: {quaternions[row].tolist()}')
    length = np.linalg.norm(quaternions, axis=1)
    wrong = ~missing & (np.abs(length - 1.0) > 0.01)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise CalibrationError(
            f'measured orientations: expected unit quaternions (w, x, y, z); row {row + 1} has length {length[row]:.4g}'
        )
    quaternions /= np.where(missing, 1.0, length)[:, None]
    quaternions.flags.writeable = False
    return quaternions
