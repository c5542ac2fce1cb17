# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction models by name."""

from collections.abc import Callable

from robotid_ros.arrays import Array
from robotid_ros.errors import IdentificationError
from robotid_ros.friction.coulomb import Coulomb
from robotid_ros.friction.coulomb_viscous import CoulombViscous
from robotid_ros.friction.daemi_heimann import DaemiHeimann
from robotid_ros.friction.options import Asymmetric, LoadDependent, TorqueRipple, WithOffset
from robotid_ros.friction.protocol import FrictionModel
from robotid_ros.friction.static import StaticCoulombViscous
from robotid_ros.friction.stribeck import Stribeck

__all__ = ['FRICTION_MODELS', 'FRICTION_OPTIONS', 'friction_model']

FRICTION_MODELS: dict[str, Callable[..., FrictionModel]] = {
    'coulomb': Coulomb,
    'coulomb_viscous': CoulombViscous,
    'static': StaticCoulombViscous,
    'stribeck': Stribeck,
    'daemi_heimann': DaemiHeimann,
}
FRICTION_OPTIONS = ('asymmetric', 'load', 'offset', 'ripple')


def friction_model(
    name: str,
    *,
    asymmetric: bool = False,
    load_dependent: bool = False,
    offset: bool = False,
    velocity_scale: Array | float | None = None,
    ripple_frequency: Array | None = None,
    ripple_limit: float = 10.0,
) -> FrictionModel:
    """Return a friction model by name.

    Parameters
    ----------
    name : str
        ``coulomb``, ``coulomb_viscous``, ``static``, ``stribeck`` or ``daemi_heimann``, optionally
        followed by options: ``'stribeck+load+offset'``.
    asymmetric, load_dependent, offset : bool
        The same options: parameters of their own for each direction; Coulomb friction that grows
        with the transmitted torque; a constant torque.
    velocity_scale : float or ndarray, shape (n,), optional
        Replace sign(v) by tanh(v / velocity_scale) [rad/s].
    ripple_frequency : ndarray, shape (n,), optional
        Add a torque ripple of so many radians per radian; needed where the name has ``+ripple``.
    ripple_limit : float
        Fastest ripple that the torque signal shows [Hz].

    Raises
    ------
    IdentificationError
        If the name or an option is unknown.
    """
    base, *options = name.split('+')
    if base not in FRICTION_MODELS:
        raise IdentificationError(f"friction model '{base}' is unknown; there are: {', '.join(FRICTION_MODELS)}")
    for option in options:
        if option not in FRICTION_OPTIONS:
            raise IdentificationError(
                f"friction option '{option}' is unknown; there are: {', '.join(FRICTION_OPTIONS)}, joined by '+'"
            )
    model = FRICTION_MODELS[base](velocity_scale=velocity_scale)
    scale = model.velocity_scale
    if asymmetric or 'asymmetric' in options:
        model = Asymmetric(inner=model, velocity_scale=scale)
    if load_dependent or 'load' in options:
        model = LoadDependent(inner=model, velocity_scale=scale)
    if offset or 'offset' in options:
        model = WithOffset(inner=model, velocity_scale=scale)
    if 'ripple' in options and ripple_frequency is None:
        raise IdentificationError("friction option 'ripple' needs the ripple's frequency per joint")
    if ripple_frequency is not None:
        model = TorqueRipple(
            inner=model, velocity_scale=scale, ripple_frequency=ripple_frequency, ripple_limit=ripple_limit
        )
    return model
