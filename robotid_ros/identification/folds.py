# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Stretches of a recording for cross-validation: contiguous, and a motion that repeats stays in one of them.

Neighbouring samples know each other, so folds are stretches of time. So do samples that pass through the
same state again: the second period of an excitation, or a second run of it, tells nothing that the first
did not, and a fold that holds one of them while the other trains the model validates nothing.
"""

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.identification.samples import Samples

__all__ = ['STRETCHES', 'stretches']

STRETCHES = 12
_SAME_STATE = 0.15  # root-mean-square distance over the joints, in standard deviations of position and speed
_BLOCK = 256


def stretches(samples: Samples, count: int = STRETCHES) -> IntArray:
    """Number stretches of the motion, shape (N,), from 0 to ``count - 1``.

    A sample at which the arm is where it was before, position and velocity of all joints alike, gets the
    number of that earlier sample; the others are dealt out in order of time, as many to each stretch.

    Parameters
    ----------
    samples : Samples
    count : int
    """
    total = len(samples)
    # A slow motion is near its own recent past: that is no return.
    before = _visited_before(_states(samples), max(1, total // (2 * count)))
    fresh = before < 0
    label = np.zeros(total, dtype=np.int64)
    label[fresh] = np.arange(int(fresh.sum())) * count // max(1, int(fresh.sum()))
    for k in np.flatnonzero(~fresh).tolist():
        label[k] = label[before[k]]
    return label


def _states(samples: Samples) -> Array:
    """Return positions and velocities, each joint in units of its own spread, shape (N, 2 n)."""
    moving = np.std(samples.q, axis=0) > 1e-6
    columns = [x[:, moving] / np.maximum(np.std(x[:, moving], axis=0), 1e-12) for x in (samples.q, samples.dq)]
    return np.concatenate(columns, axis=1)


def _visited_before(states: Array, recent: int) -> IntArray:
    """Return the sample nearest in state of those more than ``recent`` samples earlier, -1 where none is near."""
    square = np.sum(states**2, axis=1)
    limit = _SAME_STATE**2 * max(1, states.shape[1])
    before = np.full(len(states), -1)
    for start in range(recent + 1, len(states), _BLOCK):
        stop = min(start + _BLOCK, len(states))
        rows = np.arange(start, stop)
        distance = square[rows, None] + square[: stop - recent] - 2.0 * states[rows] @ states[: stop - recent].T
        distance[np.arange(stop - recent) >= rows[:, None] - recent] = np.inf
        nearest = np.argmin(distance, axis=1)
        near = distance[np.arange(len(rows)), nearest] <= limit
        before[rows[near]] = nearest[near]
    return before
