# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Static, Coulomb and viscous friction."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.friction.direction import direction
from robotid_ros.friction.protocol import FrictionBase, FrictionBasis, Quantity

__all__ = ['StaticCoulombViscous']


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticCoulombViscous(FrictionBase):
    """Friction with a break-away level of its own.

        tau = static sign(v)                 where |v| < breakaway_speed
        tau = coulomb sign(v) + viscous v    elsewhere

    At rest friction is whatever balances the load, up to the static level; the model then says
    zero, the middle of that interval.

    Attributes
    ----------
    breakaway_speed : float
        Speed below which the joint counts as sticking [rad/s].
    """

    breakaway_speed: float = 0.01

    def __post_init__(self) -> None:
        FrictionBase.__post_init__(self)
        if not (np.isfinite(self.breakaway_speed) and self.breakaway_speed > 0.0):
            raise IdentificationError(f'breakaway_speed: expected a positive speed, got {self.breakaway_speed}')

    @property
    def name(self) -> str:
        """The model's name."""
        return 'static'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Three linear parameters."""
        return ('coulomb', 'static', 'viscous')

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Two torques and a damping."""
        return ('force', 'force', 'damping')

    def smoothed(self, velocity_scale: Array | float | None) -> 'StaticCoulombViscous':
        """Return the model with another width of the sign."""
        return replace(self, velocity_scale=velocity_scale)  # type: ignore[arg-type]

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives; the step between the two levels counts as flat."""
        sign, slope = direction(velocity, self.velocity_scale)
        sliding = np.abs(velocity) >= self.breakaway_speed
        return FrictionBasis(
            np.stack([sign * sliding, sign * ~sliding, velocity * sliding], axis=-1),
            np.stack([slope * sliding, slope * ~sliding, sliding.astype(float)], axis=-1),
            np.zeros((*velocity.shape, 3, 0)),
        )
