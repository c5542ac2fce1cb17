# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a simulated arm did, and what its sensors show: quantised and noisy positions, velocities, currents."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, freeze_fields
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel


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


_UNLIMITED_EFFORT = 50.0


def effort_scale(model: RobotModel) -> Array:
    """Return the effort that noise levels are fractions of: the limits, or 50 N m where there is none."""
    return np.asarray(np.where(np.isfinite(model.limits.effort), model.limits.effort, _UNLIMITED_EFFORT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensors:
    """Sensors of an arm of n joints.

    Attributes
    ----------
    encoder_resolution : ndarray, shape (n,)
        Smallest step of the positions [rad or m]; zero for none.
    position_noise, velocity_noise : ndarray, shape (n,)
        Standard deviations [rad, rad/s; or m]; position noise is added before the quantisation.
    effort_noise : ndarray, shape (n,)
        Standard deviation of the torque computed from the current [N m or N].
    drive_gain : ndarray, shape (n,)
        Joint torque per motor current [N m/A]; negative behind a gear that turns the other way.
    effort_map : ndarray, shape (n, n), optional
        Torques of the joints over the efforts, where these are of coupled motors.

    Raises
    ------
    ModelError
        If shapes differ, a level is negative, or a gain is zero.
    """

    encoder_resolution: Array
    position_noise: Array
    velocity_noise: Array
    effort_noise: Array
    drive_gain: Array
    effort_map: Array | None = None

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.drive_gain))
        freeze_fields(self, ModelError, {'drive_gain': (n,), 'effort_map': (n, n)})
        freeze_fields(self, ModelError, dict.fromkeys(self.__slots__[:-2], (n,)), at_least=0.0)
        if (self.drive_gain == 0.0).any():
            raise ModelError('drive_gain: expected numbers other than zero, got 0', name='drive_gain', found=0.0)

    @classmethod
    def perfect(cls, drive_gain: Array) -> 'Sensors':
        """Return sensors without noise or quantisation."""
        zero = np.zeros(len(drive_gain))
        return cls(
            encoder_resolution=zero, position_noise=zero, velocity_noise=zero, effort_noise=zero, drive_gain=drive_gain
        )

    @classmethod
    def typical(
        cls,
        model: RobotModel,
        drive_gain: Array,
        *,
        encoder_bits: int = 19,
        position_noise: float = 2e-5,
        velocity_noise: float = 1e-3,
        effort_noise: float = 3e-3,
    ) -> 'Sensors':
        """Return the sensors of a good industrial arm.

        Parameters
        ----------
        model : RobotModel
        drive_gain : ndarray, shape (n,)
            [N m/A]
        encoder_bits : int
            Encoder steps per turn (per metre, for a prismatic joint) as a power of two; 0 for no quantisation.
        position_noise, velocity_noise : float
            Standard deviations [rad, rad/s; or m].
        effort_noise : float
            Standard deviation as a fraction of each joint's effort limit.
        """
        span = np.where(model.revolute, 2.0 * np.pi, 1.0)
        return cls(
            encoder_resolution=span / 2.0**encoder_bits if encoder_bits > 0 else np.zeros(model.n),
            position_noise=np.full(model.n, position_noise),
            velocity_noise=np.full(model.n, velocity_noise),
            effort_noise=effort_noise * effort_scale(model),
            drive_gain=drive_gain,
            effort_map=model.effort_map if model.effort_at == 'motors' else None,
        )

    def measure(self, motion: PlantMotion, rng: np.random.Generator) -> dict[str, Array]:
        """Return what the sensors show: ``position``, ``velocity``, ``effort`` and ``current``, each of shape (N, n).

        The effort is the torque of the motor at the joint, as the drive computes it from its current.
        """
        noise = rng.standard_normal((3, *motion.position.shape))
        position = motion.position + self.position_noise * noise[0]
        step = self.encoder_resolution
        if step.any():
            safe = np.where(step == 0.0, 1.0, step)
            position = np.where(step == 0.0, position, np.rint(position / safe) * safe)
        velocity = motion.velocity + self.velocity_noise * noise[1]
        effort = motion.motor_torque + self.effort_noise * noise[2]
        effort = effort if self.effort_map is None else effort @ np.linalg.inv(self.effort_map).T
        return {'position': position, 'velocity': velocity, 'effort': effort, 'current': effort / self.drive_gain}
