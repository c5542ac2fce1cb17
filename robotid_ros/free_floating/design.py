# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Design of the joint trajectory from which the target is identified best."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import JointRanges, worst_excesses
from robotid_ros.excitation.criteria import CriterionName, condition_numbers, criterion_gradient, measure_excitation
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating.body import RigidBody, cross
from robotid_ros.free_floating.regression import information, information_gradient
from robotid_ros.free_floating.rest_to_rest import RestToRestSeries
from robotid_ros.free_floating.robot import FreeFloatingRobot, momentum_map
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

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

    z = [w; u] in the frame of body n, the last link of the model, u = P^ = -m_n v_c.

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


def design_excitation(
    robot: FreeFloatingRobot,
    *,
    start: Sequence[float] | Array,
    period: float = 10.0,
    harmonics: int = 5,
    criterion: CriterionName = 'condition-scaled',
    limits: JointLimits | None = None,
    alternatives: Sequence[RigidBody] = (),
    samples: int = 240,
    starts: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> ExcitationDesign:
    """Design a Fourier trajectory for the identification of body n.

    The end conditions are eliminated and the bounds built in (:mod:`.rest_to_rest`), so that what remains
    is an unconstrained minimisation with exact gradients. The base motion follows from the joints by
    momentum conservation with the prior, and no pose is integrated.

    Parameters
    ----------
    robot : FreeFloatingRobot
        Its ``body`` is the prior.
    start : sequence of float, shape (n,)
        Position at the start and the end [rad or m].
    period : float
        [s]
    harmonics : int
        L, at least 2.
    criterion : str
        One of :data:`robotid_ros.excitation.criteria.CRITERIA`. 'condition-scaled' (recommended) has a small
        weight on the log-determinant of the information: of the many motions with orthogonal columns, those
        that move most. 'condition', in SI units, depends on units.
    limits : JointLimits, optional
        Bounds on position, velocity and acceleration; those of the arm by default.
    alternatives : sequence of RigidBody
        Other values body n may have; the criterion is averaged over them and the prior.
    samples : int
        Grid points of the period, at least 200.
    starts : int
        Most starting points to try; fewer where the criterion's least value is attained.
    seed : int
        Of the random starting points.
    progress : callable, optional

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
    config = ExcitationConfig(
        period=period,
        harmonics=harmonics,
        criterion=criterion,
        starts=starts,
        seed=seed,
        start_position=tuple(origin.tolist()),
        start_at_rest=True,
    )
    bounds = robot.arm.limits if limits is None else limits
    for what in ('velocity', 'acceleration'):
        for name, value in zip(robot.arm.joint_names, getattr(bounds, what), strict=True):
            if value == np.inf:
                raise ExcitationError(f"joint '{name}' has no {what} limit; a design needs one for every joint")
    assumed = [robot, *(robot.with_body(body) for body in alternatives)]
    for each in assumed:
        each.require_physical_body()
    series = RestToRestSeries(origin, bounds, base_frequency=1.0 / period, harmonics=harmonics, samples=samples)
    starting = _FIRST_SIZE * np.random.default_rng(seed).standard_normal((starts, *series.shape))
    if not np.isfinite(predicted_conditions(robot, series.trajectory(starting[0]), samples)[1]):
        raise ExcitationError(
            f'no motion of the {robot.n} joints of this arm determines all ten unknowns; the last link must be able to '
            'turn about all axes relative to inertial space'
        )
    objective = _Objective(series, [each.model for each in assumed], criterion)
    best = objective.minimise(starting, progress)
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

    def minimise(self, starting: Array, progress: Progress | None) -> FourierTrajectory:
        """Return the best trajectory from the starting points, shape (k, n, 2 L - 2), until one attains the bound."""
        enough = _ENOUGH * _LEAST.get(self.criterion, -np.inf)
        best, least = self.series.trajectory(starting[0]), np.inf
        for tried, free in enumerate(starting):
            if progress is not None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorCase:
    """One design with a wrong prior.

    Attributes
    ----------
    criterion : str
    prior : str
        What was wrong.
    expected_si, expected_scaled : float
        Condition numbers the design expected, with the prior.
    true_si, true_scaled : float
        Those that the trajectory has on the true robot.
    """

    criterion: CriterionName
    prior: str
    expected_si: float
    expected_scaled: float
    true_si: float
    true_scaled: float


def study_priors(
    robot: FreeFloatingRobot,
    *,
    criteria: Sequence[CriterionName] = ('condition-scaled', 'condition'),
    seed: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> list[PriorCase]:
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
    list of PriorCase
    """
    cases: list[PriorCase] = []
    total = len(criteria) * len(PRIORS)
    for criterion in criteria:
        for prior, (mass, center, inertia) in PRIORS.items():
            if progress is not None:
                progress(len(cases) / total, f'{criterion}, prior off in: {prior}')
            assumed = robot.with_body(robot.body.scaled(mass=mass, center_of_mass=center, inertia=inertia))
            design = design_excitation(assumed, criterion=criterion, seed=seed, **settings)
            si, scaled = predicted_conditions(robot, design.trajectory)
            cases.append(
                PriorCase(
                    criterion=criterion,
                    prior=prior,
                    expected_si=design.excitation.condition,
                    expected_scaled=design.excitation.condition_scaled,
                    true_si=si,
                    true_scaled=scaled,
                )
            )
    return cases
