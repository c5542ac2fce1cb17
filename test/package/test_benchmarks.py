# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The table of benchmarks: what a row says of a figure, the anchors' protocol, and that manual and file agree."""

import json
import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmark import anchor
from benchmark.__main__ import long_cases, merged
from benchmark.area import measure_case, run_area
from benchmark.machine import missing
from benchmark.page import PAGE, RESULTS, markdown, summary
from benchmark.row import Row, spread_of

ROOT = Path(__file__).parents[2]


def _row(**fields: Any) -> Row:
    return Row(**{'what': 'time', 'unit': 's', 'values': 2.0, **fields})


@pytest.mark.parametrize(
    ('better', 'values', 'others', 'ratio'),
    [
        ('lower', (2.0,), (10.0,), 5.0),
        ('higher', (2.0,), (10.0,), 0.2),
        ('lower', (2.0, 4.0), (10.0, 10.0), 2.5),
        ('higher', (20.0, 40.0), (10.0,), 2.0),
        ('lower', (2.0,), (), None),
    ],
)
def test_a_ratio_above_one_is_better_and_the_worst_counts(
    better: Any, values: tuple[float, ...], others: tuple[float, ...], ratio: float | None
) -> None:
    assert _row(better=better, values=values, anchor='other', theirs=others).ratio == ratio


@pytest.mark.parametrize(
    ('bar', 'state'),
    [
        ({}, 'compared'),
        ({'high': 2.0}, 'met'),
        ({'high': 1.9}, 'missed'),
        ({'high': 0}, 'missed'),
        ({'low': 2.1}, 'missed'),
        ({'low': 1.0, 'high': 3.0}, 'met'),
        ({'low': 2.5, 'high': 3.0}, 'missed'),
        ({'times': 5.0}, 'met'),
        ({'times': 5.1}, 'missed'),
    ],
)
def test_a_bar_is_met_by_figure_or_ratio(bar: dict[str, float], state: str) -> None:
    assert _row(anchor='other', theirs=10.0, **bar).state == state


def test_every_joint_must_meet_the_bar_and_a_nan_never_does() -> None:
    assert _row(values=(1.0, 2.0), high=1.5).state == 'missed'
    for bar in ({'high': 1.5}, {'low': 1.5}, {'theirs': 1.0, 'times': 1.0}):
        assert _row(values=float('nan'), **bar).state == 'missed'


def test_without_a_figure_or_its_anchor_nothing_is_claimed() -> None:
    assert _row(values=(), high=1.0, note='no compiler').state == 'not run'
    assert _row(anchor='other', times=2.0).state == 'not run'


@pytest.mark.parametrize(
    ('values', 'better', 'ahead'),
    [
        (5.0, 'lower', 'here, 2'),
        (20.0, 'lower', 'theirs, 2'),
        (10.1, 'lower', 'equal'),
        (0.0, 'higher', 'theirs'),
        ((), 'lower', ''),
    ],
)
def test_who_is_ahead_follows_from_the_figures(values: Any, better: Any, ahead: str) -> None:
    assert _row(values=values, better=better, anchor='other', theirs=10.0).ahead == ahead


def test_rows_in_which_others_are_ahead_stand_together_and_sections_say_when_they_were_measured() -> None:
    rows = [
        _row(what=f'row {own}', values=own, anchor='other', theirs=10.0, area='dynamics', measured='then')
        for own in (5, 20)
    ]
    text = markdown({'machine': 'here', 'quick': False, 'rows': [row.as_dict() for row in rows]})
    behind, both = text.partition('### Where others are ahead')[2].split('### Dynamics')
    assert 'row 20' in behind
    assert 'row 5' not in behind
    assert 'Measured then.' in both
    assert 'row 20' in both
    assert 'row 5' in both


def test_a_row_begins_with_dots_where_the_one_above_begins_alike_and_says_what_it_missed() -> None:
    rows = [
        _row(what=f'time, UR10, {which}', high=high, area='dynamics') for which, high in (('here', 2), ('there', 1))
    ]
    lines = markdown({'machine': 'here', 'quick': False, 'rows': [row.as_dict() for row in rows]}).splitlines()
    assert '| time, UR10, here |  | 2 s |  |' in lines
    assert '| … there |  | 2 s, **missed** <= 1 |  |' in lines


def test_recordings_that_missed_are_named_below_the_means_of_their_arm() -> None:
    fields = {'area': 'recordings', 'case': 'arm', 'anchor': 'plain', 'times': 0.98, 'unit': '%', 'note': 'usable'}
    rows = [
        _row(what=f'arm, {pair}, total error', values=own, theirs=10.0, **fields)
        for pair, own in (('a to b', 5.0), ('b to a', 20.0))
    ]
    text = markdown({'machine': 'here', 'quick': False, 'rows': [row.as_dict() for row in rows]})
    assert '| arm | 10 | 10 | 1 |' in text
    assert '1 missed: arm, b to a (2).' in text


