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
"""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, IntArray


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


class Function(NamedTuple):
    """A function of one argument, with its names in numpy and C."""

    numpy: str
    c: str
    value: Callable[[float], float]
    parity: int
    """1 if f(-x) = f(x), -1 if f(-x) = -f(x), 0 otherwise."""


FUNCTIONS = {
    Op.SIN: Function('sin', 'sin', math.sin, -1),
    Op.COS: Function('cos', 'cos', math.cos, 1),
    Op.SIGN: Function('sign', 'sign_of', lambda x: float(x > 0.0) - float(x < 0.0), -1),
    Op.ABS: Function('abs', 'fabs', abs, 1),
    Op.RECIPROCAL: Function('reciprocal', '1.0 / ', lambda x: 1.0 / x, -1),
    Op.EXP: Function('exp', 'exp', math.exp, 0),
    Op.TANH: Function('tanh', 'tanh', math.tanh, -1),
    Op.ATAN: Function('arctan', 'atan', math.atan, -1),
}


class OperationCount(tuple[int, int]):
    """Operations of one evaluation: the pair (multiplications, additions).

    Attributes
    ----------
    multiplications : int
        Every multiplication emitted, by constants too.
    additions : int
        Every addition and subtraction emitted.
    trigonometric : int
        Sines and cosines; like other functions not part of the pair.
    """

    trigonometric: int

    def __new__(cls, multiplications: int, additions: int, trigonometric: int = 0) -> 'OperationCount':
        """Return the pair, with the number of sines and cosines beside it."""
        pair = super().__new__(cls, (multiplications, additions))
        pair.trigonometric = trigonometric
        return pair

    @property
    def multiplications(self) -> int:
        """Number of multiplications."""
        return self[0]

    @property
    def additions(self) -> int:
        """Number of additions and subtractions."""
        return self[1]

    def __repr__(self) -> str:
        return f'{self[0]} multiplications, {self[1]} additions, {self.trigonometric} sines and cosines'

    def __getnewargs__(self) -> tuple[int, int, int]:
        return (self[0], self[1], self.trigonometric)


class Graph:
    """A growing, hash-consed set of operations.

    A reference is twice the node's index, plus one where the node's value is negated. Arguments of
    a node always have smaller indices than the node.
    """

    __slots__ = ('_constants', '_index', 'first', 'kind', 'second', 'value')

    def __init__(self) -> None:
        self.kind: list[int] = []
        self.first: list[int] = []
        self.second: list[int] = []
        self.value: list[float] = []
        self._index: dict[tuple[int, int, int], int] = {}
        self._constants: dict[float, int] = {}

    @classmethod
    def from_arrays(cls, nodes: Array | IntArray, values: Array | IntArray) -> 'Graph':
        """Return a graph from the arrays of :meth:`arrays`."""
        graph = cls()
        graph.kind, graph.first, graph.second = (row.astype(int).tolist() for row in nodes)
        graph.value = values.tolist()
        for node, key in enumerate(zip(graph.kind, graph.first, graph.second, strict=True)):
            if key[0] == Op.CONSTANT:
                graph._constants[graph.value[node]] = node
            else:
                graph._index[key] = node
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
        size = abs(float(value))
        node = self._constants.get(size)
        if node is None:
            node = self._append(Op.CONSTANT, 0, 0, size)
            self._constants[size] = node
        return 2 * node + (1 if value < 0.0 else 0)

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
        function = FUNCTIONS[op]
        if self.kind[a >> 1] == Op.CONSTANT:
            return self.constant_reference(function.value(self.constant_value(a)))
        argument = a & ~1 if function.parity else a
        return (2 * self._node(op, argument, 0)) ^ (a & 1 if function.parity < 0 else 0)

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

    def count(self, outputs: Iterable[int]) -> OperationCount:
        """Return the operations that evaluating the outputs takes."""
        kinds = [self.kind[node] for node in self.schedule(outputs)]
        return OperationCount(
            multiplications=kinds.count(Op.MULTIPLY),
            additions=kinds.count(Op.ADD),
            trigonometric=kinds.count(Op.SIN) + kinds.count(Op.COS),
        )

    def _node(self, kind: int, first: int, second: int) -> int:
        key = (kind, first, second)
        node = self._index.get(key)
        if node is None:
            node = self._append(kind, first, second, 0.0)
            self._index[key] = node
        return node

    def _append(self, kind: int, first: int, second: int, value: float) -> int:
        self.kind.append(kind)
        self.first.append(first)
        self.second.append(second)
        self.value.append(value)
        return len(self.kind) - 1


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

    @property
    def is_zero(self) -> bool:
        """Whether this is the constant zero."""
        return self.graph.is_zero(self.reference)


Number: TypeAlias = Expression | float


def gradient(graph: Graph, seeds: Sequence[tuple[int, int]]) -> dict[int, int]:
    """Return the derivatives of sum_k w_k y_k with respect to every input, in the same graph.

    Reverse accumulation: one sweep from the last node to the first, whatever the number of inputs.
    The derivative of a sign is taken as zero.

    Parameters
    ----------
    graph : Graph
        Grows by the operations of the sweep.
    seeds : sequence of (y, w)
        References to the outputs and to their weights.

    Returns
    -------
    dict
        From input number to the reference of the derivative; inputs without influence are absent.

    References
    ----------
    A. Griewank and A. Walther, "Evaluating Derivatives" (2008), section 3.2.
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
            raise ValueError(f'no derivative of {FUNCTIONS[kind].numpy}: regressors do not have it')
    return result
