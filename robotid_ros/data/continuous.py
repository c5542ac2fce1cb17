"""From a recording that does not repeat to a dataset: one zero-phase filter on every signal."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import interpolate

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.errors import DataError
from robotid_ros.signals.differentiation import central_difference, savitzky_golay
from robotid_ros.signals.filtering import choose_cutoff, settling_samples, zero_phase_low_pass

__all__ = ['filtered_dataset']


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

    Runs are what lies between the breaks and between gaps too long to interpolate. Each is brought
    to even sampling where it is not (cubic interpolation), filtered, differentiated, and trimmed.

    Parameters
    ----------
    joints : tuple of str
    time : ndarray, shape (N,)
        Strictly increasing between breaks [s].
    position, torque : ndarray, shape (N, n)
    breaks : ndarray of int
        Samples at which something new begins.
    step : float
        Sampling interval [s].
    settings : ProcessingSettings
    provenance : mapping

    Raises
    ------
    DataError
        If no run is long enough to be filtered and trimmed.
    """
    if not step > 0.0:
        raise DataError(f'expected samples with increasing times, got {len(time)} samples')
    rate = 1.0 / step
    whole = _runs(time, breaks, np.inf)
    longest = max(whole, key=lambda run: run.stop - run.start)
    bandwidth = choose_cutoff(_even(time[longest], position[longest], step)[1], rate)
    cutoff = bandwidth.cutoff if settings.cutoff is None else settings.cutoff
    runs = _runs(time, breaks, max(1.5 * step, settings.largest_gap / cutoff))
    trimmed = settling_samples(rate, cutoff) if settings.trimmed is None else round(settings.trimmed * rate)
    signals = np.concatenate([position, torque], axis=1)
    evened = [_even(time[run], signals[run], step) for run in runs]
    parts = [
        _run(joints, grid, values, rate, cutoff, trimmed, settings)
        for grid, values in evened
        if len(grid) >= 2 * trimmed + 32
    ]
    if not parts:
        raise DataError(
            f'no run is long enough: expected at least {2 * trimmed + 32} samples without a gap at a cutoff of '
            f'{cutoff:g} Hz, the longest of {len(runs)} has {max(len(grid) for grid, _ in evened)}'
        )
    dataset = concatenate(parts)
    found = {
        'rate': rate,
        'cutoff': cutoff,
        'cutoff_from': 'data' if settings.cutoff is None else 'settings',
        'motion_bandwidth': bandwidth.motion.tolist(),
        'position_noise_std': bandwidth.noise_std.tolist(),
        'runs': len(parts),
        'runs_too_short': len(runs) - len(parts),
        'resampled': any(not _is_even(time[run], step) for run in runs),
        'trimmed': trimmed / rate,
        'samples': len(dataset),
        'standing_still': [joint for joint, moves in zip(joints, bandwidth.moving, strict=True) if not moves],
        'warnings': [],
    }
    return replace(dataset, provenance={**provenance, 'filtering': found, 'settings': settings.to_dict()})


def _runs(time: Array, breaks: IntArray, largest_gap: float) -> list[slice]:
    """Return the stretches between breaks and gaps."""
    gaps = np.flatnonzero(np.diff(time) > largest_gap) + 1
    bounds = np.unique(np.concatenate([[0], breaks, gaps, [len(time)]])).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def _is_even(time: Array, step: float) -> bool:
    ideal = time[0] + step * np.arange(len(time))
    return bool(np.abs(time - ideal).max() < 0.02 * step)


def _even(time: Array, values: Array, step: float) -> tuple[Array, Array]:
    """Return evenly sampled signals; those that are even already, as they are."""
    if len(time) < 4 or _is_even(time, step):
        return time, values
    grid = time[0] + step * np.arange(int((time[-1] - time[0]) / step) + 1)
    return grid, np.asarray(interpolate.CubicSpline(time, values, axis=0)(grid))


def _run(
    joints: tuple[str, ...],
    time: Array,
    signals: Array,
    rate: float,
    cutoff: float,
    trimmed: int,
    settings: ProcessingSettings,
) -> Dataset:
    """Filter, differentiate and trim one run; ``signals`` are positions and torques, (N, 2 n)."""
    n = len(joints)
    filtered = signals if cutoff >= 0.5 * rate else zero_phase_low_pass(signals, rate, cutoff)
    q = filtered[:, :n]
    if settings.differentiation == 'central':
        dq, ddq = (central_difference(q, rate, derivative) for derivative in (1, 2))
    else:
        # Half a period of the cutoff: the polynomial follows whatever the filter has left.
        window = max(7, int(0.5 * rate / cutoff) // 2 * 2 + 1)
        dq, ddq = (savitzky_golay(q, rate, window, 4, derivative) for derivative in (1, 2))
    inner = slice(trimmed, len(time) - trimmed)
    return Dataset(
        joint_names=joints,
        time=time[inner],
        q=q[inner],
        dq=dq[inner],
        ddq=ddq[inner],
        tau=signals[inner, n:],
        tau_filtered=filtered[inner, n:],
        rate=rate,
        cutoff=min(cutoff, 0.5 * rate),
    )
