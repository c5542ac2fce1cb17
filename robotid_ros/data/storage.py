# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""npz files of recordings and datasets; nothing in them is executed when they are read.

An array of the dataclass is an array of the file. The other fields are the text ``header``, as JSON.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from robotid_ros.data.dataset import Dataset, EvenRecording
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.files import atomic_file
from robotid_ros.reading import refusing

Stored = TypeVar('Stored', Recording, Dataset)

KINDS: dict[type, str] = {Recording: 'robotid_ros recording 1', Dataset: 'robotid_ros dataset 2'}
_OF_RUNS = {'time': 'time', 'position': 'position', 'torque': 'effort'}  # in the file, in memory
_CONTEXT = {'description': str, 'robot': dict, 'plan': dict}


def save_recording(path: str | Path, recording: Recording) -> None:
    """Write a recording as npz (uncompressed numpy arrays; text as JSON)."""
    _save(path, recording, {}, {})


def save_dataset(path: str | Path, dataset: Dataset) -> None:
    """Write a dataset as npz (uncompressed numpy arrays; text as JSON)."""
    even, arrays = dataset.unfiltered, {}
    if even is not None:
        arrays = {
            f'run_{name}': np.concatenate([getattr(run, own) for run in even.runs]) for name, own in _OF_RUNS.items()
        }
        arrays['run_length'] = np.array([len(run) for run in even.runs])
    settings = {name: getattr(even, name) for name in ('rate', 'differentiation', 'trimmed')} if even else None
    _save(path, dataset, {'unfiltered': settings}, arrays)


def load_recording(path: str | Path) -> Recording:
    """Read a recording written by :func:`save_recording`.

    Raises
    ------
    DataError
        If the file is missing, damaged or something else.
    """
    with refusing(str(path), DataError, file=str(path)):
        return _built(Recording, *_load(path, Recording))


def load_dataset(path: str | Path) -> Dataset:
    """Read a dataset written by :func:`save_dataset`.

    Raises
    ------
    DataError
        If the file is missing, damaged or something else.
    """
    with refusing(f'{path}: this dataset', DataError, file=str(path)):
        header, arrays = _load(path, Dataset)
        if header['unfiltered'] is not None:
            edges = np.cumsum([0, *arrays.pop('run_length').tolist()])
            columns = {own: arrays.pop(f'run_{name}') for name, own in _OF_RUNS.items()}
            whole = Recording(joint_names=tuple(header['joint_names']), **columns)
            runs = tuple(whole.slice(a, b) for a, b in pairwise(edges))
            header['unfiltered'] = EvenRecording(runs=runs, **header['unfiltered'])
        return _built(Dataset, header, arrays)


def stored_context(path: str | Path) -> dict[str, Any]:
    """Return what an npz file keeps of the context of its recording, and its joints."""
    with refusing(str(path), DataError, file=str(path)), _opened(path) as archive:
        header = json.loads(str(archive['header']))
        return {**_context(header), 'joints': tuple(map(str, header.get('joint_names', ())))}


def _context(header: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a header holds of the context, by its types."""
    found = dict(header.get('context', {}))
    return {name: kind(found[name]) for name, kind in _CONTEXT.items() if name in found}


def is_dataset(path: str | Path) -> bool:
    """Return whether a file is a dataset written by :func:`save_dataset`."""
    try:
        with _opened(path) as archive:
            return bool(json.loads(str(archive['header']))['kind'] == KINDS[Dataset])
    except Exception:  # zipfile, zlib, numpy and json raise different classes
        return False


def _opened(path: str | Path) -> Any:
    """Return the archive in a file; a pipe would be waited for."""
    if Path(path).exists() and not Path(path).is_file():
        raise DataError(f'{path}: expected a file, got a folder or a device')
    return np.load(path, allow_pickle=False)


def _save(path: str | Path, data: Recording | Dataset, more: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    values = {item.name: getattr(data, item.name) for item in fields(data)} | dict(arrays)
    columns: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
    rest = {name: value for name, value in values.items() if name not in columns and value is not None}
    text = json.dumps({'kind': KINDS[type(data)], **rest, **more}, default=_plain)
    with atomic_file(path) as file:
        np.savez(file, header=np.array(text), **columns)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return dict(value) if isinstance(value, Mapping) else str(value)


def _load(path: str | Path, kind: type) -> tuple[dict[str, Any], dict[str, Any]]:
    try:
        with _opened(path) as archive:
            arrays = {name: archive[name] for name in archive.files if name != 'header'}
            header = json.loads(str(archive['header']))
    except FileNotFoundError as cause:
        raise DataError(f'{path} does not exist') from cause
    except Exception as cause:  # zipfile, zlib, numpy and json raise different classes
        raise DataError(f'{path}: expected an npz file of this package, got something else or a damaged one') from cause
    found = header.get('kind') if isinstance(header, dict) else None
    if found != KINDS[kind]:
        raise DataError(f'{path}: expected a {KINDS[kind]!r}, got a {found!r:.60}', expected=KINDS[kind], found=found)
    return header, arrays


def _built(kind: type[Stored], header: dict[str, Any], arrays: dict[str, Any]) -> Stored:
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in header.items()}
    del values['kind']
    values |= {'context': _context(header), 'provenance': dict(header.get('provenance', {}))}
    return kind(**values, **arrays)
