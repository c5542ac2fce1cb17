# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Approach: the move from the present pose to the start of a motion."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.reference import Move, ReferenceCheck, move_duration
from robotid_ros.excitation.workspace import random_positions

_TRIES = 60  # poses to go by
_COARSE = 20.0  # [Hz], of a first check: 25 mrad apart at the usual 0.5 rad/s


def approach(position: Array, goal: Array, check: ReferenceCheck, velocity: float) -> tuple[Move, ...]:
    """Return one move straight to the goal, or two by way of a pose that keeps all limits.

    Present pose and goal, at rest, have the shape (n,) [rad or m]; no joint moves faster than ``velocity``. Where
    neither the straight way nor another keeps the limits, the error names the limit that the straight one breaks.
    """

    def move(start: Array, end: Array) -> Move:
        return Move(
            start=np.array(start), goal=np.array(end), duration=move_duration(start, end, check.limits, velocity)
        )

    straight = move(position, goal)
    try:
        check.require(straight, 'the straight way to the start of the trajectory')
    except ExcitationError as cause:
        for middle in _between(position, goal, check):
            parts = (move(position, middle), move(middle, goal))
            if all(check.excess(part, rate=_COARSE) <= 0.0 for part in parts):
                try:
                    for part in parts:
                        check.require(part, 'the way to the start of the trajectory')
                except ExcitationError:
                    continue
                return parts
        raise ExcitationError(f'{cause}; no other way was found: move the arm to a pose with more room') from cause
    return (straight,)


def _between(position: Array, goal: Array, check: ReferenceCheck) -> Array:
    """Return poses to go by, those with the least detour first, shape (K, n)."""
    poses = random_positions(check.model, 20 * _TRIES, check.limits)
    detour = np.abs(poses - position).max(axis=1) + np.abs(goal - poses).max(axis=1)
    nearest: Array = poses[np.argsort(detour)[:_TRIES]]
    return nearest
