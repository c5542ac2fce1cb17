# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Faults at the controller: an arm is only ever slowed down, and one that rests off its path is left alone.

The arm does at once what the controller says, as ros2_control's mock hardware does: a step of the controller's
reference is a step of the arm.
"""

from time import process_time

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm
from execution_loop import CHECK, FROM_REST, MODEL, PLAN, STEP, Loop, StopKind, assert_within_limits, new_plan
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.following import Following
from robotid_ros.execution.measured_stop import JointMotion, MeasuredStop, plan_measured_stop
from robotid_ros.execution.watchdog import Watchdog, WatchdogConfig
from robotid_ros.simulation import CommandPoint

BLENDED = new_plan(trajectory_replacement='blend')
MODES = {
    'measured': {},
    'commanded': {'from_command': True},
    'blend': {'blend': True, 'plan': BLENDED},
}
FROM_REST_PLANS = {
    mode: new_plan(FROM_REST, **({'trajectory_replacement': 'blend'} if mode == 'blend' else {})) for mode in MODES
}
modes = st.sampled_from(sorted(MODES))
moments = st.floats(PLAN.begin, PLAN.begin + 4.0)


def loop(mode, **settings):
    return Loop(**{**MODES[mode], **settings})


def once(action):
    """Return a fault that happens at one step only."""
    done = []

    def fault(loop):
        if not done:
            done.append(True)
            action(loop)

    return fault


def other_trajectory(way, time):
    """Another commander: a smooth way to somewhere else."""

    def publish(loop):
        target = loop.position + way
        loop.messages.append((loop.now, None, [CommandPoint(time, target, np.zeros(3), np.zeros(3))]))

    return once(publish)


@pytest.mark.parametrize('feedback', [False, True])
@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_healthy_run_is_never_stopped(mode, feedback):
    run = loop(mode, feedback=feedback).run()
    assert run.stop is None, run.reason
    assert run.following.confirmed
    assert_within_limits(run, -0.5)


@settings(deadline=None, max_examples=8)
@given(mode=modes, moment=st.floats(-0.3, PLAN.end), latency=st.floats(0.0, 0.1), feedback=st.booleans())
def test_a_stop_on_request_slows_down_along_the_path(mode, moment, latency, feedback):
    run = loop(mode, request=moment, latency=latency, feedback=feedback).run()
    assert run.stop is not None
    assert_within_limits(run, -0.5)
    if moment > PLAN.begin:
        assert run.kind is StopKind.ALONG_PATH
        assert run.stop.rest < run.stopped_at + 1.8


@settings(deadline=None, max_examples=8)
@given(
    mode=modes,
    moment=moments,
    way=st.tuples(*[st.floats(-0.8, 0.8)] * 3),
    latency=st.floats(0.0, 0.1),
    feedback=st.booleans(),
)
def test_another_trajectory_is_braked_from_what_the_arm_does(mode, moment, way, latency, feedback):
    time = 1.0 + np.abs(way).max()  # within the limits itself, from any speed of the run
    run = loop(mode, fault=other_trajectory(np.array(way), time), at=moment, latency=latency, feedback=feedback).run()
    if run.stop is None:  # the other one leads where the run goes
        return
    assert run.kind in (StopKind.MEASURED, StopKind.NOTHING), run.reason
    velocity, acceleration = run.peaks(run.stopped_at - 2 * STEP)
    assert (velocity <= MODEL.limits.velocity * 1.01).all(), (velocity, run.reason)
    assert (acceleration <= np.maximum(MODEL.limits.acceleration, 8.0) * 1.03).all(), (acceleration, run.reason)
    assert run.final_speed() < 1e-3


@settings(deadline=None, max_examples=10)
@given(mode=modes, moment=moments, off=st.sampled_from([0.15, 1.0, 99.0]), held=st.booleans(), feedback=st.booleans())
def test_an_arm_that_its_controller_holds_or_lost_is_sent_nothing(mode, moment, off, held, feedback):
    """Held, deactivated, or deactivated and activated again: it rests off its path, and stays there."""

    def switch(loop):
        loop.controller.set_active(loop.now > moment + off, loop.now)

    hold = once(lambda loop: loop.controller.hold(loop.position, loop.now))
    sent = []
    run = loop(mode, fault=hold if held else switch, at=moment, feedback=feedback)
    run.run()
    assert run.stop is not None
    sent.append(run.sent)
    since = np.array(run.track)
    after = since[since[:, 0] > max(run.stopped_at, moment + 0.05)][:, 1:]
    assert np.ptp(after, axis=0).max() < 1e-3, (run.kind, run.reason)
    assert run.kind is StopKind.NOTHING, (run.kind, run.reason)


@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_that_only_its_controller_sees_is_stopped_from_what_it_does(mode):
    """Joint states are lost on a busy machine: what the controller measures tells the speed, and whether it rests."""
    moment = PLAN.begin + 1.0
    seen = {'feedback': True, 'silent': moment - 0.3, 'at': moment, 'config': WatchdogConfig(joint_state_timeout=60.0)}
    run = loop(mode, fault=other_trajectory(np.array([0.7, -0.7, 0.7]), 1.7), **seen).run()
    assert run.kind is StopKind.MEASURED, run.reason
    assert_within_limits(run, run.stopped_at - 2 * STEP)
    track = np.array(run.track)
    k = int(np.searchsorted(track[:, 0], run.stopped_at - 1e-9))
    speed = (track[k, 1:] - track[k - 1, 1:]) / STEP
    way = (0.5 * run.allowed_latency + 0.5 * run.stop.window.times[-1]) * speed
    np.testing.assert_allclose(run.stop.window.position[-1], track[k, 1:] + way, atol=0.1)
    held = loop(mode, fault=once(lambda loop: loop.controller.hold(loop.position, loop.now)), **seen).run()
    assert held.kind is StopKind.NOTHING, held.reason


@pytest.mark.parametrize('feedback', [False, True])
@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_lost_start_is_said_within_a_second_and_nothing_moves(mode, feedback):
    run = loop(mode, lose_first=True, feedback=feedback).run()
    assert run.stopped_at < 1.0
    assert 'the controller did not take the trajectory' in run.reason
    assert run.kind is StopKind.NOTHING
    assert np.ptp(np.array(run.track)[:, 1:], axis=0).max() == 0.0


@pytest.mark.parametrize('silent', [-1.0, 0.02])
def test_an_arm_that_sets_out_unseen_is_stopped(silent):
    """No joint state has come since the start, or none since it began to move: the controller leads it all the same."""
    run = loop('measured', silent=silent, config=WatchdogConfig(joint_state_timeout=0.8)).run()
    assert 'no joint state for 0.8' in run.reason
    assert run.kind is StopKind.MEASURED
    assert_within_limits(run, -0.5)
    assert np.abs(np.array(run.track)[-1, 1:] - np.array(run.track)[0, 1:]).max() < 0.3


@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_whose_joint_states_are_stuck_at_the_start_is_stopped(mode):
    """They look like those of an arm that rests: it is held at the start, which moves none that rests there."""
    settings = {**MODES[mode], 'plan': FROM_REST_PLANS[mode], 'noise': 0.0}
    stuck = Loop(**settings)
    stuck.seen = lambda position, velocity: (np.zeros(3), np.zeros(3))
    stuck.run()
    assert 'the controller did not take the trajectory' in stuck.reason
    assert_within_limits(stuck, -0.5)
    assert np.abs(stuck.track[-1][1:]).max() < 0.1
    resting = Loop(lose_first=True, **settings).run()
    assert 'the controller did not take the trajectory' in resting.reason
    assert np.ptp(np.array(resting.track)[:, 1:], axis=0).max() < 1e-9


@settings(deadline=None, max_examples=30)
@example(mode='measured', silent=0.6, timeout=1.0)  # at rest at the last look, and far away when it is stopped
@given(mode=modes, silent=st.floats(-0.3, 4.0), timeout=st.floats(0.1, 1.4))
def test_an_arm_that_is_no_longer_seen_is_stopped_from_where_it_may_be(mode, silent, timeout):
    """It goes on along its path, also where that was not confirmed: this run begins at rest, where the arm is."""
    settings = {**MODES[mode], 'plan': FROM_REST_PLANS[mode]}
    run = Loop(silent=silent, config=WatchdogConfig(joint_state_timeout=timeout), **settings).run()
    assert 'no joint state for' in run.reason
    assert_within_limits(run, -0.5)


@settings(deadline=None, max_examples=8)
@given(mode=modes, moment=moments, scaling=st.floats(0.3, 0.999), feedback=st.booleans())
def test_stretched_time_ends_the_run_without_a_step(mode, moment, scaling, feedback):
    def stretch(loop):
        loop.controller.speed_scaling = scaling

    run = loop(mode, fault=stretch, at=moment, feedback=feedback, after=3.0).run()
    if run.stop is None:
        assert (PLAN.end - moment) * (1.0 - scaling) < 0.1
        return
    velocity, _ = run.peaks(moment)
    assert (velocity <= MODEL.limits.velocity).all(), (velocity, run.reason, run.kind)
    assert run.final_speed() < 5e-3


@pytest.mark.parametrize('scaling', [0.0, 0.5, 0.9])
@pytest.mark.parametrize('mode', sorted(MODES))
def test_time_that_is_known_to_be_stretched_only_slows_the_arm_down(mode, scaling):
    """The controller falls behind while the stop is on its way: a piece of the path would lie ahead of it."""
    moment = PLAN.begin + 1.0

    def stretch(loop):
        loop.controller.speed_scaling = scaling
        loop.following.stretched, loop.request = True, loop.now

    run = loop(mode, fault=once(stretch), at=moment, after=3.0).run()
    assert run.kind is StopKind.MEASURED
    track = np.array(run.track)
    speeds = np.abs(np.diff(track[:, 1:], axis=0)).max(axis=1) / STEP
    k = int(np.searchsorted(track[:, 0], moment))
    assert speeds[k:].max() <= 1.01 * speeds[k - 10 : k - 2].max()
    assert run.final_speed() < 1e-3


def test_time_that_is_stretched_a_little_is_told_by_the_delay_alone():
    """At 98 % of the speed the arm stays near its reference, so that nothing but the growing delay can tell."""

    def stretch(loop):
        loop.controller.speed_scaling = 0.98

    config = WatchdogConfig(tracking_tolerance=5.0)
    run = loop('measured', fault=stretch, at=PLAN.begin, config=config, after=3.0).run()
    assert run.stop is not None
    assert 'time is stretched' in run.reason


@settings(deadline=None, max_examples=8)
@given(mode=modes, moment=moments, joint=st.integers(0, 2), feedback=st.booleans())
def test_an_arm_that_runs_into_something_does_not_leap_when_stopped(mode, moment, joint, feedback):
    place = PLAN.reference.evaluate([moment])[0][0][joint]
    side = np.sign(PLAN.reference.evaluate([moment])[1][0][joint]) or 1.0

    def blocked(position):
        if run.now < moment:
            return position
        limited = position.copy()
        limited[joint] = side * min(side * position[joint], side * place)
        return limited

    run = loop(mode, at=moment, feedback=feedback)
    run.blocked = blocked
    run.run()
    if run.stop is None:  # it turned back before it was far off
        return
    assert run.kind is not StopKind.NOTHING or not feedback
    velocity, acceleration = run.peaks(run.stopped_at + 2 * STEP)
    assert (velocity <= MODEL.limits.velocity).all()
    assert (acceleration <= MODEL.limits.acceleration * 1.03).all(), (acceleration, run.reason, run.kind)


@settings(deadline=None, max_examples=12)
@given(mode=modes, moment=moments, jump=st.floats(0.15, 0.7))
def test_a_position_that_jumps_does_not_lead_the_arm_away(mode, moment, jump):
    run = loop(mode, at=moment)
    run.seen = lambda position, velocity: (position + jump * (run.now > moment), velocity)
    run.run()
    assert 'jumps by' in run.reason or 'away from its reference' in run.reason
    assert_within_limits(run, moment - 0.1)
    track = np.array(run.track)
    path = PLAN.reference.evaluate(np.arange(moment - 0.1, moment + 2.0, 0.01))[0]
    distance = np.linalg.norm(path - track[-1, 1:], axis=1).min()
    assert distance < 0.3 if mode == 'measured' else distance < 0.6


@settings(deadline=None, max_examples=8)
@given(moment=st.floats(1.0, 4.0), jump=st.floats(0.2, 0.7))
def test_a_stop_that_is_planned_again_after_a_jump_still_doubts_it(moment, jump):
    """A driver that gives no velocity: the slope across the jump is none, and what follows it is no better."""
    run = Loop(plan=FROM_REST_PLANS['measured'])
    run.seen = lambda position, velocity: (position + jump * (run.now > moment), None)
    run.run()
    following = run.following
    for later in 0.01 * np.arange(1, 12):
        now = run.stopped_at + later
        path = following.reference(1000.0 + now).position
        following.receive(path + jump, None, 1000.0 + now, now)
        again = following.stop(now, now, 0.1)
        assert np.abs(again.window.position[-1] - path).max() < 3.0


@pytest.mark.parametrize('load', ['gravity', 'friction'])
@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_that_gives_way_under_load_is_not_taken_for_late(mode, load):
    """Milliradians that stay, or turn with the motion, must not move the next piece in time: that would be a step."""
    bend = {
        'gravity': lambda position, velocity: 6e-3 * np.cos(position + np.arange(3.0)),
        'friction': lambda position, velocity: 6e-3 * np.tanh(velocity / 0.05),
    }[load]
    run = loop(mode)
    run.seen = lambda position, velocity: (position - bend(position, velocity), velocity)
    run.run()
    assert run.stop is None, run.reason
    assert_within_limits(run, -0.5)


def test_a_small_delay_is_taken_along():
    """At 99.94 % nothing is stopped, and the next piece begins where the controller is."""

    def stretch(loop):
        loop.controller.speed_scaling = 0.9994

    run = loop('measured', fault=stretch, at=1.0, feedback=True).run()
    assert run.stop is None, run.reason
    assert 0.004 < run.following.growth.value < 0.009
    assert_within_limits(run, -0.5)


@settings(deadline=None, max_examples=150)
@given(
    position=st.tuples(*[st.floats(-2.5, 2.5)] * 3),
    velocity=st.tuples(*[st.floats(-2.5, 2.5)] * 3),
    away=st.tuples(*[st.floats(-0.3, 0.3)] * 3),
    latency=st.floats(0.0, 0.1),
    arrival=st.floats(0.0, 1.0),
    commanded=st.booleans(),
)
def test_a_measured_stop_keeps_the_limits_wherever_the_controller_begins(
    position, velocity, away, latency, arrival, commanded
):
    start = JointMotion(position=np.array(position), velocity=np.array(velocity))
    led = JointMotion(position=start.position + away, velocity=start.velocity)
    starts = [start.after(0.5 * latency), start, start.after(latency), *([led] if commanded else [])]
    stop = plan_measured_stop(starts, CHECK)
    bounds = MODEL.limits
    for begin in (start.after(arrival * latency), led) if commanded else (start.after(arrival * latency),):
        actual = MeasuredStop(start=begin, goal=stop.goal, duration=stop.duration)
        q, dq, ddq = actual.evaluate(np.linspace(0.0, stop.duration, 60))
        assert (np.abs(ddq) <= bounds.acceleration * 1.001).all()
        assert (np.abs(dq) <= np.maximum(bounds.velocity, np.abs(begin.velocity)) * 1.001).all()
        np.testing.assert_allclose(q[-1], stop.goal, atol=1e-9)
        np.testing.assert_allclose(dq[-1], 0.0, atol=1e-9)
    least = 1.5 * np.abs(start.velocity).max() / bounds.acceleration[0]
    assert stop.duration >= min(least, 0.1)
    if commanded:
        return
    room = 2.6 - np.abs(start.position) > (0.6 * least + latency) * np.abs(start.velocity)
    assert (np.abs(stop.goal) <= 2.6)[room].all()
    if latency == 0.0 and room.all():
        assert stop.duration < max(0.12, 1.2 * least)  # and it is quick


def test_a_stop_that_begins_beyond_a_limit_keeps_the_others():
    """A design at 30 % of the velocity limits, and an arm that somebody else moves at twice that."""
    model = planar_arm(3, limits=limits(3, 2.6, 2.5, 40.0, effort=[100.0, 22.0, 100.0]))
    check = reference_check(model, ExcitationConfig(velocity_scaling=0.3))
    start = JointMotion(position=np.array([0.0, 0.5 * np.pi, 0.0]), velocity=np.array([0.0, 1.5, 0.0]))
    stop = plan_measured_stop([start], check)
    torque = inverse_dynamics(model, *stop.evaluate(np.linspace(0.0, stop.duration, 200)))
    assert 18.0 < np.abs(torque[:, 1]).max() < 22.0


def test_a_measured_stop_is_planned_at_once():
    """The executor waits for it, and on a busy machine the arm moves on meanwhile: processor time, best of ten."""
    start = JointMotion(position=np.zeros(3), velocity=np.array([2.0, -1.0, 0.5]))
    took = []
    for _ in range(10):
        began = process_time()
        plan_measured_stop([start.after(0.05), start, start.after(0.1), start.after(-0.1)], CHECK)
        took.append(process_time() - began)
    assert min(took) < 8e-3  # 2 ms; with one duration after the other 15


@settings(deadline=None, max_examples=50)
@example(moment=1.98, latency=0.3, jump=0.0)
@given(moment=st.floats(0.0, 8.0), latency=st.floats(0.0, 0.3), jump=st.floats(0.0, 0.7))
def test_a_stop_from_a_path_that_gains_speed_does_not_lead_far(moment, latency, jump):
    """Near the limits of speed and acceleration at once no stop keeps them all: then a short one, not the longest."""
    reference = FROM_REST_PLANS['measured'].reference
    positions, velocities, accelerations = reference.evaluate(moment + latency * np.array([0.5, 0.0, 1.0]))
    starts = [
        JointMotion(position=q, velocity=v, acceleration=a)
        for q, v, a in zip(positions, velocities, accelerations, strict=True)
    ]
    starts += [JointMotion(position=positions[1] + jump, velocity=velocities[1])] if jump > 0.1 else []
    stop = plan_measured_stop(starts, CHECK)
    assert stop.duration < 2.5
    assert np.abs(stop.goal - positions[0]).max() < 2.5
    for start in starts:
        _, speed, change = MeasuredStop(start=start, goal=stop.goal, duration=stop.duration).evaluate(
            np.linspace(0.0, stop.duration, 60)
        )
        assert (np.abs(speed) <= 1.2 * MODEL.limits.velocity).all()
        assert (np.abs(change) <= 1.2 * MODEL.limits.acceleration).all()


def test_a_measured_stop_begins_where_the_arm_will_be():
    """A message that takes longer finds the arm further on: what it is led to lies further on too."""
    speed, moment = np.array([0.6, -0.4, 0.2]), PLAN.begin + 1.0
    goals = []
    for latency in (0.0, 0.2):
        watchdog = Watchdog(MODEL.joint_names, MODEL.limits.velocity, WatchdogConfig(tracking_tolerance=10.0))
        following = Following(PLAN, 0.0, watchdog)
        start = PLAN.reference.evaluate([0.0])[0][0]
        away = start + 1.5 * (PLAN.reference.evaluate([moment])[0][0] - start)
        for k in range(10):  # it moves along another way than its own
            stamp = moment + 0.01 * (k - 9)
            following.receive(away + (stamp - moment) * speed, speed, stamp, stamp)
        stop = following.stop(moment, moment, latency)
        assert stop.kind is StopKind.MEASURED
        goals.append(stop.window.position[-1])
    assert ((goals[1] - goals[0]) / speed >= 0.5 * 0.2 - 1e-9).all()


@pytest.mark.parametrize('lag', [0.0, 0.2, -0.2])
def test_a_measured_stop_counts_what_joint_states_waited_in_their_queue(lag):
    """A busy executor takes them late; the clock that stamps them may differ from the node's, which is no waiting."""
    speed, moment, waited = np.array([0.6, -0.4, 0.2]), PLAN.begin + 1.0, 0.08
    watchdog = Watchdog(MODEL.joint_names, MODEL.limits.velocity, WatchdogConfig(tracking_tolerance=10.0))
    following = Following(PLAN, 0.0, watchdog)
    away = PLAN.reference.evaluate([moment])[0][0] + 0.3
    for k in range(10):
        stamp = moment - waited - lag + 0.01 * (k - 9)
        following.receive(away + 0.01 * (k - 9) * speed, speed, stamp, stamp + waited + lag)
    following.clock_lag = lag
    stop = following.stop(moment, moment, 0.0)
    assert stop.kind is StopKind.MEASURED
    way = (waited + 0.5 * stop.window.times[-1]) * speed
    np.testing.assert_allclose(stop.window.position[-1], away + way, atol=1e-9)


def test_the_sign_of_the_known_delay():
    """An arm that is 50 ms behind follows, if that is known, and does not if it is taken for ahead."""
    config = WatchdogConfig(tracking_delay=0.05, tracking_tolerance=0.05)
    late = loop('measured', config=config)
    history = []

    def seen(position, velocity):
        history.append((position, velocity))
        return history[max(0, len(history) - 7)]

    late.seen = seen
    assert late.run().stop is None, late.reason
    history.clear()
    blind = loop('measured', config=WatchdogConfig(tracking_tolerance=0.05))
    blind.seen = seen
    assert 'away from its reference' in blind.run().reason
