# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Calibrations of simulated arms: what was planted is found, and found as well as theory allows."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from calibration_helpers import dh_poses, iiwa_modified, measured, random_frame, scara, shift, ur10e
from hypothesis import given, settings
from hypothesis import strategies as st

import robotid_ros
from robotid_ros.calibration import CalibrationConfig, MeasuredPoints, calibrate
from robotid_ros.calibration.chain import chain_of_dh
from robotid_ros.calibration.pose_selection import random_configurations, select_poses
from robotid_ros.calibration.solver import folds_of, held_out_errors
from robotid_ros.commands.terminal import report_table
from robotid_ros.model import RobotModel
from robotid_ros.model.dh_table import DHTable
from robotid_ros.report.calibration import accuracy_table
from robotid_ros.simulation.measured_arm import example_arm, example_table

UR10E = Path(robotid_ros.__file__).parent / 'robots' / 'ur10e.urdf'


def _spoiled(table: DHTable, rng: np.random.Generator, names: tuple[str, ...], size: float = 2e-3) -> DHTable:
    """Errors in the named parameters only."""
    columns = {key: np.array(getattr(table, key)) for key in ('theta', 'd', 'a', 'alpha', 'beta')}
    for name in names:
        joint, _, symbol = name.rpartition('.')
        columns[symbol][table.joint_names.index(joint)] += rng.normal(0.0, size)
    return replace(table, **columns)


@pytest.mark.slow
@pytest.mark.parametrize('table', [example_table(), ur10e(), iiwa_modified()], ids=['elbow', 'ur10e', 'iiwa'])
@pytest.mark.parametrize('frame', ['known', 'unknown'])
def test_planted_errors_are_recovered(table: DHTable, frame: str) -> None:
    rng = np.random.default_rng(0)
    q = random_configurations(table, 60, rng)
    base = random_frame(rng) if frame == 'unknown' else np.eye(4)
    nominal_points = measured(table.joint_names, q, dh_poses(table, q), rng, frame=base, noise=1e-6)
    identifiable = tuple(
        p.name
        for p in calibrate(table, nominal_points, CalibrationConfig(frame=frame, folds=0)).parameters
        if not p.reason
    )
    actual = _spoiled(table, rng, identifiable)
    points = measured(table.joint_names, q, dh_poses(actual, q), rng, frame=base)
    result = calibrate(table, points, CalibrationConfig(frame=frame, folds=0))
    assert result.fit.converged
    assert result.after.max < 1e-9
    calibrated = result.calibrated_table()
    for key in ('theta', 'd', 'a', 'alpha', 'beta'):
        np.testing.assert_allclose(getattr(calibrated, key), getattr(actual, key), atol=1e-8, err_msg=key)
    np.testing.assert_allclose(result.frames[''], base, atol=1e-8)
    np.testing.assert_allclose(result.tools[''][:3, 3], [0.06, -0.04, 0.11], atol=1e-8)
    assert result.before.rms > 1e-3


@pytest.mark.parametrize('table', [example_table(), ur10e(), iiwa_modified()], ids=['elbow', 'ur10e', 'iiwa'])
def test_six_points_give_the_least_change_that_explains_them(table: DHTable) -> None:
    """As the pseudoinverse has it, of a Jacobian by differences; beside it the average of the points' own answers."""
    rng = np.random.default_rng(1)
    q = random_configurations(table, 6, rng)
    config = CalibrationConfig(frame='known', tool='known', few_poses='least_norm')
    target = {'': (0.06, -0.04, 0.11)}
    names = chain_of_dh(table).names
    actual = _spoiled(table, rng, names, size=1e-4)
    points = measured(table.joint_names, q, dh_poses(actual, q), rng)
    held = measured(table.joint_names, unseen := random_configurations(table, 100, rng), dh_poses(actual, unseen), rng)
    result = calibrate(table, points, config, held_out=held, targets=target)

    free = [p.name for p in result.parameters if not p.reason]
    at = measured(table.joint_names, q, dh_poses(table, q), rng).position
    columns = []
    for name in free:
        moved = _moved(table, name, 1e-6)
        columns.append((measured(table.joint_names, q, dh_poses(moved, q), rng).position - at) / 1e-6)
    jacobian, right = np.stack(columns, axis=-1), points.position - at
    least = np.linalg.pinv(jacobian.reshape(18, -1)) @ right.ravel()
    changed = np.array([p.value - p.nominal for p in result.parameters if not p.reason])
    assert len(free) > 18
    np.testing.assert_allclose(changed, least, atol=0.01 * np.abs(least).max())
    average = np.mean([np.linalg.pinv(part) @ wanted for part, wanted in zip(jacobian, right, strict=True)], axis=0)
    left = np.linalg.norm(right - jacobian @ average, axis=1)
    assert result.averaged['training'].rms == pytest.approx(_rms(left), rel=0.02)
    assert result.after.max < 1e-7
    assert not result.usable
    assert not result.to_dict()['usable']
    assert 'least norm: 18 numbers do not determine' in result.to_dict()['reason']
    assert result.averaged['held_out'].rms > result.held_out.after.rms


