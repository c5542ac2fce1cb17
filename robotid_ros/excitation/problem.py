# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""An excitation design as an optimisation problem: variables, smooth objective, exact gradient."""

from collections.abc import Sequence

import numpy as np
import scipy.linalg

from robotid_ros.arrays import Array
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import Constraint, JointRanges, excess_at_rest
from robotid_ros.excitation.criteria import (
    Excitation,
    criterion_gradient,
    information_matrix,
    measure_excitation,
)
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis, trajectory_extremes
from robotid_ros.excitation.motion import FourierGrid, Motion, MotionGradient
from robotid_ros.excitation.observation import Observation
from robotid_ros.excitation.verification import scale_into_joint_limits, worst_excesses
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel

_REPORT_SAMPLES = 1000
_POSES = 128


def free_directions(harmonics: int, base_frequency: float, *, at_rest: bool, fixed_start: bool) -> Array:
    """Return an orthonormal basis, shape (2 L + 1, d), of the coefficients that keep the start conditions.

    Zero velocity and acceleration at t = 0, and a position that does not change, are linear in the coefficients of each
    joint: A c = const. The basis spans the null space of A.
    """
    position, velocity, acceleration, _ = fourier_basis([0.0], harmonics, base_frequency)
    rows = [velocity, acceleration / (2.0 * np.pi * base_frequency)] if at_rest else []
    rows += [position] if fixed_start else []
    if not rows:
        return np.eye(2 * harmonics + 1)
    basis: Array = scipy.linalg.null_space(np.vstack(rows))
    return basis


