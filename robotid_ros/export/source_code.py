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
from robotid_ros.files import output_folder, write_text

LANGUAGES = ('c', 'cpp', 'python')


def source_files(
    model: MinimalModel, language: str, *, prefix: str = '', name: str = 'inverse_dynamics'
) -> dict[str, str]:
    """Return the generated source of a model.

    Parameters
    ----------
    model : MinimalModel
    language : {'c', 'cpp', 'python'}
        ``<name>.c`` and ``<name>.h``, ``<name>.hpp``, or ``<name>.py``.
    prefix : str
        Put before every C name that is visible outside; the namespace in C++, by default
        the arm's name and ``_dynamics``.
    name : str
        Of the files.

    Returns
    -------
    dict of str to str
        Texts by file name.

    Raises
    ------
    ModelError
        If the language is unknown.
    """
    if language == 'c':
        return {
            f'{name}.h': model.c_header(prefix, name=f'{name}.h'),
            f'{name}.c': model.c_source(prefix, header=f'{name}.h'),
        }
    if language == 'cpp':
        return {
            f'{name}.hpp': model.cpp_header(prefix or identifier(f'{model.model.name}_dynamics'), name=f'{name}.hpp')
        }
    if language == 'python':
        return {f'{name}.py': model.python_source()}
    raise ModelError(f"language: expected one of {', '.join(map(repr, LANGUAGES))}, got '{language}'")


def identifier(text: str) -> str:
    """Return a name as an identifier of C++ and of packages: lower case letters, digits, underscores."""
    return re.sub(r'[^a-z0-9]+', '_', text.lower()).strip('_').lstrip('0123456789_') or 'arm'


def write_code(
    model: MinimalModel, directory: str | Path, language: str, *, prefix: str = '', name: str = 'inverse_dynamics'
) -> tuple[Path, ...]:
    """Write the files of :func:`source_files` into a directory, made if need be; return what was written.

    Raises
    ------
    RobotIdError
        If the language is unknown, or the directory cannot be written.
    """
    texts = source_files(model, language, prefix=prefix, name=name)
    folder = output_folder(directory)
    for file, text in texts.items():
        write_text(folder / file, text)
    return tuple(folder / file for file in texts)