def _moved(table: DHTable, name: str, step: float) -> DHTable:
    joint, _, symbol = name.rpartition('.')
    column = np.array(getattr(table, symbol))
    column[table.joint_names.index(joint)] += step
    return replace(table, **{symbol: column})


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_arm_with_errors_everywhere_is_predicted_at_poses_it_was_not_measured_at(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 8))
    table = DHTable(
        joint_names=tuple(f'j{k}' for k in range(n)),
        theta=rng.uniform(-np.pi, np.pi, n),
        d=rng.uniform(0.1, 0.4, n),
        a=rng.uniform(0.1, 0.4, n),
        alpha=rng.choice([0.0, np.pi / 2, -np.pi / 2, np.pi, 0.5], n),
        direction=rng.choice([-1.0, 1.0], n),
        convention=str(rng.choice(['standard', 'modified'])),
    )
    names = chain_of_dh(table).names
    actual = _spoiled(table, rng, names)
    q, unseen = random_configurations(table, 80, rng), random_configurations(table, 50, rng)
    frame = random_frame(rng)
    points = measured(table.joint_names, q, dh_poses(actual, q), rng, frame=frame)
    held = measured(table.joint_names, unseen, dh_poses(actual, unseen), rng, frame=frame)
    result = calibrate(table, points, CalibrationConfig(folds=0), held_out=held)
    assert result.held_out.after.max < 1e-6
    assert result.held_out.before.rms > 100.0 * result.held_out.after.rms


