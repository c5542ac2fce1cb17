# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The terms of friction models, each with its equation.

A term is linear in its parameters and has at most one shape parameter, which enters non-linearly:

    tau = sum_i columns_i(v, load, q, shape) parameter_i

The equations use arithmetic and tanh, exp, abs, sign, arctan, sin and cos of a namespace only: numpy for arrays, or one
with the same functions of symbols.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, IntArray

Quantity: TypeAlias = Literal['force', 'damping', 'stiffness', 'velocity', 'inverse velocity', 'ratio']

LONGEST_DELAY = 0.2
"""Longest delay of a torque, or lag of its friction, behind the motion [s].

A torque channel of 0.8 Hz has it; the slowest known, a UR10's, has 1.65 Hz.
"""
BREAKAWAY_SPEED = 0.01  # speed below which a joint sticks in the model ``static`` [rad/s or m/s]

SPEEDS = (0.1, 1.4, 5.0, 16.0)
"""Speeds at which the levels of the model ``levels`` reach 76 %, as multiples of its velocity scale.

The first is a sign. A second one, among speeds that an exciting motion only passes through, would be free to take back
what the first has too much: friction of slow motion comes out up to half as large again.
"""

DISTANCES = (1.0, 3.0, 10.0, 30.0)
"""Distances over which friction builds up after a reversal, as multiples of the model's presliding distance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """Arguments of friction: arrays of shape (N, n), or symbols of one joint."""

    velocity: Any  # [rad/s]
    slip: Any  # velocity whose direction friction has: where that lags, what it was a moment before [rad/s]
    sign: Any  # its sign, or tanh(slip / velocity_scale)
    shape: Mapping[str, Any]  # shape parameters by name: arrays of shape (n,), or numbers
    load: Any = None  # torque that the joint transmits, without its own friction [N m]
    position: Any = None  # from the middle of the model [rad]
    scale: Any = None  # shape (n,), or float: speed by which the sign is smooth, that levels are multiples of [rad/s]
    past: tuple[Any, ...] | None = None  # what has built up since the last reversal, over each of DISTANCES, if known
    ripple_frequency: Any = 0.0  # shape (n,), or float, as the next two: see FrictionModel
    ripple_limit: float = 10.0
    functions: Any = np  # numpy, or the same functions of symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter that the torque is linear in, or the one that enters a term non-linearly, its shape."""

    name: str
    quantity: Quantity  # from which its unit follows; of a shape a velocity or an inverse velocity
    # linear combination of the model's parameters that must not be negative, so that friction dissipates; empty where
    # the parameter may have either sign; by default the parameter itself
    bound: Mapping[str, float] | None = None
    limits: tuple[float, float] = (0.0, math.inf)  # of a shape, times the joint's largest speed, or its inverse

    @property
    def not_negative(self) -> Mapping[str, float]:
        """The combination that must not be negative; empty where there is none."""
        return {self.name: 1.0} if self.bound is None else self.bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A part of a friction model."""

    parameters: tuple[Parameter, ...]
    columns: Callable[[Motion], tuple[Any, ...]]  # torque per unit of each parameter
    shape: Parameter | None = None
    bends: Callable[[Motion], tuple[Any, ...]] | None = None  # derivatives of the columns by the shape parameter
    needs_load: bool = False  # whether the columns depend on the transmitted torque, or on the position
    needs_position: bool = False


def _free(name: str, quantity: Quantity) -> Parameter:
    """Return a parameter of either sign."""
    return Parameter(name=name, quantity=quantity, bound={})


COULOMB = Term(parameters=(Parameter(name='coulomb', quantity='force'),), columns=lambda at: (at.sign,))
VISCOUS = Term(parameters=(Parameter(name='viscous', quantity='damping'),), columns=lambda at: (at.velocity,))


def _two_levels(at: Motion) -> tuple[Any, ...]:
    """``static sign(v)`` where ``|v| < BREAKAWAY_SPEED``, and ``coulomb sign(v)`` elsewhere.

    At rest friction balances the load, up to the static level in both directions; the model gives zero, the middle.
    """
    f = at.functions
    sliding = 0.5 * (1.0 + f.sign(f.abs(at.velocity) - BREAKAWAY_SPEED))
    return at.sign * sliding, at.sign * (1.0 - sliding)


STATIC = Term(
    parameters=(
        Parameter(name='coulomb', quantity='force'),
        Parameter(name='static', quantity='force', bound={'static': 1.0, 'coulomb': -1.0}),
    ),
    columns=_two_levels,
)


def _film(at: Motion) -> tuple[Any, ...]:
    """``(coulomb + (static - coulomb) exp(-(v / stribeck_velocity)^2)) sign(v)``.

    Friction falls from the static to the Coulomb level as the lubricant film builds up: Armstrong-Helouvry,
    Dupont and Canudas de Wit, Automatica 30 (1994), eq. 5, with exponent 2.
    """
    ratio = at.velocity / at.shape['stribeck_velocity']
    film = at.functions.exp(-(ratio * ratio))
    return at.sign * (1.0 - film), at.sign * film


def _film_bends(at: Motion) -> tuple[Any, ...]:
    width = at.shape['stribeck_velocity']
    ratio = at.velocity / width
    bend = at.sign * 2.0 * ratio * ratio / width * at.functions.exp(-(ratio * ratio))
    return -bend, bend


STRIBECK = Term(
    parameters=(Parameter(name='coulomb', quantity='force'), Parameter(name='static', quantity='force')),
    columns=_film,
    shape=Parameter(name='stribeck_velocity', quantity='velocity', limits=(0.01, 1.0)),
    bends=_film_bends,
)


def _arctangent_bends(at: Motion) -> tuple[Any, ...]:
    argument = at.shape['arctan_rate'] * at.velocity
    return (at.velocity / (1.0 + argument * argument),)


# Daemi and Heimann, 1996. A negative gain lets friction fall with speed. Together with Coulomb and viscous friction
# the joint dissipates at every speed exactly when the level at high speed, coulomb + arctan_gain pi/2, is not negative.
# Rates between a nearly linear and a nearly stepwise arctangent over the range of speeds.
ARCTANGENT = Term(
    parameters=(Parameter(name='arctan_gain', quantity='force', bound={'coulomb': 1.0, 'arctan_gain': math.pi / 2}),),
    columns=lambda at: (at.functions.arctan(at.shape['arctan_rate'] * at.velocity),),
    shape=Parameter(name='arctan_rate', quantity='inverse velocity', limits=(0.5, 100.0)),
    bends=_arctangent_bends,
)

# Coulomb friction that grows with the transmitted torque: a gear of efficiency eta has load = 1 - eta to first order
# (Hamon, Gautier and Garrec, IROS 2010).
LOAD = Term(
    parameters=(Parameter(name='load', quantity='ratio'),),
    columns=lambda at: (at.sign * at.functions.abs(at.load),),
    needs_load=True,
)

# Bias of the current sensor, or friction that differs by direction: either sign.
OFFSET = Term(parameters=(_free('offset', 'force'),), columns=lambda at: (1.0,))


def _ripple(at: Motion) -> tuple[Any, ...]:
    """``(ripple_sin sin(nu q) + ripple_cos cos(nu q)) / (1 + (nu v / (2 pi limit))^4)``.

    Cogging of the motor and the kinematic error of a strain-wave gear repeat two to four times per turn of the
    motor, nu = 2 N or 4 N in joint angle behind a gear of ratio N (Kennedy and Desai, IEEE/ASME Trans. Mechatronics
    10 (2005)). The denominator suppresses ripple that is faster than the torque signal shows. nu = 0 means no ripple.
    """
    f, nu = at.functions, at.ripple_frequency
    pace = nu / (2.0 * math.pi * at.ripple_limit) * at.velocity
    share = 1.0 * (nu > 0.0) / (1.0 + pace * pace * pace * pace)
    return f.sin(nu * at.position) * share, f.cos(nu * at.position) * share


RIPPLE = Term(
    parameters=(_free('ripple_sin', 'force'), _free('ripple_cos', 'force')),
    columns=_ripple,
    needs_position=True,
)

# Stiffness of a spring or counterbalance at the joint, or of cables that it winds up. Its relaxed position is part of
# the offset. Negative where it relieves the joint.
SPRING = Term(
    parameters=(_free('stiffness', 'stiffness'),),
    columns=lambda at: (at.position,),
    needs_position=True,
)


# Any curve of friction over the speed, as a sum of smooth steps of different widths. The steps fall with their width,
# T_1 >= T_2 >= ... >= 0, and sum_i a_i T_i = sum_i (a_1 + ... + a_i) (T_i - T_(i+1)): the curve dissipates where no
# partial sum is negative, and falls where a step is. The linear part dissipates in either direction.
LEVELS = Term(
    parameters=(
        *(
            Parameter(name=f'level_{k + 1}', quantity='force', bound={f'level_{i + 1}': 1.0 for i in range(k + 1)})
            for k in range(len(SPEEDS))
        ),
        Parameter(name='viscous', quantity='damping', bound={'viscous': 1.0, 'asymmetry': 1.0}),
        Parameter(name='asymmetry', quantity='damping', bound={'viscous': 1.0, 'asymmetry': -1.0}),
    ),
    columns=lambda at: (
        *(at.functions.tanh(at.slip / (factor * at.scale)) for factor in SPEEDS),
        at.velocity,
        at.functions.abs(at.velocity),
    ),
)

# What builds up along the way after a reversal (Dahl, 1976), over short and long distances. Without a past it has the
# sign of the speed.
BUILD_UP = Term(
    parameters=tuple(Parameter(name=f'build_up_{k + 1}', quantity='force') for k in range(len(DISTANCES))),
    columns=lambda at: (at.sign,) * len(DISTANCES) if at.past is None else at.past,
)

# Springs, cables, counterbalances, and weights that no link of the description has: a torque over the joint's position.
POSITION = Term(
    parameters=(_free('stiffness', 'stiffness'), _free('position_sin', 'force'), _free('position_cos', 'force')),
    columns=lambda at: (at.position, at.functions.sin(at.position), at.functions.cos(at.position)),
    needs_position=True,
)

MODELS: dict[str, tuple[Term, ...]] = {
    'coulomb': (COULOMB,),
    'coulomb_viscous': (COULOMB, VISCOUS),
    'static': (STATIC, VISCOUS),
    'stribeck': (STRIBECK, VISCOUS),
    'daemi_heimann': (COULOMB, VISCOUS, ARCTANGENT),
    'levels': (LEVELS, BUILD_UP),
}
OPTIONS: dict[str, Term] = {'load': LOAD, 'offset': OFFSET, 'position': POSITION, 'spring': SPRING, 'ripple': RIPPLE}


def by_direction(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return terms with parameters of their own for positive and then for negative velocities."""
    directions = ((1.0, 'positive'), (-1.0, 'negative'))
    return tuple(_one_way(term, direction, suffix) for direction, suffix in directions for term in terms)


