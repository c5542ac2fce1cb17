# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Ordinary, weighted and robust least squares on base parameters and linear friction columns.

All joints are solved at once. Weights per joint cost nothing per sample (see
:mod:`robotid_ros.identification.information`); load-dependent friction, whose column contains the
load itself, is solved by iteration: the load is the rigid body's torque of the last solution.
"""

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import (
    ITERATIONS,
    Information,
    Piece,
    Rows,
    Solution,
    gather,
    joint_precision,
    normal_equations_of,
    reweighted,
    solve,
)
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.stroke_friction import StrokeFriction
from robotid_ros.identification.torque_fit import TorqueFit, covariance_of_estimate

LinearEstimator: TypeAlias = Literal['ols', 'wls', 'irls']

_HUBER = 1.345  # 95 % efficient on normal noise (Huber, Annals of Mathematical Statistics 35, 1964)
_BIN = 0.04  # s, short against the periods of an arm's motion
# A base parameter may be dropped where its relative deviation is above both: this, and so many times the smallest
# (Pham and Gautier, 1991).
_NEGLIGIBLE, _ESSENTIAL_RATIO = 0.1, 10.0


@dataclass(slots=True)
class _State:
    """What one iteration hands to the next."""

    precision: Array
    load: Array | None
    weight: Array
    solution: Solution
    information: Information


def least_squares(
    rows: Rows,
    friction: FrictionModel,
    shape: Array,
    *,
    estimator: LinearEstimator = 'wls',
    prior: Prior | None = None,
    dissipative: bool = True,
    covariance: bool = True,
) -> TorqueFit:
    """Return the least-squares fit of base and linear friction parameters.

    min sum_j p_j sum_t w_tj (tau_tj - Y_tj beta - F_tj f_j)^2

    Parameters
    ----------
    rows : Rows
    friction : FrictionModel
    shape : ndarray, shape (n, s)
        Shape parameters, kept as they are.
    estimator : {'ols', 'wls', 'irls'}
        ``ols``: all joints count alike. ``wls``: each joint by its inverse residual variance,
        iterated. ``irls``: in addition, samples further off than 1.345 robust standard deviations
        count in inverse proportion (Huber).
    prior : Prior, optional
        Draws the base parameters towards the description where the data determine them badly.
    dissipative : bool
        Keep the friction from driving a joint.
    covariance : bool
        Compute the covariance, which takes a second pass over the rows.
    """
    samples = rows.samples
    solver = _Solver(rows, friction, shape, estimator, prior, dissipative)
    state = solver(samples.weight, np.ones(samples.n), None)
    converged, reason = True, ''
    if friction.needs_load:
        converged = False
        for _ in range(ITERATIONS):
            before = state.solution.parameters
            load = rows.torque(before[: state.information.base])
            state = solver(samples.weight, state.precision, load)
            change = np.abs(state.solution.parameters - before)
            converged = bool((change <= 1e-3 * np.sqrt(np.diag(state.solution.inverse))).all())
            if converged:
                break
        reason = '' if converged else f'the load of the friction did not converge in {ITERATIONS} iterations'
    if estimator == 'irls':
        state, converged, reason = _robust(solver, state)
    return finished(rows, friction, shape, state, converged, reason, prior=prior, covariance=covariance)


@dataclass(frozen=True, slots=True)
class _Solver:
    """Solves for given weights and load; what is the same in every iteration."""

    rows: Rows
    friction: FrictionModel
    shape: Array
    estimator: LinearEstimator
    prior: Prior | None
    dissipative: bool

    def __call__(self, weight: Array, precision: Array, load: Array | None) -> _State:
        """Solve for given sample weights and load; iterate the weights of the joints."""
        friction = self.friction
        if friction.needs_load and load is None:
            load = self.rows.samples.target
        total = self.rows.information(friction, self.shape, load, weight)
        bounds = friction if self.dissipative else None
        if self.estimator != 'ols':
            precision = reweighted(total, bounds, precision, self.prior)
        solution = solve(*normal_equations_of(total, precision, self.prior), total.base, bounds)
        return _State(precision, load, weight, solution, total)


def _residual(rows: Rows, friction: FrictionModel, shape: Array, state: _State) -> Array:
    samples = rows.samples
    base = state.information.base
    linear = state.solution.parameters[base:].reshape(samples.n, -1)
    residual = np.empty_like(samples.target)
    for piece in rows.pieces():
        own = piece.own(friction, shape, state.load)
        model = piece.rigid @ state.solution.parameters[:base] + np.einsum('Nnk,nk->Nn', own, linear)
        residual[piece.rows] = piece.samples.target - model
    return residual


def _robust(solver: _Solver, state: _State) -> tuple[_State, bool, str]:
    """Reweigh samples by Huber's function until the parameters settle."""
    rows, friction = solver.rows, solver.friction
    for _ in range(ITERATIONS):
        residual = _residual(rows, friction, solver.shape, state)
        spread = 1.4826 * np.median(np.abs(residual), axis=0)
        spread = np.maximum(spread, 1e-9 * np.maximum(np.abs(rows.samples.target).max(axis=0), 1e-12))
        far = np.abs(residual) / (_HUBER * spread)
        weight = rows.samples.weight / np.maximum(far, 1.0)
        before = state.solution.parameters
        load = rows.torque(before[: state.information.base]) if friction.needs_load else None
        state = solver(weight, state.precision, load)
        change = np.abs(state.solution.parameters - before)
        if (change <= 1e-2 * np.sqrt(np.diag(state.solution.inverse))).all():
            return state, True, ''
    return state, False, f'the sample weights did not settle in {ITERATIONS} iterations'


