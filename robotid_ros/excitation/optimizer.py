"""Optimal excitation: several starts, an augmented Lagrangian with exact gradients, an exact finish.

Each start is minimised by L-BFGS in rounds of growing penalty and sharpness; after every round
the worse half of the starts is given up. What is left is scaled back inside the limits, exactly,
and checked between all samples.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import joblib
import numpy as np
from scipy.optimize import minimize

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import (
    Constraint,
    JointRanges,
    TorqueLimits,
    check_reachable,
    scaled_limits,
)
from robotid_ros.excitation.criteria import Excitation
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.observation import Observation, observation_of
from robotid_ros.excitation.problem import ExcitationProblem
from robotid_ros.excitation.verification import Peak, require_within, scale_into_limits, worst_excesses
from robotid_ros.excitation.workspace import workspace_constraints
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel

__all__ = [
    'ExcitationDesign',
    'Progress',
    'check_excitation',
    'design_limits',
    'design_observation',
    'optimize_excitation',
    'other_constraints',
]

Progress: TypeAlias = Callable[[float, str], None]

# order of the Schatten norm, penalty, part of the iterations
_ROUNDS = ((1.0, 30.0, 0.2), (2.0, 200.0, 0.25), (4.0, 500.0, 0.25), (6.0, 1000.0, 0.3))
_GUESSES = 8
_SETTLING, _TRIALS = 25, 4
_MARGIN = 0.002  # aimed inside the limits, for what lies between the samples
_GLANCE_RATE, _FULL_RATE = 100.0, 10_000.0  # Hz
_ACTIVE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationDesign:
    """A trajectory that keeps its limits, and how well it excites the base parameters.

    Attributes
    ----------
    trajectory : FourierTrajectory
    joint_names : tuple of str
    excitation : Excitation
        All criteria, with the earlier information where some was given.
    config : ExcitationConfig
    limits : JointLimits
        What it was checked against, scaling included.
    base_parameters : int
        Number of base parameters.
    peaks : tuple of Peak
        How close it comes to every bound.
    interrupted : bool
        The optimisation was stopped early; this is the best trajectory until then.
    evaluations : int
        Of the objective and its gradient, over all starts.
    """

    trajectory: FourierTrajectory
    joint_names: tuple[str, ...]
    excitation: Excitation
    config: ExcitationConfig
    limits: JointLimits
    base_parameters: int
    peaks: tuple[Peak, ...] = ()
    interrupted: bool = False
    evaluations: int = 0

    @property
    def active(self) -> tuple[Peak, ...]:
        """The bounds that hold the trajectory back: reached within one per cent of their range."""
        return tuple(peak for peak in self.peaks if peak.excess > -_ACTIVE)

    def summary(self) -> str:
        """Return the result in a few sentences: criteria, size of the problem, active limits."""
        found = self.excitation
        lines = [
            f'{self.base_parameters} base parameters, {self.trajectory.harmonics} harmonics',
            f'period {self.trajectory.period:g} s',
            f'condition number {found.condition:.4g} (SI), {found.condition_scaled:.4g} (columns scaled)',
            f'ln det of the information matrix {found.log_det:.4g}',
        ]
        if self.interrupted:
            lines.append('the optimisation was interrupted; this is the best trajectory until then')
        if self.active:
            lines.append('active limits: ' + '; '.join(peak.bound.label for peak in self.active))
        elif self.peaks:
            lines.append('no limit is active')
        settings = self.config
        if not (settings.workspace_frames or settings.geometry or settings.link_radius > 0.0):
            lines.append(
                'self-collision was not checked'
                + ('' if settings.ground else ', nor was the workspace')
                + ': give workspace_frames, ground, link_radius or geometry, or watch the arm closely'
            )
        return '\n'.join(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where one start stands between two rounds."""

    index: int
    variables: Array
    multipliers: tuple[Array, ...]
    margins: tuple[float, ...]
    value: float
    evaluations: int


def design_limits(model: RobotModel, config: ExcitationConfig) -> JointLimits:
    """Return the joint limits a design keeps: the model's, scaled, with accelerations filled in."""
    limits = model.limits
    if config.acceleration_limit > 0.0:
        filled = np.where(np.isfinite(limits.acceleration), limits.acceleration, config.acceleration_limit)
        limits = replace(limits, acceleration=filled)
    return scaled_limits(
        limits,
        position=config.position_scaling,
        velocity=config.velocity_scaling,
        acceleration=config.acceleration_scaling,
        jerk=config.jerk_scaling,
        effort=config.torque_scaling,
    )


