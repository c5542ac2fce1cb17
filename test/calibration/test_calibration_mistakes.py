# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Wrong input: one clear line that names the mistake."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from errors_helpers import refused

from robotid_ros.calibration import (
    CalibrationConfig,
    MeasuredPoints,
    append_points,
    calibrate,
    read_points,
    write_points,
)
from robotid_ros.errors import CalibrationError, ModelError, RobotIdError
from robotid_ros.model.dh_table import DHTable, read_dh_file
from robotid_ros.simulation.measured_arm import SimulatedArm, example_arm

_ROW = '{name: a, theta: 0, d: 0, a: 0, alpha: 0}'


@pytest.fixture(scope='module')
def arm() -> SimulatedArm:
    return example_arm(np.random.default_rng(0))


@pytest.fixture(scope='module')
def points(arm: SimulatedArm) -> MeasuredPoints:
    rng = np.random.default_rng(1)
    return arm.measure(arm.configurations(60, rng), rng)


def _message(arm: SimulatedArm, points: MeasuredPoints, held_out=None, targets=None, **options) -> str:
    with pytest.raises(CalibrationError) as caught:
        calibrate(arm.nominal, points, CalibrationConfig(folds=0, **options), held_out=held_out, targets=targets)
    message = str(caught.value)
    assert '\n' not in message
    return message


@pytest.mark.parametrize('frame', ['known', 'unknown'])
def test_millimetres_given_as_metres(arm: SimulatedArm, points: MeasuredPoints, frame: str) -> None:
    message = _message(arm, replace(points, position=1e3 * points.position), frame=frame)
    assert 'look like millimetres given as metres' in message


@pytest.mark.filterwarnings('error')
def test_a_mistake_is_named_where_few_measurements_are_of_a_set(arm: SimulatedArm, points: MeasuredPoints) -> None:
    """Of many measurements, fifty at random are looked at: none of them is of a set that holds a single one."""
    points = MeasuredPoints.joined(points, points)
    for k in range(0, len(points), 30):
        sets = ['usual'] * len(points)
        sets[k] = 'once'
        said = _message(arm, replace(points, sets=tuple(sets), position=1e3 * points.position))
        assert 'millimetres given as metres' in said


def test_metres_given_as_millimetres(arm: SimulatedArm, points: MeasuredPoints) -> None:
    assert 'metres given as millimetres' in _message(arm, replace(points, position=1e-3 * points.position))


def test_degrees_given_as_radians(arm: SimulatedArm, points: MeasuredPoints) -> None:
    assert 'look like degrees given as radians' in _message(arm, replace(points, q=np.rad2deg(points.q)))
    both = replace(points, q=np.rad2deg(points.q), position=1e3 * points.position)
    message = _message(arm, both)
    assert 'degrees given as radians' in message
    assert 'millimetres given as metres' in message


def test_radians_given_as_degrees(arm: SimulatedArm, points: MeasuredPoints) -> None:
    assert 'radians given as degrees' in _message(arm, replace(points, q=np.deg2rad(points.q)))


@pytest.mark.parametrize('axis', [0, 1, 2])
def test_left_handed_frames(arm: SimulatedArm, points: MeasuredPoints, axis: int) -> None:
    mirrored = points.position * np.where(np.arange(3) == axis, -1.0, 1.0)
    assert 'left-handed' in _message(arm, replace(points, position=mirrored))


def test_reversed_joints_are_named(arm: SimulatedArm, points: MeasuredPoints) -> None:
    message = _message(arm, replace(points, q=points.q * [1, -1, 1, 1, -1, 1]))
    assert "the sign of 'joint2' is reversed" in message
    assert "the sign of 'joint5' is reversed" in message
    assert "'joint3'" not in message


@pytest.mark.slow
def test_a_zero_off_by_a_quarter_turn_is_named(arm: SimulatedArm, points: MeasuredPoints) -> None:
    message = _message(arm, replace(points, q=points.q + np.deg2rad([0, 0, 90, 0, 0, 0])))
    assert "the zero of 'joint3' is off by 270 deg" in message


