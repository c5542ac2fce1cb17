# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The fastest way to evaluate a graph function here: compiled where possible, numpy otherwise."""

from collections.abc import Callable, Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.compiler import CompiledKernel, compiled_kernel
from robotid_ros.dynamics.codegen.function import GraphFunction, NumpyKernel
from robotid_ros.errors import DataError

__all__ = ['Kernel', 'KernelStore', 'checked_output']

Kernel = CompiledKernel | NumpyKernel


class KernelStore:
    """Kernels made at first use; a copy sent to another process starts empty and makes its own."""

    __slots__ = ('_kernels',)

    def __init__(self) -> None:
        self._kernels: dict[str, Kernel] = {}

    def __reduce__(self) -> tuple[type['KernelStore'], tuple[()]]:
        return (KernelStore, ())

    def get(
        self, name: str, key: Callable[[], str], make: Callable[[], GraphFunction], *, compiled: bool = True
    ) -> Kernel:
        """Return the kernel of this name, making it if it is not there.

        Compiled where a C compiler and a cache directory are at hand; else, or if asked for, in numpy.

        Parameters
        ----------
        name : str
            Of the function.
        key, make : callable
            See :func:`compiled_kernel`.
        compiled : bool
            False for the numpy kernel.
        """
        entry = name if compiled else f'{name} in numpy'
        if entry not in self._kernels:
            made = compiled_kernel(name, key(), make) if compiled else None
            self._kernels[entry] = made or NumpyKernel(function=make())
        return self._kernels[entry]


def checked_output(out: Array | None, shape: Sequence[int]) -> Array:
    """Return the array to write to: a new one, or the caller's after checking it.

    Raises
    ------
    DataError
        If ``out`` is not a writeable, contiguous float64 array of this shape.
    """
    if out is None:
        return np.empty(tuple(shape))
    if out.shape != tuple(shape) or out.dtype != np.float64 or not out.flags.c_contiguous or not out.flags.writeable:
        raise DataError(f'out: expected a writeable contiguous float64 array of shape {tuple(shape)}, got {out.shape}')
    return out
