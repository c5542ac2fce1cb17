# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Source made from graph functions: kernels in C, and minimal models in C99, C++ and Python."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import FUNCTIONS, GraphFunction, Op, with_numbers
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel

SINES_COSINES = Path(__file__).with_name('sines_cosines.h').read_text(encoding='ascii').partition('*/\n\n')[2]
"""C99 and C++11; includes stand in the sources."""
_INCLUDES = ('#include <float.h>', '#include <math.h>', '#include <string.h>')

Read: TypeAlias = Callable[[int, int], str]  # from the block of an input and its column there to its expression
Style: TypeAlias = Literal['python', 'c', 'lanes']


def value_of(function: GraphFunction, reference: int) -> str:
    """Return the expression of a value after its statement: a literal, or the variable, perhaps negated."""
    graph, node = function.graph, reference >> 1
    if graph.kind[node] == Op.CONSTANT:
        return repr(graph.constant_value(reference))  # of a double in C and Python, exact when read back
    return f'-v{node}' if reference & 1 else f'v{node}'


def statements(function: GraphFunction, read: Read, style: Style) -> list[str]:
    """Return one assignment per operation; the value of node k is ``v<k>``.

    The style says whether the variables are numpy arrays, doubles, or the vectors of lanes.h. Doubles need
    :data:`SINES_COSINES` where ``uses_sines``: all sines and cosines are computed at once, as soon as their angles are
    known, so that a compiler makes vectors of them.
    """
    return _staged(function, read) if style == 'c' else _assignments(function, function.schedule, read, style)


def _staged(function: GraphFunction, read: Read) -> list[str]:
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


def _assignments(function: GraphFunction, schedule: list[int], read: Read, style: Style) -> list[str]:
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
            text = read(*function.input_places[first])
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
            in_numpy, in_c, _, _ = FUNCTIONS[kind]
            name = f'np.{in_numpy}' if style == 'python' else in_c
            argument = value_of(function, first)
            if style == 'lanes' and kind not in (Op.SIGN, Op.RECIPROCAL):
                lines.append(f'vec v{node} = {argument};')
                lines.append(f'for (int k = 0; k < LANES; ++k) v{node}[k] = {name}(v{node}[k]);')
                continue
            text = f'{name}({argument})'
        lines.append(f'{declared}v{node} = {text}{end}')
    return lines


