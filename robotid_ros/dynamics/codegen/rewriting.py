# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Graphs made from graphs: coefficients of parameters alone, ``x (a + b)`` for ``x a + x b``, joints for motors."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import Expression, Graph, Op
from robotid_ros.dynamics.codegen.function import GraphFunction
from robotid_ros.dynamics.codegen.symbolic_regressor import combined


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


class Coefficients:
    """Collects the distinct linear combinations of parameters in formulas.

    The parameters, ``count`` of them, are a graph's inputs from number ``first`` on; the motion's come before.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first, self.count = first, count
        self._rows: dict[bytes, int] = {}
        self._matrix: list[Array] = []

    @property
    def matrix(self) -> Array:
        """Coefficients from parameters, shape (len(self), count)."""
        return np.array(self._matrix).reshape(-1, self.count)

    def single(self, position: int) -> int:
        """Return the number of the coefficient that is one parameter."""
        return self._number(np.eye(self.count)[position])

    def extract(self, graph: Graph, outputs: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
        """Return the graph, linear in the parameters, with coefficients in their place, and the outputs in it."""
        order = graph.schedule(outputs)
        linear: dict[int, Array] = {}
        for node in order:
            form = self._form(graph, node, linear)
            if form is not None:
                linear[node] = form
        needed = {reference >> 1 for reference in outputs}
        for node in reversed(order):
            if node in needed and node not in linear:
                needed.update(argument >> 1 for argument in graph.arguments(node))
        new = Graph()

        def coefficient(node: int, _: object) -> int | None:
            return self._coefficient(new, linear[node]) if node in linear else None

        return new, graph.rewritten((node for node in order if node in needed), outputs, new, coefficient)

    def _form(self, graph: Graph, node: int, linear: dict[int, Array]) -> Array | None:
        """Return the parameters' weights in a node that is linear in them alone."""
        kind = graph.kind[node]
        if kind == Op.INPUT:
            number = graph.first[node] - self.first
            return np.eye(self.count)[number] if number >= 0 else None
        if kind == Op.ADD:
            parts = [(argument, linear.get(argument >> 1)) for argument in graph.arguments(node)]
            if any(form is None for _, form in parts):
                return None
            return np.asarray(sum((-form if a & 1 else form) for a, form in parts if form is not None))
        if kind == Op.MULTIPLY:
            first, second = graph.first[node], graph.second[node]
            form = linear.get(second >> 1)
            if graph.kind[first >> 1] == Op.CONSTANT and form is not None:
                return np.asarray(graph.value[first >> 1] * form)
        return None

    def _coefficient(self, new: Graph, form: Array) -> int:
        leading = form[np.flatnonzero(form)[0]] if form.any() else 1.0
        sign = 1 if leading < 0.0 else 0
        row = -form if sign else form
        return new.input(self.first + self._number(row + 0.0)).reference ^ sign

    def _number(self, row: Array) -> int:
        index = self._rows.setdefault(row.tobytes(), len(self._matrix))
        if index == len(self._matrix):
            self._matrix.append(row)
        return index


def at_joints(function: GraphFunction, drives: Array) -> GraphFunction:
    """Return a function of the joints' motion from one of the motors'.

        tau(q, dq, ddq) = C^T tau_motor(C q, C dq, C ddq)

    Parameters
    ----------
    function : GraphFunction
        Inputs: any of q, dq, ddq, the load (a torque), the direction of the motors' last motion, and shared ones;
        outputs: the n torques, or n rows that give them.
    drives : ndarray, shape (n, n)
        C, positions of the motors over those of the joints.
    """
    graph, n = Graph(), len(drives)
    turned: dict[str, Array] = {'load': np.asarray(np.linalg.inv(drives).T)}
    slots: list[Expression] = []
    for block in function.inputs:
        given = graph.inputs(len(slots), block.width)
        kept = block.shared or block.name == 'direction'  # the direction is that of the motor
        slots += given if kept else combined(turned.get(block.name, drives), given)
    old = function.graph

    def turned_input(node: int, _: object) -> int | None:
        return slots[old.first[node]].reference if old.kind[node] == Op.INPUT else None

    at_motors = np.array(old.rewritten(function.schedule, function.references, graph, turned_input)).reshape(n, -1)
    columns = [combined(drives.T, [Expression(graph, int(a)) for a in column]) for column in at_motors.T]
    references = tuple(column[row].reference for row in range(n) for column in columns)
    return GraphFunction(name=function.name, graph=graph, inputs=function.inputs, references=references)
