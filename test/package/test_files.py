# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Files that are written: whole or not at all, never over something that is no file, and nothing is left behind."""

import importlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from errors_helpers import refused

from robotid_ros import cli
from robotid_ros.errors import DataError
from robotid_ros.files import atomic_file, output_folder, remove_unused_folders, require_folder, together, write_text

FULL = """
import resource, signal, sys
from robotid_ros.errors import DataError
from robotid_ros.files import write_text
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))
try:
    write_text(sys.argv[1], 'new' * 1000)
except DataError as refusal:
    print(refusal)
"""

INTERRUPTED = """
import signal, sys, time
from robotid_ros.files import atomic_file
signal.signal(signal.SIGINT, signal.default_int_handler)  # which what runs in the background is started without
with atomic_file(sys.argv[1]) as file:
    file.write(b'half')
    file.flush()
    print('ready', flush=True)
    time.sleep(300)
"""


def test_a_full_disk_leaves_the_old_file(tmp_path):
    path = tmp_path / 'x.txt'
    path.write_text('old')
    done = subprocess.run([sys.executable, '-c', FULL, str(path)], capture_output=True, text=True, timeout=120)
    assert done.stdout == f'cannot write {path}: File too large\n', done.stderr
    assert path.read_text() == 'old'
    assert [file.name for file in tmp_path.iterdir()] == ['x.txt']


def test_files_take_their_names_together_or_not_at_all(tmp_path):
    """A new result beside old data made a report of both."""
    for name in ('result', 'data_1', 'data_2', 'notes'):
        (tmp_path / name).write_text('old')

    def fail() -> None:
        with together(tmp_path, 'result', ['data_*']) as place:
            write_text(place / 'result', 'new')
            write_text(place / 'no_folder' / 'data_1', 'new')

    with pytest.raises(DataError, match='cannot write'):
        fail()
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(
        ('result', 'data_1', 'data_2', 'notes'), 'old'
    )
    with together(tmp_path, 'result', ['data_*']) as place:
        for name in ('result', 'data_1'):
            write_text(place / name, 'new')
        assert (tmp_path / 'result').read_text() == 'old'
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        'result': 'new',
        'data_1': 'new',
        'notes': 'old',
    }
    with pytest.raises(DataError, match='give a folder that exists'):
        together(tmp_path / 'none', 'result', []).__enter__()


def test_an_interrupt_leaves_the_old_file(tmp_path):
    path = tmp_path / 'x.txt'
    path.write_text('old')
    with subprocess.Popen(
        [sys.executable, '-c', INTERRUPTED, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == 'ready\n'
        child.send_signal(signal.SIGINT)
        child.wait(timeout=120)
    assert path.read_text() == 'old'
    assert [file.name for file in tmp_path.iterdir()] == ['x.txt']


def test_what_is_no_file_is_not_replaced(tmp_path):
    (tmp_path / 'target.txt').write_text('kept')
    (tmp_path / 'link').symlink_to(tmp_path / 'target.txt')
    (tmp_path / 'dangling').symlink_to(tmp_path / 'nowhere')
    os.mkfifo(tmp_path / 'pipe')
    for path, words in (
        (tmp_path / 'link', 'it is a symbolic link'),
        (tmp_path / 'dangling', 'it is a symbolic link'),
        (tmp_path / 'pipe', 'it is a device'),
        (Path('/dev/null'), 'it is a device'),
        (tmp_path, 'it is a folder'),
    ):
        for write in (lambda path: write_text(path, 'x'), require_folder):
            with refused(DataError, file=str(path)) as caught:
                write(path)
            assert words in str(caught.value)
    assert (tmp_path / 'target.txt').read_text() == 'kept'
    assert sorted(file.name for file in tmp_path.iterdir()) == ['dangling', 'link', 'pipe', 'target.txt']


@pytest.mark.parametrize('mask', [0o022, 0o027, 0o077])
def test_the_umask_counts(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_text(tmp_path / 'x.txt', 'x')
    finally:
        os.umask(before)
    assert (tmp_path / 'x.txt').stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_name_as_long_as_names_can_be(tmp_path):
    with atomic_file(tmp_path / ('x' * 255)) as file:
        file.write(b'y')
    assert (tmp_path / ('x' * 255)).read_bytes() == b'y'
    with pytest.raises(DataError, match='File name too long'), atomic_file(tmp_path / ('x' * 256)):
        pass


def test_folders_that_nothing_was_written_to_are_removed(tmp_path):
    (tmp_path / 'there').mkdir()
    for name in ('there', 'new/inner', 'used/inner'):
        output_folder(tmp_path / name)
    (tmp_path / 'used' / 'inner' / 'x').touch()
    remove_unused_folders()
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob('*')) == [
        'there',
        'used',
        'used/inner',
        'used/inner/x',
    ]


def test_a_refused_command_leaves_no_folder(tmp_path, capsys):
    (tmp_path / 'bad.csv').write_text('time,position/a\n')
    arguments = ['identify', str(tmp_path / 'bad.csv'), '--robot', 'ur10e', '--out', str(tmp_path / 'out' / 'in')]
    assert cli.main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ['bad.csv']


def test_a_fault_of_the_package_is_said_and_kept(monkeypatch, capsys):
    def fails(_):
        raise ZeroDivisionError('float\ndivision')

    report = importlib.import_module('robotid_ros.commands.report')
    monkeypatch.setattr(report, 'run', fails)
    assert cli.main(['report', 'x', '--robot', 'ur10e']) == 70
    line = capsys.readouterr().err
    found = re.fullmatch(
        r'robotid report: this is a fault of robotid_ros \(ZeroDivisionError: float division\); please report it with '
        r'(\S+)\n',
        line,
    )
    assert found, line
    kept = Path(found[1])
    assert 'Traceback' in kept.read_text()
    kept.unlink()


@pytest.mark.parametrize(('raised', 'code'), [(KeyboardInterrupt, 130), (MemoryError, 1)])
def test_what_ends_a_command_while_it_is_imported_is_one_line(monkeypatch, capsys, raised, code):
    def importing(_):
        raise raised

    monkeypatch.setattr(cli, 'build_parser', importing)
    assert cli.main(['report', 'x']) == code
    assert len(capsys.readouterr().err.splitlines()) == 1
