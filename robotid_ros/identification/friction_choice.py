# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Which friction model the data support: blocked cross-validation within the training data.

Folds are contiguous stretches of time, because neighbouring samples know each other. The order is
greedy: the smoothing of the sign (each joint for itself), load dependence, the speed terms, the sign
again, a torque ripple. A joint's smooth sign must predict held-out stretches better by more than one
percent and one standard error over the stretches; a speed term by two percent in the geometric mean over
the joints. Load dependence, which every gear has, stays unless it predicts worse. A smooth sign has to
prove itself again beside the terms chosen after it: a wide one bends as a missing speed term does.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.folds import STRETCHES, stretches
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.rigid import ModelRows
from robotid_ros.identification.ripple import Unexplained, find_ripple, with_ripple
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.separable import SeparableFit, separable_least_squares
from robotid_ros.progress import Progress

__all__ = ['FrictionChoice', 'add_ripple', 'choose_friction', 'fit_friction_shape']

_FOLDS = 4
_GAIN = 0.01
_RICHER = 0.02
_EXACT = 2e-3  # of the largest speed: a smoothed sign this narrow counts as exact


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionChoice:
    """The model chosen, fitted, and why.

    Attributes
    ----------
    friction : FrictionModel
        With the width of its sign.
    shape : ndarray, shape (n, s)
    decisions : tuple of str
    """

    friction: FrictionModel
    shape: Array
    decisions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _HeldOut:
    """Mean square errors on stretches that a fit did not see, shapes (K, n) [(N m)^2].

    Attributes
    ----------
    filtered : ndarray
        Against the torque that is fitted.
    recorded : ndarray
        Against the torque as recorded, which has more noise. What a model does between the samples of a
        filtered torque, a spike at each reversal for example, only this one sees.
    """

    filtered: Array
    recorded: Array

    def gain(self, new: '_HeldOut') -> Array:
        """Return by how much each joint's error falls, in the filtered torque and in the recorded one, shape (n,)."""
        filtered = (self.filtered - new.filtered).mean(axis=0)
        return np.asarray(np.minimum(filtered, (self.recorded - new.recorded).mean(axis=0)))


class _Validation:
    """Cross-validated torque errors of friction models on one set of samples."""

    def __init__(self, rigid: Array, samples: Samples, channel: Channel) -> None:
        self.rigid, self.samples, self.channel = rigid, samples, channel
        self.filtered = channel(rigid)
        self.recorded = channel.unprocessed(rigid)
        self.stretches = stretches(samples)
        self.folds = self.stretches % _FOLDS

    def fit(self, friction: FrictionModel, fit_scale: bool, start: Array | None, weight: Array) -> SeparableFit:
        samples = self.samples.weighted(weight)
        return separable_least_squares(
            self.rigid,
            samples,
            friction,
            self.channel,
            fit_scale=fit_scale,
            start=start,
            iterations=25 if start is None else 4,
            filtered=self.filtered,
        )

    def errors(self, friction: FrictionModel, fit_scale: bool) -> tuple[_HeldOut, SeparableFit]:
        """Return the held-out errors and the fit to everything."""
        samples, weight = self.samples, self.samples.weight
        whole = self.fit(friction, fit_scale, None, weight)
        start = _start(whole, fit_scale)
        squares = np.zeros((2, STRETCHES, samples.n))
        for fold in range(_FOLDS):
            held = self.folds == fold
            found = self.fit(friction, fit_scale, start, weight * ~held[:, None])
            load = self.rigid @ found.base_values
            parameters = np.concatenate([found.linear, found.shape], axis=1)
            own = found.friction.torque(samples.dq, parameters, load, samples.q)
            residuals = (
                samples.target - self.filtered @ found.base_values - self.channel(own),
                samples.measured - self.recorded @ found.base_values - self.channel.unprocessed(own),
            )
            for total, residual in zip(squares, residuals, strict=True):
                np.add.at(total, self.stretches[held], (weight * residual**2)[held])
        count = np.zeros((STRETCHES, samples.n))
        np.add.at(count, self.stretches, weight)
        filtered, recorded = squares / np.maximum(count, 1e-9)
        return _HeldOut(filtered=filtered, recorded=recorded), whole


