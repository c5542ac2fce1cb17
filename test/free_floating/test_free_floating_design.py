# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The designed trajectory: bounds, end conditions, the numbers it is for, and wrong priors."""

from dataclasses import replace

import numpy as np
import pytest
from errors_helpers import refused
from free_floating_helpers import example_robot, planar_robot, random_robot
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import ExcitationError, ModelError
from robotid_ros.excitation.criteria import CRITERIA, condition_numbers, criterion_gradient
from robotid_ros.free_floating import (
    RigidBody,
    SensorNoise,
    control_trajectory,
    design_excitation,
    identify_target,
    predicted_conditions,
    read_mission,
    simulate,
    study_priors,
)
from robotid_ros.free_floating.design import SI_BOUND, RestToRestSeries, _Objective
from robotid_ros.free_floating.regression import body_regressor, information
from robotid_ros.model import JointLimits

DESIGNED = ('condition-scaled', 'condition', 'd-optimal')
SEEDS = st.integers(0, 2**32 - 1)


@pytest.fixture(scope='module')
def mission():
    return read_mission()


@pytest.fixture(scope='module')
def designs(mission):
    return {
        criterion: design_excitation(mission.robot, start=mission.start, limits=mission.limits, criterion=criterion)
        for criterion in DESIGNED
    }


@pytest.fixture(scope='module')
def measurements(mission, designs):
    """Return what the prior's robot shows along each design."""
    return {
        criterion: simulate(mission.robot, design.trajectory, design.trajectory.sample_times(24.0))
        for criterion, design in designs.items()
    }


@pytest.mark.slow
def test_condition_numbers_reach_what_is_promised(mission, designs, measurements):
    assert designs['condition'].excitation.condition <= 1.64
    assert designs['condition-scaled'].excitation.condition_scaled <= 1.01
    # and they are those of the regressor of a real measurement, by a plain singular value decomposition
    for criterion in ('condition', 'condition-scaled'):
        measured = measurements[criterion]
        result = identify_target(mission.robot, measured)
        stacked = np.linalg.svd(_stacked(mission.robot, measured), compute_uv=False)
        assert result.condition_si == pytest.approx(stacked[0] / stacked[-1], rel=1e-9)
        assert result.condition_si == pytest.approx(designs[criterion].excitation.condition, rel=1e-6)
        assert result.condition_scaled == pytest.approx(designs[criterion].excitation.condition_scaled, rel=1e-6)


def _stacked(robot, measurement):
    from robotid_ros.free_floating.regression import target_regression

    return target_regression(robot, measurement)[0].reshape(-1, 10)


@pytest.mark.slow
def test_no_design_beats_the_bound(designs):
    assert all(design.excitation.condition >= SI_BOUND - 1e-9 for design in designs.values())
    assert all(design.excitation.condition_scaled >= 1.0 for design in designs.values())


@pytest.mark.slow
def test_designs_beat_the_control_trajectory(mission, designs):
    si, scaled = predicted_conditions(mission.robot, control_trajectory(mission.start, 0.8))
    assert si > 50 * designs['condition'].excitation.condition
    assert scaled > 10 * designs['condition-scaled'].excitation.condition_scaled


@pytest.mark.slow
def test_d_optimal_has_the_largest_determinant(mission, measurements):
    determinants = {}
    for criterion, measured in measurements.items():
        stacked = _stacked(mission.robot, measured)
        determinants[criterion] = np.linalg.slogdet(stacked.T @ stacked)[1]
    assert determinants['d-optimal'] == max(determinants.values())


@pytest.mark.slow
@pytest.mark.parametrize('criterion', DESIGNED)
def test_trajectory_starts_and_ends_at_rest_where_it_should(mission, designs, criterion):
    trajectory = designs[criterion].trajectory
    q, dq, ddq = trajectory.evaluate([0.0, trajectory.period])
    assert np.abs(q - mission.start).max() < 1e-12
    assert np.abs(dq).max() < 1e-12
    assert np.abs(ddq).max() < 1e-11


@pytest.mark.slow
@pytest.mark.parametrize('criterion', DESIGNED)
def test_trajectory_keeps_its_bounds_on_a_dense_grid(mission, designs, criterion):
    trajectory, limits = designs[criterion].trajectory, mission.limits
    q, dq, ddq = trajectory.evaluate(np.linspace(0.0, trajectory.period, 50_001))
    assert (q <= limits.upper).all()
    assert (q >= limits.lower).all()
    assert (np.abs(dq) <= limits.velocity).all()
    assert (np.abs(ddq) <= limits.acceleration).all()
    excess = max(peak.excess for peak in designs[criterion].peaks)
    assert -0.1 < excess <= 0.0  # and it makes use of them


