# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Efforts that tell of a push: found where there is one, and only there; how long a simulated arm presses on a wall."""

import re
from dataclasses import replace
from itertools import repeat
from types import SimpleNamespace

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm
from execution_loop import TRAJECTORY, Loop

from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.effort_watch import EffortWatch
from robotid_ros.execution.following import WatchdogConfig
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.run import RunConfig, once, plan_run

EFFORT = np.array([150.0, 80.0, 30.0])
MODEL = planar_arm(3, limits=limits(3, 2.6, 2.5, 8.0, effort=EFFORT))
PLAN = plan_run(
    np.zeros(3),
    TRAJECTORY,
    reference_check(MODEL, ExcitationConfig()),
    RunConfig(periods=3, settling_time=0.3, ramp_velocity=1.5),
)
KNOWN, UNKNOWN = np.ones(3), np.full(3, np.nan)
RATE = 125.0
TIMES = np.arange(-0.5, PLAN.reference.duration, 1.0 / RATE)
MOTION = PLAN.reference.evaluate(np.clip(TIMES, 0.0, None))


def efforts(seed=0):
    """Return what an arm shows whose masses are 30 % above its description's, with three times its friction."""
    rng = np.random.default_rng(seed)
    true = MODEL.with_inertial(1.3 * MODEL.inertial)
    torque = inverse_dynamics(true, *MOTION) + 3.0 * (0.5 * np.tanh(MOTION[1] / 0.01) + 0.2 * MOTION[1])
    return torque + rng.normal(0.0, 0.01 * EFFORT, torque.shape)


def watched(torque, unit=KNOWN, tolerance=1.0):
    """Return when something is said, and what."""
    watch = EffortWatch(PLAN, unit, tolerance)
    for k, time in enumerate(TIMES):
        expected = JointMotion(position=MOTION[0][k], velocity=MOTION[1][k], acceleration=MOTION[2][k])
        said = watch.receive(float(time), expected, expected, torque[k])
        if said is not None:
            return float(time), said
    return None


def told(plan, times, speed, efforts):
    """Return all that is said of efforts of joints at these speeds, from joint states at these times."""
    watch = EffortWatch(plan, UNKNOWN, 1.0)
    rest = JointMotion(position=np.zeros(3), velocity=np.zeros(3))
    does = (replace(rest, velocity=row) for row in speed)
    return {watch.receive(*now, effort) for *now, effort in zip(times, repeat(rest), does, efforts, strict=False)}


def pushed(moment, share, unit=KNOWN, joint=1):
    torque = efforts()
    torque[moment <= TIMES, joint] -= share * EFFORT[joint]
    return watched(torque, unit)


@pytest.mark.parametrize('unit', [KNOWN, UNKNOWN, 7.0 * KNOWN])
def test_an_arm_that_differs_from_its_description_is_left_alone(unit):
    assert watched(efforts() / np.nan_to_num(unit, nan=1.0), unit) is None


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(12))
def test_friction_that_turns_over_earlier_or_later_than_a_period_before_is_no_push(seed):
    """A joint that is nearly at rest stays there for some moments, and its friction is anything meanwhile.

    The arm is behind its reference, joint states come at any rate and get lost alone and in bursts.
    """
    rng = np.random.default_rng(seed)
    motion = once(replace(TRAJECTORY, base_frequency=10.0 ** rng.uniform(-1.5, 0.0) * TRAJECTORY.base_frequency))
    plan = replace(PLAN, motion=motion, begin=0.0, end=3.0 * motion.duration)
    rate, lag = min(10.0 ** rng.uniform(1.3, 2.7), 6000.0 / plan.end), rng.uniform(0.0, 0.1)
    times = np.arange(0.0, plan.end, 1.0 / rate)
    lost = rng.random(len(times)) < rng.uniform(0.0, 0.3)
    for begin in rng.uniform(0.0, plan.end, 30):
        lost |= (begin < times) & (times < begin + rng.uniform(0.0, 0.3))
    times = times[~lost]
    period = (times / motion.duration).astype(int)
    speed = motion.evaluate(times - lag)[1]
    fastest = np.abs(speed).max(axis=0)
    off = 0.015 * fastest * rng.uniform(-1.0, 1.0, (4, 3))
    torque = 10.0 ** rng.uniform(-1.0, 2.0, 3) * np.sign(speed + off[period])
    torque += rng.normal(0.0, 1e-3, torque.shape)

    assert told(plan, times, speed, torque) == {None}
    pushes = (times > 1.7 * motion.duration)[:, None] & (np.abs(speed) > 0.1 * fastest)
    assert told(plan, times, speed, np.where(pushes, 3.0 * torque, torque)) != {None}


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(10))
def test_a_torque_that_nobody_saw_a_period_before_is_no_push(seed):
    """Joint states get lost for up to a fifth of the period, in which the effort reverses and comes back."""
    rng = np.random.default_rng(seed)
    motion = once(replace(TRAJECTORY, base_frequency=10.0 ** rng.uniform(-1.0, 0.3) * TRAJECTORY.base_frequency))
    plan = replace(PLAN, motion=motion, begin=0.0, end=3.0 * motion.duration)
    times = np.arange(0.0, plan.end, 10.0 ** rng.uniform(-2.7, -1.5))
    lost = np.zeros(len(times), dtype=bool)
    for begin in rng.uniform(0.0, plan.end, 12):
        lost |= (begin < times) & (times < begin + rng.uniform(0.0, 0.2) * motion.duration)
    times = times[~lost]
    _, speed, acceleration = motion.evaluate(times)
    torque = 10.0 ** rng.uniform(-1.0, 2.0, 3) * acceleration + rng.normal(0.0, 1e-3, acceleration.shape)

    assert told(plan, times, speed, torque) == {None}
    pressed = torque + np.where(times[:, None] > 1.7 * motion.duration, np.abs(torque).max(axis=0), 0.0)
    assert told(plan, times, speed, pressed) != {None}


