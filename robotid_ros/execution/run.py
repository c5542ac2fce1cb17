# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""One run on an arm: from where it stands to the start, the periods, and back to rest; all checked."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.friction_sweep import FrictionSweep
from robotid_ros.excitation.reference import (
    Chain,
    Eased,
    FourierRun,
    PoseTour,
    Reference,
    ReferenceCheck,
    Rest,
    approach,
)
from robotid_ros.execution.stop import easiest, stop_durations
from robotid_ros.execution.stopping_room import require_room
from robotid_ros.execution.windows import GENTLE, WindowPlan
from robotid_ros.settings import Settings, setting

Motion: TypeAlias = FourierTrajectory | FrictionSweep | PoseTour
"""What an arm can be led through."""
_AT_REST = 1e-6
_SAMPLE = 0.02
"""Step in which the velocities and accelerations of a run are looked at [s]."""
_MOST_REFERENCE_POINTS = 2000
_TRIED = 8  # moments in a cycle of the highest harmonic, to begin or end the periods at
_RATE = 250.0  # [Hz], of the checks of the ways in and out
_LOOKED_AT = 3.0
"""Periods in which every window's stop is checked before the start."""
OUTSIDE = 0.1
"""How far outside a joint may stand and is led back inside [rad or m]; a stop may end there."""
_INSIDE = 0.005
"""How far inside it is led [rad or m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(Settings):
    """How a trajectory is run; each field's ``metadata`` has its description, unit and range."""

    error = ExcitationError

    periods: int = setting(5, 'Periods of the excitation', range=(1, 100000))
    ramp_velocity: float = setting(
        0.5, 'Highest joint speed on the way to the start', unit='rad/s or m/s', range=(1e-3, 10)
    )
    settling_time: float = setting(1.0, 'Rest before the first period and after the last', unit='s', range=(0.1, 60))
    knot_rate: float = setting(
        50.0,
        'Knots per second sent to the controller; to one that blends five, and up to so many where the path bends',
        unit='Hz',
        range=(5, 1000),
    )
    trajectory_replacement: str = setting(
        'auto',
        'How the controller replaces a running trajectory: at once, or blended at the new start '
        '(allow_trajectory_replacement); auto: as its parameters say',
        choices=('auto', 'immediate', 'blend'),
    )
    window_time: float = setting(
        2.0,
        'How far ahead the controller is led, until the arm rests by itself where nothing more comes; braking may take '
        'longer',
        unit='s',
        range=(1.0, 60.0),
    )
    window_points: int = setting(1000, 'Most knots in one message to the controller', range=(50, 2000))


@dataclass(frozen=True, kw_only=True)
class RunPlan:
    """A run, checked and ready to be sent.

    Attributes
    ----------
    joint_names : tuple of str
    reference : Chain
        From the arm's present position to the end.
    windows : WindowPlan
    begin, end : float
        When the first period begins and the last one ends, from the start of the run [s].
    motion : Reference
        One period, or the whole of what has none: see :func:`once`.
    checks : list of ReferenceCheck
        What a stop keeps, in turn: the limits of the run, and where none keeps these, those of the arm.
    """

    joint_names: tuple[str, ...]
    reference: Chain
    windows: WindowPlan
    begin: float
    end: float
    motion: Reference
    checks: list[ReferenceCheck]

    def phase(self, time: float) -> str:
        """Return 'ramp', 'period k' or 'end' for a time from the start of the run [s]."""
        if time < self.begin:
            return 'ramp'
        if time >= self.end:
            return 'end'
        return f'period {1 + int((time - self.begin) / self.motion.duration)}'

    def needs(self) -> tuple[Array, Array]:
        """Return the largest velocity and acceleration of each joint, shape (n,) each [rad/s, rad/s^2 or m]."""
        times = np.arange(0.0, self.reference.duration, _SAMPLE)
        _, velocity, acceleration = (np.abs(values).max(axis=0) for values in self.reference.evaluate(times))
        return velocity, acceleration

    def one_period(self) -> tuple[Array, Array, Array, Array]:
        """Return one period of the reference, both ends included, at the rate of the windows, or less where it is long.

        Times, shape (K,), count from the beginning of the period [s]; position, velocity and acceleration are (K, n).
        """
        period = self.motion.duration
        count = min(_MOST_REFERENCE_POINTS, max(2, int(np.ceil(period * self.windows.rate))))
        times = np.linspace(0.0, period, count + 1)
        return (times, *self.motion.evaluate(times))


def once(motion: Motion) -> Reference:
    """Return one period of a motion, or the whole of one that has none."""
    if isinstance(motion, FourierTrajectory):
        return FourierRun(trajectory=motion, duration=motion.period)
    return motion.reference


