# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Recordings damaged as those of real arms are: the result is near that of the sound one, or the damage is named."""

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, UR10E, dataset, fourier_motion, pinocchio_torque

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset, ProcessingSettings, Recording, process_recording
from robotid_ros.dynamics import base_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import (
    IdentificationConfig,
    IdentificationResult,
    TorquePredictor,
    identify,
    plausibility,
    validate,
)
from robotid_ros.identification.assessment import spread_elsewhere
from robotid_ros.identification.information import Rows
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.samples import as_samples
from robotid_ros.identification.setup import SetUp
from robotid_ros.identification.verdict import left_of_variation, of_another_motion
from robotid_ros.model import RobotModel
from robotid_ros.workflow import Files, identify_files

PLAIN = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)
PLACEHOLDER = re.sub(r'<mass value="[^"]*"', '<mass value="1"', TWO_LINKS)
PLACEHOLDER = re.sub(r'<inertia [^>]*/>', '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>', PLACEHOLDER)


def recorded(seed: int, spring: Array | None = None) -> Dataset:
    """Return a recording of the arm with Coulomb and viscous friction and noise."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(seed)
    motion = fourier_motion(2, rng, size=0.9)
    q, dq = motion[1:3]
    torque = pinocchio_torque(model, *motion[1:]) + 2.0 * np.sign(dq) + dq + 0.05 * rng.standard_normal(dq.shape)
    return dataset(model, motion, torque if spring is None else torque + spring * q)


def with_torque(data: Dataset, torque: Array) -> Dataset:
    """Return a dataset with another torque."""
    return replace(data, tau=torque, tau_filtered=torque)


@pytest.mark.slow
@pytest.mark.parametrize('joint', [0, 1])
def test_a_reversed_sign_is_named_where_no_mass_is_known(joint: int) -> None:
    """Two links have too few couplings to tell all causes apart; that something is wrong is said all the same."""
    model, data = RobotModel.from_urdf(PLACEHOLDER), recorded(0)
    turned = with_torque(data, data.tau * np.where(np.arange(2) == joint, -1.0, 1.0))
    result = identify(turned, model, config=PLAIN, validation=turned)
    assert result.setup is not None
    assert result.setup.findings or not result.joints[joint].usable


@pytest.mark.slow
@pytest.mark.parametrize(('seed', 'joints'), [(1, 3), (2, 6)])
@pytest.mark.filterwarnings('ignore:joints held at zero')
def test_joints_without_a_torque_of_their_own_are_named(seed: int, joints: int) -> None:
    """An effort that is zero, or any other number, throughout: no other joint suffers from it, and nothing breaks."""
    rng, names = np.random.default_rng(seed), RobotModel.from_urdf(UR10E).joint_names[:joints]
    model = RobotModel.from_urdf(UR10E, joints=names)
    motion = fourier_motion(joints, rng, size=0.8, seconds=8.0)
    sizes = np.array([50.0, 80.0, 30.0, 5.0, 5.0, 2.0])[:joints]
    torque = pinocchio_torque(model, *motion[1:]) + 0.1 * sizes * np.sign(motion[2])
    torque += 0.002 * sizes * rng.standard_normal(torque.shape)
    missing = rng.permutation(joints)[: joints // 2]
    torque[:, missing] = 0.0 if seed < 2 else rng.normal()
    result = identify(dataset(model, motion, torque), model)
    for joint, each in zip(model.joint_names, result.joints, strict=True):
        gone = model.joint_names.index(joint) in missing
        assert bool(re.search('its torque is .* throughout', each.reason)) == gone, (joint, each.reason)


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_friction_that_the_motion_does_not_tell_is_no_fault() -> None:
    """A joint that never turns round: its Coulomb friction and offset are one number, and any sign fits."""
    model = RobotModel.from_urdf(TWO_LINKS)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        time, q, dq, ddq = fourier_motion(2, rng, size=0.9)
        q[:, 1], dq[:, 1], ddq[:, 1] = 0.4 * time + 0.02 * q[:, 1], 0.4 + 0.02 * dq[:, 1], 0.02 * ddq[:, 1]
        torque = pinocchio_torque(model, q, dq, ddq) + [2.0, 0.0] * np.sign(dq) + 0.05 * rng.standard_normal(q.shape)
        result = identify(dataset(model, (time, q, dq, ddq), torque), model, config=PLAIN)
        assert not any('would drive it' in each.reason for each in result.joints)


@cache
def sound_result() -> IdentificationResult:
    """Return what a sound recording gives, judged by itself."""
    data = recorded(0)
    return identify(data, RobotModel.from_urdf(TWO_LINKS), config=PLAIN, validation=data)


@pytest.mark.slow
@pytest.mark.parametrize('joint', [0, 1])
def test_a_reversed_sign_is_named_and_undone(joint: int) -> None:
    model, data, sound = RobotModel.from_urdf(TWO_LINKS), recorded(0), sound_result()
    turned = with_torque(data, data.tau * np.where(np.arange(2) == joint, -1.0, 1.0))
    result = identify(turned, model, config=PLAIN, validation=turned)
    assert sound.usable
    assert result.setup is not None
    (finding,) = result.setup.findings
    assert finding.joints == (model.joint_names[joint],)
    assert 'reversed' in finding.text
    assert any(finding.text in note for note in result.notes)
    # The fit is that of the torque with the right sign, and so is what it is judged by.
    np.testing.assert_allclose(np.abs(result.base_values), np.abs(sound.base_values), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(result.metrics['validation'].rmse, sound.metrics['validation'].rmse, rtol=1e-6)
    np.testing.assert_allclose(validate(result, model, turned).rmse, sound.metrics['validation'].rmse, rtol=1e-6)


def test_a_set_up_holds_through_another_filter() -> None:
    rng = np.random.default_rng(0)
    time = np.arange(0.0, 8.0, 0.01)
    signals = [np.sin(time[:, None] * rng.uniform(1.0, 3.0, 2) + rng.uniform(0.0, 6.0, 2)) for _ in range(2)]
    data = process_recording(
        Recording(joint_names=('shoulder', 'elbow'), time=time, position=signals[0], effort=signals[1])
    )
    model = RobotModel.from_urdf(TWO_LINKS)
    setup = replace(SetUp.as_described(model), torque=np.diag([1.0, -1.0]), position=np.diag([-1.0, 1.0]))
    turned = setup.dataset(data, model.joint_names)
    assert data.unfiltered is not None
    assert turned.unfiltered is not None
    again, as_recorded = (each.unfiltered.filtered(2.0) for each in (turned, data))
    for new, old in ((turned, data), (again, as_recorded)):
        for name in ('tau', 'tau_filtered'):
            np.testing.assert_allclose(getattr(new, name), getattr(old, name) * [1.0, -1.0], atol=1e-12)
        for name in ('q', 'dq', 'ddq'):
            np.testing.assert_allclose(getattr(new, name), getattr(old, name) * [-1.0, 1.0], atol=1e-9)


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_a_clipped_torque_is_named_and_one_in_steps_is_not() -> None:
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(1)
    limit = np.percentile(np.abs(data.tau[:, 0]), 80)
    clipped = np.column_stack([np.clip(data.tau[:, 0], -limit, limit), data.tau[:, 1]])
    result = identify(with_torque(data, clipped), model, config=PLAIN)
    assert [verdict.usable for verdict in result.joints] == [False, True]
    assert 'shoulder: its torque stands at one extreme' in result.reason
    step = 0.01 * np.ptp(data.tau, axis=0)
    result = identify(with_torque(data, np.round(data.tau / step) * step), model, config=PLAIN)
    assert result.usable
    assert result.reason == ''


@pytest.mark.parametrize('limit', [0.6, 0.9, 0.97])
@pytest.mark.parametrize('side', [-1.0, 1.0])
@pytest.mark.parametrize('size', [1e-6, 1e3])
def test_a_limit_is_a_value_that_far_more_samples_have_than_any_other_near_it(limit, side, size) -> None:
    phase = np.linspace(0.0, 14.0 * np.pi, 4001)
    torque, model = side * size * np.minimum(np.sin(phase), limit), side * size * np.sin(phase)
    assert plausibility._clipped(torque, model) == pytest.approx(np.arccos(limit) / np.pi, abs=0.01)
    overshoots = torque + side * size * 0.01 * (np.diff(np.sin(phase) > limit, prepend=False))
    assert plausibility._clipped(overshoots, model) == pytest.approx(np.arccos(limit) / np.pi, abs=0.015)
    assert plausibility._clipped(torque, torque + size) == 0.0  # the model stands still as well


@pytest.mark.parametrize('step', [0.0, 0.003, 0.04, 0.1, 0.5])
def test_a_signal_that_turns_at_its_extremes_has_no_limit(step) -> None:
    """Of a sine the extremes are the most frequent values."""
    model = np.sin(np.linspace(0.0, 14.0 * np.pi, 4001))
    assert plausibility._clipped(np.round(model / step) * step if step else model, model) == 0.0


def test_no_crest_of_a_smooth_torque_is_a_limit() -> None:
    """Of 300 random sums of sines, some with a little noise, beside a model that misses much."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        count, waves = int(np.exp(rng.uniform(np.log(200.0), np.log(5000.0)))), int(rng.integers(1, 6))
        time, turns = np.arange(count) / count, rng.integers(1, 12, waves) * rng.uniform(1.0, 1.1, waves)
        torque = np.sin(2.0 * np.pi * np.outer(time, turns) + rng.uniform(0.0, 6.28, waves)) @ rng.random(waves) ** 2
        torque += rng.choice([0.0, 1e-5, 1e-4, 1e-3]) * np.ptp(torque) * rng.standard_normal(count)
        model = 0.5 * torque + torque.std() * rng.standard_normal(count)
        assert plausibility._clipped(torque, model) == 0.0


