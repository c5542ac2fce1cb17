# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The judge, what is chosen by it, and what the data leave open."""

import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, dataset, fourier_motion, pinocchio_arm, pinocchio_torque
from scipy import stats
from scipy.cluster.vq import kmeans2

from robotid_ros.data import Dataset, Recording, process_recording
from robotid_ros.dynamics import base_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import IdentificationConfig, identify
from robotid_ros.identification.information import gather
from robotid_ros.identification.judge import GROUPS, Bench, Score, groups, solved
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples, as_samples
from robotid_ros.identification.signal_choice import choose_bandwidth, usual_cutoff
from robotid_ros.identification.terms import Terms, Weights, weigh
from robotid_ros.model import RobotModel
from robotid_ros.signals import zero_phase_low_pass


def samples_of(data: Dataset) -> Samples:
    return as_samples([data], RobotModel.from_urdf(TWO_LINKS), standstill_speed=0.0, standstill_weight=1.0)


@pytest.mark.parametrize('seed', range(6))
def test_groups_are_those_of_scipys_k_means(seed: int) -> None:
    rng, count = np.random.default_rng(seed), 10
    motion = fourier_motion(2, rng, seconds=rng.uniform(3.0, 15.0))
    q, dq = motion[1:3]
    if seed % 2:  # hardly any states: some groups stay empty
        motion = (motion[0], np.round(q, 0), np.round(0.0 * dq, 0), motion[3])
    samples = samples_of(dataset(RobotModel.from_urdf(TWO_LINKS), motion, np.zeros_like(q)))
    states = []
    for values, weight in ((samples.q, 1.0), (samples.dq, 0.5)):
        spread = values.std(axis=0)
        least = np.maximum(spread, max(0.1 * spread.max(), 1e-12))
        states.append(weight * (values - values.mean(axis=0)) / least)
    found = np.concatenate(states, axis=1)
    axis = np.linalg.svd(found - found.mean(axis=0), full_matrices=False)[2][0]
    order = np.argsort(found @ axis, kind='stable')
    starts = found[order[(2 * np.arange(count) + 1) * len(order) // (2 * count)]]
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', UserWarning)
        expected = kmeans2(found, starts, minit='matrix')[1]
    np.testing.assert_array_equal(groups(samples, count), np.unique(expected, return_inverse=True)[1].reshape(-1))


def test_regions_are_groups_of_neighbouring_positions() -> None:
    """One joint moves, slowly: its groups are intervals of positions, however often they are visited."""
    time = np.linspace(0.0, 2000.0, 2001)
    moving = 0.8 * np.sin(0.009 * time) + 0.3 * np.sin(0.023 * time)
    q = np.stack([moving, 0.4 + 1e-5 * np.sin(40.0 * time)], axis=1)
    motion = (time, q, np.zeros_like(q), np.zeros_like(q))
    label = groups(samples_of(dataset(RobotModel.from_urdf(TWO_LINKS), motion, np.zeros_like(q))), 4)
    assert set(label.tolist()) == {0, 1, 2, 3}
    within = sorted((moving[label == k].min(), moving[label == k].max()) for k in range(4))
    assert all(before[1] < after[0] for before, after in pairwise(within))
    lengths = [high - low for low, high in within]
    assert max(lengths) < 2.5 * min(lengths)


@pytest.mark.parametrize('seed', range(5))
def test_the_same_motion_never_stands_on_both_sides(seed: int) -> None:
    """A period of any motion that comes again, in another recording too, falls into the groups of the first."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(seed)
    motion = fourier_motion(2, rng, seconds=8.0)
    data = dataset(model, motion, np.zeros_like(motion[1]))
    samples = as_samples([data, data], model, standstill_speed=0.0, standstill_weight=1.0)
    label = groups(samples, GROUPS)
    assert len(set(label.tolist())) > 5
    np.testing.assert_array_equal(label[: len(data)], label[len(data) :])


def test_held_out_errors_are_those_of_least_squares_without_the_group() -> None:
    """Gram matrices, joint by joint, beside a textbook's least squares on the stacked rows."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(0)
    motion = fourier_motion(2, rng, seconds=8.0)
    torque = pinocchio_torque(model, *motion[1:]) + np.sign(motion[2]) + rng.normal(0.0, [0.5, 0.1], motion[1].shape)
    samples = samples_of(dataset(model, motion, torque))
    base, friction = base_parameters(model, rotor_inertia=False), friction_model('coulomb_viscous+offset')
    rigid, label = base.regressor(*(getattr(samples, name) for name in ('q', 'dq', 'ddq'))), groups(samples, 5)
    own = friction.columns(samples.dq, np.zeros((2, 0)))
    score, precision = Bench.of(samples, label, rigid, own).linear(None)
    apart = np.concatenate([own[:, :, None, :] * np.eye(2)[None, :, :, None]], axis=0).reshape(len(samples), 2, -1)
    rows, root = np.concatenate([rigid, apart], axis=2), np.sqrt(precision)
    for k in range(5):
        others = label != k
        weighted = (rows[others] * root[:, None]).reshape(-1, rows.shape[2])
        found = np.linalg.lstsq(weighted, (samples.target[others] * root).ravel(), rcond=None)[0]
        squares = np.sum((samples.measured[~others] - rows[~others] @ found) ** 2, axis=0)
        np.testing.assert_allclose(score.squares[k], squares, rtol=1e-6)
    left = (
        samples.target
        - rows
        @ np.linalg.lstsq(
            (rows * root[:, None]).reshape(-1, rows.shape[2]), (samples.target * root).ravel(), rcond=None
        )[0]
    ).std(axis=0)
    np.testing.assert_allclose(precision, left**-2, rtol=0.02)


@pytest.mark.parametrize('of', [1, 20])
def test_by_chance_a_challenger_takes_the_place_no_more_often_than_said(of: int) -> None:
    """The best of several equals; bounds on both sides of the share that the rule allows."""
    rng, taken, trials = np.random.default_rng(of), 0, 600
    count = np.full((10, 3), 100.0)
    for _ in range(trials):
        old, *new = (
            Score(squares=100.0 * np.exp(0.1 * rng.standard_normal((10, 3))), count=count) for _ in range(of + 1)
        )
        taken += old.loses_to(min(new, key=lambda each: each.value), of)
    assert 0.02 < taken / trials < 0.25


def test_a_clear_gain_takes_the_place_and_a_slight_one_contradicts_no_description() -> None:
    rng, count = np.random.default_rng(0), np.full((10, 3), 100.0)
    squares = 100.0 * np.exp(0.3 * rng.standard_normal((10, 3)))
    old = Score(squares=squares, count=count)
    for fall, contradicts in ((0.05, False), (0.3, True)):
        new = Score(squares=squares * np.exp(-2.0 * fall + 0.01 * rng.standard_normal((10, 3))), count=count)
        assert old.loses_to(new)
        assert not new.loses_to(old)
        assert old.contradicted_by(new) is contradicts
        assert old.gain(new)[0] == pytest.approx(fall, abs=0.02)


def test_the_score_counts_the_joints_alike_by_half_and_their_torque_by_half() -> None:
    rng = np.random.default_rng(1)
    rms, count = rng.uniform(0.1, 10.0, 5), rng.uniform(1.0, 50.0, (7, 5))
    score = Score(squares=rms**2 * count, count=count)
    np.testing.assert_allclose(score.rmse, rms)
    alike, torque = np.log(stats.gmean(rms)), np.log(np.linalg.norm(rms))
    assert score.value == pytest.approx(0.5 * (alike + torque))


def test_neither_one_group_nor_many_small_ones_alone_make_a_gain() -> None:
    count = np.full((10, 3), 100.0)
    worst = np.where(np.arange(10) == 0, 1e3, 1.0)[:, None] * count
    old = Score(squares=worst, count=count)
    for better in (np.arange(10) == 0, np.arange(10) > 0):  # where errors are large; where they are small
        rest = np.where(better, 0.5, 1.3 if better[0] else 1.0005)[:, None]
        assert not old.loses_to(Score(squares=worst * rest, count=count))


def test_noise_of_a_parked_joint_is_no_state() -> None:
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(3)
    time, q, dq, ddq = fourier_motion(2, rng, seconds=20.0)
    moving = np.array([1.0, 0.0])
    label = []
    for noise in (0.0, 1e-4):
        added = noise * rng.standard_normal(dq.shape) * (1.0 - moving)
        motion = (time, q * moving + added, dq * moving + added, ddq * moving)
        label.append(groups(samples_of(dataset(model, motion, np.zeros_like(q))), GROUPS))
    assert np.mean(label[0] == label[1]) > 0.95


def density(weights: Weights, strength: float, own: float, noise: float, problem: tuple[np.ndarray, ...]) -> float:
    """Return the logarithm of the density of torques, with the weights of description, friction and noise changed."""
    rows, column, mean, precision, torque = problem
    base = np.linalg.inv(strength * weights.strength * precision)
    assert weights.prior.own is not None
    covariance = rows @ base @ rows.T + column @ column.T / (own * weights.prior.own[0, 0])
    covariance += np.eye(len(rows)) / (noise * weights.precision[0])
    return float(stats.multivariate_normal(rows @ mean, covariance, allow_singular=True).logpdf(torque))


@pytest.mark.slow
@pytest.mark.parametrize('strength', [0.01, 1.0, 100.0])
def test_the_weights_are_those_of_the_greatest_evidence(strength: float) -> None:
    """Beside the density of the torques under all weights, which scipy computes; near the truth on average."""
    rng, found = np.random.default_rng(int(1000 * strength)), []
    for _ in range(10):
        b, count = 12, 200
        root = rng.standard_normal((b, b))
        precision = root @ root.T + 0.1 * np.eye(b)
        mean, rows, own = rng.standard_normal(b), rng.standard_normal((count, b)), rng.standard_normal((count, 1))
        values = rng.multivariate_normal(mean, np.linalg.inv(strength * precision))
        torque = rows @ values + 3.0 * own[:, 0] + rng.standard_normal(count)
        info = gather(rows[:, None], own[:, None], torque[:, None], np.ones((count, 1)))
        weights = weigh(info, Prior(mean=mean, precision=precision), 1.0)
        problem = rows, own, mean, precision, torque
        best = density(weights, 1.0, 1.0, 1.0, problem)
        for factor in (0.3, 3.0):
            changed = [(factor, 1.0, 1.0), (1.0, factor, 1.0), (1.0, 1.0, factor)]
            assert all(density(weights, *each, problem) < best + 0.05 for each in changed)
        found.append(np.log(weights.strength / strength))
    assert abs(np.median(found)) < 0.7


def test_a_description_as_stated_is_as_certain_as_it_says_whatever_the_torque() -> None:
    """Its precision is its own, and the other weights are those of the greatest evidence beside it."""
    rng, b, count = np.random.default_rng(4), 6, 300
    root = rng.standard_normal((b, b))
    precision, mean = root @ root.T + np.eye(b), rng.standard_normal(b)
    rows, own = rng.standard_normal((count, b)), rng.standard_normal((count, 1))
    for far in (0.1, 30.0):  # standard deviations that the arm is from its description
        values = mean + far * np.linalg.cholesky(np.linalg.inv(precision)) @ rng.standard_normal(b)
        torque = rows @ values + 3.0 * own[:, 0] + rng.standard_normal(count)
        info = gather(rows[:, None], own[:, None], torque[:, None], np.ones((count, 1)))
        weights = weigh(info, Prior(mean=mean, precision=precision), 1.0, stated=True)
        np.testing.assert_allclose(weights.prior.precision, precision)
        problem = rows, own, mean, precision, torque
        best = density(weights, 1.0, 1.0, 1.0, problem)
        for factor in (0.3, 3.0):
            assert all(density(weights, 1.0, *each, problem) < best + 0.05 for each in ((factor, 1.0), (1.0, factor)))


def test_a_term_that_explains_nothing_is_gone_and_one_that_explains_all_stays() -> None:
    rng = np.random.default_rng(0)
    rows, own = rng.standard_normal((500, 2, 3)), rng.standard_normal((500, 2, 2))
    torque = rows @ np.array([1.0, 2.0, 3.0]) + 10.0 * own[:, :, 0] + 10.0 * rng.standard_normal((500, 2))
    info = gather(rows, own, torque, np.ones((500, 2)))
    weights = weigh(info, Prior(mean=np.zeros(3), precision=np.eye(3)), 1.0)
    values = solved(info, weights.precision, None, weights.prior)[3:].reshape(2, 2)
    free = solved(info, weights.precision, None)[3:].reshape(2, 2)
    np.testing.assert_allclose(values[:, 0], 10.0, atol=1.5)
    assert np.linalg.norm(values[:, 1]) < 0.4 * np.linalg.norm(free[:, 1])
    left_out = weigh(info, Prior(mean=np.zeros(3), precision=np.eye(3)), 1.0, np.array([True, False]))
    assert np.abs(solved(info, left_out.precision, None, left_out.prior)[[3, 5]]).max() < 1e-3


@pytest.mark.parametrize('size', [1.0, 1e-5])
def test_a_joint_without_samples_leaves_the_others_as_they_are(size: float) -> None:
    """A torso that stands still has none that count; of a light arm, nothing times what it has is no number."""
    rng, prior = np.random.default_rng(0), Prior(mean=np.zeros(3), precision=np.eye(3))
    rows, own = rng.standard_normal((500, 2, 3)), rng.standard_normal((500, 2, 2))
    torque = size * (rows @ np.array([1.0, 2.0, 3.0]) + own[:, :, 0] + 0.1 * rng.standard_normal((500, 2)))
    alone, beside = (
        weigh(
            gather(rows[:, :n], own[:, :n], torque[:, :n], np.stack([np.ones(500), np.zeros(500)], axis=1)[:, :n]),
            prior,
            1.0,
        )
        for n in (1, 2)
    )
    assert np.isfinite(beside.precision).all()
    np.testing.assert_allclose(beside.precision[0], alone.precision[0], rtol=1e-3)


@pytest.mark.usefixtures('set_up_as_described')
def test_friction_that_the_data_leave_open_stays_small_in_the_physically_consistent_fit() -> None:
    """The elbow turns one way only: its Coulomb friction and its offset are one column."""
    model, time = RobotModel.from_urdf(TWO_LINKS), np.arange(1500) / 100.0
    pace = np.stack([np.cos(1.3 * time), 0.1 + 0.09 * np.cos(2.1 * time)], axis=1)
    q = np.stack([np.sin(1.3 * time) / 1.3, 0.1 * time + 0.09 * np.sin(2.1 * time) / 2.1], axis=1)
    motion = (time, q, pace, np.gradient(pace, time, axis=0))
    rng = np.random.default_rng(0)
    torque = pinocchio_torque(model, *motion[1:]) + 0.5 * np.sign(pace) + 0.05 * rng.standard_normal(q.shape)
    config = IdentificationConfig(friction='coulomb_viscous+offset', estimator='physical', torque_bandwidth=-1.0)
    far = replace(model, inertial=model.inertial * np.array([[0.01], [30.0]]))  # so that the description weighs little
    result = identify(dataset(model, motion, torque), far, config=config)
    assert result.metrics['training'].relative_error_total < 5.0
    assert np.abs(result.friction_values).max() < 2.0


@pytest.mark.parametrize('noise', [0.0, 3.0])
def test_noise_that_looks_like_fast_motion_is_not_passed(noise: float) -> None:
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(0)
    time, q, dq, ddq = fourier_motion(2, rng, size=0.9)
    torque = pinocchio_torque(model, q, dq, ddq)
    data = process_recording(Recording(joint_names=model.joint_names, time=time, position=q, effort=torque))
    data = replace(data, dq=data.dq + noise * rng.standard_normal(data.dq.shape))
    cutoff = usual_cutoff([data])
    assert cutoff is not None
    assert 5.0 < cutoff <= 0.1 * data.rate


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_the_usual_cutoff_holds_where_a_slower_one_is_hardly_better() -> None:
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(1)
    time, q, dq, ddq = fourier_motion(2, rng, seconds=60.0, size=0.9)
    torque = pinocchio_torque(model, q, dq, ddq) + 0.2 * rng.standard_normal(q.shape)
    data = process_recording(Recording(joint_names=model.joint_names, time=time, position=q, effort=torque))
    (decision,) = [each for each in identify(data, model).decisions if each.subject == 'cutoff']
    assert decision.chosen == decision.alternatives[0].name


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_the_cutoff_is_the_fastest_that_predicts_as_well_as_the_best() -> None:
    """Positions that sway faster than the arm moves look like motion: the usual cutoff lets all of it through."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(0)
    time, q, dq, ddq = fourier_motion(2, rng, seconds=60.0, size=0.9)
    torque = pinocchio_torque(model, q, dq, ddq) + 0.5 * np.tanh(dq / 0.01)
    sway = zero_phase_low_pass(rng.standard_normal(q.shape), 100.0, 6.0)
    seen = q + 0.01 * sway / sway.std()
    data = process_recording(Recording(joint_names=model.joint_names, time=time, position=seen, effort=torque))
    (decision,) = [each for each in identify(data, model).decisions if each.subject == 'cutoff']
    tried = [float(each.name.split()[0]) for each in decision.alternatives]
    assert tried == pytest.approx(tried[0] * 0.5 ** np.arange(5), rel=0.01)
    errors = [float(np.linalg.norm(each.error)) for each in decision.alternatives]
    chosen = tried.index(float(decision.chosen.split()[0]))
    assert errors[chosen] < 1.1 * min(errors)
    assert (np.array(errors[:chosen]) > 1.1 * min(errors)).all()
    assert chosen >= 2


@pytest.mark.parametrize(('rate', 'looked_for'), [(1.0, False), (100.0, True)])
def test_a_bandwidth_that_the_rate_cannot_show_is_not_looked_for(rate: float, looked_for: bool) -> None:
    model = RobotModel.from_urdf(TWO_LINKS)
    motion = fourier_motion(model.n, np.random.default_rng(4))
    data = dataset(model, motion, pinocchio_torque(model, *motion[1:]))
    samples = as_samples([data], model, standstill_speed=0.0, standstill_weight=1.0)
    samples = replace(samples, runs=tuple(replace(run, rate=rate, cutoff=None) for run in samples.runs))
    terms = Terms.plain(base_parameters(model, rotor_inertia=True), model.n)
    bandwidth, decision = choose_bandwidth(terms, samples)
    assert bandwidth is None
    assert bool(decision.alternatives) is looked_for


@pytest.mark.slow
def test_a_joint_without_a_motor_does_not_outweigh_the_other() -> None:
    """No bodies at all explain a torque of zero exactly. Here the motion is that of a pendulum on a driven joint."""
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    model = RobotModel.from_urdf(TWO_LINKS)
    arm, friction = pinocchio_arm(replace(model, rotor_inertia=np.zeros(2))), np.array([1.0, 0.05])
    inner = arm.createData()

    def recorded(seed: int) -> Dataset:
        rng = np.random.default_rng(seed)
        time = np.arange(10000) * 2e-3
        pushed = np.sum([4.0 * np.sin(rng.uniform(1.0, 6.0) * time + rng.uniform(0.0, 6.0)) for _ in range(3)], axis=0)
        q, dq, rows = np.array([1.5, 0.0]), np.zeros(2), []
        for force in pushed:
            ddq = pinocchio.aba(arm, inner, q, dq, np.array([force, 0.0]) - friction * dq)
            rows.append(np.concatenate([q, dq, ddq]))
            dq = dq + 2e-3 * ddq
            q = q + 2e-3 * dq
        signals = np.array(rows)[::5]
        signals = signals + 0.1 * signals.std(axis=0) * rng.standard_normal(signals.shape)
        motion = (time[::5], signals[:, :2], signals[:, 2:4], signals[:, 4:])
        torque = np.stack([pushed[::5], np.zeros(2000)], axis=1)
        return dataset(model, motion, torque)

    result = identify(recorded(0), model, validation=recorded(1))
    assert result.metrics['validation'].relative_error[0] < 15.0
    assert result.usable


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_an_arm_a_thousand_times_as_heavy_has_a_thousand_times_the_parameters() -> None:
    """The physically consistent fit knows no size of arms."""
    light, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(0)
    motion = fourier_motion(2, rng, size=0.9)
    torque = (
        pinocchio_torque(light, *motion[1:]) + 2.0 * np.sign(motion[2]) + 0.5 * rng.standard_normal(motion[1].shape)
    )
    config = IdentificationConfig(friction='coulomb_viscous+offset', estimator='physical', torque_bandwidth=-1.0)
    found = []
    for factor in (1.0, 1000.0):
        model = replace(light, inertial=factor * light.inertial, rotor_inertia=factor * light.rotor_inertia)
        result = identify(dataset(model, motion, factor * torque), model, config=config)
        found.append(np.concatenate([result.friction_values.ravel(), result.base_values]) / factor)
    assert found[1] == pytest.approx(found[0], rel=5e-3, abs=5e-3 * np.abs(found[0]).max())


@pytest.mark.slow
@pytest.mark.parametrize(
    ('description', 'size', 'ripple', 'noise', 'largest'),
    [
        ([0.6, 1.5], 0.3, 1.0, 0.3, 2.4),  # a ripple that no model has
        # Noise only and no masses: a weight of one draws to an arm of nothing, 10.8 %.
        ([0.0, 0.0], 0.1, 0.0, 1.0, 8.0),
    ],
)
@pytest.mark.usefixtures('set_up_as_described')
def test_parameters_near_the_description_predict_beyond_the_motion(
    description: list[float], size: float, ripple: float, noise: float, largest: float
) -> None:
    model = RobotModel.from_urdf(TWO_LINKS)

    def data(size: float, seed: int, ripple: float, noise: float) -> Dataset:
        motion = fourier_motion(2, np.random.default_rng(seed), size=size)
        torque = pinocchio_torque(model, *motion[1:]) + 0.5 * np.sign(motion[2]) + ripple * np.cos(9.0 * motion[1])
        return dataset(model, motion, torque + noise * np.random.default_rng(seed + 9).standard_normal(torque.shape))

    arm = replace(model, inertial=np.array(description)[:, None] * model.inertial)
    config = IdentificationConfig(friction='coulomb_viscous', torque_bandwidth=-1.0)
    result = identify(data(size, 0, ripple, noise), arm, validation=data(0.9, 50, 0.0, 0.0), config=config)
    assert result.metrics['validation'].relative_error_total < largest


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
@pytest.mark.usefixtures('set_up_as_described')
def test_a_torque_that_no_bodies_have_gives_way_to_free_parameters(seed: int) -> None:
    """The second joint has a negative inertia of its own: what is left of a next motion is the noise."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(seed)

    def recorded() -> Dataset:
        motion = fourier_motion(2, rng, size=0.9)
        torque = pinocchio_torque(model, *motion[1:]) + np.sign(motion[2])
        torque[:, 1] -= 1.5 * motion[3][:, 1]
        return dataset(model, motion, torque + 0.3 * rng.standard_normal(torque.shape))

    found = identify(recorded(), model, validation=recorded()).metrics['validation'].rmse
    assert np.all((found > 0.27) & (found < 0.33))


@pytest.mark.usefixtures('set_up_as_described')
def test_joints_are_judged_by_states_that_were_left_out() -> None:
    """No friction term describes what depends on both positions; the fit still takes more than half of it in."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(2)
    motion = fourier_motion(2, rng, size=0.5, seconds=6.0)
    torque = pinocchio_torque(model, *motion[1:]) + np.array([3.0, 1.0]) * np.sign(motion[2])
    torque[:, 1] += 7.0 * np.sin(9.0 * motion[1][:, 1]) * np.sin(6.3 * motion[1][:, 0])
    result = identify(dataset(model, motion, torque + 0.05 * rng.standard_normal(torque.shape)), model)
    told, seen = (result.metrics[name].relative_error[1] for name in ('held_out', 'training'))
    assert seen < 48.0 < 52.0 < told
    assert [joint.usable for joint in result.joints] == [True, False]
    assert (
        result.joints[1].reason
        == f'the model leaves {told:.0f} % of its torque unexplained in states that were left out'
    )
    feeds, simulates = (
        use.number for use in result.good_for if use.name in ('feed-forward', 'simulation')
    )  # with what is open elsewhere, in both
    assert simulates > 0.98 * feeds


@pytest.mark.slow
@pytest.mark.usefixtures('set_up_as_described')
def test_friction_that_fits_a_short_motion_gives_way_to_the_plain_model() -> None:
    """A square torque in the position: what fits it in a short recording fails in regions that are left out."""
    model, rng = RobotModel.from_urdf(TWO_LINKS), np.random.default_rng(2)
    whole = fourier_motion(2, rng, size=0.5)

    def recorded(part: slice) -> Dataset:
        motion = tuple(signal[part] for signal in whole)
        torque = pinocchio_torque(model, *motion[1:]) + np.array([3.0, 1.0]) * np.sign(motion[2])
        torque += np.array([1.0, 3.0]) * np.sign(np.sin(20.0 * motion[1])) + 0.3 * rng.standard_normal(torque.shape)
        return dataset(model, motion, torque)

    training, next_motion = recorded(slice(0, 250)), recorded(slice(250, None))
    found, plain = (
        identify(training, model, validation=next_motion, **options).metrics['validation'].relative_error_total
        for options in ({}, {'friction': 'coulomb_viscous+offset', 'estimator': 'wls'})
    )
    assert found < 1.02 * plain
