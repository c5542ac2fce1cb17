# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""C, C++ and Python: the whole torque as source code without dependencies."""

import re
from pathlib import Path

from robotid_ros.dynamics import MinimalModel
from robotid_ros.errors import ModelError
from robotid_ros.files import write_files

LANGUAGES = ('c', 'cpp', 'python')
_NAME = 'inverse_dynamics'  # of the files


def source_files(model: MinimalModel, language: str, *, prefix: str = '') -> dict[str, str]:
    """Return the generated source of a model, texts by file name.

    Parameters
    ----------
    model : MinimalModel
    language : {'c', 'cpp', 'python'}
        ``inverse_dynamics.c`` and ``.h``, ``.hpp``, or ``.py``.
    prefix : str
        Put before every C name that is visible outside; the namespace in C++, by default
        the arm's name and ``_dynamics``.

    Raises
    ------
    ModelError
        If the language is unknown.
    """
    if language == 'c':
        header = f'{_NAME}.h'
        return {header: model.c_header(prefix, name=header), f'{_NAME}.c': model.c_source(prefix, header=header)}
    if language == 'cpp':
        header = f'{_NAME}.hpp'
        return {header: model.cpp_header(prefix or identifier(f'{model.model.name}_dynamics'), name=header)}
    if language == 'python':
        return {f'{_NAME}.py': model.python_source()}
    raise ModelError(f"language: expected one of {', '.join(map(repr, LANGUAGES))}, got '{language}'")


def identifier(text: str) -> str:
    """Return a name as an identifier of C++ and of packages: lower case letters, digits, underscores."""
    return re.sub(r'[^a-z0-9]+', '_', text.lower()).strip('_').lstrip('0123456789_') or 'arm'


def write_code(model: MinimalModel, directory: str | Path, language: str, *, prefix: str = '') -> tuple[Path, ...]:
    """Write the files of :func:`source_files` into a directory, made if need be; return what was written.

    Raises
    ------
    RobotIdError
        If the language is unknown, or the directory cannot be written.
    """
    return write_files(directory, source_files(model, language, prefix=prefix))
