# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Expression graphs: scalar formulas in which every distinct operation exists once.

Nodes are hash-consed: building an expression that is already there returns the node that holds it,
so common subexpressions never arise. Constants fold, zeros and ones vanish, and a minus sign
belongs to the reference to a node; negation therefore costs nothing (it turns an addition into a
subtraction).

A function of named inputs is a graph with outputs. Graphs are made from graphs too: coefficients of parameters alone,
``x (a + b)`` for ``x a + x b``, joints for motors.
"""

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import Array, IntArray
from robotid_ros.model.transforms import exact


class Op:
    """Kinds of nodes; from SIN on, functions of one argument."""

    CONSTANT = 0
    INPUT = 1
    ADD = 2
    MULTIPLY = 3
    SIN = 4
    COS = 5
    SIGN = 6
    ABS = 7
    RECIPROCAL = 8
    EXP = 9
    TANH = 10
    ATAN = 11


FUNCTIONS: dict[int, tuple[str, str, Callable[[float], float], int]] = {
    Op.SIN: ('sin', 'sin', math.sin, -1),
    Op.COS: ('cos', 'cos', math.cos, 1),
    Op.SIGN: ('sign', 'sign_of', lambda x: float(x > 0.0) - float(x < 0.0), -1),
    Op.ABS: ('abs', 'fabs', abs, 1),
    Op.RECIPROCAL: ('reciprocal', '1.0 / ', lambda x: 1.0 / x, -1),
    Op.EXP: ('exp', 'exp', math.exp, 0),
    Op.TANH: ('tanh', 'tanh', math.tanh, -1),
    Op.ATAN: ('arctan', 'atan', math.atan, -1),
}
"""Functions of one argument: name in numpy, name in C, value, and parity: 1 if f(-x) = f(x), -1 if -f(x), else 0."""


class Graph:
    """A growing, hash-consed set of operations.

    A reference is twice the node's index, plus one where the node's value is negated. Arguments of
    a node always have smaller indices than the node.
    """

    __slots__ = ('_index', 'first', 'kind', 'second', 'value')

    def __init__(self) -> None:
        self.kind: list[int] = []
        self.first: list[int] = []
        self.second: list[int] = []
        self.value: list[float] = []
        self._index: dict[tuple[int, int, int, float], int] = {}

    @classmethod
    def from_arrays(cls, nodes: Array | IntArray, values: Array | IntArray) -> 'Graph':
        """Return a graph from the arrays of :meth:`arrays`."""
        graph = cls()
        graph.kind, graph.first, graph.second = (row.astype(int).tolist() for row in nodes)
        graph.value = values.tolist()
        keys = zip(graph.kind, graph.first, graph.second, graph.value, strict=True)
        graph._index = {key: node for node, key in enumerate(keys)}
        return graph

    def arrays(self) -> tuple[IntArray, Array]:
        """Return kind, first and second argument of all nodes, shape (3, N), and their values, shape (N,)."""
        nodes = np.array([self.kind, self.first, self.second], dtype=np.int64).reshape(3, -1)
        return nodes, np.array(self.value, dtype=np.float64)

    def input(self, slot: int) -> 'Expression':
        """Return the input with this number."""
        return Expression(self, 2 * self._node(Op.INPUT, slot, 0))

    def inputs(self, start: int, count: int) -> list['Expression']:
        """Return ``count`` inputs numbered from ``start``."""
        return [self.input(start + k) for k in range(count)]

    def constant(self, value: float) -> 'Expression':
        """Return a constant."""
        return Expression(self, self.constant_reference(value))

    def constant_reference(self, value: float) -> int:
        """Return the reference to a constant; its node holds the absolute value."""
        return 2 * self._node(Op.CONSTANT, 0, 0, abs(float(value))) + (1 if value < 0.0 else 0)

    def add(self, a: int, b: int) -> int:
        """Return the reference to a + b."""
        kind, value = self.kind, self.value
        i, j = a >> 1, b >> 1
        if kind[i] == Op.CONSTANT:
            if kind[j] == Op.CONSTANT:
                return self.constant_reference(self.constant_value(a) + self.constant_value(b))
            if value[i] == 0.0:
                return b
        elif kind[j] == Op.CONSTANT and value[j] == 0.0:
            return a
        if i == j:
            return self.constant_reference(0.0) if a != b else 2 * self._node(Op.ADD, a & ~1, a & ~1) + (a & 1)
        if i > j:
            a, b = b, a
        flip = a & 1
        return 2 * self._node(Op.ADD, a ^ flip, b ^ flip) + flip

    def multiply(self, a: int, b: int) -> int:
        """Return the reference to a * b."""
        flip = (a ^ b) & 1
        a, b = a & ~1, b & ~1
        i, j = a >> 1, b >> 1
        kind, value = self.kind, self.value
        if kind[j] == Op.CONSTANT:
            a, b, i, j = b, a, j, i
        if kind[i] == Op.CONSTANT:
            if kind[j] == Op.CONSTANT:
                return self.constant_reference(value[i] * value[j]) ^ flip
            if value[i] == 0.0:
                return a
            if value[i] == 1.0:
                return b ^ flip
            if kind[j] == Op.MULTIPLY and kind[self.first[j] >> 1] == Op.CONSTANT:
                merged = self.constant_reference(value[i] * value[self.first[j] >> 1])
                return self.multiply(merged, self.second[j]) ^ flip
            if value[i] == 2.0:
                return (2 * self._node(Op.ADD, b, b)) ^ flip
        elif i > j:
            a, b = b, a
        return (2 * self._node(Op.MULTIPLY, a, b)) ^ flip

    def unary(self, op: int, a: int) -> int:
        """Return the reference to a function of a. Even functions drop the sign of a, odd ones pass it on."""
        _, _, value, parity = FUNCTIONS[op]
        if self.kind[a >> 1] == Op.CONSTANT:
            return self.constant_reference(value(self.constant_value(a)))
        argument = a & ~1 if parity else a
        return (2 * self._node(op, argument, 0)) ^ (a & 1 if parity < 0 else 0)

    def constant_value(self, a: int) -> float:
        """Return the value of a reference to a constant."""
        return -self.value[a >> 1] if a & 1 else self.value[a >> 1]

    def is_zero(self, a: int) -> bool:
        """Return whether a reference is to the constant zero."""
        return self.kind[a >> 1] == Op.CONSTANT and self.value[a >> 1] == 0.0

    def arguments(self, node: int) -> tuple[int, ...]:
        """Return the references a node works on."""
        kind = self.kind[node]
        if kind in (Op.ADD, Op.MULTIPLY):
            return (self.first[node], self.second[node])
        return (self.first[node],) if kind >= Op.SIN else ()

    def rewritten(
        self,
        order: Iterable[int],
        outputs: Iterable[int],
        into: 'Graph',
        instead: Callable[[int, Callable[[int], int]], int | None],
    ) -> tuple[int, ...]:
        """Return the outputs in another graph, made node by node in a given order.

        Where ``instead`` returns a reference there, that takes the place of a node; it gets the node and a function
        from references of this graph to those of the other.
        """
        made: dict[int, int] = {}

        def moved(reference: int) -> int:
            return made[reference >> 1] ^ (reference & 1)

        for node in order:
            other = instead(node, moved)
            made[node] = self._copied(node, list(map(moved, self.arguments(node))), into) if other is None else other
        return tuple(map(moved, outputs))

    def _copied(self, node: int, arguments: Sequence[int], into: 'Graph') -> int:
        """Return the reference to a node's operation in another graph, on references there."""
        kind = self.kind[node]
        if kind == Op.CONSTANT:
            return into.constant_reference(self.value[node])
        if kind == Op.INPUT:
            return into.input(self.first[node]).reference
        if kind == Op.ADD:
            return into.add(*arguments)
        return into.multiply(*arguments) if kind == Op.MULTIPLY else into.unary(kind, arguments[0])

    def schedule(self, outputs: Iterable[int]) -> list[int]:
        """Return the nodes that the outputs need, arguments first, each output as early as possible.

        Going depth-first from one output after the other keeps few intermediate values alive.
        """
        seen = bytearray(len(self.kind))
        order: list[int] = []
        for output in outputs:
            stack = [output >> 1]
            while stack:
                node = stack[-1]
                if seen[node]:
                    stack.pop()
                    continue
                waiting = [a >> 1 for a in self.arguments(node) if not seen[a >> 1]]
                if waiting:
                    stack.extend(reversed(waiting))
                else:
                    seen[node] = 1
                    order.append(node)
                    stack.pop()
        return order

    def _node(self, kind: int, first: int, second: int, value: float = 0.0) -> int:
        key = (kind, first, second, value)
        node = self._index.get(key)
        if node is None:
            node = self._index[key] = len(self.kind)
            self.kind.append(kind)
            self.first.append(first)
            self.second.append(second)
            self.value.append(value)
        return node


