# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What joints do at one instant, and the quintic that a controller moves along to a single point."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotion:
    """Position, velocity and acceleration of all joints at one instant.

    Each of shape (n,) [rad, rad/s, rad/s^2; or m]; the acceleration is None where it is not known.
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

    Motions at the knots, ``before`` and ``after``, have the shape (n,), or (K, n) for K pairs of knots, and
    accelerations. The ``span`` T from knot to knot is a number, or has the shape (K, 1) [s]; ``part`` is s / T, 0 to 1.
    """
    T = np.asarray(span)
    a0, a1 = np.asarray(before.acceleration), np.asarray(after.acceleration)
    way = after.position - before.position
    parts = np.array([way, T * before.velocity, T**2 * a0, T * after.velocity, T**2 * a1])
    moved, velocity, acceleration = (np.tensordot(row[0], parts, 1) for row in quintic_basis(np.array([part])))
    return JointMotion(position=before.position + moved, velocity=velocity / T, acceleration=acceleration / T**2)


def quintic_basis(s: Array) -> tuple[Array, Array, Array]:
    """Return what way, T v0, T^2 a0, T v1 and T^2 a1 contribute to the quintic at s = t/T, and to its derivatives by s.

    Shape (K, 5) each, for s of shape (K,); 0 is the beginning, 1 the end.
    """
    powers = s[:, None] ** np.arange(6.0)
    return powers @ _QUINTIC, powers[:, :5] @ _FIRST, powers[:, :4] @ _SECOND


_QUINTIC = np.array(
    [
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 1.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.0, 0.0],
        [10.0, -6.0, -1.5, -4.0, 0.5],
        [-15.0, 8.0, 1.5, 7.0, -1.0],
        [6.0, -3.0, -0.5, -3.0, 0.5],
    ]
)
"""Coefficients of s^0 to s^5."""
_FIRST = np.arange(1.0, 6.0)[:, None] * _QUINTIC[1:]
_SECOND = np.arange(1.0, 5.0)[:, None] * _FIRST[1:]
