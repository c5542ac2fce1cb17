# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The regressor of the last body, and the information of a motion.

Written in the frame of body n, a sample's regressor depends on six numbers only, its angular velocity w and the
momentum of the known bodies u (see :mod:`robotid_ros.free_floating.regression`), and is linear in them:
A(z) = sum_a z_a A_a, z = [w; u]. Over a whole motion

    G = (1/N) sum_k A_k^T A_k = sum_ab S_ab A_a^T A_b,      S = (1/N) sum_k z_k z_k^T,

so a criterion is a function of the 21 second moments S, and its gradient with respect to every sample is
2 z_k dF/dS / N.
"""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.free_floating.spatial import cross_matrix


def body_regressor(motion: Array) -> Array:
    """Return the regressor of samples in the frame of body n.

        A = [ u  [w]x  0        ]
            [ 0  [u]x  Omega(w) ],   Omega(w) = [x y z 0 0 0; 0 x 0 y z 0; 0 0 x 0 y z]

    Parameters
    ----------
    motion : ndarray, shape (N, 6)
        [w; u]: angular velocity of body n [rad/s] and linear momentum of the known bodies less that
        of the whole system [kg m/s], both in the frame of body n.

    Returns
    -------
    ndarray, shape (N, 6, 10)
        Columns [1/m, c (3), Ixx, Ixy, Ixz, Iyy, Iyz, Izz].
    """
    w, u = motion[:, :3], motion[:, 3:]
    result = np.zeros((len(motion), 6, 10))
    result[:, :3, 0] = u
    result[:, :3, 1:4] = cross_matrix(w)
    result[:, 3:, 1:4] = cross_matrix(u)
    result[:, 3, 4:7] = w
    result[:, 4, 5] = w[:, 0]
    result[:, 4, 7:9] = w[:, 1:]
    result[:, 5, 6] = w[:, 0]
    result[:, 5, 8:] = w[:, 1:]
    return result


_UNIT_ROWS = body_regressor(np.eye(6))
_GRAM = np.einsum('aki,bkj->abij', _UNIT_ROWS, _UNIT_ROWS)


def information(motion: Array) -> Array:
    """Return G = (1/N) sum A^T A of a motion [w; u] of shape (N, 6), shape (10, 10)."""
    gram: Array = np.einsum('ab,abij->ij', motion.T @ motion / len(motion), _GRAM)
    return gram


def information_gradient(motion: Array, slope: Array) -> Array:
    """Return the derivative of a function of G by each sample of the motion, shape (N, 6), from that by G (10, 10)."""
    moments = np.einsum('abij,ij->ab', _GRAM, slope)
    gradient: Array = motion @ (moments + moments.T) / len(motion)
    return gradient
