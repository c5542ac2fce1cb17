# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Optimal excitation: the search for the best trajectory, from an arm and settings to a checked one.

Each start is minimised by L-BFGS in rounds of growing penalty and sharpness; after every round the worse half of the
starts is dropped. The last one is kicked at random and minimised again, once for two starts, and the better one
holds (basin hopping; Wales and Doye, J. Physical Chemistry A 101 (1997), 5111-5116). It is moved inside the limits,
also between samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import scipy.linalg

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import (
    Constraint,
    JointRanges,
    Peak,
    check_reachable,
    excess_at_rest,
    scale_into_joint_limits,
    scale_into_limits,
    usual_ranges,
    worst_excesses,
)
from robotid_ros.excitation.criteria import (
    Excitation,
    criterion_gradient,
    information_matrix,
    measure_excitation,
)
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis, trajectory_extremes
from robotid_ros.excitation.motion import FourierGrid, Motion, MotionGradient, Observation, observation_of
from robotid_ros.excitation.preparation import design_limits, margin_limits, other_constraints
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

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
    return np.asarray(scipy.linalg.null_space(np.vstack(rows)))


class ExcitationProblem:
    """Augmented Lagrangian of a design: criterion, joint limits on a fine grid, the other constraints on a coarse one.

    Of the settings, criterion, harmonics, period and start count.
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
        return np.asarray(self._held + variables.reshape(self.model.n, -1) @ self._free.T)

    def trajectory(self, variables: Array) -> FourierTrajectory:
        """Return the trajectory of free variables."""
        return FourierTrajectory.from_coefficients(self.coefficients(variables), self.base_frequency)

    def random_variables(self, rng: np.random.Generator) -> Array:
        """Return a random first guess inside the joint limits, at a random part of what they allow."""
        shape = rng.standard_normal((self.model.n, self._free.shape[1])) @ self._free.T
        if self.start is None:
            shape[:, -1] = 0.0
        extremes, _ = trajectory_extremes(FourierTrajectory.from_coefficients(shape, self.base_frequency))
        low, high = usual_ranges(self.limits)
        allowed = np.array(
            [high - low, *(2.0 * limit for limit in (self.limits.velocity, self.limits.acceleration, self.limits.jerk))]
        )
        factor = (allowed / (extremes[..., 1] - extremes[..., 0])).min(axis=0) * rng.uniform(0.5, 0.95, self.model.n)
        rows = self._held + factor[:, None] * shape
        if self.start is None:
            # A random pose in which the arm may rest, from the middle half of the ranges if possible
            part = np.repeat([0.25, 0.5], _POSES // 2)[:, None] * rng.uniform(-1.0, 1.0, (_POSES, self.model.n))
            poses = (low + high) / 2.0 + part * (high - low)
            excess = np.maximum(excess_at_rest(self.constraints, self.model, poses, self.observation), -1.0)
            # a little away from the limits, to leave room for the motion
            good = excess < -0.1 if (excess < -0.1).any() else excess <= excess.min()
            rows[:, -1] = poses[int(np.argmax(good))]
        trajectory = FourierTrajectory.from_coefficients(rows, self.base_frequency)
        inside = scale_into_joint_limits(trajectory, self.limits, self.start)
        return np.asarray((inside.coefficients - self._held) @ self._free).ravel()

    def excess(self, variables: Array) -> list[Array]:
        """Return the normalised excesses of the joint limits and of each other constraint, on the grids."""
        rows = self.coefficients(variables)
        coarse = self._coarse.motion(rows, self.observation)
        parts = [self.ranges.evaluate(self._fine.motion(rows))[0]]
        parts += [constraint.evaluate(coarse)[0] for constraint in self.constraints]
        return parts

    def lagrangian(
        self, variables: Array, multipliers: Sequence[Array], margins: Sequence[float], penalty: float, sharpness: float
    ) -> tuple[float, Array]:
        """Return the augmented Lagrangian and its gradient with respect to the variables.

            L = J + 1/(2 mu) mean_t sum_k (max(0, lambda + mu (g + margin))^2 - lambda^2)

        The multipliers lambda have the shapes of :attr:`multiplier_shapes`, the penalty is mu, the margins say how far
        inside the joint limits, and each other constraint, to stay; for the sharpness see
        :func:`robotid_ros.excitation.criteria.criterion_gradient`.

        Source: Nocedal and Wright, "Numerical Optimization", 2nd ed., eq. 17.55.
        """
        rows = self.coefficients(variables)
        coarse, fine = self._coarse.motion(rows, self.observation), self._fine.motion(rows)
        coarse_gradient, fine_gradient = MotionGradient(coarse.q.shape), MotionGradient(fine.q.shape)
        noise = self.observation.noise
        information = information_matrix(coarse.regressor, noise)
        value, slope = criterion_gradient(information, self.config.criterion, sharpness)
        if not np.isfinite(value):
            return 1e10, np.zeros_like(variables)
        coarse_gradient.add_regressor((2.0 / len(coarse)) * ((coarse.regressor / (noise**2)[:, None]) @ slope))
        terms: list[tuple[Constraint, Motion, MotionGradient]] = [(self.ranges, fine, fine_gradient)]
        terms += [(constraint, coarse, coarse_gradient) for constraint in self.constraints]
        for (constraint, motion, gradient), multiplier, margin in zip(terms, multipliers, margins, strict=True):
            excess, pull_back = constraint.evaluate(motion)
            shifted = np.maximum(0.0, multiplier + penalty * (excess + margin))
            value += float(np.sum(shifted**2 - multiplier**2)) / (2.0 * penalty * len(motion))
            pull_back(shifted / len(motion), gradient)
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

    def measure(self, trajectory: FourierTrajectory) -> Excitation:
        """Return the criteria of a trajectory, with the true sign of the velocity, densely sampled."""
        times = trajectory.sample_times(_REPORT_SAMPLES / trajectory.period)
        regressor = self.observation.base.regressor(*trajectory.evaluate(times))
        information = information_matrix(regressor, self.observation.noise)
        return measure_excitation(information)


# Order of the Schatten norm, penalty, part of the iterations. An order of 10 ends 3 % above one of 60; in more or
# fewer rounds the search ends no lower.
_ROUNDS = ((2.0, 100.0, 0.2), (8.0, 400.0, 0.3), (60.0, 1000.0, 0.5))
_GUESSES = 8
_HOPS = 4  # at most: they follow each other, on however many processors
_KICK = 0.3  # of the coefficients' root mean square; from 0.1 to 0.4 the search ends equally low
_SETTLING, _TRIALS = 25, 4
_MARGIN = 0.002  # kept from the limits, for the motion between the samples
_GLANCE_RATE, _FULL_RATE = 100.0, 10_000.0  # Hz


class _Cancelled(Exception):  # noqa: N818  # not an error
    """The caller asked to stop: the best trajectory so far is the result."""


Start: TypeAlias = tuple[float, int, Array, tuple[Array, ...]]
"""State of one start between two rounds: the value that it reached, its number, its variables, the multipliers."""
_value_and_number = itemgetter(0, 1)


def minimise(
    problem: ExcitationProblem, progress: Progress, cancelled: Callable[[], bool]
) -> tuple[list[Start], bool, int]:
    """Return the starts, the longest survivors first, whether it was interrupted, and the evaluations."""
    import joblib  # not at the top: see robotid_ros.signals.filtering

    config = problem.config
    starts: list[Start] = []
    given_up: list[Start] = []
    finished: list[Start] = []
    evaluations, done, interrupted = 0, 0.0, False
    work = [max(1, config.starts >> k) * part for k, (_, _, part) in enumerate(_ROUNDS)]
    hops = min((config.starts + 1) // 2, _HOPS)
    whole = sum(work) + hops * sum(part for _, _, part in _ROUNDS)

    def told(share: float, text: str) -> None:
        nonlocal done
        done += share / whole
        progress(min(done, 0.99), text)
        if cancelled():
            raise _Cancelled

    with joblib.Parallel(n_jobs=min(config.jobs, config.starts), return_as='generator') as pool:
        try:
            starts = list(pool(joblib.delayed(first_guess)(problem, j) for j in range(config.starts)))
            evaluations = _GUESSES * config.starts
            for k, (sharpness, penalty, part) in enumerate(_ROUNDS):
                steps = max(3, round(config.iterations * part))
                tasks = (joblib.delayed(_improve)(problem, each, sharpness, penalty, steps) for each in starts)
                share, finished = work[k] / len(starts), []
                for result, count in pool(tasks):
                    finished.append(result)
                    evaluations += count
                    told(share, f'round {k + 1} of {len(_ROUNDS)}, start {result[1] + 1}')
                finished.sort(key=_value_and_number)
                kept = max(1, config.starts >> (k + 1))
                starts, given_up = finished[:kept], finished[kept:] + given_up
            for hop in range(hops):
                other = _kicked(problem, starts[0], hop)
                for sharpness, penalty, part in _ROUNDS:
                    steps = max(3, round(config.iterations * part))
                    other, count = _improve(problem, other, sharpness, penalty, steps)
                    evaluations += count
                    told(part, f'hop {hop + 1} of {hops}')
                starts = finished = sorted([*starts, other], key=_value_and_number)
        except (KeyboardInterrupt, _Cancelled):
            interrupted = True
            best = sorted(finished, key=_value_and_number)
            starts = best + [start for start in starts if start[1] not in {number for _, number, *_ in best}]
    if not starts:
        starts = [first_guess(problem, 0)]
    return starts + given_up, interrupted, evaluations


def first_guess(problem: ExcitationProblem, index: int) -> Start:
    """Return the best of a few random guesses."""
    rng = np.random.default_rng([problem.config.seed, index])
    multipliers = tuple(np.zeros(shape) for shape in problem.multiplier_shapes)
    guesses = [problem.random_variables(rng) for _ in range(_GUESSES)]
    margins = (_MARGIN,) * len(multipliers)
    values = [problem.lagrangian(guess, multipliers, margins, _ROUNDS[0][1], 1.0)[0] for guess in guesses]
    best = int(np.argmin(values))
    return values[best], index, guesses[best], multipliers


def _kicked(problem: ExcitationProblem, start: Start, hop: int) -> Start:
    """Return a start with each joint's variables moved at random, by a part of their root mean square."""
    config = problem.config
    rng = np.random.default_rng([config.seed, config.starts, hop])
    value, _, variables, _ = start
    rows = variables.reshape(problem.model.n, -1)
    size = _KICK * np.sqrt(np.mean(rows**2, axis=1, keepdims=True))
    kicked = (rows + size * rng.standard_normal(rows.shape)).ravel()
    return value, config.starts + hop, kicked, tuple(np.zeros(shape) for shape in problem.multiplier_shapes)


