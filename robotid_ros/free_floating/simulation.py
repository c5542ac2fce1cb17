# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Motion of the base from that of the joints, by conservation of momentum."""

from collections.abc import Sequence

import numpy as np
from scipy.integrate import DOP853

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError, ModelError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating.body import cross_matrix
from robotid_ros.free_floating.measurement import FloatingMeasurement
from robotid_ros.free_floating.robot import FreeFloatingRobot, momentum_map
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import rotation_of_quaternion

_MOST_STEPS = 1 << 18
_TOLERANCE = 1e-12  # largest error of the pose [m, 1], relative to its size where that is larger than one


def simulate(
    robot: FreeFloatingRobot,
    trajectory: FourierTrajectory,
    time: Array,
    *,
    momentum: Sequence[float] | Array = (0.0,) * 6,
    position: Sequence[float] | Array = (0.0, 0.0, 0.0),
    orientation: Sequence[float] | Array = (1.0, 0.0, 0.0, 0.0),
) -> FloatingMeasurement:
    """Return the perfect measurement of a joint trajectory on a floating base.

        V_0 = M(q)^-1 (h(pose) - H(q) dq),   dp/dt = R v,   dQuaternion/dt = 1/2 Quaternion o [0, w]

    The pose is integrated with a Runge-Kutta method of order 8 (Hairer, Norsett and Wanner, Solving
    Ordinary Differential Equations I, section II.5) in equal steps between the samples, halved until
    the pose changes by less than 1e-12; the twist follows from the momentum at that pose.

    Parameters
    ----------
    robot : FreeFloatingRobot
        With the true body n.
    trajectory : FourierTrajectory
        Of the arm's n joints.
    time : ndarray, shape (N,)
        Sample times, increasing [s]; the initial pose is that at ``time[0]``.
    momentum : sequence of float, shape (6,)
        [P; L] of the whole system about the inertial origin [kg m/s, kg m^2/s].
    position : sequence of float, shape (3,)
        Initial origin of the base frame in the inertial frame [m].
    orientation : sequence of float, shape (4,)
        Initial quaternion (w, x, y, z) of the base frame.

    Returns
    -------
    FloatingMeasurement

    Raises
    ------
    ModelError
        If the trajectory has another number of joints, or body n is not physical.
    DataError
        If times do not increase, an initial value is malformed or the tolerance is not reached.
    """
    if trajectory.n != robot.n:
        raise ModelError(f'the trajectory moves {trajectory.n} joints, the arm has {robot.n}')
    robot.require_physical_body()
    time = frozen_array(time, 'time', (None,), DataError)
    if len(time) == 0 or (np.diff(time) <= 0.0).any():
        raise DataError('time: expected increasing sample times')
    total = frozen_array(momentum, 'momentum', (6,), DataError)
    quaternion = frozen_array(orientation, 'orientation', (4,), DataError)
    if abs(float(np.linalg.norm(quaternion)) - 1.0) > 1e-6:
        raise DataError(f'orientation: expected a unit quaternion, got length {np.linalg.norm(quaternion):g}')
    start = np.concatenate([frozen_array(position, 'position', (3,), DataError), quaternion])
    poses = _converged_poses(robot.model, trajectory, time, total, start)
    q, dq, _ = trajectory.evaluate(time)
    offset, compliance = _twist_law(robot.model, q, dq)
    return FloatingMeasurement(
        joint_names=robot.arm.joint_names,
        time=time,
        q=q,
        dq=dq,
        base_twist=np.stack([_twist(*law, total) for law in zip(offset, compliance, poses, strict=True)]),
        base_position=poses[:, :3],
        base_orientation=poses[:, 3:],
        provenance={'source': 'simulation', 'momentum': total.tolist()},
    )


def _converged_poses(
    model: RobotModel, trajectory: FourierTrajectory, time: Array, total: Array, start: Array
) -> Array:
    longest = float(np.diff(time).max(initial=0.0))
    substeps = max(1, int(np.ceil(longest * trajectory.harmonics * trajectory.base_frequency * 8.0)))
    coarse = _integrate(model, trajectory, time, total, start, substeps)
    while 2 * substeps * len(time) <= _MOST_STEPS:
        substeps *= 2
        fine = _integrate(model, trajectory, time, total, start, substeps)
        if np.abs(fine - coarse).max() <= _TOLERANCE * max(1.0, np.abs(fine).max()):
            return fine
        coarse = fine
    raise DataError(
        f'the base motion could not be integrated to {_TOLERANCE:g} within {_MOST_STEPS} steps; simulate a shorter time'
    )


def _integrate(
    model: RobotModel, trajectory: FourierTrajectory, time: Array, total: Array, start: Array, substeps: int
) -> Array:
    """Return the poses (position, quaternion) at the samples, shape (N, 7)."""
    stages = DOP853.n_stages
    A, B, C = DOP853.A[:stages, :stages], DOP853.B, DOP853.C[:stages]
    steps = np.repeat(np.diff(time) / substeps, substeps)
    begins = (time[:-1, None] + np.diff(time)[:, None] * (np.arange(substeps) / substeps)).ravel()
    q, dq, _ = trajectory.evaluate((begins[:, None] + steps[:, None] * C).ravel())
    offset, compliance = _twist_law(model, q, dq)
    poses = np.empty((len(time), 7))
    poses[0] = pose = start
    slopes = np.empty((stages, 7))
    for k, step in enumerate(steps):
        for i in range(stages):
            at = pose + step * (A[i, :i] @ slopes[:i])
            law = k * stages + i
            slopes[i] = _rate(at, _twist(offset[law], compliance[law], at, total))
        pose = pose + step * (B @ slopes)
        pose[3:] /= np.linalg.norm(pose[3:])
        if (k + 1) % substeps == 0:
            poses[(k + 1) // substeps] = pose
    return poses


def _twist_law(model: RobotModel, q: Array, dq: Array) -> tuple[Array, Array]:
    """Return the parts of V_0 = offset + compliance @ momentum, shapes (N, 6) and (N, 6, 6)."""
    maps = momentum_map(model, q)
    compliance: Array = np.linalg.inv(maps.base).astype(np.float64, copy=False)
    return maps.base_twist(dq), compliance


def _twist(offset: Array, compliance: Array, pose: Array, total: Array) -> Array:
    """Return the base twist at one pose."""
    if not total.any():
        return offset
    rotation = rotation_of_quaternion(pose[3:])
    angular = total[3:] - cross_matrix(pose[:3]) @ total[:3]
    twist: Array = offset + compliance @ np.concatenate([total[:3] @ rotation, angular @ rotation])
    return twist


def _rate(pose: Array, twist: Array) -> Array:
    """Return the time derivative of position and quaternion, written out: it is the innermost loop."""
    vx, vy, vz, wx, wy, wz = twist
    s, x, y, z = pose[3:]
    # R v = v + 2 s (u x v) + 2 u x (u x v), with the quaternion (s, u)
    cx, cy, cz = y * vz - z * vy, z * vx - x * vz, x * vy - y * vx
    return np.array(
        [
            vx + 2.0 * (s * cx + y * cz - z * cy),
            vy + 2.0 * (s * cy + z * cx - x * cz),
            vz + 2.0 * (s * cz + x * cy - y * cx),
            -0.5 * (x * wx + y * wy + z * wz),
            0.5 * (s * wx + y * wz - z * wy),
            0.5 * (s * wy + z * wx - x * wz),
            0.5 * (s * wz + x * wy - y * wx),
        ]
    )
