"""Model rows over many samples: the base regressor and friction columns, in pieces that fit the cache."""

from collections.abc import Iterator

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.samples import Samples

__all__ = ['ModelRows', 'Piece']

_CHUNK = 2048
_KEEP_BYTES = 400e6

Piece = tuple[slice, Array, Array]


class ModelRows:
    """Rows of the linear torque model, as they come out of the torque channel.

    The base regressor is computed once and kept where it fits into memory. A channel that is not
    open needs whole runs, so then there is one piece.

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
        self._filtered: Array | None = None
        self._keep = len(samples) * samples.n * len(base.independent) * 8 <= _KEEP_BYTES or not channel.open

    def rigid(self) -> Iterator[tuple[slice, Array]]:
        """Yield the base regressor unfiltered, piece by piece, shape (M, n, b)."""
        s = self.samples
        size = _CHUNK if self.channel.open else max(len(s), 1)
        for start in range(0, len(s), size):
            rows = slice(start, min(start + size, len(s)))
            piece = self._kept.get(start)
            if piece is None:
                piece = self.base.regressor(s.q[rows], s.dq[rows], s.ddq[rows])
                if self._keep:
                    self._kept[start] = piece
            yield rows, piece

    def pieces(self, friction: FrictionModel, shape: Array, load: Array | None) -> Iterator[Piece]:
        """Yield rows, base regressor (M, n, b) and friction columns (M, n, k), out of the channel."""
        for rows, rigid in self.rigid():
            own = friction.columns(
                self.samples.dq[rows], shape, None if load is None else load[rows], self.samples.q[rows]
            )
            yield rows, self.through(rigid), own if self.channel.open else self.channel(own)

    def through(self, rigid: Array) -> Array:
        """Return the base regressor as it comes out of the channel."""
        if self.channel.open:
            return rigid
        if self._filtered is None:
            self._filtered = self.channel(rigid)
        return self._filtered

    def torque(self, values: Array) -> Array:
        """Return the rigid body's torque before the channel, shape (N, n), of base parameters (b,) [N m]."""
        return np.concatenate([piece @ values for _, piece in self.rigid()])
