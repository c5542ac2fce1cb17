# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.
"""What samples say of a set-up: the posterior at its maximum, and the error in states that were left out.

All set-ups are compared by one linear model of bodies, rotors and simple friction (see
:mod:`robotid_ros.identification.setup_search`), with a normal prior of the bodies: the description's, or that of any
links of its size.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters, full_regressor
from robotid_ros.identification.config import AT_REST
from robotid_ros.identification.information import (
    PASSES,
    ROUNDING,
    Information,
    gather,
    non_negative,
    quick_solve,
)
from robotid_ros.identification.judge import Bench, Score
from robotid_ros.identification.prior import Prior, standard_prior
from robotid_ros.identification.samples import LEAST_RANGE, Samples
from robotid_ros.identification.setup import SetUp, several_units
from robotid_ros.identification.terms import SMOOTH
from robotid_ros.model.robot_model import RobotModel

_TURN_STEPS = 6  # Gauss-Newton steps of a free direction of gravity; it moves by less than a degree in the last ones
_ANY_GRAVITY = np.array([3.0, 5.0, -7.0])  # along no first axis, where it would hide parameters
_SPRING = 0.3  # of a joint's torque over its range: what a spring or a counterbalance may take
_KEPT = 16  # Gram matrices
_NO_ERROR = 0.3, 0.03, 1e-3  # of a joint's effort: what counts as no error, step by step
_HELD = 0.005  # weight of a factor's logarithm, so that a joint which hardly acts on another keeps its own
_FACTOR = 1e4  # largest of a joint


class Maximum(NamedTuple):
    """The maximum of a posterior: parameters (m,), precisions (n,), and minus the logarithms of prior and posterior."""

    parameters: Array
    precision: Array
    strangeness: float
    cost: float


class Evidence:
    """What some samples say of the set-ups of an arm: their posterior, and their errors in states left out."""

    def __init__(self, samples: Samples, described: RobotModel) -> None:
        self.samples, self.described = samples, described
        mean, deviation = standard_prior(described, rotor_inertia=True)
        self.n, self.independent = described.n, float(samples.independent_per_sample * np.sum(samples.weight))
        links = slice(10 * self.n)
        # The links count by their base parameters, the same under any gravity: fewer columns, and the same maximum.
        base = base_parameters(replace(described, gravity=_ANY_GRAVITY), tolerance=DATA_TOLERANCE)
        self.kept, self.last = base.independent, base.map[:, -10:]
        self.b = len(self.kept)
        grouping = np.zeros((self.b + self.n, 11 * self.n))
        grouping[: self.b, links], grouping[self.b :, 10 * self.n :] = base.map, np.eye(self.n)
        covariance = (grouping * deviation**2) @ grouping.T
        self.bodies = Prior.of_groups(grouping, mean, covariance)
        self.squares = (covariance + np.outer(self.bodies.mean, self.bodies.mean))[: self.b, : self.b]
        self.added = 1.0 / deviation[10 * (self.n - 1) : 10 * self.n] ** 2
        self.models: dict[bytes, RobotModel] = {}
        self._known: dict[bytes, Information] = {}

    def model(self, gravity: Array) -> RobotModel:
        """Return the arm under some gravity, the same one each time: its recursion is prepared once."""
        key = gravity.tobytes()
        if key not in self.models:
            self.models[key] = replace(self.described, gravity=gravity)
        return self.models[key]

    def torque(self, setup: SetUp) -> Array:
        """Return the torque, shape (N, n), in the coordinates of the description."""
        return self.samples.target @ setup.torque.T

    def rows(self, setup: SetUp, added: Array | None = None) -> Array:
        """Return the rows, shape (N, n, m), of bodies, rotors, friction, offset and spring."""
        samples, drives, b, n = self.samples, setup.drives, self.b, self.n
        q = samples.q @ setup.position.T + setup.zero
        dq, ddq = samples.dq @ setup.position.T, samples.ddq @ setup.position.T
        rigid = full_regressor(self.model(setup.gravity), q, dq, ddq)
        moving = dq @ drives.T
        at_motors = np.stack([ddq @ drives.T, np.sign(moving), moving, np.ones_like(dq), q - q.mean(axis=0)], axis=1)
        rows = np.empty((n, len(samples), b + 5 * n + (0 if added is None else 10)))
        rows[:, :, :b] = rigid[:, :, self.kept].swapaxes(0, 1)
        rows[:, :, b : b + 5 * n] = (drives.T[:, None, None] * at_motors).reshape(n, len(samples), 5 * n)
        if added is not None:
            rows[:, :, b + 5 * n :] = rigid[:, :, -10:].swapaxes(0, 1) * added[:, None]
        return rows.swapaxes(0, 1)

    def information(self, setup: SetUp) -> Information:
        """Return the Gram matrices; those with all efforts are kept for a while, since many set-ups share a motion."""
        motion = setup.gravity, setup.position, setup.zero, setup.drives
        key = b''.join(each.tobytes() for each in motion)
        if key not in self._known:
            if len(self._known) == _KEPT:
                del self._known[next(iter(self._known))]
            efforts = np.broadcast_to(self.samples.target[:, None, :], (len(self.samples), self.n, self.n))
            self._known[key] = gather(self.rows(setup), efforts[:, :, 1:], efforts[:, :, 0], self.samples.weight)
        known, turn = self._known[key], np.roll(setup.torque, -1, axis=1)
        m, gram = known.base, known.gram
        result = np.empty((self.n, m + 1, m + 1))
        result[:, :m, :m] = gram[:, :m, :m]
        result[:, :m, m] = result[:, m, :m] = (gram[:, :m, m:] @ turn[:, :, None])[:, :, 0]
        result[:, m, m] = (turn[:, None] @ gram[:, m:, m:] @ turn[:, :, None])[:, 0, 0]
        return Information(gram=result, count=known.count, base=m)

    def part(self, rows: Array, torque: Array, keep: BoolArray | slice = slice(None)) -> Information:
        """Return the Gram matrices of some samples; all parameters are common to the joints."""
        rows = rows[keep]
        return gather(rows, np.empty((*rows.shape[:2], 0)), torque[keep], self.samples.weight[keep])

    def prior(self, info: Information) -> tuple[Array, Array]:
        """Return mean and precision of all parameters, (m,) and (m, m); of what a moment added, those of a link.

        Efforts may be currents or counts: the prior says how torque is shared out, not how large it is. So bodies are
        as large as the torque is.
        """
        b, n, m = self.b, self.n, info.base
        expected = float(np.sum(info.gram[:, :b, :b] * self.squares))
        square = float(np.sum(info.gram[:, -1, -1])) / expected if expected > 0.0 else 1.0
        mean, precision = np.zeros(m), np.zeros((m, m))
        mean[: b + n] = np.sqrt(square) * self.bodies.mean
        precision[: b + n, : b + n] = self.bodies.precision / square
        springs = np.arange(b + 4 * n, b + 5 * n)
        range_ = np.maximum(np.einsum('jkk->k', info.gram[:, springs[:, None], springs]) / info.count, LEAST_RANGE**2)
        precision[springs, springs] = range_ / (_SPRING**2 * info.power)
        added = np.arange(b + 5 * n, m)
        precision[added, added] = np.resize(self.added, len(added)) / square
        return mean, precision

    def solve(
        self, info: Information, precision: Array | None = None, *, free: bool = False, passes: int = PASSES
    ) -> Maximum:
        """Return the maximum of the posterior, with the joints' precisions, shape (n,), or those that it is of."""
        m, share, power = info.base, self.samples.independent_per_sample, info.power
        mean, pull = self.prior(info)
        bounded = np.zeros(m, dtype=bool)  # rotor inertias, Coulomb and viscous friction
        bounded[self.b : self.b + 3 * self.n] = not free
        fixed = precision is not None
        current = 10.0 / power if precision is None else precision
        told, found = current, mean
        for _ in range(1 if fixed else passes):
            matrix, vector = info.normal(share * current)
            matrix += pull
            matrix[np.diag_indices(m)] *= 1.0 + ROUNDING
            found = non_negative(matrix, vector + pull @ mean, bounded)
            told = info.precision(info.residual_squares(found) / np.maximum(info.count, 1e-300))
            current = current if fixed else told
        strange = 0.5 * float((found - mean) @ pull @ (found - mean))
        return Maximum(found, current, strange, strange - 0.5 * share * float(info.count @ np.log(told)))

    def strangeness(self, setup: SetUp) -> float:
        """Return minus the logarithm of the prior at the posterior's maximum."""
        return self.solve(self.information(setup)).strangeness

    def cost(self, setup: SetUp, *, free: bool = False, passes: int = PASSES) -> float:
        """Return minus the logarithm of the posterior at its maximum; ``free`` lets friction drive a joint."""
        stretched = self.independent / self.n * float(np.linalg.slogdet(setup.torque)[1])  # of the recorded efforts
        return self.solve(self.information(setup), free=free, passes=passes).cost - stretched

    def score(self, setup: SetUp, label: IntArray, added: Array | None = None, *, free: bool = False) -> Score:
        """Return the held-out errors in the coordinates of the set-up; ``free`` lets friction drive a joint."""
        rows, torque = self.rows(setup, added), self.torque(setup)
        bench = Bench.of_parts([self.part(rows, torque, label == k) for k in np.unique(label)])
        precision = self.solve(bench.total, free=free).precision
        found = bench.score(lambda info: self.solve(info, precision, free=free).parameters)
        return replace(found, squares=found.squares / _units(setup) ** 2)

    def of_change(self, setup: SetUp, moments: Sequence[int]) -> tuple[float, list[float]]:
        """Return the cost of a set-up, and its costs with another last link from each of some moments on.

        What is added is the last link again, by the Gram matrices of the times between moments. Friction may drive.
        """
        rows, torque = self.rows(setup), self.torque(setup)
        parts = [self.part(rows, torque, slice(*each)) for each in pairwise([0, *moments, len(self.samples)])]
        before, costs, m = Information.total(parts), [], rows.shape[2]
        for k in range(len(moments)):
            columns, gram = Information.total(parts[k + 1 :]).gram[:, :, : self.b] @ self.last, before.gram
            corner = self.last.T @ columns[:, : self.b]
            wide = np.block(
                [
                    [gram[:, :m, :m], columns[:, :m], gram[:, :m, m:]],
                    [columns[:, :m].transpose(0, 2, 1), corner, columns[:, m:].transpose(0, 2, 1)],
                    [gram[:, m:, :m], columns[:, m:], gram[:, m:, m:]],
                ]
            )
            costs.append(self.solve(Information(gram=wide, count=before.count, base=m + 10), free=True).cost)
        return self.solve(before, free=True).cost, costs

    def in_several_units(self, setup: SetUp) -> SetUp:
        """Return the set-up in which each effort has a unit of its own."""
        samples, torque = self.samples, setup.torque
        bodies = np.linalg.inv(torque) @ self.rows(setup)[:, :, : self.b + self.n]
        factors = mutual_factors(bodies, samples.dq @ setup.position.T @ torque, samples.target)
        return several_units(setup, self.described, factors)

    def tilted(self, setup: SetUp) -> SetUp:
        """Return a set-up with the direction of gravity found from its own, by Gauss-Newton's method."""
        size = float(np.linalg.norm(setup.gravity))
        gravity = setup.gravity
        for _ in range(_TURN_STEPS):
            rows, torque = self.rows(replace(setup, gravity=gravity)), self.torque(setup)
            whole = self.part(rows, torque)
            found, precision = self.solve(whole)[:2]
            across = np.linalg.svd(gravity[None] / size)[2][1:]  # two directions at right angles to gravity
            bodies = found[: self.b]
            q = self.samples.q @ setup.position.T + setup.zero
            still = np.zeros_like(q)
            bends = [
                full_regressor(self.model(size * direction), q, still, still, part='gravity')[:, :, self.kept] @ bodies
                for direction in across
            ]
            info = self.part(np.concatenate([rows, np.stack(bends, axis=-1)], axis=2), torque - rows @ found)
            matrix, vector = info.normal(self.samples.independent_per_sample * precision)
            mean, pull = self.prior(whole)
            matrix[:-2, :-2] += pull
            matrix[[-2, -1], [-2, -1]] += 1.0  # of the directions, a radian
            vector[:-2] += pull @ (mean - found)
            step = quick_solve(matrix, vector, info.base, None)[-2:]
            step *= min(1.0, 0.7 / max(float(np.linalg.norm(step)), 1e-12))
            turned = gravity / size + step @ across
            gravity = size * turned / np.linalg.norm(turned)
        return replace(setup, gravity=gravity)


