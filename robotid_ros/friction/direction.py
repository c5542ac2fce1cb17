# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The direction of motion, exact or smooth near standstill."""

import numpy as np

from robotid_ros.arrays import Array

__all__ = ['direction']


def direction(velocity: Array, scale: Array | None) -> tuple[Array, Array]:
    """Return sign(v), or tanh(v / scale), and its derivative.

    Parameters
    ----------
    velocity : ndarray, shape (N, n)
        [rad/s]
    scale : ndarray, shape (n,) or (), or None
        Speed at which the smooth sign reaches 76 % [rad/s]; None for the exact sign, whose
        derivative is taken as zero.

    Returns
    -------
    sign, slope : ndarray, shape (N, n)
    """
    if scale is None:
        return np.sign(velocity), np.zeros_like(velocity)
    smooth = np.tanh(velocity / scale)
    return smooth, (1.0 - smooth * smooth) / scale
