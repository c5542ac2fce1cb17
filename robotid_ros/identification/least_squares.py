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

from collections.abc import Iterator
from dataclasses import replace
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
    reweighted,
    solve,
)
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.torque_fit import TorqueFit, covariance_of_estimate
from robotid_ros.identification.verdict import KNOWN

LinearEstimator: TypeAlias = Literal['ols', 'wls', 'irls']

_HUBER = 1.345  # 95 % efficient on normal noise (Huber, Annals of Mathematical Statistics 35, 1964)
_BIN = 0.04  # s, short against the periods of an arm's motion
_RATIO = 10.0  # times the smallest relative deviation: a base parameter known worse than that and KNOWN may be dropped


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
    fitting = _Fitting(rows, friction, shape, estimator, prior, dissipative)
    fitting.solve(rows.samples.target if friction.needs_load else None)
    converged, reason = True, ''
    if friction.needs_load:
        converged = any(fitting.settles(1e-3) for _ in range(ITERATIONS))
        reason = '' if converged else f'the load of the friction did not converge in {ITERATIONS} iterations'
    if estimator == 'irls':
        converged = any(fitting.settles(1e-2, robust=True) for _ in range(ITERATIONS))
        reason = '' if converged else f'the sample weights did not settle in {ITERATIONS} iterations'
    return fitting.finished(converged, reason, covariance=covariance)


class _Fitting:
    """Rows that are fitted: what is the same in every iteration, and what one hands to the next."""

    info: Information
    solution: Solution

    def __init__(
        self,
        rows: Rows,
        friction: FrictionModel,
        shape: Array,
        estimator: LinearEstimator = 'ols',
        prior: Prior | None = None,
        dissipative: bool = True,
    ) -> None:
        self.rows, self.friction, self.shape, self.prior = rows, friction, shape, prior
        self.estimator, self.bounds = estimator, friction if dissipative else None
        self.weight, self.precision = rows.samples.weight, np.ones(rows.samples.n)
        self.load: Array | None = None

    @property
    def base_values(self) -> Array:
        """Base parameters of the solution, shape (b,)."""
        return self.solution.parameters[: self.info.base]

    @property
    def linear(self) -> Array:
        """Linear friction parameters of the solution, shape (n, k)."""
        return self.solution.parameters[self.info.base :].reshape(self.info.n, -1)

    def gather(self, load: Array | None) -> None:
        """Take the rows with a load of the friction."""
        self.load = load
        self.info = self.rows.information(self.friction, self.shape, load, self.weight)

    def solve(self, load: Array | None) -> None:
        """Solve for a load and the weights of the samples; iterate the weights of the joints."""
        self.gather(load)
        if self.estimator != 'ols':
            self.precision = reweighted(self.info, self.bounds, self.precision, self.prior)
        self.solution = solve(*self.info.normal(self.precision, self.prior), self.info.base, self.bounds)

    def settles(self, tolerance: float, *, robust: bool = False) -> bool:
        """Solve again, with the load of the last solution; return whether all changes are small beside deviations.

        ``robust`` weighs samples by Huber's function of what the last solution left of them.
        """
        before = self.solution.parameters
        if robust:
            samples = self.rows.samples
            residual = np.concatenate([left for _, _, left in self.residuals()])
            spread = 1.4826 * np.median(np.abs(residual), axis=0)
            spread = np.maximum(spread, 1e-9 * np.maximum(np.abs(samples.target).max(axis=0), 1e-12))
            self.weight = samples.weight / np.maximum(np.abs(residual) / (_HUBER * spread), 1.0)
        self.solve(self.rows.torque(self.base_values) if self.friction.needs_load else None)
        change = np.abs(self.solution.parameters - before)
        return bool((change <= tolerance * np.sqrt(np.diag(self.solution.inverse))).all())

    def residuals(self) -> Iterator[tuple[Piece, Array, Array]]:
        """Yield the rows piece by piece, their friction columns, and what the solution leaves of their torque."""
        for piece in self.rows.pieces():
            own = piece.own(self.friction, self.shape, self.load)
            model = piece.rigid @ self.base_values + np.einsum('Nnk,nk->Nn', own, self.linear)
            yield piece, own, piece.samples.target - model

    def finished(self, converged: bool, reason: str, *, covariance: bool = True) -> TorqueFit:
        """Return the fit with its covariance, shape parameters included."""
        n, base, s = self.info.n, self.info.base, self.shape.shape[1]
        told = self.solution.determined
        own = np.concatenate([told[base:].reshape(n, -1), np.ones((n, s), dtype=bool)], axis=1)
        determined = np.concatenate([told[:base], own.ravel()])
        matrix = self._covariance() if covariance else np.zeros((len(determined), len(determined)))
        if covariance and self.prior is not None:
            matrix += self.prior.spread(self.solution.inverse, len(matrix), n)
        return TorqueFit(
            friction=self.friction,
            base_values=self.base_values,
            friction_parameters=np.concatenate([self.linear, self.shape], axis=1),
            precision=self.precision,
            covariance=matrix,
            determined=determined,
            condition_si=self.solution.condition_si,
            condition_scaled=self.solution.condition_scaled,
            bounded=self.solution.bounded,
            bandwidth=self.rows.samples.runs[0].bandwidth,
            converged=converged,
            reason=reason,
            prior=self.prior,
        )

    def _covariance(self) -> Array:
        """Return the covariance from rows and residuals summed over bins."""
        samples, base, s = self.rows.samples, self.info.base, self.shape.shape[1]
        width = base + self.info.own + s
        bins = _bin_labels(samples)
        count = int(bins[-1]) + 1
        summed = np.zeros((count, samples.n, width), dtype=np.float32)  # large, and half of the digits are enough
        residual = np.zeros((count, samples.n))
        matrix = np.zeros((base + samples.n * (width - base),) * 2)
        for piece, linear, left in self.residuals():
            own = np.concatenate([linear, self._bends(piece)], axis=2)
            label = bins[piece.rows]
            starts = np.flatnonzero(np.diff(label, prepend=-1))
            root = np.sqrt(self.weight[piece.rows])
            every = np.concatenate([piece.rigid, own], axis=2)
            every *= root[..., None]
            np.add.at(summed, label[starts], np.add.reduceat(every, starts, axis=0))
            np.add.at(residual, label[starts], np.add.reduceat(root * left, starts, axis=0))
            if s:
                info = gather(piece.rigid, own, piece.samples.target, self.weight[piece.rows])
                matrix += info.normal(self.precision)[0]
        size = np.bincount(bins, minlength=count)
        runs = samples.run_labels[np.flatnonzero(np.diff(bins, prepend=-1))]
        strokes = None if self.prior is None else self.prior.friction
        if strokes is not None:
            strokes.add(matrix, np.zeros(len(matrix)), base)
        inverse = solve(matrix, np.zeros(len(matrix)), base, None).inverse if s else self.solution.inverse
        result = covariance_of_estimate(
            summed, residual / size[:, None], runs, self.precision, inverse, base, float(size.mean())
        )
        return result if strokes is None else result + strokes.spread(inverse, base)

    def _bends(self, piece: Piece) -> Array:
        """Return the filtered derivative of the friction torque with respect to the shape parameters."""
        samples = piece.samples
        if self.shape.shape[1] == 0:
            return np.zeros((*samples.dq.shape, 0))
        load = None if self.load is None else self.load[piece.rows]
        _, sensitivity = self.friction.basis(samples.dq, self.shape, load, samples.q, samples.slide)
        return samples.filtered(np.einsum('Nnks,nk->Nns', sensitivity, self.linear))


