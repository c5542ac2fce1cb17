# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The clocks of a run.

Its time is that of a monotonic clock; the clock that stamps what is sent is only read for stamps. Simulated time is the
exception: it comes in messages, at any rate, and a run goes by it. How fast it went is judged by when its messages were
sent: a node that had no processor hears an old one and the newest within a moment.

A trajectory has an absolute start, which the controller reads on its own clock: where that is another computer's and
the two differ, the arm is elsewhere on its path than the sender believes.
"""

import numpy as np

_SET = 0.02
"""Change of the clock against a monotonic one that no clock makes by itself [s]. By less, an arm that is led by the
same clock seems to be late, and is led on from there."""
_JUMP = 0.25
"""The same of simulated time, which comes in messages, in real time [s]."""
_FASTER = 5.0
"""How much faster than measured simulated time may go for a moment."""
_SLEW = 1e-3
"""How fast clocks may drift apart: twice what chrony and NTP slew by."""
_BACK = 0.02
"""How far simulated time may go back without being a step: messages overtake each other [s]."""
_WAITED = 0.1
"""Silence after which readings have waited for this node, and come at once [s]."""
_REMEMBER = 1.0
"""Over which the rate of simulated time is measured [s]."""
_WINDOW = 1.0
"""The least delay of this long counts, and that of the window before [s]."""
_OTHER_EPOCH = 1e8
"""Clocks that differ by more do not count from the same moment [s]."""


class RunClock:
    """Time from the start of the run [s], fed with readings of the node's clock and of a monotonic one.

    Once the clock was set, or exchanged, it is not used again, and time goes on by the monotonic clock, at the rate
    that it had. What is wrong is in ``problem``.

    ``begin``: when the run begins, on the node's clock [s]. ``clock``, ``now``: both clocks, read at one moment [s].
    ``simulated``: the node's clock is simulated time, which may have any rate. ``stall``: after which silence simulated
    time may still be made up for in one go [s]: as long as joint states may miss.
    """

    def __init__(self, begin: float, clock: float, now: float, *, simulated: bool, stall: float = 0.5) -> None:
        self.begin, self._simulated, self._stall = begin, simulated, stall
        self._clock, self._now, self._offset = clock, now, clock - now
        self._rate, self._watched = 1.0, 0.0
        self._fastest = 1.0  # what a simulator comes back to that had no processor for a while
        self._owed = 0.0  # what simulated time is behind its rate
        self._ticked = now  # when simulated time last went on: it comes in messages, and not when a node reads it
        self._sent: float | None = None  # when that message was sent, by its sender's clock
        self._late, self._placed = 0.0, now  # of the last reading whose stamp was used, and when one came last
        self._least = np.inf  # of those: what two clocks differ by, and the shortest way
        self.lag = 0.0
        """By how much the last reading whose stamp was used is later than the least late one [s], in real time."""
        self.time = clock - begin
        self.problem = ''

    @property
    def trusted(self) -> bool:
        """Whether stamps can be taken from the clock, and compared with it."""
        return not self.problem

    def read(self, clock: float, now: float, *, simulated: bool, sent: float | None = None) -> float:
        """Take in both clocks, read at one moment [s], and return the time of the run [s].

        ``sent``: when the message that brought simulated time was sent, by its sender's clock [s]; None if unknown.
        """
        passed, went = max(now - self._now, 0.0), clock - self._clock
        since = max(now - self._ticked, 0.0)
        if sent is not None and self._sent is not None:
            since = max(since, sent - self._sent)
        if self.trusted:
            self.problem = self._fault(went, passed, since, clock - now, simulated)
        if not (self.trusted and simulated):
            self.time += self._rate * passed
        else:
            self.time = max(self.time, clock - self.begin)
            owed = self._owed * max(1.0 - passed / _REMEMBER, 0.0) + self._rate * passed - max(went, 0.0)
            self._owed = min(max(owed, 0.0), self._stall * self._rate)
            if went > 0.0:
                self._watched += since
                if since > 0.0:
                    self._rate += min(since / _REMEMBER, 1.0) * (went / since - self._rate)
                    self._fastest = max(self._fastest, self._rate)
                self._ticked, self._sent = now, sent
        self._clock, self._now = max(clock, self._clock) if self.trusted else clock, max(now, self._now)
        return self.time

    def _fault(self, went: float, passed: float, since: float, offset: float, simulated: bool) -> str:
        if simulated != self._simulated:
            return 'use_sim_time was changed during the run'
        if not simulated:
            change = offset - self._offset
            if abs(change) > _SET:
                return _jumped(change)
            slew = _SLEW * passed
            self._offset += min(max(change, -slew), slew)
            return ''
        if went < -_BACK:
            return f'{_jumped(went)}, as when a simulated world is reset; where it stands still now, start it anew'
        if self._watched > _REMEMBER and went > _JUMP * self._fastest + self._possible(since):
            return _jumped(went)
        return ''

    def _possible(self, since: float) -> float:
        """Return how far the clock may go on unheard in a time [s]: only one that comes in messages does so."""
        return self._owed + _FASTER * self._fastest * since if self._simulated else 0.0

    def glance(self, stamp: float, patience: float) -> float:
        """Return when something else than a joint state was made; now where its stamp is further off than that [s]."""
        late = self.time - (stamp - self.begin)
        return self.time - late if self.trusted and abs(late) <= self._fastest * patience else self.time

    def place(self, stamp: float | None, tolerance: float, patience: float) -> tuple[float, str]:
        """Return when a reading with a stamp [s] was made, in the time of the run, and what is wrong with the stamp.

        A stamp ahead of the clock by more than ``tolerance`` is not used, nor one that is later, by more than
        ``patience`` [s], than the least late one and than the reading before and the silence since explain: the reading
        counts as late as the last one whose stamp was. Both count in real time; simulated time may have gone on since
        it was last heard.
        """
        silent, self._placed = self._now - self._placed, self._now
        if stamp is None or not self.trusted:
            return self.time - self._late, ''
        made, rate = stamp - self.begin, self._fastest
        late = self.time - made
        ahead = rate * tolerance + self._possible(self._now - self._ticked)
        # Simulated time is one clock for all; what seems to be ahead of it was heard before it.
        least = min(max(min(self._least, late), 0.0 if self._simulated else -tolerance), rate * tolerance)
        latest = least + rate * patience
        if -ahead <= late <= max(latest, self._late + rate * silent):
            self._late, self._least = late, min(self._least, late)
            self.lag = max(late - least, 0.0) / rate
            return made, ''
        if late > 0.0 and silent > _WAITED:  # it may be as old as the silence, but no newer than what comes with it
            self._late += rate * silent
        made = self.time - self._late
        if late < 0.0:
            return made, f"the stamps of the joint states are {-late:.3g} s ahead of this node's clock"
        behind = f"the stamps of the joint states are {late:.3g} s behind this node's clock"
        return made, f'{behind}: it was set, or this computer is too busy'


def _jumped(change: float) -> str:
    return f'the clock jumped {"ahead" if change > 0.0 else "back"} by {abs(change):.2f} s'


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
