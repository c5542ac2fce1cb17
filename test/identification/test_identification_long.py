# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Long recordings: choices look at stretches of them, the fit takes all that a low-pass does not make redundant."""

import numpy as np
import pytest
from identification_helpers import TWO_LINKS, pinocchio_torque

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset, Recording, process_recording
from robotid_ros.dynamics import base_parameters
from robotid_ros.friction import friction_model
from robotid_ros.identification import TorquePredictor, identify, information, model_choice
from robotid_ros.identification.samples import evenly_weighted
from robotid_ros.model import RobotModel

ARM = RobotModel.from_urdf(TWO_LINKS)


def free_motion(seed: int, seconds: float, rate: float) -> tuple[Array, Array, Array, Array]:
    """Return times, positions, velocities and accelerations of sines without a common period."""
    rng = np.random.default_rng(seed)
    omega, phase = 2.0 * np.pi * rng.uniform(0.05, 0.5, (2, 5)), rng.uniform(0.0, 2.0 * np.pi, (2, 5))
    time = np.arange(int(seconds * rate)) / rate
    angle = time[:, None, None] * omega + phase
    orders = [np.sum(0.25 * omega**k * np.sin(angle + 0.5 * np.pi * k), axis=2) for k in range(3)]
    return time, orders[0], orders[1], orders[2]


def recorded(seed: int, seconds: float, rate: float = 500.0) -> Recording:
    """Return a recording of the arm with friction and noise."""
    time, q, dq, ddq = free_motion(seed, seconds, rate)
    rng = np.random.default_rng(seed + 1)
    torque = pinocchio_torque(ARM, q, dq, ddq) + 0.8 * np.tanh(dq / 0.02) + 0.5 * dq
    effort = torque + 0.1 * rng.standard_normal(q.shape)
    return Recording(joint_names=ARM.joint_names, time=time, position=q, effort=effort)


@pytest.fixture(scope='module')
def long() -> Dataset:
    """Return two minutes."""
    return process_recording(recorded(1, 120.0))


@pytest.mark.slow
def test_a_long_recording_gives_the_torque_of_another_motion(long: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_choice, '_MOST_SAMPLES', 10_000)  # a long one takes minutes
    result = identify(long, ARM)
    assert result.usable, result.reason
    other = process_recording(recorded(2, 30.0))
    _, q, dq, ddq = free_motion(2, 30.0, 500.0)
    truth = pinocchio_torque(ARM, q, dq, ddq) + 0.8 * np.tanh(dq / 0.02) + 0.5 * dq
    predictor = TorquePredictor(ARM, result)
    error = predictor.metrics(predictor.prepared([other])).rmse
    assert (error > 0.09).all()  # the noise is 0.1
    assert (error < 0.1 + 0.01 * np.abs(truth).max(axis=0)).all()


def test_stretches_are_spread_over_the_recording_and_are_as_recorded(long: Dataset) -> None:
    some = long.excerpts(40.0, 8)
    assert some.unfiltered is not None
    assert len(some.sources) == len(some.unfiltered.runs) == 8
    assert len(some) == pytest.approx(40.0 * long.rate, rel=0.01)
    assert (some.time[0], some.time[-1]) == (long.time[0], pytest.approx(long.time[-1], abs=0.1))
    for part in some.trajectories():
        assert len(part) == pytest.approx(5.0 * long.rate, rel=0.01)
        rows = np.searchsorted(long.time, part.time)
        np.testing.assert_array_equal(part.tau, long.tau[rows])
    assert long.excerpts(400.0, 8) is long


def test_samples_that_are_left_out_by_the_filter_are_those_that_are_left_out_behind_it(long: Dataset) -> None:
    assert long.unfiltered is not None
    all_, some = (long.unfiltered.filtered(4.0, every=every) for every in (1, 5))
    assert some.rate == long.rate / 5
    for name in ('time', 'q', 'dq', 'ddq', 'tau', 'tau_filtered'):
        np.testing.assert_array_equal(getattr(some, name), getattr(all_, name)[::5])


def test_gram_matrices_do_not_depend_on_what_is_kept(long: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    base, samples = base_parameters(ARM), evenly_weighted([long.excerpts(20.0, 4)], ARM, 2.0).coarse()
    friction, load = friction_model('coulomb_viscous+load'), samples.target

    def gram(limit: float) -> tuple[Array, Array]:
        monkeypatch.setattr(information, '_KEEP_BYTES', limit)
        rows = information.Rows(base, samples)
        first, again = (rows.information(friction, np.zeros((2, 0)), load).gram for _ in range(2))
        np.testing.assert_array_equal(first, again)
        return first, np.concatenate([piece.rigid for piece in rows.pieces()])

    kept, computed = gram(1e9), gram(0.0)
    np.testing.assert_array_equal(kept[0], computed[0])
    np.testing.assert_array_equal(kept[1], computed[1])
    direct = samples.filtered(base.regressor(samples.q, samples.dq, samples.ddq))
    np.testing.assert_allclose(kept[1], direct, rtol=1e-9, atol=1e-9)


def test_columns_that_are_zero_pass_a_low_pass_as_they_are(long: Dataset) -> None:
    """Friction that a joint does not have, or that no joint has."""
    samples = evenly_weighted([long], ARM, 3.0).coarse()
    assert not samples.open
    values = np.zeros((len(samples), 2, 3))
    assert np.array_equal(samples.filtered(values), values)
    values[:, 1, 2] = samples.dq[:, 1]
    passed = samples.filtered(values)
    assert np.array_equal(passed[:, 0], values[:, 0])
    np.testing.assert_allclose(passed[:, 1, 2], samples.filtered(samples.dq)[:, 1], rtol=0, atol=1e-12)
