# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From a recording of any kind to a dataset."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import robotid_ros
from robotid_ros.arrays import LARGEST, Array, BoolArray, IntArray, given_away
from robotid_ros.data.bag import Bag, opened
from robotid_ros.data.context import Context, read_context
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.messages import FAULTS
from robotid_ros.data.readers import read_recording
from robotid_ros.data.recording import Recording
from robotid_ros.data.runs import NoUsablePeriodError, averaged_dataset, filtered_dataset, period_average
from robotid_ros.data.settings import ProcessingSettings, measured_torque
from robotid_ros.data.stream import average_bag, screening_found
from robotid_ros.data.strokes import FrictionStrokes, cut_strokes
from robotid_ros.errors import DataError
from robotid_ros.progress import Progress
from robotid_ros.signals.averaging import channel_names
from robotid_ros.signals.repetition import own_repetition, repetition
from robotid_ros.signals.sample_times import (
    MOST,
    SMOOTHER,
    LateStamps,
    late_stamps_remark,
    sample_times,
    velocity_remark,
    velocity_share,
)
from robotid_ros.signals.screening import SampleScreen, TurnUnwrapper, find_spikes, find_steps, steps_remark

_LATEST = 4e9  # [s]: 64 bits count nanoseconds for 292 years, a damaged line may state any number
_AT_ONCE = 65536  # samples processed at a time, to save memory
_ELSEWHERE = ('gaps', 'missing', 'late_stamps')  # in lines of their own
_SLOWEST = 0.5  # [s] between samples; with times in milliseconds, any rate below 2 kHz looks slower


def process_recording(recording: Recording, settings: ProcessingSettings | None = None) -> Dataset:
    """Turn a recording into a dataset ready for identification.

    Samples that are unstamped, out of order, not finite, or part of a spike are left out, and counted in
    the provenance. Whether the motion repeats is measured from its positions, with the period of the settings, that of
    the recording's plan, or one of its own. What repeats is averaged over its periods
    (:func:`robotid_ros.data.runs.averaged_dataset`); any other motion goes through one zero-phase low-pass
    (:func:`robotid_ros.data.runs.filtered_dataset`). So does one whose period nobody stated, where less than two
    periods can be averaged: that would leave data out for nothing. ``provenance['motion']`` says which it was.

    Parameters
    ----------
    recording : Recording
        With positions, and efforts or currents.
    settings : ProcessingSettings, optional

    Returns
    -------
    Dataset
        ``provenance`` has the counts and choices.

    Raises
    ------
    DataError
        If a joint is not in it, torque is missing, its times cannot be seconds, or too little can be used.
    """
    settings = settings or ProcessingSettings()
    usable, displaced, breaks, recording, values, step, provenance = _screened(recording, settings)
    kept = usable[~displaced[usable]]
    if provenance['screening']['steps']:
        found, motion, least = None, 'any motion, since its positions step', 0
    else:
        found, motion, least = _repeated(recording, values, kept, settings)
    dataset: Dataset | None = None
    if found is not None:
        try:
            period, begin, end = found
            inside = (recording.time[kept] >= begin - step) & (recording.time[kept] <= end + step)
            # Subtracted in nanoseconds: a double cannot hold the seconds since 1970 with enough digits.
            ahead = -begin if settings.start is None else (recording.origin - settings.start) * 1e-9
            averaging = period_average(recording.joint_names, period, step, settings)
            for start in range(0, len(kept), _AT_ONCE):
                part = kept[start : start + _AT_ONCE][inside[start : start + _AT_ONCE]]
                averaging.add(recording.time[part] + ahead, values[part])
            average = averaging.finish()
            if average is not None and len(average.used) < least:
                raise NoUsablePeriodError(f'it {motion}, but of its periods only {len(average.used)} can be averaged')
            provenance['motion'] = motion
            dataset = averaged_dataset(average, recording.joint_names, settings, provenance)
        except NoUsablePeriodError as cause:
            motion = f'any motion: {cause}'
    provenance['motion'] = motion
    if dataset is None:
        joints = recording.joint_names
        position, torque = (given_away(values[usable, part]) for part in (slice(len(joints)), slice(len(joints), None)))
        del values  # as large as both
        dataset = filtered_dataset(
            joints, given_away(recording.time[usable]), position, torque, breaks, step, settings, provenance
        )
    return replace(dataset, context=recording.context, effort=tuple(provenance['effort']))