def batch_source(function: GraphFunction) -> str:
    """Return C with ``void <name>(long count, const double *input..., double *output)``.

    Arrays are contiguous, shape (count, width), or (width,) for shared inputs. LANES samples are
    evaluated at once in vectors of the compiler's vector extension; a rest that does not fill a
    vector goes through padded copies.
    """

    def read(block: int, column: int) -> str:
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

    def read(block: int, column: int) -> str:
        return f'constants[{column}]' if block == len(given) else f'in{block}[{column}]'

    arguments = [f'const double *in{b}' for b in range(len(given))]
    values = (value_of(function, reference) for reference in function.references)
    return '\n'.join(
        [
            *_INCLUDES,
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


SUMMARY = {
    'inverse_dynamics': 'Joint torques that make the arm move as given, {friction}.',
    'default_inverse_dynamics': 'The same of the parameters of the tables, with all that is constant folded: faster.',
    'rigid_body': 'The same without friction and offsets: inertia, Coriolis and centrifugal forces, gravity.',
    'gravity': 'Joint torques that hold the arm at rest against gravity.',
    'friction': 'Joint torques of friction and offsets alone; load is the torque of rigid_body.',
    'regressor': 'Regressor of the base parameters, which come first among the parameters.',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedCode:
    """Contents of a source file, with p parameters: base parameters, then those of friction."""

    model: RobotModel
    names: tuple[str, ...]  # of the parameters, as the units
    units: tuple[str, ...]
    parameters: Array  # values for the tables, shape (p,)
    base: int  # number of base parameters among them
    coefficient_map: Array  # shape (m, p)
    coefficients: Array  # values for the tables, shape (m,)
    functions: Mapping[str, GraphFunction]  # by the names in SUMMARY
    friction: str  # 'with friction (...)' or 'without friction'

    @property
    def c_functions(self) -> dict[str, GraphFunction]:
        """The functions of C and C++: these, and the inverse dynamics of the arm's own parameters."""
        name, whole = 'default_inverse_dynamics', self.functions['inverse_dynamics']
        folded = with_numbers(whole, name, self.coefficients)
        return {'inverse_dynamics': whole, name: folded, **self.functions}

    def summary(self, function: str) -> str:
        """Return a sentence that says what a function returns."""
        return SUMMARY[function].format(friction=self.friction)


def as_comment(text: str) -> str:
    """Return a name that is safe in a comment or a string: letters, digits and some signs."""
    return re.sub(r'[^A-Za-z0-9_ .,:+()\[\]-]', '_', text)[:200]


def joint_units(model: RobotModel) -> list[str]:
    """Return for each joint a line with its name and the units of q, dq, ddq and tau."""
    units = {
        'revolute': 'q [rad], dq [rad/s], ddq [rad/s^2], tau [N*m]',
        'prismatic': 'q [m], dq [m/s], ddq [m/s^2], tau [N]',
    }
    names = (as_comment(name) for name in model.joint_names)
    return [f'{name}: {units[kind]}' for name, kind in zip(names, model.joint_types, strict=True)]


# Keywords up to C++23, other spellings of operators, and what no namespace of a user may be called
_CPP_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class compl
concept const consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete
do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long main mutable
namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast
requires return short signed sizeof static static_assert static_cast std struct switch template this thread_local
throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_LAYOUT = ' Row by row: tau[i] = sum over k of regressor_rows[i * BASE_PARAMETERS + k] * parameters[k].'


def c_source(code: GeneratedCode, prefix: str = '', header: str | None = None) -> str:
    """Return the source file; see :meth:`MinimalModel.c_source`."""
    _check_prefix(prefix)
    lines = [_title(code), *_INCLUDES]
    if header is not None:
        lines += [f'#include "{header}"']
    else:
        lines += ['', *_sizes(code, prefix), '', *_declarations(code, prefix)]
    lines += _helpers(code, 'static')
    lines += ['', *_tables(code, prefix), '', *_coefficient_function(code, prefix)]
    for name, function in code.c_functions.items():
        lines += ['', *_function(function, _signature(code, name, function, prefix), name)]
    return '\n'.join(lines) + '\n'


def c_header(code: GeneratedCode, prefix: str = '', name: str = 'inverse_dynamics.h') -> str:
    """Return the header file; see :meth:`MinimalModel.c_header`."""
    _check_prefix(prefix)
    lines = [
        *_about(code, prefix),
        '',
        '#ifdef __cplusplus',
        'extern "C" {',
        '#endif',
        '',
        *_sizes(code, prefix),
        '',
        *_declarations(code, prefix),
        '',
        '#ifdef __cplusplus',
        '}',
        '#endif',
    ]
    return _guarded(_title(code), f'{prefix}{name}', lines)


def cpp_header(code: GeneratedCode, namespace: str, name: str = 'inverse_dynamics.hpp') -> str:
    """Return one header for C++11 and later; see :meth:`MinimalModel.cpp_header`."""
    _check_prefix(namespace or '-')
    if namespace in _CPP_WORDS.split():
        raise ModelError(f"prefix: it names the namespace in C++, where '{namespace}' is a word of the language")
    lines = [
        *_INCLUDES,
        '',
        *_about(code, ''),
        f'namespace {namespace}',
        '{',
        '',
        *_sizes(code, ''),
        '',
        *_tables(code, '', 'constexpr'),
        *_helpers(code, 'inline'),
        '',
        '/* Coefficients of the formulas from parameters. */',
        *_coefficient_function(code, '', 'inline '),
    ]
    for each, function in code.c_functions.items():
        lines += [
            '',
            _comment(code, each),
            *_function(function, f'inline {_signature(code, each, function, "")}', each),
        ]
    lines += ['', f'}}  /* namespace {namespace} */']
    return _guarded(_title(code).replace('C99', 'C++11, header only'), f'{namespace}_{name}', lines)


def _guarded(title: str, name: str, lines: list[str]) -> str:
    """Return a header with a guard of its name around some lines."""
    guard = 'ROBOTID_' + re.sub(r'[^A-Za-z0-9]', '_', name).upper()
    return '\n'.join([title, f'#ifndef {guard}', f'#define {guard}', '', *lines, '', f'#endif /* {guard} */']) + '\n'


def _about(code: GeneratedCode, prefix: str) -> list[str]:
    """Return the comment on joints, parameters and use."""
    multiplications, additions = code.functions['inverse_dynamics'].operations
    parameters = zip(code.names, code.units, code.parameters, strict=True)
    return [
        '/*',
        f' * {prefix}inverse_dynamics returns the torque {code.friction}.',
        ' *',
        ' * Joints, in the order of all arrays:',
        *(f' *   {k}: {line}' for k, line in enumerate(joint_units(code.model))),
        ' *',
        ' * Parameters, with the values of the tables. First the base parameters (I: about the link-frame origin, m*:',
        ' * first moments, m: mass; links count from 1), then those of friction:',
        *(f' *   {k}: {name} [{unit}] = {value:.6g}' for k, (name, unit, value) in enumerate(parameters)),
        ' *',
        f' * inverse_dynamics: {multiplications} multiplications, {additions} additions.',
        ' * Its coefficients are linear in the parameters: compute them once per parameter set with',
        ' * coefficients(), or take the table default_coefficients. No function allocates or keeps a state.',
        ' */',
    ]


def _helpers(code: GeneratedCode, linkage: str) -> list[str]:
    """Return the functions sign_of and sines_cosines, where they are needed."""
    lines, functions = list[str](), code.functions.values()
    if any(function.uses_sines for function in functions):
        inline = 'static inline' if linkage == 'static' else linkage
        lines += ['', *SINES_COSINES.rstrip().replace('static inline', inline).split('\n')]
    if any(f.graph.kind[node] == Op.SIGN for f in functions for node in f.schedule):
        body = '    return (x > 0.0) ? 1.0 : ((x < 0.0) ? -1.0 : 0.0);'
        lines += ['', f'{linkage} double sign_of(double x)', '{', body, '}']
    return lines


def _comment(code: GeneratedCode, name: str) -> str:
    return f'/* {code.summary(name)}{_LAYOUT if name == "regressor" else ""} */'


def _check_prefix(prefix: str) -> None:
    if prefix and not re.fullmatch(r'[A-Za-z_][A-Za-z0-9_]*', prefix, re.ASCII):
        raise ModelError(f'prefix: expected letters, digits and underscores as in a C name, got {prefix!r}')


def _title(code: GeneratedCode) -> str:
    return f"/* Dynamics of the arm '{as_comment(code.model.name)}', generated by robotid_ros. SI units. C99. */"


def _sizes(code: GeneratedCode, prefix: str) -> list[str]:
    upper = prefix.upper()
    return [
        'enum {',
        f'    {upper}JOINTS = {code.model.n},',
        f'    {upper}PARAMETERS = {len(code.parameters)},',
        f'    {upper}BASE_PARAMETERS = {code.base},',
        f'    {upper}COEFFICIENTS = {len(code.coefficient_map)}',
        '};',
    ]


def _signature(code: GeneratedCode, name: str, function: GraphFunction, prefix: str) -> str:
    n = code.model.n
    blocks = sorted(function.inputs, key=lambda block: block.shared)
    arguments = [f'const double {block.name}[{block.width}]' for block in blocks]
    out = f'double regressor_rows[{n * code.base}]' if name == 'regressor' else f'double tau[{n}]'
    return f'void {prefix}{name}({", ".join([*arguments, out])})'


def _declarations(code: GeneratedCode, prefix: str) -> list[str]:
    count, made = len(code.parameters), len(code.coefficient_map)
    lines = [
        f'extern const double {prefix}default_parameters[{count}];',
        f'extern const double {prefix}default_coefficients[{made}];',
        '',
        '/* Coefficients of the formulas from parameters. */',
        f'void {prefix}coefficients(const double parameters[{count}], double coefficients[{made}]);',
    ]
    for name, function in code.c_functions.items():
        lines += ['', _comment(code, name), f'{_signature(code, name, function, prefix)};']
    return lines


def _tables(code: GeneratedCode, prefix: str, kind: str = 'const') -> list[str]:
    lines = []
    tables = [('default_parameters', code.parameters), ('default_coefficients', code.coefficients)]
    for name, values in tables:
        numbers = [repr(value) for value in values.tolist()]
        rows = [', '.join(numbers[k : k + 4]) for k in range(0, len(numbers), 4)]
        body = ',\n'.join(f'    {row}' for row in rows)
        lines += [f'{kind} double {prefix}{name}[{len(values)}] = {{', body, '};']
    return lines


def _coefficient_function(code: GeneratedCode, prefix: str, linkage: str = '') -> list[str]:
    count, made = code.coefficient_map.shape[1], code.coefficient_map.shape[0]
    lines = [f'{linkage}void {prefix}coefficients(const double parameters[{count}], double coefficients[{made}])', '{']
    for k, row in enumerate(code.coefficient_map):
        terms = ''
        for j, weight in enumerate(row.tolist()):
            if weight == 0.0:
                continue
            factor = '' if abs(weight) == 1.0 else f'{abs(weight)} * '
            sign = ('-' if weight < 0.0 else '') if not terms else (' - ' if weight < 0.0 else ' + ')
            terms += f'{sign}{factor}parameters[{j}]'
        lines.append(f'    coefficients[{k}] = {terms or "0.0"};')
    return [*lines, '}']


def _function(function: GraphFunction, signature: str, name: str) -> list[str]:
    graph, places = function.graph, function.input_places
    used = {places[graph.first[node]][0] for node in function.schedule if graph.kind[node] == Op.INPUT}
    out = 'regressor_rows' if name == 'regressor' else 'tau'
    body = statements(function, lambda block, column: f'{function.inputs[block].name}[{column}]', 'c')
    lines = [signature, '{', *(f'    {line}' for line in body)]
    lines += [f'    {out}[{k}] = {value_of(function, r)};' for k, r in enumerate(function.references)]
    lines += [f'    (void){block.name};' for k, block in enumerate(function.inputs) if k not in used]
    return [*lines, '}']


def python_source(code: GeneratedCode) -> str:
    """Return the module; see :meth:`MinimalModel.python_source`."""
    parameters = zip(code.names, code.units, code.parameters, strict=True)
    lines = [
        f'"""Dynamics of the arm \'{as_comment(code.model.name)}\', generated by robotid_ros.',
        '',
        f'inverse_dynamics returns the torque {code.friction}.',
        'Arrays have one column per joint and any leading axes. Joints:',
        '',
        *(f'    {line}' for line in joint_units(code.model)),
        '"""',
        '',
        'import numpy as np',
        '',
        '# Base parameters, then those of friction.',
        'PARAMETERS = np.array([',
        *(f'    {float(value)!r},  # {name} [{unit}]' for name, unit, value in parameters),
        '])',
        '',
        '# Coefficients from parameters: (row, column, weight).',
        '_WEIGHTS = [',
        *(f'    ({i}, {j}, {float(code.coefficient_map[i, j])!r}),' for i, j in np.argwhere(code.coefficient_map)),
        ']',
        '',
        '',
        'def coefficients(parameters):',
        '    """Return the coefficients of the formulas, linear in the parameters."""',
        f'    result = np.zeros({len(code.coefficient_map)})',
        '    for row, column, weight in _WEIGHTS:',
        '        result[row] += weight * parameters[column]',
        '    return result',
        '',
        '',
        'COEFFICIENTS = coefficients(PARAMETERS)',
    ]
    for key, function in code.functions.items():
        shape = (code.model.n, code.base) if key == 'regressor' else (code.model.n,)
        lines += ['', '', *_python_function(key, function, shape, code.summary(key))]
    return '\n'.join(lines) + '\n'


def _python_function(name: str, function: GraphFunction, shape: tuple[int, ...], summary: str) -> list[str]:
    blocks = sorted(function.inputs, key=lambda block: block.shared)
    arguments = [f'{b.name}=COEFFICIENTS' if b.shared else b.name for b in blocks]

    def read(block: int, column: int) -> str:
        given = function.inputs[block]
        return f'{given.name}[{column}]' if given.shared else f'{given.name}[..., {column}]'

    lines = [f'def {name}({", ".join(arguments)}):', f'    """{summary}"""']
    lines += [f'    {line}' for line in statements(function, read, 'python')]
    lines.append(f'    result = np.zeros({function.inputs[0].name}.shape[:-1] + {shape!r})')
    for k, reference in enumerate(function.references):
        if not function.graph.is_zero(reference):
            index = ', '.join(str(i) for i in np.unravel_index(k, shape))
            lines.append(f'    result[..., {index}] = {value_of(function, reference)}')
    return [*lines, '    return result']
