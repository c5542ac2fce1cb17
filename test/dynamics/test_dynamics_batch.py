# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Batch inverse dynamics and regressors against Pinocchio, closed forms and conservation laws."""

import numpy as np
import pytest
from dynamics_helpers import ARMS, HALF, PinocchioArm, arm, dh_robots, motion, random_inertial, without_compiler
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.dynamics import (
    base_parameters,
    column_names,
    full_regressor,
    inverse_dynamics,
    minimal_model,
    observation_matrix,
)
from robotid_ros.dynamics.codegen.kernel import find_compiler
from robotid_ros.dynamics.recursion import regressor_columns
from robotid_ros.errors import DataError, ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertial_parameters


@pytest.mark.parametrize('name', ARMS)
def test_torques_and_regressors_equal_pinocchios(name):
    model = arm(name)
    oracle = PinocchioArm(model)
    q, dq, ddq = motion(model.n, 25)
    # Pinocchio reads no rotor inertias from a URDF.
    rigid = inverse_dynamics(model, q, dq, ddq, rotor_inertia=False)
    np.testing.assert_allclose(rigid, oracle.inverse_dynamics(q, dq, ddq), rtol=0, atol=1e-10)
    np.testing.assert_allclose(full_regressor(model, q, dq, ddq), oracle.regressor(q, dq, ddq), rtol=0, atol=1e-10)


@pytest.mark.parametrize('gravity', [(0.0, -9.81, 0.0), (3.0, 1.0, -9.0)])
def test_gravity_points_where_it_is_said_to(gravity):
    model = arm('ur10', gravity=gravity)
    q, dq, ddq = motion(model.n, 10)
    expected = PinocchioArm(model).inverse_dynamics(q, dq, ddq)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), expected, rtol=0, atol=1e-10)


def test_a_part_of_the_chain_has_the_rest_lumped_into_it():
    with pytest.warns(UserWarning, match='held at zero'):
        model = RobotModel.from_urdf(
            ARMS['panda'], joints=['panda_joint2', 'panda_joint4', 'panda_joint6'], tip='panda_link8'
        )
    q, dq, ddq = motion(3, 10)
    expected = PinocchioArm(model).inverse_dynamics(q, dq, ddq)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), expected, rtol=0, atol=1e-10)


@pytest.mark.slow
@pytest.mark.skipif(find_compiler() is None, reason='no C compiler here')
@settings(max_examples=20, deadline=None, derandomize=True)
@given(dh_robots(), st.sampled_from(['all', 'gravity', 'kinetic']), st.sampled_from([1, 7, 8, 19]))
def test_compiled_and_numpy_recursions_agree(robot, part, count):
    rates = np.arange(3.0 * robot.n).reshape(3, robot.n)
    robot = robot.with_inertial(robot.inertial, rotor_inertia=rates[0], damping=rates[1], friction=rates[2])
    samples = motion(robot.n, count, seed=4)
    drives = {'rotor_inertia': True, 'viscous': True, 'coulomb': True, 'offset': True}

    def both() -> tuple[np.ndarray, ...]:
        torques = inverse_dynamics(robot, *samples, part=part, friction=True)
        columns = tuple(range(0, 10 * robot.n, 3))
        return (
            torques,
            full_regressor(robot, *samples, part=part, **drives),
            regressor_columns(robot, *samples, columns, part=part),
        )

    compiled = both()
    with without_compiler():
        plain = both()
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12 * max(1.0, np.abs(other).max()))


def test_large_arms_and_batches_agree_with_numpy():
    # More joints than usual, and outputs that are written past the caches.
    long_arm = RobotModel.from_mdh(np.full((40, 4), 0.1), inertial=random_inertial(40, np.random.default_rng(1)))
    for robot, count in ((long_arm, 3), (arm('kinova'), 3001)):
        samples = motion(robot.n, count)
        torques = full_regressor(robot, *samples) @ robot.inertial.ravel()
        expected = inverse_dynamics(robot, *samples, rotor_inertia=False)
        np.testing.assert_allclose(torques, expected, rtol=0, atol=1e-11 * np.abs(expected).max())
        with without_compiler():
            plain = inverse_dynamics(robot, *samples, rotor_inertia=False)
        np.testing.assert_allclose(expected, plain, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_pendulum_has_its_closed_form():
    mass, length, inertia = 2.0, 0.7, 0.05
    model = RobotModel.from_mdh(
        [(HALF, 0.0, 0.0, 0.0)],
        inertial=inertial_parameters(np.array([mass]), np.array([[length, 0, 0]]), inertia * np.eye(3)[None]),
    )
    q, dq, ddq = motion(1, 50)
    # The axis is horizontal and q counts from the horizontal, upwards.
    expected = (inertia + mass * length**2) * ddq + mass * 9.81 * length * np.cos(q)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), expected, atol=1e-12)


