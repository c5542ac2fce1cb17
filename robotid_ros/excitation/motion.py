# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Sampled joint motion with derived quantities, and back-propagation of gradients to it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel

RegressorOfMotion: TypeAlias = Callable[['Motion'], Array]  # returns shape (N, n, b)


class Motion:
    """Joint motion at N instants, with the link poses and the regressor computed when first asked for.

    Attributes
    ----------
    model : RobotModel
    q, dq, ddq, dddq : ndarray, shape (N, n)
        [rad, rad/s, rad/s^2, rad/s^3, or m, ...]
    """

    def __init__(
        self,
        model: RobotModel,
        derivatives: tuple[Array, Array, Array, Array],
        regressor_of: RegressorOfMotion | None = None,
    ) -> None:
        self.model = model
        self.q, self.dq, self.ddq, self.dddq = derivatives
        self._regressor_of = regressor_of

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def of(
        cls, trajectory: FourierTrajectory, model: RobotModel, t: Array, regressor_of: RegressorOfMotion | None = None
    ) -> 'Motion':
        """Return the motion of a Fourier trajectory at times ``t`` [s], shape (N,)."""
        return cls(model, (*trajectory.evaluate(t), trajectory.jerk(t)), regressor_of)

    @cached_property
    def poses(self) -> Array:
        """Pose of every link frame in the base frame, shape (N, n, 4, 4)."""
        return link_transforms(self.model, self.q)

    @cached_property
    def joint_axes(self) -> Array:
        """Axis of every joint in the base frame, shape (N, n, 3)."""
        axes: Array = np.einsum('nkij,kj->nki', self.poses[:, :, :3, :3], self.model.axes)
        return axes

    @cached_property
    def regressor(self) -> Array:
        """Regressor of the base parameters, shape (N, n, b)."""
        if self._regressor_of is None:
            raise RuntimeError('this motion was made without base parameters')
        return self._regressor_of(self)


@dataclass(slots=True, kw_only=True)
class MotionGradient:
    """Derivative of a scalar with respect to a sampled motion, summed up term by term.

    Attributes
    ----------
    q, dq, ddq, dddq : ndarray, shape (N, n)
        With respect to position, velocity, acceleration and jerk.
    regressor : ndarray, shape (N, n, b), or None
        With respect to the regressor's entries, still to be carried through its derivative.
    """

    q: Array
    dq: Array
    ddq: Array
    dddq: Array
    regressor: Array | None = field(default=None)

    @classmethod
    def zeros(cls, shape: tuple[int, int]) -> 'MotionGradient':
        """Return a zero gradient for N samples of n joints."""
        return cls(q=np.zeros(shape), dq=np.zeros(shape), ddq=np.zeros(shape), dddq=np.zeros(shape))

    def add_regressor(self, weights: Array) -> None:
        """Add a term with respect to the regressor's entries, shape (N, n, b)."""
        self.regressor = weights if self.regressor is None else self.regressor + weights

    def add_point(self, motion: Motion, link: int, points: Array, force: Array) -> None:
        """Add a term with respect to points, shape (N, 3), that move with a link: J^T f, sample by sample.

        The force holds the derivatives with respect to them, in the base frame. Link -1 is the base, which adds
        nothing.
        """
        if link < 0:
            return
        chain = np.zeros_like(self.q)
        for i in range(link + 1):
            axis = motion.joint_axes[:, i]
            if motion.model.joint_types[i] == 'revolute':
                axis = np.cross(axis, points - motion.poses[:, i, :3, 3])
            chain[:, i] = np.einsum('ni,ni->n', axis, force)
        self.q += chain @ motion.model.coupling


class FourierGrid:
    """The series' terms at fixed times, shape (N,) [s]: from coefficients to a motion, and gradients back."""

    def __init__(self, model: RobotModel, t: Array, harmonics: int, base_frequency: float) -> None:
        self.model = model
        self.t = t
        self._bases = fourier_basis(t, harmonics, base_frequency)

    def motion(self, coefficients: Array, regressor_of: RegressorOfMotion | None = None) -> Motion:
        """Return the motion of coefficients, shape (n, 2 L + 1)."""
        rows = coefficients.T
        position, velocity, acceleration, jerk = (basis @ rows for basis in self._bases)
        return Motion(self.model, (position, velocity, acceleration, jerk), regressor_of)

    def pull_back(self, gradient: MotionGradient) -> Array:
        """Return the derivative with respect to the coefficients, shape (n, 2 L + 1)."""
        parts = (gradient.q, gradient.dq, gradient.ddq, gradient.dddq)
        total: Array = np.sum([part.T @ basis for part, basis in zip(parts, self._bases, strict=True)], axis=0)
        return total
