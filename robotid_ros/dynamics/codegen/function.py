# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A traced formula as a function of arrays, and as statements of a language."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import FUNCTIONS, Graph, Op, OperationCount

SINES_COSINES = Path(__file__).with_name('sines_cosines.h').read_text(encoding='ascii').partition('*/\n\n')[2]
"""C99 and C++11; includes stand in the sources."""


@dataclass(frozen=True, slots=True)
class InputBlock:
    """Consecutive inputs in one array, of shape (N, width), or (width,) where one row is shared by all samples."""

    name: str
    width: int
    shared: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphFunction:
    """A graph with named inputs, and outputs that make the rows of one array."""

    name: str  # a C identifier
    graph: Graph
    inputs: tuple[InputBlock, ...]  # the graph's inputs are numbered through all blocks, in order
    references: tuple[int, ...]  # the outputs

    @cached_property
    def schedule(self) -> list[int]:
        """The nodes to evaluate, in order."""
        return self.graph.schedule(self.references)

    @cached_property
    def key(self) -> str:
        """A hash of everything that its value depends on."""
        digest = hashlib.sha256(repr((self.name, self.inputs, self.references)).encode())
        for array in self.graph.arrays():
            digest.update(array.tobytes())
        return digest.hexdigest()

    @property
    def uses_sines(self) -> bool:
        """Whether it has sines or cosines."""
        return any(self.graph.kind[node] in (Op.SIN, Op.COS) for node in self.schedule)

    @property
    def operations(self) -> OperationCount:
        """Operations of one sample."""
        return self.graph.count(self.references)

    @cached_property
    def input_places(self) -> list[tuple[int, int]]:
        """For each input number its block and its column in it."""
        return [(b, k) for b, block in enumerate(self.inputs) for k in range(block.width)]


def with_numbers(function: GraphFunction, name: str, values: Array) -> GraphFunction:
    """Return a function with numbers for its last inputs, which all samples share; what becomes constant is folded."""
    old, graph, first = function.graph, Graph(), len(function.input_places) - len(values)

    def number(node: int, _: object) -> int | None:
        place = old.first[node] - first
        return graph.constant_reference(float(values[place])) if old.kind[node] == Op.INPUT and place >= 0 else None

    references = old.rewritten(function.schedule, function.references, graph, number)
    return GraphFunction(name=name, graph=graph, inputs=function.inputs[:-1], references=references)


def literal(value: float) -> str:
    """Return a double in C and Python, exact when read back."""
    text = repr(float(value))
    return text if any(mark in text for mark in '.en') else text + '.0'


def value_of(function: GraphFunction, reference: int) -> str:
    """Return the expression of a value after its statement: a literal, or the variable, perhaps negated."""
    graph, node = function.graph, reference >> 1
    if graph.kind[node] == Op.CONSTANT:
        return literal(graph.constant_value(reference))
    return f'-v{node}' if reference & 1 else f'v{node}'


def statements(
    function: GraphFunction, read: Callable[[int], str], style: Literal['python', 'c', 'lanes']
) -> list[str]:
    """Return one assignment per operation; the value of node k is ``v<k>``.

    ``read`` returns the expression of an input by number. The style says whether the variables are numpy arrays,
    doubles, or the vectors of lanes.h. Doubles need :data:`SINES_COSINES` where ``uses_sines``: all sines and cosines
    are computed at once, as soon as their angles are known, so that a compiler makes vectors of them.
    """
    return _staged(function, read) if style == 'c' else _assignments(function, function.schedule, read, style)


def _staged(function: GraphFunction, read: Callable[[int], str]) -> list[str]:
    """Return C in stages: what the next sines and cosines need, these, and so on, and the rest."""
    graph, stages = function.graph, dict[int, int]()
    angles: dict[int, dict[int, dict[int, int]]] = {}
    for node in function.schedule:
        stages[node] = max((stages[a >> 1] for a in graph.arguments(node)), default=0)
        if graph.kind[node] in (Op.SIN, Op.COS):
            stages[node] += 1
            angles.setdefault(stages[node], {}).setdefault(graph.first[node], {})[graph.kind[node]] = node
    lines, done = list[str](), set[int]()
    for stage, pairs in sorted(angles.items()):
        needed = [node for node in graph.schedule(pairs) if node not in done]
        lines += _assignments(function, needed, read, 'c')
        size, values = len(pairs), ', '.join(value_of(function, angle) for angle in pairs)
        lines += [
            f'const double angle{stage}[{size}] = {{{values}}};',
            f'double sine{stage}[{size}], cosine{stage}[{size}];',
            f'sines_cosines({size}, angle{stage}, sine{stage}, cosine{stage});',
        ]
        done.update(needed)
        for k, pair in enumerate(pairs.values()):
            for kind, node in pair.items():
                name = 'sine' if kind == Op.SIN else 'cosine'
                lines.append(f'const double v{node} = {name}{stage}[{k}];')
                done.add(node)
    return lines + _assignments(function, [node for node in function.schedule if node not in done], read, 'c')


def _assignments(
    function: GraphFunction, schedule: list[int], read: Callable[[int], str], style: Literal['python', 'c', 'lanes']
) -> list[str]:
    """Return the assignments of some nodes, one after the other."""
    graph = function.graph
    declared, end = {'python': ('', ''), 'c': ('const double ', ';'), 'lanes': ('const vec ', ';')}[style]
    pairs: dict[int, dict[int, int]] = {}
    for node in schedule:
        if graph.kind[node] in (Op.SIN, Op.COS):
            pairs.setdefault(graph.first[node], {})[graph.kind[node]] = node
    lines: list[str] = []
    for node in schedule:
        kind, first, second = graph.kind[node], graph.first[node], graph.second[node]
        if kind == Op.CONSTANT:
            continue
        if kind == Op.INPUT:
            text = read(first)
        elif kind == Op.ADD:
            subtract = second & 1 and graph.kind[second >> 1] != Op.CONSTANT
            text = f'{value_of(function, first)} {"-" if subtract else "+"} '
            text += value_of(function, second ^ 1 if subtract else second)
        elif kind == Op.MULTIPLY:
            text = f'{value_of(function, first)} * {value_of(function, second)}'
        elif style == 'lanes' and kind in (Op.SIN, Op.COS):
            if first in pairs:
                pair = pairs.pop(first)
                names = [f'v{pair[op]}' if op in pair else f'unused{node}' for op in (Op.SIN, Op.COS)]
                lines.append(f'vec {names[0]}, {names[1]};')
                lines.append(f'sine_cosine({value_of(function, first)}, &{names[0]}, &{names[1]});')
            continue
        else:
            name = f'np.{FUNCTIONS[kind].numpy}' if style == 'python' else FUNCTIONS[kind].c
            argument = value_of(function, first)
            if style == 'lanes' and kind not in (Op.SIGN, Op.RECIPROCAL):
                lines.append(f'vec v{node} = {argument};')
                lines.append(f'for (int k = 0; k < LANES; ++k) v{node}[k] = {name}(v{node}[k]);')
                continue
            text = f'{name}({argument})'
        lines.append(f'{declared}v{node} = {text}{end}')
    return lines
