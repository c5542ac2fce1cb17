# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Model rows over many samples: the base regressor and friction columns, in pieces that fit the cache."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.samples import Samples

__all__ = ['ModelRows', 'Piece']

_CHUNK = 2048
_LONGEST_RUN = 20_000
_KEEP_BYTES = 400e6

Piece = tuple[slice, Array, Array]


class ModelRows:
    """Rows of the linear torque model, as they come out of the torque channel.

    The base regressor is computed once and kept where it fits into memory. A channel that is not
    open filters run by run; runs of more than 20 000 samples are cut into pieces, whose ends are
    a negligible part of them.

    Parameters
    ----------
    base : BaseRegressor
    samples : Samples
    channel : Channel
    """

    def __init__(self, base: BaseRegressor, samples: Samples, channel: Channel) -> None:
        self.base = base
        self.samples = samples
        self.channel = channel
        self._kept: dict[int, Array] = {}
        self._filtered: dict[int, Array] = {}
        copies = 1 if channel.open else 2
        self._keep = copies * len(samples) * samples.n * len(base.independent) * 8 <= _KEEP_BYTES

    def _slices(self) -> Iterator[slice]:
        labels = self.samples.trajectory
        starts = [0] if self.channel.open else np.flatnonzero(np.diff(labels, prepend=-1)).tolist()
        longest = _CHUNK if self.channel.open else _LONGEST_RUN
        for start, stop in zip(starts, [*starts[1:], len(labels)], strict=True):
            count = max(1, -(-(stop - start) // longest))
            edges = np.linspace(start, stop, count + 1).astype(int).tolist()
            yield from (slice(low, high) for low, high in pairwise(edges))

    def rigid(self) -> Iterator[tuple[slice, Array]]:
        """Yield the base regressor before the channel, piece by piece, shape (M, n, b)."""
        s = self.samples
        for rows in self._slices():
            piece = self._kept.get(rows.start)
            if piece is None:
                piece = self.base.regressor(s.q[rows], s.dq[rows], s.ddq[rows])
                if self._keep:
                    self._kept[rows.start] = piece
            yield rows, piece

    def through(self, rows: slice, values: Array) -> Array:
        """Return values of one piece, shape (M, ...), as they come out of the channel."""
        return values if self.channel.open else replace(self.channel, trajectory=self.samples.trajectory[rows])(values)

    def filtered(self) -> Iterator[tuple[slice, Array]]:
        """Yield the base regressor out of the channel, piece by piece, shape (M, n, b)."""
        for rows, rigid in self.rigid():
            piece = rigid if self.channel.open else self._filtered.get(rows.start)
            if piece is None:
                piece = self.through(rows, rigid)
                if self._keep:
                    self._filtered[rows.start] = piece
            yield rows, piece

    def pieces(self, friction: FrictionModel, shape: Array, load: Array | None) -> Iterator[Piece]:
        """Yield rows, base regressor (M, n, b) and friction columns (M, n, k), out of the channel."""
        for rows, rigid in self.filtered():
            some = None if load is None else load[rows]
            own = friction.columns(self.samples.dq[rows], shape, some, self.samples.q[rows])
            yield rows, rigid, self.through(rows, own)

    def torque(self, values: Array) -> Array:
        """Return the rigid body's torque before the channel, shape (N, n), of base parameters (b,) [N m]."""
        return np.concatenate([piece @ values for _, piece in self.rigid()])
