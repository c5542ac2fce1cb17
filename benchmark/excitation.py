# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Condition numbers of optimised excitations, what they cost, and whether any limit is broken.

UR10e: 58 base parameters (40 inertial ones with rotor inertia, viscous and Coulomb friction, offset), 16 s, 5
harmonics, URDF limits and 8 rad/s^2, without torque limits. Panda: 16 s, 5 harmonics, its published acceleration
limits. ER-16: first three joints, 0.04 Hz, limits of the thesis the method comes from; its masses are not published, so
torque limits are left out. Violations are counted on a grid of 10 kHz: joint limits from the series themselves, torques
from inverse dynamics and the prior friction.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from er16_helpers import er16 as er16_arm
from joblib.externals.loky import get_reusable_executor
from scipy.optimize import minimize

from benchmark.arms import limited
from benchmark.row import Row, spread_of
from benchmark.timing import processor_seconds
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.excitation.motion import observation_of
from robotid_ros.excitation.optimizer import ExcitationProblem, first_guess
from robotid_ros.excitation.preparation import design_limits
from robotid_ros.model import RobotModel

Criterion = Callable[[np.ndarray], tuple[float, np.ndarray]]
Solver = Callable[[Criterion, np.ndarray, np.ndarray, np.ndarray], np.ndarray]
# The peers begin at rest, and use all of the ranges.
SIXTEEN = ExcitationConfig(period=16.0, position_margin=0.0, velocity_margin=0.0, start_at_rest=True)
PANDA = (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0)  # acceleration limits of its maker [rad/s^2]


class Outcome(NamedTuple):
    """What one design came to."""

    condition: float
    scaled: float
    parameters: int
    processor: float
    wall: float
    violations: int


def outcome(model: RobotModel, config: ExcitationConfig) -> Outcome:
    """Design and check."""
    processor, wall = processor_seconds(), time.perf_counter()
    design = optimize_excitation(model, config)
    wall = time.perf_counter() - wall
    if config.jobs != 1:  # the time of other processes is known once they have ended
        get_reusable_executor().shutdown(wait=True)
    processor = processor_seconds() - processor
    found, broken = design.excitation, violations(model, design.trajectory)
    return Outcome(found.condition, found.condition_scaled, design.base_parameters, processor, wall, broken)


