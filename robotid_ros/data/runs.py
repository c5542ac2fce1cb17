# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Evenly sampled runs of a recording: averaged periods, or what a motion without period leaves."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray, given_away
from robotid_ros.data.dataset import Dataset, EvenRecording
from robotid_ros.data.recording import Recording
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.errors import DataError
from robotid_ros.signals.averaging import AveragedPeriod, PeriodAverage, channel_names
from robotid_ros.signals.differentiation import choose_harmonics, fit_fourier, noise_of_one_period
from robotid_ros.signals.filtering import (
    FEWEST,
    Bandwidth,
    choose_cutoff,
    guarded_smoothing,
    settling_samples,
    zero_phase_low_pass,
)
from robotid_ros.signals.sample_times import is_even

_LARGEST_SCATTER = 0.2  # of a joint's motion; arms repeat to a thousandth, with a wrong period it is above a half
MOST_BINS = 50_000  # some hundred bytes each
_TRIED = 2000  # places at which samples are left out
_STILL = 0.02  # of the largest spread of a joint: less is no motion
_MOVES = 0.001  # of a range: an arm that has gone so far from where it began no longer stands
_TELLS_TORQUE = 0.1  # s: friction that turns, or a load that lands, takes as long
_MISSED, _OFTEN = 5e-3, 4.0  # of a joint's spread, and times a single sample's: what a gap loses beside it costs more
MOST_EVENED = 20_000_000  # even samples of a recording that has few: five hours at 1 kHz


class NoUsablePeriodError(DataError):
    """There are samples, but no periods to average that are alike."""


def period_average(
    joints: tuple[str, ...],
    period: float,
    step: float,
    settings: ProcessingSettings,
    travel: Array | None = None,
    *,
    accelerations: bool = False,
) -> PeriodAverage:
    """Return an empty average of positions and torques, with one bin per sample, or 50 000.

    Periods in which the arm stands while the reference moves, whose ``travel``, shape (S,) [rad], is given, are left
    out. ``accelerations`` adds a channel for each joint's acceleration. Raises a DataError if a period [s] has fewer
    than 16 samples.
    """
    bins = min(round(period / step), MOST_BINS) if step > 0.0 else 0
    if bins < 16:
        message = f'averaging: expected at least 16 samples per period of {period:g} s, got {bins}'
        raise NoUsablePeriodError(message, expected=16, found=bins)
    return PeriodAverage(
        period=period,
        bins=bins,
        channels=channel_names(joints, ('position', 'torque', *(('acceleration',) if accelerations else ()))),
        transient=settings.transient_periods,
        outlier_factor=settings.outlier_factor,
        travel=travel,
        moving=len(joints),
    )


