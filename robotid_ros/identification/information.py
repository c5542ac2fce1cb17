# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Sufficient statistics of a linear torque model: small matrices that stand for any number of samples.

The rows of joint j read

    tau_j = Y_j beta + F_j f_j + D_j d_j,

with base parameters beta common to all joints and friction parameters f_j (and, where shapes are
fitted, their linearised changes d_j) of its own. All that weighted least squares needs of them is
one Gram matrix of [Y_j F_j D_j tau_j] per joint. Weights per joint, priors, folds of a
cross-validation and physical constraints then need no further pass over the samples.

Model rows over samples: base regressor and friction columns, evaluated once, in pieces that fit the cache.
"""

import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.linalg.lapack import dposv

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.dynamics import BaseParameters
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import CHUNK, Samples

_LONGEST_RUN = 8_000  # samples of a run that is filtered at once; its ends are a negligible part of it
_KEEP_BYTES = 25e6  # so much of a regressor is kept, the rest is computed again for each pass
ROUNDING = 1e-12  # of what is squared or divided by: less is arithmetic
ITERATIONS, PASSES = 60, 4  # most, of what settles, in about ten as a rule, and of what is nearly settled to begin with
_SETTLED = 1e-4  # relative change of the joints' weights


@dataclass(frozen=True, slots=True, kw_only=True)
class Information:
    """Gram matrices per joint.

    Attributes
    ----------
    gram : ndarray, shape (n, m, m)
        With m = b + k + 1, columns ``[Y F tau]``; weighted by the sample weights.
    count : ndarray, shape (n,)
        Sum of the sample weights.
    base : int
        Number b of base parameters.
    """

    gram: Array
    count: Array
    base: int

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.gram)

    @property
    def own(self) -> int:
        """Number k of friction parameters per joint."""
        return int(self.gram.shape[1]) - self.base - 1

    @property
    def silent(self) -> BoolArray:
        """Which joints have no torque at all, shape (n,), as one without a motor."""
        power = self.gram[:, -1, -1]
        return np.asarray(power <= ROUNDING * float(power.max()))

    @property
    def power(self) -> Array:
        """Mean square of each joint's torque, shape (n,); of a joint without any, the least of the others."""
        power = self.gram[:, -1, -1] / np.maximum(self.count, 1e-300)
        return _of_silent(power, self.silent, 1e-100)

    def precision(self, variance: Array) -> Array:
        """Return the joints' precisions, shape (n,) [1/(N m)^2], from the variances of their residuals, shape (n,).

        A joint without torque is explained exactly by no bodies at all, and would outweigh all others: it counts as the
        least precise of them does.
        """
        return _of_silent(1.0 / np.maximum(variance, ROUNDING * self.power), self.silent, 1.0)

    def __add__(self, other: 'Information') -> 'Information':
        return Information(gram=self.gram + other.gram, count=self.count + other.count, base=self.base)

    def first(self, count: int) -> 'Information':
        """Return the same without all but so many friction parameters of each joint."""
        kept = np.r_[: self.base + count, -1]
        return Information(gram=self.gram[:, kept[:, None], kept], count=self.count, base=self.base)

    @classmethod
    def total(cls, parts: Iterable['Information']) -> 'Information':
        """Return the Gram matrices of several parts together."""
        return reduce(operator.add, parts)

    def normal(self, precision: Array, prior: Prior | None = None) -> tuple[Array, Array]:
        """Return the normal matrix and right-hand side of all parameters ``[beta, f_1, ..., f_n]``.

        Parameters
        ----------
        precision : ndarray, shape (n,)
            Inverse variance of each joint's torque.
        prior : Prior, optional

        Returns
        -------
        matrix : ndarray, shape (P, P)
        vector : ndarray, shape (P,)
        """
        b, k, n = self.base, self.own, self.n
        size = b + n * k
        matrix, vector = np.zeros((size, size)), np.zeros(size)
        common = np.tensordot(precision, self.gram, 1)
        matrix[:b, :b], vector[:b] = common[:b, :b], common[:b, -1]
        for j in range(n if k else 0):
            rows, weighted = slice(b + j * k, b + (j + 1) * k), precision[j] * self.gram[j, :, b:-1]
            matrix[:b, rows], matrix[rows, :b] = weighted[:b], weighted[:b].T
            matrix[rows, rows] = weighted[b:-1]
            vector[rows] = weighted[-1]
        if prior is not None:
            prior.add(matrix, vector)
        return matrix, vector

    def residual_squares(self, parameters: Array) -> Array:
        """Return each joint's weighted sum of squared residuals, shape (n,), for parameters (P,)."""
        b, k, n = self.base, self.own, self.n
        own = parameters[b:].reshape(n, k)
        full = np.concatenate([np.broadcast_to(parameters[:b], (n, b)), own, -np.ones((n, 1))], axis=1)
        squares: Array = np.sum(full * (self.gram @ full[:, :, None])[:, :, 0], axis=1)
        floor = 1e-15 * np.abs(self.gram[:, -1, -1])
        return np.maximum(squares, floor)


