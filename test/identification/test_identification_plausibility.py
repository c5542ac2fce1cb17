# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What identify says of data that cannot be right, and what it takes for evidence of a torque ripple."""

import re
from dataclasses import replace

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, UR10E, dataset, fourier_motion, pinocchio_torque

from robotid_ros.data import Dataset
from robotid_ros.dynamics import base_parameters
from robotid_ros.errors import IdentificationError, ModelWarning
from robotid_ros.friction import friction_model
from robotid_ros.identification import IdentificationConfig, identify
from robotid_ros.identification.evidence import mutual_factors
from robotid_ros.identification.information import Rows
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.model_choice import strongest_ripple, with_ripple_shown
from robotid_ros.identification.plausibility import held_joints, remarks, torque_size
from robotid_ros.identification.samples import Samples, as_samples, samples_of_datasets
from robotid_ros.identification.setup_search import find_setup
from robotid_ros.identification.terms import Terms
from robotid_ros.identification.verdict import (
    JointVerdict,
    beaten_by_plain,
    good_for,
    good_for_nothing,
    moved,
    overall,
    torque_metrics,
)
from robotid_ros.model import RobotModel

PLAIN = IdentificationConfig(friction='coulomb_viscous+offset', torque_bandwidth=-1.0)


def arm() -> RobotModel:
    return RobotModel.from_urdf(TWO_LINKS)


def three_joints() -> RobotModel:
    """Return a UR10e with its wrist locked: a search for set-ups takes a third of that for all six joints."""
    with pytest.warns(ModelWarning, match='joints held at zero'):
        return RobotModel.from_urdf(UR10E, joints=RobotModel.from_urdf(UR10E).joint_names[:3])


def shoulder_alone() -> RobotModel:
    with pytest.warns(ModelWarning, match='joints held at zero'):
        return RobotModel.from_urdf(TWO_LINKS, joints=('shoulder',))


def measured(seed: int = 0) -> tuple[RobotModel, tuple[np.ndarray, ...], np.ndarray]:
    model, rng = arm(), np.random.default_rng(seed)
    motion = fourier_motion(2, rng, size=0.9)
    dq = motion[2]
    torque = pinocchio_torque(model, *motion[1:]) + 2.0 * np.sign(dq) + dq + 0.05 * rng.standard_normal(dq.shape)
    return model, motion, torque


@pytest.mark.slow
def test_sound_data_get_no_notes() -> None:
    model, motion, torque = measured()
    data = dataset(model, motion, torque)
    assert identify(data, model, config=PLAIN, validation=data).notes == ()
    result = identify(data, model, config=PLAIN)
    assert result.usable
    (note,) = result.notes
    assert note.startswith('no other motion judged the model: on one, ')
    (feeds,) = (use.number for use in result.good_for if use.name == 'feed-forward')
    assert feeds > 1.001 * result.metrics['held_out'].relative_error_total
    assert f'{feeds:.3g} % of the torque is to be expected' in note


def test_plain_least_squares_answer_first_and_stay_in_sight() -> None:
    model, motion, torque = measured()
    told: list[tuple[float, str]] = []
    identify(dataset(model, motion, torque), model, progress=lambda share, text: told.append((share, text)))
    first = re.fullmatch('the first answer; so far: (plain least squares leave (.*) % of the torque)', told[0][1])
    assert first is not None
    assert (
        0.05 / np.sqrt(np.mean(torque**2)) < 0.01 * float(first[2]) < 0.05
    )  # the noise, and what plain friction lacks
    assert len(told) > 5
    assert all(text.endswith(first[1]) for _, text in told)
    assert [share for share, _ in told] == sorted(share for share, _ in told)


def test_degrees_are_refused_by_name() -> None:
    model, (time, *motion), torque = measured()
    degrees = tuple(np.degrees(x) for x in motion)
    with pytest.raises(IdentificationError, match=r'joint (shoulder|elbow): expected positions in rad.*degrees'):
        identify(dataset(model, (time, *degrees), torque), model, config=PLAIN)


def test_motion_a_little_beyond_the_limits_is_no_proof_of_degrees() -> None:
    model, (time, q, dq, ddq), _ = measured()
    q = q + np.array([1.5, 0.0])
    torque = pinocchio_torque(model, q, dq, ddq) + 2.0 * np.sign(dq) + dq
    assert identify(dataset(model, (time, q, dq, ddq), torque), model, config=PLAIN).usable


