# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs: what is sent is what was checked, window by window, and every stop keeps the limits."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from excitation_helpers import Controller, limits, planar_arm, ur10e
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.excitation.friction_sweep import FrictionSweepConfig, Stroke, friction_sweep, sweep_start
from robotid_ros.excitation.preparation import (
    arm_check,
    clear_pose,
    clear_poses,
    design_limits,
    reference_check,
    validation_config,
)
from robotid_ros.excitation.reference import Chain, Eased, FourierRun, Move, Rest, move_duration
from robotid_ros.excitation.workspace import workspace_constraints
from robotid_ros.execution.run import RunConfig, plan_run
from robotid_ros.execution.stopping_room import stoppable_design
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.packaged import arm_file

MODEL = ur10e()
CONFIG = ExcitationConfig(period=12.0, starts=1, iterations=80)
RUN = RunConfig(periods=4, ramp_velocity=1.0, settling_time=0.5)
START = np.array([0.3, -1.2, 1.0, -0.5, 0.4, 0.0])


@pytest.fixture(scope='module')
def check():
    return reference_check(MODEL, CONFIG)


@pytest.fixture(scope='module')
def trajectory():
    return optimize_excitation(MODEL, CONFIG).trajectory


@pytest.fixture(scope='module')
def plan(check, trajectory):
    return plan_run(START, trajectory, check, RUN)


@pytest.fixture(scope='module')
def windows(plan):
    return list(plan.windows)


def assert_smooth_and_inside(times, position, velocity, acceleration, bounds, slack=1e-6):
    """Limits hold, and each signal is the derivative of the one before it."""
    assert (position >= bounds.lower - slack).all()
    assert (position <= bounds.upper + slack).all()
    assert (np.abs(velocity) <= bounds.velocity * (1 + slack)).all()
    assert (np.abs(acceleration) <= bounds.acceleration * (1 + 1e-3)).all()
    step = np.diff(times)[:, None]
    middle = (velocity[1:] + velocity[:-1]) / 2.0
    np.testing.assert_allclose(np.diff(position, axis=0) / step, middle, atol=50.0 * step.max() ** 2 + 1e-6)


@pytest.mark.parametrize(
    'reference',
    [
        Move(start=np.array([0.0, 1.0]), goal=np.array([1.0, -1.0]), duration=2.0),
        Stroke(start=np.array([0.5, 0.0]), joint=1, velocity=-0.4, steady=1.0, ramp=0.5),
        Eased(reference=Move(start=np.zeros(2), goal=np.ones(2), duration=2.0), at=0.7, duration=0.8),
        Eased(
            reference=FourierRun(
                trajectory=FourierTrajectory(
                    a=np.ones((2, 2)), b=-np.ones((2, 2)), offset=np.zeros(2), base_frequency=0.2
                ),
                duration=5.0,
            ),
            at=-0.3,
            duration=0.6,
            first=0.0,
            last=1.0,
        ),
    ],
)
def test_velocity_and_acceleration_are_derivatives(reference):
    t = np.linspace(0.05, 0.95, 50) * reference.duration
    h = 1e-4
    for k in range(2):
        before, after = reference.evaluate(t - h)[k], reference.evaluate(t + h)[k]
        np.testing.assert_allclose((after - before) / (2 * h), reference.evaluate(t)[k + 1], atol=1e-5)


def test_a_move_uses_what_the_limits_allow_and_no_more():
    bounds = limits(2, 9.0, [1.0, 2.0], [4.0, 1.0], [50.0, 8.0])
    start, goal = np.array([0.0, 0.0]), np.array([2.0, -1.5])
    move = Move(start=start, goal=goal, duration=move_duration(start, goal, bounds, 1.5))
    t = np.linspace(0.0, move.duration, 4001)
    _, velocity, acceleration = move.evaluate(t)
    jerk = np.gradient(acceleration, t, axis=0)
    used = [
        np.abs(velocity).max(axis=0) / np.minimum(0.97 * bounds.velocity, 1.5),
        np.abs(acceleration).max(axis=0) / bounds.acceleration,
        np.abs(jerk).max(axis=0) / bounds.jerk,
    ]
    assert np.max(used) == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(move.evaluate([move.duration])[0][0], goal, atol=1e-12)


