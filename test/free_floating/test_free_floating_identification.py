# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification of the target: exact recovery, noise, momentum, recursion, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from errors_helpers import refused
from free_floating_helpers import example_robot, planar_robot, random_robot, random_trajectory
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.excitation import FourierTrajectory
from robotid_ros.free_floating import FloatingMeasurement, RigidBody, SensorNoise, identify_target, simulate
from robotid_ros.free_floating.identification import ESTIMATORS
from robotid_ros.free_floating.regression import convergence_history, residual_covariance, target_regression
from robotid_ros.free_floating.robot import momentum_map

MOMENTUM = np.array([3.0, -2.0, 1.0, 0.4, 0.5, -0.3])
EVERY_NOISE = SensorNoise(joint_position=1e-4, base_position=1e-4, base_orientation=1e-4)


@pytest.fixture(scope='module')
def still():
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(0), robot.n, harmonics=4)
    return robot, simulate(robot, trajectory, np.linspace(0.0, 10.0, 201))


@pytest.fixture(scope='module')
def drifting():
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(0), robot.n, harmonics=4)
    return robot, simulate(robot, trajectory, np.linspace(0.0, 10.0, 201), momentum=MOMENTUM)


def relative_error(result, robot):
    return np.abs(result.unknowns / robot.body.unknowns - 1.0).max()


@pytest.mark.slow
@pytest.mark.parametrize('estimator', ESTIMATORS)
def test_perfect_data_give_the_target_to_1e_10(still, estimator):
    robot, measurement = still
    result = identify_target(robot, measurement, estimator=estimator)
    assert relative_error(result, robot) < 1e-10
    assert result.target.mass == pytest.approx(40.0, rel=1e-10)
    assert result.target.center_of_mass == pytest.approx([0.05, -0.03, 0.30], rel=1e-9)
    assert result.usable
    assert result.reason == ''


@pytest.mark.slow
@pytest.mark.parametrize('estimator', ESTIMATORS)
def test_given_momentum_is_taken_out(drifting, estimator):
    robot, measurement = drifting
    assert relative_error(identify_target(robot, measurement, estimator=estimator, momentum=MOMENTUM), robot) < 1e-10


def test_momentum_is_estimated_with_the_target(drifting, still):
    robot, measurement = drifting
    result = identify_target(robot, measurement, momentum='estimated')
    assert relative_error(result, robot) < 1e-10
    assert np.abs(result.momentum - MOMENTUM).max() < 1e-10
    result = identify_target(*still, momentum='estimated')
    assert np.abs(result.momentum).max() < 1e-10


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(4, 7))
def test_any_robot_is_recovered(seed, n):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n)
    measurement = simulate(robot, random_trajectory(rng, n), np.linspace(0.0, 4.0, 60))
    assert relative_error(identify_target(robot.with_body(random_robot(rng, 1).body), measurement), robot) < 1e-8


