# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs one task in the environment of the anchors: ``python worker.py MODULE.FUNCTION question.npz answer.npz``.

Nothing of this package is imported here: what is compared with must not depend on it.
"""

import os

os.environ.setdefault('OMP_NUM_THREADS', '1')
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np


def timed(task: Callable[[], object], runs: int) -> dict[str, float]:
    """Return median and smallest processor seconds and median wall seconds, after one run that does not count."""
    task()
    pairs = []
    for _ in range(runs):
        processor, wall = time.process_time(), time.perf_counter()
        task()
        pairs.append((time.process_time() - processor, time.perf_counter() - wall))
    return {
        'processor': statistics.median(p for p, _ in pairs),
        'fastest': min(p for p, _ in pairs),
        'wall': statistics.median(w for _, w in pairs),
    }


def main() -> None:
    task, question, answer = sys.argv[1:]
    module, _, function = task.rpartition('.')
    sys.path.insert(0, str(Path(__file__).parent))
    with np.load(question, allow_pickle=False) as file:
        settings: dict[str, Any] = json.loads(str(file['settings']))
        arrays = {name.removeprefix('array/'): file[name] for name in file.files if name.startswith('array/')}
    with redirect_stdout(sys.stderr):
        values, found = getattr(importlib.import_module(module), function)(arrays, settings)
    np.savez(answer, values=json.dumps(values), **{f'array/{name}': value for name, value in found.items()})


if __name__ == '__main__':
    main()
