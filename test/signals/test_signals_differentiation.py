# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorder_helpers import harmonics

from robotid_ros.data.dataset import EvenRecording
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.signals import (
    PeriodAverage,
    choose_harmonics,
    fit_fourier,
    guarded_smoothing,
    noise_of_one_period,
)

QUARTIC = st.lists(st.floats(-2, 2), min_size=5, max_size=5)


@given(QUARTIC, st.sampled_from(['central', 'savitzky-golay']))
def test_quartics_are_differentiated_exactly_also_at_the_ends(coefficients, differentiation):
    time = np.linspace(-1.0, 1.0, 41)
    polynomial = np.polynomial.Polynomial(coefficients)
    values = polynomial(time)[:, None]
    even = EvenRecording(
        runs=(Recording(joint_names=('a',), time=time, position=values, effort=values),),
        rate=1.0 / (time[1] - time[0]),
        differentiation=differentiation,
        trimmed=0.0,
    )
    found = even.filtered(even.rate)
    assert np.allclose(found.dq[:, 0], polynomial.deriv(1)(time), rtol=0, atol=1e-9)
    assert np.allclose(found.ddq[:, 0], polynomial.deriv(2)(time), rtol=0, atol=1e-9)


def test_a_run_shorter_than_the_window_of_the_derivative_is_refused():
    still = np.zeros((40, 1))
    run = Recording(joint_names=('a',), time=np.arange(40.0), position=still, effort=still)
    even = EvenRecording(runs=(run,), rate=1.0, differentiation='savitzky-golay', trimmed=0.0)
    with pytest.raises(DataError, match='at least 51 samples without a gap'):
        even.filtered(0.01)


def test_fourier_fit_returns_offset_coefficients_and_analytic_derivatives():
    rng = np.random.default_rng(1)
    time = np.sort(rng.uniform(0.0, 4.0, 300))  # irregular
    q, dq, ddq, _ = harmonics(time, 2.0)
    fit = fit_fourier(time, q + 0.3, 0.5, 3)
    assert np.allclose(fit.offset, 0.3, atol=1e-12)
    for found, exact in zip(fit.evaluate(time), (q + 0.3, dq, ddq), strict=True):
        assert np.allclose(found, exact, rtol=0, atol=1e-10)
    assert (fit.residual_std < 1e-12).all()


def test_fourier_fit_residual_is_the_noise():
    rng = np.random.default_rng(2)
    time = np.arange(2000) / 500.0
    q = harmonics(time, 4.0)[0]
    fit = fit_fourier(time, q + 0.01 * rng.standard_normal(q.shape), 0.25, 20)
    assert fit.residual_std == pytest.approx(0.01, rel=0.06)


def test_fourier_weights_leave_samples_out():
    time = np.arange(400) / 100.0
    q = harmonics(time, 4.0)[0]
    spoilt, weights = q.copy(), np.ones(400)
    spoilt[100:150] += 5.0
    weights[100:150] = 0.0
    assert np.allclose(fit_fourier(time, spoilt, 0.25, 3, weights).evaluate(time)[0], q, atol=1e-10)


def test_fourier_fit_refuses_what_it_cannot_tell():
    with pytest.raises(DataError, match='7 coefficients need as many samples, got 5'):
        fit_fourier(np.arange(5.0), np.zeros((5, 1)), 1.0, 3)
    with pytest.raises(DataError, match='do not tell 3 harmonics'):
        fit_fourier(np.arange(50) / 10.0, np.zeros((50, 1)), 5.0, 3)  # ten samples a second, harmonics of 5 Hz


def test_harmonics_are_those_that_stand_out():
    rng = np.random.default_rng(3)
    time = np.arange(5000) / 500.0
    q = harmonics(time, 10.0)[0]
    assert choose_harmonics(q + 1e-4 * rng.standard_normal(q.shape), np.full(3, 1e-4), 10.0) == 3
    assert choose_harmonics(q, np.zeros(3), 10.0) == 3
    assert choose_harmonics(np.full((500, 2), 0.4), np.zeros(2), 10.0) == 1


def test_noise_is_told_from_a_single_period():
    rng = np.random.default_rng(5)
    time = np.arange(5000) / 500.0
    level = np.array([1e-5, 2e-4, 3e-3])
    q = harmonics(time, 10.0)[0]
    noisy = q + level * rng.standard_normal(q.shape)
    assert noise_of_one_period(noisy) == pytest.approx(level, rel=0.1)
    assert (noise_of_one_period(q) < 1e-12).all()
    assert (noise_of_one_period(np.full((500, 2), 0.4)) < 1e-15).all()
    assert (noise_of_one_period(noisy[:9]) == 0.0).all()
    assert choose_harmonics(noisy, noise_of_one_period(noisy), 10.0) == 3


def test_acceleration_is_a_hundred_times_better_than_central_differences_of_the_raw_signal():
    """50 periods of 25 s at 200 Hz with 1e-4 rad of noise, as in the method this follows."""
    period, periods, rate = 25.0, 50, 200
    rng = np.random.default_rng(4)
    per_period = int(period * rate)
    average = PeriodAverage(period=period, bins=per_period, channels=('a', 'b', 'c'), transient=0)
    time = np.arange(per_period) / rate
    q, _, ddq, _ = harmonics(time, period)
    for k in range(periods):
        raw = q + 1e-4 * rng.standard_normal(q.shape)
        average.add(time + k * period, raw)
    result = average.finish()
    smoothed = guarded_smoothing(result.mean, 1, 1.0, periodic=True)[0]
    count = choose_harmonics(smoothed, result.averaged_noise_std, period)
    found = fit_fourier(result.time, smoothed, 1.0 / period, count).evaluate(result.time)[2]
    plain = (raw[2:] - 2.0 * raw[1:-1] + raw[:-2]) * rate**2
    error, anchor = np.std(found - ddq), np.std(plain - ddq[1:-1])
    assert error < anchor / 100.0
