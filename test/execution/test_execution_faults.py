# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The law of stopping on simulated controllers: whatever happens, the arm comes to rest, and rest is seen."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm
from execution_loop import (
    BLEND_PLAN,
    BOOT,
    CHECK,
    EPOCH,
    MODEL,
    PLAN,
    STEP,
    TRAJECTORY,
    Loop,
    State,
    assert_within_limits,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmark.faults import arm, random_faults
from benchmark.random_faults import draw, run_fault
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationConfig, FourierTrajectory, optimize_excitation
from robotid_ros.excitation.preparation import arm_check, reference_check
from robotid_ros.execution.delay import DelayGrowth, motion_at
from robotid_ros.execution.following import Following, WatchdogConfig
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.run import RunConfig, plan_run
from robotid_ros.execution.run_clock import RunClock
from robotid_ros.execution.sight import ENOUGH_TOLD, Sight
from robotid_ros.execution.stop import PathPlace, StopPlan, plan_stop
from robotid_ros.model import RobotModel
from robotid_ros.simulation.controller import CommandPoint, Spline, TrajectoryPoints

MODES = {'measured': {}, 'commanded': {'from_command': True}, 'blend': {'blend': True, 'cycle': STEP}}
modes = st.sampled_from(sorted(MODES))
MOMENT = PLAN.begin + 2.0


@cache
def way_of_a_stop(asked):
    return Loop(request=asked).run().way(MOMENT)


def each_with_a_mode(values, also=()):
    """Return pairs of a value and a mode: modes take turns, and what is in ``also`` comes with every mode."""
    names = sorted(MODES)
    turns = [(value, names[k % len(names)]) for k, value in enumerate(values)]
    return turns + [(value, name) for value in also for name in names]


def loop(mode, **fields):
    return Loop(**{**MODES[mode], **fields})


def lies(change, since=MOMENT):
    """Say what joint states show from a moment on: ``change`` alters position, velocity and the stamp."""

    def shown(loop, position, velocity, effort):
        if loop.now < since:
            return position, velocity, effort, loop.clock
        return change(position.copy(), velocity.copy(), loop.clock)

    return {'shown': shown, 'since': since}


def test_quintics_between_knots_far_apart_stay_on_the_path():
    """Also on the way to the start, and in stops."""
    for k, window in enumerate(BLEND_PLAN.windows):
        points = TrajectoryPoints(window.times, window.position, window.velocity, window.acceleration)
        t = np.linspace(window.times[0], window.times[-1], 500)
        led, speed, bend = Spline(points).sample(t)
        told = [window.at(time) for time in t[::25]]  # what the node takes the controller to do
        np.testing.assert_allclose([each.position for each in told], led[::25], atol=1e-9)
        np.testing.assert_allclose([each.velocity for each in told], speed[::25], atol=1e-8)
        np.testing.assert_allclose([each.acceleration for each in told[:-1]], bend[:-1:25][: len(told) - 1], atol=1e-6)
        path = BLEND_PLAN.reference.evaluate(np.minimum(t, BLEND_PLAN.reference.duration))[0]
        on = t <= window.until
        assert np.abs(led - path)[on].max(initial=0.0) < 6e-4
        if k + 1 < BLEND_PLAN.windows.count:
            stop = BLEND_PLAN.windows._planned_stop(k)
            np.testing.assert_allclose(led[~on], stop.evaluate(t[~on] - stop.at)[0], atol=6e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ('mode', 'feedback'), [('measured', True), ('commanded', False), ('blend', False), ('blend', True)]
)
def test_a_healthy_run_is_never_stopped(mode, feedback):
    run = loop(mode, feedback=feedback).run()
    assert run.stop is None, run.reason
    assert run.supervisor.state is State.RESTED
    assert run.rested_at > PLAN.reference.duration
    assert_within_limits(run, -0.5)


@pytest.mark.slow
@pytest.mark.parametrize(('cycle', 'feedback'), [(0.0, True), (0.002, True), (0.012, False)])
def test_cycles_that_windows_cost_do_not_add_up(cycle, feedback):
    """Each window was later by what the controller was behind, and cost it another cycle: stopped in 2 to 7 s."""
    run = loop('blend', feedback=feedback, cycle=cycle).run()
    assert run.stop is None, run.reason
    assert max(abs(order.shift) for _, order in run.orders) < 1e-3
    track = np.array(run.track)
    track = track[track[:, 0] > BLEND_PLAN.begin + 1.0]
    path = BLEND_PLAN.reference.evaluate(np.clip(track[:, 0], 0.0, BLEND_PLAN.reference.duration))[0]
    stray = track[:, 1:] - path
    assert 0.5 * cycle < np.abs(stray).max() / MODEL.limits.velocity.max() < 1.5 * cycle + 1e-3


@pytest.mark.slow
def test_what_a_controller_that_blends_is_behind_beyond_its_cycles_is_kept():
    """One whose time stood still is led as much later, but for two cycles: it would make good all at once."""

    def stands(arm):
        arm.controller.speed_scaling = 0.0 if arm.now < MOMENT + 0.016 else 1.0

    run = loop('blend', feedback=True, cycle=0.002, fault=stands, at=MOMENT).run()
    first = next(order.shift for now, order in run.orders if now > MOMENT + 0.1)
    assert run.stop is None, run.reason
    assert first == pytest.approx(0.016 + 0.002 - 2.0 * STEP, abs=1.2e-3)
    assert run.orders[-1][1].shift < 1e-3  # and the rest is made good with time


@pytest.mark.slow
@pytest.mark.parametrize(('mode', 'seed'), [(mode, seed) for seed, mode in enumerate(sorted(MODES))])
def test_a_velocity_that_is_told_wrong_now_and_then_stops_nothing(mode, seed):
    """A driver that divides a way by the length of the wrong cycle is off by any factor, for one reading."""
    rng = np.random.default_rng(seed)

    def glitch(position, velocity, clock):
        wrong = rng.random() < 0.05
        return position, velocity * (rng.uniform(0.3, 1.7, len(velocity)) if wrong else 1.0), None, clock

    run = loop(mode, **lies(glitch, -0.5)).run()
    assert run.stop is None, run.reason
    assert run.supervisor.state is State.RESTED


@pytest.mark.slow
@pytest.mark.parametrize(
    ('glitch', 'mode'),
    each_with_a_mode([(0.0, 0.1, 4.0), (0.8, 0.1, -3.0), (0.4, 0.6, -3.0)], also=[(1.2, 0.6, 4.0)]),
)
def test_a_velocity_that_stands_alone_after_a_gap_neither_bends_a_stop_nor_repeats_it(mode, glitch):
    """At 3 Hz the one reading may be that of a wrong cycle, before the stop or after it."""
    later, since, factor = glitch
    moment = MOMENT + later
    said = [moment]

    def change(position, velocity, clock):
        if clock - EPOCH - said[-1] < 0.33:
            return None
        said.append(clock - EPOCH)
        return position, velocity * (factor if said[-1] > moment + since else 1.0), None, clock

    run = loop(mode, **lies(change, moment)).run()
    assert run.reason.startswith('the joint states cannot be watched'), run.reason
    assert run.supervisor.stops == 1
    assert run.last_motion() < run.stopped_at + 1.1
    assert_within_limits(run, moment)


@pytest.mark.slow
@settings(deadline=None, max_examples=3)
@given(seed=st.integers(0, 10**6), mode=modes, feedback=st.booleans())
def test_joint_states_that_are_lost_in_bursts_stop_nothing_where_they_may_miss(seed, mode, feedback):
    rng = np.random.default_rng(seed)
    longest, gone = rng.uniform(0.1, 1.5), [-0.5]
    while gone[-1] < PLAN.reference.duration:
        gone += (gone[-1] + np.cumsum(rng.uniform([0.3, 0.03], [1.0, longest]))).tolist()

    def shown(loop, position, velocity, effort):
        return None if np.searchsorted(gone, loop.now, 'right') % 2 == 0 else (position, velocity, effort, loop.clock)

    config = WatchdogConfig(joint_state_timeout=5.0)
    run = loop(mode, feedback=feedback, shown=shown, config=config).run()
    assert run.stop is None, run.reason
    assert run.supervisor.state is State.RESTED


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_the_end_of_a_run_is_judged_by_what_was_seen_of_it(mode):
    end = PLAN.reference.duration

    def shown(loop, position, velocity, effort):
        return None if end - 0.5 < loop.now < end + 1.5 else (position, velocity, effort, loop.clock)

    run = loop(mode, shown=shown, config=WatchdogConfig(joint_state_timeout=5.0)).run()
    assert run.stop is None, run.reason
    assert run.rested_at > end + 1.5


@pytest.mark.slow
def test_a_controller_that_paused_as_the_arm_set_out_is_not_sent_what_it_would_leap_to():
    """It caught up by itself, and was stopped in the middle of that: 1.60 times the acceleration limit."""
    (outcome,) = random_faults(1, 41)
    assert outcome.fault.name == 'the controller is inactive'
    assert outcome.acceleration < 1.0


@pytest.mark.parametrize(('moves', 'shift'), [(True, 0.0), (False, None)])
def test_an_arm_that_stands_as_its_path_sets_out_is_not_sent_the_next_piece(moves, shift):
    """It is as good as on its path still, and would leap to where that has got when the controller takes the piece."""
    following = Following(PLAN, WatchdogConfig())
    for time in np.arange(-0.3, 0.06, STEP):
        motion = following.reference(time if moves else 0.0)
        following.belief.receive(motion.position, motion.velocity, time, BOOT + time)
    assert following.shift(0.06, 0.11) == shift


def test_an_arm_just_outside_its_limits_is_led_inside_and_must_stay_there():
    limit = CHECK.limits.upper[0]
    config = RunConfig(periods=2, settling_time=0.3, ramp_velocity=1.5)
    following = Following(plan_run(np.array([limit + 0.08, 0.0, 0.0]), TRAJECTORY, CHECK, config), WatchdogConfig())
    for time in np.arange(-0.3, 0.0, STEP):
        place = np.array([limit + 0.08 - 0.085 * (time + 0.3) / 0.3, 0.0, 0.0])
        assert following.receive(place, np.array([-0.28, 0.0, 0.0]), time, BOOT + time) is None
    out = np.array([0.015, 0.0, 0.0])
    said = [following.receive(place + k * out, None, 0.02 * k, BOOT + 0.02 * k) for k in range(5)]
    assert said[:2] == [None, None]
    assert 'outside its limits' in said[-1]


@pytest.mark.slow
def test_a_window_that_comes_too_late_for_a_controller_that_blends_is_left_out():
    """A node without processor for a third of a second: all of the window was led later by what it came late."""
    (outcome,) = random_faults(1, 7244)
    assert outcome.fault.name == 'the node is starved'
    assert outcome.wrong == '', outcome
    assert outcome.reaction > 5.0  # the next ones overlap it, and the run goes on


@pytest.mark.slow
def test_another_commander_that_takes_over_at_once_is_not_thought_to_brake_as_the_path_does():
    """It went on at the speed of before where the path braked: 1.39 times the acceleration limit."""
    (outcome,) = random_faults(1, 5217)
    assert outcome.fault.name == 'another commander'
    assert outcome.acceleration < 1.0


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_another_commander_that_leads_straight_on_is_stopped_from_there(mode):
    """The path turns, the arm does not, and the stop is under way for as long as it may be: 1.48 times the limit."""
    moment = MOMENT + 0.6

    def takes_over(loop):
        if not loop.other_leads and not loop.supervisor.stops:
            far, still = (loop.position + 1.6 * loop.velocity).tolist(), [0.0, 0.0, 0.0]
            point = CommandPoint(2.0, far, still, still)
            loop.controller.command(MODEL.joint_names, None, [point], loop.now, (loop.position, loop.velocity))
            loop.other_leads = True
            loop.supervisor.report('/other can command the arm too now', foreign=True)

    run = loop(mode, fault=takes_over, at=moment, latency=0.1).run()
    assert run.stopped_at < moment + 2 * STEP
    assert run.supervisor.stops == 1
    assert_within_limits(run, run.stopped_at + run.latency)


@pytest.mark.slow
@pytest.mark.parametrize('seed', [1240, 2746, 4863])
def test_another_commander_that_only_appears_near_a_limit_is_no_reason_to_go_there(seed):
    """Going straight on from where the path turns round would have ended beyond a position limit."""
    (outcome,) = random_faults(1, seed)
    assert outcome.fault.name == 'another commander'
    assert outcome.wrong == '', outcome
    assert outcome.excess < 0.0
    assert outcome.rest - outcome.reaction < 0.45


@pytest.mark.slow
@pytest.mark.parametrize(('seed', 'names'), [
    (5084, 'joint states are silent, joints are swapped'),
    (5188, 'a position drifts, another commander'),
    (5288, 'messages are out of order, the node is starved'),
    (5321, 'velocities vanish, another commander'),
    (5463, 'positions in another unit, another commander'),
    (5373, 'a joint is pushed, joint states ever later'),
    (5939, 'stamps stand still, the controller is inactive'),
    (5951, 'a position drifts, another commander'),
    (6716, 'stamps are off, another commander'),
    (980028, 'not finite, another commander'),
    (980046, 'the node is starved, velocities in another unit'),
    (980155, 'speed scaling, and back, stamps jitter'),
    (2100049, 'messages are lost, joints are swapped'),
])  # fmt: skip
def test_a_second_fault_is_no_exception_either(seed, names):
    """A lie after a gap led an arm at rest by a radian, 17 times its limit; one joint that lied hid all others."""
    (outcome,) = random_faults(1, seed, pair=True)
    assert f'{outcome.fault.name}, {outcome.fault.later.name}' == names
    assert outcome.wrong == '', outcome


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(fastest=st.floats(0.0, 2.0), size=st.floats(0.15, 0.5), at=st.floats(-0.3, -0.1), mode=modes)
@example(fastest=np.inf, size=0.19, at=-0.39, mode='measured')
@example(fastest=float(np.log10(30.0)), size=0.28, at=-0.39, mode='measured')
def test_an_arm_at_rest_is_not_led_away_by_a_lie_whatever_its_limits_are(fastest, size, at, mode):
    """Two exchanged readings led arms without a velocity limit by 8 rad, and one of 30 rad/s by 13 rad, from rest."""
    model = planar_arm(3, limits=limits(3, 2.6, 2.5 + 10.0**fastest, 8.0))
    check = reference_check(model, ExcitationConfig())
    run = RunConfig(periods=2, settling_time=0.3, ramp_velocity=1.5)
    run = replace(run, trajectory_replacement='blend') if mode == 'blend' else run
    plan = plan_run(np.zeros(3), TRAJECTORY, check, run)
    exchanged = lies(lambda q, v, t: (q + np.array([size, -size, 0.0]), v, None, t), at)
    stopped = loop(mode, plan=plan, **exchanged).run()
    assert 'jumps by' in stopped.reason
    assert stopped.way(-0.5) < 0.02


@pytest.mark.slow
def test_an_arm_of_which_joints_are_not_seen_is_not_led_once_more():
    """It rested as its last window says; a stop from where it was thought to be led a joint by 1.5 rad in 0.5 s."""
    (outcome,) = random_faults(1, 2200131, pair=True)
    assert (outcome.fault.name, outcome.fault.later.name) == ('messages are out of order', 'messages are lost')
    assert outcome.acceleration < 1.0
    assert outcome.rest - outcome.reaction < 2.0


@pytest.mark.slow
@pytest.mark.parametrize(('seed', 'name'), [
    (9748, 'a drive is weak'),
    (50648, 'a drive is weak'),
    (40103, 'messages are lost'),
    (50739, 'a joint is pushed'),
])  # fmt: skip
def test_what_does_not_do_as_the_last_message_says_is_stopped_from_where_it_may_be(seed, name):
    """Weak drives crept to the end of their stop for 4 s, and what was led elsewhere swung out at 3.4 times a limit."""
    (outcome,) = random_faults(1, seed)
    assert outcome.fault.name == name
    assert outcome.wrong == '', outcome
    assert outcome.acceleration < 1.0


@pytest.mark.slow
@settings(deadline=None, max_examples=6)
@given(seed=st.integers(0, 10**6), mode=modes)
@example(seed=10, mode='blend')
@example(seed=29, mode='blend')
def test_an_arm_that_stood_unseen_is_stopped_within_its_limits(seed, mode):
    """Its controller was not active for a moment, and holds the arm there; joint states show that no more.

    It is led no further then: the next piece would make it leap to where it begins, at four times its limits.
    """
    rng = np.random.default_rng(seed)
    since, lasts = MOMENT + float(rng.uniform(0.0, 4.0)), float(rng.uniform(0.02, 0.3))

    def pause(loop):
        loop.controller.set_active(loop.now > since + lasts)

    shown = lambda loop, q, v, e: None if loop.now >= since else (q, v, e, loop.clock)  # noqa: E731
    run = loop(mode, fault=pause, at=since, shown=shown, patience=2.5).run()
    assert run.reason.startswith('no joint state for 0.5')
    stands = min(now for now in run.arrivals if now > run.stopped_at)
    _, acceleration = run.peaks(stands + 4 * STEP)
    assert (acceleration <= run.model.limits.acceleration).all(), acceleration
    assert run.last_motion() - run.stopped_at < 1.1


@pytest.mark.slow
@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 10**6), mode=modes)
def test_an_arm_that_lost_some_pieces_does_not_leap_at_the_next(seed, mode):
    """It brakes as the last one says that came: where the next begins it is not."""
    rng = np.random.default_rng(seed)
    since, lasts = MOMENT + float(rng.uniform(0.0, 3.0)), float(rng.uniform(0.1, 1.6))
    run = loop(mode, lose=lambda order, now: not order.stop and since < now < since + lasts, since=since).run()
    # A controller that blends may brake already, with knots close to each other, as the next one comes and costs it a
    # cycle: at most 2.8 times its limits with 240 seeds, where knots 20 ms apart had made it 8.1 times.
    brakes = mode == 'blend' and lasts > 0.6
    assert (run.peaks(-0.5)[1] < (3.0 if brakes else 1.1) * MODEL.limits.acceleration).all()
    assert run.final_speed() < 1e-3
    assert run.supervisor.stops <= 1