def finished(
    rows: Rows,
    friction: FrictionModel,
    shape: Array,
    state: _State,
    converged: bool,
    reason: str,
    *,
    prior: Prior | None = None,
    covariance: bool,
) -> TorqueFit:
    """Return the fit with its covariance, shape parameters included."""
    n, base, k = rows.samples.n, state.information.base, state.information.own
    parameters = state.solution.parameters
    linear = parameters[base:].reshape(n, k)
    s = shape.shape[1]
    determined = np.concatenate(
        [
            state.solution.determined[:base],
            np.concatenate(
                [state.solution.determined[base:].reshape(n, k), np.ones((n, s), dtype=bool)], axis=1
            ).ravel(),
        ]
    )
    matrix = np.zeros((len(determined), len(determined)))
    if covariance:
        matrix = _covariance(rows, friction, shape, state, linear, None if prior is None else prior.friction)
    if covariance and prior is not None:
        matrix += prior.spread(state.solution.inverse, len(matrix), shape.shape[1], n)
    return TorqueFit(
        friction=friction,
        base_values=parameters[:base],
        friction_parameters=np.concatenate([linear, shape], axis=1),
        precision=state.precision,
        covariance=matrix,
        determined=determined,
        condition_si=state.solution.condition_si,
        condition_scaled=state.solution.condition_scaled,
        bounded=state.solution.bounded,
        bandwidth=rows.samples.runs[0].bandwidth,
        converged=converged,
        reason=reason,
        prior=prior,
    )


def _covariance(
    rows: Rows, friction: FrictionModel, shape: Array, state: _State, linear: Array, strokes: StrokeFriction | None
) -> Array:
    """Return the covariance from rows and residuals summed over bins."""
    samples, base = rows.samples, state.information.base
    width = base + linear.shape[1] + shape.shape[1]
    bins = _bin_labels(samples)
    count = int(bins[-1]) + 1
    summed = np.zeros((count, samples.n, width), dtype=np.float32)  # large, and half of the digits are enough
    residual = np.zeros((count, samples.n))
    matrix = np.zeros((base + samples.n * (width - base),) * 2)
    for piece in rows.pieces():
        part, own = piece.rows, piece.own(friction, shape, state.load)
        bend = _bends(piece, friction, shape, linear, state.load)
        model = piece.rigid @ state.solution.parameters[:base] + np.einsum('Nnk,nk->Nn', own, linear)
        label = bins[part]
        starts = np.flatnonzero(np.diff(label, prepend=-1))
        root = np.sqrt(state.weight[part])
        error = root * (piece.samples.target - model)
        every = np.concatenate([piece.rigid, own, bend], axis=2)
        every *= root[..., None]
        np.add.at(summed, label[starts], np.add.reduceat(every, starts, axis=0))
        np.add.at(residual, label[starts], np.add.reduceat(error, starts, axis=0))
        if shape.shape[1]:
            own = np.concatenate([own, bend], axis=2)
            info = gather(piece.rigid, own, piece.samples.target, state.weight[part])
            matrix += info.normal(state.precision)[0]
    size = np.bincount(bins, minlength=count)
    runs = samples.run_labels[np.flatnonzero(np.diff(bins, prepend=-1))]
    if strokes is not None:
        strokes.add_all(matrix, base)
    inverse = solve(matrix, np.zeros(len(matrix)), base, None).inverse if shape.shape[1] else state.solution.inverse
    result = covariance_of_estimate(
        summed, residual / size[:, None], runs, state.precision, inverse, base, float(size.mean())
    )
    return result if strokes is None else result + strokes.spread(inverse, base)


