# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Simulated measurements of an arm whose geometry differs from its nominal table or description."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.chain import parallel_rows
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.pose_selection import random_configurations
from robotid_ros.errors import ModelError
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.kinematics import tip_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import quaternion_of_rotation, rigid_transform, rotation_of_vector
from robotid_ros.settings import Settings, setting

LENGTH_ERROR, ANGLE_ERROR = 5.5e-4, 1.25e-3  # [m], [rad]; standard deviations of the example's errors


def example_table() -> DHTable:
    """Return the nominal standard DH table of a small six-axis elbow arm with one parallel pair of axes.

    Link lengths as published for ABB's IRB 120 (d1 290, a2 270, a3 70, d4 302, d6 72 mm).
    """
    right = 0.5 * np.pi
    upper = np.deg2rad([165.0, 110.0, 70.0, 160.0, 120.0, 180.0])
    lower = np.deg2rad([-165.0, -110.0, -110.0, -160.0, -120.0, -180.0])
    return DHTable(
        name='elbow_arm',
        joint_names=tuple(f'joint{k}' for k in range(1, 7)),
        theta=np.array([0.0, -right, 0.0, 0.0, 0.0, np.pi]),
        d=np.array([0.290, 0.0, 0.0, 0.302, 0.0, 0.072]),
        a=np.array([0.0, 0.270, 0.070, 0.0, 0.0, 0.0]),
        alpha=np.array([-right, 0.0, -right, right, -right, 0.0]),
        limits=JointLimits.unlimited(6).overridden(lower=lower, upper=upper),
    )


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
class SimulatedArm:
    """The true arm behind simulated measurements."""

    nominal: DHTable | RobotModel
    actual: DHTable | RobotModel
    frame: Array  # shape (4, 4): robot base in the measurement frame
    tool: Array  # shape (4, 4): target in the tip frame

    def configurations(self, count: int, rng: np.random.Generator) -> Array:
        """Return random joint positions inside the limits (-pi to pi where there is none), shape (N, n)."""
        return random_configurations(self.nominal, count, rng)

    def true_poses(self, q: Array) -> tuple[Array, Array]:
        """Return positions (N, 3) and rotations (N, 3, 3) of the target in the measurement frame."""
        arm = self.actual.robot_model() if isinstance(self.actual, DHTable) else self.actual
        pose = self.frame @ tip_transforms(arm, q) @ self.tool
        return pose[:, :3, 3], pose[:, :3, :3]

    def measure(
        self,
        q: Array,
        rng: np.random.Generator,
        *,
        noise: float = 1e-4,
        angle_noise: float | None = None,
        set_name: str = '',
        point_name: str = '',
    ) -> MeasuredPoints:
        """Return measurements with Gaussian noise on every coordinate.

        ``q``, shape (N, n). ``noise``: standard deviation of each coordinate [m]. ``angle_noise``: that of each
        component of the orientation [rad]; without it, positions only.
        """
        position, rotation = self.true_poses(q)
        orientation = None
        if angle_noise is not None:
            turns = rotation_of_vector(rng.normal(0.0, angle_noise, (len(q), 3)))
            orientation = quaternion_of_rotation(turns @ rotation)
        return MeasuredPoints(
            joint_names=self.nominal.joint_names,
            q=q,
            position=position + rng.normal(0.0, noise, position.shape),
            orientation=orientation,
            sets=(set_name,) * len(q),
            points=(point_name,) * len(q),
        )


def example_arm(rng: np.random.Generator, *, known_frame: bool = False) -> SimulatedArm:
    """Return an arm whose parameters differ from those of :func:`example_table` by Gaussian errors.

    The errors have the standard deviations 0.55 mm (every d and a) and 1.25 mrad (theta, alpha and, between parallel
    axes, beta): the best fit of the nominal table has errors of some 2 mm at the target.

    ``known_frame``: measure in the robot's base frame instead of a random one.
    """
    nominal = example_table()
    errors = {name: rng.normal(0.0, ANGLE_ERROR, nominal.n) for name in ('theta', 'alpha')}
    errors |= {name: rng.normal(0.0, LENGTH_ERROR, nominal.n) for name in ('d', 'a')}
    beta = np.zeros(nominal.n)
    rows = parallel_rows(nominal)
    beta[rows] = rng.normal(0.0, ANGLE_ERROR, len(rows))
    actual = replace(nominal, beta=beta, **{name: getattr(nominal, name) + errors[name] for name in errors})
    return _placed(nominal, actual, rng, known_frame=known_frame)


def tracked_arm(model: RobotModel, config: TrackerConfig) -> SimulatedArm:
    """Return an arm with small errors of the joint origins, placement_i @ T(x, y, z) R(rx, ry, rz)."""
    rng = np.random.default_rng(config.seed)
    errors = np.tile(np.eye(4), (model.n, 1, 1))
    errors[:, :3, 3] = rng.normal(0.0, config.length_error, (model.n, 3))
    errors[:, :3, :3] = rotation_of_vector(rng.normal(0.0, config.angle_error, (model.n, 3)))
    return _placed(model, replace(model, placements=model.placements @ errors), rng)


def _placed(
    nominal: DHTable | RobotModel, actual: DHTable | RobotModel, rng: np.random.Generator, *, known_frame: bool = False
) -> SimulatedArm:
    """Return an arm with an instrument and a target in random places."""
    frame = np.eye(4)
    if not known_frame:
        frame = rigid_transform(rotation_of_vector(rng.normal(0.0, 2.0, 3)), rng.uniform(-3.0, 3.0, 3))
    tool = rigid_transform(rotation_of_vector(rng.normal(0.0, 0.5, 3)), [0.06, -0.04, 0.11])
    return SimulatedArm(nominal=nominal, actual=actual, frame=frame, tool=tool)