@pytest.mark.slow
@pytest.mark.parametrize(('count', 'target'), [(30, 1.0e-4), (100, 0.5e-4)])
def test_held_out_error_reaches_the_statistical_limit(count: int, target: float) -> None:
    """0.1 mm of noise, some 2 mm before; the floor is sigma sqrt(p / N) for p parameters in the measured volume."""
    chosen = select_poses(example_table(), count, candidates=600, frame='known', target=np.array([0.06, -0.04, 0.11]))
    errors, anywhere, before = [], [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        arm = example_arm(rng, known_frame=True)
        held_out = arm.measure(arm.configurations(300, rng), rng, noise=0.0)
        for q, found in ((chosen.q, errors), (arm.configurations(count, rng), anywhere)):
            result = calibrate(
                arm.nominal, arm.measure(q, rng), CalibrationConfig(frame='known', folds=0), held_out=held_out
            )
            found.append(result.held_out.after.rms)
        before.append(result.held_out.before.rms)
    floor = 1e-4 * np.sqrt(result.identifiable / count)
    assert 1.5e-3 < np.mean(before) < 4e-3
    assert _rms(errors) < target
    assert _rms(errors) < 1.1 * floor
    assert _rms(anywhere) < 1.3 * floor


def _rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.slow
def test_deviations_are_those_of_repeated_calibrations() -> None:
    rng = np.random.default_rng(5)
    arm = example_arm(rng)
    q = arm.configurations(60, rng)
    results = [calibrate(arm.nominal, arm.measure(q, rng), CalibrationConfig(folds=0)) for _ in range(40)]
    estimated = [k for k, p in enumerate(results[0].parameters) if not p.reason]
    values = np.array([[r.parameters[k].value for k in estimated] for r in results])
    told = np.array([[r.parameters[k].std for k in estimated] for r in results]).mean(axis=0)
    ratio = values.std(axis=0, ddof=1) / told
    assert ratio.min() > 0.6
    assert ratio.max() < 1.5
    assert 0.85 < np.sqrt(np.mean(np.square(ratio))) < 1.15
    assert abs(np.mean([r.fit.noise for r in results]) / 1e-4 - 1.0) < 0.05


@pytest.mark.slow
def test_cross_validation_tells_the_error_on_unseen_poses() -> None:
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        arm = example_arm(rng)
        held_out = arm.measure(arm.configurations(300, rng), rng)
        result = calibrate(arm.nominal, arm.measure(arm.configurations(60, rng), rng), held_out=held_out)
        ratios.append(result.cross_validation.after.rms / result.held_out.after.rms)
        assert result.after.rms < result.cross_validation.after.rms
        assert result.cross_validation.before.rms > 5.0 * result.cross_validation.after.rms
    assert 0.85 < np.mean(ratios) < 1.2


@pytest.mark.slow
@pytest.mark.parametrize('share', [0.05, 0.2])
@pytest.mark.parametrize('sizes', [[3e-3, 0.1, 20.0], [3e-3, 6e-3]], ids=['gross', 'small'])
def test_outliers_are_found_and_do_no_harm(share: float, sizes: list[float]) -> None:
    rng = np.random.default_rng(6)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(100, rng), rng)
    held_out = arm.measure(arm.configurations(200, rng), rng, noise=0.0)
    bad = rng.choice(100, int(100 * share), replace=False)
    position = np.array(points.position)
    position[bad] += rng.normal(0.0, 1.0, (len(bad), 3)) * rng.choice(sizes, (len(bad), 1))
    spoiled = MeasuredPoints(joint_names=points.joint_names, q=points.q, position=position)
    clean = calibrate(arm.nominal, points, CalibrationConfig(folds=0), held_out=held_out)
    robust = calibrate(arm.nominal, spoiled, held_out=held_out)
    assert {k for k, _, _ in robust.outliers} >= set(
        np.flatnonzero(np.linalg.norm(position - points.position, axis=1) > 2e-3)
    )
    assert robust.held_out.after.rms < 1.3 * clean.held_out.after.rms
    assert robust.after_inliers.rms < 2.5e-4 < robust.after.rms
    assert robust.cross_validation.after_inliers.rms < 3e-4
    assert len(report_table(accuracy_table(robust)).splitlines()[1].split()) == 11  # columns stay apart
    if max(sizes) < 0.01:  # with metres of error, plain squares find nothing at all
        plain = calibrate(arm.nominal, spoiled, CalibrationConfig(loss='linear', folds=0), held_out=held_out)
        assert plain.held_out.after.rms > 3.0 * robust.held_out.after.rms


def test_losses_agree_on_clean_measurements() -> None:
    rng = np.random.default_rng(7)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(100, rng), rng)
    held_out = arm.measure(arm.configurations(200, rng), rng, noise=0.0)
    errors = [
        calibrate(arm.nominal, points, CalibrationConfig(loss=loss, folds=0), held_out=held_out).held_out.after.rms
        for loss in ('linear', 'huber', 'hampel')
    ]
    assert max(errors) < 1.15 * min(errors)


