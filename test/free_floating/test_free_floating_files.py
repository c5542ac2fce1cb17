# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Missions, measurement and excitation files, the command line and the pictures."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import yaml
from errors_helpers import refused
from free_floating_helpers import example_robot, random_trajectory

from robotid_ros.cli import build_parser
from robotid_ros.errors import DataError, ExcitationError, ModelError, RobotIdError
from robotid_ros.excitation import load_excitation, save_excitation
from robotid_ros.free_floating import (
    control_trajectory,
    identify_target,
    read_measurement,
    read_mission,
    simulate,
    write_measurement,
)
from robotid_ros.free_floating.design import judged_trajectory
from robotid_ros.model import JointLimits
from robotid_ros.model.packaged import packaged_arms
from robotid_ros.report import can_draw
from robotid_ros.report.free_floating import base_motion_report, free_floating_report, trajectory_report

MISSION = {
    'robot': 'iiwa14_space.urdf',
    'prior': {'mass': 30.0, 'center_of_mass': [0.0, 0.0, 0.2], 'inertia': [2.0, 0.0, 0.0, 2.0, 0.0, 2.0]},
    'start': [0.0, 0.6, 0.0, -1.2, 0.0, 0.9, 0.0],
    'harmonics': 3,
    'limits': {'velocity': 0.8, 'acceleration': [1.2] * 7, 'excursion': 1.0},
}


def command(*words):
    options = build_parser('free-floating').parse_args(['free-floating', *map(str, words)])
    return options.run(options)


@pytest.fixture(scope='module')
def measured():
    robot = example_robot()
    trajectory = random_trajectory(np.random.default_rng(0), robot.n)
    return robot, simulate(robot, trajectory, np.linspace(0.0, 10.0, 61))


@pytest.fixture
def excitation(tmp_path):
    """An excitation file that took no optimiser: a random trajectory of the example's arm."""
    robot = example_robot()
    path = tmp_path / 'excitation.yaml'
    trajectory = random_trajectory(np.random.default_rng(0), robot.n)
    save_excitation(judged_trajectory(robot, trajectory, JointLimits.unlimited(robot.n)), path)
    return path


@pytest.mark.slow
def test_measurement_survives_the_file_to_the_last_digit(measured, tmp_path):
    robot, measurement = measured
    path = tmp_path / 'measurement.csv'
    write_measurement(path, measurement)
    again = read_measurement(path, robot.arm.joint_names)
    for name in ('time', 'q', 'dq', 'base_twist', 'base_position', 'base_orientation'):
        assert np.array_equal(getattr(again, name), getattr(measurement, name))
    assert again.provenance['file'] == 'measurement.csv'
    blind = replace(measurement, base_position=None, base_orientation=None)
    write_measurement(path, blind)
    assert not read_measurement(path, robot.arm.joint_names).has_pose
    assert [p.name for p in tmp_path.iterdir()] == ['measurement.csv']  # and nothing half written


def test_columns_are_found_by_name(measured, tmp_path):
    robot, measurement = measured
    path = tmp_path / 'measurement.csv'
    write_measurement(path, measurement)
    rows = [line.split(',') for line in path.read_text().splitlines()]
    order = np.random.default_rng(1).permutation(len(rows[0]))
    path.write_text('\n'.join(','.join(row[k] for k in order) for row in rows) + '\n')
    assert np.array_equal(read_measurement(path, robot.arm.joint_names).base_twist, measurement.base_twist)


def test_missing_and_broken_signals_are_named(measured, tmp_path):
    robot, measurement = measured
    path = tmp_path / 'measurement.csv'
    write_measurement(path, measurement)
    text = path.read_text()

    lines = text.splitlines()
    width = lines[0].count(',') + 1
    for content, about in (
        (text.replace('base/angular_velocity/y', 'gyro'), {'name': 'base/angular_velocity/y'}),
        (text.replace('velocity/joint_3', 'other'), {'name': 'velocity/joint_3'}),
        (text.replace('base/orientation/qz', 'other'), {'name': 'base/orientation/qz'}),
        (
            '\n'.join([*lines[:5], 'oops' + lines[5][lines[5].index(',') :]]),
            {'line': 6, 'name': 'time', 'found': 'oops'},
        ),
        ('\n'.join([*lines[:5], lines[5] + ',1']), {'line': 6, 'expected': width, 'found': width + 1}),
        (
            '\n'.join([*lines[:5], 'nan' + lines[5][lines[5].index(',') :]]),
            {'line': 6, 'name': 'time', 'expected': 'a finite number'},
        ),
        (lines[0], {}),
    ):
        path.write_text(content)
        with refused(DataError, file=str(path), **about):
            read_measurement(path, robot.arm.joint_names)
    with pytest.raises(DataError, match='does not exist'):
        read_measurement(tmp_path / 'none.csv', robot.arm.joint_names)


