# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from errors_helpers import refused
from recorder_helpers import START, harmonics

from robotid_ros.data import ProcessingSettings, Recording, process_file, process_recording, summarize, write_csv
from robotid_ros.data.reference import reference_period
from robotid_ros.data.runs import harmless_gap, thinned
from robotid_ros.errors import DataError
from robotid_ros.model.robot_config import RobotConfig

UR10 = Path(__file__).parents[3] / 'shared' / 'data' / 'ur10_exciting'
PERIOD, RATE = 4.0, 250
NAMES = ('a', 'b', 'c')


def periodic(periods=9, noise=(1e-4, 0.05), seed=0, origin=START):
    rng = np.random.default_rng(seed)
    time = np.arange(round(periods * PERIOD * RATE)) / RATE
    q, dq, ddq, effort = harmonics(time, PERIOD)
    recording = Recording(
        joint_names=NAMES,
        time=time,
        position=q + noise[0] * rng.standard_normal(q.shape),
        effort=effort + noise[1] * rng.standard_normal(q.shape),
        origin=origin,
    )
    return recording, (q, dq, ddq, effort)


def test_periods_are_averaged_and_differentiated():
    recording, _ = periodic()
    dataset = process_recording(recording, ProcessingSettings(period=PERIOD, start=START))
    q, dq, ddq, effort = harmonics(dataset.time, PERIOD)
    assert (dataset.periods, len(dataset), dataset.rate) == (8, 1000, 250.0)
    assert dataset.noise_std == pytest.approx(0.05 / np.sqrt(8), rel=0.05)
    found = dataset.provenance['averaging']
    assert found['harmonics'] == 3
    assert found['position_noise_std'] == pytest.approx([1e-4] * 3, rel=0.05)
    assert np.abs(dataset.q - q).max() < 1e-5
    assert np.std(dataset.dq - dq) < 2e-5
    assert np.std(dataset.ddq - ddq) < 2e-4
    assert np.std(dataset.tau - effort) == pytest.approx(0.05 / np.sqrt(8), rel=0.05)
    # The cubic leaves 17/35 of white noise's power.
    assert np.std(dataset.tau_filtered - effort) == pytest.approx(0.05 / np.sqrt(8) * np.sqrt(17 / 35), rel=0.05)


def test_a_single_period_is_differentiated_by_the_harmonics_that_stand_out_of_its_noise():
    recording, _ = periodic(periods=2)  # the first one is the transient
    dataset = process_recording(recording, ProcessingSettings(period=PERIOD, start=START))
    assert dataset.periods == 1
    found = dataset.provenance['averaging']
    assert (found['harmonics'], found['position_noise_std']) == (3, None)
    assert np.std(dataset.ddq - harmonics(dataset.time, PERIOD)[2]) < 1e-3


def test_standing_still_before_and_after_is_no_period():
    """A bag that was started long before the run: nobody gives a start, and most of its head is rest."""
    rng = np.random.default_rng(8)
    moving, _ = periodic(noise=(0.0, 0.0))
    rest = round(5.3 * PERIOD * RATE)
    parts = [
        np.repeat(moving.position[:1], rest, axis=0),
        moving.position,
        np.repeat(moving.position[-1:], rest, axis=0),
    ]
    position = np.concatenate(parts)
    effort = np.concatenate([np.zeros((rest, 3)), moving.effort, np.zeros((rest, 3))])
    position[:, 2] = 0.3  # one joint never moves
    recording = Recording(
        joint_names=NAMES,
        time=np.arange(len(position)) / RATE,
        position=position + 1e-4 * rng.standard_normal(position.shape),
        effort=effort + 0.05 * rng.standard_normal(position.shape),
    )
    dataset = process_recording(recording, ProcessingSettings(period=PERIOD))
    assert dataset.periods >= 7
    found = dataset.provenance['averaging']
    assert found['harmonics'] == 3
    assert found['torque_noise_std'] == pytest.approx([0.05] * 3, rel=0.1)
    speed = harmonics(np.arange(1000) / RATE, PERIOD)[1]
    assert found['standing_still'] == ['c']
    assert np.allclose(np.sort(np.abs(dataset.dq), axis=0)[:, :2], np.sort(np.abs(speed), axis=0)[:, :2], atol=0.01)