def _units(setup: SetUp) -> Array:
    """Return what the efforts that make each torque are multiplied with, shape (n,), in the mean."""
    return np.asarray(np.sqrt(np.sum(setup.torque**2, axis=1) / np.count_nonzero(setup.torque, axis=1)))


def mutual_factors(rows: Array, dq: Array, torque: Array) -> Array:
    """Return what each effort, shape (N, n), has to be multiplied with so that the same bodies explain all of them.

        k_j tau_j = Y_j x + k_j (c_j sign(v_j) + d_j v_j + e_j sign(v_j) v_j^2 + s_j sign(v_j) exp(-|v_j| / w_j) + o_j)

    with one x for all efforts, and a friction and an offset of each. What a motion of one joint asks of another, the
    other's asks of the first: the mass matrix is symmetric, and gravity is the slope of one energy. Efforts that are
    torques times a factor of each joint, such as motor currents, break this. The factors are found from it as far as
    joints act on each other, but for one that is common to all, without any mass of the description.

    Parameters
    ----------
    rows : ndarray, shape (N, n, b)
        Y, of base or all parameters: in the coordinates of the efforts, which are the motors' where these are recorded.
    dq : ndarray, shape (N, n)
        v, in the same coordinates [rad/s or m/s].
    torque : ndarray, shape (N, n)
        In whatever units.

    Returns
    -------
    ndarray, shape (n,)
        With a geometric mean of 1; 1 for joints without torque or motion.
    """
    n = dq.shape[1]
    grams = np.zeros((n, rows.shape[2] + 1, rows.shape[2] + 1))  # of the regressor and the torque, by joint
    for j in range(n):
        speed, fastest = dq[:, j], float(np.abs(dq[:, j]).max(initial=0.0))
        moving = np.abs(speed) > AT_REST * fastest
        sign, near = np.sign(speed), np.exp(-np.abs(speed) / (SMOOTH * fastest + 1e-300))
        own = np.stack([sign, speed, sign * speed**2, sign * near, np.ones(len(speed))], axis=1)[moving]
        signals = np.concatenate([rows[moving, j], torque[moving, j, None]], axis=1)
        if moving.sum() <= 2 * own.shape[1]:
            continue
        own /= np.linalg.norm(own, axis=0) + 1e-300
        left = signals - own @ np.linalg.lstsq(own, signals, rcond=None)[0]
        size = float(np.linalg.norm(left[:, -1]))
        if size > 0.0:
            grams[j] = left.T @ left / size**2
    known = grams[:, -1, -1] > 0.0
    factors = np.ones(n)
    if known.sum() > 1:
        factors[known] = np.exp(_fitted(grams[known]))
    return factors


