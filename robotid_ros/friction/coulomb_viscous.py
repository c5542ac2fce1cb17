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
