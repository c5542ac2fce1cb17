# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is done with a calibration: files, command line, compensated joints; and before one: poses, workspace."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from calibration_helpers import dh_poses, measured, random_frame, scara, shift, ur10e
from errors_helpers import refused

import robotid_ros
from robotid_ros.calibration import CalibrationConfig, CalibrationResult, calibrate, read_points, write_points
from robotid_ros.calibration.points import read_joints
from robotid_ros.calibration.pose_selection import sample_workspace, select_poses
from robotid_ros.calibration.result import calibrated_urdf, compensated_inverse_kinematics, compensated_joints
from robotid_ros.cli import main
from robotid_ros.errors import CalibrationError
from robotid_ros.model import RobotModel
from robotid_ros.model.dh_table import DHTable, read_dh_file
from robotid_ros.model.transforms import rotation_of_vector
from robotid_ros.report import can_draw
from robotid_ros.report.calibration import workspace_report
from robotid_ros.simulation.measured_arm import SimulatedArm, example_arm, example_table

UR10E_CONFIG = Path(robotid_ros.__file__).parent / 'robots' / 'ur10e.yaml'

UR10E = Path(robotid_ros.__file__).parent / 'robots' / 'ur10e.urdf'


@pytest.fixture(scope='module')
def arm() -> SimulatedArm:
    return example_arm(np.random.default_rng(0))


@pytest.fixture(scope='module')
def result(arm: SimulatedArm) -> CalibrationResult:
    rng = np.random.default_rng(1)
    return calibrate(arm.nominal, arm.measure(arm.configurations(80, rng), rng, noise=1e-5))


@pytest.fixture(scope='module')
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp('example')
    assert main(['calibrate', '--example', '--out', str(folder)]) == 0
    return folder


