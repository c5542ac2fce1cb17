# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction sweeps: strokes cut out of what a simulated arm did, and friction that is recovered from them."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from errors_helpers import refused
from identification_helpers import dataset, fourier_motion
from scipy.signal import butter, sosfilt, sosfilt_zi
from simulation_helpers import CRANE

from robotid_ros.data import Dataset
from robotid_ros.data.strokes import FrictionStrokes, cut_strokes, is_friction_sweep
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.excitation.friction_sweep import FrictionSweepConfig, friction_sweep
from robotid_ros.friction import friction_model
from robotid_ros.identification import ESTIMATORS, identify
from robotid_ros.identification.stroke_friction import stroke_friction
from robotid_ros.model import RobotModel
from robotid_ros.simulation import JointFriction, Plant, Sensors, nominal_truth, prior_friction, simulate_trajectory

ARM = RobotModel.from_urdf(CRANE)
LAWS = ('coulomb_viscous', 'static', 'stribeck', 'daemi_heimann')
RATE = 500.0
SETTINGS = FrictionSweepConfig(sweep_levels=5, sweep_slowest=0.005, sweep_stroke_time=1.2, sweep_pause=0.2)


def law(name: str, coulomb: np.ndarray, viscous: np.ndarray) -> JointFriction:
    n = len(coulomb)
    others = {
        'coulomb_viscous': {},
        'static': {'breakaway': 0.4 * coulomb, 'breakaway_speed': np.full(n, 0.01)},
        'stribeck': {'breakaway': 0.4 * coulomb, 'stribeck_velocity': np.full(n, 0.1)},
        'daemi_heimann': {'arctan_gain': -0.3 * coulomb, 'arctan_rate': np.full(n, 8.0)},
    }
    return JointFriction(coulomb=coulomb, viscous=viscous, **others[name])


def true_parameters(name: str, friction: JointFriction) -> np.ndarray:
    columns = {
        'coulomb_viscous': (friction.coulomb, friction.viscous),
        'static': (friction.coulomb, friction.coulomb + friction.breakaway, friction.viscous),
        'stribeck': (
            friction.coulomb,
            friction.coulomb + friction.breakaway,
            friction.viscous,
            friction.stribeck_velocity,
        ),
        'daemi_heimann': (friction.coulomb, friction.viscous, friction.arctan_gain, friction.arctan_rate),
    }
    return np.stack(columns[name], axis=1)


@lru_cache
def recording(name: str) -> tuple[JointFriction, np.ndarray, np.ndarray, np.ndarray]:
    """Return the friction of a simulated arm, and times, positions and torques of its sweep."""
    pytest.importorskip('mujoco', reason='needs the sim extra')
    prior = prior_friction(ARM)
    friction = law(name, prior.coulomb, prior.viscous)
    limits = replace(ARM.limits, acceleration=np.full(3, 5.0), jerk=np.full(3, 100.0))
    sweep = friction_sweep(ARM, limits, SETTINGS)
    time = np.arange(round((sweep.reference.duration + 1.0) * RATE)) / RATE
    reference = sweep.reference.evaluate(np.clip(time - 0.5, 0.0, sweep.reference.duration))
    truth = nominal_truth(ARM, friction=friction)
    plant = Plant(truth, ARM, rate=RATE)
    plant.reset(reference[0][0])
    sensors = Sensors.typical(ARM, truth.drive_gain, effort_noise=5e-4)
    seen = sensors.measure(plant.run(*reference), np.random.default_rng(3))
    return friction, time, seen['position'], seen['effort']


@pytest.mark.slow
@pytest.mark.parametrize('name', LAWS)
def test_a_sweep_of_a_simulated_arm_gives_its_friction_within_one_percent(name: str) -> None:
    friction, time, position, torque = recording(name)
    strokes = cut_strokes(ARM.joint_names, time, position, torque)
    assert len(np.unique(strokes.stroke)) == 3 * 2 * SETTINGS.sweep_levels
    model = friction_model(name)
    found = stroke_friction(model, strokes).parameters
    for j in range(3):
        own = np.unique(np.abs(strokes.velocity[strokes.joint == j]))[:, None]
        expected = friction.torque(np.repeat(own, 3, axis=1))[:, j]
        fitted = model.of_joint(j).torque(own, found[j, None])[:, 0]
        np.testing.assert_allclose(fitted, expected, rtol=0.01)


