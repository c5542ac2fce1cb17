# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What comes before imports, and after them: one thread for numpy, and names of a room imported when they are used."""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(room: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a room's ``__getattr__`` (PEP 562), for a table of which file below the room each name is in.

    Most of what uses the room needs a part of it.
    """

    def imported(name: str) -> Any:
        if name not in files:
            raise AttributeError(f'module {room!r} has no attribute {name!r}')
        value = getattr(import_module(f'{room}.{files[name]}'), name)
        setattr(sys.modules[room], name, value)  # the next time it is found without this function
        return value

    return imported


def use_one_thread() -> None:
    """Ask numpy's libraries for one thread, unless the user says otherwise; call it before numpy is imported.

    The matrices here are small: handing a 58 x 58 eigenvalue problem to several threads costs more than it saves, and
    much more where other processes need the cores too, as the nodes do.
    """
    for variable in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'MKL_NUM_THREADS'):
        os.environ.setdefault(variable, '1')