def test_start_decides_the_phase_to_the_nanosecond():
    recording, _ = periodic(noise=(0.0, 0.0))
    shift = 0.3
    settings = ProcessingSettings(period=PERIOD, start=START + 300_000_000)
    dataset = process_recording(recording, settings)
    q, _, ddq, _ = harmonics(dataset.time + shift, PERIOD)
    assert np.abs(dataset.q - q).max() < 1e-9
    assert np.abs(dataset.ddq - ddq).max() < 1e-6


def test_a_recording_that_does_not_repeat_is_filtered_aligned_and_trimmed():
    recording, (q, dq, ddq, effort) = periodic(noise=(1e-5, 0.02))
    dataset = process_recording(recording, ProcessingSettings(average=False))
    k = np.searchsorted(recording.time, dataset.time)
    assert np.array_equal(dataset.tau, recording.effort[k])
    edge = dataset.time[0] * RATE
    assert edge == pytest.approx(RATE / dataset.cutoff, abs=1.0)
    assert np.std(dataset.q - q[k]) < 1e-3
    assert np.std(dataset.dq - dq[k]) < 5e-3 * np.std(dq)
    assert np.std(dataset.ddq - ddq[k]) < 2e-2 * np.std(ddq)
    for j in range(3):  # no signal is delayed against another
        lags = np.arange(-3, 4)
        match = [np.corrcoef(dataset.tau_filtered[10:-10, j], np.roll(effort[k, j], lag)[10:-10])[0, 1] for lag in lags]
        assert lags[int(np.argmax(match))] == 0
    assert np.std(dataset.tau_filtered - effort[k]) < np.std(dataset.tau - effort[k])


@pytest.mark.parametrize('seed', range(4))
def test_how_long_an_arm_stands_before_and_after_its_motion_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    recording, _ = periodic(periods=3, noise=(10.0 ** rng.uniform(-6.0, -4.0), 0.02), seed=seed)
    before, after = (int(RATE * rng.choice([0.0, rng.uniform(2.0, 60.0)])) for _ in range(2))
    held = np.concatenate([np.zeros(before, dtype=int), np.arange(len(recording)), np.full(after, len(recording) - 1)])
    still = np.ones(len(held), dtype=bool)
    still[before : before + len(recording)] = False
    noise = np.array([1e-6, 0.02])[:, None, None] * rng.standard_normal((2, len(held), 3)) * still[:, None]
    longer = replace(
        recording,
        time=np.arange(len(held)) / RATE,
        position=recording.position[held] + noise[0],
        effort=recording.effort[held] + noise[1],
    )
    settings = ProcessingSettings(average=False)
    alone, found = (process_recording(each, settings) for each in (recording, longer))
    assert found.cutoff == pytest.approx(alone.cutoff, rel=0.1)
    assert 0 <= len(found) - len(alone) < 3 * RATE / found.cutoff
    stood = found.provenance['filtering']['stood']
    np.testing.assert_allclose(stood, np.array([before, after]) / RATE, atol=2.0 / found.cutoff)
    same = np.searchsorted(alone.time, found.time - before / RATE - 0.5 / RATE)
    both = (same > 0) & (same < len(alone))
    np.testing.assert_allclose(found.q[both], alone.q[same[both]], atol=3e-3)
    assert ('standstill' in summarize(found)) == bool(before or after)


