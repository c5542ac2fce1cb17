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

from robotid_ros.arrays import Array, IntArray


def sliding(
    position: Array, distance: Array, runs: Sequence[tuple[int, int]], rows: IntArray | slice = slice(None)
) -> Array:
    """Return which part of the sliding friction opposes the motion along recorded positions, by Dahl's law.

        dz/dq = (1 - z sign(dq)) / d

    A smooth sign of the motion: it goes from -1 to 1 over a few times the distance d, whatever the speed, and keeps its
    value while the joint stands. Each run begins with z = 0. From a reversal at q_0 to the next one,

        z = s - (s - z_0) exp(-|q - q_0| / d),

    with the direction s, so that reversals alone follow from each other, and samples are evaluated where they count.

    Positions have the shape (N, n) [rad or m], the distances (n,) or (n, d): one or several d of each joint, above zero
    [rad or m]. Runs, (start, stop), are rows that are contiguous in time, in order and without gaps. The result, for M
    ``rows``, by default all, has the shape (M, n) or (M, n, d): z, from -1 to 1.

    Source: P. Dahl: Solid friction damping of mechanical vibrations. AIAA Journal 14 (1976), 1675-1682.
    """
    begin = np.array([start for start, _ in runs])
    result = [
        _along(np.ascontiguousarray(q), np.atleast_1d(d), begin, rows)
        for q, d in zip(position.T, distance, strict=True)
    ]
    stacked = np.stack(result, axis=1)
    return stacked if np.ndim(distance) > 1 else np.asarray(stacked[..., 0])


def _along(q: Array, distance: Array, begin: IntArray, rows: IntArray | slice) -> Array:
    """Return z of one joint, shape (M, d), at positions (N,); runs begin at some rows."""
    step = np.diff(q, prepend=q[:1])
    step[begin] = 0.0
    moves = np.flatnonzero(step)
    direction = np.sign(step[moves])
    first = np.diff(np.searchsorted(begin, moves, side='right'), prepend=-1) != 0  # in its run
    turns = np.flatnonzero(first | (np.diff(direction, prepend=0.0) != 0.0))
    # Where a run begins it goes nowhere, and nothing has built up.
    at = np.concatenate([begin, moves[turns] - 1])
    order = np.argsort(at, kind='stable')
    at = at[order]
    direction = np.concatenate([np.zeros(len(begin)), direction[turns]])[order][:, None]
    left = np.exp(-np.abs(np.diff(q[at], prepend=q[at[:1]]))[:, None] / distance)
    added = np.concatenate([np.zeros((1, 1)), direction[:-1]]) * (1.0 - left)
    left[order < len(begin)] = added[order < len(begin)] = 0.0
    # z_k = left_k z_(k-1) + added_k from zero, shape (N, n), in blocks that go on side by side
    count, n = left.shape
    length = max(int(np.sqrt(count)), 1)
    blocks = -(-count // length)
    wide = np.ones((blocks * length, n)), np.zeros((blocks * length, n))
    wide[0][:count], wide[1][:count] = left, added
    factors, values = (each.reshape(blocks, length, n) for each in wide)
    for k in range(1, length):
        values[:, k] += factors[:, k] * values[:, k - 1]
        factors[:, k] *= factors[:, k - 1]
    last = np.zeros(n)
    for block in range(blocks):
        values[block] += factors[block] * last
        last = values[block, -1]
    built = np.asarray(values.reshape(-1, n)[:count])
    segment = np.repeat(np.arange(len(at)), np.diff(at, append=len(q)))[rows]
    away = np.abs(q[rows] - q[at][segment])[:, None]
    return np.asarray(direction[segment] - (direction - built)[segment] * np.exp(-away / distance))
