# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The one law of stopping: who moves an arm owns it until rest was seen. See docs/stopping.md.

Fed with joint states, with what the nodes observe, and with time, the supervisor returns what is to be sent. Nothing
else decides on a stop. Its limits are :class:`~robotid_ros.execution.following.WatchdogConfig`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.execution.belief import GOES_ON
from robotid_ros.execution.delay import motions_at
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.following import Following, WatchdogConfig
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.run_clock import RunClock
from robotid_ros.execution.sight import ENOUGH_TOLD, Sight
from robotid_ros.execution.stop import PathPlace, StopPlan, plan_stop
from robotid_ros.execution.windows import Window

_REPEAT = 0.3
"""Least time between two stops, so that the one before can show [s]."""
_SLACK, _SLACK_RELATIVE, _SLACK_TIME = 0.15, 0.2, 0.05
"""How much faster than its stop an arm may be [rad/s or m/s, a part of it], and how much later [s]."""
_LATE, _LATE_STEP = 1.0, 0.005
"""How far back readings that come late may show the path, and in which steps it is looked at [s]."""
_OVERDUE = 0.1
"""How long after the end of a stop an arm may still move [s]."""
_RESTING_SPEED = 0.05
"""Below this speed an arm counts as slow [rad/s or m/s]."""
_STANDS_FOR = 0.25
"""How long it must have kept its place to stand on its way [s]."""
_MOVES = 0.02
"""What the reference moves by where an arm that was not stopped would be seen to move [rad or m]."""
_ARRIVED, _HELD = 3e-3, 0.8
"""Distance from a stop's end within which rest is believed at once [rad or m], and how long it takes elsewhere [s]."""
_ENDING = 1.0
"""How long after the end of its run joint states may show an arm that moves [s]."""
_ASTRAY = 0.05
"""How long joint states have to show an arm off its path until the next piece is given up: one velocity that is wrong
may be [s]."""
_SETS_OUT = 0.3
"""The same before it is known how late the arm usually is: one that lags sets out later than its path [s]."""
_UNSEEN, _MOST_UNSEEN, _INTERVALS = 0.3, 0.5, 2.0
"""Parts of the time that joint states may miss, after which an arm is led no further: the first where these are overdue
by so many of their usual intervals. It may stand since, and would leap to where the next piece begins."""
_CYCLES = 2.0
"""Cycles that a controller that blends makes good with each window: it loses one, and a late one now and then."""
_MOST_STOPS = 6
"""An arm that has not obeyed as many is not led by this node; windows end at rest by themselves long before."""
_TOO_LATE = 'the next piece of the trajectory is too late: this computer is too busy'
_PLACES = 101
"""So many places of a stop are looked at: at most 30 mrad apart at 3 rad/s."""
_LED_BACK = 2.0
"""So many times as long a stop may take where joints press on something: their reference is far beyond that."""
_PLANNINGS = 3
"""How often a stop is planned at most before it is sent, late or not."""


