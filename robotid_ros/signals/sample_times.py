# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""When samples were taken: at their stamps, by an even clock that was stamped late, or by the steps of a simulation.

A driver or a logger that stamps what it receives stamps late, in bursts and after pauses, while the robot samples
evenly. No sample is later than its stamp, and each is at least one step after the one before. So the latest times that
are possible are

    ``t[i] = min over j >= i of s[j] - (j - i) h``

with stamps ``s`` and step ``h``. Where messages were lost, the times jump by whole steps. Which of the two it was, the
motion tells: with wrong times, positions do not lie on smooth curves through their neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray

_EVEN = 0.02  # of a step; stamps that close to a straight line are as good as even
SMOOTHER = 0.9  # what is left of the roughness where an even clock is believed
_APART = np.array([1, 4, 16])  # samples
MOST = 100_000  # samples that are looked at
_LAGS = 16 * 4 ** np.arange(10)  # samples, over which the step is measured in turn
_WHOLE = 0.25  # steps; how far counts may be from whole numbers of an even clock
_FEWEST = 8
_OVER = 20  # samples, over which velocities are integrated
_MOVES = 1e-3  # rad or m in that time, by which a joint moves
_ALIKE, _OFF = 0.9, 0.1  # squared correlation of two that go together; relative error of their factor


def is_even(time: Array) -> bool:
    """Return whether times, shape (N,), are a straight line to within 2 % of their distance."""
    ideal = np.linspace(time[0], time[-1], len(time))
    return bool(np.abs(time - ideal).max() <= _EVEN * (ideal[1] - ideal[0]))


def sample_times(stamp: Array, position: Array) -> tuple[Array, float, float]:
    """Return the times at which samples were taken, their step, and how much smoother an even clock makes the motion.

    ``stamp``, shape (N,): increasing [s]. ``position``, shape (N, n) [rad or m]. Returns ``time``, shape (N,):
    increasing [s]; the stamps themselves where an even clock does not make the positions smoother; ``step`` [s];
    ``left``: roughness of the positions at the times of the smoothest even clock, over that at the stamps: below 0.9
    that clock is taken. NaN where the stamps are even.
    """
    steps = np.diff(stamp)
    usual = float(np.median(steps)) if len(steps) else 0.0
    if len(stamp) < _FEWEST or is_even(stamp):
        return stamp, usual, np.nan
    step = float(steps.sum() / np.maximum(np.round(steps / usual), 1.0).sum())
    clocks = [_by_an_even_clock(stamp, first) for first in (step, float(steps.mean()))]
    rough = [_roughness(time, position) for time, _ in clocks]
    best = int(np.argmin(rough))
    left = float(np.exp(rough[best] - _roughness(stamp, position)))
    return (*(clocks[best] if left < SMOOTHER else (stamp, step)), left)


def velocity_share(time: Array, position: Array, velocity: Array) -> float:
    """Return how many times as fast recorded velocities are as positions by their times; 1 where they agree.

    They tell where, in every joint that moves, what velocities integrate to over some samples goes with what positions
    change by, with the same factor; NaN where they do not. Times, shape (N,), increase [s]; positions and velocities
    have the shape (N, n) [rad, rad/s; or m, m/s].
    """
    told = np.isfinite(velocity).all(axis=1)
    time, position, velocity = time[told], position[told], velocity[told]
    if len(time) < _FEWEST * _OVER:
        return float('nan')
    with np.errstate(over='ignore', invalid='ignore'):  # of damaged numbers, which then tell nothing
        steps = 0.5 * (velocity[1:] + velocity[:-1]) * np.diff(time)[:, None]
        way = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)])
        moved, told_way = (values[_OVER:] - values[:-_OVER] for values in (position, way))
        size, product, told_size = (
            (a * b).sum(axis=0) for a, b in ((moved, moved), (moved, told_way), (told_way, told_way))
        )
        moving = size > _MOVES**2 * len(moved)
        if not moving.any() or (product**2 <= _ALIKE * size * told_size)[moving].any():
            return float('nan')
        factors = product[moving] / size[moving]
        share = float(np.median(factors))
        return share if np.abs(factors / share - 1.0).max() < _OFF else float('nan')