def _fitted(grams: Array) -> Array:
    """Return the logarithms of the factors, shape (n,), by which the errors of all joints are least.

    The sum of the errors' logarithms has many minima, in which some joints are explained very well and others not at
    all. So it is minimised with an error that counts as none which is large at first, and small in the end.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.einsum('jkk->k', grams[:, :-1, :-1]), 1e-300))
    square, product = grams[:, :-1, :-1] * scale * scale[:, None], grams[:, :-1, -1] * scale

    def cost(logarithms: Array, none: float) -> tuple[float, Array]:
        share = np.exp(logarithms.mean() - logarithms)  # what a torque of 1 is in a joint's effort
        found = np.ones(len(grams))
        for _ in range(12):
            weight = 1.0 / (found + none**2)
            matrix = np.tensordot(weight * share**2, square, 1)
            matrix[np.diag_indices(len(matrix))] += ROUNDING * np.trace(matrix)
            x = np.linalg.solve(matrix, (weight * share) @ product)
            own, along = share**2 * np.einsum('k,jkl,l->j', x, square, x), share * (product @ x)
            before, found = found, np.maximum(1.0 - 2.0 * along + own, 0.0)
            if np.abs(np.log((found + none**2) / (before + none**2))).max() < 1e-6:
                break
        centred = logarithms - logarithms.mean()
        slope = 2.0 * (along - own) / (found + none**2) + 2.0 * _HELD * centred
        return float(np.sum(np.log(found + none**2)) + _HELD * centred @ centred), slope - slope.mean()

    from scipy.optimize import minimize  # not at the top: see robotid_ros.signals.filtering

    best = np.zeros(len(grams))
    for none in _NO_ERROR:
        bounds = [(-np.log(_FACTOR), np.log(_FACTOR))] * len(best)
        best = minimize(cost, best, args=(none,), jac=True, method='L-BFGS-B', bounds=bounds).x
        best = best - best.mean()
    return np.asarray(best)