@pytest.mark.slow
def test_the_model_takes_gravity_away_as_pairs_do_and_tells_an_offset() -> None:
    friction, time, position, torque = recording('coulomb_viscous')
    strokes = cut_strokes(ARM.joint_names, time, position, torque + np.array([0.5, -0.3, 2.0]))
    still = np.zeros_like(strokes.q)
    gravity = inverse_dynamics(ARM, strokes.q, still, still)[np.arange(len(strokes)), strokes.joint]
    model = friction_model('coulomb_viscous+offset')
    by_model, by_pairs = stroke_friction(model, strokes, gravity), stroke_friction(model, strokes)
    true = true_parameters('coulomb_viscous', friction)
    np.testing.assert_allclose(by_model.parameters[:, :2], true, rtol=0.01)
    np.testing.assert_allclose(by_pairs.parameters[:, :2], true, rtol=0.01)
    np.testing.assert_allclose(by_model.parameters[:, 2], [0.5, -0.3, 2.0], atol=4.0 * by_model.std[:, 2].max())
    assert np.isinf(by_pairs.std[:, 2]).all()
    assert (by_pairs.parameters[:, 2] == 0.0).all()
    assert np.isfinite(by_pairs.std[:, :2]).all()


def test_a_torque_that_lags_behind_is_not_taken_for_viscous_friction() -> None:
    friction, time, position, torque = recording('coulomb_viscous')
    low_pass = butter(1, 4.0, fs=RATE, output='sos')  # lags by 1 / (2 pi 4 Hz) = 40 ms at constant velocity
    late = sosfilt(low_pass, torque, axis=0, zi=sosfilt_zi(low_pass)[..., None] * torque[0])[0]
    strokes = cut_strokes(ARM.joint_names, time, position, late)
    found = stroke_friction(friction_model('coulomb_viscous'), strokes)
    true = true_parameters('coulomb_viscous', friction)
    np.testing.assert_allclose(found.parameters, true, rtol=0.03)
    assert found.delay == pytest.approx(0.040, rel=0.05)
    prompt = stroke_friction(friction_model('coulomb_viscous'), cut_strokes(ARM.joint_names, time, position, torque))
    assert abs(prompt.delay) < 0.004


def test_what_one_joint_alone_has_is_no_delay() -> None:
    """Random arms whose torque is off by a wave of its own along each stroke: errors of gravity at no delay."""
    model, speeds = friction_model('coulomb_viscous'), np.array([0.02, 0.1, 0.3, 0.6, 1.0])
    errors, deviations = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        coulomb, viscous = rng.uniform(1.0, 5.0, (2, 3))
        q, dq, tau = (np.zeros((3, 10, 16, 3)) for _ in range(3))
        for j in range(3):
            load, phase = rng.uniform(2.0, 30.0), rng.uniform(-3.0, 3.0)
            for k, v in enumerate(np.concatenate([speeds, -speeds])):
                at = np.linspace(-0.4, 0.4, 16) * np.sign(v)
                wave = 0.3 * rng.normal() * np.sin(rng.uniform(2.0, 6.0) * at + rng.uniform(-3.0, 3.0))
                q[j, k, :, j], dq[j, k, :, j] = at, v
                tau[j, k, :, j] = load * np.sin(at + phase) + coulomb[j] * np.sign(v) + viscous[j] * v + wave
        time = (5.0 * np.arange(30)[:, None] + 0.05 * np.arange(16)).ravel()
        flat = {'q': q.reshape(-1, 3), 'dq': dq.reshape(-1, 3), 'tau': tau.reshape(-1, 3)}
        found = stroke_friction(model, FrictionStrokes(joint_names=('a', 'b', 'c'), time=time, **flat))
        errors.append(found.parameters[:, 1] - viscous)
        deviations.append(found.std[:, 1])
    assert np.sqrt(np.mean(np.square(errors))) < 0.15  # 0.27 with a delay of each joint's own
    assert np.sqrt(np.mean(np.square(np.divide(errors, deviations)))) < 1.8  # 2.9


