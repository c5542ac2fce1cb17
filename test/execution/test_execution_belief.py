# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is believed of joint states: what a drive can have made, and nothing else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.execution.belief import Belief

NAMES, FASTEST, HARDEST = ('a', 'b'), np.array([2.0, 20.0]), np.array([8.0, 8.0])
STEP = 0.002


def seen(position, *, until=2.0, belief=None, velocity=None, begin=0.0):
    """Let a belief see a motion at 500 Hz with an encoder's noise; return it, and the first thing that it said."""
    rng, belief, first = np.random.default_rng(0), belief or Belief(NAMES, FASTEST, HARDEST), None
    for time in np.arange(begin, until, STEP):
        place = np.array([0.3, position(time)]) + 1e-4 * rng.standard_normal(2)
        said = belief.receive(place, None if velocity is None else velocity(time), time, 50.0 + time)
        first = first or said
    return belief, first


def test_an_arm_that_stands_rests_and_one_that_creeps_does_not():
    for position, rests in ((lambda t: -1.2, True), (lambda t: max(0.0, 1.0 - t), True), (lambda t: 0.08 * t, False)):
        belief, said = seen(position)
        assert said is None
        assert belief.resting(1.0) is rests


def test_nothing_is_said_of_rest_before_enough_was_seen():
    assert Belief(NAMES, FASTEST, HARDEST).resting(0.0) is None
    assert seen(lambda t: 0.0, until=1.1)[0].resting(1.0) is None
    assert seen(lambda t: 0.0)[0].resting(3.0) is None


def test_a_velocity_is_measured_or_the_slope_of_the_positions():
    slope, _ = seen(lambda t: 0.7 * t)
    told, _ = seen(lambda t: 0.7 * t, velocity=lambda t: np.array([0.0, 0.75]))
    assert slope.motion.velocity[1] == pytest.approx(0.7, abs=0.02)
    assert told.motion.velocity[1] == 0.75


@pytest.mark.slow
@settings(deadline=None, max_examples=15)
@given(gap=st.floats(0.002, 0.145), speed=st.floats(-2.9, 2.9), every=st.floats(0.03, 0.06))
def test_a_joint_that_was_not_read_for_a_while_moved_all_that_time(gap, speed, every):
    """The others were: its way counts from its own reading before; and a speed above its limit is believed."""
    belief, _ = seen(lambda t: speed * t, until=0.5, belief=Belief(NAMES, np.array([2.0, 2.0]), HARDEST))
    for time in np.arange(0.5, 1.0, STEP):
        read = time > 0.5 + gap and int(time / every) != int((time - STEP) / every)
        belief.receive(np.array([0.3, speed * time if read else np.nan]), None, time, 50.0 + time)
        if read:
            assert belief.motion.velocity[1] == pytest.approx(speed, abs=0.02)


@settings(deadline=None, max_examples=60)
@given(gaps=st.lists(st.floats(0.16, 4.0), min_size=1, max_size=5), phase=st.floats(0.0, 6.0))
def test_a_mean_over_a_long_gap_is_no_velocity(gaps, phase):
    """Where joint states were lost, the joint may have turned back since: what is measured now counts."""
    belief, speed, time = Belief(NAMES, FASTEST, HARDEST), 0.3, 0.0
    for gap in gaps:
        time += gap
        place, velocity = speed * np.sin(time + phase), speed * np.cos(time + phase)
        assert belief.receive(np.array([0.3, place]), np.array([0.0, velocity]), time, 50.0 + time) is None
        assert belief.motion.velocity[1] == pytest.approx(velocity, abs=1e-12)


def test_a_driver_that_tells_no_velocities_is_not_believed_after_a_gap():
    """It tells zeros: what positions show, over whatever time, is nearer to the truth than that the joint stands."""
    belief, _ = seen(lambda t: 0.7 * t, velocity=lambda t: np.zeros(2))
    assert belief.receive(np.array([0.3, 0.7 * 3.0]), np.zeros(2), 3.0, 53.0) is None
    assert belief.motion.velocity[1] == pytest.approx(0.7, abs=0.02)


@pytest.mark.slow
@settings(deadline=None, max_examples=25)
@given(size=st.floats(-2.0, 300.0), sign=st.sampled_from([-1.0, 1.0]))
def test_the_larger_a_lie_the_less_it_moves_the_belief(size, sign):
    """From a tenth of a radian to 1e300: the place is where it was, and goes on with what later readings move by."""
    lie = sign * 0.1 * 10.0**size if size > 0.0 else sign * 0.1
    with np.errstate(over='ignore'):
        belief, said = seen(lambda t: 0.5 * t + (lie if t > 1.0 else 0.0), until=1.2)
    assert 'jumps by' in said or 'the position of joint' in said
    assert abs(belief.motion.position[1] - 0.5 * (1.2 if abs(lie + 0.6) < 1e4 else 1.0)) < 0.05
    assert abs(belief.motion.velocity[1]) < 1.0


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(size=st.floats(1.0, 300.0), seed=st.integers(0, 1000))
def test_what_jumps_about_is_not_believed_where_it_is_near_by_chance(size, seed):
    rng, (belief, _) = np.random.default_rng(seed), seen(lambda t: 0.5 * t, until=1.0)
    for time in np.arange(1.0, 2.0, STEP):
        with np.errstate(over='ignore'):
            belief.receive(10.0**size * rng.standard_normal(2), None, time, 50.0 + time)
        np.testing.assert_allclose(belief.motion.position, [0.3, 0.5], atol=2e-3)
    back, _ = seen(lambda t: 0.5, begin=2.0, until=2.2, belief=belief)
    assert back.silence(52.2, 0.11) is None  # and is believed again soon


