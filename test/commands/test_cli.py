# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The command line as a user meets it: one clear line for bad input, exit codes, files."""

import re
import shutil
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import yaml

from robotid_ros.cli import build_parser, main
from robotid_ros.commands import COMMANDS
from robotid_ros.commands.demo import parameter_table as demo_table
from robotid_ros.commands.options import load_robot
from robotid_ros.commands.terminal import joint_table
from robotid_ros.demo.run import ParameterComparison, configuration_text
from robotid_ros.errors import ModelError
from robotid_ros.excitation.design import FORMAT
from robotid_ros.identification import IdentificationResult
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.inertia import pseudo_inertia

BAG = Path(__file__).parents[3] / 'shared' / 'data' / 'ur10_exciting'
needs_bag = pytest.mark.skipif(not BAG.exists(), reason='the recording of a real UR10 is not beside this checkout')

# rms errors on the second half [N m]: the better of plain weighted least squares and the published model
BEST_KNOWN = [4.06, 3.73, 1.77, 0.76, 0.64, 1.32]


def _csv(path: Path, columns: dict[str, np.ndarray]) -> Path:
    table = np.stack(list(columns.values()), axis=1)
    np.savetxt(path, table, delimiter=',', header=','.join(columns), comments='')
    return path


@pytest.mark.parametrize('name', COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([name, '--help'])
    assert end.value.code == 0
    assert 'usage: robotid ' + name in capsys.readouterr().out


def test_commands_are_those_of_the_design() -> None:
    wanted = {'demo', 'design', 'process', 'identify', 'validate', 'calibrate', 'free-floating', 'codegen', 'report'}
    assert wanted <= set(COMMANDS)
    summaries = build_parser().format_help()
    assert all(f' {name} ' in summaries or f' {name}\n' in summaries for name in COMMANDS)
    assert all(summary in ' '.join(summaries.split()) for summary in COMMANDS.values())


BAD = [
    (['design', '--robot', 'nowhere.urdf'], "robot 'nowhere.urdf': no such file"),
    (['design', '--robot', '{broken}'], 'not well-formed XML'),
    (
        ['design', '--robot', 'ur10e', '--joints', 'elbow'],
        "joint 'elbow' is not in the URDF; it has: shoulder_pan_joint",
    ),
    (['design', '--robot', 'ur10e', '--harmonics', '1000'], 'harmonics: expected 2 to 40'),
    (['design', '--robot', 'ur10e', '--config', 'nowhere.yaml'], "robot configuration 'nowhere.yaml' does not exist"),
    (['design', '--robot', 'ur10e', '--csv', 'x.csv', '--rate', '0'], '--rate: expected 1 to 100000 Hz, got 0'),
    (['process', 'nowhere.csv'], 'nowhere.csv does not exist'),
    (['process', '{no_effort}'], 'neither effort nor current'),
    (['process', '{text}'], "expected a column 'time'"),
    (['identify', '{no_effort}', '--robot', 'ur10e'], "joint 'shoulder_pan_joint' is not in the recording"),
    (['identify', '{still}', '--robot', '{one_joint}'], 'no joint moves in the data (j)'),
    (['validate', '{still}', '--robot', '{one_joint}', '--result', 'nowhere.yaml'], 'does not exist'),
    (['payload', '--robot', '{one_joint}', '--with', '{still}'], 'the arm alone must be known'),
    (
        [
            'payload',
            '--robot',
            '{one_joint}',
            '--with',
            '{still}',
            '--without',
            '{still}',
            '--mass',
            '-2',
            '--centre',
            '0',
            '0',
            '0',
        ],
        '--mass: expected a positive number of kg, got -2',
    ),
    (['identify', '{still}', '--robot', '{one_joint}', '--select'], 'torque_threshold'),
    (['calibrate', 'nowhere.csv', '--robot', '{one_joint}', '--out', 'x'], 'nowhere.csv'),
    (['calibrate', '--robot', 'ur10e', '--out', 'x', '--select-poses', '0'], 'expected at least one pose to select'),
    (['demo', '--robot', 'nowhere.urdf'], "robot 'nowhere.urdf': no such file, and no packaged arm of that name"),
    (['demo', '--config', '{text}'], "expected a mapping with 'joints'"),
    (['process', '{current}'], 'give torque_constants and gear_ratios in a robot configuration'),
    (['free-floating', 'simulate', 'nowhere.yaml'], 'nowhere.yaml'),
    (['codegen', '--robot', 'ur10e', '--result', '{text}'], 'not a result of an identification'),
    (['report', 'nowhere', '--robot', 'ur10e'], 'does not exist'),
    (['design', '--robot', 'ur10e', '--harmonics', '1'], 'harmonics: expected 2 to 40, got 1'),
    (
        ['identify', '{swinging}', '--robot', '{one_joint}', '--excitation', '{excitation}'],
        'is an excitation of the joints other; expected one of: j',
    ),
    (
        ['identify', '{second}', '--robot', '{one_joint}', '--validate-excitation', '{excitation}'],
        '--validate-excitation belongs to the recordings to judge by',
    ),
    (
        ['identify', '{second}', '--robot', '{one_joint}', '--validate', '{copy}'],
        'are one recording; a model cannot be judged on its own data',
    ),
]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    time = np.arange(400) * 0.01
    (tmp_path / 'broken.urdf').write_text('<robot><link')
    (tmp_path / 'text.txt').write_text('hello')
    (tmp_path / 'one_joint.urdf').write_text(
        '<robot name="one"><link name="base"/><link name="arm"><inertial><mass value="1"/><inertia ixx="1" ixy="0" '
        'ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link><joint name="j" type="revolute"><parent link="base"/>'
        '<child link="arm"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="1" effort="1"/></joint></robot>'
    )
    _csv(tmp_path / 'no_effort.csv', {'time': time, 'position/j': np.sin(time)})
    _csv(tmp_path / 'current.csv', {'time': time, 'position/j': np.sin(time), 'current/j': np.cos(time)})
    _csv(tmp_path / 'still.csv', {'time': time, 'position/j': 0 * time, 'effort/j': 0 * time})
    _csv(tmp_path / 'swinging.csv', {'time': time, 'position/j': 5 * np.sin(3 * time), 'effort/j': np.cos(time)})
    for name, period in (('second', 1.0), ('other', 0.7)):
        phase = 2.0 * np.pi / period * 0.01 * np.arange(1500)
        effort = 20.0 * np.sin(phase + 0.2) + np.random.default_rng(1).normal(0.0, 0.1, 1500)
        _csv(
            tmp_path / f'{name}.csv',
            {'time': 0.01 * np.arange(1500), 'position/j': 0.5 * np.sin(phase), 'effort/j': effort},
        )
    shutil.copy(tmp_path / 'second.csv', tmp_path / 'copy.csv')
    trajectory = {'base_frequency': 0.1, 'a': [[1.0, 0.5]], 'b': [[0.0, 0.0]], 'offset': [0.0]}
    limits = {'lower': [-9.0], 'upper': [9.0], 'velocity': [9.0], 'effort': [9.0], 'acceleration': [9.0]}
    excitation = {'format': FORMAT, 'joints': ['other'], 'base_parameters': 1, 'settings': {}}
    excitation |= {'trajectory': trajectory, 'limits': {**limits, 'jerk': [9.0]}}
    criteria = ('condition', 'condition_scaled', 'log_det', 'mean_variance', 'worst_variance')
    excitation['criteria'] = dict.fromkeys(criteria, 1.0)
    (tmp_path / 'excitation.yaml').write_text(yaml.safe_dump(excitation))
    excitation |= {'joints': ['j'], 'trajectory': {**trajectory, 'base_frequency': 1.0 / 0.7}}
    excitation['limits'] |= {'acceleration': [99.0], 'jerk': [999.0]}
    (tmp_path / 'second_excitation.yaml').write_text(yaml.safe_dump(excitation))
    names = {
        'excitation': 'excitation.yaml',
        'swinging': 'swinging.csv',
        'broken': 'broken.urdf',
        'text': 'text.txt',
        'one_joint': 'one_joint.urdf',
        'second': 'second.csv',
        'copy': 'copy.csv',
        'other': 'other.csv',
        'second_excitation': 'second_excitation.yaml',
    }
    names |= {'current': 'current.csv', 'no_effort': 'no_effort.csv', 'still': 'still.csv'}
    return {name: str(tmp_path / file) for name, file in names.items()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ('arguments', 'message'), BAD, ids=lambda value: ' '.join(value) if isinstance(value, list) else ''
)
@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_bad_input_is_one_clear_line(
    arguments: list[str],
    message: str,
    files: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {path for path in tmp_path.rglob('*') if path.is_file()}
    assert main([argument.format(**files) for argument in arguments]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if not line.startswith('warning: ')]
    assert len(errors) == 1, errors
    assert errors[0].startswith(f'robotid {arguments[0]}: ')
    assert message in errors[0]
    assert {path for path in tmp_path.rglob('*') if path.is_file()} == before  # nothing written half


@pytest.mark.slow
@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_a_recording_with_another_excitation_validates(files: dict[str, str], tmp_path: Path) -> None:
    arguments = ['identify', '{second}', '--robot', '{one_joint}', '--period', '1', '--friction', 'coulomb_viscous']
    arguments += [
        '--validate',
        '{other}',
        '--validate-excitation',
        '{second_excitation}',
        '--out',
        str(tmp_path / 'out'),
    ]
    assert main([argument.format(**files) for argument in arguments]) in (0, 1)  # whatever the verdict on these numbers
    result = yaml.safe_load((tmp_path / 'out' / 'result.yaml').read_text())
    assert result['metrics']['validation']['samples'] == 70


def test_a_configuration_that_is_shipped_goes_by_the_name_of_its_arm(tmp_path: Path) -> None:
    """It keeps the shoulder above the table, from -2.9 to -0.25 rad, where the URDF lets it turn round."""
    words = ['calibrate', '--robot', 'ur10e', '--config', 'ur10e', '--select-poses', '12', '--out', str(tmp_path)]
    assert main(words) == 0
    poses = np.genfromtxt(tmp_path / 'poses.csv', delimiter=',', skip_header=1)
    assert poses.shape == (12, 6)
    assert -2.9 <= poses[:, 1].min() < poses[:, 1].max() <= -0.25


def test_a_dh_table_takes_the_gravity_of_the_configuration(tmp_path: Path) -> None:
    table, row = tmp_path / 'dh.yaml', '{name: j, theta: 0, d: 0.1, a: 0.2, alpha: 0}'
    wall = RobotConfig(joints=('j',), gravity=(9.81, 0.0, 0.0))

    def gravity(line: str, config: RobotConfig) -> list[float]:
        table.write_text(f'convention: standard\n{line}\njoints: [{row}]\n')
        options = Namespace(robot=str(table), joints=None, tip=None, config='robot.yaml')
        return load_robot(options, config).gravity.tolist()

    assert gravity('', wall) == [9.81, 0.0, 0.0]
    assert gravity('gravity: [0, 0, 9.81]', RobotConfig(joints=('j',))) == [0.0, 0.0, 9.81]
    with pytest.raises(ModelError, match=r'gravity is \[0.0, 0.0, 9.81\] in .*dh.yaml and \[9.81, 0.0, 0.0\] in'):
        gravity('gravity: [0, 0, 9.81]', wall)


@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_an_arm_without_a_configuration_gets_one_for_the_demo(files: dict[str, str], tmp_path: Path) -> None:
    model = RobotModel.from_urdf(files['one_joint'])
    (tmp_path / 'robot.yaml').write_text(configuration_text(model))
    config = RobotConfig.from_yaml(tmp_path / 'robot.yaml')
    assert config.joints == ('j',)
    assert config.meaning(['j']) == ('torque',)
    limits = config.apply_limits(model.joint_names, model.limits)
    assert limits.acceleration.tolist() == [3.0]  # full speed, 1 rad/s, in a third of a second
    assert limits.velocity.tolist() == [1.0]


def test_the_table_of_the_demonstration_marks_what_is_off_and_what_the_run_does_not_tell() -> None:
    true, found, std = np.array([[1.0, 1.01, 0.01], [2.0, 2.5, 0.02], [0.1, 0.2, 3.0]]).T
    table = demo_table(ParameterComparison(names=('XX2', 'MX3', 'Ia4'), true=true, found=found, std=std))
    _, agreeing, off, hidden, said = table.splitlines()
    assert agreeing.split() == ['XX2', '1.0000', '1.0100', '0.01', '0.99', '1.0', 'σ']
    assert off.endswith('25.0 σ  <- more than 3 std off')
    assert hidden.split()[4:] == ['>1000', '0.0', 'σ', '(hardly', 'excited)']
    assert said.startswith('1 of the 2 parameters found to better than 5 %')


@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_a_motion_far_beyond_the_limits_is_pointed_out(
    files: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(['identify', files['swinging'], '--robot', files['one_joint'], '--out', str(tmp_path / 'out')])
    said = capsys.readouterr().out
    assert 'its limits are -1 to 1 rad; are the positions in rad' in said
    assert 'rmse in N m' in said


def test_a_folder_that_is_gone_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (gone := tmp_path / 'gone').mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(['design', '--robot', 'ur10e', '--out', str(tmp_path / 'excitation.yaml')]) == 2
    assert 'folder does not exist' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_an_unknown_option_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(['design', '--robot', 'ur10e', '--speed', '3'])
    assert end.value.code == 2
    assert 'unrecognized arguments: --speed 3' in capsys.readouterr().err


INTERRUPTED_ITSELF = """
import os, signal, sys
left = int(sys.argv.pop(1))
def count(event, arguments):
    global left
    left -= ready
    if left == 0 and ready:
        os.kill(os.getpid(), signal.SIGINT)
ready = False
sys.addaudithook(count)
from robotid_ros.__main__ import main
ready = True
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize('events', [3, 40, 400, 1500, 4500])
def test_an_interrupt_gives_one_line_whenever_it_comes(files: dict[str, str], tmp_path: Path, events: int) -> None:
    words = ['identify', files['swinging'], '--robot', files['one_joint'], '--out', str(tmp_path / 'out')]
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', INTERRUPTED_ITSELF, str(events), *words],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert 'Traceback' not in done.stderr
    if done.returncode != 1 or events <= 1500:  # 1: it had ended; this arm's result is not usable
        assert done.returncode == 130, done.stderr
        assert re.fullmatch(r'(warning: .*\n)*robotid( identify)?: interrupted\n', done.stderr)
    if (tmp_path / 'out').exists():
        assert not list((tmp_path / 'out').glob('.*'))


@pytest.mark.slow
@needs_bag
@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_the_real_arm_is_predicted_better_than_any_published_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('plotly', reason='needs the plot extra')
    arguments = ['identify', str(BAG), '--robot', str(BAG / 'ur10.urdf'), '--train-fraction', '0.5']
    assert main([*arguments, '--out', str(tmp_path)]) == 0
    said = capsys.readouterr().out
    result = yaml.safe_load((tmp_path / 'result.yaml').read_text(encoding='utf-8'))
    for name, use in result['good_for'].items():
        assert re.search(f'^{name} +{"yes" if use["good"] else "no"} +{re.escape(use["text"])}$', said, re.MULTILINE)
    found = list(result['metrics']['validation']['rmse'].values())
    assert np.all(np.array(found) < BEST_KNOWN), found
    inertial = IdentificationResult.load(tmp_path / 'result.yaml').inertial
    assert (np.linalg.eigvalsh(pseudo_inertia(inertial))[:, 0] > 0.0).all()
    for name in ('calibrated.urdf', 'report.html'):
        assert (tmp_path / name).stat().st_size > 1000
    # the same data, judged by the stored model alone
    report = (tmp_path / 'report.html').stat().st_mtime_ns
    assert main(['report', str(tmp_path), '--robot', str(BAG / 'ur10.urdf')]) == 0
    assert (tmp_path / 'report.html').stat().st_mtime_ns > report


@pytest.mark.slow
def test_design_and_process_write_what_they_say(tmp_path: Path, files: dict[str, str]) -> None:
    out = tmp_path / 'excitation.yaml'
    arguments = [
        'design',
        '--robot',
        files['one_joint'],
        '--acceleration-limit',
        '4',
        '--harmonics',
        '3',
        '--jobs',
        '1',
        '--start-at-rest',
    ]
    assert main([*arguments, '--out', str(out), '--csv', str(tmp_path / 'period.csv'), '--rate', '50']) == 0
    design = yaml.safe_load(out.read_text(encoding='utf-8'))
    assert design['joints'] == ['j']
    rows = np.genfromtxt(tmp_path / 'period.csv', delimiter=',', names=True, deletechars='')
    assert rows.dtype.names == ('time', 'position/j', 'velocity/j', 'acceleration/j')
    assert len(rows) == 1001
    assert rows['time'][-1] == 20.0
    step = 1 / 50
    moved = np.cumsum((rows['velocity/j'][1:] + rows['velocity/j'][:-1]) * step / 2)
    assert rows['position/j'][1:] - rows['position/j'][0] == pytest.approx(moved, abs=1e-3)
    assert np.gradient(rows['velocity/j'], step)[1:-1] == pytest.approx(rows['acceleration/j'][1:-1], abs=2e-2)
    assert abs(rows[0]['velocity/j']) < 1e-9  # at rest, where it may be started
    assert abs(rows['acceleration/j']).max() <= 4.0
    time = np.arange(4000) * 0.005
    motion = {'time': time, 'position/j': 0.5 * np.sin(time), 'effort/j': np.cos(time)}
    recording = _csv(tmp_path / 'run.csv', motion)
    assert main(['process', str(recording), '--out', str(tmp_path / 'run.npz')]) == 0
    from robotid_ros.data import load_dataset

    dataset = load_dataset(tmp_path / 'run.npz')
    inner = slice(200, -200)
    assert dataset.dq[inner, 0] == pytest.approx(0.5 * np.cos(dataset.time[inner]), abs=2e-3)


IMPORTED = """
import os, sys
from importlib import import_module
libraries, rest = sys.argv[1].split(), sys.argv[2:]
for name in libraries:
    import_module(name)
for arguments in (each.split() for each in rest):
    if (child := os.fork()) == 0:
        from robotid_ros.__main__ import main
        sys.argv = ['robotid', *arguments]
        try:
            main()
        finally:
            print('\\nimported:', *sys.modules, flush=True)
    else:
        os.waitpid(child, 0)
        continue
    break
"""


def _imported(libraries: str, *commands: str) -> list[set[str]]:
    """Return the modules that are imported at the end of each command, with some libraries that were there before."""
    words = [sys.executable, '-c', IMPORTED, libraries, *commands]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    found = [set(line.split()[1:]) for line in said.splitlines() if line.startswith('imported:')]
    assert len(found) == len(commands)
    return found


@pytest.fixture(scope='module')
def imported_for_help() -> dict[str, set[str]]:
    """Return the modules that the help of each command imports."""
    return dict(zip(COMMANDS, _imported('numpy yaml', *(f'{name} --help' for name in COMMANDS)), strict=True))


@pytest.mark.parametrize('arguments', ['--help', '--version', 'nonsense', ''])
def test_what_needs_no_command_imports_none_and_no_library(arguments: str) -> None:
    (imported,) = _imported('', arguments)
    own = {name.removeprefix('robotid_ros.') for name in imported if name.startswith('robotid_ros.')}
    assert own == {'__main__', 'cli', 'commands', 'errors', 'imports'}
    assert not imported & {'numpy', 'scipy', 'yaml', 'joblib', 'dataclasses', 'hashlib'}


@pytest.mark.slow
@pytest.mark.parametrize('name', COMMANDS)
def test_a_command_imports_no_other(name: str, imported_for_help: dict[str, set[str]]) -> None:
    imported = imported_for_help[name]
    modules = {f'robotid_ros.commands.{other.replace("-", "_")}' for other in COMMANDS if other != name}
    assert f'robotid_ros.commands.{name.replace("-", "_")}' in imported
    assert not imported & modules
    assert not imported & {'mujoco', 'rclpy', 'matplotlib', 'distributed'}
    assert not imported & {f'scipy.{part}' for part in ('interpolate', 'optimize', 'signal', 'stats')}
    assert 'urllib.request' not in imported  # with xml.sax, a tenth of the start


@pytest.mark.slow
@pytest.mark.parametrize(
    ('name', 'rooms'),
    [
        ('process', {'identification', 'excitation', 'dynamics', 'report'}),
        ('identify', {'report', 'excitation', 'simulation', 'export', 'dynamics.codegen.minimal_model'}),
        ('payload', {'report', 'excitation', 'simulation', 'export', 'dynamics.codegen.minimal_model'}),
        ('export', {'simulation.plant', 'excitation'}),
    ],
)
def test_a_command_starts_without_the_rooms_that_it_needs_later_or_never(
    name: str, rooms: set[str], imported_for_help: dict[str, set[str]]
) -> None:
    assert not imported_for_help[name] & {f'robotid_ros.{room}' for room in rooms}


def test_torques_of_a_small_arm_are_shown() -> None:
    table = joint_table(('a', 'b'), {'small': np.array([4.2e-5, np.nan]), 'usual': np.array([1.5, 0.0])})
    assert table.split()[-6:] == ['a', '0.0000420', '1.500', 'b', 'nan', '0.000']
