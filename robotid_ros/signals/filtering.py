# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Smoothing, differentiation, zero-phase low-passes, delays, and a cutoff chosen from the spectrum.

scipy.signal takes a second to import, a third of a whole identification of ten seconds. The two of its functions that
every recording needs, the polynomials of Savitzky and Golay and Welch's spectrum, are therefore here. Other parts of
scipy that take long are imported where they are used.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import Array, IntArray
from robotid_ros.errors import DataError
from robotid_ros.signals.differentiation import NOISE_SHARE

ORDER = 4
FEWEST = 32  # samples that a spectrum is taken of
_TOGETHER = 1 << 17  # samples that go through a filter together, and stay in the processor's cache


def guarded_smoothing(
    values: Array, passes: int = 1, guard: float = 0.1, periodic: bool = False
) -> tuple[Array, IntArray]:
    """Smooth repeatedly; stop for each column before a sample changes by more than the guard.

    Each pass replaces a sample by the least-squares cubic through it and its two neighbours on each side,
    ``y_i = (-3 x_{i-2} + 12 x_{i-1} + 17 x_i + 12 x_{i+1} - 3 x_{i+2}) / 35``; near an end, through the last five.

    Parameters
    ----------
    values : ndarray, shape (N,) or (N, n)
        Evenly sampled; N at least 5.
    passes : int
        How often it is applied at most.
    guard : float
        Largest change of any sample from its measured value, as a fraction of its column's range;
        the pass that would exceed it is not applied.
    periodic : bool
        The signal repeats after N samples.

    Returns
    -------
    smoothed : ndarray, shape of ``values``
    applied : ndarray of int, shape (n,)
        Passes applied to each column.

    Raises
    ------
    DataError
        If ``passes`` is negative or there are fewer than five samples.
    """
    if passes < 0:
        raise DataError(f'smoothing: expected 0 passes or more, got {passes}')
    original = np.asarray(values, dtype=np.float64)
    if len(original) < 5:
        raise DataError(f'five-point smoothing: expected at least 5 samples, got {len(original)}')
    columns = original.reshape(len(original), -1)
    current = columns.copy()
    limit = guard * np.ptp(columns, axis=0)
    open_ = np.full(columns.shape[1], True)
    applied = np.zeros(columns.shape[1], dtype=np.int64)
    for _ in range(passes):
        candidate = polynomial_filter(current, 5, 3, periodic=periodic)
        open_ &= np.abs(candidate - columns).max(axis=0) <= limit
        if not open_.any():
            break
        current[:, open_] = candidate[:, open_]
        applied[open_] += 1
    return current.reshape(original.shape), applied


def polynomial_filter(
    values: Array, window: int, degree: int, *, derivative: int = 0, rate: float = 1.0, periodic: bool = False
) -> Array:
    """Return a derivative of the least-squares polynomial through the samples around each one.

    ``x(t + h / rate) = sum_k c_k h^k`` is fitted to ``|h| <= (window - 1) / 2``; near an end, to the last ``window``.

    ``values``, shape (N, n): evenly sampled; N at least ``window``. ``window``: samples of a polynomial, an odd number.
    ``derivative``: 0 smooths. ``rate`` [Hz]. ``periodic``: the signal repeats after N samples. The result has the shape
    (N, n).

    Source: A. Savitzky, M. Golay, "Smoothing and differentiation of data by simplified least squares procedures",
    Analytical Chemistry 36 (1964), 1627-1639.
    """
    from scipy import ndimage

    half = window // 2
    place = np.arange(-half, half + 1) / half  # powers of samples would lose digits
    powers = np.vander(place, degree + 1, increasing=True)
    slopes = np.zeros_like(powers)  # the derivative of each power
    for k in range(derivative, degree + 1):
        slopes[:, k] = np.prod(np.arange(k - derivative + 1, k + 1)) * place ** (k - derivative)
    weights = (slopes * (rate / half) ** derivative) @ np.linalg.pinv(powers)
    mode = 'wrap' if periodic else 'nearest'
    result: Array = ndimage.correlate1d(values, weights[half], axis=0, mode=mode)
    if not periodic:
        result[:half] = weights[:half] @ values[:window]
        result[len(result) - half :] = weights[-half:] @ values[-window:]
    return result


