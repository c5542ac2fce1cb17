# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The chain, the analytic Jacobian, rotations, and the placement of frames: against other people's formulas."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_helpers import (
    dh_poses,
    elbow_puma,
    iiwa_modified,
    random_frame,
    random_rotation,
    random_table,
    scara,
    turn,
    ur10e,
)
from hypothesis import given, settings
from hypothesis import strategies as st

import robotid_ros
from robotid_ros.calibration.chain import chain_of_dh, chain_of_model, joint_terms, parallel_rows
from robotid_ros.calibration.placement import place
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.problem import Problem, State, independent_columns
from robotid_ros.calibration.solver import TERM_KINDS
from robotid_ros.model import RobotModel
from robotid_ros.model.kinematics import tip_transforms
from robotid_ros.model.transforms import (
    nearest_rotation,
    quaternion_of_rotation,
    rotation_of_quaternion,
    rotation_of_vector,
    vector_of_rotation,
)

UR10E = Path(robotid_ros.__file__).parent / 'robots' / 'ur10e.urdf'
SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 8), convention=st.sampled_from(['standard', 'modified']))
def test_the_chain_of_any_table_is_the_product_of_elementary_matrices(seed: int, n: int, convention: str) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, n, convention)
    table = replace(table, beta=rng.normal(0.0, 0.01, n))
    q = rng.uniform(-2.0, 2.0, (4, n))
    chain = chain_of_dh(table)
    pose = chain.evaluate(chain.nominal, q)
    expected = dh_poses(table, q)
    np.testing.assert_allclose(pose.position, expected[:, :3, 3], atol=1e-13)
    np.testing.assert_allclose(pose.rotation, expected[:, :3, :3], atol=1e-13)
    np.testing.assert_allclose(tip_transforms(table.robot_model(), q), expected, atol=1e-13)


def test_the_chain_of_a_urdf_is_pinocchios() -> None:
    pinocchio = pytest.importorskip('pinocchio')
    model = RobotModel.from_urdf(UR10E)
    oracle = pinocchio.buildModelFromUrdf(str(UR10E))
    data = oracle.createData()
    chain = chain_of_model(model)
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (5, model.n))
    pose = chain.evaluate(chain.nominal, q)
    frame = oracle.getFrameId(model.tip_name)
    for k, row in enumerate(q):
        pinocchio.framesForwardKinematics(oracle, data, row)
        np.testing.assert_allclose(pose.position[k], data.oMf[frame].translation, atol=1e-12)
        np.testing.assert_allclose(pose.rotation[k], data.oMf[frame].rotation, atol=1e-12)


def _random_problem(rng: np.random.Generator, robot: object, full_pose: bool) -> tuple[Problem, State]:
    chain = chain_of_model(robot) if isinstance(robot, RobotModel) else chain_of_dh(robot)
    q = rng.uniform(-2.0, 2.0, (6, chain.n))
    rotations = np.stack([random_rotation(rng) for _ in q])
    points = MeasuredPoints(
        joint_names=chain.joint_names,
        q=q,
        position=rng.normal(size=(6, 3)),
        orientation=quaternion_of_rotation(rotations) if full_pose else None,
        sets=('A', 'B', 'A', 'B', 'A', 'A'),
        points=('1', '1', '2', '2', '1', '2'),
    )
    gravity = np.array([1.0, 2.0, -9.0])
    terms, _ = joint_terms(chain, TERM_KINDS, gravity, robot if isinstance(robot, RobotModel) else None)
    problem = Problem.of(points, chain, terms)
    state = State(
        frames=np.stack([random_frame(rng) for _ in range(2)]),
        tools=np.stack([random_frame(rng, 0.2) for _ in range(2)]),
        geometry=chain.nominal + rng.normal(0.0, 0.02, len(chain.names)),
        coefficients=rng.normal(0.0, 1e-3, len(terms.terms)),
    )
    return problem, state