@pytest.mark.parametrize('mode', sorted(MODES))
def test_another_commander_that_appears_in_a_stop_is_a_reason_for_another(mode):
    """One more, at once: whether it leads the arm somewhere is not waited for."""

    def appears(loop):
        loop.supervisor.report('/other can command the arm too now', foreign=True)

    run = loop(mode, request=MOMENT, fault=appears, at=MOMENT + 0.25).run()
    _, again = (now for now, order in run.orders if order.stop)
    assert again == pytest.approx(MOMENT + 0.25, abs=2 * STEP)
    assert run.supervisor.state is State.RESTED
    assert run.last_motion() < MOMENT + 1.2
    assert_within_limits(run, MOMENT)


@pytest.mark.slow
def test_an_arm_is_not_led_far_by_a_lie_after_a_gap():
    """It rests at its end, and a reading that a drive could have made true in the gap shows it a radian away."""
    end = PLAN.reference.duration

    def shown(loop, position, velocity, effort):
        if loop.now < end - 0.1:
            return position, velocity, effort, loop.clock
        return None if loop.now < end + 0.3 else (position + 1.0, velocity, effort, loop.clock)

    run = Loop(shown=shown, since=end - 0.1).run()
    assert 'away from its reference' in run.reason, run.reason  # and not the silence, which is shorter than allowed
    assert_within_limits(run, run.stopped_at)


