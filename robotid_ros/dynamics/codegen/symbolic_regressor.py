# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The base regressor and its gradient as graph functions: the recursion of the batch regressor, on symbols."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import aligned_chain
from robotid_ros.dynamics.codegen.expression import (
    Expression,
    Graph,
    GraphFunction,
    InputBlock,
    Op,
    Symbols,
    combined,
    gradient,
    symbols,
)
from robotid_ros.model import RobotModel
from robotid_ros.model.transforms import exact


def cross(a: Symbols, b: Symbols) -> Symbols:
    """Return a x b, as :func:`numpy.cross`, but in a third of its time."""
    return symbols(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def constant_vector(graph: Graph, values: Array) -> Symbols:
    """Return three numbers as a vector of constants; those within round-off of 0 and +-1 are exact."""
    return symbols(*(graph.constant(exact(float(value))) for value in values))


def turned(vector: Symbols, cosine: Expression, sine: Expression) -> Symbols:
    """Return the components in a frame turned about z by the angle."""
    x, y, z = vector
    return symbols(cosine * x + sine * y, cosine * y - sine * x, z)


def velocity_matrix(rate: Symbols, change: Symbols) -> Symbols:
    """Return U = [dw]x + [w]x [w]x."""
    x, y, z = rate
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    return symbols(
        (-(yy + zz), xy - change[2], xz + change[1]),
        (xy + change[2], -(xx + zz), yz - change[0]),
        (xz - change[1], yz + change[0], -(xx + yy)),
    )


def _link_columns(model: RobotModel, q: Symbols, dq: Symbols, ddq: Symbols) -> list[list[list[Expression]]]:
    """Return, for each link and each joint up to it, the columns of the ten parameters in the aligned frame."""
    graph: Graph = q[0].graph
    rotations, offsets, slides, _ = aligned_chain(model)
    rest, axis = constant_vector(graph, np.zeros(3)), constant_vector(graph, np.array([0.0, 0.0, 1.0]))
    rate, change, acceleration = rest, rest, constant_vector(graph, -model.gravity)
    screws: list[tuple[Symbols, Symbols]] = []
    result = []
    for k, kind in enumerate(model.joint_types):
        revolute, origin = kind == 'revolute', constant_vector(graph, offsets[k])
        if not revolute:
            origin = origin + constant_vector(graph, slides[k]) * q[k]
        acceleration = acceleration + velocity_matrix(rate, change) @ origin
        basis = rotations[k].T
        cosine, sine = (q[k].cos(), q[k].sin()) if revolute else (axis[2], rest[0])

        def local(
            vector: Symbols, basis: Array = basis, cosine: Expression = cosine, sine: Expression = sine
        ) -> Symbols:
            return turned(combined(basis, vector), cosine, sine)

        screws = [(local(z), local(v + cross(z, origin))) for z, v in screws]
        rate, change, acceleration = local(rate), local(change), local(acceleration)
        if revolute:
            change = change + symbols(rate[1] * dq[k], -(rate[0] * dq[k]), ddq[k])
            rate = rate + axis * dq[k]
            screws.append((axis, rest))
        else:
            twice = 2.0 * dq[k]
            acceleration = acceleration + symbols(rate[1] * twice, -(rate[0] * twice), ddq[k])
            screws.append((rest, axis))
        matrix = velocity_matrix(rate, change)
        result.append([_columns(rate, change, acceleration, matrix, z, v) for z, v in screws])
    return result


def _columns(
    rate: Symbols, change: Symbols, acceleration: Symbols, u: Symbols, angular: Symbols, linear: Symbols
) -> list[Expression]:
    """Return angular . moment + linear . force for the ten unit parameters of a link."""
    x, y, z = rate
    ax, ay, az = change
    xy, xz, yz = x * y, x * z, y * z
    xx, yy, zz = x * x, y * y, z * z
    moments = symbols(
        (ax, xz, -xy),
        (ay - xz, ax + yz, xx - yy),
        (az + xy, zz - xx, ax - yz),
        (-yz, ay, xy),
        (yy - zz, az - xy, ay + xz),
        (yz, -xz, az),
    )
    columns = moments @ angular
    firsts = [linear @ u[:, k] + angular @ cross(symbols(*unit), acceleration) for k, unit in enumerate(np.eye(3))]
    return [*columns, *firsts, linear @ acceleration]


def motion_inputs(n: int) -> tuple[InputBlock, ...]:
    """Return the input blocks q, dq, ddq."""
    return tuple(InputBlock(name, n) for name in ('q', 'dq', 'ddq'))


def regressor_function(model: RobotModel, drives: Sequence[str], columns: Sequence[int]) -> GraphFunction:
    """Return chosen columns of the full regressor as a function of q, dq, ddq, row by row.

    ``drives``, of Ia, Fv, Fc and offset, says which blocks of n columns follow the 10 n inertial ones.
    """
    graph, entries = _entries(model, drives, columns)
    return GraphFunction(name='regressor', graph=graph, inputs=motion_inputs(model.n), references=entries)


def regressor_gradient_function(model: RobotModel, drives: Sequence[str], columns: Sequence[int]) -> GraphFunction:
    """Return the gradient of sum_ij w_ij Y_ij as a function of q, dq, ddq and the weights.

    The weights have the shape (N, n * len(columns)), the result (N, 3 n): by q, dq and ddq.
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
        references=tuple(slopes.get(k, zero) for k in range(3 * n)),
    )


def _entries(model: RobotModel, drives: Sequence[str], columns: Sequence[int]) -> tuple[Graph, tuple[int, ...]]:
    """Return a graph of q, dq and ddq, and its references to the entries of chosen columns, row by row."""
    graph, n, (*_, to_aligned) = Graph(), model.n, aligned_chain(model)
    q, dq, ddq = (graph.inputs(k * n, n) for k in range(3))
    zero, one = graph.constant(0.0), graph.constant(1.0)
    of_drives = {'Ia': ddq, 'Fv': dq, 'Fc': [x.sign() for x in dq], 'offset': [one] * n}
    blocks = _link_columns(model, *(combined(model.coupling, x) for x in (q, dq, ddq)))
    made: list[Symbols] = []
    for column in columns:
        if column < 10 * n:
            link, parameter = divmod(column, 10)
            weights = to_aligned[link][:, [parameter]].T
            on_chain = [combined(weights, block)[0] for block in blocks[link]] + [zero] * (n - link - 1)
            made.append(combined(model.coupling.T, on_chain))
        else:
            block, joint = divmod(column - 10 * n, n)
            made.append(symbols(*(of_drives[drives[block]][k] if k == joint else zero for k in range(n))))
    return graph, tuple(column.reference for row in zip(*made, strict=True) for column in row)