@pytest.mark.slow
def test_a_coupled_joint_is_named(arm: SimulatedArm, points: MeasuredPoints) -> None:
    q = np.array(points.q)
    q[:, 2] -= q[:, 1]
    assert "'joint3' is coupled: its angle is joint3 + joint2" in _message(arm, replace(points, q=q))


@pytest.mark.parametrize(
    ('order', 'words'),
    [
        ((1, 2, 3, 0), 'in the order x, y, z, w; the columns'),
        ((0, -1, -2, -3), 'invert them'),
        ((-1, -2, -3, 0), 'in the order x, y, z, w, and inverted'),
        ((2, 0, 1, 3), 'fits the measured orientations no better than'),
    ],
)
def test_quaternions_of_another_order_or_sense_are_named(arm: SimulatedArm, order: tuple[int, ...], words: str) -> None:
    rng = np.random.default_rng(1)
    points = arm.measure(arm.configurations(60, rng), rng, angle_noise=2e-4)
    signs = [-1.0 if k < 0 else 1.0 for k in order]
    assert words in _message(arm, replace(points, orientation=points.orientation[:, np.abs(order)] * signs))


@pytest.mark.slow
def test_points_of_another_robot(arm: SimulatedArm, points: MeasuredPoints) -> None:
    position = np.random.default_rng(2).uniform(-1.0, 1.0, points.position.shape)
    assert 'check the order, signs, zeros and units' in _message(arm, replace(points, position=position))


def test_a_frame_that_is_not_the_base(arm: SimulatedArm, points: MeasuredPoints) -> None:
    assert 'let the frame be estimated' in _message(arm, points, frame='known')


@pytest.mark.parametrize('frame', ['known', 'unknown'])
def test_a_target_that_is_elsewhere_on_the_tool(arm: SimulatedArm, points: MeasuredPoints, frame: str) -> None:
    message = _message(arm, points, frame=frame, tool='known', targets={'': (0.3, 0.0, 0.0)})
    assert 'the target is not where it is said to be on the tool; let ' in message
    assert message.startswith('the points are not in the robot base frame or ') == (frame == 'known')


def test_too_few_poses(arm: SimulatedArm, points: MeasuredPoints) -> None:
    message = _message(arm, points.select(np.arange(9)))
    assert '9 measurements at 9 different poses give 27 numbers for 27 parameters' in message
    assert 'at least 10' in message


def test_coincident_poses(arm: SimulatedArm, points: MeasuredPoints) -> None:
    assert 'at one pose' in _message(arm, points.select(np.zeros(40, dtype=np.int64)))
    message = _message(arm, points.select(np.arange(40) % 6))
    assert '40 measurements at 6 different poses' in message


def test_a_target_that_never_moves(arm: SimulatedArm, points: MeasuredPoints) -> None:
    assert 'coincide while the joints move' in _message(arm, replace(points, position=np.ones((60, 3))))


def test_held_out_points_of_another_frame_or_unit(arm: SimulatedArm, points: MeasuredPoints) -> None:
    for position in (1e3 * points.position, points.position + 0.3):
        message = _message(arm, points, held_out=replace(points, position=position))
        assert 'held-out points' in message
        assert "label in the column 'set'" in message


def test_unknown_and_missing_joints(arm: SimulatedArm, points: MeasuredPoints) -> None:
    renamed = replace(points, joint_names=('joint1', 'joint2', 'elbow', 'joint4', 'joint5', 'joint6'))
    message = _message(arm, renamed)
    assert "joint 'joint3' is not in the points file" in message
    assert 'elbow' in message
    extra = replace(
        points, joint_names=(*points.joint_names, 'rail'), q=np.column_stack([points.q, np.zeros(len(points))])
    )
    assert "joint 'rail' of the points file is not in the robot" in _message(arm, extra)


