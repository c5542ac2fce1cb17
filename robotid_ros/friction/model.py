# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction models: lists of terms, their names, bounds, columns and torques."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import IdentificationError
from robotid_ros.friction.terms import (
    DISTANCES,
    LONGEST_DELAY,
    MODELS,
    OPTIONS,
    Motion,
    Parameter,
    Quantity,
    Term,
    by_direction,
)
from robotid_ros.model.inertia import joint_unit

_USUAL_SCALE = 0.05  # rad/s, of levels: a twentieth of a usual speed

FRICTION_MODELS = tuple(MODELS)
FRICTION_OPTIONS = ('asymmetric', *OPTIONS)

_UNITS: dict[Quantity, str] = {
    'force': 'N*m',
    'damping': 'N*m*s/rad',
    'stiffness': 'N*m/rad',
    'velocity': 'rad/s',
    'inverse velocity': 's/rad',
    'ratio': '1',
}


def unit_of(quantity: Quantity, joint_type: str) -> str:
    """Return the SI unit of a friction parameter of a revolute or a prismatic joint."""
    return joint_unit(_UNITS[quantity], joint_type)


PER_JOINT = ('velocity_scale', 'ripple_frequency', 'middle', 'presliding')  # a number for each joint, or for all


def _array(value: ArrayLike | None) -> Array | None:
    return None if value is None else np.asarray(value, dtype=np.float64)