def _improve(
    problem: ExcitationProblem,
    start: Start,
    sharpness: float,
    penalty: float,
    iterations: int,
    margins: tuple[float, ...] | None = None,
) -> tuple[Start, int]:
    """Return a start after one round, a minimisation and an update of the multipliers, and how many evaluations."""
    from scipy.optimize import minimize  # not at the top: see robotid_ros.signals.filtering

    _, index, variables, multipliers = start
    margins = (_MARGIN,) * len(multipliers) if margins is None else margins
    result = minimize(
        problem.lagrangian,
        variables,
        args=(multipliers, margins, penalty, sharpness),
        jac=True,
        method='L-BFGS-B',
        options={'maxiter': iterations, 'maxcor': 30},
    )
    excess = problem.excess(result.x)
    multipliers = tuple(
        np.maximum(0.0, multiplier + penalty * (part + margin))
        for multiplier, part, margin in zip(multipliers, excess, margins, strict=True)
    )
    return (float(result.fun), index, result.x, multipliers), result.nfev


def _settle(problem: ExcitationProblem, start: Start) -> Array | None:
    """Return the variables of a start moved inside all limits, between the samples too, or None where that fails.

    A few more updates of the multipliers bring the samples inside; where the motion leaves between
    them, the margin grows by what it leaves.
    """
    sharpness, penalty, _ = _ROUNDS[-1]
    margins = (_MARGIN,) * len(start[3])
    for _ in range(_SETTLING):
        variables = start[2]
        inside = max(float(part.max(initial=-np.inf)) for part in problem.excess(variables)) <= 0.0
        if inside:
            beyond = problem.between_samples(variables, _GLANCE_RATE)
            if max(beyond) <= 0.0:
                beyond = problem.between_samples(variables, _FULL_RATE)
            if max(beyond) <= 0.0:
                return variables
            margins = tuple(margin + 1.2 * max(excess, 0.0) for margin, excess in zip(margins, beyond, strict=True))
        else:
            penalty *= 1.5
        start, _ = _improve(problem, start, sharpness, penalty, 20, margins)
    return None


