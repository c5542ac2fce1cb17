# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Terms of a torque model beside the rigid body, and how well they predict states that were left out.

How much each kind of term counts, and how far the description is off: the weights that make the torque most likely.

Friction has more terms than a recording determines: smooth steps of several widths, what builds up after a reversal,
the load, the position. Each kind of term i has one weight for all joints; in joint j its parameter is normal about 0,

    f_ij ~ N(0, s_j^2 / (a_i c_ij^2)),

with s_j the root mean square of the joint's torque and c_ij that of the column, so that only shares of the torque are
compared and no unit enters. The base parameters are normal about the description's with a covariance C / s. With
Gaussian noise of the variance 1 / p_j everything is linear, and the weights are those of greatest evidence (MacKay
1992), by the fixed point

    a_i = g_i / sum_j (f_ij c_ij / s_j)^2,   s = g / (beta - m)^T C^-1 (beta - m),   p_j = N_j / E[|e_j|^2],

where g_i of the parameters of a kind of term, and g of the base parameters, are determined by the data and not by their
weight: one minus the share of their variance that the data leave. A kind of term that explains nothing gets the
largest weight, and is nearly gone.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from robotid_ros.arrays import Array, BoolArray, IntArray
from robotid_ros.dynamics import BaseParameters
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.information import ITERATIONS, PASSES, ROUNDING, Information, gather, solved
from robotid_ros.identification.judge import Bench, Score
from robotid_ros.identification.prior import Prior
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.torque_fit import independent_share

PLAIN = 'coulomb_viscous+offset'
ALL = 'levels+load+offset+position'
SMOOTH = 0.05  # of a joint's largest speed: below, its friction turns (velocity scale) and may rise (Stribeck)
_BUILDS_UP = 1e-3  # of a joint's range: the presliding distance
_FIRST = 25.0  # weight to begin with: a term takes a fifth of the torque
_MOST = 2500.0  # weight: what explains nothing may still take a fiftieth of the torque, as deviations have to hold
_WEAK = 0.01  # weight of the description to begin with: from a strong one, evidence may end where nothing else counts
_STRONGEST = 1e6  # of the description: none is right to less than a thousandth of its standard deviations
_SETTLED, _CHANGED = 0.01, 0.1  # relative changes of the noise and of the description's weight at which they end


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """What evidence says.

    Attributes
    ----------
    prior : Prior
        The weights of all terms beside some Gram matrices.
    precision : ndarray, shape (n,)
        Of each joint's torque [1/(N m)^2].
    alpha : ndarray, shape (k,)
        a_i, of each kind of friction term.
    strength : float
        s, of the description.
    """

    prior: Prior
    precision: Array
    alpha: Array
    strength: float


