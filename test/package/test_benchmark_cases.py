# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Case folders from clones: a small clone becomes what is read there, and what is not the published file is named."""

import csv
import hashlib
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml

from benchmark.cases import SOURCES, CaseError, make, table_urdf
from benchmark.recordings import bare
from robotid_ros.data import read_recording
from robotid_ros.model import RobotModel

ADDRESS = 'https://host.invalid/owner/name'
TABLE = {'convention': 'modified', 'angle_unit': 'deg', 'rows': [[0, 0.3, 0, 0], [10, 0, 0.5, 90]]}
TIME = np.arange(100) / 50.0
MOTORS = np.column_stack([10.0 * np.sin(TIME), 20.0 * np.cos(TIME)])  # of a pair whose second carries the first


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A published repository: one table with a header, one with a line that was cut off, and a list of messages."""
    clone = tmp_path / 'clones' / 'owner' / 'name'
    clone.mkdir(parents=True)
    rows = np.column_stack([TIME + 1e9, MOTORS, np.cos(TIME), np.sin(TIME)])
    text = '\n'.join(','.join(f'{value:.17g}' for value in row) for row in rows)
    (clone / 'named.csv').write_text(f'stamp,q1,q2,tau1,tau2\n{text}\n', encoding='utf-8')
    (clone / 'cut off.csv').write_text(f'{text}\n1e9,0.1', encoding='utf-8')
    messages = [{'time': row[0], 'position': [9, *row[1:3]], 'effort': [9, *row[3:5]]} for row in rows.tolist()]
    (clone / 'messages.json').write_text(json.dumps(messages), encoding='utf-8')
    lines = '\n'.join(f'Position {a:.17g} {b:.17g}\nTorque {c:.17g} {d:.17g}' for a, b, c, d in rows[:, 1:])
    (clone / 'lines.dat').write_text(lines, encoding='utf-8')
    for k in (1, 2):
        (clone / f'q{k}.txt').write_text('\n'.join(f'{value:.17g}' for value in rows[:, k]), encoding='utf-8')
    np.savez(clone / 'archive.npz', stamp=rows[:, 0], q=rows[:, 1:3], tau=rows[:, 3:5])
    return tmp_path / 'clones'


def _said(clones: Path, files: Any, signals: dict[str, Any], **other: Any) -> dict[str, Any]:
    clone = clones / 'owner' / 'name'
    checksums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in clone.iterdir()}
    drives = {'scale': [0.1, 0.05], 'mix': [[2, 1, -1.0]], 'offset': [0.0, 0.5]}
    signals = {**signals, 'position': {**signals['position'], **drives}}
    said = {'address': ADDRESS, 'commit': '0' * 40, 'files': checksums, 'recorded': ['one', 'two']}
    said |= {'description': {'table': TABLE}, 'signals': signals, 'recordings': {'all': files}}
    return said | {'pairs': [['all', 'all']]} | other


COLUMNS = {'time': {'column': 0}, 'position': {'column': 1}, 'effort': {'column': [3, 4]}}
NAMED = {'time': {'column': 'stamp'}, 'position': {'column': 'q{1}'}, 'effort': {'column': 'tau{1}'}}
ARCHIVE = {'time': {'column': 'stamp'}, 'position': {'column': 'q'}, 'effort': {'column': 'tau'}}
MESSAGES = {name: {'column': name, 'of': [1, 2]} for name in ('position', 'effort')} | {'time': {'column': 'time'}}
LINES = {'time': {'rate': 50}, 'position': {'number': 'Position (.*)'}, 'effort': {'number': 'Torque (.*)'}}
EACH = {'time': {'rate': 50}, 'position': {'column': 0}, 'effort': {'column': 3}}


@pytest.mark.parametrize(
    ('files', 'signals'),
    [
        ('named.csv', NAMED),
        ('cut off.csv', COLUMNS),
        ('archive.npz', ARCHIVE),
        ('messages.json', MESSAGES),
        ('lines.dat', LINES),
        ({'position': 'q{1}.txt', 'effort': 'cut off.csv'}, EACH),
    ],
    ids=['named columns', 'numbered columns', 'archive', 'messages', 'lines of text', 'a file for each joint'],
)
def test_a_clone_becomes_a_case(clones: Path, tmp_path: Path, files: Any, signals: dict[str, Any]) -> None:
    folder = make('arm', _said(clones, files, signals), clones, tmp_path / 'cases')
    recording = read_recording(folder / 'all.csv')
    assert recording.joint_names == ('one', 'two')
    np.testing.assert_allclose(recording.time, TIME, atol=1e-6)
    joints = np.column_stack([np.sin(TIME), np.cos(TIME) - np.sin(TIME) + 0.5])
    np.testing.assert_allclose(recording.position, joints, atol=1e-12)
    np.testing.assert_allclose(recording.effort, np.column_stack([np.cos(TIME), np.sin(TIME)]), atol=1e-12)
    with (folder / 'pairs.csv').open(encoding='utf-8') as file:
        assert list(csv.reader(file)) == [['train', 'test'], ['all', 'all']]


def test_a_recording_is_cut_and_halved(clones: Path, tmp_path: Path) -> None:
    said = _said(clones, 'named.csv', NAMED, start=0.2, end=1.79, halves=True, pairs=[['first', 'second']])
    folder = make('arm', said, clones, tmp_path / 'cases')
    first, second = (read_recording(folder / f'{half}.csv') for half in ('first', 'second'))
    assert not (folder / 'all.csv').exists()
    np.testing.assert_allclose(np.concatenate([first.time, second.time]), TIME[10:90], atol=1e-6)
    assert len(first) == len(second)


def test_a_recording_with_columns_of_its_own_and_times_that_stand(clones: Path, tmp_path: Path) -> None:
    clone = clones / 'owner' / 'name'
    head, *lines = (clone / 'named.csv').read_text(encoding='utf-8').splitlines()
    (clone / 'repeated.csv').write_text('\n'.join([head, *lines[:50], lines[49], *lines[50:]]), encoding='utf-8')
    columns = {
        'time': {'column': 'stamp'},
        'position': {'column': 'q{1}'},
        'effort': {'column': 'tau{1}', 'scale': 2.0},
    }
    recordings = {'all': 'cut off.csv', 'other': 'repeated.csv'}
    said = _said(clones, 'cut off.csv', COLUMNS, recordings=recordings, otherwise={'other': columns}, advancing=True)
    folder = make('arm', said, clones, tmp_path / 'cases')
    one, other = (read_recording(folder / f'{name}.csv') for name in recordings)
    np.testing.assert_allclose(other.time, one.time, atol=1e-12)
    np.testing.assert_allclose(other.position, one.position, atol=1e-12)  # its drives are those of the others
    np.testing.assert_allclose(other.effort, 2.0 * one.effort, atol=1e-12)


@pytest.mark.filterwarnings('ignore:joint .* has no velocity')
def test_links_have_other_inertials_than_the_description_says(clones: Path, tmp_path: Path) -> None:
    urdf = ElementTree.tostring(table_urdf('arm', ['one', 'two'], TABLE), encoding='unicode')
    (clones / 'owner' / 'name' / 'arm.urdf').write_text(urdf, encoding='utf-8')
    about = [2.0, 0.2, 0.0, -0.4, 0.5, 0.01, 0.02, 0.6, 0.03, 0.7]  # about the link's frame
    description = {'urdf': 'arm.urdf', 'inertials': {'link_2': about}}
    folder = make('arm', _said(clones, 'named.csv', NAMED, description=description), clones, tmp_path / 'cases')
    inertial = RobotModel.from_urdf(folder / 'arm.urdf').inertial
    np.testing.assert_allclose(inertial[1], [*about[4:], *about[1:4], about[0]], atol=1e-12)
    np.testing.assert_allclose(inertial[0], RobotModel.from_urdf(urdf).inertial[0], atol=1e-12)


@pytest.mark.parametrize('convention', ['standard', 'modified'])
def test_the_description_of_a_table_stands_where_the_table_says(convention: str) -> None:
    pinocchio = pytest.importorskip('pinocchio')
    rng = np.random.default_rng(3)
    for _ in range(5):
        rows, q = rng.uniform(-1.5, 1.5, (5, 4)), rng.uniform(-2, 2, 5)
        joints = [f'j{k}' for k in range(5)]
        table = {'convention': convention, 'rows': rows.tolist(), 'prismatic': ['j2']}
        urdf = ElementTree.tostring(table_urdf('arm', joints, table), encoding='unicode')
        model = pinocchio.buildModelFromXML(urdf)
        state = np.concatenate([[q[k]] if k == 2 else [np.cos(q[k]), np.sin(q[k])] for k in range(5)])
        data = model.createData()
        pinocchio.forwardKinematics(model, data, state)
        place = np.eye(4)
        for k, (theta, d, a, alpha) in enumerate(rows):  # by the definition, not by the converter's means
            angle, slide = (theta, d + q[k]) if k == 2 else (theta + q[k], d)
            turn = np.array([[np.cos(angle), -np.sin(angle), 0, 0], [np.sin(angle), np.cos(angle), 0, 0]])
            turn = np.vstack([turn, [0, 0, 1, slide], [0, 0, 0, 1]])
            bend = np.array([[1, 0, 0, a], [0, np.cos(alpha), -np.sin(alpha), 0], [0, np.sin(alpha), np.cos(alpha), 0]])
            bend = np.vstack([bend, [0, 0, 0, 1]])
            joint, place = (place, place @ turn @ bend) if convention == 'standard' else (None, place @ bend @ turn)
            found = data.oMi[k + 1].homogeneous
            if joint is None:
                np.testing.assert_allclose(found, place, atol=1e-9)
            else:  # the axis about which the row turns, and a point of it
                np.testing.assert_allclose(found[:3, 2], joint[:3, 2], atol=1e-9)
                np.testing.assert_allclose(np.cross(found[:3, 3] - joint[:3, 3], joint[:3, 2]), 0.0, atol=1e-9)


def test_figaroh_gets_one_coordinate_for_each_joint_and_none_for_others(tmp_path: Path) -> None:
    pinocchio = pytest.importorskip('pinocchio', reason='needs pin')
    path = tmp_path / 'arm.urdf'
    path.write_text(ElementTree.tostring(table_urdf('arm', ('one', 'two'), TABLE), encoding='unicode'))
    assert pinocchio.buildModelFromXML(path.read_text()).nq == 4
    assert pinocchio.buildModelFromXML(bare(path, ('one', 'two'))).nq == 2
    assert pinocchio.buildModelFromXML(bare(path, ('two',))).nq == 1


def test_a_mount_and_a_world_that_nobody_declares(clones: Path, tmp_path: Path) -> None:
    pinocchio = pytest.importorskip('pinocchio')
    urdf = ElementTree.tostring(table_urdf('arm', ['one', 'two'], TABLE), encoding='unicode')
    undeclared = urdf.replace('<link name="base_link" />', '')
    assert undeclared != urdf
    (clones / 'owner' / 'name' / 'arm.urdf').write_text(undeclared, encoding='utf-8')
    description = {'urdf': 'arm.urdf', 'mount': [np.pi / 2, 0.0, 0.0]}
    folder = make('arm', _said(clones, 'named.csv', NAMED, description=description), clones, tmp_path / 'cases')
    turned = pinocchio.buildModelFromUrdf(str(folder / 'arm.urdf'))
    upright = pinocchio.buildModelFromXML(urdf)
    state = np.array([np.cos(0.3), np.sin(0.3), np.cos(1.1), np.sin(1.1)])
    assert np.abs(pinocchio.computeGeneralizedGravity(turned, turned.createData(), state)).max() > 0.1
    upright.gravity.linear = np.array([0.0, -9.81, 0.0])  # a base turned by Rx(90 deg) sees -z of the world as -y
    np.testing.assert_allclose(
        pinocchio.computeGeneralizedGravity(turned, turned.createData(), state),
        pinocchio.computeGeneralizedGravity(upright, upright.createData(), state),
        atol=1e-9,
    )


def test_what_is_missing_or_not_the_published_file_is_named(clones: Path, tmp_path: Path) -> None:
    said = _said(clones, 'named.csv', NAMED)
    with pytest.raises(CaseError, match=r'no clone at .*: git clone https://host.invalid/owner/other there'):
        make('arm', said | {'address': f'{ADDRESS[:-4]}other'}, clones, tmp_path)
    with pytest.raises(CaseError, match=rf'arm: no file .*gone.csv; git checkout {"0" * 40}'):
        make('arm', said | {'files': {'gone.csv': '0' * 64}}, clones, tmp_path)
    with pytest.raises(CaseError, match=rf"no file .*gone.csv; git checkout {'1' * 40} -- 'gone.csv' in its clone"):
        make('arm', said | {'files': {'gone.csv': '0' * 64}, 'earlier': {'gone.csv': '1' * 40}}, clones, tmp_path)
    with pytest.raises(CaseError, match=r'named.csv is not the published file: SHA-256 .*, not 000000000000'):
        make('arm', said | {'files': {'named.csv': '0' * 64}}, clones, tmp_path)
    with pytest.raises(CaseError, match="no column 'speed1'; it has: stamp, q1"):
        make('arm', said | {'signals': NAMED | {'position': {'column': 'speed{1}'}}}, clones, tmp_path)


def test_every_source_says_how_it_becomes_a_case() -> None:
    for name, said in yaml.safe_load(SOURCES.read_text(encoding='utf-8')).items():
        joints = said.get('recorded') or said['joints']
        parts = said['recordings']
        if said.get('halves'):
            start = [''] if len(parts) == 1 else [f'{part}_' for part in parts]
            parts = [f'{each}{half}' for each in start for half in ('first', 'second')]
        assert {part for pair in said['pairs'] for side in pair for part in side.split('+')} <= set(parts), name
        for files in said['recordings'].values():
            for path in files.values() if isinstance(files, dict) else [files]:
                each = [path.format(k, k + 1, joint) for k, joint in enumerate(joints)] if '{' in path else [path]
                assert set(each) <= set(said['files']), name
        assert set(said.get('earlier', {})) <= set(said['files']), name
        assert set(said.get('otherwise', {})) <= set(said['recordings']), name
        description = said['description']
        assert 'table' in description or description['urdf'] in said['files'] or 'sha256' in description, name
        assert said.get('role', 'new') in ('new', 'kept back')
        assert ('role' in said) != ('train' in said), name