def velocity_remark(found: Mapping[str, Any]) -> str:
    """Return a sentence on velocities that contradict positions and times, from what was found in them, or nothing."""
    share = found.get('velocity_share', 1.0)
    if abs(share - 1.0) < _OFF:
        return ''
    return (
        f'the recorded velocities are {share:.3g} times what the positions do by their times: either the times are in '
        'another unit or of another clock, and then all inertias are wrong, or the velocities are not in rad/s'
    )


def _by_an_even_clock(stamp: Array, step: float) -> tuple[Array, float]:
    """Return the latest times that are possible, about a step apart or whole steps where some were lost, and the step.

    Where whole steps do not explain them, as after pauses or where two clocks drift, they are not rounded to such.
    """
    for lag in _LAGS[len(stamp) > 2 * _LAGS]:  # each knows the step well enough to count those of the next
        apart = stamp[lag:] - stamp[:-lag]
        step = float(apart.sum() / np.maximum(np.round(apart / step), 1.0).sum())
    index = np.arange(len(stamp), dtype=np.float64)
    latest = np.minimum.accumulate((stamp - step * index)[::-1])[::-1]
    count = index + np.round((latest - latest[0]) / step)
    possible: Array = latest + step * index
    step = float(np.polyfit(count, possible, 1)[0])
    time: Array = np.median(stamp - step * count) + step * count  # a delay of all is none
    if np.ptp(time - possible) > 2.0 * _WHOLE * step:
        return possible, step
    return time, step


