# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a watch sees: one that was on and cannot see is a reason to stop."""

from collections import deque

import numpy as np

_SHARE = 0.9
"""Part of the messages that must be usable."""
_OF_USUAL = 0.3
"""Part of the rate at the start that must be left, and the rate that is enough for any watch [Hz]."""
_ENOUGH = 20.0
ENOUGH_TOLD = 2.0
"""What is enough of what the controller says of itself: the joint states show the arm too [Hz]. One that blends says
nothing of a goal until its trajectory begins: once for each window, four times a second."""
_COUNTABLE = 3
"""Fewer messages over the time do not tell a rate."""
_AWAKE = 0.1
"""Time between two looks that counts at most [s]: a node that had no processor for longer was blind, not its watch."""


class Sight:
    """Counts what comes for a watch, on a monotonic clock.

    ``rate``: usable messages per second of late [Hz]. ``share``: part of the messages that are usable. ``name``: what
    is watched, in the plural: 'efforts'. ``over``: time over which a rate is counted [s]. ``silence``: from which
    silence on somebody else judges it [s]. ``enough``: rate that is enough for this watch [Hz].
    """

    def __init__(self, name: str, over: float, *, silence: float | None = None, enough: float = _ENOUGH) -> None:
        self.name, self._over, self._silence, self._enough = name, over, silence, enough
        self._came: deque[tuple[float, bool]] = deque()
        self._usable = 0  # of them
        self._first: float | None = None
        self._usual: float | None = None
        self._looked, self._slept = np.inf, 0.0
        self.rate, self.share = 0.0, 1.0

    def saw(self, now: float, *, usable: bool = True) -> None:
        """Take in that a message came [s], and whether the watch can use it."""
        if self._first is None:
            if not usable:
                return  # it was never on
            self._first = now - self._slept
        self._came.append((now - self._slept, usable))
        self._usable += usable
        if len(self._came) > 5000:
            self._forget()

    def _forget(self) -> None:
        self._usable -= self._came.popleft()[1]

    @property
    def on(self) -> bool:
        """Whether anything came at all."""
        return self._first is not None

    def problem(self, now: float) -> str | None:
        """Return that the watch is blind, or None; one to which nothing has come is not on, and not blind."""
        self._slept += max(now - self._looked - _AWAKE, 0.0)
        self._looked = now
        if self._first is None:
            return None
        now -= self._slept
        while self._came and self._came[0][0] < now - self._over:
            self._forget()
        if self._silence is not None and not (self._came and now - self._came[-1][0] <= self._silence):
            return None
        self.rate = self._usable / min(self._over, max(now - self._first, 1e-3))
        self.share = self._usable / len(self._came) if self._came else 0.0
        if now - self._first < self._over:
            return None
        if self._usual is None:
            self._usual = len(self._came) / self._over if len(self._came) >= _COUNTABLE else 0.0
        if self._usual == 0.0:
            return None
        needed = min(self._enough, _OF_USUAL * self._usual)
        if self.rate >= needed and self.share >= _SHARE:
            return None
        return (
            f'the {self.name} cannot be watched any more: {self.rate:.3g} a second, {100.0 * self.share:.0f} % of them '
            f'finite (needed: {needed:.3g} a second, {100.0 * _SHARE:.0f} %)'
        )