def test_several_sets_and_targets_each_get_their_place() -> None:
    rng = np.random.default_rng(8)
    arm = example_arm(rng)
    other = replace(arm, frame=random_frame(rng))
    moved = replace(arm, tool=shift(-0.05, 0.09, 0.02))
    q = arm.configurations(90, rng)
    points = MeasuredPoints.joined(
        arm.measure(q[:40], rng, set_name='A', point_name='1'),
        moved.measure(q[40:60], rng, set_name='A', point_name='2'),
        replace(other, tool=moved.tool).measure(q[60:], rng, set_name='B', point_name='2'),
    )
    result = calibrate(arm.nominal, points)
    assert result.structural == 27 + 6 + 3
    assert set(result.frames) == {'A', 'B'}
    assert result.after.rms < 2e-4
    between = result.frames['A'] @ np.linalg.inv(result.frames['B'])
    np.testing.assert_allclose(between, arm.frame @ np.linalg.inv(other.frame), atol=1e-3)
    np.testing.assert_allclose(
        result.tools['2'][:3, 3] - result.tools['1'][:3, 3], moved.tool[:3, 3] - arm.tool[:3, 3], atol=3e-4
    )
    # a set and a target that the calibration never saw are placed by the held-out points alone
    third = replace(arm, frame=random_frame(rng), tool=shift(0.02, 0.02, 0.2))
    held_out = third.measure(arm.configurations(100, rng), rng, noise=0.0, set_name='C', point_name='3')
    seen = calibrate(arm.nominal, points, CalibrationConfig(folds=0), held_out=held_out).held_out
    assert set(seen.fitted) == {'frame[C]', 'tool[3]'}
    assert seen.after.rms < 1.2e-4
    assert seen.before.rms > 1e-3


def test_full_poses_use_the_orientation() -> None:
    rng = np.random.default_rng(9)
    arm = example_arm(rng)
    q = arm.configurations(40, rng)
    held_out = arm.measure(arm.configurations(200, rng), rng, noise=0.0, angle_noise=0.0)
    poses = arm.measure(q, rng, angle_noise=1e-4)
    result = calibrate(arm.nominal, poses, held_out=held_out)
    without = MeasuredPoints(joint_names=poses.joint_names, q=q, position=poses.position)
    positions = calibrate(
        arm.nominal, without, CalibrationConfig(folds=0), held_out=replace(held_out, orientation=None)
    )
    assert result.held_out.after.rms < positions.held_out.after.rms
    assert result.held_out.after.angle_rms < 1.5e-4
    assert result.held_out.before.angle_rms > 1e-3
    assert result.after.angle_rms == pytest.approx(1e-4 * np.sqrt(3.0), rel=0.3)
    some = np.array(poses.orientation)
    some[::3] = np.nan
    partly = calibrate(arm.nominal, replace(poses, orientation=some), CalibrationConfig(folds=0), held_out=held_out)
    assert partly.held_out.after.rms < 1.5 * result.held_out.after.rms + 2e-5


def test_deviations_of_points_weigh_them() -> None:
    rng = np.random.default_rng(10)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(80, rng), rng, noise=0.0)
    std = np.where(np.arange(80)[:, None] % 2, 2e-3, 2e-5) * np.ones((80, 3))
    position = points.position + rng.normal(size=(80, 3)) * std
    held_out = arm.measure(arm.configurations(200, rng), rng, noise=0.0)
    weighted = replace(points, position=position, std=std)
    with_weights = calibrate(arm.nominal, weighted, CalibrationConfig(loss='linear', folds=0), held_out=held_out)
    without = calibrate(
        arm.nominal, replace(weighted, std=None), CalibrationConfig(loss='linear', folds=0), held_out=held_out
    )
    assert with_weights.held_out.after.rms < 0.1 * without.held_out.after.rms
    assert 0.7 < with_weights.fit.noise < 1.3


def test_a_scara_with_a_slide_is_calibrated() -> None:
    rng = np.random.default_rng(11)
    table = scara()
    tilts = [f'{joint}.{tilt}' for joint in ('j1', 'j2', 'lift') for tilt in ('alpha', 'beta')]
    actual = _spoiled(table, rng, ('j1.a', 'j2.a', 'j2.theta', 'j4.theta', *tilts))

    q, unseen, frame = random_configurations(table, 60, rng), random_configurations(table, 60, rng), random_frame(rng)
    points = measured(table.joint_names, q, dh_poses(actual, q), rng, frame=frame, noise=2e-5)
    held_out = measured(table.joint_names, unseen, dh_poses(actual, unseen), rng, frame=frame)
    result = calibrate(table, points, held_out=held_out)
    assert result.held_out.after.rms < 2e-5
    assert result.held_out.before.rms > 5e-4


