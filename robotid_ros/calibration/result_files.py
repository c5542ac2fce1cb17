# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Files of a calibration: result, residuals, the corrected arm."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.arrays import Array
from robotid_ros.calibration.problem import AXES
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.errors import CalibrationError
from robotid_ros.files import write_text
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_edit import edited_urdf
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.tables import write_table


def write_result(result: CalibrationResult, folder: Path, provenance: dict[str, Any]) -> list[Path]:
    """Write result.yaml, residuals.csv and calibrated.yaml or calibrated.urdf into a folder; return their names."""
    texts = {'result.yaml': yaml.safe_dump({**result.to_dict(), 'provenance': provenance}, sort_keys=False, width=120)}
    if isinstance(result.robot, DHTable):
        texts['calibrated.yaml'] = result.calibrated_table().to_yaml()
    elif result.robot.source is not None:
        texts['calibrated.urdf'] = calibrated_urdf(result)
    for name, text in texts.items():
        write_text(folder / name, text)
    _write_residuals(result, folder / 'residuals.csv')
    return [*(folder / name for name in texts), folder / 'residuals.csv']


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
    joints = parse_urdf(robot.source).joints
    calibrated = result.calibrated_model().placements
    changed: dict[str, Array] = {}
    for i, name in enumerate(robot.joint_names):
        if not np.array_equal(calibrated[i], robot.placements[i]):
            motion = np.linalg.solve(robot.placements[i], calibrated[i])
            changed[name] = joints[name].origin @ motion
    return edited_urdf(robot.source, origins=changed)


def _write_residuals(result: CalibrationResult, path: Path) -> None:
    """Write measured minus predicted of every measurement [m, rad], before and after, as CSV."""
    parts = {'before': result.nominal.residual, 'after': result.fit.residual}
    if result.cross_validation is not None:
        parts['cross_validated'] = result.cross_validation.residual
    columns: dict[str, Array | Sequence[str]] = {
        'measurement': [str(k + 1) for k in range(len(result.points))],
        'set': result.points.sets,
        'point': result.points.points,
        'weight': result.fit.weights,
    }
    for part, residual in parts.items():
        columns |= {f'{part}/{axis}': values for axis, values in zip(AXES, residual.T, strict=False)}
    write_table(path, columns)
