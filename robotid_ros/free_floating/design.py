# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Design of the joint trajectory from which the target is identified best.

It is a Fourier series that starts and ends at rest in a given position, within bounds. No constrained optimiser is
needed: the end conditions are linear and are eliminated, and the bounds become a scale factor per joint. All
trajectories of a joint with given ends form a linear space, and scaling one towards zero moves it away from all bounds.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import block_diag, null_space

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import JointRanges, worst_excesses
from robotid_ros.excitation.criteria import CriterionName, condition_numbers, criterion_gradient, measure_excitation
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis
from robotid_ros.free_floating.body import RigidBody, cross
from robotid_ros.free_floating.regression import information, information_gradient
from robotid_ros.free_floating.robot import FreeFloatingRobot, momentum_map
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress, silent

_NORM = 60  # order of the norm: above the largest ratio by at most 10 % on 300 samples
_CORNER = 8  # sharpness of the transition to the bounds
SI_BOUND = float(np.sqrt(8.0 / 3.0))
"""Least SI condition number of all ten unknowns. With s the ratio of the mean squares of u and w, and
those of w in unit of their mean, diagonal entries of G are 3 s (1/m), 2 + 2 s on average (c) and 1 on
average (Ixx, Iyy, Izz); eigenvalues lie outside them, so cond^2 >= (2 + 2 s)/min(1, 3 s) >= 8/3."""

_LEAST = {'condition': SI_BOUND, 'condition-scaled': 1.0}  # orthogonal columns
_ENOUGH = 1.003  # times the least value: no further starting point is tried
# Sharpness of the smoothing and most iterations of each stage. The spectrum that attains the SI bound lies in a
# narrow valley; orthogonal columns do not. The other criteria are smooth, and the second stage ends at once.
_STAGES = {'condition': ((4.0, 400), (64.0, 100))}
_USUAL_STAGES = ((4.0, 200), (64.0, 60))
_FIRST_SIZE = 0.25  # of the random first guesses, in their free parameters [rad/s]
_STRIDE = 2  # the criterion is evaluated on every other point of the grid
_INFORMATION_WEIGHT = 5e-3  # of the log-determinant beside the column-scaled condition number
PRIORS: dict[str, tuple[float, float, float]] = {
    'exact': (1.0, 1.0, 1.0),
    'mass': (0.5, 1.0, 1.0),
    'center of mass': (1.0, 0.5, 1.0),
    'inertia': (1.0, 1.0, 0.5),
    'all three': (0.5, 0.5, 0.5),
}
"""Wrong priors: factors on mass, centre of mass and inertia."""