def violations(model: RobotModel, trajectory: FourierTrajectory) -> int:
    """Return how many limits are broken anywhere on a grid of 10 kHz."""
    limits, count = model.limits, 0
    times = trajectory.sample_times(10_000.0)
    for part in np.array_split(times, max(1, len(times) // 5000)):
        q, dq, ddq = trajectory.evaluate(part)
        tau = inverse_dynamics(model, q, dq, ddq) + model.damping * dq + model.friction * np.sign(dq)
        broken = [
            q < limits.lower,
            q > limits.upper,
            np.abs(dq) > limits.velocity,
            np.abs(ddq) > limits.acceleration,
            np.abs(tau) > limits.effort,
        ]
        count += int(np.sum(broken))
    return count


def ur10e(quick: bool) -> Iterator[Row]:
    """Design for the UR10e with ten seeds, beside SLSQP from the same starts under the same limits."""
    arm, seeds = free_ur10e(), 1 if quick else 10
    found = _designs(arm, seeds, SIXTEEN.starts)
    alone = _designs(arm, seeds, 1)
    others = [_several(arm, replace(SIXTEEN, seed=seed), with_slsqp) for seed in range(seeds)]
    name, text = 'scipy, SLSQP', f'{SIXTEEN.starts} starts, as by default'
    yield from _beside(name, 'one start, the same', alone, [each[0] for each in others])
    yield from _beside(name, text, found, [_best(each) for each in others])
    broken = sum(one.violations for one in found)
    yield Row(what='limits broken on a grid of 10 kHz, UR10e', values=broken, high=0, runs=f'{seeds} seeds')


def ipopt(quick: bool) -> Iterator[Row]:
    """Design for the UR10e beside IPOPT, which takes a minute and more for a start."""
    arm, seeds = free_ur10e(), 1 if quick else 10
    others = [from_same_start(arm, replace(SIXTEEN, seed=seed), 0, with_ipopt) for seed in range(seeds)]
    yield from _beside('IPOPT (cyipopt), L-BFGS', 'one start, the same', _designs(arm, seeds, 1), others)


def free_ur10e() -> RobotModel:
    """Return a UR10e without torque limits."""
    arm = limited('ur10e')
    return replace(arm, limits=arm.limits.overridden(effort=np.full(6, np.inf)))


def _designs(arm: RobotModel, seeds: int, starts: int) -> list[Outcome]:
    return [outcome(arm, replace(SIXTEEN, seed=seed, starts=starts)) for seed in range(seeds)]


def _several(arm: RobotModel, config: ExcitationConfig, solve: Solver) -> list[Outcome]:
    return [from_same_start(arm, config, index, solve) for index in range(config.starts)]


def _best(found: Sequence[Outcome]) -> Outcome:
    """Return the best of several starts, with what all of them took."""
    best = min(found, key=lambda one: one.condition)
    spent = {name: sum(getattr(one, name) for one in found) for name in ('processor', 'wall')}
    return best._replace(**spent)


def _beside(name: str, starts: str, own: Sequence[Outcome], others: Sequence[Outcome]) -> Iterator[Row]:
    """Compare condition numbers and times of designs from the same starts."""
    broken = sum(one.violations > 0 for one in others)
    for field, what, unit, bar in (
        ('condition', 'condition number', '', 1.0),
        ('processor', 'processor time of that design', 's', 2.0),
    ):
        here, there = ([getattr(one, field) for one in each] for each in (own, others))
        yield Row(
            what=f'{what}, UR10e, {own[0].parameters} base parameters, 16 s, 5 harmonics, {starts}',
            unit=unit,
            values=np.median(here),
            spread=spread_of(here),
            anchor=name,
            theirs=np.median(there),
            their_spread=spread_of(there),
            times=bar,
            runs=f'median of {len(own)} seeds',
            note=f'without torque limits, on both sides; of theirs {broken} break a limit on a grid of 10 kHz',
        )


def from_same_start(
    model: RobotModel,
    config: ExcitationConfig,
    index: int,
    solve: Solver,
) -> Outcome:
    """Minimise the same smooth criterion by another solver; the limits, linear in the coefficients, are its own.

    First with the order 10, where solvers are fastest, then sharpened as in the search: that ends a percent lower than
    either alone.
    """
    processor, wall = processor_seconds(), time.perf_counter()
    limits = design_limits(model, config)
    observation = observation_of(model, config)
    problem = ExcitationProblem(model, limits, (), observation, config)
    start = first_guess(problem, index)[2]
    times = np.linspace(0.0, config.period, 40 * config.harmonics, endpoint=False)
    held = np.stack(problem.trajectory(np.zeros_like(start)).evaluate(times))
    units = [np.stack(problem.trajectory(unit).evaluate(times)) - held for unit in np.eye(len(start))]
    inside = 1.0 - 0.002  # of the limits, for the motion between the samples, as in the search
    upper = np.stack([limits.upper, limits.velocity, limits.acceleration])[:, None] * inside
    lower = np.stack([limits.lower, -limits.velocity, -limits.acceleration])[:, None] * inside
    scale = (upper - lower) / 2.0
    rows = np.stack([unit / scale for unit in units], axis=-1).reshape(-1, len(start))
    middle = ((held - (upper + lower) / 2.0) / scale).ravel()
    none = [np.zeros(shape) for shape in problem.multiplier_shapes]

    def criterion(sharpness: float, variables: np.ndarray) -> tuple[float, np.ndarray]:
        return problem.lagrangian(variables, none, (-1e9,) * len(none), 1.0, sharpness)

    for sharpness in (10.0, 60.0):
        start = solve(partial(criterion, sharpness), start, rows, middle)
    trajectory = problem.trajectory(start)
    processor, wall = processor_seconds() - processor, time.perf_counter() - wall
    found, broken = problem.measure(trajectory), violations(model, trajectory)
    count = len(observation.base.independent)
    return Outcome(found.condition, found.condition_scaled, count, processor, wall, broken)


def with_slsqp(criterion: Criterion, start: np.ndarray, rows: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Return the minimum that SLSQP finds for -1 <= rows x + middle <= 1."""
    both, beyond = np.concatenate([-rows, rows]), np.concatenate([1.0 - middle, 1.0 + middle])
    limits = {'type': 'ineq', 'fun': lambda x: beyond + both @ x, 'jac': lambda x: both}
    found = minimize(criterion, start, jac=True, method='SLSQP', constraints=limits, options={'maxiter': 200})
    return np.asarray(found.x)


def with_ipopt(criterion: Criterion, start: np.ndarray, rows: np.ndarray, middle: np.ndarray) -> np.ndarray:
    """Return the minimum that IPOPT finds for -1 <= rows x + middle <= 1."""
    import cyipopt

    class Problem:
        def objective(self, x: np.ndarray) -> float:
            return criterion(x)[0]

        def gradient(self, x: np.ndarray) -> np.ndarray:
            return criterion(x)[1]

        def constraints(self, x: np.ndarray) -> np.ndarray:
            return rows @ x

        def jacobian(self, x: np.ndarray) -> np.ndarray:
            return rows.ravel()

    free = np.full(len(start), 1e20)
    problem = cyipopt.Problem(len(start), len(rows), Problem(), -free, free, -1.0 - middle, 1.0 - middle)
    for name, value in {
        'hessian_approximation': 'limited-memory',
        'max_iter': 300,
        'print_level': 0,
        'sb': 'yes',
    }.items():
        problem.add_option(name, value)
    return np.asarray(problem.solve(start)[0])


def seven_axes(quick: bool) -> Iterator[Row]:
    """Design for the Panda."""
    config = replace(SIXTEEN, starts=1) if quick else SIXTEEN
    found = outcome(limited('panda', PANDA), config)
    yield Row(
        what=f'time of a design, Panda, {found.parameters} base parameters, 5 harmonics',
        unit='s',
        values=found.wall,
        high=40.0,
        runs='one run, wall time',
        note=f'condition number {found.condition:.1f} ({found.scaled:.2f}), {found.processor:.1f} s of processor time',
    )
    yield Row(what='limits broken on a grid of 10 kHz, Panda', values=found.violations, high=0, runs='one run')


def er16(quick: bool) -> Iterator[Row]:
    """Design for the main axes of the ER-16, at the frequency of the method's thesis."""
    config, arm = ExcitationConfig(period=25.0, offset=False, position_margin=0.0, start_at_rest=True), er16_arm()
    arm = replace(arm, limits=arm.limits.overridden(effort=np.full(3, np.inf)))
    for name, settings in (
        ('inertial, rotor inertia and friction parameters', config),
        ('inertial parameters alone', replace(config, rotor_inertia=False, viscous=False, coulomb=False)),
    ):
        found = outcome(arm, settings)
        yield Row(
            what=f'condition number, ER-16, 3 joints, 0.04 Hz, {found.parameters} {name}',
            values=found.condition,
            runs='one run',
            note=f'{found.scaled:.2f} with scaled columns, {found.wall:.1f} s, {found.violations} violations',
        )


CASES = (ur10e, ipopt, seven_axes, er16)
LONG = (ipopt,)
