# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Keep traced graphs in the user's cache directory, so that an arm is traced once."""

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.dynamics.codegen.cache import cache_directory, trusted
from robotid_ros.dynamics.codegen.expression import Graph

__all__ = ['graph_arrays', 'graph_from_arrays', 'load_arrays', 'save_arrays']


def graph_arrays(graph: Graph, prefix: str) -> dict[str, Array | IntArray]:
    """Return a graph as arrays to be saved."""
    return {
        f'{prefix}_nodes': np.array([graph.kind, graph.first, graph.second], dtype=np.int64).reshape(3, -1),
        f'{prefix}_values': np.array(graph.value, dtype=np.float64),
    }


def graph_from_arrays(arrays: Mapping[str, Array | IntArray], prefix: str) -> Graph:
    """Return the graph that :func:`graph_arrays` took apart; it can be evaluated, and grow."""
    nodes, values = arrays[f'{prefix}_nodes'], arrays[f'{prefix}_values']
    kind, first, second = (row.tolist() for row in nodes)
    return Graph.restored(kind, first, second, values.tolist())


def save_arrays(key: str, arrays: Mapping[str, Array | IntArray]) -> None:
    """Save under a key, whole or not at all; a directory that cannot be written is passed over."""
    directory = cache_directory()
    if directory is None:
        return
    try:
        handle, name = tempfile.mkstemp(dir=directory, suffix='.tmp')
        try:
            with os.fdopen(handle, 'wb') as file:
                np.savez(file, **dict(arrays))  # type: ignore[arg-type]
            Path(name).replace(directory / f'{key}.npz')
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError:
        return


def load_arrays(key: str) -> dict[str, Array | IntArray] | None:
    """Return what was saved under a key, or None where there is nothing usable."""
    directory = cache_directory()
    if directory is None or not trusted(directory / f'{key}.npz'):
        return None
    try:
        with np.load(directory / f'{key}.npz', allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None
