# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""C and Python: the whole torque as source code without dependencies."""

from pathlib import Path

from robotid_ros.dynamics.codegen.minimal_model import MinimalModel
from robotid_ros.errors import ModelError
from robotid_ros.files import write_text

__all__ = ['LANGUAGES', 'write_code']

LANGUAGES = ('c', 'python')


def write_code(
    model: MinimalModel,
    directory: str | Path,
    language: str,
    *,
    prefix: str = '',
    name: str = 'inverse_dynamics',
) -> tuple[Path, ...]:
    """Write the generated source of a model into a directory.

    Parameters
    ----------
    model : MinimalModel
    directory : str or Path
        Made if need be.
    language : {'c', 'python'}
        ``<name>.c`` and ``<name>.h``, or ``<name>.py``.
    prefix : str
        Put before every C name that is visible outside.
    name : str
        Of the files.

    Returns
    -------
    tuple of Path
        What was written; each file whole or not at all.

    Raises
    ------
    ModelError
        If the language is unknown, or the directory cannot be written.
    """
    if language == 'c':
        texts = {
            f'{name}.h': model.c_header(prefix, name=f'{name}.h'),
            f'{name}.c': model.c_source(prefix, header=f'{name}.h'),
        }
    elif language == 'python':
        texts = {f'{name}.py': model.python_source()}
    else:
        raise ModelError(f"language: expected one of {', '.join(map(repr, LANGUAGES))}, got '{language}'")
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise ModelError(f"the source cannot be written to '{folder}': {cause}") from cause
    for file, text in texts.items():
        write_text(folder / file, text)
    return tuple(folder / file for file in texts)
