# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The default estimator: bodies that can exist, near the description, unless held-out torque proves something else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robotid_ros.dynamics import BaseParameters
from robotid_ros.friction import friction_model
from robotid_ros.identification.bench import Bench
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.covariance import independent_share
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.information import solve
from robotid_ros.identification.judge import REGIONS, Score, groups
from robotid_ros.identification.least_squares import LinearEstimator, least_squares
from robotid_ros.identification.model_choice import Chosen, stroke_prior
from robotid_ros.identification.physical import bodies
from robotid_ros.identification.prior import Prior, description_prior, evident
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.signal_choice import PLAIN
from robotid_ros.identification.torque_fit import TorqueFit
from robotid_ros.model.robot_model import RobotModel

_SAMPLES = 6000  # at most, by which a choice is judged


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Candidate:
    """A way to fit the parameters.

    Attributes
    ----------
    name : str
    score : Score
        Held-out errors in large regions of states.
    prior : Prior or None
    leaning : float
        Mean share of the parameters that stems from the prior.
    plain : bool
        Plain friction with an exact sign and a torque of unlimited bandwidth, in place of what was chosen.
    dissipative : bool
        Whether friction is kept from driving a joint.
    equal : bool
        Whether all joints count alike.
    consistent : bool
        Whether the parameters are those of bodies that can exist.
    """

    name: str
    score: Score
    prior: Prior | None = None
    leaning: float = 0.0
    plain: bool = False
    dissipative: bool = True
    equal: bool = False
    consistent: bool = False


def automatic(
    chosen: Chosen, model: RobotModel, config: IdentificationConfig
) -> tuple[TorqueFit, tuple[Decision, ...]]:
    """Fit the parameters of bodies that can exist, or what predicts held-out regions of states better.

    Bodies near the description, as near as the data say (:func:`~robotid_ros.identification.prior.evident`), hold until
    something else proves better by the judge's rule: they predict where the arm has not been. The ways to fit share
    most of their parameters, so that the best of them counts as one challenger.
    """
    rows, samples = chosen.rows, chosen.rows.samples
    few = samples.thinned(_SAMPLES) if samples.open else samples.excerpts(_SAMPLES)
    first, *others = _candidates(chosen, few, model, config)
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
    prior, by_strokes = taken.prior, stroke_prior(chosen)
    if prior is not None:
        scale = few.independent_per_sample / samples.independent_per_sample
        prior = replace(prior, strength=prior.strength * scale)
    if by_strokes is not None:
        prior = by_strokes if prior is None else replace(prior, friction=by_strokes.friction)
    friction, shape = chosen.choice.friction, chosen.choice.shape
    if taken.plain:
        rows, friction, shape = (
            Rows(rows.base, samples.with_bandwidth(None)),
            friction_model(PLAIN),
            np.zeros((samples.n, 0)),
        )
    estimator: LinearEstimator = 'ols' if taken.equal else 'wls'
    fit = least_squares(rows, friction, shape, estimator=estimator, prior=prior, dissipative=taken.dissipative)
    return replace(fit, consistent=taken.consistent, described=taken.consistent), decisions


def _candidates(chosen: Chosen, few: Samples, model: RobotModel, config: IdentificationConfig) -> Iterator[_Candidate]:
    """Yield all that is tried, that which needs no proof first."""
    base, friction, shape = chosen.rows.base, chosen.choice.friction, chosen.choice.shape
    assert isinstance(base, BaseParameters)
    rigid, label = base.regressor(few.q, few.dq, few.ddq), groups(few, REGIONS)
    load = None
    if friction.needs_load:
        load = rigid @ least_squares(Rows(base, few), friction, shape, covariance=False).base_values
    own = few.friction_columns(friction, shape, load)
    bench = Bench.of(few, label, rigid, own)
    _, found, precision = bench.linear(friction)
    values, linear = found[: rigid.shape[2]], found[rigid.shape[2] :].reshape(few.n, -1)
    residual = few.target - few.filtered(rigid @ values + np.einsum('Nnk,nk->Nn', own, linear))
    independent = independent_share(np.sqrt(few.weight) * residual, [slice(run.start, run.stop) for run in few.runs])
    described = description_prior(model, base, rotor_inertia=config.rotor_inertia)
    prior = evident(described, *bench.total.normal(precision), min(independent, few.independent_per_sample))
    matrix, vector = bench.total.normal(precision)
    prior.add(matrix, vector)
    leaning = float(prior.share(solve(matrix, vector, len(vector), None).inverse).mean())
    if chosen.strokes is None:  # friction of a sweep is kept, which bodies that can exist would change
        possible = bodies(base, model, friction, precision, prior)
        yield _Candidate(
            name='bodies that can exist', score=bench.score(possible), prior=prior, leaning=leaning, consistent=True
        )
    yield _Candidate(name='free', score=bench.linear(friction, prior)[0], prior=prior, leaning=leaning)
    if chosen.strokes is not None:
        return
    # Friction that drives a joint is a fault in the data, which the verdict names; the fit may still describe it.
    name = 'free, and some friction drives its joint'
    yield _Candidate(name=name, score=bench.linear(None, prior)[0], prior=prior, leaning=leaning, dissipative=False)
    if config.friction != 'auto':
        return
    own = friction_model(PLAIN).columns(few.dq, np.zeros((few.n, 0)))
    bench = Bench.of(few.with_bandwidth(None), label, rigid, own)
    for equal in (False, True):
        name = f'plain: {PLAIN}, exact sign, torque not limited{", all joints alike" * equal}'
        score, _, _ = bench.linear(None, equal=equal)
        yield _Candidate(name=name, score=score, plain=True, dissipative=False, equal=equal)
