# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Kernels that evaluate a graph function: C for batches and for single samples where possible, numpy otherwise.

C is compiled once; the library is kept in the user's cache directory under a hash of its inputs.
"""

import ctypes
import hashlib
import io
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.dynamics.codegen.expression import GraphFunction
from robotid_ros.dynamics.codegen.source import batch_source, sample_source, statements, value_of
from robotid_ros.model import RobotModel

_DIGEST = hashlib.sha256().digest_size


def cache_directory() -> Path | None:
    """Return the directory of compiled kernels, made if needed; None where others can write to it.

    ``$XDG_CACHE_HOME/robotid_ros``, by default ``~/.cache/robotid_ros``.
    """
    try:
        base = os.environ.get('XDG_CACHE_HOME') or str(Path.home() / '.cache')
        directory = Path(base) / 'robotid_ros'
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory if _private(directory) else None
    except (OSError, RuntimeError):
        return None


def _private(path: Path) -> bool:
    """Return whether a path is this user's, no link, and nobody else can write it."""
    status = path.lstat()
    if not hasattr(os, 'getuid'):
        return True  # no owners and modes to look at
    writable = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not writable and not stat.S_ISLNK(status.st_mode) and status.st_uid == os.getuid()


def keep(name: str, content: bytes) -> Path | None:
    """Write a file of the cache, whole or not at all; None where it cannot be written.

    The SHA-256 of the content is appended (a loader of ELF libraries ignores what follows the last
    section), so that :func:`kept` recognises a damaged file. Two processes may write the same name at
    once.
    """
    directory = cache_directory()
    if directory is None:
        return None
    try:
        handle, scratch = tempfile.mkstemp(dir=directory, suffix='.tmp')
        try:
            with os.fdopen(handle, 'wb') as file:
                file.write(content + hashlib.sha256(content).digest())
            Path(scratch).replace(directory / name)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError:
        return None
    return directory / name


def kept(name: str) -> bytes | None:
    """Return the content of a file of the cache; None if it is absent, damaged or could be another user's."""
    directory = cache_directory()
    if directory is None:
        return None
    try:
        whole = (directory / name).read_bytes() if _private(directory / name) else b''
    except OSError:
        return None
    content, digest = whole[:-_DIGEST], whole[-_DIGEST:]
    return content if hashlib.sha256(content).digest() == digest else None


def save_arrays(key: str, arrays: Mapping[str, Array | IntArray]) -> None:
    """Save arrays under a key; do nothing where the cache cannot be written."""
    file, named = io.BytesIO(), dict[str, Any](arrays)
    np.savez(file, **named)
    keep(f'{key}.npz', file.getvalue())


def load_arrays(key: str) -> dict[str, Array | IntArray] | None:
    """Return what was saved under a key, or None where there is nothing usable."""
    content = kept(f'{key}.npz')
    if content is None:
        return None
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None


def content_key(model: RobotModel, text: str) -> str:
    """Return a hash of an arm's geometry, a text, and the source of this package's dynamics.

    The text says everything else that the result depends on.
    """
    digest = hashlib.sha256(f'{_generator_identity()} {text} {model.joint_types}'.encode())
    for array in (model.placements, model.axes, model.gravity, model.coupling):
        digest.update(array.tobytes())
    return digest.hexdigest()[:32]


@lru_cache(maxsize=1)
def _generator_identity() -> str:
    """Return a hash of the modules that generate graphs, so that those of other versions are not reused."""
    modules = sorted(Path(__file__).parents[1].rglob('*.py'))
    return hashlib.sha256(b''.join(path.read_bytes() for path in modules)).hexdigest()


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