def test_a_run_of_one_case_leaves_the_rows_of_the_others() -> None:
    cases = (('dynamics', 'scale'), ('dynamics', 'gradient'), ('simulation', 'scale'))
    old = {'rows': [_row(what='old', area=area, case=case).as_dict() for area, case in cases]}
    made = merged(old, {'machine': 'here', 'rows': [_row(what='new', area='dynamics', case='scale')]})
    assert [(entry['what'], entry['area'], entry['case']) for entry in made['rows']] == [
        ('old', 'dynamics', 'gradient'),
        ('new', 'dynamics', 'scale'),
        ('old', 'simulation', 'scale'),
    ]


def test_long_cases_are_left_out_and_named() -> None:
    assert 'excitation.ipopt' in long_cases(['dynamics', 'excitation'])
    assert long_cases(['dynamics', 'excitation.ur10e']) == []


def test_a_spread_is_half_of_the_middle_half_and_stands_behind_its_figure() -> None:
    assert spread_of([8.0, 9.0, 10.0, 11.0, 12.0]) == pytest.approx(0.1)
    assert math.isnan(spread_of([3.0]))
    row = _row(values=10.0, spread=0.1, area='dynamics')
    assert '| 10 s ±10 % ' in markdown({'machine': 'here', 'quick': False, 'rows': [row.as_dict()]})


def test_what_is_missing_is_told_with_what_it_costs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv('ROBOTID_ANCHORS', str(tmp_path / 'python'))
    monkeypatch.setenv('PATH', str(tmp_path))
    monkeypatch.delenv('ROBOTID_CASES', raising=False)
    told = ' '.join(missing())
    assert all(text in told for text in ('everything beside the code of others', 'gcc: generated C', '--cases'))


def test_rows_survive_the_file() -> None:
    row = _row(values=np.array([1.0, 2.0]), anchor='other', theirs=3, times=1.0)
    assert Row.of(json.loads(json.dumps(row.as_dict()))) == row


def test_a_case_that_fails_becomes_a_row_beside_those_before(tmp_path: Path) -> None:
    def broken(quick: bool) -> Iterator[Row]:
        yield _row()
        raise RuntimeError('no such robot')

    file = tmp_path / 'rows.jsonl'
    measure_case('dynamics', broken, True, file)
    rows = [Row.of(json.loads(line)) for line in file.read_text().splitlines()]
    assert [(row.state, row.area) for row in rows] == [('compared', 'dynamics'), ('failed', 'dynamics')]
    assert 'no such robot' in rows[1].failure
    assert summary(rows) == '1 compared, 1 failed'


@pytest.mark.slow
def test_an_area_runs_in_a_process_of_its_own_and_one_that_dies_becomes_a_failure(monkeypatch: Any) -> None:
    monkeypatch.delenv('ROBOTID_CASES', raising=False)
    assert [(row.area, row.state) for row in run_area('recordings', True)] == [('recordings', 'not run')]
    assert [row.failure for row in run_area('nowhere', True)] == ['ended with exit code 1, 0 rows']


def test_anchors_answer_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip('pinocchio')
    from dynamics_helpers import ARMS, PinocchioArm, arm, motion

    monkeypatch.setenv('ROBOTID_ANCHORS', sys.executable)
    q, dq, ddq = motion(6, 5)
    urdf = ARMS['ur10'].read_text(encoding='utf-8')
    answer = anchor.run('pinocchio_loop.throughput', q=q, dq=dq, ddq=ddq, urdf=urdf, runs=1)
    np.testing.assert_allclose(answer['torque'], PinocchioArm(arm('ur10')).inverse_dynamics(q, dq, ddq))
    assert answer['rnea'] > 0.0
    with pytest.raises(anchor.AnchorError, match='no_such_module'):
        anchor.run('no_such_module.task')
    monkeypatch.setenv('ROBOTID_ANCHORS', str(tmp_path / 'nothing'))
    with pytest.raises(anchor.AnchorError, match='make bench'):
        anchor.run('pinocchio_loop.throughput')


@pytest.mark.slow
def test_operations_are_fewer_than_those_of_opensymoro() -> None:
    from benchmark.dynamics import operations

    rows = list(operations(True))
    assert len(rows) == 8
    assert [row.state for row in rows[:4]] == ['met'] * 4


