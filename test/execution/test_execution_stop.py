# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How long a stop takes, and what it keeps: the bounds of docs/stopping.md, for arms of any size and speed."""

from dataclasses import replace

import numpy as np
import pytest
from excitation_helpers import limits, planar_arm
from execution_loop import CHECK
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import reference_check
from robotid_ros.execution.joint_motion import JointMotion
from robotid_ros.execution.stop import StopPlan, plan_stop

SHARE = 0.95  # of the acceleration limits
LEAST = 3.0 / np.sqrt(2.0)


def ways(plan, starts, count=400):
    times = np.linspace(0.0, plan.duration, count)
    return [replace(plan, starts=(start,)).evaluate(times) for start in starts]


@settings(deadline=None, max_examples=200)
@given(part=st.floats(-1.0, 1.0), speed=st.floats(-1.0, 1.0), size=st.floats(-6.0, 6.0), hard=st.floats(-3.0, 3.0))
def test_a_joint_comes_to_rest_of_itself_within_its_limit_whatever_its_acceleration(part, speed, size, hard):
    """To q + v T/2 + a T^2/12 it goes with (1 - s) (a (1 - 3 s) - 6 v s/T); T is at least 3/sqrt(2) |v|/a_max."""
    hardest, duration = 10.0**hard, 10.0**size
    acceleration, velocity = part * hardest, speed * hardest * duration / LEAST
    end = velocity * duration / 2.0 + acceleration * duration**2 / 12.0
    start = JointMotion(position=np.zeros(1), velocity=np.array([velocity]), acceleration=np.array([acceleration]))
    s = np.linspace(0.0, 1.0, 1001)
    _, _, found = StopPlan(starts=(start,), goal=np.array([end]), duration=duration).evaluate(duration * s)
    derived = (1.0 - s) * (acceleration * (1.0 - 3.0 * s) - 6.0 * velocity * s / duration)
    assert np.abs(found[:, 0] - derived).max() <= 1e-9 * hardest
    assert np.abs(derived).max() <= hardest * (1.0 + 1e-9)


def test_a_joint_that_accelerates_with_all_it_may_needs_that_time():
    s, least = np.linspace(0.0, 1.0, 10001), LEAST

    def hardest(duration):
        return np.abs((1.0 - s) * (1.0 - 3.0 * s - 6.0 * s / duration)).max()

    assert hardest(least) == pytest.approx(1.0, abs=1e-6)
    assert hardest(0.98 * least) > 1.005


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    fastest=st.floats(-3.0, 3.0),
    hardest=st.floats(-1.0, 2.0),
    room=st.floats(-2.0, 2.0),
    count=st.integers(1, 12),
)
def test_no_stop_takes_longer_than_a_second_or_what_its_joints_need(seed, fastest, hardest, room, count):
    """Whatever states it may begin in, also such as exclude each other; and the first of them keeps the limits."""
    rng = np.random.default_rng(seed)
    n, fast = int(rng.integers(1, 7)), 10.0**fastest
    velocity = fast * 10.0 ** rng.uniform(-1.0, 0.0, n)
    acceleration = velocity * 10.0**hardest * 10.0 ** rng.uniform(-0.5, 0.5, n)
    places = 10.0**room * fast * np.ones(n)
    model = planar_arm(n, limits=limits(n, places, velocity, acceleration))
    check = reference_check(model, ExcitationConfig())
    apart = 10.0 ** rng.uniform(-4.0, 0.0)
    middle, speed = rng.uniform(-1.0, 1.0, (2, n))
    starts = [
        JointMotion(
            position=places * (middle + apart * rng.uniform(-1.0, 1.0, n)),
            velocity=velocity * np.clip(speed + rng.choice([apart, 2.0]) * rng.uniform(-1.0, 1.0, n), -1.0, 1.0),
            acceleration=SHARE * acceleration * rng.uniform(-1.0, 1.0, n),
        )
        if k % 2
        else JointMotion(position=places * middle, velocity=velocity * speed)
        for k in range(count)
    ]
    plan = plan_stop(starts, [check])
    quickest = max(float((np.abs(start.velocity) / acceleration).max()) for start in starts)
    assert 0.2 * (1.0 - 1e-9) <= plan.duration <= max(1.0, LEAST / SHARE * quickest) * (1.0 + 1e-9)
    (first,) = ways(plan, starts[:1])
    assert (np.abs(first[2]) <= acceleration * (1.0 + 1e-9)).all()
    assert np.isfinite(plan.goal).all()


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), hardest=st.floats(-2.0, 3.0), apart=st.floats(-4.0, 0.5))
def test_where_an_end_suits_all_states_the_limits_are_kept_from_all(seed, hardest, apart):
    """Two states without acceleration: where their own ends are as close as derived in docs/stopping.md."""
    rng = np.random.default_rng(seed)
    a = 10.0**hardest
    v = rng.uniform(-1.0, 1.0, 2) * 0.45 * a * SHARE  # rest within a second, whatever the acceleration
    q = np.array([0.0, a * 10.0**apart * rng.uniform(-1.0, 1.0)])
    check = reference_check(planar_arm(1, limits=limits(1, 1e3 * a, 10.0 * a, a)), ExcitationConfig())
    starts = [JointMotion(position=q[k : k + 1], velocity=v[k : k + 1]) for k in range(2)]
    plan = plan_stop(starts, [check])
    reach = (SHARE * a - 1.5 * np.abs(v)) * np.sqrt(3.0) / 10.0  # at T = 1 s
    if abs((q + 0.5 * v) @ [1.0, -1.0]) > reach.sum():
        return
    for way in ways(plan, starts):
        assert np.abs(way[2]).max() <= a
    assert plan.duration <= 1.0 + 1e-9


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), hardest=st.floats(-1.0, 2.0), part=st.floats(0.0, 1.0), beyond=st.floats(0.0, 1.0))
def test_a_joint_that_presses_is_led_back_to_where_it_did_not_though_that_takes_longer(seed, hardest, part, beyond):
    r"""It stands, and its reference goes on beyond it: 54 walls of nine excitations left 187 N m on one of them.

    From a distance d at speed v the end of a stop is d + v T/2 away, so T is such that d + v T/2 is at most
    sqrt(3)/10 (a T^2 - 1.5 v T).
    """
    rng = np.random.default_rng(seed)
    a = 10.0**hardest
    v, d = part * 0.3 * a, beyond * 0.15 * a
    away = 0.5 + 0.15 * np.sqrt(3.0)
    longest = (away * v + np.sqrt((away * v) ** 2 + 0.4 * np.sqrt(3.0) * SHARE * a * d)) / (
        0.2 * np.sqrt(3.0) * SHARE * a
    )
    other = rng.uniform(-0.3, 0.3) * a  # of a joint that presses on nothing
    check = reference_check(planar_arm(2, limits=limits(2, 1e3 * a, 10.0 * a, a)), ExcitationConfig())
    clear = -rng.uniform(0.0, 0.01) * a
    starts = [
        JointMotion(position=np.array([0.0, 0.0]), velocity=np.array([0.0, other])),
        JointMotion(position=np.array([d, 0.0]), velocity=np.array([v, other])),
    ]
    plan = plan_stop(starts, [check], back_to=np.array([clear, np.nan]), patience=2.0)
    assert plan.goal[0] == pytest.approx(clear, abs=1e-9 * a)
    assert plan.duration <= 1.1 * max(1.0, longest + 0.02)
    for way in ways(plan, starts):
        assert np.abs(way[2]).max() <= a * (1.0 + 1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10**6), hardest=st.floats(0.0, 2.0), weak=st.floats(-3.0, 0.0))