def compiled_kernel(name: str, key: str, source: Callable[[], str], function: str) -> CompiledKernel | None:
    """Return a compiled function of a library, or None without a compiler or a cache directory.

    The library, whose file begins with ``name``, is found by a hash of all its inputs: the key (a hash of what the
    source is made from), the compiler, its flags, the processor, and the headers that sources include. It is loaded
    only if it and its directory belong to this user, nobody else can write them, and its content has the hash that was
    stored with it; otherwise it is built again, for which ``source`` is called. ``ROBOTID_NO_COMPILER=1`` in the
    environment turns compiling off.
    """
    compiler, directory = find_compiler(), cache_directory()
    if compiler is None or directory is None:
        return None
    try:
        identity = '\0'.join((name, key, *_FLAGS, _identity(compiler), _processor_identity()))
        file = f'{name}-{hashlib.sha256(identity.encode()).hexdigest()[:32]}.so'
        for fresh in (False, True):
            if fresh or kept(file) is None:
                built = _build(compiler, source())
                if built is None or keep(file, built) is None:
                    return None
            try:
                return CompiledKernel(ctypes.CDLL(str(directory / file)), function)
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
        for native in (['-march=native'], []):  # not every compiler has it
            command = [compiler, *_FLAGS, *native, '-I', str(INCLUDE), str(code), '-o', str(result), '-lm']
            try:
                done = subprocess.run(command, capture_output=True, timeout=_TIME_LIMIT, check=False)
            except subprocess.TimeoutExpired:
                return None
            if done.returncode == 0 and result.is_file():
                return result.read_bytes()
    return None


def _identity(compiler: str) -> str:
    """Return a text that identifies a compiler and the headers."""
    real = Path(compiler).resolve()
    headers = (Path(__file__).with_name(name).read_text(encoding='utf-8') for name in _HEADERS)
    return '\0'.join((f'{real} {real.stat().st_size} {real.stat().st_mtime_ns}', *headers))


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


# Samples evaluated together: long enough to make numpy's cost per call small, short enough for the second-level cache.
_BLOCK = 2048


class NumpyKernel:
    """A graph function as generated Python over blocks of samples; called like :class:`CompiledKernel`."""

    __slots__ = ('_evaluate', '_function')

    def __init__(self, function: GraphFunction) -> None:
        lines = statements(function, lambda block, column: f'given[{block}][{column}]', 'python')
        lines += [f'made[{k}] = {value_of(function, r)}' for k, r in enumerate(function.references)]
        names: dict[str, Any] = {'np': np}
        exec('\n    '.join(['def evaluate(given, made):', *_released(lines), 'return None']), names)
        self._evaluate, self._function = names['evaluate'], function

    def __call__(self, inputs: Sequence[Array], output: Array) -> None:
        """Fill the output, shape (N, width), from one array per input block: (N, width), or (width,) where shared."""
        for start in range(0, len(output), _BLOCK):
            rows = slice(start, start + _BLOCK)
            pairs = zip(self._function.inputs, inputs, strict=True)
            given = [x if block.shared else np.ascontiguousarray(x[rows].T) for block, x in pairs]
            made = np.empty((output.shape[1], len(output[rows])))
            self._evaluate(given, made)
            output[rows] = made.T


Kernel: TypeAlias = CompiledKernel | NumpyKernel
Single: TypeAlias = Callable[[Array, Array, Array], Array | None]


def _released(lines: list[str]) -> list[str]:
    """Return statements that delete every variable after its last use, so that arrays stay in the cache."""
    last: dict[str, int] = {}
    for number, line in enumerate(lines):
        last |= dict.fromkeys(re.findall(r'\bv\d+\b', line), number)
    result = []
    for number, line in enumerate(lines):
        gone = [name for name in dict.fromkeys(re.findall(r'\bv\d+\b', line)) if last[name] == number]
        result += [line, f'del {", ".join(gone)}'] if gone else [line]
    return result


