# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Stops from a measured state: for an arm that moves and is not on its path.

A joint_trajectory_controller that takes a message over begins at the state it measures itself, unless it is told
to interpolate from its own last command, or blends. A stop is therefore one point: where the arm can be at rest,
and when. The time is chosen so that the limits are kept from every state in which the controller may begin.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array
from robotid_ros.excitation.reference_check import ReferenceCheck
from robotid_ros.model.joint_limits import JointLimits

GENTLE_BRAKING = 5.0
"""Acceleration of a stop where no limit is given [rad/s^2 or m/s^2]: a quarter to a half of what arms allow."""

_DURATIONS = np.geomspace(0.1, 8.0, 64)
_SHARE = 0.95
"""Part of the acceleration limits that is used: the rest is for what the arm does besides."""

_RATE = 100.0
_ATTEMPTS = 12


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
class MeasuredStop:
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
        way = self.goal - self.start.position
        moved, velocity, acceleration = _quintic(s, way, self.start.velocity, acceleration, self.duration)
        return self.start.position + moved, velocity, acceleration


def _quintic(
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


def plan_measured_stop(
    starts: Sequence[JointMotion], check: ReferenceCheck, back_to: Array | None = None
) -> MeasuredStop:
    """Return the quickest stop of an arm that keeps all limits.

    Parameters
    ----------
    starts : sequence of JointMotion
        What the arm may do when the stop takes effect, the most likely first: a message takes time, and a
        controller that interpolates from its own command begins there, and not at the measured state.
    check : ReferenceCheck
        The limits to keep.
    back_to : ndarray, shape (n,), optional
        Where joints come to rest, instead of as soon as they can: places that they have just passed; NaN for the
        others [rad or m].

    Returns
    -------
    MeasuredStop
        From the first start. Where an arm is so fast or so near to a limit that none can be kept, the stop that
        breaks them least.
    """
    middle = starts[0]
    limits = check.limits
    braking = middle.position + 0.5 * _DURATIONS[:, None] * middle.velocity  # where it rests if its speed only falls
    if back_to is not None:
        braking = np.where(np.isfinite(back_to), back_to, braking)
    broken = _joint_excess(starts, braking, limits, _DURATIONS)
    # An arm that still gains speed near its limit exceeds it a little in any time: the longer, the further it is led.
    first = int(np.argmax(broken <= 0.0) if (broken <= 0.0).any() else np.argmin(broken))
    places = np.array([start.position for start in starts])
    lowest, highest = np.minimum(limits.lower, places.max(axis=0)), np.maximum(limits.upper, places.min(axis=0))
    best, least = None, np.inf
    for k in range(first, min(first + _ATTEMPTS, len(_DURATIONS))):
        duration = float(_DURATIONS[k])
        goal = np.clip(braking[k], lowest, highest)  # before a position limit, where the acceleration allows it
        if _joint_excess(starts, goal[None], limits, _DURATIONS[k : k + 1])[0] > max(broken[k], 0.0):
            goal = braking[k]
        stop = MeasuredStop(start=middle, goal=goal, duration=duration)
        # An arm may be beyond a limit already, those of a scaled design above all: that must not hide the others.
        excess = max(check.added(stop, rate=_RATE), float(broken[k]), 0.0)
        if excess < least - 1e-6:
            best, least = stop, excess
        if excess == 0.0:
            break
    assert best is not None
    return best


def _joint_excess(starts: Sequence[JointMotion], goals: Array, limits: JointLimits, durations: Array) -> Array:
    """Return by how much the worst start breaks a velocity or acceleration limit, relative, shape (D,) as durations."""
    still = np.zeros_like(goals[0])
    position, speed, gain = (
        np.array([still if value is None else value for value in values])
        for values in zip(*((start.position, start.velocity, start.acceleration) for start in starts), strict=True)
    )
    s = np.linspace(0.0, 1.0, 25)[:, None, None, None]
    _, velocity, acceleration = _quintic(s, goals[:, None] - position, speed, gain, durations[:, None, None])
    braking = np.where(np.isfinite(limits.acceleration), limits.acceleration, GENTLE_BRAKING)
    fastest = np.maximum(limits.velocity, np.abs(speed) * (1.0 + 1e-9))
    hardest = np.maximum(_SHARE * braking, np.abs(gain))
    worst = np.maximum(np.abs(acceleration).max(axis=0) / hardest, np.abs(velocity).max(axis=0) / fastest)
    result: Array = worst.max(axis=(1, 2)) - 1.0
    return result
