# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Steady strokes of a friction sweep: stretches in which one joint moves at a constant velocity.

A stroke is found by the measured motion alone, so that any recording of a sweep can be used. Torques of two strokes
of a joint over the same stretch in opposite directions are averaged at the same places, where gravity is equal and
cancels in their difference. Only the joint that moves has a velocity other than zero in a row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray, freeze_fields, require_names, rows_of
from robotid_ros.errors import DataError
from robotid_ros.signals.repetition import scatter

PLACES = 16  # per stroke: gravity is nearly linear between two of them, and each averages many samples
_FEWEST_SAMPLES = 5  # per place, on average
_WINDOW = 0.1  # s, over which a velocity is taken to find what moves
_ALONE = 0.1  # largest speed of other joints, as a share of that of the moving joint
_STEADY = 0.02  # largest relative change of the velocity
_SHORTEST = 0.1  # s, of a stroke
_TRIMMED = 0.1  # of a stroke at either end, where it still accelerates
_GAP = 0.1  # s without a sample that end a stroke
_SAME_SPEED = 0.05  # largest relative difference of the speeds of a pair
_SAME_PLACE = 0.02  # rad or m, of the joints that stand still


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionStrokes:
    """Torques of steady strokes, averaged place by place: N rows of n joints.

    Raises a DataError if shapes differ, a value is not finite, or not exactly one joint moves in a row.
    """

    joint_names: tuple[str, ...]
    time: Array  # shape (N,): middle of each place, from the first sample of the recording [s]
    q: Array  # shape (N, n) [rad or m]
    dq: Array  # shape (N, n): of the stroke; zero but for the one joint that moves [rad/s or m/s]
    tau: Array  # shape (N, n) [N m or N]
    provenance: Mapping[str, Any] = field(default_factory=dict)  # file, hash, counts; plain values

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.joint_names))
        freeze_fields(self, DataError, {'time': (None,), 'q': shape, 'dq': shape, 'tau': shape})
        moving = (self.dq != 0.0).sum(axis=1)
        if (moving != 1).any():
            row = int(np.flatnonzero(moving != 1)[0])
            message = f'friction strokes: expected one joint that moves in each row, row {row} has {moving[row]}'
            raise DataError(message, expected=1, found=int(moving[row]))

    def __len__(self) -> int:
        return len(self.time)

    @classmethod
    def joined(cls, strokes: 'Sequence[FrictionStrokes]') -> 'FrictionStrokes':
        """Return the strokes of several recordings of the same joints, one after the other."""
        ends = np.cumsum([0.0, *(1.0 + each.time[-1] for each in strokes[:-1])])
        return cls(
            joint_names=strokes[0].joint_names,
            time=np.concatenate([each.time + end for each, end in zip(strokes, ends, strict=True)]),
            **{name: np.concatenate([getattr(each, name) for each in strokes]) for name in ('q', 'dq', 'tau')},
            provenance={'parts': [dict(each.provenance) for each in strokes]},
        )

    def require_whole(self) -> 'FrictionStrokes':
        """Return them; a DataError if a joint has none: a sweep that was planned moves every joint of its arm."""
        lacking = [name for j, name in enumerate(self.joint_names) if not (self.joint == j).any()]
        if lacking:
            message = f'the friction sweep was interrupted: no steady stroke of {", ".join(lacking)}'
            raise DataError(message, found=tuple(lacking))
        return self

    def of_joints(self, joint_names: tuple[str, ...]) -> 'FrictionStrokes':
        """Return the strokes of some joints, in this order.

        Raises a DataError if a joint is not among those recorded, or none of these has a stroke.
        """
        columns = require_names(joint_names, self.joint_names, 'joint', 'the friction data', DataError)
        rows = np.isin(self.joint, columns)
        if not rows.any():
            raise DataError(f'friction data: no stroke of {", ".join(joint_names)}')
        arrays = rows_of(self, ('q', 'dq', 'tau'), (np.flatnonzero(rows)[:, None], columns))
        return replace(self, joint_names=joint_names, time=self.time[rows], **arrays)

    @property
    def joint(self) -> IntArray:
        """Index of the joint that moves, shape (N,)."""
        return np.asarray(np.argmax(self.dq != 0.0, axis=1), dtype=np.int64)

    @property
    def velocity(self) -> Array:
        """Of the joint that moves, shape (N,) [rad/s or m/s]."""
        return np.asarray(self.dq[np.arange(len(self)), self.joint])

    @property
    def torque(self) -> Array:
        """Of the joint that moves, shape (N,) [N m or N]."""
        return np.asarray(self.tau[np.arange(len(self)), self.joint])

    @property
    def stroke(self) -> IntArray:
        """Number of the stroke that a row belongs to, shape (N,)."""
        fresh = (np.diff(self.joint) != 0) | (np.diff(self.velocity) != 0.0)
        return np.concatenate([[0], np.cumsum(fresh)]).astype(np.int64)[: len(self)]

    @property
    def count(self) -> int:
        """Number of strokes."""
        return int(self.stroke[-1]) + 1 if len(self) else 0

    @property
    def seconds(self) -> Array:
        """Time that the torque of each place was averaged over, shape (N,) [s]."""
        result = np.zeros(len(self))
        for rows in _groups(self.stroke):
            span = np.ptp(self.time[rows])
            result[rows] = span / (len(rows) - 1) if len(rows) > 1 else _SHORTEST
        return result

    def pairs(self) -> tuple[IntArray, IntArray]:
        """Return the rows of positive velocity, and those of the opposite stroke at the same places, (P,) each."""
        ahead: list[int] = []
        back: list[int] = []
        single: dict[int, list[IntArray]] = {}  # strokes of each joint that have no partner yet
        joint, velocity, place = self.joint, self.velocity, self.q[np.arange(len(self)), self.joint]
        for rows in _groups(self.stroke):
            others = single.setdefault(int(joint[rows[0]]), [])
            for k, other in enumerate(others):
                opposite = velocity[rows[0]] * velocity[other[0]] < 0.0
                same = len(rows) == len(other) and np.allclose(place[rows], place[other[::-1]])
                if opposite and same:
                    forth, reverse = (rows, other) if velocity[rows[0]] > 0.0 else (other, rows)
                    ahead += forth.tolist()
                    back += reverse[::-1].tolist()
                    del others[k]
                    break
            else:
                others.append(rows)
        return np.array(ahead, dtype=np.int64), np.array(back, dtype=np.int64)


