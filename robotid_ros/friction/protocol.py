# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What every joint friction model offers, and what follows from it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError

__all__ = ['BoolArray', 'FrictionBase', 'FrictionBasis', 'FrictionModel', 'Quantity', 'unit_of']

BoolArray: TypeAlias = NDArray[np.bool_]
Quantity: TypeAlias = Literal['force', 'damping', 'velocity', 'inverse velocity', 'ratio']

_UNITS: dict[str, dict[Quantity, str]] = {
    'revolute': {
        'force': 'N*m',
        'damping': 'N*m*s/rad',
        'velocity': 'rad/s',
        'inverse velocity': 's/rad',
        'ratio': '1',
    },
    'prismatic': {'force': 'N', 'damping': 'N*s/m', 'velocity': 'm/s', 'inverse velocity': 's/m', 'ratio': '1'},
}


def unit_of(quantity: Quantity, joint_type: str) -> str:
    """Return the SI unit of a friction parameter of a revolute or a prismatic joint."""
    return _UNITS[joint_type][quantity]


class FrictionBasis(NamedTuple):
    """The linear part of a friction model at given velocities.

    Attributes
    ----------
    columns : ndarray, shape (N, n, k)
        Torque per unit of each linear parameter.
    slope : ndarray, shape (N, n, k)
        Derivative of the columns with respect to the velocity.
    sensitivity : ndarray, shape (N, n, k, s)
        Derivative of the columns with respect to the s shape parameters.
    """

    columns: Array
    slope: Array
    sensitivity: Array


