# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The base regressor and its gradient as graph functions."""

from collections.abc import Sequence

from robotid_ros.dynamics.chain import aligned_chain
from robotid_ros.dynamics.codegen.expression import Expression, Graph, Op, gradient
from robotid_ros.dynamics.codegen.function import GraphFunction, InputBlock, OutputBlock
from robotid_ros.dynamics.codegen.symbolic_regressor import trace_regressor
from robotid_ros.model import RobotModel

__all__ = ['motion_inputs', 'regressor_function', 'regressor_gradient_function']


def motion_inputs(n: int) -> tuple[InputBlock, ...]:
    """Return the input blocks q, dq, ddq."""
    return tuple(InputBlock(name, n) for name in ('q', 'dq', 'ddq'))


def regressor_function(model: RobotModel, drives: Sequence[str], columns: Sequence[int]) -> GraphFunction:
    """Return chosen columns of the full regressor as a function of q, dq, ddq.

    Parameters
    ----------
    model : RobotModel
    drives : sequence of {'Ia', 'Fv', 'Fc', 'offset'}
        Which blocks of n columns follow the 10 n inertial ones.
    columns : sequence of int

    Returns
    -------
    GraphFunction
        One output, shape (N, n * len(columns)), row-major.
    """
    graph, entries = _entries(model, drives, columns)
    return GraphFunction(
        name='regressor', graph=graph, inputs=motion_inputs(model.n), outputs=(OutputBlock('regressor', entries),)
    )


def regressor_gradient_function(model: RobotModel, drives: Sequence[str], columns: Sequence[int]) -> GraphFunction:
    """Return the gradient of sum_ij w_ij Y_ij as a function of q, dq, ddq and the weights.

    Returns
    -------
    GraphFunction
        Inputs q, dq, ddq, weights of shape (N, n * len(columns)); three outputs of shape (N, n).
    """
    n = model.n
    graph, entries = _entries(model, drives, columns)
    seeds = [
        (entry, graph.input(3 * n + k).reference)
        for k, entry in enumerate(entries)
        if graph.kind[entry >> 1] != Op.CONSTANT
    ]
    slopes = gradient(graph, seeds)
    zero = graph.constant_reference(0.0)
    return GraphFunction(
        name='regressor_gradient',
        graph=graph,
        inputs=(*motion_inputs(n), InputBlock('weights', len(entries))),
        outputs=tuple(
            OutputBlock(name, tuple(slopes.get(k * n + i, zero) for i in range(n)))
            for k, name in enumerate(('by_q', 'by_dq', 'by_ddq'))
        ),
    )


def _entries(model: RobotModel, drives: Sequence[str], columns: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
    graph, n = Graph(), model.n
    x = graph.inputs(0, 3 * n)
    rows = trace_regressor(
        graph, aligned_chain(model), model.coupling, x[:n], x[n : 2 * n], x[2 * n :], drives, columns
    )
    return graph, tuple(
        (entry if isinstance(entry, Expression) else graph.constant(entry)).reference for row in rows for entry in row
    )
