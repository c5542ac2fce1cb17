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
