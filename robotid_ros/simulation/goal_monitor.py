# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How a joint_trajectory_controller judges a goal of its action: on the path, at the end, in time.

The rules were read in the controller's source (ros-controls/ros2_controllers,
joint_trajectory_controller, ``tolerances.hpp`` and ``update``, at 6.9.0).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError

_STOPPED_VELOCITY = 0.01  # the controller's stopped_velocity_tolerance [rad/s or m/s]
_ERASED = -1.0


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
