# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Compile generated C once, keep it in the user's cache directory, load it safely."""

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

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.c_kernel import batch_source
from robotid_ros.dynamics.codegen.cache import cache_directory, trusted
from robotid_ros.dynamics.codegen.function import GraphFunction

__all__ = ['CompiledKernel', 'compiled_kernel', 'find_compiler']

_FLAGS = ('-std=gnu11', '-O2', '-ftree-vectorize', '-ffp-contract=fast', '-fno-math-errno', '-fPIC', '-shared')
# Not every compiler knows the processor it runs on.
_NATIVE = (('-march=native',), ())
_TIME_LIMIT = 120.0


class CompiledKernel:
    """A graph function compiled to machine code; called like :class:`NumpyKernel`."""

    __slots__ = ('_call', '_library')

    def __init__(self, name: str, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        call = getattr(self._library, name)
        call.restype = None
        call.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
        self._call = call

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Fill the output arrays; see :meth:`NumpyKernel.__call__`. Outputs must be contiguous."""
        ready = [np.ascontiguousarray(x, dtype=np.float64) for x in inputs]
        given = (ctypes.c_void_p * len(ready))(*(x.ctypes.data for x in ready))
        made = (ctypes.c_void_p * len(outputs))(*(y.ctypes.data for y in outputs))
        self._call(len(outputs[0]), given, made)


def compiled_kernel(name: str, key: str, make: Callable[[], GraphFunction]) -> CompiledKernel | None:
    """Return a compiled function, or None where it cannot be had.

    The library is looked up by the hash of everything that goes into it: the function's key, the
    compiler, its flags, and the processor. A library is loaded only if it and its directory belong
    to this user and nobody else can write them. ``ROBOTID_NO_COMPILER=1`` in the environment turns
    compiling off.

    Parameters
    ----------
    name : str
        Of the function.
    key : str
        A hash of what the function is made from, see :func:`content_key`.
    make : callable
        Returns the function; called only if it has to be compiled.
    """
    compiler = find_compiler()
    directory = cache_directory() if compiler is not None else None
    if compiler is None or directory is None:
        return None
    try:
        identity = '\0'.join((name, key, *_FLAGS, _compiler_identity(compiler), _processor_identity()))
        library = directory / f'{name}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}.so'
        if not trusted(library) and not _build(compiler, batch_source(make()), library):
            return None
        return CompiledKernel(name, library)
    except OSError:
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


def _build(compiler: str, source: str, library: Path) -> bool:
    """Compile under a temporary name and rename, so that a library is there whole or not at all."""
    with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
        code, result = Path(scratch) / 'kernel.c', Path(scratch) / 'kernel.so'
        code.write_text(source, encoding='ascii')
        for native in _NATIVE:
            command = [compiler, *_FLAGS, *native, str(code), '-o', str(result), '-lm']
            try:
                done = subprocess.run(command, capture_output=True, timeout=_TIME_LIMIT, check=False)
            except subprocess.TimeoutExpired:
                return False
            if done.returncode == 0 and result.is_file():
                break
        else:
            return False
        result.chmod(0o700)
        result.replace(library)
    return True


def _compiler_identity(compiler: str) -> str:
    real = Path(compiler).resolve()
    status = real.stat()
    return f'{real} {status.st_size} {status.st_mtime_ns}'


@lru_cache(maxsize=1)
def _processor_identity() -> str:
    """Return what decides the meaning of -march=native."""
    try:
        for line in Path('/proc/cpuinfo').read_text(encoding='utf-8').splitlines():
            if line.startswith(('flags', 'Features')):
                return platform.machine() + line
    except OSError:
        pass
    return platform.machine() + platform.processor()