def test_planar_two_link_arm_has_its_closed_form():
    l1, c1, c2, m1, m2, i1, i2 = 0.5, 0.2, 0.3, 3.0, 2.0, 0.04, 0.03
    tensors = np.stack([i1 * np.eye(3), i2 * np.eye(3)])
    model = RobotModel.from_mdh(
        [(0, 0, 0, 0), (0, l1, 0, 0)],
        gravity=(0, -9.81, 0),
        inertial=inertial_parameters(np.array([m1, m2]), np.array([[c1, 0, 0], [c2, 0, 0]]), tensors),
    )
    q, dq, ddq = motion(2, 50)
    cosine, sine = np.cos(q[:, 1]), np.sin(q[:, 1])
    m11 = i1 + i2 + m1 * c1**2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * cosine)
    m12 = i2 + m2 * (c2**2 + l1 * c2 * cosine)
    h = -m2 * l1 * c2 * sine
    g2 = m2 * c2 * 9.81 * np.cos(q.sum(axis=1))
    g1 = (m1 * c1 + m2 * l1) * 9.81 * np.cos(q[:, 0]) + g2
    tau1 = m11 * ddq[:, 0] + m12 * ddq[:, 1] + h * (2 * dq[:, 0] * dq[:, 1] + dq[:, 1] ** 2) + g1
    tau2 = m12 * ddq[:, 0] + (i2 + m2 * c2**2) * ddq[:, 1] - h * dq[:, 0] ** 2 + g2
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), np.column_stack([tau1, tau2]), atol=1e-12)


def test_standard_and_modified_tables_of_one_arm_give_one_torque():
    # The same planar arm; standard DH frames stand at the far ends of the links.
    lengths, com, mass = np.array([0.5, 0.4]), np.array([[0.2, 0.05, 0.01], [0.3, -0.02, 0.03]]), np.array([3.0, 2.0])
    tensors = np.stack([np.diag([0.01, 0.04, 0.05]), np.diag([0.02, 0.03, 0.04])])
    near = inertial_parameters(mass, com, tensors)
    far = inertial_parameters(mass, com - lengths[:, None] * [1, 0, 0], tensors)
    gravity = (1.0, -9.0, 2.0)
    modified = RobotModel.from_mdh([(0, 0, 0, 0.3), (0, 0.5, 0.1, 0)], inertial=near, gravity=gravity)
    standard = RobotModel.from_dh([(0.3, 0.1, 0.5, 0), (0, 0, 0.4, 0)], inertial=far, gravity=gravity)
    samples = motion(2, 20)
    np.testing.assert_allclose(inverse_dynamics(standard, *samples), inverse_dynamics(modified, *samples), atol=1e-12)


@pytest.mark.parametrize(
    ('change', 'message'),
    [
        ({'placements': np.tile(2.0 * np.eye(4), (2, 1, 1))}, 'placements: expected rigid transforms'),
        ({'placements': np.tile(np.diag([1.0, 1.0, -1.0, 1.0]), (2, 1, 1))}, 'placements: expected rigid'),
        ({'tip': np.ones((4, 4))}, 'tip: expected rigid'),
        ({'axes': np.ones((2, 3))}, 'unit vectors'),
        ({'coupling': np.ones((2, 2))}, 'invertible'),
        ({'rotor_inertia': np.zeros(3)}, r'rotor_inertia: expected shape \(2\)'),
        ({'inertial': np.full((2, 10), np.nan)}, 'inertial: expected finite'),
    ],
    ids=range(7),
)
def test_a_model_that_cannot_be_is_refused(change, message):
    model = RobotModel.from_mdh([(0, 0, 0, 0), (0, 0.5, 0, 0)])
    with pytest.raises(ModelError, match=message):
        model.with_inertial(**{'inertial': model.inertial, **change})


@pytest.mark.parametrize('rows', [[], [(0, 0, 0)], [(0, 0, 0, np.nan)], [('a', 0, 0, 0)]])
def test_a_table_that_cannot_be_is_refused(rows):
    for build in (RobotModel.from_mdh, RobotModel.from_dh):
        with pytest.raises(ModelError, match='DH table'):
            build(rows)


def test_prismatic_joint_lifts_its_weight():
    model = RobotModel.from_mdh(
        [(0, 0, 0, 0)], types=['prismatic'], inertial=np.array([[0, 0, 0, 0, 0, 0, 0.3, 0, 0.1, 4.0]])
    )
    q, dq, ddq = motion(1, 5)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), 4.0 * (ddq + 9.81), atol=1e-12)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(dh_robots(largest=6))
