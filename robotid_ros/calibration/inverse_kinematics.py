# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Joint coordinates at which the calibrated arm has the pose that the nominal arm should have."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray, frozen_array
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.errors import CalibrationError
from robotid_ros.model.transforms import vector_of_rotation

_STEPS = 60
_CLOSE = 1e-10  # [m, rad]
_LONGEST_STEP = 0.2  # [rad, m]
_LARGEST_CHANGE = 0.2  # [rad, m]; corrections are a few milliradians, except near singular poses


@dataclass(frozen=True, slots=True, kw_only=True)
class CompensatedJoints:
    """Joint coordinates for given poses."""

    q: Array  # shape (N, n): [rad or m]
    position_error: Array  # shape (N,): remaining error at the tool [m]
    angle_error: Array  # shape (N,): [rad]
    converged: BoolArray  # shape (N,): whether both are below a tenth of a micrometre and a tenth of a microradian


def compensated_joints(result: CalibrationResult, q: Array, *, tool: Array | None = None) -> CompensatedJoints:
    """Return the joint coordinates at which the real tool has the pose of the nominal arm at ``q``.

    Parameters
    ----------
    result : CalibrationResult
    q : ndarray, shape (N, n)
        Nominal joint coordinates [rad or m].
    tool : ndarray, shape (4, 4), optional
        Tool in the tip frame; the tip itself by default.
    """
    q = frozen_array(q, 'q', (None, result.chain.n), CalibrationError)
    hand = _tool(tool)
    return compensated_inverse_kinematics(result, result.nominal_tip_transforms(q) @ hand, q, tool=hand)


def compensated_inverse_kinematics(
    result: CalibrationResult, poses: Array, start: Array, *, tool: Array | None = None
) -> CompensatedJoints:
    """Solve T(q) tool = pose for the calibrated arm, joint terms included.

    Newton's iteration with the calibrated Jacobian, damped near singular poses
    (Levenberg-Marquardt, each pose with its own damping), from the nominal solution, which is a
    few milliradians away. Where a nominal pose lies at the edge of the workspace, as with a
    stretched elbow, the real arm may not reach it; at a singular wrist it may need another turn of
    the wrist. There the closest joint coordinates nearby are returned, not converged.

    Parameters
    ----------
    result : CalibrationResult
    poses : ndarray, shape (N, 4, 4)
        Wanted tool poses in the robot's base frame.
    start : ndarray, shape (N, n)
        Joint coordinates to start from [rad or m].
    tool : ndarray, shape (4, 4), optional
        Tool in the tip frame; the tip itself by default.

    Raises
    ------
    CalibrationError
        If shapes do not match.
    """
    poses = frozen_array(poses, 'poses', (None, 4, 4), CalibrationError)
    start = frozen_array(start, 'start', (len(poses), result.chain.n), CalibrationError)
    q = np.array(start)
    hand = _tool(tool)
    error, jacobian = _error(result, q, poses, hand)
    damping = np.full(len(q), 1e-10)
    for _ in range(_STEPS):
        if np.abs(error).max(initial=0.0) < 0.01 * _CLOSE:
            break
        transposed = np.swapaxes(jacobian, 1, 2)
        normal = transposed @ jacobian + damping[:, None, None] * np.eye(q.shape[1])
        step = np.linalg.solve(normal, transposed @ error[:, :, None])[:, :, 0]
        step *= np.minimum(1.0, _LONGEST_STEP / np.maximum(np.abs(step).max(axis=1), 1e-12))[:, None]
        trial_q = np.clip(q + step, start - _LARGEST_CHANGE, start + _LARGEST_CHANGE)
        trial, trial_jacobian = _error(result, trial_q, poses, hand)
        better = np.square(trial).sum(axis=1) < np.square(error).sum(axis=1)
        q[better] = trial_q[better]
        error[better], jacobian[better] = trial[better], trial_jacobian[better]
        damping = np.clip(np.where(better, 0.1 * damping, 10.0 * damping), 1e-14, 1e4)
    position, angle = np.linalg.norm(error[:, :3], axis=1), np.linalg.norm(error[:, 3:], axis=1)
    return CompensatedJoints(
        q=q, position_error=position, angle_error=angle, converged=(position < 1e3 * _CLOSE) & (angle < 1e3 * _CLOSE)
    )


def _tool(tool: Array | None) -> Array:
    return np.eye(4) if tool is None else frozen_array(tool, 'tool', (4, 4), CalibrationError)


def _error(result: CalibrationResult, q: Array, poses: Array, tool: Array) -> tuple[Array, Array]:
    """Return the pose error [m, rad], (N, 6), and the Jacobian by joint coordinates, (N, 6, n).

    The joint terms change with q a thousand times less than q itself, so their slope is left out.
    """
    chain = result.chain
    pose = chain.evaluate(result.fit.state.geometry, q, shift=result.joint_offsets(q))
    position = pose.position + pose.rotation @ tool[:3, 3]
    error = np.empty((len(q), 6))
    error[:, :3] = poses[:, :3, 3] - position
    error[:, 3:] = vector_of_rotation(poses[:, :3, :3] @ np.swapaxes(pose.rotation @ tool[:3, :3], 1, 2))
    jacobian = np.zeros((len(q), 6, chain.n))
    turning = np.cross(pose.joint_axes, position[:, :, None] - pose.joint_origins, axis=1)
    jacobian[:, :3] = np.where(chain.prismatic, pose.joint_axes, turning)
    jacobian[:, 3:] = np.where(chain.prismatic, 0.0, pose.joint_axes)
    return error, jacobian @ chain.coupling
