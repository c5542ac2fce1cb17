# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A simulated joint_trajectory_controller: it interpolates, judges goals, holds, scales and clamps as ros2_control's.

The rules were read in the controller's source (ros-controls/ros2_controllers, joint_trajectory_controller: ``update``,
``on_activate``, ``on_deactivate`` and ``tolerances.hpp``, at 6.9.0 and at its master of August 2026). The simulated
controller refuses a little more, because a real drive would; :meth:`TrajectoryFollower.command` says what.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError

# The controller compares the last velocities with the resolution of single precision.
_REST_VELOCITY = float(np.finfo(np.float32).eps)
_STOPPED_VELOCITY = 0.01  # the controller's stopped_velocity_tolerance [rad/s or m/s]
_ERASED = -1.0


class TrajectoryPoints(NamedTuple):
    """K points of a trajectory of n joints; rows of NaN stand for what a point does not hold.

    Times, shape (K,), strictly increase [s]; the others have the shape (K, n) [rad, rad/s, rad/s^2; or m].
    """

    time: Array
    position: Array
    velocity: Array
    acceleration: Array


class Spline:
    """Motion through one point or more, held at the last position afterwards.

    Between two points that hold positions only the motion is linear; where both hold velocities it is the cubic, and
    where both hold accelerations too the quintic, that meets them:

        q(s) = c_0 + c_1 s + ... + c_5 s^5,   0 <= s < T.
    """

    def __init__(self, points: TrajectoryPoints) -> None:
        self.points = points
        self.end = float(points.time[-1])
        T = np.diff(points.time)[:, None]  # of the segments; c_0 ... c_5 of each have the shape (6, K - 1, n)
        p0, p1 = points.position[:-1], points.position[1:]
        v0, v1 = points.velocity[:-1], points.velocity[1:]
        a0, a1 = points.acceleration[:-1], points.acceleration[1:]
        c = np.zeros((6, *p0.shape))
        c[0] = p0
        c[1] = (p1 - p0) / T
        cubic = ~np.isnan(v0 + v1).any(axis=1)
        quintic = cubic & ~np.isnan(a0 + a1).any(axis=1)

        k = cubic & ~quintic
        gap = p1[k] - p0[k]
        c[1, k] = v0[k]
        c[2, k] = (3.0 * gap / T[k] - 2.0 * v0[k] - v1[k]) / T[k]
        c[3, k] = (-2.0 * gap / T[k] + v0[k] + v1[k]) / T[k] ** 2

        # What the first three coefficients leave of position, velocity and acceleration at the end.
        k = quintic
        t = T[k]
        c[1, k] = v0[k]
        c[2, k] = 0.5 * a0[k]
        gap = p1[k] - p0[k] - v0[k] * t - 0.5 * a0[k] * t**2
        rate = (v1[k] - v0[k] - a0[k] * t) * t
        bend = (a1[k] - a0[k]) * t**2
        c[3, k] = (10.0 * gap - 4.0 * rate + 0.5 * bend) / t**3
        c[4, k] = (-15.0 * gap + 7.0 * rate - bend) / t**4
        c[5, k] = (6.0 * gap - 3.0 * rate + 0.5 * bend) / t**5
        self._coefficients = c

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, (N, n) each, at times (N,) not before the first point [s]."""
        moving = times < self.end
        if moving.all():
            return self._inside(times)
        q = np.tile(self.points.position[-1], (len(times), 1))
        dq, ddq = np.zeros_like(q), np.zeros_like(q)
        if moving.any():
            q[moving], dq[moving], ddq[moving] = self._inside(times[moving])
        return q, dq, ddq

    def _inside(self, times: Array) -> tuple[Array, Array, Array]:
        knots = self.points.time
        segment = np.maximum(knots.searchsorted(times, side='right') - 1, 0)
        c0, c1, c2, c3, c4, c5 = self._coefficients[:, segment]
        s = (times - knots[segment])[:, None]
        return (
            c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5)))),
            c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5))),
            2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5)),
        )


class CommandPoint(NamedTuple):
    """One point of a trajectory message, in the message's joint order.

    ``time`` counts from the trajectory's start [s]; an empty field is one that is not given.
    """

    time: float
    position: Sequence[float]
    velocity: Sequence[float] = ()
    acceleration: Sequence[float] = ()
    effort: Sequence[float] = ()


class TrajectoryFollower:
    """The reference of a joint trajectory controller, over time.

    - A new trajectory replaces the running one at once, from the measured state where that is given,
      or from the reference of that moment (``interpolate_from_desired_state``).
    - A start of None ("zero stamp") is the moment the controller takes the trajectory over.
    - Of one that began in the past, the rest is followed as if it had been there in time.
    - Until the first point's time the reference moves from where it was to the first point, which
      starts right away even when the trajectory starts later.
    - Between points it is linear, cubic or quintic, by what both points hold.
    - After the last point that position is held.

    With ``blend`` the follower does as the controller's newest versions do by default
    (``allow_trajectory_replacement``, added in August 2026, after 6.9.0), once it has followed a trajectory of two
    points or more: the running trajectory goes on until the new one's start; and one that should have started in the
    past starts *now*, all its points shifted by the delay. Each costs it a cycle: what is left of the running one until
    then comes so much later, and the reference bends from where it is to the next of those points.

    Parameters
    ----------
    joint_names : sequence of str
        The controller's n joints.
    position : ndarray, shape (n,)
        Held until the first trajectory [rad or m].
    blend : bool
        Replace as the newest controllers do.
    cycle : float
        Time that a trajectory costs which replaces another so [s].
    """

    def __init__(self, joint_names: Sequence[str], position: Array, *, blend: bool = False, cycle: float = 0.0) -> None:
        self.joint_names = tuple(joint_names)
        self._blend, self._cycle = blend, cycle
        self.hold(position)

    def hold(self, position: Array) -> None:
        """Hold a position, shape (n,), from now on; whatever was led before is forgotten [rad or m]."""
        position = frozen_array(position, 'position', (len(self.joint_names),), DataError)[None]
        rest = np.zeros_like(position)
        points = TrajectoryPoints(time=np.array([-np.inf]), position=position, velocity=rest, acceleration=rest)
        # Paths by the time each takes over; the last but one is still followed until then.
        self._paths: list[tuple[float, Spline]] = [(-np.inf, Spline(points))]
        self._blendable = False

    def command(
        self,
        joint_names: Sequence[str],
        start: float | None,
        points: Sequence[CommandPoint],
        now: float,
        state: tuple[Array, Array, Array] | None = None,
    ) -> None:
        """Take over a new trajectory, or refuse it and go on with the running one.

        Parameters
        ----------
        joint_names : sequence of str
            All joints of the controller, in any order.
        start : float or None
            Time the points count from [s]; None for "now".
        points : sequence of CommandPoint
        now : float
            Time of the controller's next step [s]; not before any time sampled so far.
        state : tuple of ndarray, each of shape (n,), optional
            Position, velocity and acceleration from which the first point is approached; by default the
            reference of that moment, and always that where trajectories are blended.

        Raises
        ------
        DataError
            If the controller would refuse the trajectory; the message says why. Refused too, unlike
            there: numbers that are not finite, a joint named twice, and accelerations without
            velocities, which its interpolation would turn into a jump to zero.
        """
        taken = self.checked(joint_names, start, points, now)
        begin = now if start is None else start
        handover = now
        if self._blend and self._blendable:
            begin = handover = max(begin, now)
            if self._cycle:
                taken, handover = self._after_rest_of_running(taken, begin, now), now
        if begin + taken.time[0] > handover:
            if state is None or handover > now or (self._blend and self._blendable):
                q, dq, ddq = self._evaluate(np.array([handover]))
                state = q[0], dq[0], ddq[0]
            times = np.append(handover - begin, taken.time)
            taken = TrajectoryPoints(times, *map(np.vstack, zip(state, taken[1:], strict=True)))
        spline = Spline(taken._replace(time=taken.time + begin))
        self._paths = [*(path for path in self._paths if path[0] < handover), (handover, spline)]
        self._blendable = len(points) > 1

    def _after_rest_of_running(self, points: TrajectoryPoints, begin: float, now: float) -> TrajectoryPoints:
        """Return points that count from ``begin`` after those that the running trajectory has left until then."""
        rest = self._paths[-1][1].points
        before = (rest.time > now - self._cycle) & (rest.time < begin - self._cycle)
        there = self._evaluate(np.array([now, begin - self._cycle]))
        times = [np.array([now]), rest.time[before] + self._cycle, np.array([begin])]
        # Of the arm's state, from which it bends, it knows no acceleration.
        states = [there[0][:1], there[1][:1], np.full_like(there[2][:1], np.nan)]
        rows = [
            np.concatenate([state, old[before], anchor[1:], new])
            for state, old, anchor, new in zip(states, rest[1:], there, points[1:], strict=True)
        ]
        time = np.concatenate([*times, points.time + begin]) - begin
        first = np.concatenate([[True], np.diff(time) > 1e-9])  # the new start may be now, or at its first point
        return TrajectoryPoints(time[first], *(row[first] for row in rows))

    def checked(
        self, joint_names: Sequence[str], start: float | None, points: Sequence[CommandPoint], now: float
    ) -> TrajectoryPoints:
        """Return a trajectory in the controller's joint order, or refuse it; nothing is taken over.

        Parameters and errors are those of :meth:`command`. Safe to call while another thread commands and samples.
        """
        wanted = ', '.join(self.joint_names)
        if sorted(joint_names) != sorted(self.joint_names):
            message = (
                f'the joints of the trajectory ({", ".join(joint_names) or "none"}) '
                f'are not those of the controller: expected {wanted}'
            )
            raise DataError(message, expected=self.joint_names, found=tuple(joint_names))
        if len(points) == 0:
            raise DataError('the trajectory is empty: expected at least one point')
        n = len(self.joint_names)
        for k, point in enumerate(points, start=1):
            where = f'point {k} of the trajectory'
            for name, values in (
                ('positions', point.position),
                ('velocities', point.velocity),
                ('accelerations', point.acceleration),
            ):
                if len(values) != n and (len(values) > 0 or name == 'positions'):
                    message = f'{where} has {len(values)} {name}: expected {n}'
                    raise DataError(message, name=name, expected=n, found=len(values))
            if len(point.effort) > 0:
                raise DataError(f'{where} holds efforts: expected none, joints are led by position')
            if len(point.acceleration) > 0 and len(point.velocity) == 0:
                raise DataError(f'{where} holds accelerations: expected velocities with them')
            if not np.isfinite([point.time, *point.position, *point.velocity, *point.acceleration]).all():
                raise DataError(f'{where} has a number that is not finite')
        order = [list(joint_names).index(name) for name in self.joint_names]

        def column(values: list[Sequence[float]]) -> Array:
            rows = [row if len(row) > 0 else [np.nan] * n for row in values]
            return np.array(rows, dtype=float)[:, order]

        taken = TrajectoryPoints(
            time=np.array([point.time for point in points], dtype=float),
            position=column([point.position for point in points]),
            velocity=column([point.velocity for point in points]),
            acceleration=column([point.acceleration for point in points]),
        )
        late = np.flatnonzero(np.diff(taken.time) <= 0.0)
        if len(late) > 0:
            k = int(late[0])
            raise DataError(
                f'times must strictly increase: point {k + 1} of the trajectory is at {taken.time[k]:.9g} s, '
                f'point {k + 2} at {taken.time[k + 1]:.9g} s'
            )
        last = np.nan_to_num(taken.velocity[-1])
        fast = int(np.argmax(np.abs(last)))
        if abs(last[fast]) > _REST_VELOCITY:
            message = (
                f"the trajectory ends in motion: joint '{self.joint_names[fast]}' with {last[fast]:.6g} rad/s or m/s; "
                'expected zero velocity at the last point'
            )
            raise DataError(message, name=self.joint_names[fast], found=float(last[fast]))
        if start is not None and start + taken.time[-1] < now:
            raise DataError(
                f'the trajectory ended in the past, {now - start - taken.time[-1]:.3f} s ago: '
                'expected a start stamp of zero ("now") or an end that is still to come'
            )
        return taken

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Return the reference q, dq, ddq at some instants, shape (N, n) each [rad, rad/s, rad/s^2; or m].

        Times, shape (N,), increase and are not before those of earlier calls [s].
        """
        while len(self._paths) > 1 and self._paths[1][0] <= times[0]:
            del self._paths[0]
        return self._evaluate(times)

    def _evaluate(self, times: Array) -> tuple[Array, Array, Array]:
        result = self._paths[0][1].sample(times)
        for takeover, path in self._paths[1:]:
            later = times >= takeover
            if later.any():
                for values, new in zip(result, path.sample(times[later]), strict=True):
                    values[later] = new
        return result


