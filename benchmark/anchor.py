# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs the code of others in its own environment: values and arrays in an npz, values and arrays out of another.

The environment is named by ``ROBOTID_ANCHORS`` (its Python); ``make bench`` builds it in ``.venv-anchors``.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

WORKER = Path(__file__).parent / 'anchors' / 'worker.py'
DEFAULT = Path(__file__).parents[1] / '.venv-anchors' / 'bin' / 'python'


class AnchorError(Exception):
    """The code of others is not installed, or failed."""


def run(task: str, *, patience: float = 600.0, **given: Any) -> dict[str, Any]:
    """Run ``task``, 'module.function' of ``benchmark/anchors``, and return its answer.

    Parameters
    ----------
    task : str
    patience : float
        Seconds after which it is given up.
    **given
        Arrays, numbers and texts.

    Raises
    ------
    AnchorError
        If the environment is not there, the task fails or takes too long.
    """
    python = Path(os.environ.get('ROBOTID_ANCHORS', DEFAULT))
    if not python.is_file():
        raise AnchorError('the environment of the anchors is not installed: `make bench` builds it in .venv-anchors')
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / 'question.npz', Path(folder) / 'answer.npz'
        np.savez(question, **given)
        command = [python, WORKER, task, question, answer]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
        except subprocess.TimeoutExpired:
            raise AnchorError(f'{task} did not end within {patience:g} s') from None
        if done.returncode != 0:
            raise AnchorError(f'{task}: {(done.stderr.strip().splitlines() or ["no message"])[-1]}')
        with np.load(answer, allow_pickle=False) as file:
            return {name: value if value.ndim else value.item() for name, value in file.items()}
