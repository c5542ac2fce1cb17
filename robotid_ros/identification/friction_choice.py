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

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.friction.protocol import BoolArray
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.least_squares import least_squares
from robotid_ros.identification.rigid import ModelRows
from robotid_ros.identification.ripple import find_ripple, with_ripple
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.separable import SeparableFit, separable_least_squares

__all__ = ['FrictionChoice', 'add_ripple', 'choose_friction', 'fit_friction_shape']

_FOLDS = 4
_STRETCHES = 12
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


class _Validation:
    """Cross-validated torque errors of friction models on one set of samples."""

    def __init__(self, rigid: Array, samples: Samples, channel: Channel) -> None:
        self.rigid, self.samples, self.channel = rigid, samples, channel
        self.filtered = channel(rigid)
        self.stretches = _stretches(samples)
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

    def errors(self, friction: FrictionModel, fit_scale: bool) -> tuple[Array, SeparableFit]:
        """Return the held-out mean square error per stretch and joint, shape (K, n), and the fit to everything."""
        weight = self.samples.weight
        whole = self.fit(friction, fit_scale, None, weight)
        start = _start(whole, fit_scale)
        squares = np.zeros((_STRETCHES, self.samples.n))
        for fold in range(_FOLDS):
            held = self.folds == fold
            found = self.fit(friction, fit_scale, start, weight * ~held[:, None])
            load = self.rigid @ found.base_values
            parameters = np.concatenate([found.linear, found.shape], axis=1)
            own = self.channel(found.friction.torque(self.samples.dq, parameters, load, self.samples.q))
            residual = self.samples.target - self.filtered @ found.base_values - own
            np.add.at(squares, self.stretches[held], (weight * residual**2)[held])
        count = np.zeros_like(squares)
        np.add.at(count, self.stretches, weight)
        return squares / np.maximum(count, 1e-9), whole


def _start(fit: SeparableFit, fit_scale: bool) -> Array:
    shape = np.log(fit.shape) if fit.shape.size else np.zeros((len(fit.linear), 0))
    if not fit_scale:
        return shape
    return np.concatenate([shape, np.log(np.asarray(fit.friction.velocity_scale))[:, None]], axis=1)


def _stretches(samples: Samples) -> IntArray:
    """Number contiguous stretches of each run; fold k gets every _FOLDS-th."""
    labels = np.zeros(len(samples), dtype=np.int64)
    for run in np.unique(samples.trajectory):
        rows = np.flatnonzero(samples.trajectory == run)
        labels[rows] = np.arange(len(rows)) * _STRETCHES // len(rows)
    return labels


def _clearly_better(old: Array, new: Array) -> BoolArray:
    """Return where held-out errors fall by more than a percent and a standard error, for errors (K, ...)."""
    gain = old - new
    error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
    return np.asarray((gain.mean(axis=0) > error) & (new.mean(axis=0) < old.mean(axis=0) * (1.0 - _GAIN) ** 2))


def choose_friction(
    rigid: Array,
    samples: Samples,
    channel: Channel,
    *,
    progress: Callable[[float, str], None] | None = None,
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

    def trial(friction: FrictionModel, fit_scale: bool, text: str) -> tuple[Array, SeparableFit]:
        nonlocal trials
        errors, fit = validation.errors(friction, fit_scale)
        trials += 1
        if progress is not None:
            progress(min(0.95, trials / 6.0), f'friction {text}')
        rmse = ' '.join(f'{value:.3g}' for value in np.sqrt(errors.mean(axis=0)))
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
        change = float(np.mean(np.log(new_errors.mean(axis=0) / errors.mean(axis=0))))
        if change < (0.0 if expected else 2.0 * np.log(1.0 - _RICHER)):
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
    trial: Callable[[FrictionModel, bool, str], tuple[Array, SeparableFit]],
    name: str,
    scale: Array,
    exact: Array,
    errors: Array,
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
    own = channel(choice.friction.columns(samples.dq, choice.shape, load, samples.q))
    linear = fit.friction_parameters[:, : own.shape[2]]
    residual = samples.target - channel(load) - np.einsum('Nnk,nk->Nn', own, linear)
    frequency, gains = find_ripple(samples, channel, residual, own, limit)
    found = np.flatnonzero(frequency).tolist()
    if not found:
        most = ' '.join(f'{gain:.0f}' for gain in gains)
        return replace(choice, decisions=(*choice.decisions, f'no torque ripple (log-likelihood at most +{most})'))
    text = ', '.join(f'joint {j + 1} at {frequency[j]:.0f}/rad (log-likelihood +{gains[j]:.0f})' for j in found)
    return FrictionChoice(
        friction=with_ripple(choice.friction, frequency, limit),
        shape=choice.shape,
        decisions=(*choice.decisions, f'torque ripple: {text}'),
    )


def _smoother(exact: Array, smooth: Array, fit: SeparableFit, samples: Samples) -> BoolArray:
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
