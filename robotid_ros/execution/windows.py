# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From a reference to the messages of a trajectory controller: overlapping windows that end at rest.

A joint_trajectory_controller replaces its trajectory by each new message, refuses a last point that moves, and loses
messages that are too large. A long run is therefore a sequence of windows of few knots that share one absolute start
time. Knots lie on one grid, so where windows overlap they are equal; each window ends in a stop along the path, so that
the arm comes to rest by itself when no more windows come.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.reference import Eased, Reference, ReferenceCheck
from robotid_ros.execution.joint_motion import JointMotion, quintic_between
from robotid_ros.execution.stop import easiest, stop_durations

_LEAST_SPAN = 0.7
"""How far a window leads at least before it may begin to stop [s]: two more are sent until then."""
_SEARCH, _SEARCH_RELATIVE = 0.3, 0.25
"""In which time a stop may begin, at least and relative to the longest stop [s]: one that does not fit here may fit a
little earlier."""
_PAST = 0.5
"""How far a window reaches back [s]: a controller that replaces its trajectory at once finds the present inside it."""
_KNOT_BEFORE, _WITHIN = 0.04, 0.05
"""A controller that goes on along its trajectory until the new start loses a cycle whenever a message comes. It makes
that good by its next knot, hard where that is near, and a stop that comes meanwhile goes on with that acceleration. So
its windows have one knot shortly before each is due, and none from then to the next, whether windows were lost or not;
the start of the one before lies within that time too [s]."""
_MOST_BLENDED = 0.2
"""Longest time from one such window to the next [s]: each start lies about as far ahead."""
_TAKEN_OVER = 0.1
"""After which a window is taken over, at the latest [s]."""
GENTLE = 2.0 * _MOST_BLENDED
"""Time that a way into or out of a motion takes at least where knots are so far apart [s]."""
_OFF = 5e-4
"""How far from its path a quintic between two knots may be [rad or m]."""
_STOP_TOLERANCE = 2e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """One message to the controller.

    Attributes
    ----------
    due : float
        When it is to be sent, from the start of the run [s].
    stamp : float or None
        What the message's times count from: 0 for the start of the run, or the window's own start
        where that has to lie in the future [s]; None for the moment the controller takes it.
    times : ndarray, shape (K,)
        Of the knots, strictly increasing [s]: from the start of the run, or from the moment the controller
        takes them where ``stamp`` is None.
    position, velocity, acceleration : ndarray, shape (K, n)
        [rad, rad/s, rad/s^2]
    until : float
        When it begins to lead to rest, from the start of the run [s].
    """

    due: float
    stamp: float | None
    times: Array
    position: Array
    velocity: Array
    acceleration: Array
    until: float

    def at(self, time: float) -> JointMotion:
        """Return where it leads at a time, as its times count [s]: by quintics between knots, held at its ends."""
        k = min(max(int(np.searchsorted(self.times, time)), 1), len(self.times) - 1)
        before, after = (
            JointMotion(position=self.position[j], velocity=self.velocity[j], acceleration=self.acceleration[j])
            for j in (k - 1, k)
        )
        span = float(self.times[k] - self.times[k - 1])
        return quintic_between(before, after, span, min(max((time - float(self.times[k - 1])) / span, 0.0), 1.0))


