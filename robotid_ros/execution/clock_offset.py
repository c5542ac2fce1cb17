# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How far the clock that stamps joint states is from the clock that trajectories are stamped with.

A trajectory has an absolute start, which the controller reads on its own clock: where that is another
computer's and the two differ, the arm is elsewhere on its path than the sender believes.
"""

_WINDOW = 1.0
"""The least delay of this long counts, and that of the window before [s]."""

_OTHER_EPOCH = 1e8
"""Clocks that differ by more do not count from the same moment [s]."""


class ClockOffset:
    """The least delay of recent joint states, now - stamp.

    The way of a message and a busy computer can only add to a delay, so the least one is the
    difference of the clocks plus the shortest way: it is negative only if the stamps are ahead.
    """

    def __init__(self) -> None:
        self._began: float | None = None
        self._least = self._before = float('inf')
        self._last = 0.0

    def update(self, stamp: float, now: float) -> None:
        """Take in when a joint state was measured, on its computer's clock, and came, on this node's [s]."""
        delay = self._last = now - stamp
        if self._began is None or not 0.0 <= now - self._began < _WINDOW:
            self._before = self._least if self._began is not None else delay
            self._began, self._least = now, delay
        else:
            self._least = min(self._least, delay)

    @property
    def behind(self) -> float:
        """How far the stamps are behind this node's clock at most [s]; negative: ahead by at least as much."""
        return 0.0 if self._began is None else min(self._least, self._before)

    def problem(self, tolerance: float) -> str | None:
        """Return a sentence if the clocks differ by more than a tolerance [s], else None."""
        return _sentence(self.behind, tolerance)

    def remark(self, tolerance: float) -> str | None:
        """Return the sentence for the last joint state alone: what may explain that it looks wrong."""
        return _sentence(self._last, tolerance)


def _sentence(behind: float, tolerance: float) -> str | None:
    if abs(behind) <= tolerance:
        return None
    side = f'{behind:.3g} s behind' if behind > 0.0 else f'{-behind:.3g} s ahead of'
    text = f"the stamps of the joint states are {side} this node's clock (allowed: {tolerance:g} s): "
    if abs(behind) > _OTHER_EPOCH:
        return text + 'one of the two runs on simulated time; set use_sim_time alike in all nodes'
    if behind > 0.0:
        return text + "synchronise the two computers' clocks (chrony, PTP), unless one of them is overloaded"
    return text + "synchronise the two computers' clocks (chrony, PTP)"
