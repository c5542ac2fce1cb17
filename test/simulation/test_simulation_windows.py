# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What excitation sends, followed by both kinds of controller: one motion, as if it were one message."""

import numpy as np
import pytest
from simulation_helpers import UR10E

from robotid_ros.excitation import ExcitationConfig, FourierTrajectory
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.run import RunConfig, plan_run
from robotid_ros.model import RobotModel
from robotid_ros.simulation import CommandPoint, TrajectoryFollower

MODEL = RobotModel.from_urdf(UR10E)
START = np.array([0.2, -1.3, 0.9, -0.6, 0.3, 0.1])


@pytest.fixture(scope='module')
def check():
    return reference_check(MODEL, ExcitationConfig())


@pytest.fixture(scope='module')
def motion() -> FourierTrajectory:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-0.15, 0.15, (2, 6, 4))
    offset = np.array([0.0, -1.3, 1.0, -0.5, 0.4, 0.0])
    return FourierTrajectory(a=a, b=b, offset=offset, base_frequency=0.1)


def points_of(window) -> list[CommandPoint]:
    times = window.times - window.stamp
    return [
        CommandPoint(*row) for row in zip(times, window.position, window.velocity, window.acceleration, strict=True)
    ]


@pytest.mark.slow
@pytest.mark.parametrize('replacement', ['immediate', 'blend'])
def test_windows_are_one_motion_whatever_the_messages_take(check, motion, replacement: str) -> None:
    config = RunConfig(periods=6, trajectory_replacement=replacement)
    plan = plan_run(START, motion, check, config)
    assert plan.windows.count > 2
    begin, rng = 100.0, np.random.default_rng(1)  # the run's start; messages take 1 to 80 ms
    arm = TrajectoryFollower(plan.joint_names, START, blend=replacement == 'blend')
    windows = list(plan.windows)
    arrivals = [begin - 0.2, *(begin + window.due + rng.uniform(1e-3, 0.08) for window in windows[1:])]
    ends = [*arrivals[1:], begin + plan.reference.duration + 0.5]
    for window, arrival, end in zip(windows, arrivals, ends, strict=True):
        arm.command(plan.joint_names, begin + window.stamp, points_of(window), arrival)
        t = np.arange(arrival, end, 0.002)
        wanted = plan.reference.evaluate(np.clip(t - begin, 0.0, plan.reference.duration))[0]
        stray, allowed = np.abs(arm.sample(t)[0] - wanted).max(axis=0), np.full(6, 1e-6)
        if replacement == 'blend':  # quintics between knots at most 0.26 s apart, the first from where one before it is
            allowed += 2.0 * strays_by(plan.reference, t[0] - begin - 0.26, t[-1] - begin + 0.26, apart=0.26)
        assert (stray <= allowed).all()


def strays_by(reference, begin: float, end: float, apart: float) -> np.ndarray:
    """Return how far a quintic between two states may be from a path, per joint [rad].

    It is exact up to the fifth power of time, and strays from (t - u)^3/6 after u by at most apart^3/768, half way
    between: so by that times the total variation of the path's jerk. Jerk steps where one part of a run follows
    another: here by 200 rad/s^3 as a way in of 0.1 s begins.
    """
    times = np.linspace(max(begin, 0.0), min(max(end, 1e-6), reference.duration), 4001)
    jerk = np.diff(reference.evaluate(times)[2], axis=0) / (times[1] - times[0])
    return 1.02 * apart**3 / 768.0 * np.abs(np.diff(jerk, axis=0)).sum(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize('replacement', ['immediate', 'blend'])
def test_the_arm_stops_by_itself_when_no_more_windows_come(check, motion, replacement: str) -> None:
    plan = plan_run(START, motion, check, RunConfig(periods=6, trajectory_replacement=replacement))
    arm = TrajectoryFollower(plan.joint_names, START, blend=replacement == 'blend')
    arm.command(plan.joint_names, 0.5, points_of(plan.windows.window(0)), 0.0)
    end = 0.5 + plan.windows.window(0).times[-1]
    t = np.arange(0.0, end + 1.0, 0.002)
    q, dq, ddq = arm.sample(t)
    assert end < 0.5 + plan.reference.duration
    assert np.abs(np.diff(q, axis=0)).max() < 1.01 * np.abs(dq).max() * 0.002
    assert (np.abs(dq) <= MODEL.limits.velocity * (1 + 1e-6)).all()
    np.testing.assert_array_equal(dq[t > end], 0.0)
    np.testing.assert_array_equal(ddq[t > end], 0.0)
