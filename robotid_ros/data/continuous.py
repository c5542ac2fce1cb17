# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Dataset of a recording that is not periodic: one zero-phase filter on every signal."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.dataset import Dataset, EvenRecording, Run
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.errors import DataError
from robotid_ros.signals.filtering import choose_cutoff, settling_samples


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

    Breaks (first samples of new runs), and gaps too long to interpolate, separate the runs. Each run is resampled
    evenly where needed (cubic interpolation), filtered, differentiated, and trimmed. Times, shape (N,) [s], increase
    between breaks, by about ``step``; positions and torques have the shape (N, n). Raises a DataError if no run is long
    enough to be filtered and trimmed, or the cutoff is above half the rate.
    """
    if not step > 0.0:
        raise DataError(f'expected samples with increasing times, got {len(time)} samples')
    longest = max(_runs(time, breaks, np.inf), key=lambda run: run.stop - run.start)
    grid, even_position = _even(time[longest], position[longest], step, len(joints))
    rate = (len(grid) - 1) / float(grid[-1] - grid[0])  # stamps may be rounded: their median step is not the mean
    bandwidth = choose_cutoff(even_position, rate, margin=7.0)
    cutoff = bandwidth.cutoff if settings.cutoff is None else settings.cutoff
    if cutoff > 0.5 * rate:
        raise DataError(
            f'cutoff: expected at most {0.5 * rate:.4g} Hz, half the rate of the recording, got {cutoff:g} Hz; a '
            'recording holds nothing faster'
        )
    runs = _runs(time, breaks, max(1.5 * step, settings.largest_gap / cutoff))
    signals = np.concatenate([position, torque], axis=1)
    n = len(joints)
    evened = [_even(time[run], signals[run], step, n) for run in runs]
    even = EvenRecording(
        joint_names=joints,
        runs=tuple(Run(time=grid, position=values[:, :n], torque=values[:, n:]) for grid, values in evened),
        rate=rate,
        differentiation=settings.differentiation,
        trimmed=settings.trimmed,
    )
    dataset = even.filtered(cutoff)
    used = len(dataset.sources)
    found = {
        'rate': rate,
        'cutoff': cutoff,
        'cutoff_from': 'data' if settings.cutoff is None else 'settings',
        'motion_bandwidth': bandwidth.motion.tolist(),
        'position_noise_std': bandwidth.noise_std.tolist(),
        'runs': used,
        'runs_too_short': len(runs) - used,
        'stamps_evened': any(grid is not time[run] for (grid, _), run in zip(evened, runs, strict=True)),
        'trimmed': (settling_samples(rate, cutoff) if settings.trimmed is None else round(settings.trimmed * rate))
        / rate,
        'samples': len(dataset),
        'standing_still': [joint for joint, moves in zip(joints, bandwidth.moving, strict=True) if not moves],
        'warnings': [],
    }
    return replace(
        dataset,
        unfiltered=even if settings.cutoff is None else None,
        provenance={**provenance, 'filtering': found, 'settings': settings.to_dict()},
    )


def _runs(time: Array, breaks: IntArray, largest_gap: float) -> list[slice]:
    """Return the stretches between breaks and gaps."""
    gaps = np.flatnonzero(np.diff(time) > largest_gap) + 1
    bounds = np.unique(np.concatenate([[0], breaks, gaps, [len(time)]])).tolist()
    return [slice(start, stop) for start, stop in itertools.pairwise(bounds)]


def _is_even(time: Array) -> bool:
    """Return whether stamps are a straight line to within 2 % of their distance."""
    ideal = np.linspace(time[0], time[-1], len(time))
    return bool(np.abs(time - ideal).max() < 0.02 * (ideal[1] - ideal[0]))


def _even(time: Array, values: Array, step: float, smooth: int) -> tuple[Array, Array]:
    """Return evenly sampled signals; signals that are sampled evenly are returned as they are.

    Jitter of the stamps may be real, or come from a logger while the robot samples evenly. With the wrong
    assumption the positions, the first ``smooth`` signals, are rougher, by which the right one is chosen.
    """
    if len(time) < 8 or _is_even(time):
        return time, values
    count = np.maximum(1.0, np.round(np.diff(time) / step))
    index = np.concatenate([[0.0], np.cumsum(count)])
    true_step, begin = np.polyfit(index, time, 1)
    regular = begin + true_step * index
    grids = [_resampled(stamps, values, true_step) for stamps in (time, regular)]
    if np.abs(time - regular).max() > 1.5 * step:  # the stamps are not those of even sampling with jitter
        return grids[0]
    roughness = [float(np.median(np.abs(np.diff(grid[1][:, :smooth], n=3, axis=0)))) for grid in grids]
    return grids[int(roughness[1] < 0.9 * roughness[0])]


def _resampled(time: Array, values: Array, step: float) -> tuple[Array, Array]:
    count = int((time[-1] - time[0]) / step + 1e-6) + 1
    if count == len(time) and _is_even(time):
        return time, values
    from scipy.interpolate import CubicSpline  # not at the top: see robotid_ros.signals.filtering

    grid = time[0] + step * np.arange(count)
    return grid, np.asarray(CubicSpline(time, values, axis=0)(grid))