def test_a_run_whose_velocities_vanish_is_stopped_and_seen_to_rest():
    run = Loop(**lies(lambda q, v, t: (q, None, None, t))).run()
    assert run.reason == 'the joint states hold no velocities any more'
    assert run.supervisor.state is State.RESTED


@pytest.mark.slow
@settings(deadline=None, max_examples=5)
@given(seed=st.integers(0, 10**6), mode=modes, latency=st.floats(0.002, 0.05))
def test_no_random_fault_is_an_exception(seed, mode, latency):
    """A thousand of them: ``python -m benchmark.faults``."""
    rng, plan = np.random.default_rng(seed), BLEND_PLAN if mode == 'blend' else PLAN
    outcome = run_fault(draw(rng, plan), plan, latency=latency, **MODES[mode])
    assert outcome.wrong == '', outcome


@pytest.mark.slow
@settings(deadline=None, max_examples=8)
@given(mode=modes, moment=st.floats(-0.3, PLAN.end), part=st.floats(0.0, 1.0), feedback=st.booleans())
@example(mode='blend', moment=1.5, part=1.0, feedback=False)
def test_a_stop_on_request_keeps_the_limits(mode, moment, part, feedback):
    latency = part * (0.05 if mode == 'blend' else 0.1)  # windows that take longer are led as much later, and harder
    run = loop(mode, request=moment, latency=latency, feedback=feedback).run()
    assert run.reason == 'request'
    assert run.supervisor.state is State.RESTED
    assert run.last_motion() < moment + 1.3
    assert_within_limits(run, moment)


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_the_largest_lie_leads_no_further_than_none(mode):
    usual = loop(mode, request=MOMENT).run().way(MOMENT)
    for size in (0.5, 2.0 * np.pi, 100.0, 1e9, 1e300, np.nan) if mode == 'measured' else (0.5, 1e300):
        shown = lies(lambda q, v, t, size=size: (q + size * np.eye(3)[1], v, None, t))
        run = loop(mode, **shown, patience=2.0).run()
        assert run.stopped_at < MOMENT + 0.02, size
        assert run.last_motion() < MOMENT + 1.0, size
        assert run.way(MOMENT) < usual + 0.1, size
        assert_within_limits(run, MOMENT)


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_run_has_not_ended_while_rest_was_not_seen(mode):
    for change in (lambda q, v, t: None, lambda q, v, t: (q * np.nan, v, None, t)):
        run = loop(mode, **lies(change), patience=3.0).run()
        assert run.supervisor.state is State.STOPPING
        assert run.last_motion() < MOMENT + 1.3
        assert 'no joint state shows that the arm rests' in run.supervisor.rest_text(100.0)


