# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Batch forward kinematics of a serial arm."""

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.model.robot_model import RobotModel


def joint_motion(model: RobotModel, q: Array) -> Array:
    """Return the motion of each joint, M(axis_i, q_i), shape (N, n, 4, 4): Rodrigues' rotation or a translation.

    The coordinates, shape (N, n), are those of the chain's joints, coupling already applied [rad or m].
    """
    axes = model.axes
    cross = np.zeros((model.n, 3, 3))
    cross[:, [2, 0, 1], [1, 2, 0]] = axes[:, [0, 1, 2]]
    cross[:, [1, 2, 0], [2, 0, 1]] = -axes[:, [0, 1, 2]]
    result = np.zeros((len(q), model.n, 4, 4))
    result[..., :, :] = np.eye(4)
    revolute = np.array([kind == 'revolute' for kind in model.joint_types])
    sine = np.sin(q[:, revolute])[..., None, None]
    versine = (1.0 - np.cos(q[:, revolute]))[..., None, None]
    k = cross[revolute]
    result[:, revolute, :3, :3] += sine * k + versine * (k @ k)
    result[..., :3, 3][:, ~revolute] = q[:, ~revolute, None] * axes[~revolute]
    return result


def link_transforms(model: RobotModel, q: Array) -> Array:
    """Return the pose of every link frame in the base frame, shape (N, n, 4, 4), for joints (N, n) [rad or m].

    T_0i = T_0,i-1 placements_i M(axis_i, q_i)
    """
    chain_q = np.atleast_2d(np.asarray(q, dtype=float)) @ model.coupling.T
    local = model.placements @ joint_motion(model, chain_q)
    result = np.empty_like(local)
    result[:, 0] = local[:, 0]
    for i in range(1, model.n):
        result[:, i] = result[:, i - 1] @ local[:, i]
    return result


def tip_transforms(model: RobotModel, q: Array) -> Array:
    """Return the pose of the tip frame in the base frame, shape (N, 4, 4), for q of shape (N, n)."""
    result: Array = link_transforms(model, q)[:, -1] @ model.tip
    return result
