# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is measured on a floating robot, or simulated, the noise of its sensors, and files of it: CSV or bags."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, IntArray, freeze_fields, frozen_array, rows_of
from robotid_ros.data.bag import Bag, read_bag
from robotid_ros.errors import DataError, ModelError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.files import file_hash
from robotid_ros.free_floating.body import cross
from robotid_ros.free_floating.robot import FreeFloatingRobot, momentum_in_base, momentum_map
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import quaternion_of_rotation, rotation_of_quaternion, rotation_of_vector
from robotid_ros.reading import refusing
from robotid_ros.settings import Settings, setting
from robotid_ros.tables import read_table, write_table

_SIGNALS = ('time', 'q', 'dq', 'base_twist', 'base_position', 'base_orientation')
_POSE = {
    'base_position': tuple(f'base/position/{axis}' for axis in 'xyz'),
    'base_orientation': tuple(f'base/orientation/{part}' for part in ('qw', 'qx', 'qy', 'qz')),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorNoise(Settings):
    """Standard deviations of white measurement noise, per sample and axis."""

    error = DataError

    base_linear_velocity: float = setting(1e-4, 'of the velocity of the base', unit='m/s', range=(0.0, inf))
    base_angular_velocity: float = setting(1e-4, 'of the rate of the base', unit='rad/s', range=(0.0, inf))
    joint_velocity: float = setting(1e-4, 'of the joint velocities', unit='rad/s, m/s', range=(0.0, inf))
    joint_position: float = setting(0.0, 'of the joint positions', unit='rad, m', range=(0.0, inf))
    base_position: float = setting(0.0, 'of the position of the base', unit='m', range=(0.0, inf))
    base_orientation: float = setting(0.0, 'of the orientation of the base', unit='rad', range=(0.0, inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingMeasurement:
    """N samples of a floating robot: base pose and twist, joint positions and rates.

    The base is the root frame of the URDF. Its twist is along its own axes, as in
    ``nav_msgs/Odometry``; the pose is needed only where there is momentum.

    Attributes
    ----------
    joint_names : tuple of str
    time : ndarray, shape (N,)
        Strictly increasing [s].
    q, dq : ndarray, shape (N, n)
        [rad, rad/s, or m, m/s]
    base_twist : ndarray, shape (N, 6)
        [v; w]: velocity of the base frame's origin and angular velocity relative to inertial space,
        along the base frame's axes [m/s, rad/s].
    base_position : ndarray, shape (N, 3), or None
        Origin of the base frame in an inertial frame [m].
    base_orientation : ndarray, shape (N, 4), or None
        Unit quaternion (w, x, y, z) of the base frame in the inertial frame.

    Raises
    ------
    DataError
        If shapes differ, a value is not finite, time does not increase or a quaternion has no length.
    """

    joint_names: tuple[str, ...]
    time: Array
    q: Array
    dq: Array
    base_twist: Array
    base_position: Array | None = None
    base_orientation: Array | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze_fields(self, DataError, {'time': (None,)})
        time = self.time
        if len(time) == 0:
            raise DataError('expected at least one sample, got none')
        if (np.diff(time) <= 0.0).any():
            k = int(np.argmax(np.diff(time) <= 0.0))
            message = f'time: expected increasing stamps, got {time[k]:g} s and then {time[k + 1]:g} s'
            raise DataError(message, name='time', found=(time[k], time[k + 1]))
        count, n = len(time), len(self.joint_names)
        pose: dict[str, tuple[int, ...]] = {'base_position': (count, 3), 'base_orientation': (count, 4)}
        freeze_fields(self, DataError, {'q': (count, n), 'dq': (count, n), 'base_twist': (count, 6), **pose})
        if (self.base_position is None) != (self.base_orientation is None):
            raise DataError('base pose: expected both position and orientation, or neither; got one of them')
        if self.base_orientation is not None:
            length = np.linalg.norm(self.base_orientation, axis=1)
            if np.abs(length - 1.0).max() > 1e-2:
                k = int(np.argmax(np.abs(length - 1.0)))
                message = f'base_orientation: expected unit quaternions, got one of length {length[k]:g}'
                raise DataError(message, name='base_orientation', expected=1.0, found=float(length[k]))

    def __len__(self) -> int:
        return len(self.time)

    @property
    def has_pose(self) -> bool:
        """Whether the base pose was measured."""
        return self.base_position is not None

    def slice(self, start: int, stop: int) -> 'FloatingMeasurement':
        """Return samples ``start`` to ``stop - 1``."""
        return replace(self, **rows_of(self, _SIGNALS, slice(start, stop)))

    def with_noise(self, noise: SensorNoise, rng: np.random.Generator) -> 'FloatingMeasurement':
        """Return a copy with white Gaussian noise on every signal."""

        def draw(shape: tuple[int, ...], deviation: float) -> Array:
            return deviation * rng.standard_normal(shape)

        count, n = self.q.shape
        twist = np.hstack([draw((count, 3), noise.base_linear_velocity), draw((count, 3), noise.base_angular_velocity)])
        noisy = replace(
            self,
            q=self.q + draw((count, n), noise.joint_position),
            dq=self.dq + draw((count, n), noise.joint_velocity),
            base_twist=self.base_twist + twist,
        )
        if self.base_position is None or self.base_orientation is None:
            return noisy
        error = rotation_of_vector(draw((count, 3), noise.base_orientation))
        turned = quaternion_of_rotation(rotation_of_quaternion(self.base_orientation) @ error)
        return replace(
            noisy, base_position=self.base_position + draw((count, 3), noise.base_position), base_orientation=turned
        )


def _signals(joint_names: Sequence[str], *, pose: bool) -> dict[str, Sequence[str]]:
    """Return the columns of every array of a measurement."""
    return {
        'time': ('time',),
        'q': [f'position/{joint}' for joint in joint_names],
        'dq': [f'velocity/{joint}' for joint in joint_names],
        'base_twist': [f'base/{kind}_velocity/{axis}' for kind in ('linear', 'angular') for axis in 'xyz'],
        **(_POSE if pose else {}),
    }


def write_measurement(path: str | Path, measurement: FloatingMeasurement) -> None:
    """Write a measurement as CSV, numbers to the last digit.

    The header is ``time,position/<joint>,...,velocity/<joint>,...,base/linear_velocity/x,...,
    base/angular_velocity/x,...`` and, where the pose was measured, ``base/position/x,...,
    base/orientation/qw,...``; SI units, the twist along the base's axes.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    signals = _signals(measurement.joint_names, pose=measurement.has_pose)
    count = len(measurement)
    columns = {
        column: values
        for name, group in signals.items()
        for column, values in zip(group, getattr(measurement, name).reshape(count, -1).T, strict=True)
    }
    write_table(path, columns)


def read_measurement(path: str | Path, joint_names: tuple[str, ...]) -> FloatingMeasurement:
    """Read a measurement from CSV, whose columns are found by name, or from a bag.

    Parameters
    ----------
    path : str or Path
        A CSV file, or a bag as :func:`robotid_ros.free_floating.measurement.read_floating_bag` takes it.
    joint_names : tuple of str
        Joints of the arm, in its order.

    Raises
    ------
    DataError
        If the file cannot be read, a signal is missing or a value is no finite number.
    """

    def layout(names: tuple[str, ...]) -> Mapping[str, Sequence[str]]:
        return _signals(joint_names, pose=any(column in names for group in _POSE.values() for column in group))

    source = Path(path).expanduser()
    if source.is_dir() or source.suffix in ('.mcap', '.db3', '.yaml'):
        return read_floating_bag(source, joint_names)
    with refusing(f"measurement '{path}'", DataError, file=str(path)):
        arrays = dict(read_table(source, layout, what=f"measurement '{path}'").arrays)
        provenance = {'file': source.name, 'sha256': file_hash(source)}
        return FloatingMeasurement(
            joint_names=joint_names, time=arrays.pop('time')[:, 0], **arrays, provenance=provenance
        )


def read_floating_bag(path: str | Path, joint_names: tuple[str, ...]) -> FloatingMeasurement:
    """Read joint states and the base's motion from a bag: its folder, its ``metadata.yaml``, or its .mcap or .db3 file.

    The twist of the base is ``nav_msgs/Odometry`` or ``geometry_msgs/TwistStamped`` along the axes of the base; the
    pose, where there is one, is that of the odometry or ``geometry_msgs/PoseStamped``. Samples are those of the twist;
    joints, in the order of the arm's, and pose are interpolated there by cubic splines of their stamps.

    Raises a DataError if it is no readable bag, or a signal is not in it, or two topics have the same one.
    """
    from scipy.interpolate import CubicSpline  # not at the top: see robotid_ros.signals.filtering

    bag = Bag.open(path)
    joints = read_bag(bag, joints=joint_names)
    if joints.velocity is None:
        raise DataError(f'{path}: the joint states have no velocities; a free-floating identification needs them')
    moving = _values(bag, ('nav_msgs/Odometry', 'geometry_msgs/TwistStamped'))
    if moving is None:
        raise DataError(
            f'{path}: expected the twist of the base as nav_msgs/Odometry or geometry_msgs/TwistStamped; '
            f'the bag has: {", ".join(f"{name} ({kind})" for name, kind in bag.topics.items())}'
        )
    stamps, values = moving
    placed = _values(bag, ('nav_msgs/Odometry', 'geometry_msgs/PoseStamped'))
    if placed is not None:
        within = (stamps >= placed[0][0]) & (stamps <= placed[0][-1])
        stamps, values = stamps[within], values[within]
    inside, there = joints.at(stamps)
    if len(there) < 2:
        raise DataError(f'{path}: joint states and the twist of the base have no time in common')
    position = orientation = None
    if placed is not None:
        pose_stamps, pose = placed
        pose = pose[:, -7:]  # the last numbers of a message; the quaternions get the sign of the one before
        same = np.sum(pose[1:, 3:] * pose[:-1, 3:], axis=1) >= 0.0
        sign = np.concatenate([[1.0], np.cumprod(np.where(same, 1.0, -1.0))])
        pose = np.hstack([pose[:, :3], sign[:, None] * pose[:, 3:]])
        seen = CubicSpline(1e-9 * (pose_stamps - joints.origin), pose)(there.time)
        position, quaternion = seen[:, :3], seen[:, [6, 3, 4, 5]]
        orientation = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    return FloatingMeasurement(
        joint_names=joint_names,
        time=there.time - there.time[0],
        q=there.position,
        dq=there.velocity,
        base_twist=values[inside, :6],  # the first numbers of a message
        base_position=position,
        base_orientation=orientation,
        provenance=joints.provenance,
    )


def _values(bag: Bag, kinds: tuple[str, ...]) -> tuple[IntArray, Array] | None:
    """Return the increasing stamps [ns] and the numbers of the only topic of the first of some types in a bag."""
    names = next(filter(None, map(bag.of_type, kinds)), [])
    if not names:
        return None
    if len(names) > 1:
        message = f'{bag.path}: expected one topic of {bag.topics[names[0]]}, got {", ".join(names)}'
        raise DataError(message, expected=1, found=tuple(names))
    stamps, rows = bag.numbers(names[0])
    order, first = np.unique(stamps, return_index=True)
    if len(order) < 2:
        raise DataError(
            f'{bag.path}: expected at least two messages with different stamps on {names[0]}, got {len(order)}'
        )
    return order, rows[first]


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
