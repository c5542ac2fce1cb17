# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arms and motions that are measured beside those of the tests."""

from dataclasses import replace

import numpy as np
from dynamics_helpers import ARMS, arm

from robotid_ros.model import JointLimits, RobotModel
from robotid_ros.model.inertia import inertial_parameters


def ur10e_with_acceleration_limit() -> RobotModel:
    """Return the packaged UR10e with 8 rad/s^2 at every joint."""
    model = RobotModel.from_urdf(ARMS['ur10e'])
    return replace(model, limits=model.limits.overridden(acceleration=np.full(6, 8.0)))


def panda_with_published_limits() -> RobotModel:
    """Return the Panda with its maker's acceleration limits."""
    model = arm('panda')
    published = np.array([15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0])
    return replace(model, limits=model.limits.overridden(acceleration=published[: model.n]))


def er16_main_axes() -> RobotModel:
    """Return the ER-16's first three joints with the limits of the method's thesis; its masses are not published."""
    inf = np.full(3, np.inf)
    limits = JointLimits(
        lower=np.deg2rad([-180.0, -60.0, -170.0]),
        upper=np.deg2rad([180.0, 60.0, 80.0]),
        velocity=np.deg2rad([145.0, 105.0, 170.0]),
        acceleration=np.deg2rad([50.0, 40.0, 65.0]),
        jerk=inf,
        effort=inf,
    )
    rows = [(np.pi, 0.0, 0.0, 0.0), (np.pi / 2, 0.16, 0.0, -np.pi / 2), (0.0, 0.68, 0.0, 0.0)]
    return RobotModel.from_mdh(rows, name='ER-16', limits=limits)


def seven_axes(rng: np.random.Generator) -> RobotModel:
    """Return an arm of seven axes with the joint pattern of an iiwa or a Panda, of random solid bodies."""
    alpha = [0.0, -np.pi / 2, np.pi / 2, np.pi / 2, -np.pi / 2, np.pi / 2, np.pi / 2]
    rows = [
        (alpha[k], 0.0825 * (k == 3) - 0.0825 * (k == 4), d, 0.0)
        for k, d in enumerate([0.33, 0, 0.32, 0, 0.38, 0, 0.1])
    ]
    bodies = []
    for mass in np.linspace(4.0, 1.0, 7):
        inertia = mass * 0.004 * (np.eye(3) + 0.2 * np.diag(rng.uniform(0.0, 1.0, 3)))
        bodies.append(inertial_parameters(mass, rng.uniform(-0.08, 0.08, 3), inertia))
    return RobotModel.from_mdh(rows).with_inertial(np.array(bodies), rotor_inertia=np.linspace(0.5, 0.05, 7))


def fourier_motion(
    n: int, samples: int, rate: float, rng: np.random.Generator, period: float = 20.0
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return times, positions, velocities and accelerations of five random harmonics."""
    t = np.arange(samples) / rate
    w = 2.0 * np.pi / period * np.arange(1, 6)
    phase, size = rng.uniform(0, 2 * np.pi, (n, 5)), rng.uniform(0.3, 1.0, (n, 5)) / np.arange(1, 6)
    angle = t[:, None, None] * w + phase
    return (
        t,
        np.sum(size * np.sin(angle), axis=2),
        np.sum(size * w * np.cos(angle), axis=2),
        -np.sum(size * w * w * np.sin(angle), axis=2),
    )
