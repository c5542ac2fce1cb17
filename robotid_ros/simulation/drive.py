# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What lies between a joint and what its drive shows: friction of the load, ripple, deflection, a late effort."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.simulation.plant_motion import PlantMotion

RIPPLE_WAVES = 100.0  # per turn of the joint: one per turn of a rotor behind a gear of 100
_SLIP = 0.01  # rad/s or m/s; below it the friction of the load fades out, so that it does nothing at rest


@dataclass(frozen=True, slots=True, kw_only=True)
class Drive:
    """Properties of the drives of n joints beyond rigid bodies and friction that depends on velocity alone.

    tau_m = tau + mu |tau - tau_f| tanh(dq / 0.01) + a sin(100 q),   q_m = q + c tau_m,   shown(t) = tau_m(t - d)

    The plant leads the links. So each property changes the torque or the position of the motor, which is what is
    measured.

    Attributes
    ----------
    load_friction : ndarray, shape (n,)
        mu, friction per torque that the joint carries; not negative.
    ripple : ndarray, shape (n,)
        a, amplitude of a torque ripple [N m or N]; not negative.
    compliance : ndarray, shape (n,)
        c, by how much the motor, which is measured, stands off the link [rad/(N m) or m/N]; not negative.
    delay : float
        d, of the effort behind the position [s]; not negative.

    Raises
    ------
    ModelError
        If shapes differ or a value is negative.
    """

    load_friction: Array
    ripple: Array
    compliance: Array
    delay: float = 0.0

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.load_friction))
        for name in ('load_friction', 'ripple', 'compliance'):
            value = frozen_array(getattr(self, name), f'drive: {name}', (n,), ModelError)
            if (value < 0.0).any():
                raise ModelError(f'drive: expected {name} not to be negative, got {value.min():g}')
            object.__setattr__(self, name, value)
        if not 0.0 <= self.delay < np.inf:
            raise ModelError(f'drive: expected a delay of at least 0 s, got {self.delay:g}')

    @classmethod
    def ideal(cls, count: int) -> 'Drive':
        """Return ``count`` drives that show the torque of their joints as it is."""
        return cls(load_friction=np.zeros(count), ripple=np.zeros(count), compliance=np.zeros(count))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> 'Drive':
        """Return the drives that :meth:`as_mapping` wrote."""
        parts = {name: np.array(values[name], dtype=float) for name in ('load_friction', 'ripple', 'compliance')}
        return cls(**parts, delay=float(values['delay']))

    def as_mapping(self) -> dict[str, Any]:
        """Return plain numbers, in the order of the joints."""
        parts: dict[str, Any] = {
            name: getattr(self, name).tolist() for name in ('load_friction', 'ripple', 'compliance')
        }
        return {**parts, 'delay': float(self.delay)}

    def load_torque(self, dq: Array, load: Array) -> Array:
        """Return the friction of the load, mu |load| tanh(dq / 0.01), shape (..., n) [N m or N]."""
        torque: Array = self.load_friction * np.abs(load) * np.tanh(dq / _SLIP)
        return torque

    def shown(self, motion: PlantMotion) -> PlantMotion:
        """Return a motion of the links with position and torque as they are at the motors, without the delay."""
        torque = motion.motor_torque + self.load_torque(motion.velocity, motion.torque - motion.friction)
        torque = torque + self.ripple * np.sin(RIPPLE_WAVES * motion.position)
        return replace(motion, motor_torque=torque, position=motion.position + self.compliance * torque)