def _roughness(time: Array, position: Array) -> float:
    """Return how far positions are from the cubics through their neighbours, which are 1, 4 and 16 samples away.

    The logarithm of the mean distance, of the ranges of the joints; mean over the three. Near neighbours show wrong
    times of single samples, far ones those of many in a row.
    """
    total = 0.0
    columns = [column / np.ptp(column) for column in position.T if np.ptp(column) > 0.0]
    for apart in _APART[len(time) > 4 * _APART]:
        here = np.arange(2 * apart, len(time) - 2 * apart, 1 + len(time) // MOST)
        near = [here + side * apart for side in (-2, -1, 1, 2)]
        shares = [
            np.prod([(time[here] - time[other]) / (time[one] - time[other]) for other in near if other is not one], 0)
            for one in near
        ]
        error = [
            np.abs(column[here] - sum(share * column[one] for share, one in zip(shares, near, strict=True))).mean()
            for column in columns
        ]
        total += float(np.log(np.sum(error) + np.finfo(float).tiny))
    return total / len(_APART)


_REPEATS = 16  # repeated stamps by which a simulated clock is recognised; more than a driver that repeats a message has
_SHARE = 0.01  # least share of messages with a repeated stamp
_ROUNDED = 1000  # ns; steps are whole microseconds, since stamps of a file may be rounded to them
_SHORTEST = 50_000  # ns; no simulation of an arm takes shorter steps
_STILL = 0.01  # rad/s or m/s; below this speed steps cannot be counted
_CLEAR = 0.02  # steps; largest distance of a count from a whole number
_LOST = 0.25  # steps; the same where messages were lost
_MOVING, _SURE = 100, 0.5  # messages in motion, and their share with a clear count, that confirm the steps
_LOOK = 500  # messages within which a late clock is on time at least once
_AHEAD = 5  # steps; a count that is always further ahead of the stamps is wrong
_SAME = 1e-6  # of a way; how far it may be from that of one step at its velocity
_MANY = 0.05  # of the samples; without 26 % of them, base parameters were 5 % off and the error did not show it
_ENOUGH = 0.5  # least share of the messages in motion that follow on the step before; their accelerations are used then


@dataclass(slots=True)
class LateStamps:
    """Gives every joint state of a simulation the time of its own step.

    Controllers in a simulation stamp with the simulated time that has reached them. Where that is late, consecutive
    messages have one stamp, and later ones skip some. Each message still holds the state of a later step than the one
    before. The stamp ``s[k]`` is never ahead of the time, so that with steps of length ``h``

        ``t[k] = max(t[k-1] + n[k] h, s[k])``

    where ``n[k]``, at least 1, is the number of steps since the last message, from the motion at its velocity:
    ``n h = (q[k] - q[k-1]) . v[k] / |v[k]|^2``. It is above one where messages were lost. While the arm rests, only
    the stamps are known.

    Stamps are changed only after repeated stamps, on a clock whose steps are multiples of one, and motion by whole
    numbers of steps were seen: rounded stamps of a real arm are left as they are.

    A motion that is commanded by a late clock stands still and catches up, and the messages of some steps are lost more
    often than those of others. The mean of the efforts that came is then not that of the mean motion: in Gazebo it
    lacked 2 % of the inertial torque. Where no message was lost between two, the acceleration of the later one's own
    step is known, ``a[k] = (v[k] - v[k-1]) / h``, and its effort belongs to the state in which that step began.

    Attributes
    ----------
    acceleration : ndarray, shape (M, n), or None
        Of the messages last corrected, each over its own step; NaN where that is not known. None before the step is
        known [rad/s^2 or m/s^2].
    messages : int
        Messages so far.
    repeated : int
        Those that had the stamp of the message before, and another position.
    moved : int
        Those that were given another time.
    latest : float
        Largest change of a stamp [s].
    """

    messages: int = 0
    repeated: int = 0
    moved: int = 0
    latest: float = 0.0
    acceleration: Array | None = None
    _step: int = 0  # ns; 0 until known, -1 for a clock without steps
    _moving: int = 0  # messages in motion
    _clear: int = 0  # those of them that moved by a whole number of steps
    _single: int = 0  # those of them that follow on the step before
    _stamp: int | None = None
    _time: int = 0  # of the last message, as counted [ns]
    _position: Array | None = None
    _velocity: Array | None = None
    _least: int = 0  # least lead of the count over the stamps [ns]
    _looked: int = 0  # messages that it was taken over

    def correct(self, stamp: IntArray, position: Array, velocity: Array) -> IntArray:
        """Return the times of the next messages.

        Parameters
        ----------
        stamp : ndarray of int64, shape (M,)
            As they came [ns]; 0 where there is none.
        position, velocity : ndarray, shape (M, n)
            [rad or m], [rad/s or m/s]; a message without velocities has NaN, and counts as one step.

        Returns
        -------
        ndarray of int64, shape (M,)
            [ns]; the same array where nothing is to be changed.
        """
        if not len(stamp):
            return stamp
        steps = np.diff(stamp, prepend=stamp[0] if self._stamp is None else self._stamp)
        first = int(self._stamp is None)
        self.messages += len(stamp)
        before = position[:1] if self._position is None else self._position
        way = np.diff(position, axis=0, prepend=before)
        self.repeated += int(((steps == 0) & (way != 0.0).any(axis=1))[first:].sum())  # not a message sent twice
        change = np.diff(velocity, axis=0, prepend=velocity[:1] if self._velocity is None else self._velocity)
        self._stamp, self._position, self._velocity = int(stamp[-1]), position[-1:].copy(), velocity[-1:].copy()
        ahead = steps[first:][steps[first:] > 0]
        if self._step >= 0 and len(ahead):  # find the step of the clock, if it has one
            step = int(np.gcd.reduce(np.rint(np.append(ahead, self._step) / _ROUNDED).astype(np.int64))) * _ROUNDED
            if step != self._step:
                self._step = step if step >= _SHORTEST else -1
                self._moving = self._clear = self._single = 0
        self.acceleration = None
        if self._step > 0:  # over single steps; NaN where the arm rests or a message was lost
            last, largest = 1e-9 * self._step, np.abs(velocity).max(axis=1)
            single = (largest > _STILL) & (np.abs(way - last * velocity).max(axis=1) <= _SAME * last * largest)
            self._single += int(single.sum())
            self.acceleration = np.where(single[:, None], change / last, np.nan)
        count = self._steps_of(way, velocity) if self._step > 0 else None
        if count is None or not self._confirmed or (stamp == 0).any():
            self._time, self._least, self._looked = self._stamp, 0, 0
            return stamp
        counted = np.cumsum(count) * self._step
        # After a reset of the world or a pause of the recorder, the count begins again at the stamps.
        breaks = np.flatnonzero(np.abs(steps) > _LOOK * self._step).tolist()
        time = np.empty_like(stamp)
        for start, stop in zip([0, *breaks], [*breaks, len(stamp)], strict=True):
            if start == stop:
                continue
            origin = self._time - (int(counted[start - 1]) if start else 0)
            if start in breaks:
                origin = int(stamp[start] - counted[start])
            lead = np.maximum.accumulate(np.maximum(stamp[start:stop] - counted[start:stop], origin))
            time[start:stop] = counted[start:stop] + lead
            self._time = int(time[stop - 1])
        late = time - stamp
        self.moved += int((late > 0).sum())
        self.latest = max(self.latest, 1e-9 * float(late.max()))
        # A count that is ahead of the stamps is corrected: the clock is on time now and then
        least = int(late.min())
        self._least = least if self._looked == 0 else min(self._least, least)
        self._looked += len(late)
        if self._looked >= _LOOK:
            if self._least > _AHEAD * self._step:
                self._time -= self._least
            self._looked = 0
        return time

    @property
    def step(self) -> float:
        """Length of a step where efforts are to be judged by the accelerations of their own steps, else 0 [s]."""
        follow = self._single >= _ENOUGH * self._moving
        return 1e-9 * self._step if self._confirmed and self.moved and follow else 0.0

    @property
    def _confirmed(self) -> bool:
        repeats = self.repeated >= max(_REPEATS, _SHARE * self.messages)
        return repeats and self._moving >= _MOVING and self._clear >= _SURE * self._moving

    def _steps_of(self, way: Array, velocity: Array) -> IntArray:
        """Return the number of steps since the message before, shape (M,)."""
        square = np.where(np.isfinite(velocity).all(axis=1), (velocity**2).sum(axis=1), 0.0)
        moving = square > _STILL**2
        count = np.ones(len(way))
        count[moving] = (way[moving] * velocity[moving]).sum(axis=1) / square[moving] / (1e-9 * self._step)
        whole = np.round(count)
        off = np.abs(count - whole)
        self._moving += int(moving.sum())
        self._clear += int((moving & (whole >= 1.0) & (off <= _CLEAR)).sum())
        # Where messages were lost, the velocity at the end is not that of the whole way.
        clear = off <= np.minimum(_CLEAR * np.maximum(whole, 1.0) ** 2, _LOST)
        return np.where(clear, np.maximum(whole, 1.0), 1.0).astype(np.int64)


def late_stamps_remark(found: Mapping[str, Any]) -> str:
    """Return a sentence on stamps that came late or repeat, from the counts of a recording; empty where there are none.

    The counts are those in ``provenance['screening']`` of a dataset.
    """
    samples = max(found.get('samples', 0), 1)
    if found.get('late_stamps', 0):
        return (
            f'{found["late_stamps"]} of {samples} stamps came late, by up to '
            f'{1e3 * found["latest_stamp"]:.0f} ms, as from a busy computer; counted anew by the steps of one clock'
        )
    share = found.get('repeated', 0) / samples
    if share <= _MANY:
        return ''
    return (
        f'{100.0 * share:.0f} % of the stamps repeat the one before and were left out; unless each is the same message '
        'sent twice, the times were rounded or a clock was late, and the inertias can be some percent off'
    )
