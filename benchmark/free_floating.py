# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Free-floating identification: condition numbers, mass error, wrong priors, times.

python -m benchmark.free_floating [--quick]

A seven-axis arm (KUKA iiwa geometry) on a satellite of 300 kg with a target of 40 kg.
"""

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmark.area import Options, main
from benchmark.row import Anchor, Bar, Row
from robotid_ros.free_floating import (
    SensorNoise,
    control_trajectory,
    design_excitation,
    identify_target,
    predicted_conditions,
    read_mission,
    simulate,
    study_priors,
)
from robotid_ros.free_floating.design import SI_BOUND
from robotid_ros.free_floating.mission import Mission

AREA = 'free_floating'
ARTICLE = 'the article the method comes from'
PROTOTYPE = 'measured on a prototype'


@cache
def _mission() -> tuple[Mission, dict[str, Any]]:
    mission = read_mission()
    return mission, {'start': mission.start, 'limits': mission.limits, 'period': mission.period}


@cache
def _design(criterion: Any, seed: int) -> tuple[Any, float, float]:
    """Return a design with its processor and wall seconds."""
    mission, settings = _mission()
    processor, wall = time.process_time(), time.perf_counter()
    design = design_excitation(mission.true_robot, criterion=criterion, seed=seed, **settings)
    return design, time.process_time() - processor, time.perf_counter() - wall


def conditions(options: Options) -> Iterator[Row]:
    """Optimise for both criteria."""
    mission, _ = _mission()
    seeds = options.runs(3)
    found = {kind: [_design(kind, seed) for seed in range(seeds)] for kind in ('condition', 'condition-scaled')}
    si = [design.excitation.condition for design, _, _ in found['condition']]
    scaled = [design.excitation.condition_scaled for design, _, _ in found['condition-scaled']]
    yield Row(
        area=AREA,
        what='SI condition number, optimised for it, all 10 unknowns',
        values=(max(si),),
        anchor=Anchor(name=ARTICLE, values=(1.6912,), source='published'),
        bar=Bar(high=1.64),
        runs=f'worst of {seeds} seeds',
        note=f'lower bound {SI_BOUND:.4f}',
    )
    yield Row(
        area=AREA,
        what='column-scaled condition number, optimised for it',
        values=(max(scaled),),
        bar=Bar(high=1.01),
        runs=f'worst of {seeds} seeds',
        note='lower bound 1',
    )
    control = control_trajectory(mission.start, float(mission.limits.velocity.min()))
    own = predicted_conditions(mission.true_robot, control)
    yield Row(
        area=AREA,
        what='SI condition number of the control trajectory (0.1 + 0.5 Hz), no optimisation',
        values=(own[0],),
        anchor=Anchor(name=ARTICLE, values=(510.7,), source='published, for another satellite'),
        note=f'{own[1]:.3f} with scaled columns',
    )
    every = [times for designs in found.values() for times in designs]
    yield Row(
        area=AREA,
        what='time of a design',
        unit='s',
        values=(max(wall for _, _, wall in every),),
        bar=Bar(high=10.0),
        runs=f'longest wall time of {len(every)} designs on one core',
        note=f'{max(processor for _, processor, _ in every):.1f} s of processor time',
    )


def mass_error(options: Options) -> Iterator[Row]:
    """Identify the target from noisy and from exact measurements."""
    mission, _ = _mission()
    robot, runs = mission.true_robot, options.runs(50, 5)
    published = {'condition-scaled': 0.067, 'condition': 5.1}
    for criterion, name in (('condition-scaled', 'column-scaled optimum (recommended)'), ('condition', 'SI optimum')):
        trajectory = _design(criterion, 0)[0].trajectory
        measured = simulate(robot, trajectory, mission.sample_times(trajectory))
        noisy = [measured.with_noise(SensorNoise(), np.random.default_rng(k)) for k in range(runs)]
        masses = [identify_target(robot, data, estimator='weighted').body.mass for data in noisy]
        plain = [identify_target(robot, data, estimator='ordinary').body.mass for data in noisy]
        error, plain_error = (
            float(np.sqrt(np.mean((100.0 * (np.array(m) / robot.body.mass - 1.0)) ** 2))) for m in (masses, plain)
        )
        exact = identify_target(robot, measured, estimator='weighted')
        yield Row(
            area=AREA,
            what=f'mass error with 1e-4 on base twist and joint rates, {name}',
            unit='%',
            values=(error,),
            anchor=Anchor(name='ordinary least squares', values=(published[criterion],), source=PROTOTYPE),
            bar=Bar(high=0.1) if criterion == 'condition-scaled' else None,
            runs=f'root mean square of {runs} runs, weighted least squares',
            note=f'ordinary least squares {plain_error:.3f} %',
        )
        yield Row(
            area=AREA,
            what=f'relative error of the worst unknown without noise, {name}',
            values=(float(np.abs(exact.unknowns / robot.body.unknowns - 1.0).max()),),
            bar=Bar(high=1e-10),
            runs='one run',
        )


def wrong_priors(options: Options) -> Iterator[Row]:
    """Design with half the mass, inertia or centre of mass, and see what comes of it."""
    mission, settings = _mission()
    seeds = options.runs(3)
    for name, criterion, bar in (('scaled', 'condition-scaled', Bar(high=2.0)), ('si', 'condition', None)):
        worst = 0.0
        for seed in range(seeds):
            for case in study_priors(mission.true_robot, criteria=[criterion], seed=seed, **settings):
                worst = max(worst, case.true_scaled if criterion == 'condition-scaled' else case.true_si)
        yield Row(
            area=AREA,
            what=f'condition number reached with a prior half off, {name} criterion',
            values=(worst,),
            anchor=Anchor(name='SI criterion', values=(42.0,), source=PROTOTYPE),
            bar=bar,
            runs=f'worst of mass, inertia, centre of mass and all three, {seeds} seeds',
        )


CASES = (conditions, mass_error, wrong_priors)

if __name__ == '__main__':
    main(AREA, CASES, __doc__)
