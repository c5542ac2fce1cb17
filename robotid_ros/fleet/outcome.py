# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is to be identified, what came of it or why nothing did, and what changed since the recording before."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.data import Dataset
from robotid_ros.data.bag import METADATA
from robotid_ros.data.readers import SUFFIXES, below
from robotid_ros.errors import DataError, RobotIdError
from robotid_ros.files import output_folder, write_text
from robotid_ros.identification import IdentificationResult, TorquePredictor, validate
from robotid_ros.loads.payload import identify_payload
from robotid_ros.model import RobotModel
from robotid_ros.reading import read_text, read_yaml, refusing
from robotid_ros.report.subject import judged

_RATIO = 3.0  # times the usual error of the arm: grease that is warmer or colder makes less
_LEAST = 3.0  # % of the torque; below it nothing is worth looking at


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How well the arm's previous result predicts a recording."""

    error: float  # of the torque, by the previous result [%]
    usual: float  # error that results of this arm leave of the recordings they were made from [%]
    cause: str = ''  # why it predicts it badly; empty where it does not

    @property
    def score(self) -> float:
        """How far beyond what is usual."""
        return self.error / max(_RATIO * self.usual, _LEAST)


def own_error(result: IdentificationResult) -> float:
    """Return the error of a result on the recording it was made from, or on what judged it [%]."""
    return float(judged(result)[1].relative_error_total)


def judge(
    datasets: Sequence[Dataset],
    model: RobotModel,
    previous: IdentificationResult,
    own: IdentificationResult | None,
    usual: float,
) -> Finding:
    """Return how well a previous result predicts a recording, and the cause where it does not.

    The cause is the smallest change that explains it: a signal that no model explains, friction, a factor of one
    joint's torque, a payload, and where none of these does, another arm or another mount. ``own`` is the recording's
    own result.
    """
    limit = max(_RATIO * usual, _LEAST)
    error = float(validate(previous, model, datasets).relative_error_total)
    if error <= limit:
        return Finding(error=error, usual=usual)
    said = f'{error:.1f} % of the torque is not what the arm did before (usually {usual:.1f} %)'
    try:
        alone, scaled = _torque_signal(datasets, model, previous)
        if own is None or own_error(own) > limit:
            signal = alone or _signal(previous, own)
            return Finding(error=error, usual=usual, cause=f'{said}, and no model explains it: {signal}')
        if _with_friction_of(own, datasets, model, previous) <= limit:
            return Finding(error=error, usual=usual, cause=f'{said}: its friction changed')
        if scaled:
            return Finding(error=error, usual=usual, cause=f'{said}: {alone}')
        payload = identify_payload(datasets, model, previous)
        rest = payload.rmse_with if payload.free[9] > 0.0 else payload.rmse_free  # what was taken off is no body
        left = float(np.linalg.norm(rest) / max(float(np.linalg.norm(payload.rmse_without)), 1e-300))
        if error * left <= limit:
            return Finding(error=error, usual=usual, cause=f'{said}: its payload changed by {payload.free[9]:+.2g} kg')
    except RobotIdError:  # what cannot be computed explains nothing
        pass
    cause = f'{said}: another arm, mount or configuration, since neither payload nor friction explains it'
    return Finding(error=error, usual=usual, cause=cause)


def _torque_signal(datasets: Sequence[Dataset], model: RobotModel, previous: IdentificationResult) -> tuple[str, bool]:
    """Return what is wrong with the only joint whose torque is not as before, and whether that is a factor alone.

    Nothing is where several joints are not.
    """
    before, then = judged(previous)[1].relative_error, validate(previous, model, datasets).relative_error
    limits = np.maximum(_RATIO * np.asarray(before), _LEAST)
    off = np.flatnonzero(np.asarray(then) > limits)
    if len(off) != 1:
        return '', False
    j = int(off[0])
    predictor = TorquePredictor(model, previous)
    prepared = predictor.prepared(datasets)
    measured = np.concatenate([each.tau[:, j] for each in prepared])
    expected = np.concatenate([predictor.torque(each.q, each.dq, each.ddq)[:, j] for each in prepared])
    gain = float(measured @ expected / (expected @ expected + 1e-300))
    left = 100.0 * float(np.linalg.norm(measured - gain * expected) / (np.linalg.norm(measured) + 1e-300))
    scaled = left <= limits[j]
    what = f'is {gain:.2g} times' if scaled else f'is by {then[j]:.0f} % not'
    text = f"the torque signal of joint '{model.joint_names[j]}' {what} what it was, those of the others are"
    return text, scaled


def _signal(previous: IdentificationResult, own: IdentificationResult | None) -> str:
    """Name the joint whose signals are explained worse than before."""
    if own is None:
        return 'a sensor'
    now, before = judged(own)[1], judged(previous)[1]
    worst = int(np.argmax(np.square(now.rmse) - np.square(before.rmse[: len(now.rmse)])))
    return (
        f"the torque or position signal of joint '{now.joint_names[worst]}' ({now.relative_error[worst]:.0f} % of it "
        f'unexplained, {before.relative_error[worst]:.0f} % before)'
    )