def _bin_labels(samples: Samples) -> IntArray:
    """Number bins of equal duration within each run, not shorter than the correlation of adjacent errors."""
    longest = max(max(0.5 / run.narrowest if run.cutoff else 0.0, 1.0 / run.rate) for run in samples.runs)
    duration = max(_BIN, longest)
    labels: list[IntArray] = []
    for run in samples.runs:
        first = int(labels[-1][-1]) + 1 if labels else 0
        labels.append(first + np.arange(len(run)) // max(1, int(duration * run.rate)))
    return np.concatenate(labels)


def _bends(piece: Piece, friction: FrictionModel, shape: Array, linear: Array, load: Array | None) -> Array:
    """Return the filtered derivative of the friction torque with respect to the shape parameters."""
    samples = piece.samples
    if shape.shape[1] == 0:
        return np.zeros((*samples.dq.shape, 0))
    own = None if load is None else load[piece.rows]
    _, sensitivity = friction.basis(samples.dq, shape, own, samples.q, samples.slide)
    return samples.filtered(np.einsum('Nnks,nk->Nns', sensitivity, linear))


def fit_of_parameters(
    rows: Rows,
    friction: FrictionModel,
    base_values: Array,
    friction_parameters: Array,
    *,
    converged: bool,
    reason: str,
    prior: Prior | None = None,
) -> TorqueFit:
    """Return a fit of parameters that another method found, with the covariance of least squares at that point.

    Parameters
    ----------
    rows : Rows
    friction : FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    converged : bool
    reason : str
        Why not.
    """
    k = len(friction.linear_names)
    shape = friction_parameters[:, k:]
    load = rows.torque(base_values) if friction.needs_load else None
    solver = _Solver(rows, friction, shape, 'ols', None, True)
    state = solver(rows.samples.weight, np.ones(rows.samples.n), load)
    parameters = np.concatenate([base_values, friction_parameters[:, :k].ravel()])
    precision = joint_precision(state.information, parameters)
    matrix, vector = state.information.normal(precision)
    if prior is not None:
        prior.add(matrix, vector)
    solution = replace(solve(matrix, vector, len(base_values), None), parameters=parameters)
    state = _State(precision, state.load, state.weight, solution, state.information)
    return finished(rows, friction, shape, state, converged, reason, prior=prior, covariance=True)


def normal_equations(rows: Rows, fit: TorqueFit, shape: Array) -> tuple[Array, Array, float]:
    """Return the normal equations of physically consistent parameters around a fit, and the weighted sum of squares.

    Parameters
    ----------
    rows : Rows
    fit : TorqueFit
        Gives the load and the precision of the joints.
    shape : ndarray, shape (n, s)

    Returns
    -------
    matrix : ndarray, shape (P, P)
    vector : ndarray, shape (P,)
    square : float
    """
    load = rows.torque(fit.base_values) if fit.friction.needs_load else None
    total = rows.information(fit.friction, shape, load)
    matrix, vector = total.normal(fit.precision)
    square = float(total.gram[:, -1, -1] @ fit.precision)
    if fit.prior is not None:
        square += fit.prior.add(matrix, vector)
    return matrix, vector, square


def essential_parameters(matrix: Array, values: Array, std: Array, base: int) -> Array:
    """Return which base parameters are essential: the others may be zero without a visible change of the fit.

    Backward elimination (Pham and Gautier, 1991): the parameter with the largest relative deviation
    is dropped and the others are estimated again from their covariance, until no relative deviation is larger
    than 10 times the smallest, or than 10 %.

    Parameters
    ----------
    matrix : ndarray, shape (P, P)
        Covariance of all parameters.
    values, std : ndarray, shape (P,)
    base : int
        Number of base parameters, the only ones to be dropped.

    Returns
    -------
    ndarray of bool, shape (base,)
    """
    covariance, current = matrix.copy(), values.copy()
    kept = np.isfinite(std) & (std > 0.0)
    while True:
        active = np.flatnonzero(kept[:base])
        if len(active) == 0:
            break
        relative = np.sqrt(np.maximum(np.diag(covariance)[active], 0.0)) / np.maximum(np.abs(current[active]), 1e-300)
        worst = int(active[np.argmax(relative)])
        if relative.max() <= max(_ESSENTIAL_RATIO * float(relative.min()), _NEGLIGIBLE):
            break
        # the estimate and covariance of the others, given that this parameter is zero
        gain = covariance[:, worst] / covariance[worst, worst]
        current = current - gain * current[worst]
        covariance = covariance - np.outer(gain, covariance[worst])
        kept[worst] = False
    return np.asarray(kept[:base])