def test_prior_does_not_enter_the_batch_estimates(still):
    robot, measurement = still
    noisy = measurement.with_noise(SensorNoise(), np.random.default_rng(1))
    other = robot.with_body(robot.body.scaled(mass=0.5, center_of_mass=0.5, inertia=0.5))
    for estimator in ('weighted', 'ordinary'):
        first = identify_target(robot, noisy, estimator=estimator)
        assert identify_target(other, noisy, estimator=estimator).unknowns == pytest.approx(first.unknowns, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('source', 'momentum', 'noise'),
    [('still', 'zero', replace(EVERY_NOISE, base_position=0.0)), ('drifting', 'estimated', EVERY_NOISE)],
)
def test_deviations_are_those_of_repeated_experiments(request, source, momentum, noise):
    robot, measurement = request.getfixturevalue(source)
    true = np.concatenate([[robot.body.mass], robot.body.unknowns[1:]])
    scores, scales = [], []
    measurement = measurement.slice(0, 100)
    for seed in range(40):
        noisy = measurement.with_noise(noise, np.random.default_rng(seed))
        result = identify_target(robot, noisy, noise=noise, momentum=momentum)
        score = (np.concatenate([[result.body.mass], result.unknowns[1:]]) - true) / result.body_deviation
        if result.momentum_deviation is not None:
            score = np.concatenate([score, (result.momentum - MOMENTUM) / result.momentum_deviation])
        scores.append(score)
        scales.append(result.noise_scale)
    # the mean of 40 squared scores of unit variance leaves 0.4 .. 2.0 with a probability below 1e-3
    variance = np.mean(np.square(scores), axis=0)
    assert (variance > 0.4).all()
    assert (variance < 2.0).all()
    assert np.mean(scales) == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_residual_covariance_of_each_sensor_is_that_of_drawn_noise(drifting):
    robot, measurement = drifting
    short = measurement.slice(0, 40)
    silent = dict.fromkeys(SensorNoise().to_dict(), 0.0)
    for name in silent:
        noise = SensorNoise(**{**silent, name: 1e-6})
        predicted = np.einsum('nii->i', residual_covariance(robot, short, noise, MOMENTUM))
        drawn = np.zeros(6)
        for seed in range(150):
            rows, right = target_regression(robot, short.with_noise(noise, np.random.default_rng(seed)), MOMENTUM)
            drawn += np.sum((rows @ robot.body.unknowns - right) ** 2, axis=0) / 150
        reached = predicted > 0.0
        assert reached.any()
        assert drawn[reached] == pytest.approx(predicted[reached], rel=0.1)
        assert np.abs(drawn[~reached]).max(initial=0.0) < 1e-25


@pytest.mark.slow
def test_weights_beat_plain_least_squares(still):
    robot, measurement = still
    errors = {}
    for estimator in ('weighted', 'ordinary'):
        results = [
            identify_target(robot, measurement.with_noise(SensorNoise(), np.random.default_rng(k)), estimator=estimator)
            for k in range(15)
        ]
        errors[estimator] = np.sqrt(np.mean([(r.body.mass - robot.body.mass) ** 2 for r in results]))
    assert errors['weighted'] < 0.5 * errors['ordinary']


def test_recursion_ends_where_the_batch_does(still):
    robot, measurement = still
    noisy = measurement.with_noise(SensorNoise(), np.random.default_rng(3))
    batch = identify_target(robot, noisy, estimator='ordinary')
    assert batch.estimates[-1] == pytest.approx(batch.unknowns, rel=1e-9)
    assert np.isnan(batch.estimates[:2]).all()  # two samples determine nine unknowns at most
    assert batch.conditions[-1, 0] == pytest.approx(batch.condition_si, rel=1e-9)
    half = identify_target(robot, noisy.slice(0, 100), estimator='ordinary')
    assert batch.estimates[99] == pytest.approx(half.unknowns, rel=1e-6)
    # with the right prior the weights of the recursion are those of the batch
    recursive = identify_target(robot, noisy, estimator='recursive')
    assert recursive.unknowns == pytest.approx(identify_target(robot, noisy).unknowns, rel=1e-4)


def test_the_recursion_is_the_weighted_problem():
    rng = np.random.default_rng(0)
    rows, right, forgetting = rng.normal(size=(8, 1, 3)), rng.normal(size=(8, 1)), 0.8
    weight = np.sqrt(forgetting ** np.arange(7, -1, -1))
    estimates, _ = convergence_history(rows, right, weight[:, None, None])
    for k in range(3, 8):  # what comes later changes no earlier estimate
        root = np.sqrt(forgetting ** np.arange(k, -1, -1))
        expected = np.linalg.lstsq(root[:, None] * rows[: k + 1, 0], root * right[: k + 1, 0], rcond=None)[0]
        assert estimates[k] == pytest.approx(expected, rel=1e-10)
    assert np.isnan(estimates[:2]).all()


