# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The measurement file of a free-floating robot: CSV with joint states and the motion of the base."""

import io
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash, write_text
from robotid_ros.free_floating.measurement import FloatingMeasurement

__all__ = ['read_measurement', 'write_measurement']

_TWIST = (
    *(f'base/linear_velocity/{axis}' for axis in 'xyz'),
    *(f'base/angular_velocity/{axis}' for axis in 'xyz'),
)
_POSITION = tuple(f'base/position/{axis}' for axis in 'xyz')
_ORIENTATION = tuple(f'base/orientation/{part}' for part in ('qw', 'qx', 'qy', 'qz'))


def write_measurement(path: str | Path, measurement: FloatingMeasurement) -> None:
    """Write a measurement as CSV, numbers to the last digit.

    The header is ``time,position/<joint>,...,velocity/<joint>,...,base/linear_velocity/x,...,
    base/angular_velocity/x,...`` and, where the pose was measured, ``base/position/x,...,
    base/orientation/qw,...``; SI units, the twist along the base's axes.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    joints = measurement.joint_names
    header = ['time', *(f'position/{j}' for j in joints), *(f'velocity/{j}' for j in joints), *_TWIST]
    columns = [measurement.time[:, None], measurement.q, measurement.dq, measurement.base_twist]
    if measurement.base_position is not None and measurement.base_orientation is not None:
        header += [*_POSITION, *_ORIENTATION]
        columns += [measurement.base_position, measurement.base_orientation]
    text = io.StringIO()
    np.savetxt(text, np.hstack(columns), fmt='%.17g', delimiter=',', header=','.join(header), comments='')
    write_text(path, text.getvalue())


def read_measurement(path: str | Path, joint_names: tuple[str, ...]) -> FloatingMeasurement:
    """Read a measurement from CSV; columns are found by name, in any order.

    Parameters
    ----------
    path : str or Path
    joint_names : tuple of str
        Joints of the arm, in its order.

    Raises
    ------
    DataError
        If the file cannot be read, a signal is missing or a value is no finite number.
    """
    source = Path(path).expanduser()
    try:
        text = source.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as cause:
        raise DataError(f"measurement '{path}' cannot be read: {cause}") from cause
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) < 2:
        raise DataError(f"measurement '{path}': expected a header and at least one sample, got {len(lines)} line(s)")
    header = [name.strip() for name in lines[0].split(',')]
    table = _numbers(lines, len(header), path)

    def take(names: tuple[str, ...]) -> Array:
        index = require_names(names, header, 'signal', f"measurement '{path}'", DataError)
        return table[:, index]

    pose = any(name in header for name in (*_POSITION, *_ORIENTATION))
    return FloatingMeasurement(
        joint_names=joint_names,
        time=take(('time',))[:, 0],
        q=take(tuple(f'position/{joint}' for joint in joint_names)),
        dq=take(tuple(f'velocity/{joint}' for joint in joint_names)),
        base_twist=take(_TWIST),
        base_position=take(_POSITION) if pose else None,
        base_orientation=take(_ORIENTATION) if pose else None,
        provenance={'file': source.name, 'sha256': file_hash(source)},
    )


def _numbers(lines: list[str], width: int, path: str | Path) -> Array:
    table = np.empty((len(lines) - 1, width))
    for k, line in enumerate(lines[1:]):
        fields = line.split(',')
        if len(fields) != width:
            raise DataError(f"measurement '{path}', sample {k + 1}: expected {width} fields, got {len(fields)}")
        try:
            table[k] = [float(text) for text in fields]
        except ValueError as cause:
            raise DataError(f"measurement '{path}', sample {k + 1}: {cause}") from cause
    return table
