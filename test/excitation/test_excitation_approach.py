# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Where a simulated arm starts, and how an arm gets to the start of its motion, on a table."""

from dataclasses import replace

import numpy as np
import pytest
from excitation_helpers import UR10E, limits, planar_arm

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import clear_pose, reference_check
from robotid_ros.excitation.reference import Move, Rest, approach, pose_tour
from robotid_ros.excitation.workspace import ground_clearance, random_positions, skeleton
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.kinematics import link_transforms


def _table(radius=0.06):
    """Return the shipped arm on its table, the settings of that place, and their check."""
    config = RobotConfig.from_yaml(UR10E.with_suffix('.yaml'))
    model = RobotModel.from_urdf(UR10E)
    model = config.applied(model)
    settings = ExcitationConfig(**{**config.design, 'link_radius': radius})
    return model, settings, reference_check(model, settings)


def test_the_ground_asks_nothing_of_what_no_joint_lifts():
    scara = RobotModel.from_mdh([(0.0, 0.0, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0)], inertial=np.zeros((2, 10)))
    assert ground_clearance(scara, skeleton(scara, 0.05).capsules, 0.0, 0.02).bounds == ()
    arm = planar_arm(2)  # about horizontal axes: the far ends rise and fall, the first joint stays where it is
    bounds = ground_clearance(arm, skeleton(arm, 0.05).capsules, 0.0, 0.02).bounds
    assert len(bounds) == 3


def test_a_simulated_arm_starts_clear_of_everything():
    model, settings, check = _table()
    pose = clear_pose(model, settings)
    assert (pose >= model.limits.lower).all()
    assert (pose <= model.limits.upper).all()
    assert check.excess(Rest(position=pose, duration=1.0)) <= -0.2
    poses = link_transforms(model, pose[None])[0]
    assert poses[1:, 2, 3].min() > 0.1
    with pytest.raises(ExcitationError, match='no pose of the arm'):
        clear_pose(model, replace(settings, ground_height=3.0))


def test_the_way_to_the_start_leaves_a_part_of_the_velocity_limits():
    model, _, check = _table()
    a, b = np.array([0.0, -1.6, 0.3, -1.5, -1.57, 0.0]), np.array([2.5, -1.6, 0.3, -1.5, -1.57, 0.0])
    limits = replace(model.limits, velocity=np.full(6, 1.0), acceleration=np.full(6, 100.0))
    (move,) = approach(a, b, replace(check, limits=limits), 5.0)
    fastest = np.abs(move.evaluate(np.linspace(0.0, move.duration, 2001))[1]).max()
    assert fastest == pytest.approx(0.97, abs=1e-5)


@pytest.mark.slow
def test_the_way_to_the_start_goes_round_what_is_in_the_straight_way():
    """From one side of the table to the other the straight way dips the arm into it."""
    model, _, check = _table()
    start = np.array([0.0, -0.35, 0.3, -1.5, -1.57, 0.0])
    goal = np.array([0.0, -2.79, -0.3, -1.6, 1.57, 0.0])
    found = 0
    for a, b in ((start, goal), *zip(*np.split(_clear_poses(model, check, 24), 2), strict=True)):
        moves = approach(a, b, check, 0.5)
        np.testing.assert_array_equal(moves[0].evaluate([0.0])[0][0], a)
        np.testing.assert_allclose(moves[-1].evaluate([moves[-1].duration])[0][0], b, atol=1e-12)
        for move in moves:
            assert check.excess(move, rate=400.0) <= 1e-9
            assert np.abs(move.evaluate(np.linspace(0.0, move.duration, 200))[1]).max() <= 0.5 + 1e-9
        if len(moves) == 2:
            found += 1
            np.testing.assert_allclose(moves[0].goal, moves[1].start)
            straight = Move(start=a, goal=b, duration=30.0)
            assert check.excess(straight) > 0.0
    assert found >= 1
    buried = np.array([0.0, -0.26, 2.5, 0.0, 0.0, 0.0])
    with pytest.raises(ExcitationError, match='no other way was found: move the arm to a pose with more room'):
        approach(buried, goal, check, 0.5)


def _clear_poses(model, check, count):
    poses = random_positions(model, 400)
    return np.array([q for q in poses if check.excess(Rest(position=q, duration=0.1)) <= -0.2][:count])


def test_a_tour_goes_on_to_the_nearest_pose_and_comes_back_to_one_that_was_out_of_reach():
    arm = planar_arm(2).with_inertial(planar_arm(2).inertial, limits=limits(2, position=4.0))
    box = {'workspace_lower': (-9.0, -9.0, -0.1), 'workspace_upper': (9.0, 9.0, 9.0)}
    check = reference_check(arm, ExcitationConfig(workspace_frames=('tip',), **box))
    # The far end is at 0.4 sin(q1) + 0.4 sin(q1 + q2) [m]. Turning the second joint alone from 0 to -3.3 rad leads it
    # to -0.28 m where the first is at 0.3, and nowhere below zero where that is at 1.6.
    low, high, near, under = [0.3, -3.3], [1.6, -3.3], [1.6, 0.2], [-1.0, 0.0]
    tour = pose_tour(np.array([1.6, 0.0]), np.array([low, under, high, near]), check, velocity=1.0, dwell=2.0)
    np.testing.assert_array_equal(tour.poses, [near, high, low])
    (reason,) = tour.skipped
    assert 'the straight way to pose 2' in reason
    rests = [part.duration for part in tour.reference.parts if isinstance(part, Rest)]
    assert rests == [2.0] * 3
