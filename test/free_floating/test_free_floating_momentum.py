# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Momentum, base motion and regression, against closed forms, conservation laws and random robots."""

import numpy as np
import pytest
from errors_helpers import refused
from free_floating_helpers import example_robot, planar_robot, point_jacobian, random_robot, random_trajectory
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.errors import DataError, ModelError
from robotid_ros.excitation import FourierTrajectory
from robotid_ros.free_floating import FreeFloatingRobot, RigidBody, simulate
from robotid_ros.free_floating.design import last_body_motion
from robotid_ros.free_floating.regression import target_regression
from robotid_ros.free_floating.robot import momentum_map
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import rotation_of_quaternion

SEEDS = st.integers(0, 2**32 - 1)


def momentum_by_definition(robot, measurement):
    """Return P and L about the inertial origin, body by body from the definition, in the inertial frame."""
    model = robot.model
    rotation = rotation_of_quaternion(measurement.base_orientation)
    v0 = np.einsum('nab,nb->na', rotation, measurement.base_twist[:, :3])
    w0 = np.einsum('nab,nb->na', rotation, measurement.base_twist[:, 3:])
    poses = link_transforms(model, measurement.q)
    linear, angular = np.zeros((len(v0), 3)), np.zeros((len(v0), 3))
    for k in range(-1, model.n):
        mass, center, inertia = split_inertial_parameters(model.base_inertial if k < 0 else model.inertial[k])
        if k < 0:
            where, turned = np.tile(center, (len(v0), 1)), np.tile(np.eye(3), (len(v0), 1, 1))
            velocity, rate = np.zeros_like(v0), np.zeros_like(v0)
        else:
            turned = poses[:, k, :3, :3]
            where = turned @ center + poses[:, k, :3, 3]
            jacobian = point_jacobian(model, measurement.q, k, center)
            velocity, rate = np.split(np.einsum('nij,nj->ni', jacobian, measurement.dq), 2, axis=1)
        arm = np.einsum('nab,nb->na', rotation, where)
        position = measurement.base_position + arm
        speed = v0 + np.cross(w0, arm) + np.einsum('nab,nb->na', rotation, velocity)
        spin = w0 + np.einsum('nab,nb->na', rotation, rate)
        tensor = rotation @ turned @ inertia @ np.swapaxes(rotation @ turned, 1, 2)
        linear += mass * speed
        angular += np.einsum('nab,nb->na', tensor, spin) + mass * np.cross(position, speed)
    return linear, angular


def center_of_mass(robot, measurement):
    model = robot.model
    poses = np.concatenate([np.tile(np.eye(4), (len(measurement), 1, 1, 1)), link_transforms(model, measurement.q)], 1)
    inertial = np.vstack([model.base_inertial, model.inertial])
    homogeneous = np.concatenate([inertial[:, 6:9], inertial[:, 9:]], axis=1)
    moment = np.einsum('nkab,kb->na', poses, homogeneous)
    return measurement.base_position + np.einsum(
        'nab,nb->na', rotation_of_quaternion(measurement.base_orientation), moment[:, :3] / moment[:, 3:]
    )


@pytest.mark.slow
@pytest.mark.parametrize('momentum', [np.zeros(6), np.array([3.0, -2.0, 1.0, 0.4, 0.5, -0.3])])
def test_simulation_conserves_momentum_to_1e_10(momentum):
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(1), robot.n)
    pose = {'position': [0.3, -0.2, 0.1], 'orientation': np.array([0.5, 0.5, -0.5, 0.5])}
    measurement = simulate(robot, trajectory, np.linspace(0.0, 10.0, 101), momentum=momentum, **pose)
    linear, angular = momentum_by_definition(robot, measurement)
    assert np.abs(linear - momentum[:3]).max() < 1e-10
    assert np.abs(angular - momentum[3:]).max() < 1e-10


@pytest.mark.slow
def test_center_of_mass_of_the_whole_moves_uniformly():
    # this needs the integrated pose itself, not only the twist
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(2), robot.n)
    total = robot.model.inertial[:, 9].sum() + robot.model.base_inertial[9]
    momentum = np.array([3.0, -2.0, 1.0, 0.4, 0.5, -0.3])
    measurement = simulate(robot, trajectory, np.linspace(0.0, 10.0, 81), momentum=momentum)
    where = center_of_mass(robot, measurement)
    assert np.abs(where - where[0] - np.outer(measurement.time, momentum[:3] / total)).max() < 1e-10


