# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The user's cache directory, and names in it that say what their content was made from."""

import hashlib
import os
import stat
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.model import RobotModel

__all__ = ['cache_directory', 'content_key', 'trusted']


def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, made if need be; None where it cannot be trusted.

    ``$XDG_CACHE_HOME/robotid_ros``, by default ``~/.cache/robotid_ros``.
    """
    try:
        base = os.environ.get('XDG_CACHE_HOME') or str(Path.home() / '.cache')
        directory = Path(base) / 'robotid_ros'
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory if trusted(directory) else None
    except (OSError, RuntimeError):
        return None


def trusted(path: Path) -> bool:
    """Return whether a path exists, is this user's, and nobody else can write it."""
    try:
        status = path.lstat()
    except OSError:
        return False
    if not hasattr(os, 'getuid'):
        return True  # no owners and modes to look at
    private = not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return private and not stat.S_ISLNK(status.st_mode) and status.st_uid == os.getuid()


def content_key(model: RobotModel, parts: Mapping[str, Array | IntArray], text: str) -> str:
    """Return a hash of an arm's geometry, of arrays, a text, and the source of this package's dynamics.

    Parameters
    ----------
    model : RobotModel
    parts : mapping of str to ndarray
    text : str
        Whatever else decides the result.
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
    """Return a hash of the modules that make graphs: a graph made by other code is not taken for this one's."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob('*.py')):
        digest.update(path.read_bytes())
    return digest.hexdigest()
