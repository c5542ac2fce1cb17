# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Periodic joint trajectories as finite Fourier series: exact period, exact derivatives."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, freeze_fields, frozen_array
from robotid_ros.errors import ExcitationError


def fourier_basis(t: ArrayLike, harmonics: int, base_frequency: float) -> tuple[Array, Array, Array, Array]:
    """Return the series' terms and their first three time derivatives.

    With w = 2 pi base_frequency, the columns for one joint are [a_1..a_L, b_1..b_L, offset]:

        phi = [sin(l w t)/(l w), -cos(l w t)/(l w), 1]

    so that q = phi @ c, dq = dphi @ c, ddq = ddphi @ c and the jerk is dddphi @ c, each of shape (N, 2 L + 1) for N
    times [s], L harmonics and a base frequency [Hz].

    Source: Swevers, Ganseman, Tuekel, De Schutter and Van Brussel, "Optimal robot excitation and
    identification", IEEE Trans. Robotics and Automation 13(5), 1997, eq. 9.
    """
    angular, sine, cosine = _harmonics(t, harmonics, base_frequency)
    zeros = np.zeros((len(sine), 1))
    phi = np.hstack([sine / angular, -cosine / angular, np.ones_like(zeros)])
    dphi = np.hstack([cosine, sine, zeros])
    ddphi = np.hstack([-angular * sine, angular * cosine, zeros])
    dddphi = np.hstack([-(angular**2) * cosine, -(angular**2) * sine, zeros])
    return phi, dphi, ddphi, dddphi


def _harmonics(t: ArrayLike, harmonics: int, base_frequency: float) -> tuple[Array, Array, Array]:
    """Return l w, sin(l w t) and cos(l w t); the phase is reduced first, so that late periods stay exact."""
    order = np.arange(1, harmonics + 1, dtype=np.float64)
    cycles = np.mod(np.atleast_1d(np.asarray(t, dtype=np.float64)) * base_frequency, 1.0)
    phase: Array = 2.0 * math.pi * np.multiply.outer(cycles, order)
    return 2.0 * math.pi * base_frequency * order, np.sin(phase), np.cos(phase)


