# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction that builds up along the way: its closed form, a solver of its equation, what an identification finds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from identification_helpers import TWO_LINKS, dataset, fourier_motion, pinocchio_torque
from scipy.integrate import solve_ivp

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.friction.terms import sliding
from robotid_ros.identification import IdentificationResult, TorquePredictor, identify
from robotid_ros.model import RobotModel

MODEL = RobotModel.from_urdf(TWO_LINKS)


def test_it_builds_up_and_turns_round_as_its_closed_form_says() -> None:
    away = np.linspace(0.0, 0.2, 57)[:, None]
    back = 0.2 - np.linspace(0.0, 0.1, 91)[1:, None]
    still = np.full((40, 1), 0.1)
    again = 0.1 + np.linspace(0.0, 0.03, 31)[1:, None]
    home = 0.13 - np.linspace(0.0, 0.02, 21)[1:, None]
    distance, motion = np.array([0.03]), np.concatenate([away, back, still, again, home])
    z = sliding(motion, distance, [(0, len(motion))])
    np.testing.assert_allclose(z[:57], 1.0 - np.exp(-away / distance), atol=1e-12)
    np.testing.assert_allclose(z[57:147], -1.0 + (1.0 + z[56]) * np.exp(-(0.2 - back) / distance), atol=1e-12)
    np.testing.assert_array_equal(z[147:187], np.broadcast_to(z[146], (40, 1)))
    np.testing.assert_allclose(z[187:217], 1.0 - (1.0 - z[146]) * np.exp(-(again - 0.1) / distance), atol=1e-12)
    np.testing.assert_allclose(z[217:], -1.0 + (1.0 + z[216]) * np.exp(-(0.13 - home) / distance), atol=1e-12)
    several = sliding(motion, np.array([[0.03, 0.1]]), [(0, len(motion))], np.arange(0, len(motion), 5))
    np.testing.assert_array_equal(several[:, 0, :1], z[::5])


