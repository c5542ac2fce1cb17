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

from dataclasses import dataclass

import numpy as np
from scipy.linalg import null_space

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.fourier import FourierTrajectory, fourier_basis
from robotid_ros.model.joint_limits import JointLimits

_NORM = 60  # order of the norm: above the largest ratio by at most 10 % on 300 samples
_CORNER = 8  # sharpness of the transition to the bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class RestToRestSeries:
    """All Fourier series of a period that begin and end at rest in a given position.

    With w = 2 pi base_frequency, dq(0) = sum a_l = 0, ddq(0) = w sum l b_l = 0 and q(0) = start gives
    offset = start + sum b_l / (l w); the rest is spanned by an orthonormal basis of 2 L - 2 columns.

    Attributes
    ----------
    start : ndarray, shape (n,)
        Position at the start and the end [rad or m].
    base_frequency : float
        [Hz]
    time : ndarray, shape (N,)
        The grid, one period [s].
    elimination : ndarray, shape (2 L + 1, 2 L - 2)
        From free parameters to [a_1..a_L, b_1..b_L, offset - start].
    q, dq, ddq : ndarray, shape (N, 2 L - 2)
        Basis at the grid: position relative to the start, velocity, acceleration.
    above, below : ndarray, shape (n,)
        Distance from the start to the upper and lower limit [rad or m]; infinite where there is none.
    velocity, acceleration : ndarray, shape (n,)
        Bounds.
    """

    start: Array
    base_frequency: float
    time: Array
    elimination: Array
    q: Array
    dq: Array
    ddq: Array
    above: Array
    below: Array
    velocity: Array
    acceleration: Array

    @classmethod
    def of(
        cls, start: Array, limits: JointLimits, *, base_frequency: float, harmonics: int, samples: int
    ) -> 'RestToRestSeries':
        """Return the space of trajectories within limits, on N samples of a period 1/base_frequency [Hz].

        The bounds are tightened by cos(pi L / N): a trigonometric polynomial of degree L that keeps this
        bound on N equidistant points keeps the original one everywhere (Ehlich and Zeller,
        Mathematische Zeitschrift 86, 1964).

        Raises
        ------
        ExcitationError
            If there are fewer than 2 harmonics or 200 samples, or the start is not inside the limits.
        """
        if harmonics < 2:
            raise ExcitationError(f'harmonics: expected at least 2, which end conditions need; got {harmonics}')
        if samples < 200 or samples < 8 * harmonics:
            raise ExcitationError(
                f'samples: expected at least {max(200, 8 * harmonics)} points per period, got {samples}'
            )
        time = np.arange(samples) / (samples * base_frequency)
        order = np.arange(1, harmonics + 1, dtype=float)
        sines = null_space(np.ones((1, harmonics)))
        cosines = null_space(order[None])
        free = harmonics - 1
        elimination = np.zeros((2 * harmonics + 1, 2 * free))
        elimination[:harmonics, :free] = sines
        elimination[harmonics:-1, free:] = cosines
        elimination[-1, free:] = (1.0 / (2.0 * np.pi * base_frequency * order)) @ cosines
        phi, dphi, ddphi, _ = fourier_basis(time, harmonics, base_frequency)
        tight = float(np.cos(np.pi * harmonics / samples))
        bounded = np.isfinite(limits.lower) & np.isfinite(limits.upper)
        middle = np.where(
            bounded, 0.5 * (np.where(bounded, limits.lower, 0.0) + np.where(bounded, limits.upper, 0.0)), start
        )
        above = middle + tight * (limits.upper - middle) - start
        below = start - middle + tight * (middle - limits.lower)
        if not (above > 0.0).all() or not (below > 0.0).all():
            k = int(np.argmin(np.minimum(above, below)))
            raise ExcitationError(
                f'start of joint {k + 1}: expected a position inside its limits '
                f'{limits.lower[k]:g} .. {limits.upper[k]:g}, got {start[k]:g}'
            )
        return cls(
            start=start,
            base_frequency=base_frequency,
            time=time,
            elimination=elimination,
            q=phi @ elimination,
            dq=dphi @ elimination,
            ddq=ddphi @ elimination,
            above=above,
            below=below,
            velocity=tight * limits.velocity,
            acceleration=tight * limits.acceleration,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of joints, and of free parameters of each."""
        return len(self.start), self.elimination.shape[1]

    def _gauge(self, free: Array) -> tuple[Array, Array]:
        """Return the reach of each joint relative to its bounds, and the derivative, shapes (n,), (n, 2 L - 2).

        A p-norm over the grid, never less than the largest ratio.
        """
        position = self.q @ free.T
        room = np.where(position > 0.0, self.above, self.below)
        ratio = np.concatenate(
            [position / room, self.dq @ free.T / self.velocity, self.ddq @ free.T / self.acceleration]
        )
        largest = np.maximum(np.abs(ratio).max(axis=0), 1e-300)
        relative = np.abs(ratio) / largest
        total = np.sum(relative**_NORM, axis=0)
        slope = relative ** (_NORM - 1) * np.sign(ratio) * total ** (1.0 / _NORM - 1.0)
        first, second, third = np.split(slope, 3)
        derivative = (
            (first / room).T @ self.q + (second / self.velocity).T @ self.dq + (third / self.acceleration).T @ self.ddq
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
        coefficients = bounded @ self.elimination.T
        coefficients[:, -1] += self.start
        return FourierTrajectory.from_coefficients(coefficients, self.base_frequency)