def plan_run(
    position: Array, motion: Motion, check: ReferenceCheck, config: RunConfig, arm: ReferenceCheck | None = None
) -> RunPlan:
    """Plan a run from where the arm stands, and check all of it, the way to the start too.

    ``position``, shape (n,): of the arm, at rest [rad or m]. ``check``: the limits of the run. ``arm``: the limits of
    the arm itself, which a stop may use where a run keeps to a part of them, and within which the run may begin; by
    default those of the run. Raises an ExcitationError if any part breaks a limit, or cannot be stopped inside the
    limits of place; it names the part, limit, joint and time.
    """
    names = check.model.joint_names
    position = _led_inside(position, check)
    leaving = check.leaving(position, arm)
    checks = [leaving] if arm is None else [leaving, arm]
    repeated = once(motion)
    period = repeated.duration
    if isinstance(motion, FourierTrajectory):
        gentle = GENTLE if config.trajectory_replacement == 'blend' else 0.0
        before, middle, after = _fourier_parts(motion, check, config.periods, gentle)
        check.require(repeated, 'the trajectory')
    else:
        before, middle, after = (), repeated, ()
        check.require(repeated, 'the friction sweep' if isinstance(motion, FrictionSweep) else 'the tour')
    first = (before[0] if before else middle).evaluate([0.0])[0][0]
    last_part = after[-1] if after else middle
    last = last_part.evaluate([last_part.duration])[0][0]
    way = approach(position, first, leaving, config.ramp_velocity)
    for part in (*before, *after):
        check.require(part, 'the way into or out of the periods')
    rest_before = Rest(position=first, duration=config.settling_time)
    reference = Chain(
        parts=(*way, rest_before, *before, middle, *after, Rest(position=last, duration=config.settling_time))
    )
    begin = float(reference.starts[len(way) + 1 + len(before)])
    windows = WindowPlan(
        reference,
        leaving,
        rate=config.knot_rate,
        points=config.window_points,
        time=config.window_time,
        blend=config.trajectory_replacement == 'blend',
    )
    windows.require_stops(begin + min(_LOOKED_AT * period, middle.duration))
    for since, until in ((0.0, begin + min(period, middle.duration)), (begin + middle.duration, reference.duration)):
        require_room(reference, checks, since, until)
    return RunPlan(
        joint_names=names,
        reference=reference,
        windows=windows,
        begin=begin,
        end=begin + middle.duration,
        motion=repeated,
        checks=checks,
    )


def _led_inside(position: Array, check: ReferenceCheck) -> Array:
    """Return where the arm stands, or where it is led from just outside its limits; refuse to start far outside."""
    limits = check.limits
    out = np.maximum(limits.lower - position, position - limits.upper)
    k = int(np.argmax(out))
    if out[k] > OUTSIDE:
        raise ExcitationError(
            f"joint '{check.model.joint_names[k]}' stands at {position[k]:.4g}, outside its limits "
            f'{limits.lower[k]:.4g} to {limits.upper[k]:.4g}; move it inside first (up to {OUTSIDE:g} '
            'outside, the start does that)'
        )
    room = np.minimum(_INSIDE, 0.4 * (limits.upper - limits.lower))
    inside: Array = np.clip(position, limits.lower + room, limits.upper - room)
    return np.where(out > 0.0, inside, position)


def _fourier_parts(
    trajectory: FourierTrajectory, check: ReferenceCheck, periods: int, gentle: float
) -> tuple[tuple[Reference, ...], Reference, tuple[Reference, ...]]:
    """Return the way in, the periods and the way out; the ways are empty if the motion starts at rest.

    They are the shortest that keep all limits and take as long as is ``gentle`` [s], or else the shortest. Where none
    fits just before the periods or after them, as where the motion needs all of its acceleration, the clock reaches
    its full rate some part of a period earlier, or leaves it later.
    """
    run = FourierRun(trajectory=trajectory, duration=periods * trajectory.period)
    _, velocity, acceleration = trajectory.evaluate([0.0])
    if np.abs(velocity).max() < _AT_REST and np.abs(acceleration).max() < 1e3 * _AT_REST:
        return (), run, ()
    endless = FourierRun(trajectory=trajectory, duration=np.inf)
    durations = sorted(stop_durations(run, check.limits), key=lambda each: (each < gentle, each))
    count = _TRIED * trajectory.harmonics
    apart = trajectory.period / count * np.arange(count)  # of the change of the clock from the periods [s]
    entry = easiest(
        [
            Eased(reference=endless, at=-early - 0.5 * each, duration=each, first=0.0, last=1.0)
            for early in apart
            for each in durations
        ],
        check,
        rate=_RATE,
    )
    way_out = easiest(
        [Eased(reference=endless, at=late, duration=each) for late in apart for each in durations], check, rate=_RATE
    )
    early = -entry.at - 0.5 * entry.duration
    since = Eased(reference=endless, at=-early, duration=early, first=1.0, last=1.0)  # the motion before its time 0
    until = FourierRun(trajectory=trajectory, duration=way_out.at)
    return (entry, since) if early > 0.0 else (entry,), run, (until, way_out) if way_out.at > 0.0 else (way_out,)
