# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Kinematic calibration: the geometry of an arm from measured points or poses."""

from robotid_ros.calibration.calibration import calibrate
from robotid_ros.calibration.points import MeasuredPoints, append_points, read_points, write_points
from robotid_ros.calibration.pose_selection import sample_workspace, select_poses
from robotid_ros.calibration.result import CalibrationResult, compensated_inverse_kinematics, compensated_joints
from robotid_ros.calibration.solver import CalibrationConfig

__all__ = [
    'CalibrationConfig',
    'CalibrationResult',
    'MeasuredPoints',
    'calibrate',
    'compensated_inverse_kinematics',
    'compensated_joints',
    'append_points',
    'read_points',
    'sample_workspace',
    'select_poses',
    'write_points',
]