def _with_friction_of(
    own: IdentificationResult, datasets: Sequence[Dataset], model: RobotModel, previous: IdentificationResult
) -> float:
    """Return the error of the previous result with friction of its own [%]."""
    old, new = TorquePredictor(model, previous), TorquePredictor(model, own)
    missed, whole = 0.0, 0.0
    for dataset in new.prepared(datasets):
        load = old.rigid_torque(dataset.q, dataset.dq, dataset.ddq)
        rest = dataset.tau - load - new.friction_torque(dataset.dq, load, dataset.q)
        missed, whole = missed + float(np.sum(rest**2)), whole + float(np.sum(dataset.tau**2))
    return 100.0 * float(np.sqrt(missed / max(whole, 1e-300)))


_COLUMNS = ('recording', 'arm', 'time', 'robot', 'config', 'excitation', 'validate', 'friction_data')
# [s]: clocks that show less than the year 2001 count from the start of a machine or a recording; the other end is 2100.
_SINCE_1970, _LATEST = 1e9, 4.1e9
_HEAD = 1 << 16  # [bytes] of a CSV file, enough for its first two lines
_MARK = 'fleet.yaml'  # written last: where it stands, everything else does


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A recording of an arm; those of one arm are followed over time.

    ``name`` is unique for each arm, and ``time`` is when it was recorded [s since 1970], None where nothing says it.
    ``robot``, ``config`` and ``excitation`` are of this recording; None for those of the command. ``validate`` and
    ``friction_data`` are recordings to judge by, and of friction sweeps.
    """

    recording: Path
    arm: str
    name: str
    time: float | None = None
    robot: Path | None = None
    config: Path | None = None
    excitation: Path | None = None
    validate: tuple[Path, ...] = ()
    friction_data: tuple[Path, ...] = ()

    @property
    def folder(self) -> Path:
        """Where its result goes, below the output folder."""
        return Path(_plain(self.arm)) / _plain(self.name)


def entries_of(path: str | Path, *, leave_out: Path | None = None) -> tuple[Entry, ...]:
    """Return the recordings of a folder or of a list, arm by arm, in the order of time.

    In a folder, recordings are CSV files, datasets, and bags, at any depth; the first folder below it names
    the arm. A list is a CSV file with the column ``recording`` and, where wanted, ``arm``, ``time`` (ISO 8601, or
    seconds since 1970), ``robot``, ``config``, ``excitation``, ``validate`` and ``friction_data`` (several divided by
    semicolons); its paths are relative to it.

    Parameters
    ----------
    path : str or Path
    leave_out : Path, optional
        A folder in which nothing is searched: that of the results.

    Raises
    ------
    DataError
        If there is no such folder or list, nothing in it, or an entry cannot be understood.
    """
    path = Path(path).absolute()  # workers of a cluster are started in folders of their own
    if path.is_dir() and not (path / METADATA).is_file():
        with refusing(f"folder '{path}'", DataError, file=str(path)):
            seen = {folder.resolve() for folder in (path, leave_out) if folder is not None}
            found = []
            for recording in sorted(below(path, seen)):
                levels = recording.relative_to(path).parts
                arm, parts = (levels[0], levels[1:]) if len(levels) > 1 else (path.resolve().name, levels)
                name = '-'.join((*parts[:-1], recording.name if recording.is_dir() else recording.stem))
                found.append(Entry(recording=recording, arm=arm, name=name, time=_recorded_at(recording)))
    elif path.is_file():
        with refusing(f"list of recordings '{path}'", DataError, file=str(path)):
            found = list(_in_list(path))
    else:
        raise DataError(f"'{path}': expected a folder with recordings, or a list of them (CSV)")
    if not found:
        message = f"'{path}' holds no recordings; expected {', '.join(SUFFIXES)} files, or bags"
        raise DataError(message, file=str(path), expected=SUFFIXES)
    count = Counter(entry.folder for entry in found)
    named = [
        replace(entry, name=f'{entry.name}{entry.recording.suffix}') if count[entry.folder] > 1 else entry
        for entry in found
    ]
    count = Counter(entry.folder for entry in named)
    for entry in named:
        if count[entry.folder] > 1:
            raise DataError(f"'{entry.recording}' is there twice, for the arm '{entry.arm}'", name=str(entry.recording))
    return tuple(sorted(named, key=lambda each: (each.arm, each.time is None, each.time or 0.0, each.name)))


def _in_list(path: Path) -> Iterator[Entry]:
    rows = csv.DictReader(io.StringIO(read_text(path, 'list of recordings', DataError)), skipinitialspace=True)
    heads = [head.strip() for head in rows.fieldnames or ()]
    rows.fieldnames = heads
    unknown = [head for head in heads if head not in _COLUMNS]
    if unknown or 'recording' not in heads:
        problem = f"column '{unknown[0][:40]}' is unknown" if unknown else "there is no column 'recording'"
        message = f'{path}: {problem}; the columns of a list are: {", ".join(_COLUMNS)}'
        raise DataError(message, name=unknown[0] if unknown else 'recording', expected=_COLUMNS)
    for row in rows:
        if None in row or None in row.values() or not row['recording'].strip():
            message = f'{path}, line {rows.line_num}: expected {len(heads)} cells, and a recording'
            raise DataError(message, line=rows.line_num, expected=len(heads))
        cells = {head: str(cell).strip() for head, cell in row.items() if str(cell).strip()}
        recording = path.parent / cells['recording']
        beside: dict[str, Any] = {
            name: path.parent / cells[name] for name in ('robot', 'config', 'excitation') if name in cells
        }
        several: dict[str, Any] = {
            name: tuple(path.parent / each.strip() for each in cells[name].split(';') if each.strip())
            for name in ('validate', 'friction_data')
            if name in cells
        }
        yield Entry(
            recording=recording,
            arm=cells.get('arm') or path.stem,
            name='-'.join(part for part in Path(cells['recording']).with_suffix('').parts if part not in ('/', '..')),
            time=_time(cells['time'], path, rows.line_num) if 'time' in cells else _recorded_at(recording),
            **beside,
            **several,
        )


def _time(text: str, path: Path, line: int) -> float:
    try:
        seconds = float(text)
    except ValueError:
        try:
            moment = datetime.fromisoformat(text.replace('Z', '+00:00'))
            seconds = (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()
        except (ValueError, OverflowError):
            seconds = -1.0
    if not 0.0 <= seconds < _LATEST:
        wanted = 'a date like 2026-05-31 or 2026-05-31T14:00, or seconds since 1970'
        message = f"{path}, line {line}: time: expected {wanted}, got '{text[:40]}'"
        raise DataError(message, line=line, name='time', expected=wanted, found=text)
    return seconds


def _recorded_at(path: Path) -> float | None:
    """Return when a recording began, if its metadata or its first sample say so; copying changes a file's date."""
    try:
        if path.is_dir():
            information = read_yaml(path / METADATA, 'metadata', DataError)['rosbag2_bagfile_information']
            moment = float(information['starting_time']['nanoseconds_since_epoch']) * 1e-9
        elif path.suffix == '.csv' and path.is_file():  # a pipe would be waited for
            with open(path, encoding='utf-8') as file:
                heads, cells = (file.readline(_HEAD).split(',') for _ in range(2))
            moment = float(dict(zip((head.strip() for head in heads), cells, strict=True))['time'])
        else:
            return None
    except (OSError, ValueError, KeyError, TypeError):  # reading it as a recording will say what is wrong
        return None
    return moment if _SINCE_1970 < moment < _LATEST else None