@settings(deadline=None, max_examples=40)
@given(
    fastest=st.floats(0.0, 4.0), hardest=st.floats(-1.0, 1.0), size=st.floats(-0.8, 2.0), step=st.floats(0.002, 0.02)
)
def test_a_joint_is_not_believed_to_leap_from_rest_however_fast_it_may_be(fastest, hardest, size, step):
    """A drive of 30 rad/s needs time to get there: two readings that were exchanged led an arm at rest by 13 rad."""
    belief = Belief(NAMES, np.full(2, 10.0**fastest), np.full(2, 10.0**hardest))
    for k in range(60):
        assert belief.receive(np.array([0.3, -0.4]), np.zeros(2), k * step, 50.0 + k * step) is None
    said = ''
    for k in range(60, 70):
        reading = np.array([0.3, -0.4 + 10.0**size])
        said = said or belief.receive(reading, np.zeros(2), k * step, 50.0 + k * step)
    assert 'jumps by' in said
    np.testing.assert_allclose(belief.motion.position, [0.3, -0.4], atol=1e-9)
    np.testing.assert_allclose(belief.motion.velocity, 0.0, atol=1e-9)


@settings(deadline=None, max_examples=40)
@given(
    fastest=st.floats(-1.0, 2.0), hardest=st.floats(-1.0, 2.0), rate=st.floats(20.0, 1000.0), phase=st.floats(0.0, 6.0)
)
def test_a_joint_at_its_limits_is_believed(fastest, hardest, rate, phase):
    """With all its speed and acceleration, and its velocities told or not."""
    velocity, acceleration = 10.0**fastest, 10.0**hardest
    for told in (True, False):
        belief, omega = Belief(NAMES, np.full(2, velocity), np.full(2, acceleration)), acceleration / velocity
        for time in np.arange(0.0, min(3.0 / omega, 30.0), max(1.0 / rate, 3e-3 / omega)):
            place = velocity / omega * np.sin(omega * time + phase)
            speed = np.full(2, velocity * np.cos(omega * time + phase)) if told else None
            assert belief.receive(np.full(2, place), speed, time, 50.0 + time) is None


def test_a_late_stamp_is_no_jump_where_it_may_be_so_late():
    """At 2 rad/s a stamp that hardly goes on for 30 ms, with messages lost between, looks like a jump of 0.06 rad."""
    for allowed, jumps in ((0.0, True), (0.05, False)):
        belief, said = Belief(NAMES, FASTEST, HARDEST, allowed), None
        for time in np.arange(0.0, 1.0, 0.03):
            stamp = np.floor(time / 0.06) * 0.06 + 0.01 * time
            said = said or belief.receive(np.array([2.0 * time, 0.0]), None, stamp, 50.0 + time)
        assert (said is not None and 'jumps by 0.0' in said) is jumps
    assert belief.receive(np.array([2.5, 0.0]), None, 1.0, 51.0) is not None


def test_readings_that_are_not_finite_are_silence():
    belief, said = seen(lambda t: 0.1 if t < 1.0 else np.nan, until=1.4)
    assert said == "the position of joint 'b' is nan"
    assert belief.resting(1.1) is None
    assert "that can be believed for joint 'b' for 0.4" in belief.silence(51.4, 0.2)
    assert belief.silence(51.4, 0.5) is None


def test_a_velocity_that_agreed_is_a_witness():
    """A joint whose position drifts, while its drive says that it stands, is not followed."""
    belief, said = seen(lambda t: t if t < 1.0 else 2.0 * t - 1.0, velocity=lambda t: np.array([0.0, 1.0]), until=1.3)
    assert said == "position and velocity of joint 'b' tell different motions"
    assert belief.motion.position[1] < 1.1
    always_zero, said = seen(lambda t: t, velocity=lambda t: np.zeros(2))
    assert said is None  # no witness: the slope counts
    assert always_zero.motion.velocity[1] == pytest.approx(1.0, abs=0.02)


def test_velocities_that_vanish_are_no_lie_about_the_places():
    """A witness that says nothing any more contradicts nothing: the joint is where it is read."""
    told = lambda t: np.array([0.0, 1.0]) if t < 1.0 else None  # noqa: E731
    belief, said = seen(lambda t: t, velocity=told, until=1.3)
    assert said == 'the joint states hold no velocities any more'
    assert belief.motion.position[1] == pytest.approx(1.3, abs=0.01)
    assert belief.motion.velocity[1] == pytest.approx(1.0, abs=0.02)
    assert not belief.lying.any()


def test_silence_is_told_apart_from_never_having_heard():
    assert 'no joint state has come yet' in Belief(NAMES, FASTEST, HARDEST).silence(5.0, 0.5)
    assert seen(lambda t: 0.0, until=1.0)[0].silence(51.6, 0.5).startswith('no joint state for 0.60 s (allowed: 0.5 s)')


def test_a_reading_that_is_not_newer_than_others_tells_nothing():
    """Messages that are repeated or shuffled are no jump of the arm, and no reason to forget what was seen."""
    belief = Belief(NAMES, FASTEST, HARDEST)
    for k in range(100):
        time = 0.01 * k
        for back in (0.0, 0.0, 0.05, 0.3):
            told = np.array([2.0 * (time - back), 0.0])
            assert belief.receive(told, None, time - back, 50.0 + time) is None
        assert belief.time == time
        np.testing.assert_allclose(belief.motion.position, [2.0 * time, 0.0], atol=1e-12)
    assert belief.motion.velocity[0] == pytest.approx(2.0)
