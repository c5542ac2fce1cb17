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

__all__ = ['GENTLE_BRAKING', 'JointMotion', 'MeasuredStop', 'plan_measured_stop']

GENTLE_BRAKING = 5.0
"""Acceleration of a stop where no limit is given [rad/s^2 or m/s^2]: a quarter to a half of what arms allow."""

_DURATIONS = np.geomspace(0.1, 8.0, 64)
_SHARE = 0.95
"""Part of the acceleration limits that is used: the rest is for what the arm does besides."""

_RATE = 100.0
_ATTEMPTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMotion:
    """Position and velocity of all joints at one instant.

    Attributes
    ----------
    position, velocity : ndarray, shape (n,)
        [rad, rad/s; or m, m/s]
    """

    position: Array
    velocity: Array

    def after(self, time: float) -> 'JointMotion':
        """Return where the joints are after ``time`` [s] at this velocity."""
        return JointMotion(position=self.position + time * self.velocity, velocity=self.velocity)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredStop:
    """From a state of motion to rest by one quintic, as a controller interpolates to a single point.

        q(0) = q0, q'(0) = v0, q''(0) = 0;   q(T) = goal, q'(T) = q''(T) = 0

    With goal = q0 + v0 T/2 the speed only falls: v(t) = v0 (1 - 3 s^2 + 2 s^3), s = t/T.

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
        c3, c4, c5 = _coefficients(self.start, self.goal, self.duration)
        position = self.start.position + self.duration * self.start.velocity * s + s**3 * (c3 + s * (c4 + s * c5))
        velocity = self.start.velocity + s**2 * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)) / self.duration
        acceleration = s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5)) / self.duration**2
        return position, velocity, acceleration


def _coefficients(start: JointMotion, goal: Array, duration: float) -> tuple[Array, Array, Array]:
    """Return the coefficients of s^3, s^4 and s^5 of the quintic."""
    way = goal - start.position - duration * start.velocity
    rate = -duration * start.velocity
    return 10.0 * way - 4.0 * rate, -15.0 * way + 7.0 * rate, 6.0 * way - 3.0 * rate


def plan_measured_stop(
    start: JointMotion, check: ReferenceCheck, *, latency: float = 0.0, commanded: Sequence[JointMotion] = ()
) -> MeasuredStop:
    """Return the quickest stop of an arm that keeps all limits.

    Parameters
    ----------
    start : JointMotion
        Measured, now.
    check : ReferenceCheck
        The limits to keep.
    latency : float
        What the message may take to the controller [s]: the arm moves on until it takes effect.
    commanded : sequence of JointMotion
        What the controller may have commanded last, now: a controller that interpolates from its own command
        begins there, and not at the measured state.

    Returns
    -------
    MeasuredStop
        From the state half the latency later. Where an arm is so fast or so near to a limit that none can be
        kept, the stop that breaks them least.
    """
    middle = start.after(0.5 * latency)
    starts = [middle, start, start.after(latency), *commanded, *(motion.after(latency) for motion in commanded)]
    limits = check.limits
    fits = [k for k, duration in enumerate(_DURATIONS) if _joint_excess(starts, limits, float(duration)) <= 0.0]
    first = fits[0] if fits else len(_DURATIONS) - 1
    best, least = None, np.inf
    for duration in _DURATIONS[first : first + _ATTEMPTS]:
        stop = MeasuredStop(start=middle, goal=_goal(middle, limits, float(duration)), duration=float(duration))
        excess = max(check.excess(stop, rate=_RATE), 0.0)
        if excess < least - 1e-6:
            best, least = stop, excess
        if excess == 0.0:
            break
    assert best is not None
    return best


def _goal(start: JointMotion, limits: JointLimits, duration: float) -> Array:
    """Return where the arm comes to rest: never beyond a position limit that it has not passed already."""
    goal: Array = np.clip(
        start.position + 0.5 * duration * start.velocity,
        np.minimum(limits.lower, start.position),
        np.maximum(limits.upper, start.position),
    )
    return goal


def _joint_excess(starts: Sequence[JointMotion], limits: JointLimits, duration: float) -> float:
    """Return by how much the worst of several starts breaks a velocity or acceleration limit, relative."""
    goal = _goal(starts[0], limits, duration)
    braking = np.where(np.isfinite(limits.acceleration), limits.acceleration, GENTLE_BRAKING)
    times = np.linspace(0.0, duration, 25)
    worst = -np.inf
    for start in starts:
        _, velocity, acceleration = MeasuredStop(start=start, goal=goal, duration=duration).evaluate(times)
        fastest = np.maximum(limits.velocity, np.abs(start.velocity) * (1.0 + 1e-9))
        excess = max(
            float((np.abs(acceleration).max(axis=0) / (_SHARE * braking)).max()),
            float((np.abs(velocity).max(axis=0) / fastest).max()),
        )
        worst = max(worst, excess - 1.0)
    return worst