def zero_phase_low_pass(values: Array, rate: float, cutoff: float, order: int = ORDER, axis: int = 0) -> Array:
    """Filter forwards and backwards with a Butterworth low-pass; both passes together are 3 dB down at the cutoff.

    Two passes of order ``m`` have the gain ``1 / (1 + (sqrt(2) - 1) (w / w_c)^(2 m))``, with ``w = tan(pi f / rate)``
    as by the bilinear transform. Both are done at once, in the frequency domain.

    Parameters
    ----------
    values : ndarray, shape (N, ...)
        Evenly sampled along one axis; single precision stays single.
    rate : float
        [Hz]
    cutoff : float
        Where the result's amplitude is down by a factor sqrt(2) [Hz]; below half the rate.
    order : int
        Order of each pass.
    axis : int
        Of time.

    Returns
    -------
    ndarray, shape of ``values``
        Not delayed. :func:`settling_samples` at each end are affected by the end.

    Raises
    ------
    DataError
        If the cutoff is not between 0 and half the rate.
    """
    if not 0.0 < cutoff < 0.5 * rate:
        raise DataError(f'filter: expected a cutoff between 0 and half the rate, {0.5 * rate:g} Hz; got {cutoff:g} Hz')
    from scipy import fft

    x = np.asarray(values)
    x = np.moveaxis(x if x.dtype == np.float32 else x.astype(np.float64, copy=False), axis, -1)
    count = x.shape[-1]
    edge = min(count - 1, 3 * settling_samples(rate, cutoff))
    length = fft.next_fast_len(count + 2 * edge, real=True)
    gain = _gain(length, cutoff / rate, order).astype(x.dtype)
    fade = -(np.cos(0.5 * np.pi * np.arange(1, edge + 1, dtype=x.dtype) / (edge + 1)) ** 2)
    share = np.linspace(0.0, 1.0, count, dtype=x.dtype)
    signals = x.reshape(-1, count)
    result = np.empty_like(signals, order='C')
    together = max(1, _TOGETHER // length)
    for first in range(0, len(signals), together):
        rows = slice(first, first + together)
        some, whole = signals[rows], result[rows]
        # What is left beside the line through both ends, which the filter keeps, goes on oddly at both ends, and fades
        # out on its way to the other one: so a transform, which takes it for periodic, sees no jump.
        np.add(some[:, :1] * (1.0 - share), some[:, -1:] * share, out=whole)
        y = np.zeros((len(some), length), dtype=x.dtype)
        np.subtract(some, whole, out=y[:, :count])
        y[:, count : count + edge] = fade * y[:, count - edge - 1 : count - 1][:, ::-1]
        y[:, length - edge :] = (fade * y[:, 1 : edge + 1])[:, ::-1]
        spectrum = fft.rfft(y, axis=1, overwrite_x=True)
        spectrum *= gain
        whole += fft.irfft(spectrum, length, axis=1, overwrite_x=True)[:, :count]
    return np.asarray(np.moveaxis(result.reshape(x.shape), -1, axis))


def earlier(values: Array, step: float) -> Array:
    """Return evenly sampled values, shape (N, n), as they were so many steps before; the first where none were."""
    at = np.arange(len(values), dtype=np.float64)
    return np.stack([np.interp(at - step, at, column) for column in values.T], axis=1)


@lru_cache(maxsize=64)
def _gain(length: int, share: float, order: int) -> Array:
    """Return what both passes leave of each frequency of a transform, for a cutoff as a share of the rate."""
    ratio = np.tan(np.pi * np.arange(length // 2 + 1) / length) / np.tan(np.pi * share)
    return passed_share(ratio, order)


def passed_share(ratio: Array, order: int = ORDER) -> Array:
    """Return what :func:`zero_phase_low_pass` leaves of tones, of the shape of their frequencies over the cutoff."""
    return np.asarray(1.0 / (1.0 + float(np.sqrt(2.0) - 1.0) * np.square(ratio) ** order))


def settling_samples(rate: float, cutoff: float) -> int:
    """Return how many samples an end of the signal influences through the filter: one period of the cutoff."""
    return int(np.ceil(rate / cutoff))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """Bandwidth and noise of a motion, from its spectrum.

    Attributes
    ----------
    cutoff : float
        Proposed for a zero-phase low-pass over all joints [Hz].
    motion : ndarray, shape (n,)
        Below this frequency lie 99.9 % of a joint's velocity power [Hz]; 0 where it stands still.
    noise_std : ndarray, shape (n,)
        Standard deviation of the position's white noise [rad].
    """

    cutoff: float
    motion: Array
    noise_std: Array

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Which joints move."""
        return np.asarray(self.motion > 0.0)


def choose_cutoff(position: Array, rate: float, margin: float = 5.0) -> Bandwidth:
    """Choose one cutoff for all signals of an arm from the spectra of its joint positions.

    The highest frequencies of a position's spectrum give its white noise, of deviation ``s``; the power above
    that is motion. The cutoff is ``margin`` times the frequency below which 99.9 % of the velocity's power lie, for
    the median of the joints that move: products of speeds and angles, and the harmonics of friction at reversals,
    lie above the motion itself. It is lowered, down to twice the bandwidth, as far as needed to let through no more
    acceleration noise, ``s (2 pi)^2 sqrt(2 f^5 / (5 rate))``, than 1 % of a moving joint's root-mean-square
    acceleration. Raises a DataError if there are fewer than :data:`FEWEST` samples.

    ``position``, shape (N, n): evenly sampled [rad]. ``rate`` [Hz]. ``margin``: cutoff per bandwidth of the motion.
    The cutoff is a tenth of the rate where no joint moves.
    """
    q = np.asarray(position, dtype=np.float64)
    if len(q) < FEWEST:
        raise DataError(f'choosing a cutoff: expected at least {FEWEST} samples, got {len(q)}')
    frequency, power, noise, noise_std = _acceleration_spectrum(q, rate)
    motion, limit = np.zeros(q.shape[1]), np.full(q.shape[1], np.inf)
    for j in np.flatnonzero(np.std(q, axis=0) > 3.0 * noise_std + 1e-12):
        peak = int(np.argmax(power[:, j] / frequency**4))
        under = np.flatnonzero(_smoothed(power[:, j], peak + 1)[peak:] < 4.0 * noise[peak:, j])
        band = slice(0, peak + int(under[0]) + 1 if len(under) else None)
        clean = np.maximum(power[band, j] - noise[band, j], 0.0)
        share = np.cumsum(clean / frequency[band] ** 2)
        motion[j] = frequency[min(int(np.searchsorted(share, 0.999 * share[-1])), len(share) - 1)]
        strength = np.sqrt(clean.sum() * frequency[0])
        if noise_std[j] > 0.0:
            limit[j] = (2.5 * rate * (NOISE_SHARE * strength / noise_std[j]) ** 2 / (2.0 * np.pi) ** 4) ** 0.2
    moving = motion > 0.0
    cutoff = 0.1 * rate
    if moving.any():
        # The median of the joints: a single joint that oscillates or has some wrong samples can have any bandwidth.
        usual = float(np.median(motion[moving]))
        cutoff = max(min(margin * usual, float(np.median(limit[moving]))), 2.0 * usual)
    return Bandwidth(cutoff=float(min(cutoff, 0.4 * rate)), motion=motion, noise_std=noise_std)


def _acceleration_spectrum(q: Array, rate: float) -> tuple[Array, Array, Array, Array]:
    """Return frequencies, acceleration spectra, the part of them that is white position noise, its deviation."""
    count = len(q) - 2
    size = min(count, max(256, int(16.0 * rate)))
    columns = []
    for column in q.T:  # one by one: the windows of an hour of an arm are larger than all else
        # Differences before the window: otherwise leakage of slow motion covers the higher frequencies.
        acceleration = np.diff(column, n=2) * rate**2
        frequency, power = power_spectrum(acceleration, rate, np.hanning(size) ** 2)
        columns.append(power[1:])
    frequency, power = frequency[1:], np.stack(columns, axis=1)
    response = (2.0 * rate * np.sin(np.pi * frequency / rate)) ** 4
    top = frequency > 0.3 * rate
    degrees = 2.0 * max(1, count // (size // 2) - 1)  # of the chi-squared spectral estimates
    white = np.median(power[top] / response[top, None], axis=0) / (1.0 - 2.0 / (9.0 * degrees)) ** 3
    return frequency, power, white * response[:, None], np.sqrt(white * 0.5 * rate)


def hann(size: int) -> Array:
    """Return Hann's window of so many samples, of a period of as many."""
    return np.hanning(size + 1)[:-1]


def power_spectrum(values: Array, rate: float, window: Array, *, centred: bool = True) -> tuple[Array, Array]:
    """Return Welch's estimate of the one-sided power spectral density of a signal.

    The mean over half overlapping parts of ``2 |sum_k w_k x_k exp(-2 pi i f k / rate)|^2 / (rate sum_k w_k^2)``.

    ``values``, shape (N,): evenly sampled. ``rate`` [Hz]. ``window``, shape (S,): w; S at most N. ``centred``: take the
    mean from each part. Returns ``frequency``, shape (S // 2 + 1,) [Hz]; ``power``, shape (S // 2 + 1,): in the squared
    unit of the values per Hz.

    Source: P. Welch, "The use of fast Fourier transform for the estimation of power spectra", IEEE Transactions on
    Audio and Electroacoustics 15 (1967), 70-73.
    """
    from scipy import fft

    size = len(window)
    parts = np.lib.stride_tricks.sliding_window_view(values, size)[:: size - size // 2]
    parts = (parts - parts.mean(axis=1, keepdims=True) if centred else parts) * window
    power = np.mean(np.abs(fft.rfft(parts, axis=1)) ** 2, axis=0) / (rate * float(window @ window))
    power[1 : (size + 1) // 2] *= 2.0  # but for those that have no negative frequency
    return np.asarray(np.arange(len(power)) * (rate / size)), power


def _smoothed(values: Array, half_width: int) -> Array:
    """Return the running mean over ``half_width`` neighbours on both sides."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    index = np.arange(len(values))
    low, high = np.maximum(index - half_width, 0), np.minimum(index + half_width + 1, len(values))
    return np.asarray((sums[high] - sums[low]) / (high - low))


def motion_band(velocity: Array, rate: float) -> float:
    """Return the frequency below which 95 % of a motion's velocity power lie, the median over the moving joints [Hz].

    Parameters
    ----------
    velocity : ndarray, shape (N, n)
        Evenly sampled [rad/s].
    rate : float
        [Hz]
    """
    window = hann(min(len(velocity), max(256, len(velocity) // 2)))
    columns = [power_spectrum(column, rate, window, centred=False) for column in velocity.T]  # an hour is large
    frequency, power = columns[0][0], np.stack([column[1] for column in columns], axis=1)
    total = power.sum(axis=0)
    moving = total > 1e-4 * max(float(total.max(initial=0.0)), 1e-300)
    share = np.cumsum(power[:, moving], axis=0) / total[moving]
    if not moving.any():
        return float(frequency[1])
    return float(max(np.median(frequency[np.argmax(share >= 0.95, axis=0)]), frequency[1]))
