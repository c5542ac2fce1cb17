# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Five-point cubic smoothing."""

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.errors import DataError


def guarded_smoothing(
    values: Array, passes: int = 1, guard: float = 0.1, periodic: bool = False
) -> tuple[Array, IntArray]:
    """Smooth repeatedly; stop for each column before a sample changes by more than the guard.

    Each pass replaces a sample by the least-squares cubic through it and its two neighbours on each side,
    ``y_i = (-3 x_{i-2} + 12 x_{i-1} + 17 x_i + 12 x_{i+1} - 3 x_{i+2}) / 35``; near an end, through the last five.

    Parameters
    ----------
    values : ndarray, shape (N,) or (N, n)
        Evenly sampled; N at least 5.
    passes : int
        How often it is applied at most.
    guard : float
        Largest change of any sample from its measured value, as a fraction of its column's range;
        the pass that would exceed it is not applied.
    periodic : bool
        The signal repeats after N samples.

    Returns
    -------
    smoothed : ndarray, shape of ``values``
    applied : ndarray of int, shape (n,)
        Passes applied to each column.

    Raises
    ------
    DataError
        If ``passes`` is negative or there are fewer than five samples.
    """
    if passes < 0:
        raise DataError(f'smoothing: expected 0 passes or more, got {passes}')
    original = np.asarray(values, dtype=np.float64)
    if len(original) < 5:
        raise DataError(f'five-point smoothing: expected at least 5 samples, got {len(original)}')
    from scipy.signal import savgol_filter  # not at the top: see filtering.py

    columns = original.reshape(len(original), -1)
    current = columns.copy()
    limit = guard * np.ptp(columns, axis=0)
    open_ = np.full(columns.shape[1], True)
    applied = np.zeros(columns.shape[1], dtype=np.int64)
    for _ in range(passes):
        candidate = savgol_filter(current, 5, 3, axis=0, mode='wrap' if periodic else 'interp')
        open_ &= np.abs(candidate - columns).max(axis=0) <= limit
        if not open_.any():
            break
        current[:, open_] = candidate[:, open_]
        applied[open_] += 1
    return current.reshape(original.shape), applied
