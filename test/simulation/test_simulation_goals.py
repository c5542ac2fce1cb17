# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Goals are judged as a joint_trajectory_controller judges them."""

from typing import NamedTuple

import numpy as np
import pytest
from errors_helpers import refused

from robotid_ros.errors import DataError
from robotid_ros.simulation.controller import GoalEnd, GoalTolerances, GoalVerdict

NAMES = ('turn', 'luff')
STILL = np.zeros(2)


class Request(NamedTuple):
    """The fields of control_msgs/msg/JointTolerance."""

    name: str
    position: float
    velocity: float


class Goal:
    """A goal whose trajectory ends at 2 s."""

    def __init__(self, path=(), goal=(), time=0.0) -> None:
        self.tolerances = GoalTolerances(NAMES, path, goal, time)

    def judge(self, now: float, position_error: np.ndarray, velocity_error: np.ndarray) -> GoalVerdict | None:
        return self.tolerances.judge(now - 2.0, position_error, velocity_error)


def test_no_tolerance_means_no_limit_on_the_way() -> None:
    assert Goal().judge(1.0, np.array([9.0, -9.0]), np.array([9.0, 9.0])) is None


@pytest.mark.parametrize('sign', [-1.0, 1.0])
def test_a_joint_beyond_its_path_tolerance_ends_the_goal(sign: float) -> None:
    watch = Goal(path=[Request('luff', 0.1, 0.5)])
    assert watch.judge(1.0, sign * np.array([9.0, 0.099]), sign * np.array([9.0, 0.49])) is None
    end, text = watch.judge(1.0, sign * np.array([0.0, 0.11]), STILL)
    assert end is GoalEnd.PATH_TOLERANCE_VIOLATED
    assert text == "joint 'luff' is 0.11 away from the trajectory (allowed: 0.1)"
    end, text = watch.judge(1.0, STILL, sign * np.array([0.0, 0.6]))
    assert end is GoalEnd.PATH_TOLERANCE_VIOLATED
    assert 'off its velocity' in text


def test_a_goal_succeeds_at_its_end_and_at_rest() -> None:
    watch = Goal(goal=[Request('turn', 0.05, 0.0)], time=0.5)
    assert watch.judge(1.999, STILL, STILL) is None
    assert watch.judge(2.0, np.array([0.06, 0.0]), STILL) is None
    assert watch.judge(2.0, STILL, np.array([0.0, 0.011])) is None  # stopped_velocity_tolerance
    assert watch.judge(2.1, np.array([0.04, 9.0]), STILL).end is GoalEnd.SUCCESSFUL


def test_a_goal_that_is_not_reached_in_time_ends() -> None:
    watch = Goal(goal=[Request('turn', 0.05, 0.0)], time=0.5)
    away = np.array([0.06, 0.0])
    assert watch.judge(2.5, away, STILL) is None
    end, text = watch.judge(2.6, away, STILL)
    assert end is GoalEnd.GOAL_TOLERANCE_VIOLATED
    assert text == "joint 'turn' is 0.06 away from the end (allowed: 0.05), 0.600 s after the end (allowed: 0.5 s)"
    patient = Goal(goal=[Request('turn', 0.05, 0.0)])
    assert patient.judge(1e6, away, STILL) is None  # no time given: for ever


def test_a_tolerance_can_be_taken_away() -> None:
    watch = Goal(goal=[Request('luff', 0.0, -1.0)])
    assert watch.judge(2.0, STILL, np.array([0.0, 5.0])).end is GoalEnd.SUCCESSFUL
    assert watch.judge(2.0, STILL, np.array([5.0, 0.0])) is None


@pytest.mark.parametrize(
    ('request_', 'about'),
    [
        (Request('wrist', 0.1, 0.0), {'name': 'wrist', 'expected': ('turn', 'luff')}),
        (Request('luff', -0.5, 0.0), {'found': -0.5}),
    ],
)
def test_tolerances_that_make_no_sense_are_refused(request_: Request, about: dict) -> None:
    with refused(DataError, **about):
        Goal(path=[request_])


def test_the_codes_are_those_of_the_action() -> None:
    result = pytest.importorskip(
        'control_msgs.action', reason='needs the ROS package control_msgs, which is not on PyPI'
    ).FollowJointTrajectory.Result
    for end in GoalEnd:
        assert getattr(result, end.name) == end
