# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction from the steady strokes of a friction sweep.

At a constant velocity, with all other joints at rest, a joint's torque is gravity and friction. Gravity leaves

- by pairs: at the same place in both directions, tau(v) - tau(-v) = tau_f(v) - tau_f(-v), whatever the masses are;
- or by the model: tau - g(q) = tau_f(v).

Pairs say nothing of what is the same in both directions: an offset, a torque ripple, a difference between the
directions. The model says it, as far as its gravity is right.
"""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel
from robotid_ros.friction.fit import fit_joint

__all__ = ['StrokeFriction', 'stroke_friction']

_OPEN = 1e-6  # share of a parameter in directions that the rows do not determine, from which on it counts as open
_RANK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class StrokeFriction:
    """Friction parameters that a friction sweep tells, joint by joint.

    Attributes
    ----------
    parameters : ndarray, shape (n, k + s)
        Zero where the strokes tell nothing.
    covariance : ndarray, shape (n, k + s, k + s)
    determined : ndarray of bool, shape (n, k + s)
        Which parameters the strokes tell.
    information : ndarray, shape (n, k, k)
        Of the linear parameters at these shapes: what the strokes add to the normal equations of another fit, whose
        right-hand side they add ``information @ parameters[:, :k]`` to.
    noise : ndarray, shape (n,)
        Standard deviation of the torque at one place [N m or N].
    """

    parameters: Array
    covariance: Array
    determined: BoolArray
    information: Array
    noise: Array

    @property
    def std(self) -> Array:
        """Standard deviations, shape (n, k + s); infinite where the strokes tell nothing."""
        deviation = np.sqrt(np.maximum(np.einsum('nkk->nk', self.covariance), 0.0))
        return np.where(self.determined, deviation, np.inf)


def stroke_friction(model: FrictionModel, strokes: FrictionStrokes, gravity: Array | None = None) -> StrokeFriction:
    """Return the friction of all joints.

    Parameters
    ----------
    model : FrictionModel
        Of the strokes' n joints.
    strokes : FrictionStrokes
    gravity : ndarray, shape (N,), optional
        Torque of the joint that moves, without friction [N m or N]; by default gravity leaves by pairs.

    Raises
    ------
    IdentificationError
        If no stroke has a partner in the opposite direction, where gravity has to leave by pairs.
    """
    if gravity is None:
        ahead, back = strokes.pairs()
        if not len(ahead):
            raise IdentificationError(
                'no stroke of the friction sweep has a partner in the opposite direction over the same places, which '
                'gravity needs to leave the friction torque'
            )
        sides = [(1.0, strokes.velocity[ahead]), (-1.0, strokes.velocity[back])]
        torque = strokes.torque[ahead] - strokes.torque[back]
        load = 0.5 * (strokes.torque[ahead] + strokes.torque[back])
        seconds = np.minimum(strokes.seconds[ahead], strokes.seconds[back])
    else:
        ahead, sides = np.arange(len(strokes)), [(1.0, strokes.velocity)]
        torque, load, seconds = strokes.torque - gravity, gravity, strokes.seconds
    joint = strokes.joint[ahead]
    position = strokes.q[ahead, joint]
    n, width = len(strokes.joint_names), len(model.linear_names) + len(model.shape_names)
    k = len(model.linear_names)
    parameters, covariance = np.zeros((n, width)), np.zeros((n, width, width))
    determined, information, noise = np.zeros((n, width), dtype=bool), np.zeros((n, k, k)), np.zeros(n)
    for j in range(n):
        own = np.flatnonzero(joint == j)
        if not len(own):
            continue
        rows = _Rows(
            model.of_joint(j),
            [(sign, velocity[own]) for sign, velocity in sides],
            torque[own],
            load[own],
            position[own],
            seconds[own],
        )
        parameters[j], square = fit_joint(rows.model, rows.columns, rows.torque, rows.fastest)
        jacobian = rows.jacobian(parameters[j])
        variance = square / max(len(own) - width, 1)
        noise[j] = np.sqrt(variance / len(sides))
        inverse, determined[j] = _inverse(jacobian.T @ jacobian)
        covariance[j] = variance * inverse
        parameters[j, ~determined[j]] = 0.0
        if variance > 0.0:
            information[j] = jacobian[:, :k].T @ jacobian[:, :k] / variance
    return StrokeFriction(
        parameters=parameters, covariance=covariance, determined=determined, information=information, noise=noise
    )


class _Rows:
    """The rows of one joint, each weighted by the root of the time it was averaged over."""

    def __init__(
        self,
        model: FrictionModel,
        sides: list[tuple[float, Array]],
        torque: Array,
        load: Array,
        position: Array,
        seconds: Array,
    ) -> None:
        self.model, self._sides = model, sides
        self._load, self._position = load[:, None], position[:, None]
        self.root = np.sqrt(seconds / seconds.mean())
        self.torque = torque * self.root
        self.fastest = float(np.abs(sides[0][1]).max())

    def columns(self, shape: Array) -> Array:
        """Return the weighted columns of the linear parameters, shape (N, k)."""
        parts = (
            side * self.model.columns(velocity[:, None], shape[None], self._load, self._position)[:, 0]
            for side, velocity in self._sides
        )
        return np.asarray(sum(parts) * self.root[:, None])

    def jacobian(self, parameters: Array) -> Array:
        """Return the derivative of the weighted torques with respect to all parameters, shape (N, k + s)."""
        k = len(self.model.linear_names)
        total = np.zeros((len(self.root), len(parameters)))
        for side, velocity in self._sides:
            basis = self.model.basis(velocity[:, None], parameters[None, k:], self._load, self._position)
            bends = np.einsum('Nks,k->Ns', basis.sensitivity[:, 0], parameters[:k])
            total += side * np.concatenate([basis.columns[:, 0], bends], axis=1)
        return np.asarray(total * self.root[:, None])


def _inverse(matrix: Array) -> tuple[Array, BoolArray]:
    """Return the pseudo-inverse of a normal matrix, and which parameters it determines."""
    length = np.sqrt(np.diag(matrix))
    seen = length > 1e-12 * float(length.max(initial=0.0))
    scale = np.where(seen, length, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    good = values > _RANK * max(float(values[-1]), 1e-300)
    inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T / np.outer(scale, scale)
    return inverse, np.asarray(np.sum(vectors[:, ~good] ** 2, axis=1) < _OPEN)