@pytest.mark.slow
@pytest.mark.parametrize('jump', [-0.5, 0.5, -1e9, 1e3])
@pytest.mark.parametrize('simulated', [False, True])
def test_a_clock_that_jumps_is_stopped_for_and_rest_is_seen(jump, simulated):
    def set_clock(loop):
        loop.clock_error = jump

    run = loop('measured', fault=set_clock, at=MOMENT, simulated=simulated).run()
    assert run.reason.startswith('the clock jumped')
    assert run.supervisor.state is State.RESTED
    assert run.last_motion() < MOMENT + 1.0
    (stop,) = [order for _, order in run.orders if order.stop]
    assert stop.window.stamp is None
    assert_within_limits(run, MOMENT)


@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_that_is_held_short_of_its_stop_is_not_believed_at_rest(mode):
    """A paused controller holds it for longer than rest takes to be seen: it is stopped there, and led no further."""

    def pause(loop):
        loop.controller.speed_scaling = 0.0 if loop.now < MOMENT + 1.5 else 1.0

    run = loop(mode, request=MOMENT, fault=pause, at=MOMENT + 0.15).run()
    assert MOMENT + 0.5 < run.rested_at < np.inf
    assert run.way(MOMENT + 0.2) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(
    ('moment', 'mode'), each_with_a_mode(np.linspace(PLAN.begin, PLAN.begin + PLAN.motion.duration, 10).tolist())
)
def test_an_arm_on_its_path_is_stopped_from_where_the_path_leads_it(mode, moment):
    """Not from straight ahead: where the path turns before a limit, that is beyond it."""
    run = loop(mode, request=moment, noise=0.0).run()
    (sent,) = [now for now, order in run.orders if order.stop]
    starts = run.supervisor._stop.starts
    for start, later in zip(starts, (0.05, 0.0, 0.1), strict=False):
        position, velocity, _ = run.plan.reference.evaluate([sent + later])
        assert np.abs(start.position - position[0]).max() < 0.02
        assert np.abs(start.velocity - velocity[0]).max() < 0.1


@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_stop_that_is_lost_is_repeated(mode):
    run = loop(mode, request=MOMENT, lose=lambda order, now: order.stop and now < MOMENT + 0.1, since=MOMENT).run()
    first, again = (now for now, order in run.orders if order.stop)
    (lost, _), latency = run.supervisor._stops, run.allowed_latency
    assert again < first + latency + lost.duration  # it is seen to be too fast: its end is not waited for
    assert run.supervisor.state is State.RESTED
    assert run.last_motion() < MOMENT + 1.3


@pytest.mark.slow
@pytest.mark.parametrize(('joint', 'mode'), each_with_a_mode([0, 1], also=[2]))
def test_a_joint_that_is_held_is_not_led_on_along_its_path(mode, joint):
    """What it presses with grows with the way that its controller leads it on."""
    held = {}

    def hold(loop):
        held.setdefault('place', float(loop.position[joint]))
        held.setdefault('side', float(np.sign(loop.velocity[joint])))

    def blocked(position):
        if held:
            position = position.copy()
            position[joint] = held['side'] * min(held['side'] * position[joint], held['side'] * held['place'])
        return position

    run = loop(mode, fault=hold, at=MOMENT, blocked=blocked, since=MOMENT).run()
    led = held['side'] * (np.array(run.led)[:, joint] - held['place'])
    when = np.array([row[0] for row in run.track])
    assert run.reason
    assert led.max() < led[when <= run.stopped_at].max() + 0.4
    assert abs(led[-1]) < 0.2
    assert run.last_motion() < run.stopped_at + 1.3


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
@pytest.mark.parametrize('speed', [-1.0, 1.0])
def test_a_joint_that_lies_and_seems_to_move_on_is_stopped_once(mode, speed):
    """It shows the motion of another joint, perhaps: names that were exchanged."""

    def change(position, velocity, clock):
        position[1] += speed * (1.0 + clock - EPOCH - MOMENT)
        velocity[1] = speed
        return position, velocity, None, clock

    run = loop(mode, **lies(change), patience=3.0).run()
    assert 'jumps' in run.reason
    assert run.supervisor.stops == 1
    assert run.last_motion() < MOMENT + 1.0
    assert_within_limits(run, MOMENT)


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_that_is_pushed_is_not_led_on_after_it(mode):
    """Five stops were sent from where it was pushed to; one in the bench led it to its limit."""
    pushing = []

    def pushed(position):
        if pushing:
            ago = min(pushing[0].now - MOMENT, 4.0)
            position = position + 0.8 * np.sin(np.pi * ago / 4.0) ** 2 * np.eye(3)[0]
        return position

    run = loop(mode, fault=pushing.append, at=MOMENT, blocked=pushed, since=MOMENT).run()
    goals = [order.window.position[-1] for _, order in run.orders if order.stop]
    assert len(goals) <= 2
    assert np.abs(goals[-1] - goals[0]).max() < 0.5


def test_an_arm_that_falls_ever_further_behind_is_told_by_the_delay():
    """Readings that come ever later with the stamps of their arrival look so: the arm is nowhere off its path."""
    kept = []

    def later(position, velocity, stamp):
        kept.append((position, velocity))
        return *kept[int(len(kept) / 1.3)], None, stamp

    run = Loop(**lies(later)).run()
    assert 'ms further behind the reference' in run.reason
    assert run.stopped_at < MOMENT + 0.4


@pytest.mark.parametrize('late', [0.0, 0.05])
def test_what_an_arm_gives_way_under_a_load_is_no_delay(late):
    """It turns on to the same side, where a load that holds it back looks like one; a real delay is told beside it."""
    growth = DelayGrowth(1)

    def motion(time):
        return JointMotion(position=0.5 * time - 0.15 * np.cos([4.0 * time]), velocity=0.5 + 0.6 * np.sin([4.0 * time]))

    for time in np.arange(0.0, 12.0, STEP):
        seen = motion(time - (late if time > 6.0 else 0.0))
        bent = replace(seen, position=seen.position - (0.02 if time > 6.0 else 0.0))
        growth.receive(bent, motion(time), time)
    assert growth.known
    assert growth.value == pytest.approx(late, abs=2e-3)


@pytest.mark.slow
def test_a_controller_whose_time_stood_still_is_stopped_from_where_it_goes_on():
    """The arm rests there, but its controller begins at the speed of its path: 1.14 of the acceleration limit."""
    (outcome,) = random_faults(1, 3331)
    assert outcome.fault.name == 'speed scaling, and back'
    assert outcome.acceleration < 1.0


