# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The user's cache directory: generated and compiled files under a hash of their inputs."""

import hashlib
import io
import os
import stat
import tempfile
import zipfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.model import RobotModel

_DIGEST = hashlib.sha256().digest_size


def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, made if needed; None where others can write to it.

    ``$XDG_CACHE_HOME/robotid_ros``, by default ``~/.cache/robotid_ros``.
    """
    try:
        base = os.environ.get('XDG_CACHE_HOME') or str(Path.home() / '.cache')
        directory = Path(base) / 'robotid_ros'
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory if _private(directory) else None
    except (OSError, RuntimeError):
        return None


def _private(path: Path) -> bool:
    """Return whether a path is this user's, no link, and nobody else can write it."""
    status = path.lstat()
    if not hasattr(os, 'getuid'):
        return True  # no owners and modes to look at
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not writable and not stat.S_ISLNK(status.st_mode) and status.st_uid == os.getuid()


def keep(name: str, content: bytes) -> Path | None:
    """Write a file of the cache, whole or not at all; None where it cannot be written.

    The SHA-256 of the content is appended (a loader of ELF libraries ignores what follows the last
    section), so that :func:`kept` recognises a damaged file. Two processes may write the same name at
    once.
    """
    directory = cache_directory()
    if directory is None:
        return None
    try:
        handle, scratch = tempfile.mkstemp(dir=directory, suffix='.tmp')
        try:
            with os.fdopen(handle, 'wb') as file:
                file.write(content + hashlib.sha256(content).digest())
            Path(scratch).replace(directory / name)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError:
        return None
    return directory / name


def kept(name: str) -> bytes | None:
    """Return the content of a file of the cache; None if it is absent, damaged or could be another user's."""
    directory = cache_directory()
    if directory is None:
        return None
    try:
        whole = (directory / name).read_bytes() if _private(directory / name) else b''
    except OSError:
        return None
    content, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None


def save_arrays(key: str, arrays: Mapping[str, Array | IntArray]) -> None:
    """Save arrays under a key; do nothing where the cache cannot be written."""
    file, named = io.BytesIO(), dict[str, Any](arrays)
    np.savez(file, **named)
    keep(f'{key}.npz', file.getvalue())


def load_arrays(key: str) -> dict[str, Array | IntArray] | None:
    """Return what was saved under a key, or None where there is nothing usable."""
    content = kept(f'{key}.npz')
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None


def content_key(model: RobotModel, parts: Mapping[str, Array | IntArray], text: str) -> str:
    """Return a hash of an arm's geometry, of arrays, a text, and the source of this package's dynamics.

    The text says everything else that the result depends on.
    """
    digest = hashlib.sha256(_generator_identity().encode())
    digest.update(text.encode())
    digest.update(' '.join(model.joint_types).encode())
    geometry = {name: getattr(model, name) for name in ('placements', 'axes', 'gravity', 'coupling')}
    for name, value in (*geometry.items(), *sorted(parts.items())):
        array = np.ascontiguousarray(value, dtype=np.float64)
        digest.update(f'{name}{array.shape}'.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1)
def _generator_identity() -> str:
    """Return a hash of the modules that generate graphs, so that those of other versions are not reused."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob('*.py')):
        digest.update(path.read_bytes())
    return digest.hexdigest()
