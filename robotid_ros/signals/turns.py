# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Positions of continuous joints that jump by a whole turn."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array

TURN = 2.0 * np.pi
_TOLERANCE = 0.7  # rad: own motion between two samples, 2 rad/s over a gap of 0.35 s for example


@dataclass(slots=True)
class TurnUnwrapper:
    """Makes positions continuous that a driver reports within one turn.

    A step within 0.7 rad of a whole turn between consecutive samples is a jump of the reported number, since no arm
    makes a turn between two samples.

    Attributes
    ----------
    wraps : int
        Jumps found.
    """

    wraps: int = 0
    _last: Array | None = None  # as reported
    _turns: Array | None = None

    def unwrap(self, position: Array) -> Array:
        """Return the next positions without jumps.

        Parameters
        ----------
        position : ndarray, shape (M, n)
            Finite, in the order of time [rad].

        Returns
        -------
        ndarray, shape (M, n)
            Positions as reported up to the first jump.
        """
        if not len(position):
            return position
        first = position[0] if self._last is None else self._last
        steps = np.diff(position, axis=0, prepend=first[None])
        whole = np.round(steps / TURN)
        jump = (whole != 0.0) & (np.abs(steps - whole * TURN) < _TOLERANCE)
        before = np.zeros(position.shape[1]) if self._turns is None else self._turns
        self._last = position[-1].copy()
        if not jump.any():
            self._turns = before
            return position - before * TURN if before.any() else position
        self.wraps += int(jump.sum())
        turns = before + np.cumsum(np.where(jump, whole, 0.0), axis=0)
        self._turns = turns[-1].copy()
        return np.asarray(position - turns * TURN)