def weigh(
    info: Information,
    described: Prior,
    independent: float,
    without: BoolArray | None = None,
    start: Weights | None = None,
    stated: bool = False,
) -> Weights:
    """Return the weights of all terms.

    Parameters
    ----------
    info : Information
        Gram matrices.
    described : Prior
        Mean and precision of the base parameters.
    independent : float
        Independent samples in one: what a model cannot follow counts once as long as the arm stays near one state.
    without : ndarray of bool, shape (k,), optional
        Friction terms that are left out.
    start : Weights, optional
        Of nearly the same rows, from where a few steps are enough.
    stated : bool
        The description has the deviations that it states, s = 1; evidence weighs the other terms only.

    References
    ----------
    D. MacKay, Bayesian interpolation, Neural Computation 4 (1992), 415-447.
    M. Tipping, Sparse Bayesian learning and the relevance vector machine, J. Machine Learning Res. 1 (2001), 211-244.
    """
    n, b, k = info.n, info.base, info.own
    count = np.maximum(info.count, 1e-300)
    power = info.power
    share = np.einsum('nkk->nk', info.gram[:, b:-1, b:-1]) / (count * power)[:, None]
    seen = share > 1e-12 * np.maximum(share.max(axis=0, initial=0.0), 1e-300)
    alpha, strength, precision = np.full(k, _FIRST), _WEAK, 20.0 / power
    if start is not None:
        alpha[: len(start.alpha)], strength, precision = start.alpha[:k], start.strength, start.precision
    strength = 1.0 if stated else strength
    prior, told = described, float(b)
    for iteration in range(ITERATIONS if start is None else PASSES):
        own = np.where(seen, np.minimum(alpha, _MOST) * share, 1.0 / power[:, None])
        if without is not None:
            own = np.where(without, 1.0 / ROUNDING * np.maximum(share, 1.0 / power[:, None]), own)
        prior = Prior(
            mean=described.mean, precision=strength * described.precision, strength=1.0 / independent, own=own
        )
        values, inverse = _posterior(*info.normal(precision, prior))
        covariance = inverse / independent
        known = np.clip(1.0 - own * np.diag(covariance)[b:].reshape(n, k), 1e-6, 1.0)
        square = np.sum(values[b:].reshape(n, k) ** 2 * share * seen, axis=0)
        alpha = np.sum(known * seen, axis=0) / np.maximum(square, 1e-12)
        away = values[:b] - described.mean
        told = max(b - strength * float(np.sum(covariance[:b, :b] * described.precision)), 1e-3 * b)
        before, distance = strength, float(away @ described.precision @ away)
        strength = 1.0 if stated else float(min(told / max(distance, 1e-300), _STRONGEST))
        across, own_block = covariance[:b, b:].reshape(b, n, k), covariance[b:, b:].reshape(n, k, n, k)
        spread = np.tensordot(info.gram[:, :b, :b], covariance[:b, :b], 2)
        spread += np.sum(info.gram[:, b:-1, b:-1] * np.einsum('nknl->nkl', own_block), axis=(1, 2))
        spread += 2.0 * np.sum(info.gram[:, :b, b:-1] * across.swapaxes(0, 1), axis=(1, 2))
        updated = info.precision((info.residual_squares(values) + spread) / count)
        settled = np.abs(np.log(updated / precision)).max() < _SETTLED and abs(np.log(strength / before)) < _CHANGED
        precision = updated
        if settled and iteration > 3:
            break
    if not stated:  # the mean of the description's variance, which few parameters tell, is larger than its mode
        prior = replace(prior, precision=max(told - 2.0, 1.0) / max(told, 1.0) * prior.precision)
    return Weights(prior=prior, precision=precision, alpha=alpha, strength=strength)


