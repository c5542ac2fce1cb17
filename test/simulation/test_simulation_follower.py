# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The controller's rules: interpolation against scipy's, replacement, stamps, refusals."""

import numpy as np
import pytest
from errors_helpers import refused
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.interpolate import BPoly, CubicHermiteSpline, interp1d

from robotid_ros.errors import DataError
from robotid_ros.simulation import CommandPoint, TrajectoryFollower
from robotid_ros.simulation.controller import SimulatedController, Spline, TrajectoryPoints

JOINTS = ('a', 'b')
finite = st.floats(-3.0, 3.0, allow_subnormal=False)


def follower(position=(0.0, 0.0), **options) -> TrajectoryFollower:
    return TrajectoryFollower(JOINTS, np.array(position), **options)


def wave(t: float) -> CommandPoint:
    """Return a point of two sines with everything a point can hold."""
    w = np.array([1.3, 0.7])
    return CommandPoint(t, np.sin(w * t), w * np.cos(w * t), -w * w * np.sin(w * t))


def window(first: float, last: float, every: float = 0.02) -> list[CommandPoint]:
    """Return the wave from ``first`` to ``last``, and a stop half a second later."""
    points = [wave(t) for t in np.arange(round(first / every), round(last / every) + 1) * every]
    stop = wave(last).position + 0.25 * np.asarray(wave(last).velocity)
    return [*points, CommandPoint(points[-1].time + 0.5, stop, [0.0, 0.0], [0.0, 0.0])]


knots = st.lists(st.floats(0.01, 2.0), min_size=1, max_size=6).map(lambda steps: np.cumsum([0.0, *steps]))


