# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Fourier trajectories that start and end at rest in a given position, within bounds.

No constrained optimiser is needed. The end conditions are linear and are eliminated. The bounds become a
scale factor per joint: all trajectories of a joint with given ends form a linear space, and scaling one
towards zero moves it away from every bound.
"""

import numpy as np
from scipy.linalg import block_diag, null_space

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis
from robotid_ros.model.joint_limits import JointLimits

_NORM = 60  # order of the norm: above the largest ratio by at most 10 % on 300 samples
_CORNER = 8  # sharpness of the transition to the bounds


class RestToRestSeries:
    """All Fourier series of a period that begin and end at rest in a given position, within limits.

    With w = 2 pi base_frequency, dq(0) = sum a_l = 0, ddq(0) = w sum l b_l = 0 and q(0) = start gives
    offset = start + sum b_l / (l w); the rest is spanned by an orthonormal basis of 2 L - 2 columns.

    The bounds are tightened by cos(pi L / N): a trigonometric polynomial of degree L that keeps this
    bound on N equidistant points keeps the original one everywhere (Ehlich and Zeller,
    Mathematische Zeitschrift 86, 1964).

    Parameters
    ----------
    start : ndarray, shape (n,)
        Position at the start and the end [rad or m].
    limits : JointLimits
    base_frequency : float
        [Hz]
    harmonics : int
        L
    samples : int
        N, of one period.

    Attributes
    ----------
    time : ndarray, shape (N,)
        The grid, one period [s].
    q, dq, ddq : ndarray, shape (N, 2 L - 2)
        Basis at the grid: position relative to the start, velocity, acceleration.

    Raises
    ------
    ExcitationError
        If there are fewer than 2 harmonics or 200 samples, or the start is not inside the limits.
    """

    def __init__(
        self, start: Array, limits: JointLimits, *, base_frequency: float, harmonics: int, samples: int
    ) -> None:
        if harmonics < 2:
            raise ExcitationError(f'harmonics: expected at least 2, which end conditions need; got {harmonics}')
        if samples < 200 or samples < 8 * harmonics:
            raise ExcitationError(
                f'samples: expected at least {max(200, 8 * harmonics)} points per period, got {samples}'
            )
        self.start, self.base_frequency = start, base_frequency
        self.time = np.arange(samples) / (samples * base_frequency)
        order = np.arange(1, harmonics + 1, dtype=float)
        # Sines and cosines apart: random starts in a basis that mixes them serve wrong priors worse.
        sines, cosines = null_space(np.ones((1, harmonics))), null_space(order[None])
        offset = (1.0 / (2.0 * np.pi * base_frequency * order)) @ cosines
        self._free = np.vstack([block_diag(sines, cosines), np.concatenate([np.zeros(harmonics - 1), offset])])
        bases = fourier_basis(self.time, harmonics, base_frequency)
        self.q, self.dq, self.ddq = (basis @ self._free for basis in bases[:3])
        tight = float(np.cos(np.pi * harmonics / samples))
        bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        middle = np.where(
            bounded, 0.5 * (np.where(bounded, limits.lower, 0.0) + np.where(bounded, limits.upper, 0.0)), start
        )
        self._above = middle + tight * (limits.upper - middle) - start
        self._below = start - middle + tight * (middle - limits.lower)
        if not (self._above > 0.0).all() or not (self._below > 0.0).all():
            k = int(np.argmin(np.minimum(self._above, self._below)))
            raise ExcitationError(
                f'start of joint {k + 1}: expected a position inside its limits '
                f'{limits.lower[k]:g} .. {limits.upper[k]:g}, got {start[k]:g}'
            )
        self._velocity, self._acceleration = tight * limits.velocity, tight * limits.acceleration

    @property
    def shape(self) -> tuple[int, int]:
        """Number of joints, and of free parameters of each."""
        return len(self.start), self._free.shape[1]

    def _gauge(self, free: Array) -> tuple[Array, Array]:
        """Return the reach of each joint relative to its bounds, and the derivative, shapes (n,), (n, 2 L - 2).

        A p-norm over the grid, never less than the largest ratio.
        """
        position = self.q @ free.T
        room = np.where(position > 0.0, self._above, self._below)
        ratio = np.concatenate(
            [position / room, self.dq @ free.T / self._velocity, self.ddq @ free.T / self._acceleration]
        )
        largest = np.maximum(np.abs(ratio).max(axis=0), 1e-300)
        relative = np.abs(ratio) / largest
        total = np.sum(relative**_NORM, axis=0)
        slope = relative ** (_NORM - 1) * np.sign(ratio) * total ** (1.0 / _NORM - 1.0)
        first, second, third = np.split(slope, 3)
        derivative = (
            (first / room).T @ self.q
            + (second / self._velocity).T @ self.dq
            + (third / self._acceleration).T @ self.ddq
        )
        return largest * total ** (1.0 / _NORM), derivative

    def bounded(self, free: Array) -> tuple[Array, Array, Array]:
        """Return free parameters scaled so that every joint keeps its bounds.

        With the gauge g of a joint the factor is (1 + g^k)^(-1/k): near one while the bounds are
        far, near 1/g beyond them, smooth between.

        Returns
        -------
        bounded : ndarray, shape (n, 2 L - 2)
        factor : ndarray, shape (n,)
        slope : ndarray, shape (n, 2 L - 2)
            Derivative of each factor with respect to that joint's parameters.
        """
        gauge, derivative = self._gauge(free)
        # in units of the larger of 1 and g, so that no power overflows
        unit = np.maximum(gauge, 1.0)
        below, above = (1.0 / unit) ** _CORNER, (gauge / unit) ** _CORNER
        factor = (below + above) ** (-1.0 / _CORNER) / unit
        change = -factor * above / ((below + above) * gauge)
        return free * factor[:, None], factor, change[:, None] * derivative

    def pull_back(self, free: Array, factor: Array, slope: Array, gradient: Array) -> Array:
        """Carry gradients with respect to the bounded parameters, shape (..., n, 2 L - 2), back to the free ones."""
        through = np.sum(gradient * free, axis=-1, keepdims=True)
        back: Array = gradient * factor[:, None] + through * slope
        return back

    def trajectory(self, free: Array) -> FourierTrajectory:
        """Return the bounded trajectory of free parameters, shape (n, 2 L - 2)."""
        bounded, _, _ = self.bounded(free)
        coefficients = bounded @ self._free.T
        coefficients[:, -1] += self.start
        return FourierTrajectory.from_coefficients(coefficients, self.base_frequency)
