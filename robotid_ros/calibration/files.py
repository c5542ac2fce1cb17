# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Files of a calibration: result, residuals, the corrected arm."""

import csv
import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import yaml

from robotid_ros.arrays import Array
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.errors import CalibrationError
from robotid_ros.files import write_text
from robotid_ros.model.dh_file import DHTable
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import rpy_rotation, translation
from robotid_ros.model.urdf_edit import replace_origins

__all__ = ['calibrated_urdf', 'joints_csv', 'read_joints', 'residuals_csv', 'write_result']

_JOINT = 'position/'


def write_result(result: CalibrationResult, folder: Path, provenance: dict[str, Any]) -> list[Path]:
    """Write result.yaml, residuals.csv and calibrated.yaml or calibrated.urdf; return their names.

    Parameters
    ----------
    result : CalibrationResult
    folder : Path
        Must exist.
    provenance : dict
        What result.yaml says about where it came from.
    """
    texts = {
        'result.yaml': yaml.safe_dump({**result.to_dict(), 'provenance': provenance}, sort_keys=False, width=120),
        'residuals.csv': residuals_csv(result),
    }
    if isinstance(result.robot, DHTable):
        texts['calibrated.yaml'] = result.calibrated_table().to_yaml()
    elif result.robot.source is not None:
        texts['calibrated.urdf'] = calibrated_urdf(result)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def calibrated_urdf(result: CalibrationResult) -> str:
    """Return the input URDF with the origins of the calibrated joints changed, and nothing else.

    Raises
    ------
    CalibrationError
        If the arm did not come from a URDF.
    """
    robot = result.robot
    if not isinstance(robot, RobotModel) or robot.source is None:
        raise CalibrationError('the arm did not come from a URDF')
    origins = _origins(robot.source)
    calibrated = result.calibrated_model().placements
    changed: dict[str, Array] = {}
    for i, name in enumerate(robot.joint_names):
        if not np.array_equal(calibrated[i], robot.placements[i]):
            motion = np.linalg.solve(robot.placements[i], calibrated[i])
            changed[name] = origins[name] @ motion
    return replace_origins(robot.source, changed)


def _origins(text: str) -> dict[str, Array]:
    result: dict[str, Array] = {}
    for joint in ElementTree.fromstring(text.encode('utf-8')).findall('joint'):
        element = joint.find('origin')
        values = {'xyz': '0 0 0', 'rpy': '0 0 0'} | (dict(element.attrib) if element is not None else {})
        xyz, rpy = ([float(word) for word in values[key].split()] for key in ('xyz', 'rpy'))
        result[joint.get('name', '')] = translation(xyz) @ rpy_rotation(*rpy)
    return result


def residuals_csv(result: CalibrationResult) -> str:
    """Return measured minus predicted of every measurement as CSV [m, rad], before and after."""
    parts = [('before', result.residual_before), ('after', result.residual)]
    if result.cross_validation is not None:
        parts.append(('cross_validated', result.cross_validation.residual))
    axes = ('x', 'y', 'z', 'rx', 'ry', 'rz')[: result.residual.shape[1]]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(
        ['measurement', 'set', 'point', 'weight', *(f'{part}/{axis}' for part, _ in parts for axis in axes)]
    )
    for k in range(len(result.points)):
        numbers = [repr(float(value)) for _, residual in parts for value in residual[k]]
        labels = [result.points.sets[k], result.points.points[k]]
        writer.writerow([k + 1, *labels, repr(float(result.weights[k])), *numbers])
    return text.getvalue()


def joints_csv(joint_names: tuple[str, ...], q: Array) -> str:
    """Return joint coordinates as CSV with columns ``position/<joint>`` [rad or m]."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow([_JOINT + name for name in joint_names])
    writer.writerows([[repr(float(value)) for value in row] for row in q])
    return text.getvalue()


def read_joints(path: Path, joint_names: tuple[str, ...]) -> Array:
    """Read joint coordinates, shape (N, n), from CSV columns ``position/<joint>``; others are ignored.

    Raises
    ------
    CalibrationError
        If the file is absent, a joint has no column, or a cell is not a finite number.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(path.expanduser().read_text(encoding='utf-8-sig'))))
    except (OSError, UnicodeDecodeError) as cause:
        raise CalibrationError(f"joints file '{path}' cannot be read: {cause}") from cause
    if not rows:
        raise CalibrationError(f"joints file '{path}' has no rows")
    for name in joint_names:
        if _JOINT + name not in rows[0]:
            raise CalibrationError(
                f"joints file '{path}': column '{_JOINT}{name}' is missing; it has: {', '.join(rows[0])}"
            )
    result = np.empty((len(rows), len(joint_names)))
    for k, row in enumerate(rows):
        for i, name in enumerate(joint_names):
            try:
                result[k, i] = float(row[_JOINT + name])
            except (TypeError, ValueError):
                result[k, i] = np.nan
            if not np.isfinite(result[k, i]):
                raise CalibrationError(
                    f"joints file '{path}', row {k + 1}, column '{_JOINT}{name}': expected a finite number, "
                    f"got '{row[_JOINT + name]}'"
                )
    return result
