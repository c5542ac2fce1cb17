# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Derivatives of one period of sampled joint positions by Fourier least squares."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError

MOST_HARMONICS = 200  # far above those of an excitation; limits the size of the fit
NOISE_SHARE = 0.01  # relative noise of a regressor column lowers its estimate by its square: here by one part in 10^4


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierFit:
    """A finite Fourier series fitted to n signals.

    ``x(t) = c_0 + sum_k a_k cos(k w t) + b_k sin(k w t)``, ``w = 2 pi base_frequency``.

    Attributes
    ----------
    base_frequency : float
        [Hz]
    offset : ndarray, shape (n,)
    cosine, sine : ndarray, shape (L, n)
    residual_std : ndarray, shape (n,)
        Standard deviation of the residual, corrected for the 2 L + 1 coefficients.
    """

    base_frequency: float
    offset: Array
    cosine: Array
    sine: Array
    residual_std: Array

    @property
    def harmonics(self) -> int:
        """Number of harmonics L."""
        return len(self.cosine)

    def evaluate(self, time: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the signals and their analytic first and second derivatives, each of shape (N, n).

        Parameters
        ----------
        time : array_like, shape (N,)
            [s]
        """
        t = np.asarray(time, dtype=np.float64)
        frequency = 2.0 * np.pi * self.base_frequency * np.arange(1, self.harmonics + 1)
        angle = t[:, None] * frequency
        cosine, sine = np.cos(angle), np.sin(angle)
        a, b, w = self.cosine, self.sine, frequency[:, None]
        return (
            self.offset + cosine @ a + sine @ b,
            cosine @ (w * b) - sine @ (w * a),
            -(cosine @ (w**2 * a) + sine @ (w**2 * b)),
        )


def fit_fourier(
    time: ArrayLike, values: Array, base_frequency: float, harmonics: int, weights: ArrayLike | None = None
) -> FourierFit:
    """Fit a Fourier series with its offset to samples at any times, by weighted least squares.

    Parameters
    ----------
    time : array_like, shape (N,)
        [s]; need not be even.
    values : ndarray, shape (N,) or (N, n)
    base_frequency : float
        [Hz]
    harmonics : int
        L; the 2 L + 1 coefficients must be fewer than the samples.
    weights : array_like, shape (N,), optional
        Of the squared residuals, e.g. how many samples were averaged; 0 leaves a sample out.

    Raises
    ------
    DataError
        If there are too few samples, or they do not tell the harmonics apart.

    References
    ----------
    J. Swevers et al., "Optimal robot excitation and identification", IEEE T-RA 13 (1997), sec. IV.
    """
    t = np.asarray(time, dtype=np.float64)
    x = np.asarray(values, dtype=np.float64).reshape(len(t), -1)
    w = np.ones(len(t)) if weights is None else np.asarray(weights, dtype=np.float64)
    unknowns = 2 * harmonics + 1
    used = int(np.count_nonzero(w))
    if harmonics < 0 or used < unknowns:
        raise DataError(f'Fourier fit: {unknowns} coefficients need as many samples, got {used}')
    angle = 2.0 * np.pi * base_frequency * t[:, None] * np.arange(1, harmonics + 1)
    columns = np.concatenate([np.ones((len(t), 1)), np.cos(angle), np.sin(angle)], axis=1)
    root = np.sqrt(w)[:, None]
    solution, _, rank, _ = np.linalg.lstsq(columns * root, x * root, rcond=1e-10)
    if rank < unknowns:
        raise DataError(
            f'Fourier fit: the samples do not tell {harmonics} harmonics of {base_frequency:g} Hz apart; '
            'record whole periods, or ask for fewer harmonics'
        )
    residual = (x - columns @ solution) * root
    spread = np.sqrt((residual**2).sum(axis=0) / max(1, used - unknowns) * used / w.sum())
    return FourierFit(
        base_frequency=base_frequency,
        offset=solution[0],
        cosine=solution[1 : 1 + harmonics],
        sine=solution[1 + harmonics :],
        residual_std=spread,
    )


def noise_of_one_period(values: Array) -> Array:
    """Return the standard deviation of the white noise on one period, estimated from its spectrum.

    The upper half of the spectrum of an arm's position holds only noise. White noise of
    deviation s has squared amplitudes there of mean ``4 s^2 / N`` and, since they are exponentially
    distributed, of median ``4 s^2 log(2) / N``, which single lines do not change.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        One period, evenly sampled.

    Returns
    -------
    ndarray, shape (n,)
        In the unit of the values; zero for fewer than 16 samples.
    """
    count = len(values)
    if count < 16:
        return np.zeros(values.shape[1])
    squared = np.abs(np.fft.rfft(values, axis=0)[count // 4 : count // 2] * 2.0 / count) ** 2
    return np.asarray(np.sqrt(np.median(squared, axis=0) * count / (4.0 * np.log(2.0))))


def choose_harmonics(values: Array, noise_std: ArrayLike, period: float) -> int:
    """Choose how many harmonics one period of averaged positions carries.

    A harmonic counts where some joint's squared amplitude exceeds 12 times what the noise alone
    would give, ``4 s^2 / N``: less than one in 10^5 does so by chance. They are taken up to the
    highest that counts, at most 200, but no further than the acceleration noise they let through,
    ``s / sqrt(N) w^2 sqrt(2 sum k^4)``, stays within 1 % of the root-mean-square acceleration of the
    joint that moves most clearly. The result is at least one.

    Parameters
    ----------
    values : ndarray, shape (N, n)
        One period, evenly sampled.
    noise_std : array_like, shape (n,)
        Standard deviation s of these samples' noise.
    period : float
        [s]
    """
    count = len(values)
    most = max(1, min(MOST_HARMONICS, (count - 1) // 4))
    squared = np.abs(np.fft.rfft(values, axis=0)[1 : most + 1] * 2.0 / count) ** 2
    expected = 4.0 * np.asarray(noise_std, dtype=np.float64) ** 2 / count
    # Without noise, rounding still leaves a floor.
    rounding = np.maximum(1e-20 * squared.max(axis=0, initial=0.0), 1e-28 * np.abs(values).max(axis=0) ** 2)
    floor = np.maximum(12.0 * expected, rounding)
    significant = np.flatnonzero((squared > floor).any(axis=1))
    highest = int(significant[-1]) + 1 if len(significant) else 1
    order = np.arange(1, most + 1)
    noise = np.sqrt(0.5 * expected[None, :] * np.cumsum(order**4.0)[:, None])
    strength = np.sqrt(0.5 * np.cumsum(order[:, None] ** 4.0 * np.maximum(squared - expected, 0.0), axis=0))
    moving = squared.max(axis=0, initial=0.0) > floor
    if not moving.any():
        return 1
    quiet = (noise <= NOISE_SHARE * strength)[:, moving].any(axis=1)
    quiet_most = int(np.flatnonzero(quiet)[-1]) + 1 if quiet.any() else 1
    return max(1, min(highest, quiet_most))
