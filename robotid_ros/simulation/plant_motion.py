# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a simulated arm did."""

from dataclasses import dataclass

from robotid_ros.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantMotion:
    """What the arm did at N instants; every row satisfies the equation of motion.

    M(q) ddq + I_a ddq + c(q, dq) + g(q) + friction = torque = motor_torque + disturbance

    Attributes
    ----------
    position, velocity, acceleration : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2; or m]
    torque : ndarray, shape (N, n)
        Everything that drives the joints [N m or N].
    motor_torque : ndarray, shape (N, n)
        What the motors exert and the current shows [N m or N].
    friction : ndarray, shape (N, n)
        Friction torque, sticking joints included [N m or N].
    """

    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    motor_torque: Array
    friction: Array

    def columns(self) -> dict[str, Array]:
        """Return the signals by name."""
        return {name: getattr(self, name) for name in PlantMotion.__slots__}

    def rows(self, index: slice) -> 'PlantMotion':
        """Return some of the instants."""
        return PlantMotion(**{name: values[index] for name, values in self.columns().items()})
