# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Condition numbers of optimised excitations, what they cost, and whether any limit is broken.

python -m benchmark.excitation [--quick]

UR10e: 58 base parameters (40 inertial ones with rotor inertia, viscous and Coulomb friction, offset), 16 s, 5
harmonics, URDF limits and 8 rad/s^2. Panda: 16 s, 5 harmonics, its published acceleration limits. ER-16: first three
joints, 0.04 Hz, limits of the thesis the method comes from; its masses are not published, so torque limits are left
out. Violations are counted on a grid of 10 kHz: joint limits from the series themselves, torques from inverse
dynamics and the prior friction.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from joblib.externals.loky import get_reusable_executor

from benchmark.area import Options, main
from benchmark.arms import er16_main_axes, panda_with_published_limits, ur10e_with_acceleration_limit
from benchmark.row import Anchor, Bar, Row
from benchmark.timing import children_seconds, own_seconds
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.model import RobotModel

AREA = 'excitation'
FIGAROH = 'FIGAROH 1.0.2, cubic splines, IPOPT'
EARLIER = 'measured earlier on two cores: IPOPT for Python is not on PyPI as a wheel'
SIXTEEN = ExcitationConfig(period=16.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one design came to."""

    condition: float
    scaled: float
    parameters: int
    processor: float
    wall: float
    violations: int


def outcome(name: str, model: RobotModel, config: ExcitationConfig) -> Outcome:
    """Design, check and print one line."""
    processor, wall = own_seconds() + children_seconds(), time.perf_counter()
    design = optimize_excitation(model, config)
    wall = time.perf_counter() - wall
    if config.jobs != 1:  # the time of other processes is known once they have ended
        get_reusable_executor().shutdown(wait=True)
    processor = own_seconds() + children_seconds() - processor
    found = design.excitation
    result = Outcome(
        condition=found.condition,
        scaled=found.condition_scaled,
        parameters=design.base_parameters,
        processor=processor,
        wall=wall,
        violations=violations(model, design.trajectory),
    )
    print(
        f'{name:28}{result.parameters:4} parameters, condition {result.condition:8.2f} ({result.scaled:.2f}), '
        f'{processor:6.1f} s of processor, {wall:6.1f} s, {result.violations} violations',
        flush=True,
    )
    return result


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


def ur10e(options: Options) -> Iterator[Row]:
    """Design for the UR10e with five seeds."""
    arm = ur10e_with_acceleration_limit()
    seeds = options.runs(5, 1)
    found = [outcome(f'UR10e seed {seed}', arm, replace(SIXTEEN, seed=seed)) for seed in range(seeds)]
    conditions, scaled = [one.condition for one in found], [one.scaled for one in found]
    text = f'{seeds} seeds'
    what = f'UR10e, {found[0].parameters} base parameters, 16 s, 5 harmonics'
    figaroh = Anchor(name=FIGAROH, values=(81.7,), source=EARLIER)
    article = Anchor(name='UR10e experiment of 30 s', values=(94.0,), source='published')
    yield Row(area=AREA, what=f'condition number, {what}', values=(float(np.median(conditions)),), anchor=figaroh,
              bar=Bar(high=35.0), runs=f'median of {text}, {min(conditions):.1f} to {max(conditions):.1f}',
              note='FIGAROH: one seed; others took longer and found no feasible trajectory')  # fmt: skip
    yield Row(area=AREA, what='the same, columns scaled', values=(float(np.median(scaled)),),
              anchor=replace(figaroh, values=(19.5,)), bar=Bar(high=7.0), runs=f'median of {text}')  # fmt: skip
    yield Row(area=AREA, what='condition number, worst seed', values=(max(conditions),), anchor=article, runs=text)
    yield Row(
        area=AREA,
        what='time of a design, UR10e, one process',
        unit='s',
        values=(float(np.median([one.wall for one in found])),),
        anchor=Anchor(name=FIGAROH, values=(461.0,), source=EARLIER),
        bar=Bar(high=15.0),
        runs=f'median wall time of {text}',
        note=f'{np.median([one.processor for one in found]):.1f} s of processor time; FIGAROH took 100 to 461 s',
    )
    yield Row(
        area=AREA,
        what='limits broken on a grid of 10 kHz, UR10e',
        values=(sum(one.violations for one in found),),
        bar=Bar(high=0),
        runs=text,
    )


def seven_axes(options: Options) -> Iterator[Row]:
    """Design for the Panda."""
    config = replace(SIXTEEN, starts=1) if options.quick else SIXTEEN
    found = outcome('Panda', panda_with_published_limits(), config)
    yield Row(
        area=AREA,
        what=f'time of a design, Panda, {found.parameters} base parameters, 5 harmonics',
        unit='s',
        values=(found.wall,),
        bar=Bar(high=40.0),
        runs='one run, wall time',
        note=f'condition number {found.condition:.1f} ({found.scaled:.2f}), {found.processor:.1f} s of processor time',
    )
    yield Row(
        area=AREA,
        what='limits broken on a grid of 10 kHz, Panda',
        values=(found.violations,),
        bar=Bar(high=0),
        runs='one run',
    )


def er16(options: Options) -> Iterator[Row]:
    """Design for the main axes of the ER-16, at the frequency of the method's thesis."""
    config = ExcitationConfig(period=25.0, offset=False)
    for name, settings in (
        ('inertial, rotor inertia and friction parameters', config),
        ('inertial parameters alone', replace(config, rotor_inertia=False, viscous=False, coulomb=False)),
    ):
        found = outcome(f'ER-16, {name}', er16_main_axes(), settings)
        yield Row(
            area=AREA,
            what=f'condition number, ER-16, 3 joints, 0.04 Hz, {found.parameters} {name}',
            values=(found.condition,),
            runs='one run',
            note=f'{found.scaled:.2f} with scaled columns, {found.wall:.1f} s, {found.violations} violations',
        )


CASES = (ur10e, seven_axes, er16)

if __name__ == '__main__':
    main(AREA, CASES, __doc__)
