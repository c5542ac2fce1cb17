# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Fewer points that look the same: what a screen cannot show is left out."""

import numpy as np

from robotid_ros.arrays import Array, IntArray

__all__ = ['envelope', 'spread']

_BUCKETS = 280  # a chart is about 300 pixels wide
_DOTS = 420


def envelope(x: Array, y: Array, buckets: int = _BUCKETS) -> tuple[Array, Array]:
    """Return the smallest and the largest value of each of some stretches, in their order.

    A curve drawn through them covers the same pixels as one through all points: no peak is lost.

    Parameters
    ----------
    x, y : ndarray, shape (N,)
    buckets : int
        Number of stretches.

    Returns
    -------
    x, y : ndarray, shape (at most 2 buckets + 2,)
        The points as they are where there are no more than that.
    """
    count = len(x)
    if count <= 2 * buckets + 2:
        return x, y
    edges = np.linspace(0, count, buckets + 1).astype(np.int64)
    low = _extremes(y, edges)
    high = _extremes(-y, edges)
    keep = np.unique(np.concatenate([low, high, [0, count - 1]]))
    return x[keep], y[keep]


def _extremes(y: Array, edges: IntArray) -> IntArray:
    """Return where the smallest value of each stretch stands."""
    lowest = np.repeat(np.minimum.reduceat(y, edges[:-1]), np.diff(edges))
    hits = np.flatnonzero(y == lowest)
    _, first = np.unique(np.searchsorted(edges, hits, side='right'), return_index=True)
    result: IntArray = hits[first]
    return result


def spread(count: int, at_most: int = _DOTS) -> IntArray:
    """Return indices of evenly spread samples of a series of ``count``."""
    if count <= at_most:
        return np.arange(count)
    return np.linspace(0, count - 1, at_most).astype(np.int64)
