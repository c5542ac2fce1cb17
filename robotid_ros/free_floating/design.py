# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Design of the joint trajectory from which the target is identified best."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.bounds import RestToRestSeries, worst_bound_ratio
from robotid_ros.free_floating.criteria import (
    CRITERIA,
    SCALED_BOUND,
    SI_BOUND,
    Criterion,
    condition_numbers,
    criterion_gradient,
    information,
)
from robotid_ros.free_floating.momentum import momentum_map
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.free_floating.spatial import cross
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

__all__ = [
    'FloatingExcitation',
    'control_trajectory',
    'design_excitation',
    'last_body_motion',
    'predicted_conditions',
]

_ENOUGH = 1.003  # times the lower bound: no further starting point is tried
# sharpness of the smoothing and most iterations of each stage; the spectrum that attains the SI bound
# lies in a narrow valley, orthogonal columns do not
_STAGES: dict[Criterion, tuple[tuple[float, int], ...]] = {
    'scaled': ((4.0, 200), (64.0, 60)),
    'si': ((4.0, 400), (64.0, 100)),
    'd-optimal': ((1.0, 300),),
}
_FIRST_SIZE = 0.25
_STRIDE = 2  # the criterion is evaluated on every other point of the grid
_INFORMATION_WEIGHT = 1e-3
_BOUND: dict[Criterion, float] = {'scaled': SCALED_BOUND, 'si': SI_BOUND, 'd-optimal': -np.inf}


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingExcitation:
    """A designed trajectory and what is expected of it.

    Attributes
    ----------
    trajectory : FourierTrajectory
    criterion : {'scaled', 'si', 'd-optimal'}
    condition_si, condition_scaled : float
        Of the stacked regressor over one period, with the prior.
    bound_ratio : float
        Largest part of a bound that is used, on a dense grid.
    samples : int
        Grid points of the period.
    evaluations : int
        Of criterion and gradient, over all starts.
    starts : int
        Starting points tried.
    seconds : float
        Time the design took.
    """

    trajectory: FourierTrajectory
    criterion: Criterion
    condition_si: float
    condition_scaled: float
    bound_ratio: float
    samples: int
    evaluations: int
    starts: int
    seconds: float


