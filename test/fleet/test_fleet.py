# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Many recordings of many arms: found, identified side by side, resumed, judged over time."""

import csv
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from errors_helpers import refused
from export_helpers import identified
from fleet_helpers import BEGIN, MONTH, QUICK, record
from identification_helpers import TWO_LINKS
from jobs_helpers import square_or_end
from report_helpers import Chromium, find_chromium

from robotid_ros import jobs
from robotid_ros.cli import main
from robotid_ros.errors import DataError
from robotid_ros.excitation import ExcitationConfig, optimize_excitation
from robotid_ros.fleet.outcome import Entry, Outcome, entries_of
from robotid_ros.fleet.page import Series, changes_of, fleet_report
from robotid_ros.jobs import each, engine
from robotid_ros.model import RobotModel
from robotid_ros.report.content import Figure

DEADLINE = 300.0
ARMS = ('anna', 'berta', 'clara', 'dora', 'emil')


def series(arm: str, values: np.ndarray, std: float, parameter: str = 'Coulomb elbow') -> Series:
    """Return one parameter of one arm, recorded every month."""
    count = len(values)
    return Series(
        arm=arm, parameter=parameter, unit='N*m', kind='friction', names=tuple(map(str, range(count))),
        time=30.0 * np.arange(count), dated=True, values=np.asarray(values), std=np.full(count, std),
    )  # fmt: skip


def rows_of(path: Path) -> dict[tuple[str, str], dict[str, str]]:
    with open(path, encoding='utf-8') as file:
        return {(row['arm'], row['recording']): row for row in csv.DictReader(file)}


