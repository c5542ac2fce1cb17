# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Common factors in expression graphs: ``x a + x b`` becomes ``x (a + b)``."""

from collections import Counter
from collections.abc import Sequence

from robotid_ros.dynamics.codegen.expression import Graph, Op


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
    new, made = Graph(), dict[int, int]()

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

    def total(parts: Sequence[int]) -> int:
        counts = Counter(factor for term in parts for factor in set(factors(term)))
        factor, count = max(counts.items(), key=lambda item: (item[1], -item[0]), default=(0, 0))
        if count < 2:
            result = new.constant_reference(0.0)
            for term in parts:
                result = new.add(result, made[term >> 1] ^ (term & 1))
            return result
        inside, rest = [], []
        for term in parts:
            found = factors(term)
            if factor in found:
                inside.append(found[found[0] == factor] ^ (term & 1))
            else:
                rest.append(term)
        return new.add(total(rest), new.multiply(made[factor >> 1] ^ (factor & 1), total(inside)))

    for node in order:
        if graph.kind[node] == Op.ADD and node not in merged:
            made[node] = total(terms(node))
        elif node not in merged:
            parts = [made[argument >> 1] ^ (argument & 1) for argument in graph.arguments(node)]
            made[node] = graph.copied(node, parts, new)
    return new, tuple(made[output >> 1] ^ (output & 1) for output in outputs)
