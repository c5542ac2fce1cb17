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
from scipy.signal import savgol_filter, welch

from robotid_ros.errors import DataError
from robotid_ros.signals import guarded_smoothing
from robotid_ros.signals.filtering import hann, polynomial_filter, power_spectrum


def five_point_cubic(x, periodic=False):
    """Return one pass without a guard."""
    return guarded_smoothing(x, 1, 1e9, periodic)[0]


@given(st.lists(st.floats(-3, 3), min_size=4, max_size=4), st.integers(5, 40))
def test_cubics_pass_unchanged_also_at_both_ends(coefficients, count):
    x = np.polynomial.polynomial.polyval(np.linspace(-1.0, 1.0, count), coefficients)
    assert np.allclose(five_point_cubic(x), x, rtol=0, atol=1e-12)


def test_a_quartic_is_changed():
    x = np.linspace(-1.0, 1.0, 30) ** 4
    assert np.abs(five_point_cubic(x) - x).max() > 1e-7


def test_periodic_smoothing_has_no_ends():
    x = np.random.default_rng(2).standard_normal(40)
    turned = np.roll(five_point_cubic(x, periodic=True), 7)
    assert np.allclose(five_point_cubic(np.roll(x, 7), periodic=True), turned, rtol=0, atol=1e-14)


def test_fewer_than_five_samples_are_refused():
    with pytest.raises(DataError, match='at least 5 samples, got 4'):
        five_point_cubic(np.zeros(4))


def test_guard_stops_each_column_by_itself():
    rng = np.random.default_rng(3)
    time = np.linspace(0.0, 1.0, 200)
    smooth = np.sin(2 * np.pi * time) + 0.01 * rng.standard_normal(200)
    spiky = np.zeros(200)
    spiky[100] = 1.0
    values = np.stack([smooth, spiky], axis=1)
    smoothed, applied = guarded_smoothing(values, passes=4, guard=0.1)
    assert applied.tolist() == [4, 0]
    assert np.array_equal(smoothed[:, 1], spiky)
    expected = smooth
    for _ in range(4):
        expected = savgol_filter(expected, 5, 3, mode='interp')
    assert np.allclose(smoothed[:, 0], expected, rtol=0, atol=1e-13)


@given(st.integers(0, 6), st.floats(0.0, 0.3))
def test_no_sample_moves_further_than_the_guard_allows(passes, guard):
    x = np.random.default_rng(passes).standard_normal((60, 2))
    smoothed, _ = guarded_smoothing(x, passes, guard)
    assert (np.abs(smoothed - x).max(axis=0) <= guard * np.ptp(x, axis=0) + 1e-12).all()


@given(st.integers(2, 60), st.integers(0, 4), st.integers(0, 2), st.integers(0, 50), st.booleans())
def test_polynomials_are_those_of_scipy(half, degree, derivative, more, periodic):
    window = 2 * half + 1
    x = np.random.default_rng(more).standard_normal((window + more, 2))
    mode = 'wrap' if periodic else 'interp'
    expected = savgol_filter(x, window, degree, deriv=derivative, delta=0.002, axis=0, mode=mode)
    found = polynomial_filter(x, window, degree, derivative=derivative, rate=500.0, periodic=periodic)
    assert np.allclose(found, expected, rtol=0, atol=1e-7 * max(np.abs(expected).max(), 1.0))


@given(st.integers(8, 300), st.integers(0, 700), st.booleans())
def test_spectra_are_those_of_scipy(size, more, centred):
    x = 3.0 + np.random.default_rng(more).standard_normal(size + more)
    frequency, power = welch(x, 125.0, nperseg=size, detrend='constant' if centred else False)
    found = power_spectrum(x, 125.0, hann(size), centred=centred)
    assert np.allclose(found[0], frequency, rtol=1e-12)
    assert np.allclose(found[1], power, rtol=0, atol=1e-12 * power.max())