def averaged_dataset(
    average: AveragedPeriod | None,
    joints: tuple[str, ...],
    settings: ProcessingSettings,
    provenance: Mapping[str, Any],
    step: float = 0.0,
) -> Dataset:
    """Return the dataset of one averaged period.

    Positions are the Fourier series fitted to the averages, velocities and accelerations its
    derivatives; ``tau`` is the averaged torque, ``tau_filtered`` the same after five-point cubic
    smoothing; the noise is that of the averaged torque.

    Of a simulation with accelerations of single steps (:class:`~robotid_ros.signals.LateStamps`), ``ddq`` is their
    average over the same samples as the torque's, q and dq are those at the begin of the step, and nothing is smoothed:
    what scatters in the torque is motion, which ``ddq`` has too. Its noise is not known.

    The average is of positions and torques, as :func:`period_average` orders them; ``step`` is that of the simulation
    where it has accelerations, else 0 [s]. Raises a DataError if there is no usable period.
    """
    if average is None:
        raise NoUsablePeriodError('no usable period: expected at least one whole period after the transient')
    n = len(joints)
    position, torque, acceleration = (average.mean[:, k * n : (k + 1) * n] for k in range(3))
    noise, scatter = average.averaged_noise_std, average.noise_std
    _require_repeating(average, joints)
    position_noise = noise_of_one_period(position) if noise is None else noise[:n]
    # A series that is finer than half a gap is not held there by any sample. The period's end is its start.
    full, gap = np.flatnonzero(average.count), len(average.count)
    if len(full):
        gap = int(np.diff(full, append=full[0] + gap).max()) - 1
    finest = len(position) // (2 * gap + 2)
    harmonics = settings.harmonics or max(1, min(finest, choose_harmonics(position, position_noise, average.period)))
    fit = fit_fourier(average.time, position, 1.0 / average.period, harmonics, average.count)
    if harmonics == finest and (fit.residual_std > 0.01 * position.std(axis=0) + 5.0 * position_noise).any():
        raise NoUsablePeriodError(f'a gap of {average.period / (2 * finest):.3g} s is in every period')
    q, dq, ddq = fit.evaluate(average.time - step)
    passes_allowed = settings.smoothing_passes if step == 0.0 else 0
    smoothed, passes = guarded_smoothing(torque, passes_allowed, settings.smoothing_guard, periodic=True)
    rate = len(position) / average.period
    found = {
        'period': average.period,
        'periods_used': list(average.used),
        'periods_excluded': [[number, reason] for number, reason in average.excluded],
        'samples_averaged': int(average.count.sum()),
        'bins': len(position),
        'empty_bins': int((average.count == 0).sum()),
        'harmonics': harmonics,
        'fourier_residual_std': fit.residual_std.tolist(),
        'smoothing_passes': passes.tolist(),
        'position_noise_std': None if scatter is None else scatter[:n].tolist(),
        'torque_noise_std': None if scatter is None or step > 0.0 else scatter[n : 2 * n].tolist(),
        'torque_drift': average.drift[n : 2 * n].tolist(),
        'step': step,
        # Those whose position shows no motion beyond its noise.
        'standing_still': [joints[j] for j in np.flatnonzero(q.std(axis=0) <= 3.0 * position_noise + 1e-9)],
        # Of coupled motors it is not these speeds that give the power.
        'warnings': [] if settings.effort_at == 'motors' else _warnings(dq, torque),
    }
    return Dataset(
        joint_names=joints,
        time=average.time,
        q=q,
        dq=dq,
        ddq=ddq if step == 0.0 else acceleration,
        tau=torque,
        tau_filtered=smoothed,
        rate=rate,
        cutoff=0.5 * rate,
        noise_std=None if noise is None or step > 0.0 else noise[n : 2 * n],
        periods=len(average.used),
        provenance={**provenance, 'averaging': found, 'settings': settings.to_dict()},
    )


def _require_repeating(average: AveragedPeriod, joints: tuple[str, ...]) -> None:
    """Refuse an average with a period that is not that of the motion."""
    if average.noise_std is None:
        return
    for j, joint in enumerate(joints):
        motion, scatter = float(np.std(average.mean[:, j])), float(average.noise_std[j])
        if scatter > _LARGEST_SCATTER * max(motion, 1e-3):
            message = (
                f"the motion does not repeat every {average.period:g} s: joint '{joint}' is elsewhere by {scatter:.3g} "
                f'(rms) from period to period, and moves by {motion:.3g}'
            )
            raise NoUsablePeriodError(message, name=joint, found=scatter)


def _warnings(dq: Any, torque: Any) -> list[str]:
    """Return a warning where the motors' work over a period, which friction takes, is negative."""
    power = float(np.mean(np.sum(dq * torque, axis=1)))
    scale = float(np.mean(np.sum(np.abs(dq * torque), axis=1)))
    if power >= -0.02 * scale:
        return []
    sentence = (
        f'over one period the motors take {-power:.3g} W out of the arm instead of putting the friction losses in; '
        'the sign of some current or torque looks reversed'
    )
    return [sentence]


