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

One estimator makes all fits of a calibration, which the cross-validation repeats for every fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.special import chdtri

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.calibration.chain import JointTerms
from robotid_ros.calibration.problem import Problem, State, independent_columns
from robotid_ros.errors import CalibrationError
from robotid_ros.settings import Settings, setting

TERM_KINDS = ('eccentricity', 'second_harmonic', 'compliance')


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationConfig(Settings):
    """Settings of a calibration."""

    error = CalibrationError

    frame: Literal['unknown', 'known'] = setting(
        'unknown', 'known: the points are in the base frame of the robot; unknown: estimate the frame of every set'
    )
    tool: Literal['auto', 'known', 'position', 'pose'] = setting(
        'auto', 'what is unknown of the targets in the tip frame; auto: all that can be measured'
    )
    terms: tuple[Literal['eccentricity', 'second_harmonic', 'compliance'], ...] = setting(
        TERM_KINDS, 'joint terms to try; they are used only where the cross-validated error falls'
    )
    loss: Literal['hampel', 'huber', 'linear'] = setting(
        'hampel',
        'linear: least squares; huber: constant influence beyond the 95 % quantile; hampel: none beyond twice what one '
        'in ten thousand Gaussian measurements exceeds',
    )
    prior: float | None = setting(
        0.01, 'first guess of how far parameters are from nominal', unit='m, rad', range=(1e-9, 1.0)
    )
    few_poses: Literal['refused', 'least_norm'] = setting(
        'refused',
        'what happens where the poses give no more numbers than there are parameters; least_norm: of all geometries '
        'that explain them the one nearest to the nominal, to look at, not to use',
    )
    folds: int = setting(5, 'of the cross-validation, 0 for none', range=(0, 1000))
    seed: int = setting(0, 'of everything random', range=(0, 2**31 - 1))

    def check(self) -> None:
        """Refuse a single fold, which leaves nothing to estimate from, and a least norm without a measure of it."""
        if self.folds == 1:
            raise CalibrationError('folds: expected 0 (no cross-validation) or at least 2, got 1')
        if self.few_poses == 'least_norm' and self.prior is None:
            raise CalibrationError('few_poses: least_norm needs a prior, which says what counts as near')


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