@pytest.mark.slow
@pytest.mark.parametrize(
    ('factors', 'words'),
    [
        ([-1.0, 1.0], 'set-up: the torque of shoulder has the wrong sign'),
        ([1.0, 2.5], 'the torque is 2.5 times at elbow of what the masses'),
    ],
    ids=['reversed', 'scaled'],
)
def test_a_torque_of_another_sign_or_scale_is_noted(factors: list[float], words: str) -> None:
    model, motion, torque = measured()
    result = identify(dataset(model, motion, torque * np.array(factors)), model, config=PLAIN)
    assert any(note.startswith(words) for note in result.notes)


@pytest.mark.parametrize('share', [0.0, 0.15, 0.45])
def test_a_model_is_usable_where_its_torque_is_good_for_something(share: float) -> None:
    """A part of the torque that depends on the place, as no arm has it; it is told what the rest is good for."""
    model, found = arm(), []
    for seed in (0, 1):
        _, motion, torque = measured(seed)
        wave = np.sin(3.0 * motion[1] + np.array([0.3, 1.1])) * np.cos(2.0 * motion[1][:, ::-1])
        strange = share * wave * np.linalg.norm(torque, axis=0) / np.linalg.norm(wave, axis=0)
        found.append(dataset(model, motion, torque + strange))
    result = identify(found[0], model, config=replace(PLAIN, estimator='wls'), validation=found[1])
    uses = {use.name: use for use in result.good_for}
    good = {name for name, use in uses.items() if use.good}
    assert result.usable == bool(good - {'parameters'})
    left = uses['feed-forward'].number
    assert left == pytest.approx(result.metrics['validation'].relative_error_total)
    if share == 0.45:
        assert 25.0 < left < 50.0
        assert good == set()
        assert result.reason.startswith(
            f'the model is good for no use, it leaves {left:.0f} % of the torque unexplained'
        )
    else:
        assert left < 100.0 * share + 5.0
        assert {'feed-forward', 'simulation'} <= good


def test_what_is_uncertain_elsewhere_counts_like_what_is_left_here() -> None:
    errors = np.tile([[3.0, 4.0], [-3.0, -4.0]], (10, 1))
    metrics = torque_metrics(('a', 'b'), 20.0 * errors, 16.0 * errors)  # 20 % are left

    def numbers(elsewhere: float) -> dict[str, tuple[bool, float]]:
        uses = good_for(metrics, 21.0, (np.ones(2), np.full(2, 20.0)), (4, 4), True, elsewhere)
        return {use.name: (use.good, use.number) for use in uses}

    here, there = numbers(0.0), numbers(15.0)  # 20, 15 and 25 are sides of a triangle
    assert here['feed-forward'] == (True, pytest.approx(20.0))
    assert there['feed-forward'] == (True, pytest.approx(25.0))
    assert there['simulation'] == (True, pytest.approx(np.hypot(21.0, 15.0)))
    assert here['contact detection'] == (True, pytest.approx(4.0 * 16.0))
    assert there['contact detection'] == (False, pytest.approx(5.0 * 16.0))  # as large as the torque
    assert there['gravity compensation'] == here['gravity compensation']  # has what is open in it already
    assert not numbers(23.0)['feed-forward'][0]


def test_known_parameters_do_not_make_a_torque_good_for_something() -> None:
    metrics = torque_metrics(('a', 'b'), np.tile([1.0, -1.0], (10, 1)), np.zeros((10, 2)))
    uses = good_for(metrics, metrics.relative_error_total, (np.ones(2), np.ones(2)), (4, 4), True)
    assert {use.name for use in uses if use.good} == {'parameters'}
    assert 'feed-forward: 100 % of the torque is left to the controller' in good_for_nothing(uses)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize(('share', 'stays'), [(0.0, True), (0.1, True), (0.1, False)])