def test_a_target_far_along_parallel_axes_is_found_by_their_tilt() -> None:
    """Between parallel axes its height acts as that of the frame; between those of the real arm it does not."""
    rng = np.random.default_rng(6)
    right = np.pi / 2
    table = DHTable(
        joint_names=tuple('abcde'),
        theta=np.array([right, np.pi, np.pi, 0.0, np.pi]),
        d=np.array([0.0, 0.15, 0.0, 0.0, 0.0]),
        a=np.array([0.0, 0.0, 0.0, 0.33, 0.0]),
        alpha=np.array([-1.06, 0.0, right, -right, 0.0]),
        joint_types=('revolute', 'revolute', 'prismatic', 'revolute', 'revolute'),
        convention='modified',
    )
    actual = _spoiled(table, rng, ('a.alpha', 'b.alpha', 'c.alpha', 'd.alpha', 'e.alpha', 'e.beta'))
    q, unseen, frame = rng.uniform(-2, 2, (80, 5)), rng.uniform(-2, 2, (50, 5)), random_frame(rng)
    target = (0.04, -0.02, -0.3)
    points = measured(table.joint_names, q, dh_poses(actual, q), rng, frame=frame, target=target, noise=1e-5)
    held_out = measured(table.joint_names, unseen, dh_poses(actual, unseen), rng, frame=frame, target=target)
    result = calibrate(table, points, CalibrationConfig(folds=0), held_out=held_out)
    assert result.held_out.after.rms < 1e-5
    assert 0.9 < result.fit.noise / 1e-5 < 1.1
    assert result.structural == result.identifiable == len(result.fit.free)


def test_a_wrist_whose_tip_never_moves_is_calibrated() -> None:
    rng = np.random.default_rng(0)
    right = np.pi / 2
    table = DHTable(
        joint_names=tuple('abc'), theta=np.zeros(3), d=np.zeros(3), a=np.zeros(3), alpha=np.array([right, -right, 0.0])
    )
    actual = _spoiled(table, rng, ('a.alpha', 'b.alpha', 'a.a', 'b.a', 'b.d'))
    q, unseen, frame = rng.uniform(-2, 2, (60, 3)), rng.uniform(-2, 2, (50, 3)), random_frame(rng)
    points = measured(table.joint_names, q, dh_poses(actual, q), rng, frame=frame, noise=1e-5)
    held_out = measured(table.joint_names, unseen, dh_poses(actual, unseen), rng, frame=frame)
    assert calibrate(table, points, CalibrationConfig(folds=0), held_out=held_out).held_out.after.rms < 1e-5


@pytest.mark.parametrize(('noise', 'angle_noise'), [(3e-6, 1e-3), (1e-3, 1e-5)])
def test_the_noise_of_points_is_told_however_exact_the_angles_are(noise: float, angle_noise: float) -> None:
    rng = np.random.default_rng(3)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(80, rng), rng, noise=noise, angle_noise=angle_noise)
    result = calibrate(arm.nominal, points, CalibrationConfig(folds=0))
    assert 0.9 < result.fit.noise / noise < 1.1
    assert 0.8 < result.fit.orientation_scale * angle_noise / noise < 1.25


def _bent(model: RobotModel, q: np.ndarray, compliance: np.ndarray) -> np.ndarray:
    """Tip poses of an arm with springs, by Pinocchio's gravity and kinematics."""
    pinocchio = pytest.importorskip('pinocchio')
    oracle = pinocchio.buildModelFromUrdf(str(UR10E))
    data = oracle.createData()
    frame = oracle.getFrameId(model.tip_name)
    tips = np.empty((len(q), 4, 4))
    for k, row in enumerate(q):
        gravity = pinocchio.computeGeneralizedGravity(oracle, data, row)
        pinocchio.framesForwardKinematics(oracle, data, row - compliance * gravity)
        tips[k] = data.oMf[frame].homogeneous
    return tips