@pytest.mark.slow
@pytest.mark.parametrize('full_pose', [False, True])
@pytest.mark.parametrize(
    'robot',
    [elbow_puma(), ur10e(), iiwa_modified(), scara(), RobotModel.from_urdf(UR10E)],
    ids=['puma', 'ur10e', 'iiwa', 'scara', 'urdf'],
)
def test_every_column_of_the_jacobian_is_the_central_difference(robot: object, full_pose: bool) -> None:
    problem, state = _random_problem(np.random.default_rng(1), robot, full_pose)
    _, jacobian = problem.linearise(state)
    for k in range(jacobian.shape[2]):
        scale = max(1.0, np.abs(jacobian[:, :, k]).max())  # 130 N m of torque make a large column
        step = 2e-5 / scale
        move = np.zeros(jacobian.shape[2])
        move[k] = step
        ahead, behind = problem.moved(state, move), problem.moved(state, -move)
        # positions are those of the residual, orientations are compared with each other, not with the measured
        there, back = (problem.residual(each) for each in (ahead, behind))
        np.testing.assert_allclose(jacobian[:, :3, k], (back - there)[:, :3] / (2 * step), rtol=0, atol=1e-8 * scale)
        if full_pose:
            turned = vector_of_rotation(_rotations(problem, ahead) @ np.swapaxes(_rotations(problem, behind), 1, 2))
            np.testing.assert_allclose(jacobian[:, 3:, k], turned / (2 * step), rtol=0, atol=1e-8 * scale)


def _rotations(problem: Problem, state: State) -> np.ndarray:
    """Predicted orientations, from the residual's definition: R = log(R_measured R^T) solved for R."""
    vectors = problem.residual(state)[:, 3:]
    relative = np.stack([rotation_of_vector(vector) for vector in vectors])
    return np.swapaxes(relative, 1, 2) @ problem.rotation


def test_columns_of_a_dh_table_are_the_textbooks() -> None:
    """theta: z x (p - o), d: z of the frame before; a: x, alpha: x x (p - o), beta: y x (p - o) of the frame after."""
    table = elbow_puma()
    chain = chain_of_dh(table)
    q = np.random.default_rng(2).uniform(-2.0, 2.0, (3, 6))
    pose = chain.evaluate(chain.nominal, q)
    frames = np.empty((3, 7, 4, 4))
    for k in range(3):
        frames[k, 0] = np.eye(4)
        for i in range(6):
            row = turn(2, q[k, i] + table.theta[i])
            row[:3, 3] = row[:3, :3] @ [table.a[i], 0, 0] + [0, 0, table.d[i]]
            frames[k, i + 1] = frames[k, i] @ row @ turn(0, table.alpha[i])
    tip = frames[:, 6, :3, 3]
    for i, joint in enumerate(table.joint_names):
        before, after = frames[:, i], frames[:, i + 1]
        expected = {
            'theta': np.cross(before[:, :3, 2], tip - before[:, :3, 3]),
            'd': before[:, :3, 2],
            'a': after[:, :3, 0],
            'alpha': np.cross(after[:, :3, 0], tip - after[:, :3, 3]),
            'beta': np.cross(after[:, :3, 1], tip - after[:, :3, 3]),
        }
        for symbol, column in expected.items():
            name = f'{joint}.{symbol}'
            if name not in chain.names:
                assert symbol == 'beta'
                assert joint != 'b'
                continue
            k = chain.names.index(name)
            arm = tip - pose.origins[:, :, k]
            mine = np.cross(pose.axes[:, :, k], arm) if chain.rotates[k] else pose.axes[:, :, k]
            np.testing.assert_allclose(mine, column, atol=1e-12, err_msg=name)


