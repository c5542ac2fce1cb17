# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Alternating identification: friction given the dynamics, the dynamics given friction, and again.

    1. f    = argmin |tau_f(dq, f) - (tau - Y_b beta)|   over the friction data, joint by joint
    2. beta = argmin |Y_b beta - (tau - tau_f(dq, f))|    over the dynamics data
    3. the torque error of every joint below its threshold: usable; the iteration limit: not usable. Samples at rest
       count as little as they do in the fit: no law of friction holds there.

It needs friction data (slow motion at constant speeds) and dynamics data (fast motion) from
different trajectories, and converges linearly where both share information; solving for both at
once (:func:`robotid_ros.identification.least_squares.least_squares`) reaches the same minimum in
one step. With one data set for both it is a block coordinate descent on that problem.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel, friction_model, initial_guess
from robotid_ros.identification.information import quick_solve
from robotid_ros.identification.rows import Rows

FrictionStep = Callable[[Array], Array]
"""Maps base parameters (b,) to the friction parameters (n, k + s) that fit best with them."""

_SETTLED = 1e-5  # relative change of the torque errors at which the alternation ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternation:
    """Result of an alternation.

    Attributes
    ----------
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    errors : ndarray, shape (I, n)
        Root-mean-square torque error after each iteration, with the weights of the fit [N m].
    all_samples : ndarray, shape (n,)
        The last one with all samples alike, those at rest too, where no law of friction holds [N m].
    usable : bool
        Whether every joint's error fell below its threshold; without thresholds, whether it settled.
    settled : bool
        Whether the errors no longer changed.
    """

    base_values: Array
    friction_parameters: Array
    errors: Array
    all_samples: Array
    usable: bool
    settled: bool

    def reason(self, joint_names: Sequence[str], thresholds: Array | None) -> str:
        """Return why it is not usable; empty where it is."""
        if self.usable:
            return ''
        count = len(self.errors)
        end = f'the alternation {"settled after" if self.settled else "had not settled after"} {count} iterations'
        if thresholds is None:
            return end
        worst = int(np.argmax(self.errors[-1] / thresholds))
        return (
            f'{end} with a torque error of {self.errors[-1, worst]:.3g} N m in motion at {joint_names[worst]} '
            f'({self.all_samples[worst]:.3g} with samples at rest), above its threshold of {thresholds[worst]:.3g} N m'
        )


def fit_friction(rows: Rows, friction: FrictionModel, values: Array) -> Array:
    """Return the friction parameters, shape (n, k + s), that fit best what base parameters (b,) leave of the torque."""
    samples = rows.samples
    load = rows.torque(values)
    torque = samples.target - samples.filtered(load)
    channel = None if samples.open else samples.filtered
    return initial_guess(
        friction, samples.dq, torque, load, samples.q, weight=samples.weight, channel=channel, refine=True
    )


def alternate(
    dynamics: Rows,
    friction: FrictionModel,
    *,
    thresholds: Array | None = None,
    max_iterations: int = 50,
    start: Array | None = None,
    step: FrictionStep | None = None,
) -> Alternation:
    """Return the parameters at which the alternation ends.

    Parameters
    ----------
    dynamics : Rows
    friction : FrictionModel
    thresholds : ndarray, shape (n,), optional
        Torque errors that count as usable, with the weights of the fit [N m].
    max_iterations : int
    start : ndarray, shape (b,), optional
        Base parameters to start from; by default those that fit best without friction.
    step : callable, optional
        Finds the friction parameters, from friction data; by default the dynamics data are the friction data too.
    """
    samples = dynamics.samples
    step = partial(fit_friction, dynamics, friction) if step is None else step
    matrix, right_side = _dynamics_step(dynamics)
    precision = np.ones(samples.n)
    values = quick_solve(matrix(precision), right_side(samples.target, precision), 0, None) if start is None else start
    errors: list[Array] = []
    usable = settled = False
    all_samples = np.zeros(samples.n)
    parameters = np.zeros((samples.n, len(friction.linear_names) + len(friction.shape_names)))
    for _ in range(max_iterations):
        parameters = step(values)
        resisting = _friction_torque(dynamics, friction, parameters, dynamics.torque(values))
        values = quick_solve(matrix(precision), right_side(samples.target - resisting, precision), 0, None)
        load = dynamics.torque(values)
        resisting = _friction_torque(dynamics, friction, parameters, load)
        residual = samples.target - samples.filtered(load) - resisting
        weighted = np.sum(samples.weight * residual**2, axis=0) / np.maximum(samples.weight.sum(axis=0), 1e-12)
        error, all_samples = np.sqrt(weighted), np.sqrt(np.mean(residual**2, axis=0))
        floor = 1e-12 * max(float(np.mean(samples.target**2)), 1e-12)
        precision = 1.0 / np.maximum(weighted, floor)
        settled = bool(errors) and bool(np.abs(error - errors[-1]).max() <= _SETTLED * max(float(error.max()), 1e-12))
        errors.append(error)
        usable = settled if thresholds is None else bool((error < thresholds).all())
        if usable or settled:
            break
    return Alternation(
        base_values=values,
        friction_parameters=parameters,
        errors=np.array(errors),
        all_samples=all_samples,
        usable=usable,
        settled=settled,
    )


def _friction_torque(rows: Rows, friction: FrictionModel, parameters: Array, load: Array) -> Array:
    return rows.samples.filtered(friction.torque(rows.samples.dq, parameters, load, rows.samples.q))


def _dynamics_step(rows: Rows) -> tuple[Callable[[Array], Array], Callable[[Array, Array], Array]]:
    """Return functions for the normal matrix and the right-hand side of the base parameters alone."""
    count = len(rows.base.independent)
    everything = rows.information(friction_model('coulomb'), np.zeros((rows.samples.n, 0)), None)
    gram = everything.gram[:, :count, :count]

    def matrix(precision: Array) -> Array:
        return np.asarray(np.tensordot(precision, gram, axes=1))

    def right_side(torque: Array, precision: Array) -> Array:
        total = np.zeros(count)
        for piece in rows.pieces():
            weight = piece.samples.weight * precision
            total += np.einsum('Nnb,Nn->b', piece.rigid, torque[piece.rows] * weight)
        return total

    return matrix, right_side
