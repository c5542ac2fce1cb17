# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Bags of ROS 2 with the joint states of a free-floating robot and the motion of its base."""

from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from robotid_ros.arrays import Array, IntArray
from robotid_ros.data.bag import Bag, read_bag
from robotid_ros.data.cdr import CdrReader
from robotid_ros.errors import DataError
from robotid_ros.free_floating.measurement import FloatingMeasurement

_TWIST = 6  # columns
_LAYOUTS: dict[str, tuple[int, int, list[int]]] = {  # texts before the doubles, their number, and those of use
    'nav_msgs/Odometry': (2, 7 + 36 + 6, [*range(43, 49), *range(7)]),  # pose, covariance, twist along the base's axes
    'geometry_msgs/TwistStamped': (1, 6, [*range(6)]),
    'geometry_msgs/PoseStamped': (1, 7, [*range(7)]),
}


def read_floating_bag(path: str | Path, joint_names: tuple[str, ...]) -> FloatingMeasurement:
    """Read joint states and the base's motion from a bag.

    The twist of the base is ``nav_msgs/Odometry`` or ``geometry_msgs/TwistStamped`` along the axes of the base; the
    pose, where there is one, is that of the odometry or ``geometry_msgs/PoseStamped``. Samples are those of the
    twist; joints and pose are interpolated there by cubic splines of their stamps.

    Parameters
    ----------
    path : str or Path
        The bag's folder, its ``metadata.yaml``, or its ``.mcap`` or ``.db3`` file.
    joint_names : tuple of str
        Joints of the arm, in its order.

    Raises
    ------
    DataError
        If it is no readable bag, or a signal is not in it, or two topics have the same one.
    """
    joints = read_bag(path, joints=joint_names)
    if joints.velocity is None:
        raise DataError(f'{path}: the joint states have no velocities; a free-floating identification needs them')
    bag = Bag.open(path)
    base = _topic(bag, path, ('nav_msgs/Odometry', 'geometry_msgs/TwistStamped'))
    if base is None:
        raise DataError(
            f'{path}: expected the twist of the base as nav_msgs/Odometry or geometry_msgs/TwistStamped; '
            f'the bag has: {", ".join(f"{name} ({kind})" for name, kind in bag.topics.items())}'
        )
    stamps, values = _values(bag, base, path)
    pose_stamps, pose = stamps, values[:, _TWIST:]
    pose_topic = _topic(bag, path, ('geometry_msgs/PoseStamped',))
    if not pose.shape[1] and pose_topic is not None:
        pose_stamps, pose = _values(bag, pose_topic, path)
    joint_time, time, pose_time = joints.time, 1e-9 * (stamps - joints.origin), 1e-9 * (pose_stamps - joints.origin)
    inside = (time >= joint_time[0]) & (time <= joint_time[-1])
    if pose.shape[1]:
        inside &= (time >= pose_time[0]) & (time <= pose_time[-1])
    if inside.sum() < 2:
        raise DataError(f'{path}: joint states and the twist of the base have no time in common')
    time = time[inside]
    position = orientation = None
    if pose.shape[1]:
        seen = CubicSpline(pose_time, _continuous(pose))(time)
        position, quaternion = seen[:, :3], seen[:, [6, 3, 4, 5]]
        orientation = quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
    return FloatingMeasurement(
        joint_names=joint_names,
        time=time - time[0],
        q=CubicSpline(joint_time, joints.position)(time),
        dq=CubicSpline(joint_time, joints.velocity)(time),
        base_twist=values[inside, :_TWIST],
        base_position=position,
        base_orientation=orientation,
        provenance=joints.provenance,
    )


def _topic(bag: Bag, path: str | Path, kinds: tuple[str, ...]) -> str | None:
    """Return the only topic of the first of some types that is in the bag."""
    for kind in kinds:
        names = [name for name, its in bag.topics.items() if its == kind]
        if len(names) > 1:
            raise DataError(f'{path}: expected one topic of {kind}, got {", ".join(sorted(names))}')
        if names:
            return names[0]
    return None


def _values(bag: Bag, topic: str, path: str | Path) -> tuple[IntArray, Array]:
    """Return the stamps [ns], increasing, and the numbers of a topic's messages."""
    texts, count, columns = _LAYOUTS[bag.topics[topic]]
    stamps: list[int] = []
    rows: list[tuple[float, ...]] = []
    for chunks in bag.messages([topic]):
        for message in chunks[topic].messages() if topic in chunks else ():
            try:
                reader = CdrReader(message)
                stamps.append(reader.time())
                for _ in range(texts):  # the frames
                    reader.string()
                rows.append(reader.doubles(count))
            except ValueError as cause:
                raise DataError(f'{path}: message {len(stamps)} of topic {topic} cannot be read: {cause}') from cause
    order, first = np.unique(np.array(stamps, dtype=np.int64), return_index=True)
    if len(order) < 2:
        raise DataError(f'{path}: expected at least two messages with different stamps on {topic}, got {len(order)}')
    return order, np.array(rows)[first][:, columns]


def _continuous(pose: Array) -> Array:
    """Return poses whose quaternions keep their sign from one to the next."""
    same = np.sum(pose[1:, 3:] * pose[:-1, 3:], axis=1) >= 0.0
    sign = np.concatenate([[1.0], np.cumprod(np.where(same, 1.0, -1.0))])
    return np.hstack([pose[:, :3], sign[:, None] * pose[:, 3:]])