def test_beta_stands_between_parallel_axes_only() -> None:
    assert parallel_rows(elbow_puma()) == [1]
    assert parallel_rows(ur10e()) == [1, 2]
    assert parallel_rows(iiwa_modified()) == []
    assert parallel_rows(scara()) == [0, 1, 2]  # a slide's axis may be tilted both ways too
    nearly = replace(elbow_puma(), alpha=elbow_puma().alpha + np.deg2rad(3.0))
    assert parallel_rows(nearly) == [1]


@given(seed=SEEDS, angle=st.floats(0.0, np.pi))
@settings(max_examples=60, deadline=None)
def test_rotation_vectors_and_quaternions_round_trip(seed: int, angle: float) -> None:
    axis = np.random.default_rng(seed).normal(size=3)
    vector = angle * axis / np.linalg.norm(axis)
    rotation = rotation_of_vector(vector)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-14)
    np.testing.assert_allclose(rotation @ vector, vector, atol=1e-14)
    back = vector_of_rotation(rotation[None])[0]
    np.testing.assert_allclose(rotation_of_vector(back), rotation, atol=1e-7)
    assert abs(np.linalg.norm(back) - angle) < 1e-7
    np.testing.assert_allclose(rotation_of_quaternion(quaternion_of_rotation(rotation[None]))[0], rotation, atol=1e-13)


def test_the_nearest_rotation_is_never_a_reflection() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        rotation = nearest_rotation(rng.normal(size=(3, 3)))
        np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(rotation) > 0.0


@pytest.mark.slow
@given(seed=SEEDS, sets=st.integers(1, 3), targets=st.integers(1, 3), spoiled=st.integers(0, 6))
@settings(max_examples=25, deadline=None)
def test_frames_and_targets_are_placed_without_a_guess(seed: int, sets: int, targets: int, spoiled: int) -> None:
    rng = np.random.default_rng(seed)
    count = 60
    frames = np.stack([random_frame(rng, 10.0) for _ in range(sets)])
    tools = rng.uniform(-0.3, 0.3, (targets, 3))
    table = elbow_puma()
    q = rng.uniform(-np.pi, np.pi, (count, table.n))
    tip = tip_transforms(table.robot_model(), q)
    set_index, point_index = np.arange(count) % sets, (np.arange(count) // sets) % targets
    base = tip[:, :3, 3] + np.einsum('nij,nj->ni', tip[:, :3, :3], tools[point_index])
    position = np.einsum('nij,nj->ni', frames[set_index, :3, :3], base) + frames[set_index, :3, 3]
    position[rng.choice(count, spoiled, replace=False)] += rng.normal(0.0, 2.0, (spoiled, 3))
    labels = {'sets': tuple(map(str, set_index)), 'points': tuple(map(str, point_index))}
    points = MeasuredPoints(joint_names=table.joint_names, q=q, position=position, **labels)
    chain = chain_of_dh(table)
    problem = Problem.of(points, chain, joint_terms(chain, (), np.zeros(3))[0])
    error, placed, targets = place(problem, chain.nominal, rng=np.random.default_rng(0))
    np.testing.assert_allclose(targets, tools, atol=1e-3)
    np.testing.assert_allclose(placed[:, :3, :3], frames[:, :3, :3], atol=5e-3)
    assert error < 1e-3


def test_pivoted_columns_span_the_rest_and_name_what_they_replace() -> None:
    rng = np.random.default_rng(4)
    basis = rng.normal(size=(50, 4))
    matrix = np.column_stack(
        [basis[:, 0], basis[:, 1], 3.0 * basis[:, 0], basis[:, 2], np.zeros(50), basis[:, :2].sum(1)]
    )
    chosen, redundant = independent_columns(matrix, [np.array([2, 3]), np.array([0, 1, 4, 5])])
    assert set(chosen) >= {2, 3}
    assert len(chosen) == np.linalg.matrix_rank(matrix) == 3
    assert set(redundant) == set(range(6)) - set(chosen)
    assert redundant[4] == ()
    assert redundant[0][0] == 2
