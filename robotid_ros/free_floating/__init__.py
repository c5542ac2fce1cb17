# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Free-floating space robots: identify the captured target from momentum conservation."""

from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.design import control_trajectory, design_excitation, predicted_conditions, study_priors
from robotid_ros.free_floating.identification import TargetIdentification, identify_target
from robotid_ros.free_floating.measurement import (
    FloatingMeasurement,
    SensorNoise,
    read_measurement,
    simulate,
    write_measurement,
)
from robotid_ros.free_floating.mission import Mission, read_mission
from robotid_ros.free_floating.robot import FreeFloatingRobot

__all__ = [
    'FloatingMeasurement',
    'FreeFloatingRobot',
    'Mission',
    'RigidBody',
    'SensorNoise',
    'TargetIdentification',
    'control_trajectory',
    'design_excitation',
    'identify_target',
    'predicted_conditions',
    'read_measurement',
    'read_mission',
    'simulate',
    'study_priors',
    'write_measurement',
]
