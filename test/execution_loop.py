# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A run, a controller that fails, and an arm that does at once what the controller says; all in simulated time."""

from dataclasses import dataclass, field

import numpy as np
from excitation_helpers import limits, planar_arm

from robotid_ros.excitation import ExcitationConfig, FourierTrajectory
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.following import Following, StopKind
from robotid_ros.execution.run import RunConfig, plan_run
from robotid_ros.execution.watchdog import Watchdog, WatchdogConfig
from robotid_ros.simulation.simulated_controller import SimulatedController
from robotid_ros.simulation.trajectory_follower import CommandPoint

STEP = 0.008
MODEL = planar_arm(3, limits=limits(3, 2.6, 2.5, 8.0))
CHECK = reference_check(MODEL, ExcitationConfig())
TRAJECTORY = FourierTrajectory(
    a=np.array([[0.9, -0.45], [0.5, -0.25], [1.0, -0.5]]),
    b=np.array([[0.6, 0.0], [-0.7, 0.2], [0.2, 0.1]]),
    offset=np.array([0.1, -0.2, 0.3]),
    base_frequency=0.25,
)
# It begins at rest, where the arm is: nothing shows at first that the controller took it.
FROM_REST = FourierTrajectory(
    a=np.outer([1.2, -0.7, 1.1], [1.0, -1.0]), b=np.zeros((3, 2)), offset=np.zeros(3), base_frequency=0.375
)


def new_plan(trajectory=TRAJECTORY, **settings):
    config = RunConfig(**{'periods': 3, 'settling_time': 0.3, 'window_points': 350, 'ramp_velocity': 1.5, **settings})
    return plan_run(np.zeros(3), trajectory, CHECK, config)


PLAN = new_plan()


def points_of(window):
    times = window.times - (window.stamp or 0.0)
    return [
        CommandPoint(*row) for row in zip(times, window.position, window.velocity, window.acceleration, strict=True)
    ]


