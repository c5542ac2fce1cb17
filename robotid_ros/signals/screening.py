# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Faults in a stream of stamped samples: found, counted, left out of averages."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray

TURN = 2.0 * np.pi
_TOLERANCE = 0.7  # rad: own motion between two samples, 2 rad/s over a gap of 0.35 s for example
SECOND = 1_000_000_000
_WIDEST = 5  # samples of a spike, at most
_CLEAR = 4.0  # times the largest usual change from one sample to the next
_USUAL = 99.5  # percentile of the changes that counts as their largest
_MOSTLY, _NORMAL = 97.5, 1.25  # another, and how much further out the first is where changes are normal
_BACK = 0.5  # of a jump, within which of its beginning a signal has come back
_FEWEST = 64  # changes that tell what is usual
_COUNTED = (
    'samples',
    'unstamped',
    'repeated',
    'backward',
    'stray',
    'clock_jumps',
    'displaced',
    'not_a_number',
    'gaps',
    'missing',
)


@dataclass(slots=True)
class TurnUnwrapper:
    """Makes positions continuous that a driver reports within one turn.

    A step within 0.7 rad of a whole turn between consecutive samples is a jump of the reported number, since no arm
    makes a turn between two samples.

    Attributes
    ----------
    wraps : int
        Jumps found.
    """

    wraps: int = 0
    _last: Array | None = None  # as reported
    _turns: Array | None = None

    def unwrap(self, position: Array) -> Array:
        """Return the next positions without jumps.

        Parameters
        ----------
        position : ndarray, shape (M, n)
            Finite, in the order of time [rad].

        Returns
        -------
        ndarray, shape (M, n)
            Positions as reported up to the first jump.
        """
        if not len(position):
            return position
        first = position[0] if self._last is None else self._last
        steps = np.diff(position, axis=0, prepend=first[None])
        whole = np.round(steps / TURN)
        jump = (whole != 0.0) & (np.abs(steps - whole * TURN) < _TOLERANCE)
        before = np.zeros(position.shape[1]) if self._turns is None else self._turns
        self._last = position[-1].copy()
        if not jump.any():
            self._turns = before
            return position - before * TURN if before.any() else position
        self.wraps += int(jump.sum())
        turns = before + np.cumsum(np.where(jump, whole, 0.0), axis=0)
        self._turns = turns[-1].copy()
        return np.asarray(position - turns * TURN)