def test_power_of_the_torques_is_the_change_of_energy(model):
    # Without gravity the work done along q(t) is the change of dq M dq / 2, with M dq the response to
    # the acceleration dq at rest: M and the Coriolis terms fit only if dM/dt - 2 C is skew.
    n = model.n
    rng = np.random.default_rng(1)
    phase, size = rng.uniform(0, 6, n), rng.uniform(0.2, 0.8, n)
    nodes, weights = np.polynomial.legendre.leggauss(60)
    t = 0.5 * (nodes + 1.0)[:, None]
    q, dq, ddq = size * np.sin(2 * t + phase), 2 * size * np.cos(2 * t + phase), -4 * size * np.sin(2 * t + phase)
    kinetic = inverse_dynamics(model, q, dq, ddq, part='kinetic')
    work = float(0.5 * weights @ np.einsum('ki,ki->k', kinetic, dq))

    def energy(instant: float) -> float:
        position = (size * np.sin(2 * instant + phase))[None]
        rate = 2 * size * np.cos(2 * instant + phase)
        zero = np.zeros_like(position)
        response = inverse_dynamics(model, position, zero, rate[None], part='kinetic')[0]
        return 0.5 * float(rate @ response)

    assert work == pytest.approx(energy(1.0) - energy(0.0), rel=1e-9, abs=1e-9)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(dh_robots())
def test_regressor_times_parameters_is_the_torque_and_parts_add_up(model):
    q, dq, ddq = motion(model.n, 9)
    torques = {}
    for part in ('all', 'kinetic', 'gravity'):
        torques[part] = inverse_dynamics(model, q, dq, ddq, part=part)
        linear = full_regressor(model, q, dq, ddq, part=part) @ model.inertial.ravel()
        np.testing.assert_allclose(linear, torques[part], atol=1e-10)
    np.testing.assert_allclose(torques['kinetic'] + torques['gravity'], torques['all'], atol=1e-10)
    zero = np.zeros_like(q)
    np.testing.assert_allclose(torques['gravity'], inverse_dynamics(model, q, zero, zero), atol=1e-10)


def test_coupling_turns_coordinates_and_torques_by_one_matrix():
    plain = arm('ur5')
    coupling = np.eye(6)
    coupling[5, 4] = -1.0
    coupled = RobotModel.from_urdf(ARMS['ur5']).with_inertial(plain.inertial, coupling=coupling)
    q, dq, ddq = motion(6, 8)
    chain = [x @ coupling.T for x in (q, dq, ddq)]
    np.testing.assert_allclose(
        inverse_dynamics(coupled, q, dq, ddq), inverse_dynamics(plain, *chain) @ coupling, atol=1e-11
    )
    # The same power on both sides.
    power = np.einsum('ki,ki->k', inverse_dynamics(coupled, q, dq, ddq), dq)
    np.testing.assert_allclose(power, np.einsum('ki,ki->k', inverse_dynamics(plain, *chain), chain[1]), atol=1e-10)


def test_drive_columns_hold_acceleration_velocity_sign_and_one():
    model = arm('ur5')
    q, dq, ddq = motion(6, 4)
    options = {'rotor_inertia': True, 'viscous': True, 'coulomb': True, 'offset': True}
    full = full_regressor(model, q, dq, ddq, **options)
    names = column_names(model, **options)
    assert full.shape == (4, 6, len(names)) == (4, 6, 84)
    for symbol, values in (('Ia', ddq), ('Fv', dq), ('Fc', np.sign(dq)), ('offset', np.ones_like(q))):
        for joint in range(6):
            column = full[:, :, names.index(f'{symbol}{joint + 1}')]
            np.testing.assert_array_equal(column, values[:, [joint]] * np.eye(6)[joint])


def test_rotor_inertia_and_friction_of_the_model_take_part_when_asked_for():
    base = arm('ur5')
    model = base.with_inertial(
        base.inertial, rotor_inertia=np.arange(6.0), damping=np.full(6, 2.0), friction=np.full(6, 3.0)
    )
    q, dq, ddq = motion(6, 4)
    plain = inverse_dynamics(base, q, dq, ddq)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq, rotor_inertia=False), plain)
    np.testing.assert_allclose(inverse_dynamics(model, q, dq, ddq), plain + np.arange(6.0) * ddq)
    np.testing.assert_allclose(
        inverse_dynamics(model, q, dq, ddq, friction=True), plain + np.arange(6.0) * ddq + 2.0 * dq + 3.0 * np.sign(dq)
    )