@pytest.mark.slow
def test_springs_are_found_where_the_masses_are_known() -> None:
    rng = np.random.default_rng(12)
    model = RobotModel.from_urdf(UR10E)
    compliance = np.array([0.0, 1e-5, 2e-5, 4e-5, 0.0, 0.0])
    q, unseen = rng.uniform(-3.0, 3.0, (80, 6)), rng.uniform(-3.0, 3.0, (80, 6))
    frame = random_frame(rng)
    points = measured(model.joint_names, q, _bent(model, q, compliance), rng, frame=frame, noise=5e-5)
    held_out = measured(model.joint_names, unseen, _bent(model, unseen, compliance), rng, frame=frame)
    rigid = calibrate(model, points, CalibrationConfig(terms=()), held_out=held_out)
    result = calibrate(model, points, CalibrationConfig(terms=('compliance',)), held_out=held_out)
    found = {p.name: p for p in result.parameters if p.unit == 'rad/(N*m)'}
    for joint in (1, 2):
        parameter = found[f'{model.joint_names[joint]}.compliance']
        assert abs(parameter.value - compliance[joint]) < 4.0 * parameter.std < 0.3 * compliance[joint]
    assert result.held_out.after.rms < 0.3 * rigid.held_out.after.rms
    assert result.held_out.after.rms < 6e-5


@pytest.mark.slow
def test_springs_are_followed_where_the_masses_are_not_known() -> None:
    rng = np.random.default_rng(13)
    model = RobotModel.from_urdf(UR10E)
    massless = replace(model, inertial=np.zeros((6, 10)))
    compliance = np.array([0.0, 1e-5, 2e-5, 0.0, 0.0, 0.0])
    q, unseen = rng.uniform(-3.0, 3.0, (150, 6)), rng.uniform(-3.0, 3.0, (80, 6))
    points = measured(model.joint_names, q, _bent(model, q, compliance), rng, noise=5e-5)
    held_out = measured(model.joint_names, unseen, _bent(model, unseen, compliance), rng)
    rigid = calibrate(massless, points, CalibrationConfig(terms=()), held_out=held_out)
    result = calibrate(massless, points, held_out=held_out)
    assert any('compliance' in name for name, *_ in result.terms.terms)
    assert result.held_out.after.rms < 0.4 * rigid.held_out.after.rms


@pytest.mark.slow
def test_encoder_eccentricity_is_found() -> None:
    rng = np.random.default_rng(14)
    arm = example_arm(rng)
    amplitude, phase = np.array([8e-4, 0.0, 6e-4, 0.0, 0.0, 1e-3]), rng.uniform(-3, 3, 6)

    def measure(count: int, noise: float) -> MeasuredPoints:
        q = arm.configurations(count, rng)
        true_q = q + amplitude * np.sin(q + phase)
        return replace(arm.measure(true_q, rng, noise=noise), q=q)

    points, held_out = measure(120, 5e-5), measure(200, 0.0)
    result = calibrate(arm.nominal, points, held_out=held_out)
    geometric = calibrate(arm.nominal, points, CalibrationConfig(terms=()), held_out=held_out)
    assert result.held_out.after.rms < 0.25 * geometric.held_out.after.rms
    assert result.cross_validation.after.rms < result.cross_validation.geometric.rms
    values = {p.name: p.value for p in result.parameters}
    for joint in (0, 2):  # that of the last joint is a matter of where the target is off its axis, too
        sine, cosine = (values[f'joint{joint + 1}.{function}'] for function in ('sine', 'cosine'))
        assert np.hypot(sine, cosine) == pytest.approx(amplitude[joint], rel=0.15)


@pytest.mark.slow
def test_joint_terms_stay_out_where_there_is_nothing_to_find() -> None:
    used = 0
    for seed in range(6):
        rng = np.random.default_rng(100 + seed)
        arm = example_arm(rng)
        points = arm.measure(arm.configurations(60, rng), rng)
        held_out = arm.measure(arm.configurations(200, rng), rng, noise=0.0)
        result = calibrate(arm.nominal, points, held_out=held_out)
        used += len(result.terms.terms) > 0
        rigid = calibrate(arm.nominal, points, CalibrationConfig(terms=(), folds=0), held_out=held_out)
        assert result.held_out.after.rms < 1.3 * rigid.held_out.after.rms
    assert used <= 2