def test_efforts_that_say_nothing_stop_nothing():
    """As those of ros2_control's mock hardware, which are all 1, and of drivers that leave some out."""
    assert watched(np.ones_like(MOTION[0])) is None
    missing = efforts()
    missing[:, 1] = np.nan
    assert watched(missing) is None


@pytest.mark.parametrize(
    ('moment', 'share', 'unit', 'said'),
    [
        (PLAN.begin + 1.0, 0.9, KNOWN, 'where its model needs'),
        (PLAN.begin + PLAN.motion.duration + 1.0, 0.35, KNOWN, 'that of the period before'),
        (PLAN.begin + PLAN.motion.duration + 1.0, 0.35, UNKNOWN, 'that of the period before'),
    ],
)
def test_a_push_is_found_within_a_tenth_of_a_second(moment, share, unit, said):
    found = pushed(moment, share, unit)
    assert found is not None
    assert 0.0 < found[0] - moment < 0.1, found
    assert said in found[1]
    assert "joint 'joint2'" in found[1]


@pytest.mark.parametrize('known', [True, False])
def test_efforts_of_coupled_motors_are_taken_to_their_joints(known):
    """A healthy arm is left alone and a push found at its joint, as with the torques of the joints themselves."""
    drives = np.eye(3)
    drives[1, 0], drives[2, 1] = 1.0, -1.0
    model = replace(MODEL, drives=drives, effort_at='motors')
    plan = plan_run(
        np.zeros(3),
        TRAJECTORY,
        reference_check(model, ExcitationConfig()),
        RunConfig(periods=3, settling_time=0.3, ramp_velocity=1.5),
    )
    gain = np.array([7.0, 5.0, 3.0])
    unit = gain if known else np.array([7.0, 5.0, np.nan])
    torque = efforts()
    pushed_, pushing = np.array(torque), PLAN.begin + 1.0 < TIMES
    pushed_[pushing, 1] -= 0.9 * EFFORT[1]

    def told(torque):
        watch = EffortWatch(plan, unit, 1.0)
        current = torque @ np.linalg.inv(drives) / gain  # of rows: tau = C^T tau_motor
        for k, time in enumerate(TIMES):
            expected = JointMotion(position=MOTION[0][k], velocity=MOTION[1][k], acceleration=MOTION[2][k])
            said = watch.receive(float(time), expected, expected, current[k])
            if said is not None:
                return time, said
        return None

    assert told(torque) is None
    found = told(pushed_)
    if known:
        assert found is not None
        assert found[0] - PLAN.begin - 1.0 < 0.1
        assert "joint 'joint2'" in found[1]
        shown = float(re.search(r'is (\S+) where its model needs', found[1])[1])
        assert shown == pytest.approx(pushed_[np.abs(TIMES - found[0]) < 0.05, 1].mean(), abs=1.5)
    else:  # the second joint's torque needs the third motor's unit
        assert found is None or 'where its model needs' not in found[1]


