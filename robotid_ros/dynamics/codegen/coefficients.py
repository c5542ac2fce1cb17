# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Coefficients: the parts of a graph that depend on parameters alone, computed once per parameter set."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.codegen.expression import Graph, Op


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
        new, made = Graph(), dict[int, int]()
        for node in order:
            if node in needed and node in linear:
                made[node] = self._coefficient(new, linear[node])
            elif node in needed:
                parts = [made[argument >> 1] ^ (argument & 1) for argument in graph.arguments(node)]
                made[node] = graph.copied(node, parts, new)
        return new, tuple(made[reference >> 1] ^ (reference & 1) for reference in outputs)

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
