# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""From every moment of a run that is started there is a stop inside the limits of place."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory
from robotid_ros.excitation.preparation import arm_check, margin_limits, reference_check
from robotid_ros.excitation.reference import FourierRun, Rest
from robotid_ros.execution.stopping_room import require_room, stoppable_design, stops_along

SWING, RATE = 0.8, 2.0
"""Of a sinusoid of one joint: amplitude [rad] and angular frequency [rad/s]."""


def swing(room, share, **settings):
    """Return a sinusoid that turns ``room`` before a position limit with a ``share`` of the acceleration limit."""
    model = planar_arm(1, limits=limits(1, SWING + room, 50.0, SWING * RATE**2 / share))
    trajectory = FourierTrajectory(
        a=np.array([[SWING * RATE, 0.0]]), b=np.zeros((1, 2)), offset=[0.0], base_frequency=RATE / (2.0 * np.pi)
    )
    run = FourierRun(trajectory=trajectory, duration=2.0 * trajectory.period)
    config = ExcitationConfig(**settings)
    return run, reference_check(model, config), arm_check(model, config), trajectory.period


@pytest.mark.parametrize(
    ('room', 'share', 'possible'), [(0.005, 0.5, True), (0.005, 0.6, True), (0.0, 0.85, False), (0.01, 0.95, False)]
)
def test_a_sinusoid_that_turns_at_a_limit_has_room_up_to_two_thirds_of_the_acceleration(room, share, possible):
    """A quintic that begins without acceleration takes 0.711 v^2/a, at 95 % of a; a sinusoid of two thirds of a has it.

    At 95 % of a it lacks up to 0.063 of the amplitude. The latency of 0.1 s takes a few thousandths of a radian.
    """
    run, check, arm, period = swing(room, share)
    if possible:
        require_room(run, [check, arm], 0.0, period)
    else:
        with pytest.raises(ExcitationError, match=r"no stop at t = .* position of joint 'joint1'.*position_margin"):
            require_room(run, [check, arm], 0.0, period)


def test_up_to_a_tolerance_of_two_milliradians_a_stop_may_leave_the_limits_and_a_design_may_not():
    run, check, arm, period = swing(0.0, 0.85)
    bounds = [bound for part in check.constraints for bound in part.bounds]
    units, scale = np.array([bound.unit for bound in bounds]), np.array([bound.scale for bound in bounds])
    plans = [plan for _, plan in stops_along(run, [check, arm], 0.0, period) if plan.added is not None]
    out = max((plan.added * scale)[units == 'rad'].max() for plan in plans)
    require_room(run, [check, arm], 0.0, period, tolerance=1.01 * out)
    for tolerance in (0.99 * out, 0.0):
        with pytest.raises(ExcitationError, match='no stop'):
            require_room(run, [check, arm], 0.0, period, tolerance=tolerance)
    assert inspect.signature(require_room).parameters['tolerance'].default == pytest.approx(2e-3)


def test_with_room_it_can_be_stopped_everywhere_and_every_stop_stays_inside():
    run, check, arm, period = swing(0.12 * SWING, 0.95)
    require_room(run, [check, arm], 0.0, period)
    seen = 0
    for _, plan in stops_along(run, [check, arm], 0.0, period):
        for start in plan.starts[:3]:
            way = replace(plan, starts=(start,)).evaluate(np.linspace(0.0, plan.duration, 100))[0]
            assert np.abs(way).max() <= check.limits.upper[0] + 1e-3
        seen += 1
    assert seen >= 20


def test_a_run_that_keeps_to_a_part_of_the_limits_is_stopped_by_all_of_them_where_that_part_is_not_enough():
    run, check, arm, period = swing(0.005, 0.5, acceleration_scaling=0.55)
    with pytest.raises(ExcitationError):
        require_room(run, [check], 0.0, period)
    require_room(run, [check, arm], 0.0, period)


@pytest.mark.parametrize(('gap', 'run', 'stop'), [(0.045, True, True), (0.03, False, True), (0.015, False, False)])
def test_a_stop_may_take_half_of_the_clearance_that_a_run_keeps(gap, run, stop):
    model = planar_arm(1)
    config = ExcitationConfig(ground=True, ground_height=-0.3, link_radius=0.05, clearance=0.04)
    low = Rest(position=np.arcsin([(-0.3 + 0.05 + gap) / 0.4]), duration=0.1)  # the tip, by its height
    assert (reference_check(model, config).excess(low) <= 0.0) == run
    assert (arm_check(model, config).excess(low) <= 0.0) == stop


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(3))
def test_designs_of_joints_with_little_range_keep_the_room_themselves(seed):
    rng = np.random.default_rng(seed)
    model = planar_arm(2, limits=limits(2, float(rng.uniform(0.2, 0.6)), 2.5, float(rng.uniform(4.0, 10.0))))
    config = ExcitationConfig(period=4.0, harmonics=3, starts=1, iterations=20, seed=seed, position_margin=0.0)
    design = stoppable_design(model, config)
    run = FourierRun(trajectory=design.trajectory, duration=2.0 * design.trajectory.period)
    require_room(run, [reference_check(model, config), arm_check(model, config)], 0.0, design.trajectory.period)


def test_designs_and_sweeps_are_made_inside_the_limits_of_their_run_but_for_their_start():
    """A margin of a tenth of the range, 2 rad, is 0.1 rad at each end."""
    config = ExcitationConfig(position_margin=0.1)
    closed = limits(2, 1.0, 2.5, 5.0)
    inside = margin_limits(closed, config, np.zeros(0))
    np.testing.assert_allclose([inside.lower, inside.upper], [[-0.9, -0.9], [0.9, 0.9]])
    begun = margin_limits(closed, config, np.array([0.97, -0.2]))
    np.testing.assert_allclose([begun.lower, begun.upper], [[-0.9, -0.9], [0.97, 0.9]])
    open_ended = replace(closed, upper=np.array([np.inf, 1.0]))
    assert margin_limits(open_ended, config, np.zeros(0)).lower.tolist() == [-1.0, -0.9]
