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
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError
from robotid_ros.simulation.spline import Spline, TrajectoryPoints

# The controller compares the last velocities with the resolution of single precision.
_REST_VELOCITY = float(np.finfo(np.float32).eps)


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