def _checked(value: ArrayLike, name: str) -> Array:
    shape: tuple[None, ...] = (None,) * min(np.ndim(value), 1)
    if name == 'middle':
        return frozen_array(value, name, shape, IdentificationError)
    above = -np.inf if name in ('ripple_frequency', 'lag') else 0.0  # 0 for a joint without a ripple
    return frozen_array(value, name, shape, IdentificationError, at_least=0.0, above=above)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionModel:
    """Friction torque of n independent joints: k linear parameters and s shape parameters each.

        tau_f = sum_k columns_k(v, load, q, shape) linear_k

    A joint's parameters are ``[linear..., shape...]``; those of n joints have the shape (n, k + s).

    Attributes
    ----------
    name : str
        The argument of :func:`friction_model`.
    terms : tuple of Term
    velocity_scale : ndarray, shape (n,) or (), optional
        Speed at which the smooth sign tanh(v / velocity_scale) reaches 76 % [rad/s]; None for sign(v).
    ripple_frequency : ndarray, shape (n,) or (), optional
        Frequency of a torque ripple [1/rad]; 0 for a joint without one, None for a model without the term.
    ripple_limit : float
        Fastest ripple that the torque signal shows [Hz].
    middle : ndarray, shape (n,) or (), optional
        Position from which springs and ripple count [rad or m], so that they do not depend on where a joint has its
        zero; None for that zero.
    presliding : ndarray, shape (n,) or (), optional
        Distance over which friction builds up after a reversal [rad or m], see
        :func:`robotid_ros.friction.terms.sliding`, of the model ``levels``, which has states over multiples of it.
        It is a law of recorded motion: a single state has the sign of its speed.
    lag : float
        How long after the recorded motion friction turns [s], as where it acts behind a flexible gear. It is a law of
        recorded motion, too.
    """

    name: str
    terms: tuple[Term, ...]
    velocity_scale: Array | None = None
    ripple_frequency: Array | None = None
    ripple_limit: float = 10.0
    middle: Array | None = None
    presliding: Array | None = None
    lag: float = 0.0
    generators: Array = field(init=False)
    """Matrix G, shape (k, k): friction dissipates exactly when the entries of G^-1 linear that are not ``signed``
    are not negative."""

    def __post_init__(self) -> None:
        for name in PER_JOINT:
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _checked(value, name))
        _checked(self.ripple_limit, 'ripple_limit')
        if _checked(self.lag, 'lag') > LONGEST_DELAY:
            raise IdentificationError(f'lag: expected at most {LONGEST_DELAY:g} s, got {self.lag:g} s')
        names = self.linear_names
        bounds = np.eye(len(names))
        for row, parameter in zip(bounds, self._parameters, strict=True):
            for name, factor in parameter.not_negative.items():
                row[names.index(name)] = factor
        object.__setattr__(self, 'generators', np.linalg.inv(bounds))

    @property
    def _parameters(self) -> tuple[Parameter, ...]:
        return tuple(parameter for term in self.terms for parameter in term.parameters)

    @property
    def _shapes(self) -> tuple[Parameter, ...]:
        return tuple({term.shape.name: term.shape for term in self.terms if term.shape is not None}.values())

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Names of the parameters that enter linearly."""
        return tuple(parameter.name for parameter in self._parameters)

    @property
    def shape_names(self) -> tuple[str, ...]:
        """Names of the parameters that enter non-linearly."""
        return tuple(shape.name for shape in self._shapes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters of a joint, linear ones first."""
        return (*self.linear_names, *self.shape_names)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Physical quantity of each parameter, linear ones first."""
        return (*(each.quantity for each in self._parameters), *(each.quantity for each in self._shapes))

    @property
    def signed(self) -> tuple[bool, ...]:
        """Which linear parameters may have either sign."""
        return tuple(not parameter.not_negative for parameter in self._parameters)

    @property
    def needs_load(self) -> bool:
        """Whether the torque depends on the torque that the joint transmits."""
        return any(term.needs_load for term in self.terms)

    @property
    def by_name(self) -> bool:
        """Whether the name says all of the model."""
        return self.lag == 0.0 and all(getattr(self, name) is None for name in PER_JOINT)

    def smoothed(self, velocity_scale: ArrayLike | None) -> 'FrictionModel':
        """Return the model with sign(v) replaced by tanh(v / velocity_scale); None restores the sign."""
        return replace(self, velocity_scale=_array(velocity_scale))

    @property
    def needs_position(self) -> bool:
        """Whether the torque depends on the position of the joint."""
        return any(term.needs_position for term in self.terms)

    def of_joints(self, n: int) -> 'FrictionModel':
        """Return the model with a value of each of n joints in place of one for all.

        Raises
        ------
        IdentificationError
            If it has values of another number of joints.
        """
        values: dict[str, Any] = {name: getattr(self, name) for name in PER_JOINT if getattr(self, name) is not None}
        for name, value in values.items():
            if np.shape(value) not in ((), (n,)):
                raise IdentificationError(f'{name}: expected a value for each of {n} joints, got {np.size(value)}')
            values[name] = np.broadcast_to(value, (n,))
        return replace(self, **values)

    def of_joint(self, joint: int) -> 'FrictionModel':
        """Return the model of one joint, with scalars in place of values per joint."""
        values = {name: getattr(self, name) for name in PER_JOINT}
        return replace(self, **{name: value[joint] for name, value in values.items() if np.ndim(value)})

    def shape_bounds(self, fastest: Array) -> tuple[Array, Array]:
        """Return bounds of the shape parameters, shapes (n, s), given each joint's largest speed, shape (n,)."""
        size = [fastest if shape.quantity == 'velocity' else 1.0 / fastest for shape in self._shapes]
        scale = np.reshape(size, (-1, len(fastest))).T
        low, high = np.reshape([shape.limits for shape in self._shapes], (-1, 2)).T
        return scale * low, scale * high

    def _motion(
        self,
        velocity: Any,
        shape: Iterable[Any],
        load: Any,
        position: Any,
        functions: Any = np,
        slide: Array | None = None,
        slip: Array | None = None,
    ) -> Motion:
        if load is None and self.needs_load:
            raise IdentificationError('load-dependent friction needs the transmitted torque; got none')
        if position is None and self.needs_position:
            raise IdentificationError(f"friction '{self.name}' depends on the joint positions; got none")
        scale = self.velocity_scale
        slip = velocity if slip is None else slip
        sign = functions.sign(slip) if scale is None else functions.tanh(slip / scale)
        past = None if slide is None else tuple(slide[..., k] for k in range(len(DISTANCES)))
        return Motion(
            velocity=velocity,
            slip=slip,
            sign=sign,
            scale=scale,
            past=past,
            shape=dict(zip(self.shape_names, shape, strict=True)),
            load=load,
            position=position if position is None or self.middle is None else position - self.middle,
            ripple_frequency=0.0 if self.ripple_frequency is None else self.ripple_frequency,
            ripple_limit=self.ripple_limit,
            functions=functions,
        )

    def _columns(self, motion: Motion) -> Array:
        columns = np.empty((*motion.velocity.shape, len(self.linear_names)))
        for k, column in enumerate(column for term in self.terms for column in term.columns(motion)):
            columns[..., k] = column
        return columns

    def columns(
        self,
        velocity: Array,
        shape: Array,
        load: Array | None = None,
        position: Array | None = None,
        slide: Array | None = None,
        slip: Array | None = None,
    ) -> Array:
        """Return the torque per unit of each linear parameter, shape (N, n, k).

        Parameters
        ----------
        velocity : ndarray, shape (N, n)
            [rad/s]
        shape : ndarray, shape (n, s)
        load : ndarray, shape (N, n), optional
            Torque transmitted by the joints, without their own friction [N m].
        position : ndarray, shape (N, n), optional
            For models with a torque ripple or a spring [rad].
        slide : ndarray, shape (N, n, d), optional
            What has built up since the last reversal, over multiples of the presliding distance.
        slip : ndarray, shape (N, n), optional
            The velocity a lag before, of which friction has the direction; by default the velocity [rad/s].

        Raises
        ------
        IdentificationError
            If the model depends on the load or the position, and it is not given.
        """
        return self._columns(self._motion(velocity, shape.T, load, position, slide=slide, slip=slip))

    def basis(
        self,
        velocity: Array,
        shape: Array,
        load: Array | None = None,
        position: Array | None = None,
        slide: Array | None = None,
    ) -> tuple[Array, Array]:
        """Return the columns, and their derivatives with respect to the shape parameters, shape (N, n, k, s).

        Arguments as above.
        """
        motion = self._motion(velocity, shape.T, load, position, slide=slide)
        sensitivity = np.zeros((*velocity.shape, len(self.linear_names), len(self.shape_names)))
        start = 0
        for term in self.terms:
            if term.shape is not None and term.bends is not None:
                at = self.shape_names.index(term.shape.name)
                for k, bend in enumerate(term.bends(motion)):
                    sensitivity[..., start + k, at] = bend
            start += len(term.parameters)
        return self._columns(motion), sensitivity

    def torque(
        self,
        velocity: Array,
        parameters: Array,
        load: Array | None = None,
        position: Array | None = None,
        slide: Array | None = None,
        slip: Array | None = None,
    ) -> Array:
        """Return the friction torque, shape (N, n) [N m], of parameters (n, k + s); other arguments as above."""
        k = len(self.linear_names)
        columns = self.columns(velocity, parameters[:, k:], load, position, slide, slip)
        return np.asarray(np.einsum('Nnk,nk->Nn', columns, parameters[:, :k]))

    def torque_of_motion(self, velocity: Array, parameters: Array, load: Array | None = None) -> Array:
        """Return the friction torque without springs and ripple, shape (N, n) [N m]: no position is needed.

        Arguments as above.
        """
        if not self.needs_position:
            return self.torque(velocity, parameters, load)
        moving = replace(self, terms=tuple(term for term in self.terms if not term.needs_position))
        kept = [*range(len(moving.linear_names)), *range(len(self.linear_names), parameters.shape[1])]
        return moving.torque(velocity, parameters[:, kept], load)

    def expression(
        self, velocity: Any, parameters: Sequence[Any], load: Any = None, position: Any = None, *, functions: Any
    ) -> Any:
        """Return the torque of one joint as an expression, for generated code.

        Parameters
        ----------
        velocity, load, position : symbol
        parameters : sequence of float or symbol, length k + s
        functions : object
            With tanh, exp, abs, sign, arctan, sin and cos of the symbols; these have the arithmetic operators.
        """
        k = len(self.linear_names)
        motion = self._motion(velocity, parameters[k:], load, position, functions)
        columns = (column for term in self.terms for column in term.columns(motion))
        return sum((column * value for column, value in zip(columns, parameters, strict=False)), start=0.0)