def last_body_motion(model: RobotModel, q: Array, dq: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return what the regressor depends on, without momentum, and its reverse-mode derivative.

    z = [w; u] in the frame of body n, u = P^ = -m_n v_c.

    Parameters
    ----------
    model : RobotModel
        With body n as its last link.
    q, dq : ndarray, shape (N, n)

    Returns
    -------
    motion : ndarray, shape (N, 6)
    pull_back : callable
        From gradients with respect to the motion, shape (..., N, 6), to those with respect to q and
        dq, shape (..., N, n).
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
    t = np.arange(samples) * (trajectory.period / samples)
    motion, _ = last_body_motion(robot.model, trajectory.position(t), trajectory.velocity(t))
    return condition_numbers(information(motion))


def control_trajectory(
    start: Array, speed: float, base_frequency: float = 0.1, harmonics: int = 5
) -> FourierTrajectory:
    """Return the plain trajectory that designs are compared with: every joint alike, two frequencies.

    dq(t) = speed/2 (cos w t - cos L w t): 0.1 Hz and 0.5 Hz by default, at rest at both ends.

    Parameters
    ----------
    start : ndarray, shape (n,)
        [rad]
    speed : float
        Largest velocity [rad/s].
    base_frequency : float
        [Hz]
    harmonics : int
        L.
    """
    a = np.zeros((len(start), harmonics))
    a[:, 0], a[:, -1] = 0.5 * speed, -0.5 * speed
    return FourierTrajectory(a=a, b=np.zeros_like(a), offset=start, base_frequency=base_frequency)


def design_excitation(
    robot: FreeFloatingRobot,
    *,
    start: Sequence[float] | Array,
    base_frequency: float = 0.1,
    harmonics: int = 5,
    criterion: Criterion = 'scaled',
    limits: JointLimits | None = None,
    alternatives: Sequence[RigidBody] = (),
    samples: int = 240,
    starts: int = 4,
    rng: np.random.Generator | None = None,
    progress: Progress | None = None,
) -> FloatingExcitation:
    """Design a Fourier trajectory for the identification of body n.

    The end conditions are eliminated and the bounds built in (:mod:`.bounds`), so that what remains
    is an unconstrained minimisation with exact gradients; the base motion follows from the joints by
    momentum conservation with the prior, and no pose is integrated.

    Parameters
    ----------
    robot : FreeFloatingRobot
        Its ``body`` is the prior.
    start : sequence of float, shape (n,)
        Position at the start and the end [rad or m].
    base_frequency : float
        [Hz]; the period is its inverse.
    harmonics : int
        L, at least 2.
    criterion : {'scaled', 'si', 'd-optimal'}
        ``scaled`` (recommended) is the condition number of the column-scaled regressor, with a small
        weight on the log-determinant of the information: of the many motions with orthogonal
        columns, those that move most. ``si`` is the seed's, which depends on units.
    limits : JointLimits, optional
        Bounds on position, velocity and acceleration; those of the arm by default.
    alternatives : sequence of RigidBody
        Other values body n may have; the criterion is averaged over them and the prior.
    samples : int
        Grid points of the period, at least 200.
    starts : int
        Most starting points to try; fewer where the criterion's lower bound is attained.
    rng : numpy.random.Generator, optional
        Draws the starting points; seed 0 by default.
    progress : callable, optional
        Called with the part done and a message.

    Returns
    -------
    FloatingExcitation

    Raises
    ------
    ExcitationError
        If a setting is out of range, a velocity or acceleration bound is missing, the start is
        outside the limits, or no motion of this arm determines all unknowns.
    ModelError
        If the prior or an alternative is no physical body.
    """
    began = time.perf_counter()
    if criterion not in CRITERIA:
        raise ExcitationError(f"criterion '{criterion}' is not known; available: {', '.join(CRITERIA)}")
    if starts < 1:
        raise ExcitationError(f'starts: expected at least 1, got {starts}')
    bounds = robot.arm.limits if limits is None else limits
    for what in ('velocity', 'acceleration'):
        missing = [
            name for name, value in zip(robot.arm.joint_names, getattr(bounds, what), strict=True) if value == np.inf
        ]
        if missing:
            raise ExcitationError(f"joint '{missing[0]}' has no {what} limit; a design needs one for every joint")
    assumed = [robot, *(robot.with_body(body) for body in alternatives)]
    for each in assumed:
        each.require_physical_body()
    rng = np.random.default_rng(0) if rng is None else rng
    origin = frozen_array(start, 'start', (robot.n,), ExcitationError)
    series = RestToRestSeries.of(origin, bounds, base_frequency=base_frequency, harmonics=harmonics, samples=samples)
    starting = _FIRST_SIZE * rng.standard_normal((starts, *series.shape))
    if not np.isfinite(predicted_conditions(robot, series.trajectory(starting[0]), samples)[1]):
        raise ExcitationError(
            f'no motion of the {robot.n} joints of this arm determines all ten unknowns; the last link must be able to '
            'turn about all axes relative to inertial space'
        )
    objective = _Objective(series, [each.model for each in assumed], criterion)
    trajectory, tried = objective.minimise(starting, progress)
    si, scaled = predicted_conditions(robot, trajectory, samples)
    return FloatingExcitation(
        trajectory=trajectory,
        criterion=criterion,
        condition_si=si,
        condition_scaled=scaled,
        bound_ratio=worst_bound_ratio(trajectory, bounds),
        samples=samples,
        evaluations=objective.evaluations,
        starts=tried,
        seconds=time.perf_counter() - began,
    )


def _score(model: RobotModel, trajectory: FourierTrajectory, samples: int, criterion: Criterion) -> float:
    t = np.arange(samples) * (trajectory.period / samples)
    gram = information(last_body_motion(model, trajectory.position(t), trajectory.velocity(t))[0])
    si, scaled = condition_numbers(gram)
    return {'si': si, 'scaled': scaled, 'd-optimal': -float(np.linalg.slogdet(gram)[1])}[criterion]


class _Objective:
    """The criterion as a function of free parameters, averaged over the models."""

    def __init__(self, series: RestToRestSeries, models: Sequence[RobotModel], criterion: Criterion) -> None:
        self.series = series
        self.models = models
        self.criterion = criterion
        self.evaluations = 0
        # the second moments are means of smooth periodic functions: every other point gives the same
        self._position, self._velocity = series.q[::_STRIDE], series.dq[::_STRIDE]

    def minimise(self, starting: Array, progress: Progress | None) -> tuple[FourierTrajectory, int]:
        """Go from each starting point, shape (k, n, 2 L - 2), until one attains the bound.

        Returns the best trajectory and the number of points tried.
        """
        best: tuple[float, FourierTrajectory] | None = None
        tried = 0
        for free in starting:
            if progress is not None:
                progress(tried / len(starting), f'starting point {tried + 1} of {len(starting)}')
            tried += 1
            for attempt in self._stages(free):
                trajectory = self.series.trajectory(attempt)
                grid = len(self.series.time)
                score = float(np.mean([_score(model, trajectory, grid, self.criterion) for model in self.models]))
                if best is None or score < best[0]:
                    best = score, trajectory
                if score <= _ENOUGH * _BOUND[self.criterion]:
                    break
            if best is not None and best[0] <= _ENOUGH * _BOUND[self.criterion]:
                break
        assert best is not None
        if progress is not None:
            progress(1.0, 'done')
        return best[1], tried

    def _stages(self, free: Array) -> Iterator[Array]:
        """Yield better and better parameters from one starting point."""
        for sharpness, iterations in _STAGES[self.criterion]:
            free = self._descend(free, sharpness, iterations)
            yield free

    def _descend(self, free: Array, sharpness: float, iterations: int) -> Array:
        """Minimise the smoothed criterion itself."""
        found = minimize(
            self.value_and_gradient,
            free.ravel(),
            args=(sharpness,),
            jac=True,
            method='L-BFGS-B',
            options={'maxiter': iterations, 'maxcor': 30},
        )
        solution: Array = found.x.reshape(self.series.shape)
        return solution

    def value_and_gradient(self, flat: Array, sharpness: float) -> tuple[float, Array]:
        """Return the objective and its exact gradient at free parameters, shape (n (2 L - 2),)."""
        self.evaluations += 1
        free, bounded, factor, slope = self._bounded(flat)
        total, gradient = 0.0, np.zeros(self.series.shape)
        for model in self.models:
            motion, pull_back = last_body_motion(model, *self._motion(bounded))
            value, through = criterion_gradient(self.criterion, motion, sharpness)
            if self.criterion == 'scaled':
                more, other = criterion_gradient('d-optimal', motion, sharpness)
                value, through = value + _INFORMATION_WEIGHT * more, through + _INFORMATION_WEIGHT * other
            total += value
            gradient += self._to_parameters(*pull_back(through))
        back = self.series.pull_back(free, factor, slope, gradient)
        return total / len(self.models), back.ravel() / len(self.models)

    def _bounded(self, flat: Array) -> tuple[Array, Array, Array, Array]:
        free = flat.reshape(self.series.shape)
        return (free, *self.series.bounded(free))

    def _motion(self, bounded: Array) -> tuple[Array, Array]:
        return self._position @ bounded.T + self.series.start, self._velocity @ bounded.T

    def _to_parameters(self, to_q: Array, to_dq: Array) -> Array:
        gradient: Array = np.swapaxes(to_q, -1, -2) @ self._position + np.swapaxes(to_dq, -1, -2) @ self._velocity
        return gradient