class Expression:
    """A reference to a node of a graph, with arithmetic."""

    __slots__ = ('graph', 'reference')

    def __init__(self, graph: Graph, reference: int) -> None:
        self.graph = graph
        self.reference = reference

    def _of(self, other: 'Number') -> int:
        return other.reference if isinstance(other, Expression) else self.graph.constant_reference(float(other))

    def __add__(self, other: 'Number') -> 'Expression':
        return Expression(self.graph, self.graph.add(self.reference, self._of(other)))

    __radd__ = __add__

    def __sub__(self, other: 'Number') -> 'Expression':
        return Expression(self.graph, self.graph.add(self.reference, self._of(other) ^ 1))

    def __rsub__(self, other: 'Number') -> 'Expression':
        return Expression(self.graph, self.graph.add(self._of(other), self.reference ^ 1))

    def __mul__(self, other: 'Number') -> 'Expression':
        return Expression(self.graph, self.graph.multiply(self.reference, self._of(other)))

    __rmul__ = __mul__

    def __neg__(self) -> 'Expression':
        return Expression(self.graph, self.reference ^ 1)

    def __truediv__(self, other: 'Number') -> 'Expression':
        return self * (other.function(Op.RECIPROCAL) if isinstance(other, Expression) else 1.0 / float(other))

    def __rtruediv__(self, other: float) -> 'Expression':
        return other * self.function(Op.RECIPROCAL)

    def function(self, op: int) -> 'Expression':
        """Return a function of FUNCTIONS."""
        return Expression(self.graph, self.graph.unary(op, self.reference))

    def sin(self) -> 'Expression':
        """Return the sine."""
        return self.function(Op.SIN)

    def cos(self) -> 'Expression':
        """Return the cosine."""
        return self.function(Op.COS)

    def sign(self) -> 'Expression':
        """Return -1, 0 or 1."""
        return self.function(Op.SIGN)


