# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What an arm measurably does: only readings that a drive can have made are believed.

A drive moves a joint by at most its velocity limit times the time that passed. A reading further away is a lie about
the arm, and not a place of it: the place goes on from where it was, and what later readings move by counts from there.
Such a reading, and one that is not finite, is no reading: neither an age nor a rest is told by it.
"""

from collections import deque

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.execution.joint_motion import JointMotion

_FASTER = 1.5
"""Factor on the velocity limit that a joint led by somebody else, or timed badly, may show."""
_HARDER = 5.0
"""Factor on the acceleration limit, which is well below what a drive can do: a joint gets no faster than that."""
_NOISE = 0.03
"""What noise, and 10 ms of wrong timing at 3 rad/s, add to it [rad or m]."""
_ANYWHERE = 1e4
"""A joint beyond this is nowhere [rad or m]: the way it moves could not be told from round-off."""
_SPAN = 0.3
"""How long readings are kept [s]."""
_SLOPE = 0.03
"""Length of motion from which a velocity is computed [s]."""
GOES_ON = 0.15
"""How long a joint is thought to go on as it did [s]: a mean over longer is no velocity."""
_STILL_FOR = 0.2
"""How long joints must have kept their places to count as resting [s]."""
_STILL = 2e-3
"""How far a resting joint may move in that time: well above the noise of any encoder [rad or m]."""
_SOUND = 0.1
"""How long readings must have been believed until they are reason for another stop [s]."""
_AGREES, _AGREES_RELATIVE = 0.3, 0.3
"""How far a measured velocity may be from the slope of the positions [rad/s or m/s, and a part of it]. One that has
agreed with it in motion is a witness: where it does not any more, neither is believed."""


class Belief:
    """The believed place of every joint, reading after reading.

    ``time`` is that of the run [s]; ``now`` is monotonic, when a reading came [s].

    ``velocity``, ``acceleration``, shape (n,): limits, finite [rad/s, rad/s^2 or m]. ``stamp_error``: how wrong stamps
    may be beyond the 10 ms that any may [s].
    """

    def __init__(
        self, joint_names: tuple[str, ...], velocity: Array, acceleration: Array, stamp_error: float = 0.0
    ) -> None:
        self._names, self._stamp_error = joint_names, stamp_error
        self._fastest, self._hardest = velocity, acceleration
        n = len(joint_names)
        self._place = np.zeros(n)
        self._velocity, self._speed = np.zeros(n), np.full(n, np.inf)  # of a joint that was read once it is not known
        self._track = np.zeros(n)  # the plausible places, whatever the velocities say
        self._witnessed, self._doubted, self._unlike = np.zeros(n), np.zeros(n), np.zeros(n)
        self._lie = np.zeros(n)  # what readings are off by, since the jump that no drive can make
        self._jumped = np.full(n, -np.inf)  # when that was
        self._time, self._came = np.full(n, -np.inf), np.full(n, -np.inf)
        self._good = np.full(n, -np.inf)  # when a joint was believed last
        self.motion, self.place_time = JointMotion(position=np.zeros(n), velocity=np.zeros(n)), -np.inf
        """What was believed of all joints at one moment, and when that was [s]."""
        self._speeds: deque[tuple[float, Array]] = deque()
        self.alone = True
        """Its velocities could not be compared with what the places moved by: nothing was seen shortly before."""
        self._seen: deque[tuple[float, Array, BoolArray, Array]] = deque()
        self._unsound = -np.inf
        self.shown_speed = np.zeros(n)
        """Of every joint, as far as its positions and its velocities both show it [rad/s or m/s]."""
        self.time = -np.inf
        """Of the last reading [s]."""

    def receive(self, position: Array, velocity: Array | None, time: float, now: float) -> str | None:
        """Take in a reading, shape (n,) each; return what is not believed of it, or None.

        One that is not newer than another that came tells nothing.
        """
        if time <= self.time:
            return None
        with np.errstate(invalid='ignore'):
            read = np.isfinite(position) & (np.abs(position) < _ANYWHERE)
        raw = np.where(read, position, 0.0)
        first = self._time == -np.inf
        gap = np.where(first, 0.0, np.minimum(np.maximum(time - self._time, 0.0), 1e3))
        jump = np.where(read & ~first, raw - self._lie - self._track, 0.0)
        gap = gap + self._stamp_error
        mean = np.minimum(_FASTER * self._fastest, self._speed + 0.5 * _HARDER * self._hardest * gap)
        possible = np.abs(jump) <= mean * gap + _NOISE
        self._lie += np.where(possible, 0.0, jump)
        self._jumped = np.where(possible, self._jumped, time)
        plausible = read & possible
        self._track = np.where(plausible, raw - self._lie, self._track)
        self._time = np.where(plausible, np.maximum(time, self._time), self._time)
        before, self.time = self.time, time
        self._seen.append((time, self._track, plausible, self._time))
        while len(self._seen) > 3 and self._seen[1][0] <= time - _SPAN:
            self._seen.popleft()
        (slope, over), told = self._slope(), np.full_like(raw, np.nan) if velocity is None else velocity
        with np.errstate(invalid='ignore'):
            sane = np.abs(told) <= 2.0 * self._fastest + 1.0
            agree = sane & (np.abs(told - slope) <= _AGREES + _AGREES_RELATIVE * np.abs(slope))
        moving = np.isfinite(slope) & (np.abs(slope) > _AGREES)
        step = min(max(time - before, 0.0), _SLOPE)
        self._witnessed += np.where(agree & moving, step, 0.0)
        self._doubted += np.where(~agree & moving & (over <= GOES_ON), step, 0.0)
        witness = self._witnessed > _SOUND
        unlike = witness & np.isfinite(slope) & np.isfinite(told) & ~agree & (over <= 2.0 * _SLOPE)
        # What jumped may jump again: among many random readings some are near enough by chance.
        good = plausible & ~unlike & (time - self._jumped > _SOUND)
        both = np.minimum(np.abs(told), np.abs(slope))
        self.shown_speed = np.where(sane & np.isfinite(slope), both, 0.0)
        known = np.isfinite(slope) & (over <= GOES_ON)
        told = np.where(sane & (witness | (~known & (self._doubted <= self._witnessed))), told, slope)
        most = _FASTER * self._fastest
        value = np.where(np.isfinite(told), told, slope)
        self._speed = np.where(good & np.isfinite(value), np.abs(value), self._speed)
        value = np.minimum(np.maximum(np.where(np.isnan(value), 0.0, value), -most), most)
        self._place, self._velocity = np.where(good, self._track, self._place), np.where(good, value, self._velocity)
        self._came = np.where(good, now, self._came)
        self._good = np.where(good | (self._good == -np.inf), time, self._good)
        if good.any() and (good | self.lying).all():
            self.motion, self.place_time = JointMotion(position=self._place, velocity=self._velocity), time
            self.alone = bool(over.min() > 2.0 * _SLOPE)
            self._speeds.append((time, self._velocity))
            while self._speeds[0][0] < time - 3.0 * _SLOPE:
                self._speeds.popleft()
        else:
            self._unsound = max(self._unsound, time)
        problem = self._problem(position, velocity, read, possible, jump)
        self._unlike = np.where(unlike, self._unlike + step, 0.0)
        k = int(np.argmax(self._unlike))
        if problem is None and self._unlike[k] > _SOUND:
            return f"position and velocity of joint '{self._names[k]}' tell different motions"
        return problem

    def _problem(
        self, position: Array, velocity: Array | None, read: BoolArray, possible: BoolArray, jump: Array
    ) -> str | None:
        if not read.all():
            k = int(np.argmin(read))
            return f"the position of joint '{self._names[k]}' is {position[k]:.6g}"
        if not possible.all():
            k = int(np.argmax(np.where(possible, -1.0, np.abs(jump))))
            return f"the position of joint '{self._names[k]}' jumps by {abs(jump[k]):.3g} between two joint states"
        if velocity is None:
            return 'the joint states hold no velocities any more' if (self._witnessed > _SOUND).any() else None
        if not np.isfinite(velocity).all():
            k = int(np.argmin(np.isfinite(velocity)))
            return f"the velocity of joint '{self._names[k]}' is {velocity[k]:.6g}"
        return None

    def _slope(self) -> tuple[Array, Array]:
        """Return velocities by the last places, NaN where they tell none, and over which times [s], shape (n,) each.

        A joint moved from place to place between the readings of it, whenever the others came.
        """
        time, place, _, when = self._seen[-1]
        before = [row for row in self._seen if row[0] <= time - _SLOPE]
        over = np.full_like(place, np.inf) if not before else when - before[-1][3]
        with np.errstate(invalid='ignore', divide='ignore'):
            slope = np.full_like(place, np.nan) if not before else (place - before[-1][1]) / over
        return np.where((over > 0.0) & np.isfinite(over), slope, np.nan), np.where(np.isfinite(over), over, np.inf)

    @property
    def acceleration(self) -> Array:
        """By what the believed velocities changed of late, shape (n,) [rad/s^2 or m/s^2]."""
        if not self._speeds or self.place_time - self._speeds[0][0] < _SLOPE:
            return np.zeros_like(self._velocity)
        since, before = self._speeds[0]
        return (self._velocity - before) / (self.place_time - since)

    @property
    def sound(self) -> bool:
        """Whether all of the last readings were believed."""
        return self.time - self._unsound > _SOUND and self.time - self.place_time <= _SOUND

    @property
    def lying(self) -> BoolArray:
        """Which joints jumped as no drive can, and not back, or are unseen, shape (n,)."""
        return self.unseen | (np.abs(self._lie) > _NOISE)

    @property
    def unseen(self) -> BoolArray:
        """Which joints were not believed of late, shape (n,): how they move is not known either."""
        result: BoolArray = self.time - self._good > _SOUND
        return result

    def silence(self, now: float, allowed: float) -> str | None:
        """Return a sentence if a joint was not believed for longer than ``allowed`` [s], else None."""
        k = int(np.argmin(self._came))
        if np.isneginf(self._came[k]):
            return 'no joint state has come yet'
        age = now - float(self._came[k])
        if age <= allowed:
            return None
        who = '' if np.ptp(self._came) == 0.0 else f" that can be believed for joint '{self._names[k]}'"
        return f'no joint state{who} for {age:.2f} s (allowed: {allowed:g} s)'

    def resting(self, since: float) -> bool | None:
        """Return whether all joints keep their places; None: too little was believed after ``since`` [s] to say so."""
        seen = [row for row in self._seen if row[0] >= since]
        run: list[tuple[float, Array, BoolArray, Array]] = []
        for row in reversed(seen):
            if not row[2].all():
                break
            run.append(row)
        if len(run) < 3 or run[0][0] - run[-1][0] < _STILL_FOR:
            return None
        return bool((np.ptp([row[1] for row in run], axis=0) <= _STILL).all())
