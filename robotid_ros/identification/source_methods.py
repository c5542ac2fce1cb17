# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The sources' own methods, on the same rows and judged alike.

Alternating identification: friction given the dynamics, the dynamics given friction, and again.

    1. f    = argmin |tau_f(dq, f) - (tau - Y_b beta)|   over the friction data, joint by joint
    2. beta = argmin |Y_b beta - (tau - tau_f(dq, f))|    over the dynamics data
    3. the torque error of every joint below its threshold: usable; the iteration limit: not usable. Samples at rest
       count as little as they do in the fit: no law of friction holds there.

It needs friction data (slow motion at constant speeds) and dynamics data (fast motion) from
different trajectories, and converges linearly where both share information; solving for both at
once (:func:`robotid_ros.identification.least_squares.least_squares`) reaches the same minimum in
one step. With one data set for both it is a block coordinate descent on that problem.

Artificial bee colony over all parameters of an arm at once, for friction that is not linear in its parameters.

Xi, Chen, Ding, Wu and Xie (dynamic parameter identification of robots with a non-linear friction model), after Karaboga
and Basturk, J. Global Optimization 39 (2007). Of a random population the better half becomes food sources x_i, with an
employed bee each; the other half are onlookers. A bee tries a neighbour in all coordinates at once,

    v_j = x_ij + phi_j (x_ij - x_kj),    phi_j uniform in [-1, 1], k another source,

and keeps the better one. Onlookers follow sources in proportion to their fitness 1 / (1 + F). A source that has not
improved for ``limit`` trials is left, and a scout finds a new one as the first ones were found. F is the sum over the
joints of the squared torque error, relative to the squared torque:

    F = sum_j |tau_j - Y_j beta - tau_f(dq_j, f_j)|^2 / |tau_j|^2