def _repeated(
    recording: Recording, values: Array, kept: IntArray, settings: ProcessingSettings
) -> tuple[tuple[float, float, float] | None, str, int]:
    """Return the stretch of a recording that repeats, or None, what motion it was, and how many periods it takes."""
    if not settings.average:
        return None, 'any motion, as asked', 0
    kept = kept[np.diff(np.maximum.accumulate(recording.time[kept]), prepend=-np.inf) > 0.0]
    time, position = recording.time[kept], values[kept, : len(recording.joint_names)]
    planned = Context(**recording.context).period
    hints = {'as asked': settings.period, 'as its plan says': planned}
    failed = []
    for whence, period in hints.items():
        found = None if period is None else repetition(time, position, period)
        if found is not None:
            return found, f'repeats every {found[0]:.9g} s, {whence}', 1
        failed += [] if period is None else [f'{period:.9g} s, {whence}']
    found = own_repetition(time, position)
    but = f', not every {" or ".join(failed)}' if failed else ''
    if found is not None:
        return found, f'repeats every {found[0]:.9g} s, as its positions show{but}', 2
    return None, f'any motion: it does not repeat{but.replace(", not", "", 1)}', 0


def read_strokes(
    path: str | Path, settings: ProcessingSettings | None = None, topic: str | None = None
) -> FrictionStrokes:
    """Read the recording of a friction sweep and cut out its steady strokes.

    Parameters
    ----------
    path : str or Path
        Anything :func:`read_recording` reads.
    settings : ProcessingSettings, optional
        Its joints and their motor side are used.
    topic : str, optional
        Of a bag.

    Raises
    ------
    DataError, MissingDependencyError
        As :func:`read_recording`, and if there is no steady stroke in it.
    """
    settings = settings or ProcessingSettings()
    recording = read_recording(path, topic, settings.joints or None)
    usable, _, _, recording, values, _, provenance = _screened(recording, settings)
    n = len(recording.joint_names)
    try:
        strokes = cut_strokes(recording.joint_names, recording.time[usable], values[usable, :n], values[usable, n:])
    except DataError as cause:
        raise cause.within(str(path), file=str(path)) from cause
    return replace(strokes, provenance=provenance)


def _screened(
    recording: Recording, settings: ProcessingSettings
) -> tuple[IntArray, BoolArray, IntArray, Recording, Array, float, dict[str, Any]]:
    """Return the samples that can be used, and what is known of them.

    That are which samples of all are displaced, where among the usable ones the clock jumped, the recording with its
    times put right, positions and torques, the distance of the samples [s], and what was found.
    """
    if settings.joints:
        recording = recording.select(settings.joints)
    _require_seconds(recording.time)
    joints = recording.joint_names
    torque, meaning = measured_torque(recording, settings)
    values = np.concatenate([recording.position, torque], axis=1)
    values[~(np.abs(values) < LARGEST)] = np.nan
    screen = SampleScreen(channels=channel_names(joints, ('position', 'torque')))
    # Stamps from 1 ns: zero means "none", and a recording may count from its first sample.
    possible = np.abs(recording.time) < _LATEST
    stamps = np.rint(np.where(possible, recording.time, 0.0) * 1e9).astype(np.int64)
    shift = 1 - int(stamps.min(initial=0))
    stamps = np.where(possible, stamps + shift, 0)
    arrival = None if recording.arrival is None else np.rint(recording.arrival * 1e9).astype(np.int64)
    late = LateStamps()
    if recording.velocity is not None and (np.diff(stamps) == 0).any():  # late stamps repeat
        stamps = late.correct(stamps, recording.position, recording.velocity)
        if late.moved:
            recording = replace(recording, time=np.asarray((stamps - shift) * 1e-9, dtype=np.float64))
    good, displaced, jumps = screen.screen(stamps, values, arrival)
    counts = screen.finish()
    usable = np.flatnonzero(good)
    if len(usable) < 32:
        message = (
            f'expected at least 32 usable samples, got {len(usable)} of {len(recording)} '
            f'({counts["not_a_number"]} not finite, {counts["repeated"]} repeated, {counts["backward"]} backward)'
        )
        raise DataError(message, expected=32, found=len(usable))
    unwrapper = TurnUnwrapper()
    for start in range(0, len(usable), _AT_ONCE):
        part = usable[start : start + _AT_ONCE]
        values[part, : len(joints)] = unwrapper.unwrap(values[part, : len(joints)])
    found = screening_found(screen, late, unwrapper)
    found['unstamped'] += recording.provenance.get('counts', {}).get('unstamped', 0)
    # Samples with a spike in a position or torque are left out, and counted per channel
    spikes = np.concatenate([find_spikes(values[usable, k : k + 1]) for k in range(values.shape[1])], axis=1)
    found['spikes'] = int(spikes.any(axis=1).sum())
    of_channels = zip(screen.channels, spikes.sum(axis=0).tolist(), strict=True)
    found['spiked_channels'] = {name: count for name, count in of_channels if count}
    usable = usable[~spikes.any(axis=1)]
    breaks = np.searchsorted(usable, jumps)
    steps = find_steps(recording.time[usable], values[usable, : len(joints)])
    found['steps'] = int(steps.any(axis=1).sum())
    if found['steps']:
        size = np.abs(np.diff(values[usable, : len(joints)], axis=0) * steps).max(axis=0)
        found['stepped_joints'] = {name: float(each) for name, each in zip(joints, size, strict=True) if each}
    breaks = np.unique(np.concatenate([breaks, np.flatnonzero(steps.any(axis=1)) + 1]))
    breaks = breaks[(breaks > 0) & (breaks < len(usable))]  # one before or behind all is none
    recording, step = _retimed(recording, usable, values[usable, : len(joints)], breaks, found)
    if recording.velocity is not None:
        some = usable[:MOST]
        share = velocity_share(recording.time[some], values[some, : len(joints)], recording.velocity[some])
        if np.isfinite(share):
            found['velocity_share'] = share
    provenance: dict[str, Any] = {
        'recording': dict(recording.provenance),
        'effort': list(meaning),
        'version': robotid_ros.__version__,
        'screening': found,
    }
    # Velocities and efforts are not needed any more, and take half of the memory of a long recording.
    recording = replace(recording, velocity=None, acceleration=None, effort=None, current=None)
    return usable, displaced, breaks, recording, values, step, provenance