def test_mission_is_read_from_its_file(tmp_path):
    path = tmp_path / 'mission.yaml'
    path.write_text(yaml.safe_dump(MISSION))
    mission = read_mission(path)
    assert mission.robot.target.mass == pytest.approx(30.0)
    assert mission.limits.upper[1] == pytest.approx(1.6)
    assert mission.limits.lower[3] == pytest.approx(-2.0944)  # the arm's own limit is the tighter one
    assert mission.target is None
    trajectory = control_trajectory(mission.start, 0.5)
    assert len(mission.sample_times(trajectory)) == 241
    with refused(ExcitationError, name='rate', expected=3, found=2):
        replace(mission, rate=0.1).sample_times(trajectory)
    with refused(ModelError, name='target'):
        _ = mission.true_robot
    # a URDF beside the mission file comes first
    robot = example_robot().arm.source.replace('<mass value="300"/>', '<mass value="500"/>')
    (tmp_path / 'iiwa14_space.urdf').write_text(robot)
    assert read_mission(path).robot.arm.base_inertial[9] == pytest.approx(505.0)


@pytest.mark.parametrize(
    ('change', 'about', 'words'),
    [
        ({'robot': 'none.urdf'}, {'name': 'none.urdf', 'expected': packaged_arms()}, 'no packaged arm of that name'),
        ({'prior': {**MISSION['prior'], 'mass': -30.0}}, {'name': 'mass', 'found': -30.0}, 'prior: mass: '),
        ({'prior': {'mass': 30.0}}, {}, 'prior: expected mass, center_of_mass, inertia; got mass'),
        ({'target': {**MISSION['prior'], 'inertia': [1, 0, 0, 1, 0, 9]}}, {}, 'target: no real body'),
        ({'target': {**MISSION['prior'], 'inertia': ['a', 0, 0, 1, 0, 9]}}, {'expected': (6,)}, 'target: inertia '),
        ({'base': {**MISSION['prior'], 'mass': 0.0}}, {'name': 'mass', 'found': 0.0}, 'base: mass: '),
        ({'start': [0.0]}, {'name': 'start', 'expected': (7,), 'found': (1,)}, ''),
        ({'period': -1}, {'name': 'period', 'expected': (1e-3, 1e6), 'found': -1}, ''),
        ({'harmonics': 5.7}, {'name': 'harmonics', 'found': 5.7}, 'expected a whole number'),
        ({'limits': {'speed': 1}}, {'name': 'limits', 'expected': ('velocity', 'acceleration', 'excursion')}, ''),
        ({'limits': {'velocity': -1}}, {'name': 'velocity', 'found': -1.0}, ''),
        ({'noise': {'joint_velocity': -1}}, {'name': 'joint_velocity', 'found': -1}, ''),
        ({'color': 'red'}, {'name': 'color'}, ''),
    ],
)
def test_missions_that_cannot_be_are_refused(tmp_path, change, about, words):
    path = tmp_path / 'mission.yaml'
    path.write_text(yaml.safe_dump({**MISSION, **change}))
    with refused(RobotIdError, file=str(path), **about) as caught:
        read_mission(path)
    assert words in str(caught.value)
    assert isinstance(caught.value, ValueError)


def test_mission_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / 'mission.yaml'
    for text, words in (('[1, 2', 'not valid YAML'), ('- 1', 'expected robot'), ('robot: x', "lacks 'prior'")):
        path.write_text(text)
        with refused(ModelError, file=str(path)) as caught:
            read_mission(path)
        assert words in str(caught.value)
    with refused(ModelError, file=str(tmp_path / 'none.yaml')):
        read_mission(tmp_path / 'none.yaml')


def test_an_excitation_of_another_arm_is_refused(tmp_path, excitation):
    text = excitation.read_text().replace('joint_1', 'other')
    (tmp_path / 'other.yaml').write_text(text)
    with pytest.raises(ExcitationError, match=r"other.yaml' moves other, .*; the arm's joints are joint_1"):
        command('simulate', tmp_path / 'other.yaml', '--out', tmp_path / 'measurement.csv')
    with refused(ExcitationError, file=str(tmp_path / 'none.yaml')):
        command('simulate', tmp_path / 'none.yaml', '--out', tmp_path / 'measurement.csv')


@pytest.mark.slow
def test_commands_go_from_design_to_target(tmp_path, capsys):
    def drawn(name):
        return ('--report', tmp_path / f'{name}.html') if can_draw() else ()

    out = tmp_path / 'excitation.yaml'
    assert command('design', '--out', out, '--starts', 1, *drawn('design')) == 0
    said = capsys.readouterr().out
    assert 'control (first and last harmonic)' in said
    design = load_excitation(out)  # as an excitation node reads it
    assert design.excitation.condition_scaled <= 1.01
    assert design.joint_names == example_robot().arm.joint_names
    assert all(peak.excess <= 0.0 for peak in design.peaks)
    control = tmp_path / 'control.yaml'
    assert command('design', '--out', control, '--control') == 0
    assert load_excitation(control).excitation.condition_scaled > 10.0
    data = tmp_path / 'measurement.csv'
    assert command('simulate', out, '--out', data, '--seed', 5, *drawn('simulate')) == 0
    assert {path.stem for path in tmp_path.glob('*.html')} == ({'design', 'simulate'} if can_draw() else set())
    assert command('identify', data, '--out', tmp_path / 'result') == 0
    result = yaml.safe_load((tmp_path / 'result' / 'result.yaml').read_text())
    assert result['target']['mass'] == pytest.approx(40.0, rel=1e-3)
    assert result['provenance']['sha256']
    found = {path.name for path in (tmp_path / 'result').iterdir()}
    assert found == {'result.yaml', 'report.html'} if can_draw() else {'result.yaml'}


