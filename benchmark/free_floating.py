# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Free-floating identification: condition numbers, mass error, wrong priors, times.

A seven-axis arm (KUKA iiwa geometry) on a satellite of 300 kg with a target of 40 kg.
"""

import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from benchmark.row import Row
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

ARTICLE = 'the article the method comes from'


@cache
def _mission() -> tuple[Mission, dict[str, Any]]:
    mission = read_mission()
    return mission, {'start': mission.start, 'limits': mission.limits, 'period': mission.period}


@cache
def _design(criterion: Any, seed: int) -> tuple[Any, float]:
    """Return a design with the seconds that it took on the clock."""
    mission, settings = _mission()
    begun = time.perf_counter()
    design = design_excitation(mission.true_robot, criterion=criterion, seed=seed, **settings)
    return design, time.perf_counter() - begun


def conditions(quick: bool) -> Iterator[Row]:
    """Optimise for both criteria."""
    mission, _ = _mission()
    seeds = 1 if quick else 3
    found = {kind: [_design(kind, seed) for seed in range(seeds)] for kind in ('condition', 'condition-scaled')}
    si = [design.excitation.condition for design, _ in found['condition']]
    scaled = [design.excitation.condition_scaled for design, _ in found['condition-scaled']]
    yield Row(
        what='SI condition number, optimised for it, all 10 unknowns',
        values=max(si),
        anchor=ARTICLE,
        theirs=1.6912,
        source='published',
        high=1.64,
        runs=f'worst of {seeds} seeds',
        note=f'lower bound {SI_BOUND:.4f}',
    )
    yield Row(
        what='column-scaled condition number, optimised for it',
        values=max(scaled),
        high=1.01,
        runs=f'worst of {seeds} seeds',
        note='lower bound 1',
    )
    control = control_trajectory(mission.start, float(mission.limits.velocity.min()))
    own = predicted_conditions(mission.true_robot, control)
    yield Row(
        what='SI condition number of the control trajectory (0.1 + 0.5 Hz), no optimisation',
        values=own[0],
        note=f'{own[1]:.3f} with scaled columns',
    )
    every = [spent for designs in found.values() for _, spent in designs]
    yield Row(
        what='time of a design',
        unit='s',
        values=max(every),
        high=10.0,
        runs=f'longest wall time of {len(every)} designs on one core',
    )


def mass_error(quick: bool) -> Iterator[Row]:
    """Identify the target from noisy and from exact measurements."""
    mission, _ = _mission()
    robot, runs = mission.true_robot, 5 if quick else 50
    for criterion, name in (('condition-scaled', 'column-scaled optimum (recommended)'), ('condition', 'SI optimum')):
        trajectory = _design(criterion, 0)[0].trajectory
        measured = simulate(robot, trajectory, mission.sample_times(trajectory))
        noisy = [measured.with_noise(SensorNoise(), np.random.default_rng(k)) for k in range(runs)]
        masses = [identify_target(robot, data, estimator='weighted').body.mass for data in noisy]
        error = 100.0 * np.sqrt(np.mean((np.array(masses) / robot.body.mass - 1.0) ** 2))
        exact = identify_target(robot, measured, estimator='weighted')
        yield Row(
            what=f'mass error with 1e-4 on base twist and joint rates, {name}',
            unit='%',
            values=error,
            high=0.1 if criterion == 'condition-scaled' else None,
            runs=f'root mean square of {runs} runs, weighted least squares',
        )
        yield Row(
            what=f'relative error of the worst unknown without noise, {name}',
            values=np.abs(exact.unknowns / robot.body.unknowns - 1.0).max(),
            high=1e-10,
            runs='one run',
        )


def wrong_priors(quick: bool) -> Iterator[Row]:
    """Design with half the mass, inertia or centre of mass, and see what comes of it."""
    mission, settings = _mission()
    seeds = 1 if quick else 3
    reached = {}
    for criterion in ('condition-scaled', 'condition'):
        studies = [study_priors(mission.true_robot, criteria=[criterion], seed=k, **settings) for k in range(seeds)]
        true = [found for study in studies for *_, found in study]  # in SI units, and column-scaled
        reached[criterion] = max(scaled for _, scaled in true), max(si for si, _ in true)
    for name, k, high in (('column-scaled', 0, 2.0), ('SI', 1, None)):
        yield Row(
            what=f'{name} condition number reached with a prior half off, designed by the column-scaled one',
            values=reached['condition-scaled'][k],
            anchor='designed by the SI one',
            theirs=reached['condition'][k],
            high=high,
            runs=f'worst of mass, inertia, centre of mass and all three, {seeds} seeds',
        )


CASES = (conditions, mass_error, wrong_priors)
