# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A short run of the fuzzer over every reader; ``python -m test.fuzz`` runs longer."""

import os
import pickle
import re
from itertools import pairwise
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from errors_helpers import refused
from identification_helpers import TWO_LINKS

from robotid_ros.cli import main
from robotid_ros.data import read_recording
from robotid_ros.errors import (
    DataError,
    MissingDependencyError,
    ModelError,
    ModelWarning,
    RobotIdError,
    SeveralArmsError,
)
from robotid_ros.excitation.design import load_excitation
from robotid_ros.free_floating.mission import read_mission
from robotid_ros.identification import IdentificationResult
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.dh_table import read_dh_file
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.reading import parse_yaml, read_text, read_yaml, refusing

pytest.importorskip('mcap')


@pytest.mark.slow
def test_damaged_files_are_read_or_refused_in_one_line(tmp_path):
    from fuzz import run

    tallies = run(540, 7, tmp_path)  # 20 of each reader
    assert {name: dict(tally.examples) for name, tally in tallies.items() if tally.problems} == {}
    assert min(tally.accepted + tally.refused for tally in tallies.values()) == 20
    # The damage is neither always harmless nor always deadly.
    assert sum(tally.accepted for tally in tallies.values()) > 50
    # (Of a compressed bag every whole chunk is read, whatever became of the others.)
    assert min(tally.refused for name, tally in tallies.items() if not name.startswith('MCAP, ')) > 3


@pytest.mark.parametrize(
    ('cause', 'words'),
    [
        (OSError(13, 'Permission denied'), 'x.yaml cannot be read: Permission denied'),
        (MemoryError(), 'it needs more memory than there is'),
        (RecursionError('deep'), 'it is nested too deeply'),
        (OverflowError('a\nb'), 'x.yaml cannot be read: OverflowError: a b'),
        (DataError('x.yaml:\n' + 9999 * 'y'), 'x.yaml: yyy'),
    ],
)
def test_whatever_is_raised_becomes_one_line(cause, words):
    with refused(DataError, file='x.yaml', line=3) as caught, refusing('x.yaml', DataError, file='x.yaml', line=3):
        raise cause
    assert words in str(caught.value)
    assert len(str(caught.value)) < 300


def test_what_an_error_is_about_survives_a_process_and_a_place():
    """Errors of workers come back pickled."""
    about = {'line': 3, 'name': 'elbow', 'expected': ('shoulder',)}
    for kind in (DataError, ModelError, MissingDependencyError, SeveralArmsError):
        error = pickle.loads(pickle.dumps(kind('no elbow', **about)))
        assert (type(error), str(error), error.about) == (kind, 'no elbow', about)
        placed = error.within('arm.urdf', file='arm.urdf', line=1)
        assert (type(placed), str(placed)) == (kind, 'arm.urdf: no elbow')
        assert placed.about == {'file': 'arm.urdf', **about}  # what is nearer is right


@pytest.mark.parametrize('encoding', ['x', 'utf-16', 'shift_jis'])
def test_a_urdf_with_an_encoding_that_nobody_reads_is_refused(encoding, tmp_path, capsys):
    (tmp_path / 'arm.urdf').write_text(f'<?xml version="1.0" encoding="{encoding}"?>{TWO_LINKS[21:]}')
    with pytest.raises(ModelError, match='not well-formed XML'):
        parse_urdf((tmp_path / 'arm.urdf').read_text())
    assert main(['identify', 'none.csv', '--robot', str(tmp_path / 'arm.urdf')]) == 2
    assert 'not well-formed XML' in capsys.readouterr().err