def _retimed(
    recording: Recording, usable: IntArray, position: Array, breaks: IntArray, found: dict[str, Any]
) -> tuple[Recording, float]:
    """Return a recording whose usable samples have the times at which they were taken, and their distance [s]."""
    time, clocks = recording.time.copy(), {}
    for start, stop in itertools.pairwise([0, *breaks.tolist(), len(usable)]):
        part = usable[start:stop]
        time[part], *clocks[stop - start] = sample_times(recording.time[part], position[start:stop])
    step, left = clocks[max(clocks)]
    if np.isfinite(left):
        found['even_clock_leaves'] = left
    late = recording.time[usable] - time[usable]
    if late.any():
        found['late_stamps'] += int((late > 0.5 * step).sum())
        found['latest_stamp'] = max(found['latest_stamp'], float(late.max()))
        apart = np.delete(np.diff(time[usable]), breaks - 1)
        gaps = apart[apart > 1.5 * step]  # by the stamps, every burst had one before it
        missing = int((np.round(gaps / step) - 1.0).sum())
        found.update(rate=1.0 / step, gaps=len(gaps), missing=missing, longest_gap=float(gaps.max(initial=0.0)))
        recording = replace(recording, time=time)
    return recording, step


def _require_seconds(time: Array) -> None:
    """Refuse times in another unit: with a usual step that is longer than any recorder of joint states takes."""
    steps = np.diff(time)
    steps = steps[steps > 0.0]
    usual = float(np.median(steps)) if len(steps) else 0.0
    if usual > _SLOWEST:
        unit = 'milliseconds' if usual < 1e3 * _SLOWEST else 'microseconds or nanoseconds'
        message = (
            f'expected times in seconds, got samples {usual:.4g} s apart, {1.0 / usual:.3g} Hz, where at least '
            f'{1.0 / _SLOWEST:g} Hz are needed; are the times in {unit}?'
        )
        raise DataError(message, expected=_SLOWEST, found=usual)


def process_file(
    path: str | Path,
    settings: ProcessingSettings | None = None,
    topic: str | None = None,
    progress: Progress | None = None,
) -> tuple[Dataset, str]:
    """Read and process a recording; return the dataset and a summary.

    Parameters
    ----------
    path : str or Path
        Anything :func:`read_recording` reads. A bag with the reference of an excitation is averaged
        over its periods, a piece at a time, if it follows it; otherwise it is treated by what it is, see
        :func:`process_recording`.
    settings : ProcessingSettings, optional
    topic : str, optional
        Of a bag.
    progress : callable, optional
        Called with the share that was read, of a bag with a reference.

    Returns
    -------
    dataset : Dataset
    summary : str
        Some lines to print.

    Raises
    ------
    DataError, MissingDependencyError
        As :func:`read_recording` and :func:`process_recording`.
    """
    settings = settings or ProcessingSettings()
    why_not = ''
    bag = opened(path)
    if settings.average and isinstance(bag, Bag):
        try:
            dataset = average_bag(bag, settings, topic, progress)
        except NoUsablePeriodError as cause:
            dataset, why_not = None, f'does not follow its reference: {cause}'
        if dataset is not None:
            effort = tuple(settings.effort.get(joint, 'unknown') for joint in dataset.joint_names)
            dataset = replace(dataset, context=read_context(bag, topic, settings.joints).to_dict(), effort=effort)
            return dataset, summarize(dataset)
    dataset = process_recording(read_recording(bag, topic, settings.joints or None), settings)
    if why_not:
        dataset = replace(dataset, provenance={**dataset.provenance, 'not_averaged': why_not})
    return dataset, summarize(dataset)


