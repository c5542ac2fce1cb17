# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Random joint coordinates inside the limits of an arm."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import CalibrationError
from robotid_ros.model.dh_file import DHTable
from robotid_ros.model.robot_model import RobotModel

__all__ = ['random_configurations']


def random_configurations(robot: RobotModel | DHTable, count: int, rng: np.random.Generator) -> Array:
    """Return joint coordinates drawn uniformly inside the limits, revolute joints within -pi to pi, (count, n).

    Raises
    ------
    CalibrationError
        If the count is not positive, or a prismatic joint has no limits.
    """
    if count < 1:
        raise CalibrationError(f'expected a positive number of poses, got {count}')
    lower, upper = np.array(robot.limits.lower), np.array(robot.limits.upper)
    for i, name in enumerate(robot.joint_names):
        if robot.joint_types[i] == 'revolute':
            lower[i], upper[i] = max(lower[i], -np.pi), min(upper[i], np.pi)
            if lower[i] >= upper[i]:  # limits that leave the turn around zero
                lower[i], upper[i] = robot.limits.lower[i], robot.limits.upper[i]
        elif not np.isfinite(upper[i] - lower[i]):
            raise CalibrationError(f"prismatic joint '{name}' has no position limits; give it some")
    return rng.uniform(lower, upper, (count, len(lower)))
