# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Between ROS and numpy: stamps, joint states, trajectories and the action that takes them."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration, Time
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.topic_endpoint_info import TopicEndpointInfo
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import DataError, MissingDependencyError

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""For what a late subscriber must still see: descriptions, references, results."""
ACTION = 'follow_joint_trajectory'
_MEANINGS: Mapping[int, tuple[str, str]] = {
    -1: ('INVALID_GOAL', 'the controller cannot use the trajectory, or another one took its place'),
    -2: ('INVALID_JOINTS', "the joints are not the controller's"),
    -3: ('OLD_HEADER_TIMESTAMP', 'the trajectory lies in the past'),
    -4: ('PATH_TOLERANCE_VIOLATED', 'a joint was too far from the trajectory'),
    -5: ('GOAL_TOLERANCE_VIOLATED', 'a joint did not reach the end of the trajectory'),
}
_STATUS: Mapping[int, str] = {GoalStatus.STATUS_CANCELED: 'cancelled', GoalStatus.STATUS_ABORTED: 'aborted'}


def reliability_of(publishers: Sequence[TopicEndpointInfo]) -> ReliabilityPolicy:
    """Return the reliability to subscribe with: reliable where all publishers are, else best effort."""
    reliable = all(each.qos_profile.reliability == ReliabilityPolicy.RELIABLE for each in publishers)
    return ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT


def subscribe_to_published(
    node: Node, wanted: dict[str, tuple[Any, Callable[[Any], None]]], depth: int, *, raw: bool = False
) -> None:
    """Subscribe to the topics that are published by now, so that none of their messages is lost, and drop them."""
    for topic in list(wanted):
        publishers = node.get_publishers_info_by_topic(topic)
        if publishers:
            kind, callback = wanted.pop(topic)
            profile = QoSProfile(depth=depth, reliability=reliability_of(publishers))
            node.create_subscription(kind, topic, callback, profile, raw=raw)


def node_names(endpoints: Sequence[TopicEndpointInfo]) -> list[str]:
    """Return the full name of the node of each publisher or subscription."""
    return [f'{each.node_namespace.rstrip("/")}/{each.node_name}' for each in endpoints]


def seconds(stamp: Time | Duration) -> float:
    """Return a stamp or duration in seconds."""
    return float(stamp.sec) + 1e-9 * float(stamp.nanosec)


def _split(value: float) -> tuple[int, int]:
    total = round(value * 1e9)
    return total // 1_000_000_000, total % 1_000_000_000


def time_message(value: float) -> Time:
    """Return a time in seconds as a message, rounded to nanoseconds."""
    sec, nanosec = _split(value)
    return Time(sec=sec, nanosec=nanosec)


def duration_message(value: float) -> Duration:
    """Return a duration in seconds as a message, rounded to nanoseconds."""
    sec, nanosec = _split(value)
    return Duration(sec=sec, nanosec=nanosec)


def average_frame(periods: int, recording: str, *, validation: bool, remark: str | None) -> str:
    """Return the ``frame_id`` of an average: its fields as JSON, since the message has no others."""
    fields = {'periods': periods, 'purpose': 'validation' if validation else 'training', 'recording': recording}
    return json.dumps({**fields, 'remark': remark} if remark else fields)


def average_label(frame_id: str) -> tuple[int, bool, str, str]:
    """Return what :func:`average_frame` wrote: periods, whether for validation, its recording, a remark.

    Any other ``frame_id`` is that of one period without a name.
    """
    try:
        fields = json.loads(frame_id)
        label = max(int(fields['periods']), 1), fields.get('purpose') == 'validation'
        return *label, str(fields.get('recording', '')), str(fields.get('remark', ''))
    except (ValueError, TypeError, KeyError, AttributeError):
        return 1, False, '', ''


def joint_state_values(message: JointState, joints: Sequence[str]) -> tuple[Array, Array | None, Array | None]:
    """Return position, velocity and effort of some joints, in the order asked for; the message may hold others too.

    Returns
    -------
    position : ndarray, shape (n,)
    velocity, effort : ndarray, shape (n,), or None where the message has none

    Raises
    ------
    DataError
        If a joint is missing or a field has another length than the names.
    """
    index = require_names(joints, message.name, 'joint', 'the joint state', DataError)
    values: list[Array | None] = []
    for field in ('position', 'velocity', 'effort'):
        data = np.asarray(getattr(message, field), dtype=float)
        if len(data) not in (0, len(message.name)):
            raise DataError(f'joint state: {len(message.name)} names but {len(data)} entries of {field}')
        values.append(data[index] if len(data) else None)
    position, velocity, effort = values
    if position is None:
        raise DataError('the joint state has no positions')
    return position, velocity, effort


def trajectory_message(
    joints: Sequence[str],
    start: float,
    times: Array,
    position: Array,
    velocity: Array | None = None,
    acceleration: Array | None = None,
    effort: Array | None = None,
) -> JointTrajectory:
    """Return a trajectory message.

    ``start`` is the time the points count from [s]; 0 stands for "when it arrives". ``times``, shape (N,), are from the
    start [s]; position, velocity, acceleration and effort have the shape (N, n) [rad, rad/s, rad/s^2, N m], and None
    leaves the field empty.
    """
    message = JointTrajectory(joint_names=list(joints))
    message.header.stamp = time_message(start)
    columns = [None if c is None else np.asarray(c, dtype=float) for c in (position, velocity, acceleration, effort)]
    for k, moment in enumerate(times):
        p, v, a, e = ([] if c is None else c[k].tolist() for c in columns)
        message.points.append(
            JointTrajectoryPoint(
                positions=p, velocities=v, accelerations=a, effort=e, time_from_start=duration_message(float(moment))
            )
        )
    return message


def trajectory_arrays(
    message: JointTrajectory, joints: Sequence[str]
) -> tuple[Array, Array, Array | None, Array | None, Array | None]:
    """Return times, positions, velocities, accelerations and efforts of a trajectory message for some of its joints.

    Returns
    -------
    times : ndarray, shape (N,)
        From the message's stamp [s].
    position : ndarray, shape (N, n)
    velocity, acceleration, effort : ndarray, shape (N, n), or None where a point lacks them

    Raises
    ------
    DataError
        If a joint is missing or a point has another number of positions than there are joints.
    """
    index = require_names(joints, message.joint_names, 'joint', 'the trajectory', DataError)
    count = len(message.joint_names)
    times = np.array([seconds(point.time_from_start) for point in message.points])

    def column(field: str) -> Array | None:
        rows = [getattr(point, field) for point in message.points]
        if any(len(row) != count for row in rows):
            return None
        return np.array(rows, dtype=float).reshape(len(rows), count)[:, index]

    position = column('positions')
    if position is None:
        raise DataError(f'trajectory: expected {count} positions in every point')
    return times, position, column('velocities'), column('accelerations'), column('effort')


def control_msgs(purpose: str) -> tuple[Any, Any]:
    """Return the types of the action and of ``JointTolerance``.

    A MissingDependencyError, whose subject is the ``purpose``, names what to install where they cannot be imported.
    """
    try:
        return import_module('control_msgs.action').FollowJointTrajectory, import_module(
            'control_msgs.msg'
        ).JointTolerance
    except ImportError as cause:
        distribution = os.environ.get('ROS_DISTRO', '<distribution>')
        raise MissingDependencyError(
            f'{purpose} needs the ROS package control_msgs ({cause}); it is not on PyPI: install it with '
            f"'sudo apt install ros-{distribution}-control-msgs' and source that ROS, "
            'or set controller_interface to topic'
        ) from cause


def action_name(topic: str) -> str:
    """Return the name of the action beside a topic: a joint_trajectory_controller has both in one namespace."""
    return f'{topic.rpartition("/")[0]}/{ACTION}'


def outcome(status: int, result: Any) -> str:
    """Return how a goal ended, by ``action_msgs/msg/GoalStatus`` and its result, in words; '' if it reached its end."""
    if status == GoalStatus.STATUS_SUCCEEDED:
        return ''
    text = f'the controller {_STATUS.get(status, "forgot")} the trajectory'
    if result.error_code:
        name, meaning = _MEANINGS.get(result.error_code, (f'error code {result.error_code}', 'unknown'))
        text = f'{text}: {name} ({meaning})'
    return f'{text}: {result.error_string}' if result.error_string else text


def tolerance_violated(result: Any) -> bool:
    """Return whether a goal ended because a joint was outside a tolerance."""
    return result.error_code in (-4, -5)


def tolerance_messages(kind: Any, joint_names: Sequence[str], positions: Sequence[float]) -> list[Any]:
    """Return ``JointTolerance`` messages of the positions [rad or m] that are not 0, which is the controller's own."""
    return [kind(name=name, position=value) for name, value in zip(joint_names, positions, strict=True) if value]
