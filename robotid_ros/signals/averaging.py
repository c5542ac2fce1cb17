# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Average over periods, computed as the samples come, with constant memory."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array, IntArray

PARTS = 20  # parts of a period in which the path lengths of arm and reference are compared
_SLOW = 0.2  # of the longest path of a part: parts in which the reference moves less are not compared
_STANDS = 0.1  # of the reference's path: an arm that moves less stands; one that follows late moves about as far


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragedPeriod:
    """The mean of many periods over M phase bins.

    Attributes
    ----------
    period : float
        [s]
    mean : ndarray, shape (M, C)
        At phases ``m period / M``.
    count : ndarray of int, shape (M,)
        Samples in each bin; 0 where the mean is interpolated.
    used : tuple of int
        Numbers of the periods averaged, counted from the start of the first.
    excluded : tuple of (int, str)
        Numbers of the periods left out, and why.
    noise_std : ndarray, shape (C,), or None
        Standard deviation of a single sample over the periods; None with fewer than two.
    drift : ndarray, shape (C,)
        Root-mean-square change, over hundredths of the period, from the first periods averaged to the last.
    """

    period: float
    mean: Array
    count: IntArray
    used: tuple[int, ...]
    excluded: tuple[tuple[int, str], ...]
    noise_std: Array | None
    drift: Array

    @property
    def time(self) -> Array:
        """Phases of the bins [s], shape (M,)."""
        return np.asarray(np.arange(len(self.mean)) * (self.period / len(self.mean)))

    @property
    def averaged_noise_std(self) -> Array | None:
        """Standard deviation of the means, shape (C,); None with fewer than two periods."""
        if self.noise_std is None:
            return None
        filled = np.maximum(self.count[self.count > 0], 1)
        return np.asarray(self.noise_std * np.sqrt(np.mean(1.0 / filled)))