@pytest.mark.usefixtures('set_up_as_described')
def test_plain_least_squares_take_the_place_of_what_does_not_hold_in_validation(
    share: float, stays: bool, seed: int
) -> None:
    """A torque ripple, which the arm has still when it is judged, or with the other sign."""
    model, motion, torque = measured(seed)
    _, other, judging = measured(seed + 20)
    size = share * np.sqrt(2.0 * np.mean(torque**2, axis=0))
    first, after = (size * np.sin(40.0 * q) for q in (motion[1], other[1]))
    judging = judging + (after if stays else -after)
    result = identify(dataset(model, motion, torque + first), model, validation=dataset(model, other, judging))
    assert result.usable, result.reason
    (choice,) = (each for each in result.decisions if each.subject == 'by validation')
    errors = {each.name: float(np.linalg.norm(each.error)) for each in choice.alternatives}
    ours, plain = next(iter(errors.values())), min(error for name, error in errors.items() if name.startswith('plain'))
    left = result.metrics['validation'].rmse
    if share > 0.0 and not stays:
        assert ours > 1.5 * plain
        assert choice.chosen.startswith('plain')
        assert result.friction.name == 'coulomb_viscous+offset'
        estimator = 'ols' if choice.chosen.partition(';')[0].endswith('alike') else 'wls'
        told = replace(PLAIN, estimator=estimator, friction='coulomb_viscous+offset')
        same = identify(
            dataset(model, motion, torque + first), model, validation=dataset(model, other, judging), config=told
        )
        np.testing.assert_allclose(left, same.metrics['validation'].rmse, rtol=0.02)
        np.testing.assert_allclose(result.base_values, same.base_values, rtol=0.02, atol=0.02)
        np.testing.assert_allclose(result.base_std, same.base_std, rtol=0.2)  # without the samples at rest
    elif share > 0.0:
        assert ours < 0.5 * plain
        assert np.linalg.norm(left) <= 1.01 * ours
    else:  # plain is all there is
        assert np.linalg.norm(left) <= min(ours, plain) * 1.01
        assert ours == pytest.approx(plain, rel=0.02)


