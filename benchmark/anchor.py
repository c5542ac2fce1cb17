# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs the code of others in its own environment: arrays in an npz, arrays and numbers out of another.

The environment is named by ``ROBOTID_ANCHORS`` (its Python); ``make bench`` builds it in ``.venv-anchors``.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

WORKER = Path(__file__).parent / 'anchors' / 'worker.py'
DEFAULT = Path(__file__).parents[1] / '.venv-anchors' / 'bin' / 'python'


class AnchorError(Exception):
    """The code of others is not installed, or failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a task gave back: plain values, and arrays."""

    values: dict[str, Any]
    arrays: dict[str, np.ndarray]


def interpreter() -> Path | None:
    """Return the Python that has the anchors, or None."""
    path = Path(os.environ.get('ROBOTID_ANCHORS', DEFAULT))
    return path if path.is_file() else None


def run(
    task: str,
    arrays: Mapping[str, np.ndarray] | None = None,
    *,
    seconds: float = 600.0,
    **settings: Any,
) -> Answer:
    """Run ``task``, 'module.function' of ``benchmark/anchors``, and return its answer.

    Parameters
    ----------
    task : str
    arrays : mapping of str to ndarray
    seconds : float
        After which it is given up.
    **settings
        Plain values, as JSON has them.

    Raises
    ------
    AnchorError
        If the environment is not there, the task fails or takes too long.
    """
    python = interpreter()
    if python is None:
        raise AnchorError('the environment of the anchors is not installed: `make bench` builds it in .venv-anchors')
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / 'question.npz', Path(folder) / 'answer.npz'
        np.savez(question, settings=json.dumps(settings), **{f'array/{k}': v for k, v in (arrays or {}).items()})
        try:
            done = subprocess.run(
                [python, WORKER, task, question, answer], capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            raise AnchorError(f'{task} did not end within {seconds:g} s') from None
        if done.returncode != 0:
            raise AnchorError(f'{task}: {(done.stderr.strip().splitlines() or ["no message"])[-1]}')
        with np.load(answer, allow_pickle=False) as file:
            values = json.loads(str(file['values']))
            found = {name.removeprefix('array/'): file[name] for name in file.files if name.startswith('array/')}
    return Answer(values=values, arrays=found)
