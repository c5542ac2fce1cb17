# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Which friction model the data support, judged by groups of states that were held out.

The order is greedy: the smoothing of the sign (each joint for itself), load dependence, the speed terms, the sign
again, springs, a torque ripple. Each challenges what holds so far before the judge
(:mod:`robotid_ros.identification.judge`). A smooth sign is judged again beside the terms chosen after it: a wide one
can stand in for a missing speed term. Shape parameters are those of a fit to all groups; the linear parameters are
fitted without the group that is held out.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.bench import Bench
from robotid_ros.identification.decision import Alternative, Decision
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.judge import GROUPS, Score, groups
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.ripple import strongest_ripple, with_ripple
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.separable import SeparableFit, separable_least_squares
from robotid_ros.progress import Progress, silent

_PRESLIDING = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2)  # of a joint's range: 0.2 to 60 mrad of two radians
_FINER = (3.0**0.5, 3.0**0.25)  # steps between them, until the distance is known to a third
_EXACT = 2e-3  # of the largest speed: a smoothed sign this narrow counts as exact


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionChoice:
    """A chosen friction model, its shape parameters and the decisions.

    Attributes
    ----------
    friction : FrictionModel
        With the width of its sign.
    shape : ndarray, shape (n, s)
    decisions : tuple of Decision
    """

    friction: FrictionModel
    shape: Array
    decisions: tuple[Decision, ...]


class _Contest:
    """Samples by which friction models are compared, with the rows that all share."""

    def __init__(self, rigid: Array, samples: Samples) -> None:
        self.rigid, self.samples = rigid, samples
        self.filtered, self.recorded = samples.passed(rigid)
        self.label = groups(samples, GROUPS)
        self.fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
        self.tried: list[Alternative] = []

    def fit(self, friction: FrictionModel, *, fit_scale: bool = False) -> SeparableFit:
        return separable_least_squares(self.rigid, self.samples, friction, fit_scale=fit_scale, filtered=self.filtered)

    def score(self, friction: FrictionModel, shape: Array, load: Array | None, name: str) -> Score:
        """Return the held-out errors of linear parameters beside given shapes, and remember them."""
        samples = self.samples
        own, own_recorded = samples.passed(samples.friction_columns(friction, shape, load))
        bench = Bench.of_rows(samples, self.label, self.filtered, own, self.recorded, own_recorded)
        score, _, _ = bench.linear(friction)
        self.tried.append(Alternative(name=name, error=score.rmse))
        return score

    def score_nested(self, frictions: Sequence[FrictionModel], shape: Array, load: Array, name: str) -> Score:
        """Return the held-out errors of a model that was chosen anew without each group."""
        samples, squares, counts = self.samples, [], []
        for k, friction in enumerate(frictions):
            own, own_recorded = samples.passed(samples.friction_columns(friction, shape, load))
            others = (self.label == k).astype(int)  # 0; the group is 1
            two = Bench.of_rows(samples, others, self.filtered, own, self.recorded, own_recorded)
            found = two.linear(friction)[0]
            squares.append(found.squares[1])
            counts.append(found.count[1])
        score = Score(squares=np.array(squares), count=np.array(counts))
        self.tried.append(Alternative(name=name, error=score.rmse))
        return score

    def trial(self, friction: FrictionModel, name: str, *, fit_scale: bool = False) -> tuple[Score, SeparableFit]:
        fit = self.fit(friction, fit_scale=fit_scale)
        return self.score(fit.friction, fit.shape, self.rigid @ fit.base_values, name), fit

    def smoother(self, exact: Score, smooth: Score, fit: SeparableFit) -> BoolArray:
        """Return the joints whose smooth sign predicts better and is wider than the change of speed in one sample."""
        samples = self.samples
        resolution = np.sqrt(np.mean(samples.ddq**2, axis=0)) / min(run.rate for run in samples.runs)
        wide = np.asarray(fit.friction.velocity_scale) > np.maximum(resolution, _EXACT * self.fastest)
        return np.asarray(exact.joints_lose_to(smooth) & wide)


