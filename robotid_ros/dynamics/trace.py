"""The regressor traced into an expression graph: the recursion of the batch regressor, on symbols."""

from collections.abc import Sequence

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import Chain
from robotid_ros.dynamics.expression import Expression, Graph, Number

__all__ = ['Vector', 'combined', 'cross', 'dot', 'matrix_times', 'trace_regressor', 'turned', 'velocity_matrix']

Vector = tuple[Number, Number, Number]

# What is smaller than this in a product of rotation matrices is round-off of a right angle.
_ROUND_OFF = 1e-15


def cross(a: Vector, b: Vector) -> Vector:
    """Return a x b."""
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def dot(a: Vector, b: Vector) -> Number:
    """Return a . b."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def matrix_times(matrix: Array, vector: Vector) -> Vector:
    """Return a constant matrix times a vector; entries within round-off of 0 and +-1 are exact."""
    rows = [[_exact(float(entry)) for entry in row] for row in matrix]
    return tuple(r[0] * vector[0] + r[1] * vector[1] + r[2] * vector[2] for r in rows)  # type: ignore[return-value]


def turned(vector: Vector, cosine: Number, sine: Number) -> Vector:
    """Return the components in a frame turned about z by the angle."""
    x, y, z = vector
    return (cosine * x + sine * y, cosine * y - sine * x, z)


def velocity_matrix(rate: Vector, change: Vector) -> tuple[Vector, Vector, Vector]:
    """Return the rows of U = [dw]x + [w]x [w]x."""
    x, y, z = rate
    xx, yy, zz = x * x, y * y, z * z
    xy, xz, yz = x * y, x * z, y * z
    return (
        (-(yy + zz), xy - change[2], xz + change[1]),
        (xy + change[2], -(xx + zz), yz - change[0]),
        (xz - change[1], yz + change[0], -(xx + yy)),
    )


def trace_regressor(
    graph: Graph,
    chain: Chain,
    coupling: Array,
    q: Sequence[Expression],
    dq: Sequence[Expression],
    ddq: Sequence[Expression],
    drives: Sequence[str],
    columns: Sequence[int],
) -> list[list[Number]]:
    """Return chosen columns of the full regressor as expressions.

    Parameters
    ----------
    graph : Graph
    chain : Chain
    coupling : ndarray, shape (n, n)
        Chain coordinates from measured ones.
    q, dq, ddq : sequence of Expression
        Measured coordinates.
    drives : sequence of {'Ia', 'Fv', 'Fc', 'offset'}
        Which blocks of n columns follow the inertial ones.
    columns : sequence of int
        Columns of the full regressor.

    Returns
    -------
    list of list
        Entry [i][c]: row i, column ``columns[c]``.
    """
    n = len(q)
    zero = graph.constant(0.0)
    moved = [combined(coupling, x) for x in (q, dq, ddq)]
    per_link: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    result: list[list[Number]] = [[zero] * len(columns) for _ in range(n)]
    for position, column in enumerate(columns):
        if column < 10 * n:
            per_link[column // 10].append((position, column % 10))
        else:
            joint, drive = (column - 10 * n) % n, drives[(column - 10 * n) // n]
            value: Number = (
                1.0 if drive == 'offset' else {'Ia': ddq, 'Fv': dq, 'Fc': [x.sign() for x in dq]}[drive][joint]
            )
            result[joint][position] = value
    for k, blocks in enumerate(_link_columns(chain, *moved)):
        for position, parameter in per_link[k]:
            chain_rows = [_combined_column(block, chain.to_aligned[k][:, parameter]) for block in blocks] + [zero] * (
                n - k - 1
            )
            for i in range(n):
                total: Number = zero
                for j in range(n):
                    total = total + _exact(float(coupling[j, i])) * chain_rows[j]
                result[i][position] = total
    return result


def combined(matrix: Array, x: Sequence[Expression]) -> list[Expression]:
    """Return a constant matrix times a list of expressions."""
    rows = []
    for row in matrix:
        total: Expression = x[0] * 0.0
        for entry, value in zip(row, x, strict=True):
            total = total + _exact(float(entry)) * value
        rows.append(total)
    return rows


def _combined_column(block: Sequence[Number], weights: Array) -> Number:
    total: Number = 0.0
    for value, weight in zip(block, weights, strict=True):
        total = total + value * _exact(float(weight))
    return total


def _link_columns(
    chain: Chain, q: Sequence[Expression], dq: Sequence[Expression], ddq: Sequence[Expression]
) -> list[list[list[Number]]]:
    """Return, for each link and each joint up to it, the columns of the ten parameters in the aligned frame."""
    zero = q[0] * 0.0
    rate: Vector = (zero, zero, zero)
    change: Vector = (zero, zero, zero)
    acceleration: Vector = tuple(zero + float(g) for g in chain.start)  # type: ignore[assignment]
    matrix = velocity_matrix(rate, change)
    screws: list[tuple[Vector, Vector]] = []
    result = []
    for k, revolute in enumerate(chain.revolute):
        slide = chain.slides[k]
        origin: Vector = tuple(
            zero + float(p) + (0.0 if revolute else _exact(float(s)) * q[k])
            for p, s in zip(chain.offsets[k], slide, strict=True)
        )  # type: ignore[assignment]
        if k > 0:
            swing = tuple(dot(row, origin) for row in matrix)
            acceleration = tuple(a + b for a, b in zip(acceleration, swing, strict=True))  # type: ignore[assignment]
        screws = [(z, tuple(a + b for a, b in zip(v, cross(z, origin), strict=True))) for z, v in screws]  # type: ignore[misc]
        basis = chain.rotations[k].T
        cosine, sine = (q[k].cos(), q[k].sin()) if revolute else (zero + 1.0, zero)

        def local(vector: Vector, basis: Array = basis, cosine: Number = cosine, sine: Number = sine) -> Vector:
            return turned(matrix_times(basis, vector), cosine, sine)

        rate, change, acceleration = local(rate), local(change), local(acceleration)
        screws = [(local(z), local(v)) for z, v in screws]
        axis: Vector = (zero, zero, zero + 1.0)
        if revolute:
            change = (change[0] + rate[1] * dq[k], change[1] - rate[0] * dq[k], change[2] + ddq[k])
            rate = (rate[0], rate[1], rate[2] + dq[k])
            screws.append((axis, (zero, zero, zero)))
        else:
            twice = 2.0 * dq[k]
            acceleration = (
                acceleration[0] + rate[1] * twice,
                acceleration[1] - rate[0] * twice,
                acceleration[2] + ddq[k],
            )
            screws.append(((zero, zero, zero), axis))
        matrix = velocity_matrix(rate, change)
        result.append([_columns(rate, change, acceleration, matrix, z, v) for z, v in screws])
    return result


def _columns(
    rate: Vector,
    change: Vector,
    acceleration: Vector,
    u: tuple[Vector, Vector, Vector],
    angular: Vector,
    linear: Vector,
) -> list[Number]:
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
    return columns


def _exact(value: float) -> float:
    nearest = float(round(value))
    return nearest if abs(value - nearest) < _ROUND_OFF else value
