# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What combines with any friction model: dependence on direction and load, an offset, a torque ripple."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.friction.direction import direction
from robotid_ros.friction.protocol import FrictionBase, FrictionBasis, FrictionModel, Quantity

__all__ = ['Asymmetric', 'LoadDependent', 'TorqueRipple', 'WithOffset']


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extended(FrictionBase):
    """A friction model around another one."""

    inner: FrictionModel

    @property
    def shape_names(self) -> tuple[str, ...]:
        """The inner model's."""
        return self.inner.shape_names

    @property
    def needs_load(self) -> bool:
        """As the inner model."""
        return self.inner.needs_load

    def shape_bounds(self, fastest: Array) -> tuple[Array, Array]:
        """Return the inner model's bounds."""
        return self.inner.shape_bounds(fastest)

    def smoothed(self, velocity_scale: Array | float | None) -> FrictionModel:
        """Return the model with another width of the sign."""
        inner = self.inner.smoothed(velocity_scale)
        return replace(self, inner=inner, velocity_scale=inner.velocity_scale)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asymmetric(_Extended):
    """Other parameters for each direction of motion: every linear parameter comes twice."""

    @property
    def name(self) -> str:
        """The inner name with its option."""
        return f'{self.inner.name}+asymmetric'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """The inner names, for positive and then for negative velocities."""
        names = self.inner.linear_names
        return tuple(f'{name}_positive' for name in names) + tuple(f'{name}_negative' for name in names)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The inner quantities, twice."""
        k = len(self.inner.linear_names)
        return self.inner.quantities[:k] * 2 + self.inner.quantities[k:]

    @property
    def signed(self) -> tuple[bool, ...]:
        """As the inner model."""
        return self.inner.signed * 2

    @property
    def generators(self) -> Array:
        """The inner generators for each direction."""
        return np.asarray(np.kron(np.eye(2), self.inner.generators), dtype=np.float64)

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""
        inner = self.inner.basis(velocity, shape, load, position)
        ahead = np.where(velocity >= 0.0, 1.0, 0.0)[..., None]

        def split(value: Array, mask: Array) -> Array:
            return np.concatenate([value * mask, value * (1.0 - mask)], axis=2)

        return FrictionBasis(
            split(inner.columns, ahead), split(inner.slope, ahead), split(inner.sensitivity, ahead[..., None])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDependent(_Extended):
    """Coulomb friction that grows with the transmitted torque: adds load |load| sign(v).

    The load is the torque that the joint passes on to its link, without its own friction; a gear
    of efficiency eta has load = 1 - eta to first order (Hamon, Gautier and Garrec, IROS 2010).
    """

    @property
    def name(self) -> str:
        """The inner name with its option."""
        return f'{self.inner.name}+load'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """The inner names and the load coefficient."""
        return (*self.inner.linear_names, 'load')

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The inner quantities and a ratio."""
        k = len(self.inner.linear_names)
        return (*self.inner.quantities[:k], 'ratio', *self.inner.quantities[k:])

    @property
    def signed(self) -> tuple[bool, ...]:
        """The load coefficient must not be negative."""
        return (*self.inner.signed, False)

    @property
    def generators(self) -> Array:
        """The inner generators and the load coefficient."""
        return _bordered(self.inner.generators)

    @property
    def needs_load(self) -> bool:
        """True."""
        return True

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives; the load counts as given."""
        if load is None:
            raise IdentificationError('load-dependent friction needs the transmitted torque; got none')
        inner = self.inner.basis(velocity, shape, load, position)
        sign, slope = direction(velocity, self.velocity_scale)
        magnitude = np.abs(load)
        return _appended(inner, sign * magnitude, slope * magnitude)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithOffset(_Extended):
    """A constant torque beside friction: bias of the current sensor, or friction that differs by direction."""

    @property
    def name(self) -> str:
        """The inner name with its option."""
        return f'{self.inner.name}+offset'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """The inner names and the offset."""
        return (*self.inner.linear_names, 'offset')

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The inner quantities and a torque."""
        k = len(self.inner.linear_names)
        return (*self.inner.quantities[:k], 'force', *self.inner.quantities[k:])

    @property
    def signed(self) -> tuple[bool, ...]:
        """An offset is no friction: it may have either sign."""
        return (*self.inner.signed, True)

    @property
    def generators(self) -> Array:
        """The inner generators and the offset."""
        return _bordered(self.inner.generators)

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""
        inner = self.inner.basis(velocity, shape, load, position)
        return _appended(inner, np.ones_like(velocity), np.zeros_like(velocity))


