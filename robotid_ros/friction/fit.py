# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction parameters from friction torque alone, kept dissipative."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import lsq_linear

from robotid_ros.arrays import Array
from robotid_ros.friction.model import FrictionModel

__all__ = ['dissipative_least_squares', 'initial_guess']

_GRID = 24


def dissipative_least_squares(model: FrictionModel, columns: Array, torque: Array) -> Array:
    """Return the linear friction parameters of one joint that fit best among the dissipative ones.

    min |columns linear - torque|  subject to  G^-1 linear >= 0 on the unsigned rows.

    Parameters
    ----------
    model : FrictionModel
    columns : ndarray, shape (N, k)
    torque : ndarray, shape (N,)
        [N m]

    Returns
    -------
    ndarray, shape (k,)
    """
    generators = model.generators
    design = columns @ generators
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0.0] = 1.0
    free, *_ = np.linalg.lstsq(design / scale, torque, rcond=1e-10)
    signed = np.array(model.signed)
    if ((free >= 0.0) | signed).all():
        return np.asarray(generators @ (free / scale))
    lower = np.where(signed, -np.inf, 0.0)
    # the normal equations' root: the same minimum with k rows instead of N
    q, r = np.linalg.qr(design / scale)
    solution = lsq_linear(r, q.T @ torque, bounds=(lower, np.full(len(scale), np.inf)), method='bvls')
    return np.asarray(generators @ (solution.x / scale))


def initial_guess(
    model: FrictionModel,
    velocity: Array,
    torque: Array,
    load: Array | None = None,
    position: Array | None = None,
    *,
    weight: Array | None = None,
    channel: Callable[[Array], Array] | None = None,
    refine: bool = False,
) -> Array:
    """Return friction parameters that fit a friction torque, by a grid over the shape parameter.

    Parameters
    ----------
    model : FrictionModel
        With at most one shape parameter.
    velocity : ndarray, shape (N, n)
        [rad/s]
    torque : ndarray, shape (N, n)
        Friction torque, or what is left of the measured torque once the rigid body's is taken away [N m].
    load, position : ndarray, shape (N, n), optional
        Transmitted torque [N m] and joint positions [rad], for models that depend on them.
    weight : ndarray, shape (N, n), optional
        Sample weights.
    channel : callable, optional
        Filter that the torque went through; applied to the columns.
    refine : bool
        Go on from the best grid point to the minimum by golden sections.

    Returns
    -------
    ndarray, shape (n, k + s)
        Dissipative, within the bounds.
    """
    n, s = velocity.shape[1], len(model.shape_names)
    fastest = np.maximum(np.abs(velocity).max(axis=0, initial=0.0), 1e-6)
    lower, upper = (np.log(bound) for bound in model.shape_bounds(fastest))
    root = np.ones_like(torque) if weight is None else np.sqrt(weight)

    def fitted(shape: Array) -> tuple[Array, Array]:
        """Return the parameters and the cost of each joint at some logarithmic shapes (n, s)."""
        columns = model.columns(velocity, np.exp(shape), load, position)
        columns = (columns if channel is None else channel(columns)) * root[..., None]
        wanted = torque * root
        linear = [dissipative_least_squares(model, columns[:, j], wanted[:, j]) for j in range(n)]
        cost = [float(np.sum((columns[:, j] @ linear[j] - wanted[:, j]) ** 2)) for j in range(n)]
        return np.concatenate([np.array(linear).reshape(n, -1), np.exp(shape)], axis=1), np.array(cost)

    best, least = fitted(lower)
    if s == 0:
        return best
    at = lower.copy()
    for share in np.linspace(0.0, 1.0, _GRID)[1:]:
        shape = lower * (1.0 - share) + upper * share
        found, cost = fitted(shape)
        better = cost < least
        best[better], at[better], least = found[better], shape[better], np.minimum(cost, least)
    width = (upper - lower) / (_GRID - 1)
    while refine and float(width.max()) > 1e-4:
        width = width * 0.5 * (np.sqrt(5.0) - 1.0)
        for side in (-1.0, 1.0):
            shape = np.clip(at + side * width, lower, upper)
            found, cost = fitted(shape)
            better = cost < least
            best[better], at[better], least = found[better], shape[better], np.minimum(cost, least)
    return best
