# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""npz files of recordings and datasets; nothing in them is executed when they are read."""

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.data.dataset import Dataset
from robotid_ros.data.even import EvenRecording, Run
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.files import atomic_file
from robotid_ros.reading import refusing

RECORDING_KIND = 'robotid_ros recording 1'
DATASET_KIND = 'robotid_ros dataset 2'


def save_recording(path: str | Path, recording: Recording) -> None:
    """Write a recording as npz (uncompressed numpy arrays; text as JSON)."""
    arrays = {
        name: getattr(recording, name)
        for name in ('time', 'position', 'velocity', 'acceleration', 'effort', 'current', 'arrival')
        if getattr(recording, name) is not None
    }
    header = {
        'context': recording.context,
        'kind': RECORDING_KIND,
        'joint_names': recording.joint_names,
        'origin': recording.origin,
    }
    _save(path, header, arrays, recording.provenance)


def save_dataset(path: str | Path, dataset: Dataset) -> None:
    """Write a dataset as npz (uncompressed numpy arrays; text as JSON)."""
    names = ('time', 'q', 'dq', 'ddq', 'tau', 'tau_filtered', 'noise_std', 'trajectory')
    arrays = {name: getattr(dataset, name) for name in names if getattr(dataset, name) is not None}
    even = dataset.unfiltered
    if even is not None:
        arrays['run_length'] = np.array([len(run) for run in even.runs])
        for name in ('time', 'position', 'torque'):
            arrays[f'run_{name}'] = np.concatenate([getattr(run, name) for run in even.runs])
    header = {
        'kind': DATASET_KIND,
        'unfiltered': None
        if even is None
        else {'rate': even.rate, 'differentiation': even.differentiation, 'trimmed': even.trimmed},
        'joint_names': dataset.joint_names,
        'rate': dataset.rate,
        'cutoff': dataset.cutoff,
        'periods': dataset.periods,
        'sources': dataset.sources,
        'context': dataset.context,
        'effort': dataset.effort,
    }
    _save(path, header, arrays, dataset.provenance)


def load_recording(path: str | Path) -> Recording:
    """Read a recording written by :func:`save_recording`.

    Raises
    ------
    DataError
        If the file is missing, damaged or something else.
    """
    with refusing(str(path), DataError):
        header, arrays = _load(path, RECORDING_KIND)
        return Recording(
            joint_names=tuple(header['joint_names']),
            origin=int(header['origin']),
            context=dict(header.get('context', {})),
            provenance=header['provenance'],
            **arrays,
        )


def load_dataset(path: str | Path) -> Dataset:
    """Read a dataset written by :func:`save_dataset`.

    Raises
    ------
    DataError
        If the file is missing, damaged or something else.
    """
    with refusing(f'{path}: this dataset', DataError):
        header, arrays = _load(path, DATASET_KIND)
        joints = tuple(header['joint_names'])
        return Dataset(
            joint_names=joints,
            rate=header['rate'],
            cutoff=header['cutoff'],
            periods=header['periods'],
            sources=tuple(header['sources']),
            context=dict(header.get('context', {})),
            effort=tuple(header.get('effort', ())),
            provenance=header['provenance'],
            unfiltered=_unfiltered(header, joints, arrays),
            **arrays,
        )


def _unfiltered(header: Mapping[str, Any], joints: tuple[str, ...], arrays: dict[str, Any]) -> EvenRecording | None:
    """Return the unfiltered signals in a file's arrays, and remove them from there."""
    if header['unfiltered'] is None:
        return None
    said: dict[str, Any] = {'context': dict(header.get('context', {})), 'effort': tuple(header.get('effort', ()))}
    edges = np.cumsum([0, *arrays.pop('run_length').tolist()])
    columns = {name: arrays.pop(f'run_{name}') for name in ('time', 'position', 'torque')}
    runs = tuple(
        Run(**{name: values[start:stop] for name, values in columns.items()}) for start, stop in pairwise(edges)
    )
    return EvenRecording(joint_names=joints, runs=runs, **header['unfiltered'], **said)


def stored_context(path: str | Path) -> dict[str, Any]:
    """Return what an npz file keeps of the context of its recording; empty for any other file."""
    if Path(path).suffix != '.npz':
        return {}
    with refusing(str(path), DataError), np.load(path, allow_pickle=False) as archive:
        found = json.loads(str(archive['header'])).get('context', {})
        kept = {'description': str, 'robot': dict, 'plan': dict}
        return {name: kind(found[name]) for name, kind in kept.items() if name in found}


def is_dataset(path: str | Path) -> bool:
    """Return whether a file is a dataset written by :func:`save_dataset`."""
    if Path(path).suffix != '.npz':
        return False
    try:
        with np.load(path, allow_pickle=False) as archive:
            return bool(json.loads(str(archive['header']))['kind'] == DATASET_KIND)
    except Exception:  # zipfile, zlib, numpy and json raise different classes
        return False


def _save(
    path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Any], provenance: Mapping[str, Any]
) -> None:
    text = json.dumps({**header, 'provenance': provenance}, default=_plain)
    with atomic_file(path) as file:
        np.savez(file, header=np.array(text), **arrays)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return dict(value)
    return str(value)


def _load(path: str | Path, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name != 'header'}
            header = json.loads(str(archive['header']))
    except FileNotFoundError as cause:
        raise DataError(f'{path} does not exist') from cause
    except Exception as cause:  # zipfile, zlib, numpy and json raise different classes
        raise DataError(f'{path}: expected an npz file of this package, got something else or a damaged one') from cause
    found = header.get('kind') if isinstance(header, dict) else None
    if found != kind:
        raise DataError(f'{path}: expected a {kind!r}, got a {found!r:.60}')
    return header, arrays