def choose_friction(rigid: Array, samples: Samples, *, progress: Progress = silent) -> FrictionChoice:
    """Return the friction model that predicts held-out states best.

    Parameters
    ----------
    rigid : ndarray, shape (N, n, b)
        Base regressor, unfiltered.
    samples : Samples
        A few thousand at most.
    progress : callable, optional
        Called with a share from 0 to 1 and a text.
    """
    contest = _Contest(rigid, samples)
    name, scale = 'coulomb_viscous+offset', None
    score, fit = contest.trial(friction_model(name), f'{name}, exact sign')
    progress(0.2, 'signs of the friction')
    score, fit, smooth = _signs(contest, name, score, fit)
    for part, candidate in enumerate(('coulomb_viscous{}+load+offset', 'stribeck{}+offset', 'daemi_heimann{}+offset')):
        progress(0.3 + 0.2 * part, f'friction {candidate.format("")}')
        loaded = '+load' if '+load' in name else ''
        challenger = candidate.format(loaded if part else '')
        scale = fit.friction.velocity_scale if smooth.any() else None
        new, found = contest.trial(friction_model(challenger, velocity_scale=scale), challenger)
        if score.loses_to(new):
            name, score, fit = challenger, new, found
    if smooth.any() and name != 'coulomb_viscous+offset':
        exact = contest.trial(friction_model(name), f'{name}, exact sign')
        score, fit, smooth = _signs(contest, name, *exact)
    decision = Decision(subject='friction', chosen=_described(name, smooth), alternatives=tuple(contest.tried))
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(decision,))


def _signs(contest: _Contest, name: str, score: Score, fit: SeparableFit) -> tuple[Score, SeparableFit, BoolArray]:
    """Return the fit with a smooth sign for the joints that it predicts better, and which they are."""
    smooth_score, smooth = contest.trial(friction_model(name), f'{name}, smooth sign', fit_scale=True)
    better = contest.smoother(score, smooth_score, smooth)
    if better.any():
        scale = np.where(better, np.asarray(smooth.friction.velocity_scale), _EXACT * contest.fastest)
        new, found = contest.trial(friction_model(name, velocity_scale=scale), f'{name}, chosen signs')
        if score.loses_to(new):
            return new, found, better
    return score, fit, np.zeros_like(better)


def _described(name: str, smooth: BoolArray) -> str:
    count = int(smooth.sum())
    return f'{name}, exact sign' if count == 0 else f'{name}, smooth sign for {count} of {len(smooth)} joints'


def add_spring(base: BaseRegressor, samples: Samples, choice: FrictionChoice) -> FrictionChoice:
    """Add a spring (a counterbalance, or cables that are wound up) to the joints whose held-out torque shows one.

    The description knows no spring: one contradicts it.

    Parameters
    ----------
    base : BaseRegressor
    samples : Samples
        A few thousand at most.
    choice : FrictionChoice
    """
    contest = _Contest(base.regressor(samples.q, samples.dq, samples.ddq), samples)
    fit = least_squares(Rows(base, samples), choice.friction, choice.shape, covariance=False)
    load = contest.rigid @ fit.base_values

    def sprung(joints: Sequence[int]) -> FrictionModel:
        name, scale = f'{choice.friction.name}+spring', choice.friction.velocity_scale
        return friction_model(
            name,
            velocity_scale=scale,
            spring=1.0 * np.isin(np.arange(samples.n), joints),
            presliding=choice.friction.presliding,
        )

    none = contest.score(choice.friction, choice.shape, load, 'none')
    asked = []
    for j in range(samples.n):  # one by one: an unneeded spring raises the error of the others
        alone = contest.score(sprung([j]), choice.shape, load, f'joint {j + 1}')
        if none.of_joint(j).contradicted_by(alone.of_joint(j), samples.n) and none.loses_to(alone, samples.n):
            asked.append(j)
    friction, text = choice.friction, 'none'
    if asked and none.loses_to(contest.score(sprung(asked), choice.shape, load, 'all of these')):
        friction, text = sprung(asked), ', '.join(f'joint {j + 1}' for j in asked)
    decision = Decision(subject='spring', chosen=text, alternatives=tuple(contest.tried))
    return replace(choice, friction=friction, decisions=(*choice.decisions, decision))


