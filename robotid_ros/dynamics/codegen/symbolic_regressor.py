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
from typing import TypeAlias, cast

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import Chain, aligned_chain
from robotid_ros.dynamics.codegen.expression import (
    Expression,
    Graph,
    GraphFunction,
    InputBlock,
    Number,
    Op,
    combined,
    exact,
    gradient,
)
from robotid_ros.model import RobotModel

Vector: TypeAlias = tuple[Number, Number, Number]
Rows: TypeAlias = tuple[Vector, Vector, Vector]


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def dot(a: Vector, b: Vector) -> Number:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def plus(a: Vector, b: Vector) -> Vector:
    """Return a + b."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def times(a: Number, b: Vector) -> Vector:
    """Return the number a times the vector b."""
    return (a * b[0], a * b[1], a * b[2])


def rows_times(rows: Rows, vector: Vector) -> Vector:
    """Return the matrix with these rows times a vector."""
    return (dot(rows[0], vector), dot(rows[1], vector), dot(rows[2], vector))


def constant_vector(graph: Graph, values: Array) -> Vector:
    """Return three numbers as a vector of constants; those within round-off of 0 and +-1 are exact."""
    x, y, z = (graph.constant(exact(float(value))) for value in values)
    return (x, y, z)


def matrix_times(matrix: Array, vector: Vector) -> Vector:
    """Return a constant matrix times a vector; entries within round-off of 0 and +-1 are exact."""
    x, y, z = ((exact(float(row[0])), exact(float(row[1])), exact(float(row[2]))) for row in matrix)
    return rows_times((x, y, z), vector)


def turned(vector: Vector, cosine: Number, sine: Number) -> Vector:
    """Return the components in a frame turned about z by the angle."""
    x, y, z = vector
    return (cosine * x + sine * y, cosine * y - sine * x, z)


def velocity_matrix(rate: Vector, change: Vector) -> Rows:
    """Return the rows of U = [dw]x + [w]x [w]x."""
    x, y, z = rate
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    return (
        (-(yy + zz), xy - change[2], xz + change[1]),
        (xy + change[2], -(xx + zz), yz - change[0]),
        (xz - change[1], yz + change[0], -(xx + yy)),
    )


def _link_columns(
    chain: Chain, q: Sequence[Expression], dq: Sequence[Expression], ddq: Sequence[Expression]
) -> list[list[list[Expression]]]:
    """Return, for each link and each joint up to it, the columns of the ten parameters in the aligned frame."""
    graph = q[0].graph
    rest, axis = constant_vector(graph, np.zeros(3)), constant_vector(graph, np.array([0.0, 0.0, 1.0]))
    rate, change, acceleration = rest, rest, constant_vector(graph, chain.start)
    screws: list[tuple[Vector, Vector]] = []
    result = []
    for k, revolute in enumerate(chain.revolute):
        origin = constant_vector(graph, chain.offsets[k])
        if not revolute:
            origin = plus(origin, times(q[k], constant_vector(graph, chain.slides[k])))
        acceleration = plus(acceleration, rows_times(velocity_matrix(rate, change), origin))
        basis = chain.rotations[k].T
        cosine, sine = (q[k].cos(), q[k].sin()) if revolute else (axis[2], rest[0])

        def local(vector: Vector, basis: Array = basis, cosine: Number = cosine, sine: Number = sine) -> Vector:
            return turned(matrix_times(basis, vector), cosine, sine)

        screws = [(local(z), local(plus(v, cross(z, origin)))) for z, v in screws]
        rate, change, acceleration = local(rate), local(change), local(acceleration)
        if revolute:
            change = plus(change, (rate[1] * dq[k], -(rate[0] * dq[k]), ddq[k]))
            rate = plus(rate, times(dq[k], axis))
            screws.append((axis, rest))
        else:
            twice = 2.0 * dq[k]
            acceleration = plus(acceleration, (rate[1] * twice, -(rate[0] * twice), ddq[k]))
            screws.append((rest, axis))
        matrix = velocity_matrix(rate, change)
        result.append([_columns(rate, change, acceleration, matrix, z, v) for z, v in screws])
    return result


def _columns(
    rate: Vector, change: Vector, acceleration: Vector, u: Rows, angular: Vector, linear: Vector
) -> list[Expression]:
    """Return angular . moment + linear . force for the ten unit parameters of a link."""
    x, y, z = rate
    ax, ay, az = change
    xy, xz, yz = x * y, x * z, y * z
    xx, yy, zz = x * x, y * y, z * z
    transposed = tuple(zip(*u, strict=True))
    moments: list[Vector] = [
        (ax, xz, -xy),
        (ay - xz, ax + yz, xx - yy),
        (az + xy, zz - xx, ax - yz),
        (-yz, ay, xy),
        (yy - zz, az - xy, ay + xz),
        (yz, -xz, az),
    ]
    units: list[Vector] = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)]
    columns = [dot(angular, moment) for moment in moments]
    columns += [dot(linear, transposed[k]) + dot(angular, cross(units[k], acceleration)) for k in range(3)]
    columns.append(dot(linear, acceleration))
    return cast('list[Expression]', columns)


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
    graph, n, chain = Graph(), model.n, aligned_chain(model)
    q, dq, ddq = (graph.inputs(k * n, n) for k in range(3))
    zero, one = graph.constant(0.0), graph.constant(1.0)
    of_drives = {'Ia': ddq, 'Fv': dq, 'Fc': [x.sign() for x in dq], 'offset': [one] * n}
    blocks = _link_columns(chain, *(combined(model.coupling, x) for x in (q, dq, ddq)))
    made: dict[int, list[Expression]] = {}
    for column in sorted(columns):
        if column < 10 * n:
            link, parameter = divmod(column, 10)
            weights = chain.to_aligned[link][:, [parameter]].T
            on_chain = [combined(weights, block)[0] for block in blocks[link]] + [zero] * (n - link - 1)
            made[column] = combined(model.coupling.T, on_chain)
        else:
            block, joint = divmod(column - 10 * n, n)
            made[column] = [of_drives[drives[block]][k] if k == joint else zero for k in range(n)]
    return graph, tuple(made[column][i].reference for i in range(n) for column in columns)