class WindowPlan:
    """The windows of one run, made when they are due.

    The reference begins and ends at rest; the check has the limits that the stops have to keep.

    Parameters
    ----------
    reference : Reference
    check : ReferenceCheck
    rate : float
        Knots per second [Hz]; for a controller that blends, at most so many.
    points : int
        Most knots in one window.
    time : float
        How long a window leads from when it is due until the arm rests, where braking allows it [s].
    blend : bool
        The controller goes on along its trajectory until the start of the new one, and shifts a start that is past
        (``allow_trajectory_replacement``).
    """

    def __init__(
        self, reference: Reference, check: ReferenceCheck, *, rate: float, points: int, time: float, blend: bool
    ) -> None:
        self.reference, self.check, self.rate, self.blend = reference, check, rate, blend
        step = 1.0 / rate
        self._durations = stop_durations(reference, check.limits)
        longest = self.longest_stop = self._durations[-1]
        past = _MOST_BLENDED if blend else _PAST
        room = (points - 2) * step - past - longest
        self._search = max(_SEARCH, _SEARCH_RELATIVE * longest)
        least = self._search + _LEAST_SPAN
        self._span = min(max(time - longest, least), room)
        if self._span < least:
            raise ExcitationError(
                f'windows of {points} knots at {rate:g} Hz are too short: with a stop of '
                f'{longest:.1f} s at the end they need {past + longest + least:.1f} s'
            )
        # two windows later is still before this one's stop: one lost message is without effect
        free = self._span - self._search
        advance = min((free + _WITHIN) / 3.0, _MOST_BLENDED) if blend else 0.5 * (free - _TAKEN_OVER)
        self._advance = max(step, float(np.floor(advance / step)) * step)
        self._lead = self._advance - _WITHIN

    @cached_property
    def count(self) -> int:
        """Number of windows."""
        return 1 + max(0, int(np.ceil((self.reference.duration - self._span) / self._advance - 1e-9)))

    def __iter__(self) -> Iterator[Window]:
        return (self.window(k) for k in range(self.count))

    def due(self, k: int) -> float:
        """Return when window ``k`` is to be sent, from the start of the run [s]; 0 for the first."""
        return k * self._advance

    def window(self, k: int) -> Window:
        """Return window ``k``, 0-based: the knots of the reference, and those of the stop after them."""
        step, due, blend = 1.0 / self.rate, self.due(k), self.blend
        stop = None if k == self.count - 1 else self._planned_stop(k)
        end = self.reference.duration if stop is None else stop.at
        longest = end if stop is None else end + stop.duration
        start = due + self._lead if blend and k else 0.0
        if blend:
            count = int(np.ceil((longest + _KNOT_BEFORE) / self._advance))
            grid = np.array([self.due(m) - _KNOT_BEFORE for m in range(k + 2 if k else 1, count)])
            first = [] if k else [0.0]
            times = self._bent(self.reference, np.array([*first, *grid[grid < end - step], end]))[:-1]
        else:
            begin = max(0.0, due - _PAST)
            numbers = np.arange(int(np.floor(begin * self.rate + 1e-6)), int(np.ceil(end * self.rate - 1e-6)))
            times = step * numbers.astype(np.float64)
        parts = [(times, self.reference.evaluate(times))]
        if stop is None:
            parts.append((np.array([end]), self.reference.evaluate([end])))
        else:
            if blend:
                within = grid[(grid > end + step) & (grid < longest - step)] - end
                local = self._bent(stop, np.array([0.0, *within, stop.duration]))
            else:
                local = np.linspace(0.0, stop.duration, max(2, round(stop.duration / step) + 1))
            parts.append((end + local, stop.evaluate(local)))
        position, velocity, acceleration = (np.concatenate([part[1][j] for part in parts]) for j in range(3))
        velocity[-1] = acceleration[-1] = 0.0
        return Window(
            due=due,
            stamp=start,
            times=np.concatenate([part[0] for part in parts]),
            position=position,
            velocity=velocity,
            acceleration=acceleration,
            until=end,
        )

    def _planned_stop(self, k: int) -> Eased:
        """Return the stop of window ``k``: the latest that keeps all limits, and of these the shortest."""
        step = 1.0 / self.rate
        end = round((self.due(k) + self._span) * self.rate) * step
        moments = (end - step * np.arange(int(self._search / step) + 1)).tolist()
        stops = [Eased(reference=self.reference, at=at, duration=each) for at in moments for each in self._durations]
        return easiest(stops, self.check)

    def require_stops(self, until: float) -> None:
        """Refuse a run if the stop of a window breaks a limit, naming the limit, joint and time.

        Windows due after ``until`` [s] are not looked at: a periodic motion repeats.
        """
        for k in range(self.count - 1):
            if self.due(k) > until:
                return
            stop = self._planned_stop(k)
            worst = max(self.check.peaks(stop, start=stop.at), key=lambda peak: peak.excess)
            if worst.excess > _STOP_TOLERANCE:
                raise ExcitationError(
                    f'no stop around t = {stop.at:.1f} s of the run keeps all limits: {worst}; '
                    'design with some reserve, such as velocity_scaling and acceleration_scaling of 0.9'
                )

    def _bent(self, motion: Reference, times: Array) -> Array:
        """Return times of knots, with others halfway between where quintics would leave the motion.

        None come between a window's start and its first knot: there a cycle is made good.
        """
        while True:
            span = np.diff(times)
            middle = times[:-1] + 0.5 * span
            q, dq, ddq = motion.evaluate(times)
            before, after = (
                JointMotion(position=q[some], velocity=dq[some], acceleration=ddq[some])
                for some in (slice(None, -1), slice(1, None))
            )
            led = quintic_between(before, after, span[:, None], 0.5).position
            off = (np.abs(led - motion.evaluate(middle)[0]).max(axis=1) > _OFF) & (span > 2.0 / self.rate)
            if not off.any():
                return times
            times = np.sort(np.concatenate([times, middle[off]]))
