# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import butter, sosfiltfilt

from robotid_ros.errors import DataError
from robotid_ros.signals import choose_cutoff, zero_phase_low_pass


def gain_and_delay(rate, frequency, cutoff, order=4):
    """Return gain and phase of the filter at one frequency, from the middle of a long sine."""
    time = np.arange(int(200 * rate / cutoff)) / rate
    out = zero_phase_low_pass(np.sin(2 * np.pi * frequency * time), rate, cutoff, order)
    inner = slice(len(time) // 4, 3 * len(time) // 4)
    columns = np.stack([np.sin(2 * np.pi * frequency * time), np.cos(2 * np.pi * frequency * time)], axis=1)[inner]
    sine, cosine = np.linalg.lstsq(columns, out[inner], rcond=None)[0]
    return np.hypot(sine, cosine), np.arctan2(cosine, sine)


@settings(deadline=None, max_examples=25)
@given(st.floats(0.01, 0.45), st.integers(1, 6))
def test_minus_three_decibels_lie_where_they_were_asked_for(share, order):
    rate = 125.0
    gain, phase = gain_and_delay(rate, share * rate, share * rate, order)
    assert gain == pytest.approx(np.sqrt(0.5), abs=2e-4)
    assert abs(phase) < 1e-3


def test_passband_and_stopband():
    assert gain_and_delay(1000.0, 5.0, 20.0)[0] == pytest.approx(1.0, abs=1e-4)
    assert gain_and_delay(1000.0, 80.0, 20.0)[0] < 1e-4


def test_a_line_passes_up_to_its_ends():
    line = np.linspace(3.0, -5.0, 400)
    assert np.allclose(zero_phase_low_pass(line, 100.0, 4.0), line, rtol=0, atol=1e-12)


@pytest.mark.parametrize(('count', 'cutoff'), [(4000, 3.0), (3001, 20.0), (700, 8.0)])
def test_it_is_what_scipy_filters_forwards_and_backwards(count, cutoff):
    walk = np.cumsum(np.random.default_rng(count).standard_normal((count, 3, 2)), axis=0)
    warped = np.tan(np.pi * cutoff / 500.0) * (np.sqrt(2.0) - 1.0) ** (-0.125)  # each pass alone is wider
    sections = butter(4, 2.0 / np.pi * np.arctan(warped), output='sos')
    period = int(500.0 / cutoff)
    expected = sosfiltfilt(sections, walk, axis=0, padlen=3 * period)
    found = zero_phase_low_pass(walk, 500.0, cutoff)
    scale = np.std(walk)
    assert np.abs(found - expected).max() < 5e-3 * scale
    assert np.abs(found - expected)[2 * period : -2 * period].max() < 1e-4 * scale
    along = zero_phase_low_pass(np.moveaxis(walk, 0, 1), 500.0, cutoff, axis=1)
    np.testing.assert_array_equal(np.moveaxis(along, 1, 0), found)
    single = zero_phase_low_pass(walk.astype(np.float32), 500.0, cutoff)
    assert single.dtype == np.float32
    assert np.abs(single - found).max() < 1e-4 * scale


@pytest.mark.parametrize('cutoff', [0.0, -1.0, 50.0, 80.0])
def test_cutoff_out_of_range_is_refused(cutoff):
    with pytest.raises(DataError, match='between 0 and half the rate, 50 Hz'):
        zero_phase_low_pass(np.zeros(100), 100.0, cutoff)


def motion(time):
    return np.stack([np.sin(2 * np.pi * f * time + f) for f in (0.2, 0.5, 1.0)], axis=1)


@pytest.mark.parametrize('noise', [0.0, 1e-6, 1e-4])
def test_cutoff_lets_the_motion_through_and_finds_the_noise(noise):
    rng = np.random.default_rng(4)
    time = np.arange(20000) / 500.0
    q = motion(time)
    found = choose_cutoff(q + noise * rng.standard_normal(q.shape), 500.0)
    assert found.noise_std == pytest.approx(noise, rel=0.1, abs=1e-12)
    assert 1.0 <= found.motion[2] <= 1.3
    assert 2.0 <= found.cutoff <= 6.5
    filtered = zero_phase_low_pass(q, 500.0, found.cutoff)
    assert np.abs(filtered - q)[500:-500].max() < 5e-3


def test_more_noise_never_raises_the_cutoff():
    rng = np.random.default_rng(5)
    time = np.arange(10000) / 500.0
    white = rng.standard_normal((len(time), 3))
    cutoffs = [choose_cutoff(motion(time) + s * white, 500.0).cutoff for s in (1e-6, 1e-4, 1e-3, 3e-3)]
    assert all(a >= b - 0.3 for a, b in itertools.pairwise(cutoffs))
    assert cutoffs[-1] < cutoffs[0]


@pytest.mark.parametrize('noise', [0.0, 1e-5])
def test_an_arm_that_stands_still_has_no_bandwidth(noise):
    q = 0.7 + noise * np.random.default_rng(6).standard_normal((4000, 2))
    found = choose_cutoff(q, 1000.0)
    assert not found.moving.any()
    assert found.cutoff == 100.0
