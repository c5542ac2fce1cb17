# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether the efforts of all joints are in one unit, by the bodies that they move together.

What a motion of one joint asks of another, the other's asks of the first: the mass matrix is symmetric, and gravity is
the slope of one energy. Efforts that are torques times a factor of each joint, such as motor currents, break this. The
factors are found from it as far as joints act on each other, but for one that is common to all, without any mass of
the description.
"""

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters
from robotid_ros.model.robot_model import RobotModel

_STRIBECK = 0.05  # of the largest speed, the width of what friction is larger by near standstill
_STILL = 0.02  # of the largest speed, below which friction is not known
_LEAST = 1e-3  # of a joint's effort: a smaller error is none
_HELD = 1e-3  # weight of a factor's logarithm, so that a joint which acts on no other keeps its own
_FACTOR = 100.0  # largest of a joint


def mutual_factors(model: RobotModel, q: Array, dq: Array, ddq: Array, torque: Array) -> tuple[Array, Array, Array]:
    """Return what each joint's torque, shape (N, n), has to be multiplied with so that bodies explain all of them.

    Motion and torques are those of the model's motors where drives are coupled. Joints without torque or motion have
    the factor 1 and no errors.

    Returns
    -------
    factors : ndarray, shape (n,)
        With a geometric mean of 1.
    plain, fitted : ndarray, shape (n,)
        Errors without and with them, as shares of what is not a joint's own friction in its effort.
    """
    n = model.n
    rows = base_parameters(model, rotor_inertia=True, tolerance=DATA_TOLERANCE).regressor(q, dq, ddq)
    grams = np.zeros((n, rows.shape[2] + 1, rows.shape[2] + 1))  # of the regressor and the torque, by joint
    for j in range(n):
        speed, fastest = dq[:, j], float(np.abs(dq[:, j]).max(initial=0.0))
        moving = np.abs(speed) > _STILL * fastest
        sign, near = np.sign(speed), np.exp(-np.abs(speed) / (_STRIBECK * fastest + 1e-300))
        own = np.stack([sign, speed, sign * speed**2, sign * near, np.ones(len(speed))], axis=1)[moving]
        signals = np.concatenate([rows[moving, j], torque[moving, j, None]], axis=1)
        if moving.sum() <= 2 * own.shape[1]:
            continue
        own /= np.linalg.norm(own, axis=0) + 1e-300
        left = signals - own @ np.linalg.lstsq(own, signals, rcond=None)[0]
        size = float(np.linalg.norm(left[:, -1]))
        if size > 0.0:
            grams[j] = left.T @ left / size**2
    known = grams[:, -1, -1] > 0.0
    if known.sum() < 2:
        return np.ones(n), np.zeros(n), np.zeros(n)
    return _fitted(grams[known], known)


def _fitted(grams: Array, known: BoolArray) -> tuple[Array, Array, Array]:
    scale = 1.0 / np.sqrt(np.maximum(np.einsum('jkk->k', grams[:, :-1, :-1]), 1e-300))
    square, product = grams[:, :-1, :-1] * scale * scale[:, None], grams[:, :-1, -1] * scale

    def errors(logarithms: Array) -> tuple[Array, Array]:
        """Return the squares of the errors, and their derivatives by the logarithms of the factors."""
        share = np.exp(-logarithms)  # what a torque of 1 is in a joint's effort
        found = np.ones(len(grams))
        for _ in range(12):
            weight = 1.0 / np.maximum(found, _LEAST**2)
            a = np.tensordot(weight * share**2, square, 1)
            b = (weight * share) @ product
            x = np.linalg.lstsq(a, b, rcond=1e-10)[0]
            own, along = share**2 * np.einsum('k,jkl,l->j', x, square, x), share * (product @ x)
            before, found = found, np.maximum(1.0 - 2.0 * along + own, _LEAST**2)
            if np.abs(np.log(found / before)).max() < 1e-6:
                break
        return found, 2.0 * (along - own)

    def cost(logarithms: Array) -> tuple[float, Array]:
        centred = logarithms - logarithms.mean()
        found, slope = errors(centred)
        slope = slope / found + 2.0 * _HELD * centred
        return float(np.sum(np.log(found)) + _HELD * centred @ centred), slope - slope.mean()

    plain, _ = errors(np.zeros(len(grams)))
    bounds = [(-np.log(_FACTOR), np.log(_FACTOR))] * len(grams)
    from scipy.optimize import minimize  # not at the top: see robotid_ros.signals.filtering

    best = minimize(cost, np.zeros(len(grams)), jac=True, method='L-BFGS-B', bounds=bounds).x
    best = best - best.mean()
    result = np.ones(len(known)), np.zeros(len(known)), np.zeros(len(known))
    for values, own in zip(result, (np.exp(best), np.sqrt(plain), np.sqrt(errors(best)[0])), strict=True):
        values[known] = own
    return result
