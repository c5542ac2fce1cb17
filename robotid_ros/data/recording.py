# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A raw recording of joint signals, unchanged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray, freeze_fields, require_names, rows_of
from robotid_ros.errors import DataError

SIGNALS = ('position', 'velocity', 'acceleration', 'effort', 'current')
EXPORTED = '__time'  # PlotJuggler's column of times


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """Joint signals over time; sampling may be irregular, values may be missing (NaN).

    Attributes
    ----------
    joint_names : tuple of str
        Names of the n columns.
    time : ndarray, shape (N,)
        Stamps of the messages as they came [s], counted from ``origin``; finite, not necessarily increasing.
    position : ndarray, shape (N, n)
        [rad or m]
    velocity, acceleration : ndarray, shape (N, n), or None
        [rad/s, rad/s^2]
    effort : ndarray, shape (N, n), or None
        [N m or N], or whatever the driver puts there: the robot configuration says.
    current : ndarray, shape (N, n), or None
        Motor currents [A].
    origin : int
        Added to ``time``, it gives the stamps [ns]; a double holds the seconds since 1970 only to 0.2 microseconds.
    arrival : ndarray, shape (N,), or None
        When each message was written or received, by a clock that does not jump with the stamps [s].
    context : mapping
        What it says about itself, see :meth:`robotid_ros.data.context.Context.to_dict`.
    provenance : mapping
        Source file, its hash, what was repaired or is missing; plain numbers, strings and lists.
    """

    joint_names: tuple[str, ...]
    time: Array
    position: Array
    velocity: Array | None = None
    acceleration: Array | None = None
    effort: Array | None = None
    current: Array | None = None
    origin: int = 0
    arrival: Array | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze_fields(self, DataError, {'time': (None,), 'arrival': (len(self.time),)}, finite=False)
        if not np.isfinite(self.time).all():  # a damaged line may state any number, which is left out later
            raise DataError('time: expected finite numbers')
        shape = (len(self.time), len(self.joint_names))
        if shape[1] == 0:
            raise DataError('a recording needs at least one joint; it has none')
        if len(set(self.joint_names)) != shape[1]:
            raise DataError(f'joint names must differ; got {", ".join(self.joint_names)}')
        freeze_fields(self, DataError, dict.fromkeys(SIGNALS, shape), finite=False)

    def __len__(self) -> int:
        return len(self.time)

    def select(self, joints: tuple[str, ...]) -> 'Recording':
        """Return the columns of some joints, in the order asked for.

        Raises
        ------
        DataError
            If a joint is not in the recording.
        """
        index = require_names(joints, self.joint_names, 'joint', 'the recording', DataError)
        if tuple(joints) == self.joint_names:
            return self
        return replace(self, joint_names=tuple(joints), **rows_of(self, SIGNALS, (slice(None), index)))

    def slice(self, start: int, stop: int) -> 'Recording':
        """Return samples ``start`` to ``stop - 1``."""
        cut = rows_of(self, ('time', 'arrival', *SIGNALS), slice(start, stop))
        span = [int(start), int(min(stop, len(self.time)))]
        return replace(self, **cut, provenance={**self.provenance, 'samples': span})

    def at(self, stamps: IntArray) -> 'tuple[BoolArray, Recording]':
        """Return which of some stamps [ns], increasing, are within the recording, and its motion there.

        Positions and velocities are interpolated by cubic splines; efforts are left out.
        """
        from scipy.interpolate import CubicSpline  # not at the top: see robotid_ros.signals.filtering

        order, first = np.unique(self.time, return_index=True)
        time = 1e-9 * (stamps - self.origin)
        inside = (time >= order[0]) & (time <= order[-1])
        if not inside.any() or len(order) < 2:
            return np.zeros(len(stamps), dtype=bool), self.slice(0, 0)
        motion = rows_of(self, ('position', 'velocity'), first)
        there = {name: CubicSpline(order, values)(time[inside]) for name, values in motion.items()}
        others = dict.fromkeys(('acceleration', 'effort', 'current', 'arrival'))
        return inside, replace(self, time=time[inside], **there, **others)

    @property
    def rate(self) -> float:
        """Median sampling rate [Hz]; 0 where there are fewer than two samples."""
        if len(self.time) < 2:
            return 0.0
        step = float(np.median(np.diff(self.time)))
        return 1.0 / step if step > 0.0 else 0.0


def signal_columns(names: Sequence[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return the column of times of a CSV file, ours or exported by PlotJuggler, and signal and joint of each column.

    Both are empty where a column is none of a signal.
    """
    exported = EXPORTED in names and 'time' not in names
    found = []
    for name in names:
        before, _, last = name.rpartition('/')
        signal, joint = (last, before.rpartition('/')[2]) if exported else name.partition('/')[::2]
        found.append((signal, joint) if signal in SIGNALS and joint else ('', ''))
    return EXPORTED if exported else 'time', found