@dataclass
class Loop:
    """Everything from the windows to the joint states, step by step.

    ``fault(loop)`` is called at every step from ``at`` on, with ``loop.now`` from the start of the run.
    """

    fault: object = lambda loop: None
    at: float = np.inf
    request: float = np.inf  # when a user asks for a stop
    latency: float = 0.02  # of every message to the controller
    allowed_latency: float = 0.1
    blend: bool = False
    from_command: bool = False
    feedback: bool = False  # the controller tells its state
    noise: float = 2e-5
    silent: float = np.inf  # from when on no joint states come
    parts: object = None  # a simulated arm with drives and sensors, in place of one that does what it is told
    config: WatchdogConfig = field(default_factory=WatchdogConfig)
    plan: object = PLAN
    lose_first: bool = False
    seen: object = staticmethod(lambda position, velocity: (position, velocity))  # what joint states show
    blocked: object = staticmethod(lambda position: position)  # where the arm gets to
    duration: float = 40.0
    after: float = 0.3

    def __post_init__(self):
        start = self.plan.reference.evaluate([0.0])[0][0]
        self.model = self.plan.windows.check.model
        self.controller = SimulatedController(
            self.model.joint_names, start, blend=self.blend, from_command=self.from_command
        )
        self.position, self.velocity, self.effort = start.copy(), np.zeros(len(start)), None
        self.pressed, self.efforts = [], []
        if self.parts is not None:
            self.parts.plant.reset(start)
        self.rng = np.random.default_rng(0)
        self.messages, self.track, self.sent = [], [], 0
        self.stop, self.reason, self.stopped_at = None, '', np.inf
        self.now = -0.5
        self.suspicion = None

    def send(self, window, shift=0.0, who='node'):
        start = None if window.stamp is None else window.stamp + shift
        self.messages.append((self.now + self.latency, start, points_of(window)))
        self.sent += who == 'node'

    def run(self):
        plan, begin = self.plan, 1000.0
        watchdog = Watchdog(plan.joint_names, self.model.limits.velocity, self.config)
        watchdog.receive(self.position, None, begin + self.now, self.now)
        tolerance = 0.0 if self.parts is None else self.config.push_tolerance
        efforts = EffortWatch(plan, np.ones(len(self.position)), tolerance) if tolerance else None
        following = self.following = Following(plan, begin, watchdog, efforts)
        if not self.lose_first:
            self.send(plan.windows.window(0))
        window = 1
        rest_since = None
        ends = plan.reference.duration + 1.0  # where nothing stops it before
        while self.now < (ends if self.stop is None else self.duration):
            if self.now >= self.at:
                self.fault(self)
            for message in [m for m in self.messages if m[0] <= self.now]:
                self.messages.remove(message)
                if self.controller.active:
                    self.controller.command(
                        self.model.joint_names, message[1], message[2], self.now, (self.position, self.velocity)
                    )
            q = self._move()
            self.track.append((self.now, *self.position))
            shown, velocity = self.seen(
                self.position + self.noise * self.rng.standard_normal(len(self.position)),
                self.velocity + 20 * self.noise * self.rng.standard_normal(len(self.position)),
            )
            if self.stop is None:
                if self.now < self.silent:
                    problem = following.receive(shown, velocity, begin + self.now, self.now, self.effort)
                else:
                    problem = watchdog.silence(self.now)
                if problem is None and self.feedback:
                    problem = following.receive_feedback(begin + self.now, q, self.position, self.now)
                if problem is None and self.now >= self.request:
                    problem = 'request'
                if problem is None and window < plan.windows.count and self.now >= plan.windows.due(window):
                    shift = following.shift(self.now)
                    if shift is None:
                        problem = 'off the path where the next piece begins'
                    else:
                        self.send(plan.windows.window(window), shift)
                        window += 1
                self.suspicion = self.suspicion or (problem and (problem, self.now))
                told = following.pushing or following.resting() is not None
                if self.suspicion and (told or self.now - self.suspicion[1] > 0.06):
                    problem = self.suspicion[0]
                    self.reason, self.stopped_at = problem, self.now
                    self.stop = following.stop(self.now, self.now, self.allowed_latency)
                    if self.stop.window is not None:
                        self.send(self.stop.window, self.stop.shift)
            elif self.now > max(self.stop.rest, self.stopped_at) + self.after:
                rest_since = rest_since or self.now
                if self.now > rest_since + 0.2:
                    break
            self.now += STEP
        return self

    def _move(self):
        """Let the arm go on for one step; return what its controller commands at the beginning of it."""
        if self.parts is None:
            q, dq, _ = self.controller.sample(np.array([self.now]), self.position)
            position = self.blocked(q[0])
            self.velocity = dq[0] if np.array_equal(position, q[0]) else (position - self.position) / STEP
            self.position = position
            return q[0]
        plant = self.parts.plant
        times = self.now + np.arange(round(STEP * plant.rate)) / plant.rate
        reference = self.controller.sample(times, self.position)
        motion = plant.run(*reference).rows(slice(0, 1))
        seen = self.parts.sensors.measure(motion, self.parts.sensor_rng)
        self.position, self.velocity, self.effort = motion.position[0], motion.velocity[0], seen['effort'][0]
        self.efforts.append((self.now, *self.effort))
        if plant.wall is not None:
            self.pressed.append((self.now, plant.wall.torque(self.position, self.velocity)))
        return reference[0][0]

    @property
    def kind(self):
        return None if self.stop is None else self.stop.kind

    def peaks(self, since):
        """Largest speed and acceleration of any joint from a moment on."""
        track = np.array(self.track)
        track = track[track[:, 0] >= since - 1e-9, 1:]
        velocity = np.diff(track, axis=0) / STEP
        acceleration = np.diff(velocity, axis=0) / STEP
        return np.abs(velocity).max(axis=0), np.abs(acceleration).max(axis=0)

    def final_speed(self):
        track = np.array(self.track)[:, 1:]
        return float(np.abs(track[-1] - track[-20]).max() / (19 * STEP))


def assert_within_limits(loop, since):
    velocity, acceleration = loop.peaks(since)
    assert (velocity <= MODEL.limits.velocity * 1.01).all(), (velocity, loop.reason, loop.kind)
    assert (acceleration <= MODEL.limits.acceleration * 1.03).all(), (acceleration, loop.reason, loop.kind)
    assert loop.final_speed() < 1e-3, (loop.final_speed(), loop.reason, loop.kind)


__all__ = ['CHECK', 'FROM_REST', 'MODEL', 'PLAN', 'STEP', 'Loop', 'StopKind', 'assert_within_limits', 'new_plan']