def test_it_solves_its_equation_between_reversals_at_any_speed() -> None:
    def q(t: Array) -> Array:
        return np.asarray(0.5 * np.sin(t) + 0.2 * np.sin(2.7 * t))

    def rate(t: float, z: Array) -> Array:
        v = 0.5 * np.cos(t) + 0.54 * np.cos(2.7 * t)
        return np.asarray((v - z * abs(v)) / 0.05)

    time = np.linspace(0.0, 10.0, 4001)
    expected = solve_ivp(rate, (0.0, 10.0), [0.0], t_eval=time, rtol=1e-9, atol=1e-9, max_step=2e-3).y[0]
    found = sliding(q(time)[:, None], np.array([0.05]), [(0, len(time))])[:, 0]
    np.testing.assert_allclose(found, expected, atol=2e-4)  # a reversal between two samples


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**31), count=st.integers(2, 300), distance=st.floats(1e-6, 1e3))
def test_it_is_a_part_of_the_friction_and_forgets_what_was_before_a_run(seed: int, count: int, distance: float) -> None:
    q = np.random.default_rng(seed).normal(size=(count, 3)).cumsum(axis=0)
    spread = distance * np.array([1.0, 10.0, 0.1])
    z = sliding(q, spread, [(0, count // 2), (count // 2, count)])
    assert (np.abs(z) <= 1.0).all()
    np.testing.assert_allclose(z[count // 2 :], sliding(q[count // 2 :], spread, [(0, count - count // 2)]), atol=1e-15)
    scaled = sliding(7.0 * q, 7.0 * spread, [(0, count // 2), (count // 2, count)])
    np.testing.assert_allclose(scaled, z, atol=1e-9)


def bristles(q: Array, distance: float) -> Array:
    """Return z by Euler's method in forty steps between two samples, which is not how the package solves it."""
    fine = np.interp(np.arange(40 * (len(q) - 1) + 1) / 40.0, np.arange(len(q)), q)
    z, result = 0.0, [0.0]
    for k, step in enumerate(np.diff(fine).tolist()):
        z += (step - z * abs(step)) / distance
        if (k + 1) % 40 == 0:
            result.append(z)
    return np.array(result)


def recorded(seed: int, distance: float, other: float = 0.0) -> Dataset:
    """Return a recording of an arm whose first joint has such friction, the second too or an exact sign."""
    rng = np.random.default_rng(seed)
    motion = fourier_motion(2, rng, size=0.6, seconds=12.0)
    q, dq = motion[1], motion[2]
    torque = pinocchio_torque(MODEL, *motion[1:]) + 0.4 * dq
    torque[:, 0] += 3.0 * bristles(q[:, 0], distance)
    torque[:, 1] += 1.0 * (bristles(q[:, 1], other) if other else np.sign(dq[:, 1]))
    return dataset(MODEL, motion, torque + 0.02 * rng.standard_normal(q.shape))


@pytest.mark.slow
@pytest.mark.parametrize('distance', [0.006, 0.02])
@pytest.mark.usefixtures('set_up_as_described')
def test_the_identification_describes_it_over_any_distance(distance: float) -> None:
    training, validation = recorded(1, distance), recorded(2, distance)
    result = identify([training], MODEL, validation=[validation])
    assert result.friction.presliding is not None
    named = identify([training], MODEL, validation=[validation], friction='coulomb_viscous+offset')
    assert named.friction.presliding is None
    error, other = (each.metrics['validation'].rmse[0] for each in (result, named))
    assert error < 0.5 * other
    assert (result.metrics['validation'].rmse < 0.15).all()  # the noise is 0.02
    again = IdentificationResult.from_yaml(result.to_yaml())
    np.testing.assert_allclose(again.friction.presliding, result.friction.presliding)
    predictor = TorquePredictor(MODEL, again)
    prepared = predictor.prepared([validation])
    np.testing.assert_allclose(predictor.metrics(prepared).rmse, result.metrics['validation'].rmse, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
@pytest.mark.usefixtures('set_up_as_described')
def test_friction_that_builds_up_is_neither_late_nor_slow(seed: int) -> None:
    """Beside friction without a past, a delay and 0.8 Hz describe it: 0.2 to 0.6 N m on another motion."""
    distances = np.exp(np.random.default_rng(seed).uniform(np.log(0.01), np.log(0.06), 2))
    training, validation = (recorded(10 * seed + k, *distances) for k in range(2))
    result = identify([training], MODEL, validation=[validation])
    assert (result.delay, result.torque_bandwidth) == (0.0, None)
    assert (result.metrics['validation'].rmse < 0.15).all()  # the noise is 0.02


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
@pytest.mark.usefixtures('set_up_as_described')
def test_friction_that_turns_late_leaves_inertia_and_viscous_friction_as_they_are(seed: int) -> None:
    """A link behind a flexible gear reverses after its motor: of the torque, friction alone is late.

    A delay of the whole torque would describe the reversals as well, and take the inertia's place.
    """
    rng = np.random.default_rng(seed)
    lag, arm = rng.uniform(0.008, 0.03), replace(MODEL, rotor_inertia=rng.uniform(0.5, 1.5, 2))

    def late(seed: int) -> Dataset:
        now, before = (
            fourier_motion(2, np.random.default_rng(seed), size=0.6, seconds=12.0, rate=250.0, begin=begin)
            for begin in (0.0, -lag)
        )
        torque = pinocchio_torque(arm, *now[1:]) + np.array([3.0, 2.0]) * np.tanh(before[2] / 0.003) + 6.0 * now[2]
        return dataset(MODEL, now, torque + 0.02 * rng.standard_normal(torque.shape), rate=250.0)

    training, validation = late(2 * seed), late(2 * seed + 1)
    result = identify([training], MODEL, validation=[validation])
    assert abs(result.delay) < 0.002
    assert result.friction.lag == pytest.approx(lag, rel=0.4)
    assert (result.metrics['validation'].rmse < 0.3).all()  # of 3 and 2 N m
    again = IdentificationResult.from_yaml(result.to_yaml())
    assert again.friction.lag == result.friction.lag
    predictor = TorquePredictor(MODEL, again)
    np.testing.assert_allclose(predictor.metrics(validation).rmse, result.metrics['validation'].rmse, rtol=1e-4)
    still, one = np.zeros((2, 2)), np.eye(2)
    inertia = np.diag(predictor.rigid_torque(still, still, one) - predictor.rigid_torque(still, still, still))
    expected = np.diag(pinocchio_torque(arm, still, still, one) - pinocchio_torque(arm, still, still, still))
    np.testing.assert_allclose(inertia, expected, atol=0.02)  # off by up to 0.13 with a delay
    friction = predictor.friction_torque(np.array([[0.4, 0.4], [1.0, 1.0]]))
    np.testing.assert_allclose(np.diff(friction, axis=0) / 0.6, 6.0, rtol=0.05)
