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
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmark import anchor
from benchmark.area import Options, run_cases
from benchmark.manual import split
from benchmark.row import Anchor, Bar, Row
from benchmark.table import markdown, text

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / 'benchmark' / 'results.json'


def _row(**fields: Any) -> Row:
    return Row(**{'area': 'dynamics', 'what': 'time', 'unit': 's', 'values': (2.0,), **fields})


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
    assert _row(better=better, values=values, anchor=Anchor(name='other', values=others)).ratio == ratio


@pytest.mark.parametrize(
    ('bar', 'state'),
    [
        (None, 'compared'),
        (Bar(high=2.0), 'met'),
        (Bar(high=2.0, strict=True), 'missed'),
        (Bar(high=1.9), 'missed'),
        (Bar(low=2.1), 'missed'),
        (Bar(low=1.0, high=3.0), 'met'),
        (Bar(low=5.0, of='ratio'), 'met'),
        (Bar(low=5.0, of='ratio', strict=True), 'missed'),
        (Bar(low=5.1, of='ratio'), 'missed'),
    ],
)
def test_a_bar_is_met_by_figure_or_ratio(bar: Bar | None, state: str) -> None:
    assert _row(anchor=Anchor(name='other', values=(10.0,)), bar=bar).state == state


def test_every_joint_must_meet_the_bar_and_a_nan_never_does() -> None:
    assert _row(values=(1.0, 2.0), bar=Bar(high=1.5)).state == 'missed'
    assert _row(values=(float('nan'),), bar=Bar(high=1.5)).state == 'missed'


def test_without_a_figure_or_its_anchor_nothing_is_claimed() -> None:
    assert _row(values=(), bar=Bar(high=1.0), note='no compiler').state == 'not run'
    assert _row(anchor=Anchor(name='other'), bar=Bar(low=2.0, of='ratio')).state == 'not run'


def test_rows_survive_the_file() -> None:
    row = _row(values=(1.0, 2.0), anchor=Anchor(name='other', values=(3.0,)), bar=Bar(low=1.0, of='ratio'))
    assert Row.of(json.loads(json.dumps(row.as_dict()))) == row


def test_a_case_that_fails_becomes_a_row_and_the_others_run(tmp_path: Path) -> None:
    def broken(options: Options) -> list[Row]:
        raise RuntimeError('no such robot')

    def sound(options: Options) -> list[Row]:
        return [_row()]

    file = tmp_path / 'rows.jsonl'
    rows = run_cases('dynamics', [broken, sound], Options(quick=True), file)
    assert [row.state for row in rows] == ['failed', 'compared']
    assert 'no such robot' in rows[0].failure
    assert text(rows).endswith('1 compared, 1 failed')
    assert [Row.of(json.loads(line)) for line in file.read_text().splitlines()] == rows


def test_an_area_that_dies_leaves_its_rows_and_a_failure() -> None:
    code = 'from benchmark.__main__ import run_area; print([row.state for row in run_area("nowhere", True)])'
    done = subprocess.run([sys.executable, '-c', code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("['failed']")


def test_anchors_answer_in_a_process_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip('pinocchio')
    from dynamics_helpers import ARMS, PinocchioArm, arm, motion

    monkeypatch.setenv('ROBOTID_ANCHORS', sys.executable)
    q, dq, ddq = motion(6, 5)
    urdf = ARMS['ur10'].read_text(encoding='utf-8')
    answer = anchor.run('pinocchio_loop.throughput', {'q': q, 'dq': dq, 'ddq': ddq}, urdf=urdf, runs=1)
    np.testing.assert_allclose(answer.arrays['torque'], PinocchioArm(arm('ur10')).inverse_dynamics(q, dq, ddq))
    assert answer.values['rnea']['processor'] > 0.0
    with pytest.raises(anchor.AnchorError, match='no_such_module'):
        anchor.run('no_such_module.task')
    monkeypatch.setenv('ROBOTID_ANCHORS', str(tmp_path / 'nothing'))
    with pytest.raises(anchor.AnchorError, match='make bench'):
        anchor.run('pinocchio_loop.throughput')


def test_the_manual_shows_the_results_file() -> None:
    _, table, _ = split((ROOT / 'docs' / 'benchmarks.md').read_text(encoding='utf-8'))
    assert table == markdown(json.loads(RESULTS.read_text(encoding='utf-8')))


def test_states_in_the_file_follow_from_its_figures() -> None:
    results = json.loads(RESULTS.read_text(encoding='utf-8'))
    for entry in results['rows']:
        derived = Row.of(entry).as_dict()
        assert (entry['state'], entry['ratio']) == (derived['state'], derived['ratio']), entry['what']
    assert os.path.getsize(RESULTS) < 200_000
