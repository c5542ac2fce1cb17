# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The workspace of an arm by Monte Carlo: tip positions for random joints inside their limits."""

from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.chain import chain_of
from robotid_ros.errors import CalibrationError
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Sampled tip positions and their extent.

    Attributes
    ----------
    positions : ndarray, shape (N, 3)
        In the base frame [m].
    lower, upper : ndarray, shape (3,)
        Extent along x, y, z [m].
    reach : float
        Largest distance from the base frame's origin [m].
    """

    positions: Array = field(repr=False)
    lower: Array
    upper: Array
    reach: float


def random_configurations(robot: RobotModel | DHTable, count: int, rng: np.random.Generator) -> Array:
    """Return joint coordinates drawn uniformly inside the limits, revolute joints within -pi to pi, (count, n).

    Raises
    ------
    CalibrationError
        If the count is not positive, or a prismatic joint has no limits.
    """
    if count < 1:
        raise CalibrationError(f'expected a positive number of poses, got {count}')
    lower, upper = np.array(robot.limits.lower), np.array(robot.limits.upper)
    for i, name in enumerate(robot.joint_names):
        if robot.joint_types[i] == 'revolute':
            lower[i], upper[i] = max(lower[i], -np.pi), min(upper[i], np.pi)
            if lower[i] >= upper[i]:  # limits that leave the turn around zero
                lower[i], upper[i] = robot.limits.lower[i], robot.limits.upper[i]
        elif not np.isfinite(upper[i] - lower[i]):
            raise CalibrationError(f"prismatic joint '{name}' has no position limits; give it some")
    return rng.uniform(lower, upper, (count, len(lower)))


def sample_workspace(
    robot: RobotModel | DHTable, samples: int = 100_000, *, rng: np.random.Generator | None = None
) -> Workspace:
    """Return the positions of the tip for joint coordinates drawn uniformly inside the limits.

    Joints without limits turn from -pi to pi.

    Parameters
    ----------
    robot : RobotModel or DHTable
    samples : int
    rng : numpy.random.Generator, optional

    Raises
    ------
    CalibrationError
        If the number of samples is not positive, or a prismatic joint has no limits.
    """
    rng = np.random.default_rng(0) if rng is None else rng
    chain = chain_of(robot)
    q = random_configurations(robot, samples, rng)
    positions = np.empty((samples, 3))
    for first in range(0, samples, 10_000):
        part = slice(first, first + 10_000)
        positions[part] = chain.evaluate(chain.nominal, q[part]).position
    return Workspace(
        positions=positions,
        lower=positions.min(axis=0),
        upper=positions.max(axis=0),
        reach=float(np.linalg.norm(positions, axis=1).max()),
    )
