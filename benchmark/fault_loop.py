# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The law of stopping on a simulated controller and arm, step by step in simulated time, without ROS."""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from robotid_ros.errors import DataError
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.following import WatchdogConfig
from robotid_ros.execution.run import RunPlan
from robotid_ros.execution.run_clock import RunClock
from robotid_ros.execution.supervisor import State, Supervisor
from robotid_ros.simulation.controller import CommandPoint, SimulatedController

STEP = 0.008
TOLD = 0.05 - 0.5 * STEP
"""How often a controller tells its state: an action's feedback comes at 20 Hz [s]."""
EPOCH, BOOT = 1000.0, 50.0
"""What the node's clock and the monotonic one say when the run begins [s]."""


def points_of(window):
    times = window.times - (window.stamp or 0.0)
    return [
        CommandPoint(*row) for row in zip(times, window.position, window.velocity, window.acceleration, strict=True)
    ]


def shown_rows(shown):
    """Return what is shown at a moment as a list: none, one joint state or several."""
    return [] if shown is None else shown if isinstance(shown, list) else [shown]


@dataclass
class Loop:
    """Everything from the supervisor to the joint states, step by step; ``now`` counts from the start of the run.

    Whatever may go wrong is a field. ``fault(loop)`` is called at every step from ``at`` on. ``shown(loop, position,
    velocity, effort)`` returns what a joint state shows, with its stamp, a list of such where several come at once, or
    None where none does.
    """

    plan: RunPlan
    fault: Callable[['Loop'], None] = lambda loop: None
    at: float = np.inf
    request: float = np.inf  # when a user asks for a stop
    latency: float = 0.02  # of every message to the controller
    allowed_latency: float = 0.1
    blend: bool = False
    cycle: float = 0.0  # that a window costs a controller that blends [s]
    from_command: bool = False
    feedback: bool = False  # the controller tells its state
    noise: float = 2e-5
    parts: object = None  # a simulated arm with drives and sensors, in place of one that does what it is told
    config: WatchdogConfig = field(default_factory=WatchdogConfig)
    lose: object = staticmethod(lambda order, now: False)  # which messages never arrive
    lose_first: bool = False
    shown: object = staticmethod(lambda loop, position, velocity, effort: (position, velocity, effort, loop.clock))
    clock_error: float = 0.0  # of the node's clock, and of what stamps joint states, set by a fault
    shared: bool = False  # the controller reads that clock too
    simulated: bool = False
    starved: float = -np.inf  # until when the node has no processor [s]
    told: object = staticmethod(lambda loop, desired: desired)  # what the controller says that it leads to
    blocked: object = staticmethod(lambda position: position)  # where the arm gets to
    patience: float = 6.0  # after the stop

    def __post_init__(self):
        start = self.plan.reference.evaluate([0.0])[0][0]
        self.model = self.plan.windows.check.model
        self.controller = SimulatedController(
            self.model.joint_names, start, blend=self.blend, cycle=self.cycle, from_command=self.from_command
        )
        self.position, self.velocity, self.effort = start.copy(), np.zeros(len(start)), None
        self.pressed, self.efforts = [], []
        if self.parts is not None:
            self.parts.plant.reset(start)
        self.rng = np.random.default_rng(0)
        self.messages, self.track, self.led, self.orders, self.arrivals = [], [], [], [], []
        self.stopped_at, self.rested_at, self.took = np.inf, np.inf, []
        self._waiting, self._told = [], -np.inf
        self.now, self.killed = -0.5, np.inf  # when the node is
        self._rules = self.controller.speed_scaling, True
        self.passed, self.others = [], []
        self.other_leads = False  # since another commander's message, until the next of the node comes

    @property
    def clock(self):
        return EPOCH + self.now + self.clock_error

    def send(self, window, shift=0.0):
        start = None
        if window.stamp is not None:  # one that is under way while the clock is set is led as if it had come before
            ahead = EPOCH + (self.clock_error if self.shared else 0.0)
            start = self.supervisor.clock.begin + window.stamp + shift - ahead
        self.messages.append((self.now + self.latency, start, points_of(window)))

    def steady(self):
        """What the monotonic clock says."""
        return BOOT + self.now

    def begin(self):
        plan = self.plan
        tolerance = 0.0 if self.parts is None else self.config.push_tolerance
        efforts = EffortWatch(plan, np.ones(len(self.position)), tolerance) if tolerance else None
        clock = RunClock(EPOCH, self.clock, BOOT + self.now, simulated=self.simulated)
        first = plan.windows.window(0)
        self.supervisor = Supervisor(plan, first, self.config, clock, self.allowed_latency, self.steady, efforts)
        if not self.lose_first:
            self.send(first)

    def go_on(self, until=np.inf):
        supervisor = self.supervisor
        while supervisor.state is not State.RESTED and self.now < min(
            until, self.plan.reference.duration + 3.0, self.stopped_at + self.patience
        ):
            self._step(supervisor)
            self.now += STEP

    def run(self):
        self.begin()
        gc.freeze()  # as the node does
        self.go_on()
        supervisor = self.supervisor
        self.rested_at = self.now if supervisor.state is State.RESTED else np.inf
        for _ in range(60):  # and it stays at rest
            self._move_on()
            self.now += STEP
        gc.unfreeze()
        return self

    def _step(self, supervisor):
        if self.now >= self.at:
            self.fault(self)
        self._move_on()
        if self.now >= self.killed:
            return
        noise = self.noise * self.rng.standard_normal(len(self.position))
        shown = self.shown(self, self.position + noise, self.velocity + 20 * noise, self.effort)
        self._waiting += shown_rows(shown)
        if self.now < self.starved:
            return
        steady = self.steady()
        supervisor.clock.read(self.clock, steady, simulated=self.simulated)
        for position, velocity, effort, stamp in self._waiting:
            supervisor.joint_state(position, velocity, effort, stamp, steady)
        self._waiting.clear()
        if self.feedback and self.now >= self._told + TOLD:
            self._told = self.now
            supervisor.controller_state(self.told(self, self.led[-1]), self.position, self.clock, steady)
        if self.now >= self.request:
            supervisor.report('request', fault=False)
        if supervisor.wanted is not None and supervisor._supplied is None:
            supervisor.supply(plan_window(self.plan, supervisor.wanted))
        began = time.process_time()
        orders = supervisor.tick(self.clock, steady, simulated=self.simulated)
        if any(order.stop for order in orders):
            self.took.append(time.process_time() - began)
        if supervisor.state is State.STOPPING:
            self.stopped_at = min(self.stopped_at, self.now)
        for order in orders:
            self.orders.append((self.now, order))
            if not self.lose(order, self.now):
                self.send(order.window, order.shift)

    def _move_on(self):
        """Let messages arrive, and the arm go on for one step."""
        for message in [m for m in self.messages if m[0] <= self.now]:
            self.messages.remove(message)
            if self.controller.active:
                try:
                    self.arrivals.append(self.now)
                    self.other_leads = False
                    self.controller.command(
                        self.model.joint_names, message[1], message[2], self.now, (self.position, self.velocity)
                    )
                except DataError:
                    pass  # it ended before it came
        if self.parts is None:
            q, dq, _ = self.controller.sample(np.array([self.now]), self.position)
            position = self.blocked(q[0])
            self.velocity = dq[0] if np.array_equal(position, q[0]) else (position - self.position) / STEP
            self.position = position
            self.led.append(q[0])
        else:
            self._move_plant()
        rules = self.controller.speed_scaling, self.controller.active
        if rules != self._rules:
            self._rules = rules
            self.arrivals.append(self.now)
        self.track.append((self.now, *self.position))
        self.others.append(self.other_leads)
        self.passed.append(STEP * min(self.controller.speed_scaling, 1.0))

    def _move_plant(self):
        plant = self.parts.plant
        times = self.now + np.arange(round(STEP * plant.rate)) / plant.rate
        reference = self.controller.sample(times, self.position)
        motion = plant.run(*reference).rows(slice(0, 1))
        seen = self.parts.sensors.measure(motion, self.parts.sensor_rng)
        self.position, self.velocity, self.effort = motion.position[0], motion.velocity[0], seen['effort'][0]
        self.efforts.append((self.now, *self.effort))
        if plant.wall is not None:
            self.pressed.append((self.now, plant.wall.torque(self.position, self.velocity)))
        self.led.append(reference[0][0])

    @property
    def reason(self):
        return self.supervisor.reason

    @property
    def last_stop(self):
        """When the last stop was sent [s]: what was lost before could be seen then."""
        return max((now for now, order in self.orders if order.stop), default=np.inf)

    def controller_time(self, since, until):
        """Time of the controller between two moments [s]: where its time is stretched, or stands still, so do stops."""
        moments = np.array([row[0] for row in self.track])
        return float(np.array(self.passed)[(moments > since) & (moments <= until)].sum())

    @property
    def stop(self):
        return next((order for _, order in self.orders if order.stop), None)

    def peaks(self, since, values=None):
        """Largest speed and acceleration of any joint from a moment on."""
        track = np.array(self.track if values is None else values)
        track = track[track[:, 0] >= since - 1e-9, 1:]
        velocity = np.diff(track, axis=0) / STEP
        acceleration = np.diff(velocity, axis=0) / STEP
        return np.abs(velocity).max(axis=0), np.abs(acceleration).max(axis=0)

    def last_motion(self, speed=0.02):
        """When any joint last moved faster than this [s]."""
        track = np.array(self.track)
        fast = np.abs(np.diff(track[:, 1:], axis=0)).max(axis=1) / STEP > speed
        return float(track[1:][fast][-1, 0]) if fast.any() else -np.inf

    def way(self, since):
        """Largest way of any joint after a moment."""
        track = np.array(self.track)
        after = track[track[:, 0] >= since, 1:]
        return float(np.abs(after[-1] - after[0]).max()) if len(after) else 0.0

    def final_speed(self):
        track = np.array(self.track)[:, 1:]
        return float(np.abs(track[-1] - track[-20]).max() / (19 * STEP))


_WINDOWS = {}


def plan_window(plan, k):
    key = id(plan), k
    if key not in _WINDOWS:
        _WINDOWS[key] = plan.windows.window(k), plan
    return _WINDOWS[key][0]