@pytest.mark.slow
def test_a_run_is_one_smooth_motion_from_rest_to_rest(plan, trajectory, check):
    t = np.arange(0.0, plan.reference.duration, 0.002)
    motion = plan.reference.evaluate(t)
    assert_smooth_and_inside(t, *motion, check.limits)
    np.testing.assert_allclose(motion[0][0], START, atol=1e-12)
    for k in (1, 2):
        np.testing.assert_allclose(motion[k][0], 0.0, atol=1e-9)
        np.testing.assert_allclose(plan.reference.evaluate([plan.reference.duration])[k], 0.0, atol=1e-9)
    during = plan.begin + np.linspace(0.0, 4 * trajectory.period, 777)
    np.testing.assert_allclose(plan.reference.evaluate(during)[0], trajectory.position(during - plan.begin), atol=1e-9)
    assert plan.phase(0.0) == 'ramp'
    assert plan.phase(plan.begin + 1e-6) == 'period 1'
    assert plan.phase(plan.begin + 3.5 * trajectory.period) == 'period 4'
    assert plan.phase(plan.end + 0.1) == 'end'


@pytest.mark.parametrize(('seed', 'part'), [(0, 24), (3, 5), (5, 26), (9, 19)])
def test_a_motion_that_needs_its_acceleration_where_it_begins_is_entered_and_left_elsewhere(seed, part):
    rng, period = np.random.default_rng(seed), 5.0
    a, b = rng.normal(size=(2, 2, 3))
    drawn = FourierTrajectory(a=a, b=b, offset=np.zeros(2), base_frequency=1.0 / period)
    most = np.abs(drawn.evaluate(np.linspace(0.0, period, 4001))[2]).max(axis=0)
    model = replace(planar_arm(2), limits=limits(2, 9.0, 50.0, 1.0001 * most, np.inf))
    check = reference_check(model, ExcitationConfig())
    phase = 2.0 * np.pi * np.arange(1, 4) * part / 32
    turned = a * np.cos(phase) + b * np.sin(phase), b * np.cos(phase) - a * np.sin(phase)
    later = replace(drawn, a=turned[0], b=turned[1])
    np.testing.assert_allclose(later.position([0.7]), drawn.position([0.7 + period * part / 32]), atol=1e-12)
    plan = plan_run(np.zeros(2), later, check, RUN)
    times = np.arange(0.0, plan.reference.duration, 0.002)
    assert_smooth_and_inside(times, *plan.reference.evaluate(times), check.limits)
    during = plan.begin + np.linspace(0.0, 4 * period, 777)
    np.testing.assert_allclose(plan.reference.evaluate(during)[0], later.position(during - plan.begin), atol=1e-9)