@pytest.mark.slow
def test_recommended_design_finds_the_mass_to_a_thousandth(mission, designs):
    robot = mission.true_robot
    errors = {}
    for criterion in ('condition-scaled', 'condition'):
        trajectory = designs[criterion].trajectory
        measured = simulate(robot, trajectory, mission.sample_times(trajectory))
        noisy = [measured.with_noise(SensorNoise(), np.random.default_rng(seed)) for seed in range(8)]
        for estimator in ('ordinary', 'weighted'):
            masses = np.array([identify_target(robot, data, estimator=estimator).body.mass for data in noisy])
            errors[criterion, estimator] = np.abs(masses / robot.body.mass - 1.0)
    assert errors['condition-scaled', 'ordinary'].max() < 1e-3
    assert errors['condition-scaled', 'weighted'].max() < 1e-3
    assert np.median(errors['condition', 'ordinary']) > 0.01  # what the seed's criterion costs


@pytest.mark.slow
def test_equal_seeds_give_equal_designs():
    robot = random_robot(np.random.default_rng(4), 3)
    limits = JointLimits.unlimited(3).overridden(velocity=np.ones(3), acceleration=np.ones(3))
    first, again, other = (
        design_excitation(
            robot, start=np.zeros(3), limits=limits, harmonics=3, starts=1, seed=seed
        ).trajectory.coefficients
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.slow
def test_prior_with_half_of_everything(mission):
    settings_ = {'start': mission.start, 'limits': mission.limits}
    cases = study_priors(mission.true_robot, criteria=('condition-scaled',), **settings_)
    assert [prior for _, prior, _, _ in cases] == ['exact', 'mass', 'center of mass', 'inertia', 'all three']
    assert all(scaled <= 1.01 for _, _, (_, scaled), _ in cases)
    assert all(scaled <= 2.0 for *_, (_, scaled) in cases)
    half = mission.true_robot.with_body(mission.true_robot.body.scaled(mass=0.5, center_of_mass=0.5, inertia=0.5))
    blind = design_excitation(half, criterion='condition', **settings_)
    assert predicted_conditions(mission.true_robot, blind.trajectory)[0] > 10.0  # the seed's criterion is not robust


@pytest.mark.slow
def test_design_serves_the_alternatives_too(mission):
    settings_ = {'start': mission.start, 'limits': mission.limits, 'starts': 1}
    true = mission.true_robot
    half = true.body.scaled(mass=0.5, center_of_mass=0.5, inertia=0.5)
    plain = design_excitation(true.with_body(half), **settings_)
    broad = design_excitation(true.with_body(half), alternatives=[true.body], **settings_)
    assert predicted_conditions(true, broad.trajectory)[1] < min(1.2, predicted_conditions(true, plain.trajectory)[1])


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, harmonics=st.integers(2, 8), size=st.floats(1e-3, 1e4))
def test_any_parameters_give_a_trajectory_within_bounds(seed, harmonics, size):
    rng = np.random.default_rng(seed)
    n = 3
    start = rng.normal(size=n)
    limits = JointLimits(
        lower=start - rng.uniform(0.1, 3.0, n),
        upper=start + rng.uniform(0.1, 3.0, n),
        velocity=rng.uniform(0.1, 2.0, n),
        acceleration=rng.uniform(0.1, 5.0, n),
        jerk=np.full(n, np.inf),
        effort=np.full(n, np.inf),
    )
    series = RestToRestSeries(start, limits, base_frequency=0.2, harmonics=harmonics, samples=200)
    trajectory = series.trajectory(size * rng.normal(size=series.shape))
    q, dq, ddq = trajectory.evaluate(np.linspace(0.0, trajectory.period, 20_000))
    assert (q <= limits.upper).all()
    assert (q >= limits.lower).all()
    assert (np.abs(dq) <= limits.velocity).all()
    assert (np.abs(ddq) <= limits.acceleration).all()
    q, dq, ddq = trajectory.evaluate([0.0, trajectory.period])
    assert np.abs(q - start).max() < 1e-10
    assert max(np.abs(dq).max(), np.abs(ddq).max()) < 1e-10


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, criterion=st.sampled_from(CRITERIA), sharpness=st.sampled_from([1.0, 4.0, 64.0]))
def test_gradient_of_the_objective_is_exact(seed, criterion, sharpness):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 5)
    limits = JointLimits(
        lower=np.full(5, -2.0),
        upper=np.full(5, 2.0),
        velocity=np.full(5, 1.0),
        acceleration=np.full(5, 2.0),
        jerk=np.full(5, np.inf),
        effort=np.full(5, np.inf),
    )
    series = RestToRestSeries(np.zeros(5), limits, base_frequency=0.1, harmonics=4, samples=200)
    objective = _Objective(series, [robot.model], criterion)
    at, along = rng.normal(size=series.shape).ravel(), rng.normal(size=series.shape).ravel()
    _, gradient = objective.value_and_gradient(at, sharpness)

    def value(h):
        return objective.value_and_gradient(at + h * along, sharpness)[0]

    h = 1e-5
    slope = (8.0 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12.0 * h)
    assert gradient @ along == pytest.approx(slope, rel=1e-5, abs=1e-6 * np.linalg.norm(gradient))


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS)
def test_condition_numbers_are_those_of_the_stacked_matrix(seed):
    motion = np.random.default_rng(seed).normal(size=(12, 6))
    stacked = body_regressor(motion).reshape(-1, 10)
    si, scaled = condition_numbers(information(motion))
    assert si == pytest.approx(np.linalg.cond(stacked), rel=1e-8)
    assert scaled == pytest.approx(np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0)), rel=1e-8)
    assert si >= SI_BOUND
    for criterion, limit in (('condition-scaled', np.log(scaled)), ('condition', np.log(si) + 0.1 * np.log(scaled))):
        smooth = [criterion_gradient(information(motion), criterion, p)[0] for p in (2.0, 16.0, 1024.0)]
        assert smooth[0] >= smooth[1] >= smooth[2] >= limit - 1e-9
        assert smooth[2] == pytest.approx(limit, abs=0.01)