def summarize(dataset: Dataset) -> str:
    """Return a summary of a processed dataset, from its provenance."""
    screening = dataset.provenance.get('screening', {})
    source = dataset.provenance.get('recording', {})
    samples, rate = screening.get('samples', 0), screening.get('rate', 0.0)
    motion = dataset.provenance.get('motion', '')
    gaps = 'none'
    if screening.get('gaps'):
        count, missing, longest = (screening[name] for name in ('gaps', 'missing', 'longest_gap'))
        gaps = f'{count}, {missing} samples missing, longest {longest:.3g} s'
    lines = [f'recording  {source.get("file", "?")}: {samples} samples at {rate:.6g} Hz', f'gaps       {gaps}']
    if source.get('other_topics'):
        lines.append(f'note       joint states of {source["topic"]}, not of {", ".join(source["other_topics"])}')
    counts = {**source.get('counts', {}), **source.get('faults', {}), **screening}
    shown = [
        name
        for name in dict.fromkeys((*FAULTS, 'other_joints', 'wraps', *source.get('faults', {})))
        if name not in _ELSEWHERE
    ]
    faults = [f'{counts[name]} {name.replace("_", " ")}' for name in shown if counts.get(name)]
    lines.append('faults     ' + (', '.join(faults) or 'none'))
    if screening.get('spikes'):
        where = ', '.join(f'{name} ({count})' for name, count in screening['spiked_channels'].items())
        lines.append(f'note       {screening["spikes"]} samples with a spike were left out: {where}')
    lines += [
        f'note       {text}'
        for remark in (late_stamps_remark, velocity_remark, steps_remark)
        if (text := remark(screening))
    ]
    if 'even_clock_leaves' in screening:
        left = screening['even_clock_leaves']
        taken = f'the times are {"those of that clock" if left < SMOOTHER else "the stamps"}'
        lines.append(f'stamps     not even; an even clock leaves {100.0 * left:.3g} % of the roughness, so {taken}')
    lines += [f'motion     {motion}'] if motion else []
    if 'averaging' in dataset.provenance:
        lines += _averaging_lines(dataset)
    if 'filtering' in dataset.provenance:
        lines += _filtering_lines(dataset)
    if 'not_averaged' in dataset.provenance:
        lines.append(f'note       {dataset.provenance["not_averaged"]}')
    return '\n'.join(lines)


def _averaging_lines(dataset: Dataset) -> list[str]:
    found = dataset.provenance['averaging']
    used, bins, harmonics = len(found['periods_used']), found['bins'], found['harmonics']
    lines = [f'periods    {used} of {found["period"]:.9g} s averaged into {bins} bins, {harmonics} harmonics']
    lines += [f'           period {number} left out: {reason}' for number, reason in found['periods_excluded']]
    if found['torque_noise_std'] is not None:
        lines.append('noise      joint, position [rad], torque [N m] per sample, averaged torque [N m]')
        averaged = np.zeros(dataset.n) if dataset.noise_std is None else dataset.noise_std
        rows = zip(dataset.joint_names, found['position_noise_std'], found['torque_noise_std'], averaged, strict=True)
        lines += [f'           {joint}  {p:.3g}  {t:.3g}  {a:.3g}' for joint, p, t, a in rows]
    if dataset.provenance.get('settings', {}).get('cutoff') is not None:
        lines.append('note       the cutoff has no effect on an average over periods; --excitation none filters')
    return lines + _remarks(found)


def _filtering_lines(dataset: Dataset) -> list[str]:
    found = dataset.provenance['filtering']
    runs, trimmed, samples = (found[name] for name in ('runs', 'trimmed', 'samples'))
    before, after = found.get('stood', (0.0, 0.0))  # older files do not say
    lines = [
        f'filter     zero-phase, {found["cutoff"]:.4g} Hz (from the {found["cutoff_from"]})',
        f'samples    {samples} in {runs} run{"s"[: runs > 1]}, {trimmed:.3g} s trimmed at both ends of each',
    ]
    if before or after:
        lines.append(f'left out   a standstill of {before:.3g} s before the motion, and of {after:.3g} s after it')
    lines.append('bandwidth  joint, bandwidth [Hz], position noise [rad]')
    rows = zip(dataset.joint_names, found['motion_bandwidth'], found['position_noise_std'], strict=True)
    lines += [f'           {joint}  {f:.3g}  {s:.3g}' for joint, f, s in rows]
    return lines + _remarks(found)


def _remarks(found: dict[str, Any]) -> list[str]:
    remarks: Sequence[str] = found['warnings']
    if found['standing_still']:
        remarks = [*remarks, f'standing still: {", ".join(found["standing_still"])}']
    return [f'note       {remark}' for remark in remarks]
