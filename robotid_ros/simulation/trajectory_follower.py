# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Follow trajectory messages by the rules of ros2_control's joint_trajectory_controller.

The rules were read in the controller's source (ros-controls/ros2_controllers, joint_trajectory_controller, checked at
6.9.0 and at its master of August 2026). The simulated controller refuses a little more, because a real drive would;
:meth:`TrajectoryFollower.command` says what.

The rules were read in the controller's source (ros-controls/ros2_controllers,
joint_trajectory_controller, ``tolerances.hpp`` and ``update``, at 6.9.0).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError

# The controller compares the last velocities with the resolution of single precision.
_REST_VELOCITY = float(np.finfo(np.float32).eps)
_STOPPED_VELOCITY = 0.01  # the controller's stopped_velocity_tolerance [rad/s or m/s]
_ERASED = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryPoints:
    """Points of a trajectory of n joints; rows of NaN stand for what a point does not hold.

    Attributes
    ----------
    time : ndarray, shape (K,)
        Strictly increasing [s].
    position : ndarray, shape (K, n)
        [rad or m]
    velocity, acceleration : ndarray, shape (K, n)
        [rad/s, rad/s^2; or m]; NaN rows where a point has none.
    """

    time: Array
    position: Array
    velocity: Array
    acceleration: Array

    def preceded_by(self, time: float, q: Array, dq: Array, ddq: Array) -> 'TrajectoryPoints':
        """Return the points with one more before them."""
        return TrajectoryPoints(
            time=np.concatenate([[time], self.time]),
            position=np.vstack([q, self.position]),
            velocity=np.vstack([dq, self.velocity]),
            acceleration=np.vstack([ddq, self.acceleration]),
        )