@pytest.fixture(scope='module')
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five arms, two recordings each, one arm five; one wears out, one carries a load, one file is damaged."""
    folder = tmp_path_factory.mktemp('fleet') / 'recordings'
    for k, arm in enumerate(ARMS):
        for month in range(5 if arm == 'berta' else 2):
            record(
                folder / arm / f'run{month}.csv', month=month, seed=10 * k + month,
                friction=1.0 + 0.3 * month * (arm == 'berta'), load=1.5 if arm == 'clara' else 1.0,
            )  # fmt: skip
    (folder / 'dora' / 'run1.csv').write_text('time,position/shoulder\n1,2\n', encoding='utf-8')
    (folder / 'two_links.urdf').write_text(TWO_LINKS, encoding='utf-8')
    return folder


@pytest.fixture(scope='module')
def finished(recordings: Path) -> tuple[Path, subprocess.CompletedProcess[str], set[Path]]:
    """The output of a run that was killed in the middle and begun again, and what stood when it was killed."""
    out = recordings.parent / 'out'
    words = ['fleet', str(recordings), '--robot', str(recordings / 'two_links.urdf'), '--jobs', '2', *QUICK]
    command = [sys.executable, '-m', 'robotid_ros', *words, '--out', str(out)]
    run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + DEADLINE
    while len(list(out.rglob('fleet.yaml'))) < 2 and run.poll() is None:
        assert time.monotonic() < deadline, 'no recording was finished'
        time.sleep(0.02)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    stood = {path: path.stat().st_mtime_ns for path in out.rglob('fleet.yaml')}
    assert not (out / 'fleet.csv').exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)
    kept = {path for path, moment in stood.items() if path.stat().st_mtime_ns == moment}
    failed = {out / 'dora' / 'run1' / 'fleet.yaml'}  # tried again
    assert set(stood) - failed <= kept
    return out, done, kept


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_where_it_was(
    finished: tuple[Path, subprocess.CompletedProcess[str], set[Path]],
) -> None:
    out, done, kept = finished
    assert len(kept) >= 1
    rows = rows_of(out / 'fleet.csv')
    assert len(rows) == 13
    states = {key: row['state'] for key, row in rows.items()}
    assert states.pop(('dora', 'run1')) == 'failed'
    assert set(states.values()) == {'usable'}
    assert done.returncode == 1, 'a recording failed'
    assert 'Traceback' not in done.stderr
    for arm, name in states:
        assert (out / arm / name / 'result.yaml').is_file()
        assert (out / arm / name / 'calibrated.urdf').is_file()
    assert not list(out.rglob('*.part'))


@pytest.mark.slow
def test_the_page_puts_the_conspicuous_arms_first(
    finished: tuple[Path, subprocess.CompletedProcess[str], set[Path]],
) -> None:
    _, done, _ = finished
    lines = done.stdout.splitlines()
    order = [next(arm for arm in ARMS if line.startswith(arm)) for line in lines[1:6]]
    assert order[0] == 'dora', done.stdout  # its last recording failed
    assert set(order[1:3]) == {'berta', 'clara'}, done.stdout
    said = dict(zip(order, lines[1:6], strict=True))
    assert 'Drifted: ' in said['berta']
    assert 'coulomb' in said['berta'].lower()
    assert 'Apart from the others: ' in said['clara']
    assert 'Nothing.' in said['anna']
    assert 'Nothing.' in said['emil']
    assert 'failed: ' in said['dora']


def test_a_page_says_what_it_cannot_show() -> None:
    entry = Entry(recording=Path('run.csv'), arm='anna', name='run')
    report = fleet_report([Outcome(entry=entry, result=None, problem='run.csv does not exist')])
    assert report.verdict.headline == 'No usable result from the last recording of 1 of 1 arms'
    assert report.verdict.reasons[0] == 'To look at: anna.'
    assert report.summary.startswith('1 recording of 1 arm, ')
    assert not any(isinstance(item, Figure) for _, items in report.sections for item in items)
    model = RobotModel.from_urdf(TWO_LINKS, joints=('shoulder', 'elbow'))
    good = [
        Outcome(entry=replace(entry, arm=arm, time=BEGIN + MONTH * month), result=identified(model, 'coulomb_viscous'))
        for arm in ARMS for month in range(3)
    ]  # fmt: skip
    verdict = fleet_report(good).verdict
    assert verdict.level == 'good'
    assert re.fullmatch(
        r'With so few recordings, only a drift of more than \d+ σ would be noticed.', verdict.reasons[-1]
    )
    assert fleet_report(good[:1]).verdict.reasons[-1] == 'There are too few recordings to see a drift.'


@pytest.mark.slow
def test_the_page_opens_without_a_complaint(
    finished: tuple[Path, subprocess.CompletedProcess[str], set[Path]],
) -> None:
    browser = Chromium(find_chromium())
    try:
        browser.open(finished[0] / 'fleet.html', 1200)
        browser.evaluate('robotid.ready.then(() => robotid.all())')
        assert browser.evaluate("[...document.querySelectorAll('.chart')].every(chart => chart.data)")
        assert browser.complaints() == []
        assert all(address.startswith(('file:', 'data:', 'blob:')) for address in browser.requests())
    finally:
        browser.close()


@pytest.mark.slow
def test_changed_settings_begin_anew(
    finished: tuple[Path, subprocess.CompletedProcess[str], set[Path]], recordings: Path, tmp_path: Path
) -> None:
    listed = tmp_path / 'list.csv'
    listed.write_text(
        f'recording,arm,time,robot\n{recordings}/anna/run0.csv,anna,2026-01-31,{recordings}/two_links.urdf\n'
        f'{recordings}/anna/run1.csv,anna,2026-02-28T12:00,{recordings}/none.urdf\n',
        encoding='utf-8',
    )
    start = ['fleet', str(listed), '--jobs', '1', '--out', str(tmp_path / 'out'), *QUICK]
    assert main(start) == 1
    rows = rows_of(tmp_path / 'out' / 'fleet.csv')
    good, bad = (next(row for row in rows.values() if row['time'].startswith(date)) for date in ('2026-01', '2026-02'))
    assert good['state'] == 'usable'
    assert bad['state'] == 'failed'
    assert 'none.urdf' in bad['reason']
    mark = next((tmp_path / 'out' / 'anna').rglob('*run0/fleet.yaml'))
    moment = mark.stat().st_mtime_ns
    assert main(start) == 1
    assert mark.stat().st_mtime_ns == moment
    assert main([*start, '--seed', '3']) == 1
    assert mark.stat().st_mtime_ns > moment


@pytest.mark.parametrize(
    ('content', 'about', 'words'),
    [
        ('file\nrun.csv\n', {'name': 'file'}, "column 'file' is unknown"),
        ('arm\nanna\n', {'name': 'recording'}, "there is no column 'recording'"),
        ('recording,time\nrun.csv,yesterday\n', {'line': 2, 'name': 'time', 'found': 'yesterday'}, 'like 2026-05-31'),
        ('recording,time\nrun.csv,1e300\n', {'line': 2, 'name': 'time', 'found': '1e300'}, ''),
        ('recording,time\nrun.csv,nan\n', {'line': 2, 'name': 'time', 'found': 'nan'}, ''),
        pytest.param(f'recording\n"{"x" * 200_000}"\n', {}, 'cannot be read', id='a field without an end'),
        ('recording,arm\nrun.csv\n', {'line': 2, 'expected': 2}, ''),
        ('recording\nrun.csv\nrun.csv\n', {}, 'is there twice'),
        ('recording\n', {}, 'holds no recordings'),
    ],
)
def test_lists_that_cannot_be_understood(content: str, about: dict, words: str, tmp_path: Path) -> None:
    (tmp_path / 'list.csv').write_text(content, encoding='utf-8')
    with refused(DataError, **about) as caught:
        entries_of(tmp_path / 'list.csv')
    assert words in str(caught.value)


def test_bad_words_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / 'run.csv').write_text('time\n', encoding='utf-8')
    for words, message in (
        ([str(tmp_path / 'none')], 'expected a folder with recordings'),
        ([str(tmp_path)], 'which arm? No recording has a robot_description; give it by --robot'),
        ([str(tmp_path), '--robot', 'nobody'], 'no packaged arm of that name'),
        ([str(tmp_path), '--robot', 'ur10e', '--jobs', '0'], '--jobs: expected a number of processes'),
        ([str(tmp_path), '--robot', 'ur10e', '--excitation', str(tmp_path / 'none.yaml')], 'none.yaml'),
    ):
        assert main(['fleet', *words, '--out', str(tmp_path / 'out')]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / 'out').exists()


def test_recordings_of_a_folder_are_found_arm_by_arm_in_order_of_time(tmp_path: Path) -> None:
    for name, moment in (('a/late.csv', 3 * MONTH), ('a/early.csv', 0.0), ('b/day/x.csv', 0.0), ('b/x.csv', 0.0)):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'time,position/j\n{BEGIN + moment},0\n', encoding='utf-8')
    (tmp_path / 'b' / 'x.npz').write_bytes(b'')
    bag = tmp_path / 'a' / 'bag'
    bag.mkdir()
    (bag / 'bag.mcap').write_bytes(b'')
    (bag / 'metadata.yaml').write_text(
        f'rosbag2_bagfile_information: {{starting_time: {{nanoseconds_since_epoch: {int((BEGIN + MONTH) * 1e9)}}}}}',
        encoding='utf-8',
    )
    (tmp_path / 'b' / 'again').symlink_to(tmp_path)  # a link that leads back is not followed
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out' / 'fleet.csv').write_text('', encoding='utf-8')
    found = entries_of(tmp_path, leave_out=tmp_path / 'out')
    assert [(entry.arm, entry.name) for entry in found] == [
        ('a', 'early'), ('a', 'bag'), ('a', 'late'), ('b', 'day-x'), ('b', 'x.csv'), ('b', 'x.npz'),
    ]  # fmt: skip
    assert [entry.time for entry in found[:3]] == pytest.approx([BEGIN, BEGIN + MONTH, BEGIN + 3 * MONTH])
    assert found[-1].time is None


def test_an_unchanged_fleet_raises_few_false_alarms_whatever_its_recordings_scatter() -> None:
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(300):
        fleet = [series(f'{k}', rng.normal(3.0, 0.2, 4), 0.02) for k in range(8)]  # scatter ten times the deviations
        alarms += any(change.moved for change in changes_of(fleet))
    assert alarms <= 12  # one per cent asked, four allowed: the scale is estimated


@pytest.mark.slow
@pytest.mark.parametrize(('arms', 'pages'), [(5, 1500), (20, 500)])
def test_arms_that_differ_by_chance_do_not_stand_out(arms: int, pages: int) -> None:
    rng = np.random.default_rng(arms)
    alarms = 0
    for _ in range(pages):
        fleet = [series(f'{k}', rng.normal(3.0, 0.2, 1), 1e-4) for k in range(arms)]
        alarms += any(change.outlying for change in changes_of(fleet))
    assert 0 < alarms <= 0.01 * pages + 2.0 * (0.01 * pages) ** 0.5  # one per cent asked


def test_a_drift_and_an_outlier_are_found_and_come_first() -> None:
    rng = np.random.default_rng(2)
    fleet = [series(f'{k}', rng.normal(3.0, 0.1, 6), 0.02) for k in range(10)]
    fleet[7] = replace(fleet[7], values=fleet[7].values + np.linspace(0.0, 1.5, 6))
    fleet[4] = replace(fleet[4], values=fleet[4].values - 1.5)
    changes = changes_of(fleet)
    assert {change.series.arm for change in changes[:2]} == {'7', '4'}
    drifted, apart = (next(c for c in changes if c.series.arm == arm) for arm in ('7', '4'))
    assert drifted.moved
    assert not apart.moved
    assert apart.outlying
    assert drifted.last - drifted.first == pytest.approx(1.5, abs=0.4)
    assert not any(change.moved or change.outlying for change in changes[2:])
    # The line is that of weighted least squares, by numpy.
    slope, offset = np.polyfit(fleet[7].time, fleet[7].values, 1)
    assert drifted.first == pytest.approx(offset)
    assert drifted.last == pytest.approx(offset + slope * fleet[7].time[-1])


def test_two_recordings_of_one_arm_tell_no_drift_from_scatter() -> None:
    (change,) = changes_of([series('a', np.array([1.0, 9.0]), 0.01)])
    assert change.drift > 100.0
    assert not change.moved


def test_a_call_that_ends_its_process_does_not_end_the_others() -> None:
    found = dict(each(square_or_end, range(6), jobs=2))
    assert found == {0: 0, 1: 1, 2: 4, 3: None, 4: 16, 5: 25}


@pytest.mark.slow
def test_without_a_scheduler_a_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('distributed', reason='needs the fleet extra')
    monkeypatch.setattr(jobs, 'CONNECTING', 0.5)
    with pytest.raises(DataError, match='no Dask scheduler answers'), engine('tcp://127.0.0.1:9'):
        pass


@pytest.mark.slow
def test_a_dask_cluster_with_two_workers_gives_the_same_table(
    finished: tuple[Path, subprocess.CompletedProcess[str], set[Path]],
    recordings: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distributed = pytest.importorskip('distributed', reason='needs the fleet extra')
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host='127.0.0.1'
    )
    few = tmp_path / 'few'
    few.mkdir()
    for arm in ('anna', 'dora'):
        (few / arm).symlink_to(recordings / arm)
    try:
        monkeypatch.chdir(tmp_path)  # the workers stay where they were started
        words = ['fleet', 'few', '--robot', str(recordings / 'two_links.urdf'), *QUICK]
        assert main([*words, '--dask', cluster.scheduler_address, '--out', str(tmp_path / 'out')]) == 1
        model = RobotModel.from_urdf(TWO_LINKS, joints=('shoulder', 'elbow'))
        config = ExcitationConfig(period=5.0, harmonics=2, starts=4, iterations=20, seed=1)
        with distributed.Client(cluster) as client, distributed.get_task_stream(client) as stream:
            with engine(cluster.scheduler_address):
                on_cluster = optimize_excitation(model, config)
            workers = set(client.scheduler_info()['workers'])
        assert {task['worker'] for task in stream.data} == workers
    finally:
        cluster.close()
    one, other = rows_of(tmp_path / 'out' / 'fleet.csv'), rows_of(finished[0] / 'fleet.csv')
    assert sorted(one) == [('anna', 'run0'), ('anna', 'run1'), ('dora', 'run0'), ('dora', 'run1')]
    elsewhere = dict.fromkeys(('seconds', 'file', 'reason'), '')  # a reason names the file
    for key, row in one.items():
        assert row | elsewhere == other[key] | elsewhere
    here = optimize_excitation(model, replace(config, jobs=2))
    np.testing.assert_array_equal(on_cluster.trajectory.a, here.trajectory.a)
