# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Sampled joint motion, the base regressor along it, and back-propagation of gradients to it."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.dynamics import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel


class Motion:
    """Joint motion at N instants, with the link poses and the regressor computed when first asked for.

    The derivatives q, dq, ddq and dddq have the shape (N, n) [rad, rad/s, rad/s^2, rad/s^3, or m, ...]. Regressor and
    torque need the observation.
    """

    def __init__(
        self,
        model: RobotModel,
        derivatives: tuple[Array, Array, Array, Array],
        observation: 'Observation | None' = None,
    ) -> None:
        self.model = model
        self.derivatives = derivatives
        self.q, self.dq, self.ddq, _ = derivatives
        self._observation = observation

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def of(
        cls, trajectory: FourierTrajectory, model: RobotModel, t: Array, observation: 'Observation | None' = None
    ) -> 'Motion':
        """Return the motion of a Fourier trajectory at times ``t`` [s], shape (N,)."""
        return cls(model, (*trajectory.evaluate(t), trajectory.jerk(t)), observation)

    @cached_property
    def poses(self) -> Array:
        """Pose of every link frame in the base frame, shape (N, n, 4, 4)."""
        return link_transforms(self.model, self.q)

    @cached_property
    def joint_axes(self) -> Array:
        """Axis of every joint in the base frame, shape (N, n, 3)."""
        return np.asarray(np.einsum('nkij,kj->nki', self.poses[:, :, :3, :3], self.model.axes))

    @property
    def observation(self) -> 'Observation':
        """The base parameters, with their prior values."""
        if self._observation is None:
            raise RuntimeError('this motion was made without base parameters')
        return self._observation

    @cached_property
    def regressor(self) -> Array:
        """Regressor of the base parameters, shape (N, n, b)."""
        return self.observation.regressor(self)

    @cached_property
    def torque(self) -> Array:
        """Torque of the prior model, tau = Y beta, shape (N, n) [N m or N]."""
        return np.asarray(self.regressor @ self.observation.prior)


class MotionGradient:
    """Derivative of a scalar with respect to N samples of the motion of n joints, summed up term by term from zero.

    ``derivatives``, shape (4, N, n), are those with respect to position, velocity, acceleration and jerk;
    ``regressor``, shape (N, n, b), or None, that with respect to the regressor's entries, still to be carried through
    its derivative.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.derivatives = np.zeros((4, *shape))
        self.regressor: Array | None = None

    def add_regressor(self, weights: Array) -> None:
        """Add a term with respect to the regressor's entries, shape (N, n, b)."""
        self.regressor = weights if self.regressor is None else self.regressor + weights

    def add_torque(self, motion: Motion, forces: Array) -> None:
        """Add a term with respect to the torque of the prior model, shape (N, n)."""
        self.add_regressor(forces[:, :, None] * motion.observation.prior)

    def add_point(self, motion: Motion, link: int, points: Array, force: Array) -> None:
        """Add a term with respect to points, shape (N, 3), that move with a link: J^T f, sample by sample.

        The force holds the derivatives with respect to them, in the base frame. Link -1 is the base, which adds
        nothing.
        """
        if link < 0:
            return
        chain = np.zeros_like(motion.q)
        for i in range(link + 1):
            axis = motion.joint_axes[:, i]
            if motion.model.joint_types[i] == 'revolute':
                axis = np.cross(axis, points - motion.poses[:, i, :3, 3])
            chain[:, i] = np.einsum('ni,ni->n', axis, force)
        self.derivatives[0] += chain @ motion.model.coupling


class FourierGrid:
    """The series' terms at fixed times, shape (N,) [s]: from coefficients to a motion, and gradients back."""

    def __init__(self, model: RobotModel, t: Array, harmonics: int, base_frequency: float) -> None:
        self.model = model
        self.t = t
        self._bases = fourier_basis(t, harmonics, base_frequency)

    def motion(self, coefficients: Array, observation: 'Observation | None' = None) -> Motion:
        """Return the motion of coefficients, shape (n, 2 L + 1)."""
        rows = coefficients.T
        position, velocity, acceleration, jerk = (basis @ rows for basis in self._bases)
        return Motion(self.model, (position, velocity, acceleration, jerk), observation)

    def pull_back(self, gradient: MotionGradient) -> Array:
        """Return the derivative with respect to the coefficients, shape (n, 2 L + 1)."""
        parts = zip(gradient.derivatives, self._bases, strict=True)
        return np.asarray(np.sum([part.T @ basis for part, basis in parts], axis=0))


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
                gradient.derivatives[1, :, j] += weights[:, j, column] * slope
        gradient.derivatives[:3] += self.base.regressor_vjp(motion.q, motion.dq, motion.ddq, weights)


_SMOOTHING = 0.02  # width of the smoothed sign(dq), of the velocity limit (of 1 rad/s where there is none)


def observation_of(model: RobotModel, config: ExcitationConfig) -> Observation:
    """Return the parameters that a design is for, and their noise.

    The model's inertial parameters, rotor inertia, damping and friction are the prior values.
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
        smoothing=_SMOOTHING * speed,
    )