def test_forgetting_follows_a_target_that_changes(still):
    robot, measurement = still
    lighter = robot.with_body(robot.body.scaled(mass=0.8))
    # the target loses mass half-way: from then on the base reacts as it does to the lighter one
    later = momentum_map(lighter.model, measurement.q).base_twist(measurement.dq)
    twist = np.where((measurement.time < 5.0)[:, None], measurement.base_twist, later)
    blind = replace(measurement, base_twist=twist, base_position=None, base_orientation=None)
    followed = identify_target(robot, blind, estimator='recursive', forgetting=0.8)
    mixed = identify_target(robot, blind, estimator='recursive')
    assert followed.body.mass == pytest.approx(lighter.body.mass, rel=1e-6)
    assert abs(mixed.body.mass - lighter.body.mass) > 1.0
    noisy = measurement.with_noise(SensorNoise(), np.random.default_rng(0))
    deviations = [
        identify_target(robot, noisy, estimator='recursive', forgetting=f).body_deviation[0] for f in (0.9, 0.98, 1.0)
    ]
    assert deviations[0] > 1.5 * deviations[1] > 1.5 * deviations[2]  # what is forgotten no longer helps


def test_momentum_where_none_was_expected_is_refused(drifting):
    robot, measurement = drifting
    noisy = measurement.with_noise(SensorNoise(), np.random.default_rng(0))
    for data in (measurement, noisy):
        with pytest.raises(IdentificationError, match=r'carry momentum, P = \((3|2\.99|3\.0), -2.*estimated'):
            identify_target(robot, data)


def test_missing_pose_is_named(drifting):
    robot, measurement = drifting
    blind = replace(measurement, base_position=None, base_orientation=None)
    for momentum in ('estimated', MOMENTUM):
        with pytest.raises(DataError, match='base/position'):
            identify_target(robot, blind, momentum=momentum)
    with pytest.raises(DataError, match='both position and orientation'):
        replace(measurement, base_position=None)


def test_too_little_motion_is_refused(still):
    robot, measurement = still
    with refused(IdentificationError, expected=10, found=9):
        identify_target(robot, measurement.slice(50, 52))
    at_rest = replace(measurement, dq=np.zeros_like(measurement.dq), base_twist=np.zeros((len(measurement), 6)))
    with refused(IdentificationError, expected=10, found=0):
        identify_target(robot, at_rest)
    planar = planar_robot()
    swing = FourierTrajectory(a=[[0.5]], b=[[0.0]], offset=[0.0], base_frequency=0.1)
    with refused(IdentificationError, expected=10, found=5):
        identify_target(planar, simulate(planar, swing, np.linspace(0.0, 10.0, 50)))


def test_settings_that_make_no_sense_are_refused(still):
    robot, measurement = still
    for settings_, about in (
        ({'estimator': 'magic'}, {'name': 'estimator', 'expected': ('weighted', 'ordinary', 'recursive')}),
        ({'momentum': 'some'}, {'name': 'momentum', 'expected': ('zero', 'estimated'), 'found': 'some'}),
        ({'momentum': [1.0, 2.0]}, {'name': 'momentum', 'expected': (6,), 'found': (2,)}),
        ({'estimator': 'ordinary', 'momentum': 'estimated'}, {'name': 'momentum', 'expected': 'weighted'}),
        ({'forgetting': 0.9}, {'name': 'forgetting', 'expected': 'recursive', 'found': 'weighted'}),
        ({'forgetting': 2.0, 'estimator': 'recursive'}, {'name': 'forgetting', 'expected': (0.0, 1.0)}),
    ):
        with refused(IdentificationError, **about):
            identify_target(robot, measurement, **settings_)
    renamed = replace(measurement, joint_names=tuple('abcdefg'))
    with refused(DataError, expected=robot.arm.joint_names, found=tuple('abcdefg')):
        identify_target(robot, renamed)


