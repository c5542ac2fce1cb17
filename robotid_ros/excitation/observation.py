# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The base regressor for the optimiser: differentiable, with the noise of each joint."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.motion import Motion, MotionGradient
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Parameters to be identified, with prior values and the noise of each joint's torque."""

    base: BaseParameters
    prior: Array  # shape (b,): prior values of the base parameters, for the torque limits
    noise: Array  # shape (n,): standard deviation of each joint's torque relative to the others'; ones where unknown
    coulomb: IntArray  # shape (n,): base column of each joint's Coulomb friction; -1 where there is none
    # shape (n,): velocity over which sign(dq) is smoothed to tanh(dq / smoothing) [rad/s]; 0 keeps the sign
    smoothing: Array

    @property
    def exact(self) -> 'Observation':
        """The same with the true sign of the velocity."""
        return replace(self, smoothing=np.zeros_like(self.smoothing))

    def regressor(self, motion: Motion) -> Array:
        """Return the base regressor, shape (N, n, b), Coulomb columns smoothed where asked."""
        result = self.base.regressor(motion.q, motion.dq, motion.ddq)
        smoothed = [j for j in range(motion.model.n) if self.coulomb[j] >= 0 and self.smoothing[j] > 0.0]
        if smoothed:
            result = np.array(result)
            for j in smoothed:
                result[:, j, self.coulomb[j]] = np.tanh(motion.dq[:, j] / self.smoothing[j])
        return result

    def pull_back(self, motion: Motion, gradient: MotionGradient) -> None:
        """Back-propagate the gradient with respect to the regressor to the motion, in place."""
        if gradient.regressor is None:
            return
        weights, gradient.regressor = gradient.regressor, None
        for j in range(motion.model.n):
            if self.coulomb[j] >= 0 and self.smoothing[j] > 0.0:
                column = self.coulomb[j]
                slope = (1.0 - motion.regressor[:, j, column] ** 2) / self.smoothing[j]
                gradient.dq[:, j] += weights[:, j, column] * slope
        parts = self.base.regressor_vjp(motion.q, motion.dq, motion.ddq, weights)
        gradient.q += parts[0]
        gradient.dq += parts[1]
        gradient.ddq += parts[2]


def observation_of(model: RobotModel, config: ExcitationConfig, smoothing: float = 0.02) -> Observation:
    """Return the parameters that a design is for, and their noise.

    The model's inertial parameters, rotor inertia, damping and friction are the prior values. ``smoothing`` is the
    width of the smoothed sign(dq) as a fraction of the velocity limit (of 1 rad/s where there is none); 0 keeps the
    sign.
    """
    n = model.n
    base = base_parameters(
        model,
        rotor_inertia=config.rotor_inertia,
        viscous=config.viscous,
        coulomb=config.coulomb,
        offset=config.offset,
        tolerance=DATA_TOLERANCE,
    )
    sigma = frozen_array(config.noise or np.ones(n), 'noise', (n,), ExcitationError)
    if (sigma <= 0.0).any():
        raise ExcitationError(f'noise: expected positive standard deviations [N m], got {sigma.min():g}')
    first = n * (10 + config.rotor_inertia + config.viscous)
    place = {int(column): k for k, column in enumerate(base.independent)}
    columns = [place.get(first + j, -1) if config.coulomb else -1 for j in range(n)]
    speed = np.where(np.isfinite(model.limits.velocity), model.limits.velocity, 1.0)
    return Observation(
        base=base,
        prior=base.values,
        noise=sigma,
        coulomb=np.array(columns, dtype=np.int64),
        smoothing=smoothing * speed,
    )