@settings(deadline=None, max_examples=80)
@given(data=st.data(), time=knots)
def test_interpolation_is_scipys(data: st.DataObject, time: np.ndarray) -> None:
    position, velocity, acceleration = (data.draw(arrays(float, (len(time), 2), elements=finite)) for _ in range(3))
    at = np.linspace(0.0, time[-1], 57)[:-1]
    scale, none = 1.0 / np.diff(time).min(), np.full_like(position, np.nan)

    def interpolated(velocity: np.ndarray, acceleration: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = TrajectoryPoints(time=time, position=position, velocity=velocity, acceleration=acceleration)
        return Spline(points).sample(at)

    q, dq, _ = interpolated(none, none)
    np.testing.assert_allclose(q, interp1d(time, position, axis=0)(at), atol=1e-12)
    segment = np.searchsorted(time, at, side='right') - 1
    np.testing.assert_allclose(dq, (np.diff(position, axis=0) / np.diff(time)[:, None])[segment], rtol=1e-9)

    cubic = CubicHermiteSpline(time, position, velocity)
    for order, values in enumerate(interpolated(velocity, none)):
        np.testing.assert_allclose(values, cubic(at, nu=order), atol=1e-9 * scale**order)

    quintic = BPoly.from_derivatives(time, np.stack([position, velocity, acceleration], axis=1))
    for order, values in enumerate(interpolated(velocity, acceleration)):
        np.testing.assert_allclose(values, quintic(at, nu=order), atol=1e-9 * scale**order)


@pytest.mark.parametrize(
    ('velocity', 'acceleration', 'closed_form'),
    [
        ((), (), lambda s: s),
        ((0.0, 0.0), (), lambda s: 3.0 * s**2 - 2.0 * s**3),
        ((0.0, 0.0), (0.0, 0.0), lambda s: 10.0 * s**3 - 15.0 * s**4 + 6.0 * s**5),
    ],
    ids=['linear', 'cubic', 'quintic'],
)
def test_moves_from_rest_by_what_the_point_holds(velocity, acceleration, closed_form) -> None:
    arm = follower((1.0, -1.0))
    arm.command(JOINTS, None, [CommandPoint(2.0, (2.0, -3.0), velocity, acceleration)], now=5.0)
    t = np.linspace(5.0, 6.999, 40)
    q, _, _ = arm.sample(t)
    s = closed_form((t - 5.0) / 2.0)
    np.testing.assert_allclose(q, np.column_stack([1.0 + s, -1.0 - 2.0 * s]), atol=1e-12)


def test_holds_before_the_first_and_after_the_last_trajectory() -> None:
    arm = follower((0.4, 0.5))
    for value, expected in zip(arm.sample(np.array([0.0, 3.0])), ((0.4, 0.5), (0, 0), (0, 0)), strict=True):
        np.testing.assert_array_equal(value, np.tile(expected, (2, 1)))
    arm.command(JOINTS, None, window(0.0, 2.0), now=10.0)
    last = window(0.0, 2.0)[-1].position
    for value, expected in zip(arm.sample(np.array([12.5, 99.0])), (last, (0, 0), (0, 0)), strict=True):
        np.testing.assert_array_equal(value, np.tile(expected, (2, 1)))


def test_joints_may_come_in_any_order() -> None:
    arm = follower()
    arm.command(('b', 'a'), None, [CommandPoint(1.0, (2.0, 1.0), (0.0, 0.0))], now=0.0)
    np.testing.assert_array_equal(arm.sample(np.array([1.0]))[0], [[1.0, 2.0]])


def test_overlapping_windows_with_one_start_are_one_long_trajectory() -> None:
    """Each window ends at rest and is replaced before that by the next, all with one past stamp."""
    arm, start = follower(), 2.0
    whole = follower()
    whole.command(JOINTS, start, window(0.0, 12.0), now=0.0)
    arm.command(JOINTS, start, window(0.0, 4.0), now=0.0)
    for k, t in enumerate(np.arange(0.0, 13.9, 0.01)):
        if k in (550, 900):
            arm.command(JOINTS, start, window(t - start - 0.1, t - start + 5.0), now=t)
        np.testing.assert_allclose(arm.sample(np.array([t]))[0], whole.sample(np.array([t]))[0], atol=1e-12)


def test_knots_at_50_hz_carry_a_smooth_motion_to_1e_8_rad() -> None:
    arm = follower(wave(0.0).position)
    arm.command(JOINTS, 0.0, window(0.0, 5.0), now=0.0)
    t = np.linspace(0.0, 4.999, 1777)
    q, dq, _ = arm.sample(t)
    np.testing.assert_allclose(q, np.sin(t[:, None] * [1.3, 0.7]), atol=1e-8)
    np.testing.assert_allclose(dq, [1.3, 0.7] * np.cos(t[:, None] * [1.3, 0.7]), atol=1e-6)


@pytest.mark.parametrize('blend', [False, True])
def test_a_new_trajectory_takes_over_without_a_jump(blend: bool) -> None:
    arm = follower(blend=blend)
    arm.command(JOINTS, None, window(0.0, 4.0), now=0.0)
    arm.sample(np.array([1.4999]))
    arm.command(JOINTS, None, [CommandPoint(1.0, (0.3, 0.3), (0.0, 0.0), (0.0, 0.0))], now=1.5)
    for value, expected in zip(arm.sample(np.array([1.5])), wave(1.5)[1:4], strict=True):
        np.testing.assert_allclose(value[0], expected, atol=1e-6)
    np.testing.assert_array_equal(arm.sample(np.array([2.5]))[0], [[0.3, 0.3]])


def test_the_past_of_a_trajectory_is_skipped() -> None:
    arm = follower()
    arm.command(JOINTS, 1.0, window(0.0, 4.0), now=3.0)
    np.testing.assert_allclose(arm.sample(np.array([3.0]))[0], [wave(2.0).position], atol=1e-9)


def test_the_way_to_the_first_point_begins_at_once() -> None:
    """A start in the future does not keep the controller waiting where it stands."""
    arm = follower()
    arm.command(JOINTS, 10.0, [CommandPoint(0.0, (1.0, 1.0)), CommandPoint(1.0, (2.0, 2.0))], now=8.0)
    np.testing.assert_allclose(arm.sample(np.array([9.0, 10.5]))[0], [[0.5, 0.5], [1.5, 1.5]])


class TestBlending:
    """What the controller's newest versions do instead, once a trajectory runs."""

    def test_the_running_trajectory_goes_on_until_the_start_of_the_new_one(self) -> None:
        arm = follower(blend=True)
        arm.command(JOINTS, 0.0, window(0.0, 4.0), now=0.0)
        arm.command(JOINTS, 3.0, [CommandPoint(1.0, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))], now=1.0)
        t = np.array([1.5, 2.5, 2.999])
        np.testing.assert_allclose(arm.sample(t)[0], [wave(x).position for x in t], atol=1e-9)
        before, after = arm.sample(np.array([3.0 - 1e-6, 3.0 + 1e-6]))[1]
        np.testing.assert_allclose(before, after, atol=1e-5)
        np.testing.assert_array_equal(arm.sample(np.array([4.0]))[0], [[0.0, 0.0]])

    @pytest.mark.parametrize('cycle', [0.002, 0.02])
    def test_a_new_trajectory_costs_a_cycle_until_its_start(self, cycle: float) -> None:
        """As the controller's source of August 2026 has it: what is left of the old one comes a cycle later."""
        arm = follower(blend=True, cycle=cycle)
        arm.command(JOINTS, 0.0, window(0.0, 4.0), now=0.0)
        old = arm.sample(np.array([1.0]))
        knots = np.array([point.time for point in window(0.0, 4.0)])
        arm.command(JOINTS, 3.0, [CommandPoint(1.0, (0.0, 0.0), (0.0, 0.0), (0.0, 0.0))], now=1.0)
        np.testing.assert_allclose(arm.sample(np.array([1.0]))[:2], old[:2], atol=1e-9)  # nothing jumps
        left = knots[(knots > 1.0) & (knots < 3.0 - cycle)]
        assert len(left) > 3
        np.testing.assert_allclose(arm.sample(left + cycle)[0], [wave(x).position for x in left], atol=1e-9)
        np.testing.assert_allclose(arm.sample(np.array([3.0]))[0], [wave(3.0 - cycle).position], atol=1e-9)
        np.testing.assert_array_equal(arm.sample(np.array([4.0]))[0], [[0.0, 0.0]])

    def test_a_trajectory_that_should_have_begun_is_shifted_to_now(self) -> None:
        arm = follower(blend=True)
        arm.command(JOINTS, 0.0, window(0.0, 4.0), now=0.0)
        late = [CommandPoint(0.0, (0.0, 0.0)), CommandPoint(2.0, (2.0, 2.0))]
        arm.command(JOINTS, 1.5, late, now=2.5)
        np.testing.assert_allclose(arm.sample(np.array([3.5]))[0], [[1.0, 1.0]])
        np.testing.assert_allclose(arm.sample(np.array([4.5]))[0], [[2.0, 2.0]])

    def test_a_second_change_of_mind_drops_what_has_not_begun(self) -> None:
        arm = follower(blend=True)
        arm.command(JOINTS, 0.0, window(0.0, 4.0), now=0.0)
        arm.command(JOINTS, 3.0, [CommandPoint(1.0, (9.0, 9.0)), CommandPoint(1.5, (9.0, 9.0))], now=1.0)
        arm.command(JOINTS, 2.0, [CommandPoint(0.5, (0.0, 0.0)), CommandPoint(1.0, (0.0, 0.0))], now=1.2)
        q = arm.sample(np.linspace(1.2, 5.0, 50))[0]
        assert np.abs(q).max() < 1.5

    def test_single_points_are_replaced_at_once(self) -> None:
        arm = follower(blend=True)
        arm.command(JOINTS, None, [CommandPoint(2.0, (2.0, 2.0))], now=0.0)
        arm.command(JOINTS, 3.0, [CommandPoint(0.0, (0.0, 0.0))], now=1.0)
        np.testing.assert_allclose(arm.sample(np.array([2.0]))[0], [[0.5, 0.5]])