@pytest.mark.slow
def test_pose_does_not_depend_on_the_sampling():
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(3), robot.n)
    coarse = simulate(robot, trajectory, np.linspace(0.0, 10.0, 6))
    fine = simulate(robot, trajectory, np.linspace(0.0, 10.0, 101))
    assert np.abs(coarse.base_position - fine.base_position[::20]).max() < 1e-11
    assert np.abs(coarse.base_orientation - fine.base_orientation[::20]).max() < 1e-11


def test_planar_base_turns_as_the_closed_form_says():
    # base centre at the hinge: with reduced mass mu, (1.5 + J) w0 + J dq = 0 about the common centre
    robot = planar_robot()
    mu = 2.0 * 10.0 / 12.0
    outer = 0.2 + mu * 0.25
    twist = momentum_map(robot.model, np.array([[0.7]])).base_twist(np.array([[1.3]]))
    assert twist[0, 5] == pytest.approx(-outer / (1.5 + outer) * 1.3, rel=1e-13)
    # after a whole number of periods the base is back, and the rotation is -ratio times the joint's
    trajectory = FourierTrajectory(a=[[0.8]], b=[[0.0]], offset=[0.0], base_frequency=0.25)
    measurement = simulate(robot, trajectory, np.array([0.0, 1.0, 4.0]))
    turned = 2.0 * np.arctan2(measurement.base_orientation[:, 3], measurement.base_orientation[:, 0])
    expected = -outer / (1.5 + outer) * trajectory.position([0.0, 1.0, 4.0])[:, 0]
    assert np.abs(turned - expected).max() < 1e-12
    assert np.abs(measurement.base_position[2]).max() < 1e-12


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 7), sliding=st.booleans())
def test_the_base_twist_leaves_no_momentum(seed, n, sliding):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n, prismatic=(n - 1,) if sliding else ())
    q, dq = rng.normal(size=(4, n)), rng.normal(size=(4, n))
    maps = momentum_map(robot.model, q)
    assert np.abs(maps.momentum(maps.base_twist(dq), dq)).max() < 1e-9


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 7), moving=st.booleans())
def test_true_parameters_solve_the_regression_of_any_robot(seed, n, moving):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n, prismatic=(0,) if n > 2 else ())
    momentum = rng.normal(size=6) if moving else np.zeros(6)
    measurement = simulate(robot, random_trajectory(rng, n), np.linspace(0.0, 3.0, 7), momentum=momentum)
    rows, right = target_regression(robot, measurement, momentum)
    residual = rows @ robot.body.unknowns - right
    size = np.abs(rows * robot.body.unknowns).max()
    assert np.abs(residual).max() < 1e-11 * size


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(seed=SEEDS)
def test_one_two_three_samples_have_rank_six_nine_ten(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 7)
    measurement = simulate(robot, random_trajectory(rng, 7), np.array([0.0, 0.9, 2.0]))
    A = target_regression(robot, measurement)[0]
    ranks = [int(np.linalg.matrix_rank(A[:k].reshape(-1, 10))) for k in (1, 2, 3)]
    assert ranks == [6, 9, 10]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(seed=SEEDS)
def test_condition_does_not_depend_on_the_base_pose(seed):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, 6)
    trajectory, time = random_trajectory(rng, 6), np.linspace(0.0, 2.0, 12)
    quaternion = rng.normal(size=4)
    moved = simulate(
        robot, trajectory, time, position=rng.normal(size=3), orientation=quaternion / np.linalg.norm(quaternion)
    )
    first, second = (
        np.linalg.svd(target_regression(robot, m)[0].reshape(-1, 10), compute_uv=False)
        for m in (simulate(robot, trajectory, time), moved)
    )
    assert np.allclose(first, second, rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=SEEDS, n=st.integers(2, 7))