@pytest.mark.slow
def test_the_command_calibrates_and_writes_everything(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [example / 'points.csv', '--robot', example / 'nominal.yaml', '--held-out', example / 'held_out.csv']
    code = main(
        ['calibrate', *map(str, arguments), '--out', str(tmp_path), '--compensate', str(example / 'points.csv')]
    )
    said = capsys.readouterr().out
    assert code == 0
    for word in ('before', 'after', 'cross-validated', 'held out', '27 independent parameters', 'joint6.theta'):
        assert word in said
    content = yaml.safe_load((tmp_path / 'result.yaml').read_text())
    accuracy = content['accuracy']
    for part in ('training', 'cross_validation', 'held_out'):
        assert accuracy[part]['before']['rms'] > 5.0 * accuracy[part]['after']['rms']
        assert set(accuracy[part]['after']) >= {'mean', 'rms', 'max', 'axis_rms', 'measurements'}
    assert content['identifiable_parameters'] == 27
    assert len(content['parameters']) + len(content['fixed']) == 25
    assert content['provenance']['settings']['seed'] == 0
    assert set(content['provenance']['files']) == {str(path) for path in arguments if isinstance(path, Path)}

    nominal, calibrated = read_dh_file(example / 'nominal.yaml'), read_dh_file(tmp_path / 'calibrated.yaml')
    held_out = read_points(example / 'held_out.csv')
    errors = [_best_fit_error(table, held_out) for table in (nominal, calibrated)]
    assert errors[1] < 0.15 * errors[0]

    rows = list(csv.DictReader((tmp_path / 'residuals.csv').open()))
    after = np.array([[float(row[f'after/{axis}']) for axis in 'xyz'] for row in rows])
    assert np.sqrt(np.mean(np.sum(after**2, axis=1))) == pytest.approx(accuracy['training']['after']['rms'])
    assert (tmp_path / 'report.html').is_file() == can_draw()
    assert read_joints(tmp_path / 'compensated.csv', nominal.joint_names).shape == (100, 6)
    assert not list(tmp_path.glob('.*'))


def _best_fit_error(table: DHTable, points) -> float:
    """Root mean square distance after fitting frame and target alone, by the textbook product and scipy."""
    from scipy.optimize import least_squares

    tips = dh_poses(table, points.q)

    def residual(x: np.ndarray) -> np.ndarray:
        predicted = (tips[:, :3, :3] @ x[6:9] + tips[:, :3, 3]) @ rotation_of_vector(x[3:6]).T + x[:3]
        return (predicted - points.position).ravel()

    best = min(
        (least_squares(residual, np.r_[0, 0, 0, start, 0, 0, 0]) for start in 2.0 * np.eye(3)), key=lambda fit: fit.cost
    )
    return float(np.sqrt(2.0 * best.cost / len(tips)))


def test_the_command_selects_poses_and_samples_the_workspace(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ['--robot', str(example / 'nominal.yaml'), '--out', str(tmp_path / 'new'), '--no-report']
    assert main(['calibrate', *options, '--select-poses', '12', '--workspace', '2000']) == 0
    said = capsys.readouterr().out
    assert 'observability index' in said
    assert 'reach' in said
    assert read_joints(tmp_path / 'new' / 'poses.csv', example_table().joint_names).shape == (12, 6)
    assert yaml.safe_load((tmp_path / 'new' / 'workspace.yaml').read_text())['samples'] == 2000
    assert not list((tmp_path / 'new').glob('*.png'))


def test_selected_poses_keep_what_the_configuration_says(tmp_path: Path) -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs Pinocchio, to compare with')
    urdf = UR10E_CONFIG.with_suffix('.urdf')
    options = ['--robot', 'ur10e', '--select-poses', '12', '--no-report']
    heights = {}
    for name, more in (('any', []), ('clear', ['--config', str(UR10E_CONFIG)])):
        assert main(['calibrate', *options, '--out', str(tmp_path / name), *more]) == 0
        model = pinocchio.buildModelFromUrdf(str(urdf))
        data = model.createData()
        heights[name] = []
        for q in read_joints(tmp_path / name / 'poses.csv', tuple(model.names)[1:]):
            pinocchio.forwardKinematics(model, data, q)
            heights[name].append([place.translation[2] for place in list(data.oMi)[3:]])
            assert name == 'any' or -2.9 <= q[1] <= -0.25
    assert np.min(heights['any']) < 0.0  # below the table
    assert np.min(heights['clear']) > 0.06  # above it by the radius of the capsules


@pytest.mark.parametrize(
    ('arguments', 'words'),
    [
        ([], 'expected POINTS.csv'),
        (['--select-poses', '12', '--config', str(UR10E_CONFIG)], '--config goes with a URDF'),
        (['nowhere.csv'], 'nowhere.csv does not exist'),
        (['POINTS', '--length-unit', 'mm'], 'metres given as millimetres'),
        (['POINTS', '--angle-unit', 'deg'], 'radians given as degrees'),
        (['POINTS', '--tip', 'flange'], '--tip chooses from a URDF'),
        (['POINTS', '--tool-point', '0', '0', '0'], '--tool-point is for --tool known'),
        (['POINTS', '--frame', 'known'], 'let the frame be estimated'),
        (['POINTS', '--held-out', 'none.csv'], 'none.csv does not exist'),
        (['POINTS', '--compensate', 'none.csv'], 'none.csv does not exist'),
        (['--held-out', 'none.csv', '--select-poses', '10'], 'need POINTS.csv'),
        (['--select-poses', '3'], '3 poses'),
        (['--workspace', '0'], 'positive number'),
    ],
)
def test_the_command_refuses_bad_input_with_one_line(
    example: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    given = [str(example / 'points.csv') if word == 'POINTS' else word for word in arguments]
    out = tmp_path / 'out'
    assert main(['calibrate', *given, '--robot', str(example / 'nominal.yaml'), '--out', str(out)]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count('\n') == 1
    assert not out.exists() or not list(out.iterdir())


def test_a_calibrated_urdf_is_the_arm_for_pinocchio_too(tmp_path: Path) -> None:
    """Plant errors in the joint origins of Pinocchio's model, measure it, and load the calibrated URDF in Pinocchio."""
    pinocchio = pytest.importorskip('pinocchio')
    rng = np.random.default_rng(2)
    model = RobotModel.from_urdf(UR10E)
    actual = pinocchio.buildModelFromUrdf(str(UR10E))
    for k in range(1, actual.njoints):
        error = pinocchio.SE3(rotation_of_vector(rng.normal(0.0, 2e-3, 3)), rng.normal(0.0, 1e-3, 3))
        actual.jointPlacements[k] = actual.jointPlacements[k] * error
    frame, target = random_frame(rng), (0.05, 0.08, 0.12)
    q, unseen = rng.uniform(-3.0, 3.0, (60, 6)), rng.uniform(-3.0, 3.0, (40, 6))
    points = measured(model.joint_names, q, _tips(actual, model.tip_name, q), rng, frame=frame, target=target)
    held = measured(model.joint_names, unseen, _tips(actual, model.tip_name, unseen), rng, frame=frame, target=target)
    result = calibrate(model, points, CalibrationConfig(folds=0), held_out=held)
    assert result.held_out.after.max < 1e-7
    text = calibrated_urdf(result)
    path = tmp_path / 'calibrated.urdf'
    path.write_text(text)
    tips = result.frames[''] @ _tips(pinocchio.buildModelFromUrdf(str(path)), model.tip_name, unseen) @ result.tools['']
    np.testing.assert_allclose(tips[:, :3, 3], held.position, atol=1e-7)

    before, after = (ElementTree.fromstring(each) for each in (UR10E.read_text(), text))
    for old, new in zip(before.iter(), after.iter(), strict=True):
        assert old.tag == new.tag
        if old.tag != 'origin':
            assert old.attrib == new.attrib
    assert text.count('<!--') == UR10E.read_text().count('<!--')


def _tips(model, tip: str, q: np.ndarray) -> np.ndarray:
    pinocchio = pytest.importorskip('pinocchio')

    data = model.createData()
    poses = np.empty((len(q), 4, 4))
    for k, row in enumerate(q):
        pinocchio.framesForwardKinematics(model, data, row)
        poses[k] = data.oMf[model.getFrameId(tip)].homogeneous
    return poses


def test_the_command_writes_a_urdf_for_a_urdf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(3)
    model = RobotModel.from_urdf(UR10E)
    q = rng.uniform(-3.0, 3.0, (40, 6))
    moved = replace(model, placements=np.array([p @ shift(*rng.normal(0, 1e-3, 3)) for p in model.placements]))
    from robotid_ros.model.kinematics import tip_transforms

    points = measured(model.joint_names, q, tip_transforms(moved, q), rng, frame=random_frame(rng), noise=1e-5)
    path = tmp_path / 'points.csv'
    write_points(path, points)
    out = tmp_path / 'out'
    assert main(['calibrate', str(path), '--robot', str(UR10E), '--out', str(out), '--no-report', '--folds', '0']) == 0
    capsys.readouterr()
    calibrated = RobotModel.from_urdf(out / 'calibrated.urdf')
    assert calibrated.joint_names == model.joint_names
    assert np.abs(calibrated.placements - model.placements).max() > 1e-4
    np.testing.assert_array_equal(calibrated.inertial, model.inertial)


def test_compensated_joints_put_the_real_tool_where_the_nominal_one_would_be(
    arm: SimulatedArm, result: CalibrationResult
) -> None:
    """Checked by the textbook product on the calibrated table; poses near singular ones are flagged, not bent."""
    rng = np.random.default_rng(4)
    q = rng.uniform(-1.0, 1.0, (200, 6)) * [2.0, 0.6, 0.6, 2.0, 0.5, 2.0] + [0.0, 0.3, 0.0, 0.0, 1.1, 0.0]
    tool = shift(0.0, 0.0, 0.15)
    compensated = compensated_joints(result, q, tool=tool)
    assert compensated.converged.all()
    wanted = dh_poses(arm.nominal, q) @ tool
    reached = dh_poses(result.calibrated_table(), compensated.q) @ tool
    np.testing.assert_allclose(reached, wanted, atol=1e-7)
    uncompensated = dh_poses(result.calibrated_table(), q) @ tool
    assert np.linalg.norm((uncompensated - wanted)[:, :3, 3], axis=1).max() > 1e-3
    assert np.abs(compensated.q - q).max() < 0.05


@pytest.mark.slow
def test_compensation_includes_the_joint_terms() -> None:
    rng = np.random.default_rng(5)
    arm = example_arm(rng)
    q = arm.configurations(100, rng)
    points = replace(arm.measure(q + 1e-3 * np.sin(q), rng, noise=1e-5), q=q)
    result = calibrate(arm.nominal, points)
    assert result.terms.terms
    nominal = rng.uniform(-0.5, 0.5, (20, 6)) + np.array([0.0, 0.3, 0.0, 0.0, 1.1, 0.0])
    compensated = compensated_joints(result, nominal)
    assert compensated.converged.all()
    np.testing.assert_allclose(result.tip_transforms(compensated.q), result.nominal_tip_transforms(nominal), atol=1e-7)
    assert np.abs(result.joint_offsets(nominal)).max() > 5e-4


def test_compensation_does_not_turn_a_singular_wrist_over(result: CalibrationResult) -> None:
    q = np.array([[0.3, 0.4, 0.2, 0.5, 0.0, 0.1], [0.0, 0.3, -1.34, 0.2, 0.8, 0.1]])
    compensated = compensated_joints(result, q)
    assert np.abs(compensated.q - q).max() <= 0.2 + 1e-12
    exact = (compensated.position_error < 1e-7) & (compensated.angle_error < 1e-7)
    assert (compensated.converged == exact).all()
    far = result.nominal_tip_transforms(q)
    far[:, :3, 3] += 5.0
    lost = compensated_inverse_kinematics(result, far, q)
    assert not lost.converged.any()
    assert np.isfinite(lost.q).all()


def test_selected_poses_beat_random_ones_and_keep_the_limits() -> None:
    table = example_table()
    selection = select_poses(table, 20, candidates=500)
    assert selection.q.shape == (20, 6)
    assert len(np.unique(selection.q, axis=0)) == 20
    assert (selection.q >= table.limits.lower).all()
    assert (selection.q <= table.limits.upper).all()
    assert len(selection.parameters) == 27
    assert selection.observability_index > 1.1 * selection.random_index


@pytest.mark.slow
def test_selection_finds_the_best_pair_that_enumeration_finds() -> None:
    """A planar arm of two joints, few candidates: all pairs can be tried."""
    table = DHTable(
        joint_names=('a', 'b'),
        theta=np.zeros(2),
        d=np.array([0.3, 0.1]),
        a=np.array([0.4, 0.3]),
        alpha=np.array([1.0, 0.0]),
    )
    q = np.random.default_rng(6).uniform(-2.0, 2.0, (10, 2))
    selection = select_poses(table, 4, candidates=q, frame='known')
    from itertools import combinations

    def index(rows: tuple[int, ...]) -> float:
        return select_poses(table, 4, candidates=q[list(rows)], frame='known').observability_index

    best = max(index(rows) for rows in combinations(range(10), 4))
    assert selection.observability_index > 0.98 * best


def test_selection_obeys_what_is_allowed() -> None:
    chosen = select_poses(example_table(), 15, candidates=600, allowed=lambda tips: tips[:, 2, 3] > 0.4)
    assert (dh_poses(example_table(), chosen.q)[:, 2, 3] > 0.4).all()
    with pytest.raises(CalibrationError, match='allowed candidate poses, got 0'):
        select_poses(example_table(), 15, candidates=600, allowed=lambda tips: tips[:, 2, 3] > 9.0)
    with pytest.raises(CalibrationError, match='cannot show 27 parameters; choose at least 9'):
        select_poses(example_table(), 5, candidates=600)


def test_the_workspace_of_a_planar_arm_is_its_ring() -> None:
    table = DHTable(joint_names=('a', 'b'), theta=np.zeros(2), d=np.zeros(2), a=np.array([0.5, 0.3]), alpha=np.zeros(2))
    positions = sample_workspace(table, 20_000)
    distance = np.linalg.norm(positions, axis=1)
    assert distance.min() > 0.2 - 1e-9
    assert 0.7999 < distance.max() <= 0.8 + 1e-12
    np.testing.assert_allclose(positions.max(axis=0)[:2], 0.8, atol=2e-3)
    np.testing.assert_allclose(positions.min(axis=0)[:2], -0.8, atol=2e-3)
    assert np.abs(positions[:, 2]).max() < 1e-12
    # the area density of the ring's radius: r^2 = a^2 + b^2 + 2 a b cos(q2), q2 uniform
    assert np.median(distance) == pytest.approx(np.sqrt(0.25 + 0.09), abs=5e-3)


def test_the_workspace_keeps_the_limits_of_a_slide() -> None:
    height = sample_workspace(scara(), 5000)[:, 2]
    # the axis of the slide points down: 0.4 m less the lift (-0.2 to 0) and the tool's 0.05 m
    assert height.min() == pytest.approx(0.35, abs=2e-3)
    assert height.max() == pytest.approx(0.55, abs=2e-3)
    with refused(CalibrationError, name='lift'):
        sample_workspace(replace(scara(), limits=ur10e().limits.select([0, 1, 2, 3])), 10)


def test_the_workspace_is_drawn() -> None:
    positions = sample_workspace(example_table(), 500)
    (figure,) = workspace_report(positions).figures
    for chart, (first, second) in zip(figure.charts, ((0, 1), (0, 2), (1, 2)), strict=True):
        (cloud,) = chart.traces
        np.testing.assert_array_equal(cloud['x'], positions[:, first])
        np.testing.assert_array_equal(cloud['y'], positions[:, second])