def _start(fit: SeparableFit, fit_scale: bool) -> Array:
    shape = np.log(fit.shape) if fit.shape.size else np.zeros((len(fit.linear), 0))
    if not fit_scale:
        return shape
    return np.concatenate([shape, np.log(np.asarray(fit.friction.velocity_scale))[:, None]], axis=1)


def _clearly_better(old: _HeldOut, new: _HeldOut) -> BoolArray:
    """Return which joints' errors fall by more than a percent and a standard error, shape (n,)."""
    gain = old.filtered - new.filtered
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    least = old.filtered.mean(axis=0) * (1.0 - (1.0 - _GAIN) ** 2)
    return np.asarray(old.gain(new) > np.maximum(error, least))


def _worth_it(old: _HeldOut, new: _HeldOut) -> bool:
    """Return whether all joints together are predicted better by two percent and a standard error."""
    before = np.maximum(old.filtered.mean(axis=0), 1e-300)
    change = float(np.mean(np.log1p(-np.minimum(old.gain(new) / before, 1.0 - 1e-9))))
    gain = np.mean((old.filtered - new.filtered) / before, axis=1)
    error = float(gain.std(ddof=1)) / np.sqrt(len(gain))
    return bool(change < 2.0 * np.log(1.0 - _RICHER) and float(gain.mean()) > error)


def choose_friction(
    rigid: Array,
    samples: Samples,
    channel: Channel,
    *,
    progress: Progress | None = None,
) -> FrictionChoice:
    """Return the friction model that predicts held-out stretches of the data best.

    Parameters
    ----------
    rigid : ndarray, shape (N, n, b)
        Base regressor, unfiltered.
    samples : Samples
        A few thousand at most.
    channel : Channel
    progress : callable, optional
        Called with a share from 0 to 1 and a text.
    """
    validation = _Validation(rigid, samples, channel)
    log: list[str] = []
    trials = 0

    def trial(friction: FrictionModel, fit_scale: bool, text: str) -> tuple[_HeldOut, SeparableFit]:
        nonlocal trials
        errors, fit = validation.errors(friction, fit_scale)
        trials += 1
        if progress is not None:
            progress(min(0.95, trials / 6.0), f'friction {text}')
        rmse = ' '.join(f'{value:.3g}' for value in np.sqrt(errors.filtered.mean(axis=0)))
        log.append(f'{text}: cross-validated torque error {rmse} N m')
        return errors, fit

    name = 'coulomb_viscous+offset'
    errors, fit = trial(friction_model(name), False, f'{name}, exact sign')
    smooth_errors, smooth = trial(friction_model(name), True, f'{name}, smooth sign')
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    better = _smoother(errors, smooth_errors, smooth, samples)
    scale = None
    if better.any():
        scale = np.where(better, np.asarray(smooth.friction.velocity_scale), _EXACT * fastest)
        log.append(f'smooth sign for {int(better.sum())} of {samples.n} joints')
        errors, fit = trial(friction_model(name, velocity_scale=scale), False, f'{name}, chosen signs')

    def challenge(candidate: str, *, expected: bool = False) -> None:
        nonlocal errors, fit, name
        new_errors, new_fit = trial(friction_model(candidate, velocity_scale=scale), False, candidate)
        change = float(np.mean(np.log(new_errors.filtered.mean(axis=0) / errors.filtered.mean(axis=0))))
        if change < 0.0 if expected else _worth_it(errors, new_errors):
            errors, fit, name = new_errors, new_fit, candidate

    challenge('coulomb_viscous+load+offset', expected=True)
    options = name.removeprefix('coulomb_viscous')
    challenge(f'stribeck{options}')
    challenge(f'daemi_heimann{options}')
    if scale is not None and name != 'coulomb_viscous+offset':
        fit, kept = _signs_again(trial, name, scale, _EXACT * fastest, errors, fit, better)
        log.append(f'smooth sign beside these terms for {int(kept.sum())} of {samples.n} joints')
    log.append(f'friction model: {name}')
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=tuple(log))


