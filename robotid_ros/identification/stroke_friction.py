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
looks like viscous friction. Where the strokes confirm it, delta is estimated too, one for the torque channel of the
arm; g'(q) is the slope of the torque that both directions have in common.
"""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import BaseParameters
from robotid_ros.errors import IdentificationError
from robotid_ros.friction import FrictionModel, friction_model
from robotid_ros.friction.fit import fit_joint
from robotid_ros.friction.terms import LONGEST_DELAY
from robotid_ros.identification.information import PASSES, ROUNDING, solve

STROKE_MODELS = tuple(
    name + option for name in ('coulomb_viscous', 'static', 'stribeck', 'daemi_heimann') for option in ('', '+load')
)

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
    delay : float
        By which the torque of all joints lags behind the motion [s]; 0 where the strokes show none.
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
    delay: float
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
        """Add the parameters' information to normal equations, in place; return what the squares grow by.

        Parameters
        ----------
        matrix : ndarray, shape (P, P)
            Of [base, linear] parameters, or of [base, linear, shape] ones.
        vector : ndarray, shape (P,)
        base : int
            Number of parameters that come before those of friction.
        """
        width, square = (len(matrix) - base) // len(self.parameters), 0.0
        for j, values in enumerate(self.parameters[:, :width]):
            own = slice(base + j * width, base + (j + 1) * width)
            information = self.weight * self.information[j, :width, :width]
            matrix[own, own] += information
            vector[own] += information @ values
            square += float(values @ information @ values)
        return square

    def spread(self, inverse: Array, base: int) -> Array:
        """Return the covariance that the strokes' own noise gives the parameters of such a fit.

        Parameters
        ----------
        inverse : ndarray, shape (P, P)
            Inverse of the normal matrix with the strokes' information, of parameters as in :meth:`add`.
        base : int
        """
        result = np.zeros_like(inverse)
        width = (len(inverse) - base) // len(self.parameters)
        for j, information in enumerate(self.information):
            part = inverse[:, base + j * width : base + (j + 1) * width]
            result += self.weight**2 * part @ information[:width, :width] @ part.T
        return result


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


def gravity_along(strokes: FrictionStrokes, base: BaseParameters, values: Array) -> Array:
    """Return the torque of the joint that moves by base parameters (b,), without friction, shape (N,) [N m or N]."""
    torque = base.regressor(strokes.q, strokes.dq, np.zeros_like(strokes.q)) @ values
    return np.asarray(torque[np.arange(len(strokes)), strokes.joint])


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
    parts = {
        int(j): _Rows(
            model.of_joint(int(j)),
            [(sign, velocity[joint == j]) for sign, velocity in sides],
            *(values[joint == j] for values in (torque, load, position, seconds)),
        )
        for j in np.unique(joint)
    }
    delay, spread = _common_delay(list(parts.values()))
    n, k, width = len(strokes.joint_names), len(model.linear_names), len(model.linear_names) + len(model.shape_names)
    parameters, covariance = np.zeros((n, width)), np.zeros((n, width, width))
    determined, information = np.zeros((n, width), dtype=bool), np.zeros((n, width, width))
    criterion = np.log(len(joint)) if delay else 0.0
    noise = np.zeros(n)
    for j, rows in parts.items():
        count = len(rows.torque)
        parameters[j], square = rows.fit(delay)
        jacobian = rows.jacobian(parameters[j])
        variance = square / max(count - width, 1)
        noise[j] = np.sqrt(variance / len(sides))
        solution = solve(jacobian.T @ jacobian, np.zeros(width), width, None)
        inverse, determined[j] = solution.inverse, solution.determined
        taken = inverse @ (jacobian.T @ rows.lag)  # what a second of delay takes from the parameters
        covariance[j] = variance * inverse + spread**2 * np.outer(taken, taken)
        parameters[j, ~determined[j]] = 0.0
        if variance > 0.0:
            along = jacobian.T @ rows.lag / variance
            share = spread**2 / (1.0 + spread**2 * float(along @ taken))
            information[j] = jacobian.T @ jacobian / variance - share * np.outer(along, along)
            criterion += count * np.log(square / count) + int(determined[j].sum()) * np.log(count)
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


def _common_delay(parts: list['_Rows']) -> tuple[float, float]:
    """Return the delay of the torque channel and its standard deviation [s].

    It is the mean of what the joints say, weighted by how well each can tell. Where they disagree by more than
    their deviations, the deviation of the mean grows with their scatter (Birge 1932): what one joint alone has is an
    error of its friction model. Not believed is a delay that does not stand out of its deviation, also without the
    joint that tells it best, and one that is longer than a torque channel has. It is taken as zero, with a deviation
    that contains it.
    """
    delay = spread = 0.0
    confirmed = False
    for _ in range(PASSES):  # Gauss-Newton steps: only the shape parameters are not linear
        told = np.array([rows.told_of_delay(delay) for rows in parts])
        told = told[np.argsort(-told[:, 1])]
        others = _mean(told[1:])
        step, spread = _mean(told)
        delay += step
        confirmed = (delay - step + others[0]) ** 2 > _EVIDENCE * others[1] ** 2
    if not np.isfinite(spread):
        return 0.0, 0.0
    if confirmed and delay**2 > _EVIDENCE * spread**2 and abs(delay) <= LONGEST_DELAY:
        return delay, spread
    return 0.0, float(np.sqrt(max(spread**2, delay**2 - spread**2)))  # of zero: without bias, and not below its own


def _mean(told: Array) -> tuple[float, float]:
    """Return the weighted mean of values and weights (K, 2) and its deviation; infinite where there is none."""
    value, weight = told[told[:, 1] > 0.0].T
    if not len(weight):
        return 0.0, np.inf
    mean = float(weight @ value / weight.sum())
    scatter = float(weight @ (value - mean) ** 2) / max(len(weight) - 1, 1)
    return mean, float(np.sqrt(max(scatter, 1.0) / weight.sum()))


class _Rows:
    """The rows of one joint, each weighted by the root of the time it was averaged over.

    ``lag``, shape (N,), is the torque per unit of delay. Along a revolute joint gravity is a sine of the
    position, along a prismatic one a straight line.
    """

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
        shape = np.stack([np.ones_like(position), position, np.sin(position), np.cos(position)], axis=1)
        _, along, sine, cosine = np.linalg.lstsq(shape * self.root[:, None], load * self.root, rcond=1e-6)[0]
        slope = along + sine * np.cos(position) - cosine * np.sin(position)
        self.lag = -sum(side * velocity for side, velocity in sides) * slope * self.root

    def fit(self, delay: float) -> tuple[Array, float]:
        """Return the parameters and the sum of squared errors, with a given delay [s]."""
        return fit_joint(self.model, self.columns, self.torque - delay * self.lag, self.fastest)

    def told_of_delay(self, delay: float) -> tuple[float, float]:
        """Return by how much the delay is longer [s], and the weight of that [1/s^2], 0 if it cannot tell."""
        parameters, square = self.fit(delay)
        jacobian, k = self.jacobian(parameters), len(self.model.linear_names)
        left = self.torque - delay * self.lag - self.columns(parameters[k:]) @ parameters[:k]
        across = self.lag - jacobian @ np.linalg.lstsq(jacobian, self.lag, rcond=ROUNDING**0.5)[0]
        length, free = float(across @ across), len(left) - len(parameters) - 1
        if free < 1 or length <= ROUNDING**0.5 * float(self.lag @ self.lag):
            return 0.0, 0.0
        more = float(across @ left) / length
        variance = max(square - more**2 * length, ROUNDING**2 * float(self.torque @ self.torque)) / free
        return more, length / variance if variance > 0.0 else 0.0

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
            columns, sensitivity = self.model.basis(velocity[:, None], parameters[None, k:], self._load, self._position)
            bends = np.einsum('Nks,k->Ns', sensitivity[:, 0], parameters[:k])
            total += side * np.concatenate([columns[:, 0], bends], axis=1)
        return np.asarray(total * self.root[:, None])