REST = (0.0, 0.0)


@pytest.mark.parametrize(
    ('joints', 'start', 'points', 'about', 'words'),
    [
        (JOINTS, None, [], {}, 'the trajectory is empty: expected at least one point'),
        (('a',), None, [CommandPoint(1.0, (1.0,))], {'expected': JOINTS, 'found': ('a',)}, ''),
        ((), None, [CommandPoint(1.0, ())], {'expected': JOINTS, 'found': ()}, '(none) are not those'),
        (('a', 'a'), None, [CommandPoint(1.0, REST)], {'expected': JOINTS, 'found': ('a', 'a')}, ''),
        (('a', 'c'), None, [CommandPoint(1.0, REST)], {'expected': JOINTS, 'found': ('a', 'c')}, ''),
        (JOINTS, 1.0, [CommandPoint(2.0, REST)], {}, 'ended in the past, 7.000 s ago'),
        (
            JOINTS,
            None,
            [CommandPoint(1.0, REST), CommandPoint(1.0, REST)],
            {},
            'point 1 of the trajectory is at 1 s, point 2 at 1 s',
        ),
        (JOINTS, None, [CommandPoint(2.0, REST), CommandPoint(1.0, REST)], {}, 'times must strictly increase'),
        (JOINTS, None, [CommandPoint(1.0, REST, (0.0, 0.1))], {'name': 'b', 'found': 0.1}, 'ends in motion'),
        (JOINTS, None, [CommandPoint(1.0, (1.0,))], {'name': 'positions', 'expected': 2, 'found': 1}, 'point 1 '),
        (JOINTS, None, [CommandPoint(1.0, ())], {'name': 'positions', 'expected': 2, 'found': 0}, ''),
        (JOINTS, None, [CommandPoint(1.0, REST, (0.0,))], {'name': 'velocities', 'expected': 2, 'found': 1}, ''),
        (
            JOINTS,
            None,
            [CommandPoint(1.0, REST, REST, (0.0,))],
            {'name': 'accelerations', 'expected': 2, 'found': 1},
            '',
        ),
        (JOINTS, None, [CommandPoint(1.0, REST, (), REST)], {}, 'holds accelerations: expected velocities with them'),
        (JOINTS, None, [CommandPoint(1.0, REST, effort=REST)], {}, 'holds efforts: expected none'),
        (JOINTS, None, [CommandPoint(1.0, (np.nan, 0.0))], {}, 'not finite'),
        (JOINTS, None, [CommandPoint(np.inf, REST)], {}, 'not finite'),
    ],
)
def test_what_the_controller_refuses_is_refused_with_the_reason_and_changes_nothing(
    joints, start, points, about, words
):
    arm, untouched = follower(), follower()
    for one in (arm, untouched):
        one.command(JOINTS, 9.0, window(0.0, 4.0), now=9.0)
    with refused(DataError, **about) as caught:
        arm.command(joints, start, points, now=10.0)
    assert words in str(caught.value)
    t = np.linspace(10.0, 14.0, 20)
    for value, expected in zip(arm.sample(t), untouched.sample(t), strict=True):
        np.testing.assert_array_equal(value, expected)


