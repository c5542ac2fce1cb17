# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Model rows over samples: base regressor and friction columns, evaluated once, in pieces that fit the cache."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import BaseRegressor, Information, gather
from robotid_ros.identification.samples import Samples

_CHUNK = 2048  # samples whose regressor stays in the processor's cache
_LONGEST_RUN = 20_000  # samples of a run that is filtered at once; its ends are a negligible part of it
_KEEP_BYTES = 400e6  # a regressor up to this size is kept, a larger one is computed again for each pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A contiguous piece of the rows.

    Attributes
    ----------
    rows : slice
    samples : Samples
    rigid : ndarray, shape (M, n, b)
        Base regressor, filtered.
    """

    rows: slice
    samples: Samples
    rigid: Array

    def own(self, friction: FrictionModel, shape: Array, load: Array | None) -> Array:
        """Return the filtered friction columns, shape (M, n, k), for the load of all rows, shape (N, n)."""
        some = None if load is None else load[self.rows]
        return self.samples.filtered(self.samples.friction_columns(friction, shape, some))


class Rows:
    """Rows of the linear torque model, filtered by the low-passes that the torque went through.

    The base regressor is computed once and kept where it fits into memory.
    """

    def __init__(self, base: BaseRegressor, samples: Samples) -> None:
        self.base = base
        self.samples = samples
        self._kept: dict[int, Array] = {}
        self._filtered: dict[int, Array] = {}
        copies = 1 if samples.open else 2
        self._keep = copies * len(samples) * samples.n * len(base.independent) * 8 <= _KEEP_BYTES

    def _parts(self) -> Iterator[tuple[slice, Samples]]:
        start = 0
        for part in self.samples.pieces(_CHUNK if self.samples.open else _LONGEST_RUN):
            yield slice(start, start + len(part)), part
            start += len(part)

    def _rigid(self, rows: slice, part: Samples) -> Array:
        piece = self._kept.get(rows.start)
        if piece is None:
            piece = self.base.regressor(part.q, part.dq, part.ddq)
            if self._keep:
                self._kept[rows.start] = piece
        return piece

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows piece by piece."""
        for rows, part in self._parts():
            piece = self._filtered.get(rows.start)
            if piece is None:
                rigid = self._rigid(rows, part)
                piece = rigid if part.open else part.filtered(rigid)
                if self._keep:
                    self._filtered[rows.start] = piece
            yield Piece(rows=rows, samples=part, rigid=piece)

    def torque(self, values: Array) -> Array:
        """Return the rigid body's torque before any filter, shape (N, n), of base parameters (b,) [N m]."""
        return np.concatenate([self._rigid(rows, part) @ values for rows, part in self._parts()])

    def rigid(self) -> Array:
        """Return the base regressor of all rows before any filter, shape (N, n, b)."""
        return np.concatenate([self._rigid(rows, part) for rows, part in self._parts()])

    def information(
        self, friction: FrictionModel, shape: Array, load: Array | None, weight: Array | None = None
    ) -> Information:
        """Return the Gram matrices of the rows; ``weight``, shape (N, n), replaces that of the samples."""
        total: Information | None = None
        for piece in self.pieces():
            some = piece.samples.weight if weight is None else weight[piece.rows]
            info = gather(piece.rigid, piece.own(friction, shape, load), piece.samples.target, some)
            total = info if total is None else total + info
        assert total is not None
        return total
