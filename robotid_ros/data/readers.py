# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""One function that reads a recording in any of the supported formats; CSV itself.

The header reads ``time,position/<joint>,...,velocity/<joint>,...``; the quantities are position,
velocity, acceleration, effort [N m] and current [A]. Columns are found by name, in any order. PlotJuggler's exports of
joint states, ``__time,/joint_states/<joint>/position,...``, are read too; what their efforts are, nobody says.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from robotid_ros.data.bag import Bag, is_bag_folder, opened, read_bag
from robotid_ros.data.context import read_context
from robotid_ros.data.recording import EXPORTED, SIGNALS, Recording, signal_columns
from robotid_ros.data.storage import load_recording
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash, require_text
from robotid_ros.reading import refusing
from robotid_ros.tables import read_table, write_table

KEPT = re.compile(r'(training|validation)_\d+\.npz')  # what an identification keeps of its recordings
SUFFIXES = ('.csv', '.npz', '.mcap', '.db3')


def read_csv(path: str | Path) -> Recording:
    """Read a recording from CSV.

    It is separated by commas; a blank field or ``nan`` is a missing value. Where a joint lacks a quantity that others
    have, its column is NaN. Raises a DataError if there is no such file, no ``time`` or position column, a
    column twice, a line of another length, something that is no number, or no sample.
    """
    path = Path(path)
    table = read_table(path, lambda names: _layout(names, path), blank=SIGNALS)
    arrays: dict[str, Any] = dict(table.arrays)
    time, signals = signal_columns(table.names)
    provenance: dict[str, Any] = {
        'file': path.name,
        'sha256': file_hash(path),
        'format': 'PlotJuggler csv' if time == EXPORTED else 'csv',
        'ignored_columns': [
            name for name, (signal, _) in zip(table.names, signals, strict=True) if not signal and name != time
        ],
    }
    joints = tuple(joint for signal, joint in signals if signal == 'position')
    return Recording(joint_names=joints, time=arrays.pop('time')[:, 0], provenance=provenance, **arrays)


def write_csv(path: str | Path, recording: Recording) -> None:
    """Write a recording as CSV, to the last digit; times are the recording's own, from its origin."""
    columns = {'time': recording.time}
    for signal in SIGNALS:
        value = getattr(recording, signal)
        if value is not None:
            columns |= {f'{signal}/{joint}': value[:, k] for k, joint in enumerate(recording.joint_names)}
    write_table(path, columns)


def _layout(names: tuple[str, ...], path: Path) -> dict[str, Sequence[str | None]]:
    """Return the columns of each quantity, joint by joint."""
    time, signals = signal_columns(names)
    have: dict[tuple[str, str], str] = {}
    for name, meaning in zip(names, signals, strict=True):
        if any(meaning) and meaning in have:
            message = (
                f"{path}: columns '{have[meaning]}' and '{name}' are the same {' of '.join(meaning)}; leave one out"
            )
            raise DataError(message, name=name)
        have[meaning] = name
    joints = [joint for signal, joint in have if signal == 'position']
    found = ', '.join(names)[:200]
    if time not in names:
        message = f"{path}: expected a column 'time' [s] in the first line; it has: {found}"
        if len(names) == 1 and any(mark in found for mark in ';\t'):
            message += '; expected commas between columns, and points in numbers'
        raise DataError(message, name='time', found=names)
    if not joints:
        raise DataError(f"{path}: expected columns 'position/<joint>' [rad]; it has: {found}")
    layout: dict[str, Sequence[str | None]] = {'time': (time,)}
    for signal in SIGNALS:
        columns = [have.get((signal, joint)) for joint in joints]
        if any(columns):
            layout[signal] = columns
    for (_, joint), name in have.items():
        if joint and joint not in joints:
            message = f"{path}: column '{name}' has no 'position/{joint}' beside it"
            raise DataError(message, name=name, expected=f'position/{joint}')
    return layout


def read_recording(path: str | Path | Bag, topic: str | None = None, joints: Sequence[str] | None = None) -> Recording:
    """Read a recording: CSV, npz, or a bag, such as the recorder node writes.

    Parameters
    ----------
    path : str or Path
        ``*.csv``; ``*.npz``; a rosbag2 folder, its ``metadata.yaml``, ``*.db3`` or ``*.mcap``; or a bag that is open.
    topic : str, optional
        Which topic of a bag.
    joints : sequence of str, optional
        Which joints, in which order; all of them in the file's order otherwise.

    Returns
    -------
    Recording
        With the file's name and hash in its provenance.

    Raises
    ------
    DataError
        If there is no such file, it is none of these, it is damaged, or a joint is not in it.
    MissingDependencyError
        If it is a bag and ``rosbags`` is not installed.

    Examples
    --------
    >>> recording = read_recording('run.csv')  # doctest: +SKIP
    >>> recording.joint_names, recording.rate  # doctest: +SKIP
    (('shoulder', 'elbow'), 1000.0)
    """
    name = str(path.path if isinstance(path, Bag) else path)
    with refusing(name, DataError, file=name):
        path = opened(path)
        if isinstance(path, Bag):
            context = read_context(path, topic, joints or ())
            return replace(read_bag(path, context.topics['joint_states'], joints), context=context.to_dict())
        if not path.exists():
            raise DataError(f'{path} does not exist')
        if topic is not None:
            raise DataError(f"{path} has no topics; leave the topic '{topic}' out", name=topic)
        if path.suffix == '.npz':
            recording = load_recording(path)
            source = {'file': path.name, 'sha256': file_hash(path), 'origin': dict(recording.provenance)}
            recording = replace(recording, provenance=source)
        elif path.suffix in ('.csv', '.txt'):
            recording = read_csv(path)
        else:
            raise DataError(
                f"{path}: expected .csv, .npz, .db3, .mcap, or the folder of a bag; got '{path.suffix or path.name}'"
            )
        return recording if joints is None else recording.select(tuple(joints))


def recordings_in(folder: Path) -> list[Path]:
    """Return the recordings below a folder, at any depth; none where it is a bag itself, or no folder."""
    if not folder.is_dir() or is_bag_folder(folder):
        return []
    with refusing(f"folder '{folder}'", DataError, file=str(folder)):
        found = sorted(below(folder, {folder.resolve()}))
    if not found:
        raise DataError(f"'{folder}' holds no recordings; expected {', '.join(SUFFIXES)} files, or bags")
    return found


def below(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield the recordings below a folder; resolved folders in ``seen`` are passed over, so that links end."""
    identified = (folder / 'result.yaml').is_file()  # its data lie beside it, and are recordings once more
    for path in sorted(folder.iterdir()):
        if path.name.startswith('.') or (path.is_dir() and path.resolve() in seen):
            continue
        if identified and KEPT.fullmatch(path.name):
            continue
        if path.is_dir() or path.suffix in SUFFIXES:
            require_text(str(path))
        if path.is_dir():
            if is_bag_folder(path):
                yield path
            else:
                seen.add(path.resolve())
                yield from below(path, seen)
        elif path.suffix in SUFFIXES:
            yield path
