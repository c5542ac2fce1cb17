# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Which parameters the measurements can tell apart: column-scaled rank-revealing QR."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, IntArray

__all__ = ['Redundancy', 'independent_columns']


@dataclass(frozen=True, slots=True, kw_only=True)
class Redundancy:
    """A column that is not independent.

    Attributes
    ----------
    column : int
    like : tuple of int
        The independent columns that it is a combination of, the largest share first; empty where
        the column itself is zero.
    """

    column: int
    like: tuple[int, ...]


def independent_columns(
    matrix: Array, groups: Sequence[IntArray], *, tolerance: float = 1e-4, smallest: float = 1e-9
) -> tuple[IntArray, tuple[Redundancy, ...]]:
    """Choose independent columns by pivoted QR of the columns scaled to unit length.

    Groups are exhausted one after the other, so that columns of an earlier group are never given
    up for those of a later one; inside a group the pivot is the column farthest from the span of
    those chosen so far (ties: the last), and the rest is dropped once none is farther than the
    sine ``tolerance``.

    Parameters
    ----------
    matrix : ndarray, shape (m, k)
    groups : sequence of ndarray of int
        Columns to choose from; others are ignored.
    tolerance : float
        Smallest sine of the angle between a column and the span of the others.
    smallest : float
        Root mean square below which a column counts as zero.

    Returns
    -------
    chosen : ndarray of int
        In increasing order.
    redundant : tuple of Redundancy
    """
    wanted = np.concatenate(groups)
    norms = np.linalg.norm(matrix[:, wanted], axis=0)
    zero = norms <= smallest * np.sqrt(len(matrix))
    redundant = [Redundancy(column=int(k), like=()) for k in wanted[zero]]
    unit = matrix / np.where(np.linalg.norm(matrix, axis=0) > 0.0, np.linalg.norm(matrix, axis=0), 1.0)
    if len(matrix) > len(wanted):  # the triangle holds all angles between columns
        unit = np.asarray(np.linalg.qr(unit, mode='r'))
    rest = unit.copy()
    chosen: list[int] = []
    dropped: list[int] = []
    for group in groups:
        left = [int(k) for k in group if k not in set(wanted[zero].tolist())]
        while left:
            far = np.linalg.norm(rest[:, left], axis=0)
            best = int(np.flatnonzero(far >= far.max() * (1.0 - 1e-6))[-1])
            if far[best] < tolerance:
                dropped += left
                break
            pivot = left.pop(best)
            direction = rest[:, pivot] / far[best]
            for _ in range(2):  # twice is enough for orthogonality to round-off
                rest -= np.outer(direction, direction @ rest)
            chosen.append(pivot)
    basis = unit[:, chosen]
    for k in dropped:
        shares = np.abs(np.linalg.lstsq(basis, unit[:, k], rcond=None)[0])
        order = np.argsort(-shares)
        like = tuple(chosen[j] for j in order if shares[j] > 0.05 * shares.max())
        redundant.append(Redundancy(column=k, like=like))
    return np.array(sorted(chosen), dtype=np.int64), tuple(sorted(redundant, key=lambda r: r.column))
