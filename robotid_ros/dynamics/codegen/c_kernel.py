# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""C source of a graph function that the package compiles for itself: for batches, and for single samples."""

from robotid_ros.dynamics.codegen.expression import Op
from robotid_ros.dynamics.codegen.function import GraphFunction, statements, value_of

# Outputs wider and larger than this bypass the caches, which they would fill; smaller ones stay there for the caller.
_STREAMED_WIDTH = 64
_STREAMED_BYTES = 8 * 2**20


def batch_source(function: GraphFunction) -> str:
    """Return C with ``void <name>(long count, const double *input..., double *output...)``.

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

    body = statements(function, read, 'lanes')
    writes = [f'vec rows{b}[{len(block.references)}];' for b, block in enumerate(function.outputs)]
    ends: list[str] = []
    for b, block in enumerate(function.outputs):
        for column, reference in enumerate(block.references):
            value = value_of(function, reference)
            value = f'splat({value})' if function.graph.kind[reference >> 1] == Op.CONSTANT else value
            writes.append(f'rows{b}[{column}] = {value};')
        ends.append(f'store_samples(rows{b}, out{b}, {len(block.references)});')
    parameters = [f'const double *restrict in{b}' for b in range(len(function.inputs))]
    parameters += [f'double *restrict out{b}' for b in range(len(function.outputs))]
    source = ['#include "codegen/lanes.h"', '', f'static void block({", ".join(parameters)})', '{']
    source += [f'    {line}' for line in body + writes + ends]
    source += ['}', '', *_driver(function, parameters)]
    return '\n'.join(source) + '\n'


def sample_source(function: GraphFunction) -> str:
    """Return C with ``void sample(const double *input..., double *block)`` for one sample.

    The block holds the shared input, which is the last, and behind it gets the output.
    """
    *given, shared = function.inputs
    (output,) = function.outputs

    def read(number: int) -> str:
        block, column = function.input_places[number]
        return f'block[{column}]' if block == len(given) else f'in{block}[{column}]'

    arguments = [f'const double *in{b}' for b in range(len(given))]
    values = (value_of(function, reference) for reference in output.references)
    return '\n'.join(
        [
            '#include <math.h>',
            'static inline double sign_of(double x) { return (double)(x > 0.0) - (double)(x < 0.0); }',
            f'void sample({", ".join([*arguments, "double *block"])})',
            '{',
            *(f'    {line}' for line in statements(function, read, 'c')),
            *(f'    block[{shared.width + k}] = {value};' for k, value in enumerate(values)),
            '}\n',
        ]
    )


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