def _of_silent(values: Array, silent: BoolArray, alone: float) -> Array:
    """Return positive values in which silent joints have the least of the others, or that of all which are alone."""
    if silent.all():
        return np.maximum(values, alone)
    return np.where(silent, np.min(values, where=~silent, initial=np.inf), values) if silent.any() else values


def gather(rigid: Array, own: Array, target: Array, weight: Array) -> Information:
    """Return the Gram matrices of some samples.

    Parameters
    ----------
    rigid : ndarray, shape (N, n, b)
    own : ndarray, shape (N, n, k)
    target, weight : ndarray, shape (N, n)
    """
    n, b, k = rigid.shape[1], rigid.shape[2], own.shape[2]
    gram = np.empty((n, b + k + 1, b + k + 1))
    root = np.sqrt(weight)
    for j in range(n):
        rows = np.concatenate([rigid[:, j], own[:, j], target[:, j, None]], axis=1, dtype=np.float64)
        rows *= root[:, j, None]
        gram[j] = rows.T @ rows
    return Information(gram=gram, count=weight.sum(axis=0), base=b)


def joint_precision(info: Information, parameters: Array) -> Array:
    """Return the inverse residual variance of each joint, bounded where a joint fits exactly [1/(N m)^2]."""
    used = info.own + info.base / info.n
    return info.precision(info.residual_squares(parameters) / np.maximum(info.count - used, 1.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Minimum of a quadratic form, with inverse, rank and condition of its matrix.

    Attributes
    ----------
    parameters : ndarray, shape (P,)
    inverse : ndarray, shape (P, P)
        Pseudo-inverse of the normal matrix.
    determined : ndarray of bool, shape (P,)
        False for a parameter that data and prior do not determine.
    condition_si, condition_scaled : float
        Condition number of the weighted observation matrix in SI units, and with unit columns;
        columns that are zero throughout do not count.
    bounded : bool
        Whether a friction bound was active.
    """

    parameters: Array
    inverse: Array
    determined: BoolArray
    condition_si: float
    condition_scaled: float
    bounded: bool


def solve(matrix: Array, vector: Array, base: int, friction: FrictionModel | None) -> Solution:
    """Return the parameters that minimise x^T H x / 2 - g^T x with friction that dissipates.

    The columns are brought to unit length first. Directions without information are left at zero
    and reported; friction bounds are imposed only where the free minimum breaks them.

    Parameters
    ----------
    matrix : ndarray, shape (P, P)
        Normal matrix H.
    vector : ndarray, shape (P,)
        Right-hand side g.
    base : int
        Number of base parameters, which come first and are free.
    friction : FrictionModel or None
        Model of the other parameters; None leaves them without bounds.
    """
    length = np.sqrt(np.diag(matrix))
    seen = length > 1e-12 * float(length.max(initial=0.0))
    scale = np.where(seen, length, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    good = values > ROUNDING * max(float(values[-1]), 1e-300)
    inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T
    open_share = np.sum(vectors[:, ~good] ** 2, axis=1)
    parameters = inverse @ (vector / scale) / scale
    inverse = inverse / np.outer(scale, scale)
    unit = matrix[np.ix_(seen, seen)] / np.outer(length[seen], length[seen])
    bounded = False
    if friction is not None and matrix.shape[0] > base:
        k = len(friction.signed)
        weights = np.linalg.solve(friction.generators, parameters[base:].reshape(-1, k).T).T
        slack = 1e-9 * np.abs(weights).max(axis=1, initial=0.0)[:, None]
        if not ((weights >= -slack) | np.array(friction.signed)).all():
            bounded, parameters = True, quick_solve(matrix, vector, base, friction)
    return Solution(
        parameters=parameters,
        inverse=inverse,
        determined=open_share < 1e-6,
        condition_si=_condition(unit, length[seen]),
        condition_scaled=_condition(unit, np.ones(len(unit))),
        bounded=bounded,
    )


def _condition(unit: Array, length: Array) -> float:
    """Return the condition number of A, given A^T A of its columns at unit length, and their lengths."""
    if len(unit) == 0 or float(np.linalg.eigvalsh(unit)[0]) <= ROUNDING * len(unit):
        return float('inf')
    # By a factor of A^T A, whose square would lose columns in units far apart.
    values = np.linalg.svd(np.linalg.cholesky(unit).T * length, compute_uv=False)
    return float(values[0] / values[-1])


def quick_solve(matrix: Array, vector: Array, base: int, friction: FrictionModel | None) -> Array:
    """Return the minimum that :func:`solve` finds, without inverse, rank and condition.

    A Cholesky factor of the normal matrix; bounds by an active set. A normal matrix without full
    rank goes through :func:`solve`.
    """
    if friction is None or len(vector) == base:
        return _cholesky_solution(matrix, vector)
    generators = friction.generators
    signed = np.array(friction.signed)
    k = len(signed)
    n = (len(vector) - base) // k
    plain = np.array_equal(generators, np.eye(k))
    if plain:
        inner, right = matrix, vector
    else:
        change = np.eye(len(vector))
        change[base:, base:] = np.kron(np.eye(n), generators)
        inner, right = change.T @ matrix @ change, change.T @ vector
    bounded = np.concatenate([np.zeros(base, dtype=bool), np.tile(~signed, n)])
    x = non_negative(inner, right, bounded)
    return x if plain else np.asarray(change @ x)


def _cholesky_solution(matrix: Array, vector: Array) -> Array:
    scale = np.sqrt(np.diag(matrix))
    scale = np.where(scale > 0.0, scale, 1.0)
    scaled = matrix / scale / scale[:, None]
    scaled[np.diag_indices(len(scale))] += 1e-14
    # By LAPACK itself: scipy's wrappers take as long as such a small system, and thousands are solved.
    _, found, failed = dposv(scaled.T, vector / scale, overwrite_a=1, overwrite_b=1)
    return solve(matrix, vector, len(vector), None).parameters if failed else np.asarray(found / scale)


def non_negative(matrix: Array, vector: Array, bounded: BoolArray) -> Array:
    """Minimise x^T H x / 2 - g^T x with some x >= 0 by an active set (Lawson and Hanson, chapter 23)."""
    fixed = np.zeros(len(vector), dtype=bool)
    x = np.zeros(len(vector))
    unit = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    for _ in range(4 * int(bounded.sum()) + 4):
        free = ~fixed
        x = np.zeros(len(vector))
        some = matrix[np.ix_(free, free)] if fixed.any() else matrix
        x[free] = _cholesky_solution(some, vector[free])
        below = bounded & free & (x * unit < -1e-12 * np.abs(x * unit).max())
        if below.any():
            fixed |= below
            continue
        gradient = (vector - matrix @ x) / unit
        gradient[free] = 0.0
        strongest = int(np.argmax(gradient))
        if gradient[strongest] <= 1e-9 * np.abs(vector / unit).max():
            break
        fixed[strongest] = False
    return np.where(bounded, np.maximum(x, 0.0), x)


def solved(info: Information, precision: Array, friction: FrictionModel | None, prior: Prior | None = None) -> Array:
    """Return the parameters (P,) that fit some Gram matrices best, with given weights of the joints."""
    return quick_solve(*info.normal(precision, prior), info.base, friction)


def reweighted(
    info: Information, friction: FrictionModel | None, precision: Array, prior: Prior | None = None
) -> Array:
    """Return the weights of the joints, shape (n,), that are the inverse variances of their residuals, by iteration.

    Parameters
    ----------
    info : Information
    friction : FrictionModel or None
        Keeps the friction dissipative; None leaves it free.
    precision : ndarray, shape (n,)
        Weights to start from [1/(N m)^2].
    prior : Prior, optional
    """
    for _ in range(ITERATIONS):
        updated = joint_precision(info, solved(info, precision, friction, prior))
        settled = np.abs(np.log(updated / precision)).max() < _SETTLED
        precision = updated
        if settled:
            break
    return precision


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A contiguous piece of the rows.

    Attributes
    ----------
    rows : slice
    samples : Samples
    rigid : ndarray, shape (M, n, b)
        Base regressor, filtered.
    """

    rows: slice
    samples: Samples
    rigid: Array

    def own(self, friction: FrictionModel, shape: Array, load: Array | None) -> Array:
        """Return the filtered friction columns, shape (M, n, k), for the load of all rows, shape (N, n)."""
        some = None if load is None else load[self.rows]
        return self.samples.filtered(self.samples.friction_columns(friction, shape, some))


def _weighed(base: BaseParameters, n: int) -> BoolArray:
    """Return for which joints base parameters make a constant torque, the same in all motion, shape (n,)."""
    rng = np.random.default_rng(0)
    rows = base.regressor(*rng.normal(size=(3, 2 * len(base.independent), n)))
    flat, wanted = rows.reshape(-1, rows.shape[2]), np.tile(np.eye(n), (len(rows), 1))
    left = wanted - flat @ np.linalg.lstsq(flat, wanted, rcond=1e-9)[0]
    return np.asarray(np.linalg.norm(left, axis=0) < 1e-6 * np.sqrt(len(rows)))


class Rows:
    """Rows of the linear torque model, filtered by the low-passes that the torque went through.

    The base regressor is computed once as far as it is kept, without the columns that are zero; so are Gram matrices of
    friction that depends on nothing but the samples.
    """

    def __init__(self, base: BaseParameters, samples: Samples) -> None:
        self.base = base
        self.samples = replace(samples, weighed=_weighed(base, samples.n))
        self._kept: dict[int, tuple[IntArray, Array]] = {}
        self._bytes = 0
        self._known: dict[str, Information] = {}

    def _parts(self) -> Iterator[tuple[slice, Samples]]:
        start = 0
        for part in self.samples.pieces(CHUNK if self.samples.open else _LONGEST_RUN):
            yield slice(start, start + len(part)), part
            start += len(part)

    def _rigid(self, part: Samples) -> Array:
        return self.base.regressor(part.q, part.dq, part.ddq)

    def pieces(self) -> Iterator[Piece]:
        """Yield the rows piece by piece."""
        for rows, part in self._parts():
            shape = len(part), part.n, len(self.base.independent)
            if (kept := self._kept.get(rows.start)) is None:
                rigid = part.filtered(self._rigid(part))
                if self._bytes < _KEEP_BYTES:
                    flat = rigid.reshape(len(part), -1)
                    seen = np.flatnonzero(flat.any(axis=0))
                    self._kept[rows.start] = seen, flat[:, seen]
                    self._bytes += self._kept[rows.start][1].nbytes
            else:
                flat = np.zeros((len(part), shape[1] * shape[2]))
                flat[:, kept[0]] = kept[1]
                rigid = flat.reshape(shape)
            yield Piece(rows=rows, samples=part, rigid=rigid)

    def torque(self, values: Array) -> Array:
        """Return the rigid body's torque before any filter, shape (N, n), of base parameters (b,) [N m]."""
        return np.concatenate([self._rigid(part) @ values for _, part in self._parts()])

    def information(
        self,
        friction: FrictionModel,
        shape: Array | None = None,
        load: Array | None = None,
        weight: Array | None = None,
    ) -> Information:
        """Return the Gram matrices of the rows; ``weight``, shape (N, n), replaces that of the samples."""
        shape = np.zeros((self.samples.n, 0)) if shape is None else shape
        own_weight = weight is None or weight is self.samples.weight
        name = friction.name if own_weight and friction.by_name and not (friction.needs_load or shape.size) else ''
        if name in self._known:
            return self._known[name]

        def of(piece: Piece) -> Information:
            some = piece.samples.weight if weight is None else weight[piece.rows]
            return gather(piece.rigid, piece.own(friction, shape, load), piece.samples.target, some)

        total = Information.total(map(of, self.pieces()))
        if name:
            self._known[name] = total
        return total
