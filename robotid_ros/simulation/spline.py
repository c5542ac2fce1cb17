# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Piecewise polynomials through trajectory points: linear, cubic or quintic by what the points hold."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryPoints:
    """Points of a trajectory of n joints; rows of NaN stand for what a point does not hold.

    Attributes
    ----------
    time : ndarray, shape (K,)
        Strictly increasing [s].
    position : ndarray, shape (K, n)
        [rad or m]
    velocity, acceleration : ndarray, shape (K, n)
        [rad/s, rad/s^2; or m]; NaN rows where a point has none.
    """

    time: Array
    position: Array
    velocity: Array
    acceleration: Array

    def preceded_by(self, time: float, q: Array, dq: Array, ddq: Array) -> 'TrajectoryPoints':
        """Return the points with one more before them."""
        return TrajectoryPoints(
            time=np.concatenate([[time], self.time]),
            position=np.vstack([q, self.position]),
            velocity=np.vstack([dq, self.velocity]),
            acceleration=np.vstack([ddq, self.acceleration]),
        )


class Spline:
    """Motion through points, held at the last position afterwards.

    Between two points that hold positions only the motion is linear; where both hold velocities
    it is the cubic, and where both hold accelerations too the quintic, that meets them:

        q(s) = c_0 + c_1 s + ... + c_5 s^5,   0 <= s < T.

    Parameters
    ----------
    points : TrajectoryPoints
        At least one.
    """

    def __init__(self, points: TrajectoryPoints) -> None:
        self.start = float(points.time[0])
        self.end = float(points.time[-1])
        self._knots = points.time
        self._last = points.position[-1]
        self._coefficients = _coefficients(points)

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, (N, n) each, at times (N,) not before the first point [s]."""
        n = len(self._last)
        q, dq, ddq = np.tile(self._last, (len(times), 1)), np.zeros((len(times), n)), np.zeros((len(times), n))
        moving = times < self.end
        if moving.any():
            at = times[moving]
            segment = np.maximum(np.searchsorted(self._knots, at, side='right') - 1, 0)
            c0, c1, c2, c3, c4, c5 = self._coefficients[:, segment]
            s = (at - self._knots[segment])[:, None]
            q[moving] = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
            dq[moving] = c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
            ddq[moving] = 2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
        return q, dq, ddq


def _coefficients(points: TrajectoryPoints) -> Array:
    """Return c_0 ... c_5 of every segment, shape (6, K - 1, n)."""
    T = np.diff(points.time)[:, None]
    p0, p1 = points.position[:-1], points.position[1:]
    v0, v1 = points.velocity[:-1], points.velocity[1:]
    a0, a1 = points.acceleration[:-1], points.acceleration[1:]
    c = np.zeros((6, *p0.shape))
    c[0] = p0
    c[1] = (p1 - p0) / T
    cubic = ~np.isnan(v0 + v1).any(axis=1)
    quintic = cubic & ~np.isnan(a0 + a1).any(axis=1)

    k = cubic & ~quintic
    gap = p1[k] - p0[k]
    c[1, k] = v0[k]
    c[2, k] = (3.0 * gap / T[k] - 2.0 * v0[k] - v1[k]) / T[k]
    c[3, k] = (-2.0 * gap / T[k] + v0[k] + v1[k]) / T[k] ** 2

    # What the first three coefficients leave of position, velocity and acceleration at the end.
    k = quintic
    t = T[k]
    c[1, k] = v0[k]
    c[2, k] = 0.5 * a0[k]
    gap = p1[k] - p0[k] - v0[k] * t - 0.5 * a0[k] * t**2
    rate = (v1[k] - v0[k] - a0[k] * t) * t
    bend = (a1[k] - a0[k]) * t**2
    c[3, k] = (10.0 * gap - 4.0 * rate + 0.5 * bend) / t**3
    c[4, k] = (-15.0 * gap + 7.0 * rate - bend) / t**4
    c[5, k] = (6.0 * gap - 3.0 * rate + 0.5 * bend) / t**5
    return c