Number: TypeAlias = Expression | float
Symbols: TypeAlias = NDArray[np.object_]
"""An array of expressions: vectors have the shape (3,), matrices (3, 3)."""


def symbols(*entries: Any) -> Symbols:
    """Return expressions, or rows of them, as an array."""
    return np.array(entries, dtype=object)


def gradient(graph: Graph, seeds: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the derivatives of sum_k w_k y_k with respect to every input, in the same graph.

    Reverse accumulation: one sweep from the last node to the first, whatever the number of inputs.
    The derivative of a sign is taken as zero.

    ``graph``: grows by the operations of the sweep. ``seeds``: references to the outputs and to their weights. The
    result: from input number to the reference of the derivative; inputs without influence are absent.

    Source: A. Griewank and A. Walther, "Evaluating Derivatives" (2008), section 3.2.
    """
    adjoint: dict[int, int] = {}

    def collect(reference: int, value: int) -> None:
        node, value = reference >> 1, value ^ (reference & 1)
        adjoint[node] = graph.add(adjoint[node], value) if node in adjoint else value

    for output, weight in seeds:
        collect(output, weight)
    result: dict[int, int] = {}
    for node in sorted(graph.schedule([output for output, _ in seeds]), reverse=True):
        if node not in adjoint:
            continue
        bar, kind = adjoint[node], graph.kind[node]
        if kind == Op.INPUT:
            result[graph.first[node]] = bar
        elif kind == Op.ADD:
            collect(graph.first[node], bar)
            collect(graph.second[node], bar)
        elif kind == Op.MULTIPLY:
            first, second = graph.first[node], graph.second[node]
            if graph.kind[first >> 1] != Op.CONSTANT:
                collect(first, graph.multiply(bar, second))
            collect(second, graph.multiply(bar, first))
        elif kind == Op.SIN:
            collect(graph.first[node], graph.multiply(bar, graph.unary(Op.COS, graph.first[node])))
        elif kind == Op.COS:
            collect(graph.first[node], graph.multiply(bar, graph.unary(Op.SIN, graph.first[node])) ^ 1)
        elif kind not in (Op.SIGN, Op.CONSTANT):
            raise ValueError(f'no derivative of {FUNCTIONS[kind][0]}: regressors do not have it')
    return result


def combined(matrix: Array, x: Symbols | Sequence[Expression]) -> Symbols:
    """Return a constant matrix times a vector of expressions; entries within round-off of whole numbers are exact."""
    return np.asarray(symbols(*([exact(entry) for entry in row] for row in matrix.tolist())) @ symbols(*x))


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
    def operations(self) -> tuple[int, int]:
        """Multiplications, and additions and subtractions, of one sample; by constants too, without functions."""
        kinds = [self.graph.kind[node] for node in self.schedule]
        return kinds.count(Op.MULTIPLY), kinds.count(Op.ADD)

    @cached_property
    def input_places(self) -> list[tuple[int, int]]:
        """For each input number its block and its column in it."""
        return [(b, k) for b, block in enumerate(self.inputs) for k in range(block.width)]

    def with_inputs(self, graph: Graph, instead: Callable[[int], int | None]) -> tuple[int, ...]:
        """Return the outputs in another graph, with references there in the place of inputs, by their numbers."""
        old = self.graph

        def replaced(node: int, _: object) -> int | None:
            return instead(old.first[node]) if old.kind[node] == Op.INPUT else None

        return old.rewritten(self.schedule, self.references, graph, replaced)


def with_numbers(function: GraphFunction, name: str, values: Array) -> GraphFunction:
    """Return a function with numbers for its last inputs, which all samples share; what becomes constant is folded."""
    graph, first = Graph(), len(function.input_places) - len(values)

    def number(slot: int) -> int | None:
        return graph.constant_reference(float(values[slot - first])) if slot >= first else None

    references = function.with_inputs(graph, number)
    return GraphFunction(name=name, graph=graph, inputs=function.inputs[:-1], references=references)


def factored(graph: Graph, outputs: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
    """Return an equivalent graph with fewer operations, and the outputs in it.

    Sums used once are merged into the sum that uses them, which frees the order of addition; then the factor that most
    terms of a sum share is taken out, and so on in both parts. Terms that are used elsewhere stay whole.
    """
    order = graph.schedule(outputs)
    uses = Counter(reference >> 1 for reference in outputs)
    for node in order:
        uses.update(argument >> 1 for argument in graph.arguments(node))
    merged = {
        argument >> 1
        for node in order
        if graph.kind[node] == Op.ADD
        for argument in graph.arguments(node)
        if graph.kind[argument >> 1] == Op.ADD and uses[argument >> 1] == 1
    }
    new = Graph()

    def terms(node: int) -> list[int]:
        found, waiting = [], list(graph.arguments(node))
        while waiting:
            reference = waiting.pop()
            if reference >> 1 in merged:
                waiting += [argument ^ (reference & 1) for argument in graph.arguments(reference >> 1)]
            else:
                found.append(reference)
        return found[::-1]

    def factors(term: int) -> tuple[int, ...]:
        node = term >> 1
        return graph.arguments(node) if graph.kind[node] == Op.MULTIPLY and uses[node] == 1 else ()

    def total(parts: Sequence[int], moved: Callable[[int], int]) -> int:
        counts = Counter(factor for term in parts for factor in set(factors(term)))
        factor, count = max(counts.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        if count < 2:
            result = new.constant_reference(0.0)
            for term in parts:
                result = new.add(result, moved(term))
            return result
        inside, rest = [], []
        for term in parts:
            found = factors(term)
            if factor in found:
                inside.append(found[found[0] == factor] ^ (term & 1))
            else:
                rest.append(term)
        return new.add(total(rest, moved), new.multiply(moved(factor), total(inside, moved)))

    def shortened(node: int, moved: Callable[[int], int]) -> int | None:
        return total(terms(node), moved) if graph.kind[node] == Op.ADD else None

    return new, graph.rewritten((node for node in order if node not in merged), outputs, new, shortened)


def with_coefficients(
    graph: Graph, outputs: Sequence[int], first: int, count: int
) -> tuple[Graph, tuple[int, ...], Array]:
    """Return a graph, linear in parameters, with coefficients in their place, the outputs in it, and the coefficients.

    The parameters, ``count`` of them, are the graph's inputs from number ``first`` on; the motion's come before. The
    coefficients are the distinct linear combinations of parameters in the formulas, by their weights, shape (m, count).
    """
    order = graph.schedule(outputs)
    linear: dict[int, Array] = {}  # the parameters' weights in each node that is linear in them alone
    for node in order:
        kind, arguments = graph.kind[node], graph.arguments(node)
        if kind == Op.INPUT and graph.first[node] >= first:
            linear[node] = np.eye(count)[graph.first[node] - first]
        elif kind == Op.ADD and all(a >> 1 in linear for a in arguments):
            linear[node] = np.asarray(sum(-linear[a >> 1] if a & 1 else linear[a >> 1] for a in arguments))
        elif kind == Op.MULTIPLY and graph.kind[arguments[0] >> 1] == Op.CONSTANT and arguments[1] >> 1 in linear:
            linear[node] = graph.value[arguments[0] >> 1] * linear[arguments[1] >> 1]
    needed = {reference >> 1 for reference in outputs}
    for node in reversed(order):
        if node in needed and node not in linear:
            needed.update(argument >> 1 for argument in graph.arguments(node))
    new = Graph()
    numbers: dict[tuple[float, ...], int] = {}  # of the coefficients, by their weights

    def coefficient(node: int, _: object) -> int | None:
        form = linear.get(node)
        if form is None:
            return None
        sign = int(form.any() and form[np.flatnonzero(form)[0]] < 0.0)
        weights = tuple((-form if sign else form).tolist())
        return new.input(first + numbers.setdefault(weights, len(numbers))).reference ^ sign

    references = graph.rewritten((node for node in order if node in needed), outputs, new, coefficient)
    return new, references, np.array(list(numbers)).reshape(-1, count)


def at_joints(function: GraphFunction, drives: Array) -> GraphFunction:
    """Return a function of the joints' motion from one of the motors'.

        tau(q, dq, ddq) = C^T tau_motor(C q, C dq, C ddq)

    ``function``: inputs: any of q, dq, ddq, the load (a torque), and shared ones; outputs: the n torques, or n rows
    that give them. ``drives``, shape (n, n): C, positions of the motors over those of the joints.
    """
    graph, n = Graph(), len(drives)
    turned: dict[str, Array] = {'load': np.asarray(np.linalg.inv(drives).T)}
    slots: list[Expression] = []
    for block in function.inputs:
        given = graph.inputs(len(slots), block.width)
        slots.extend(given if block.shared else combined(turned.get(block.name, drives), given))
    outputs = function.with_inputs(graph, lambda slot: slots[slot].reference)
    at_motors = symbols(*(Expression(graph, reference) for reference in outputs)).reshape(n, -1)
    references = tuple(each.reference for each in combined(drives.T, at_motors).ravel().tolist())
    return GraphFunction(name=function.name, graph=graph, inputs=function.inputs, references=references)