def design_observation(model: RobotModel, config: ExcitationConfig) -> Observation:
    """Return which parameters a design is to find, and with what noise."""
    return observation_of(
        model,
        rotor_inertia=config.rotor_inertia,
        viscous=config.viscous,
        coulomb=config.coulomb,
        offset=config.offset,
        noise=config.noise,
    )


def other_constraints(
    model: RobotModel, config: ExcitationConfig, limits: JointLimits, observation: Observation
) -> list[Constraint]:
    """Return the torque, workspace and clearance limits that there are."""
    torque = [TorqueLimits(model, limits.effort, observation)] if np.isfinite(limits.effort).any() else []
    return [*torque, *workspace_constraints(model, config)]


def check_excitation(
    trajectory: FourierTrajectory,
    model: RobotModel,
    config: ExcitationConfig | None = None,
    constraints: Sequence[Constraint] = (),
) -> list[Peak]:
    """Check a trajectory against all limits, between the samples too.

    Parameters
    ----------
    trajectory : FourierTrajectory
    model : RobotModel
    config : ExcitationConfig, optional
        Its scalings, workspace and clearance settings are used.
    constraints : sequence of Constraint
        More of them.

    Returns
    -------
    list of Peak
        How close the trajectory comes to every bound.

    Raises
    ------
    ExcitationError
        If a limit is broken, naming the limit, joint and time; or if the joints do not fit.
    """
    config = ExcitationConfig() if config is None else config
    if trajectory.n != model.n:
        raise ExcitationError(f'the trajectory has {trajectory.n} joints, the robot has {model.n}')
    limits = design_limits(model, config)
    observation = design_observation(model, config).exact
    everything = [
        JointRanges(model, limits),
        *other_constraints(model, config, limits, observation),
        *constraints,
    ]
    peaks = worst_excesses(trajectory, model, everything, observation)
    require_within(peaks)
    return peaks