@pytest.mark.usefixtures('set_up_as_described')
def test_a_validation_chooses_nothing_where_there_is_one_way_to_fit() -> None:
    model, motion, torque = measured()
    _, other, judging = measured(20)
    result = identify(
        dataset(model, motion, torque),
        model,
        friction='coulomb_viscous+offset',
        validation=dataset(model, other, judging),
    )
    assert result.friction.name == 'coulomb_viscous+offset'
    assert 'by validation' not in {each.subject for each in result.decisions}


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(2))
@pytest.mark.usefixtures('set_up_as_described')
def test_what_each_part_of_a_validation_chooses_for_the_others_is_told(seed: int) -> None:
    """A ripple that is there in the half of the validation: parts disagree, and the error told is that of strangers."""
    model, motion, torque = measured(seed)
    _, other, judging = measured(seed + 20)
    size = 0.1 * np.sqrt(2.0 * np.mean(torque**2, axis=0))
    late = np.arange(len(judging))[:, None] > len(judging) * (0.3 + 0.1 * seed)
    judging = judging + size * np.sin(40.0 * other[1]) * np.where(late, 1.0, -1.0)
    training = dataset(model, motion, torque + size * np.sin(40.0 * motion[1]))
    result = identify(training, model, validation=dataset(model, other, judging))
    (choice,) = (each.chosen for each in result.decisions if each.subject == 'by validation')
    taken, *_, unseen = (float(each) for each in re.findall('([0-9.]+) %', choice))
    assert (unseen > 1.05 * taken) == (seed == 0)  # parts that differ choose worse for each other than all of them
    assert unseen > 0.98 * taken
    assert result.metrics['validation'].relative_error_total == pytest.approx(taken, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize('place', [0.09, 0.24, 0.5])
@pytest.mark.usefixtures('set_up_as_described')
def test_a_validation_compares_what_is_handed_out(place: float) -> None:
    """Of a long recording most choices see stretches; nearly all that it tells is between two of them."""
    model, rng = arm(), np.random.default_rng(2)
    time = np.arange(20_000) / 100.0
    size = 0.005 + 0.8 * np.exp(-(((time - place * 200.0) / 5.0) ** 4))
    waves = rng.uniform(0.5, 2.0, (2, 3)), rng.uniform(0.0, 6.0, (2, 3))
    q = size[:, None] * np.sin(time[:, None, None] * waves[0] + waves[1]).sum(axis=2)
    dq = np.gradient(q, 0.01, axis=0)
    motion = time, q, dq, np.gradient(dq, 0.01, axis=0)
    noise = rng.standard_normal(q.shape)
    other = fourier_motion(2, rng, size=0.9)
    torque, judging = (pinocchio_torque(model, *each[1:]) + 2.0 * each[2] for each in (motion, other))
    result = identify(
        dataset(model, motion, torque + noise, cutoff=20.0),
        model,
        validation=dataset(model, other, judging, cutoff=20.0),
    )
    (choice,) = (each for each in result.decisions if each.subject == 'by validation')
    for way in choice.alternatives:
        assert np.linalg.norm(way.error) < 0.05 * np.linalg.norm(np.std(judging, axis=0)), way.name
    told = float(re.findall('([0-9.]+) %', choice.chosen)[0])
    assert told == pytest.approx(result.metrics['validation'].relative_error_total, rel=0.02)


@pytest.mark.parametrize(('seed', 'weight'), [(0, 0.01), (1, 0.01), (1, 0.07)])
def test_plain_least_squares_learn_nothing_from_an_arm_that_brakes_hold(seed: int, weight: float) -> None:
    """It stands for most of the time without any torque; noise of the velocity decides the exact sign."""
    rng, model = np.random.default_rng(seed), arm()
    _, *moving = fourier_motion(2, rng, size=1.5)
    held = np.repeat(moving[0][-1:], 20_000, axis=0), 1e-4 * rng.standard_normal((20_000, 2)), np.zeros((20_000, 2))
    torque = pinocchio_torque(model, *moving) + 5.0 * np.sign(moving[1]) + moving[1]
    motion = tuple(np.concatenate(pair) for pair in zip(moving, held, strict=True))
    data = dataset(model, (np.arange(21_000) / 100.0, *motion), np.concatenate([torque, np.zeros((20_000, 2))]))
    samples = samples_of_datasets([data], model, replace(PLAIN, standstill_weight=weight))
    base, friction = base_parameters(model), friction_model('coulomb_viscous+offset')
    all_of_them, in_motion = (
        least_squares(Rows(base, each), friction, np.zeros((2, 0))) for each in (samples, samples.in_motion())
    )
    assert np.abs(all_of_them.friction_parameters[:, 0] - 5.0).max() > 0.5
    np.testing.assert_allclose(in_motion.friction_parameters[:, 0], 5.0, rtol=0.02)


def test_friction_that_drives_is_named_where_it_predicts_better_by_a_twentieth_and_a_hundredth_of_the_torque() -> None:
    assert not beaten_by_plain(10.4, 10.0)
    assert 'check the signs' in beaten_by_plain(10.6, 10.0)
    assert '10.6 %' in beaten_by_plain(10.6, 10.0)
    assert not beaten_by_plain(0.9, 0.1)
    assert beaten_by_plain(1.1, 0.1)
    assert beaten_by_plain(3.4, 3.2)
    assert not beaten_by_plain(1.0, 2.0)


@pytest.mark.parametrize('seed', range(3))
def test_a_right_model_of_a_noisy_signal_is_good_for_gravity_compensation(seed: int) -> None:
    model, found = arm(), []
    for k in (0, 10):
        _, motion, torque = measured(seed + k)
        rng = np.random.default_rng(seed + k)
        found.append(dataset(model, motion, torque + 0.45 * torque.std(axis=0) * rng.standard_normal(torque.shape)))
    result = identify(found[0], model, config=replace(PLAIN, estimator='wls'), validation=found[1])
    uses = {use.name: use.good for use in result.good_for}
    assert result.usable, result.reason
    assert uses['gravity compensation']


def test_torque_in_millinewton_metres_is_not_usable() -> None:
    model, motion, torque = measured()
    result = identify(dataset(model, motion, 1000.0 * torque), model, config=PLAIN)
    assert not result.usable
    assert 'mN m' in result.reason


def test_one_joint_in_another_unit_is_refused_and_one_with_other_masses_is_not() -> None:
    model = shoulder_alone()
    time, q, dq, ddq = fourier_motion(1, np.random.default_rng(5), size=0.9)
    torque = pinocchio_torque(model, q, dq, ddq) + 2.0 * np.sign(dq)
    for factor, words in ((1000.0, 'mN m'), (0.001, 'currents'), (8.0, ''), (0.1, '')):
        doubt = torque_size([dataset(model, (time, q, dq, ddq), factor * torque)], model).doubt
        assert words in doubt
        assert bool(doubt) == bool(words)


def test_currents_whose_constants_differ_are_no_torques_whatever_somebody_says() -> None:
    """Other masses would be as good a cause, if any explained them: none do."""
    described, rng = RobotModel.from_urdf(UR10E), np.random.default_rng(4)
    motion = fourier_motion(6, rng, size=0.8, seconds=12.0)
    current = pinocchio_torque(described, *motion[1:]) * [0.005, 0.008, 0.02, 0.05, 0.3, 4.0]
    recording = dataset(described, motion, current)
    told = [
        torque_size([replace(recording, effort=(meaning,) * 6)], described).doubt for meaning in ('unknown', 'torque')
    ]
    for doubt in told:
        assert doubt.startswith('the efforts of most joints are 0.0')
        assert 'currents, or torques of motors' in doubt


@pytest.mark.slow
def test_a_model_without_gravity_compensates_for_none() -> None:
    """It predicts what the driver tells, which may be of use; the note says what to ask before."""
    rng, model = np.random.default_rng(0), three_joints()
    motion = fourier_motion(3, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(replace(model, gravity=np.zeros(3)), *motion[1:]) + 5.0 * np.sign(motion[2])
    result = identify(dataset(model, motion, torque + 0.2 * rng.standard_normal(torque.shape)), model, config=PLAIN)
    good = {use.name: use.good for use in result.good_for}
    assert good['feed-forward']
    assert not good['gravity compensation']
    assert any('the efforts hold no gravity' in note for note in result.notes)


@pytest.mark.parametrize('order', [('shoulder', 'elbow'), ('elbow', 'shoulder')])
def test_a_joint_that_is_held_must_not_move(order: tuple[str, str]) -> None:
    model, motion, torque = measured()
    columns = [model.joint_names.index(name) for name in order]
    data = dataset(model, (motion[0], *(x[:, columns] for x in motion[1:])), torque[:, columns], joint_names=order)
    first = shoulder_alone()
    assert held_joints(first) == ('elbow',)
    with pytest.raises(IdentificationError, match='joint elbow moves by'):
        identify(data, first, config=PLAIN)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 3])