def test_a_last_velocity_at_the_resolution_of_single_precision_is_rest() -> None:
    arm = follower()
    arm.command(JOINTS, None, [CommandPoint(1.0, (1.0, 1.0), (1e-7, -1e-7))], now=0.0)
    np.testing.assert_array_equal(arm.sample(np.array([2.0]))[1], [[0.0, 0.0]])


@settings(deadline=None, max_examples=60)
@given(
    commands=st.lists(
        st.tuples(
            st.floats(0.05, 1.5),  # after the command before
            st.one_of(st.none(), st.floats(0.0, 1.0)),  # start: now, or so far ahead
            st.lists(st.tuples(finite, finite), min_size=1, max_size=4),
        ),
        min_size=1,
        max_size=5,
    ),
    blend=st.booleans(),
)
def test_no_sequence_of_commands_makes_the_reference_jump(commands, blend) -> None:
    arm, now = follower(blend=blend), 0.0
    for pause, ahead, targets in commands:
        now += pause
        points = [CommandPoint(0.5 * (k + 1), target, REST, REST) for k, target in enumerate(targets)]
        before = [value[0] for value in arm.sample(np.array([now]))]
        arm.command(JOINTS, None if ahead is None else now + ahead, points, now)
        for value, expected in zip(arm.sample(np.array([now])), before, strict=True):
            np.testing.assert_allclose(value[0], expected, atol=1e-9)
    t = np.linspace(now, now + 4.0, 8001)
    q, dq, _ = arm.sample(t)
    assert np.abs(np.diff(q, axis=0)).max() <= 1.01 * np.abs(dq).max() * (t[1] - t[0]) + 1e-9
    np.testing.assert_array_equal(q[-1], commands[-1][2][-1])


@pytest.mark.parametrize('blend', [False, True])
def test_a_controller_that_is_active_again_holds_its_last_command_whatever_its_time(blend) -> None:
    """It was inactive and its time was stretched meanwhile: it leapt to where the trajectory before leads."""
    arm = SimulatedController(JOINTS, np.zeros(2), blend=blend, cycle=0.01)
    points = [CommandPoint(time, (2.0 * time, 2.0), REST, REST) for time in (0.2, 1.0)]
    arm.command(JOINTS, None, points, now=0.0)
    held = arm.sample(np.array([0.5]), np.zeros(2))[0]
    arm.set_active(False)
    arm.speed_scaling = 0.1
    arm.sample(np.array([0.9]), held[0])
    arm.set_active(True)
    for now in (1.0, 1.01, 3.0):
        np.testing.assert_array_equal(arm.sample(np.array([now]), held[0])[0], held)
