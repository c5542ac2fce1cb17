# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A measuring instrument that sees an arm whose geometry differs from its description."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.model.kinematics import tip_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import rotation_of_vector
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerConfig(Settings):
    """How wrong the arm's description is, and how the instrument measures."""

    error = ModelError

    length_error: float = setting(
        5e-4, 'standard deviation of the errors of the joint origins, per axis', unit='m', range=(0.0, 0.1)
    )
    angle_error: float = setting(
        1e-3, 'standard deviation of the errors of the joint origins, per axis', unit='rad', range=(0.0, 0.1)
    )
    noise: float = setting(1e-4, 'of a measured coordinate', unit='m', range=(0.0, 0.1))
    angle_noise: float = setting(2e-4, 'of a measured orientation, per axis', unit='rad', range=(0.0, 0.1))
    rate: float = setting(20.0, 'of the measurements', unit='Hz', range=(0.1, 1000.0))
    seed: int = setting(0, 'of the errors and of the noise', range=(0, 2**31 - 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracker:
    """The true arm, and where instrument and target are.

    Attributes
    ----------
    arm : RobotModel
        With the true joint origins.
    frame : ndarray, shape (4, 4)
        Base of the arm in the frame of the instrument.
    target : ndarray, shape (4, 4)
        In the tip frame.
    config : TrackerConfig
    """

    arm: RobotModel
    frame: Array
    target: Array
    config: TrackerConfig

    @classmethod
    def of(cls, model: RobotModel, config: TrackerConfig) -> 'Tracker':
        """Draw the true arm around its description, and the places of instrument and target.

        Every joint origin is moved by a small motion, placement_i @ T(x, y, z) R(rx, ry, rz).
        """
        rng = np.random.default_rng(config.seed)
        errors = np.tile(np.eye(4), (model.n, 1, 1))
        errors[:, :3, 3] = rng.normal(0.0, config.length_error, (model.n, 3))
        errors[:, :3, :3] = rotation_of_vector(rng.normal(0.0, config.angle_error, (model.n, 3)))
        frame, target = np.eye(4), np.eye(4)
        frame[:3, :3], frame[:3, 3] = rotation_of_vector(rng.normal(0.0, 2.0, 3)), rng.uniform(-3.0, 3.0, 3)
        target[:3, :3], target[:3, 3] = rotation_of_vector(rng.normal(0.0, 0.5, 3)), [0.06, -0.04, 0.11]
        arm = replace(model, placements=model.placements @ errors)
        return cls(arm=arm, frame=frame, target=target, config=config)

    def true_poses(self, q: Array) -> Array:
        """Return the target's poses in the frame of the instrument, shape (N, 4, 4), for q of shape (N, n)."""
        return np.asarray(self.frame @ tip_transforms(self.arm, q) @ self.target)

    def measured_poses(self, q: Array, rng: np.random.Generator) -> Array:
        """Return the poses with the instrument's noise, shape (N, 4, 4)."""
        poses = self.true_poses(q)
        poses[:, :3, 3] += rng.normal(0.0, self.config.noise, (len(q), 3))
        poses[:, :3, :3] = rotation_of_vector(rng.normal(0.0, self.config.angle_noise, (len(q), 3))) @ poses[:, :3, :3]
        return poses