def test_a_joint_whose_velocity_is_told_as_zero_is_no_traceback() -> None:
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(1)
    still = replace(data, dq=data.dq * [1.0, 0.0])
    assert identify(still, model, config=PLAIN).joints[1].joint == 'elbow'


@pytest.mark.usefixtures('set_up_as_described')
def test_a_joint_that_only_rubs_is_not_saturated() -> None:
    """Its torque is one of two values, but for little noise."""
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(1)
    rubs = 2.0 * np.sign(data.dq[:, 1]) + 0.004 * np.random.default_rng(0).standard_normal(len(data))
    result = identify(with_torque(data, np.column_stack([data.tau[:, 0], rubs])), model, config=PLAIN)
    assert not any('extreme' in verdict.reason for verdict in result.joints)


@cache
def error_on_time() -> Array:
    """Return what is left of one sound recording with the parameters of another."""
    result = identify(recorded(2), RobotModel.from_urdf(TWO_LINKS), validation=recorded(3))
    return result.metrics['validation'].rmse


@pytest.mark.slow
@pytest.mark.parametrize('late', ['training', 'validation', 'both'])
@pytest.mark.usefixtures('set_up_as_described')
def test_a_late_torque_is_that_of_the_training_never_of_what_judges(late: str) -> None:
    def delayed(data: Dataset) -> Dataset:
        at = data.time - 0.02
        return with_torque(data, np.column_stack([np.interp(at, data.time, column) for column in data.tau.T]))

    model, first, second = RobotModel.from_urdf(TWO_LINKS), recorded(2), recorded(3)
    if late != 'validation':
        first = delayed(first)
    if late != 'training':
        second = delayed(second)
    result = identify(first, model, validation=second)
    error = result.metrics['validation'].rmse
    assert ((error < 1.3 * error_on_time()) == (late == 'both')).all()
    again = IdentificationResult.from_dict(result.to_dict())
    np.testing.assert_allclose(validate(again, model, second).rmse, error, rtol=1e-6)
    assert abs(result.delay - 0.02 * (late != 'validation')) < 0.003
    assert any('the recorded torques come' in note for note in result.notes) == (late != 'validation')
    assert [each.subject for each in result.decisions].count('delay of the torque') == 1


