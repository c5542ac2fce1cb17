# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Coulomb and viscous friction."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction.direction import direction
from robotid_ros.friction.protocol import FrictionBase, FrictionBasis, Quantity

__all__ = ['CoulombViscous']


@dataclass(frozen=True, slots=True, kw_only=True)
class CoulombViscous(FrictionBase):
    """Friction that grows with speed: tau = coulomb sign(v) + viscous v."""

    @property
    def name(self) -> str:
        """The model's name."""
        return 'coulomb_viscous'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Two linear parameters."""
        return ('coulomb', 'viscous')

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """A torque and a damping."""
        return ('force', 'damping')

    def smoothed(self, velocity_scale: Array | float | None) -> 'CoulombViscous':
        """Return the model with another width of the sign."""
        return replace(self, velocity_scale=velocity_scale)  # type: ignore[arg-type]

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""
        sign, slope = direction(velocity, self.velocity_scale)
        return FrictionBasis(
            np.stack([sign, velocity], axis=-1),
            np.stack([slope, np.ones_like(velocity)], axis=-1),
            np.zeros((*velocity.shape, 2, 0)),
        )