def add_presliding(
    base: BaseRegressor, few: Samples, slide_of: Callable[[Array], Array], choice: FrictionChoice
) -> FrictionChoice:
    """Let friction build up after a reversal in the joints whose held-out torque shows it.

    Its distance is found joint by joint: the best of a coarse series, then between its neighbours.

    Parameters
    ----------
    base : BaseRegressor
    few : Samples
        A few thousand at most.
    slide_of : callable
        From distances, shape (n,) [rad or m], to what takes the place of the sign of the speed, shape (N, n).
    choice : FrictionChoice
    """
    few = replace(few, weight=np.ones_like(few.weight))  # where a joint stands, this friction is determined
    contest = _Contest(base.regressor(few.q, few.dq, few.ddq), few)
    fit = least_squares(Rows(base, few), choice.friction, choice.shape, covariance=False)
    load = contest.rigid @ fit.base_values
    chosen = contest.score(choice.friction, choice.shape, load, 'as chosen')
    exact = contest.score(choice.friction.smoothed(None), choice.shape, load, 'at once')
    range_ = np.ptp(few.q, axis=0)

    def score(distance: Array, name: str) -> Score:
        contest.samples = replace(few, slide=slide_of(distance))
        return contest.score(choice.friction, choice.shape, load, name)

    def best_of_joints() -> Array:
        distances, errors = (np.array(each) for each in zip(*tried, strict=True))
        return np.asarray(distances[np.argmin(errors, axis=0), np.arange(few.n)])

    tried = [(share * range_, score(share * range_, f'over {share:g} of the range').rmse) for share in _PRESLIDING]
    for factor in _FINER:
        best = best_of_joints()
        for scale, name in ((1.0 / factor, 'shorter'), (factor, 'longer')):
            tried.append((scale * best, score(scale * best, f'{name} by {factor:.3g} than the best').rmse))
    best = best_of_joints()
    along = score(best, 'the best of every joint')
    better = exact.joints_lose_to(along) & (along.rmse < chosen.rmse)
    text, friction = 'at once', choice.friction
    if better.any():
        distance = np.where(better, best, 0.0)
        along = score(distance, 'in these joints')
        if exact.loses_to(along) and along.value < chosen.value:
            friction = replace(friction, presliding=distance)
            text = ', '.join(
                f'joint {j + 1} over {distance[j]:.2g} rad (or m)' for j in np.flatnonzero(better).tolist()
            )
    decision = Decision(subject='friction after a reversal', chosen=text, alternatives=tuple(contest.tried))
    return replace(choice, friction=friction, decisions=(*choice.decisions, decision))


def add_ripple(base: BaseRegressor, samples: Samples, choice: FrictionChoice) -> FrictionChoice:
    """Add a torque ripple to the joints whose held-out torque shows one, of the frequency that explains most."""
    limit = min(min(2.0 * run.narrowest, 0.2 * run.rate) for run in samples.runs)
    contest = _Contest(base.regressor(samples.q, samples.dq, samples.ddq), samples)
    fit = least_squares(Rows(base, samples), choice.friction, choice.shape, covariance=False)
    load = contest.rigid @ fit.base_values
    own = samples.friction_columns(choice.friction, choice.shape, load)
    linear = fit.friction_parameters[:, : own.shape[2]]
    residual = samples.target - samples.filtered(load + np.einsum('Nnk,nk->Nn', own, linear))
    without = strongest_ripple(samples, residual, samples.filtered(own), limit, contest.label)
    frequency = without[0]
    none = contest.score(choice.friction, choice.shape, load, 'none')
    text, friction = 'none', choice.friction

    def nested(frequencies: Array, name: str) -> Score:
        models = [with_ripple(choice.friction, each, limit) for each in frequencies[1:]]
        return contest.score_nested(models, choice.shape, load, name)

    if frequency.any():
        every = nested(without, 'in every joint, found without the group')
        frequency = np.where(none.joints_lose_to(every), frequency, 0.0)
    if frequency.any() and not none.loses_to(nested(np.where(frequency, without, 0.0), 'in these joints')):
        frequency = np.zeros(samples.n)
    if frequency.any():
        friction = with_ripple(choice.friction, frequency, limit)
        text = ', '.join(f'joint {j + 1} at {frequency[j]:.0f}/rad' for j in np.flatnonzero(frequency).tolist())
    decision = Decision(subject='torque ripple', chosen=text, alternatives=tuple(contest.tried))
    return FrictionChoice(friction=friction, shape=choice.shape, decisions=(*choice.decisions, decision))


def fit_friction_shape(rigid: Array, samples: Samples, name: str, *, smooth: bool) -> FrictionChoice:
    """Return a given friction model with its shape parameters.

    Parameters
    ----------
    rigid : ndarray, shape (N, n, b)
        Base regressor, unfiltered.
    samples : Samples
    name : str
    smooth : bool
        Take a smooth sign for the joints that it predicts better.
    """
    contest = _Contest(rigid, samples)
    if not smooth:
        fit = contest.fit(friction_model(name))
        decision = Decision(subject='friction', chosen=f'{name}, as asked')
    else:
        _, fit, better = _signs(contest, name, *contest.trial(friction_model(name), f'{name}, exact sign'))
        decision = Decision(subject='friction', chosen=_described(name, better), alternatives=tuple(contest.tried))
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(decision,))