def test_efforts_tell_by_themselves_whether_they_are_in_one_unit(seed: int) -> None:
    """Currents without constants and a description without masses: the factors of the joints follow from each other."""
    model, rng = RobotModel.from_urdf(UR10E) if seed else three_joints(), np.random.default_rng(seed)
    motion = fourier_motion(model.n, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(model, *motion[1:])
    size = torque.std(axis=0)
    torque = torque + size * (0.3 * np.sign(motion[2]) + 0.01 * rng.standard_normal(torque.shape))
    bare = replace(model, inertial=np.zeros_like(model.inertial))
    factors = np.exp(rng.uniform(-2.0, 2.0, 6)) if seed else np.array([30.0, 30.0, 0.5])  # two kinds of motors
    rows = base_parameters(bare, rotor_inertia=True).regressor(*motion[1:])
    found = mutual_factors(rows, motion[2], torque / factors) / factors
    np.testing.assert_allclose(found[:5] / found[0], 1.0, atol=0.05)  # the last is felt by no other
    one, mixed = (  # as a CSV file always has them
        replace(dataset(bare, motion, gain * torque), effort=('torque',) * model.n) for gain in (5.0, 1.0 / factors)
    )
    assert find_setup([one], bare, units_only=bool(seed))[0].findings == ()
    result = identify(mixed, bare, config=replace(PLAIN, estimator='wls' if seed else 'auto'))
    assert result.setup is not None
    assert [each.kind for each in result.setup.findings] == ['units']
    assert not result.usable
    assert 'say what they are in the configuration' in result.reason
    assert np.array_equal(result.setup.torque, np.eye(model.n))


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_a_constant_that_is_a_little_wrong_is_told_and_one_that_is_very_wrong_refused(seed: int) -> None:
    model, rng = RobotModel.from_urdf(UR10E), np.random.default_rng(seed)
    motion = fourier_motion(6, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(model, *motion[1:])
    torque = torque + torque.std(axis=0) * (0.3 * np.sign(motion[2]) + 0.05 * rng.standard_normal(torque.shape))
    bare = replace(model, inertial=np.zeros_like(model.inertial))
    told = []
    for factor in (1.0, 1.15, 2.0):
        data = replace(dataset(bare, motion, np.array([1, 1, factor, 1, 1, 1]) * torque), effort=('torque',) * 6)
        setup, _ = find_setup([data], bare, units_only=True)
        told.append(('units' in [each.kind for each in setup.findings], setup.doubt and setup.doubt.kind == 'units'))
    assert told == [(False, None), (False, True), (True, None)]


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_a_constant_is_told_from_masses_that_are_described_wrongly(seed: int) -> None:
    model, rng = RobotModel.from_urdf(UR10E) if seed else three_joints(), np.random.default_rng(seed)
    motion = fourier_motion(model.n, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(model, *motion[1:])
    torque = torque + torque.std(axis=0) * (0.3 * np.sign(motion[2]) + 0.05 * rng.standard_normal(torque.shape))
    wrong = np.where(np.arange(model.n) == 2, 2.5, 1.0)
    heavy = replace(model, inertial=wrong[:, None] * model.inertial)
    for described, factors, found in ((model, 1.0, []), (model, wrong, ['units']), (heavy, 1.0, [])):
        data = dataset(described, motion, factors * torque)
        setup, _ = find_setup([data], described, units_only=bool(seed))  # which takes a tenth of the time
        assert [each.kind for each in setup.findings] == found
        assert setup.lost == bool(found)  # nothing is undone by factors that a common one is missing to


def test_a_joint_that_never_turns_round_is_told() -> None:
    model = RobotModel.from_urdf(UR10E)
    time, *motion = fourier_motion(6, np.random.default_rng(0), size=0.8, seconds=12.0)
    fast = 1.1 * np.abs(motion[1][:, 2]).max() * np.eye(6)[2]
    one_way = (time, motion[0] + fast * time[:, None], motion[1] + fast, motion[2])
    for each, told in (((time, *motion), False), (one_way, True)):
        data = dataset(model, each, pinocchio_torque(model, *each[1:]))
        notes = [note for note in remarks([data], model) if 'one direction only' in note]
        assert len(notes) == told
        assert all(note.startswith('elbow_joint: ') for note in notes)


def test_gravity_alone_tells_currents_where_accelerations_are_noise() -> None:
    model, rng = RobotModel.from_urdf(UR10E), np.random.default_rng(0)
    time, q, dq, ddq = fourier_motion(6, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(model, q, dq, ddq)
    noisy = (time, q, dq, ddq + 300.0 * rng.standard_normal(ddq.shape))
    for factor, told in ((1.0, False), (0.1, True)):
        size = torque_size([dataset(model, noisy, factor * torque)], model)
        assert ('they may be currents' in size.doubt) == told


@pytest.mark.slow
def test_an_arm_without_friction_whose_torques_are_all_reversed_is_refused() -> None:
    """A linear model has negative masses then, and predicts states left out as well."""
    model, rng = RobotModel.from_urdf(UR10E), np.random.default_rng(0)
    motion = fourier_motion(6, rng, size=0.8, seconds=12.0)
    torque = pinocchio_torque(model, *motion[1:])
    torque += 0.02 * torque.std(axis=0) * rng.standard_normal(torque.shape)
    said = 'the efforts of most joints have the opposite sign'
    for count, most in ((0, False), (2, False), (3, True), (6, True)):  # of five that are known
        turned = dataset(model, motion, np.where(np.arange(6) < count, -1.0, 1.0) * torque)
        assert torque_size([turned], model).doubt.startswith(said) == most
    for estimator, told in (('wls', said), ('auto', 'the torque of each of')):
        result = identify(turned, model, config=replace(PLAIN, estimator=estimator))
        assert not result.usable
        assert result.reason.startswith(told)


def test_torques_beyond_all_effort_limits_are_refused_and_beyond_some_told() -> None:
    model = RobotModel.from_urdf(UR10E)
    motion = fourier_motion(6, np.random.default_rng(0), size=0.8, seconds=6.0)
    torque = pinocchio_torque(model, *motion[1:])
    bare = replace(model, inertial=np.zeros_like(model.inertial))
    size = np.sqrt(np.mean(torque**2, axis=0))
    some = np.where(np.arange(6) == 1, 0.05, 0.5)
    for limit, refused, noted in ((0.05, True, False), (0.5, False, False), (some, False, True)):
        arm = replace(bare, limits=replace(model.limits, effort=limit * size))
        found = torque_size([dataset(arm, motion, torque)], arm)
        assert ('is it in mN m?' in found.doubt) == refused
        assert any('is it in mN m?' in note for note in found.notes) == noted


@pytest.mark.slow
@pytest.mark.parametrize('kept', [np.zeros(6), np.eye(6)[1], np.ones(6)])
@pytest.mark.parametrize('parked', [[], [2], list(range(6))])
def test_torques_and_motions_that_are_none_say_nothing_of_their_units(kept: np.ndarray, parked: list[int]) -> None:
    model = RobotModel.from_urdf(UR10E)
    motion = fourier_motion(6, np.random.default_rng(0), size=0.8, seconds=6.0)
    for signal in motion[1:]:
        signal[:, parked] = 0.0
    data = dataset(model, motion, kept * pinocchio_torque(model, *motion[1:]))
    for arm in (model, replace(model, inertial=np.zeros_like(model.inertial))):
        assert 'units' not in [each.kind for each in find_setup([data], arm, units_only=True)[0].findings]


def test_a_joint_before_those_that_are_identified_must_not_move_either() -> None:
    """It carries them: their base would tilt and accelerate."""
    model, motion, torque = measured()
    second = RobotModel.from_urdf(model.source, joints=('elbow',))
    assert held_joints(second) == ('shoulder',)
    with pytest.raises(IdentificationError, match='joint shoulder moves by'):
        identify(dataset(model, motion, torque), second, config=PLAIN)


def test_a_held_joint_elsewhere_than_zero_is_noted() -> None:
    model, (time, q, dq, ddq), _ = measured()
    q, dq, ddq = q * [1, 0] + [0, 0.7], dq * [1, 0], ddq * [1, 0]
    torque = pinocchio_torque(model, q, dq, ddq) + 2.0 * np.sign(dq) + dq
    first = shoulder_alone()
    result = identify(dataset(model, (time, q, dq, ddq), torque), first, config=PLAIN)
    assert any(note.startswith('joint elbow stands at 0.7') for note in result.notes)


def samples_of(data: Dataset) -> Samples:
    return as_samples([data], arm(), standstill_speed=0.02, standstill_weight=0.01)


@pytest.mark.parametrize('seed', range(4))
def test_errors_at_reversals_are_no_ripple(seed: int) -> None:
    """A bump wherever a joint turns, of the height and width that the blur of Coulomb friction leaves."""
    model, motion, torque = measured(seed)
    rng, dq = np.random.default_rng(seed), motion[2]
    height = np.repeat(rng.normal(0.0, 1.0, (12, 2)), -(-len(dq) // 12), axis=0)[: len(dq)]
    bumps = height * np.exp(-((dq / 0.03) ** 2)) + 0.02 * rng.standard_normal(dq.shape)
    assert not _with_ripple(samples_of(dataset(model, motion, torque + bumps))).any()


@pytest.mark.parametrize('frequency', [60.0, 100.0, 240.0])
def test_a_ripple_is_found_where_there_is_one(frequency: float) -> None:
    model, motion, torque = measured()
    rng = np.random.default_rng(1)
    wave = np.array([0.5, 0.0]) * np.sin(frequency * motion[1] + 0.4)
    pace = frequency * np.abs(motion[2]) / (2.0 * np.pi)
    noise = 0.1 * rng.standard_normal(wave.shape)
    found = _with_ripple(samples_of(dataset(model, motion, torque + wave / (1.0 + (pace / 20.0) ** 4) + noise)))
    assert found[0] == pytest.approx(frequency, abs=1.5)
    assert found[1] == 0.0


@pytest.mark.slow
@pytest.mark.parametrize(('seconds', 'width'), [(3.0, 3), (3.0, 10), (6.0, 30), (10.0, 60)])
def test_noise_of_few_independent_samples_is_no_ripple(seconds: float, width: int) -> None:
    """Among a thousand frequencies one fits any noise, the better the fewer samples of it are independent."""
    for seed in range(6):
        model, rng = arm(), np.random.default_rng(seed)
        motion = fourier_motion(2, rng, size=0.9, seconds=seconds)
        window = np.hanning(width + 2)[1:-1] / np.linalg.norm(np.hanning(width + 2))
        white = rng.standard_normal((2, len(motion[0]) + width - 1))
        noise = np.stack([np.convolve(row, window, 'valid') for row in white], axis=1)
        torque = pinocchio_torque(model, *motion[1:]) + 2.0 * np.sign(motion[2]) + motion[2] + 0.3 * noise
        assert not _with_ripple(samples_of(dataset(model, motion, torque))).any()


@pytest.mark.parametrize('size', [1e-30, 1e-9, 1e9, 1e30])
def test_a_ripple_is_found_in_efforts_of_any_size(size: float) -> None:
    """Efforts may be in any unit; the load, which is one of the friction columns, then is as large as they are."""
    model, motion, torque = measured()
    samples = samples_of(dataset(model, motion, torque))
    own = np.stack([np.sign(samples.dq), size * samples.dq, np.ones_like(samples.dq)], axis=2)
    found = strongest_ripple(samples, size * np.sin(100.0 * samples.q), own, 20.0)
    assert found == pytest.approx([100.0, 100.0], abs=1.5)


def test_what_bends_once_over_a_small_range_is_no_ripple() -> None:
    model, motion, torque = measured()
    samples = samples_of(dataset(model, motion, torque))
    samples = replace(samples, q=0.1 * samples.q / np.ptp(samples.q, axis=0))
    own = np.ones((len(samples), 2, 1))
    found = strongest_ripple(samples, np.sin(50.0 * samples.q), own, 20.0)
    assert found.shape == (2,)
    assert (found > 180.0).all()  # three waves in 0.1 rad; a sine of 50/rad has less than one


def _with_ripple(samples: Samples) -> np.ndarray:
    """Return the ripple's frequencies, zero where there is none."""
    found, decision = with_ripple_shown(Terms.plain(base_parameters(arm(), rotor_inertia=True), 2), samples)
    said = decision.chosen
    result = np.zeros(2)
    for joint, frequency in re.findall(r'joint (\d+) at (\d+)/rad', said):
        result[int(joint) - 1] = float(frequency)
    assert ('+ripple' in found.friction.name) == bool(result.any())
    return result


@pytest.mark.parametrize('seed', range(4))
def test_currents_that_are_called_torques_are_named_where_the_model_fails(seed: int) -> None:
    """Any constants, so that no common factor shows; masses that are wrong, and joints that rub, are no such cause."""
    model, rng = RobotModel.from_urdf(UR10E), np.random.default_rng(seed)
    motion = fourier_motion(6, rng, size=0.8, seconds=12.0)
    real = replace(model, inertial=model.inertial * rng.uniform(0.6, 1.6, (6, 1)))
    torque = pinocchio_torque(real, *motion[1:]) + rng.uniform(1.0, 8.0, 6) * np.sign(motion[2])
    constants = rng.permutation(np.geomspace(0.05, 5.0, 6))
    assert torque_size([dataset(model, motion, torque)], model).cause == ''
    recording = replace(dataset(model, motion, torque / constants), effort=('torque',) * 6)
    said = torque_size([recording], model).cause
    assert 'differently in each joint: they may be currents' in said
    metrics = torque_metrics(model.joint_names, torque, np.zeros_like(torque))
    for doubt in ('', 'gravity acts along x'):
        usable, reason = overall([], metrics, doubt, judged_by='validation', cause=said)
        assert not usable
        assert reason.endswith(said)
        assert '100 % of the torque' in reason


def test_an_advice_is_given_once_for_all_joints_that_it_holds_for() -> None:
    joints = [JointVerdict(joint=name, usable=name > 'b', reason=f'{name} is odd', advice='look') for name in 'abcdef']
    metrics = torque_metrics(tuple('abcdef'), np.ones((4, 6)), np.full((4, 6), 0.9))
    usable, reason = overall(joints, metrics, '', judged_by='validation')
    assert usable
    assert reason == 'usable except a: a is odd; b: b is odd; look'


@pytest.mark.parametrize(
    ('reach', 'expected'),
    [((1.0, 0.06, 0.04), (1, 1, 0)), ((0.03, 0.007, 0.005), (1, 1, 0)), ((8e-4, 0.0, 0.0), (0, 0, 0))],
)
def test_a_small_device_moves_by_little(reach: tuple[float, ...], expected: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(moved(np.outer([-0.5, 0.5], reach)), expected)