def test_measurements_that_cannot_be_are_refused():
    good = {'joint_names': ('j',), 'time': [0.0, 1.0], 'q': np.zeros((2, 1)), 'dq': np.zeros((2, 1))}
    twist = np.zeros((2, 6))
    for change, about in (
        ({'time': [1.0, 1.0]}, {'name': 'time', 'found': (1.0, 1.0)}),
        ({'time': []}, {}),
        ({'q': np.full((2, 1), np.nan)}, {'name': 'q'}),
        ({'dq': np.zeros((2, 2))}, {'name': 'dq', 'expected': (2, 1), 'found': (2, 2)}),
        ({'base_twist': np.zeros((2, 5))}, {'name': 'base_twist', 'expected': (2, 6), 'found': (2, 5)}),
        (
            {'base_position': np.zeros((2, 3)), 'base_orientation': np.zeros((2, 4))},
            {'name': 'base_orientation', 'expected': 1.0, 'found': 0.0},
        ),
    ):
        with refused(DataError, **about):
            FloatingMeasurement(**{**good, 'base_twist': twist, **change})
    with refused(DataError, name='joint_velocity', found=-1.0):
        SensorNoise(joint_velocity=-1.0)
    with refused(DataError, name='gyro'):
        SensorNoise.from_dict({'gyro': 1.0})


def test_unphysical_estimate_is_not_usable(still):
    robot, measurement = still
    # heavy links on a base said to be ten times lighter cannot be explained by any target
    arm = robot.arm.with_inertial(robot.arm.inertial, base_inertial=0.1 * robot.arm.base_inertial)
    wrong = replace(robot, arm=arm, body=RigidBody.from_parameters(arm.inertial[-1]))
    result = identify_target(wrong, replace(measurement, base_position=None, base_orientation=None))
    assert not result.usable
    assert result.reason


def test_wrong_model_is_told_from_noise(still):
    robot, measurement = still
    arm = robot.arm.with_inertial(robot.arm.inertial, base_inertial=1.05 * robot.arm.base_inertial)
    result = identify_target(replace(robot, arm=arm), replace(measurement, base_position=None, base_orientation=None))
    assert result.noise_scale > 1.5
    assert 'base and links are not what the description says' in result.reason


@pytest.mark.parametrize('estimator', ESTIMATORS)
def test_samples_that_stand_out_are_named_and_their_result_is_not_used(still, estimator):
    robot, measurement = still
    measurement = measurement.with_noise(SensorNoise(), np.random.default_rng(4))
    twist = np.array(measurement.base_twist)
    twist[[20, 90, 150], 3] += 0.01  # of a largest 0.05 rad/s
    result = identify_target(robot, replace(measurement, base_twist=twist), estimator=estimator)
    assert not result.usable
    assert '3 samples stand out from the others; leave them out: at 1, 4.5, 7.5 s' in result.reason


def test_no_physical_body_in_other_units_is_told_with_the_residual(still):
    robot, measurement = still
    result = identify_target(robot, replace(measurement, q=np.rad2deg(measurement.q)))
    assert not result.usable
    assert 'no physical body' in result.reason
    assert 'check units, signs and stamps' in result.reason


def test_result_speaks_plain_numbers(still):
    robot, measurement = still
    result = identify_target(robot, measurement.with_noise(SensorNoise(), np.random.default_rng(0)))
    content = result.to_dict()
    assert content['joints'] == list(robot.arm.joint_names)
    assert content['target']['mass'] == pytest.approx(40.0, rel=1e-2)
    assert content['target']['std']['mass'] == pytest.approx(float(result.target_deviation[0]))
    assert content['momentum'] == {'source': 'zero', 'linear': [0.0] * 3, 'angular': [0.0] * 3}
    # the target's inertia is about its own centre of mass: body and target differ by the bare link
    again = robot.with_target(replace(result.target, checked=False)).body
    assert again.parameters == pytest.approx(result.body.parameters, rel=1e-12)
