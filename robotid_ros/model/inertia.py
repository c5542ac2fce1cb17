# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Inertial parameters of one rigid body, and their three equivalent forms.

The one place that fixes their order:

    pi = [Ixx Ixy Ixz Iyy Iyz Izz  mx my mz  m]

with the inertia tensor ``I`` about the *link-frame origin* (kg m^2), the first moments
``m c = [mx my mz]`` (kg m) and the mass ``m`` (kg). ``Ixy`` is the entry of the tensor itself,
that is, minus the product of inertia: Ixy = -integral(x y dm).
"""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model.transforms import rigid_transform

INERTIAL_NAMES = ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz', 'mx', 'my', 'mz', 'm')
INERTIAL_UNITS = ('kg*m^2',) * 6 + ('kg*m',) * 3 + ('kg',)

_ROW, _COLUMN = np.triu_indices(3)


def joint_unit(unit: str, joint_type: str) -> str:
    """Return the unit of a quantity at a joint, given that at a revolute one: 'N*m/rad' is 'N/m' at a prismatic one."""
    if joint_type != 'prismatic':
        return unit
    return unit.replace('kg*m^2', 'kg').replace('N*m', 'N').replace('rad', 'm')


def inertia_matrix(six: Array) -> Array:
    """Return the symmetric tensors, (..., 3, 3), of ``[Ixx Ixy Ixz Iyy Iyz Izz]``, shape (..., 6) [kg m^2]."""
    six = np.asarray(six)
    tensor = np.empty((*six.shape[:-1], 3, 3), dtype=six.dtype)
    tensor[..., _ROW, _COLUMN] = six
    tensor[..., _COLUMN, _ROW] = six
    return tensor


def inertial_parameters(mass: Array | float, com: Array, inertia_com: Array) -> Array:
    """Return pi, shape (..., 10), from mass, centre of mass and the inertia about the centre of mass.

    I = I_com + m (c.c E - c c^T)  (parallel-axis theorem).

    Masses have the shape (...) [kg], centres of mass (..., 3), in the link frame [m], and inertias (..., 3, 3), along
    the link frame's axes [kg m^2].
    """
    mass, com = np.asarray(mass, dtype=float), np.asarray(com, dtype=float)
    square = np.sum(com * com, axis=-1)[..., None, None] * np.eye(3)
    tensor = inertia_com + mass[..., None, None] * (square - com[..., :, None] * com[..., None, :])
    return np.concatenate([tensor[..., _ROW, _COLUMN], mass[..., None] * com, mass[..., None]], axis=-1)


def split_inertial_parameters(pi: Array) -> tuple[Array, Array, Array]:
    """Return mass, centre of mass and inertia about it: the inverse of :func:`inertial_parameters`.

    A body without mass has its centre of mass at the origin. From pi, shape (..., 10): the shapes (...) [kg], (..., 3)
    [m] and (..., 3, 3) [kg m^2].
    """
    pi = np.asarray(pi, dtype=float)
    mass, moment = pi[..., 9], pi[..., 6:9]
    safe = np.where(mass == 0.0, 1.0, mass)
    com = np.where(mass[..., None] == 0.0, 0.0, moment / safe[..., None])
    square = np.sum(com * com, axis=-1)[..., None, None] * np.eye(3)
    shift = mass[..., None, None] * (square - com[..., :, None] * com[..., None, :])
    return mass, com, inertia_matrix(pi[..., :6]) - shift


def pseudo_inertia(pi: Array) -> Array:
    """Return the pseudo-inertias, (..., 4, 4), of pi, (..., 10): positive definite exactly when the body is physical.

    J = [[Sigma, m c], [m c^T, m]],  Sigma = tr(I)/2 E - I  (Wensing, Kim and Slotine, 2018, eq. 14).
    """
    pi = np.asarray(pi)
    tensor = inertia_matrix(pi[..., :6])
    half_trace = 0.5 * np.trace(tensor, axis1=-2, axis2=-1)[..., None, None]
    result = np.empty((*pi.shape[:-1], 4, 4), dtype=pi.dtype)
    result[..., :3, :3] = half_trace * np.eye(3) - tensor
    result[..., :3, 3] = pi[..., 6:9]
    result[..., 3, :3] = pi[..., 6:9]
    result[..., 3, 3] = pi[..., 9]
    return result


def pseudo_inertia_parameters(matrix: Array) -> Array:
    """Return pi, shape (..., 10), from pseudo-inertias, (..., 4, 4): the inverse of :func:`pseudo_inertia`.

    I = tr(Sigma) E - Sigma.
    """
    matrix = np.asarray(matrix)
    sigma = matrix[..., :3, :3]
    tensor = np.trace(sigma, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - sigma
    return np.concatenate([tensor[..., _ROW, _COLUMN], matrix[..., :3, 3], matrix[..., 3, 3][..., None]], axis=-1)


def transform_inertial_parameters(pi: Array, rotation: Array, translation: Array) -> Array:
    """Return the parameters of a body, shape (..., 10), expressed in another frame.

    J_a = T J_b T^T with the homogeneous transform T = [[R, p], [0, 1]] from frame b to frame a.

    pi is in frame b, the result in frame a; the rotation, shape (3, 3), is the orientation of frame b in frame a, the
    translation, shape (3,), its origin there [m].
    """
    transform = rigid_transform(rotation, translation)
    return pseudo_inertia_parameters(transform @ pseudo_inertia(pi) @ transform.T)


def physical_violation(pi: Array) -> str | None:
    """Return why no real body can have these parameters, shape (10,), or None where one can."""
    mass, _, inertia_com = split_inertial_parameters(pi)
    if mass < 0.0:
        return f'the mass is negative ({mass:g} kg)'
    moments = np.linalg.eigvalsh(inertia_com)
    slack = 1e-9 * max(float(np.abs(moments).max()), 1e-12)
    if moments[0] < -slack:
        return f'the inertia about the centre of mass is not positive (smallest moment {moments[0]:.3g} kg m^2)'
    if moments[0] + moments[1] < moments[2] - slack:
        small, middle, large = moments
        return f'the principal moments {small:.3g}, {middle:.3g}, {large:.3g} kg m^2 break the triangle inequality'
    return None
