# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction from the steady strokes of a friction sweep.

At a constant velocity, with all other joints at rest, a joint's torque is gravity and friction. Gravity is removed

- by pairs: at the same place in both directions, tau(v) - tau(-v) = tau_f(v) - tau_f(-v), whatever the masses are;
- or by the model: tau - g(q) = tau_f(v).

Pairs do not show what is the same in both directions: an offset, a torque ripple, a difference between the
directions. The model does, as far as its gravity is right.

A torque delayed by delta, by a filter for example, has the gravity of an earlier place: the error - delta v g'(q)
looks like viscous friction. Where the strokes confirm it, delta is estimated too; g'(q) is the slope of the torque
that both directions have in common.
"""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.friction.fit import fit_joint

STROKE_MODELS = tuple(
    name + option for name in ('coulomb_viscous', 'static', 'stribeck', 'daemi_heimann') for option in ('', '+load')
)

_OPEN = 1e-6  # share of a parameter in undetermined directions above which it counts as undetermined
_RANK = 1e-9  # relative eigenvalue below which a direction counts as undetermined
_EVIDENCE = 10.0  # fall of the squared error, in variances, that confirms a delay: by chance in one of 600 recordings


@dataclass(frozen=True, slots=True, kw_only=True)
class StrokeFriction:
    """Friction parameters of a friction sweep, joint by joint.

    Attributes
    ----------
    parameters : ndarray, shape (n, k + s)
        Zero where the strokes do not determine them.
    covariance : ndarray, shape (n, k + s, k + s)
    determined : ndarray of bool, shape (n, k + s)
        Which parameters the strokes determine.
    information : ndarray, shape (n, k + s, k + s)
        Inverse of the covariance; zero for undetermined parameters.
    linear : int
        Number k of linear parameters.
    noise : ndarray, shape (n,)
        Standard deviation of the torque at one place [N m or N].
    delay : ndarray, shape (n,)
        By which the torque lags behind the motion [s]; 0 where the strokes show none.
    criterion : float
        Bayesian information criterion over all joints; lower is better.
    weight : float
        Weight of the information in the normal equations of a fit to other data.
    """

    parameters: Array
    covariance: Array
    determined: BoolArray
    information: Array
    linear: int
    noise: Array
    delay: Array
    criterion: float
    weight: float = 1.0

    @property
    def std(self) -> Array:
        """Standard deviations, shape (n, k + s); infinite for undetermined parameters."""
        deviation = np.sqrt(np.maximum(np.einsum('nkk->nk', self.covariance), 0.0))
        return np.where(self.determined, deviation, np.inf)

    @property
    def shape(self) -> Array:
        """Shape parameters, shape (n, s)."""
        return self.parameters[:, self.linear :]

    def add(self, matrix: Array, vector: Array, base: int) -> float:
        """Add the linear parameters' information to normal equations, in place; return what the squares grow by.

        Parameters
        ----------
        matrix : ndarray, shape (b + n k, b + n k)
        vector : ndarray, shape (b + n k,)
        base : int
            Number b of parameters that come before those of friction.
        """
        k, square = self.linear, 0.0
        for j, values in enumerate(self.parameters[:, :k]):
            own = slice(base + j * k, base + (j + 1) * k)
            information = self.weight * self.information[j, :k, :k]
            matrix[own, own] += information
            vector[own] += information @ values
            square += float(values @ information @ values)
        return square

    def spread(self, inverse: Array, base: int) -> Array:
        """Return the covariance that the strokes' own noise gives the parameters of such a fit.

        Parameters
        ----------
        inverse : ndarray, shape (P, P)
            Inverse of the normal matrix with the strokes' information, of [base, linear, shape] parameters or of
            [base, linear] ones.
        base : int
        """
        result = np.zeros_like(inverse)
        width = (len(inverse) - base) // len(self.parameters)
        for j, information in enumerate(self.information):
            part = inverse[:, base + j * width : base + (j + 1) * width]
            result += self.weight**2 * part @ information[:width, :width] @ part.T
        return result

    def add_all(self, matrix: Array, base: int) -> None:
        """Add the information of linear and shape parameters to a normal matrix, in place."""
        width = self.information.shape[1]
        for j, information in enumerate(self.information):
            own = slice(base + j * width, base + (j + 1) * width)
            matrix[own, own] += self.weight * information


def choose_stroke_model(strokes: FrictionStrokes) -> tuple[str, tuple[tuple[str, Array], ...]]:
    """Return the simplest friction model that describes the strokes as well as the best one.

    As well: with a Bayesian information criterion of less than 10 above the least, beyond which evidence counts as
    very strong (Kass and Raftery, J. American Statistical Association 90 (1995)).

    Returns
    -------
    name : str
    tried : tuple of (str, ndarray)
        Each model with the root-mean-square torque error of each joint, shape (n,) [N m].
    """
    found = {name: stroke_friction(friction_model(name), strokes) for name in STROKE_MODELS}
    least = min(each.criterion for each in found.values())
    good = [name for name in found if found[name].criterion < least + _EVIDENCE]
    good = [name for name in good if tells_static(friction_model(name), found[name], strokes)] or good
    best = min(good, key=lambda name: found[name].parameters.shape[1])
    return best, tuple((name, each.noise) for name, each in found.items())


def tells_static(model: FrictionModel, found: StrokeFriction, strokes: FrictionStrokes) -> bool:
    """Return whether the strokes determine the static friction of every joint that they move, where a model has one."""
    static = [k for k, name in enumerate(model.linear_names) if name.startswith('static')]
    return bool(found.determined[np.unique(strokes.joint)][:, static].all())


def stroke_friction(model: FrictionModel, strokes: FrictionStrokes, gravity: Array | None = None) -> StrokeFriction:
    """Return the friction of all joints.

    Parameters
    ----------
    model : FrictionModel
        Of the strokes' n joints.
    strokes : FrictionStrokes
    gravity : ndarray, shape (N,), optional
        Torque of the joint that moves, without friction [N m or N]; by default gravity is removed by pairs.

    Raises
    ------
    IdentificationError
        If gravity is to be removed by pairs and no stroke has a partner in the opposite direction.
    """
    if gravity is None:
        ahead, back = strokes.pairs()
        if not len(ahead):
            raise IdentificationError(
                'no stroke of the friction sweep has a partner in the opposite direction over the same places, '
                'with which gravity is removed'
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
    determined, information = np.zeros((n, width), dtype=bool), np.zeros((n, width, width))
    criterion = 0.0
    noise, delay = np.zeros(n), np.zeros(n)
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
        rows, parameters[j], square = _fitted(rows)
        jacobian = rows.jacobian(parameters[j])
        delay[j] = rows.delay(parameters[j])
        variance = square / max(len(own) - width - (rows.lag is not None), 1)
        noise[j] = np.sqrt(variance / len(sides))
        inverse, determined[j] = _inverse(jacobian.T @ jacobian)
        covariance[j] = variance * inverse
        parameters[j, ~determined[j]] = 0.0
        if variance > 0.0:
            information[j] = jacobian.T @ jacobian / variance
            known = int(determined[j].sum()) + (rows.lag is not None)
            criterion += len(own) * np.log(square / len(own)) + known * np.log(len(own))
    return StrokeFriction(
        parameters=parameters,
        covariance=covariance,
        determined=determined,
        information=information,
        linear=k,
        noise=noise,
        delay=delay,
        criterion=criterion,
    )


def _fitted(rows: '_Rows') -> tuple['_Rows', Array, float]:
    """Return the rows, the parameters and the sum of squared errors, with a delay where the strokes confirm one."""
    parameters, square = fit_joint(rows.model, rows.columns, rows.torque, rows.fastest)
    lagging = rows.with_delay()
    count = len(rows.torque) - len(parameters) - 1
    if lagging is None or count < 1:
        return rows, parameters, square
    with_delay, less = fit_joint(lagging.model, lagging.columns, lagging.torque, lagging.fastest)
    confirmed = square - less > _EVIDENCE * less / count
    return (lagging, with_delay, less) if confirmed else (rows, parameters, square)


class _Rows:
    """The rows of one joint, each weighted by the root of the time it was averaged over.

    ``lag``, shape (N,), is the torque per unit of delay; torques and columns are projected onto its complement.
    """

    def __init__(
        self,
        model: FrictionModel,
        sides: list[tuple[float, Array]],
        torque: Array,
        load: Array,
        position: Array,
        seconds: Array,
        lag: Array | None = None,
    ) -> None:
        self.model, self._sides, self.lag = model, sides, lag
        self._given = torque, load, position, seconds
        self._load, self._position = load[:, None], position[:, None]
        self.root = np.sqrt(seconds / seconds.mean())
        self.torque = self._cleared(torque * self.root)
        self.fastest = float(np.abs(sides[0][1]).max())

    def _cleared(self, values: Array) -> Array:
        return (
            values
            if self.lag is None
            else values - np.multiply.outer(self.lag, self.lag @ values) / (self.lag @ self.lag)
        )

    def with_delay(self) -> '_Rows | None':
        """Return the rows of a torque that may lag behind; None where gravity does not change along the strokes.

        Along a revolute joint gravity is a sine of the position, along a prismatic one a straight line.
        """
        q, load = self._position[:, 0], self._load[:, 0]
        shape = np.stack([np.ones_like(q), q, np.sin(q), np.cos(q)], axis=1) * self.root[:, None]
        _, along, sine, cosine = np.linalg.lstsq(shape, load * self.root, rcond=1e-6)[0]
        slope = along + sine * np.cos(q) - cosine * np.sin(q)
        lag = -sum(side * velocity for side, velocity in self._sides) * slope * self.root
        return _Rows(self.model, self._sides, *self._given, lag=lag) if lag.any() else None

    def delay(self, parameters: Array) -> float:
        """Return the delay that belongs to these parameters [s]."""
        if self.lag is None:
            return 0.0
        k = len(self.model.linear_names)
        left = self._given[0] * self.root - self._plain(parameters[k:]) @ parameters[:k]
        return float(self.lag @ left / (self.lag @ self.lag))

    def columns(self, shape: Array) -> Array:
        """Return the weighted columns of the linear parameters, shape (N, k)."""
        return self._cleared(self._plain(shape))

    def _plain(self, shape: Array) -> Array:
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
        return self._cleared(total * self.root[:, None])


def _inverse(matrix: Array) -> tuple[Array, BoolArray]:
    """Return the pseudo-inverse of a normal matrix, and which parameters it determines."""
    length = np.sqrt(np.diag(matrix))
    seen = length > 1e-12 * float(length.max(initial=0.0))
    scale = np.where(seen, length, 1.0)
    values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
    good = values > _RANK * max(float(values[-1]), 1e-300)
    inverse = (vectors[:, good] / values[good]) @ vectors[:, good].T / np.outer(scale, scale)
    return inverse, np.asarray(np.sum(vectors[:, ~good] ** 2, axis=1) < _OPEN)
