# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction trajectories: one joint at a time, constant velocities, both ways over the same stretch.

At constant velocity only friction and gravity act; over the same stretch in both directions the
gravity is equal and cancels in the difference, which is the friction at that velocity.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.constraints import Constraint, excess_at_rest, usual_ranges
from robotid_ros.excitation.reference import Chain, Reference, Rest, smooth_step
from robotid_ros.excitation.workspace import random_positions
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.settings import Settings, setting

_ROOM = 1.0  # [rad or m] from a start: at 0.6 of usual velocity limits, ramps and a stroke of half a second fit
_POSES = 200  # tried for a start
_COARSE, _FINE = 16, 200  # positions on each side of a start at which the constraints are evaluated
_PEAK_JERK = 10.0 / np.sqrt(3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionSweepConfig(Settings):
    """Settings of a friction sweep; an ExcitationError tells a value that is out of its range."""

    error = ExcitationError

    sweep_levels: int = setting(6, 'Speeds per joint, geometrically spaced', range=(1, 100))
    # Below the speed at which static friction ends in the model of that name, BREAKAWAY_SPEED.
    sweep_slowest: float = setting(0.005, 'Lowest speed', unit='rad/s or m/s', range=(1e-5, 10.0))
    sweep_fastest: float = setting(0.6, 'Highest speed as a part of the velocity limit', range=(0.01, 1.0))
    sweep_stroke_time: float = setting(2.0, 'Time at constant speed, if there is room', unit='s', range=(0.1, 60.0))
    sweep_acceleration: float = setting(
        2.0, 'Acceleration to the speed, within the limits', unit='rad/s^2', range=(0.01, 100.0)
    )
    sweep_pause: float = setting(0.3, 'Rest between two strokes', unit='s', range=(0.0, 10.0))


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """One joint moving at constant velocity, with a smooth beginning and end.

    The velocity follows the smooth step 10 s^3 - 15 s^4 + 6 s^5 up and down within ``ramp``.
    """

    start: Array  # shape (n,): positions at the start [rad or m]
    joint: int
    velocity: float  # with its sign [rad/s or m/s]
    steady: float  # time at that velocity [s]
    ramp: float  # [s]

    @property
    def duration(self) -> float:
        """Duration [s]."""
        return self.steady + 2.0 * self.ramp

    @property
    def length(self) -> float:
        """Distance, with its sign [rad or m]."""
        return self.velocity * (self.steady + self.ramp)

    def evaluate(self, t: ArrayLike) -> tuple[Array, Array, Array]:
        """Return position, velocity and acceleration at times within [0, duration], shape (N, n) each."""
        times = np.atleast_1d(np.asarray(t, dtype=np.float64))
        up = np.clip(times / self.ramp, 0.0, 1.0)
        down = np.clip((self.duration - times) / self.ramp, 0.0, 1.0)

        (way_up, rate_up, slope_up), (way_down, rate_down, slope_down) = smooth_step(up), smooth_step(down)
        middle = np.clip(times - self.ramp, 0.0, self.steady)
        travelled = self.ramp * way_up + middle + 0.5 * self.ramp - self.ramp * way_down
        position = np.tile(self.start, (len(times), 1))
        velocity, acceleration = np.zeros_like(position), np.zeros_like(position)
        position[:, self.joint] += self.velocity * travelled
        velocity[:, self.joint] = self.velocity * (rate_up + rate_down - 1.0)
        acceleration[:, self.joint] = self.velocity * (slope_up - slope_down) / self.ramp
        return position, velocity, acceleration


@dataclass(frozen=True, kw_only=True)
class FrictionSweep:
    """Strokes one after the other, with rests between them; it begins and ends at rest at the same place."""

    reference: Chain

    @property
    def strokes(self) -> tuple[Stroke, ...]:
        """The strokes, in the order of time."""
        return tuple(part for part in self.reference.parts if isinstance(part, Stroke))


def friction_sweep(
    model: RobotModel,
    limits: JointLimits,
    config: FrictionSweepConfig | None = None,
    start: Array | None = None,
    constraints: Sequence[Constraint] = (),
) -> FrictionSweep:
    """Return strokes of every joint at geometrically spaced speeds, both ways, within the limits.

    Each joint uses the larger of its two sides of the start, as far as the constraints leave it open: those of
    positions, such as ground, walls, the arm itself. Position, velocity, acceleration and jerk limits are kept.
    ``start``, shape (n,), is the pose of the resting joints, and the start of each stroke [rad or m], see
    :func:`sweep_start`; the middle of the position ranges by default.

    Raises an ExcitationError if the start lies outside the limits, or a joint has no room for the slowest stroke.
    """
    config = FrictionSweepConfig() if config is None else config
    low, high = usual_ranges(limits)
    start = frozen_array((low + high) / 2.0 if start is None else start, 'start', (model.n,), ExcitationError)
    parts: list[Reference] = []
    for j, name in enumerate(model.joint_names):
        if not low[j] <= start[j] <= high[j]:
            raise ExcitationError(
                f"start position of joint '{name}' is {start[j]:g}, outside its limits {low[j]:g} to {high[j]:g}"
            )
        below, above = _open(model, start[None], j, (low[j], high[j]), constraints, _FINE)[0]
        sign = 1.0 if above >= below else -1.0
        room = float(max(above, below))
        # The highest speed leaves room for half the ramps' way at least.
        limit = limits.velocity[j] if np.isfinite(limits.velocity[j]) else 1.0
        fastest = config.sweep_fastest * limit
        while fastest * 1.5 * _ramp(fastest, config, limits, j) > room and fastest > config.sweep_slowest:
            fastest *= 0.9
        if fastest < config.sweep_slowest:
            raise ExcitationError(
                f"joint '{name}': the lowest speed {config.sweep_slowest:g} does not fit between its velocity limit "
                f'{limit:g} and the {room:g} of room on its larger side, within its range and the workspace'
            )
        speeds = np.geomspace(config.sweep_slowest, fastest, config.sweep_levels)
        for speed in speeds if config.sweep_levels > 1 else [fastest]:
            ramp = _ramp(speed, config, limits, j)
            steady = min(config.sweep_stroke_time, room * (1.0 - 1e-9) / speed - ramp)
            forth = Stroke(start=start, joint=j, velocity=sign * speed, steady=steady, ramp=ramp)
            turned = start.copy()
            turned[j] += forth.length
            back = Stroke(start=turned, joint=j, velocity=-forth.velocity, steady=forth.steady, ramp=forth.ramp)
            for stroke, end in ((forth, turned), (back, start)):
                parts.append(stroke)
                if config.sweep_pause > 0.0:
                    parts.append(Rest(position=end, duration=config.sweep_pause))
    return FrictionSweep(reference=Chain(parts=tuple(parts)))


def sweep_start(model: RobotModel, limits: JointLimits, constraints: Sequence[Constraint], measured: Array) -> Array:
    """Return the pose at which the strokes of a sweep begin, shape (n,) [rad or m].

    It is the measured one, if every joint has room for its strokes there; otherwise that of many random poses where the
    joint with the least room has most. The constraints are of positions.
    """
    low, high = usual_ranges(limits)
    wanted = np.minimum(_ROOM, 0.5 * (high - low))
    poses = np.vstack([measured, random_positions(model, _POSES, limits)])
    share = np.full(len(poses), 1.0)
    for j in range(model.n):
        room = _open(model, poses, j, (low[j], high[j]), constraints, _COARSE).max(axis=1)
        share = np.minimum(share, room / wanted[j])
    return np.asarray(poses[int(np.argmax(share))])


def _open(
    model: RobotModel, poses: Array, j: int, span: tuple[float, float], constraints: Sequence[Constraint], count: int
) -> Array:
    """Return how far joint j can go down and up from each of some poses (P, n), shape (P, 2); 0 where it cannot."""
    room = np.maximum(np.stack([poses[:, j] - span[0], span[1] - poses[:, j]], axis=1), 0.0)
    if not constraints:
        return room
    steps = np.linspace(0.0, 1.0, count)
    for side, sign in enumerate((-1.0, 1.0)):
        q = np.repeat(poses[:, None, :], count, axis=1)
        q[:, :, j] += sign * room[:, side, None] * steps
        closed = excess_at_rest(constraints, model, q.reshape(-1, model.n)).reshape(len(poses), count) > 0.0
        # One step before the last open one, since nothing is known between two steps.
        first = np.where(closed.any(axis=1), np.maximum(closed.argmax(axis=1) - 2, 0), count - 1)
        room[:, side] *= steps[first]
    return room


def _ramp(speed: float, config: FrictionSweepConfig, limits: JointLimits, j: int) -> float:
    """Return the duration of the smooth step to a speed within the acceleration and jerk limits [s]."""
    acceleration = min(config.sweep_acceleration, limits.acceleration[j])
    return float(max(1.875 * speed / acceleration, np.sqrt(_PEAK_JERK * speed / limits.jerk[j]), 0.05) * (1.0 + 1e-9))
