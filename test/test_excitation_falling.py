# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Velocity limits that fall towards the ends of the range, as a Franka Research 3 has them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm

from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.excitation.constraints import FallingVelocity
from robotid_ros.excitation.motion import Motion, MotionGradient
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.stop import plan_stop
from robotid_ros.model.robot_config import RobotConfig

ENDS = {'velocity_lower_end': np.full(2, -2.0), 'velocity_upper_end': np.full(2, 2.0)}
BOUNDS = replace(
    limits(2, 1.9, 2.5, 9.0), velocity_slope=np.array([5.0, np.inf]), velocity_offset=np.full(2, 0.2), **ENDS
)
MODEL = planar_arm(2, limits=BOUNDS)


def beyond(position, velocity):
    """Return by how much a joint is faster than the formula allows, written out."""
    distance = np.maximum(0.0, np.where(velocity > 0.0, 2.0 - position, position + 2.0))
    return np.abs(velocity) - np.maximum(0.0, np.sqrt(5.0 * distance) - 0.2)


def motion_of(q, dq):
    zero = np.zeros_like(q)
    return Motion(MODEL, np.zeros(len(q)), (q, dq, zero, zero), None)


def test_the_excess_is_that_of_the_formula_and_its_gradient_that_of_differences():
    rng = np.random.default_rng(0)
    q, dq = rng.uniform(-1.95, 1.95, (200, 2)), rng.uniform(-2.5, 2.5, (200, 2))
    constraint = FallingVelocity(MODEL, BOUNDS)
    assert len(constraint.bounds) == 2
    excess, pullback = constraint.evaluate(motion_of(q, dq))
    side = excess[np.arange(200), (dq[:, 0] > 0.0).astype(int)]
    np.testing.assert_allclose(2.5 * side, beyond(q[:, 0], dq[:, 0]), atol=1e-9)
    weights, gradient, step = rng.normal(size=excess.shape), MotionGradient.zeros(q.shape), 1e-6
    pullback(weights, gradient)
    for given, found in ((q, gradient.q), (dq, gradient.dq)):
        moved = given.copy()
        moved[:, 0] += step
        pair = (moved, dq) if given is q else (q, moved)
        change = ((constraint.evaluate(motion_of(*pair))[0] - excess) * weights).sum(axis=1) / step
        np.testing.assert_allclose(found[:, 0], change, atol=1e-4)


def test_designs_and_stops_keep_them():
    config = ExcitationConfig(period=4.0, harmonics=3, starts=1, iterations=40)
    trajectory = optimize_excitation(MODEL, config).trajectory
    position, velocity, _ = trajectory.evaluate(trajectory.sample_times(1000.0))
    assert beyond(position[:, 0], velocity[:, 0]).max() < 1e-6
    assert np.abs(velocity[:, 0]).max() > 1.0
    check = reference_check(MODEL, config)
    plan = plan_stop([JointMotion(position=np.array([1.0, 0.0]), velocity=np.array([1.9, 0.0]))], check)
    assert plan.breaks == ''
    position, velocity, _ = plan.move.evaluate(np.linspace(0.0, plan.move.duration, 200))
    assert beyond(position[:, 0], velocity[:, 0]).max() < 0.02


def test_the_shipped_file_has_those_of_its_maker():
    content = RobotConfig.from_yaml(Path(__file__).parents[1] / 'config' / 'franka.yaml')
    for kind in ('velocity_slope', 'velocity_offset', 'velocity_lower_end', 'velocity_upper_end'):
        assert len(content.limits[kind]) == 7
    # dq_max of joint 4 at -0.5 rad, by the maker's formula
    slope, offset, end = (content.limits[f'velocity_{kind}']['fr3_joint4'] for kind in ('slope', 'offset', 'upper_end'))
    assert np.sqrt(slope * (end + 0.5)) - offset == pytest.approx(-0.30 + np.sqrt(8.0 * (-0.1458 + 0.5)))
