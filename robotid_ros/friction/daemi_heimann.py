# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Daemi-Heimann friction."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction.direction import direction
from robotid_ros.friction.protocol import FrictionBase, FrictionBasis, Quantity

__all__ = ['DaemiHeimann']


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemiHeimann(FrictionBase):
    """Friction with an arctangent term.

        tau = coulomb sign(v) + viscous v + arctan_gain arctan(arctan_rate v)

    Daemi and Heimann, 1996. A negative gain lets friction fall with speed as Stribeck's does; the
    joint dissipates at every speed exactly when coulomb, viscous and coulomb + arctan_gain pi/2
    are not negative, which the generators spell out.
    """

    @property
    def name(self) -> str:
        """The model's name."""
        return 'daemi_heimann'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Three linear parameters."""
        return ('coulomb', 'viscous', 'arctan_gain')

    @property
    def shape_names(self) -> tuple[str, ...]:
        """How fast the arctangent saturates."""
        return ('arctan_rate',)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Torques, a damping and an inverse velocity."""
        return ('force', 'damping', 'force', 'inverse velocity')

    @property
    def generators(self) -> Array:
        """Break-away level, viscous friction and the level at high speed generate the dissipative set."""
        return np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-2.0 / np.pi, 0.0, 2.0 / np.pi]])

    def smoothed(self, velocity_scale: Array | float | None) -> 'DaemiHeimann':
        """Return the model with another width of the sign."""
        return replace(self, velocity_scale=velocity_scale)  # type: ignore[arg-type]

    def shape_bounds(self, fastest: Array) -> tuple[Array, Array]:
        """Return rates at which the arctangent is nearly linear, and nearly a step, over the range."""
        return 0.5 / fastest[:, None], 1e2 / fastest[:, None]

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""
        sign, slope = direction(velocity, self.velocity_scale)
        rate = shape[:, 0]
        argument = rate * velocity
        bell = 1.0 / (1.0 + argument * argument)
        zero = np.zeros_like(velocity)
        return FrictionBasis(
            np.stack([sign, velocity, np.arctan(argument)], axis=-1),
            np.stack([slope, np.ones_like(velocity), rate * bell], axis=-1),
            np.stack([zero, zero, velocity * bell], axis=-1)[..., None],
        )