def test_reverse_derivative_agrees_with_differences(seed, n):
    rng = np.random.default_rng(seed)
    robot = random_robot(rng, n, prismatic=(1,))
    coupling = np.eye(n) + 0.1 * rng.normal(size=(n, n))
    model = robot.model.with_inertial(robot.model.inertial, coupling=coupling)
    q, dq, weight = rng.normal(size=(3, n)), rng.normal(size=(3, n)), rng.normal(size=(3, 6))
    step_q, step_dq = rng.normal(size=(3, n)), rng.normal(size=(3, n))
    _, pull_back = last_body_motion(model, q, dq)
    to_q, to_dq = pull_back(weight)

    def value(h):
        return float(np.sum(weight * last_body_motion(model, q + h * step_q, dq + h * step_dq)[0]))

    h = 1e-4
    slope = (8.0 * (value(h) - value(-h)) - (value(2 * h) - value(-2 * h))) / (12.0 * h)
    scale = np.abs(to_q).max() + np.abs(to_dq).max()
    assert abs(np.sum(to_q * step_q) + np.sum(to_dq * step_dq) - slope) < 1e-8 * scale


def test_momentum_derivative_agrees_with_differences():
    rng = np.random.default_rng(5)
    robot = random_robot(rng, 5, prismatic=(2,))
    q, dq, twist = rng.normal(size=(4, 5)), rng.normal(size=(4, 5)), rng.normal(size=(4, 6))
    derivative = momentum_map(robot.model, q).position_derivative(twist, dq)

    def momentum(q):
        return momentum_map(robot.model, q).momentum(twist, dq)

    for j in range(5):
        step = 1e-5 * np.eye(5)[j]
        slope = (momentum(q + step) - momentum(q - step)) / 2e-5
        assert np.abs(derivative[:, :, j] - slope).max() < 1e-7 * np.abs(derivative).max()


def test_base_inertia_comes_from_the_urdf_or_is_given():
    robot = example_robot()
    assert robot.arm.base_inertial[9] == pytest.approx(305.0)  # satellite and the arm's foot
    assert robot.target.mass == pytest.approx(40.0)
    body = RigidBody(mass=12.0, center_of_mass=[0.0, 0.0, 0.1], inertia=np.eye(3))
    urdf = """<robot name="r"><link name="b"/><link name="l"><inertial><mass value="1"/>
        <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
        <joint name="j" type="continuous"><parent link="b"/><child link="l"/><axis xyz="0 0 1"/></joint></robot>"""
    with pytest.warns(UserWarning, match='limit'):
        assert FreeFloatingRobot.from_urdf(urdf, base=body).arm.base_inertial[9] == 12.0
    with pytest.warns(UserWarning, match='limit'), pytest.raises(ModelError, match="'b' has no mass"):
        FreeFloatingRobot.from_urdf(urdf)


def test_bodies_that_cannot_be_are_refused():
    good = {'mass': 1.0, 'center_of_mass': [0, 0, 0], 'inertia': np.eye(3)}
    with refused(ModelError, name='mass', found=-40.0):
        RigidBody(**{**good, 'mass': -40.0})
    with pytest.raises(ModelError, match='triangle'):
        RigidBody(**{**good, 'inertia': np.diag([1.0, 1.0, 3.0])})
    with refused(ModelError, name='inertia'):
        RigidBody(**{**good, 'inertia': np.eye(3) + np.diag([1.0, 0.0], 1)})
    with refused(ModelError, name='center_of_mass'):
        RigidBody(**{**good, 'center_of_mass': [np.nan, 0, 0]})
    arm = example_robot().arm
    with refused(ModelError, name=arm.base_name):
        FreeFloatingRobot(arm=arm.with_inertial(arm.inertial, base_inertial=np.zeros(10)), body=RigidBody(**good))


def test_simulation_refuses_what_it_cannot_do():
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(0), robot.n)
    with pytest.raises(ModelError, match='moves 3 joints, the arm has 7'):
        simulate(robot, random_trajectory(np.random.default_rng(0), 3), np.arange(3.0))
    with refused(DataError, name='time'):
        simulate(robot, trajectory, np.array([0.0, 0.0]))
    with refused(DataError, name='orientation', expected=1.0):
        simulate(robot, trajectory, np.arange(3.0), orientation=[1.0, 1.0, 0.0, 0.0])
    with refused(DataError, name='momentum'):
        simulate(robot, trajectory, np.arange(3.0), momentum=[0.0, np.inf, 0, 0, 0, 0])


def test_model_keeps_what_is_fixed_to_the_base():
    model = RobotModel.from_urdf(example_robot().arm.source)
    mass, center, _ = split_inertial_parameters(model.base_inertial)
    assert mass == pytest.approx(305.0)
    assert center == pytest.approx([5.0 * 0.1 / 305.0, 0.0, 5.0 * 0.67 / 305.0])