class KernelStore:
    """Kernels made at first use; a pickled copy is empty."""

    __slots__ = ('_kernels', 'single')

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}
        self.single: Single | None = None

    def __reduce__(self) -> tuple[type['KernelStore'], tuple[()]]:
        return (KernelStore, ())

    def get(self, name: str, key: str, make: Callable[[], GraphFunction], *, compiled: bool = True) -> Kernel:
        """Return the kernel of this name, making it if it is not there.

        Compiled where there are a C compiler and a cache directory; otherwise, or if asked for, in numpy. The key is a
        hash of what the function is made from; ``make`` is called only if it is not in the cache.
        """
        entry = name if compiled else f'{name} in numpy'
        if entry not in self._kernels:
            found = compiled_kernel(name, key, lambda: batch_source(make()), name) if compiled else None
            self._kernels[entry] = NumpyKernel(make()) if found is None else found
        return self._kernels[entry]


class _Method(ctypes.Structure):
    """PyMethodDef of Python's stable ABI."""

    _fields_ = (
        ('name', ctypes.c_char_p),
        ('function', ctypes.c_void_p),
        ('flags', ctypes.c_int),
        ('text', ctypes.c_char_p),
    )


_FASTCALL = 0x80
_METHODS: list[_Method] = []  # a function of Python's refers to its definition


def single_sample(
    load: Callable[[], CompiledKernel | None], constants: Array, n: int, shape: tuple[int, ...]
) -> Single:
    """Return a function of q, dq and ddq, each of shape (1, n), that evaluates one sample at the least cost.

    It returns the result in the given shape, or None if its arguments are not plain float64 arrays of shape (1, n) or
    there is no compiler. ``load`` returns what one_sample.h makes, and is called until it does; the constants are
    handed to it.

    One C function without vectors takes a tenth of the time that ctypes takes to call it, and numpy longer to give an
    array's address. So the interpreter calls it as its own, and it reads the arrays. The interpreter's lock is
    kept: to get it back could cost a loop 5 ms where other threads compute.
    """
    call: Callable[..., bool] | None = None
    empty, own = np.empty, np.concatenate([[float(n)], constants])

    def evaluate(q: Array, dq: Array, ddq: Array) -> Array | None:
        nonlocal call
        if call is None:
            kernel = load() if getattr(q, 'shape', ()) == (1, n) and _layout_is_known() else None
            if kernel is None:
                return None
            # The C function becomes one of the interpreter's, with its self.
            _METHODS.append(_Method(b'sample', ctypes.cast(kernel.call, ctypes.c_void_p), _FASTCALL, None))
            prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
            made_of = cast('Any', prototype(('PyCFunction_NewEx', ctypes.pythonapi)))
            call = cast('Callable[..., bool]', made_of(ctypes.addressof(_METHODS[-1]), own, None))
        made = empty(shape)
        return made if call(q, dq, ddq, made) else None

    return evaluate


@lru_cache(maxsize=1)
def _layout_is_known() -> bool:
    """Whether this interpreter's objects and numpy's arrays are laid out as one_sample.h reads them."""
    array, word = np.zeros((1, 2)), ctypes.sizeof(ctypes.c_void_p)
    head = object.__basicsize__
    if sys.implementation.name != 'cpython' or np.ndarray.__basicsize__ < head + 7 * word:
        return False

    def read(place: int, kind: Any = ctypes.c_void_p) -> Any:
        return kind.from_address(id(array) + place).value

    return bool(
        read(head - word) == id(np.ndarray)
        and read(head) == array.ctypes.data
        and read(head + word, ctypes.c_int) == array.ndim
        and read(head + 3 * word) == read(head + 2 * word) + array.ndim * word  # strides behind the shape
        and read(head + 5 * word) == id(array.dtype)
        and read(head + 6 * word, ctypes.c_int) == array.flags.num
    )


def single_function(function: GraphFunction, coefficients: Array) -> Single:
    """Return :func:`single_sample` of a graph function.

    The function's first inputs are q, dq and ddq, then come the coefficients, shape (m,), which all samples share.
    """
    n = function.inputs[0].width

    def load() -> CompiledKernel | None:
        name = f'{function.name}_sample'
        return compiled_kernel(name, function.key, lambda: sample_source(function), 'sample_from_python')

    return single_sample(load, coefficients, n, (1, n))