def finish(problem: ExcitationProblem, starts: Sequence[Start]) -> tuple[FourierTrajectory, list[Peak], Excitation]:
    """Return the best start's trajectory, inside all limits; where that fails, the next one's."""
    refusal: ExcitationError | None = None
    for start in starts[:_TRIALS]:
        settled = _settle(problem, start)
        try:
            trajectory, peaks = scale_into_limits(
                problem.trajectory(start[2] if settled is None else settled),
                problem.model,
                problem.limits,
                [problem.ranges, *problem.constraints],
                problem.observation.exact,
                problem.start,
            )
        except ExcitationError as cause:
            refusal = cause
            continue
        return trajectory, peaks, problem.measure(trajectory)
    raise ExcitationError(f'no trajectory keeps all limits: even with the smallest motion found, {refusal}')


def optimize_excitation(
    model: RobotModel,
    config: ExcitationConfig | None = None,
    *,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> ExcitationDesign:
    """Return the trajectory that makes the base parameters of an arm best identifiable.

    The criterion of the observation matrix is minimised over the coefficients of a Fourier
    series, under the joint limits of the model and all other limits of the settings. Zero
    velocity and acceleration at the start, and a given start position, are linear conditions and
    eliminated. Equal seeds give equal results.

    Parameters
    ----------
    model : RobotModel
        Its inertial parameters are used for the torque limits only.
    config : ExcitationConfig, optional
    progress : callable, optional
        Called with the part done, 0 to 1, and what is being done.
    cancelled : callable, optional
        Asked after every start of every round; True ends the optimisation with the best trajectory until then. So
        does a KeyboardInterrupt.

    Raises
    ------
    ExcitationError
        If the limits cannot be kept, naming the one in the way, or do not bound the motion.

    Notes
    -----
    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997; the criteria are those
    of Gautier and Khalil, Int. J. Robotics Research 11(4), 1992.
    """
    config = ExcitationConfig() if config is None else config
    progress = progress or silent
    limits = design_limits(model, config)
    start = np.array(config.start_position)
    if len(start):
        frozen_array(start, 'start_position', (model.n,), ExcitationError)
    check_reachable(model, limits, config.start_position)
    limits = margin_limits(limits, config, start)
    limits = replace(limits, velocity=limits.velocity * (1.0 - config.velocity_margin))
    observation = observation_of(model, config)
    constraints = other_constraints(model, config, limits)
    problem = ExcitationProblem(model, limits, constraints, observation, config)
    starts, interrupted, evaluations = minimise(problem, progress, cancelled or (lambda: False))
    trajectory, peaks, excitation = finish(problem, starts)
    progress(1.0, f'condition number {excitation.condition:.4g} ({excitation.condition_scaled:.4g} scaled)')
    return ExcitationDesign(
        trajectory=trajectory,
        joint_names=model.joint_names,
        excitation=excitation,
        config=config,
        limits=limits,
        base_parameters=len(observation.base.independent),
        friction_parameters=int((observation.base.independent >= model.n * (10 + config.rotor_inertia)).sum()),
        peaks=tuple(peaks),
        interrupted=interrupted,
        evaluations=evaluations,
    )
