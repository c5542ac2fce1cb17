# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The measurement file of a free-floating robot: CSV with joint states and the motion of the base."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from robotid_ros.arrays import require_names
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash
from robotid_ros.free_floating.bag import read_floating_bag
from robotid_ros.free_floating.measurement import FloatingMeasurement
from robotid_ros.reading import refusing
from robotid_ros.tables import read_table, write_table

_POSE = {
    'base_position': tuple(f'base/position/{axis}' for axis in 'xyz'),
    'base_orientation': tuple(f'base/orientation/{part}' for part in ('qw', 'qx', 'qy', 'qz')),
}


def _signals(joint_names: Sequence[str], *, pose: bool) -> dict[str, Sequence[str]]:
    """Return the columns of every array of a measurement."""
    return {
        'time': ('time',),
        'q': [f'position/{joint}' for joint in joint_names],
        'dq': [f'velocity/{joint}' for joint in joint_names],
        'base_twist': [f'base/{kind}_velocity/{axis}' for kind in ('linear', 'angular') for axis in 'xyz'],
        **(_POSE if pose else {}),
    }


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
    signals = _signals(measurement.joint_names, pose=measurement.has_pose)
    count = len(measurement)
    columns = {
        column: values
        for name, group in signals.items()
        for column, values in zip(group, getattr(measurement, name).reshape(count, -1).T, strict=True)
    }
    write_table(path, columns)


def read_measurement(path: str | Path, joint_names: tuple[str, ...]) -> FloatingMeasurement:
    """Read a measurement from CSV, whose columns are found by name, or from a bag.

    Parameters
    ----------
    path : str or Path
        A CSV file, or a bag as :func:`robotid_ros.free_floating.bag.read_floating_bag` takes it.
    joint_names : tuple of str
        Joints of the arm, in its order.

    Raises
    ------
    DataError
        If the file cannot be read, a signal is missing or a value is no finite number.
    """

    def layout(names: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
        pose = any(column in names for group in _POSE.values() for column in group)
        signals = _signals(joint_names, pose=pose)
        for group in signals.values():
            require_names(group, names, 'signal', f"measurement '{path}'", DataError)
        return signals

    source = Path(path).expanduser()
    if source.is_dir() or source.suffix in ('.mcap', '.db3', '.yaml'):
        return read_floating_bag(source, joint_names)
    with refusing(f"measurement '{path}'", DataError):
        arrays = dict(read_table(source, layout).arrays)
        provenance = {'file': source.name, 'sha256': file_hash(source)}
        return FloatingMeasurement(
            joint_names=joint_names, time=arrays.pop('time')[:, 0], **arrays, provenance=provenance
        )
