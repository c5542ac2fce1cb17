"""Which friction model the data support: blocked cross-validation within the training data.

Folds are contiguous stretches of time, because neighbouring samples know each other. A richer model
is taken only where it predicts held-out stretches better by more than one percent in the torque
error of the geometric mean joint. The order is greedy: the smoothing of the sign (each joint for
itself), load dependence, then the speed terms.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.identification.channel import Channel
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.separable import SeparableFit, separable_least_squares

__all__ = ['FrictionChoice', 'choose_friction', 'fit_friction_shape']

_FOLDS = 4
_GAIN = 0.01
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
        self.folds = _folds(samples)

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
        """Return the held-out mean square error of each joint, shape (n,), and the fit to everything."""
        weight = self.samples.weight
        whole = self.fit(friction, fit_scale, None, weight)
        start = _start(whole, fit_scale)
        squares = np.zeros(self.samples.n)
        for fold in range(_FOLDS):
            held = self.folds == fold
            found = self.fit(friction, fit_scale, start, weight * ~held[:, None])
            load = self.rigid @ found.base_values
            parameters = np.concatenate([found.linear, found.shape], axis=1)
            own = self.channel(found.friction.torque(self.samples.dq, parameters, load))
            residual = self.samples.target - self.filtered @ found.base_values - own
            squares += np.sum((weight * residual**2)[held], axis=0)
        return squares / weight.sum(axis=0), whole


def _start(fit: SeparableFit, fit_scale: bool) -> Array:
    shape = np.log(fit.shape) if fit.shape.size else np.zeros((len(fit.linear), 0))
    if not fit_scale:
        return shape
    return np.concatenate([shape, np.log(np.asarray(fit.friction.velocity_scale))[:, None]], axis=1)


def _folds(samples: Samples) -> IntArray:
    """Number contiguous stretches: eight per run, dealt out to the folds in turn."""
    labels = np.zeros(len(samples), dtype=np.int64)
    for run in np.unique(samples.trajectory):
        rows = np.flatnonzero(samples.trajectory == run)
        labels[rows] = (np.arange(len(rows)) * 2 * _FOLDS // len(rows)) % _FOLDS
    return labels


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
        rmse = ' '.join(f'{value:.3g}' for value in np.sqrt(errors))
        log.append(f'{text}: cross-validated torque error {rmse} N m')
        return errors, fit

    name = 'coulomb_viscous+offset'
    errors, fit = trial(friction_model(name), False, f'{name}, exact sign')
    smooth_errors, smooth = trial(friction_model(name), True, f'{name}, smooth sign')
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    better = smooth_errors < errors * (1.0 - _GAIN) ** 2
    scale = None
    if better.any():
        scale = np.where(better, np.asarray(smooth.friction.velocity_scale), _EXACT * fastest)
        log.append(f'smooth sign for {int(better.sum())} of {samples.n} joints')
        errors, fit = trial(friction_model(name, velocity_scale=scale), False, f'{name}, chosen signs')

    def challenge(candidate: str) -> None:
        nonlocal errors, fit, name
        new_errors, new_fit = trial(friction_model(candidate, velocity_scale=scale), False, candidate)
        if np.mean(np.log(new_errors)) < np.mean(np.log(errors)) + 2.0 * np.log(1.0 - _GAIN):
            errors, fit, name = new_errors, new_fit, candidate

    challenge('coulomb_viscous+load+offset')
    options = name.removeprefix('coulomb_viscous')
    challenge(f'stribeck{options}')
    challenge(f'daemi_heimann{options}')
    log.append(f'friction model: {name}')
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=tuple(log))


def fit_friction_shape(rigid: Array, samples: Samples, channel: Channel, name: str) -> FrictionChoice:
    """Return a given friction model with its shape parameters and, where it predicts better, a smooth sign."""
    model = friction_model(name)
    validation = _Validation(rigid, samples, channel)
    errors, fit = validation.errors(model, False)
    smooth_errors, smooth = validation.errors(model, True)
    better = smooth_errors < errors * (1.0 - _GAIN) ** 2
    if not better.any():
        return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(f'{name}, exact sign',))
    fastest = np.maximum(np.abs(samples.dq).max(axis=0), 1e-6)
    scale = np.where(better, np.asarray(smooth.friction.velocity_scale), _EXACT * fastest)
    fit = separable_least_squares(
        rigid, samples, model.smoothed(scale), channel, fit_scale=False, filtered=validation.filtered
    )
    text = f'{name}, smooth sign for {int(better.sum())} of {samples.n} joints'
    return FrictionChoice(friction=fit.friction, shape=fit.shape, decisions=(text,))