@pytest.mark.slow
def test_commands_with_momentum(tmp_path, excitation, capsys):
    data = tmp_path / 'measurement.csv'
    momentum = ['1.5', '0', '-0.5', '0.2', '0.1', '0.3']
    assert command('simulate', excitation, '--out', data, '--momentum', *momentum) == 0
    with pytest.raises(RobotIdError, match='carry momentum'):
        command('identify', data, '--out', tmp_path / 'r', '--no-report')
    for words in (['estimated'], momentum):
        assert command('identify', data, '--out', tmp_path / 'r', '--no-report', '--momentum', *words) == 0
        assert yaml.safe_load((tmp_path / 'r' / 'result.yaml').read_text())['target']['mass'] == pytest.approx(
            40.0, rel=3e-3
        )
    assert 'momentum [P; L]: 1.' in capsys.readouterr().out
    for words in (['none'], ['1', '2']):
        with pytest.raises(RobotIdError, match='six numbers'):
            command('identify', data, '--out', tmp_path / 'r', '--momentum', *words)


@pytest.mark.slow
def test_equal_seeds_give_equal_files(tmp_path, excitation):
    paths = [tmp_path / f'{k}.csv' for k in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        command('simulate', excitation, '--out', path, '--seed', seed)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes() != paths[2].read_bytes()


@pytest.mark.slow
def test_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, excitation):
    for words in (('design',), ('simulate', excitation)):
        with pytest.raises(DataError, match='does not exist'):
            command(*words, '--out', tmp_path / 'none' / 'file')
    (tmp_path / 'file').write_text('')
    data = tmp_path / 'measurement.csv'
    command('simulate', excitation, '--out', data)
    with pytest.raises(DataError, match='cannot be made'):
        command('identify', data, '--out', tmp_path / 'file')


@pytest.mark.slow
def test_an_unusable_result_exits_with_one(tmp_path, excitation, capsys):
    light = example_robot().arm.source.replace('<mass value="300"/>', '<mass value="30"/>')
    (tmp_path / 'iiwa14_space.urdf').write_text(light.replace('="61"', '="6"').replace('="50"', '="5"'))
    (tmp_path / 'mission.yaml').write_text(yaml.safe_dump(MISSION))
    data = tmp_path / 'measurement.csv'
    command('simulate', excitation, '--out', data, '--no-noise')
    # without the pose, momentum cannot be told from a wrong base
    text = [','.join(line.split(',')[:21]) for line in data.read_text().splitlines()]
    data.write_text('\n'.join(text))
    assert command('identify', data, '--mission', tmp_path / 'mission.yaml', '--out', tmp_path, '--no-report') == 1
    assert 'not usable: the estimate is no physical body' in capsys.readouterr().out
    assert yaml.safe_load((tmp_path / 'result.yaml').read_text())['usable'] is False


def test_charts_show_the_data(measured):
    robot, measurement = measured
    result = identify_target(robot, measurement)
    report = free_floating_report(result, measurement=measurement)
    charts = {chart.title: chart for figure in report.figures for chart in figure.charts}
    estimate = next(trace for trace in charts['m'].traces if trace['name'] == 'estimate')
    assert estimate['y'][-1] == pytest.approx(result.body.mass)
    scalar, z = measurement.base_orientation[:, 0], measurement.base_orientation[:, 3]
    turned = charts['Base rotation'].traces[2]['y']
    assert np.sign(turned[-1]) == np.sign(z[-1] * scalar[-1])
    without_pose = replace(measurement, base_position=None, base_orientation=None)
    velocity = base_motion_report('arm', without_pose).figures[0].charts[0]
    np.testing.assert_allclose(velocity.traces[0]['y'], 1e3 * measurement.base_twist[:, 0])
    trajectory = random_trajectory(np.random.default_rng(0), 7)
    motion = trajectory_report('arm', trajectory, robot.arm.joint_names, robot.arm.limits).figures[0]
    assert [len(chart.traces) for chart in motion.charts] == [7, 7, 7]


@pytest.mark.slow
def test_package_needs_no_plotting_library():
    code = (
        "import sys; sys.modules['plotly'] = None\n"
        'import robotid_ros.commands.free_floating\n'
        'from robotid_ros.report.page import html_page\n'
        "try: html_page('', '', {})\n"
        'except ImportError as problem: print(problem)\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "'robotid_ros[plot]'" in done.stdout
