# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Kernels that evaluate a graph function: C for batches and for single samples where possible, numpy otherwise."""

import ctypes
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.compiler import CompiledKernel, compiled_kernels
from robotid_ros.dynamics.codegen.expression import Op
from robotid_ros.dynamics.codegen.function import SINES_COSINES, GraphFunction, statements, value_of

# Outputs wider and larger than this bypass the caches, which they would fill; smaller ones stay there for the caller.
_STREAMED_WIDTH = 64
_STREAMED_BYTES = 8 * 2**20


def batch_source(function: GraphFunction) -> str:
    """Return C with ``void <name>(long count, const double *input..., double *output)``.

    Arrays are contiguous, shape (count, width), or (width,) for shared inputs. LANES samples are
    evaluated at once in vectors of the compiler's vector extension; a rest that does not fill a
    vector goes through padded copies.
    """
    places = function.input_places

    def read(number: int) -> str:
        block, column = places[number]
        width = function.inputs[block].width
        if function.inputs[block].shared:
            return f'splat(in{block}[{column}])'
        return f'GATHER(in{block}, {width}, {column})'

    parameters = [*(f'const double *restrict in{b}' for b in range(len(function.inputs))), 'double *restrict out']
    writes = []
    for k, reference in enumerate(function.references):
        value = value_of(function, reference)
        constant = function.graph.kind[reference >> 1] == Op.CONSTANT
        writes.append(f'rows[{k}] = {f"splat({value})" if constant else value};')
    lines = [
        *statements(function, read, 'lanes'),
        f'vec rows[{len(writes)}];',
        *writes,
        f'store_samples(rows, out, {len(writes)});',
    ]
    source = ['#include "codegen/lanes.h"', '', f'static void block({", ".join(parameters)})', '{']
    source += [f'    {line}' for line in lines]
    source += ['}', '', *_driver(function, parameters)]
    return '\n'.join(source) + '\n'


def sample_source(function: GraphFunction) -> str:
    """Return C with ``sample_from_python`` of one_sample.h; the constants are the shared input, which is the last."""
    *given, _ = function.inputs

    def read(number: int) -> str:
        block, column = function.input_places[number]
        return f'constants[{column}]' if block == len(given) else f'in{block}[{column}]'

    arguments = [f'const double *in{b}' for b in range(len(given))]
    values = (value_of(function, reference) for reference in function.references)
    return '\n'.join(
        [
            '#include <float.h>',
            '#include <math.h>',
            '#include <string.h>',
            '#include "codegen/one_sample.h"',
            SINES_COSINES,
            'static inline double sign_of(double x) { return (double)(x > 0.0) - (double)(x < 0.0); }',
            f'static void sample({", ".join(arguments)}, const double *constants, double *result)',
            '{',
            *(f'    {line}' for line in statements(function, read, 'c')),
            *(f'    result[{k}] = {value};' for k, value in enumerate(values)),
            '}',
            'FROM_PYTHON(sample)\n',
        ]
    )


def _driver(function: GraphFunction, parameters: list[str]) -> list[str]:
    """Return the function that goes through the samples: whole vectors, then the rest in padded copies."""
    arguments, padded, copies = [], [], []
    for b, given in enumerate(function.inputs):
        arguments.append(f'in{b}' if given.shared else f'in{b} + s * {given.width}')
        padded.append(f'in{b}' if given.shared else f'padded{b}')
        if not given.shared:
            copies.append(f'    double padded{b}[LANES * {given.width}] = {{0}};')
            copies.append(f'    memcpy(padded{b}, in{b} + s * {given.width}, sizeof(double) * rest * {given.width});')
    width = len(function.references)
    return [
        f'void {function.name}(long count, {", ".join(parameters)})',
        '{',
        '    long s = 0;',
        *_streamed(width, arguments),
        '    for (; s + LANES <= count; s += LANES) {',
        f'        block({", ".join(arguments)}, out + s * {width});',
        '    }',
        '    const unsigned long rest = (unsigned long)(count - s);',
        '    if (rest == 0) {',
        '        return;',
        '    }',
        *copies,
        f'    double made[LANES * {width}];',
        f'    block({", ".join(padded)}, made);',
        f'    memcpy(out + s * {width}, made, sizeof(double) * rest * {width});',
        '}',
    ]


def _streamed(width: int, arguments: list[str]) -> list[str]:
    """Return the loop that writes a large output past the caches; nothing where it is not wide enough."""
    if width < _STREAMED_WIDTH:
        return []
    return [
        f'    if (count > {_STREAMED_BYTES // 8 // width}) {{',
        f'        double row[LANES * {width}];',
        '        for (; s + LANES <= count; s += LANES) {',
        f'            block({", ".join(arguments)}, row);',
        f'            stream(row, out + s * {width}, LANES * {width});',
        '        }',
        '        finish_stream();',
        '    }',
    ]


_SAMPLE = 'sample_from_python'

# Samples evaluated together: long enough to make numpy's cost per call small, short enough for the second-level cache.
_BLOCK = 2048


class NumpyKernel:
    """A graph function as generated Python over blocks of samples; called like :class:`CompiledKernel`."""

    __slots__ = ('_evaluate', '_function')

    def __init__(self, function: GraphFunction) -> None:
        def read(number: int) -> str:
            block, column = function.input_places[number]
            return f'given[{block}][{column}]'

        lines = statements(function, read, 'python')
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
            made = _compiled(name, key, make) if compiled else None
            self._kernels[entry] = made or NumpyKernel(make())
        return self._kernels[entry]


def _compiled(name: str, key: str, make: Callable[[], GraphFunction]) -> CompiledKernel | None:
    found = compiled_kernels(name, key, lambda: batch_source(make()), [name])
    return None if found is None else found[name]


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
            call = _from_python(kernel, own)
        made = empty(shape)
        return made if call(q, dq, ddq, made) else None

    return evaluate


def _from_python(kernel: CompiledKernel, own: Array) -> Callable[..., bool]:
    """Return a C function as one of the interpreter's, with its self."""
    _METHODS.append(_Method(b'sample', ctypes.cast(kernel.call, ctypes.c_void_p), _FASTCALL, None))
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    make = prototype(('PyCFunction_NewEx', ctypes.pythonapi))
    function: Any = make(ctypes.addressof(_METHODS[-1]), own, None)
    return cast('Callable[..., bool]', function)


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
    name, n = f'{function.name}_sample', function.inputs[0].width

    def load() -> CompiledKernel | None:
        found = compiled_kernels(name, function.key, lambda: sample_source(function), [_SAMPLE])
        return None if found is None else found[_SAMPLE]

    return single_sample(load, coefficients, n, (1, n))
