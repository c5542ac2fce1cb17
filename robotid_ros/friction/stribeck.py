# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Stribeck friction."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction.direction import direction
from robotid_ros.friction.protocol import FrictionBase, FrictionBasis, Quantity

__all__ = ['Stribeck']


@dataclass(frozen=True, slots=True, kw_only=True)
class Stribeck(FrictionBase):
    """Friction that falls from a static to a Coulomb level as the lubricant film builds up.

        tau = (coulomb + (static - coulomb) exp(-(v / stribeck_velocity)^2)) sign(v) + viscous v

    Armstrong-Helouvry, Dupont and Canudas de Wit, Automatica 30 (1994), eq. 5, with exponent 2.
    """

    @property
    def name(self) -> str:
        """The model's name."""
        return 'stribeck'

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Three linear parameters."""
        return ('coulomb', 'static', 'viscous')

    @property
    def shape_names(self) -> tuple[str, ...]:
        """The speed at which the film builds up."""
        return ('stribeck_velocity',)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """Two torques, a damping and a velocity."""
        return ('force', 'force', 'damping', 'velocity')

    def smoothed(self, velocity_scale: Array | float | None) -> 'Stribeck':
        """Return the model with another width of the sign."""
        return replace(self, velocity_scale=velocity_scale)  # type: ignore[arg-type]

    def shape_bounds(self, fastest: Array) -> tuple[Array, Array]:
        """Return a hundredth and the whole of the largest speed."""
        return 1e-2 * fastest[:, None], fastest[:, None]

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""
        sign, slope = direction(velocity, self.velocity_scale)
        width = shape[:, 0]
        ratio = velocity / width
        film = np.exp(-ratio * ratio)
        film_slope = -2.0 * ratio / width * film
        film_bend = 2.0 * ratio * ratio / width * film
        zero = np.zeros_like(velocity)
        return FrictionBasis(
            np.stack([sign * (1.0 - film), sign * film, velocity], axis=-1),
            np.stack(
                [slope * (1.0 - film) - sign * film_slope, slope * film + sign * film_slope, np.ones_like(velocity)],
                axis=-1,
            ),
            np.stack([-sign * film_bend, sign * film_bend, zero], axis=-1)[..., None],
        )
