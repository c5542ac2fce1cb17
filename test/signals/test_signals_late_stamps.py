# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Times of joint states whose simulated clock came late, against the steps of a simulation that is known."""

import warnings

import numpy as np
import pytest

from robotid_ros.signals.sample_times import (
    LateStamps,
    late_stamps_remark,
    sample_times,
    velocity_remark,
    velocity_share,
)

MS = 1_000_000
START = 5_000 * MS


def simulation(rng, steps=6000, joints=3):
    """Return position and velocity after each step of a semi-implicit integration, with a rest in the middle."""
    time = 1e-3 * np.arange(steps)
    velocity = np.sin(2.0 * np.pi * (0.3 + 0.2 * np.arange(joints)) * time[:, None]) + 0.01 * rng.normal(
        size=(steps, joints)
    )
    velocity[steps // 2 : steps // 2 + 400] = 0.0
    return 1e-3 * np.cumsum(velocity, axis=0), velocity


def clock(rng, steps, late):
    """Return the time that has arrived at each step: in time now and then, up to ``late`` steps behind else."""
    known = np.arange(steps)
    k = 0
    while k < steps:
        stall = int(rng.integers(1, late + 1))
        known[k : k + stall] = k
        k += stall
    return START + MS * known


def corrected(stamp, position, velocity, chunk):
    late = LateStamps()
    parts = [
        late.correct(stamp[k : k + chunk], position[k : k + chunk], velocity[k : k + chunk])
        for k in range(0, len(stamp), chunk)
    ]
    return np.concatenate(parts), late


@pytest.mark.parametrize(
    ('seed', 'late', 'lost', 'chunk'), [(1, 2, 0.0, 40), (2, 5, 0.1, 900), (3, 40, 0.3, 250), (4, 12, 0.4, 77)]
)
def test_every_message_gets_the_time_of_its_step(seed, late, lost, chunk) -> None:
    rng = np.random.default_rng(seed)
    position, velocity = simulation(rng)
    stamp = clock(rng, len(position), late)
    kept = np.flatnonzero(rng.random(len(position)) >= lost)
    time, found = corrected(stamp[kept], position[kept], velocity[kept], chunk)
    true = START + MS * kept
    assert (time <= true).mean() > 0.99  # hardly ever ahead
    after = kept > 1500  # once the motion has shown that steps count
    moving = after & ((kept < 3000) | (kept > 3500 + 2 * late))  # at rest only the stamps tell
    assert (np.diff(time[moving]) > 0).all()
    assert (time[moving] == true[moving]).mean() > 0.95
    assert np.abs(time[moving] - true[moving]).max() <= late * MS
    assert found.moved > 0
    assert found.latest <= 1e-3 * (late + 1)
    assert f'up to {1e3 * found.latest:.0f} ms' in late_stamps_remark(
        {'samples': len(kept), 'late_stamps': found.moved, 'latest_stamp': found.latest}
    )


@pytest.mark.parametrize('chunk', [50, 700])
def test_a_controller_at_half_the_rate_of_the_physics(chunk) -> None:
    rng = np.random.default_rng(1)
    position, velocity = simulation(rng)
    velocity = np.repeat(velocity[::2], 2, axis=0)[: len(velocity)]
    position = 1e-3 * np.cumsum(velocity, axis=0)
    kept = np.arange(1, len(position), 2)
    stamp = clock(rng, len(position), 9)[kept]
    time, found = corrected(stamp, position[kept], velocity[kept], chunk)
    assert found.moved > 0
    moving = (kept > 2000) & ((kept < 3000) | (kept > 3600))
    assert (time[moving] == START + MS * kept[moving]).mean() > 0.99


def test_stamps_of_a_real_arm_stay_as_they_are() -> None:
    rng = np.random.default_rng(2)
    time = 0.008 * np.arange(4000)
    velocity = np.stack([np.cos(time), np.sin(2.0 * time)], axis=1)
    position = np.stack([np.sin(time), -0.5 * np.cos(2.0 * time)], axis=1)
    scattered = np.round(1e9 * (time + rng.normal(0.0, 3e-4, len(time)))).astype(np.int64) + START
    sent_twice = np.repeat(scattered, 2)[:4000]
    rounded = np.round(time * 100.0).astype(np.int64) * 10 * MS + START  # 125 Hz written with hundredths of a second
    for stamp in (scattered, sent_twice, rounded):
        result, found = corrected(stamp, position, velocity, 300)
        assert result is not None
        assert (result == stamp).all()
        assert found.moved == 0


def test_no_velocities_no_change_and_a_world_that_is_reset() -> None:
    rng = np.random.default_rng(3)
    position, velocity = simulation(rng, 3000)
    stamp = clock(rng, 3000, 6)
    time, found = corrected(stamp, position, np.full_like(velocity, np.nan), 250)
    assert (time == stamp).all()
    assert found.moved == 0
    twice = np.concatenate([stamp, stamp])
    time, _ = corrected(twice, np.tile(position, (2, 1)), np.tile(velocity, (2, 1)), 250)
    true = START + MS * np.arange(3000)
    assert np.abs(time[3000:] - true).max() <= 6 * MS
    assert (time[3010:4400] == true[10:1400]).mean() > 0.99


def test_many_stamps_that_repeat_and_are_left_out_are_said():
    rng = np.random.default_rng(4)
    repeated = int(rng.integers(100, 900))
    assert f'{repeated / 10:.0f} % of the stamps repeat' in late_stamps_remark({'samples': 1000, 'repeated': repeated})
    assert late_stamps_remark({'samples': 1000, 'repeated': 40}) == late_stamps_remark({}) == ''


def test_messages_that_a_real_arm_sends_twice_are_no_late_clock() -> None:
    rng = np.random.default_rng(8)
    time = 5e-3 * np.arange(4000)
    position, velocity = np.sin(time)[:, None], np.cos(time)[:, None]
    row = np.sort(np.concatenate([np.arange(4000), rng.choice(4000, 300, replace=False)]))
    stamp = START + 5 * MS * row
    for chunk in (50, 4300):
        found, late = corrected(stamp, position[row], velocity[row], chunk)
        assert late.moved == 0
        assert np.array_equal(found, stamp)


def test_times_of_samples_increase_whatever_the_stamps_are() -> None:
    """Stamps a nanosecond to years apart, and positions of any size, or none that moves."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(2, 400))
        steps = [
            rng.exponential(1.0, count),
            10.0 ** rng.uniform(-9.0, 9.0, count),
            np.where(rng.uniform(size=count) < 0.9, 1e-9, 1.0),
            np.ones(count),
        ][seed % 4]
        stamps = np.cumsum(steps)
        stamps = stamps[np.diff(stamps, prepend=-1.0) > 0.0]
        position = rng.standard_normal((len(stamps), 3)) * [1.0, 0.0, 10.0 ** rng.uniform(-12.0, 6.0)]
        time, step, _ = sample_times(stamps, position)
        assert np.isfinite(time).all(), seed
        assert (np.diff(time) > 0.0).all(), seed
        assert step > 0.0, seed


@pytest.mark.parametrize(('clock', 'factor'), [(1.0, 1.0), (1.0 / 4.85, 1.0), (1.0, 57.3), (1000.0, 1.0)])
def test_velocities_tell_a_wrong_clock_whatever_its_factor(clock: float, factor: float) -> None:
    """Of a real arm, a recording was published 4.85 times too fast: all inertias were 24 times too small."""
    rng, time = np.random.default_rng(0), np.arange(3000) / 100.0
    rates = np.array([0.8, 1.3, 2.1])
    position = np.sin(time[:, None] * rates) + 1e-4 * rng.standard_normal((3000, 3))
    velocity = rates * np.cos(time[:, None] * rates) + 0.02 * rng.standard_normal((3000, 3))
    share = velocity_share(clock * time, position, factor * velocity)
    assert share == pytest.approx(clock * factor, rel=0.02)
    assert bool(velocity_remark({'velocity_share': share})) == (clock * factor != 1.0)


def test_velocities_that_tell_different_factors_or_nothing_are_no_witness() -> None:
    rng, time = np.random.default_rng(0), np.arange(3000) / 100.0
    rates = np.array([0.8, 1.3])
    position, velocity = np.sin(time[:, None] * rates), rates * np.cos(time[:, None] * rates)
    assert np.isnan(velocity_share(time, position, velocity * [1.0, 3.0]))
    assert np.isnan(velocity_share(time, position, rng.standard_normal((3000, 2))))
    assert np.isnan(velocity_share(time, 0.0 * position, velocity))
    assert np.isnan(velocity_share(time, position, np.full((3000, 2), np.nan)))
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for damaged in (1e300, 1e308, -1e308):
            assert np.isnan(velocity_share(time, position, np.where(velocity > 0.9, damaged, velocity)))
