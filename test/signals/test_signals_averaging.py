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
from hypothesis import given, settings
from hypothesis import strategies as st
from recorder_helpers import harmonics

from robotid_ros.signals import PeriodAverage
from robotid_ros.signals.averaging import travel

PERIOD, RATE = 2.0, 250
BINS = int(PERIOD * RATE)
CHANNELS = ('position/a', 'position/b', 'torque/a', 'torque/b')


def signals(time):
    q, _, _, effort = harmonics(time, PERIOD, 2)
    return np.concatenate([q, effort], axis=1)


def average(time, values, chunk=64, **settings_):
    accumulator = PeriodAverage(period=PERIOD, bins=BINS, channels=CHANNELS, **settings_)
    for start in range(0, len(time), chunk):
        accumulator.add(time[start : start + chunk], values[start : start + chunk])
    return accumulator.finish()


def noisy(periods, rng, scale=0.01):
    time = np.arange(periods * BINS) / RATE
    return time, signals(time) + scale * rng.standard_normal((len(time), 4))


def test_clean_data_give_the_plain_mean():
    time, values = noisy(12, np.random.default_rng(1))
    result = average(time, values)
    periods = values.reshape(12, BINS, 4)[1:]
    assert result.used == tuple(range(1, 12))
    assert result.excluded == ((0, 'transient'),)
    assert np.allclose(result.mean, periods.mean(axis=0), rtol=0, atol=1e-12)
    assert result.noise_std == pytest.approx(np.sqrt(periods.var(axis=0, ddof=1).mean(axis=0)), rel=1e-9)
    assert result.averaged_noise_std == pytest.approx(result.noise_std / np.sqrt(11), rel=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(st.integers(1, 400), st.integers(0, 2))
def test_chunks_make_no_difference(chunk, transient):
    time, values = noisy(5, np.random.default_rng(2))
    whole = average(time, values, chunk=len(time), transient=transient)
    parts = average(time, values, chunk=chunk, transient=transient)
    assert whole.used == parts.used
    assert np.allclose(whole.mean, parts.mean, rtol=0, atol=1e-12)


def test_the_average_so_far_is_that_of_the_whole_periods_and_disturbs_nothing():
    time, values = noisy(9, np.random.default_rng(4))
    accumulator = PeriodAverage(period=PERIOD, bins=BINS, channels=CHANNELS)
    assert accumulator.so_far() is None
    seen = {}
    for start in range(0, len(time), 100):
        accumulator.add(time[start : start + 100], values[start : start + 100])
        if accumulator.whole not in seen and accumulator.whole:
            seen[accumulator.whole] = accumulator.so_far()
    assert sorted(seen) == list(range(1, 8))
    for count, found in seen.items():
        periods = values.reshape(9, BINS, 4)[1 : count + 1]
        assert found.used == tuple(range(1, count + 1))
        assert np.allclose(found.mean, periods.mean(axis=0), rtol=0, atol=1e-9)
    assert seen[7].averaged_noise_std == pytest.approx(0.01 / np.sqrt(7), rel=0.1)
    undisturbed = average(time, values, chunk=100)
    assert np.array_equal(accumulator.finish().mean, undisturbed.mean)


def test_outlier_periods_are_left_out_with_the_reason_and_the_average_beats_the_plain_mean():
    time, values = noisy(20, np.random.default_rng(3))
    clean = values.copy()
    spoilt = values.reshape(20, BINS, 4)
    spoilt[2, :, 1] += 0.2  # a shifted joint, among the periods that are held back
    spoilt[9, 100:140, 2] += 40.0  # a push
    spoilt[15] = spoilt[15, ::-1]  # something else altogether
    result = average(time, spoilt.reshape(-1, 4))
    assert dict(result.excluded).keys() == {0, 2, 9, 15}
    reasons = dict(result.excluded)
    assert reasons[2].startswith('position/b is off by')
    assert reasons[9].startswith('torque/a is off by')
    truth = signals(np.arange(BINS) / RATE)
    error = np.sqrt(np.mean((result.mean - truth) ** 2))
    plain = np.sqrt(np.mean((spoilt[1:].mean(axis=0) - truth) ** 2))
    ideal = np.sqrt(np.mean((clean.reshape(20, BINS, 4)[1:].mean(axis=0) - truth) ** 2))
    assert error < 0.1 * plain
    assert error < 1.2 * ideal


def test_a_reversal_that_comes_a_sample_earlier_is_no_outlier():
    rng = np.random.default_rng(4)
    time, values = noisy(15, rng)
    steps = values.reshape(15, BINS, 4)
    for period in steps:
        edge = 200 + rng.integers(-1, 2)
        period[edge:, 3] += 30.0
    result = average(time, steps.reshape(-1, 4))
    assert result.excluded == ((0, 'transient'),)


@pytest.mark.parametrize('kind', ['jitter', 'drift', 'offset'])
def test_irregular_sampling_neither_smears_the_average_nor_inflates_the_noise(kind):
    rng = np.random.default_rng(5)
    count = 40 * BINS
    time = np.arange(count) / RATE
    if kind == 'jitter':
        time = time + rng.uniform(-0.4, 0.4, count) / RATE
    elif kind == 'drift':
        time = time * (1.0 + 3e-4)  # a sample comes to lie on every phase
    else:
        time = time + 0.37 / RATE
    values = signals(time) + 1e-4 * rng.standard_normal((count, 4))
    result = average(time, values)
    truth = signals(result.time)
    # Torque has steps of nothing: all four signals are smooth, and a bin is 4 ms wide.
    assert result.noise_std[:2] == pytest.approx(1e-4, rel=0.15)
    assert np.sqrt(np.mean((result.mean - truth)[:, :2] ** 2)) < 4e-5
    naive = np.zeros((BINS, 4))
    index = np.floor(time * RATE + 0.5).astype(int) % BINS
    np.add.at(naive, index, values)
    naive /= np.bincount(index, minlength=BINS)[:, None]
    if kind == 'offset':
        assert np.sqrt(np.mean((naive - truth)[:, :2] ** 2)) > 50 * np.sqrt(np.mean((result.mean - truth)[:, :2] ** 2))


def test_slow_drift_is_followed_and_told():
    rng = np.random.default_rng(6)
    time, values = noisy(60, rng, 0.01)
    values[:, 2] += np.linspace(0.0, 1.0, len(values))  # friction that changes as the gear warms
    result = average(time, values)
    assert result.excluded == ((0, 'transient'),)
    assert 0.6 < result.drift[2] < 1.1
    assert result.drift[3] < 0.05


def test_gaps_leave_bins_empty_and_incomplete_periods_out():
    time, values = noisy(3, np.random.default_rng(7), 0.0)
    keep = np.ones(len(time), dtype=bool)
    keep[BINS + 100 : BINS + 120] = False  # the same gap in both periods that count
    keep[2 * BINS + 100 : 2 * BINS + 120] = False
    result = average(time[keep], values[keep])
    assert result.count[100:120].sum() == 0
    assert (result.count == 0).sum() == 20
    assert np.isfinite(result.mean).all()
    half = average(time[: 2 * BINS + 50], values[: 2 * BINS + 50])
    assert half.used == (1,)
    assert half.excluded[-1] == (2, 'only 10 % of its samples are there')


def test_a_signal_that_stands_still_is_averaged():
    time = np.arange(8 * BINS) / RATE
    result = average(time, np.full((len(time), 4), 1.25))
    assert len(result.used) == 7
    assert np.array_equal(result.mean, np.full((BINS, 4), 1.25))
    assert (result.noise_std == 0.0).all()


def test_nothing_usable_is_none():
    time, values = noisy(1, np.random.default_rng(8))
    assert average(time, values) is None


def test_memory_does_not_grow_with_the_periods():
    accumulator = PeriodAverage(period=PERIOD, bins=BINS, channels=CHANNELS)
    time = np.arange(BINS) / RATE
    sizes = []
    for k in range(40):
        accumulator.add(time + k * PERIOD, signals(time))
        held = sum(values.nbytes for _, values, _ in accumulator._held)
        sizes.append(held + accumulator._open.nbytes + accumulator._mean.nbytes + accumulator._recent.nbytes)
    assert max(sizes[6:]) <= max(sizes[:6])


def test_a_period_in_which_the_arm_stands_although_the_reference_moves_is_left_out() -> None:
    """A run that is stopped, and the rest behind it: with two good periods no vote between them could tell."""
    period, rate = 4.0, 250.0
    time = np.arange(0.0, 6.0 * period, 1.0 / rate)

    def angle(t: np.ndarray) -> np.ndarray:
        return np.stack([np.sin(2.0 * np.pi * t / period), 0.3 * np.cos(4.0 * np.pi * t / period)], axis=1)

    place = np.arange(0.0, 1.0, 0.005)
    asked = travel(place, angle(place * period))
    for stop, late, used in ((3.0, 0.0, (1, 2)), (3.8, 0.0, (1, 2)), (3.8, 0.1, (1, 2)), (6.0, 0.3, (1, 2, 3, 4, 5))):
        position = angle(np.minimum(time - late, stop * period))
        noisy = np.concatenate([position, position], axis=1) + np.random.default_rng(0).normal(
            0.0, 1e-3, (len(time), 4)
        )
        average = PeriodAverage(period=period, bins=1000, channels=tuple('abcd'), travel=asked, moving=2)
        average.add(time, noisy)
        found = average.finish()
        assert found is not None
        assert found.used == used
        assert np.abs(found.mean[:, :2] - angle(found.time - late)).max() < 0.01
        assert all('the arm stands' in reason for number, reason in found.excluded if number >= 3)