@dataclass(slots=True)
class SampleScreen:
    """Screens chunks of one stream, in order of arrival, with constant memory.

    Attributes
    ----------
    channels : sequence of str
        Names of the value columns, for :attr:`bad_channels`.
    jump : float
        Smallest clock jump [s].
    counts : dict of str to int
        Number of faults of each kind: of all ``samples``, those ``unstamped``, with stamp zero, ``repeated`` and
        ``backward``, with a stamp equal to, or before, the latest one, ``stray``, single stamps more than 0.1 s off
        between two that are consistent, and ``not_a_number``, with a NaN or an infinity in a signal that is needed: all
        these are left out. ``clock_jumps``: times the stamps jumped against the clock of arrival, or backward by more
        than 0.1 s; ``displaced``: samples whose stamps are off since, left out of averages. ``gaps`` and ``missing``:
        steps of more than 1.5 sampling intervals, and the samples that would have filled them; ``longest_gap`` [s].
    step : float
        Sampling interval [s], the median over the first 64 steps; 0 until known.
    bad_channels : dict of str to int
        How many NaN each channel had.
    """

    channels: Sequence[str] = ()
    jump: float = 0.1
    counts: dict[str, Any] = field(default_factory=lambda: {**dict.fromkeys(_COUNTED, 0), 'longest_gap': 0.0})
    step: float = 0.0
    bad_channels: dict[str, int] = field(default_factory=dict)
    displacement: float = 0.0
    _by_stamps: float = 0.0  # the displacement, as the steps of the stamps show it [s]
    _last: int | None = None  # latest stamp in use [ns]
    _previous: int | None = None  # stamp of the last message of all [ns]
    _lead: int | None = None  # by how much recent stamps were ahead of their arrival, at most [ns]
    _latest: int | None = None  # latest stamp in order, across jumps [ns]
    _steps: list[IntArray] = field(default_factory=list)

    def screen(
        self, stamp: IntArray, values: Array, arrival: IntArray | None = None
    ) -> tuple[BoolArray, BoolArray, IntArray]:
        """Look at the next samples.

        Parameters
        ----------
        stamp : ndarray of int64, shape (M,)
            [ns]
        values : ndarray, shape (M, C)
        arrival : ndarray of int64, shape (M,), optional
            Times of sending or arrival by a clock that does not jump [ns]; they may be late.

        Returns
        -------
        usable : ndarray of bool, shape (M,)
            Which samples are stamped, in order and finite.
        displaced : ndarray of bool, shape (M,)
            Which stamps are off by the jumps so far.
        jumps : ndarray of int
            Samples at which the clock jumped.
        """
        self.counts['samples'] += len(stamp)
        stamped = stamp != 0
        self.counts['unstamped'] += int((~stamped).sum())
        index = np.flatnonzero(stamped)
        index = index[~self._stray(stamp[index])]
        times = stamp[index]
        arrived = None if arrival is None else arrival[index]
        jumps, displaced = self._find_jumps(times, arrived)
        ordered = np.zeros(len(times), dtype=bool)
        for start, stop in zip([0, *jumps], [*jumps, len(times)], strict=True):
            if start in jumps:
                self._last = None
            ordered[start:stop] = self._in_order(times[start:stop])
        self._find_gaps(times[ordered], np.isin(np.flatnonzero(ordered), jumps))
        finite = np.isfinite(values)
        complete = finite.all(axis=1)
        usable = np.zeros(len(stamp), dtype=bool)
        usable[index[ordered]] = True
        finite = finite[usable & ~complete]
        self.counts['not_a_number'] += len(finite)
        for k in np.flatnonzero(~finite.all(axis=0)).tolist():
            name = self.channels[k] if k < len(self.channels) else f'channel {k + 1}'
            self.bad_channels[name] = self.bad_channels.get(name, 0) + int((~finite[:, k]).sum())
        usable &= complete
        off = np.zeros(len(stamp), dtype=bool)
        off[index] = displaced
        self.counts['displaced'] += int((off & usable).sum())
        return usable, off, index[jumps]

    def _stray(self, times: IntArray) -> BoolArray:
        """Return which single stamps are off; the last one of a chunk cannot yet be distinguished from a jump."""
        stray = np.zeros(len(times), dtype=bool)
        if len(times) < 2:
            return stray
        limit = int(self.jump * SECOND)
        before = np.concatenate([[times[0] if self._previous is None else self._previous], times[:-2]])
        here, after = times[:-1], times[1:]
        stray[:-1] = (np.abs(here - before) > limit) & (np.abs(after - here) > limit)
        stray[:-1] &= np.abs(after - before) < limit
        self.counts['stray'] += int(stray.sum())
        return stray

    def _find_jumps(self, times: IntArray, arrived: IntArray | None) -> tuple[list[int], BoolArray]:
        """Return where the clock jumped, and which stamps are off."""
        displaced = np.zeros(len(times), dtype=bool)
        if not len(times):
            return [], displaced
        steps = np.diff(times, prepend=times[0] if self._previous is None else self._previous)
        limit = int(self.jump * SECOND)
        lead = None if arrived is None else times - arrived
        jumps: list[int] = []
        displaced[:] = self.displacement != 0.0
        for k in np.flatnonzero(np.abs(steps) > limit):
            amount = self._jump_at(int(k), jumps[-1] if jumps else 0, int(steps[k]), lead)
            if amount == 0:
                continue
            jumps.append(int(k))
            self.displacement += amount / SECOND
            self._by_stamps += int(steps[k]) / SECOND - self.step
            # One has the error of a late arrival, the other that of samples missing at the jump.
            if min(abs(self.displacement), abs(self._by_stamps)) < 0.5 * self.jump:  # the clock was set right again
                self.displacement = self._by_stamps = 0.0
            displaced[k:] = self.displacement != 0.0
        self.counts['clock_jumps'] += len(jumps)
        self._previous = int(times[-1])
        if lead is not None:
            recent = lead[max(jumps[-1] if jumps else 0, len(lead) - 500) :]
            kept = [] if jumps or self._lead is None or len(recent) >= 500 else [self._lead]
            self._lead = max([int(recent.max()), *kept])
        return jumps, displaced

    def _jump_at(self, k: int, since: int, step: int, lead: IntArray | None) -> int:
        """Return by how much the stamps jumped before sample k; 0 if samples are only missing or late."""
        limit = int(self.jump * SECOND)
        recent = np.zeros(0, dtype=np.int64) if lead is None else lead[max(since, k - 500) : k]
        usual = [] if self._lead is None or since > 0 else [self._lead]
        if lead is None or not (len(recent) or usual):
            back = self.displacement < 0.0 and abs(self.displacement + step / SECOND) < self.jump
            return step if step < 0 or back else 0
        # A late arrival lowers the lead; only a jump raises it.
        amount = int(lead[k]) - max([*usual, *recent.tolist()])
        return amount if abs(amount) > limit and (amount > 0) == (step > 0) else 0

    def _in_order(self, times: IntArray) -> BoolArray:
        if not len(times):
            return np.zeros(0, dtype=bool)
        first = times[0] - 1 if self._last is None else self._last
        latest = np.maximum.accumulate(np.concatenate([[first], times]))
        ordered = np.asarray(times > latest[:-1])
        self.counts['repeated'] += int((times == latest[:-1]).sum())
        self.counts['backward'] += int((times < latest[:-1]).sum())
        self._last = int(latest[-1])
        return ordered

    def _find_gaps(self, times: IntArray, at_jump: BoolArray) -> None:
        """Count steps that are too long; the first steps wait until the usual one is known."""
        if not len(times):
            return
        first = times[0] if self._latest is None else self._latest
        steps = np.diff(times, prepend=first)
        usable = ~at_jump
        usable[0] &= self._latest is not None
        self._latest = int(times[-1])
        self._steps.append(steps[usable])
        if self.step > 0.0 or sum(len(part) for part in self._steps) >= 64:
            self._count_gaps()

    def _count_gaps(self) -> None:
        steps = np.concatenate(self._steps) / SECOND
        self._steps = []
        if self.step == 0.0:
            self.step = float(np.median(steps))
        long = steps[steps > 1.5 * self.step]
        if len(long):
            self.counts['gaps'] += len(long)
            self.counts['missing'] += int((np.round(long / self.step) - 1.0).sum())
            self.counts['longest_gap'] = max(self.counts['longest_gap'], float(long.max()))

    def finish(self) -> dict[str, Any]:
        """Count the gaps of a stream shorter than 64 samples, and return the counts."""
        if sum(len(part) for part in self._steps):
            self._count_gaps()
        return self.counts


