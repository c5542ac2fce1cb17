# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Geometry for the recursions: each link in a frame whose z axis is the joint's axis."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, TypeAlias, cast

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import transform_inertial_parameters

Part: TypeAlias = Literal['all', 'gravity', 'kinetic']
"""Part of the torques: all, gravity alone (at rest), or motion alone (without gravity)."""


def aligned_chain(model: RobotModel) -> tuple[Array, Array, Array, Array]:
    """Return the model's geometry with every joint axis along z.

    Returns
    -------
    rotations : ndarray, shape (n, 3, 3)
        Constant orientation of aligned frame i at q = 0 in aligned frame i - 1.
    offsets : ndarray, shape (n, 3)
        Origin of frame i at q = 0 in aligned frame i - 1 [m].
    slides : ndarray, shape (n, 3)
        Along which origin i moves, in aligned frame i - 1; zero for a revolute joint.
    to_aligned : ndarray, shape (n, 10, 10)
        Inertial parameters in the aligned frame from those in the link frame; the identity where both are the same.

    All of them are read-only: models of one geometry, under other gravities say, have the same arrays.
    """
    return _aligned_chain(model.joint_types, model.placements.tobytes(), model.axes.tobytes())


@lru_cache(maxsize=64)
def _aligned_chain(joint_types: tuple[str, ...], placements: bytes, axes: bytes) -> tuple[Array, Array, Array, Array]:
    n = len(joint_types)
    align = np.stack([_alignment(axis) for axis in np.frombuffer(axes).reshape(n, 3)])
    rotations, slides = np.empty((n, 3, 3)), np.zeros((n, 3))
    offsets = np.empty((n, 3))
    previous = np.eye(3)
    for k, placement in enumerate(np.frombuffer(placements).reshape(n, 4, 4)):
        rotations[k] = previous.T @ placement[:3, :3] @ align[k]
        offsets[k] = previous.T @ placement[:3, 3]
        if joint_types[k] == 'prismatic':
            slides[k] = rotations[k][:, 2]
        previous = align[k]
    to_aligned = np.stack([transform_inertial_parameters(np.eye(10), e.T, np.zeros(3)).T for e in align])
    for array in (rotations, offsets, slides, to_aligned):
        array.flags.writeable = False
    return rotations, offsets, slides, to_aligned


def checked_samples(model: RobotModel, **arrays: Array) -> list[Array]:
    """Return the arrays as float64 after checking that each has shape (N, n) with one N.

    Raises a DataError naming the array whose shape does not fit.
    """
    checked = [np.asarray(value, dtype=np.float64) for value in arrays.values()]
    for name, value in zip(arrays, checked, strict=True):
        if value.ndim != 2 or value.shape[1] != model.n:
            raise DataError(f'{name}: expected shape (N, {model.n}), one row per sample, got {value.shape}')
        if value.shape[0] != checked[0].shape[0]:
            first = next(iter(arrays))
            raise DataError(f'{name}: expected {checked[0].shape[0]} samples as in {first}, got {value.shape[0]}')
    return checked


def checked_output(out: Array | None, shape: tuple[int, ...], given: Sequence[Array]) -> Array:
    """Return the array to write a result to: a new one, or the caller's.

    Raises a DataError if the caller's is not a writeable C-contiguous float64 array of this shape, or shares memory
    with an input.
    """
    if out is None:
        return np.empty(shape)
    problem, anything = '', cast('object', out)
    if not isinstance(anything, np.ndarray):
        problem = f'got {type(anything).__name__}'
    elif out.shape != shape:
        problem = f'got shape {out.shape}'
    elif out.dtype != np.float64 or not out.dtype.isnative:
        problem = f'got {out.dtype}'
    elif not out.flags.c_contiguous:
        problem = 'got one that is not contiguous; give a whole array or whole rows of one'
    elif not out.flags.writeable:
        problem = 'got one that is read-only'
    elif any(np.may_share_memory(out, x) for x in given):
        problem = 'got one that shares memory with an input'
    if problem:
        raise DataError(f'out: expected a writeable C-contiguous float64 array of shape {shape}, {problem}')
    return out


def moving(part: Part, dq: Array, ddq: Array) -> tuple[Array, Array]:
    """Return the velocities and accelerations of a part: zero for gravity alone.

    Raises a DataError if there is no such part.
    """
    if part not in ('all', 'gravity', 'kinetic'):
        raise DataError(f"part: expected 'all', 'gravity' or 'kinetic', got {part!r}")
    if part == 'gravity':
        return np.zeros_like(dq), np.zeros_like(ddq)
    return dq, ddq


def _alignment(axis: Array) -> Array:
    """Return a rotation whose third column is the axis; exact, and sparse, for axes along x, y and z."""
    if np.array_equal(axis, [0.0, 0.0, 1.0]):
        return np.eye(3)
    return frame_along(np.eye(3)[2 - int(np.argmin(np.abs(axis[::-1])))], axis)


def frame_along(x: Array, z: Array) -> Array:
    """Return the rotation, shape (3, 3), whose third column is a unit vector z, and whose first is x across it."""
    x = x - z * (x @ z)
    x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z])
