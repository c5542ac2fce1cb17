# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Whether the efforts of an arm at rest hold its weight at all."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.model import RobotModel

_FRICTION = 0.05
"""What friction holds of an arm at rest, as a part of the effort limits: strain wave drives have about 4 % dry."""
_LEAST = 0.5
"""Least part of the described gravity that efforts hold, whatever the errors of published masses."""


def holds_no_gravity(model: RobotModel, position: Array, torque: Array) -> bool:
    r"""Return whether the torques of an arm at rest cannot be those that hold it, and can be those of friction alone.

    With the described gravity g and the torque tau, both relative to the effort limits, h = g / tau_max and friction of
    at most r = 0.05 per joint,

        | tau . h | <= r |h|_1                    without gravity,
          tau . h   >= |h|^2 / 2 - r |h|_1        with half of it or more.

    Where the two ranges overlap, the pose tells nothing.

    Parameters
    ----------
    position, torque : ndarray, shape (n,)
        At rest, in the coordinates of the description [rad or m, N m or N]. Joints whose torque is not finite, or that
        have no effort limit, are left out.
    """
    limit = model.limits.effort
    known = np.isfinite(torque) & np.isfinite(limit) & (limit > 0.0)
    still = np.zeros((1, model.n))
    described = inverse_dynamics(model, position[None], still, still)[0][known] / limit[known]
    held = float(np.abs(torque[known] / limit[known] @ described))
    friction = _FRICTION * float(np.abs(described).sum())
    return held <= friction < _LEAST * float(described @ described) - friction