@pytest.mark.parametrize(('joints', 'delay'), [(1, 0.04), (2, 0.3)], ids=['one joint alone', 'too long'])
def test_a_delay_that_cannot_be_believed_is_in_the_deviation(joints: int, delay: float) -> None:
    """Of three joints some have gravity: one, or two whose torque lags by more than a channel can."""
    inside = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        viscous = rng.uniform(1.0, 5.0, 3)
        q, dq, tau = (np.zeros((3, 10, 16, 3)) for _ in range(3))
        for j in range(3):
            load = 20.0 * (j < joints)
            for k, v in enumerate(np.concatenate([[0.02, 0.1, 0.3, 0.6, 1.0], [-0.02, -0.1, -0.3, -0.6, -1.0]])):
                at = np.linspace(-0.4, 0.4, 16) * np.sign(v)
                q[j, k, :, j], dq[j, k, :, j] = at, v
                late = load * np.sin(at - delay * v + 0.3 * j)
                tau[j, k, :, j] = late + 2.0 * np.sign(v) + viscous[j] * v + 0.05 * rng.normal(size=16)
        time = (5.0 * np.arange(30)[:, None] + 0.05 * np.arange(16)).ravel()
        flat = {'q': q.reshape(-1, 3), 'dq': dq.reshape(-1, 3), 'tau': tau.reshape(-1, 3)}
        strokes = FrictionStrokes(joint_names=('a', 'b', 'c'), time=time, **flat)
        found = stroke_friction(friction_model('coulomb_viscous'), strokes)
        assert found.delay == 0.0
        inside.append(np.abs(found.parameters[:, 1] - viscous) < 2.0 * found.std[:, 1])
    assert np.mean(inside, axis=0).min() > 0.8


def test_strokes_with_no_partner_need_the_model() -> None:
    _, time, position, torque = recording('coulomb_viscous')
    strokes = cut_strokes(ARM.joint_names, time, position, torque)
    ahead = strokes.velocity > 0.0
    one_way = replace(strokes, **{name: getattr(strokes, name)[ahead] for name in ('time', 'q', 'dq', 'tau')})
    with pytest.raises(IdentificationError, match='partner in the opposite direction'):
        stroke_friction(friction_model('coulomb_viscous'), one_way)


def test_an_interrupted_sweep_is_no_whole_one() -> None:
    _, time, position, torque = recording('coulomb_viscous')
    strokes = cut_strokes(ARM.joint_names, time, position, torque)
    assert strokes.require_whole() is strokes
    begun = strokes.joint < 2  # stopped before the last joint's turn
    partly = replace(strokes, **{name: getattr(strokes, name)[begun] for name in ('time', 'q', 'dq', 'tau')})
    with refused(DataError, found=(ARM.joint_names[2],)):
        partly.require_whole()


def test_what_is_no_sweep_is_refused() -> None:
    time = np.arange(5000) / RATE
    still = 1e-5 * np.random.default_rng(0).normal(size=(len(time), 3))
    with pytest.raises(DataError, match='no steady stroke'):
        cut_strokes(ARM.joint_names, time, still, still)
    waves = np.sin(time[:, None] * np.array([1.0, 1.7, 2.3]))
    with pytest.raises(DataError, match='no steady stroke'):
        cut_strokes(ARM.joint_names, time, waves, waves)
    with refused(DataError, expected=1, found=2):
        FrictionStrokes(
            joint_names=('a', 'b'),
            time=np.arange(2.0),
            q=np.zeros((2, 2)),
            dq=np.array([[1, 0], [1, 1]]),
            tau=still[:2, :2],
        )


def test_a_sweep_is_told_from_an_excitation_by_its_reference() -> None:
    sweep = friction_sweep(ARM, ARM.limits, SETTINGS)
    _, velocity, _ = sweep.reference.evaluate(np.linspace(0.0, sweep.reference.duration, 2001))
    assert is_friction_sweep(velocity)
    phase = np.linspace(0.0, 6.0, 500)[:, None] * np.array([1.0, 2.0, 3.0])
    assert not is_friction_sweep(np.cos(phase))
    assert not is_friction_sweep(np.cos(phase[:, :1]))  # a single joint moves alone anyhow


