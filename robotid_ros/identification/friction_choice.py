# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Which friction model the data support, judged by stretches that were held out.

The order is greedy: the smoothing of the sign (each joint for itself), load dependence, the speed terms, the sign
again, a torque ripple. A joint's smooth sign must predict held-out stretches better by more than one
percent and one standard error over the stretches; a speed term by two percent in the geometric mean over
the joints. Load dependence, which every gear has, stays unless it predicts worse. A smooth sign is judged again
beside the terms chosen after it: a wide one can stand in for a missing speed term.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.cross_validation import Alternative, Decision, Folds, HeldOut, LinearFolds
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.least_squares import least_squares, weighted_solution
from robotid_ros.identification.ripple import Unexplained, find_ripple, with_ripple
from robotid_ros.identification.rows import Rows
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.separable import SeparableFit, separable_least_squares
from robotid_ros.progress import Progress

_GAIN = 0.01  # fall of a joint's held-out error that a smooth sign must bring
_RICHER = 0.02  # fall of the error, in the geometric mean over the joints, that a speed term must bring
_SPRING = 0.05  # fall of a joint's held-out error that a spring must bring
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
    """Cross-validated torque errors of friction models on one set of samples."""

    def __init__(self, rigid: Array, samples: Samples) -> None:
        self.rigid, self.samples = rigid, samples
        self.filtered = samples.filtered(rigid)
        self.recorded = samples.recorded(rigid)
        self.folds = Folds.of(samples)

    def fit(self, friction: FrictionModel, fit_scale: bool, start: Array | None, weight: Array) -> SeparableFit:
        return separable_least_squares(
            self.rigid,
            replace(self.samples, weight=weight),
            friction,
            fit_scale=fit_scale,
            start=start,
            iterations=25 if start is None else 4,
            filtered=self.filtered,
        )

    def errors(self, friction: FrictionModel, fit_scale: bool) -> tuple[HeldOut, SeparableFit]:
        """Return the held-out errors and the fit to everything."""
        samples, weight = self.samples, self.samples.weight
        whole = self.fit(friction, fit_scale, None, weight)
        start = _start(whole, fit_scale)
        filtered, recorded = np.zeros_like(samples.target), np.zeros_like(samples.target)
        for held in self.folds.held:
            found = self.fit(friction, fit_scale, start, weight * ~held[:, None])
            load = self.rigid @ found.base_values
            parameters = np.concatenate([found.linear, found.shape], axis=1)
            own = found.friction.torque(samples.dq, parameters, load, samples.q)
            filtered[held] = (samples.target - self.filtered @ found.base_values - samples.filtered(own))[held]
            recorded[held] = (samples.measured - self.recorded @ found.base_values - samples.recorded(own))[held]
        held_out = HeldOut(
            filtered=self.folds.mean_squares(filtered, weight), recorded=self.folds.mean_squares(recorded, weight)
        )
        return held_out, whole


def _start(fit: SeparableFit, fit_scale: bool) -> Array:
    shape = np.log(fit.shape) if fit.shape.size else np.zeros((len(fit.linear), 0))
    if not fit_scale:
        return shape
    return np.concatenate([shape, np.log(np.asarray(fit.friction.velocity_scale))[:, None]], axis=1)