def optimize_excitation(
    model: RobotModel,
    config: ExcitationConfig | None = None,
    *,
    constraints: Sequence[Constraint] = (),
    information: Array | None = None,
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
    constraints : sequence of Constraint
        More limits, besides those of the settings.
    information : ndarray, shape (b, b), optional
        Information matrix of earlier data, in units of samples of this design with unit noise
        (see :func:`robotid_ros.excitation.sequential.earlier_information`): the trajectory then
        adds what is missing most.
    progress : callable, optional
        Called with the part done, 0 to 1, and what is being done.
    cancelled : callable, optional
        Asked between rounds; True ends the optimisation with the best trajectory until then. So
        does a KeyboardInterrupt.

    Returns
    -------
    ExcitationDesign

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
    limits = design_limits(model, config)
    start = None
    if config.start_position:
        start = frozen_array(config.start_position, 'start_position', (model.n,), ExcitationError)
    check_reachable(model, limits, None if start is None else start.tolist())
    observation = design_observation(model, config)
    others = [*other_constraints(model, config, limits, observation), *constraints]
    if information is not None:
        size = len(observation.base.independent)
        information = frozen_array(information, 'information', (size, size), ExcitationError)
    problem = ExcitationProblem(
        model=model,
        limits=limits,
        constraints=others,
        observation=observation,
        criterion=config.criterion,  # type: ignore[arg-type]
        earlier=information,
        harmonics=config.harmonics,
        period=config.period,
        start=start,
        at_rest=config.start_at_rest,
    )
    starts, interrupted, evaluations = _minimise(problem, config, progress, cancelled)
    trajectory, peaks, excitation = _finish(problem, starts)
    if progress is not None:
        progress(1.0, f'condition number {excitation.condition:.4g} ({excitation.condition_scaled:.4g} scaled)')
    return ExcitationDesign(
        trajectory=trajectory,
        joint_names=model.joint_names,
        excitation=excitation,
        config=config,
        limits=limits,
        base_parameters=len(observation.base.independent),
        peaks=tuple(peaks),
        interrupted=interrupted,
        evaluations=evaluations,
    )


def _minimise(
    problem: ExcitationProblem,
    config: ExcitationConfig,
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> tuple[list[_Start], bool, int]:
    """Return the starts, the longest survivors first, whether it was interrupted, and the evaluations."""
    starts: list[_Start] = []
    given_up: list[_Start] = []
    evaluations, done, interrupted = 0, 0.0, False
    work = [max(1, config.starts >> k) * part for k, (_, _, part) in enumerate(_ROUNDS)]
    with joblib.Parallel(n_jobs=min(config.jobs, config.starts), return_as='generator') as pool:
        try:
            for k, (sharpness, penalty, part) in enumerate(_ROUNDS):
                if cancelled is not None and cancelled():
                    interrupted = True
                    break
                steps = max(3, round(config.iterations * part))
                tasks = starts if k else [(config.seed, index) for index in range(config.starts)]
                finished: list[_Start] = []
                for result in pool(
                    joblib.delayed(_improve)(problem, task, sharpness, penalty, steps) for task in tasks
                ):
                    finished.append(result)
                    evaluations += result.evaluations
                    done += work[k] / len(tasks) / sum(work)
                    if progress is not None:
                        progress(min(done, 0.99), f'round {k + 1} of {len(_ROUNDS)}, start {result.index + 1}')
                finished.sort(key=lambda s: (s.value, s.index))
                kept = max(1, config.starts >> (k + 1))
                starts, given_up = finished[:kept], finished[kept:] + given_up
        except KeyboardInterrupt:
            interrupted = True
    if not starts:
        starts = [_first_guess(problem, (config.seed, 0))]
    return starts + given_up, interrupted, evaluations


def _first_guess(problem: ExcitationProblem, task: tuple[int, int]) -> _Start:
    """Return the best of a few random guesses."""
    seed, index = task
    rng = np.random.default_rng([seed, index])
    multipliers = tuple(np.zeros(shape) for shape in problem.multiplier_shapes)
    guesses = [problem.random_variables(rng) for _ in range(_GUESSES)]
    margins = (_MARGIN,) * len(multipliers)
    values = [problem.lagrangian(guess, multipliers, margins, _ROUNDS[0][1], 1.0)[0] for guess in guesses]
    best = int(np.argmin(values))
    return _Start(
        index=index,
        variables=guesses[best],
        multipliers=multipliers,
        margins=margins,
        value=values[best],
        evaluations=_GUESSES,
    )


def _improve(
    problem: ExcitationProblem, task: _Start | tuple[int, int], sharpness: float, penalty: float, iterations: int
) -> _Start:
    """Return a start after one round: a minimisation and an update of the multipliers."""
    start = task if isinstance(task, _Start) else _first_guess(problem, task)
    result = minimize(
        problem.lagrangian,
        start.variables,
        args=(start.multipliers, start.margins, penalty, sharpness),
        jac=True,
        method='L-BFGS-B',
        options={'maxiter': iterations, 'maxcor': 30},
    )
    excess = problem.excess(result.x)
    multipliers = tuple(
        np.maximum(0.0, multiplier + penalty * (part + margin))
        for multiplier, part, margin in zip(start.multipliers, excess, start.margins, strict=True)
    )
    return _Start(
        index=start.index,
        variables=result.x,
        multipliers=multipliers,
        margins=start.margins,
        value=float(result.fun),
        evaluations=result.nfev + (0 if start is task else start.evaluations),
    )


def _settle(problem: ExcitationProblem, start: _Start) -> _Start | None:
    """Return the start moved inside all limits, between the samples too, or None where that fails.

    A few more updates of the multipliers bring the samples inside; where the motion leaves between
    them, the margin grows by what it leaves.
    """
    sharpness, penalty, _ = _ROUNDS[-1]
    for _ in range(_SETTLING):
        inside = max(float(part.max(initial=-np.inf)) for part in problem.excess(start.variables)) <= 0.0
        if inside:
            beyond = problem.between_samples(start.variables, _GLANCE_RATE)
            if max(beyond) <= 0.0:
                beyond = problem.between_samples(start.variables, _FULL_RATE)
            if max(beyond) <= 0.0:
                return start
            margins = tuple(
                margin + 1.2 * max(excess, 0.0) for margin, excess in zip(start.margins, beyond, strict=True)
            )
            start = replace(start, margins=margins)
        else:
            penalty *= 1.5
        start = _improve(problem, start, sharpness, penalty, 20)
    return None


def _finish(problem: ExcitationProblem, starts: Sequence[_Start]) -> tuple[FourierTrajectory, list[Peak], Excitation]:
    """Return the best start's trajectory, inside all limits; where that fails, the next one's.

    Raises
    ------
    ExcitationError
        If no start can be brought inside.
    """
    refusal: ExcitationError | None = None
    for start in starts[:_TRIALS]:
        settled = _settle(problem, start)
        try:
            trajectory, peaks = scale_into_limits(
                problem.trajectory((settled or start).variables),
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
