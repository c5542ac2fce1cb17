# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Rotations and homogeneous transforms: the one place where their conventions are fixed.

Quaternions have the scalar first, (w, x, y, z). Batches are scipy's; the elementary rotations and URDF's angles are
written out, because right angles must give exact zeros, from which the minimal model finds the structure.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from robotid_ros.arrays import Array


def exact(value: float) -> float:
    """Return a number without the round-off of cos(pi/2) and of products of it: exact right angles stay exact zeros."""
    nearest = round(value)
    return float(nearest) if abs(value - nearest) < 1e-15 else value


def _plane_rotation(angle: float, first: int, second: int) -> Array:
    cosine, sine = exact(float(np.cos(angle))), exact(float(np.sin(angle)))
    result = np.eye(4)
    result[first, first] = result[second, second] = cosine
    result[first, second], result[second, first] = -sine, sine
    return result


def rotation_x(angle: float) -> Array:
    """Return the rotation about x by an angle [rad], shape (4, 4)."""
    return _plane_rotation(angle, 1, 2)


def rotation_y(angle: float) -> Array:
    """Return the rotation about y by an angle [rad], shape (4, 4)."""
    return _plane_rotation(angle, 2, 0)


def rotation_z(angle: float) -> Array:
    """Return the rotation about z by an angle [rad], shape (4, 4)."""
    return _plane_rotation(angle, 0, 1)


def translation(vector: Sequence[float] | Array) -> Array:
    """Return the translation by a vector of shape (3,) [m], shape (4, 4)."""
    result = np.eye(4)
    result[:3, 3] = vector
    return result


def cross_matrix(vector: Array) -> Array:
    """Return the matrices [x]x with [x]x y = x cross y, shape (..., 3, 3), for x of shape (..., 3)."""
    result = np.zeros((*vector.shape[:-1], 3, 3))
    result[..., [2, 0, 1], [1, 2, 0]] = vector
    result[..., [1, 2, 0], [2, 0, 1]] = -vector
    return result


def rigid_transform(rotation: Array, origin: Sequence[float] | Array) -> Array:
    """Return the transform with a rotation, shape (3, 3), and an origin, shape (3,) [m]; shape (4, 4)."""
    result = translation(origin)
    result[:3, :3] = rotation
    return result


def rpy_rotation(roll: float, pitch: float, yaw: float) -> Array:
    """Return Rz(yaw) Ry(pitch) Rx(roll), URDF's convention, angles in rad, shape (4, 4)."""
    return rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll)


def rpy_of_rotation(rotation: Array) -> Array:
    """Return ``[roll, pitch, yaw]`` [rad] of a rotation, (3, 3) or (4, 4): the inverse of :func:`rpy_rotation`.

    At pitch = +-90 deg, where only yaw -+ roll is determined, roll is set to zero.
    """
    cosine = np.hypot(rotation[0, 0], rotation[1, 0])
    pitch = np.arctan2(-rotation[2, 0], cosine)
    if cosine < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-rotation[0, 1], rotation[1, 1])])
    roll = np.arctan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, np.arctan2(rotation[1, 0], rotation[0, 0])])


def _rotations() -> Any:
    """Return scipy's ``Rotation``: its import takes a quarter of a second, and most processes need none."""
    from scipy.spatial.transform import Rotation

    return Rotation


def rotation_of_vector(vector: Array) -> Array:
    """Return the rotations exp([v]x), shape (..., 3, 3), of rotation vectors [rad], shape (..., 3)."""
    return np.asarray(_rotations().from_rotvec(vector).as_matrix())


def vector_of_rotation(rotation: Array) -> Array:
    """Return the rotation vectors [rad], shape (..., 3), of rotations, shape (..., 3, 3)."""
    return np.asarray(_rotations().from_matrix(rotation).as_rotvec())


def rotation_of_quaternion(quaternion: Array) -> Array:
    """Return the rotations, shape (..., 3, 3), of quaternions (w, x, y, z), which are normalised here."""
    return np.asarray(_rotations().from_quat(np.roll(quaternion, -1, axis=-1)).as_matrix())


def quaternion_of_rotation(rotation: Array) -> Array:
    """Return the unit quaternions (w, x, y, z), w >= 0, of rotations, shape (..., 3, 3)."""
    quaternion = np.roll(_rotations().from_matrix(rotation).as_quat(), 1, axis=-1)
    return np.asarray(np.where(quaternion[..., :1] < 0.0, -quaternion, quaternion))


def axis_quaternion(direction: Array) -> Array:
    """Return the shortest rotation that turns the z axis into a direction, shape (3,), as a quaternion (w, x, y, z).

    (1 + d_z, -d_y, d_x, 0), normalised, with the unit vector d; half a turn about x where d is -z, none where it is 0.
    """
    size = float(np.linalg.norm(direction))
    x, y, z = direction / size if size > 0.0 else (0.0, 0.0, 1.0)
    quaternion = np.array([1.0 + z, -y, x, 0.0])
    length = float(np.linalg.norm(quaternion))
    return quaternion / length if length > 1e-9 else np.array([0.0, 1.0, 0.0, 0.0])


def mean_quaternion(quaternion: Array) -> Array:
    """Return the mean rotation of quaternions (w, x, y, z) of shape (N, 4), shape (4,)."""
    mean = _rotations().from_quat(np.roll(quaternion, -1, axis=-1)).mean()
    return quaternion_of_rotation(mean.as_matrix())


def nearest_rotation(matrix: Array) -> Array:
    """Return the rotation closest to a 3x3 matrix in the Frobenius norm (Procrustes; Kabsch 1976).

    scipy's ``Rotation.align_vectors`` warns of point sets on a line and ``Rotation.from_matrix`` refuses
    reflections; both occur during the search for frames, where any rotation is acceptable.
    """
    left, _, right = np.linalg.svd(matrix)
    sign = np.where(np.linalg.det(left @ right) < 0.0, -1.0, 1.0)
    result: Array = (left * np.array([1.0, 1.0, sign])) @ right
    return result
