# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How many parameters measurements of each kind determine, and what stays fixed."""

import numpy as np
import pytest
from calibration_helpers import elbow_puma, iiwa_modified, measured, random_frame, scara, ur10e
from hypothesis import given, settings
from hypothesis import strategies as st

from robotid_ros.calibration import CalibrationConfig, CalibrationResult, MeasuredPoints, calibrate
from robotid_ros.calibration.chain import chain_of_dh
from robotid_ros.calibration.pose_selection import random_configurations
from robotid_ros.model.dh_table import DHTable
from robotid_ros.simulation.measured_arm import example_arm, example_table

OFF_AXIS = (0.06, -0.04, 0.11)


def _calibrated(
    table: DHTable, *, target: tuple[float, ...] = OFF_AXIS, known_frame: bool, targets=None, **options
) -> CalibrationResult:
    rng = np.random.default_rng(0)
    q = random_configurations(table, 60, rng)
    chain = chain_of_dh(table)
    pose = chain.evaluate(chain.nominal, q)
    tips = np.tile(np.eye(4), (60, 1, 1))
    tips[:, :3, :3], tips[:, :3, 3] = pose.rotation, pose.position
    frame = None if known_frame else random_frame(rng)
    points = measured(table.joint_names, q, tips, rng, frame=frame, target=target, noise=1e-5)
    config = CalibrationConfig(frame='known' if known_frame else 'unknown', folds=0, **options)
    return calibrate(table, points, config, targets=targets)


@pytest.mark.parametrize('table', [elbow_puma(), example_table()], ids=['puma', 'elbow'])
def test_known_base_position_only_off_axis_23(table: DHTable) -> None:
    unknown_target = _calibrated(table, known_frame=True)
    known_target = _calibrated(table, known_frame=True, tool='known', targets={'': OFF_AXIS})
    assert unknown_target.identifiable == known_target.identifiable == 23


def test_known_base_position_only_target_on_axis_6() -> None:
    """20 for the flange origin of this arm; a target farther out on the axis also shows its direction."""
    at_flange = _calibrated(example_table(), known_frame=True, tool='known', target=(0.0, 0.0, 0.0))
    assert at_flange.identifiable == 20
    fixed = {p.name: p.reason for p in at_flange.parameters if p.reason}
    assert 'does not move the target' in fixed['joint6.theta']
    assert 'does not move the target' in fixed['joint6.alpha']
    beyond = _calibrated(
        example_table(), known_frame=True, tool='known', target=(0.0, 0.0, 0.1), targets={'': [0.0, 0.0, 0.1]}
    )
    assert beyond.identifiable == 21


@pytest.mark.parametrize('table', [elbow_puma(), example_table(), ur10e()], ids=['puma', 'elbow', 'ur10e'])
def test_unknown_frame_position_only_27(table: DHTable) -> None:
    result = _calibrated(table, known_frame=False)
    assert result.identifiable == result.structural == 27


@pytest.mark.parametrize(
    ('known_frame', 'tool', 'count'),
    [(True, 'position', 25), (True, 'known', 24), (True, 'pose', 26), (False, 'pose', 30)],
)
def test_full_pose(known_frame: bool, tool: str, count: int) -> None:
    """25 with a known base and the target's place unknown; its orientation, if unknown too, adds one."""
    rng = np.random.default_rng(1)
    arm = example_arm(rng, known_frame=known_frame)
    points = arm.measure(arm.configurations(60, rng), rng, angle_noise=1e-4)
    result = calibrate(
        arm.nominal,
        points,
        CalibrationConfig(frame='known' if known_frame else 'unknown', tool=tool, folds=0),
        targets={'': arm.tool} if tool != 'pose' else None,
    )
    assert result.identifiable == count


def test_other_arms_obey_the_count_of_independent_parameters() -> None:
    """4 per turning joint, 2 per slide and 6, less 3 for the tool's orientation (Everett, Driels, Mooring 1987)."""
    assert _calibrated(iiwa_modified(), known_frame=False).structural == 4 * 7 + 6 - 3
    # the SCARA never tilts: measured along one axis, its target cannot show all of that
    assert _calibrated(scara(), known_frame=False).structural <= 4 * 3 + 2 + 6 - 3


def test_poses_that_do_not_move_a_joint_say_so() -> None:
    rng = np.random.default_rng(2)
    arm = example_arm(rng)
    q = arm.configurations(60, rng)
    q[:, 4] = 0.3
    result = calibrate(arm.nominal, arm.measure(q, rng), CalibrationConfig(folds=0))
    assert result.identifiable < result.structural == 27
    reasons = [p.reason for p in result.parameters if 'these poses' in p.reason]
    assert reasons
    assert all('joint' in reason or 'frame' in reason or 'tool' in reason for reason in reasons)
    assert np.isfinite(result.condition_number)


def test_one_of_two_parallel_offsets_is_fixed_and_the_other_named() -> None:
    result = _calibrated(example_table(), known_frame=True)
    fixed = {p.name: p.reason for p in result.parameters if p.reason}
    assert 'joint2.d' in fixed
    assert 'joint3.d' in fixed['joint2.d']
    assert all(p.std is not None and p.std > 0.0 for p in result.parameters if not p.reason)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_rank_is_that_of_the_jacobian(seed: int) -> None:
    """Whatever is chosen has full rank, and nothing that was left out would add to it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    table = DHTable(
        joint_names=tuple(f'j{k}' for k in range(n)),
        theta=np.zeros(n),
        d=rng.uniform(0.1, 0.4, n),
        a=rng.uniform(0.1, 0.4, n),
        alpha=rng.choice([0.0, np.pi / 2, -np.pi / 2], n),
    )
    result = _calibrated(table, known_frame=False)
    problem, state = result.problem, result.nominal.state
    jacobian = problem.linearise(state)[1].reshape(-1, sum(problem.sizes))
    used = [k for k, name in enumerate(problem.names) if not (name.startswith('tool') and '.r' in name)]
    norms = np.linalg.norm(jacobian, axis=0)
    scaled = jacobian / np.where(norms > 1e-9 * np.sqrt(len(jacobian)), norms, np.inf)
    chosen = result.fit.free
    assert np.linalg.matrix_rank(scaled[:, chosen], tol=1e-7) == len(chosen) == result.identifiable
    assert np.linalg.matrix_rank(scaled[:, used], tol=1e-3) <= len(chosen)


def test_coincident_measurements_add_no_rank() -> None:
    rng = np.random.default_rng(3)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(40, rng), rng)
    twice = points.select(np.tile(np.arange(40), 2))
    assert isinstance(twice, MeasuredPoints)
    assert calibrate(arm.nominal, twice, CalibrationConfig(folds=0)).identifiable == 27