def test_names_that_no_text_file_can_hold_are_refused_at_once(tmp_path, capsys):
    """The result would name its recordings, after all the work."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b'/bad\xff'))
    path.mkdir()
    (path / 'a.csv').write_text('time,position/a,effort/a\n')
    for words in ([str(path / 'a.csv')], [str(tmp_path)]):
        assert main(['identify', *words, '--robot', 'ur10e']) == 2
        assert 'expected a name in UTF-8' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (
            'a: &a [x, x, x]\n' + ''.join(f'{b}: &{b} [{", ".join([f"*{a}"] * 9)}]\n' for a, b in pairwise('abcdefgh')),
            '100000',
        ),
        ('robot: &a {joints: [*a]}', "'*a' stands for what it is a part of"),
    ],
)
def test_aliases_that_stand_for_too_much_are_refused(text, words, tmp_path):
    """Eight lines stood for fourteen million values: 6 GB and three minutes in a result."""
    (tmp_path / 'result.yaml').write_text(text)
    began = process_time()
    with pytest.raises(RobotIdError, match=re.escape(words)):
        IdentificationResult.load(tmp_path / 'result.yaml')
    assert process_time() - began < 1.0
    assert parse_yaml('a: &a [1, {b: 2}]\nc: *a\nd: [*a, *a]')['d'] == [[1, {'b': 2}], [1, {'b': 2}]]


def test_a_missing_library_and_an_interrupt_pass(tmp_path):
    for kind in (MissingDependencyError, KeyboardInterrupt):
        with pytest.raises(kind), refusing('x', DataError):
            raise kind('as it is')


@pytest.mark.parametrize('text', ['[1,' * 50_000, '{a: ' * 50_000, '- ' * 50_000, '[' * 101 + ']' * 101])
def test_yaml_that_is_nested_too_deeply_is_refused_by_every_reader(text, tmp_path):
    """Its parser in C would end the process."""
    path = tmp_path / 'result.yaml'
    path.write_text(text)
    for read in (IdentificationResult.load, RobotConfig.from_yaml, load_excitation, read_dh_file, read_mission):
        with pytest.raises(RobotIdError) as caught:
            read(path)
        assert len(str(caught.value)) < 300 + len(str(path))
    with pytest.raises(DataError, match='nested too deeply'):
        read_yaml(path, 'file', DataError)


def test_texts_that_cannot_be_are_refused(tmp_path):
    (tmp_path / 'large.yaml').touch()
    os.truncate(tmp_path / 'large.yaml', 1 << 30)
    (tmp_path / 'bytes.yaml').write_bytes(b'a: \xff')
    (tmp_path / 'words.yaml').write_text('a: [1')
    for path, words in (
        (tmp_path / 'none.yaml', 'does not exist'),
        (tmp_path, 'expected a file, got a folder or a device'),
        (tmp_path.joinpath('/dev/zero'), 'expected a file, got a folder or a device'),
        (tmp_path / 'large.yaml', 'expected at most 64 MB'),
        (tmp_path / 'bytes.yaml', 'UnicodeDecodeError'),
        (tmp_path / 'words.yaml', 'not valid YAML'),
    ):
        with refused(DataError, file=str(path)) as caught:
            read_yaml(path, 'file', DataError)
        assert words in str(caught.value)
    (tmp_path / 'good.yaml').write_text('ä: 1')
    assert read_text(tmp_path / 'good.yaml', 'file', DataError) == 'ä: 1'


@pytest.mark.parametrize('columns', [3001, 20_001])
def test_thousands_of_columns_are_read_or_refused_at_once(tmp_path, columns):
    names = ['time', *(f'position/j{k}' for k in range(columns - 1))]
    rows = np.arange(3 * columns).reshape(3, columns)
    np.savetxt(tmp_path / 'wide.csv', rows, header=','.join(names), delimiter=',', comments='')
    if columns < 4096:
        assert read_recording(tmp_path / 'wide.csv').position.shape == (3, columns - 1)
    else:
        with refused(DataError, expected=4096, found=20001):
            read_recording(tmp_path / 'wide.csv')


@pytest.mark.slow
def test_a_chain_of_3000_joints_is_refused_at_once() -> None:
    """A model of it would be built; what is made of one grows with the square of the joints."""
    joint = (
        '<link name="l{1}"/><joint name="j{0}" type="continuous"><parent link="l{0}"/><child link="l{1}"/>'
        '<axis xyz="0 1 0"/></joint>'
    )
    text = '<robot name="m"><link name="l0"/>' + ''.join(joint.format(k, k + 1) for k in range(3000)) + '</robot>'
    began = process_time()
    with refused(ModelError, expected=40, found=3000):
        RobotModel.from_urdf(text)
    assert process_time() - began < 5.0
    with pytest.warns(ModelWarning) as warned:
        assert RobotModel.from_urdf(text, joints=('j0', 'j1', 'j2')).n == 3
    assert any('j1016 and 2977 more' in str(each.message) for each in warned)
