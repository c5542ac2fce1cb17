# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Iterated robust least squares: Levenberg-Marquardt with a weak prior and reweighting.

Minimises  sum_j w_j |S_j r_j|^2 + sigma^2 sum_k (delta_k / s_k)^2  where r_j is the residual of a
measurement, S_j its scale, w_j its robust weight, sigma the noise and s_k the prior deviation of
a correction delta_k. Weights, noise, the relation of orientation to position noise, and the prior
deviations (one for all lengths, one for all angles, one for each kind of term, by expectation
maximisation as in Gaussian variance components) are re-estimated between the steps.
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import chdtri

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.calibration.problem import Problem, State

_NOISE_FLOOR = 1e-13  # [m], round-off of a metre-sized arm
_PRIOR_FLOOR = 1e-7  # [m, rad]
_EXACT = 1e-5  # [m]: least-norm answers explain their measurements to this
_MOST_STEPS = 60
_TUNED_STEPS = 12  # after these, noise and priors are fixed, so that the steps converge
_TUNING_ROUNDS = 3
_CONVEX_STEPS = 20  # of the convex loss first: from a poor start the redescending one rejects good points
_SETTLED = 0.01  # squared length of a step in standard deviations
_WIDEST = 10.0  # times the first guess of the prior deviations
_OUTLIER_WEIGHT = 0.5  # below this weight a measurement counts as an outlier


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Result of a fit."""

    state: State
    free: IntArray  # shape (f,): indices of the estimated parameters
    residual: Array  # shape (N, 3 or 6): measured minus predicted, unscaled [m, rad]
    weights: Array  # shape (N,)
    # standard deviation of one scaled residual, from all of them: [m], or 1 where deviations were given and right
    noise: float
    orientation_scale: float  # position noise over orientation noise [m/rad]
    covariance: Array  # shape (f, f)
    jacobian: Array = field(repr=False)  # shape (N, 3 or 6, f): at the solution, scaled and weighted
    prior: Array  # shape (f,): prior deviations; inf where there is none
    converged: bool
    iterations: int
    reason: str  # why the iteration ended

    @property
    def inlying(self) -> BoolArray:
        """Which measurements have at least half their weight, shape (N,)."""
        result: BoolArray = self.weights >= _OUTLIER_WEIGHT
        return result


@dataclass(slots=True)
class _Iterate:
    """The problem linearised at a state, and what is re-estimated between the steps."""

    problem: Problem
    free: IntArray
    state: State
    residual: Array  # unscaled
    jacobian: Array  # unscaled, all parameters
    weights: Array
    noise: float
    ratio: float  # orientation scale
    prior: Array
    damping: float = 0.0

    @property
    def penalty(self) -> Array:
        result: Array = self.noise**2 / np.square(self.prior)
        return result

    @property
    def offset(self) -> Array:
        """Distance of the free parameters from the means of their priors; zero without prior."""
        geometry, terms = self.problem.blocks[2:]
        offset = np.zeros(sum(self.problem.sizes))
        offset[geometry] = self.state.geometry - self.problem.chain.nominal
        offset[terms] = self.state.coefficients
        result: Array = offset[self.free]
        return result

    def linear(self) -> tuple[Array, Array]:
        """Return residuals, shape (m,), and their derivatives by the free parameters, (m, f), scaled and weighted."""
        scale = self.problem.scale * np.sqrt(self.weights)[:, None]
        scale[:, 3:] *= self.ratio
        columns = self.jacobian[:, :, self.free] * scale[:, :, None]
        return (self.residual * scale).ravel(), columns.reshape(scale.size, len(self.free))

    def cost(self, rows: Array) -> float:
        """Return the sum of squares that a step has to lower."""
        return float(rows @ rows + self.penalty @ np.square(self.offset))

    def at(self, state: State) -> '_Iterate':
        """Return the same at another state."""
        residual, jacobian = self.problem.linearise(state)
        return replace(self, state=state, residual=residual, jacobian=jacobian)


def fit(
    problem: Problem,
    start: State,
    free: IntArray,
    *,
    loss: str = 'hampel',
    prior: float | None = None,
    least_norm: bool = False,
) -> Fit:
    """Estimate the free parameters, of which ``free``, shape (f,), holds the indices in the parameter vector.

    ``loss`` is as in :class:`robotid_ros.calibration.config.CalibrationConfig`; ``prior``, where there is one, is the
    first guess of how far geometric parameters are from nominal [m, rad]. With ``least_norm`` it is kept, and the noise
    is taken as hardly any: of all geometries that explain the measurements the one nearest to the nominal is found.
    """
    groups = _prior_groups(problem, free)
    widths = np.full(len(free), np.inf)
    if prior is not None:
        for members in groups:
            widths[members] = prior
    noise = _EXACT * float(np.median(problem.scale[:, :3])) if least_norm else 0.0
    residual, jacobian = problem.linearise(start)
    at = _Iterate(problem, free, start, residual, jacobian, np.ones(len(problem)), noise, 1.0, widths)
    converged, reason, count = False, f'no convergence in {_MOST_STEPS} steps', 0
    settled = 0  # steps since the convex loss came to rest
    for count in range(1, _MOST_STEPS + 1):
        _rebalance(at, 'huber' if loss == 'hampel' and not settled else loss)
        if settled <= _TUNED_STEPS and not least_norm:  # then fixed
            _tune(at, groups, prior)
        trial, length, tiny = _descend(at)
        if trial is None:
            reason = 'no further step lowers the error'
            break
        at = trial
        if tiny and (settled or loss != 'hampel'):
            converged, reason = True, 'the last step is far below the noise'
            break
        if settled or tiny or length < _SETTLED or count >= _CONVEX_STEPS:
            settled += 1
    _, columns = at.linear()
    return Fit(
        state=at.state,
        free=free,
        residual=at.residual,
        weights=at.weights,
        noise=at.noise,
        orientation_scale=at.ratio,
        covariance=at.noise**2 * _inverse(columns.T @ columns + np.diag(at.penalty)),
        jacobian=columns.reshape(len(problem), problem.width, len(free)),
        prior=at.prior,
        converged=converged,
        iterations=count,
        reason=reason,
    )


def _descend(at: _Iterate) -> tuple[_Iterate | None, float, bool]:
    """Return the next iterate, the step's squared length in standard deviations, and whether it was tiny.

    The iterate is None where no step lowers the cost.
    """
    rows, columns = at.linear()
    hessian = columns.T @ columns + np.diag(at.penalty)
    gradient = columns.T @ rows - at.penalty * at.offset
    values, vectors = _scaled_modes(hessian)  # directions without information are left unchanged
    cost = at.cost(rows)
    while at.damping < 1e9:
        step = np.zeros(sum(at.problem.sizes))
        step[at.free] = vectors @ ((vectors.T @ gradient) / (values + at.damping))
        trial = at.at(at.problem.moved(at.state, step))
        decrement = float(step[at.free] @ hessian @ step[at.free])
        tiny = decrement <= max(1e-8 * at.noise**2, 1e-28 * len(at.problem) * np.max(at.problem.scale) ** 2)
        if tiny or trial.cost(trial.linear()[0]) <= cost * (1.0 + 1e-9):
            trial.damping = 0.2 * at.damping if at.damping > 1e-9 else 0.0
            return trial, decrement / at.noise**2, tiny
        at.damping = max(10.0 * at.damping, 1e-6)
    return None, 0.0, False


def _prior_groups(problem: Problem, free: IntArray) -> list[IntArray]:
    """Return positions in ``free`` of lengths, angles, and each unit of joint terms."""
    geometry, terms = problem.blocks[2:]
    kinds: dict[str, list[int]] = {}
    units = problem.units
    for k, index in enumerate(free):
        if geometry.start <= index < geometry.stop:
            kinds.setdefault(units[index], []).append(k)
        elif terms.start <= index < terms.stop:
            kinds.setdefault('term ' + units[index], []).append(k)
    return [np.array(members, dtype=np.int64) for members in kinds.values()]


def _rebalance(at: _Iterate, loss: str) -> None:
    """Update the relation of orientation to position noise, and the robust weights."""
    problem = at.problem
    scaled = at.residual * problem.scale
    squares = np.square(scaled[:, :3]).sum(axis=1)
    dof = np.full(len(problem), 3)
    if problem.width == 6:
        turned = np.square(scaled[:, 3:]).sum(axis=1)
        if not problem.weighted:
            position = float(np.median(squares[problem.oriented]))
            angle = float(np.median(turned[problem.oriented]))
            at.ratio = float(np.clip(np.sqrt(position / max(angle, 1e-30)), 0.02, 50.0))
        squares = squares + turned * at.ratio**2
        dof = np.where(problem.oriented, 6, 3)
    if loss == 'linear':
        return
    spare = max(int(dof.sum()) - len(at.free), 1) / dof.sum()
    variance = float(np.median(squares / _quantiles(0.5, dof))) / spare
    distance = np.sqrt(squares / max(variance, _NOISE_FLOOR**2)) + 1e-12
    if loss == 'huber':
        at.weights = np.minimum(1.0, np.sqrt(_quantiles(0.95, dof)) / distance)
    else:
        knee = np.sqrt(_quantiles(0.9999, dof))
        at.weights = np.minimum(1.0, np.clip(2.0 * knee - distance, 0.0, knee) / distance)


def _quantiles(probability: float, dof: IntArray) -> Array:
    """Return the quantile of chi-squared for 3 or 6 degrees of freedom each."""
    three, six = chdtri([3, 6], 1.0 - probability)
    return np.where(dof == 3, float(three), float(six))


def _tune(at: _Iterate, groups: list[IntArray], prior: float | None) -> None:
    """Re-estimate noise and prior deviations from the linear problem's solution (EM, a few rounds)."""
    rows, columns = at.linear()
    normal, gradient, square, offset = columns.T @ columns, columns.T @ rows, float(rows @ rows), at.offset
    count = float(np.count_nonzero(rows))
    if at.noise == 0.0:
        at.noise = max((square / max(count, 1.0)) ** 0.5, _NOISE_FLOOR)
    for _ in range(_TUNING_ROUNDS):
        penalty = at.penalty
        inverse = _inverse(normal + np.diag(penalty))
        step = inverse @ (gradient - penalty * offset)
        left = square - 2.0 * step @ gradient + step @ normal @ step
        used = float(np.sum(inverse * normal))
        floor = max(_NOISE_FLOOR, 1e-9 * (square / max(count, 1.0)) ** 0.5)  # round-off of `left`
        variance = max(float(left), 0.0) / max(count - used, 1.0)
        at.noise = max(variance**0.5, floor)
        if prior is None:
            continue
        for members in groups:
            spread = np.square(offset + step)[members] + at.noise**2 * np.diag(inverse)[members]
            deviation = float(np.mean(spread)) ** 0.5
            at.prior[members] = min(max(deviation, _PRIOR_FLOOR), _WIDEST * prior)


def _inverse(hessian: Array) -> Array:
    values, vectors = _scaled_modes(hessian)
    return np.asarray((vectors / values) @ vectors.T)


def _scaled_modes(hessian: Array) -> tuple[Array, Array]:
    """Return eigenvalues of H scaled to unit diagonal, infinite where it has no information, and S V of its modes V."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(hessian), 1e-300))
    values, vectors = np.linalg.eigh(hessian * np.outer(scale, scale))
    return np.where(values > 1e-13 * values.max(initial=0.0), values, np.inf), scale[:, None] * vectors
