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

from robotid_ros.signals import SampleScreen
from robotid_ros.signals.screening import find_spikes, find_steps, steps_remark

MS = 1_000_000
START = 1_700_000_000_000_000_000


def run(stamps, values=None, arrival=None, chunk=50):
    stamps = np.asarray(stamps, dtype=np.int64)
    values = np.zeros((len(stamps), 2)) if values is None else values
    screen = SampleScreen(channels=('position/a', 'torque/a'))
    usable, displaced = [], []
    for k in range(0, len(stamps), chunk):
        part = slice(k, k + chunk)
        good, off, _ = screen.screen(stamps[part], values[part], None if arrival is None else arrival[part])
        usable.append(good)
        displaced.append(off)
    screen.finish()
    return screen, np.concatenate(usable), np.concatenate(displaced)


def regular(count=600):
    return START + MS * np.arange(count, dtype=np.int64)


@pytest.mark.parametrize('chunk', [1, 7, 600])
def test_a_clean_stream_has_no_faults(chunk):
    screen, usable, displaced = run(regular(), chunk=chunk)
    counts = screen.counts
    assert usable.all()
    assert not displaced.any()
    assert counts == {**dict.fromkeys(counts, 0), 'samples': 600}
    assert screen.step == pytest.approx(1e-3)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 97), st.randoms(use_true_random=False))
def test_every_fault_is_counted_exactly_wherever_chunks_are_cut(chunk, random):
    clean = regular(900)
    places = sorted(random.sample(range(100, 800, 20), 9))
    stamps = clean.tolist()
    values = np.zeros((900, 2))
    for k in places[0:2]:  # NaN
        values[k, 1] = np.nan
    for k in places[2:4]:  # unstamped
        stamps[k] = 0
    for k in places[4:6]:  # repeated
        stamps[k] = stamps[k - 1]
    for k in places[6:8]:  # backward
        stamps[k] = stamps[k - 1] - 3 * MS
    keep = np.ones(900, dtype=bool)
    keep[places[8] : places[8] + 4] = False  # lost
    screen, usable, _ = run(np.array(stamps)[keep], values[keep], chunk=chunk)
    counts = screen.counts
    assert counts['not_a_number'] == 2
    assert screen.bad_channels == {'torque/a': 2}
    assert counts['unstamped'] == 2
    assert counts['repeated'] == 2
    assert counts['backward'] == 2
    # A stamp that is missing, repeated or backward leaves a hole of one sample in its place.
    assert counts['gaps'] == 7
    assert counts['missing'] == 6 + 4
    assert counts['longest_gap'] == pytest.approx(5e-3)
    assert usable.sum() == 900 - 4 - 8


def test_a_forward_jump_against_the_clock_of_arrival_is_a_jump_and_not_a_gap():
    stamps, arrival = regular(), regular() + 2 * MS
    stamps[250:400] += 3600 * 1000 * MS  # and back again
    screen, usable, displaced = run(stamps, arrival=arrival)
    assert screen.counts['clock_jumps'] == 2
    assert screen.counts['gaps'] == 0
    assert np.flatnonzero(displaced).tolist() == list(range(250, 400))
    assert screen.counts['displaced'] == 150
    assert usable.all()
    assert screen.displacement == 0.0


@pytest.mark.parametrize('late', [(250,), (400,), (250, 400)])
@pytest.mark.parametrize('chunk', [7, 50, 600])
def test_a_clock_set_back_right_is_right_however_late_its_samples_come(late, chunk):
    stamps, arrival = regular(900), regular(900)
    stamps[250:400] += 3600 * 1000 * MS
    for k in late:  # a stall of 0.3 s just there, then all at once
        arrival[k : k + 100] = np.maximum(arrival[k : k + 100], arrival[k] + 300 * MS)
    screen, usable, displaced = run(stamps, arrival=arrival, chunk=chunk)
    assert screen.counts['clock_jumps'] == 2
    assert np.flatnonzero(displaced).tolist() == list(range(250, 400))
    assert usable.all()


@pytest.mark.parametrize('place', [250, 400])
def test_a_clock_set_back_right_is_right_even_if_samples_are_missing_there(place):
    stamps, arrival = regular(900), regular(900)
    stamps[250:400] += 3600 * 1000 * MS
    keep = np.ones(900, dtype=bool)
    keep[place : place + 100] = False
    screen, _, displaced = run(stamps[keep], arrival=arrival[keep])
    assert screen.counts['clock_jumps'] == 2
    assert np.flatnonzero(displaced).tolist() == list(range(250, 300 if place == 250 else 400))


@pytest.mark.parametrize('with_arrival', [True, False])
def test_a_backward_jump_of_the_clock_is_found(with_arrival):
    stamps, arrival = regular(), regular()
    stamps[300:] -= 10_000 * MS
    screen, usable, displaced = run(stamps, arrival=arrival if with_arrival else None)
    assert screen.counts['clock_jumps'] == 1
    assert screen.counts['backward'] == 0
    assert np.flatnonzero(displaced).tolist() == list(range(300, 600))
    assert usable.all()


def test_lost_messages_are_a_gap_and_not_a_jump():
    keep = np.ones(600, dtype=bool)
    keep[200:500] = False
    stamps = regular()[keep]
    screen, _, displaced = run(stamps, arrival=stamps + MS)
    assert (screen.counts['gaps'], screen.counts['missing'], screen.counts['clock_jumps']) == (1, 300, 0)
    assert not displaced.any()