def find_spikes(values: Array) -> BoolArray:
    """Return which samples, shape (N, C), jump away from their neighbours and back within five samples.

    A jump is a change from one sample to the next of more than four times the signal's usual largest change, which
    neither motion nor noise makes; a step, of friction at a reversal for example, does not come back. The usual largest
    change is the 99.5th percentile of all changes, of which those that come back count as none, and no less than normal
    noise would have by the 97.5th: spikes are no usual change.
    """
    x = np.asarray(values, dtype=np.float64)
    spikes = np.zeros(x.shape, dtype=bool)
    change = np.diff(x, axis=0)
    for column in range(x.shape[1]):
        size = np.abs(change[:, column])
        moved = size > 0.0
        if moved.sum() < _FEWEST:
            continue
        usual = _NORMAL * float(np.percentile(size[moved], _MOSTLY))
        if size.max() > _CLEAR * usual:
            stays = np.where(_comes_back(x[:, column], size), 0.0, size)
            usual = max(usual, float(np.percentile(stays[moved], _USUAL)))
        jumps = np.flatnonzero(size > _CLEAR * usual)
        for i, k in itertools.pairwise(jumps.tolist()):
            returned = abs(x[k + 1, column] - x[i, column]) < _BACK * size[i]
            if k - i <= _WIDEST and returned and not spikes[i, column]:
                spikes[i + 1 : k + 1, column] = True
    return spikes


def _comes_back(x: Array, size: Array) -> BoolArray:
    """Return which changes of a signal, of a size (N - 1,), come back within five samples, or bring it back."""
    result = np.zeros(len(size), dtype=bool)
    for lag in range(2, _WIDEST + 2):
        away = np.abs(x[lag:] - x[:-lag])
        result[: len(away)] |= away < _BACK * size[: len(away)]
        result[lag - 1 :] |= away < _BACK * size[lag - 1 :]
    return result


def find_steps(time: Array, position: Array) -> BoolArray:
    """Return which changes of positions, shape (N - 1, n), are steps, which no motion makes.

    Between two samples a joint is more than four times as fast as ever else, by the usual largest speed as for spikes,
    and as within five samples before and after, and it does not come back: samples are missing there that the times do
    not tell, recordings were joined, or the encoder slipped.

    ``time``, shape (N,): in order [s]. ``position``, shape (N, n): without spikes [rad or m].
    """
    apart = np.diff(time)
    speed = np.abs(np.diff(position, axis=0)) / np.maximum(apart, np.median(apart) if len(apart) else 0.0)[:, None]
    steps = np.zeros(speed.shape, dtype=bool)
    for column, fast in zip(steps.T, speed.T, strict=True):
        moved = fast > 0.0
        if moved.sum() < _FEWEST:
            continue
        usual = max(np.percentile(fast[moved], _USUAL), _NORMAL * np.percentile(fast[moved], _MOSTLY))
        for k in np.flatnonzero(fast > _CLEAR * usual):
            near = np.concatenate([fast[max(k - _WIDEST, 0) : k], fast[k + 1 : k + 1 + _WIDEST]])
            column[k] = fast[k] > _CLEAR * near.max(initial=0.0)
    return steps


def steps_remark(found: Mapping[str, Any]) -> str:
    """Return a sentence on steps of positions, from what was found in a recording, or nothing."""
    if not found.get('steps'):
        return ''
    where = ', '.join(f'{name} ({size:.3g})' for name, size in found['stepped_joints'].items())
    return (
        f'positions step {found["steps"]} times, as no motion does; the largest steps: {where}: samples are missing '
        'there that the times do not tell, recordings were joined, or an encoder slipped; the motion is cut there'
    )