Base parameters beta and all friction parameters f, linear ones too, are coordinates of the search: 27 for three
axes with Daemi-Heimann friction and no rotor inertia. Coulomb, viscous and arctangent terms can stand in for one
another, so the search needs many cycles. All but the shape parameters enter linearly:
:func:`robotid_ros.identification.separable.separable_least_squares` searches for those alone.
"""

from collections.abc import Callable

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.friction import FrictionModel, friction_model, initial_guess
from robotid_ros.identification.config import IdentificationConfig
from robotid_ros.identification.information import Rows, quick_solve
from robotid_ros.identification.judge import Alternative, Decision
from robotid_ros.identification.least_squares import fit_of_parameters
from robotid_ros.identification.model_choice import Chosen
from robotid_ros.identification.prior import is_placeholder
from robotid_ros.identification.samples import Samples
from robotid_ros.identification.stroke_friction import StrokeFriction, gravity_along, stroke_friction
from robotid_ros.identification.torque_fit import TorqueFit

_SETTLED = 1e-5  # relative change of the torque errors at which the alternation ends


def fit_friction(rows: Rows, friction: FrictionModel, values: Array) -> Array:
    """Return the friction parameters, shape (n, k + s), that fit best what base parameters (b,) leave of the torque."""
    samples = rows.samples
    load = rows.torque(values)
    torque = samples.target - samples.filtered(load)
    channel = None if samples.open else samples.filtered
    return initial_guess(
        friction, samples.dq, torque, load, samples.q, weight=samples.weight, channel=channel, refine=True
    )


def alternate(chosen: Chosen, config: IdentificationConfig) -> tuple[TorqueFit, Decision]:
    """Return the fit at which the alternation ends, and how it went.

    It starts from the description's parameters, where it has some, else from those that fit best without friction.
    Friction data give the friction; without them, the dynamics data are the friction data too.
    """
    rows, friction, strokes, thresholds = chosen.rows, chosen.friction, chosen.strokes, config.thresholds(chosen.model)
    samples, base, count = rows.samples, rows.base, len(rows.base.independent)
    gram = rows.information(friction_model('coulomb')).gram[:, :count, :count]

    def bodies(torque: Array) -> Array:
        """Return the base parameters that explain a torque best."""
        right_side = np.zeros(count)
        for piece in rows.pieces():
            weight = piece.samples.weight * precision
            right_side += np.einsum('Nnb,Nn->b', piece.rigid, torque[piece.rows] * weight)
        return quick_solve(np.tensordot(precision, gram, axes=1), right_side, 0, None)

    def resisting(load: Array) -> Array:
        return samples.filtered(friction.torque(samples.dq, parameters, load, samples.q))

    precision = np.ones(samples.n)
    values = bodies(samples.target) if is_placeholder(chosen.model) else np.array(base.values)
    errors: list[Array] = []  # root mean squares of the joints after each iteration, with the weights of the fit
    for _ in range(config.max_iterations):
        if strokes is None:
            parameters = fit_friction(rows, friction, values)
        else:
            parameters = stroke_friction(friction, strokes, gravity_along(strokes, base, values)).parameters
        values = bodies(samples.target - resisting(rows.torque(values)))
        load = rows.torque(values)
        residual = samples.target - samples.filtered(load) - resisting(load)
        weighted = np.sum(samples.weight * residual**2, axis=0) / np.maximum(samples.weight.sum(axis=0), 1e-12)
        error, all_samples = np.sqrt(weighted), np.sqrt(np.mean(residual**2, axis=0))
        floor = 1e-12 * max(float(np.mean(samples.target**2)), 1e-12)
        precision = 1.0 / np.maximum(weighted, floor)
        settled = bool(errors) and bool(np.abs(error - errors[-1]).max() <= _SETTLED * max(float(error.max()), 1e-12))
        errors.append(error)
        usable = settled if thresholds is None else bool((error < thresholds).all())
        if usable or settled:
            break
    reason = ''
    if not usable:
        reason = f'the alternation {"settled after" if settled else "had not settled after"} {len(errors)} iterations'
    if not usable and thresholds is not None:
        worst = int(np.argmax(error / thresholds))
        reason += (
            f' with a torque error of {error[worst]:.3g} N m in motion at {chosen.model.joint_names[worst]} '
            f'({all_samples[worst]:.3g} with samples at rest), above its threshold of {thresholds[worst]:.3g} N m'
        )
    prior = chosen.stroke_prior()
    fit = fit_of_parameters(rows, friction, values, parameters, converged=usable, reason=reason, prior=prior)
    note = f'alternating, {len(errors)} iterations{"" if usable else ", not usable"}'
    last = Alternative(name='last iteration', error=error)
    return fit, Decision(subject='estimator', chosen=note, alternatives=(last,))


def _minimise_by_bees(
    cost: Callable[[Array], Array], bounds: tuple[Array, Array], config: IdentificationConfig
) -> tuple[Array, Array, int]:
    """Return the best source, its cost before the first cycle and after each, and how many costs were computed.

    ``cost`` takes points (M, d) to costs (M,), not negative; the bounds have the shape (d,).
    """
    (lower, upper), size, rng = bounds, config.colony_size, np.random.default_rng(config.seed)
    start = rng.uniform(lower, upper, (size, len(lower)))
    started = cost(start)
    sources = size // 2
    better = np.argsort(started, kind='stable')[:sources]
    source, value = start[better], started[better]
    trials = np.zeros(sources, dtype=np.int64)
    evaluations = size
    best, history = source[0].copy(), [float(value[0])]

    def visit(bees: IntArray) -> None:
        """Try a neighbour of the source of each bee, all at once, and keep the better one."""
        nonlocal evaluations
        other = (bees + rng.integers(1, sources, len(bees))) % sources
        step = rng.uniform(-1.0, 1.0, (len(bees), len(lower)))
        trial = np.clip(source[bees] + step * (source[bees] - source[other]), lower, upper)
        found = cost(trial)
        evaluations += len(bees)
        for k, bee in enumerate(bees.tolist()):  # several onlookers may share a source: the best of them stays
            if found[k] < value[bee]:
                source[bee], value[bee], trials[bee] = trial[k], found[k], 0
            else:
                trials[bee] += 1

    for _ in range(config.colony_cycles):
        visit(np.arange(sources, dtype=np.int64))
        fitness = 1.0 / (1.0 + value)
        visit(rng.choice(sources, size - sources, p=fitness / fitness.sum()).astype(np.int64))
        if value.min() < history[-1]:
            best = source[np.argmin(value)].copy()
        history.append(min(history[-1], float(value.min())))
        left = np.flatnonzero(trials > config.colony_limit)
        if len(left):  # each is left for a scout's, found as the first ones were
            source[left] = rng.uniform(lower, upper, (len(left), len(lower)))
            value[left] = cost(source[left])
            trials[left] = 0
            evaluations += len(left)
    return best, np.array(history), evaluations


def bee_colony(
    rigid: Array,
    samples: Samples,
    model: FrictionModel,
    described: Array,
    config: IdentificationConfig,
    strokes: StrokeFriction | None = None,
) -> tuple[Array, Array, Array, int]:
    """Return the base and friction parameters that a bee colony finds, all of them coordinates of one search.

    Base parameters are looked for within the description's value plus and minus its size and a tenth of what could
    explain the whole torque alone; friction parameters within the dissipative set, up to what explains by itself the
    largest torque that the description leaves, shapes on a logarithmic scale.

    Parameters
    ----------
    rigid : ndarray, shape (N, n, b)
        Base regressor.
    samples : Samples
    model : FrictionModel
        Where it depends on the load, that is the measured torque.
    described : ndarray, shape (b,)
        Base parameters of the robot description; zeros where it has none.
    config : IdentificationConfig
        Size, limit and cycles of the colony, and the seed. Half of the bees are employed, at a food source each, and
        half are onlookers.
    strokes : StrokeFriction, optional
        What a friction sweep tells: those friction parameters are looked for within three standard deviations of it.

    Returns
    -------
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    cost : ndarray, shape (cycles + 1,)
        F of the best source so far, before the first cycle and after each.
    evaluations : int
        Costs computed.
    """
    problem = _Problem(rigid, samples, model)
    best, history, evaluations = _minimise_by_bees(problem.cost, problem.box(described, strokes), config)
    base_values, parameters = problem.split(best[None])
    return base_values[0], parameters[:, 0], history, evaluations


class _Problem:
    """The relative torque error as a function of points ``[beta, weights and log-shapes of each joint]``."""

    def __init__(self, rigid: Array, samples: Samples, model: FrictionModel) -> None:
        self.rigid, self.samples, self.torque, self.model = rigid, samples, samples.target, model
        self.n, self.b = rigid.shape[1:]
        self.k, self.s = len(model.linear_names), len(model.shape_names)
        self.square = np.maximum(np.sum(self.torque**2, axis=0), 1e-300)

    def box(self, described: Array, strokes: StrokeFriction | None) -> tuple[Array, Array]:
        """Return the bounds of a search."""
        largest = np.abs(self.torque).max(axis=0)
        column = np.abs(self.rigid).max(axis=0)
        reach = np.min(np.where(column > 0.0, largest[:, None] / np.maximum(column, 1e-300), np.inf), axis=0)
        half = np.abs(described) + 0.1 * np.where(np.isfinite(reach), reach, 0.0)
        # Friction is odd in the speed: bodies that are wrong add to it here and take from it there.
        left = np.abs(self.torque - self.rigid @ described).max(axis=0)
        fastest = np.maximum(np.abs(self.samples.dq).max(axis=0), 1e-6)
        low, high = (np.log(bound) for bound in self.model.shape_bounds(fastest))
        lower, upper = [described - half], [described + half]
        for j in range(self.n):
            columns = self._columns(j, 0.5 * (low[j] + high[j])[None])[:, 0] @ self.model.generators
            size = left[j] / np.maximum(np.abs(columns).max(axis=0), 1e-12)
            least = np.concatenate([np.where(self.model.signed, -size, 0.0), low[j]])
            most = np.concatenate([size, high[j]])
            if strokes is not None:
                middle, apart = self._coordinates(strokes, j)
                least = np.where(np.isfinite(apart), np.clip(middle - 3.0 * apart, least, most), least)
                most = np.where(np.isfinite(apart), np.clip(middle + 3.0 * apart, least, most), most)
            lower.append(least)
            upper.append(most)
        return np.concatenate(lower), np.concatenate(upper)

    def _coordinates(self, strokes: StrokeFriction, joint: int) -> tuple[Array, Array]:
        """Return one joint's coordinates of the search by its strokes, and their standard deviations."""
        k, values = self.k, strokes.parameters[joint]
        change = np.linalg.inv(self.model.generators)
        covariance = change @ strokes.covariance[joint, :k, :k] @ change.T
        deviation = np.sqrt(np.maximum(np.diag(covariance), 0.0))
        known = ~((np.abs(change) > 0.0) & ~strokes.determined[joint, :k]).any(axis=1)
        shape = values[k:]
        apart = strokes.std[joint, k:] / np.maximum(shape, 1e-300)
        middle = np.concatenate([change @ values[:k], np.log(np.maximum(shape, 1e-300))])
        return middle, np.concatenate([np.where(known, deviation, np.inf), apart])

    def split(self, points: Array) -> tuple[Array, Array]:
        """Return base parameters (M, b) and friction parameters (n, M, k + s) of points (M, d)."""
        own = points[:, self.b :].reshape(len(points), self.n, self.k + self.s).transpose(1, 0, 2)
        linear = own[..., : self.k] @ self.model.generators.T
        return points[:, : self.b], np.concatenate([linear, np.exp(own[..., self.k :])], axis=2)

    def _columns(self, joint: int, shapes: Array) -> Array:
        """Return one joint's columns at several logarithmic shapes, shape (N, M, k)."""
        velocity, load, position = (
            np.repeat(x[:, joint, None], len(shapes), axis=1) for x in (self.samples.dq, self.torque, self.samples.q)
        )
        return self.model.of_joint(joint).columns(velocity, np.exp(shapes), load, position)

    def cost(self, points: Array) -> Array:
        """Return the relative squared errors of points (M, d), shape (M,)."""
        base, own = self.split(points)
        total = np.zeros(len(points))
        for j in range(self.n):
            columns = self._columns(j, np.log(own[j, :, self.k :]))
            predicted = self.rigid[:, j] @ base.T + np.einsum('NMk,Mk->NM', columns, own[j, :, : self.k])
            total += np.sum((self.torque[:, j, None] - predicted) ** 2, axis=0) / self.square[j]
        return total