@pytest.mark.parametrize('last', [True, False])
def test_a_joint_that_moves_in_one_of_two_runs_does_not_stand(last):
    time = np.arange(10 * RATE) / RATE
    wave = np.stack([np.sin(2.0 * time), np.zeros_like(time)], axis=1)
    parts = [wave, wave[: len(wave) // 2, ::-1]][:: 1 if last else -1]  # the longest run moves the other joint
    position = np.concatenate(parts) + 1e-6 * np.random.default_rng(0).standard_normal((len(time) * 3 // 2, 2))
    times = np.concatenate([np.arange(len(part)) / RATE for part in parts])
    times[len(parts[0]) :] -= 100.0  # the clock was set back, which is a break
    recording = Recording(joint_names=('a', 'b'), time=times, position=position, effort=0.1 * position)
    dataset = process_recording(recording, ProcessingSettings(average=False))
    assert dataset.provenance['filtering']['stood'] == [0.0, 0.0]
    assert np.ptp(dataset.q, axis=0) == pytest.approx([2.0, 2.0], rel=0.05)


@pytest.mark.parametrize('differentiation', ['central', 'savitzky-golay'])
def test_given_cutoff_trim_and_differentiation_are_used(differentiation):
    recording, (_, _, ddq, _) = periodic(noise=(0.0, 0.0))
    settings = ProcessingSettings(average=False, cutoff=20.0, trimmed=1.0, differentiation=differentiation)
    dataset = process_recording(recording, settings)
    assert dataset.cutoff == 20.0
    assert dataset.time[0] == pytest.approx(1.0)
    assert dataset.provenance['filtering']['cutoff_from'] == 'settings'
    assert np.abs(dataset.ddq - ddq[np.searchsorted(recording.time, dataset.time)]).max() < 2e-3 * np.abs(ddq).max()


def test_a_cutoff_above_half_the_rate_is_refused_with_the_number():
    recording, _ = periodic(noise=(1e-5, 1e-3))
    half = 0.5 * recording.rate
    with pytest.raises(DataError, match=rf'cutoff: expected at most {half:.4g} Hz.*got {1.1 * half:g} Hz'):
        process_recording(recording, ProcessingSettings(average=False, cutoff=1.1 * half))


def test_a_spike_is_left_out_and_named():
    recording, _ = periodic(noise=(1e-5, 1e-3))
    position = recording.position.copy()
    position[2000:2003, 1] += 0.5
    dataset = process_recording(replace(recording, position=position), ProcessingSettings(average=False, cutoff=20.0))
    clean = process_recording(recording, ProcessingSettings(average=False, cutoff=20.0))
    assert f'3 samples with a spike were left out: position/{NAMES[1]} (3)' in summarize(dataset)
    assert 'spike' not in summarize(clean)
    same = np.isin(np.round(clean.time, 6), np.round(dataset.time, 6))
    assert same.mean() > 0.98
    assert np.abs(dataset.q - clean.q[same]).max() < 1e-3


def test_where_positions_step_the_motion_is_cut_and_not_averaged():
    """A fifth of a period is missing, and the times count on: its period is no longer that of the rest."""
    recording, _ = periodic(noise=(1e-5, 1e-3))
    kept = np.delete(np.arange(len(recording.time)), np.s_[2000:2100])
    glued = replace(
        recording,
        time=recording.time[: len(kept)],
        position=recording.position[kept],
        velocity=None,
        effort=recording.effort[kept],
        arrival=None,
    )
    dataset, clean = (process_recording(each, ProcessingSettings(cutoff=20.0)) for each in (glued, recording))
    assert dataset.provenance['screening']['steps'] == 1
    assert 'positions step 1 times' in summarize(dataset)
    assert 'since its positions step' in summarize(dataset)
    assert 'step' not in summarize(clean)
    assert len(dataset.sources) == 2
    assert np.abs(dataset.dq).max() < 1.1 * np.abs(clean.dq).max()


def spoilt(recording, rng):
    """Return a recording with faults in it, and how many of which."""
    time, position, effort = recording.time.copy(), recording.position.copy(), recording.effort.copy()
    order = np.arange(len(time))
    order = np.insert(order, 500, 500)  # repeated
    order = np.insert(order, 700, 690)  # backward
    order = np.insert(order, 800, 8000)  # one stamp far off
    time, position, effort = time[order], position[order], effort[order]
    effort[[100, 101], 2] = np.nan
    position[2000, 0] = np.inf
    keep = np.ones(len(time), dtype=bool)
    keep[3000:3010] = False
    changed = replace(recording, time=time[keep], position=position[keep], effort=effort[keep])
    return changed, {
        'repeated': 1,
        'backward': 1,
        'stray': 1,
        'not_a_number': 3,
        'gaps': 1,
        'missing': 10,
        'clock_jumps': 0,
    }


@pytest.mark.parametrize('period', [PERIOD, None])
def test_faults_are_counted_and_do_no_harm(period):
    recording, _ = periodic(noise=(1e-6, 1e-3))
    changed, counts = spoilt(recording, np.random.default_rng(1))
    dataset = process_recording(changed, ProcessingSettings(period=period, start=START, cutoff=20.0))
    found = dataset.provenance['screening']
    assert {name: found[name] for name in counts} == counts
    q, _, ddq, effort = harmonics(dataset.time, PERIOD)
    assert np.abs(dataset.q - q).max() < 2e-4
    assert np.std(dataset.ddq - ddq) < 0.02 * np.std(ddq)
    assert np.std(dataset.tau - effort) < 0.01
    text = summarize(dataset)
    assert '10 samples missing' in text
    assert '1 repeated, 1 backward, 1 stray, 3 not a number' in text


@pytest.mark.parametrize('stamp', [2.7e154, -2.7e154, 1e10])
def test_a_stamp_that_is_no_time_is_left_out(stamp):
    recording, _ = periodic(noise=(1e-6, 1e-3))
    time = recording.time.copy()
    time[1000] = stamp  # a cut line of a published recording states the first of these
    dataset = process_recording(replace(recording, time=time), ProcessingSettings(average=False, cutoff=20.0))
    assert dataset.provenance['screening']['unstamped'] == 1
    sound = process_recording(recording, ProcessingSettings(average=False, cutoff=20.0))
    np.testing.assert_allclose(dataset.time, sound.time, atol=1e-6)
    assert np.abs(dataset.q - sound.q).max() < 1e-3


def test_long_gaps_and_clock_jumps_split_the_run():
    recording, _ = periodic(noise=(0.0, 0.0))
    time = recording.time.copy()
    time[4000:] += 5.0  # a pause
    time[6000:] -= 60.0  # the clock set back
    dataset = process_recording(replace(recording, time=time), ProcessingSettings(average=False, cutoff=20.0))
    assert len(dataset.sources) == 3
    trim = round(RATE / 20.0 + 0.49)
    assert np.bincount(dataset.trajectory).tolist() == [4000 - 2 * trim, 2000 - 2 * trim, 3000 - 2 * trim]
    phase = np.concatenate([np.arange(a + trim, b - trim) for a, b in ((0, 4000), (4000, 6000), (6000, 9000))])
    assert np.abs(dataset.ddq - harmonics(phase / RATE, PERIOD)[2]).max() < 0.03 * 15.0


@pytest.mark.parametrize('frequency', [0.05, 0.4, 3.0])
def test_a_gap_in_a_sine_is_harmless_to_half_a_percent(frequency):
    """The cubic through two samples on either side, close together, misses (omega gap)^4 / 384."""
    time = np.arange(20_000) * 0.02 / frequency / 50.0
    expected = (384.0 * 5e-3) ** 0.25 / (2.0 * np.pi * frequency)
    found = harmless_gap(time, np.sin(2.0 * np.pi * frequency * time)[:, None])
    assert 0.7 * expected < found < 1.15 * expected


@pytest.mark.parametrize('noise', [1e-3, 0.1])
def test_a_gap_is_harmless_that_is_missed_hardly_more_than_a_sample(noise):
    """White noise at the distances a and b = a + 1 comes through by b^2 and a^2 over 2 (b^2 - a^2)."""

    def missed(gap):
        a, b = 0.5 * gap, 0.5 * gap + 1.0
        return np.sqrt(1.0 + 2.0 * (a**4 + b**4) / (2.0 * (b**2 - a**2)) ** 2)

    assert missed(20.0) < 4.0 * missed(2.0) < missed(21.0)
    time = np.arange(20_000) / 200.0
    clean = np.sin(2.0 * np.pi * 0.1 * time)[:, None]
    noisy = clean + noise * np.random.default_rng(5).standard_normal(clean.shape)
    assert 16.0 < 200.0 * harmless_gap(time, noisy) < 21.0
    assert harmless_gap(time, np.full_like(clean, 0.3)) == 0.0


@pytest.mark.parametrize('speed', [1.0, 10.0])
@pytest.mark.parametrize(('part', 'runs'), [(0.9, 1), (1.2, 2)])
@pytest.mark.parametrize('cutoff', [None, 20.0])
def test_a_gap_is_bridged_as_far_as_it_is_harmless(speed, part, runs, cutoff):
    recording, _ = periodic(noise=(0.0, 0.0))
    recording = replace(recording, time=recording.time / speed)
    harmless = harmless_gap(recording.time, recording.position)
    assert (harmless > 0.1) == (speed == 1.0)  # a torque is told for no longer, however slow the motion
    gap = part * min(harmless, 0.1)
    kept = np.r_[0:4000, 4000 + round(gap * speed * RATE) : len(recording)]
    fields = {name: getattr(recording, name)[kept] for name in ('time', 'position', 'effort')}
    settings = ProcessingSettings(average=False, cutoff=None if cutoff is None else speed * cutoff)
    dataset = process_recording(replace(recording, **fields), settings)
    assert len(dataset.sources) == runs
    exact = harmonics(speed * dataset.time, PERIOD)
    assert np.abs(dataset.q - exact[0]).max() < 0.01 * np.ptp(exact[0])


def test_samples_lost_all_over_a_recording_of_uneven_stamps_leave_one_run():
    """Of a real one, 262 samples of 13521 had been used: the stamps' jitter looks like motion at 30 Hz."""
    rng = np.random.default_rng(6)
    recording, _ = periodic(noise=(0.0, 0.0))
    kept = rng.random(len(recording)) > 0.3
    fields = {name: getattr(recording, name)[kept] for name in ('position', 'effort')}
    time = (recording.time + rng.uniform(-0.4, 0.4, len(recording)) / RATE)[kept]
    dataset = process_recording(replace(recording, time=time, **fields), ProcessingSettings(average=False))
    assert len(dataset) > 0.9 * len(recording)
    assert len(dataset.sources) <= 3


def test_irregular_sampling_is_brought_to_an_even_rate():
    rng = np.random.default_rng(2)
    recording, _ = periodic()
    time = recording.time + rng.uniform(-0.3, 0.3, len(recording)) / RATE
    q, _, _, effort = harmonics(time, PERIOD)
    dataset = process_recording(
        replace(recording, time=time, position=q, effort=effort), ProcessingSettings(average=False, cutoff=20.0)
    )
    assert dataset.provenance['filtering']['stamps_evened']
    assert np.ptp(np.diff(dataset.time)) < 1e-9
    exact = harmonics(dataset.time, PERIOD)
    assert np.abs(dataset.q - exact[0]).max() < 1e-4
    assert np.std(dataset.ddq - exact[2]) < 0.01 * np.std(exact[2])
    assert np.std(dataset.tau - exact[3]) < 0.01


@pytest.mark.parametrize('period', [PERIOD, None])
@pytest.mark.parametrize('noise', [0.0, 1e-5])
def test_an_arm_that_stands_still_is_processed_and_named(period, noise):
    rng = np.random.default_rng(3)
    recording, _ = periodic()
    still = 0.4 + noise * rng.standard_normal((len(recording), 3))
    dataset = process_recording(
        replace(recording, position=still, effort=np.full_like(still, -3.0)), ProcessingSettings(period=period)
    )
    section = dataset.provenance['filtering']  # rest repeats with any period
    assert section['standing_still'] == list(NAMES)
    assert 'standing still: a, b, c' in summarize(dataset)
    assert np.abs(dataset.dq).max() < 1000 * max(noise, 1e-9)
    assert np.allclose(dataset.tau, -3.0)


@pytest.mark.parametrize('wrong', ['jitter', 'rounding', 'lost'])
def test_stamps_that_scatter_beside_even_sampling_are_seen_through(wrong):
    """A logger's stamps, or rounded ones: the motion itself tells that the robot sampled evenly."""
    rng = np.random.default_rng(9)
    rate = 240.0
    time = np.arange(8000) / rate
    if wrong == 'lost':
        time = np.delete(time, [700, 701, 1500])
    q, _, _, effort = harmonics(time, PERIOD)
    stamps = np.round(time, 3) if wrong == 'rounding' else time + rng.uniform(-3e-4, 3e-4, len(time))
    recording = Recording(joint_names=NAMES, time=stamps, position=q, effort=effort)
    dataset = process_recording(recording, ProcessingSettings(average=False, cutoff=30.0))
    assert dataset.rate == pytest.approx(rate, rel=1e-5)
    exact = harmonics(dataset.time, PERIOD)
    assert np.std(dataset.ddq - exact[2]) < 2e-3 * np.std(exact[2])
    if wrong != 'lost':  # and what was measured stays as it was measured
        assert np.isin(dataset.tau, effort).all()


def test_whole_turns_that_a_driver_reports_away_are_put_back():
    recording, _ = periodic(noise=(1e-5, 1e-3))
    wrapped = (recording.position + np.pi) % (2 * np.pi) - np.pi
    turning = recording.position[:, :1] * 4.0  # more than one turn
    position = np.concatenate([(turning + np.pi) % (2 * np.pi) - np.pi, wrapped[:, 1:]], axis=1)
    for settings in (ProcessingSettings(period=PERIOD, start=START), ProcessingSettings(average=False, cutoff=20.0)):
        dataset = process_recording(replace(recording, position=position), settings)
        exact = harmonics(dataset.time, PERIOD)
        assert dataset.provenance['screening']['wraps'] > 20
        assert np.std(dataset.dq[:, 0] - 4.0 * exact[1][:, 0]) < 0.01 * np.std(4.0 * exact[1][:, 0])
        offset = (dataset.q - exact[0] * [4.0, 1.0, 1.0]) / (2 * np.pi)
        assert np.abs(offset - np.round(offset[0])).max() < 1e-3


def test_a_csv_file_has_torque_in_its_effort_whatever_the_driver_reports(tmp_path):
    recording, (_, _, _, effort) = periodic(noise=(0.0, 0.0), origin=0)
    write_csv(tmp_path / 'run.csv', recording)
    settings = ProcessingSettings(
        effort=dict.fromkeys(NAMES, 'current'), torque_constants=dict.fromkeys(NAMES, 7.0), period=PERIOD
    )
    dataset, _ = process_file(tmp_path / 'run.csv', settings)
    assert np.abs(dataset.tau - effort[:1000]).max() < 1e-8


def test_effort_that_is_a_current_needs_and_gets_its_constants():
    recording, (_, _, _, effort) = periodic(noise=(0.0, 0.0))
    config = RobotConfig(
        joints=NAMES[::-1],
        effort={'a': 'torque', 'b': 'current', 'c': 'current'},
        torque_constants={'b': 0.1, 'c': -0.2},
        gear_ratios={'b': 50.0, 'c': 10.0},
    )
    dataset = process_recording(recording, ProcessingSettings.for_robot(config, period=PERIOD, start=START))
    assert dataset.joint_names == ('c', 'b', 'a')
    expected = effort[:1000] * [1.0, 5.0, -2.0]
    assert np.abs(dataset.tau - expected[:, ::-1]).max() < 1e-8
    settings = ProcessingSettings(effort={'b': 'current'})
    with refused(DataError, name='b', expected=()):
        process_recording(recording, settings)


def test_current_columns_are_used_where_they_are_all_there_is():
    recording, (_, _, _, effort) = periodic(noise=(0.0, 0.0))
    current = effort / 12.0
    only = replace(recording, effort=None, current=current)
    settings = ProcessingSettings(
        torque_constants=dict.fromkeys(NAMES, 0.12), gear_ratios=dict.fromkeys(NAMES, 100.0), period=PERIOD
    )
    assert np.abs(process_recording(only, settings).tau - effort[:1000]).max() < 1e-8
    with refused(DataError, name='a'):
        process_recording(replace(only, current=None), settings)


def test_torque_that_takes_energy_out_of_the_arm_is_named():
    recording, _ = periodic()
    good = process_recording(recording, ProcessingSettings(period=PERIOD))
    assert good.provenance['averaging']['warnings'] == []
    turned = process_recording(replace(recording, effort=-recording.effort), ProcessingSettings(period=PERIOD))
    (warning,) = turned.provenance['averaging']['warnings']
    assert 'looks reversed' in warning


@pytest.mark.parametrize(
    ('change', 'expected'),
    [
        ({'period': -1.0}, (0.001, 1e6)),
        ({'cutoff': 0.0}, (0.001, 1e6)),
        ({'transient_periods': -1}, (0, 1000)),
        ({'outlier_factor': 0.5}, (1.0, 1e6)),
        ({'harmonics': 0}, (1, 1000)),
        ({'smoothing_guard': -0.1}, (0.0, 1.0)),
        ({'trimmed': -1.0}, (0.0, 1e6)),
        ({'differentiation': 'magic'}, ('central', 'savitzky-golay')),
        ({'effort': {'a': 'volts'}}, ('torque', 'current', 'unknown')),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, expected):
    ((name, value),) = change.items()
    with refused(DataError, name=name, expected=expected, found=value):
        ProcessingSettings(**change)


@pytest.mark.parametrize(('factor', 'unit'), [(1e3, 'milliseconds'), (1e6, 'nanoseconds'), (1e9, 'nanoseconds')])
@pytest.mark.parametrize('period', [None, PERIOD])
def test_times_that_cannot_be_seconds_are_refused(factor, unit, period):
    time = np.arange(400) * 0.01 * factor
    wave = np.sin(np.linspace(0.0, 20.0, 400))[:, None]
    recording = Recording(joint_names=('j',), time=time, position=wave, effort=wave)
    with pytest.raises(DataError, match=f'expected times in seconds.*{unit}'):
        process_recording(recording, ProcessingSettings(period=period))


@pytest.mark.parametrize('seed', range(6))
def test_a_period_that_nobody_stated_is_averaged_from_two_on(seed):
    """One period alone averages nothing, and would leave the rest of the recording out."""
    rng = np.random.default_rng(seed)
    used = 1 + seed % 3
    recording, _ = periodic(periods=used + 1 + rng.uniform(0.05, 0.45), seed=seed)  # the first is left out
    found, stated = process_recording(recording), process_recording(recording, ProcessingSettings(period=PERIOD))
    assert stated.provenance['averaging']['periods_used'] == list(range(1, used + 1))
    if used > 1:
        assert found.periods == used
        return
    assert 'as its positions show, but of its periods only 1 can be averaged' in found.provenance['motion']
    assert len(found) > 1.5 * PERIOD * RATE


def test_samples_that_are_bursts_are_refused_at_once():
    """Forty seconds at a median step of a microsecond were forty million even samples."""
    time = (0.2 * np.arange(200)[:, None] + 1e-6 * np.arange(10)).ravel()
    position = np.sin(2.0 * time)[:, None]
    recording = Recording(joint_names=('a',), time=time, position=position, effort=position)
    began = process_time()
    with pytest.raises(DataError, match='or there are pauses'):
        process_recording(recording)
    assert process_time() - began < 5.0


@pytest.mark.slow
@pytest.mark.parametrize('stamped', ['in bursts', 'after pauses', 'in a queue', 'after pauses, some lost'])
def test_samples_of_an_even_clock_that_were_stamped_on_arrival_are_put_back(stamped):
    """What the motion is, is known; how late each stamp is, was drawn."""
    rng = np.random.default_rng(11)
    rate = 200.0
    time = np.arange(6000) / rate
    if stamped.endswith('lost'):
        time = np.delete(time, rng.choice(np.arange(100, 5900), 40, replace=False))
    q, _, _, effort = harmonics(time, PERIOD)
    q = q + 1e-5 * rng.standard_normal(q.shape)
    stamps = time + rng.exponential(2e-4, len(time))
    if stamped == 'in bursts':
        stamps = np.repeat(stamps[7::8], 8) + np.tile(1e-4 * np.arange(8), len(stamps) // 8)
    else:
        often, lasts = (0.05, 0.02) if stamped == 'in a queue' else (1.0, 0.1)
        for begin in np.cumsum(rng.exponential(often, round(2.0 * time[-1] / often))):
            held = (stamps > begin) & (stamps < begin + lasts)
            stamps[held] = begin + lasts + 1e-5 * np.arange(held.sum())
        stamps = np.maximum.accumulate(stamps + 1e-7 * np.arange(len(stamps)))
    recording = Recording(joint_names=NAMES, time=stamps, position=q, effort=effort)
    dataset = process_recording(recording, ProcessingSettings(average=False, cutoff=20.0))
    assert len(dataset) > 5500
    assert dataset.rate == pytest.approx(rate, rel=1e-3)
    # All samples may be later alike; where one was lost of those that came at once, it cannot be told which.
    delays = np.linspace(-0.05, 0.05, 401)
    miss = [np.abs(dataset.ddq - harmonics(dataset.time - delay, PERIOD)[2]) for delay in delays]
    assert min(np.quantile(each, 0.9) for each in miss) < 0.03 * np.std(harmonics(dataset.time, PERIOD)[2])
    found = dataset.provenance['screening']
    assert found['late_stamps'] > 100
    assert found['rate'] == pytest.approx(rate, rel=1e-3)
    assert abs(found['missing'] - (40 if stamped.endswith('lost') else 0)) <= 5  # the last ones are late to the end


def test_too_little_data_are_refused():
    recording, _ = periodic()
    with refused(DataError, expected=32, found=20):
        process_recording(recording.slice(0, 20))
    short = process_recording(recording.slice(0, 900), ProcessingSettings(period=PERIOD, start=START))
    assert short.provenance['motion'] == 'any motion: it does not repeat every 4 s, as asked'
    with refused(DataError, expected=1032, found=900):
        process_recording(recording.slice(0, 900), ProcessingSettings(average=False, cutoff=0.5))
    # A run shorter than the window of the differentiation is too short, however little is trimmed.
    processed = process_recording(recording.slice(0, 900), ProcessingSettings(differentiation='savitzky-golay'))
    with pytest.raises(DataError, match='no run is long enough'):
        replace(processed.unfiltered, trimmed=0.0).filtered(0.02)


@pytest.mark.parametrize('velocity', [True, False])
def test_period_of_a_reference_with_or_without_its_repeated_point(velocity):
    for count, end in ((101, True), (100, False)):
        times = np.linspace(0.0, 3.0, count, endpoint=end)
        q, dq, _, _ = harmonics(times, 3.0)
        assert reference_period(times, q, dq if velocity else None) == pytest.approx(3.0, rel=1e-9)


def test_thinning_keeps_the_motion_exact_and_the_torque_free_of_aliases():
    recording, _ = periodic(noise=(0.0, 0.0))
    dataset = process_recording(recording, ProcessingSettings(period=PERIOD, start=START))
    fast = np.sin(2 * np.pi * 60.0 * dataset.time)[:, None]  # would alias into 2.5 Hz
    time, q, dq, ddq, tau = thinned(replace(dataset, tau_filtered=dataset.tau_filtered + fast), 250)
    exact = harmonics(time, PERIOD)
    assert len(time) == 250
    for found, true in ((q, exact[0]), (dq, exact[1]), (ddq, exact[2]), (tau, exact[3])):
        assert np.abs(found - true).max() < 1e-4 * np.abs(true).max() + 1e-9
    assert np.array_equal(thinned(dataset, 1000)[4], dataset.tau_filtered)


def test_a_file_is_processed_and_summed_up(tmp_path):
    recording, _ = periodic(origin=0)
    write_csv(tmp_path / 'run.csv', recording)
    dataset, text = process_file(tmp_path / 'run.csv', ProcessingSettings(period=PERIOD))
    assert dataset.periods == 8
    assert 'recording  run.csv: 9000 samples at 250 Hz' in text
    assert '8 of 4 s averaged into 1000 bins, 3 harmonics' in text
    assert 'period 0 left out: transient' in text


@pytest.mark.skipif(not UR10.exists(), reason='the UR10 recording is not beside this repository')
def test_the_recording_of_a_real_arm():
    """Velocities of the robot itself, which nobody derived here, agree with those derived."""
    dataset, text = process_file(UR10)
    assert '3441 samples at 125 Hz' in text
    assert 1.0 < dataset.cutoff < 10.0
    assert len(dataset) > 3300
    from robotid_ros.data import read_recording

    recording = read_recording(UR10)
    k = np.searchsorted(recording.time, dataset.time)
    own = recording.velocity[k]
    # Its velocities lag by up to a quarter of a sample, and some of its motion lies above the cutoff.
    assert (np.std(dataset.dq - own, axis=0) < 0.05 * np.std(own, axis=0)).all()
    assert (np.std(dataset.q - recording.position[k], axis=0) < 0.01 * np.std(recording.position, axis=0)).all()


def test_a_series_is_no_finer_than_what_the_gaps_of_its_period_leave():
    """Random gaps in both periods, at the same place: the series stays at the motion, or no average is made."""
    averaged = 0
    for seed in range(12):
        rng = np.random.default_rng([7, seed])
        recording = periodic(periods=3, seed=seed)[0]
        gap = int(rng.integers(2, 120))
        first = int(rng.integers(PERIOD * RATE, 2 * PERIOD * RATE - gap))
        lost = np.r_[first : first + gap]
        kept = np.setdiff1d(np.arange(len(recording)), [*lost, *(lost + PERIOD * RATE)]).astype(int)
        signals = {name: getattr(recording, name)[kept] for name in ('time', 'position', 'effort')}
        cut = replace(recording, **signals)
        dataset = process_recording(cut, ProcessingSettings(period=PERIOD, start=START))
        if 'averaging' in dataset.provenance:
            averaged += 1
            exact, *_ = harmonics(dataset.time, PERIOD)
            assert np.abs(dataset.q - exact).max() < 0.02, (seed, gap)
        else:
            assert 'a gap of' in dataset.provenance['motion'], (seed, gap)
    assert averaged > 3


def test_a_recording_most_of_which_cannot_be_used_is_told():
    """Of a real recording with gaps all over, 377 of 5812 samples were used, and nothing said so."""
    time = np.arange(6000) / 100.0
    position = np.stack([np.sin(2.0 * time), np.cos(3.0 * time)], axis=1)
    recording = Recording(joint_names=('a', 'b'), time=time, position=position, effort=position)
    settings = ProcessingSettings(average=False, effort={'a': 'torque', 'b': 'torque'})
    whole = process_recording(recording, settings)
    assert not whole.provenance['filtering']['warnings']
    kept = (time < 15.0) | (np.arange(6000) % 100 < 40)
    some = {name: getattr(recording, name)[kept] for name in ('time', 'position', 'effort')}
    dataset = process_recording(replace(recording, **some), settings)
    (warning,) = dataset.provenance['filtering']['warnings']
    assert warning.startswith('only 1540 of 3300 samples')
    assert warning in summarize(dataset)
