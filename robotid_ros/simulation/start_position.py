# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Where a simulated arm begins."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model import RobotModel

_CLEARANCE = 0.1


def start_position(model: RobotModel) -> Array:
    """Return where an arm starts, shape (n,) [rad or m]: at zero, or the nearest that is clear of the limits.

    The clearance is 0.1 rad (or m), or a quarter of the range where that is less.
    """
    lower, upper = model.limits.lower, model.limits.upper
    clearance = np.minimum(_CLEARANCE, 0.25 * (upper - lower))
    start: Array = np.clip(np.zeros(model.n), lower + clearance, upper - clearance)
    return start
