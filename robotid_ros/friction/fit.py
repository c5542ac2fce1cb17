"""Friction parameters from friction torque alone, kept dissipative."""

import numpy as np
from scipy.optimize import lsq_linear

from robotid_ros.arrays import Array
from robotid_ros.friction.protocol import FrictionModel

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


def initial_guess(model: FrictionModel, velocity: Array, torque: Array, load: Array | None = None) -> Array:
    """Return friction parameters that fit a friction torque, by a grid over the shape parameter.

    Parameters
    ----------
    model : FrictionModel
    velocity : ndarray, shape (N, n)
        [rad/s]
    torque : ndarray, shape (N, n)
        Friction torque, or what is left of the measured torque once the rigid body's is taken away [N m].
    load : ndarray, shape (N, n), optional
        Transmitted torque, for models that depend on it [N m].

    Returns
    -------
    ndarray, shape (n, k + s)
        Dissipative, within the bounds.
    """
    n = velocity.shape[1]
    k, s = len(model.linear_names), len(model.shape_names)
    fastest = np.maximum(np.abs(velocity).max(axis=0, initial=0.0), 1e-6)
    lower, upper = model.shape_bounds(fastest)
    best = np.zeros((n, k + s))
    smallest = np.full(n, np.inf)
    for share in np.linspace(0.0, 1.0, _GRID if s else 1):
        shape = np.exp(np.log(lower) * (1.0 - share) + np.log(upper) * share) if s else lower
        columns = model.columns(velocity, shape, load)
        for joint in range(n):
            linear = dissipative_least_squares(model, columns[:, joint], torque[:, joint])
            cost = float(np.sum((columns[:, joint] @ linear - torque[:, joint]) ** 2))
            if cost < smallest[joint]:
                smallest[joint] = cost
                best[joint] = [*linear, *shape[joint]]
    return best