@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_stop_bears_a_controller_whose_time_stood_still_and_that_goes_on(mode):
    """The arm rests; its controller begins at that place of the path, with the speed that the path has there."""

    def stand(loop):
        loop.controller.speed_scaling = 0.0

    run = loop(mode, fault=stand, at=MOMENT, noise=0.0, patience=0.5).run()
    (position,), (velocity,), _ = run.plan.reference.evaluate([MOMENT])
    assert np.abs(velocity).max() > 1.0
    starts = run.supervisor._stops[0].starts
    assert any(
        np.abs(start.position - position).max() < 0.02 and np.abs(start.velocity - velocity).max() < 0.1
        for start in starts
    )


@pytest.mark.slow
@pytest.mark.parametrize(('jump', 'mode'), each_with_a_mode([2.0 * np.pi, 100.0], also=[0.5]))
def test_a_joint_that_lies_does_not_stand_short_of_its_stop(mode, jump):
    """It has another place than its stop's end for ever: one more stop would only move the arm once more."""
    change = lies(lambda q, v, t: (q + np.array([jump, 0.0, 0.0]), v, None, t), MOMENT)
    run = loop(mode, **change).run()
    assert run.supervisor.stops == 1
    assert run.last_motion() < MOMENT + 0.5
    assert run.rested_at < MOMENT + 1.6


@pytest.mark.parametrize('held', [False, True])
def test_an_arm_that_its_controller_holds_is_not_stopped_where_it_stands(held):
    """A controller that ended its goal by itself stands on no way; one that only pauses may go on along it."""

    def stand(loop):
        loop.controller.speed_scaling = 0.0
        if held:
            loop.supervisor.hold()

    run = loop('measured', request=MOMENT, fault=stand, at=MOMENT + 0.15).run()
    assert run.rested_at < np.inf
    assert run.supervisor.stops == (1 if held else 2)
    if held:  # short of its end, where rest takes longer to be believed
        assert run.rested_at > run.supervisor._sent + run.allowed_latency + run.supervisor._stop.duration + 0.8


@pytest.mark.slow
@pytest.mark.parametrize('seed', [7737, 8123, 20087, 20374])
def test_an_arm_that_stands_on_the_way_of_its_stop_is_stopped_there(seed):
    """Its controller's time stood still for longer than rest took to be believed, and led it on after that."""
    (outcome,) = random_faults(1, seed)
    assert outcome.fault.name == 'speed scaling, and back'
    assert outcome.wrong == '', outcome
    assert outcome.acceleration < 1.05


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_lost_window_is_without_effect_and_more_end_at_rest(mode):
    due = PLAN.windows.due(8)
    one = loop(mode, lose=lambda order, now: not order.stop and due - 0.1 < now < due + 0.1, since=due - 0.1).run()
    assert one.stop is None
    assert_within_limits(one, -0.5)
    dead = loop(mode, fault=lambda loop: setattr(loop, 'killed', MOMENT), at=MOMENT).run()
    assert dead.last_motion() < MOMENT + 2.0
    assert_within_limits(dead, -0.5)


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_is_not_led_further_while_it_is_not_seen(mode):
    """Joint states that stay away from a moment on: the piece that is due 0.2 s later is not sent."""
    since = (BLEND_PLAN if mode == 'blend' else PLAN).windows.due(8) - 0.2
    run = loop(mode, shown=lambda arm, q, v, e: None if arm.now > since else (q, v, e, arm.clock), since=since).run()
    assert run.reason.startswith('no joint state for 0.5')
    assert not [now for now, order in run.orders if since + 0.17 < now and not order.stop]


@pytest.mark.slow
@pytest.mark.parametrize(
    ('moment', 'mode'), each_with_a_mode(np.linspace(PLAN.begin, PLAN.begin + PLAN.motion.duration, 10).tolist())
)
def test_somebody_who_could_command_and_does_not_leaves_the_stop_as_it_is(mode, moment):
    """The arm goes on along its path, and the stop ends there, inside all limits."""

    def appears(arm):
        arm.supervisor.report('/other can command the arm too now', foreign=True)

    led, asked = loop(mode, fault=appears, at=moment).run(), loop(mode, request=moment).run()
    assert led.supervisor.breaks == ''
    assert_within_limits(led, led.stopped_at)
    assert led.way(led.stopped_at) < asked.way(asked.stopped_at) + 0.1
    assert led.last_motion() < asked.last_motion() + 0.3


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_that_rests_for_want_of_a_piece_is_not_blamed(mode):
    """A computer that is too busy sends nothing for three seconds, and then sees the arm where its last window ends."""

    def starve(loop):
        supervisor, loop.fault = loop.supervisor, lambda loop: None
        work, until = supervisor.tick, loop.now + 3.0
        supervisor.tick = lambda *args, **kept: work(*args, **kept) if loop.now > until else []

    run = loop(mode, fault=starve, at=MOMENT).run()
    assert 'this computer is too busy' in run.reason
    assert run.supervisor.state is State.RESTED
    assert_within_limits(run, -0.5)


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
def test_nor_is_its_controller_that_is_heard_first(mode):
    """It was said to be led by somebody else: it stands where the last window ends, and the path has gone on."""

    def starve(loop):
        loop.starved = MOMENT + 3.0
        if loop.now >= loop.starved:
            now = BOOT + loop.now
            loop.supervisor.clock.read(loop.clock, now, simulated=False)
            loop.supervisor.controller_state(loop.led[-1], loop.position, loop.clock, now)

    run = loop(mode, fault=starve, at=MOMENT).run()
    assert 'this computer is too busy' in run.reason
    assert run.supervisor.state is State.RESTED


@pytest.mark.parametrize('mode', sorted(MODES))
def test_a_lost_start_is_said_within_a_second(mode):
    run = loop(mode, lose_first=True).run()
    assert run.stopped_at < 1.0
    assert 'the controller did not take the trajectory' in run.reason
    assert_within_limits(run, -0.5)


@pytest.mark.slow
@pytest.mark.parametrize(('before', 'mode'), each_with_a_mode(np.arange(0.05, 0.4, 0.05).tolist(), also=[np.inf]))
def test_nothing_sees_an_arm_at_rest_that_sets_out_later(mode, before):
    """A stop that is lost, before the first motion or before the rest that the ramp ends with: it would be let go."""
    moment = -0.4 if np.isinf(before) else PLAN.begin - 0.3 - before
    run = loop(mode, request=moment, lose=lambda order, now: order.stop and now < moment + 0.1, since=moment).run()
    assert run.supervisor.stops == 2
    assert run.supervisor.state is State.RESTED
    assert run.rested_at > run.last_motion()


@settings(deadline=None, max_examples=100)
@given(
    position=st.tuples(*[st.floats(-2.5, 2.5)] * 3),
    velocity=st.tuples(*[st.floats(-2.5, 2.5)] * 3),
    away=st.tuples(*[st.floats(-0.3, 0.3)] * 3),
    latency=st.floats(0.0, 0.1),
    arrival=st.floats(0.0, 1.0),
)
def test_a_stop_keeps_the_limits_wherever_the_controller_begins(position, velocity, away, latency, arrival):
    start = JointMotion(position=np.array(position), velocity=np.array(velocity))
    led = JointMotion(position=start.position + away, velocity=start.velocity)
    starts = [start.after(0.5 * latency), start, start.after(latency), led]
    plan = plan_stop(starts, [CHECK])
    for begin in (start.after(arrival * latency), led):
        move = StopPlan(starts=(begin,), goal=plan.goal, duration=plan.duration)
        q, dq, ddq = move.evaluate(np.linspace(0.0, move.duration, 60))
        assert (np.abs(ddq) <= MODEL.limits.acceleration * 1.05).all()
        assert (np.abs(dq) <= np.maximum(MODEL.limits.velocity, np.abs(begin.velocity)) * 1.01).all()
        np.testing.assert_allclose(q[-1], plan.goal, atol=1e-9)
        assert (np.abs(dq) <= 1.01 * np.abs(plan.motions(0.0)[1]).max() + 3.0).all()
    if plan.breaks:
        assert 'the largest allowed' in plan.breaks or 'the smallest allowed' in plan.breaks