class FrictionModel(Protocol):
    """Friction torque of n independent joints: k linear parameters and s shape parameters each.

        tau_f = sum_k columns_k(v, shape, load) * linear_k

    A joint's parameters stand as ``[linear..., shape...]``; a set of them has shape (n, k + s).
    """

    @property
    def name(self) -> str:
        """What :func:`robotid_ros.friction.friction_model` makes this model from."""
        ...

    @property
    def linear_names(self) -> tuple[str, ...]:
        """Names of the parameters that enter linearly."""
        ...

    @property
    def shape_names(self) -> tuple[str, ...]:
        """Names of the parameters that enter non-linearly."""
        ...

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What each parameter measures, linear ones first."""
        ...

    @property
    def velocity_scale(self) -> Array | None:
        """Width of the smoothed sign of each joint, shape (n,) or (); None for the exact sign."""
        ...

    @property
    def signed(self) -> tuple[bool, ...]:
        """Which linear parameters may be negative without the joint generating energy."""
        ...

    @property
    def generators(self) -> Array:
        """Matrix G, shape (k, k): linear parameters are dissipative exactly when G^-1 linear >= 0 (unsigned rows)."""
        ...

    @property
    def needs_load(self) -> bool:
        """Whether the columns depend on the torque that the joint transmits."""
        ...

    def smoothed(self, velocity_scale: Array | float | None) -> 'FrictionModel':
        """Return the same model with sign(v) replaced by tanh(v / velocity_scale); None restores the sign."""
        ...

    def shape_bounds(self, fastest: Array) -> tuple[Array, Array]:
        """Return physical bounds of the shape parameters, shapes (n, s), given each joint's largest speed (n,)."""
        ...

    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives at velocities and positions (N, n), shape parameters (n, s), loads (N, n)."""
        ...

    def columns(self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None) -> Array:
        """Return the regressor columns of the linear parameters, shape (N, n, k)."""
        ...

    def torque(
        self, velocity: Array, parameters: Array, load: Array | None = None, position: Array | None = None
    ) -> Array:
        """Return the friction torque, shape (N, n), of parameters (n, k + s)."""
        ...

    def jacobian(
        self, velocity: Array, parameters: Array, load: Array | None = None, position: Array | None = None
    ) -> tuple[Array, Array]:
        """Return d tau/d parameters, shape (N, n, k + s), and d tau/d velocity, shape (N, n)."""
        ...

    def dissipates(self, parameters: Array) -> BoolArray:
        """Return per joint whether friction opposes the motion at every velocity, shape (n,) of bool."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FrictionBase(ABC):
    """What all models share: everything here follows from ``basis`` and the names."""

    velocity_scale: Array | None = None

    def __post_init__(self) -> None:
        if self.velocity_scale is None:
            return
        scale = np.array(self.velocity_scale, dtype=float)
        if scale.ndim > 1 or not np.isfinite(scale).all() or (scale <= 0.0).any():
            raise IdentificationError(f'velocity_scale: expected one positive number per joint, got {scale}')
        scale.flags.writeable = False
        object.__setattr__(self, 'velocity_scale', scale)

    @property
    def shape_names(self) -> tuple[str, ...]:
        """Names of the parameters that enter non-linearly."""
        return ()

    @property
    @abstractmethod
    def linear_names(self) -> tuple[str, ...]:
        """Names of the parameters that enter linearly."""

    @property
    def signed(self) -> tuple[bool, ...]:
        """Which linear parameters may be negative without the joint generating energy."""
        return (False,) * len(self.linear_names)

    @property
    def generators(self) -> Array:
        """Matrix G whose non-negative combinations are the dissipative linear parameters."""
        return np.eye(len(self.linear_names))

    @property
    def needs_load(self) -> bool:
        """Whether the columns depend on the torque that the joint transmits."""
        return False

    def shape_bounds(self, fastest: Array) -> tuple[Array, Array]:
        """Return empty bounds: there are no shape parameters."""
        return np.zeros((len(fastest), 0)), np.zeros((len(fastest), 0))

    @abstractmethod
    def basis(
        self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None
    ) -> FrictionBasis:
        """Return columns and derivatives."""

    def columns(self, velocity: Array, shape: Array, load: Array | None = None, position: Array | None = None) -> Array:
        """Return the regressor columns of the linear parameters, shape (N, n, k)."""
        return self.basis(velocity, shape, load, position).columns

    def torque(
        self, velocity: Array, parameters: Array, load: Array | None = None, position: Array | None = None
    ) -> Array:
        """Return the friction torque [N m].

        Parameters
        ----------
        velocity : ndarray, shape (N, n)
            [rad/s]
        parameters : ndarray, shape (n, k + s)
        load : ndarray, shape (N, n), optional
            Torque transmitted by the joints, without their own friction [N m].
        position : ndarray, shape (N, n), optional
            For models with a torque ripple [rad].

        Returns
        -------
        ndarray, shape (N, n)
        """
        k = len(self.linear_names)
        columns = self.columns(velocity, parameters[:, k:], load, position)
        return np.asarray(np.einsum('Nnk,nk->Nn', columns, parameters[:, :k]))

    def jacobian(
        self, velocity: Array, parameters: Array, load: Array | None = None, position: Array | None = None
    ) -> tuple[Array, Array]:
        """Return the derivatives of the torque with respect to parameters and velocity.

        Returns
        -------
        parameters : ndarray, shape (N, n, k + s)
        velocity : ndarray, shape (N, n)
        """
        k = len(self.linear_names)
        basis = self.basis(velocity, parameters[:, k:], load, position)
        bend = np.einsum('Nnks,nk->Nns', basis.sensitivity, parameters[:, :k])
        slope = np.einsum('Nnk,nk->Nn', basis.slope, parameters[:, :k])
        return np.concatenate([basis.columns, bend], axis=-1), slope

    def dissipates(self, parameters: Array) -> BoolArray:
        """Return per joint whether friction opposes the motion at every velocity."""
        k = len(self.linear_names)
        weights = np.linalg.solve(self.generators, parameters[:, :k].T).T
        slack = 1e-9 * np.maximum(np.abs(parameters[:, :k]).max(axis=1, initial=0.0), 1e-12)
        allowed: BoolArray = (weights >= -slack[:, None]) | np.array(self.signed, dtype=np.bool_)
        return np.asarray(np.all(allowed, axis=1))
