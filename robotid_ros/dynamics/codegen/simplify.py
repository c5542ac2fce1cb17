# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Simplification of expression graphs: common factors, and partial sums that several sums share.

Sums used once are merged into the sum that uses them, which frees the order of addition. Then, in
each sum, ``x a + x b`` becomes ``x (a + b)``; and pairs of terms that occur in several sums are
added once (the greedy pair extraction of multi-level logic synthesis: R. K. Brayton and
C. McMullen, "The decomposition and factorization of Boolean expressions", ISCAS 1982).
"""

from collections import Counter
from collections.abc import Sequence

from robotid_ros.dynamics.codegen.expression import Graph, Op


def simplified(graph: Graph, outputs: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
    """Return an equivalent graph with fewer operations, and the outputs in it.

    Parameters
    ----------
    graph : Graph
    outputs : sequence of int
        References.
    """
    best = graph, tuple(outputs)
    cost = sum(graph.count(outputs))
    while True:
        shorter = _Rewriter(*best).result()
        new_cost = sum(shorter[0].count(shorter[1]))
        if new_cost >= cost:
            return best
        best, cost = shorter, new_cost


class _Rewriter:
    """One pass: flatten, factor, share, and build again."""

    def __init__(self, graph: Graph, outputs: Sequence[int]) -> None:
        self.old, self.outputs = graph, outputs
        self.order = graph.schedule(outputs)
        self.uses = Counter(reference >> 1 for reference in outputs)
        for node in self.order:
            self.uses.update(argument >> 1 for argument in graph.arguments(node))
        # A term is a reference to an old node, or to a product made here: (factor, sum of cofactors).
        self.sums: dict[int, list[int]] = {}
        self.products: dict[int, tuple[int, int]] = {}
        self.next_node = len(graph.kind)
        self.inner = {
            argument >> 1
            for node in self.order
            if graph.kind[node] == Op.ADD
            for argument in graph.arguments(node)
            if graph.kind[argument >> 1] == Op.ADD
        }

    def result(self) -> tuple[Graph, tuple[int, ...]]:
        """Return the new graph and outputs."""
        for node in self.order:
            if self.old.kind[node] == Op.ADD and not self._merged(node):
                self.sums[node] = self._terms(node)
        for node in list(self.sums):
            self._factor(node)
        self._share()
        return self._rebuild()

    def _merged(self, node: int) -> bool:
        """Whether a sum has one use, in another sum."""
        return self.uses[node] == 1 and node in self.inner

    def _terms(self, node: int) -> list[int]:
        terms: list[int] = []
        stack = list(self.old.arguments(node))
        while stack:
            reference = stack.pop()
            inner = reference >> 1
            if self.old.kind[inner] == Op.ADD and self._merged(inner):
                stack.extend(argument ^ (reference & 1) for argument in self.old.arguments(inner))
            else:
                terms.append(reference)
        return terms

    def _factors(self, term: int) -> tuple[int, ...]:
        node = term >> 1
        if node < len(self.old.kind) and self.old.kind[node] == Op.MULTIPLY and self.uses[node] == 1:
            return self.old.arguments(node)
        return ()

    def _factor(self, node: int) -> None:
        """Replace x a + x b by x (a + b) in one sum while it has such terms."""
        while True:
            terms = self.sums[node]
            counts = Counter(factor for term in terms for factor in set(self._factors(term)))
            if not counts:
                return
            factor, count = max(counts.items(), key=lambda item: (item[1], -item[0]))
            if count < 2:
                return
            inside, rest = [], []
            for term in terms:
                factors = self._factors(term)
                if factor in factors:
                    other = factors[1] if factors[0] == factor else factors[0]
                    inside.append(other ^ (term & 1))
                else:
                    rest.append(term)
            inner, product = self.next_node, self.next_node + 1
            self.next_node += 2
            self.sums[inner] = inside
            self.products[product] = (factor, 2 * inner)
            self.sums[node] = [*rest, 2 * product]

    def _share(self) -> None:
        """Make pairs of terms that several sums have into sums of their own, the most frequent first."""
        while True:
            counts: Counter[tuple[int, int]] = Counter()
            for terms in self.sums.values():
                if len(terms) > 1:
                    counts.update(_pairs(terms))
            if not counts:
                return
            pair, count = max(counts.items(), key=lambda item: (item[1], item[0]))
            if count < 2:
                return
            shared = self.next_node
            self.next_node += 1
            for node, terms in list(self.sums.items()):
                for flip in (0, 1):
                    a, b = pair[0] ^ flip, pair[1] ^ flip
                    if a in terms and b in terms and (a != b):
                        left = list(terms)
                        left.remove(a)
                        left.remove(b)
                        self.sums[node] = [*left, 2 * shared + flip]
                        break
            self.sums[shared] = list(pair)

    def _rebuild(self) -> tuple[Graph, tuple[int, ...]]:
        new = Graph()
        made: dict[int, int] = {}

        def arguments(node: int) -> Sequence[int]:
            if node in self.sums:
                return self.sums[node]
            return self.products[node] if node in self.products else self.old.arguments(node)

        def build(node: int) -> int:
            parts = [made[argument >> 1] ^ (argument & 1) for argument in arguments(node)]
            if node in self.sums:
                total = parts[0]
                for part in parts[1:]:
                    total = new.add(total, part)
                return total
            kind = Op.MULTIPLY if node in self.products else self.old.kind[node]
            if kind == Op.MULTIPLY:
                return new.multiply(*parts)
            if kind == Op.CONSTANT:
                return new.constant_reference(self.old.value[node])
            if kind == Op.INPUT:
                return new.input(self.old.first[node]).reference
            return new.unary(kind, parts[0])

        for output in self.outputs:
            stack = [output >> 1]
            while stack:
                node = stack[-1]
                waiting = [a >> 1 for a in arguments(node) if a >> 1 not in made]
                if node in made:
                    stack.pop()
                elif waiting:
                    stack.extend(reversed(waiting))
                else:
                    made[node] = build(node)
                    stack.pop()
        return new, tuple(made[output >> 1] ^ (output & 1) for output in self.outputs)


def _pairs(terms: Sequence[int]) -> set[tuple[int, int]]:
    """Return the unordered pairs of terms, each with its first reference not negated."""
    ordered = sorted(terms)
    result = set()
    for i, a in enumerate(ordered):
        for b in ordered[i + 1 :]:
            if a >> 1 != b >> 1:
                result.add((a ^ (a & 1), b ^ (a & 1)))
    return result
