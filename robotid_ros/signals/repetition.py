# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether a motion repeats, and how often: measured from its own positions."""

import numpy as np

from robotid_ros.arrays import Array

TOLERANCE = 0.1  # of a joint's motion; arms repeat to a thousandth, with a wrong period the difference is above a half
_LOOSE, _STRICT = 0.4, 0.05  # where the period is found among many: before and after it is known to the last digit
MOST_SAMPLES = 20_000  # compared: as many as a period of 10 s has at 2 kHz
LEAST_MOTION = 1e-3  # rad or m; less is not told from noise and drift
_CANDIDATE = 0.9  # of the distance of unrelated places: what rests and approaches leave of a period
_MOST, _ALL = 0.6, 0.9  # of the motion: what makes a period its own; less than the other, and averaging loses the rest


def repetition(time: Array, position: Array, period: float) -> tuple[float, float, float] | None:
    """Return the longest stretch that repeats with a period, or None where no two periods are alike.

    That is the period, and where the stretch starts and ends [s]; it has two whole periods at least.
    ``time``, shape (N,): increasing [s]. ``position``, shape (N, n) [rad or m]. ``period`` [s].
    """
    if len(time) < 32 or time[-1] - time[0] < 1.9 * period:
        return None
    grid, values = _even(time, position)
    lag = period / (grid[1] - grid[0])
    return None if lag < 16 else _stretch(grid, values, lag)


def own_repetition(time: Array, position: Array) -> tuple[float, float, float] | None:
    """Return the shortest period with which a motion repeats for nearly all of the time, or None where it has none.

    With where it starts and ends to do so, as :func:`repetition`.
    """
    if len(time) < 64:
        return None
    grid, values = _even(time, position)
    moving = values.std(axis=0) > LEAST_MOTION
    if not moving.any():
        return None
    rate = np.abs(np.gradient(values, axis=0))
    moves = (rate > 0.05 * np.quantile(rate, 0.9, axis=0) + 1e-12).any(axis=1)
    moved = float(moves.mean() * (grid[-1] - grid[0]))  # for how long the arm moves [s]
    distance = _distance(values[:, moving])
    apart = np.flatnonzero(distance > 0.5)
    first = int(apart[0]) if len(apart) else len(distance)
    low = np.flatnonzero((distance[1:-1] <= distance[:-2]) & (distance[1:-1] <= distance[2:])) + 1
    for lag in low[(low > max(first, 16)) & (distance[low] < _CANDIDATE)].tolist():
        found = _stretch(grid, values, float(lag), _LOOSE)
        for _ in range(3):  # the first stretches have a bit of the approach in them
            if found is not None:
                period = _refined(grid, values[:, moving], found)
                found = _stretch(grid, values, period / (grid[1] - grid[0]), _STRICT)
        share = 0.0 if found is None else (found[2] - found[1]) / moved
        if share > _MOST:  # a multiple of it is no other period
            return found if share > _ALL else None
    return None


def _even(time: Array, position: Array) -> tuple[Array, Array]:
    count = min(len(time), MOST_SAMPLES)
    grid = np.linspace(time[0], time[-1], count)
    return grid, np.stack([np.interp(grid, time, column) for column in position.T], axis=1)


def _distance(values: Array) -> Array:
    """Return the mean square of x(t + lag) - x(t) over twice the variance, of all joints, for lags up to half."""
    count = len(values)
    scaled = (values - values.mean(axis=0)) / values.std(axis=0)
    spectrum = np.fft.rfft(scaled, 2 * count, axis=0)
    product = np.fft.irfft(np.abs(spectrum) ** 2, axis=0)[:count].mean(axis=1)
    square = np.concatenate([[0.0], np.cumsum((scaled**2).mean(axis=1))])
    lags = np.arange(count // 2 + 1)
    both = square[count - lags] + square[count] - square[lags]
    return np.asarray((both - 2.0 * product[lags]) / (2.0 * (count - lags)))


def scatter(values: Array) -> Array:
    """Return the standard deviation of single samples, (N, n), by their second differences, shape (n,)."""
    bend = np.abs(np.diff(values, n=2, axis=0))
    return np.asarray(np.sqrt(np.mean(np.minimum(bend, 5.0 * np.median(bend, axis=0) + 1e-12) ** 2, axis=0) / 6.0))


def _stretch(grid: Array, values: Array, lag: float, tolerance: float = TOLERANCE) -> tuple[float, float, float] | None:
    """Return the longest stretch in which the values are those of a lag [samples] later: period, start and end [s]."""
    step = float(grid[1] - grid[0])
    count = int(len(grid) - 1 - lag)
    if count < 0.9 * lag:
        return None
    places = np.arange(count)
    later = np.stack([np.interp(places + lag, np.arange(len(grid)), column) for column in values.T], axis=1)
    now = values[:count]
    noise = scatter(values)
    limit = (tolerance * np.maximum(values.std(axis=0), LEAST_MOTION)) ** 2 + 8.0 * noise**2
    window = max(1, int(lag / 50))
    total = np.cumsum(np.concatenate([np.zeros((1, now.shape[1])), (later - now) ** 2]), axis=0)
    begin, end = np.maximum(places - window, 0), np.minimum(places + window + 1, count)
    alike = ((total[end] - total[begin]) / (end - begin)[:, None] <= limit).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8)))
    runs = list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
    for first, last in sorted(runs, key=lambda run: run[0] - run[1]):
        if last - first < 0.9 * lag:
            return None
        stretch = values[first : int(last + lag)]
        if (stretch.std(axis=0) > tolerance * np.maximum(values.std(axis=0), LEAST_MOTION)).any():  # not a rest
            finish = float(min(grid[last - 1] + lag * step, grid[-1]))
            return float(lag * step), float(grid[first]), finish
    return None


def _refined(grid: Array, values: Array, found: tuple[float, float, float]) -> float:
    """Return the period that makes the most distant repetitions alike."""
    (period, start, end), step = found, float(grid[1] - grid[0])
    inside = (grid >= start) & (grid <= end)
    grid, values = grid[inside], values[inside]
    slope = np.gradient(values, step, axis=0)
    most = max(1, int((grid[-1] - grid[0]) / period - 0.5))
    for times in sorted({1, (most + 1) // 2, most, most + 1} - {0, most + 1}):
        for _ in range(3):
            now = grid + times * period <= grid[-1]
            later = [np.interp(grid[now] + times * period, grid, column) for column in values.T]
            rate = [np.interp(grid[now] + times * period, grid, column) for column in slope.T]
            ahead = np.stack(later, axis=1) - values[now]
            rates = np.stack(rate, axis=1)
            period -= float(np.sum(ahead * rates) / max(np.sum(rates**2), 1e-300)) / times
    return period
