# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Arms for excitation tests, and the trajectory controller's rules written down a second time."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robotid_ros.model import JointLimits, RobotModel
from robotid_ros.model.inertia import inertial_parameters

UR10E = Path(__file__).parents[1] / 'robotid_ros' / 'robots' / 'ur10e.urdf'


def ur10e() -> RobotModel:
    model = RobotModel.from_urdf(UR10E)
    return model.with_inertial(model.inertial, limits=model.limits.overridden(acceleration=np.full(6, 8.0)))


def limits(n: int, position=2.0, velocity=2.0, acceleration=6.0, jerk=np.inf, effort=np.inf) -> JointLimits:
    full = [np.broadcast_to(np.asarray(v, float), (n,)) for v in (position, velocity, acceleration, jerk, effort)]
    return JointLimits(
        lower=-full[0], upper=full[0], velocity=full[1], acceleration=full[2], jerk=full[3], effort=full[4]
    )


def planar_arm(n: int = 2, **options) -> RobotModel:
    """Return links of 0.4 m that turn about horizontal axes, each of 3 kg with its mass in the middle."""
    rows = [(np.pi / 2, 0.0, 0.0, 0.0)] + [(0.0, 0.4, 0.0, 0.0)] * (n - 1)
    tip = np.eye(4)
    tip[0, 3] = 0.4
    inertial = inertial_parameters(
        np.full(n, 3.0), np.tile([0.2, 0.0, 0.0], (n, 1)), np.tile(np.diag([0.01, 0.05, 0.05]), (n, 1, 1))
    )
    return RobotModel.from_mdh(
        rows, inertial=inertial, tip=tip, friction=np.full(n, 0.5), damping=np.full(n, 0.2), **options
    )


def random_arm(geometry: int, n: int, rng: np.random.Generator) -> RobotModel:
    """Return an arm with revolute and prismatic joints, one of many, and random limits of every kind."""
    bounds = random_limits(rng, n)
    rng = np.random.default_rng([geometry, n])
    rows = np.column_stack(
        [
            rng.choice([0.0, np.pi / 2, -np.pi / 2], n),
            rng.uniform(0.0, 0.4, n),
            rng.uniform(-0.3, 0.3, n),
            rng.uniform(-np.pi, np.pi, n),
        ]
    )
    types = ['revolute' if rng.random() < 0.8 else 'prismatic' for _ in range(n)]
    inertial = inertial_parameters(
        rng.uniform(1.0, 6.0, n), rng.uniform(-0.1, 0.1, (n, 3)), np.tile(np.diag([0.03, 0.04, 0.05]), (n, 1, 1))
    )
    return RobotModel.from_mdh(rows, types=types, inertial=inertial, limits=bounds)


def random_limits(rng: np.random.Generator, n: int) -> JointLimits:
    middle, half = rng.uniform(-1.0, 1.0, n), rng.uniform(0.2, 3.0, n)
    return JointLimits(
        lower=middle - half,
        upper=middle + half,
        velocity=rng.uniform(0.3, 4.0, n),
        acceleration=np.where(rng.random(n) < 0.3, np.inf, rng.uniform(1.0, 20.0, n)),
        jerk=np.where(rng.random(n) < 0.6, np.inf, rng.uniform(10.0, 100.0, n)),
        effort=np.full(n, np.inf),
    )


@dataclass
class Knots:
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray


class Controller:
    """What a joint_trajectory_controller does with messages, from its documentation.

    A message replaces the trajectory at once; until its first point the controller moves there
    from its state of that moment; between points a quintic meets position, velocity and
    acceleration of both ends; after the last point it holds. It refuses an empty trajectory, one
    that has passed, times that do not increase, and a last point that moves. With ``blend`` it
    follows the old trajectory until the start of the new one, and a start that has passed becomes
    now.
    """

    def __init__(self, position, *, blend: bool = False) -> None:
        hold = np.atleast_2d(np.asarray(position, float))
        self.blend = blend
        self.knots = Knots(np.array([-1e9]), hold, 0.0 * hold, 0.0 * hold)
        self.next: tuple[float, Knots] | None = None
        self.accepted = 0

    def receive(self, now: float, stamp: float, times, position, velocity, acceleration) -> None:
        times, position, velocity, acceleration = (
            np.array(v, float) for v in (times, position, velocity, acceleration)
        )
        assert len(times) > 0, 'an empty trajectory is refused'
        assert len(times) <= 1000, f'{len(times)} points are lost on the way'
        assert (np.diff(times) > 0.0).all(), 'times have to increase'
        assert np.isfinite(np.concatenate([position, velocity, acceleration])).all()
        assert (np.abs(velocity[-1]) < 1e-7).all(), 'the last point moves'
        assert stamp + times[-1] >= now, 'the trajectory has passed'
        if self.blend:
            stamp = max(stamp, now)
        handover = stamp if self.blend else now
        first = stamp + times[0]
        if first > handover:
            state = self.at(handover)
            times = np.concatenate([[handover], stamp + times])
            position, velocity, acceleration = (
                np.vstack([s, v]) for s, v in zip(state, (position, velocity, acceleration), strict=True)
            )
        else:
            times = stamp + times
        self.next = handover, Knots(times, position, velocity, acceleration)
        self.accepted += 1
        self._switch(now)

    def _switch(self, now: float) -> None:
        if self.next is not None and now >= self.next[0]:
            self.knots, self.next = self.next[1], None

    def at(self, now: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self._switch(now)
        k = int(np.searchsorted(self.knots.time, now, side='right')) - 1
        if k < 0:
            k = 0
        if k == len(self.knots.time) - 1:
            rest = 0.0 * self.knots.position[-1]
            return self.knots.position[-1], rest, rest.copy()
        span = self.knots.time[k + 1] - self.knots.time[k]
        p, v, a = self.knots.position, self.knots.velocity, self.knots.acceleration
        ends = np.array([p[k], v[k] * span, a[k] * span**2, p[k + 1], v[k + 1] * span, a[k + 1] * span**2])
        powers = np.arange(6)
        rows = [
            [float(i == 0) for i in powers],
            [float(i == 1) for i in powers],
            [2.0 * float(i == 2) for i in powers],
            [1.0] * 6,
            [float(i) for i in powers],
            [float(i * (i - 1)) for i in powers],
        ]
        c = np.linalg.solve(np.array(rows), ends)
        s = (now - self.knots.time[k]) / span
        value = sum(c[i] * s**i for i in range(6))
        rate = sum(i * c[i] * s ** (i - 1) for i in range(1, 6)) / span
        change = sum(i * (i - 1) * c[i] * s ** (i - 2) for i in range(2, 6)) / span**2
        return value, rate, change