def test_late_arrival_is_no_fault():
    stamps, arrival = regular(2000), regular(2000)
    arrival[500:800] = arrival[800]  # a stall of 0.3 s, then all at once
    keep = np.ones(2000, dtype=bool)
    keep[700:1000] = False  # and an overflow
    screen, _, displaced = run(stamps[keep], arrival=arrival[keep])
    assert screen.counts['clock_jumps'] == 0
    assert (screen.counts['gaps'], screen.counts['missing']) == (1, 300)
    assert not displaced.any()


def test_irregular_sampling_is_no_gap():
    rng = np.random.default_rng(1)
    stamps = regular() + rng.integers(-200_000, 200_000, 600)
    screen, usable, _ = run(stamps)
    assert screen.counts['gaps'] == 0
    assert usable.all()


def test_simulated_time_at_half_speed_is_no_jump():
    stamps = regular(5000)
    screen, _, displaced = run(stamps, arrival=START + 2 * MS * np.arange(5000, dtype=np.int64))
    assert screen.counts['clock_jumps'] == 0
    assert not displaced.any()


@pytest.mark.parametrize('with_arrival', [True, False])
@pytest.mark.parametrize('off', [-7.0, 7.0])
@pytest.mark.parametrize('chunk', [600, 50])
def test_a_single_stamp_far_off_costs_one_sample(with_arrival, off, chunk):
    stamps, arrival = regular(), regular()
    stamps[230] += int(off * 1e9)
    screen, usable, displaced = run(stamps, arrival=arrival if with_arrival else None, chunk=chunk)
    assert (screen.counts['stray'], screen.counts['clock_jumps'], screen.counts['displaced']) == (1, 0, 0)
    assert np.flatnonzero(~usable).tolist() == [230]
    assert not displaced.any()


def test_a_single_stamp_far_back_at_the_end_of_a_chunk_costs_one_sample_too():
    stamps = regular()
    stamps[99] -= 7_000 * MS  # the last of its chunk: looks like a jump until the next chunk comes
    screen, usable, displaced = run(stamps, chunk=100)
    assert (screen.counts['stray'], screen.counts['clock_jumps']) == (0, 2)
    assert np.flatnonzero(displaced | ~usable).tolist() == [99]


@pytest.mark.parametrize('width', [1, 3, 5])
@pytest.mark.parametrize('channel', [0, 1], ids=['position', 'torque'])
def test_a_spike_is_found_and_nothing_else(width, channel):
    time, rng = np.arange(3000) / 100.0, np.random.default_rng(width)
    speed = np.cos(time) + 0.7 * np.cos(2.3 * time)
    position = np.sin(time) + 0.7 / 2.3 * np.sin(2.3 * time) + 1e-5 * rng.standard_normal(3000)
    torque = 8.0 * np.sign(speed) + 3.0 * speed + 0.3 * rng.standard_normal(3000)  # steps at reversals are no spikes
    values = np.stack([position, torque], axis=1)
    assert not find_spikes(values).any()
    values[1200 : 1200 + width, channel] += [0.4, 60.0][channel]
    expected = np.zeros(values.shape, dtype=bool)
    expected[1200 : 1200 + width, channel] = True
    assert np.array_equal(find_spikes(values), expected)


@pytest.mark.parametrize('share', [0.002, 0.004, 0.01])
def test_failed_reads_are_found_however_many_there_are(share):
    """A driver that fails shows -pi in all joints: of a real recording ten in 6447 samples had been kept."""
    rng, time = np.random.default_rng(1), np.arange(6000) / 100.0
    values = np.stack([np.sin(rate * time) for rate in (0.5, 0.7, 1.1)], axis=1).round(3)
    failed = rng.choice(np.arange(10, 5990, 12), int(share * len(time)), replace=False)
    values[failed] = -np.pi
    expected = np.zeros(len(time), dtype=bool)
    expected[failed] = True
    for column in find_spikes(values).T:
        assert np.array_equal(column, expected)


@pytest.mark.parametrize('rate', [10.0, 250.0])
@pytest.mark.parametrize('seed', range(3))
def test_a_position_steps_where_samples_are_missing_and_times_do_not_tell(rate, seed):
    rng = np.random.default_rng(seed)
    time = np.arange(round(40.0 * rate)) / rate
    waves = np.stack([np.sin(0.5 * time + 1.0), 0.3 * np.cos(0.8 * time), 2.0 * np.sin(0.3 * time)], axis=1)
    position = np.round(waves * np.array([1.0, 1.0, 1.0]) / 1e-3) * 1e-3 + 1e-6 * rng.standard_normal(waves.shape)
    assert not find_steps(time, position).any()
    told = np.delete(np.arange(len(time)), np.s_[len(time) // 4 : len(time) // 4 + round(2.5 * rate)])
    assert not find_steps(time[told], position[told]).any()  # a gap that the times tell is none
    steps = find_steps(time[: len(told)], position[told])
    assert np.flatnonzero(steps.any(axis=1)).tolist() == [len(time) // 4 - 1]


def test_an_arm_that_starts_or_moves_seldom_does_not_step():
    time = np.arange(4000) / 100.0
    moves = (time > 20.0) & (time < 20.12)  # a dozen samples, of thousands that hold noise alone
    seldom = np.cumsum(np.where(moves, 0.02, 0.0)) + 1e-5 * np.random.default_rng(0).standard_normal(4000)
    assert not find_steps(time, np.stack([seldom, np.zeros(4000)], axis=1)).any()


def test_steps_are_told_with_the_largest_of_each_joint():
    assert steps_remark({}) == steps_remark({'steps': 0}) == ''
    assert 'step 2 times' in (said := steps_remark({'steps': 2, 'stepped_joints': {'elbow': 0.5, 'wrist': 1.25}}))
    assert 'elbow (0.5), wrist (1.25)' in said
