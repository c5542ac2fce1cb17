# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Files written whole or not at all, and their hashes."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from robotid_ros.errors import DataError

_made: list[Path] = []  # folders that output_folder has made, the innermost of each first


def file_hash(path: str | Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal, as ``sha256sum`` prints it."""
    digest = hashlib.sha256()
    with open(path, 'rb') as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when everything is written.

    Until then an older file of that name stays as it is. Raises a DataError if the folder does not exist or cannot be
    written, or the name is that of a folder, a device or a symbolic link, which would be replaced.
    """
    path = Path(path)
    _require_plain(path)
    temporary = path.parent / f'.{path.name[:40]}.{secrets.token_hex(4)}.part'
    try:
        # Unlike those of tempfile, the file gets the permissions that the user's umask gives to any new file.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except OSError as cause:
        message = f'cannot write {path}: {cause.strerror}; give a folder that exists and is writable'
        raise DataError(message, file=str(path)) from cause
    try:
        with os.fdopen(handle, 'wb') as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as cause:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(cause, OSError):
            raise DataError(f'cannot write {path}: {cause.strerror}', file=str(path)) from cause
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as UTF-8, whole or not at all; see :func:`atomic_file`."""
    with atomic_file(path) as file:
        file.write(text.encode('utf-8'))


@contextmanager
def together(folder: str | Path, last: str, older: Sequence[str]) -> Iterator[Path]:
    """Yield a folder for files that take their names in ``folder`` when all of them are written, ``last`` at the end.

    Until then older files stay as they are; then those of the patterns ``older`` go, where they were not written anew.
    Raises a DataError if the folder does not exist or cannot be written.
    """
    folder = Path(folder)
    place = folder / f'.{secrets.token_hex(4)}.part'
    try:
        place.mkdir()
        yield place
        new = sorted(place.iterdir(), key=lambda path: path.name == last)
        for path in new:
            _require_plain(folder / path.name)
        for path in {folder / last, *(each for pattern in older for each in folder.glob(pattern))}:
            path.unlink(missing_ok=True)
        for path in new:
            os.replace(path, folder / path.name)
    except OSError as cause:
        message = f'cannot write into {folder}: {cause.strerror}; give a folder that exists and is writable'
        raise DataError(message, file=str(folder)) from cause
    finally:
        shutil.rmtree(place, ignore_errors=True)


def require_text(path: str) -> None:
    """Raise a DataError if no text file can hold a path: results name the files they were made from."""
    try:
        path.encode()
    except UnicodeEncodeError as cause:
        raise DataError(f'{path!a}: expected a name in UTF-8, got other bytes; give it another name') from cause


def require_folder(*paths: str | Path | None) -> None:
    """Raise a DataError if a file cannot be written under a name that is given; called before long computations."""
    for path in (each for each in paths if each):
        _require_plain(Path(path).expanduser())
        folder = Path(path).expanduser().resolve().parent
        if not folder.is_dir():
            raise DataError(f"cannot write {path}: the folder '{folder}' does not exist", file=str(path))


def output_folder(path: str | Path) -> Path:
    """Return a folder for results, made if needed; see :func:`remove_unused_folders`.

    A DataError says that it cannot be made, or is a file.
    """
    folder = Path(path).expanduser()
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _made.extend(missing)
    except OSError as cause:
        raise DataError(f"output folder '{folder}' cannot be made: {cause.strerror}", file=str(folder)) from cause
    return folder


def write_files(folder: str | Path, texts: Mapping[str, str]) -> tuple[Path, ...]:
    """Write texts by file name into a folder, folders made if needed; return the files' paths."""
    paths = tuple(output_folder(folder) / name for name in texts)
    for path, text in zip(paths, texts.values(), strict=True):
        output_folder(path.parent)
        write_text(path, text)
    return paths


def remove_unused_folders() -> None:
    """Remove the empty folders that :func:`output_folder` has made, after a refused command."""
    while _made:
        with suppress(OSError):  # not empty, or not there any more
            _made.pop(0).rmdir()


def _require_plain(path: Path) -> None:
    """Refuse the name of a folder, a device or a link."""
    if os.path.islink(path):
        raise DataError(f'cannot write {path}: it is a symbolic link; give the name of a file', file=str(path))
    if os.path.exists(path) and not os.path.isfile(path):
        kind = 'folder' if os.path.isdir(path) else 'device'
        raise DataError(f'cannot write {path}: it is a {kind}; give the name of a file', file=str(path))
