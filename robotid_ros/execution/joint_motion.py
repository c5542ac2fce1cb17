# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What joints do at one instant, and the quintic that a controller moves along to a single point."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotion:
    """Position, velocity and acceleration of all joints at one instant.

    Attributes
    ----------
    position, velocity : ndarray, shape (n,)
        [rad, rad/s; or m, m/s]
    acceleration : ndarray, shape (n,), or None
        Where it is known [rad/s^2 or m/s^2].
    """

    position: Array
    velocity: Array
    acceleration: Array | None = None

    def after(self, time: float) -> 'JointMotion':
        """Return where the joints are after ``time`` [s] at this acceleration."""
        change = 0.0 if self.acceleration is None else time * self.acceleration
        return JointMotion(
            position=self.position + time * (self.velocity + 0.5 * change),
            velocity=self.velocity + change,
            acceleration=self.acceleration,
        )

    def where(self, kept: BoolArray, other: 'JointMotion') -> 'JointMotion':
        """Return the joints that are kept, shape (n,), and those of another motion; its acceleration is not known."""
        return JointMotion(
            position=np.where(kept, self.position, other.position),
            velocity=np.where(kept, self.velocity, other.velocity),
        )


def quintic_between(before: JointMotion, after: JointMotion, span: ArrayLike, part: float) -> JointMotion:
    """Return the motion on the quintic that a controller moves along from one knot to the next.

        q(s) = c_0 + c_1 s + ... + c_5 s^5,   0 <= s <= T,

    with the positions, velocities and accelerations of both knots at its ends.

    Parameters
    ----------
    before, after : JointMotion
        At the knots, shape (n,), or (K, n) for K pairs of knots; accelerations are known.
    span : float or ndarray, shape (K, 1)
        T, from knot to knot [s].
    part : float
        s / T, 0 to 1.
    """
    T = np.asarray(span)
    a0, a1 = np.asarray(before.acceleration), np.asarray(after.acceleration)
    gap = after.position - before.position - T * before.velocity - 0.5 * T**2 * a0
    rate = T * (after.velocity - before.velocity) - T**2 * a0
    bend = T**2 * (a1 - a0)
    c3, c4 = 10.0 * gap - 4.0 * rate + 0.5 * bend, -15.0 * gap + 7.0 * rate - bend
    c5 = 6.0 * gap - 3.0 * rate + 0.5 * bend
    s, p = part * T, part
    return JointMotion(
        position=before.position + s * before.velocity + 0.5 * s**2 * a0 + p**3 * (c3 + p * (c4 + p * c5)),
        velocity=before.velocity + s * a0 + p**2 * (3.0 * c3 + p * (4.0 * c4 + 5.0 * p * c5)) / T,
        acceleration=a0 + p * (6.0 * c3 + p * (12.0 * c4 + 20.0 * p * c5)) / T**2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveToRest:
    """From a state of motion to rest by one quintic, as a controller interpolates to a single point.

        q(0) = q0, q'(0) = v0, q''(0) = a0;   q(T) = goal, q'(T) = q''(T) = 0

    With a0 = 0 and goal = q0 + v0 T/2 the speed only falls: v(t) = v0 (1 - 3 s^2 + 2 s^3), s = t/T.

    Attributes
    ----------
    start : JointMotion
    goal : ndarray, shape (n,)
        [rad or m]
    duration : float
        T [s]
    """

    start: JointMotion
    goal: Array
    duration: float

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration at times within [0, duration], shape (N, n) each."""
        position, velocity, acceleration = (values[0] for values in self.evaluate_from([self.start], t))
        return position, velocity, acceleration

    def evaluate_from(self, starts: Sequence[JointMotion], t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the same of moves from S other starts to this goal in this time, shape (S, N, n) each."""
        s, duration, still = (
            np.atleast_1d(np.asarray(t, dtype=np.float64)) / self.duration,
            self.duration,
            0.0 * self.goal,
        )
        position = np.array([start.position for start in starts])
        velocity = np.array([start.velocity for start in starts])
        acceleration = np.array([still if start.acceleration is None else start.acceleration for start in starts])
        parts = np.stack([self.goal - position, duration * velocity, duration**2 * acceleration], axis=1)
        moved, velocity, acceleration = (basis @ parts for basis in quintic_basis(s))
        return position[:, None] + moved, velocity / duration, acceleration / duration**2

    def at(self, time: float) -> JointMotion:
        """Return the motion at a time from its beginning [s]; after its end, rest."""
        position, velocity, acceleration = self.evaluate([min(time, self.duration)])
        return JointMotion(position=position[0], velocity=velocity[0], acceleration=acceleration[0])


def quintic_basis(s: Array) -> tuple[Array, Array, Array]:
    """Return what way, T v0 and T^2 a0 contribute to the quintic at s = t/T, and to its derivatives by s.

    Shape (K, 3) each, for s of shape (K,).
    """
    powers = s[:, None] ** np.arange(6.0)
    return powers @ _QUINTIC, powers[:, :5] @ _FIRST, powers[:, :4] @ _SECOND


_QUINTIC = np.array(
    [[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5], [10.0, -6.0, -1.5], [-15.0, 8.0, 1.5], [6.0, -3.0, -0.5]]
)
"""Coefficients of s^0 to s^5 for a way, a velocity and an acceleration at the beginning; position, velocity and
acceleration of the others are 0 there, and all but the way are 0 at the end."""
_FIRST = np.arange(1.0, 6.0)[:, None] * _QUINTIC[1:]
_SECOND = np.arange(1.0, 5.0)[:, None] * _FIRST[1:]
