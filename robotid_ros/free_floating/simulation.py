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

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError, ModelError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating.body import cross
from robotid_ros.free_floating.measurement import FloatingMeasurement
from robotid_ros.free_floating.robot import FreeFloatingRobot, momentum_in_base, momentum_map
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import rotation_of_quaternion

_MOST_CYCLES = 5_000  # of the highest harmonic; each takes some 500 evaluations
_TOLERANCE = 1e-13  # of the pose [m, 1] and step, relative and absolute


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
    Ordinary Differential Equations I, section II.5) to 1e-12; the twist follows from the momentum at that pose.

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

    Raises
    ------
    ModelError
        If the trajectory has another number of joints, or body n is not physical.
    DataError
        If times do not increase, an initial value is malformed or the motion is too long.
    """
    if trajectory.n != robot.n:
        raise ModelError(f'the trajectory moves {trajectory.n} joints, the arm has {robot.n}')
    robot.require_physical_body()
    time = frozen_array(time, 'time', (None,), DataError)
    if len(time) == 0 or (np.diff(time) <= 0.0).any():
        raise DataError('time: expected increasing sample times', name='time')
    cycles = (time[-1] - time[0]) * trajectory.harmonics * trajectory.base_frequency
    if cycles > _MOST_CYCLES:
        raise DataError(
            f'expected at most {_MOST_CYCLES} cycles of the highest harmonic, got {cycles:.0f}; simulate a shorter time'
        )
    total = frozen_array(momentum, 'momentum', (6,), DataError)
    quaternion = frozen_array(orientation, 'orientation', (4,), DataError)
    if abs(float(np.linalg.norm(quaternion)) - 1.0) > 1e-6:
        message = f'orientation: expected a unit quaternion, got length {np.linalg.norm(quaternion):g}'
        raise DataError(message, name='orientation', expected=1.0)
    start = np.concatenate([frozen_array(position, 'position', (3,), DataError), quaternion])
    model = robot.model

    def rate(at: float, pose: Array) -> Array:
        q, dq, _ = trajectory.evaluate(at)
        twist = _base_twist(model, q, dq, pose[None], total)[0]
        velocity = rotation_of_quaternion(pose[3:]) @ twist[:3]
        s, u, w = pose[3], pose[4:], twist[3:]
        return np.concatenate([velocity, [-0.5 * u @ w], 0.5 * (s * w + cross(u, w))])

    poses = start[None]
    if len(time) > 1:
        from scipy.integrate import solve_ivp  # not at the top: see robotid_ros.signals.filtering

        span = (time[0], time[-1])
        solved = solve_ivp(rate, span, start, method='DOP853', t_eval=time, rtol=_TOLERANCE, atol=_TOLERANCE)
        poses = solved.y.T
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    q, dq, _ = trajectory.evaluate(time)
    return FloatingMeasurement(
        joint_names=robot.arm.joint_names,
        time=time,
        q=q,
        dq=dq,
        base_twist=_base_twist(model, q, dq, poses, total),
        base_position=poses[:, :3],
        base_orientation=poses[:, 3:],
        provenance={'source': 'simulation', 'momentum': total.tolist()},
    )


def _base_twist(model: RobotModel, q: Array, dq: Array, poses: Array, momentum: Array) -> Array:
    """Return the twists of the base, shape (N, 6), at poses [position, quaternion] of shape (N, 7)."""
    maps = momentum_map(model, q)
    twist = maps.base_twist(dq)
    if momentum.any():
        own = momentum_in_base(momentum, poses[:, :3], rotation_of_quaternion(poses[:, 3:]))
        twist += np.linalg.solve(maps.base, own[..., None])[..., 0]
    return twist