def _bin_labels(samples: Samples) -> IntArray:
    """Number bins of equal duration within each run, not shorter than the correlation of adjacent errors."""
    longest = max(max(0.5 / run.narrowest if run.cutoff else 0.0, 1.0 / run.rate) for run in samples.runs)
    duration = max(_BIN, longest)
    labels: list[IntArray] = []
    for run in samples.runs:
        first = int(labels[-1][-1]) + 1 if labels else 0
        labels.append(first + np.arange(len(run)) // max(1, int(duration * run.rate)))
    return np.concatenate(labels)


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
    fitting = _Fitting(rows, friction, friction_parameters[:, k:], prior=prior)
    fitting.gather(rows.torque(base_values) if friction.needs_load else None)
    parameters = np.concatenate([base_values, friction_parameters[:, :k].ravel()])
    fitting.precision = joint_precision(fitting.info, parameters)
    matrix, vector = fitting.info.normal(fitting.precision, prior)
    fitting.solution = replace(solve(matrix, vector, len(base_values), None), parameters=parameters)
    return fitting.finished(converged, reason)


def normal_equations(rows: Rows, fit: TorqueFit) -> tuple[Array, Array, float]:
    """Return the normal equations of physically consistent parameters around a fit, and the weighted sum of squares.

    Parameters
    ----------
    rows : Rows
    fit : TorqueFit
        Gives the load, the shape of the friction, and the precision of the joints.

    Returns
    -------
    matrix : ndarray, shape (P, P)
    vector : ndarray, shape (P,)
    square : float
    """
    load = rows.torque(fit.base_values) if fit.friction.needs_load else None
    total = rows.information(fit.friction, fit.shape, load)
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
        if relative.max() <= max(_RATIO * float(relative.min()), 0.01 * KNOWN):
            break
        # the estimate and covariance of the others, given that this parameter is zero
        gain = covariance[:, worst] / covariance[worst, worst]
        current = current - gain * current[worst]
        covariance = covariance - np.outer(gain, covariance[worst])
        kept[worst] = False
    return np.asarray(kept[:base])