def last_body_motion(model: RobotModel, q: Array, dq: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return what the regressor depends on, without momentum, and its reverse-mode derivative.

    z = [w; u], shape (N, 6), in the frame of body n, the last link of the model, u = P^ = -m_n v_c. The derivative is a
    function from gradients with respect to z, shape (..., N, 6), to those with respect to q and dq, shape (..., N, n).
    """
    maps = momentum_map(model, q)
    base_twist = maps.base_twist(dq)
    last = maps.link_twists(base_twist, dq)[:, -1]
    rotation = maps.poses[:, -1, :3, :3]
    mass = model.inertial[-1, 9]
    center = rotation @ (model.inertial[-1, 6:9] / mass) + maps.poses[:, -1, :3, 3]
    velocity = last[:, :3] + cross(last[:, 3:], center)
    motion = np.hstack(
        [np.einsum('nba,nb->na', rotation, last[:, 3:]), -mass * np.einsum('nba,nb->na', rotation, velocity)]
    )

    def pull_back(gradient: Array) -> tuple[Array, Array]:
        force = -mass * np.einsum('nab,...nb->...na', rotation, gradient[..., 3:])
        torque = np.einsum('nab,...nb->...na', rotation, gradient[..., :3]) + cross(center, force)
        return maps.pull_back(base_twist, dq, np.concatenate([force, torque], axis=-1))

    return motion, pull_back


def control_trajectory(start: Array, speed: float, period: float = 10.0, harmonics: int = 5) -> FourierTrajectory:
    """Return the plain trajectory that designs are compared with: every joint alike, two frequencies.

    dq(t) = speed/2 (cos w t - cos L w t): 0.1 Hz and 0.5 Hz by default, at rest at both ends.

    Parameters
    ----------
    start : ndarray, shape (n,)
        [rad]
    speed : float
        Largest velocity [rad/s].
    period : float
        [s]
    harmonics : int
        L.
    """
    a = np.zeros((len(start), harmonics))
    a[:, 0], a[:, -1] = 0.5 * speed, -0.5 * speed
    return FourierTrajectory(a=a, b=np.zeros_like(a), offset=start, base_frequency=1.0 / period)


def predicted_conditions(
    robot: FreeFloatingRobot, trajectory: FourierTrajectory, samples: int = 240
) -> tuple[float, float]:
    """Return SI and column-scaled condition numbers of one period of a trajectory, without momentum.

    Parameters
    ----------
    robot : FreeFloatingRobot
        With the body n to predict for.
    trajectory : FourierTrajectory
    samples : int
        Grid points of the period.
    """
    return condition_numbers(_period_information(robot.model, trajectory, samples))


def _period_information(model: RobotModel, trajectory: FourierTrajectory, samples: int) -> Array:
    t = np.arange(samples) * (trajectory.period / samples)
    return information(last_body_motion(model, trajectory.position(t), trajectory.velocity(t))[0])


def judged_trajectory(
    robot: FreeFloatingRobot, trajectory: FourierTrajectory, limits: JointLimits, config: ExcitationConfig | None = None
) -> ExcitationDesign:
    """Return a trajectory with its criteria for body n and its distance from the limits.

    ``config`` says what it was designed with.
    """
    return ExcitationDesign(
        trajectory=trajectory,
        joint_names=robot.arm.joint_names,
        excitation=measure_excitation(_period_information(robot.model, trajectory, 240)),
        config=replace(config or ExcitationConfig(), period=trajectory.period, harmonics=trajectory.harmonics),
        limits=limits,
        base_parameters=10,
        peaks=tuple(worst_excesses(trajectory, robot.arm, [JointRanges(robot.arm, limits)])),
    )


class RestToRestSeries:
    """All Fourier series of a period that begin and end at rest in a given position, within limits.

    With w = 2 pi base_frequency, dq(0) = sum a_l = 0, ddq(0) = w sum l b_l = 0 and q(0) = start gives offset = start +
    sum b_l / (l w); the rest is spanned by an orthonormal basis of 2 L - 2 columns.

    The bounds are tightened by cos(pi L / N): a trigonometric polynomial of degree L that keeps this bound on N
    equidistant points keeps the original one everywhere (Ehlich and Zeller, Mathematische Zeitschrift 86, 1964).

    ``start``, shape (n,), is the position at the start and the end [rad or m]; the base frequency is in Hz, L the
    number of ``harmonics``, at least 2, and N that of the samples of one period. ``time``, shape (N,), is that grid
    [s], and ``q``, ``dq`` and ``ddq``, shape (N, 2 L - 2), are the basis there: position relative to the start,
    velocity, acceleration. Raises an ExcitationError if there are fewer than 200 samples, or the start is not inside
    the limits.
    """

    def __init__(
        self, start: Array, limits: JointLimits, *, base_frequency: float, harmonics: int, samples: int
    ) -> None:
        if samples < 200 or samples < 8 * harmonics:
            message = f'samples: expected at least {max(200, 8 * harmonics)} points per period, got {samples}'
            raise ExcitationError(message, name='samples', expected=max(200, 8 * harmonics), found=samples)
        self.start, self.base_frequency = start, base_frequency
        self.time = np.arange(samples) / (samples * base_frequency)
        order = np.arange(1, harmonics + 1, dtype=float)
        # Sines and cosines apart: random starts in a basis that mixes them serve wrong priors worse.
        sines, cosines = null_space(np.ones((1, harmonics))), null_space(order[None])
        offset = (1.0 / (2.0 * np.pi * base_frequency * order)) @ cosines
        self._free = np.vstack([block_diag(sines, cosines), np.concatenate([np.zeros(harmonics - 1), offset])])
        bases = fourier_basis(self.time, harmonics, base_frequency)
        self.q, self.dq, self.ddq = (basis @ self._free for basis in bases[:3])
        tight = float(np.cos(np.pi * harmonics / samples))
        bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        middle = np.where(
            bounded, 0.5 * (np.where(bounded, limits.lower, 0.0) + np.where(bounded, limits.upper, 0.0)), start
        )
        self._above = middle + tight * (limits.upper - middle) - start
        self._below = start - middle + tight * (middle - limits.lower)
        if not (self._above > 0.0).all() or not (self._below > 0.0).all():
            k = int(np.argmin(np.minimum(self._above, self._below)))
            message = (
                f'start of joint {k + 1}: expected a position inside its limits '
                f'{limits.lower[k]:g} .. {limits.upper[k]:g}, got {start[k]:g}'
            )
            raise ExcitationError(message, name='start', expected=(limits.lower[k], limits.upper[k]), found=start[k])
        self._velocity, self._acceleration = tight * limits.velocity, tight * limits.acceleration

    @property
    def shape(self) -> tuple[int, int]:
        """Number of joints, and of free parameters of each."""
        return len(self.start), self._free.shape[1]

    def bounded(self, free: Array) -> tuple[Array, Array, Array]:
        """Return free parameters scaled so that every joint keeps its bounds, shape (n, 2 L - 2).

        With the gauge g of a joint the factor is (1 + g^k)^(-1/k): near one while the bounds are far, near 1/g beyond
        them, smooth between. The factors, shape (n,), are returned too, and their derivatives with respect to each
        joint's parameters, shape (n, 2 L - 2).
        """
        # The reach of each joint relative to its bounds, and the derivative, shapes (n,), (n, 2 L - 2)
        position = self.q @ free.T
        room = np.where(position > 0.0, self._above, self._below)
        ratio = np.concatenate(
            [position / room, self.dq @ free.T / self._velocity, self.ddq @ free.T / self._acceleration]
        )
        largest = np.maximum(np.abs(ratio).max(axis=0), 1e-300)
        relative = np.abs(ratio) / largest
        total = np.sum(relative**_NORM, axis=0)
        slope = relative ** (_NORM - 1) * np.sign(ratio) * total ** (1.0 / _NORM - 1.0)
        first, second, third = np.split(slope, 3)
        derivative = (
            (first / room).T @ self.q
            + (second / self._velocity).T @ self.dq
            + (third / self._acceleration).T @ self.ddq
        )
        gauge = largest * total ** (1.0 / _NORM)
        # in units of the larger of 1 and g, so that no power overflows
        unit = np.maximum(gauge, 1.0)
        below, above = (1.0 / unit) ** _CORNER, (gauge / unit) ** _CORNER
        factor = (below + above) ** (-1.0 / _CORNER) / unit
        change = -factor * above / ((below + above) * gauge)
        return free * factor[:, None], factor, change[:, None] * derivative

    def pull_back(self, free: Array, factor: Array, slope: Array, gradient: Array) -> Array:
        """Carry gradients with respect to the bounded parameters, shape (..., n, 2 L - 2), back to the free ones."""
        through = np.sum(gradient * free, axis=-1, keepdims=True)
        return np.asarray(gradient * factor[:, None] + through * slope)

    def trajectory(self, free: Array) -> FourierTrajectory:
        """Return the bounded trajectory of free parameters, shape (n, 2 L - 2)."""
        bounded, _, _ = self.bounded(free)
        coefficients = bounded @ self._free.T
        coefficients[:, -1] += self.start
        return FourierTrajectory.from_coefficients(coefficients, self.base_frequency)


def design_excitation(
    robot: FreeFloatingRobot,
    *,
    start: Sequence[float] | Array,
    limits: JointLimits | None = None,
    alternatives: Sequence[RigidBody] = (),
    samples: int = 240,
    progress: Progress | None = None,
    **settings: Any,
) -> ExcitationDesign:
    """Design a Fourier trajectory for the identification of body n.

    The end conditions are eliminated and the bounds built in, so that what remains
    is an unconstrained minimisation with exact gradients. The base motion follows from the joints by
    momentum conservation with the prior, and no pose is integrated.

    Parameters
    ----------
    robot : FreeFloatingRobot
        Its ``body`` is the prior.
    start : sequence of float, shape (n,)
        Position at the start and the end [rad or m].
    limits : JointLimits, optional
        Bounds on position, velocity and acceleration; those of the arm by default.
    alternatives : sequence of RigidBody
        Other values body n may have; the criterion is averaged over them and the prior.
    samples : int
        Grid points of the period, at least 200.
    progress : callable, optional
    **settings
        Of :class:`robotid_ros.excitation.ExcitationConfig`: the period [s], 10 by default, the harmonics, at least 2,
        the seed of the random starting points, and how many of them (``starts``) are tried at most, 4 by default: fewer
        where the criterion's least value is attained. The criterion 'condition-scaled', which is the default, has a
        small weight on the log-determinant of the information: of the many motions with orthogonal columns, those that
        move most. 'condition', in SI units, depends on units.

    Returns
    -------
    ExcitationDesign
        Which an excitation node of the arm can run.

    Raises
    ------
    ExcitationError
        If a setting is out of range, a velocity or acceleration bound is missing, the start is
        outside the limits, or no motion of this arm determines all unknowns.
    ModelError
        If the prior or an alternative is no physical body.
    """
    origin = frozen_array(start, 'start', (robot.n,), ExcitationError)
    usual: dict[str, Any] = {'period': 10.0, 'criterion': 'condition-scaled', 'starts': 4, **settings}
    config = ExcitationConfig(start_position=tuple(origin.tolist()), start_at_rest=True, **usual)
    bounds = robot.arm.limits if limits is None else limits
    for what in ('velocity', 'acceleration'):
        for name, value in zip(robot.arm.joint_names, getattr(bounds, what), strict=True):
            if value == np.inf:
                message = f"joint '{name}' has no {what} limit; a design needs one for every joint"
                raise ExcitationError(message, name=name, expected=what)
    assumed = [robot, *(robot.with_body(body) for body in alternatives)]
    for each in assumed:
        each.require_physical_body()
    series = RestToRestSeries(
        origin, bounds, base_frequency=1.0 / config.period, harmonics=config.harmonics, samples=samples
    )
    starting = _FIRST_SIZE * np.random.default_rng(config.seed).standard_normal((config.starts, *series.shape))
    if not np.isfinite(predicted_conditions(robot, series.trajectory(starting[0]), samples)[1]):
        raise ExcitationError(
            f'no motion of the {robot.n} joints of this arm determines all ten unknowns; the last link must be able to '
            'turn about all axes relative to inertial space'
        )
    objective = _Objective(series, [each.model for each in assumed], config.criterion)
    best = objective.minimise(starting, progress or silent)
    return replace(judged_trajectory(robot, best, bounds, config), evaluations=objective.evaluations)


class _Objective:
    """The criterion as a function of free parameters, averaged over the models."""

    def __init__(self, series: RestToRestSeries, models: Sequence[RobotModel], criterion: CriterionName) -> None:
        self.series = series
        self.models = models
        self.criterion = criterion
        self.evaluations = 0
        # the second moments are means of smooth periodic functions: every other point gives the same
        self._position, self._velocity = series.q[::_STRIDE], series.dq[::_STRIDE]

    def minimise(self, starting: Array, progress: Progress) -> FourierTrajectory:
        """Return the best trajectory from the starting points, shape (k, n, 2 L - 2), until one attains the bound."""
        from scipy.optimize import minimize  # not at the top: see robotid_ros.signals.filtering

        enough = _ENOUGH * _LEAST.get(self.criterion, -np.inf)
        best, least = self.series.trajectory(starting[0]), np.inf
        for tried, free in enumerate(starting):
            progress(tried / len(starting), f'starting point {tried + 1} of {len(starting)}')
            for sharpness, iterations in _STAGES.get(self.criterion, _USUAL_STAGES):
                found = minimize(
                    self.value_and_gradient,
                    free.ravel(),
                    args=(sharpness,),
                    jac=True,
                    method='L-BFGS-B',
                    options={'maxiter': iterations, 'maxcor': 30},
                )
                free = found.x.reshape(self.series.shape)
                trajectory = self.series.trajectory(free)
                grams = [_period_information(model, trajectory, len(self.series.time)) for model in self.models]
                score = float(np.mean([measure_excitation(gram).value(self.criterion) for gram in grams]))
                if score < least:
                    best, least = trajectory, score
                if least <= enough:
                    return best
        return best

    def value_and_gradient(self, flat: Array, sharpness: float) -> tuple[float, Array]:
        """Return the objective and its exact gradient at free parameters, shape (n (2 L - 2),)."""
        self.evaluations += 1
        free = flat.reshape(self.series.shape)
        bounded, factor, slope = self.series.bounded(free)
        q, dq = self._position @ bounded.T + self.series.start, self._velocity @ bounded.T
        total, gradient = 0.0, np.zeros(self.series.shape)
        for model in self.models:
            motion, pull_back = last_body_motion(model, q, dq)
            gram = information(motion)
            value, by_information = criterion_gradient(gram, self.criterion, sharpness)
            if self.criterion == 'condition-scaled':
                more, other = criterion_gradient(gram, 'd-optimal', sharpness)
                value, by_information = value + _INFORMATION_WEIGHT * more, by_information + _INFORMATION_WEIGHT * other
            to_q, to_dq = pull_back(information_gradient(motion, by_information))
            total += value
            gradient += to_q.T @ self._position + to_dq.T @ self._velocity
        back = self.series.pull_back(free, factor, slope, gradient)
        return total / len(self.models), back.ravel() / len(self.models)


def study_priors(
    robot: FreeFloatingRobot,
    *,
    criteria: Sequence[CriterionName] = ('condition-scaled', 'condition'),
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> list[tuple[CriterionName, str, tuple[float, float], tuple[float, float]]]:
    """Design with priors that are 50 % off and evaluate the trajectories on the true robot.

    Parameters
    ----------
    robot : FreeFloatingRobot
        With the true body n; the factors of :data:`PRIORS` apply to it.
    criteria : sequence of str
    seed : int
        Of every design.
    progress : callable, optional
    **settings
        Of :func:`robotid_ros.free_floating.design_excitation`: start, limits, period, ...

    Returns
    -------
    list of tuple
        Of each design its criterion, what was wrong of the prior, the condition numbers that it expected with the
        prior, and those that the trajectory has on the true robot: in SI units, and column-scaled.
    """
    cases: list[tuple[CriterionName, str, tuple[float, float], tuple[float, float]]] = []
    total, told = len(criteria) * len(PRIORS), progress or silent
    for criterion in criteria:
        for prior, (mass, center, inertia) in PRIORS.items():
            told(len(cases) / total, f'{criterion}, prior off in: {prior}')
            assumed = robot.with_body(robot.body.scaled(mass=mass, center_of_mass=center, inertia=inertia))
            design = design_excitation(assumed, criterion=criterion, seed=seed, **settings)
            expected = design.excitation.condition, design.excitation.condition_scaled
            cases.append((criterion, prior, expected, predicted_conditions(robot, design.trajectory)))
    return cases
