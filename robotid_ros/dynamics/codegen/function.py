# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A traced formula as a function of arrays, and its numpy kernel."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import FUNCTIONS, Graph, Op, OperationCount

__all__ = ['GraphFunction', 'InputBlock', 'NumpyKernel', 'OutputBlock']

# Samples evaluated together: the live rows of a typical arm's graph fit the second-level cache.
_BLOCK = 2048

_Instruction: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class InputBlock:
    """Consecutive inputs that come as one array.

    Attributes
    ----------
    name : str
    width : int
    shared : bool
        One row for all samples, shape (width,), instead of (N, width).
    """

    name: str
    width: int
    shared: bool = False


@dataclass(frozen=True, slots=True)
class OutputBlock:
    """Consecutive outputs that go into one array, shape (N, len(references))."""

    name: str
    references: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphFunction:
    """A graph with named inputs and outputs.

    Attributes
    ----------
    name : str
        A C identifier.
    graph : Graph
    inputs : tuple of InputBlock
        The graph's inputs are numbered through all blocks, in order.
    outputs : tuple of OutputBlock
    """

    name: str
    graph: Graph
    inputs: tuple[InputBlock, ...]
    outputs: tuple[OutputBlock, ...]

    @cached_property
    def references(self) -> tuple[int, ...]:
        """All outputs, block after block."""
        return tuple(reference for block in self.outputs for reference in block.references)

    @cached_property
    def schedule(self) -> list[int]:
        """The nodes to evaluate, in order."""
        return self.graph.schedule(self.references)

    @cached_property
    def key(self) -> str:
        """A hash of everything that its value depends on."""
        digest = hashlib.sha256(repr((self.name, self.inputs, self.outputs)).encode())
        for array in self.graph.arrays():
            digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def operations(self) -> OperationCount:
        """What one sample costs."""
        return self.graph.count(self.references)

    @cached_property
    def input_places(self) -> list[tuple[int, int]]:
        """For each input number its block and its column in it."""
        return [(b, k) for b, block in enumerate(self.inputs) for k in range(block.width)]


@dataclass(frozen=True, kw_only=True, eq=False)
class NumpyKernel:
    """Evaluates a graph function node by node on blocks of samples."""

    function: GraphFunction
    _program: list[_Instruction] = field(init=False, repr=False)
    _rows: int = field(init=False, repr=False)
    _fills: list[tuple[int, float]] = field(init=False, repr=False)
    _uses: list[tuple[int, int]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        program, rows, fills, uses = _assemble(self.function)
        object.__setattr__(self, '_program', program)
        object.__setattr__(self, '_rows', rows)
        object.__setattr__(self, '_fills', fills)
        object.__setattr__(self, '_uses', uses)

    def __call__(self, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        """Fill the output arrays.

        Parameters
        ----------
        inputs : sequence of ndarray
            One per input block, shape (N, width), or (width,) where shared.
        outputs : sequence of ndarray, shape (N, width)
            One per output block.
        """
        blocks = self.function.inputs
        widths = [len(block.references) for block in self.function.outputs]
        total = len(outputs[0])
        size = min(_BLOCK, max(total, 1))
        rows = np.empty((self._rows, size))
        for row, value in self._fills:
            rows[row] = value
        program = [
            (getattr(np, name), *(rows[x] if isinstance(x, int) else x for x in arguments))
            for name, *arguments in self._program
        ]
        for start in range(0, total, size):
            stop = min(start + size, total)
            for number, row in self._uses:
                block, column = self.function.input_places[number]
                array = inputs[block]
                rows[row, : stop - start] = array[column] if blocks[block].shared else array[start:stop, column]
            for operation, *arguments in program:
                operation(*arguments)
            first = 0
            for array, width in zip(outputs, widths, strict=True):
                array[start:stop] = rows[first : first + width, : stop - start].T
                first += width


def _assemble(
    function: GraphFunction,
) -> tuple[list[_Instruction], int, list[tuple[int, float]], list[tuple[int, int]]]:
    """Return the program on rows of a buffer, how many rows, constant rows, and where inputs go.

    Rows 0..P-1 are the outputs; an operation whose value is an output writes there at once. Other
    rows are given back after their last use. In the program an int is a row and a float a constant.
    """
    graph, schedule, references = function.graph, function.schedule, function.references
    position = {node: k for k, node in enumerate(schedule)}
    last = dict(position)
    for node in schedule:
        for argument in graph.arguments(node):
            last[argument >> 1] = max(last[argument >> 1], position[node])
    place: dict[int, int] = {}
    for row, reference in enumerate(references):
        if not reference & 1 and graph.kind[reference >> 1] not in (Op.CONSTANT, Op.INPUT):
            place.setdefault(reference >> 1, row)
    rest_of_outputs = {r >> 1 for k, r in enumerate(references) if place.get(r >> 1) != k}
    rows, free = len(references), list[int]()
    fills: list[tuple[int, float]] = []
    uses: list[tuple[int, int]] = []
    program: list[_Instruction] = []

    def value(reference: int) -> int | float:
        node = reference >> 1
        return graph.constant_value(reference) if graph.kind[node] == Op.CONSTANT else place[node]

    for k, node in enumerate(schedule):
        kind = graph.kind[node]
        if kind == Op.CONSTANT:
            continue
        arguments = graph.arguments(node)
        if node not in place:
            if not free or kind == Op.INPUT:
                free.append(rows)
                rows += 1
            place[node] = free.pop()
        if kind == Op.INPUT:
            uses.append((graph.first[node], place[node]))
        elif kind == Op.ADD:
            subtract = arguments[1] & 1 and graph.kind[arguments[1] >> 1] != Op.CONSTANT
            program.append(('subtract' if subtract else 'add', value(arguments[0]), value(arguments[1]), place[node]))
        elif kind == Op.MULTIPLY:
            program.append(('multiply', value(arguments[0]), value(arguments[1]), place[node]))
        else:
            source = value(arguments[0])
            if arguments[0] & 1:
                program.append(('negative', source, place[node]))
                source = place[node]
            program.append((FUNCTIONS[kind].numpy, source, place[node]))
        for argument in {a >> 1 for a in arguments}:
            reusable = graph.kind[argument] not in (Op.CONSTANT, Op.INPUT) and place[argument] >= len(references)
            if last[argument] == k and reusable and argument not in rest_of_outputs:
                free.append(place[argument])
    for row, reference in enumerate(references):
        node = reference >> 1
        if graph.kind[node] == Op.CONSTANT:
            fills.append((row, graph.constant_value(reference)))
        elif reference & 1:
            program.append(('negative', place[node], row))
        elif place[node] != row:
            program.append(('copyto', row, place[node]))
    return program, rows, fills, uses