def _one_way(term: Term, direction: float, suffix: str) -> Term:
    """Return a term that acts in one direction of motion only."""

    def share(at: Motion) -> Any:
        return 0.5 * (1.0 + direction * at.functions.sign(at.velocity))

    bends = term.bends
    return replace(
        term,
        parameters=tuple(
            Parameter(
                name=f'{each.name}_{suffix}',
                quantity=each.quantity,
                bound={f'{name}_{suffix}': factor for name, factor in each.not_negative.items()},
            )
            for each in term.parameters
        ),
        columns=lambda at: tuple(column * share(at) for column in term.columns(at)),
        bends=None if bends is None else lambda at: tuple(bend * share(at) for bend in bends(at)),
    )


def sliding(
    position: Array, distance: Array, runs: Sequence[tuple[int, int]], rows: IntArray | slice = slice(None)
) -> Array:
    """Return which part of the sliding friction opposes the motion along recorded positions, by Dahl's law.

        dz/dq = (1 - z sign(dq)) / d

    A smooth sign of the motion: it goes from -1 to 1 over a few times the distance d, whatever the speed, and keeps its
    value while the joint stands. Each run begins with z = 0. From a reversal at q_0 to the next one,

        z = s - (s - z_0) exp(-|q - q_0| / d),

    with the direction s, so that reversals alone follow from each other, and samples are evaluated where they count.

    Positions have the shape (N, n) [rad or m], the distances (n,) or (n, d): one or several d of each joint, above zero
    [rad or m]. Runs, (start, stop), are rows that are contiguous in time, in order and without gaps. The result, for M
    ``rows``, by default all, has the shape (M, n) or (M, n, d): z, from -1 to 1.

    Source: P. Dahl: Solid friction damping of mechanical vibrations. AIAA Journal 14 (1976), 1675-1682.
    """
    begin = np.array([start for start, _ in runs])
    result = [
        _along(np.ascontiguousarray(q), np.atleast_1d(d), begin, rows)
        for q, d in zip(position.T, distance, strict=True)
    ]
    stacked = np.stack(result, axis=1)
    return stacked if np.ndim(distance) > 1 else np.asarray(stacked[..., 0])