def test_the_manual_shows_the_results_file() -> None:
    assert PAGE.read_text(encoding='utf-8') == markdown(json.loads(RESULTS.read_text(encoding='utf-8')))
    assert '{include} ../benchmark/RESULTS.md' in (ROOT / 'docs' / 'benchmarks.md').read_text(encoding='utf-8')


def test_states_in_the_file_follow_from_its_figures() -> None:
    results = json.loads(RESULTS.read_text(encoding='utf-8'))
    for entry in results['rows']:
        derived = Row.of(entry).as_dict()
        assert (entry['state'], entry['ratio']) == (derived['state'], derived['ratio']), entry['what']
    assert os.path.getsize(RESULTS) < 200_000


def test_the_fault_bench_says_what_a_real_controller_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from benchmark import fault_stack

    monkeypatch.setenv('AMENT_PREFIX_PATH', '')
    assert fault_stack.run_all(['real'], ['topic', 'action'], '', 0) == 1
    said = capsys.readouterr().out
    assert 'needs what is not here: controller_manager (ros2_control), joint_trajectory_controller' in said
    assert 'sudo apt install ros-$ROS_DISTRO-ros2-control' in said


def test_both_interfaces_of_a_controller_stand_side_by_side() -> None:
    pytest.importorskip('rclpy', reason='needs the ros extra')
    from benchmark.fault_stack import Row as Fault
    from benchmark.fault_stack import side_by_side

    one = Fault(
        fault='a', decided='0.03', rest='0.5', way='0.4', reference=('0.9', '0.1'), clear='+0.03', status='stopped'
    )
    table = side_by_side({'topic': {'a': one, 'b': one}, 'action': {'a': one}}, '5.17.0').splitlines()
    assert table[0] == '| fault | decided [s] | way [rad] | 5.17.0, topic | 5.17.0, action | status |'
    assert table[2] == '| a | 0.03 | 0.4 | 0.5, 0.9, 0.1 | 0.5, 0.9, 0.1 | `stopped` |'
    assert table[3] == '| b | 0.03 | 0.4 | 0.5, 0.9, 0.1 |  | `stopped` |'
    assert str(one) == '| a | 0.03 s | 0.5 s | 0.4 rad | 0.9 of the limit, step 0.1 mrad | +0.03 | `stopped` |'


@pytest.mark.slow
@pytest.mark.parametrize('seed', [100, 107, 121, 157, 168, 185, 199])
def test_a_joint_that_meets_a_wall_lets_go_and_keeps_the_limits_of_place(seed: int) -> None:
    pytest.importorskip('mujoco', reason='needs the sim extra')
    from benchmark.faults import press

    watched = press(seed, 1.0)
    assert watched is not None
    assert 'presses on something' in watched.reason
    assert 0.0 < watched.stopped < 0.1
    assert watched.after < 0.16
    assert watched.room > 0.0


@pytest.mark.slow
def test_a_joint_that_meets_a_wall_presses_on_where_its_effort_is_not_watched() -> None:
    pytest.importorskip('mujoco', reason='needs the sim extra')
    from benchmark.faults import press

    without = press(107, 0.0)
    assert without is not None
    assert 'presses on something' not in without.reason
    assert without.after > 0.3


def test_the_bench_of_gazebo_says_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from benchmark import gazebo

    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'robotid_ros').touch()
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    monkeypatch.setenv('PATH', str(tmp_path))
    assert gazebo.missing() == [*gazebo.PACKAGES[:-1], 'the command ros2 (ros2launch)']
    assert gazebo.main([]) == 2
    assert 'not here: ros_gz_sim, ros_gz_bridge, gz_ros2_control' in capsys.readouterr().out


@pytest.mark.filterwarnings('ignore::robotid_ros.errors.ModelWarning')
def test_a_row_of_gazebo_is_measured_by_the_description() -> None:
    from benchmark.gazebo import CASES, row_of
    from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters
    from robotid_ros.model import RobotModel
    from robotid_ros.model.packaged import arm_description

    model = RobotModel.from_urdf(arm_description('ur10e'))
    values = base_parameters(model, tolerance=DATA_TOLERANCE).map @ model.inertial.ravel()
    result: dict[str, Any] = {
        'base_parameters': [{'value': 1.01 * value} for value in values],
        'metrics': {'training': {'relative_error_total': 0.5}, 'validation': {'relative_error_total': 0.6}},
        'usable': True,
    }
    assert row_of(result, model, '4', [71.2, 70.0]) == '4 | 71 %, 70 % | 0.50 %, 0.60 % | 1.000 % | usable'
    result['base_parameters'].pop()
    assert '| other ones |' in row_of(result, model, '4', [])
    for case in CASES:
        RobotModel.from_urdf(arm_description(case.robot))
