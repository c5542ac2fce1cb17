# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Separable (variable-projection) non-linear least squares for friction that is not linear in its parameters.

Only the shape parameters and the width of the smoothed sign are searched for; at each of them the
base parameters and the linear friction parameters are the exact linear least-squares solution
(Golub and Pereyra, SIAM J. Numer. Anal. 10 (1973); Kaufman's form of the Jacobian). All joints are
solved at once, because they share the inertial parameters.
"""

from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import Information, quick_solve
from robotid_ros.identification.samples import Samples

_GRID = (0.15, 0.4, 0.65, 0.9)  # of the logarithmic range of a shape parameter
_SCALE_RANGE = (1e-3, 0.5)  # of the largest speed: from nearly a step to nearly a line
_STEP = 1e-4  # of a logarithm, for central differences
_TOLERANCE = 1e-6  # relative decrease of the cost that counts as converged
_STEPS = 25  # at most, by Gauss and Newton: what has not settled by then hardly predicts better


class _Problem:
    """Samples with everything precomputed that does not depend on the shapes."""

    def __init__(
        self, plain: Array, samples: Samples, friction: FrictionModel, fit_scale: bool, filtered: Array | None
    ) -> None:
        self.samples, self.friction, self.fit_scale = samples, friction, fit_scale
        rigid = samples.filtered(plain) if filtered is None else filtered
        root = np.sqrt(samples.weight).T[..., None]
        self.rigid = np.ascontiguousarray(rigid.transpose(1, 0, 2)) * root
        self.target = samples.target.T[..., None] * root
        self.plain = plain
        self.root = root
        self.n, self.b = samples.n, rigid.shape[2]
        self.k, self.s = len(friction.linear_names), len(friction.shape_names)
        transposed = self.rigid.transpose(0, 2, 1)
        self.fixed = transposed @ self.rigid
        self.fixed_target = (transposed @ self.target)[..., 0]
        self.target_square = np.sum(self.target**2, axis=(1, 2))
        self.fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
        lower, upper = friction.shape_bounds(self.fastest)
        scale = np.log(self.fastest[:, None] * np.array(_SCALE_RANGE)) if fit_scale else np.zeros((self.n, 0))
        self.lower = np.concatenate([np.log(lower), scale[:, :1]], axis=1)
        self.upper = np.concatenate([np.log(upper), scale[:, 1:]], axis=1)
        self.load = samples.target
        self.precision = np.ones(self.n)
        self.evaluations = 0

    def model(self, theta: Array) -> FrictionModel:
        return self.friction.smoothed(np.exp(theta[:, -1])) if self.fit_scale else self.friction

    def columns(self, theta: Array) -> Array:
        return self.samples.filtered(
            self.samples.friction_columns(self.model(theta), np.exp(theta[:, : self.s]), self.load)
        )

    def information(self, own: Array) -> Information:
        own = own.transpose(1, 0, 2) * self.root
        b, k = self.b, own.shape[2]
        gram = np.empty((self.n, b + k + 1, b + k + 1))
        gram[:, :b, :b] = self.fixed
        cross = self.rigid.transpose(0, 2, 1) @ own
        gram[:, :b, b:-1], gram[:, b:-1, :b] = cross, cross.transpose(0, 2, 1)
        turned = own.transpose(0, 2, 1)
        gram[:, b:-1, b:-1] = turned @ own
        gram[:, b:-1, -1] = gram[:, -1, b:-1] = (turned @ self.target)[..., 0]
        gram[:, :b, -1] = gram[:, -1, :b] = self.fixed_target
        gram[:, -1, -1] = self.target_square
        return Information(gram=gram, count=np.sum(self.samples.weight, axis=0), base=b)

    def solve(self, theta: Array) -> tuple[Array, float, Array]:
        """Return parameters, cost and residual squares per joint at some shapes."""
        passes = 2 if self.friction.needs_load else 1
        for _ in range(passes):
            info = self.information(self.columns(theta))
            self.evaluations += 1
            found = quick_solve(*info.normal(self.precision), self.b, self.friction)
            if self.friction.needs_load:
                self.load = self.plain @ found[: self.b]
        squares = info.residual_squares(found)
        return found, float(squares @ self.precision), squares

    def cost(self, info: Information) -> float:
        """Return the weighted sum of squares at the minimum of some Gram matrices."""
        self.evaluations += 1
        found = quick_solve(*info.normal(self.precision), self.b, self.friction)
        return float(info.residual_squares(found) @ self.precision)

    def reweigh(self, squares: Array) -> None:
        variance = squares / np.maximum(np.sum(self.samples.weight, axis=0), 1.0)
        floor = 1e-10 * self.target_square / len(self.samples)
        self.precision = 1.0 / np.maximum(variance, np.maximum(floor, 1e-300))

    def change(self, theta: Array, parameters: Array) -> tuple[Array, Array]:
        """Return the Gauss-Newton step of theta, shape (n, t), and its curvature for damping."""
        linear = parameters[self.b :].reshape(self.n, self.k)
        bends = []
        for column in range(theta.shape[1]):
            shift = np.zeros_like(theta)
            shift[:, column] = _STEP
            difference = self.columns(theta + shift) - self.columns(theta - shift)
            bends.append(np.einsum('Nnk,nk->Nn', difference, linear) / (2.0 * _STEP))
        own = np.concatenate([self.columns(theta), np.stack(bends, axis=-1)], axis=2)
        matrix, vector = self.information(own).normal(self.precision)
        return matrix, np.asarray(vector - matrix @ self._padded(parameters, theta.shape[1]))

    def _padded(self, parameters: Array, extra: int) -> Array:
        linear = parameters[self.b :].reshape(self.n, self.k)
        own = np.concatenate([linear, np.zeros((self.n, extra))], axis=1)
        return np.asarray(np.concatenate([parameters[: self.b], own.ravel()]))


def _start(problem: _Problem) -> Array:
    """Return the best point of a coarse grid, one joint and one shape at a time.

    A joint's columns depend on its own shapes only, so that the Gram matrices of all joints are computed once for each
    value of the grid, and a trial takes one of them for its joint.
    """
    if problem.lower.shape[1] == 0:
        return np.zeros((problem.n, 0))
    theta = 0.5 * (problem.lower + problem.upper)
    _, _, squares = problem.solve(theta)
    problem.reweigh(squares)
    for column in range(theta.shape[1]):
        low, high = problem.lower[:, column], problem.upper[:, column]
        grid = [low + share * (high - low) for share in _GRID]
        grid.append(theta[:, column].copy())
        tables = []
        for values in grid:
            trial = theta.copy()
            trial[:, column] = values
            tables.append(problem.information(problem.columns(trial)))
        current = tables[-1].gram.copy()
        for _ in range(2):
            for joint in range(problem.n):
                costs = []
                for table in tables:
                    gram = current.copy()
                    gram[joint] = table.gram[joint]
                    costs.append(problem.cost(replace(tables[-1], gram=gram)))
                best = int(np.argmin(costs))
                theta[joint, column] = grid[best][joint]
                current[joint] = tables[best].gram[joint]
    _, _, squares = problem.solve(theta)
    problem.reweigh(squares)
    return np.asarray(theta)


def separable_least_squares(
    rigid: Array,
    samples: Samples,
    friction: FrictionModel,
    *,
    fit_scale: bool,
    filtered: Array | None = None,
) -> tuple[FrictionModel, Array, Array, int]:
    """Return base, friction and shape parameters of all joints at the weighted minimum.

    min over beta, f, theta of  sum_j p_j |tau_j - Y_j beta - F_j(theta_j) f_j|^2

    Parameters
    ----------
    rigid : ndarray, shape (N, n, b)
        Base regressor, unfiltered.
    samples : Samples
    friction : FrictionModel
    fit_scale : bool
        Find the width of the smoothed sign of each joint too.
    filtered : ndarray, shape (N, n, b), optional
        Base regressor out of the low-passes, where it is at hand.

    Returns
    -------
    friction : FrictionModel
        With the width of the sign found.
    values : ndarray, shape (b,)
    parameters : ndarray, shape (n, k + s)
        Of the friction, its shape last.
    problems : int
        How many linear ones were solved.
    """
    problem = _Problem(rigid, samples, friction, fit_scale, filtered)
    theta = _start(problem)
    parameters, cost, squares = problem.solve(theta)
    problem.reweigh(squares)
    parameters, cost, squares = problem.solve(theta)
    damping, converged = 1e-3, theta.shape[1] == 0
    for _ in range(_STEPS):
        if converged:
            break
        trial_theta = _step(problem, theta, parameters, damping)
        load = problem.load
        trial, trial_cost, trial_squares = problem.solve(trial_theta)
        if trial_cost < cost:
            converged = cost - trial_cost < _TOLERANCE * cost
            theta, parameters, damping = trial_theta, trial, damping * 0.3
            problem.reweigh(trial_squares)
            cost = float(trial_squares @ problem.precision)
        else:
            problem.load = load
            damping *= 10.0
            converged = damping > 1e6
    linear = parameters[problem.b :].reshape(problem.n, problem.k)
    own = np.concatenate([linear, np.exp(theta[:, : problem.s])], axis=1)
    return problem.model(theta), parameters[: problem.b], own, problem.evaluations


def _step(problem: _Problem, theta: Array, parameters: Array, damping: float) -> Array:
    """Return theta after one damped Gauss-Newton step, within its bounds."""
    matrix, vector = problem.change(theta, parameters)
    b, k, t, n = problem.b, problem.k, theta.shape[1], problem.n
    where = (b + np.arange(n)[:, None] * (k + t) + k + np.arange(t)).ravel()
    damped = matrix.copy()
    diagonal = np.maximum(np.diag(matrix)[where], 1e-12 * np.diag(matrix).max())
    damped[where, where] += damping * diagonal
    step = quick_solve(damped, vector, b, None)[where].reshape(n, t)
    return np.asarray(np.clip(theta + np.clip(step, -1.0, 1.0), problem.lower, problem.upper))