def test_one_period_is_published_with_both_ends(plan, trajectory):
    times, position, _, acceleration = plan.one_period()
    assert times[-1] == trajectory.period
    np.testing.assert_allclose(position, trajectory.position(times), atol=1e-12)
    np.testing.assert_allclose(acceleration, trajectory.acceleration(times), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(('replacement', 'lost'), [('immediate', 2), ('blend', None), ('blend', 2)])
def test_windows_lead_a_controller_along_the_reference(replacement, lost, trajectory, check):
    plan = plan_run(START, trajectory, check, replace(RUN, trajectory_replacement=replacement, periods=1))
    controller = Controller(START, blend=replacement == 'blend')
    stamp, pending = 1000.25, list(plan.windows)
    assert len(pending) > 20
    if lost is not None:
        del pending[lost]
    times = np.arange(-0.3, plan.reference.duration + 0.3, 0.01)
    followed = []
    for now in times:
        if pending and now >= pending[0].due - 0.25 * (pending[0].due == 0.0):
            window = pending.pop(0)
            controller.receive(
                stamp + now, stamp + window.stamp, window.times - window.stamp, window.position, window.velocity,
                window.acceleration,
            )  # fmt: skip
        followed.append(controller.at(stamp + now))
    assert not pending
    expected = plan.reference.evaluate(np.clip(times, 0.0, plan.reference.duration))
    position, velocity, acceleration = (np.array([row[k] for row in followed]) for k in range(3))
    bridged = 1.0 if replacement == 'immediate' else 200.0  # one quintic over 0.2 s stands for eleven knots
    np.testing.assert_allclose(position, expected[0], atol=bridged * 1e-6)
    np.testing.assert_allclose(velocity, expected[1], atol=bridged * 1e-4)
    np.testing.assert_allclose(acceleration, expected[2], atol=bridged * 1e-2)


@pytest.mark.slow
@pytest.mark.parametrize('window_time', [2.0, 6.0])
def test_a_window_comes_while_the_one_before_has_no_knot_for_a_while(trajectory, check, window_time):
    """A controller that blends makes good by the next knot what each message costs it: 31 times a limit in 20 ms."""
    settings = replace(RUN, trajectory_replacement='blend', periods=2, window_time=window_time)
    plan = plan_run(START, trajectory, check, settings)
    windows = list(plan.windows)
    for before, after in pairwise(windows):
        led = np.concatenate([[0.0 if before.stamp is None else before.stamp], before.times])
        assert led[led > after.due][0] > after.due + 0.1
        assert (led[led <= after.due] <= after.due - 0.03).all()
        assert after.stamp > after.due + 0.1
    for before, _, after in zip(windows, windows[1:], windows[2:], strict=False):
        assert before.until - after.stamp >= -1e-9  # one may be lost
        if before.until > after.due + 0.3:  # and has no knot there either, where the path bends as it does in a period
            later = before.times[before.times > after.due]
            assert later[0] > after.due + 0.1 or not plan.begin < after.due < plan.end - 0.3


@pytest.mark.slow
def test_windows_are_short_overlap_and_share_their_knots(windows):
    for before, after in pairwise(windows):
        assert before.stamp == after.stamp == 0.0
        assert before.times[-1] - before.due < 2.3  # what a node leaves behind that is killed
        assert before.until - after.due > 0.5  # replaced well before it would brake, and one may be lost
        shared = np.isin(np.round(before.times, 6), np.round(after.times, 6))
        assert shared.sum() > 40
    for before, _, after in zip(windows, windows[1:], windows[2:], strict=False):
        assert before.until - after.due >= 0.1 - 1e-9
    grid = {round(t, 6): p for w in windows for t, p in zip(w.times[:40], w.position[:40], strict=True)}
    for window in windows:
        for t, p in zip(window.times[:40], window.position[:40], strict=True):
            np.testing.assert_allclose(grid[round(t, 6)], p, atol=1e-9)


@pytest.mark.slow
def test_the_arm_comes_to_rest_within_limits_when_windows_stop_coming(windows, check):
    for window in windows[::5]:
        controller = Controller(window.position[0])
        controller.receive(window.times[0], 0.0, window.times, window.position, window.velocity, window.acceleration)
        t = np.arange(window.times[0], window.times[-1], 0.007)
        motion = [np.array(part) for part in zip(*(controller.at(now) for now in t), strict=True)]
        assert_smooth_and_inside(t, *motion, check.limits)
        np.testing.assert_allclose(window.velocity[-1], 0.0, atol=0.0)


@pytest.mark.slow
def test_a_motion_that_never_rests_gets_a_way_in_and_out_along_its_path():
    model = planar_arm(3, limits=limits(3, 2.0, 2.0, 8.0))
    config = ExcitationConfig(period=5.0, harmonics=3, starts=1, iterations=60, start_at_rest=False)
    check = reference_check(model, replace(config, acceleration_limit=8.0))
    slower = replace(config, acceleration_scaling=0.8, velocity_scaling=0.9)
    trajectory = optimize_excitation(model, slower).trajectory
    assert np.abs(trajectory.velocity([0.0])).max() > 0.01
    plan = plan_run(np.zeros(3), trajectory, check, replace(RUN, periods=2))
    t = np.arange(0.0, plan.reference.duration, 0.001)
    assert_smooth_and_inside(t, *plan.reference.evaluate(t), check.limits)
    during = plan.begin + np.linspace(0.0, 2 * trajectory.period, 99)
    np.testing.assert_allclose(plan.reference.evaluate(during)[0], trajectory.position(during - plan.begin), atol=1e-9)


@pytest.mark.slow
def test_refusals_name_part_limit_joint_and_time(trajectory, check):
    outside = START.copy()
    outside[2] = 4.0
    with pytest.raises(ExcitationError, match="joint 'elbow_joint' stands at 4, outside its limits"):
        plan_run(outside, trajectory, check, RUN)
    outside[2] = check.limits.upper[2] + 0.02  # a stop may end there: it is led back inside
    assert plan_run(outside, trajectory, check, RUN).reference.evaluate([0.0])[0][0][2] < check.limits.upper[2]
    strict = reference_check(MODEL, replace(CONFIG, velocity_scaling=0.5))
    with pytest.raises(ExcitationError, match=r"the trajectory: velocity of joint '.*' is .* rad/s at t = .* s"):
        plan_run(START, trajectory, strict, RUN)
    floor = reference_check(MODEL, replace(CONFIG, workspace_frames=('tip',), workspace_lower=(-9.0, -9.0, 0.3)))
    resting = FourierTrajectory(
        a=np.zeros((6, 2)), b=np.zeros((6, 2)), offset=[0.0, -1.2, 0.5, 0.0, 0.0, 0.0], base_frequency=0.2
    )
    with pytest.raises(ExcitationError, match="the straight way to the start of the trajectory: z of frame 'tip'"):
        plan_run(np.array([0.0, 0.3, 0.0, 0.0, 0.0, 0.0]), resting, floor, RUN)


@pytest.mark.slow
def test_a_start_where_a_stop_may_end_comes_no_closer_to_anything():
    """A stop may take half of the clearance: the next run begins there, and its way adds nothing to what is broken."""
    config = replace(CONFIG, ground_height=-0.02, link_radius=0.05, clearance=0.03)
    strict, arm, run = reference_check(MODEL, config), arm_check(MODEL, config), replace(RUN, periods=1)
    goals = clear_poses(MODEL, config, 12)
    rng = np.random.default_rng(5)
    between, beyond, nearer = 0, 0, 0
    while nearer < 1 or between < 3 or beyond < 2:
        pose = rng.uniform(-1.5, 1.5, 6)
        rest = Rest(position=pose, duration=0.1)
        if strict.excess(rest) <= 0.0:
            continue
        goal = goals[between % len(goals)]
        resting = FourierTrajectory(a=np.zeros((6, 2)), b=np.zeros((6, 2)), offset=goal, base_frequency=1.0)
        if arm.excess(rest) > 0.0:
            beyond += 1
            if beyond <= 2:
                with pytest.raises(ExcitationError, match='the straight way to the start'):
                    plan_run(pose, resting, strict, run, arm)
            continue
        between += 1
        if between <= 3:
            with pytest.raises(ExcitationError, match='the straight way to the start'):
                plan_run(pose, resting, strict, run)
        at_first = {peak.bound: max(peak.excess, 0.0) for peak in strict.peaks(rest)}
        straight = Move(start=pose, goal=goal, duration=5.0)
        nearer += any(peak.excess > at_first[peak.bound] for peak in strict.peaks(straight))
        for peak in strict.peaks(plan_run(pose, resting, strict, run, arm).reference):
            assert peak.excess <= at_first[peak.bound] + 1e-9


@pytest.mark.slow
def test_a_run_that_cannot_be_stopped_within_limits_is_refused():
    b = np.array([[1.0, 0.0, -1.0 / 3.0]])  # starts at rest
    trajectory = FourierTrajectory(a=0.0 * b, b=b, offset=[0.0], base_frequency=0.05)
    times = trajectory.sample_times(1000.0)
    peaks = [np.abs(part).max() for part in (trajectory.acceleration(times), trajectory.jerk(times))]
    start = trajectory.position([0.0])[0]
    for reserve, possible in ((20.0, True), (1.001, False)):  # a stop takes far more jerk than the motion itself
        bounds = limits(1, 9.0, 9.0, reserve * peaks[0], reserve * peaks[1])
        model = planar_arm(1, limits=bounds)
        check = reference_check(model, ExcitationConfig())
        run = replace(RUN, periods=3, settling_time=2.0)
        if possible:
            assert plan_run(start, trajectory, check, run).windows.count > 1
        else:
            with pytest.raises(ExcitationError, match=r'no stop around t = .* keeps all limits: .*; design with some'):
                plan_run(start, trajectory, check, run)


def test_windows_too_short_for_a_stop_are_refused(trajectory, check):
    with pytest.raises(ExcitationError, match='windows of 100 knots at 50 Hz are too short'):
        plan_run(START, trajectory, check, replace(RUN, window_points=100))


@pytest.mark.slow
def test_a_slow_arm_gets_the_time_it_needs_to_stop():
    model = planar_arm(3, limits=limits(3, 3.0, 2.0, 0.8))
    config = ExcitationConfig(period=20.0, starts=1, iterations=60)
    check = reference_check(model, config)
    trajectory = stoppable_design(model, config).trajectory
    assert np.abs(trajectory.velocity(trajectory.sample_times(100.0))).max() > 0.8  # more than a second of braking
    plan = plan_run(trajectory.position([0.0])[0], trajectory, check, replace(RUN, periods=1))
    for window in list(plan.windows)[::5]:
        assert (np.abs(window.acceleration) <= 0.8 * 1.001).all()
        assert window.times[-1] - window.due < 10.0


def test_validation_uses_another_seed():
    assert validation_config(CONFIG) != CONFIG
    assert replace(validation_config(CONFIG), seed=CONFIG.seed) == CONFIG


# -- friction sweeps --------------------------------------------------------------------------------


def steady_strokes(sweep):
    """Return the strokes of a sweep, each with the begin of its constant velocity."""
    return [
        (begin + part.ramp, part)
        for begin, part in zip(sweep.reference.starts, sweep.reference.parts, strict=False)
        if isinstance(part, Stroke)
    ]


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10**6), levels=st.integers(1, 5))
def test_sweeps_keep_all_limits_and_are_steady_where_they_say(seed, levels):
    rng = np.random.default_rng(seed)
    bounds = limits(
        2, rng.uniform(0.3, 3.0, 2), rng.uniform(0.2, 3.0, 2), rng.uniform(1.0, 9.0, 2), rng.uniform(5.0, 50.0, 2)
    )
    model = planar_arm(2, limits=bounds)
    start = rng.uniform(-0.5, 0.5, 2) * bounds.upper
    config = FrictionSweepConfig(sweep_levels=levels, sweep_slowest=0.01, sweep_stroke_time=1.0)
    sweep = friction_sweep(model, bounds, config, start)
    t = np.arange(0.0, sweep.reference.duration, 0.004)
    position, velocity, acceleration = sweep.reference.evaluate(t)
    assert_smooth_and_inside(t, position, velocity, acceleration, bounds)
    assert (np.abs(np.gradient(acceleration, t, axis=0)) <= bounds.jerk * 1.01).all()
    assert len(sweep.strokes) == 2 * 2 * levels
    for begin, stroke in steady_strokes(sweep):
        inside = (t > begin) & (t < begin + stroke.steady)
        assert stroke.steady > 0.01
        np.testing.assert_allclose(velocity[inside][:, stroke.joint], stroke.velocity, atol=1e-9)
        np.testing.assert_allclose(velocity[inside][:, 1 - stroke.joint], 0.0, atol=1e-9)
    for joint in (0, 1):  # both ways, at geometrically spaced speeds
        speeds = np.array([stroke.velocity for stroke in sweep.strokes if stroke.joint == joint])
        np.testing.assert_allclose(speeds[::2], -speeds[1::2])
        if levels > 2:
            ratios = np.abs(speeds[2::2] / speeds[:-2:2])
            np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
    np.testing.assert_allclose(position[-1], start, atol=1e-3)


