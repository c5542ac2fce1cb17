# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Stops along a path: for the end of every window, and for the way out of a motion that never rests."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.reference import Reference, ReferenceCheck, SlowedDown
from robotid_ros.execution.stop import GENTLE_BRAKING
from robotid_ros.model.joint_limits import JointLimits

_SHORTEST_STOP, _USUAL_STOP, _LONGEST_STOP, _STOP_LENGTHS = 0.1, 1.0, 8.0, 11
_NO_EXCESS = 1e-6  # of a limit, relative: round-off


def plan_path_stop(
    reference: Reference, check: ReferenceCheck, at: Sequence[float] | Array, durations: Sequence[float]
) -> tuple[float, SlowedDown]:
    """Return where to begin a stop along the path, and the stop, so that all limits are kept.

    Slowing down adds an acceleration, which does not fit where the motion already uses all of it;
    a few hundredths of a second before or after, it does.

    Parameters
    ----------
    reference : Reference
    check : ReferenceCheck
    at : sequence of float
        Moments at which the stop may begin, in the order of preference [s].
    durations : sequence of float
        How long the stop may take, in the order of preference [s].

    Returns
    -------
    at : float
        [s]
    stop : SlowedDown
        The best there is: where none keeps all limits, the one that breaks them least.
    """
    limits = _braking_limits(reference, check.limits, at)
    candidates = [(moment, duration) for moment in at for duration in durations]
    least, best = np.inf, candidates[0]
    for moment, duration in candidates:
        stop = SlowedDown(reference=reference, at=moment, duration=duration)
        joints = _joint_excess(stop, limits)
        if joints > min(_NO_EXCESS, least):
            if joints < least:
                least, best = joints, (moment, duration)
            continue
        excess = max(joints, check.excess(stop, rate=100.0))
        if excess <= _NO_EXCESS:
            return moment, stop
        if excess < least:
            least, best = excess, (moment, duration)
    moment, duration = best
    return moment, SlowedDown(reference=reference, at=moment, duration=duration)


def stop_durations(reference: Reference, limits: JointLimits) -> tuple[float, ...]:
    """Return how long stops may take [s]: up to twice what the highest speed takes at acceleration and jerk limits."""
    length = min(reference.duration, 200.0)
    velocity = np.abs(reference.evaluate(np.linspace(0.0, length, 2000))[1]).max(axis=0)
    braking = 1.875 * velocity / limits.acceleration
    needed = float(np.maximum(braking, np.sqrt(12.0 * velocity / limits.jerk)).max())
    longest = min(max(_USUAL_STOP, 2.0 * needed), _LONGEST_STOP)
    return tuple(np.geomspace(_SHORTEST_STOP, longest, _STOP_LENGTHS).tolist())


def _braking_limits(reference: Reference, limits: JointLimits, at: Sequence[float] | Array) -> Array:
    """Return the acceleration limits of a stop, shape (n,); where there are none, what is usual nearby."""
    times = np.clip(np.linspace(min(at), max(at) + 1.0, 101), 0.0, reference.duration)
    usual = np.abs(reference.evaluate(times)[2]).max(axis=0)
    result: Array = np.where(
        np.isfinite(limits.acceleration), limits.acceleration, np.maximum(1.2 * usual, GENTLE_BRAKING)
    )
    return result


def _joint_excess(reference: Reference, acceleration_limits: Array) -> float:
    """Return the largest normalised excess over the acceleration limits: quick, for many candidates."""
    _, _, acceleration = reference.evaluate(np.linspace(0.0, reference.duration, 41))
    return float((np.abs(acceleration).max(axis=0) / acceleration_limits).max() - 1.0)