def _groups(labels: IntArray) -> list[IntArray]:
    """Return the rows of each run of equal labels."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    return [rows.astype(np.int64) for rows in np.split(np.arange(len(labels)), edges) if len(rows)]


def is_friction_sweep(velocity: Array) -> bool:
    """Return whether a reference is a friction sweep: one joint moves at a time, and mostly at a constant velocity.

    Its velocities have the shape (N, n) [rad/s or m/s].
    """
    moving = velocity != 0.0
    some = moving.any(axis=1)
    alone = bool((moving.sum(axis=1) <= 1).all())
    steady = some[1:] & (velocity[1:] == velocity[:-1]).all(axis=1)
    return alone and int(steady.sum()) > 2 and float(steady.sum()) > 0.1 * float(some.sum())


_Stroke: TypeAlias = tuple[int, int, int, float]
"""First sample and end of a stretch in which one joint moves at a steady velocity, the joint, and the velocity."""


def cut_strokes(joint_names: tuple[str, ...], time: Array, position: Array, torque: Array) -> FrictionStrokes:
    """Cut the steady strokes out of a recording, and average their torques place by place.

    ``time``, shape (N,): increasing [s]. ``position``, ``torque``, shape (N, n): as recorded [rad or m, N m or N].
    A pair of strokes in opposite directions has the same places in the result. Raises a DataError if no joint moves
    steadily by itself.
    """
    step = float(np.median(np.diff(time))) if len(time) > 2 else 0.0
    strokes = _find(time, position, step) if step > 0.0 else []
    if not strokes:
        raise DataError(
            'no steady stroke in the recording: expected one joint at a time to move at a constant velocity, '
            f'for {_SHORTEST:g} s at least; is it the recording of a friction sweep?'
        )
    pieces = []
    for stroke, partner in _partners(strokes, position):
        low, high = _range(stroke, position)
        if partner is not None:
            other = _range(partner, position)
            low, high = max(low, other[0]), min(high, other[1])
        fewest = min(stop - start for start, stop, _, _ in (stroke, partner or stroke))
        count = int(np.clip(fewest // _FEWEST_SAMPLES, 1, PLACES))
        pieces.append(_averaged(stroke, np.linspace(low, high, count + 1), time, position, torque))
    moments, q, dq, tau = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    return FrictionStrokes(joint_names=joint_names, time=moments - time[0], q=q, dq=dq, tau=tau)


def _find(time: Array, position: Array, step: float) -> list[_Stroke]:
    """Return the steady strokes of all joints in the order of time."""
    half = max(1, round(0.5 * _WINDOW / step))
    if len(time) < 4 * half:
        return []
    velocity = _slope(time, position, half)
    noise = scatter(position) * np.sqrt(12.0 / (2 * half + 1)) / (2 * half * step)
    size = np.abs(velocity)
    mover = np.argmax(size, axis=1)
    rows = np.arange(len(time))
    fastest = size[rows, mover]
    size[rows, mover] = 0.0
    alone = (fastest > 6.0 * noise[mover]) & (size.max(axis=1) < _ALONE * fastest)
    label = np.where(alone, (2 * mover + 1) * np.sign(velocity[rows, mover]).astype(np.int64), 0)
    label[np.concatenate([[False], np.diff(time) > max(_GAP, 5.0 * step)])] = 0
    strokes = []
    for run in _groups(label):
        if label[run[0]] != 0 and len(run) > 2 * half:
            found = _steady(time, position, step, run, int(mover[run[0]]))
            strokes += [] if found is None else [found]
    return strokes


def _steady(time: Array, position: Array, step: float, run: IntArray, joint: int) -> _Stroke | None:
    """Return the steady part of a stretch in which one joint moves, if it has one."""
    values = position[run, joint]
    half = max(2, min(round(0.5 * _WINDOW / step), len(run) // 20))
    velocity = _slope(time[run], values[:, None], half)[:, 0]
    noise = float(scatter(values[:, None])[0]) * np.sqrt(12.0 / (2 * half + 1)) / (2 * half * step)
    plateau = float(np.quantile(np.abs(velocity), 0.9)) * float(np.sign(values[-1] - values[0]))
    inside: BoolArray = np.zeros(len(run), dtype=bool)
    for _ in range(3):
        inside = np.abs(velocity - plateau) < max(_STEADY * abs(plateau), 4.0 * noise)
        if not inside.any():
            return None
        plateau = float(np.median(velocity[inside]))
    longest = max((part for part in _groups(inside.astype(np.int64)) if inside[part[0]]), key=len)
    trim = max(half, int(_TRIMMED * len(longest)))
    kept = run[longest[trim : len(longest) - trim]]
    if len(kept) < 2 or time[kept[-1]] - time[kept[0]] < _SHORTEST - step or len(longest) < 0.1 * len(run):
        return None
    slope = float(np.polyfit(time[kept] - time[kept[0]], position[kept, joint], 1)[0])
    return int(kept[0]), int(kept[-1]) + 1, joint, slope


def _slope(time: Array, values: Array, half: int) -> Array:
    """Return the slope of a straight line through ``2 half + 1`` samples about each, shape of ``values``."""
    count = 2 * half + 1

    def summed(x: Array) -> Array:
        total = np.cumsum(np.concatenate([np.zeros((1, x.shape[1])), x]), axis=0)
        return np.asarray(total[count:] - total[:-count])

    t = (time - time[0])[:, None]
    centred = values - values[0]
    st, sv, stt, stv = summed(t), summed(centred), summed(t * t), summed(t * centred)
    slope = (stv - st * sv / count) / np.maximum(stt - st * st / count, 1e-300)
    return np.concatenate([np.repeat(slope[:1], half, axis=0), slope, np.repeat(slope[-1:], half, axis=0)])


def _partners(strokes: list[_Stroke], position: Array) -> list[tuple[_Stroke, _Stroke | None]]:
    """Return each stroke with the next, or previous, one over the same stretch in the opposite direction, or None."""
    partner: list[int | None] = [None] * len(strokes)
    for k, stroke in enumerate(strokes):
        for m in range(k + 1, len(strokes)):
            if partner[k] is None and partner[m] is None and _opposite(stroke, strokes[m], position):
                partner[k], partner[m] = m, k
    return [(stroke, None if p is None else strokes[p]) for stroke, p in zip(strokes, partner, strict=True)]


def _opposite(one: _Stroke, other: _Stroke, position: Array) -> bool:
    (first, _, joint, velocity), (second, _, other_joint, reverse) = one, other
    if joint != other_joint or velocity * reverse > 0.0:
        return False
    speeds = abs(velocity), abs(reverse)
    if max(speeds) > (1.0 + _SAME_SPEED) * min(speeds):
        return False
    apart = np.abs(position[first] - position[second])
    apart[joint] = 0.0
    (low, high), (low_, high_) = _range(one, position), _range(other, position)
    return bool(apart.max() < _SAME_PLACE) and min(high, high_) - max(low, low_) > 0.5 * (high - low)


def _range(stroke: _Stroke, position: Array) -> tuple[float, float]:
    start, stop, joint, _ = stroke
    ends = position[[start, stop - 1], joint]
    return float(ends.min()), float(ends.max())


def _averaged(
    stroke: _Stroke, edges: Array, time: Array, position: Array, torque: Array
) -> tuple[Array, Array, Array, Array]:
    """Return times, positions, velocities and torques at the places of a stroke, in the order of time.

    Within a place the torque is a straight line over the position, read in the middle, so that samples need not be
    symmetric about it.
    """
    start, stop, joint, velocity = stroke
    rows = np.arange(start, stop)
    where = position[rows, joint]
    place = np.clip(np.searchsorted(edges, where) - 1, 0, len(edges) - 2)
    inside = (where >= edges[0]) & (where <= edges[-1])
    found = []
    for k in range(len(edges) - 1):
        own = rows[inside & (place == k)]
        middle = 0.5 * (edges[k] + edges[k + 1])
        if not len(own):
            own = rows[[int(np.argmin(np.abs(where - middle)))]]
        away = position[own, joint] - middle
        spread = away - away.mean()
        square = float(spread @ spread)
        slope = spread @ torque[own] / square if square > 0.0 else np.zeros(torque.shape[1])
        at = position[own].mean(axis=0)
        at[joint] = middle
        moment = time[own].mean() - away.mean() / velocity
        found.append((moment, at, torque[own].mean(axis=0) - slope * away.mean()))
    found = found if velocity > 0.0 else found[::-1]
    moments, q, tau = (np.array(column) for column in zip(*found, strict=True))
    dq = np.zeros_like(q)
    dq[:, joint] = velocity
    return moments, q, dq, tau
