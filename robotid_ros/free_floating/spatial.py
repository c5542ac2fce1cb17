# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Spatial vectors, linear part first: twists [v; w], momenta [P; L], both at the base frame's origin."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model.inertia import pseudo_inertia


def cross_matrix(vector: Array) -> Array:
    """Return the matrices [x]x with [x]x y = x cross y, shape (..., 3, 3), for x of shape (..., 3)."""
    result = np.zeros((*vector.shape[:-1], 3, 3))
    result[..., 2, 1], result[..., 0, 2], result[..., 1, 0] = vector[..., 0], vector[..., 1], vector[..., 2]
    result[..., 1, 2], result[..., 2, 0], result[..., 0, 1] = -vector[..., 0], -vector[..., 1], -vector[..., 2]
    return result


def cross(left: Array, right: Array) -> Array:
    """Return the cross product; several times faster than numpy's on batches."""
    x, y, z = left[..., 0], left[..., 1], left[..., 2]
    a, b, c = right[..., 0], right[..., 1], right[..., 2]
    result = np.empty((*np.broadcast_shapes(x.shape, a.shape), 3))
    result[..., 0] = y * c - z * b
    result[..., 1] = z * a - x * c
    result[..., 2] = x * b - y * a
    return result


def bracket(left: Array, right: Array) -> Array:
    """Return the Lie bracket of twists, ad(left) right = [w x v' + v x w'; w x w'], shape (..., 6)."""
    return np.concatenate(
        [
            cross(left[..., 3:], right[..., :3]) + cross(left[..., :3], right[..., 3:]),
            cross(left[..., 3:], right[..., 3:]),
        ],
        axis=-1,
    )


def cobracket(twist: Array, momentum: Array) -> Array:
    """Return ad(twist)^T momentum = -[w x P; v x P + w x L], shape (..., 6)."""
    return -np.concatenate(
        [
            cross(twist[..., 3:], momentum[..., :3]),
            cross(twist[..., :3], momentum[..., :3]) + cross(twist[..., 3:], momentum[..., 3:]),
        ],
        axis=-1,
    )


def moved_pseudo_inertia(pi: Array, transform: Array) -> Array:
    """Return pseudo-inertias T J T^T, shape (..., 4, 4), of bodies (..., 10) whose frames have the poses T."""
    moved: Array = transform @ pseudo_inertia(pi) @ np.swapaxes(transform, -1, -2)
    return moved


def spatial_inertia(pseudo: Array) -> Array:
    """Return spatial inertias, momentum [P; L] = inertia @ twist [v; w], shape (..., 6, 6), from pseudo-inertias.

    [[m E, -[m c]x], [[m c]x, tr(Sigma) E - Sigma]]
    """
    result = np.zeros((*pseudo.shape[:-2], 6, 6))
    sigma, mass = pseudo[..., :3, :3], pseudo[..., 3, 3]
    moment = cross_matrix(pseudo[..., :3, 3])
    result[..., :3, :3] = mass[..., None, None] * np.eye(3)
    result[..., :3, 3:] = -moment
    result[..., 3:, :3] = moment
    result[..., 3:, 3:] = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma
    return result