def _signs_again(
    trial: Callable[[FrictionModel, bool, str], tuple[_HeldOut, SeparableFit]],
    name: str,
    scale: Array,
    exact: Array,
    errors: _HeldOut,
    fit: SeparableFit,
    smooth: BoolArray,
) -> tuple[SeparableFit, BoolArray]:
    """Return the fit in which only those signs are smooth that predict better beside all terms, and which."""
    exact_errors, exact_fit = trial(friction_model(name, velocity_scale=exact), False, f'{name}, exact sign')
    kept = np.asarray(smooth & _clearly_better(exact_errors, errors))
    if not kept.any():
        return exact_fit, kept
    if (kept == smooth).all():
        return fit, kept
    remaining = friction_model(name, velocity_scale=np.where(kept, scale, exact))
    return trial(remaining, False, f'{name}, remaining signs')[1], kept


def add_ripple(base: BaseRegressor, samples: Samples, channel: Channel, choice: FrictionChoice) -> FrictionChoice:
    """Add a torque ripple to the joints whose residual shows one, see :mod:`robotid_ros.identification.ripple`."""
    limit = min(2.0 * channel.narrowest, 0.2 * samples.rate)
    rows = ModelRows(base, samples, channel)
    fit = least_squares(rows, choice.friction, choice.shape, covariance=False)
    load = rows.torque(fit.base_values)
    own = choice.friction.columns(samples.dq, choice.shape, load, samples.q)
    linear = fit.friction_parameters[:, : own.shape[2]]
    torque = load + np.einsum('Nnk,nk->Nn', own, linear)
    unexplained = Unexplained(
        filtered=samples.target - channel(torque),
        recorded=samples.measured - channel.unprocessed(torque),
        own=channel(own),
        own_recorded=channel.unprocessed(own),
    )
    evidence = find_ripple(samples, channel, unexplained, limit, stretches(samples) % _FOLDS)
    frequency, gains = evidence.frequency, evidence.gain
    found = np.flatnonzero(frequency).tolist()
    if not found:
        most = ' '.join(f'{gain:+.0f}' for gain in gains)
        return replace(
            choice,
            decisions=(
                *choice.decisions,
                f'no torque ripple that held-out motion confirms (log-likelihood at most {most})',
            ),
        )
    text = ', '.join(f'joint {j + 1} at {frequency[j]:.0f}/rad (log-likelihood +{gains[j]:.0f})' for j in found)
    return FrictionChoice(
        friction=with_ripple(choice.friction, frequency, limit),
        shape=choice.shape,
        decisions=(*choice.decisions, f'torque ripple: {text}'),
    )


def _smoother(exact: _HeldOut, smooth: _HeldOut, fit: SeparableFit, samples: Samples) -> BoolArray:
    """Return which joints a smooth sign predicts better, and is wider than the speed changes between two samples."""
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    resolution = np.sqrt(np.mean(samples.ddq**2, axis=0)) / samples.rate
    wide = np.asarray(fit.friction.velocity_scale) > np.maximum(resolution, 5e-3 * fastest)
    return np.asarray(_clearly_better(exact, smooth) & wide)


def fit_friction_shape(rigid: Array, samples: Samples, channel: Channel, name: str) -> FrictionChoice:
    """Return a given friction model with its shape parameters and, where it predicts better, a smooth sign."""
    model = friction_model(name)
    validation = _Validation(rigid, samples, channel)
    errors, fit = validation.errors(model, False)
    smooth_errors, smooth = validation.errors(model, True)
    better = _smoother(errors, smooth_errors, smooth, samples)
    if not better.any():
        return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(f'{name}, exact sign',))
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    scale = np.where(better, np.asarray(smooth.friction.velocity_scale), _EXACT * fastest)
    fit = separable_least_squares(
        rigid, samples, model.smoothed(scale), channel, fit_scale=False, filtered=validation.filtered
    )
    text = f'{name}, smooth sign for {int(better.sum())} of {samples.n} joints'
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(text,))
