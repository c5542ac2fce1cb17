# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What the joint states of the last moments say: how the arm moves, and whether it rests."""

from collections import deque

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.execution.measured_stop import JointMotion

_SPAN = 0.1
"""How long an arm must keep its place to count as resting [s]."""

_STILL = 5e-3
"""How far a resting joint may move in that time: well above the noise of any encoder [rad or m]."""

_SLOPE = 0.03
"""Length of motion from which a velocity is computed where none is measured [s]."""


class RecentMotion:
    """Keeps the joint states of the last moments."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Array, Array | None]] = deque()

    def receive(self, stamp: float, position: Array, velocity: Array | None = None) -> None:
        """Take in a joint state: when it was measured [s], positions and velocities, shape (n,)."""
        if self._seen and stamp < self._seen[-1][0]:
            self._seen.clear()  # the clock was set back
        self._seen.append((stamp, np.array(position), None if velocity is None else np.array(velocity)))
        while len(self._seen) > 2 and self._seen[1][0] <= stamp - _SPAN:
            self._seen.popleft()

    @property
    def stamp(self) -> float | None:
        """Of the last joint state [s]."""
        return self._seen[-1][0] if self._seen else None

    @property
    def latest(self) -> JointMotion | None:
        """Position of the last joint state, and its velocity: measured, or the slope of the last positions."""
        if not self._seen:
            return None
        stamp, position, velocity = self._seen[-1]
        if velocity is None:
            velocity = np.zeros_like(position)
            before = [(time, place) for time, place, _ in self._seen if time <= stamp - _SLOPE]
            if before:
                velocity = (position - before[-1][1]) / (stamp - before[-1][0])
        return JointMotion(position=position, velocity=velocity)

    def resting(self, since: float) -> bool | None:
        """Return whether the arm keeps its place, or None if too little was measured after ``since`` [s]."""
        seen = [(stamp, position) for stamp, position, _ in self._seen if stamp >= since]
        if len(seen) < 2 or seen[-1][0] - seen[0][0] < 0.5 * _SPAN:
            return None
        positions = np.array([position for _, position in seen])
        return bool((np.ptp(positions, axis=0) <= _STILL).all())