def test_the_si_bound_is_attained():
    # w isotropic and u a third of its mean square, uncorrelated: plus and minus along every axis
    unit = np.vstack([np.eye(6), -np.eye(6)])
    motion = unit * np.repeat([1.0, np.sqrt(1.0 / 3.0)], 3)
    assert condition_numbers(information(motion))[0] == pytest.approx(SI_BOUND, rel=1e-12)
    assert condition_numbers(information(motion))[1] == pytest.approx(1.0, rel=1e-12)


def test_design_refuses_what_cannot_be(mission):
    good = {'start': mission.start, 'limits': mission.limits}
    for change, about in (
        ({'criterion': 'best'}, {'name': 'criterion', 'found': 'best'}),
        ({'harmonics': 1}, {'name': 'harmonics', 'expected': (2, 40), 'found': 1}),
        ({'samples': 100}, {'name': 'samples', 'expected': 200, 'found': 100}),
        ({'period': 0.0}, {'name': 'period', 'found': 0.0}),
        ({'starts': 0}, {'name': 'starts', 'found': 0}),
        ({'start': mission.start[:3]}, {'name': 'start', 'expected': (7,), 'found': (3,)}),
        ({'start': mission.start + 3.0}, {'name': 'start', 'found': mission.start[0] + 3.0}),
        ({'limits': None}, {'name': 'joint_1', 'expected': 'acceleration'}),
    ):
        with refused(ExcitationError, **about):
            design_excitation(mission.robot, **{**good, **change})


def test_design_refuses_priors_and_arms_that_cannot_do(mission):
    negative = mission.robot.with_body(RigidBody.from_parameters(-mission.robot.body.parameters))
    with refused(ModelError, name='mass', found=pytest.approx(-41.2, abs=0.05)):
        design_excitation(negative, start=mission.start, limits=mission.limits)
    with refused(ModelError, name='mass'):
        simulate(negative, control_trajectory(mission.start, 0.5), np.arange(3.0))
    thin = replace(mission.robot.body, inertia=np.diag([1.0, 1.0, 5.0]), checked=False)
    with pytest.raises(ModelError, match='triangle'):
        design_excitation(mission.robot, start=mission.start, limits=mission.limits, alternatives=[thin])
    planar = planar_robot()
    limits = JointLimits.unlimited(1).overridden(velocity=np.ones(1), acceleration=np.ones(1))
    with pytest.raises(ExcitationError, match='no motion of the 1 joints'):
        design_excitation(planar, start=np.zeros(1), limits=limits)


@pytest.mark.slow
def test_progress_is_told():
    told = []
    robot = random_robot(np.random.default_rng(4), 3)
    limits = JointLimits.unlimited(3).overridden(velocity=np.ones(3), acceleration=np.ones(3))
    settings_ = {'start': np.zeros(3), 'limits': limits, 'harmonics': 3, 'starts': 1}
    design_excitation(robot, **settings_, progress=lambda f, m: told.append((f, m)))
    assert told[0][0] == 0.0
    assert all(0.0 <= fraction <= 1.0 and message for fraction, message in told)


def test_example_is_what_it_says():
    robot = example_robot()
    assert robot.n == 7
    assert robot.arm.base_inertial[9] == pytest.approx(305.0)
    assert robot.target.mass == pytest.approx(40.0)