class ExcitationProblem:
    """Augmented Lagrangian of a design: criterion, joint limits on a fine grid, the rest on a coarse one.

    Parameters
    ----------
    model : RobotModel
    limits : JointLimits
    constraints : sequence of Constraint
        Besides the joint limits.
    observation : Observation
    config : ExcitationConfig
        Its criterion, harmonics, period and start.
    """

    def __init__(
        self,
        model: RobotModel,
        limits: JointLimits,
        constraints: Sequence[Constraint],
        observation: Observation,
        config: ExcitationConfig,
    ) -> None:
        self.model, self.limits, self.constraints = model, limits, tuple(constraints)
        self.observation, self.config, harmonics, period = observation, config, config.harmonics, config.period
        self.base_frequency = 1.0 / period
        self.start = np.array(config.start_position) if config.start_position else None
        self.ranges = JointRanges(model, limits)
        # twenty samples per highest harmonic; the regressor, richer than the motion, needs no more
        # for the extremes of its spectrum than its mean over the period
        count = max(20 * harmonics, 60)
        fine = np.linspace(0.0, period, 4 * count, endpoint=False)
        self._coarse = FourierGrid(model, fine[::4], harmonics, self.base_frequency)
        self._fine = FourierGrid(model, fine, harmonics, self.base_frequency)
        self._free = free_directions(
            harmonics, self.base_frequency, at_rest=config.start_at_rest, fixed_start=self.start is not None
        )
        self._held = np.zeros((model.n, 2 * harmonics + 1))
        if self.start is not None:
            self._held[:, -1] = self.start

    @property
    def multiplier_shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of the multipliers: joint limits first, then the other constraints in order."""
        coarse, fine = len(self._coarse.t), len(self._fine.t)
        return ((fine, len(self.ranges.bounds)), *((coarse, len(c.bounds)) for c in self.constraints))

    def coefficients(self, variables: Array) -> Array:
        """Return the coefficients, shape (n, 2 L + 1), of free variables."""
        rows: Array = self._held + variables.reshape(self.model.n, -1) @ self._free.T
        return rows

    def variables(self, trajectory: FourierTrajectory) -> Array:
        """Return the free variables of a trajectory that keeps the start conditions."""
        rows: Array = (trajectory.coefficients - self._held) @ self._free
        return rows.ravel()

    def trajectory(self, variables: Array) -> FourierTrajectory:
        """Return the trajectory of free variables."""
        return FourierTrajectory.from_coefficients(self.coefficients(variables), self.base_frequency)

    def random_variables(self, rng: np.random.Generator) -> Array:
        """Return a random first guess inside the joint limits, at a random part of what they allow."""
        shape = rng.standard_normal((self.model.n, self._free.shape[1])) @ self._free.T
        if self.start is None:
            shape[:, -1] = 0.0
        extremes, _ = trajectory_extremes(FourierTrajectory.from_coefficients(shape, self.base_frequency))
        low = np.where(np.isfinite(self.limits.lower), self.limits.lower, -np.pi)
        high = np.where(np.isfinite(self.limits.upper), self.limits.upper, np.pi)
        allowed = np.array(
            [high - low, *(2.0 * limit for limit in (self.limits.velocity, self.limits.acceleration, self.limits.jerk))]
        )
        factor = (allowed / (extremes[..., 1] - extremes[..., 0])).min(axis=0) * rng.uniform(0.5, 0.95, self.model.n)
        rows = self._held + factor[:, None] * shape
        if self.start is None:
            rows[:, -1] = self._random_pose(rng, low, high)
        trajectory = FourierTrajectory.from_coefficients(rows, self.base_frequency)
        return self.variables(scale_into_joint_limits(trajectory, self.limits, self.start))

    def _random_pose(self, rng: np.random.Generator, low: Array, high: Array) -> Array:
        """Return a random pose in which the arm may rest, from the middle half of the ranges if possible."""
        part = np.repeat([0.25, 0.5], _POSES // 2)[:, None] * rng.uniform(-1.0, 1.0, (_POSES, self.model.n))
        poses = (low + high) / 2.0 + part * (high - low)
        if not self.constraints:
            return np.array(poses[0])
        excess = np.maximum(excess_at_rest(self.constraints, self.model, poses, self.observation.regressor), -1.0)
        # a little away from the limits, to leave room for the motion
        good = excess < -0.1 if (excess < -0.1).any() else excess <= excess.min()
        return np.array(poses[int(np.argmax(good))])

    def excess(self, variables: Array) -> list[Array]:
        """Return the normalised excesses of the joint limits and of each other constraint, on the grids."""
        rows = self.coefficients(variables)
        coarse = self._coarse.motion(rows, self.observation.regressor)
        parts = [self.ranges.evaluate(self._fine.motion(rows))[0]]
        parts += [constraint.evaluate(coarse)[0] for constraint in self.constraints]
        return parts

    def lagrangian(
        self, variables: Array, multipliers: Sequence[Array], margins: Sequence[float], penalty: float, sharpness: float
    ) -> tuple[float, Array]:
        """Return the augmented Lagrangian and its gradient with respect to the variables.

            L = J + 1/(2 mu) mean_t sum_k (max(0, lambda + mu (g + margin))^2 - lambda^2)

        Parameters
        ----------
        variables : ndarray, shape (n d,)
        multipliers : sequence of ndarray
            lambda, of the shapes of :attr:`multiplier_shapes`.
        margins : sequence of float
            How far inside the joint limits, and each other constraint, to stay.
        penalty : float
            mu
        sharpness : float
            See :func:`robotid_ros.excitation.criteria.criterion_gradient`.

        Notes
        -----
        Source: Nocedal and Wright, "Numerical Optimization", 2nd ed., eq. 17.55.
        """
        rows = self.coefficients(variables)
        coarse, fine = self._coarse.motion(rows, self.observation.regressor), self._fine.motion(rows)
        coarse_gradient = MotionGradient.zeros(coarse.q.shape)
        fine_gradient = MotionGradient.zeros(fine.q.shape)
        value = self._criterion(coarse, coarse_gradient, sharpness)
        if not np.isfinite(value):
            return 1e10, np.zeros_like(variables)
        terms: list[tuple[Constraint, Motion, MotionGradient]] = [(self.ranges, fine, fine_gradient)]
        terms += [(constraint, coarse, coarse_gradient) for constraint in self.constraints]
        for (constraint, motion, gradient), multiplier, margin in zip(terms, multipliers, margins, strict=True):
            excess, pull_back = constraint.evaluate(motion)
            shifted = np.maximum(0.0, multiplier + penalty * (excess + margin))
            value += float(np.sum(shifted**2 - multiplier**2)) / (2.0 * penalty * len(motion.t))
            pull_back(shifted / len(motion.t), gradient)
        self.observation.pull_back(coarse, coarse_gradient)
        total = self._coarse.pull_back(coarse_gradient) + self._fine.pull_back(fine_gradient)
        return value, (total @ self._free).ravel()

    def between_samples(self, variables: Array, rate: float) -> list[float]:
        """Return the largest excess of the joint limits, exactly, and of each other constraint at a rate [Hz]."""
        trajectory = self.trajectory(variables)
        exact = self.ranges.extreme_excess(trajectory)
        others = (
            worst_excesses(trajectory, self.model, [constraint], self.observation.exact, rate=rate)
            for constraint in self.constraints
        )
        return [exact, *(max((peak.excess for peak in peaks), default=-np.inf) for peaks in others)]

    def _criterion(self, motion: Motion, gradient: MotionGradient, sharpness: float) -> float:
        """Return the smooth criterion and add its gradient with respect to the regressor."""
        noise = self.observation.noise
        information = information_matrix(motion.regressor, noise)
        value, slope = criterion_gradient(information, self.config.criterion, sharpness)
        if np.isfinite(value):
            weighted = motion.regressor / (noise**2)[:, None]
            gradient.add_regressor((2.0 / len(motion.t)) * (weighted @ slope))
        return value

    def measure(self, trajectory: FourierTrajectory) -> Excitation:
        """Return the criteria of a trajectory, with the true sign of the velocity, densely sampled."""
        times = trajectory.sample_times(_REPORT_SAMPLES / trajectory.period)
        regressor = self.observation.base.regressor(*trajectory.evaluate(times))
        information = information_matrix(regressor, self.observation.noise)
        return measure_excitation(information)
