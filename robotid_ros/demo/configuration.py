# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The configuration of an arm that the demonstration knows from its URDF alone."""

import math

import yaml

from robotid_ros.model import RobotModel

_LARGEST = 8.0  # rad/s^2 or m/s^2
_TO_FULL_SPEED = 1.0 / 3.0  # s; no joint is asked to reach its speed limit sooner


def configuration_text(model: RobotModel, **design: object) -> str:
    """Return a robot configuration for a simulated arm, as YAML.

    Efforts are joint torques. A URDF has no acceleration limits: a joint may reach its largest speed in a third of a
    second, and 8 rad/s^2 at most. ``design`` holds settings of a design that belong to the arm's place: ground,
    link_radius.
    """
    acceleration = {}
    for joint, given, speed in zip(
        model.joint_names, model.limits.acceleration.tolist(), model.limits.velocity.tolist(), strict=True
    ):
        acceleration[joint] = given if math.isfinite(given) else round(min(_LARGEST, speed / _TO_FULL_SPEED), 6)
    parameters = {
        'joints': list(model.joint_names),
        'effort': 'torque',
        'limits': {'acceleration': acceleration},
        **design,
    }
    note = f'# Made for a simulated {model.name} from its URDF; a real arm needs a configuration of its own.\n'
    return note + yaml.safe_dump({'/**': {'ros__parameters': parameters}}, sort_keys=False, width=100)
