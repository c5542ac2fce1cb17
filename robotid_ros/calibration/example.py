# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Simulated measurements of a six-axis arm whose geometry differs from its nominal table."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.chain import chain_of_dh, parallel_rows
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.workspace import random_configurations
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.transforms import quaternion_of_rotation, rotation_of_vector

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
class SimulatedArm:
    """The true arm behind simulated measurements.

    Attributes
    ----------
    nominal, actual : DHTable
    frame : ndarray, shape (4, 4)
        Robot base in the measurement frame.
    tool : ndarray, shape (4, 4)
        Target in the tip frame.
    """

    nominal: DHTable
    actual: DHTable
    frame: Array
    tool: Array

    def configurations(self, count: int, rng: np.random.Generator) -> Array:
        """Return random joint positions inside the limits (-pi to pi where there is none), shape (N, n)."""
        return random_configurations(self.nominal, count, rng)

    def true_poses(self, q: Array) -> tuple[Array, Array]:
        """Return positions (N, 3) and rotations (N, 3, 3) of the target in the measurement frame."""
        chain = chain_of_dh(self.actual)
        pose = chain.evaluate(chain.nominal, q, base=np.tile(self.frame, (len(q), 1, 1)))
        return pose.position + pose.rotation @ self.tool[:3, 3], pose.rotation @ self.tool[:3, :3]

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

        Parameters
        ----------
        q : ndarray, shape (N, n)
        rng : numpy.random.Generator
        noise : float
            Standard deviation of each coordinate [m].
        angle_noise : float, optional
            That of each component of the orientation [rad]; without it, positions only.
        set_name, point_name : str
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

    Parameters
    ----------
    rng : numpy.random.Generator
    known_frame : bool
        Measure in the robot's base frame instead of a random one.
    """
    nominal = example_table()
    errors = {name: rng.normal(0.0, ANGLE_ERROR, nominal.n) for name in ('theta', 'alpha')}
    errors |= {name: rng.normal(0.0, LENGTH_ERROR, nominal.n) for name in ('d', 'a')}
    beta = np.zeros(nominal.n)
    rows = parallel_rows(nominal)
    beta[rows] = rng.normal(0.0, ANGLE_ERROR, len(rows))
    actual = replace(nominal, beta=beta, **{name: getattr(nominal, name) + errors[name] for name in errors})
    frame = np.eye(4)
    if not known_frame:
        frame[:3, :3] = rotation_of_vector(rng.normal(0.0, 2.0, 3))
        frame[:3, 3] = rng.uniform(-3.0, 3.0, 3)
    tool = np.eye(4)
    tool[:3, :3] = rotation_of_vector(rng.normal(0.0, 0.5, 3))
    tool[:3, 3] = [0.06, -0.04, 0.11]
    return SimulatedArm(nominal=nominal, actual=actual, frame=frame, tool=tool)
