# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Homogeneous transforms, 4x4, of elementary motions and of URDF origins."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array

__all__ = [
    'inverse_transform',
    'rotation_x',
    'rotation_y',
    'rotation_z',
    'rpy_rotation',
    'rpy_of_rotation',
    'translation',
]


def _snap(value: float) -> float:
    """Return the number without the round-off of cos(pi/2): exact right angles stay exact zeros."""
    nearest = round(value)
    return float(nearest) if abs(value - nearest) < 1e-15 else value


def _plane_rotation(angle: float, first: int, second: int) -> Array:
    cosine, sine = _snap(float(np.cos(angle))), _snap(float(np.sin(angle)))
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


def rpy_rotation(roll: float, pitch: float, yaw: float) -> Array:
    """Return Rz(yaw) Ry(pitch) Rx(roll), URDF's convention, angles in rad, shape (4, 4)."""
    return rotation_z(yaw) @ rotation_y(pitch) @ rotation_x(roll)


def rpy_of_rotation(rotation: Array) -> Array:
    """Return ``[roll, pitch, yaw]`` [rad] of a rotation: the inverse of :func:`rpy_rotation`.

    At pitch = +-90 deg, where only yaw -+ roll is determined, roll is set to zero.

    Parameters
    ----------
    rotation : ndarray, shape (3, 3) or (4, 4)

    Returns
    -------
    ndarray, shape (3,)
    """
    cosine = np.hypot(rotation[0, 0], rotation[1, 0])
    pitch = np.arctan2(-rotation[2, 0], cosine)
    if cosine < 1e-9:
        return np.array([0.0, pitch, np.arctan2(-rotation[0, 1], rotation[1, 1])])
    roll = np.arctan2(rotation[2, 1], rotation[2, 2])
    return np.array([roll, pitch, np.arctan2(rotation[1, 0], rotation[0, 0])])


def inverse_transform(transform: Array) -> Array:
    """Return the inverse of rigid transforms, shape (..., 4, 4)."""
    result = np.zeros_like(transform)
    rotation = np.swapaxes(transform[..., :3, :3], -1, -2)
    result[..., :3, :3] = rotation
    result[..., :3, 3] = -np.einsum('...ij,...j->...i', rotation, transform[..., :3, 3])
    result[..., 3, 3] = 1.0
    return result
