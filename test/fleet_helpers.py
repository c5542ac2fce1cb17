# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings of several arms over months, their torques by Pinocchio."""

from pathlib import Path

import numpy as np
from identification_helpers import TWO_LINKS, fourier_motion, pinocchio_torque

from robotid_ros.data import Recording, write_csv
from robotid_ros.model import RobotModel

MONTH = 30 * 86400.0
BEGIN = 1.75e9  # [s since 1970]
QUICK = ['--friction', 'coulomb_viscous', '--estimator', 'wls', '--torque-bandwidth', '-1', '--cutoff', '20']


def two_links() -> RobotModel:
    return RobotModel.from_urdf(TWO_LINKS, joints=('shoulder', 'elbow'))


def record(path: Path, *, month: int, seed: int, friction: float = 1.0, load: float = 1.0) -> None:
    """Write a recording of an arm whose friction and masses are those of its description times something."""
    rng = np.random.default_rng(seed)
    model = two_links()
    model = model.with_inertial(model.inertial * np.array([1.0, load])[:, None])
    time, q, dq, ddq = fourier_motion(2, rng)
    # The recordings of one arm scatter: grease is warmer on some days.
    coulomb = friction * np.array([3.0, 1.5]) * rng.normal(1.0, 0.01, 2)
    viscous = np.array([2.0, 1.0]) * rng.normal(1.0, 0.02, 2)
    torque = pinocchio_torque(model, q, dq, ddq) + coulomb * np.sign(dq) + viscous * dq
    torque += rng.normal(0.0, 0.05, q.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(
        path, Recording(joint_names=model.joint_names, time=BEGIN + month * MONTH + time, position=q, effort=torque)
    )