@dataclass(slots=True, kw_only=True)
class Fit:
    """A fit while it goes on and when it has ended: the problem linearised at a state, and what is re-estimated."""

    problem: Problem = field(repr=False)
    state: State
    free: IntArray  # shape (f,): indices of the estimated parameters
    residual: Array  # shape (N, 3 or 6): measured minus predicted, unscaled [m, rad]
    jacobian: Array = field(repr=False)  # shape (N, 3 or 6, P): unscaled, by all parameters
    weights: Array  # shape (N,)
    # standard deviation of one scaled residual, from all of them: [m], or 1 where deviations were given and right
    noise: float
    orientation_scale: float = 1.0  # position noise over orientation noise [m/rad]
    prior: Array  # shape (f,): prior deviations; inf where there is none
    damping: float = 0.0
    converged: bool = False
    iterations: int = 0
    reason: str = f'no convergence in {_MOST_STEPS} steps'  # why the iteration ended

    @property
    def inlying(self) -> BoolArray:
        """Which measurements have at least half their weight, shape (N,)."""
        return np.asarray(self.weights >= _OUTLIER_WEIGHT)

    @property
    def covariance(self) -> Array:
        """Covariance of the estimated parameters, shape (f, f)."""
        _, columns = self.linear()
        return self.noise**2 * _inverse(columns.T @ columns + np.diag(self.penalty))

    @property
    def penalty(self) -> Array:
        """Weight of each parameter's distance from the mean of its prior, shape (f,)."""
        return np.asarray(self.noise**2 / np.square(self.prior))

    @property
    def offset(self) -> Array:
        """Distance of the free parameters from the means of their priors, shape (f,); zero without prior."""
        geometry, terms = self.problem.blocks[2:]
        offset = np.zeros(sum(self.problem.sizes))
        offset[geometry] = self.state.geometry - self.problem.chain.nominal
        offset[terms] = self.state.coefficients
        return np.asarray(offset[self.free])

    def linear(self) -> tuple[Array, Array]:
        """Return residuals, shape (m,), and their derivatives by the free parameters, (m, f), scaled and weighted."""
        scale = self.problem.scale * np.sqrt(self.weights)[:, None]
        scale[:, 3:] *= self.orientation_scale
        columns = self.jacobian[:, :, self.free] * scale[:, :, None]
        return (self.residual * scale).ravel(), columns.reshape(scale.size, len(self.free))

    def cost(self, rows: Array) -> float:
        """Return the sum of squares that a step has to lower."""
        return float(rows @ rows + self.penalty @ np.square(self.offset))

    def at(self, state: State) -> 'Fit':
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

    ``loss`` is as in :class:`robotid_ros.calibration.solver.CalibrationConfig`; ``prior``, where there is one, is the
    first guess of how far geometric parameters are from nominal [m, rad]. With ``least_norm`` it is kept, and the noise
    is taken as hardly any: of all geometries that explain the measurements the one nearest to the nominal is found.
    """
    # Positions in ``free`` of lengths, angles, and each unit of joint terms
    geometry, terms = problem.blocks[2:]
    kinds: dict[str, list[int]] = {}
    units = problem.units
    for k, index in enumerate(free):
        if geometry.start <= index < geometry.stop:
            kinds.setdefault(units[index], []).append(k)
        elif terms.start <= index < terms.stop:
            kinds.setdefault('term ' + units[index], []).append(k)
    groups = [np.array(members, dtype=np.int64) for members in kinds.values()]
    widths = np.full(len(free), np.inf)
    if prior is not None:
        for members in groups:
            widths[members] = prior
    noise = _EXACT * float(np.median(problem.scale[:, :3])) if least_norm else 0.0
    residual, jacobian = problem.linearise(start)
    at = Fit(
        problem=problem,
        state=start,
        free=free,
        residual=residual,
        jacobian=jacobian,
        weights=np.ones(len(problem)),
        noise=noise,
        prior=widths,
    )
    settled = 0  # steps since the convex loss came to rest
    for at.iterations in range(1, _MOST_STEPS + 1):
        _rebalance(at, 'huber' if loss == 'hampel' and not settled else loss)
        if settled <= _TUNED_STEPS and not least_norm:  # then fixed
            _tune(at, groups, prior)
        trial, length, tiny = _descend(at)
        if trial is None:
            at.reason = 'no further step lowers the error'
            break
        at = trial
        if tiny and (settled or loss != 'hampel'):
            at.converged, at.reason = True, 'the last step is far below the noise'
            break
        if settled or tiny or length < _SETTLED or at.iterations >= _CONVEX_STEPS:
            settled += 1
    return at


def _descend(at: Fit) -> tuple[Fit | None, float, bool]:
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


def _rebalance(at: Fit, loss: str) -> None:
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
            at.orientation_scale = float(np.clip(np.sqrt(position / max(angle, 1e-30)), 1e-4, 1e4))
        squares = squares + turned * at.orientation_scale**2
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


def _tune(at: Fit, groups: list[IntArray], prior: float | None) -> None:
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


_SELECTION_FOLDS = 10
_SMALLEST_GAIN = 0.005  # of the squared error
_STANDARD_ERRORS = 1.5  # of the gain, that the best of many candidates must bring
_LARGEST_OFFSET = 0.01  # [rad], prior deviation of a term's root mean square


def folds_of(q: Array, set_index: IntArray, count: int, rng: np.random.Generator) -> IntArray:
    """Return the fold, 0 to count - 1, of each measurement: those of one pose together, every set over all folds."""
    poses = np.unique(np.round(q, 3), axis=0, return_inverse=True)[1].ravel()
    fold = np.full(len(q), -1, dtype=np.int64)
    dealt: dict[int, int] = {}
    next_fold = 0
    for s in range(int(set_index.max()) + 1):
        for pose in rng.permutation(np.unique(poses[set_index == s])):
            if int(pose) not in dealt:
                dealt[int(pose)] = next_fold % count
                next_fold += 1
    for k, pose in enumerate(poses):
        fold[k] = dealt[int(pose)]
    return fold


def select_terms(
    problem: Problem, geometric: Fit, groups: Sequence[Sequence[int]], splits: Sequence[IntArray]
) -> list[int]:
    """Return the joint terms, in increasing order, whose cross-validated squared error is lower with them.

    The model is linearised at the geometric fit, so that each candidate costs a few small solves. A group of terms
    enters together, if it lowers the error by at least half a per cent and by 1.5 standard errors of the gain over the
    measurements, for every way of splitting them, a fold for every measurement: random folds are optimistic where
    successive poses are similar, blocks in the order of measuring where the same poses were measured repeatedly.

    ``problem`` has all candidates among its terms, ``geometric`` is of the same measurements without terms.
    """
    terms = problem.blocks[3]
    count = terms.stop - terms.start
    kept = len(geometric.free)
    columns = np.concatenate([geometric.free, np.arange(terms.start, terms.stop)])
    start = replace(geometric.state, coefficients=np.zeros(count))
    rows, slopes = replace(geometric, problem=problem, free=columns).at(start).linear()
    right, design = rows.reshape(len(problem), -1), slopes.reshape(len(problem), -1, len(columns))
    size = np.sqrt(np.mean(np.square(problem.basis), axis=0))
    prior = np.concatenate([geometric.prior, _LARGEST_OFFSET / np.maximum(size, 1e-12)])
    penalty = geometric.noise**2 / np.square(prior)
    chosen: list[int] = []
    left = [list(group) for group in groups if np.all(size[list(group)] > 1e-9)]
    while left:
        used = [*range(kept), *(kept + k for k in chosen)]
        choices = [used, *([*used, *(kept + k for k in group)] for group in left)]
        errors = np.stack([held_out_errors(design, right, penalty, folds, choices) for folds in splits], axis=1)
        now, trials = errors[0], errors[1:]  # (splits, N), (groups, splits, N)
        k = int(np.argmin(trials.sum(axis=(1, 2))))
        gain = now - trials[k]
        total = gain.sum(axis=1)
        doubtful = total < _STANDARD_ERRORS * np.std(gain, axis=1) * np.sqrt(gain.shape[1])
        if doubtful.any() or (total < _SMALLEST_GAIN * now.sum(axis=1)).any():
            break
        chosen += left.pop(k)
    return sorted(chosen)


def held_out_errors(
    design: Array, right: Array, penalty: Array, folds: IntArray, choices: Sequence[Sequence[int]]
) -> Array:
    """Return the squared errors of all measurements, each predicted from the other folds, for some choices of columns.

    ``design``, shape (N, m, columns), and ``right``, shape (N, m), are the equations; ``penalty``, shape (columns,), is
    added to the diagonal of the normal equations, and ``folds``, shape (N,), count from 0. The result has the shape
    (len(choices), N).
    """
    members = [folds == fold for fold in range(int(folds.max()) + 1)]
    grams = np.stack([np.einsum('nmi,nmj->ij', design[rows], design[rows], optimize=True) for rows in members])
    slopes = np.stack([np.einsum('nmi,nm->i', design[rows], right[rows]) for rows in members])
    normal = grams.sum(axis=0) - grams + np.diag(penalty)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(grams.sum(axis=0)) + penalty, 1e-300))
    normal = normal * np.outer(scale, scale) + 1e-12 * np.eye(len(scale))
    gradient = (slopes.sum(axis=0) - slopes) * scale
    errors = np.empty((len(choices), len(right)))
    for found, choice in zip(errors, choices, strict=True):
        columns = np.array(choice, dtype=np.int64)
        solved = np.linalg.solve(normal[:, columns[:, None], columns], gradient[:, columns, None])[..., 0]
        predicted = (design[:, :, columns] @ (solved * scale[columns])[folds][..., None])[..., 0]
        found[:] = np.square(right - predicted).sum(axis=1)
    return errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimator:
    """Start, parameters and settings of the fits."""

    start: State  # frames and targets in closed form, nominal geometry
    placed: IntArray  # identifiable frame and target parameters
    free: IntArray  # all identifiable parameters, without joint terms
    candidates: JointTerms
    groups: tuple[tuple[int, ...], ...]  # candidates that enter together
    config: CalibrationConfig

    def nominal(self, problem: Problem) -> Fit:
        """Fit frames and targets to the nominal geometry."""
        return fit(problem, self.start, self.placed, loss=self.config.loss)

    def geometric(self, problem: Problem, nominal: Fit) -> Fit:
        """Fit geometry, frames and targets."""
        return fit(problem, nominal.state, self.free, loss=self.config.loss, prior=self.config.prior)

    def least_norm(self, problem: Problem, nominal: Fit) -> Fit:
        """Return the geometry nearest to the nominal one of all that explain too few measurements."""
        prior = self.config.prior
        return fit(problem, nominal.state, self.free, loss='linear', prior=prior, least_norm=True)

    def averaged(self, problem: Problem, nominal: Fit) -> Fit:
        """Return the average of the geometries that are each nearest to the nominal and explain one measurement.

        Frames and targets, which one measurement cannot show, are those of the nominal geometry there, and fitted to
        the average.
        """
        geometry, prior = problem.blocks[2], self.config.prior
        free = self.free[(self.free >= geometry.start) & (self.free < geometry.stop)]
        alone = [
            fit(problem.subset(np.array([k])), nominal.state, free, loss='linear', prior=prior, least_norm=True)
            for k in range(len(problem))
        ]
        mean = np.mean([each.state.geometry for each in alone], axis=0)
        return fit(problem, replace(nominal.state, geometry=mean), self.placed, loss='linear')

    def with_terms(self, problem: Problem, geometric: Fit) -> tuple[Problem, Fit]:
        """Add the joint terms that lower the cross-validated error, and fit all again."""
        if not self.groups:
            return problem, geometric
        rng = np.random.default_rng(1)
        count = min(_SELECTION_FOLDS, len(problem))
        blocks = np.arange(len(problem)) * count // len(problem)
        splits = [folds_of(problem.q, problem.set_index, count, rng), blocks]
        chosen = select_terms(problem.with_terms(self.candidates), geometric, self.groups, splits)
        if not chosen:
            return problem, geometric
        extended = problem.with_terms(self.candidates.selected(chosen))
        start = replace(geometric.state, coefficients=np.zeros(len(chosen)))
        jacobian = extended.linearise(start)[1] * extended.scale[:, :, None]
        terms = extended.blocks[3]
        free, _ = independent_columns(
            jacobian.reshape(-1, jacobian.shape[2]), [self.free, np.arange(terms.start, terms.stop)], smallest=0.0
        )
        return extended, fit(extended, start, free, loss=self.config.loss, prior=self.config.prior)
