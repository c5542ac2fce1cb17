# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""C source of a graph function: the batch kernel that the package compiles for itself."""

from collections.abc import Callable

from robotid_ros.dynamics.codegen.expression import FUNCTIONS, Op
from robotid_ros.dynamics.codegen.function import GraphFunction

__all__ = ['batch_source', 'literal', 'statements']

# Outputs wider and larger than this bypass the caches, which they would fill; smaller ones stay there for the caller.
_STREAMED_WIDTH = 64
_STREAMED_BYTES = 8 * 2**20


def literal(value: float) -> str:
    """Return a double in C, exact when read back."""
    text = repr(float(value))
    return text if any(mark in text for mark in '.en') else text + '.0'


def statements(function: GraphFunction, read: Callable[[int], str], *, lanes: bool) -> list[str]:
    """Return one declaration per operation; the value of node k is ``v<k>``.

    Parameters
    ----------
    function : GraphFunction
    read : callable
        Returns the C expression of an input by number.
    lanes : bool
        True for the vectors of lanes.h, False for doubles.
    """
    graph, kind = function.graph, 'vec' if lanes else 'double'
    schedule = function.schedule
    partners: dict[int, dict[int, int]] = {}
    for node in schedule:
        if graph.kind[node] in (Op.SIN, Op.COS):
            partners.setdefault(graph.first[node], {})[graph.kind[node]] = node
    lines: list[str] = []

    def term(reference: int) -> str:
        node = reference >> 1
        if graph.kind[node] == Op.CONSTANT:
            return literal(graph.constant_value(reference))
        return f'v{node}'

    for node in schedule:
        op = graph.kind[node]
        if op == Op.CONSTANT:
            continue
        first, second = graph.first[node], graph.second[node]
        if op == Op.INPUT:
            lines.append(f'const {kind} v{node} = {read(first)};')
        elif op == Op.ADD:
            subtract = second & 1 and graph.kind[second >> 1] != Op.CONSTANT
            lines.append(f'const {kind} v{node} = {term(first)} {"-" if subtract else "+"} {term(second)};')
        elif op == Op.MULTIPLY:
            lines.append(f'const {kind} v{node} = {term(first)} * {term(second)};')
        elif lanes and op in (Op.SIN, Op.COS):
            pair = partners.pop(first, None)
            if pair is not None:
                names = [f'v{pair[o]}' if o in pair else f'unused{node}' for o in (Op.SIN, Op.COS)]
                lines.append(f'{kind} {names[0]}, {names[1]};')
                lines.append(f'sine_cosine({term(first)}, &{names[0]}, &{names[1]});')
        else:
            name, argument = FUNCTIONS[op].c, f'{"-" if first & 1 else ""}{term(first)}'
            if lanes and op not in (Op.SIGN, Op.RECIPROCAL):
                lines.append(f'vec v{node} = {argument};')
                lines.append(f'for (int k = 0; k < LANES; ++k) v{node}[k] = {name}(v{node}[k]);')
            else:
                lines.append(f'const {kind} v{node} = {name}({argument});')
    return lines


def batch_source(function: GraphFunction) -> str:
    """Return C with ``void <name>(long count, const double *input..., double *output...)``.

    Arrays are contiguous, shape (count, width), or (width,) for shared inputs. LANES samples are
    evaluated at once in vectors of the compiler's vector extension; a rest that does not fill a
    vector goes through padded copies.
    """
    graph, places = function.graph, function.input_places

    def read(number: int) -> str:
        block, column = places[number]
        width = function.inputs[block].width
        if function.inputs[block].shared:
            return f'splat(in{block}[{column}])'
        return f'GATHER(in{block}, {width}, {column})'

    body = statements(function, read, lanes=True)
    writes = [f'vec rows{b}[{len(block.references)}];' for b, block in enumerate(function.outputs)]
    ends: list[str] = []
    for b, block in enumerate(function.outputs):
        for column, reference in enumerate(block.references):
            node = reference >> 1
            if graph.kind[node] == Op.CONSTANT:
                value = f'splat({literal(graph.constant_value(reference))})'
            else:
                value = f'-v{node}' if reference & 1 else f'v{node}'
            writes.append(f'rows{b}[{column}] = {value};')
        ends.append(f'store_samples(rows{b}, out{b}, {len(block.references)});')
    parameters = [f'const double *restrict in{b}' for b in range(len(function.inputs))]
    parameters += [f'double *restrict out{b}' for b in range(len(function.outputs))]
    source = ['#include "codegen/lanes.h"', '', f'static void block({", ".join(parameters)})', '{']
    source += [f'    {line}' for line in body + writes + ends]
    source += ['}', '', *_driver(function, parameters)]
    return '\n'.join(source) + '\n'


def _driver(function: GraphFunction, parameters: list[str]) -> list[str]:
    """Return the function that goes through the samples: whole vectors, then the rest in padded copies."""
    arguments, padded, copies, tails = [], [], [], []
    for b, given in enumerate(function.inputs):
        arguments.append(f'in{b}' if given.shared else f'in{b} + s * {given.width}')
        padded.append(f'in{b}' if given.shared else f'padded{b}')
        if not given.shared:
            copies.append(f'    double padded{b}[LANES * {given.width}] = {{0}};')
            copies.append(f'    memcpy(padded{b}, in{b} + s * {given.width}, sizeof(double) * rest * {given.width});')
    widths = [len(made.references) for made in function.outputs]
    for b, width in enumerate(widths):
        arguments.append(f'out{b} + s * {width}')
        padded.append(f'made{b}')
        copies.append(f'    double made{b}[LANES * {width}];')
        tails.append(f'    memcpy(out{b} + s * {width}, made{b}, sizeof(double) * rest * {width});')
    return [
        f'void {function.name}(long count, {", ".join(parameters)})',
        '{',
        '    long s = 0;',
        *_streamed(widths, arguments),
        '    for (; s + LANES <= count; s += LANES) {',
        f'        block({", ".join(arguments)});',
        '    }',
        '    const unsigned long rest = (unsigned long)(count - s);',
        '    if (rest == 0) {',
        '        return;',
        '    }',
        *copies,
        f'    block({", ".join(padded)});',
        *tails,
        '}',
    ]


def _streamed(widths: list[int], arguments: list[str]) -> list[str]:
    """Return the loop that writes a large output past the caches; nothing where no output is wide enough."""
    widest = max(widths, default=0)
    if widest < _STREAMED_WIDTH:
        return []
    place = f'out{widths.index(widest)} + s * {widest}'
    return [
        f'    if (count > {_STREAMED_BYTES // 8 // widest}) {{',
        f'        double row[LANES * {widest}];',
        '        for (; s + LANES <= count; s += LANES) {',
        f'            block({", ".join("row" if argument == place else argument for argument in arguments)});',
        f'            stream(row, {place}, LANES * {widest});',
        '        }',
        '        finish_stream();',
        '    }',
    ]
