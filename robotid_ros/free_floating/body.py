# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A rigid body as mass, centre of mass and inertia about it, and the unknowns of the identification."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.model.inertia import inertia_matrix, inertial_parameters, physical_violation, split_inertial_parameters

_SIX = ((0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2))


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
        center = frozen_array(self.center_of_mass, 'center_of_mass', (3,), ModelError)
        inertia = frozen_array(self.inertia, 'inertia', (3, 3), ModelError)
        object.__setattr__(self, 'mass', float(frozen_array(self.mass, 'mass', (), ModelError)))
        object.__setattr__(self, 'center_of_mass', center)
        object.__setattr__(self, 'inertia', inertia)
        if not self.checked:
            return
        if self.mass <= 0.0:
            raise ModelError(f'mass: expected a positive number of kg, got {self.mass:g}')
        if np.abs(inertia - inertia.T).max() > 1e-9 * max(1.0, np.abs(inertia).max()):
            raise ModelError('inertia: expected a symmetric tensor')
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
            raise ModelError(f'{what}: {cause}') from cause

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and lists."""
        return {
            'mass': self.mass,
            'center_of_mass': self.center_of_mass.tolist(),
            'inertia': self.inertia[_SIX].tolist(),
        }