@pytest.mark.usefixtures('set_up_as_described')
def test_without_another_motion_the_error_there_is_told() -> None:
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(5)
    result = identify(data, model)
    assert result.usable
    told, elsewhere = result.metrics['held_out'], validate(result, model, recorded(25))
    assert 0.7 < told.relative_error_total / elsewhere.relative_error_total < 1.4


def test_friction_that_states_do_not_agree_on_is_uncertain_elsewhere() -> None:
    """An offset that comes out by d more or less without a group: (K - 1) / K times the sum of squares, and no less."""
    model = RobotModel.from_urdf(TWO_LINKS)
    samples = as_samples([recorded(2)], model, standstill_speed=0.02, standstill_weight=0.01)
    rows = Rows(base_parameters(model, rotor_inertia=True), samples)
    fit = least_squares(rows, friction_model(PLAIN.friction), np.zeros((2, 0)), estimator='wls')
    b, agreed = (
        len(fit.base_values),
        np.tile(np.concatenate([fit.base_values, fit.friction_parameters.ravel()]), (4, 1)),
    )

    def variance(d: float, joints: list[int]) -> float:
        without = agreed.copy()
        for j in joints:
            without[:, b + 3 * j + 2] += d * np.array([1.0, -1.0, 1.0, -1.0])
        return spread_elsewhere(fit, rows, without) ** 2 - spread_elsewhere(fit, rows, agreed) ** 2

    alone = variance(0.5, [0])
    assert alone > 0.0
    assert variance(0.5, [1]) == pytest.approx(alone, rel=1e-6)
    assert variance(0.5, [0, 1]) == pytest.approx(2.0 * alone, rel=1e-6)
    assert variance(1.0, [0]) == pytest.approx(4.0 * alone, rel=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_a_short_motion_is_usable_only_where_another_one_is_predicted() -> None:
    """0.6 s of an arm of which no mass is known, the third of each, or all: 0.6 to 38 % are unexplained elsewhere."""
    model, verdicts = RobotModel.from_urdf(TWO_LINKS), []
    for seed in range(2):
        for known in (0.0, 0.3, 1.0):
            arm = replace(model, inertial=known * model.inertial)
            short = identify(recorded(seed).select(np.arange(60)), arm)
            elsewhere = validate(short, arm, recorded(seed + 30)).relative_error_total
            assert not short.usable or elsewhere < 30.0
            assert short.usable or 'the motion is too short, or too much alike: record' in short.reason
            verdicts.append(short.usable)
    assert 0.2 < np.mean(verdicts) < 0.8


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
@pytest.mark.parametrize('size', [1e-3, 1.0])
def test_a_model_that_explains_hardly_more_than_a_constant_is_refused(size: float) -> None:
    """Beside a load of twenty times what the torque varies by, a torque that follows no motion is a small part."""
    described, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(3)
    model = replace(described, inertial=size * described.inertial)
    time, q, dq, ddq = fourier_motion(2, rng, size=0.1)
    own = pinocchio_torque(model, q, dq, ddq) + 0.2 * size * np.sign(dq)
    varies = np.linalg.norm(own.std(axis=0))
    other, noise = np.sin(np.outer(time, [4.6, 3.4])) * varies, rng.standard_normal(own.shape) * varies
    load = 20.0 * varies * np.sign(own.mean(axis=0))
    for added, refused in ((0.1 * other, False), (1.5 * other, True), (noise, False)):
        recording = Recording(joint_names=model.joint_names, time=time, position=q, effort=own + load + added)
        data = process_recording(recording)
        result = identify(data, model)
        assert ('hardly more than a constant' in result.reason) == refused, result.reason
        assert result.usable != refused
        assert result.metrics['held_out'].relative_error_total < 25.0
        judged = identify(data, model, validation=data)
        assert judged.usable
        said = any('in the validation, the model leaves' in each and 'a constant' in each for each in judged.notes)
        assert said == refused, judged.notes
        assert (judged.metrics['validation'].left_of_variation > 50.0) == refused
        plain = identify(data, model, estimator='wls')  # no choice is made, and nothing is left out to judge by
        said = any('in the training, the model leaves' in each and 'a constant' in each for each in plain.notes)
        assert said == refused, plain.notes


@pytest.mark.parametrize('noise', [0.0, 0.1, 3.0])
def test_noise_is_no_part_of_what_a_torque_varies_by(noise: float) -> None:
    """Of sines about any mean, 3 of 4 and 0 of 2 N m are left, whatever noise there is; of a constant, all."""
    time, rng = np.arange(200_000) / 100.0, np.random.default_rng(0)
    torque = 1e3 + np.sin(np.outer(time, [1.0, 2.3])) * [4.0, 2.0]
    measured, predicted = (
        torque + noise * rng.standard_normal(torque.shape),
        torque - 0.75 * (torque - 1e3) * [1.0, 0.0],
    )
    assert left_of_variation(measured, predicted) == pytest.approx(100.0 * 3.0 / np.hypot(4.0, 2.0), rel=0.02)
    assert left_of_variation(measured, np.full_like(torque, 1e3)) == pytest.approx(100.0, rel=0.01)
    assert left_of_variation(torque, torque) == 0.0
    assert left_of_variation(np.ones((10, 2)), np.zeros((10, 2))) == 0.0


def test_another_motion_is_refused_for_what_is_left_or_open_there_or_varies() -> None:
    for numbers, refused in (((40.0, 20.0, 45.0), False), ((40.0, 40.0, 45.0), True), ((4.0, 2.0, 55.0), True)):
        said, found, advice = of_another_motion(*numbers)
        assert found == refused
        assert f'{np.hypot(*numbers[:2]):.3g} % of the torque is to be expected' in said
        assert ('a longer, varied one' in advice) == (numbers[2] > 50.0)
    assert 'a longer, varied one' in of_another_motion(2.0, 60.0, 2.0)[2]


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_the_error_at_rest_is_that_of_places_that_the_motion_never_saw() -> None:
    """Of arms whose masses are described wrongly, and that move by a hundredth of a radian: true over told."""
    model, shares = RobotModel.from_urdf(TWO_LINKS), []
    low, high = np.maximum(model.limits.lower, -np.pi), np.minimum(model.limits.upper, np.pi)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        described = replace(model, inertial=rng.uniform(0.5, 1.5, (2, 1)) * model.inertial)
        motion = fourier_motion(2, rng, size=0.01)
        torque = pinocchio_torque(model, *motion[1:]) + 0.5 * np.sign(motion[2])
        result = identify(dataset(model, motion, torque + 0.2 * rng.standard_normal(torque.shape)), described)
        q = rng.uniform(low, high, (500, 2))
        still = np.zeros_like(q)
        missed = pinocchio_torque(model, q, still, still) - TorquePredictor(described, result).gravity_torque(q)
        (told,) = (use.number for use in result.good_for if use.name == 'gravity compensation')
        shares.append(float(np.sqrt(np.mean(missed**2, axis=0)).max()) / told)
    assert 0.1 < np.sqrt(np.mean(np.square(shares))) < 0.8, shares


@pytest.mark.usefixtures('set_up_as_described')
def test_several_recordings_have_one_delay() -> None:
    model, late = RobotModel.from_urdf(TWO_LINKS), []
    for data in (recorded(2), recorded(3), recorded(4)):
        at = data.time - 0.02
        late.append(with_torque(data, np.column_stack([np.interp(at, data.time, x) for x in data.tau.T])))
    assert abs(identify(late, model).delay - 0.02) < 0.003


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_a_delay_at_the_end_of_the_search_is_no_minimum() -> None:
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(2)
    late = np.column_stack([np.interp(data.time - 0.3, data.time, column) for column in data.tau.T])
    result = identify(with_torque(data, late), model)
    decision = next(each for each in result.decisions if each.subject == 'delay of the torque')
    last = decision.alternatives[-1]
    assert last.name == '160 ms'
    assert np.argmin([each.error.sum() for each in decision.alternatives]) == len(decision.alternatives) - 1
    said = f'none: there is no minimum up to {last.name}, where the error is least'
    assert (result.delay, decision.chosen) == (0.0, said)


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
@pytest.mark.parametrize('delay', [-0.05, 0.03, 0.07])
def test_a_delay_of_several_samples_is_found(delay: float) -> None:
    """Of 40 ms and more none had been, and joints were tens of times as wrong."""
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(2)
    late = np.column_stack([np.interp(data.time - delay, data.time, column) for column in data.tau.T])
    assert identify(with_torque(data, late), model).delay == pytest.approx(delay, abs=2e-3)


@pytest.mark.usefixtures('set_up_as_described')
def test_a_recording_with_few_equations_tells_no_delay_and_no_lag() -> None:
    model, data = RobotModel.from_urdf(TWO_LINKS), recorded(2)
    few = data.select(np.arange(0, len(data), len(data) // 80))
    decisions = {each.subject: each.chosen for each in identify(few, model).decisions}
    for subject in ('delay of the torque', 'lag of friction'):
        assert decisions[subject] == 'none: too few samples to tell'


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_a_spring_is_found_where_there_is_one_and_nowhere_else() -> None:
    model = RobotModel.from_urdf(TWO_LINKS)
    result = identify(recorded(4, spring=np.array([0.0, 6.0])), model)
    at = result.friction_names.index('stiffness')
    stiffness, deviation = result.friction_values[:, at], result.friction_std[:, at]
    assert abs(stiffness[0]) < max(4.0 * deviation[0], 0.06)
    assert abs(stiffness[1] - 6.0) < max(4.0 * deviation[1], 0.06)
    assert 0.0 < deviation[1] < 0.1
    none = identify(recorded(4), model)
    assert 'stiffness' not in none.friction_names or np.abs(none.friction_values[:, at]).max() < 0.06


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_two_recordings_together_are_no_worse_than_one() -> None:
    model, judge = RobotModel.from_urdf(TWO_LINKS), recorded(7)
    quiet, loud = recorded(5), recorded(6)
    rng = np.random.default_rng(0)
    few = loud.select(np.arange(0, len(loud), 2))  # half the rate, and four times the noise
    loud = replace(few, rate=50.0, cutoff=25.0)
    loud = with_torque(loud, loud.tau + 0.2 * rng.standard_normal(loud.tau.shape))

    def error(*data: Dataset) -> float:
        return float(identify(data, model, validation=judge).metrics['validation'].relative_error_total)

    alone = [error(quiet), error(loud)]
    assert error(quiet, loud) < 1.02 * min(alone)


@pytest.mark.slow
def test_datasets_are_named_after_their_files(tmp_path: Path) -> None:
    paths = []
    for seed, name in ((8, 'morning'), (9, 'evening')):
        data = recorded(seed)
        columns = np.column_stack([data.time, data.q, data.tau])
        header = 'time,position/shoulder,position/elbow,effort/shoulder,effort/elbow'
        paths.append(tmp_path / f'{name}.csv')
        np.savetxt(paths[-1], columns, delimiter=',', header=header, comments='')
    model = RobotModel.from_urdf(TWO_LINKS)
    files = Files(training=[paths[0]], validation=[paths[1]], settings=ProcessingSettings())
    found = identify_files(files, model, PLAIN)
    assert [each.sources for each in (*found.training, *found.validation)] == [('morning.csv',), ('evening.csv',)]
