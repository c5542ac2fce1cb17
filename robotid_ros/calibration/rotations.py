# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Rotation vectors: the exponential map of rotations and its inverse, in batches."""

import numpy as np

from robotid_ros.arrays import Array

__all__ = ['nearest_rotation', 'rotation_of_vector', 'vector_of_rotation']


def rotation_of_vector(vector: Array) -> Array:
    """Return exp([v]x), shape (3, 3), of a rotation vector of shape (3,) [rad] (Rodrigues)."""
    angle = float(np.linalg.norm(vector))
    skew = np.array([[0.0, -vector[2], vector[1]], [vector[2], 0.0, -vector[0]], [-vector[1], vector[0], 0.0]])
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(0.5 * angle / np.pi) ** 2
    result: Array = np.eye(3) + first * skew + second * skew @ skew
    return result


def vector_of_rotation(rotation: Array) -> Array:
    """Return the rotation vectors [rad], shape (N, 3), of rotations of shape (N, 3, 3).

    From half the skew part (sine) and the trace (cosine), which keeps full precision for small
    angles; near a half turn, where the skew part vanishes, the axis comes from the symmetric part.
    """
    skew = 0.5 * np.stack(
        [
            rotation[:, 2, 1] - rotation[:, 1, 2],
            rotation[:, 0, 2] - rotation[:, 2, 0],
            rotation[:, 1, 0] - rotation[:, 0, 1],
        ],
        axis=1,
    )
    sine = np.linalg.norm(skew, axis=1)
    cosine = 0.5 * (np.trace(rotation, axis1=1, axis2=2) - 1.0)
    angle = np.arctan2(sine, cosine)
    result: Array = skew / np.maximum(np.sinc(angle / np.pi), 1e-9)[:, None]
    for k in np.flatnonzero(cosine < -0.99):
        outer = 0.5 * (rotation[k] + rotation[k].T) - cosine[k] * np.eye(3)
        column = outer[:, int(np.argmax(np.diag(outer)))]
        axis = column / np.linalg.norm(column)
        result[k] = angle[k] * axis * (-1.0 if axis @ skew[k] < 0.0 else 1.0)
    return result


def nearest_rotation(matrix: Array) -> Array:
    """Return the rotation closest to a 3x3 matrix in the Frobenius norm (Procrustes, Kabsch)."""
    left, _, right = np.linalg.svd(matrix)
    sign = np.array([1.0, 1.0, np.linalg.det(left @ right)])
    result: Array = (left * np.where(sign < 0.0, -1.0, 1.0)) @ right
    return result