@dataclass(slots=True)
class PeriodAverage:
    """Accumulates the average of a periodic signal sample by sample.

    A sample's phase comes from its own stamp: bin ``m`` takes the samples within half a bin of phase
    ``m T / M``. The mean of a bin in one period is shifted to the bin's centre along the period's own
    slope, so that neither irregular sampling nor a drifting rate changes the average or its variance.
    A complete period is judged before it is added: neither its root-mean-square nor its largest deviation from the
    average may exceed ``outlier_factor`` times the usual one. The first five periods are held back and judged against
    their median; later ones against a running average that follows slow drift.

    Attributes
    ----------
    period : float
        T [s]
    bins : int
        M; a period has to fill half of them to count.
    channels : tuple of str
        Names of the C signals.
    transient : int
        Periods dropped at the start.
    outlier_factor : float
    travel : ndarray, shape (S,), or None
        Motion of the reference in each of S equal parts of the period, see :func:`travel`. A period in which the first
        ``moving`` channels stand while the reference moves is left out, as when the arm has been stopped.
    moving : int
        Number of channels that are positions.
    current : int or None
        Number of the period being collected; None before the first sample.
    """

    period: float
    bins: int
    channels: tuple[str, ...]
    transient: int = 1
    outlier_factor: float = 3.0
    travel: Array | None = None
    moving: int = 0
    used: list[int] = field(default_factory=list)
    excluded: list[tuple[int, str]] = field(default_factory=list)
    current: int | None = None
    _offset: Array = field(default_factory=lambda: np.zeros(0))
    _open: Array = field(default_factory=lambda: np.zeros(0))  # (M, C + 2): sums of values, of places, count
    # Number, values at the centres of the bins, and samples per bin of the periods held back.
    _held: list[tuple[int, Array, IntArray]] = field(default_factory=list)
    _count: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _periods: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _mean: Array = field(default_factory=lambda: np.zeros(0))
    _scatter: Array = field(default_factory=lambda: np.zeros(0))
    _first: Array = field(default_factory=lambda: np.zeros(0))
    _recent: Array = field(default_factory=lambda: np.zeros(0))
    _usual: list[Array] = field(default_factory=list)  # deviations of accepted periods, (2, C) each

    def __post_init__(self) -> None:
        shape = (self.bins, len(self.channels))
        self._open = np.zeros((self.bins, len(self.channels) + 2))
        self._count = np.zeros(self.bins, dtype=np.int64)
        self._periods = np.zeros(self.bins, dtype=np.int64)
        self._mean, self._scatter = np.zeros(shape), np.zeros(shape)

    def add(self, elapsed: Array, values: Array) -> None:
        """Add samples in the order of their stamps.

        Parameters
        ----------
        elapsed : ndarray, shape (M,)
            Stamps, from the start of period 0 [s]; negative ones are ignored.
        values : ndarray, shape (M, C)
            Finite.
        """
        place = elapsed * (self.bins / self.period) + 0.5
        index = np.floor(place).astype(np.int64)
        number = index // self.bins
        wanted = index >= 0
        if self.current is not None:
            wanted &= number >= self.current
        if not wanted.any():
            return
        if not len(self._offset):
            self._offset = values[wanted].mean(axis=0)
        place, index, number, values = place[wanted], index[wanted], number[wanted], values[wanted] - self._offset
        for k in np.unique(number):
            if k != self.current:
                self._close()
                self.current = int(k)
            mine = slice(None) if number[0] == number[-1] == k else number == k
            here = index[mine]
            low = int(here.min())
            span = int(here.max()) - low + 1
            within = here - low
            target = self._open[low - k * self.bins :][:span]
            for c in range(values.shape[1]):
                target[:, c] += np.bincount(within, weights=values[mine, c], minlength=span)
            target[:, -2] += np.bincount(within, weights=place[mine] - here - 0.5, minlength=span)
            target[:, -1] += np.bincount(within, minlength=span)

    def _close(self) -> None:
        """End the period being collected: hold it back, judge it, or drop it."""
        if self.current is None:
            return
        number = self.current
        count = self._open[:, -1].astype(np.int64)
        covered = np.count_nonzero(count) / self.bins
        if number < self.transient:
            self.excluded.append((number, 'transient'))
        elif covered < 0.5:
            self.excluded.append((number, f'only {100.0 * covered:.0f} % of its samples are there'))
        else:
            values = _centred(self._open)
            # The share of the period in which the arm stands although the reference moves
            if self.travel is None:
                stands = 0.0
            else:
                filled = count > 0
                place = np.arange(self.bins)[filled] / self.bins
                parts = len(self.travel)
                seen = np.bincount((place * parts).astype(int), minlength=parts) > 0.5 * self.bins / parts
                moved = travel(place, values[filled, : self.moving], parts)
                asked = self.travel > _SLOW * self.travel.max()
                stands = float(np.mean(seen & asked & (moved < _STANDS * self.travel)))
            if stands > 0.0:
                self.excluded.append((number, f'the arm stands for {100.0 * stands:.0f} % of it'))
            elif len(self._recent):
                self._accept_or_exclude(number, values, count)
            else:
                self._held.append((number, values, count))
                if len(self._held) == 5:
                    self._release()
        self._open[:] = 0.0

    def _release(self) -> None:
        """Judge the periods held back against their median, which two outliers of five do not change."""
        held, self._held = self._held, []
        if not held:
            return
        if len(held) < 3:  # with two periods, the outlier is unknown
            self._recent = held[0][1].copy()
            for period in held:
                self._merge(*period)
            return
        # Signal by signal: all at once would take several times the memory of the periods themselves.
        columns = zip(*(values.T for _, values, _ in held), strict=True)
        self._recent = np.stack([np.median(each, axis=0) for each in columns], axis=1)
        deviations = [self._deviation(values, count) for _, values, count in held]
        self._usual = [np.median(np.stack(deviations), axis=0)]
        self._first = self._recent.copy()
        for period in held:
            self._accept_or_exclude(*period)
        self._first = self._recent.copy()

    def _deviation(self, values: Array, count: IntArray) -> Array:
        """Return root mean square and largest deviation per channel, shape (2, C).

        A reversal of friction a few samples earlier is no fault: the root mean square leaves out the
        worst twentieth of the bins, and the largest deviation is that from the range of the average within 10 ms.
        """
        from scipy import ndimage  # not at the top: see filtering.py

        counted = count > 0
        some = np.flatnonzero(counted)[:: max(1, self.bins // 4096)]  # enough for a root mean square
        squares = np.sort((values[some] - self._recent[some]) ** 2, axis=0)
        kept = max(1, int(0.95 * len(squares)))
        width = 2 * max(2, round(0.01 * self.bins / self.period)) + 1
        largest = []
        for column, recent in zip(values.T, self._recent.T, strict=True):
            above = column - ndimage.maximum_filter1d(recent, width, mode='wrap')
            below = ndimage.minimum_filter1d(recent, width, mode='wrap') - column
            largest.append(max(float(np.maximum(above, below)[counted].max()), 0.0))
        return np.stack([np.sqrt(squares[:kept].mean(axis=0)), largest])

    def _accept_or_exclude(self, number: int, values: Array, count: IntArray) -> None:
        deviation = self._deviation(values, count)
        strength = self._recent.std(axis=0)
        usual = np.median(np.stack(self._usual), axis=0) if self._usual else deviation
        limit = self.outlier_factor * usual + 1e-3 * strength * np.array([[1.0], [10.0]])
        excess = np.where(deviation > limit + 1e-12, deviation / np.maximum(limit, 1e-12), 0.0)
        if excess.any():
            kind, channel = np.unravel_index(int(np.argmax(excess)), excess.shape)
            what = f'{self.channels[channel]} is off by {deviation[kind, channel]:.3g} {("rms", "at most")[kind]}'
            self.excluded.append((number, f'{what} (limit {limit[kind, channel]:.3g})'))
            return
        self._usual = [*self._usual[-19:], deviation]
        self._merge(number, values, count)

    def _merge(self, number: int, values: Array, count: IntArray) -> None:
        filled = count > 0
        weight = count[:, None].astype(np.float64)
        self._count += count
        self._periods += filled
        # Welford's update: no large sums of squares that cancel.
        before = values - self._mean
        self._mean += before * (weight / np.maximum(self._count, 1)[:, None])
        self._scatter += weight * before * (values - self._mean)
        self._recent[filled] += 0.2 * (values[filled] - self._recent[filled])
        self.used.append(number)

    def noise_std(self) -> Array | None:
        """Return the standard deviation of a single sample so far, shape (C,); None before the second period."""
        repeated = self._periods > 1
        if not repeated.any():
            return None
        return np.asarray(np.sqrt(self._scatter[repeated].sum(axis=0) / (self._periods[repeated] - 1).sum()))

    @property
    def whole(self) -> int:
        """Number of whole periods so far that were not left out, those held back included."""
        return len(self.used) + len(self._held)

    def so_far(self) -> AveragedPeriod | None:
        """Return the average of the whole periods so far; None before the first. More samples can follow."""
        if self.whole == 0:
            return None
        now = deepcopy(self)
        now.current = None  # the period that is being collected is left out
        return now.finish()

    def finish(self) -> AveragedPeriod | None:
        """End the last period and return the average; None where no period is usable."""
        self._close()
        self.current = None
        self._release()
        if not self.used:
            return None
        drift = np.zeros(len(self.channels))
        if len(self._first) and len(self._recent):
            block = max(1, self.bins // 100)  # noise averages out within a block, drift does not
            change = (self._recent - self._first)[: self.bins // block * block]
            drift = np.sqrt(np.mean(change.reshape(-1, block, change.shape[1]).mean(axis=1) ** 2, axis=0))
        return AveragedPeriod(
            period=self.period,
            mean=_filled(self._mean, self._count) + self._offset,
            count=self._count.copy(),
            used=tuple(self.used),
            excluded=tuple(self.excluded),
            noise_std=self.noise_std(),
            drift=drift,
        )


def _filled(values: Array, count: IntArray) -> Array:
    """Return the columns with empty bins interpolated around the period."""
    empty = np.flatnonzero(count == 0)
    if not len(empty):
        return values
    full = np.flatnonzero(count)
    result = values.copy()
    for c in range(values.shape[1]):
        result[empty, c] = np.interp(empty, full, values[full, c], period=len(values))
    return result


def _centred(sums: Array) -> Array:
    """Return each bin's mean moved from its samples' mean place to its centre."""
    count = sums[:, -1].astype(np.int64)
    weight = np.maximum(count, 1)[:, None]
    values = _filled(sums[:, :-2] / weight, count)
    place = sums[:, -2] / weight[:, 0]
    if np.abs(place).max() < 1e-9 or len(values) < 5:
        return values
    # Slope per bin: least squares over five bins, at their true places.
    shifts = range(-2, 3)
    spots = np.stack([np.roll(place, -k) + k for k in shifts])
    spots -= spots.mean(axis=0)
    slope = sum(spots[k + 2, :, None] * np.roll(values, -k, axis=0) for k in shifts)
    slope /= (spots**2).sum(axis=0)[:, None]
    return np.asarray(values - slope * place[:, None])


def travel(place: Array, position: Array, parts: int = PARTS) -> Array:
    """Return the motion of the joints in each of S equal parts of a period, shape (S,).

    It is the root of the sum of the joints' squared ranges. The samples' places in the period, shape (N,), are from 0
    to 1; positions have the shape (N, n) [rad or m].
    """
    index = np.minimum((place * parts).astype(int), parts - 1)
    ways = np.zeros(parts)
    for k in range(parts):
        inside = position[index == k]
        if len(inside):
            ways[k] = np.linalg.norm(np.ptp(inside, axis=0))
    return ways


def channel_names(joints: Sequence[str], quantities: Sequence[str]) -> tuple[str, ...]:
    """Return ``quantity/joint`` for every quantity and joint."""
    return tuple(f'{quantity}/{joint}' for quantity in quantities for joint in joints)
