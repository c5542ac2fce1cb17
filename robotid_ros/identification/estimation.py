# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The estimators, on the rows of a chosen model.

All ways to fit the parameters that are tried, and the rule by which one is taken.

The terms weighted by evidence hold until something else proves better in states that were left out: fewer terms, which
extrapolate better, the description with the deviations that it states, which keeps bodies near those described, or
plain least squares, which need no description and no weights.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.information import Information, Rows, reweighted, solve, solved
from robotid_ros.identification.judge import Alternative, Decision, Score, groups
from robotid_ros.identification.least_squares import LinearEstimator, fit_of_parameters, least_squares
from robotid_ros.identification.model_choice import Chosen, few_of
from robotid_ros.identification.prior import Prior, description_prior, is_placeholder
from robotid_ros.identification.samples import ENOUGH, Samples
from robotid_ros.identification.separable import separable_least_squares
from robotid_ros.identification.source_methods import alternate, bee_colony
from robotid_ros.identification.stroke_friction import stroke_friction
from robotid_ros.identification.terms import PLAIN, Terms
from robotid_ros.identification.torque_fit import TorqueFit

_LEFT_OUT = (('position',), ('build_up',), ('position', 'build_up'), ('load',))  # one after the other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Candidate:
    """A way to fit the parameters.

    Attributes
    ----------
    name : str
    score : Score
        Held-out errors.
    prior : Prior or None
    leaning : float
        Mean share of the parameters that stems from the description.
    plain : bool
        Plain friction with an exact sign, of samples in motion, and a torque of unlimited bandwidth, in place of what
        was chosen.
    equal : bool
        Whether all joints count alike.
    """

    name: str
    score: Score
    prior: Prior | None = None
    leaning: float = 0.0
    plain: bool = False
    equal: bool = False

    def of_all_samples(self, chosen: Chosen) -> tuple[Rows, FrictionModel, Array, Prior | None]:
        """Return the rows, the friction, its shape and the prior by which this way fits all samples."""
        rows, samples = chosen.rows, chosen.rows.samples
        if self.plain:
            rows = Rows(rows.base, samples.sliding(None).with_bandwidth(None).in_motion())
            return rows, friction_model(PLAIN), np.zeros((samples.n, 0)), None
        prior, by_strokes = self.prior, chosen.stroke_prior()
        if prior is not None:  # found by a few samples
            scale = few_of(samples).independent_per_sample / samples.independent_per_sample
            prior = replace(prior, strength=prior.strength * scale)
        if by_strokes is not None:
            prior = by_strokes if prior is None else replace(prior, friction=by_strokes.friction, own=None)
        return rows, chosen.friction, chosen.shape, prior


def automatic(
    chosen: Chosen, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[Decision, ...], tuple[Candidate, ...]]:
    """Fit the parameters by the terms weighted by evidence, or by what predicts held-out states better.

    The ways to fit share most of their terms, so that the best of them counts as one challenger. All of them are
    returned too, that which was taken first.
    """
    first, *others = _candidates(chosen, few_of(chosen.rows.samples), config)
    best = min(others, key=lambda each: each.score.value, default=first)
    taken = best if others and first.score.loses_to(best.score) else first
    decision = Decision(
        subject='parameters',
        chosen=taken.name,
        alternatives=tuple(Alternative(name=each.name, error=each.score.rmse) for each in (first, *others)),
    )
    decisions: tuple[Decision, ...] = (decision,)
    if config.prior:
        said = f'{Path(config.prior).name} tells {100.0 * taken.leaning:.1f} % of the parameters, the data the rest'
        decisions = (decision, Decision(subject='prior', chosen=said))
    _, fit = fit_of(chosen, taken, dissipative=not taken.plain)
    return fit, decisions, (taken, *(each for each in (first, *others) if each is not taken))


def fit_of(chosen: Chosen, way: Candidate, *, dissipative: bool = True) -> tuple[Rows, TorqueFit]:
    """Return the rows and the fit of a way to fit the parameters."""
    rows, friction, shape, prior = way.of_all_samples(chosen)
    estimator: LinearEstimator = 'ols' if way.equal else 'wls'
    return rows, least_squares(rows, friction, shape, estimator=estimator, prior=prior, dissipative=dissipative)


def fits_to_compare(
    chosen: Chosen, fit: TorqueFit, ways: Sequence[Candidate], *, dissipative: bool = True
) -> Iterator[TorqueFit]:
    """Yield the fits of ways to fit the parameters to all samples, without covariance, and with the load of a fit.

    So all of them need one pass over the rows of the chosen terms, and one over those of plain friction.
    """
    known: dict[bool, Information] = {}
    for way in ways:
        rows, friction, shape, prior = way.of_all_samples(chosen)
        if way.plain not in known:
            load = rows.torque(fit.base_values) if friction.needs_load else None
            known[way.plain] = rows.information(friction, shape, load)
        total, bounds = known[way.plain], friction if dissipative else None
        precision = np.ones(total.n) if way.equal else reweighted(total, bounds, np.ones(total.n), prior)
        values = solved(total, precision, bounds, prior)
        linear = values[total.base :].reshape(total.n, -1)
        yield replace(
            fit,
            friction=friction,
            base_values=values[: total.base],
            friction_parameters=np.concatenate([linear, shape], axis=1),
            bandwidth=rows.samples.runs[0].bandwidth,
        )


