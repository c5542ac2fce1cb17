# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A rigid body and its unknowns; spatial vectors, linear part first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, freeze_fields, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model.inertia import (
    inertia_matrix,
    inertial_parameters,
    physical_violation,
    split_inertial_parameters,
)
from robotid_ros.model.transforms import cross_matrix

_SIX = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))


def cross(left: Array, right: Array) -> Array:
    """Return the cross product; several times faster than numpy's on batches."""
    x, y, z = left[..., 0], left[..., 1], left[..., 2]
    a, b, c = right[..., 0], right[..., 1], right[..., 2]
    result = np.empty((*np.broadcast_shapes(x.shape, a.shape), 3))
    result[..., 0] = y * c - z * b
    result[..., 1] = z * a - x * c
    result[..., 2] = x * b - y * a
    return result


def bracket(left: Array, right: Array) -> Array:
    """Return the Lie bracket of twists, ad(left) right = [w x v' + v x w'; w x w'], shape (..., 6)."""
    linear = cross(left[..., 3:], right[..., :3]) + cross(left[..., :3], right[..., 3:])
    return np.concatenate([linear, cross(left[..., 3:], right[..., 3:])], axis=-1)


def spatial_inertia(pseudo: Array) -> Array:
    """Return spatial inertias, momentum [P; L] = inertia @ twist [v; w], shape (..., 6, 6), from pseudo-inertias.

    [[m E, -[m c]x], [[m c]x, tr(Sigma) E - Sigma]]
    """
    result = np.zeros((*pseudo.shape[:-2], 6, 6))
    sigma, mass = pseudo[..., :3, :3], pseudo[..., 3, 3]
    moment = cross_matrix(pseudo[..., :3, 3])
    result[..., :3, :3] = mass[..., None, None] * np.eye(3)
    result[..., :3, 3:] = -moment
    result[..., 3:, :3] = moment
    result[..., 3:, 3:] = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class RigidBody:
    """Mass, centre of mass and inertia about the centre of mass, in the frame of the last link.

    Off-diagonal entries of ``inertia`` are those of the tensor itself, Ixy = -integral(x y dm).

    Attributes
    ----------
    mass : float
        [kg]
    center_of_mass : ndarray, shape (3,)
        [m]
    inertia : ndarray, shape (3, 3)
        About the centre of mass [kg m^2].

    Raises
    ------
    ModelError
        If shapes are wrong, the mass is not positive or no real body has these values. An estimate,
        which may be any of that, is made by :meth:`estimated`.
    """

    mass: float
    center_of_mass: Array
    inertia: Array
    checked: bool = True

    def __post_init__(self) -> None:
        freeze_fields(self, ModelError, {'mass': (), 'center_of_mass': (3,), 'inertia': (3, 3)})
        object.__setattr__(self, 'mass', float(self.mass))
        inertia = self.inertia
        if not self.checked:
            return
        if self.mass <= 0.0:
            raise ModelError(f'mass: expected a positive number of kg, got {self.mass:g}', name='mass', found=self.mass)
        if np.abs(inertia - inertia.T).max() > 1e-9 * max(1.0, np.abs(inertia).max()):
            raise ModelError('inertia: expected a symmetric tensor', name='inertia')
        reason = self.violation
        if reason is not None:
            raise ModelError(f'no real body has these inertial parameters: {reason}')

    @property
    def parameters(self) -> Array:
        """The ten standard inertial parameters, inertia about the frame's origin, shape (10,)."""
        return inertial_parameters(self.mass, self.center_of_mass, self.inertia)

    @property
    def unknowns(self) -> Array:
        """The unknowns of the identification, [1/m, c, I about c], shape (10,)."""
        return np.concatenate([[1.0 / self.mass], self.values[1:]])

    @property
    def values(self) -> Array:
        """Mass, centre of mass and inertia about it, [m, c, I about c], shape (10,) [kg, m, kg m^2]."""
        return np.concatenate([[self.mass], self.center_of_mass, self.inertia[_SIX]])

    @property
    def violation(self) -> str | None:
        """Why no real body has these values; None where one can."""
        return physical_violation(self.parameters)

    @classmethod
    def from_parameters(cls, parameters: Array) -> 'RigidBody':
        """Return the body of ten standard inertial parameters, unchecked: an estimate may be unphysical."""
        mass, center, inertia = split_inertial_parameters(parameters)
        return cls(mass=float(mass), center_of_mass=center, inertia=inertia, checked=False)

    @classmethod
    def estimated(cls, unknowns: Array) -> 'RigidBody':
        """Return the body of estimated unknowns, unchecked."""
        mass = 1.0 / unknowns[0] if unknowns[0] != 0.0 else np.inf
        if not np.isfinite(mass):
            raise ModelError('an estimate with 1/m = 0 is no body')
        return cls(mass=mass, center_of_mass=unknowns[1:4], inertia=inertia_matrix(unknowns[4:]), checked=False)

    def scaled(self, *, mass: float = 1.0, center_of_mass: float = 1.0, inertia: float = 1.0) -> 'RigidBody':
        """Return a body with each of the three multiplied by a factor, as a prior that is off."""
        return RigidBody(
            mass=mass * self.mass, center_of_mass=center_of_mass * self.center_of_mass, inertia=inertia * self.inertia
        )

    @classmethod
    def from_dict(cls, content: Any, what: str) -> 'RigidBody':
        """Read a body from plain numbers: the inverse of :meth:`to_dict`.

        Parameters
        ----------
        content : mapping
            ``mass`` [kg], ``center_of_mass`` (3) [m], ``inertia`` (Ixx Ixy Ixz Iyy Iyz Izz) about the
            centre of mass [kg m^2].
        what : str
            How the message calls it.

        Raises
        ------
        ModelError
            If an entry is missing, unknown or no number.
        """
        wanted = ('mass', 'center_of_mass', 'inertia')
        if not isinstance(content, Mapping) or set(content) != set(wanted):
            got = ', '.join(map(str, content)) if isinstance(content, Mapping) else repr(content)
            raise ModelError(f'{what}: expected {", ".join(wanted)}; got {got or "nothing"}')
        try:
            six = frozen_array(content['inertia'], 'inertia (Ixx Ixy Ixz Iyy Iyz Izz)', (6,), ModelError)
            return cls(mass=content['mass'], center_of_mass=content['center_of_mass'], inertia=inertia_matrix(six))
        except ModelError as cause:
            raise cause.within(what) from cause

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {
            'mass': self.mass,
            'center_of_mass': self.center_of_mass.tolist(),
            'inertia': self.inertia[_SIX].tolist(),
        }