def _plain(name: str) -> str:
    """Return a name that is a folder's on any file system."""
    return re.sub(r'[^\w.+-]+', '_', name).strip('.') or '_'


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a recording: a result, or the problem why there is none.

    ``urdf`` is the calibrated description, for an arm from a URDF; ``seconds`` is the processor time it took.
    ``finding`` says how well the arm's previous result predicts the recording; None for the first.
    """

    entry: Entry
    result: IdentificationResult | None
    problem: str = ''
    urdf: str | None = None
    seconds: float = 0.0
    finding: Finding | None = None

    @property
    def usable(self) -> bool:
        """Whether there is a result, and it is usable."""
        return self.result is not None and self.result.usable

    @property
    def state(self) -> str:
        """'usable', 'not usable' or 'failed'."""
        return 'failed' if self.result is None else 'usable' if self.result.usable else 'not usable'

    @property
    def reason(self) -> str:
        """Why it failed, why it is not usable, or what to know about it."""
        return self.problem if self.result is None else self.result.reason


def keep(outcome: Outcome, folder: Path, key: str) -> None:
    """Write an outcome: result.yaml and calibrated.urdf where there is a result, and last that it is finished."""
    place = output_folder(folder / outcome.entry.folder)
    for half in place.glob('.*.part'):  # left by a run that was killed; nobody else writes here
        half.unlink()
    if outcome.result is not None:
        outcome.result.save(place / 'result.yaml')
        if outcome.urdf is not None:
            write_text(place / 'calibrated.urdf', outcome.urdf)
    mark = {'key': key, 'state': outcome.state, 'problem': outcome.problem, 'seconds': round(outcome.seconds, 3)}
    write_text(place / _MARK, yaml.safe_dump(mark, sort_keys=False, allow_unicode=True))


def kept(entry: Entry, folder: Path, key: str) -> Outcome | None:
    """Return the result of an earlier run, or None where there is none, or the recording or a setting has changed."""
    place = folder / entry.folder
    if not (place / _MARK).is_file():
        return None
    try:
        mark: dict[str, Any] = read_yaml(place / _MARK, 'outcome', RobotIdError)
        if mark['key'] != key or mark['state'] == 'failed':
            return None
        result = IdentificationResult.load(place / 'result.yaml')
        return Outcome(entry=entry, result=result, seconds=float(mark['seconds']))
    except (RobotIdError, KeyError, TypeError, ValueError):  # damaged: identified once more
        return None
