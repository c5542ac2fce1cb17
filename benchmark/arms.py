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
from dynamics_helpers import arm
from numpy.typing import ArrayLike

from robotid_ros.excitation import FourierTrajectory
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters


def limited(name: str, acceleration: ArrayLike = 8.0) -> RobotModel:
    """Return an arm of the tests with acceleration limits [rad/s^2]."""
    model = arm(name)
    return replace(model, limits=model.limits.overridden(acceleration=np.broadcast_to(acceleration, model.n)))


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
    phase, size = rng.uniform(0, 2 * np.pi, (n, 5)), rng.uniform(0.3, 1.0, (n, 5))
    fastest = 2.0 * np.pi / period * size
    a, b = fastest * np.cos(phase), -fastest * np.sin(phase)
    trajectory = FourierTrajectory(a=a, b=b, offset=np.zeros(n), base_frequency=1.0 / period)
    return t, *trajectory.evaluate(t)