@cache
def run_of_the_packaged_arm(**design):
    """Return the reference of a design of the fault bench's arm, and what it has to keep."""
    model, config, check = arm()
    trajectory = optimize_excitation(model, replace(config, **design)).trajectory
    run = RunConfig(periods=1, settling_time=0.3, ramp_velocity=1.0)
    return plan_run(trajectory.position([0.0])[0], trajectory, check, run).reference, check


def stops_of_the_packaged_arm(latency, **design):
    """Yield the time, the stop, and the states it may begin in, along the run of a design of the fault bench's arm."""
    reference, check = run_of_the_packaged_arm(**design)
    for time in np.arange(0.0, reference.duration, 0.04):
        led = [motion_at(reference, time + part * latency) for part in (0.5, 0.0, 1.0)]
        measured = [replace(motion, acceleration=None) for motion in led]
        starts = [*measured, *led]
        plan = plan_stop(
            starts, [check], PathPlace(reference=reference, time=time + 0.5 * latency, along=np.ones(6, dtype=bool))
        )
        ways = (replace(plan, starts=(start,)).evaluate(np.linspace(0.0, plan.duration, 100))[0] for start in starts)
        places = np.concatenate(list(ways))
        yield plan, float(np.maximum(check.limits.lower - places, places - check.limits.upper).max())


@pytest.mark.slow
@pytest.mark.parametrize('latency', [0.0, 0.1])
def test_a_design_with_room_can_be_stopped_everywhere(latency):
    """Whether the controller begins at the measured state or at its reference, now or by the latency later."""
    for plan, beyond in stops_of_the_packaged_arm(latency):
        assert plan.breaks == ''
        assert beyond < 0.0


@pytest.mark.slow
def test_a_run_up_to_its_position_limits_is_refused():
    """The path turns at the limit with all the acceleration there is; see docs/stopping.md."""
    with pytest.raises(ExcitationError, match=r"no stop at t = .* position of joint 'shoulder_lift_joint' is"):
        list(stops_of_the_packaged_arm(0.1, position_margin=0.0, start_at_rest=True))


def test_a_stop_that_says_it_keeps_the_limits_keeps_them_whenever_it_is_taken():
    rng, kept = np.random.default_rng(0), 0
    for _ in range(200):
        place = rng.uniform(-2.5, 2.5, 3)
        now = JointMotion(position=place, velocity=rng.uniform(-2.0, 2.0, 3))
        starts = [now.after(0.05), now, now.after(0.1)]
        plan = plan_stop(starts, [CHECK])
        if plan.breaks:
            continue
        kept += 1
        for start in starts:
            way = replace(plan, starts=(start,)).evaluate(np.linspace(0.0, plan.duration, 50))[0]
            assert np.abs(way).max() <= max(2.6, np.abs(start.position).max()) + 1e-3
    assert kept > 50


def test_a_stop_ends_inside_the_limits_by_a_margin():
    start = JointMotion(position=np.array([2.45, 0.0, 0.0]), velocity=np.array([1.2, 0.0, 0.0]))
    plan = plan_stop([start], [CHECK])
    assert plan.breaks == ''
    assert plan.goal[0] <= 2.6 - 0.009


def test_a_stop_that_begins_beyond_a_limit_keeps_the_others():
    """A design at 30 % of the velocity limits, and an arm that somebody else moves at twice that."""
    model = planar_arm(3, limits=limits(3, 2.6, 2.5, 40.0, effort=[100.0, 22.0, 100.0]))
    check = reference_check(model, ExcitationConfig(velocity_scaling=0.3))
    start = JointMotion(position=np.array([0.0, 0.5 * np.pi, 0.0]), velocity=np.array([0.0, 1.7, 0.0]))
    plan = plan_stop([start], [check])
    torque = inverse_dynamics(model, *plan.evaluate(np.linspace(0.0, plan.duration, 200)))
    assert plan.breaks == ''
    assert 17.0 < np.abs(torque[:, 1]).max() < 22.2


def test_a_stop_that_nothing_can_keep_inside_is_the_shortest_and_says_what_it_breaks():
    start = JointMotion(position=np.array([2.5, 0.0, 0.0]), velocity=np.array([2.4, 0.0, 0.0]))
    plan = plan_stop([start], [CHECK])
    assert "position of joint 'joint1' is" in plan.breaks
    assert 'the largest allowed is 2.6 rad' in plan.breaks
    assert plan.goal[0] < 2.5 + 2.4**2 / 8.0 + 0.1


def test_a_stop_is_planned_at_once():
    """The executor waits for it, and on a busy machine the arm moves on meanwhile: processor time, best of ten."""
    start = JointMotion(position=np.zeros(3), velocity=np.array([2.0, -1.0, 0.5]))
    took = []
    for _ in range(10):
        began = process_time()
        plan_stop([start.after(0.05), start, start.after(0.1), start.after(-0.1)], [CHECK])
        took.append(process_time() - began)
    assert min(took) < 5e-3


@pytest.mark.slow
def test_seven_joints_over_a_ground_and_clear_of_each_other_are_stopped_at_once_too():
    """All that a stop takes, with whoever may lead the arm, from its decision on: processor time, best of six."""
    model = RobotModel.from_urdf(Path(__file__).parents[1] / 'robots' / 'panda.urdf')
    model = replace(model, limits=replace(model.limits, acceleration=np.full(model.n, 8.0)))
    config = ExcitationConfig(
        period=3.0, harmonics=3, starts=1, iterations=10, velocity_scaling=0.8, acceleration_scaling=0.8, ground=True,
        ground_height=-0.1, link_radius=0.05, clearance=0.02,
    )  # fmt: skip
    check, trajectory = reference_check(model, config), optimize_excitation(model, config).trajectory
    plan = plan_run(trajectory.position([0.0])[0], trajectory, check, RunConfig(periods=1), arm_check(model, config))
    took = []
    for moment in plan.begin + np.linspace(0.3, 2.7, 6):

        def appears(loop):
            loop.supervisor.report('/other can command the arm too now', foreign=True)

        took += Loop(plan=plan, fault=appears, at=moment, patience=0.1).run().took
    assert len(took) >= 6
    assert min(took) < 1e-2  # 3 ms where it was measured


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(4))
def test_without_acceleration_limits_a_stop_brakes_as_the_run_does_and_ends_inside(seed):
    rng = np.random.default_rng(seed)
    swing = FourierTrajectory(
        a=np.outer(rng.uniform(4.5, 5.0, 3), [1.0, 0.0]), b=np.zeros((3, 2)), offset=np.zeros(3), base_frequency=0.6
    )
    largest = float(np.abs(swing.position(np.linspace(0.0, 1.7, 500))).max())
    model = planar_arm(3, limits=limits(3, 1.05 * largest, 6.0, np.inf))
    check = reference_check(model, ExcitationConfig())
    plan = plan_run(np.zeros(3), swing, check, RunConfig(periods=3, settling_time=0.3, ramp_velocity=1.5))
    for moment in rng.uniform(plan.begin, plan.end, 3):
        run = Loop(plan=plan, request=moment).run()
        assert run.reason == 'request'
        assert run.supervisor.breaks == '', moment
        assert run.final_speed() < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(30))