@pytest.mark.slow
def test_a_sweep_is_run_like_an_excitation(check):
    bounds = MODEL.limits
    sweep = friction_sweep(MODEL, bounds, FrictionSweepConfig(sweep_levels=2, sweep_stroke_time=0.5), START)
    plan = plan_run(START, sweep, check, RUN)
    assert plan.motion.duration == pytest.approx(sweep.reference.duration)
    assert len(plan.one_period()[0]) <= 2001
    assert len(sweep.strokes) == 24
    for begin, stroke in steady_strokes(sweep):
        velocity = plan.reference.evaluate([plan.begin + begin + 0.5 * stroke.steady])[1][0]
        assert velocity[stroke.joint] == pytest.approx(stroke.velocity, abs=1e-9)


def test_a_sweep_is_checked_against_every_limit():
    model, start = planar_arm(2, limits=limits(2)), np.array([0.1, 0.1])
    sweep = friction_sweep(model, model.limits, FrictionSweepConfig(sweep_levels=1), start)
    for floor, allowed in ((-0.9, True), (-0.1, False)):  # stretched out, the arm reaches 0.8 m down
        config = ExcitationConfig(workspace_frames=('tip',), workspace_lower=(-9.0, -9.0, floor))
        check = reference_check(model, config)
        if allowed:
            assert plan_run(start, sweep, check, RUN).motion.duration == sweep.reference.duration
        else:
            with pytest.raises(ExcitationError, match=r"the friction sweep: z of frame 'tip' is .* m at t = .* s"):
                plan_run(start, sweep, check, RUN)


