# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction that builds up along the way after a reversal, and stays where the joint stops."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array


def sliding(position: Array, distance: Array, runs: Sequence[tuple[int, int]]) -> Array:
    """Return which part of the sliding friction opposes the motion along recorded positions, by Dahl's law.

        dz/dq = (1 - z sign(dq)) / d

    A smooth sign of the motion: it goes from -1 to 1 over a few times the distance d, whatever the speed, and keeps its
    value while the joint stands. Each run begins with z = 0.

    Parameters
    ----------
    position : ndarray, shape (N, n)
        [rad or m]
    distance : ndarray, shape (n,)
        d, above zero [rad or m].
    runs : sequence of (start, stop)
        Rows that are contiguous in time.

    Returns
    -------
    ndarray, shape (N, n)
        z, from -1 to 1.

    References
    ----------
    P. Dahl: Solid friction damping of mechanical vibrations. AIAA Journal 14 (1976), 1675-1682.
    """
    result = np.empty_like(position, dtype=np.float64)
    for start, stop in runs:
        step = np.diff(position[start:stop], axis=0, prepend=position[start : start + 1])
        keep = np.exp(-np.abs(step) / distance)
        result[start:stop] = _recurrence(keep, np.sign(step) * (1.0 - keep))
    return result


def _recurrence(factor: Array, added: Array) -> Array:
    """Return z_k = factor_k z_(k-1) + added_k from zero, shape (N, n), in blocks that go on side by side."""
    count, n = factor.shape
    length = max(int(np.sqrt(count)), 1)
    blocks = -(-count // length)
    wide = np.ones((blocks * length, n)), np.zeros((blocks * length, n))
    wide[0][:count], wide[1][:count] = factor, added
    factors, values = (each.reshape(blocks, length, n) for each in wide)
    for k in range(1, length):
        values[:, k] += factors[:, k] * values[:, k - 1]
        factors[:, k] *= factors[:, k - 1]
    last = np.zeros(n)
    for block in range(blocks):
        values[block] += factors[block] * last
        last = values[block, -1]
    return np.asarray(values.reshape(-1, n)[:count])