def test_simulated_time_of_any_rate_that_stalls_and_catches_up_is_no_jump(seed):
    rng = np.random.default_rng(seed)
    rate, tick = 10.0 ** rng.uniform(-1.0, 1.0), 10.0 ** rng.uniform(-3.0, -1.4)
    clock = RunClock(10.0, 10.0, 0.0, simulated=True)
    heard, behind, now = 10.0, 0.0, 0.0
    for _ in range(1000):
        passed = rng.choice([1e-4, 0.01, 0.15], p=[0.5, 0.45, 0.05])  # of the node: messages wait while it stalls
        now += passed
        behind = rng.uniform(0.0, 0.2) if rng.uniform() < 0.05 else max(behind - 0.05, 0.0)  # the simulator
        made = 10.0 + rate * (now - behind)
        stamp = max(made, heard) - rng.uniform(0.0, 0.1) * rate  # a joint state may come before the clock, or after it
        clock.read(heard, now, simulated=True)
        assert clock.place(stamp, 0.25, 0.75) == (pytest.approx(stamp - 10.0), ''), rate
        heard = max(heard, made - made % tick)
        clock.read(heard, now, simulated=True)
        assert clock.problem == '', (rate, now)
    for _ in range(100):
        now, heard = now + 0.01, heard + 0.01 * rate
        clock.read(heard, now, simulated=True)
    clock.read(heard + 0.3 + 0.4 * rate, now + 0.001, simulated=True)
    assert clock.problem.startswith('the clock jumped ahead')


@pytest.mark.slow
@pytest.mark.parametrize('seed', range(40))
def test_a_simulator_without_processor_for_a_while_does_not_jump(seed):
    rng = np.random.default_rng(seed)
    rate, tick = 10.0 ** rng.uniform(-1.0, 1.3), rng.choice([0.001, 0.01, 0.04])
    clock = RunClock(10.0, 10.0, 0.0, simulated=True)
    now, begin, made, heard, share, until = 0.0, 0.0, 0.0, 10.0, 1.0, 0.0
    for _ in range(700):
        end = now + rng.choice([1e-4, 0.01, 0.15], p=[0.5, 0.45, 0.05])  # the node stalls too
        while now < end:
            if now >= until:
                share = rng.choice([0.0, 0.3, 0.7, 1.0, 30.0])  # of the speed that is wanted; it may compute faster
                until = now + rng.exponential(0.3)
            step = min(2e-3, end - now)
            now += step
            made = min(made + share * rate * step, rate * (now - begin))
            begin = max(begin, now - made / rate - 0.02)  # which is all that it makes up for
        clock.read(heard, now, simulated=True)
        heard = max(heard, 10.0 + made - made % tick)
        clock.read(heard, now, simulated=True)
        assert clock.problem == '', (rate, now)


@pytest.mark.parametrize('rate', [1.0, 3.0, 10.0])
def test_a_jump_of_simulated_time_counts_in_real_time(rate):
    """A quarter of a second of a simulator's fastest, also after it went slowly for a while."""
    for part, jumps in ((0.9, False), (1.5, True)):
        clock = RunClock(10.0, 10.0, 0.0, simulated=True)
        now, heard = 0.0, 10.0
        for speed in [rate] * 200 + [1.0] * 500:
            now, heard = now + 0.01, heard + 0.01 * speed
            clock.read(heard, now, simulated=True)
        assert clock.problem == ''
        clock.read(heard + part * 0.25 * rate, now + 1e-4, simulated=True)
        assert bool(clock.problem) == jumps, (rate, part)


@pytest.mark.parametrize('patience', [0.5, 3.0, 20.0])
def test_simulated_time_may_stall_as_long_as_joint_states_may_miss(patience):
    """A node that had no processor hears the oldest message that waits first, and the newest at once after it."""
    for part, jumps in ((0.95, False), (1.05, True)):
        clock = RunClock(10.0, 10.0, 0.0, simulated=True, stall=patience)
        for k in range(1, 300):
            clock.read(10.0 + 0.01 * k, 0.01 * k, simulated=True)
        begun = 0.01 * 299
        clock.read(10.01 + begun, begun + 2.0 * patience, simulated=True)
        clock.read(10.01 + begun + part * (patience + 0.25), begun + 2.0 * patience + 1e-5, simulated=True)
        assert bool(clock.problem) == jumps, part


@pytest.mark.parametrize('rate', [1.0, 4.0])
@pytest.mark.parametrize(('took', 'jumps'), [(0.3, False), (0.01, True)])
def test_a_jump_of_simulated_time_is_judged_by_when_its_messages_were_sent(rate, took, jumps):
    """A simulator that got no processor at first says nothing of its rate, nor does a node that got none later."""
    clock = RunClock(10.0, 10.0, 0.0, simulated=True)
    heard, now = 10.0, 0.0
    for _ in range(150):
        heard, now = heard + 1e-3, now + 0.01
        clock.read(heard, now, simulated=True, sent=1000.0 + now)
    sent = 1000.0 + now
    clock.read(heard + 1e-3, now + 0.3, simulated=True, sent=sent + 0.01)  # the oldest that waits, and the newest
    leap = 0.3 * rate + 0.2
    clock.read(heard + leap, now + 0.3001, simulated=True, sent=sent + 0.01 + took)
    assert clock.problem == (f'the clock jumped ahead by {leap - 1e-3:.2f} s' if jumps else '')


def test_the_clock_of_a_run_goes_on_after_a_jump():
    clock = RunClock(100.0, 99.5, 7.0, simulated=False)
    assert clock.read(99.6, 7.1, simulated=False) == pytest.approx(-0.4)
    assert clock.read(42.0, 7.2, simulated=False) == pytest.approx(-0.3)
    assert not clock.trusted
    assert clock.read(43.0, 8.2, simulated=False) == pytest.approx(0.7)
    assert clock.place(1234.5, 0.25, 0.75) == (clock.time, '')


def test_the_time_of_a_run_does_not_follow_a_clock_that_is_set():
    """One that is set by more than any clock makes is not used any more."""
    rng = np.random.default_rng(0)
    clock = RunClock(100.0, 100.0, 7.0, simulated=False)
    for k in range(1, 500):
        shown = 100.0 + 0.01 * k + rng.uniform(-9e-3, 9e-3)
        assert clock.read(shown, 7.0 + 0.01 * k, simulated=False) == pytest.approx(0.01 * k)
        assert clock.begin == 100.0
        assert clock.place(shown - 0.03, 0.25, 0.75) == (shown - 0.03 - 100.0, '')
    assert clock.read(105.03, 12.0, simulated=False) == pytest.approx(5.0)
    assert clock.problem == 'the clock jumped ahead by 0.03 s'
    assert clock.read(0.0, 13.0, simulated=False) == pytest.approx(6.0)