def test_the_order_of_the_columns_does_not_matter(arm: SimulatedArm, points: MeasuredPoints) -> None:
    order = [3, 1, 5, 0, 2, 4]
    shuffled = replace(points, joint_names=tuple(points.joint_names[k] for k in order), q=points.q[:, order])
    assert calibrate(arm.nominal, shuffled, CalibrationConfig(folds=0)).after.rms == pytest.approx(
        calibrate(arm.nominal, points, CalibrationConfig(folds=0)).after.rms, rel=1e-9
    )


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        ({'frame': 'base'}, "frame: expected one of unknown, known; got 'base'"),
        ({'tool': 'none'}, 'tool: expected one of'),
        ({'tool': 'pose'}, 'there are positions only'),
        ({'loss': 'tukey'}, 'loss: expected one of'),
        ({'prior': -1.0}, 'prior: expected 1e-09 to 1'),
        ({'tool': 'known', 'targets': {'ball': [0, 0, 0]}}, "target 'ball' is not among the measured ones"),
        ({'tool': 'known', 'targets': {'': [0, 0]}}, "target '': expected shape (3)"),
    ],
)
def test_wrong_options(arm: SimulatedArm, points: MeasuredPoints, options: dict, words: str) -> None:
    assert words in _message(arm, points, **options)


@pytest.mark.parametrize('folds', [1, -2])
def test_wrong_folds(arm: SimulatedArm, points: MeasuredPoints, folds: int) -> None:
    with pytest.raises(CalibrationError, match='folds'):
        calibrate(arm.nominal, points, CalibrationConfig(folds=folds))


def test_a_wrong_kind_of_term(arm: SimulatedArm, points: MeasuredPoints) -> None:
    with refused(CalibrationError, name='terms', found=('magic',)):
        calibrate(arm.nominal, points, CalibrationConfig(terms=('magic',)))


def test_values_that_are_not_numbers(points: MeasuredPoints) -> None:
    position = np.array(points.position)
    position[3, 1] = np.nan
    with pytest.raises(CalibrationError, match=r'expected finite numbers, got nan at index \(3, 1\)'):
        replace(points, position=position)
    with refused(CalibrationError, name='measured positions', expected=(60, 3), found=(59, 3)):
        replace(points, position=points.position[:-1])
    with refused(CalibrationError, name='orientations', found=2.0):
        replace(points, orientation=np.tile([2.0, 0, 0, 0], (60, 1)))
    with pytest.raises(CalibrationError, match='row 1 is not a quaternion'):
        replace(points, orientation=np.tile([np.nan, 0, 0, 1], (60, 1)))
    with refused(CalibrationError, name='std', expected=0.0, found=0.0):
        replace(points, std=np.zeros((60, 3)))


