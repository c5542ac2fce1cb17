# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Limits that fall towards the ends of the range, as velocities of a Franka Research 3 do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm

from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.excitation.constraints import FallingLimits
from robotid_ros.excitation.motion import Motion, MotionGradient, observation_of
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.stop import plan_stop
from robotid_ros.model.robot_config import RobotConfig

ENDS = {'velocity_lower_end': np.full(2, -2.0), 'velocity_upper_end': np.full(2, 2.0)}
BOUNDS = replace(
    limits(2, 1.9, 2.5, 9.0), velocity_slope=np.array([5.0, np.inf]), velocity_offset=np.full(2, 0.2), **ENDS
)
MODEL = planar_arm(2, limits=BOUNDS)


def beyond(position, value, slope=5.0, offset=0.2, end=2.0):
    """Return by how much a value of a joint is larger than the formula allows, written out."""
    distance = np.maximum(0.0, np.where(value > 0.0, end - position, position + end))
    return np.abs(value) - np.maximum(0.0, np.sqrt(slope * distance) - offset)


def motion_of(q, dq, ddq, observation=None):
    return Motion(MODEL, (q, dq, ddq, np.zeros_like(q)), observation)


def falls(quantity, slope, offset, end):
    """Return limits of which one quantity of the first joint falls."""
    parts = (np.array([slope, np.inf]), np.full(2, offset), np.full(2, -end), np.full(2, end))
    named = zip(('slope', 'offset', 'lower_end', 'upper_end'), parts, strict=True)
    return replace(limits(2, 1.9, 2.5, 9.0, effort=60.0), **{f'{quantity}_{part}': value for part, value in named})


@pytest.mark.parametrize('quantity', ['velocity', 'acceleration', 'effort'])
def test_the_excess_is_that_of_the_formula_and_its_gradient_that_of_differences(quantity):
    rng = np.random.default_rng(0)
    slope, offset, end, scale = {
        'velocity': (5.0, 0.2, 2.0, 2.5), 'acceleration': (60.0, 1.0, 2.2, 9.0), 'effort': (900.0, 3.0, 2.5, 60.0),
    }[quantity]  # fmt: skip
    bounds = falls(quantity, slope, offset, end)
    observation = observation_of(MODEL, ExcitationConfig()).exact
    given = [rng.uniform(-1.0, 1.0, (200, 2)) * size for size in (1.95, 2.5, 9.0)]
    if quantity == 'effort':
        given[1][:] = 0.0  # without friction
    motion = motion_of(*given, observation)
    constraint = FallingLimits(MODEL, bounds, quantity)
    assert len(constraint.bounds) == 2
    excess, pullback = constraint.evaluate(motion)
    values = {'velocity': given[1], 'acceleration': given[2], 'effort': inverse_dynamics(MODEL, *given)}[quantity][:, 0]
    side = excess[np.arange(200), (values > 0.0).astype(int)]
    np.testing.assert_allclose(scale * side, beyond(given[0][:, 0], values, slope, offset, end), atol=1e-9)
    weights, gradient, step = rng.normal(size=excess.shape), MotionGradient(given[0].shape), 1e-6
    pullback(weights, gradient)
    if gradient.regressor is not None:  # its derivative is that of every torque limit
        np.testing.assert_allclose((gradient.regressor != 0.0).any(axis=(0, 2)), [True, False])
        return
    for k, found in enumerate(gradient.derivatives[:3]):
        moved = [value.copy() for value in given]
        moved[k][:, 0] += step
        change = ((constraint.evaluate(motion_of(*moved))[0] - excess) * weights).sum(axis=1) / step
        np.testing.assert_allclose(found[:, 0], change, atol=1e-4)


@pytest.mark.slow
def test_designs_and_stops_keep_accelerations_too():
    falling = falls('acceleration', 2.0, 0.5, 2.0)

    def most(motion):
        return float(beyond(motion[0][:, 0], motion[2][:, 0], 2.0, 0.5).max())

    config = ExcitationConfig(period=2.0, harmonics=3, starts=1, iterations=40)
    trajectory, free = (
        optimize_excitation(replace(MODEL, limits=given), config).trajectory
        for given in (falling, limits(2, 1.9, 2.5, 9.0))
    )
    assert most(trajectory.evaluate(trajectory.sample_times(500.0))) < 1e-3
    assert most(free.evaluate(free.sample_times(500.0))) > 0.5  # it is this limit that binds
    check = reference_check(replace(MODEL, limits=falling), config)
    plan = plan_stop([JointMotion(position=np.array([0.3, 0.2]), velocity=np.array([0.8, 0.3]))], [check])
    assert plan.breaks == ''
    assert most(plan.evaluate(np.linspace(0.0, plan.duration, 200))) < 0.02


def test_designs_and_stops_keep_them():
    config = ExcitationConfig(period=4.0, harmonics=3, starts=1, iterations=40)
    trajectory = optimize_excitation(MODEL, config).trajectory
    position, velocity, _ = trajectory.evaluate(trajectory.sample_times(1000.0))
    assert beyond(position[:, 0], velocity[:, 0]).max() < 1e-6
    assert np.abs(velocity[:, 0]).max() > 1.0
    check = reference_check(MODEL, config)
    plan = plan_stop([JointMotion(position=np.array([1.0, 0.0]), velocity=np.array([1.9, 0.0]))], [check])
    assert plan.breaks == ''
    position, velocity, _ = plan.evaluate(np.linspace(0.0, plan.duration, 200))
    assert beyond(position[:, 0], velocity[:, 0]).max() < 0.02


def test_the_shipped_file_has_those_of_its_maker():
    content = RobotConfig.from_yaml(Path(__file__).parents[2] / 'config' / 'franka.yaml')
    for kind in ('velocity_slope', 'velocity_offset', 'velocity_lower_end', 'velocity_upper_end'):
        assert len(content.limits[kind]) == 7
    # dq_max of joint 4 at -0.5 rad, by the maker's formula
    slope, offset, end = (content.limits[f'velocity_{kind}']['fr3_joint4'] for kind in ('slope', 'offset', 'upper_end'))
    assert np.sqrt(slope * (end + 0.5)) - offset == pytest.approx(-0.30 + np.sqrt(8.0 * (-0.1458 + 0.5)))