def thinned(dataset: Dataset, most: int) -> tuple[Array, Array, Array, Array, Array]:
    """Return one averaged period in at most so many points: times (M,), q, dq, ddq and tau (M, n).

    Positions and velocities are those at these times; accelerations and the smoothed torque are low-passed over the
    closed period before points are left out.
    """
    factor = -(-len(dataset) // most)
    kept = slice(None, None, factor)
    effects = np.concatenate([dataset.ddq, dataset.tau_filtered], axis=1)
    if factor > 1:
        wrap = min(len(dataset), 20 * factor)
        around = np.concatenate([effects[-wrap:], effects, effects[:wrap]])
        effects = zero_phase_low_pass(around, 1.0, 0.4 / factor)[wrap : wrap + len(dataset)]
    ddq, torque = np.split(effects[kept], 2, axis=1)
    return dataset.time[kept], dataset.q[kept], dataset.dq[kept], ddq, torque


def filtered_dataset(
    joints: tuple[str, ...],
    time: Array,
    position: Array,
    torque: Array,
    breaks: IntArray,
    step: float,
    settings: ProcessingSettings,
    provenance: Mapping[str, Any],
) -> Dataset:
    """Return the dataset of a recording that is not periodic.

    What the arm stands before its first motion and after its last is left out, but for a period of the cutoff: however
    long it is recorded, it tells what friction holds in one place, and would weigh as much as the motion. Breaks (first
    samples of new runs), and gaps too long to interpolate, separate the runs. Each run is resampled evenly where needed
    (cubic interpolation), filtered, differentiated, and trimmed. Times, shape (N,) [s], increase between breaks, by
    about ``step``; positions and torques have the shape (N, n). Raises a DataError if no run is long enough to be
    filtered and trimmed, or the cutoff is above half the rate.
    """
    if not step > 0.0:
        raise DataError(f'expected samples with increasing times, got {len(time)} samples')
    span = float(time.max() - time.min())
    if span > step * max(MOST_EVENED, 20 * len(time)):
        raise DataError(
            f'expected samples at an even rate, got {len(time)} in {span:.4g} s, most of them {step:.3g} s apart: '
            'they arrived in bursts, or there are pauses; let stamps say when each was measured, and cut pauses out'
        )
    longest, rate, bandwidth = _spectral(time, position, breaks, step)
    start, stop = _in_motion(position, rate, bandwidth)
    stood = [start / rate, (len(time) - stop) / rate]
    if any(stood):
        time, position, torque = time[start:stop], position[start:stop], torque[start:stop]
        breaks = breaks[(breaks > start) & (breaks < stop)] - start
        longest, rate, bandwidth = _spectral(time, position, breaks, step)
    cutoff = bandwidth.cutoff if settings.cutoff is None else settings.cutoff
    if cutoff > 0.5 * rate:
        message = (
            f'cutoff: expected at most {0.5 * rate:.4g} Hz, half the rate of the recording, got {cutoff:g} Hz; a '
            'recording holds nothing faster'
        )
        raise DataError(message, name='cutoff', expected=0.5 * rate, found=cutoff)
    # Torque is interpolated too, and nothing tells what it did meanwhile.
    told = max(_TELLS_TORQUE, 3.0 * step)
    bridged = settings.largest_gap * min(harmless_gap(time[longest], position[longest]), told)
    runs = _runs(time, breaks, max(1.5 * step, bridged))
    evened = [_resampled(time[run], (position[run], torque[run]), step) for run in runs]
    even = EvenRecording(
        runs=tuple(
            Recording(joint_names=joints, time=grid, position=values[0], effort=values[1]) for grid, values in evened
        ),
        rate=rate,
        differentiation=settings.differentiation,
        trimmed=settings.trimmed,
    )
    dataset = even.filtered(cutoff)
    used = len(dataset.sources)
    trimmed = settling_samples(rate, cutoff) if settings.trimmed is None else round(settings.trimmed * rate)
    left = len(dataset) + 2 * trimmed * used
    unused = (
        f'only {left} of {sum(len(run.time) for run in even.runs)} samples lie in pieces without a gap that are long '
        'enough to be filtered, and are used; record at an even rate'
    )
    found = {
        'rate': rate,
        'cutoff': cutoff,
        'cutoff_from': 'data' if settings.cutoff is None else 'settings',
        'motion_bandwidth': bandwidth.motion.tolist(),
        'position_noise_std': bandwidth.noise_std.tolist(),
        'runs': used,
        'runs_too_short': len(runs) - used,
        'stamps_evened': any(not np.array_equal(grid, time[run]) for (grid, _), run in zip(evened, runs, strict=True)),
        'trimmed': trimmed / rate,
        'stood': stood,
        'samples': len(dataset),
        'standing_still': [joint for joint, moves in zip(joints, bandwidth.moving, strict=True) if not moves],
        'warnings': [unused] if 2 * left < len(time) else [],
    }
    return replace(
        dataset,
        unfiltered=even if settings.cutoff is None else None,
        provenance={**provenance, 'filtering': found, 'settings': settings.to_dict()},
    )


def _spectral(time: Array, position: Array, breaks: IntArray, step: float) -> tuple[slice, float, Bandwidth]:
    """Return the longest run without a break, its rate [Hz], and the bandwidth and noise of its motion."""
    longest = max(_runs(time, breaks, np.inf), key=lambda run: run.stop - run.start)
    grid, (even_position,) = _resampled(time[longest], (position[longest],), step)
    rate = (len(grid) - 1) / float(grid[-1] - grid[0])  # stamps may be rounded: their median step is not the mean
    return longest, rate, choose_cutoff(even_position, rate, margin=7.0)


def _in_motion(position: Array, rate: float, bandwidth: Bandwidth) -> tuple[int, int]:
    """Return the samples, from one to before another, that move, with a period of the cutoff before and after."""
    # In any run: the bandwidth is that of the longest one, in which a joint may stand that moves in another.
    moving = np.std(position, axis=0) > 3.0 * bandwidth.noise_std + 1e-12
    joints = position[:, moving]
    least = np.maximum(_MOVES * np.ptp(joints, axis=0), 6.0 * bandwidth.noise_std[moving])
    away = [(np.abs(joints - joints[k]) > least).any(axis=1) for k in (0, -1)]
    if not (away[0].any() and away[1].any()):
        return 0, len(position)  # nothing moves
    first, last = int(np.argmax(away[0])), len(position) - 1 - int(np.argmax(away[1][::-1]))
    edge = settling_samples(rate, bandwidth.cutoff)
    start, stop = max(first - edge, 0), min(last + 1 + edge, len(position))
    return (start, stop) if stop - start >= FEWEST else (0, len(position))


def harmless_gap(time: Array, position: Array) -> float:
    r"""Return the longest gap that interpolation bridges [s].

    One, two, four and more samples in a row are left out, all along a recording, and the one in their middle is found
    again by the cubic through two on either side. A gap that long is harmless where that misses a joint by no more than
    four times what it misses by a single sample, as noise and uneven stamps make it, or by half a percent of its
    spread; both in the median over the joints that move.

    ``time``, shape (N,): increasing [s]. ``position``, shape (N, n) [rad or m]. Returns 0 where no joint moves, or
    there are fewer than 16 samples.
    """
    spread = np.std(position, axis=0)
    moving = spread > _STILL * float(spread.max(initial=0.0))
    harmless, single, count = 0.0, 0.0, 1
    while moving.any() and count <= len(time) // 16:
        first = np.unique(np.linspace(1, len(time) - count - 3, _TRIED).astype(int))
        around = time[first[:, None] + [-1, 0, count + 1, count + 2]]
        middle = first + (count + 1) // 2
        weight = np.ones(around.shape)
        for a, b in itertools.permutations(range(4), 2):
            weight[:, a] *= (time[middle] - around[:, b]) / (around[:, a] - around[:, b])
        found = np.einsum('ka,kaj->kj', weight, position[first[:, None] + [-1, 0, count + 1, count + 2]][..., moving])
        missed = np.sqrt(np.mean((position[middle][:, moving] - found) ** 2, axis=0)) / spread[moving]
        error = float(np.median(missed))
        single = error if count == 1 else single
        if error > max(_OFTEN * single, _MISSED):
            break
        harmless = float(np.median(around[:, 2] - around[:, 1]))
        count = max(count + 1, 5 * count // 4)
    return harmless


def _runs(time: Array, breaks: IntArray, largest_gap: float) -> list[slice]:
    """Return the stretches between breaks and gaps."""
    gaps = np.flatnonzero(np.diff(time) > largest_gap) + 1
    bounds = np.unique(np.concatenate([[0], breaks, gaps, [len(time)]])).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def _resampled(time: Array, signals: Sequence[Array], step: float) -> tuple[Array, Sequence[Array]]:
    """Return evenly sampled signals; those that are sampled evenly, and too few to be, as they are."""
    if len(time) < 8 or is_even(time):
        return time, signals
    count = int((time[-1] - time[0]) / step + 1e-6) + 1
    from scipy.interpolate import CubicSpline  # not at the top: see robotid_ros.signals.filtering

    grid = time[0] + step * np.arange(count)
    result = [np.empty((count, signal.shape[1])) for signal in signals]
    for signal, even in zip(signals, result, strict=True):
        for j in range(signal.shape[1]):  # one by one: the splines of all would be four times as large as the signals
            even[:, j] = CubicSpline(time, signal[:, j])(grid)
    return grid, [given_away(even) for even in result]