def test_points_files_round_trip_to_the_last_digit(arm: SimulatedArm, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    poses = arm.measure(arm.configurations(5, rng), rng, angle_noise=1e-4, set_name='A', point_name='1')
    orientation = np.array(poses.orientation)
    orientation[2] = np.nan
    poses = replace(poses, orientation=orientation, std=np.full((5, 3), 1e-4), angle_std=np.full(5, 1e-3))
    path = tmp_path / 'points.csv'
    write_points(path, poses)
    back = read_points(path)
    for name in ('joint_names', 'sets', 'points'):
        assert getattr(back, name) == getattr(poses, name)
    for name in ('q', 'position', 'std', 'angle_std'):
        np.testing.assert_array_equal(getattr(back, name), getattr(poses, name))
    np.testing.assert_allclose(back.orientation, poses.orientation, atol=1e-15)
    assert back.has_orientation.tolist() == [True, True, False, True, True]


def test_a_points_file_grows_row_by_row(arm: SimulatedArm, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    path, q = tmp_path / 'points.csv', arm.configurations(3, rng)
    first, second = (arm.measure(q[k : k + 1], rng, set_name=str(k), angle_noise=a) for k, a in ((0, None), (1, 1e-4)))
    assert append_points(path, first) == 1
    assert append_points(path, second) == 2
    kept = path.read_bytes()
    with refused(CalibrationError, name='joint1'):
        append_points(path, replace(first, joint_names=tuple('abcdef')))
    with refused(CalibrationError, name='std'):
        append_points(path, replace(first, std=np.full((1, 3), 1e-4)))
    assert path.read_bytes() == kept
    back = read_points(path)
    np.testing.assert_array_equal(back.q, q[:2])
    np.testing.assert_array_equal(back.position, np.vstack([first.position, second.position]))
    assert back.has_orientation.tolist() == [False, True]
    assert back.sets == ('0', '1')


def test_units_of_a_file_are_converted(tmp_path: Path) -> None:
    path = tmp_path / 'points.csv'
    path.write_text('# tracker\nposition/a,position/b,x,y,z,std\n90,250,100,0,-5,0.1\n')
    points = read_points(path, length_unit='mm', angle_unit='deg', prismatic=['b'])
    np.testing.assert_allclose(points.q, [[np.pi / 2, 0.25]])
    np.testing.assert_allclose(points.position, [[0.1, 0.0, -0.005]])
    np.testing.assert_allclose(points.std, [[1e-4] * 3])


@pytest.mark.parametrize(
    ('text', 'about', 'words'),
    [
        ('', {}, 'names of the columns, got none'),
        ('position/a,x,y,z\n', {}, 'got none'),
        ('x,y,z\n1,2,3\n', {'expected': 'position/<joint>', 'found': ('x', 'y', 'z')}, ''),
        ('position/a,x,y\n1,2,3\n', {'name': 'z', 'expected': ('position/a', 'x', 'y')}, ''),
        ('position/a,x,y,z,qw\n1,2,3,4,1\n', {'name': 'qx'}, ''),
        ('position/a,x,y,z,w\n1,2,3,4,5\n', {'name': 'w'}, "column 'w' is not in a points file"),
        ('position/a,x,y,z,z\n1,2,3,4,5\n', {'name': 'z', 'found': 2}, ''),
        ('position/a,x,y,z\n1,2,3\n', {'line': 2, 'expected': 4, 'found': 3}, ''),
        ('position/a,x,y,z\n1e308,2,3,4\n', {'name': 'joint positions', 'found': 1e308}, 'whose squares are, too'),
        ('position/a,x,y,z\n1,2,3,four\n', {'line': 2, 'name': 'z', 'found': 'four'}, ''),
        ('position/a,x,y,z\n1,2,nan,4\n', {'line': 2, 'name': 'y', 'found': 'nan'}, ''),
        ('position/a,x,y,z\n1,2,,4\n', {'line': 2, 'name': 'y', 'found': ''}, ''),
        ('position/a,x,y,z,std,std_x,std_y,std_z\n1,2,3,4,1,1,1,1\n', {}, "either 'std' or"),
        ('position/a,x,y,z,qw,qx,qy,qz,std\n1,2,3,4,1,0,0,0,1\n', {}, 'only std is given'),
    ],
)
def test_bad_points_files(tmp_path: Path, text: str, about: dict, words: str) -> None:
    path = tmp_path / 'points.csv'
    path.write_text(text)
    with refused(CalibrationError, file=str(path), **about) as caught:
        read_points(path)
    assert words in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for reader in (read_points, read_dh_file):
        with pytest.raises(RobotIdError, match='does not exist'):
            reader(tmp_path / 'none')
    binary = tmp_path / 'binary'
    binary.write_bytes(b'\xff\xfe\x00')
    for reader in (read_points, read_dh_file):
        with pytest.raises(RobotIdError, match=r'cannot be read|UTF-8'):
            reader(binary)


def test_dh_files_round_trip_to_the_last_digit(arm: SimulatedArm, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    table = replace(
        arm.actual,
        convention='modified',
        direction=np.array([1.0, -1, 1, 1, 1, -1]),
        joint_types=('revolute', 'prismatic', *['revolute'] * 4),
        gravity=rng.normal(size=3),
    )
    path = tmp_path / 'arm.yaml'
    path.write_text(table.to_yaml())
    back = read_dh_file(path)
    assert isinstance(back, DHTable)
    for name in ('name', 'convention', 'joint_names', 'joint_types'):
        assert getattr(back, name) == getattr(table, name)
    for name in ('theta', 'd', 'a', 'alpha', 'beta', 'direction', 'gravity'):
        np.testing.assert_array_equal(getattr(back, name), getattr(table, name))
    np.testing.assert_array_equal(back.limits.lower, table.limits.lower)


def test_dh_files_in_degrees_and_millimetres(tmp_path: Path) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text(
        'convention: standard\nlength_unit: mm\nangle_unit: deg\njoints:\n'
        '  - {name: a, theta: 0, d: 290, a: 0, alpha: -90, lower: -180, upper: 180}\n'
        '  - {name: b, theta: 0, d: 1e2, a: 5, alpha: 0, type: prismatic, upper: 200}\n'
    )
    table = read_dh_file(path)
    np.testing.assert_allclose(table.d, [0.29, 0.1])
    np.testing.assert_allclose(table.alpha, [-np.pi / 2, 0.0])
    np.testing.assert_allclose(table.limits.upper, [np.pi, 0.2])
    assert np.isinf(table.limits.lower[1])


@pytest.mark.parametrize(
    ('text', 'about', 'words'),
    [
        ('- 1', {}, 'expected the keys'),
        ('a: [', {}, 'not valid YAML'),
        ('joints: []', {'name': 'convention', 'expected': ('standard', 'modified')}, ''),
        ('convention: craig\njoints: []', {'name': 'convention', 'found': 'craig'}, ''),
        ('convention: standard\njoints: []', {}, "'joints' must be a list"),
        ('convention: standard\njoints: [1]', {}, "'joints' must be a list"),
        ('convention: standard\nrobot: x\njoints: []', {'name': 'robot'}, 'unknown key'),
        ('convention: standard\njoints: [{name: a, theta: 0, d: 0, a: 0}]', {'name': 'alpha'}, "joint 'a'"),
        (
            'convention: standard\njoints: [{name: a, theta: 0, d: 0, a: 0, alpha: 90}]',
            {'name': 'alpha', 'found': 90},
            'angle_unit: deg',
        ),
        (
            'convention: standard\njoints: [{name: a, theta: 0, d: 400, a: 0, alpha: 0}]',
            {'name': 'd', 'found': 400},
            'length_unit: mm',
        ),
        ('convention: standard\njoints: [{name: a, theta: 0, d: x, a: 0, alpha: 0}]', {'name': 'd', 'found': 'x'}, ''),
        ('convention: standard\njoints: [{name: a, theta: 0, d: 0, a: 0, alpha: .nan}]', {'name': 'alpha'}, ''),
        (
            'convention: standard\njoints: [{name: a, theta: 0, d: 0, a: 0, alpha: 0, type: screw}]',
            {'name': 'type', 'found': 'screw'},
            '',
        ),
        ('convention: standard\njoints: [{name: a, theta: 0, d: 0, a: 0, alpha: 0, direction: 2}]', {}, '1 or -1'),
        (
            'convention: standard\nlength_unit: ft\njoints: [{name: a}]',
            {'name': 'length_unit', 'expected': ('m', 'mm'), 'found': 'ft'},
            '',
        ),
        (f'convention: standard\njoints: [{_ROW}, {_ROW}]', {}, 'joint names must differ'),
    ],
)
def test_bad_dh_files(tmp_path: Path, text: str, about: dict, words: str) -> None:
    path = tmp_path / 'arm.yaml'
    path.write_text(text)
    with refused(ModelError, file=str(path), **about) as caught:
        read_dh_file(path)
    assert words in str(caught.value)