@dataclass(frozen=True, slots=True, kw_only=True)
class FourierTrajectory:
    """Finite Fourier series of n joints that share one base frequency.

        q_i(t) = offset_i + sum_l a_il/(l w) sin(l w t) - b_il/(l w) cos(l w t),   w = 2 pi base_frequency

    It has no beginning and no end: any t is allowed, and the motion repeats after ``period``.

    Attributes
    ----------
    a, b : ndarray, shape (n, L)
        Velocity amplitudes of the sine and cosine terms of the position [rad/s or m/s].
    offset : ndarray, shape (n,)
        Mean position [rad or m].
    base_frequency : float
        [Hz]

    Notes
    -----
    Source: Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997, eq. 9.
    """

    a: Array
    b: Array
    offset: Array
    base_frequency: float

    def __post_init__(self) -> None:
        freeze_fields(self, ExcitationError, {'a': (None, None)})
        freeze_fields(self, ExcitationError, {'b': self.a.shape, 'offset': self.a.shape[:1]})
        if not (math.isfinite(self.base_frequency) and self.base_frequency > 0.0):
            raise ExcitationError(f'base_frequency: expected a positive number of Hz, got {self.base_frequency}')
        object.__setattr__(self, 'base_frequency', float(self.base_frequency))
        if 0 in self.a.shape:
            raise ExcitationError(f'a: expected at least one joint and one harmonic, got shape {self.a.shape}')

    @property
    def n(self) -> int:
        """Number of joints."""
        return int(self.a.shape[0])

    @property
    def harmonics(self) -> int:
        """Number L of harmonics."""
        return int(self.a.shape[1])

    @property
    def period(self) -> float:
        """Time after which the motion repeats [s]."""
        return 1.0 / self.base_frequency

    @property
    def coefficients(self) -> Array:
        """Coefficients joint by joint, in the order of :func:`fourier_basis`, shape (n, 2 L + 1)."""
        return np.hstack([self.a, self.b, self.offset[:, None]])

    @classmethod
    def from_coefficients(cls, coefficients: ArrayLike, base_frequency: float) -> 'FourierTrajectory':
        """Build from rows [a_1..a_L, b_1..b_L, offset]: the inverse of :attr:`coefficients`.

        Parameters
        ----------
        coefficients : array_like, shape (n, 2 L + 1)
        base_frequency : float
            [Hz]

        Raises
        ------
        ExcitationError
            If the shape is not that of a series, or a number is not finite.
        """
        rows = frozen_array(coefficients, 'coefficients', (None, None), ExcitationError)
        if rows.shape[1] < 3 or rows.shape[1] % 2 == 0:
            raise ExcitationError(f'coefficients: expected 2 L + 1 columns with L >= 1, got {rows.shape[1]}')
        half = rows.shape[1] // 2
        return cls(a=rows[:, :half], b=rows[:, half:-1], offset=rows[:, -1], base_frequency=base_frequency)

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration at times ``t`` [s], each of shape (N, n)."""
        angular, sine, cosine = _harmonics(t, self.harmonics, self.base_frequency)
        a, b = self.a.T, self.b.T
        position = (sine / angular) @ a - (cosine / angular) @ b + self.offset
        return position, cosine @ a + sine @ b, (angular * cosine) @ b - (angular * sine) @ a

    def position(self, t: ArrayLike) -> Array:
        """Return positions at times ``t`` [s], shape (N, n) [rad or m]."""
        return self.evaluate(t)[0]

    def velocity(self, t: ArrayLike) -> Array:
        """Return velocities at times ``t`` [s], shape (N, n) [rad/s or m/s]."""
        return self.evaluate(t)[1]

    def acceleration(self, t: ArrayLike) -> Array:
        """Return accelerations at times ``t`` [s], shape (N, n) [rad/s^2 or m/s^2]."""
        return self.evaluate(t)[2]

    def jerk(self, t: ArrayLike) -> Array:
        """Return the accelerations' time derivatives at times ``t`` [s], shape (N, n) [rad/s^3 or m/s^3]."""
        angular, sine, cosine = _harmonics(t, self.harmonics, self.base_frequency)
        return -(angular**2 * cosine) @ self.a.T - (angular**2 * sine) @ self.b.T

    def sample_times(self, rate: float) -> Array:
        """Return the equidistant times of one period, first included, last excluded.

        The number of samples is the period times the rate rounded up, so the spacing may be a
        little finer than asked for, and averaging over periods needs no interpolation.

        Parameters
        ----------
        rate : float
            Least sampling rate [Hz].

        Returns
        -------
        ndarray, shape (N,)
            [s]
        """
        count = max(1, math.ceil(self.period * rate - 1e-9))
        return np.linspace(0.0, self.period, count, endpoint=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists, enough to rebuild the trajectory to the last digit."""
        return {
            'base_frequency': self.base_frequency,
            'a': self.a.tolist(),
            'b': self.b.tolist(),
            'offset': self.offset.tolist(),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> 'FourierTrajectory':
        """Rebuild from what :meth:`to_dict` returned.

        Raises
        ------
        ExcitationError
            If an entry is missing or has the wrong shape.
        """
        wanted = ('base_frequency', 'a', 'b', 'offset')
        missing = [name for name in wanted if name not in content]
        if missing:
            raise ExcitationError(f'trajectory: expected {", ".join(wanted)}; missing: {", ".join(missing)}')
        try:
            frequency = float(content['base_frequency'])
        except (TypeError, ValueError) as cause:
            raise ExcitationError(
                f'base_frequency: expected a number of Hz, got {content["base_frequency"]!r:.80}'
            ) from cause
        return cls(a=content['a'], b=content['b'], offset=content['offset'], base_frequency=frequency)


def series_extremes(cosine: Array, sine: Array) -> tuple[Array, Array]:
    """Return smallest and largest value of sum_l cosine_l cos(l x) + sine_l sin(l x), and where, in [0, 2 pi).

    Both are of shape (K, 2) for K series, (K, L). The derivative's zeros are the unit-circle roots of a polynomial of
    degree 2 L in z = exp(i x). The angles of all its roots and a coarse grid are tried, so that a root that rounding
    pushed off the circle is not missed.
    """
    count, harmonics = cosine.shape
    order = np.arange(1, harmonics + 1)
    # sum l (sine cos(l x) - cosine sin(l x)) = Re sum l (sine + i cosine) z^l
    terms = order * (sine + 1j * cosine)
    grid = np.arange(8 * harmonics) * (2.0 * np.pi / (8 * harmonics))
    candidates = np.zeros((count, 10 * harmonics))
    candidates[:, : len(grid)] = grid
    polynomials = np.concatenate([terms[:, ::-1], np.zeros((count, 1)), np.conj(terms)], axis=1)
    for own, polynomial in zip(candidates, polynomials, strict=True):
        roots = np.mod(np.angle(np.roots(polynomial)), 2.0 * np.pi)
        own[len(grid) : len(grid) + len(roots)] = roots  # fewer where the highest harmonic is zero
    angles = candidates[:, :, None] * order
    values = (np.cos(angles) @ cosine[:, :, None] + np.sin(angles) @ sine[:, :, None])[:, :, 0]
    places = np.stack([np.argmin(values, axis=1), np.argmax(values, axis=1)], axis=1)
    return np.take_along_axis(values, places, axis=1), np.take_along_axis(candidates, places, axis=1)


def trajectory_extremes(trajectory: FourierTrajectory) -> tuple[Array, Array]:
    """Return the extremes of position, velocity, acceleration and jerk of every joint, and when they are [s].

    Both have the shape (4, n, 2): orders of derivative, joints, (low, high). Times are within the first period.
    """
    angular = 2.0 * np.pi * trajectory.base_frequency * np.arange(1, trajectory.harmonics + 1)
    cosine, sine = -trajectory.b / angular, trajectory.a / angular
    orders = [(cosine, sine)]
    for _ in range(3):
        cosine, sine = angular * sine, -angular * cosine
        orders.append((cosine, sine))
    found = series_extremes(*(np.concatenate(series) for series in zip(*orders, strict=True)))
    values, times = (each.reshape(4, trajectory.n, 2) for each in found)
    values[0] += trajectory.offset[:, None]
    return values, times * (trajectory.period / (2.0 * np.pi))
