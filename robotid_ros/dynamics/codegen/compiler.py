# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Compile C once, keep the library in the user's cache directory, call it with arrays."""

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.cache import cache_directory, keep, kept

INCLUDE = Path(__file__).parents[1]
"""The folder from which sources include the headers."""

_HEADERS = ('lanes.h', 'one_sample.h')

_FLAGS = (
    f'-DOBJECT_HEAD={object.__basicsize__}',
    '-std=gnu11',
    '-O2',
    '-ftree-vectorize',
    '-ffp-contract=fast',
    '-fno-math-errno',
    '-fPIC',
    '-shared',
)
# Not every compiler has -march=native.
_NATIVE = (('-march=native',), ())
_TIME_LIMIT = 120.0
# Up to this many bytes, copying an array (0.1 us) is faster than asking for its address (0.3 to 1 us).
_COPIED = 4096


class CompiledKernel:
    """A C function ``void f(long count, const double *input..., double *output)``.

    Called like :class:`NumpyKernel`: arrays of shape (count, width), or (width,) where an input is
    the same for all samples. The interpreter's lock is released during a call.
    """

    __slots__ = ('call',)

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self.call = getattr(library, name)
        self.call.restype = None

    def __call__(self, inputs: Sequence[Array], output: Array) -> None:
        """Fill the output array, which must be contiguous; see :meth:`NumpyKernel.__call__`."""
        if self.call.argtypes is None:
            self.call.argtypes = [ctypes.c_long, *[ctypes.c_void_p] * (len(inputs) + 1)]
        ready = [np.ascontiguousarray(x, dtype=np.float64) for x in inputs]
        given = [x.tobytes() if x.nbytes <= _COPIED else _address(x) for x in ready]
        self.call(len(output), *given, _address(output))


def _address(array: Any) -> object:
    """Return where an array's numbers are, for a call; of one that can be written to in a third of numpy's time."""
    if array.flags.writeable and array.size:
        return ctypes.byref(ctypes.c_char.from_buffer(array))
    return array.ctypes.data


def compiled_kernels(
    name: str,
    key: str,
    source: Callable[[], str],
    functions: Sequence[str],
) -> dict[str, CompiledKernel] | None:
    """Return compiled functions by name, or None without a compiler or a cache directory.

    The library, whose file begins with ``name``, is found by a hash of all its inputs: the key (a hash of what the
    source is made from), the compiler, its flags, the processor, and the headers that sources include. It is loaded
    only if it and its directory belong to this user, nobody else can write them, and its content has the hash that was
    stored with it; otherwise it is built again, for which ``source`` is called. ``ROBOTID_NO_COMPILER=1`` in the
    environment turns compiling off.
    """
    compiler = find_compiler()
    if compiler is None or cache_directory() is None:
        return None
    try:
        identity = '\0'.join((name, key, *_FLAGS, _compiler_identity(compiler), _processor_identity(), _headers()))
        file = f'{name}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}.so'
        for fresh in (False, True):
            if fresh or kept(file) is None:
                built = _build(compiler, source())
                if built is None or keep(file, built) is None:
                    return None
            directory = cache_directory()
            if directory is None:
                return None
            try:
                library = ctypes.CDLL(str(directory / file))
                return {function: CompiledKernel(library, function) for function in functions}
            except (OSError, AttributeError):
                continue  # made by another machine or compiler: build it again
    except OSError:
        pass
    return None


def find_compiler() -> str | None:
    """Return the path of a C compiler: ``$CC``, cc, gcc or clang; None where there is none or it is turned off."""
    if os.environ.get('ROBOTID_NO_COMPILER', '') not in ('', '0'):
        return None
    for name in (os.environ.get('CC', ''), 'cc', 'gcc', 'clang'):
        path = shutil.which(name) if name else None
        if path:
            return path
    return None


def _build(compiler: str, source: str) -> bytes | None:
    """Return a compiled library; None if the compiler fails."""
    with tempfile.TemporaryDirectory() as scratch:
        code, result = Path(scratch) / 'kernel.c', Path(scratch) / 'kernel.so'
        code.write_text(source, encoding='ascii')
        for native in _NATIVE:
            command = [compiler, *_FLAGS, *native, '-I', str(INCLUDE), str(code), '-o', str(result), '-lm']
            try:
                done = subprocess.run(command, capture_output=True, timeout=_TIME_LIMIT, check=False)
            except subprocess.TimeoutExpired:
                return None
            if done.returncode == 0 and result.is_file():
                return result.read_bytes()
    return None


def _compiler_identity(compiler: str) -> str:
    real = Path(compiler).resolve()
    status = real.stat()
    return f'{real} {status.st_size} {status.st_mtime_ns}'


@lru_cache(maxsize=1)
def _headers() -> str:
    return ''.join(Path(__file__).with_name(name).read_text(encoding='utf-8') for name in _HEADERS)


@lru_cache(maxsize=1)
def _processor_identity() -> str:
    """Return a text that identifies the processor, and with it the meaning of -march=native."""
    try:
        for line in Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines():
            if line.startswith(('flags', 'Features')):
                return platform.machine() + line
    except OSError:
        pass
    return platform.machine() + platform.processor()