def test_what_nobody_can_tell_is_not_said():
    """Without a unit there is nothing to compare a first period with."""
    watch = pushed(PLAN.begin + 1.0, 0.6, UNKNOWN)
    assert watch is None or watch[0] > PLAN.begin + PLAN.motion.duration


def test_an_effort_at_its_limit_is_named_unless_it_was_there_at_rest():
    torque = efforts()
    late = PLAN.begin + 0.5 < TIMES
    torque[late, 0] = -EFFORT[0]
    found = watched(torque, tolerance=100.0)  # of the other bounds: this one has none
    assert found is not None
    assert 'at its limit (150)' in found[1]
    assert found[0] < PLAN.begin + 0.6
    spike = efforts()
    spike[np.searchsorted(TIMES, PLAN.begin + 0.5), 0] = -3.0 * EFFORT[0]
    assert watched(spike) is None
    milli = 1000.0 * efforts()  # N mm beside a limit in N m
    assert watched(milli) is None


def simulated(tolerance, *, joint=0, at=1.5, stiffness=5e3, seed=1):
    pytest.importorskip('mujoco', reason='needs the sim extra')
    from robotid_ros.simulation import Plant, Sensors, perturb
    from robotid_ros.simulation.plant import Wall

    rng = np.random.default_rng(seed)
    truth = perturb(MODEL, rng, 0.2, friction_scale=0.9)
    plant = Plant(truth, MODEL, rate=500.0, bandwidth=20.0)
    sensors = Sensors.typical(MODEL, truth.drive_gain)
    parts = SimpleNamespace(plant=plant, sensors=sensors, sensor_rng=rng)

    def wall(loop):
        place, speed = float(loop.position[joint]), float(loop.velocity[joint])
        if plant.wall is None and abs(speed) > 0.2:
            damping = 0.01 * stiffness
            plant.wall = Wall(joint=joint, position=place, side=np.sign(speed), stiffness=stiffness, damping=damping)

    config = WatchdogConfig(push_tolerance=tolerance)
    return Loop(plan=PLAN, parts=parts, fault=wall, at=PLAN.begin + at, feedback=True, config=config)


@pytest.mark.slow
def test_an_arm_that_meets_a_wall_is_stopped_at_once_and_lets_go():
    run = simulated(1.0).run()
    assert 'presses on something' in run.reason
    pressed = np.array(run.pressed)
    hard = pressed[np.abs(pressed[:, 1]) > 0.2 * EFFORT[0]]
    assert 0.0 < run.stopped_at - hard[0, 0] < 0.1
    assert hard[-1, 0] - run.stopped_at < 0.7
    assert np.abs(pressed[-20:, 1]).max() < 0.15 * EFFORT[0]
    later = simulated(0.0).run()
    assert 'presses on something' not in later.reason
    assert later.stopped_at > run.stopped_at + 0.05
    assert np.abs(np.array(later.pressed)[-20:, 1]).min() > 0.3 * EFFORT[0]


@pytest.mark.slow
@pytest.mark.parametrize('seed', [0, 1, 18, 23, 32, 37, 39, 47, 48, 49])
def test_walls_of_any_stiffness_are_left_whichever_joint_meets_them_and_when(seed):
    """Up to half of the effort limit was left: the time did not suffice, or another joint was led back, or none."""
    rng = np.random.default_rng(seed)
    joint, at = int(rng.integers(3)), float(rng.uniform(0.5, 5.0))
    stiffness = EFFORT[joint] * 10.0 ** rng.uniform(1.0, 2.2)
    run = simulated(1.0, joint=joint, at=at, stiffness=stiffness, seed=seed).run()
    pressed = np.array(run.pressed)
    assert np.abs(pressed).max(axis=0)[1] > 0.1 * EFFORT[joint]
    assert np.isfinite(run.rested_at)
    assert np.abs(pressed[-20:, 1]).max() < 0.12 * EFFORT[joint]


@pytest.mark.slow
def test_a_joint_beyond_its_limits_ends_the_run():
    start = PLAN.begin + 0.5
    config = WatchdogConfig(tracking_tolerance=10.0)

    def drifts(loop, position, velocity, effort):
        return position + np.array([0.0, 0.0, max(loop.now - start, 0.0)]), None, effort, loop.clock

    run = Loop(plan=PLAN, config=config, shown=drifts).run()
    assert "joint 'joint3' is at" in run.reason or 'off the path' in run.reason
