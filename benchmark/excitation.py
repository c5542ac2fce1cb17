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
harmonics, URDF limits and 8 rad/s^2. Panda: 16 s, 5 harmonics, its published acceleration limits. ER-16: first three
joints, 0.04 Hz, limits of the thesis the method comes from; its masses are not published, so torque limits are left
out. Violations are counted on a grid of 10 kHz: joint limits from the series themselves, torques from inverse
dynamics and the prior friction.
"""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from er16_helpers import er16 as er16_arm
from joblib.externals.loky import get_reusable_executor

from benchmark.arms import limited
from benchmark.row import Row
from benchmark.timing import processor_seconds
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.model import RobotModel

FIGAROH = 'FIGAROH 1.0.2, cubic splines, IPOPT'
EARLIER = 'measured earlier on two cores: IPOPT for Python is not on PyPI as a wheel'
SIXTEEN = ExcitationConfig(period=16.0)
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
    """Design for the UR10e with five seeds."""
    arm, seeds = limited('ur10e'), 1 if quick else 5
    found = [outcome(arm, replace(SIXTEEN, seed=seed)) for seed in range(seeds)]
    median = Outcome(*np.median(found, axis=0))
    conditions = [one.condition for one in found]
    text = f'median of {seeds} seeds'
    for what, unit, value, theirs, high, runs, note in (
        (
            f'condition number, UR10e, {found[0].parameters} base parameters, 16 s, 5 harmonics',
            '',
            median.condition,
            81.7,
            35.0,
            f'{text}, {min(conditions):.1f} to {max(conditions):.1f}',
            'FIGAROH: one seed; others took longer and found no feasible trajectory',
        ),
        ('the same, columns scaled', '', median.scaled, 19.5, 7.0, text, ''),
        (
            'time of a design, UR10e, one process',
            's',
            median.wall,
            461.0,
            15.0,
            f'{text}, wall time',
            f'{median.processor:.1f} s of processor time; FIGAROH took 100 to 461 s, here of the seed above',
        ),
    ):
        yield Row(
            what=what,
            unit=unit,
            values=value,
            anchor=FIGAROH,
            theirs=theirs,
            source=EARLIER,
            high=high,
            runs=runs,
            note=note,
        )
    broken = sum(one.violations for one in found)
    yield Row(what='limits broken on a grid of 10 kHz, UR10e', values=broken, high=0, runs=f'{seeds} seeds')


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
    config, arm = ExcitationConfig(period=25.0, offset=False), er16_arm()
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


CASES = (ur10e, seven_axes, er16)
