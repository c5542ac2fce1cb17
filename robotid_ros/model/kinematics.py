# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Batch forward kinematics of a serial arm."""

from functools import lru_cache

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import cross_matrix


@lru_cache(maxsize=64)
def _parts(model: RobotModel) -> tuple[Array, BoolArray]:
    """Return what the pose of each link in the one before consists of, shape (n, 3, 16), and which joints turn.

    The parts belong to 1, sin q and 1 - cos q of a joint that turns (Rodrigues), and to 1 and q of one that slides.
    """
    revolute = model.revolute
    axes, linear = model.axes, np.zeros((model.n, 4, 4))
    linear[:, :3, :3] = cross_matrix(axes)
    linear[~revolute] = 0.0
    square = linear @ linear
    linear[~revolute, :3, 3] = axes[~revolute]
    parts = np.stack([np.broadcast_to(np.eye(4), linear.shape), linear, square], axis=1)
    return (model.placements[:, None] @ parts).reshape(model.n, 3, 16), revolute


def step_transforms(model: RobotModel, q: Array) -> Array:
    """Return the pose of every link frame in the one before, shape (n, N, 4, 4).

    The coordinates, shape (N, n), are those of the chain's joints, coupling already applied [rad or m].
    """
    parts, revolute = _parts(model)
    factors = np.ones((*q.T.shape, 3))
    factors[..., 1] = np.where(revolute[:, None], np.sin(q.T), q.T)
    factors[..., 2] -= np.cos(q.T)
    result: Array = (factors @ parts).reshape(*q.T.shape, 4, 4)
    return result


def link_transforms(model: RobotModel, q: Array) -> Array:
    """Return the pose of every link frame in the base frame, shape (N, n, 4, 4), for joints (N, n) [rad or m].

    T_0i = T_0,i-1 placements_i M(axis_i, q_i)
    """
    steps = step_transforms(model, np.atleast_2d(np.asarray(q, dtype=float)) @ model.coupling.T)
    result = np.empty((steps.shape[1], model.n, 4, 4))
    pose = result[:, 0] = steps[0]
    for i in range(1, model.n):
        pose = result[:, i] = pose @ steps[i]
    return result


def tip_transforms(model: RobotModel, q: Array) -> Array:
    """Return the pose of the tip frame in the base frame, shape (N, 4, 4), for q of shape (N, n)."""
    result: Array = link_transforms(model, q)[:, -1] @ model.tip
    return result
