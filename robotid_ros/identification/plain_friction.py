# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Coulomb and viscous friction, as a URDF has them, closest to any friction model."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.friction import FrictionModel
from robotid_ros.identification.information import BaseRegressor
from robotid_ros.identification.samples import Samples

_SAMPLES = 20000  # at most


def plain_friction(
    base: BaseRegressor,
    friction: FrictionModel,
    base_values: Array,
    friction_parameters: Array,
    samples: Samples,
    drives: Array,
) -> Array:
    """Return the Coulomb and viscous friction closest to a friction model along a motion.

        min sum w (tau_f(v, load, q) - fc sign v - fv v - o)^2,  fc, fv >= 0

    They differ from the model's own Coulomb and viscous parameters, which are only a part of the friction beside
    an arctangent, a Stribeck or a load term. The offset o is not returned.

    Parameters
    ----------
    base, friction : BaseRegressor, FrictionModel
    base_values : ndarray, shape (b,)
    friction_parameters : ndarray, shape (n, k + s)
    samples : Samples
        Positions, speeds and loads along the motion.
    drives : ndarray, shape (n, n)
        Motors over joints; the friction returned is that of the joints.

    Returns
    -------
    ndarray, shape (n, 2)
        Coulomb friction [N m] and viscous friction [N m s/rad].
    """
    from scipy.optimize import nnls  # not at the top: see robotid_ros.signals.filtering

    part = samples.thinned(_SAMPLES)
    load = base.regressor(part.q, part.dq, part.ddq) @ base_values
    torque = friction.torque(part.dq, friction_parameters, load, part.q) @ drives
    speeds = part.dq @ np.linalg.inv(drives).T
    result = np.empty((part.n, 2))
    for j in range(part.n):
        speed, root = speeds[:, j], np.sqrt(part.weight[:, j])
        ones = np.ones_like(speed)
        rows = np.stack([np.sign(speed), speed, ones, -ones], axis=1)
        result[j] = nnls(root[:, None] * rows, root * torque[:, j])[0][:2]
    return result
