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
from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import JointRanges, check_reachable
from robotid_ros.excitation.criteria import (
    CriterionName,
    Excitation,
    condition_numbers,
    criterion_gradient,
    measure_excitation,
)
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.motion import Motion, MotionGradient
from robotid_ros.excitation.problem import ExcitationProblem
from robotid_ros.excitation.search import finish, minimise
from robotid_ros.excitation.verification import worst_excesses
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.momentum import momentum_map
from robotid_ros.free_floating.regressor import information, information_gradient
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.free_floating.spatial import cross
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.progress import Progress

SI_BOUND = float(np.sqrt(8.0 / 3.0))
"""Least SI condition number of all ten unknowns. With s the ratio of the mean squares of u and w, and
those of w in unit of their mean, diagonal entries of G are 3 s (1/m), 2 + 2 s on average (c) and 1 on
average (Ixx, Iyy, Izz); eigenvalues lie outside them, so cond^2 >= (2 + 2 s)/min(1, 3 s) >= 8/3."""

_ITERATIONS = 300  # of the best start: condition numbers then are within 0.5 % of the least possible
_INFORMATION_WEIGHT = 5e-3  # of the log-determinant beside the column-scaled condition number
_SAMPLES = 240  # of a period: the second moments are means of smooth periodic functions


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
    robot: FreeFloatingRobot, trajectory: FourierTrajectory, samples: int = _SAMPLES
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
        excitation=measure_excitation(_period_information(robot.model, trajectory, _SAMPLES)),
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
    starts: int = 4,
    seed: int = 0,
    progress: Progress | None = None,
) -> ExcitationDesign:
    """Design a Fourier trajectory for the identification of body n.

    It begins and ends at rest in the start, and keeps its limits as those of an arm on the ground do
    (:func:`robotid_ros.excitation.optimize_excitation`). The base motion follows from the joints by
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
    starts : int
        Independent optimisations; the best one wins.
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
        iterations=_ITERATIONS,
        seed=seed,
        start_position=tuple(origin.tolist()),
    )
    bounds = robot.arm.limits if limits is None else limits
    for what in ('velocity', 'acceleration'):
        for name, value in zip(robot.arm.joint_names, getattr(bounds, what), strict=True):
            if value == np.inf:
                raise ExcitationError(f"joint '{name}' has no {what} limit; a design needs one for every joint")
    check_reachable(robot.arm, bounds, config.start_position)
    assumed = [robot, *(robot.with_body(body) for body in alternatives)]
    for each in assumed:
        each.require_physical_body()
    problem = _FloatingProblem([each.model for each in assumed], bounds, config)
    guess = problem.trajectory(problem.random_variables(np.random.default_rng(seed)))
    if not np.isfinite(predicted_conditions(robot, guess)[1]):
        raise ExcitationError(
            f'no motion of the {robot.n} joints of this arm determines all ten unknowns; the last link must be able to '
            'turn about all axes relative to inertial space'
        )
    if progress is not None:
        progress(0.0, 'designing')
    found, interrupted, evaluations = minimise(problem, config, progress, None)
    if interrupted:
        raise KeyboardInterrupt
    trajectory, _, _ = finish(problem, found)
    return replace(judged_trajectory(robot, trajectory, bounds, config), evaluations=evaluations)


class _FloatingProblem(ExcitationProblem):
    """The design for body n: the criterion is of the momentum regressor, averaged over the models."""

    def __init__(self, models: Sequence[RobotModel], limits: JointLimits, config: ExcitationConfig) -> None:
        super().__init__(models[0], limits, (), None, config)
        self.models = models

    def criterion(self, motion: Motion, gradient: MotionGradient, sharpness: float) -> float:
        """Return the smooth criterion and add its gradient with respect to positions and velocities."""
        total = 0.0
        for model in self.models:
            body, pull_back = last_body_motion(model, motion.q, motion.dq)
            gram = information(body)
            value, slope = criterion_gradient(gram, self.config.criterion, sharpness)
            if self.config.criterion == 'condition-scaled':
                more, other = criterion_gradient(gram, 'd-optimal', sharpness)
                value, slope = value + _INFORMATION_WEIGHT * more, slope + _INFORMATION_WEIGHT * other
            to_q, to_dq = pull_back(information_gradient(body, slope / len(self.models)))
            gradient.q += to_q
            gradient.dq += to_dq
            total += value / len(self.models)
        return total

    def measure(self, trajectory: FourierTrajectory) -> Excitation:
        """Return the criteria of a trajectory for the prior."""
        return measure_excitation(_period_information(self.model, trajectory, _SAMPLES))
