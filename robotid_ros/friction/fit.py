# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Dissipative friction parameters fitted to friction torque alone."""

from collections.abc import Callable

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction.model import FrictionModel

_GRID = 24  # points of the logarithmic range of a shape, about 20 % apart
_FINEST = 1e-4  # of a shape parameter, relative: far below its standard deviation in any recording


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
    from scipy.optimize import lsq_linear  # not at the top: see robotid_ros.signals.filtering

    lower = np.where(signed, -np.inf, 0.0)
    # the normal equations' root: the same minimum with k rows instead of N
    q, r = np.linalg.qr(design / scale)
    solution = lsq_linear(r, q.T @ torque, bounds=(lower, np.full(len(scale), np.inf)), method='bvls')
    return np.asarray(generators @ (solution.x / scale))


def fit_joint(
    model: FrictionModel, columns: Callable[[Array], Array], torque: Array, fastest: float, *, refine: bool = True
) -> tuple[Array, float]:
    """Return the parameters of one joint that fit best, shape (k + s,), and the sum of squared errors [(N m)^2].

    The model has at most one shape parameter, over which there is a grid; its bounds follow from the joint's largest
    speed [rad/s]. At each shape, from which ``columns`` returns those of the linear parameters, (N, k), the linear
    parameters are the best dissipative ones. Where asked for, golden sections go on from the best grid point to the
    minimum.
    """
    lower, upper = (np.log(bound[0]) for bound in model.shape_bounds(np.array([fastest])))

    def better(before: tuple[float, Array, Array] | None, shape: Array) -> tuple[float, Array, Array]:
        """Return cost, logarithmic shape and parameters: those at a shape where these cost less than before."""
        design = columns(np.exp(shape))
        linear = dissipative_least_squares(model, design, torque)
        cost = float(np.sum((design @ linear - torque) ** 2))
        if before is not None and not cost < before[0]:
            return before
        return cost, shape, np.concatenate([linear, np.exp(shape)])

    best = better(None, lower)
    if len(lower):
        for share in np.linspace(0.0, 1.0, _GRID)[1:]:
            best = better(best, lower * (1.0 - share) + upper * share)
        width = (upper - lower) / (_GRID - 1)
        while refine and float(width.max()) > _FINEST:
            width = width * 0.5 * (np.sqrt(5.0) - 1.0)
            for side in (-1.0, 1.0):
                best = better(best, np.clip(best[1] + side * width, lower, upper))
    return best[2], best[0]


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
    """Return friction parameters that fit a friction torque, joint by joint.

    Parameters
    ----------
    model : FrictionModel
        With at most one shape parameter.
    velocity : ndarray, shape (N, n)
        [rad/s]
    torque : ndarray, shape (N, n)
        Friction torque: measured torque less that of the rigid bodies [N m].
    load, position : ndarray, shape (N, n), optional
        Transmitted torque [N m] and joint positions [rad], for models that depend on them.
    weight : ndarray, shape (N, n), optional
        Sample weights.
    channel : callable, optional
        Filter that the torque went through; applied to the columns.
    refine : bool
        See :func:`fit_joint`.

    Returns
    -------
    ndarray, shape (n, k + s)
        Dissipative, within the bounds.
    """
    fastest = np.maximum(np.abs(velocity).max(axis=0, initial=0.0), 1e-6)
    root = np.ones_like(torque) if weight is None else np.sqrt(weight)
    found = []
    for j in range(velocity.shape[1]):
        own = model.of_joint(j)
        pieces = [None if values is None else values[:, j, None] for values in (velocity, load, position)]

        def columns(shape: Array, own: FrictionModel = own, pieces: list[Array | None] = pieces, j: int = j) -> Array:
            speed, carried, place = pieces
            assert speed is not None
            design = own.columns(speed, shape[None], carried, place)
            return (design if channel is None else channel(design))[:, 0] * root[:, j, None]

        found.append(fit_joint(own, columns, torque[:, j] * root[:, j], float(fastest[j]), refine=refine)[0])
    return np.array(found)
