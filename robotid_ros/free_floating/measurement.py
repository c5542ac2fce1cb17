# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is measured on a floating robot, and the noise of its sensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError
from robotid_ros.model.transforms import quaternion_of_rotation, rotation_of_quaternion, rotation_of_vector
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorNoise(Settings):
    """Standard deviations of white measurement noise, per sample and axis."""

    error = DataError

    base_linear_velocity: float = setting(1e-4, 'of the velocity of the base', unit='m/s', range=(0.0, inf))
    base_angular_velocity: float = setting(1e-4, 'of the rate of the base', unit='rad/s', range=(0.0, inf))
    joint_velocity: float = setting(1e-4, 'of the joint velocities', unit='rad/s, m/s', range=(0.0, inf))
    joint_position: float = setting(0.0, 'of the joint positions', unit='rad, m', range=(0.0, inf))
    base_position: float = setting(0.0, 'of the position of the base', unit='m', range=(0.0, inf))
    base_orientation: float = setting(0.0, 'of the orientation of the base', unit='rad', range=(0.0, inf))


_SIGNALS = ('time', 'q', 'dq', 'base_twist', 'base_position', 'base_orientation')


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingMeasurement:
    """N samples of a floating robot: base pose and twist, joint positions and rates.

    The base is the root frame of the URDF. Its twist is along its own axes, as in
    ``nav_msgs/Odometry``; the pose is needed only where there is momentum.

    Attributes
    ----------
    joint_names : tuple of str
    time : ndarray, shape (N,)
        Strictly increasing [s].
    q, dq : ndarray, shape (N, n)
        [rad, rad/s, or m, m/s]
    base_twist : ndarray, shape (N, 6)
        [v; w]: velocity of the base frame's origin and angular velocity relative to inertial space,
        along the base frame's axes [m/s, rad/s].
    base_position : ndarray, shape (N, 3), or None
        Origin of the base frame in an inertial frame [m].
    base_orientation : ndarray, shape (N, 4), or None
        Unit quaternion (w, x, y, z) of the base frame in the inertial frame.

    Raises
    ------
    DataError
        If shapes differ, a value is not finite, time does not increase or a quaternion has no length.
    """

    joint_names: tuple[str, ...]
    time: Array
    q: Array
    dq: Array
    base_twist: Array
    base_position: Array | None = None
    base_orientation: Array | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        def put(name: str, shape: tuple[int | None, ...]) -> Array:
            array = frozen_array(getattr(self, name), name, shape, DataError)
            object.__setattr__(self, name, array)
            return array

        time = put('time', (None,))
        if len(time) == 0:
            raise DataError('expected at least one sample, got none')
        if (np.diff(time) <= 0.0).any():
            k = int(np.argmax(np.diff(time) <= 0.0))
            raise DataError(f'time: expected increasing stamps, got {time[k]:g} s and then {time[k + 1]:g} s')
        count, n = len(time), len(self.joint_names)
        put('q', (count, n))
        put('dq', (count, n))
        put('base_twist', (count, 6))
        if (self.base_position is None) != (self.base_orientation is None):
            raise DataError('base pose: expected both position and orientation, or neither; got one of them')
        if self.base_position is not None:
            put('base_position', (count, 3))
            quaternion = put('base_orientation', (count, 4))
            length = np.linalg.norm(quaternion, axis=1)
            if np.abs(length - 1.0).max() > 1e-2:
                k = int(np.argmax(np.abs(length - 1.0)))
                raise DataError(f'base_orientation: expected unit quaternions, got one of length {length[k]:g}')

    def __len__(self) -> int:
        return len(self.time)

    @property
    def has_pose(self) -> bool:
        """Whether the base pose was measured."""
        return self.base_position is not None

    def slice(self, start: int, stop: int) -> 'FloatingMeasurement':
        """Return samples ``start`` to ``stop - 1``."""
        signals = {name: getattr(self, name) for name in _SIGNALS}
        return replace(self, **{name: value[start:stop] for name, value in signals.items() if value is not None})

    def with_noise(self, noise: SensorNoise, rng: np.random.Generator) -> 'FloatingMeasurement':
        """Return a copy with white Gaussian noise on every signal."""

        def draw(shape: tuple[int, ...], deviation: float) -> Array:
            return deviation * rng.standard_normal(shape)

        count, n = self.q.shape
        twist = np.hstack([draw((count, 3), noise.base_linear_velocity), draw((count, 3), noise.base_angular_velocity)])
        noisy = replace(
            self,
            q=self.q + draw((count, n), noise.joint_position),
            dq=self.dq + draw((count, n), noise.joint_velocity),
            base_twist=self.base_twist + twist,
        )
        if self.base_position is None or self.base_orientation is None:
            return noisy
        error = rotation_of_vector(draw((count, 3), noise.base_orientation))
        turned = quaternion_of_rotation(rotation_of_quaternion(self.base_orientation) @ error)
        return replace(
            noisy, base_position=self.base_position + draw((count, 3), noise.base_position), base_orientation=turned
        )