def _no_ripple() -> Array:
    return np.zeros(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueRipple(_Extended):
    """Torque that goes up and down with the position of the motor's shaft.

        tau_r = (ripple_sin sin(nu q) + ripple_cos cos(nu q)) / (1 + (nu v / (2 pi limit))^4)

    Cogging of the motor and the kinematic error of a strain-wave gear repeat two to four times per
    turn of the motor, nu = 2 N or 4 N in joint angle behind a gear of ratio N (Kennedy and Desai,
    IEEE/ASME Trans. Mechatronics 10 (2005)). What comes faster than the torque signal can show is
    left out by the denominator. At creeping speed the ripple can exceed Coulomb friction.

    Attributes
    ----------
    ripple_frequency : ndarray, shape (n,)
        nu of each joint [1/rad]; 0 for a joint without ripple.
    ripple_limit : float
        Fastest ripple that the torque signal shows [Hz].
    """

    ripple_frequency: Array = field(default_factory=_no_ripple)
    ripple_limit: float = 10.0

    def __post_init__(self) -> None:
        FrictionBase.__post_init__(self)
        frequency = np.array(self.ripple_frequency, dtype=float)
        if not (np.isfinite(frequency).all() and (frequency >= 0.0).all() and self.ripple_limit > 0.0):
            raise IdentificationError(f'ripple_frequency: expected numbers of at least 0, got {frequency}')
        frequency.flags.writeable = False
        object.__setattr__(self, 'ripple_frequency', frequency)

    @property
    def name(self) -> str:
        """The inner name with its option."""
        return f'{self.inner.name}+ripple'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """The inner names and two amplitudes."""
        return (*self.inner.linear_names, 'ripple_sin', 'ripple_cos')

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """The inner quantities and two torques."""
        k = len(self.inner.linear_names)
        return (*self.inner.quantities[:k], 'force', 'force', *self.inner.quantities[k:])

    @property
    def signed(self) -> tuple[bool, ...]:
        """A ripple takes and gives back: its amplitudes may have either sign."""
        return (*self.inner.signed, True, True)

    @property
    def generators(self) -> Array:
        """The inner generators and the amplitudes."""
        return _bordered(_bordered(self.inner.generators))

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""
        if position is None:
            raise IdentificationError('a torque ripple needs the joint positions; got none')
        inner = self.inner.basis(velocity, shape, load, position)
        nu = self.ripple_frequency
        pace = nu * velocity / (2.0 * np.pi * self.ripple_limit)
        damping = np.where(nu > 0.0, 1.0, 0.0) / (1.0 + pace**4)
        bend = -4.0 * pace**3 * nu / (2.0 * np.pi * self.ripple_limit) * damping * damping
        wave = np.sin(nu * position), np.cos(nu * position)
        return _appended(_appended(inner, wave[0] * damping, wave[0] * bend), wave[1] * damping, wave[1] * bend)


def _bordered(generators: Array) -> Array:
    k = len(generators)
    result = np.eye(k + 1)
    result[:k, :k] = generators
    return result


def _appended(inner: FrictionBasis, column: Array, slope: Array) -> FrictionBasis:
    flat = np.zeros((*column.shape, 1, inner.sensitivity.shape[-1]))
    return FrictionBasis(
        np.concatenate([inner.columns, column[..., None]], axis=2),
        np.concatenate([inner.slope, slope[..., None]], axis=2),
        np.concatenate([inner.sensitivity, flat], axis=2),
    )


if TYPE_CHECKING:  # the models satisfy the protocol

    def _check(inner: FrictionModel) -> tuple[FrictionModel, ...]:
        return Asymmetric(inner=inner), LoadDependent(inner=inner), WithOffset(inner=inner), TorqueRipple(inner=inner)