def choose_friction(rigid: Array, samples: Samples, *, progress: Progress | None = None) -> FrictionChoice:
    """Return the friction model that predicts held-out stretches of the data best.

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
    tried: list[Alternative] = []
    trials = 0

    def trial(friction: FrictionModel, fit_scale: bool, text: str) -> tuple[HeldOut, SeparableFit]:
        nonlocal trials
        errors, fit = contest.errors(friction, fit_scale)
        trials += 1
        if progress is not None:
            progress(min(0.95, trials / 6.0), f'friction {text}')
        tried.append(Alternative(name=text, error=errors.rmse))
        return errors, fit

    name = 'coulomb_viscous+offset'
    errors, fit = trial(friction_model(name), False, f'{name}, exact sign')
    smooth_errors, smooth = trial(friction_model(name), True, f'{name}, smooth sign')
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    better = _smoother(errors, smooth_errors, smooth, samples)
    scale = None
    if better.any():
        scale = np.where(better, np.asarray(smooth.friction.velocity_scale), _EXACT * fastest)
        errors, fit = trial(friction_model(name, velocity_scale=scale), False, f'{name}, chosen signs')

    def challenge(candidate: str, *, expected: bool = False) -> None:
        nonlocal errors, fit, name
        new_errors, new_fit = trial(friction_model(candidate, velocity_scale=scale), False, candidate)
        change = float(np.mean(np.log(new_errors.filtered.mean(axis=0) / errors.filtered.mean(axis=0))))
        if change < 0.0 if expected else errors.better(new_errors, _RICHER):
            errors, fit, name = new_errors, new_fit, candidate

    challenge('coulomb_viscous+load+offset', expected=True)
    options = name.removeprefix('coulomb_viscous')
    challenge(f'stribeck{options}')
    challenge(f'daemi_heimann{options}')
    if scale is not None and name != 'coulomb_viscous+offset':
        fit, kept = _signs_again(trial, name, scale, _EXACT * fastest, errors, fit, better)
        better = kept
    decision = Decision(subject='friction', chosen=_described(name, better), alternatives=tuple(tried))
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(decision,))


def _described(name: str, smooth: BoolArray) -> str:
    count = int(smooth.sum())
    return f'{name}, exact sign' if count == 0 else f'{name}, smooth sign for {count} of {len(smooth)} joints'


def _signs_again(
    trial: Callable[[FrictionModel, bool, str], tuple[HeldOut, SeparableFit]],
    name: str,
    scale: Array,
    exact: Array,
    errors: HeldOut,
    fit: SeparableFit,
    smooth: BoolArray,
) -> tuple[SeparableFit, BoolArray]:
    """Return the fit with smooth signs only where they predict better beside all terms, and for which joints."""
    exact_errors, exact_fit = trial(friction_model(name, velocity_scale=exact), False, f'{name}, exact sign')
    kept = np.asarray(smooth & exact_errors.joints_better(errors, _GAIN))
    if not kept.any():
        return exact_fit, kept
    if (kept == smooth).all():
        return fit, kept
    remaining = friction_model(name, velocity_scale=np.where(kept, scale, exact))
    return trial(remaining, False, f'{name}, remaining signs')[1], kept


def add_spring(base: BaseRegressor, samples: Samples, choice: FrictionChoice) -> FrictionChoice:
    """Add a spring (a counterbalance, or cables that are wound up) to the joints where it lowers the held-out error.

    Parameters
    ----------
    base : BaseRegressor
    samples : Samples
        A few thousand at most.
    choice : FrictionChoice
    """
    rigid = base.regressor(samples.q, samples.dq, samples.ddq)
    load = None
    if choice.friction.needs_load:
        load = rigid @ least_squares(Rows(base, samples), choice.friction, choice.shape, covariance=False).base_values
    folds = Folds.of(samples)
    filtered, recorded = samples.filtered(rigid), samples.recorded(rigid)

    def errors(friction: FrictionModel) -> HeldOut:
        own = friction.columns(samples.dq, choice.shape, load, samples.q)
        parts = LinearFolds.of_rows(samples, folds, filtered, samples.filtered(own), recorded, samples.recorded(own))
        return parts.errors(lambda info: weighted_solution(info, friction, np.ones(samples.n))[0].parameters)

    def sprung(joints: Array) -> FrictionModel:
        name, scale = f'{choice.friction.name}+spring', choice.friction.velocity_scale
        return friction_model(name, velocity_scale=scale, spring=joints)

    none = errors(choice.friction)
    tried = [Alternative(name='none', error=none.rmse)]
    asked = np.zeros(samples.n, dtype=bool)
    for j in range(samples.n):  # one by one: an unneeded spring raises the error of the others
        alone = errors(sprung(1.0 * (np.arange(samples.n) == j)))
        tried.append(Alternative(name=f'joint {j + 1}', error=alone.rmse))
        falls = none.joints_better(alone, _SPRING)[j] and alone.rmse[j] < (1.0 - _SPRING) * none.rmse[j]
        asked[j] = falls and none.better(alone, 0.0)
    friction, text = choice.friction, 'none'
    if asked.any():
        both = errors(sprung(1.0 * asked))
        tried.append(Alternative(name='all of these', error=both.rmse))
        if none.better(both, 0.0):
            friction = sprung(1.0 * asked)
            text = ', '.join(f'joint {j + 1}' for j in np.flatnonzero(asked).tolist())
    decision = Decision(subject='spring', chosen=text, alternatives=tuple(tried))
    return replace(choice, friction=friction, decisions=(*choice.decisions, decision))


def add_ripple(base: BaseRegressor, samples: Samples, choice: FrictionChoice) -> FrictionChoice:
    """Add a torque ripple to the joints whose residual shows one, see :mod:`robotid_ros.identification.ripple`."""
    limit = min(min(2.0 * run.narrowest, 0.2 * run.rate) for run in samples.runs)
    rows = Rows(base, samples)
    fit = least_squares(rows, choice.friction, choice.shape, covariance=False)
    load = rows.torque(fit.base_values)
    own = choice.friction.columns(samples.dq, choice.shape, load, samples.q)
    linear = fit.friction_parameters[:, : own.shape[2]]
    torque = load + np.einsum('Nnk,nk->Nn', own, linear)
    unexplained = Unexplained(
        filtered=samples.target - samples.filtered(torque),
        recorded=samples.measured - samples.recorded(torque),
        own=samples.filtered(own),
        own_recorded=samples.recorded(own),
    )
    evidence = find_ripple(samples, unexplained, limit, Folds.of(samples).fold)
    frequency, gains = evidence.frequency, evidence.gain
    found = np.flatnonzero(frequency).tolist()
    if not found:
        most = ' '.join(f'{gain:+.0f}' for gain in gains)
        none = Decision(subject='torque ripple', chosen=f'none that held-out motion confirms (log-likelihood {most})')
        return replace(choice, decisions=(*choice.decisions, none))
    text = ', '.join(f'joint {j + 1} at {frequency[j]:.0f}/rad (log-likelihood +{gains[j]:.0f})' for j in found)
    return FrictionChoice(
        friction=with_ripple(choice.friction, frequency, limit),
        shape=choice.shape,
        decisions=(*choice.decisions, Decision(subject='torque ripple', chosen=text)),
    )


def _smoother(exact: HeldOut, smooth: HeldOut, fit: SeparableFit, samples: Samples) -> BoolArray:
    """Return the joints for which a smooth sign predicts better and is wider than the change of speed in one sample."""
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    resolution = np.sqrt(np.mean(samples.ddq**2, axis=0)) / min(run.rate for run in samples.runs)
    wide = np.asarray(fit.friction.velocity_scale) > np.maximum(resolution, 5e-3 * fastest)
    return np.asarray(exact.joints_better(smooth, _GAIN) & wide)


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
    model = friction_model(name)
    contest = _Contest(rigid, samples)
    if not smooth:
        fit = contest.fit(model, False, None, samples.weight)
        return FrictionChoice(
            friction=fit.friction,
            shape=fit.shape,
            decisions=(Decision(subject='friction', chosen=f'{name}, as asked'),),
        )
    errors, fit = contest.errors(model, False)
    smooth_errors, smoothed = contest.errors(model, True)
    better = _smoother(errors, smooth_errors, smoothed, samples)
    tried = (
        Alternative(name='exact sign', error=errors.rmse),
        Alternative(name='smooth sign', error=smooth_errors.rmse),
    )
    if better.any():
        fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
        scale = np.where(better, np.asarray(smoothed.friction.velocity_scale), _EXACT * fastest)
        fit = separable_least_squares(rigid, samples, model.smoothed(scale), fit_scale=False, filtered=contest.filtered)
    decision = Decision(subject='friction', chosen=_described(name, better), alternatives=tried)
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(decision,))