def parse_friction(name: str) -> tuple[str, tuple[str, ...]]:
    """Return a name's model and its options, in their order and each once.

    Raises
    ------
    IdentificationError
        If the model or an option is unknown, or an option comes twice.
    """
    base, *options = name.split('+')
    if base == 'auto':
        raise IdentificationError(
            f"friction '{name}': 'auto' chooses model and options itself and takes none; name a model to set options"
            if options
            else "friction model 'auto' has no equation: it lets the data choose one"
        )
    if base not in MODELS:
        message = f"friction model '{base}' is unknown; there are: {', '.join(MODELS)}"
        raise IdentificationError(message, name=base, expected=tuple(MODELS))
    for option in options:
        if option not in FRICTION_OPTIONS:
            message = f"friction option '{option}' is unknown; there are: {', '.join(FRICTION_OPTIONS)}, joined by '+'"
            raise IdentificationError(message, name=option, expected=FRICTION_OPTIONS)
        if options.count(option) > 1:
            message = f"friction '{name}' has the option '{option}' more than once; give it once"
            raise IdentificationError(message, name=option, expected=1, found=options.count(option))
    return base, tuple(option for option in FRICTION_OPTIONS if option in options)


def friction_model(
    name: str,
    *,
    velocity_scale: ArrayLike | None = None,
    ripple_frequency: ArrayLike | None = None,
    ripple_limit: float = 10.0,
    middle: ArrayLike | None = None,
    presliding: ArrayLike | None = None,
    lag: float = 0.0,
) -> FrictionModel:
    """Return a friction model by name.

    Parameters
    ----------
    name : str
        ``coulomb``, ``coulomb_viscous``, ``static``, ``stribeck``, ``daemi_heimann`` or ``levels``, optionally
        followed by options, ``'stribeck+load+offset'``: ``asymmetric`` for parameters of their own for each
        direction, ``load`` for Coulomb friction that grows with the transmitted torque, ``offset`` for a
        constant torque, ``position`` for a torque over the joint's position, ``spring`` for one proportional to it,
        ``ripple`` for a torque periodic in the motor's position.
    velocity_scale : float or array_like, shape (n,), optional
        Replace sign(v) by tanh(v / velocity_scale) [rad/s]; ``levels`` has one always, 0.05 by default.
    ripple_frequency : array_like, shape (n,), optional
        Add a torque ripple of so many radians per radian; needed where the name has ``+ripple``.
    ripple_limit : float
        Fastest ripple that the torque signal shows [Hz].
    middle : array_like, shape (n,), optional
        Position from which springs and ripple count, by default 0 [rad or m].
    presliding : array_like, shape (n,), optional
        Distance over which friction builds up after a reversal [rad or m].
    lag : float
        How long after the recorded motion friction turns [s].

    Raises
    ------
    IdentificationError
        If the name or an option is unknown, or an option comes twice.
    """
    base, options = parse_friction(name)
    if ripple_frequency is None and 'ripple' in options:
        raise IdentificationError("friction option 'ripple' needs the ripple's frequency per joint")
    if ripple_frequency is not None and 'ripple' not in options:
        options = (*options, 'ripple')
    if base == 'levels' and velocity_scale is None:
        velocity_scale = _USUAL_SCALE
    terms = by_direction(MODELS[base]) if 'asymmetric' in options else MODELS[base]
    return FrictionModel(
        name='+'.join((base, *options)),
        terms=(*terms, *(OPTIONS[option] for option in options if option in OPTIONS)),
        velocity_scale=_array(velocity_scale),
        ripple_frequency=_array(ripple_frequency),
        ripple_limit=ripple_limit,
        middle=_array(middle),
        presliding=_array(presliding),
        lag=lag,
    )