class Spline:
    """Motion through points, held at the last position afterwards.

    Between two points that hold positions only the motion is linear; where both hold velocities
    it is the cubic, and where both hold accelerations too the quintic, that meets them:

        q(s) = c_0 + c_1 s + ... + c_5 s^5,   0 <= s < T.

    Parameters
    ----------
    points : TrajectoryPoints
        At least one.
    """

    def __init__(self, points: TrajectoryPoints) -> None:
        self.start = float(points.time[0])
        self.end = float(points.time[-1])
        self._knots = points.time
        self._last = points.position[-1]
        self._coefficients = _coefficients(points)

    def sample(self, times: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations, (N, n) each, at times (N,) not before the first point [s]."""
        n = len(self._last)
        q, dq, ddq = np.tile(self._last, (len(times), 1)), np.zeros((len(times), n)), np.zeros((len(times), n))
        moving = times < self.end
        if moving.any():
            at = times[moving]
            segment = np.maximum(np.searchsorted(self._knots, at, side='right') - 1, 0)
            c0, c1, c2, c3, c4, c5 = self._coefficients[:, segment]
            s = (at - self._knots[segment])[:, None]
            q[moving] = c0 + s * (c1 + s * (c2 + s * (c3 + s * (c4 + s * c5))))
            dq[moving] = c1 + s * (2.0 * c2 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))
            ddq[moving] = 2.0 * c2 + s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5))
        return q, dq, ddq


def _coefficients(points: TrajectoryPoints) -> Array:
    """Return c_0 ... c_5 of every segment, shape (6, K - 1, n)."""
    T = np.diff(points.time)[:, None]
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
    return c


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
    (``allow_trajectory_replacement``, added in August 2026, after 6.9.0), once it has followed a
    trajectory of two points or more: the running trajectory goes on until the new one's start;
    and one that should have started in the past starts *now*, all its points shifted by the delay.

    Parameters
    ----------
    joint_names : sequence of str
        The controller's n joints.
    position : ndarray, shape (n,)
        Held until the first trajectory [rad or m].
    blend : bool
        Replace as the newest controllers do.
    """

    def __init__(self, joint_names: Sequence[str], position: Array, *, blend: bool = False) -> None:
        self.joint_names = tuple(joint_names)
        n = len(self.joint_names)
        self._blend = blend
        self._blendable = False
        rest = np.zeros((1, n))
        hold = TrajectoryPoints(
            time=np.array([-np.inf]),
            position=frozen_array(position, 'position', (n,), DataError)[None],
            velocity=rest,
            acceleration=rest,
        )
        # Paths by the time each takes over; the last but one is still followed until then.
        self._paths: list[tuple[float, Spline]] = [(-np.inf, Spline(hold))]

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
        if begin + taken.time[0] > handover:
            if state is None or handover > now or (self._blend and self._blendable):
                q, dq, ddq = self._evaluate(np.array([handover]))
                state = q[0], dq[0], ddq[0]
            taken = taken.preceded_by(handover - begin, *state)
        spline = Spline(replace(taken, time=taken.time + begin))
        self._paths = [*(path for path in self._paths if path[0] < handover), (handover, spline)]
        self._blendable = len(points) > 1

    def checked(
        self, joint_names: Sequence[str], start: float | None, points: Sequence[CommandPoint], now: float
    ) -> TrajectoryPoints:
        """Return a trajectory in the controller's joint order, or refuse it; nothing is taken over.

        Parameters and errors are those of :meth:`command`. Safe to call while another thread commands
        and samples.
        """
        taken = self._ordered(joint_names, points)
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

    def _ordered(self, joint_names: Sequence[str], points: Sequence[CommandPoint]) -> TrajectoryPoints:
        """Return the points in the controller's joint order."""
        wanted = ', '.join(self.joint_names)
        if sorted(joint_names) != sorted(self.joint_names):
            raise DataError(
                f'the joints of the trajectory ({", ".join(joint_names) or "none"}) '
                f'are not those of the controller: expected {wanted}'
            )
        if len(points) == 0:
            raise DataError('the trajectory is empty: expected at least one point')
        n = len(self.joint_names)
        for k, point in enumerate(points):
            for name, values in (
                ('positions', point.position),
                ('velocities', point.velocity),
                ('accelerations', point.acceleration),
            ):
                if len(values) != n and (len(values) > 0 or name == 'positions'):
                    raise DataError(f'point {k + 1} of the trajectory has {len(values)} {name}: expected {n}')
            if len(point.effort) > 0:
                raise DataError(
                    f'point {k + 1} of the trajectory holds efforts: expected none, joints are led by position'
                )
            if len(point.acceleration) > 0 and len(point.velocity) == 0:
                raise DataError(f'point {k + 1} of the trajectory holds accelerations: expected velocities with them')
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
        self._check_values(points, taken)
        return taken

    def _check_values(self, points: Sequence[CommandPoint], taken: TrajectoryPoints) -> None:
        for k, point in enumerate(points):
            given = [point.time, *point.position, *point.velocity, *point.acceleration]
            if not np.isfinite(given).all():
                raise DataError(f'point {k + 1} of the trajectory has a number that is not finite')
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
            raise DataError(
                f"the trajectory ends in motion: joint '{self.joint_names[fast]}' with {last[fast]:.6g} rad/s or m/s; "
                'expected zero velocity at the last point'
            )


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


class ToleranceRequest(NamedTuple):
    """Tolerance of one joint in a goal: 0 keeps the controller's own, -1 removes it."""

    joint: str
    position: float
    velocity: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalTolerances:
    """What a goal allows; 0 is no limit.

    Attributes
    ----------
    path_position, goal_position : ndarray, shape (n,)
        On the way, and at the end [rad or m].
    path_velocity, goal_velocity : ndarray, shape (n,)
        [rad/s or m/s]
    time : float
        How long after the end the joints may take to get there [s].
    """

    path_position: Array
    path_velocity: Array
    goal_position: Array
    goal_velocity: Array
    time: float = 0.0

    @classmethod
    def usual(cls, n: int) -> 'GoalTolerances':
        """Return a controller's defaults: at rest at the end."""
        none = np.zeros(n)
        return cls(
            path_position=none, path_velocity=none, goal_position=none, goal_velocity=np.full(n, _STOPPED_VELOCITY)
        )

    def requested(
        self,
        joint_names: Sequence[str],
        path: Sequence[ToleranceRequest],
        goal: Sequence[ToleranceRequest],
        time: float,
    ) -> 'GoalTolerances':
        """Return these tolerances with those of a goal in their place.

        Raises
        ------
        DataError
            If a joint is unknown or a tolerance negative and not -1; the controller then takes its own.
        """
        columns = {
            name: getattr(self, name).copy()
            for name in ('path_position', 'path_velocity', 'goal_position', 'goal_velocity')
        }
        for kind, requests in (('path', path), ('goal', goal)):
            for request in requests:
                if request.joint not in joint_names:
                    raise DataError(f"{kind}_tolerance: joint '{request.joint}' is not one of {', '.join(joint_names)}")
                k = list(joint_names).index(request.joint)
                for part in ('position', 'velocity'):
                    column = columns[f'{kind}_{part}']
                    what = f"{part} of joint '{request.joint}' in {kind}_tolerance"
                    column[k] = _resolved(column[k], getattr(request, part), what)
        return replace(self, **columns, time=_resolved(self.time, time, 'goal_time_tolerance'))


def _resolved(own: float, requested: float, what: str) -> float:
    if requested > 0.0:
        return requested
    if requested == _ERASED:
        return 0.0
    if requested == 0.0:
        return own
    raise DataError(f"{what}: expected a positive number, 0 (the controller's own) or -1 (none), got {requested:g}")


class GoalMonitor:
    """Judges one goal, control step after control step.

    Parameters
    ----------
    joint_names : sequence of str
    tolerances : GoalTolerances
    end : float
        Time of the last point [s].
    """

    def __init__(self, joint_names: Sequence[str], tolerances: GoalTolerances, end: float) -> None:
        self._names, self._tolerances, self._end = tuple(joint_names), tolerances, end

    def judge(self, now: float, position_error: Array, velocity_error: Array) -> GoalVerdict | None:
        """Return how the goal ends at a control step [s], or None where it goes on.

        Errors are those of position and velocity, desired less measured, shape (n,) [rad, rad/s; or m].
        """
        allowed = self._tolerances
        if now < self._end:
            problem = self._excess(position_error, allowed.path_position, 'away from the trajectory') or self._excess(
                velocity_error, allowed.path_velocity, 'off its velocity'
            )
            return GoalVerdict(GoalEnd.PATH_TOLERANCE_VIOLATED, problem) if problem else None
        problem = self._excess(position_error, allowed.goal_position, 'away from the end') or self._excess(
            velocity_error, allowed.goal_velocity, 'off its velocity'
        )
        if not problem:
            return GoalVerdict(GoalEnd.SUCCESSFUL, 'Goal successfully reached!')
        if 0.0 < allowed.time < now - self._end:
            text = f'{problem}, {now - self._end:.3f} s after the end (allowed: {allowed.time:g} s)'
            return GoalVerdict(GoalEnd.GOAL_TOLERANCE_VIOLATED, text)
        return None

    def _excess(self, error: Array, allowed: Array, what: str) -> str:
        """Return a sentence on the first joint beyond its tolerance, '' where there is none."""
        beyond = np.flatnonzero((allowed > 0.0) & (np.abs(error) > allowed))
        if len(beyond) == 0:
            return ''
        k = int(beyond[0])
        return f"joint '{self._names[k]}' is {abs(error[k]):.4g} {what} (allowed: {allowed[k]:g})"
