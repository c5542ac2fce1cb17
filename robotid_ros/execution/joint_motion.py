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

from robotid_ros.arrays import Array


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
        s = np.atleast_1d(np.asarray(t, dtype=np.float64))[:, None] / self.duration
        acceleration = np.zeros_like(self.goal) if self.start.acceleration is None else self.start.acceleration
        moved, velocity, acceleration = quintic(
            s, self.goal - self.start.position, self.start.velocity, acceleration, self.duration
        )
        return self.start.position + moved, velocity, acceleration


def quintic(
    s: Array, way: Array, velocity: Array, acceleration: Array, duration: Array | float
) -> tuple[Array, Array, Array]:
    """Return what is moved, velocity and acceleration of the quintic at s = t/T; all arguments broadcast."""
    c1, c2 = duration * velocity, 0.5 * duration**2 * acceleration
    rest, rate, bend = way - c1 - c2, -c1 - 2.0 * c2, -2.0 * c2
    c3 = 10.0 * rest - 4.0 * rate + 0.5 * bend
    c4 = -15.0 * rest + 7.0 * rate - bend
    c5 = 6.0 * rest - 3.0 * rate + 0.5 * bend
    return (
        s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5)))),
        (c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))) / duration,
        (2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))) / duration**2,
    )