class State(Enum):
    """Of a run."""

    RUNNING = 'running'
    STOPPING = 'stopping'
    RESTED = 'rest was seen'


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What is to be sent.

    ``window``: its stamp is None for points that count from the moment the controller takes them. ``shift``: by how
    much it is later than the schedule of the run [s]. ``stop``: it leads to rest.
    """

    window: Window
    shift: float = 0.0
    stop: bool = False


class Supervisor:
    """Moves one arm along a plan, and brings it to rest for any reason.

    ``reason``: why it was stopped; '' where it was not. ``fault``: the reason is a fault, not a request. ``strays``,
    ``unseen``: the reason is how the arm seems to move, or that its joint states do not come. ``wanted``, or None: the
    window that is needed next; :meth:`supply` takes it.

    Parameters
    ----------
    plan : RunPlan
    first : Window
        That is sent already.
    config : WatchdogConfig
    clock : RunClock
    latency : float
        What a message takes to the controller at most [s].
    steady : callable
        The monotonic clock [s]: planning takes time too.
    efforts : EffortWatch, optional
        Where efforts are watched.
    """

    def __init__(
        self,
        plan: RunPlan,
        first: Window,
        config: WatchdogConfig,
        clock: RunClock,
        latency: float,
        steady: Callable[[], float],
        efforts: EffortWatch | None = None,
    ) -> None:
        self.plan, self.config, self.clock = plan, config, clock
        self.following = Following(plan, config, efforts)
        self._shown = plan.needs()[1]
        self.state, self.reason, self.fault = State.RUNNING, '', False
        self.strays = self.unseen = False
        self._latency, self._steady = latency, steady
        over = config.joint_state_timeout
        self.joint_sight = Sight('joint states', over, silence=GOES_ON)
        self.controller_sight = Sight('states of the controller', over, enough=ENOUGH_TOLD)
        self.sights: list[Sight] = [self.joint_sight, self.controller_sight]
        self._effort_sight = Sight('efforts', over, silence=GOES_ON)
        if efforts is not None:
            self.sights.append(self._effort_sight)
        self._problem: tuple[str, bool] | None = None
        self.wanted: int | None = 1 if plan.windows.count > 1 else None
        self._supplied: Window | None = None
        self._astray_since = np.inf
        self._leading = [Order(window=first)]
        self._looked: float | None = None
        self._excused = False
        self._stop: StopPlan | None = None
        self._stops: list[StopPlan] = []
        self._sent = self._sent_now = np.inf
        self._still_since = np.inf
        self._followed = self._foreign = self._claimed = self._again = self._on_path = False
        self._halted: list[JointMotion] = []
        self.breaks = ''

    # -- what comes in ------------------------------------------------------------------------------

    def joint_state(
        self, position: Array, velocity: Array | None, effort: Array | None, stamp: float | None, now: float
    ) -> None:
        """Take in a joint state with a stamp of the node's clock [s], or none; ``now`` is monotonic [s].

        The clock has been read at that moment.
        """
        time, problem = self.clock.place(stamp, self.config.clock_tolerance, self.config.joint_state_timeout)
        usable = bool(np.isfinite(position).all())
        self.joint_sight.saw(now, usable=usable)
        made = now - self.clock.lag  # one that was long under way tells of the arm no more than silence does
        if self.state is not State.RUNNING:
            self.following.belief.receive(position, velocity, time, made)
            return
        self._effort_sight.saw(now, usable=effort is not None and bool(np.isfinite(effort).all()))
        if self._led_to_rest(time):  # and that is what it does, whatever the path says
            self.report(_TOO_LATE)
        said = self.following.receive(position, velocity, time, made, effort)
        # Where the clock is at fault, what seems to be wrong with the arm is its fault too.
        text = self.clock.problem or '; '.join(filter(None, (said, problem)))
        if text:
            self.strays = self.strays or (self._problem is None and said is not None and not self.clock.problem)
            self.report(text)

    def controller_state(self, desired: Array, actual: Array, stamp: float, now: float) -> None:
        """Take in what the controller says; see :meth:`Following.receive_feedback`."""
        self.controller_sight.saw(now)
        time = self.clock.glance(stamp, self.config.joint_state_timeout)
        if self.state is not State.RUNNING:
            if self.following.belief.silence(now, GOES_ON):  # the controller measures too
                self.following.belief.receive(actual, None, time, now)
        else:
            if self._led_to_rest(time):
                self.report(_TOO_LATE)
            said = self.following.receive_feedback(desired, actual, time)
            if said:
                self.strays = self.strays or self._problem is None
                self.report(said)

    def report(self, problem: str, *, fault: bool = True, foreign: bool = False) -> None:
        """Take in why the arm has to be stopped, seen by anybody; the first reason counts.

        It is ``foreign`` where somebody else may lead the arm; one who appears in a stop is a reason for another.
        """
        self._again = self._again or (foreign and not self._claimed and self.state is State.STOPPING)
        self._claimed = self._claimed or foreign
        self._foreign = self._foreign or foreign
        if self.state is State.RUNNING and self._problem is None:
            self._problem = problem, fault

    def hold(self) -> None:
        """Take in that the controller holds the arm: where it stands it stays, and is sent no further stop for that."""
        self._on_path = False

    @property
    def stops(self) -> int:
        """How many stops were sent."""
        return len(self._stops)

    @property
    def _leads_until(self) -> float:
        last = self._leading[-1]
        return last.window.until + last.shift

    def _led_to_rest(self, time: float) -> bool:
        """Return whether the last piece that was sent leads to rest by then, and another should have come."""
        return self.wanted is not None and time > self._leads_until

    @property
    def urgent(self) -> bool:
        """Whether the next look will stop the arm."""
        return self.state is State.RUNNING and self._problem is not None

    def supply(self, window: Window) -> None:
        """Take in the window that was wanted."""
        self._supplied = window

    # -- what goes out ------------------------------------------------------------------------------

    @property
    def time(self) -> float:
        """Time from the start of the run [s]."""
        return self.clock.time

    def tick(self, clock: float, now: float, *, simulated: bool, sent: float | None = None) -> list[Order]:
        """Return what is to be sent at a time of the node's clock and of a monotonic one, as :class:`RunClock` [s]."""
        time = self.clock.read(clock, now, simulated=simulated, sent=sent)
        # A late look comes before the joint states that queued meanwhile: the next one decides.
        late = self._looked is not None and now - self._looked > 0.5 * self.config.joint_state_timeout
        excused, self._excused, self._looked = late and not self._excused, late, now
        if self.state is State.RESTED:
            return []
        if self.state is State.STOPPING:
            return self._supervise_stop(time, now)
        if self._problem is None:
            self._look(time, now, excused=excused)
        if self._problem is None:
            orders = self._advance(time, now)
        if self._problem is None:
            return orders
        self.reason, self.fault = self._problem
        self.state = State.STOPPING
        self._on_path = self.following.path_place() is not None
        return self._stop_orders(time, now)

    def _look(self, time: float, now: float, *, excused: bool) -> None:
        problem = self.clock.problem
        if not problem and not excused:
            problem = self.following.belief.silence(now, self.config.joint_state_timeout) or ''
            self.unseen = bool(problem)
            problem = problem or next(filter(None, (sight.problem(now) for sight in self.sights)), '')
        end, belief = self.plan.reference.duration, self.following.belief
        if not problem and time >= end:
            rests = belief.resting(end)
            if rests:
                self.state = State.RESTED
            elif rests is False and belief.time - end > _ENDING:
                problem = 'the arm was not seen to rest at the end of its run'
        if problem:
            self.report(problem)

    def _advance(self, time: float, now: float) -> list[Order]:
        """Return the window that is due; an arm that is not seen is not led further."""
        windows = self.plan.windows
        if self.state is not State.RUNNING or self.wanted is None or time < windows.due(self.wanted):
            return []
        missing, overdue = self.config.joint_state_timeout, _INTERVALS / max(self.joint_sight.rate, 1.0)
        unseen = self.following.belief.silence(now, min(max(overdue, _UNSEEN * missing), _MOST_UNSEEN * missing))
        if self._led_to_rest(time + self._latency):
            self.report(f'{unseen}: it was led no further' if unseen else _TOO_LATE)
            return []
        if self._supplied is None or unseen:
            return []
        stamp = self._supplied.stamp
        if windows.blend and stamp is not None and stamp < time + self._latency:
            # The controller would lead all of it as much later as it comes late; the next one overlaps it.
            self._supplied, last = None, self.wanted + 1 == windows.count
            self.wanted += not last
            if last:
                self.report(_TOO_LATE)
            return []
        taken = max(time, stamp or 0.0)
        shift = self.following.shift(time, taken)
        if shift is None:
            seen = self.following.belief.time
            self._astray_since = min(self._astray_since, seen)
            allowed = _ASTRAY if self.following.growth.known else _SETS_OUT
            if seen - self._astray_since > allowed:
                self.report('the arm, or what its controller leads it to, is off the path where the next piece begins')
            return []
        self._astray_since = np.inf
        if windows.blend:
            shift -= float(np.clip(shift, -self._lost_cycles, self._lost_cycles))
        order = Order(window=self._supplied, shift=shift)
        self._supplied = None
        self._leading = [each for each in self._leading if each.window.times[-1] + each.shift > time] + [order]
        self.wanted = self.wanted + 1 if self.wanted + 1 < windows.count else None
        return [order]

    @property
    def _lost_cycles(self) -> float:
        """What a controller that blends makes good from one window to the next [s].

        Each window costs it a cycle, which is taken to be the usual interval of joint states. Were the next window as
        much later, the run would fall behind by a cycle each time.
        """
        return min(_CYCLES / max(self.joint_sight.rate, 1.0), self.config.delay_tolerance)

    # -- the stop -----------------------------------------------------------------------------------

    def _supervise_stop(self, time: float, now: float) -> list[Order]:
        if self._stop is None or self._again:  # it could not be planned
            self._again = False
            return self._stop_orders(time, now)
        belief, end = self.following.belief, self._sent + self._latency + self._stop.duration
        off = float(np.abs(belief.motion.position - self._stop.goal).max())
        if off > _ARRIVED and belief.place_time > end + _OVERDUE and not self._halted:
            self._halted = self._on_its_way()
            if self._halted:
                return self._stop_orders(time, now)
        rests = time >= end and self.following.belief.resting(self._sent + self._latency)
        if rests and self._would_have_moved(time):
            self._still_since = min(self._still_since, time)
            # Elsewhere something holds it, or a controller whose time is stretched leads it there slowly.
            if off < _ARRIVED or time - self._still_since > _HELD:
                self.state = State.RESTED
            return []
        self._still_since = np.inf
        if now - self._sent_now < _REPEAT:
            return []
        # On its path, the arm has missed the stop. Elsewhere something else moves it, or only seems to: it would be led
        # after that, on and on.
        missed = self.following.path_place() is not None
        if self._followed and not missed:
            return []
        told = missed and not belief.alone
        speed = np.abs(belief.motion.velocity) if told else belief.shown_speed
        if not self._moves_on(time, speed) or self._may_be_late(speed):
            return []
        self._foreign = self._foreign or not missed
        orders = self._stop_orders(time, now, if_kept=not missed)
        self._followed = self._followed or (bool(orders) and not missed)
        return orders

    def _on_its_way(self) -> list[JointMotion]:
        """Return what the last stop does, from each start that leads it through the place of an arm that stands.

        The time of its controller may stand still there: the arm would go on when that does. One of which a joint lies
        is not known to stand there.
        """
        belief, found = self.following.belief, []
        stands = belief.resting(belief.time - _STANDS_FOR) and not belief.lying.any()
        if self._stop is None or not stands or not self._on_path:  # elsewhere something else holds it
            return []
        for way in zip(*self._stop.motions(np.linspace(0.0, self._stop.duration, _PLACES)), strict=True):
            away = np.abs(way[0] - belief.motion.position).max(axis=1)
            k = int(np.argmin(away))
            if away[k] <= self.config.path_distance:
                position, velocity, acceleration = (values[k] for values in way)
                found.append(JointMotion(position=position, velocity=velocity, acceleration=acceleration))
        return found

    def _would_have_moved(self, time: float) -> bool:
        """Return whether an arm that missed its stop would have been seen elsewhere since the end of that by now."""
        if self._stop is None:
            return False
        plan, belief = self.plan, self.following.belief
        reference, until = plan.reference, min(time - self._latency, self._leads_until)
        if time >= min(self._leads_until + plan.windows.longest_stop, reference.duration):
            return True
        times = np.linspace(min(self._sent + self._stop.duration, until), until, 9)
        away = reference.evaluate(np.clip(times, 0.0, reference.duration))[0] - belief.motion.position
        return bool(np.abs(np.where(belief.lying, 0.0, away)).max() > _MOVES)

    def _moves_on(self, time: float, speed: Array) -> bool:
        """Return whether the arm, at a speed of its joints, shape (n,), moves otherwise than its stop leads it."""
        belief = self.following.belief
        if self._stop is None or self.stops >= _MOST_STOPS or belief.place_time <= self._sent:
            return False
        if not belief.sound or belief.lying.any():  # it would be led from where it is not
            return False
        sent_ago = min(belief.place_time, time) - self._sent
        ago = sent_ago - self._latency - _SLACK_TIME
        if ago > self._stop.duration + _OVERDUE:
            return bool(speed.max() > _RESTING_SPEED)
        if ago < 0.0:
            return False
        times = np.minimum(np.linspace(ago, sent_ago, 4), self._stop.duration)  # it began in between
        planned = np.abs(self._stop.motions(times)[1]).max(axis=(0, 1))
        return bool((speed > _SLACK + (1.0 + _SLACK_RELATIVE) * planned).any())

    def _may_be_late(self, speed: Array) -> bool:
        """Return whether the arm is shown where it was led until now, and no faster than there.

        It may have obeyed then, and its readings come late. An arm that has missed its stop is soon beyond all that.
        """
        reference, belief, last = self.plan.reference, self.following.belief, self._leading[-1]
        left = min(self._sent + self._latency - last.shift, last.window.until)
        times = np.arange(left - _LATE, left, _LATE_STEP)
        places, speeds, _ = reference.evaluate(np.clip(times, 0.0, reference.duration))
        lows, highs, fastest = [places], [places], [np.abs(speeds)]
        for stop in self._stops:
            times = np.arange(0.0, stop.duration, _LATE_STEP)
            positions, velocities, _ = stop.motions(times)
            lows.append(positions.min(axis=0))
            highs.append(positions.max(axis=0))
            fastest.append(np.abs(velocities).max(axis=0))
        position, near = belief.motion.position, self.config.path_distance
        there = (position >= np.vstack(lows) - near) & (position <= np.vstack(highs) + near)
        there = there & (speed <= _SLACK + (1.0 + _SLACK_RELATIVE) * np.vstack(fastest))
        return bool(there.all(axis=1).any())

    def _stop_orders(self, time: float, now: float, *, if_kept: bool = False) -> list[Order]:
        """Plan a stop for when it reaches the controller, again where planning it took too long.

        Where it has to keep all limits and does not, none is returned.
        """
        began = now
        for _ in range(_PLANNINGS):
            plan = self._planned(time)
            took = self._steady() - began
            if took <= 0.5 * self._latency:
                break
            time, began = time + took, began + took
        if if_kept and plan.breaks:
            return []
        self._stop, self._sent, self._sent_now = plan, time, began
        self._stops.append(plan)
        self.breaks = plan.breaks
        goal = plan.goal[None]
        still = np.zeros_like(goal)
        window = Window(
            due=time, stamp=None, times=np.array([plan.duration]), position=goal, velocity=still,
            acceleration=still, until=time,
        )  # fmt: skip
        return [Order(window=window, stop=True)]

    def _planned(self, time: float) -> StopPlan:
        following, latency = self.following, self._latency
        belief, reference = following.belief, self.plan.reference
        if np.isneginf(belief.place_time):
            motion, age = following.reference(0.0), 0.0
        else:
            motion, age = belief.motion, max(time - belief.place_time, 0.0)
        if self._stop is not None:  # a joint that lies is thought to obey it, or to move as it shows if others lead it
            obeys = belief.unseen if self._foreign else belief.lying
            motion = motion.where(~obeys, self._stop.ways(max(time - age - self._sent, 0.0))[0])
        # The path was checked: an arm that is a little off it does best to end there too, and goes on much like it.
        near = None if self._halted else following.path_place(2.0 * self.config.tracking_tolerance)
        steps = [part * latency for part in (0.5, 0.0, 1.0)]
        starts = [motion.after(min(age, GOES_ON) + step) for step in steps]
        path = None
        stands: list[JointMotion] = []
        if near is not None:
            window = self._leading[-1].window
            ((seen, *led),) = self._led([window], (time - near + np.array([-age, *steps]))[None])
            if belief.alone:
                # One reading after a gap: its places may tell that joints are on their path, velocities alone nothing.
                placed = np.abs(motion.position - seen.position) <= self.config.path_distance
                motion = JointMotion(
                    position=motion.position, velocity=np.where(placed, seen.velocity, motion.velocity)
                )
            along = np.abs(motion.velocity - seen.velocity) <= _SLACK + _SLACK_RELATIVE * np.abs(seen.velocity)
            if time - near < window.until:  # later it is led to rest already
                path = PathPlace(reference=reference, time=time - near + 0.5 * latency, along=along)
            starts = [
                self._gone_on(along, motion, seen, ref, straight) for ref, straight in zip(led, starts, strict=True)
            ]
            if not along.all() and np.abs(motion.position - seen.position).max() <= self.config.path_distance:
                stands = [led[1]]
        shifts = np.array([order.shift for order in self._leading])
        leads = self._led([order.window for order in self._leading], time - shifts[:, None] + np.sort(steps))
        unlike = [float(np.abs(led[0].position - starts[1].position).max()) for led in leads]
        last, likely = len(leads) - 1, int(np.argmin(unlike))
        told = [k for k in {last: None, likely: None} if unlike[k] < 2.0 * self.config.tracking_tolerance]
        if self._stop is None and last not in told:
            # The arm is seen where no drive brings it at once: a lie that a gap made possible, or a truth. Where it is
            # one reading alone, the message counts first.
            starts = leads[last] + starts if belief.alone else starts + leads[last]
        for k in told:  # the last one may have been lost
            starts += leads[k]
        starts += stands  # a controller whose time stands still goes on from there
        if self._stop is not None:  # the one before may be on its way
            starts += self._stop.ways(max(time - self._sent, 0.0))
        starts += self._halted
        likely = len(starts)
        if age > GOES_ON:  # it may stand since, as where its controller was not active
            starts.append(JointMotion(position=motion.position, velocity=np.zeros_like(motion.velocity)))
        if self._foreign:  # it may go on as whoever else leads it wants
            for as_it_went in (motion, replace(motion, acceleration=belief.acceleration)):
                starts += [as_it_went.after(min(age, GOES_ON) + step) for step in steps]
        back_to = None if following.efforts is None else following.efforts.clear
        goal = None if self._stop is None else self._stop.goal
        patience = 1.0 if back_to is None else _LED_BACK
        if self._halted:
            back_to, patience = motion.position, 1.0
        return plan_stop(starts, self.plan.checks, path, back_to, self._shown, goal, likely, patience)

    def _led(self, windows: Sequence[Window], elapsed: Array) -> list[list[JointMotion]]:
        """Return where messages lead at times from the start of the run, (K, m): along the path, and then to rest."""
        flat = iter(motions_at(self.plan.reference, elapsed.ravel()))
        return [
            [motion if time < window.until else window.at(time) for time, motion in zip(times, flat, strict=False)]
            for window, times in zip(windows, elapsed.tolist(), strict=True)
        ]

    def _gone_on(
        self, along: BoolArray, motion: JointMotion, seen: JointMotion, led: JointMotion, straight: JointMotion
    ) -> JointMotion:
        """Return where joints are later: those that go ``along`` their path are where it leads, off it as before.

        A motion was at the place of the path that ``seen`` is, which goes on to ``led``; ``straight`` is that motion
        later. A controller that blends begins at its own reference, and knows the acceleration there.
        """
        away, faster = motion.position - seen.position, motion.velocity - seen.velocity
        own = along & (np.abs(away) <= self.config.path_distance) & self.plan.windows.blend
        away, faster = np.where(own, 0.0, [away, faster])
        return JointMotion(
            position=np.where(along, led.position + away, straight.position),
            velocity=np.where(along, led.velocity + faster, straight.velocity),
            acceleration=None if led.acceleration is None else np.where(own, led.acceleration, 0.0),
        )

    def rest_text(self, now: float) -> str:
        """Return what the arm does, in words."""
        belief = self.following.belief
        silence = belief.silence(now, self.config.joint_state_timeout)
        if silence:
            return f'no joint state shows that the arm rests ({silence}): look at it'
        fastest = float(np.abs(belief.motion.velocity).max())
        return f'it moves at up to {fastest:.2f} rad/s' if fastest > _RESTING_SPEED else 'it comes to rest'