@pytest.mark.slow
@pytest.mark.parametrize('name', LAWS)
def test_friction_is_recovered_with_honest_deviations(name: str) -> None:
    """Monte Carlo: 50 joints of one law with noise of their own; 95 % intervals hold the truth in 90 to 99 %."""
    rng = np.random.default_rng(11)
    joints, places = 50, np.linspace(0.0, 0.4, 8)
    friction = law(name, rng.uniform(4.0, 8.0, joints), rng.uniform(1.0, 4.0, joints))
    model = friction_model(name)
    rows: list[tuple[int, float, float]] = []
    for j in range(joints):
        for speed in np.geomspace(0.004, 2.0, 9):
            rows += [(j, speed, place) for place in places] + [(j, -speed, place) for place in places[::-1]]
    joint, velocity, place = (np.array(column) for column in zip(*rows, strict=True))
    index = np.arange(len(rows))
    dq, q = np.zeros((len(rows), joints)), np.zeros((len(rows), joints))
    dq[index, joint], q[index, joint] = velocity, place
    torque = friction.torque(dq)
    torque += 30.0 * np.cos(3.0 * q) + 0.05 * rng.normal(size=q.shape)
    strokes = FrictionStrokes(
        joint_names=tuple(f'j{j}' for j in range(joints)), time=0.1 * index, q=q, dq=dq, tau=torque
    )
    found = stroke_friction(model, strokes)
    true = true_parameters(name, friction)
    z = (found.parameters - true) / found.std
    inside = np.abs(z) < 1.96
    names = (*model.linear_names, *model.shape_names)
    assert 0.90 < inside.mean() < 0.99
    for k, each in enumerate(names):
        assert inside[:, k].mean() > 0.86, each
        assert abs(np.median(z[:, k])) < 0.35, each
    np.testing.assert_allclose(found.noise.mean(), 0.05, rtol=0.03)


@lru_cache
def excitation(name: str, seed: int) -> Dataset:
    plant = Plant(nominal_truth(ARM, friction=recording(name)[0]), ARM, rate=RATE)
    motion = fourier_motion(3, np.random.default_rng(seed), seconds=10.0, rate=50.0, size=0.6)
    run = simulate_trajectory(plant, *motion, rate=RATE)
    noise = np.random.default_rng(seed).normal(0.0, 0.3, run.torque.shape)
    return dataset(ARM, (run.time, run.position, run.velocity, run.acceleration), run.torque + noise, rate=RATE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'asked', 'estimator'),
    [(name, 'auto', 'auto') for name in LAWS]
    + [('stribeck', 'stribeck', each) for each in ESTIMATORS if each != 'auto'],
)
def test_every_estimator_takes_friction_data(name: str, asked: str, estimator: str) -> None:
    friction, time, position, torque = recording(name)
    strokes = cut_strokes(ARM.joint_names, time, position, torque)
    heavier = ARM.with_inertial(1.1 * ARM.inertial)
    found = identify(excitation(name, 1), heavier, friction=asked, estimator=estimator, friction_data=strokes)
    for j in range(3):
        own = np.unique(np.abs(strokes.velocity[strokes.joint == j]))[:, None]
        model = found.friction.of_joint(j)
        torques = [model.torque(v, found.friction_values[j, None], np.zeros_like(own))[:, 0] for v in (own, -own)]
        expected = friction.torque(np.repeat(own, 3, axis=1))[:, j]
        tolerance = 0.03 if estimator == 'bee-colony' else 0.01
        np.testing.assert_allclose(0.5 * (torques[0] - torques[1]), expected, rtol=tolerance)
    assert any('by 30 strokes of 3 joints' in str(decision) for decision in found.decisions)
    if asked == 'auto':
        assert found.friction.name == f'{name}+offset'
    assert (found.metrics['training'].match > (80.0 if estimator == 'bee-colony' else 94.0)).all()
