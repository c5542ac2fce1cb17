# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A simulated arm in MuJoCo, with friction, drives and sensors, and known truth."""

from typing import TYPE_CHECKING

from robotid_ros.imports import on_demand

if TYPE_CHECKING:
    from robotid_ros.simulation.arm_truth import (
        LAWS,
        ArmTruth,
        Drive,
        JointFriction,
        nominal_truth,
        perturb,
        prior_friction,
        read_truth,
        write_truth,
    )
    from robotid_ros.simulation.controller import CommandPoint, TrajectoryFollower
    from robotid_ros.simulation.gazebo import gazebo_controllers, gazebo_description, world_physics
    from robotid_ros.simulation.plant import Plant
    from robotid_ros.simulation.sensors import PlantMotion, Sensors, effort_scale
    from robotid_ros.simulation.simulated_run import SimulatedRun, simulate_trajectory, start_position

__all__ = [
    'LAWS',
    'ArmTruth',
    'CommandPoint',
    'Drive',
    'JointFriction',
    'Plant',
    'PlantMotion',
    'Sensors',
    'SimulatedRun',
    'TrajectoryFollower',
    'effort_scale',
    'gazebo_controllers',
    'gazebo_description',
    'nominal_truth',
    'perturb',
    'prior_friction',
    'read_truth',
    'simulate_trajectory',
    'start_position',
    'world_physics',
    'write_truth',
]

__getattr__ = on_demand(
    __name__,
    {
        'LAWS': 'arm_truth',
        'ArmTruth': 'arm_truth',
        'CommandPoint': 'controller',
        'Drive': 'arm_truth',
        'JointFriction': 'arm_truth',
        'Plant': 'plant',
        'PlantMotion': 'sensors',
        'Sensors': 'sensors',
        'SimulatedRun': 'simulated_run',
        'TrajectoryFollower': 'controller',
        'effort_scale': 'sensors',
        'gazebo_controllers': 'gazebo',
        'gazebo_description': 'gazebo',
        'nominal_truth': 'arm_truth',
        'perturb': 'arm_truth',
        'prior_friction': 'arm_truth',
        'read_truth': 'arm_truth',
        'simulate_trajectory': 'simulated_run',
        'start_position': 'simulated_run',
        'world_physics': 'gazebo',
        'write_truth': 'arm_truth',
    },
)