class GoalEnd(IntEnum):
    """How a goal ended: the error codes of ``control_msgs/action/FollowJointTrajectory``."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


class GoalVerdict(NamedTuple):
    """End of a goal, and the sentence that goes with it."""

    end: GoalEnd
    text: str


class GoalTolerances:
    """What a goal allows on its way and at its end: a controller's own tolerances, or those that the goal asks for.

    The controller's own are none on the way, and rest at the end.

    ``path``, ``goal``: on the way and at the end [rad or m, rad/s or m/s]; 0 keeps the controller's own, -1 removes it.
    ``time``: how long after the end the joints may take to get there [s]. Raises a DataError if a joint is unknown, or
    a tolerance is negative and not -1; the controller then takes its own.
    """

    def __init__(
        self, joint_names: Sequence[str], path: Sequence[Any] = (), goal: Sequence[Any] = (), time: float = 0.0
    ) -> None:
        self._joint_names, n = tuple(joint_names), len(joint_names)
        self._path = {'position': np.zeros(n), 'velocity': np.zeros(n)}  # 0 is no limit
        self._goal = {'position': np.zeros(n), 'velocity': np.full(n, _STOPPED_VELOCITY)}
        for kind, requests, columns in (('path', path, self._path), ('goal', goal, self._goal)):
            for request in requests:
                if request.name not in joint_names:
                    message = f"{kind}_tolerance: joint '{request.name}' is not one of {', '.join(joint_names)}"
                    raise DataError(message, name=request.name, expected=self._joint_names)
                k = self._joint_names.index(request.name)
                for part, column in columns.items():
                    what = f"{part} of joint '{request.name}' in {kind}_tolerance"
                    column[k] = _resolved(column[k], getattr(request, part), what)
        self._time = _resolved(0.0, time, 'goal_time_tolerance')

    def judge(self, late: float, position_error: Array, velocity_error: Array) -> GoalVerdict | None:
        """Return how a goal ends at a control step, ``late`` seconds after its last point, or None where it goes on.

        Errors are those of position and velocity, desired less measured, shape (n,) [rad, rad/s; or m].
        """

        def excess(allowed: dict[str, Array], away: str) -> str:
            for part, error, what in (
                ('position', position_error, f'away from the {away}'),
                ('velocity', velocity_error, 'off its velocity'),
            ):
                most = allowed[part]
                beyond = np.flatnonzero((most > 0.0) & (np.abs(error) > most))
                if len(beyond) > 0:
                    k = int(beyond[0])
                    return f"joint '{self._joint_names[k]}' is {abs(error[k]):.4g} {what} (allowed: {most[k]:g})"
            return ''

        if late < 0.0:
            problem = excess(self._path, 'trajectory')
            return GoalVerdict(GoalEnd.PATH_TOLERANCE_VIOLATED, problem) if problem else None
        problem = excess(self._goal, 'end')
        if not problem:
            return GoalVerdict(GoalEnd.SUCCESSFUL, 'Goal successfully reached!')
        if 0.0 < self._time < late:
            text = f'{problem}, {late:.3f} s after the end (allowed: {self._time:g} s)'
            return GoalVerdict(GoalEnd.GOAL_TOLERANCE_VIOLATED, text)
        return None


def _resolved(own: float, requested: float, what: str) -> float:
    if requested > 0.0:
        return requested
    if requested == _ERASED:
        return 0.0
    if requested == 0.0:
        return own
    message = f"{what}: expected a positive number, 0 (the controller's own) or -1 (none), got {requested:g}"
    raise DataError(message, found=requested)


class SimulatedController:
    """Follows trajectories as a controller does, with path tolerance, speed scaling, deactivation and clamping.

    An inactive controller (``active``) ignores trajectories, and the arm keeps the last command. ``speed_scaling`` is
    trajectory time per time, 0 to 1; ``path_tolerance`` how far a joint may be from its reference before the controller
    holds it where it is [rad or m], 0 for any.

    ``from_command``: begin a new trajectory at the last command (``interpolate_from_desired_state``), not at the
    measured state. ``velocity_limits``, shape (n,): what the commands are clamped to, as by ``enforce_command_limits``
    [rad/s or m/s]. For the others see :class:`TrajectoryFollower`.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        position: Array,
        *,
        blend: bool = False,
        cycle: float = 0.0,
        from_command: bool = False,
        velocity_limits: Array | None = None,
    ) -> None:
        self.follower = TrajectoryFollower(joint_names, position, blend=blend, cycle=cycle)
        self.active, self.speed_scaling, self.path_tolerance = True, 1.0, 0.0
        self._blend, self._from_command, self._limits = blend, from_command, velocity_limits
        self._behind = 0.0
        self._commanded = np.array(position, dtype=float)
        self._previous: float | None = None
        self._measured_at: float | None = None
        self._holding = True

    def command(
        self,
        joint_names: Sequence[str],
        start: float | None,
        points: Sequence[CommandPoint],
        now: float,
        measured: tuple[Array, Array] | None = None,
    ) -> None:
        """Take over a new trajectory; see :meth:`TrajectoryFollower.command`.

        It begins where the arm was ``measured``: position and velocity, shape (n,) each, at the first instant of the
        last sampling. Raises a DataError if the controller is not active, or refuses the trajectory.
        """
        if not self.active:
            raise DataError('the controller is not active')
        if self._blend:
            begin = None if start is None else max(start, now) - self._behind
            self.follower.command(joint_names, begin, points, now - self._behind)
        else:
            state = None
            if measured is not None and not self._from_command:
                position, velocity = measured
                since = 0.0 if self._measured_at is None else now - self._measured_at
                state = (position + since * velocity, velocity, np.zeros_like(position))
            elif self._behind:
                q, dq, ddq = self.follower.sample(np.array([now - self._behind]))
                state = (q[0], dq[0], ddq[0])  # in the trajectory's own time, as the controller keeps them
            self.follower.command(joint_names, start, points, now, state)
            self._behind, self._previous = 0.0, now  # a new trajectory begins in time, whatever the scaling
        self._holding = False

    def hold(self, position: Array) -> None:
        """Hold the arm at a position, at once and at any speed."""
        self.follower.hold(position)
        self._behind, self._holding = 0.0, True

    def set_active(self, active: bool) -> None:
        """Activate the controller, which then holds its last command, or deactivate it."""
        if active and not self.active:
            self.active = True
            self.hold(self._commanded)
        self.active = active

    def sample(self, times: Array, measured: Array) -> tuple[Array, Array, Array]:
        """Return what the drives are told at some instants, q, dq, ddq, each (N, n) [rad, rad/s, rad/s^2; or m].

        Times, shape (N,), increase and are not before those of earlier calls [s]; ``measured``, shape (n,), is the
        position at the last instant before them [rad or m].
        """
        before = times[0] if self._previous is None else self._previous
        self._previous, self._measured_at = float(times[-1]), float(times[0])
        if not self.active:
            q = np.tile(self._commanded, (len(times), 1))
            return q, np.zeros_like(q), np.zeros_like(q)
        behind = self._behind + (1.0 - self.speed_scaling) * (times - before)
        self._behind = float(behind[-1])
        q, dq, ddq = self.follower.sample(times - behind)
        dq, ddq = self.speed_scaling * dq, self.speed_scaling**2 * ddq
        if self.path_tolerance > 0.0 and not self._holding and (np.abs(q[0] - measured) > self.path_tolerance).any():
            self.hold(measured)
            q, dq, ddq = self.follower.sample(times)
        if self._limits is not None:  # no step between two instants is beyond what they allow
            last, clamped = self._commanded, q.copy()
            for k, step in enumerate(np.diff(times, prepend=before)):
                last = clamped[k] = np.clip(q[k], last - self._limits * step, last + self._limits * step)
            changed = np.abs(clamped - q) > 1e-12
            dq = np.where(changed, np.clip(dq, -self._limits, self._limits), dq)
            q, ddq = clamped, np.where(changed, 0.0, ddq)
        self._commanded = q[-1].copy()
        return q, dq, ddq