def _posterior(matrix: Array, vector: Array) -> tuple[Array, Array]:
    """Return the solution of normal equations and the inverse of their matrix."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    unit = matrix * np.outer(scale, scale)
    for jitter in (1e-12, 1e-10, 1e-8):  # what no term and no description determines
        factor, failed = dpotrf((unit + jitter * np.eye(len(unit))).T, overwrite_a=1)
        if not failed:
            upper = np.triu(dpotri(factor, overwrite_c=1)[0])
            inverse = upper + np.triu(upper, 1).T
            break
    else:
        inverse = np.linalg.pinv(unit, hermitian=True)
    inverse = inverse * np.outer(scale, scale)
    return np.asarray(inverse @ vector), np.asarray(inverse)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Friction terms with the weights that evidence gives them, or as they are.

    Attributes
    ----------
    base : BaseParameters
        Of the rigid body.
    friction : FrictionModel
    shape : ndarray, shape (n, s)
        Its shape parameters.
    described : Prior or None
        Of the base parameters; None for plain weighted least squares.
    values : ndarray, shape (b,), or None
        Base parameters that give the load of load-dependent friction; None takes the measured torque.
    independent : float or None
        Independent samples in one second, as the residual shows; None where they were not looked for.
    weighted : bool
        Whether the friction terms have weights, too; those of a model that was asked for are as they are.
    weights : Weights or None
        From where a search for those of nearly the same rows begins.
    """

    base: BaseParameters
    friction: FrictionModel
    shape: Array
    described: Prior | None = None
    values: Array | None = None
    independent: float | None = None
    weighted: bool = True
    weights: Weights | None = None

    @classmethod
    def plain(cls, base: BaseParameters, n: int) -> 'Terms':
        """Return plain friction with an exact sign for ``n`` joints."""
        return cls(base=base, friction=friction_model(PLAIN), shape=np.zeros((n, 0)))

    @classmethod
    def all(cls, base: BaseParameters, described: Prior, samples: Samples) -> 'Terms':
        """Return all terms there are, scaled to the speeds and ranges of some samples."""
        fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-9)
        low, high = samples.q.min(axis=0), samples.q.max(axis=0)
        friction = friction_model(
            ALL,
            velocity_scale=SMOOTH * fastest,
            presliding=_BUILDS_UP * np.maximum(high - low, 1e-9),
            middle=0.5 * (low + high),
        )
        return cls(base=base, friction=friction, shape=np.zeros((samples.n, 0)), described=described)

    def late(self, lag: float) -> 'Terms':
        """Return the same terms with friction that turns late [s]."""
        return replace(self, friction=replace(self.friction, lag=lag))

    def own(self, samples: Samples, rigid: Array) -> Array:
        """Return the friction columns, shape (N, n, k), before any filter."""
        load = None
        if self.friction.needs_load:
            load = samples.target if self.values is None else rigid @ self.values
        return samples.friction_columns(self.friction, self.shape, load)

    def share(self, samples: Samples) -> float:
        """Return the independent samples in one."""
        least = samples.independent_per_sample
        if self.independent is None:
            return least
        seconds = sum(len(run) / run.rate for run in samples.runs)
        return min(least, self.independent * seconds / len(samples))

    def seen(self, samples: Samples) -> 'Terms':
        """Return the same terms with the load, and with the independent samples that the residual shows."""
        terms = self
        rigid = self.base.regressor(samples.q, samples.dq, samples.ddq)
        filtered = samples.filtered(rigid)
        seconds = sum(len(run) / run.rate for run in samples.runs)
        for _ in range(2):  # the load is the measured torque first, then that of the parameters
            own = samples.filtered(terms.own(samples, rigid))
            info = gather(filtered, own, samples.target, samples.weight)
            assert terms.described is not None
            weights = self._weights(weigh(info, terms.described, terms.share(samples)))
            values = terms.solved(info, weights.precision, weights.prior)
            base, linear = values[: info.base], values[info.base :].reshape(samples.n, -1)
            residual = samples.target - filtered @ base - np.einsum('Nnk,nk->Nn', own, linear)
            runs = [slice(run.start, run.stop) for run in samples.runs]
            found = independent_share(np.sqrt(samples.weight) * residual, runs) * len(samples) / seconds
            terms = replace(terms, values=base, independent=found, weights=weights)
        return terms

    def _weights(self, found: Weights) -> Weights:
        return found if self.weighted else replace(found, prior=replace(found.prior, own=None))

    def solved(self, info: Information, precision: Array, prior: Prior | None) -> Array:
        """Return the parameters (P,) of some Gram matrices, for given weights."""
        return solved(info, precision, self.friction if self.described is None else None, prior)

    def bench(self, samples: Samples, label: IntArray) -> Bench:
        """Return the Gram matrices in groups."""
        rigid = self.base.regressor(samples.q, samples.dq, samples.ddq)
        return Bench.of(samples, label, rigid, self.own(samples, rigid))

    def judged(
        self, bench: Bench, samples: Samples, without: BoolArray | None = None, *, stated: bool = False
    ) -> tuple[Score, Prior | None, Array]:
        """Return the errors in groups that were held out, the weights, and the precision of the joints."""
        if self.described is None:
            score, precision = bench.linear(self.friction)
            return score, None, precision
        found = self._weights(weigh(bench.total, self.described, self.share(samples), without, self.weights, stated))
        score = bench.score(lambda info: self.solved(info, found.precision, found.prior))
        return score, found.prior, found.precision

    def score(self, samples: Samples, label: IntArray) -> Score:
        """Return the errors in groups that were held out."""
        return self.judged(self.bench(samples, label), samples)[0]