def _candidates(chosen: Chosen, few: Samples, config: IdentificationConfig) -> Iterator[Candidate]:
    """Yield all that is tried, that which needs no proof first."""
    label, terms, samples = groups(few), chosen.terms, chosen.rows.samples
    if terms.described is None:  # a friction model by its name is not weighted, the description is
        described = description_prior(chosen.model, terms.base, samples, rotor_inertia=config.rotor_inertia)
        terms = replace(terms, described=described, weighted=False).seen(few)
    bench = terms.bench(few, label)

    def weighted(kinds: tuple[str, ...] = (), *, stated: bool = False) -> Candidate:
        without = _parameters_of(terms.friction, kinds) if kinds else None
        score, prior, precision = terms.judged(bench, few, without, stated=stated)
        leaning = 0.0
        if config.prior and prior is not None:
            matrix, vector = bench.total.normal(precision, prior)
            leaning = float(prior.share(solve(matrix, vector, len(vector), None).inverse).mean())
        words = ['description as stated'] * stated + [f'without {" and ".join(kinds)}'] * bool(kinds)
        return Candidate(name=', '.join(words) or terms.friction.name, score=score, prior=prior, leaning=leaning)

    yield weighted()
    if chosen.strokes is not None or config.friction != 'auto':
        return
    yield from (weighted(kinds) for kinds in _LEFT_OUT)
    if not is_placeholder(chosen.model):
        yield from (weighted(kinds, stated=True) for kinds in ((), *_LEFT_OUT))
    plain = Terms.plain(terms.base, few.n)
    few = few.with_bandwidth(None)  # fitted to those in motion, judged by the same as the others
    bench = replace(plain.bench(few, label), fit=plain.bench(few.in_motion(), label).fit)
    for equal in (False, True):
        name = f'plain: {PLAIN}, exact sign, torque not limited{", all joints alike" * equal}'
        score, _ = bench.linear(None, equal=equal)
        yield Candidate(name=name, score=score, plain=True, equal=equal)


def _parameters_of(friction: FrictionModel, kinds: tuple[str, ...]) -> BoolArray:
    """Return which linear parameters are of some kinds of term, shape (k,)."""
    kinds = tuple('stiffness' if kind == 'position' else kind for kind in kinds) + kinds
    return np.array([name.startswith(kinds) for name in friction.linear_names])


def estimate(
    chosen: Chosen, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[Decision, ...], tuple[Candidate, ...]]:
    """Run the estimator asked for; the physical one starts from weighted least squares.

    The ways to fit that were compared are returned too, that which was taken first; none where nothing was.
    """
    if config.estimator == 'alternating':
        fit, decision = alternate(chosen, config)
        return fit, (decision,), ()
    if config.estimator == 'bee-colony':
        return *_bees(chosen, config), ()
    if config.estimator == 'auto':
        return automatic(chosen, config)
    method = cast(LinearEstimator, 'wls' if config.estimator == 'physical' else config.estimator)
    variance = 1.0
    if method == 'ols' and chosen.strokes is not None:  # the rows' weight is 1, and that of the strokes relative to it
        alone = least_squares(chosen.rows, chosen.friction, chosen.shape, estimator='wls', covariance=False)
        variance = float(1.0 / alone.precision.mean())
    prior = chosen.stroke_prior(variance)
    fit = least_squares(chosen.rows, chosen.friction, chosen.shape, estimator=method, prior=prior)
    return fit, (Decision(subject='estimator', chosen=config.estimator),), ()


def _bees(chosen: Chosen, config: IdentificationConfig) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Search for all parameters by a bee colony, and say what separable least squares reaches on the same rows."""
    rows, friction = chosen.rows, chosen.friction
    base = rows.base
    few = rows.samples.thinned(ENOUGH // 2)
    rigid = base.regressor(few.q, few.dq, few.ddq)
    described = np.zeros(len(base.independent)) if is_placeholder(chosen.model) else np.array(base.values)
    strokes = None if chosen.strokes is None else stroke_friction(friction, chosen.strokes)
    begin = time.perf_counter()
    values, parameters, cost, evaluations = bee_colony(rigid, few, friction, described, config, strokes)
    seconds = time.perf_counter() - begin
    _, direct_values, direct_parameters, problems = separable_least_squares(rigid, few, friction, fit_scale=False)

    def rmse(values: Array, parameters: Array) -> Array:
        torque = rigid @ values + friction.torque(few.dq, parameters, few.target, few.q)
        return np.asarray(np.sqrt(np.mean((few.target - torque) ** 2, axis=0)))

    count = len(values) + parameters.size
    curve = ' '.join(f'{cost[k]:.3g}' for k in np.linspace(0, len(cost) - 1, 11).astype(int))
    decision = Decision(
        subject='estimator',
        chosen=f'bee-colony: {count} parameters, {config.colony_size} bees, limit {config.colony_limit}, '
        f'{config.colony_cycles} cycles, {evaluations} evaluations in {seconds:.1f} s; '
        f'relative squared error {curve}',
        alternatives=(
            Alternative(name='bee colony', error=rmse(values, parameters)),
            Alternative(
                name=f'separable least squares, {problems} linear problems',
                error=rmse(direct_values, direct_parameters),
            ),
        ),
    )
    fit = fit_of_parameters(rows, friction, values, parameters, converged=True, reason='')
    return replace(fit, search=cost), (decision,)
