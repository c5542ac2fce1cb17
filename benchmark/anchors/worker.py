# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Runs one task in the environment of the anchors: ``python worker.py MODULE.FUNCTION question.npz answer.npz``.

Of this project only the stopwatch is used here: what is compared with must not depend on the rest.
"""

import importlib
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np


def main() -> None:
    task, question, answer = sys.argv[1:]
    module, _, function = task.rpartition('.')
    sys.path.append(str(Path(__file__).parents[2]))
    with np.load(question, allow_pickle=False) as file:
        given = {name: value if value.ndim else value.item() for name, value in file.items()}
    with redirect_stdout(sys.stderr):
        found = getattr(importlib.import_module(module), function)(given)
    np.savez(answer, **found)


if __name__ == '__main__':
    main()