def test_a_weak_drive_rests_when_its_stop_ends(seed, hardest, weak):
    """It follows its controller's reference at a speed of its own, far behind; a joint that is held has none."""
    rng = np.random.default_rng(seed)
    a = 10.0**hardest
    v = float(rng.uniform(0.05, 0.45)) * a * SHARE
    creeps = 10.0**weak * v * float(rng.integers(2))
    ahead = float(rng.uniform(0.0, 0.05)) * a
    check = reference_check(planar_arm(1, limits=limits(1, 1e3 * a, 10.0 * a, a)), ExcitationConfig())
    states = ((0.0, creeps), (ahead, v))
    starts = [JointMotion(position=np.array([q]), velocity=np.array([dq])) for q, dq in states]
    plan = plan_stop(starts, [check])
    goal, duration = float(plan.goal[0]), plan.duration
    # From its own end, q + v T/2, a reference comes back by what the peak of the added term leaves: docs/stopping.md.
    reach = np.sqrt(3.0) / 10.0 * (SHARE * a - 1.5 * v)
    if ahead + 0.5 * v - creeps > reach:
        return
    assert -1e-9 <= goal <= creeps * duration + 1e-9
    times = np.linspace(0.0, 2.0 * duration, 4001)
    place, places = 0.0, []
    led = replace(plan, starts=(starts[1],)).evaluate(np.minimum(times, duration))[0][:, 0]
    for reference in led:
        place += float(np.clip(reference - place, -creeps * times[1], creeps * times[1]))
        places.append(place)
    late = np.abs(np.array(places) - goal)[times > 1.5 * duration]
    assert late.max() <= 1e-3 * max(creeps, 1e-9) + 1e-9
    (_, way) = ways(plan, starts)
    assert np.abs(way[2]).max() <= a


def test_a_stop_that_may_be_obeyed_already_is_repeated_to_its_own_end():
    """An arm that rests there, and only seems to move on, is led away from it by less."""
    end = np.array([0.4, -0.3, 0.2])
    seems = JointMotion(position=np.array([0.5, -0.3, 0.1]), velocity=np.array([0.4, 0.05, -0.35]))
    starts = [seems.after(0.05), seems, seems.after(0.1), JointMotion(position=end, velocity=np.zeros(3))]
    anew, again = plan_stop(starts, [CHECK]), plan_stop(starts, [CHECK], goal=end)
    away = [float(np.abs(plan.goal - end).max()) for plan in (anew, again)]
    assert away[1] < 0.85 * away[0]
    assert again.breaks == ''