@pytest.mark.slow
@pytest.mark.parametrize('mode', ['measured', 'commanded'])
@pytest.mark.parametrize('error', [-0.018, 0.018])
def test_a_clock_that_is_set_a_little_for_all_moves_no_arm_by_more_than_a_hundredth(mode, error):
    """The controller reads the same clock: the next piece would leap, and is stamped as late as the arm seems to be."""

    def set_clock(loop):
        loop.clock_error = error

    run = loop(mode, fault=set_clock, at=MOMENT, shared=True).run()
    assert run.stop is None, run.reason
    assert run.supervisor.state is State.RESTED
    leaps = np.abs(np.diff(run.led, n=2, axis=0)).max()
    assert leaps < 0.01 + 1.1 * MODEL.limits.acceleration.max() * STEP**2, leaps


@pytest.mark.slow
@pytest.mark.parametrize('mode', sorted(MODES))
@pytest.mark.parametrize(('rate', 'later'), [(-1.0, 0.0), (0.0, 0.4), (2.5, 0.8), (0.0, 1.2)])
def test_a_clock_that_goes_wrong_is_stopped_for_from_where_the_arm_is(mode, rate, later):
    moment = MOMENT + later

    def goes_wrong(loop):
        loop.clock_error = (rate - 1.0) * (loop.now - moment)

    run = loop(mode, fault=goes_wrong, at=moment).run()
    assert run.reason.startswith('the clock jumped'), run.reason
    assert run.supervisor.stops == 1
    assert_within_limits(run, run.stopped_at)


def test_a_reading_whose_stamp_is_not_used_is_as_late_as_the_last_one_whose_was():
    clock = RunClock(100.0, 100.0, 7.0, simulated=False)
    clock.read(101.0, 8.0, simulated=False)
    assert clock.place(100.7, 0.25, 0.75) == (pytest.approx(0.7), '')
    for stamp, said in ((1000.0, 'ahead'), (50.0, 'behind'), (None, '')):
        clock.read(101.01, 8.01, simulated=False)
        time, text = clock.place(stamp, 0.25, 0.75)
        assert time == pytest.approx(0.71)
        assert said in text
    clock.read(102.01, 9.01, simulated=False)  # silence explains what had to wait
    for stamp, lag in ((101.0, 0.76), (101.5, 0.26), (102.0, 0.0)):
        assert clock.place(stamp, 0.25, 0.75) == (pytest.approx(stamp - 100.0), '')
        assert clock.lag == pytest.approx(lag)


@pytest.mark.slow
@pytest.mark.parametrize(('growth', 'mode'), each_with_a_mode([0.1, 0.5], also=[0.2]))
def test_an_arm_whose_readings_come_ever_later_is_stopped_from_where_it_is(mode, growth):
    """Three quarters of a second late, they were thought to be made when they came: 8 times the acceleration limit."""
    kept = []

    def change(position, velocity, clock):
        kept.append((position, velocity, None, clock))
        return kept[int(len(kept) / (1.0 + growth))]

    run = loop(mode, **lies(change, 0.0)).run()
    assert np.isfinite(run.stopped_at)
    assert_within_limits(run, run.stopped_at)


@pytest.mark.parametrize('mode', sorted(MODES))
def test_an_arm_whose_readings_come_late_is_not_thought_to_miss_its_stop(mode):
    """It was stopped six times, each time a little elsewhere, and rested 3 s after the first stop."""
    kept = []

    def change(position, velocity, clock):
        kept.append((position, velocity, None))
        return (*kept[int(len(kept) / 1.6)], clock)

    run = loop(mode, **lies(change, MOMENT + 1.0)).run()
    assert run.supervisor.stops == 1
    assert run.supervisor.state is State.RESTED
    assert run.last_motion() < run.stopped_at + 1.1
    assert_within_limits(run, run.stopped_at)


@pytest.mark.parametrize(('later', 'mode'), each_with_a_mode([0.4, 0.8, 1.2], also=[0.0]))
def test_a_node_that_was_starved_stops_the_arm_from_where_it_is(mode, later):
    """It finds the joint states of most of a second at once; what is older than its patience is no later for it."""
    moment = MOMENT + later
    run = loop(mode, fault=lambda loop: setattr(loop, 'starved', moment + 1.0), at=moment).run()
    assert np.isfinite(run.stopped_at)
    assert_within_limits(run, run.stopped_at)


@pytest.mark.slow
@pytest.mark.parametrize(('later', 'mode'), each_with_a_mode([0.0, 0.4, 0.8, 1.2]))
def test_stamps_that_stand_still_tell_no_speed(mode, later):
    moment = MOMENT + later
    run = loop(mode, **lies(lambda q, v, t: (q, v, None, EPOCH + moment), moment), patience=3.0).run()
    assert run.reason.startswith('no joint state'), run.reason
    assert run.last_motion() < moment + 0.5 + 1.2
    assert_within_limits(run, run.stopped_at)


def test_simulated_time_may_have_any_rate():
    clock = RunClock(10.0, 9.5, 0.0, simulated=True)
    for k in range(1, 1000):
        clock.read(9.5 + 0.05 * k, 0.01 * k, simulated=True)
    assert clock.problem == ''
    clock.read(5.0, 10.0, simulated=True)
    assert clock.problem.startswith('the clock jumped back')


@pytest.mark.parametrize(
    ('comes', 'every', 'blind'), [(True, 1, False), (True, 2, True), (True, 40, True), (False, 1, True)]
)
def test_a_watch_that_was_on_and_cannot_see_says_so(comes, every, blind):
    sight = Sight('efforts', 0.5)
    for k in range(200):
        sight.saw(k * STEP)
    assert sight.problem(200 * STEP) is None
    now = 200 * STEP + 2.0
    assert sight.problem(now) is None  # a node that had no processor was blind itself, and not its watch
    for k in range(125):
        now += STEP
        if comes:
            sight.saw(now, usable=k % every == 0)
        said = sight.problem(now)
    assert (said is not None) is blind
    never = Sight('efforts', 0.5)
    never.saw(0.0, usable=False)
    assert never.problem(10.0) is None


def test_a_controller_that_speaks_once_a_window_may_miss_one():
    """Its first window is told of at 20 Hz, each later one once, 0.24 s apart."""
    sight = Sight('states of the controller', 0.5, enough=ENOUGH_TOLD)
    comes = {*range(0, 1000, 50), *range(1240, 5000, 240)} - {1960, 3160}
    for now in range(5400):
        if now in comes:
            sight.saw(1e-3 * now)
        said = sight.problem(1e-3 * now)
        assert said is None or now > 4840 + 500
    assert said is not None


@pytest.mark.slow
@pytest.mark.parametrize(
    ('rate', 'told'), [(-0.3, True), (0.1, False), (0.1, True), (0.3, True), (0.3, False), (1.0, False)]
)
def test_an_arm_is_not_led_after_readings_that_drift(rate, told):
    """The stop was repeated from the drifting place: 2.6 rad, through the table."""
    usual, run = way_of_a_stop(MOMENT + 0.5), Loop(since=MOMENT, patience=3.0)

    def shown(loop, position, velocity, effort):
        drift = rate * max(loop.now - MOMENT, 0.0)
        return position + drift * np.eye(3)[1], velocity if told else None, effort, loop.clock

    run.shown = shown
    run.run()
    assert np.isfinite(run.stopped_at)
    assert run.supervisor.stops <= 2
    assert run.way(run.stopped_at) < usual + 0.1
    assert_within_limits(run, run.stopped_at)
