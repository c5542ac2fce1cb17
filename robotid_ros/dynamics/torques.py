# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Inverse dynamics of an arm, by the recursion or, for large batches, by the arm's minimal model."""

from collections import OrderedDict
from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import Part, checked_samples, moving
from robotid_ros.dynamics.codegen.cache import content_key
from robotid_ros.dynamics.codegen.minimal_model import MinimalModel, minimal_model
from robotid_ros.dynamics.newton_euler import newton_euler
from robotid_ros.model import RobotModel

__all__ = ['inverse_dynamics']

# From this many samples on the generated model is used: about where a second call has paid for it.
LARGE_BATCH = 4096
_REMEMBERED = 16
_TOLERANCE = 1e-12

_models: OrderedDict[str, MinimalModel] = OrderedDict()


def inverse_dynamics(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    part: Part = 'all',
    rotor_inertia: bool = True,
    friction: bool = False,
) -> Array:
    """Return the joint torques that make the arm move as given.

    tau = M(q) ddq + C(q, dq) dq + g(q) + Ia ddq, and + Fv dq + Fc sign(dq) where friction is asked for.

    A batch of more than a few thousand samples is evaluated by the arm's :func:`minimal_model`, made at
    the first such call (half a second, or from the cache) and some 30 times faster; both ways agree
    to round-off.

    Parameters
    ----------
    model : RobotModel
    q, dq, ddq : ndarray, shape (N, n)
        Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints],
        in measured coordinates where the model has a coupling.
    part : {'all', 'gravity', 'kinetic'}
        All torques, those of gravity alone, or those of motion alone.
    rotor_inertia, friction : bool
        Whether the model's rotor inertia, and its prior viscous and Coulomb friction, take part.

    Returns
    -------
    ndarray, shape (N, n)
        Torques [N m], forces [N] for prismatic joints.

    Raises
    ------
    DataError
        If the shapes do not fit the model.

    References
    ----------
    Luh, Walker and Paul (1980); Khalil and Dombre (2002), eq. 9.86-9.91.
    """
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    rate, change = moving(part, dq, ddq)
    if len(q) < LARGE_BATCH:
        tau = newton_euler(model, q, dq, ddq, part)
    else:
        weighted = replace(model, gravity=np.zeros(3)) if part == 'kinetic' else model
        generated = _generated(weighted)
        tau = generated.inverse_dynamics(q, rate, change, generated.base.map @ model.inertial.ravel())
    if rotor_inertia and model.rotor_inertia.any():
        tau += model.rotor_inertia * change
    if friction:
        tau += model.damping * rate + model.friction * np.sign(rate)
    return tau


def _generated(model: RobotModel) -> MinimalModel:
    """Return the minimal model of the arm's geometry; the last few are remembered."""
    key = content_key(model, {}, 'inverse dynamics')
    found = _models.pop(key, None) or minimal_model(model, tolerance=_TOLERANCE)
    _models[key] = found
    while len(_models) > _REMEMBERED:
        _models.popitem(last=False)
    return found