def test_observation_matrix_stacks_samples_before_joints():
    model = arm('ur5')
    q, dq, ddq = motion(6, 3)
    full = full_regressor(model, q, dq, ddq)
    stacked = observation_matrix(full)
    assert stacked.shape == (18, 60)
    np.testing.assert_array_equal(stacked[2 * 6 + 4], full[2, 4])
    torque = inverse_dynamics(model, q, dq, ddq)
    np.testing.assert_allclose(stacked @ model.inertial.ravel(), torque.ravel(), atol=1e-10)


@pytest.mark.parametrize('shape', [(6,), (4, 5), (2, 3, 6)])
def test_a_wrong_shape_is_named(shape):
    model = arm('ur5')
    with pytest.raises(DataError, match=r'dq: expected shape \(N, 6\)'):
        inverse_dynamics(model, np.zeros((4, 6)), np.zeros(shape), np.zeros((4, 6)))


def test_different_sample_counts_are_named():
    with pytest.raises(DataError, match='ddq: expected 4 samples'):
        full_regressor(arm('ur5'), np.zeros((4, 6)), np.zeros((4, 6)), np.zeros((3, 6)))


def test_an_unknown_part_is_named():
    zero = np.zeros((1, 6))
    with pytest.raises(DataError, match="'gravity'"):
        inverse_dynamics(arm('ur5'), zero, zero, zero, part='inertial')


def test_no_samples_give_no_torques():
    zero = np.zeros((0, 6))
    assert inverse_dynamics(arm('ur5'), zero, zero, zero).shape == (0, 6)
    assert full_regressor(arm('ur5'), zero, zero, zero).shape == (0, 6, 60)


@pytest.mark.slow
@pytest.mark.parametrize('name', ['ur10', 'panda'])
def test_blocks_and_given_memory_change_no_bit(name):
    robot, count = arm(name), 20_001
    samples, base = motion(robot.n, count, seed=3), base_parameters(robot)
    minimal = minimal_model(robot)
    for function in (
        lambda *at, **given: inverse_dynamics(robot, *at, **given),
        lambda *at, **given: full_regressor(robot, *at, coulomb=True, **given),
        base.regressor,
        minimal.inverse_dynamics,
    ):
        whole = function(*samples)
        out = np.full_like(whole, np.nan)
        for first in range(0, count, 1003):  # no multiple of the vectors' length
            rows = slice(first, first + 1003)
            function(*(x[rows] for x in samples), out=out[rows])
        np.testing.assert_array_equal(out, whole)


@settings(max_examples=20, deadline=None)
@given(robot=dh_robots(), seed=st.integers(0, 2**32 - 1))
def test_one_sample_is_a_row_of_the_batch(robot, seed):
    samples, base = motion(robot.n, 9, seed=seed), base_parameters(robot, viscous=True)
    for function in (
        lambda *at: inverse_dynamics(robot, *at, friction=True),
        lambda *at: full_regressor(robot, *at, rotor_inertia=True, offset=True),
        base.regressor,
    ):
        whole = function(*samples)
        for _ in range(2):  # from the second call on some have a function of their own
            rows = np.concatenate([function(*(x[k : k + 1] for x in samples)) for k in range(9)])
            np.testing.assert_allclose(rows, whole, rtol=0, atol=1e-13 * max(1.0, np.abs(whole).max()))


@pytest.mark.parametrize(
    ('out', 'message'),
    [
        (np.zeros((3, 5)), r'shape \(3, 6\), got shape \(3, 5\)'),
        (np.zeros((3, 6), np.float32), 'got float32'),
        (np.zeros((3, 6), '>f8'), 'got >f8'),
        (np.zeros((3, 12))[:, ::2], 'not contiguous; give a whole array'),
        (np.zeros((6, 3)).T, 'not contiguous'),
        (np.broadcast_to(0.0, (3, 6)), 'not contiguous|read-only'),
        ([[0.0] * 6] * 3, 'got list'),
        ('input', 'shares memory with an input'),
    ],
)
def test_unfit_memory_is_refused(out, message):
    robot = arm('ur10')
    samples = motion(robot.n, 3)
    out = samples[1] if isinstance(out, str) else out
    with pytest.raises(DataError, match=message):
        inverse_dynamics(robot, *samples, out=out)
    with pytest.raises(DataError, match=message):
        minimal_model(robot).inverse_dynamics(*samples, out=out)
    for function in (lambda *at, **given: full_regressor(robot, *at, **given), base_parameters(robot).regressor):
        with pytest.raises(DataError, match=r'float64 array of shape \(3, 6, \d\d\), got'):
            function(*samples, out=out)


def test_memory_that_is_read_only_is_refused():
    robot, out = arm('ur10'), np.zeros((3, 6))
    out.flags.writeable = False
    with pytest.raises(DataError, match='read-only'):
        inverse_dynamics(robot, *motion(6, 3), out=out)
