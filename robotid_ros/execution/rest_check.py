# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether an arm has come to rest, told by its joint states."""

from collections import deque

import numpy as np

from robotid_ros.arrays import Array

__all__ = ['RestCheck']

_SPAN = 0.1
"""How long an arm must keep its place to count as resting [s]."""

_STILL = 5e-3
"""How far a resting joint may move in that time: well above the noise of any encoder [rad or m]."""


class RestCheck:
    """Keeps the positions of the last moments."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Array]] = deque()

    def receive(self, stamp: float, position: Array) -> None:
        """Take in a joint state.

        Parameters
        ----------
        stamp : float
            When it was measured [s].
        position : ndarray, shape (n,)
            [rad or m]
        """
        if self._seen and stamp < self._seen[-1][0]:
            self._seen.clear()  # the clock was set back
        self._seen.append((stamp, np.array(position)))
        while len(self._seen) > 2 and self._seen[1][0] <= stamp - _SPAN:
            self._seen.popleft()

    @property
    def latest(self) -> tuple[float, Array] | None:
        """Stamp [s] and position, shape (n,), of the last joint state."""
        return self._seen[-1] if self._seen else None

    def resting(self, since: float) -> bool | None:
        """Return whether the arm keeps its place, or None if too little was measured after ``since`` [s]."""
        seen = [(stamp, position) for stamp, position in self._seen if stamp >= since]
        if len(seen) < 2 or seen[-1][0] - seen[0][0] < 0.5 * _SPAN:
            return None
        positions = np.array([position for _, position in seen])
        return bool((np.ptp(positions, axis=0) <= _STILL).all())