def _along(q: Array, distance: Array, begin: IntArray, rows: IntArray | slice) -> Array:
    """Return z of one joint, shape (M, d), at positions (N,); runs begin at some rows."""
    step = np.diff(q, prepend=q[:1])
    step[begin] = 0.0
    moves = np.flatnonzero(step)
    direction = np.sign(step[moves])
    first = np.diff(np.searchsorted(begin, moves, side='right'), prepend=-1) != 0  # in its run
    turns = np.flatnonzero(first | (np.diff(direction, prepend=0.0) != 0.0))
    # Where a run begins it goes nowhere, and nothing has built up.
    at = np.concatenate([begin, moves[turns] - 1])
    order = np.argsort(at, kind='stable')
    at = at[order]
    direction = np.concatenate([np.zeros(len(begin)), direction[turns]])[order][:, None]
    left = np.exp(-np.abs(np.diff(q[at], prepend=q[at[:1]]))[:, None] / distance)
    added = np.concatenate([np.zeros((1, 1)), direction[:-1]]) * (1.0 - left)
    left[order < len(begin)] = added[order < len(begin)] = 0.0
    # z_k = left_k z_(k-1) + added_k from zero, shape (N, n), in blocks that go on side by side
    count, n = left.shape
    length = max(int(np.sqrt(count)), 1)
    blocks = -(-count // length)
    wide = np.ones((blocks * length, n)), np.zeros((blocks * length, n))
    wide[0][:count], wide[1][:count] = left, added
    factors, values = (each.reshape(blocks, length, n) for each in wide)
    for k in range(1, length):
        values[:, k] += factors[:, k] * values[:, k - 1]
        factors[:, k] *= factors[:, k - 1]
    last = np.zeros(n)
    for block in range(blocks):
        values[block] += factors[block] * last
        last = values[block, -1]
    built = np.asarray(values.reshape(-1, n)[:count])
    segment = np.repeat(np.arange(len(at)), np.diff(at, append=len(q)))[rows]
    away = np.abs(q[rows] - q[at][segment])[:, None]
    return np.asarray(direction[segment] - (direction - built)[segment] * np.exp(-away / distance))