def test_candidates_are_judged_as_by_fitting_each_fold_anew() -> None:
    """All folds at once against ridge regressions by least squares on stacked rows."""
    rng = np.random.default_rng(20)
    design, right = rng.normal(size=(30, 3, 9)), rng.normal(size=(30, 3))
    penalty = rng.uniform(0.0, 2.0, 9)
    folds = np.arange(30) % 5
    choices = [[0, 1, 2, 5], [0, 1, 2, 5, 3], [0, 1, 2, 5, 4, 7]]
    for columns, found in zip(choices, held_out_errors(design, right, penalty, folds, choices), strict=True):
        for fold in range(5):
            train, test = folds != fold, folds == fold
            rows = np.vstack(
                [design[train][:, :, columns].reshape(-1, len(columns)), np.diag(np.sqrt(penalty[columns]))]
            )
            wanted = np.concatenate([right[train].ravel(), np.zeros(len(columns))])
            solution = np.linalg.lstsq(rows, wanted, rcond=None)[0]
            expected = np.square(right[test] - design[test][:, :, columns] @ solution).sum(axis=1)
            np.testing.assert_allclose(found[test], expected, rtol=1e-8)


def test_folds_keep_repeated_poses_together_and_share_out_every_set() -> None:
    rng = np.random.default_rng(21)
    q = np.repeat(rng.uniform(-2.0, 2.0, (20, 6)), 3, axis=0)
    sets = np.repeat(np.arange(2), 30)
    folds = folds_of(q, sets, 5, rng)
    assert set(folds) == set(range(5))
    assert (folds.reshape(20, 3) == folds.reshape(20, 3)[:, :1]).all()
    for s in range(2):
        assert (np.bincount(folds[sets == s], minlength=5) == 6).all()


def test_few_poses_are_warned_of() -> None:
    rng = np.random.default_rng(22)
    arm = example_arm(rng)
    few = calibrate(arm.nominal, arm.measure(arm.configurations(12, rng), rng), CalibrationConfig(terms=()))
    assert any('12 different poses are few for 27 parameters' in warning for warning in few.warnings)
    assert few.cross_validation is not None  # by leaving one out, where five folds would leave too few
    fewest = calibrate(arm.nominal, arm.measure(arm.configurations(10, rng), rng), CalibrationConfig(terms=()))
    assert any('too few measurements to cross-validate' in warning for warning in fewest.warnings)
    assert (
        calibrate(arm.nominal, arm.measure(arm.configurations(40, rng), rng), CalibrationConfig(folds=0)).warnings == ()
    )


def test_a_table_and_the_model_made_of_it_predict_the_same() -> None:
    rng = np.random.default_rng(15)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(60, rng), rng)
    held_out = arm.measure(arm.configurations(100, rng), rng, noise=0.0)
    table = calibrate(arm.nominal, points, CalibrationConfig(prior=None, folds=0), held_out=held_out)
    model = calibrate(arm.nominal.robot_model(), points, CalibrationConfig(prior=None, folds=0), held_out=held_out)
    assert table.identifiable == model.identifiable
    np.testing.assert_allclose(table.held_out.residual, model.held_out.residual, atol=2e-6)


@pytest.mark.slow
def test_equal_seeds_give_equal_results() -> None:
    rng = np.random.default_rng(16)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(50, rng), rng)
    first, second = (calibrate(arm.nominal, points, CalibrationConfig(seed=3)).to_dict() for _ in range(2))
    assert first == second


def test_a_thousand_poses_converge_in_a_few_steps() -> None:
    rng = np.random.default_rng(17)
    arm = example_arm(rng)
    points = arm.measure(arm.configurations(1000, rng), rng, angle_noise=1e-4)
    result = calibrate(arm.nominal, points, CalibrationConfig(folds=0))
    assert result.fit.converged
    assert result.identifiable == 30
    assert result.fit.iterations <= 10


def test_progress_is_told() -> None:
    rng = np.random.default_rng(18)
    arm = example_arm(rng)
    told: list[float] = []
    calibrate(arm.nominal, arm.measure(arm.configurations(40, rng), rng), progress=lambda done, _: told.append(done))
    assert told == sorted(told)
    assert told[0] >= 0.0
    assert 0.9 < told[-1] <= 1.0
