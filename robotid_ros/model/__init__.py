# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Robot models: joints, links, inertias, limits, and the files they are read from."""

from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.model.robot_model import STANDARD_GRAVITY, RobotModel

__all__ = ['STANDARD_GRAVITY', 'JointLimits', 'RobotConfig', 'RobotModel']