@pytest.mark.slow
def test_a_sweep_keeps_off_the_ground_and_itself():
    """A UR10e above its ground: without the workspace, the wrist would go 0.2 m below it."""
    content = RobotConfig.from_yaml(arm_file('ur10e').with_suffix('.yaml'))
    model = RobotModel.from_urdf(arm_file('ur10e'), tip=content.tip, joints=content.joints, base=content.base)
    model = content.applied(model)
    config = ExcitationConfig(**content.design)
    bounds, walls = design_limits(model, config), workspace_constraints(model, config)
    check = reference_check(model, config)
    parked = clear_pose(model, config)
    np.testing.assert_array_equal(sweep_start(model, bounds, walls, parked), parked)
    two = FrictionSweepConfig(sweep_levels=2)
    sweep = friction_sweep(model, bounds, two, parked, walls)
    check.require(sweep.reference, 'the friction sweep')
    with pytest.raises(ExcitationError, match='smallest allowed'):
        check.require(friction_sweep(model, bounds, two, parked).reference, 'the friction sweep')
    for joint in range(6):  # with room for both speeds all the same
        speeds = [abs(stroke.velocity) for stroke in sweep.strokes if stroke.joint == joint]
        assert len(speeds) == 4
        assert max(speeds) > 0.5

    stretched = np.zeros(6)  # near the ground: the strokes begin elsewhere
    start = sweep_start(model, bounds, walls, stretched)
    assert np.abs(start - stretched).max() > 0.1
    check.require(friction_sweep(model, bounds, two, start, walls).reference, 'the friction sweep')


def test_sweeps_without_room_are_refused():
    bounds = limits(2, [1.0, 1.0], [1.0, 0.005])
    with pytest.raises(ExcitationError, match=r"joint 'joint2': the lowest speed 0\.005 does not fit"):
        friction_sweep(planar_arm(2, limits=bounds), bounds)
    with pytest.raises(ExcitationError, match="start position of joint 'joint1' is 2"):
        friction_sweep(planar_arm(2, limits=bounds), bounds, start=np.array([2.0, 0.0]))
    with pytest.raises(ExcitationError, match='sweep_levels: expected 1 to 100, got 0'):
        FrictionSweepConfig(sweep_levels=0)


def test_chains_need_a_part_and_hold_at_their_ends():
    with pytest.raises(ExcitationError, match='at least one part'):
        Chain(parts=())
    chain = Chain(
        parts=(Rest(position=np.ones(2), duration=1.0), Move(start=np.ones(2), goal=np.zeros(2), duration=1.0))
    )
    np.testing.assert_allclose(chain.evaluate([-1.0, 0.5, 2.0, 9.0])[0], [[1, 1], [1, 1], [0, 0], [0, 0]], atol=1e-12)
