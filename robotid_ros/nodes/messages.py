# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Between ROS and numpy: stamps, joint states, trajectories; and how they are published and taken on a busy machine.

A reliable publisher of Fast DDS waits at most 100 ms for its own lock and then fails. Where many processes share a
core, the thread that holds the lock may not run for as long. A node that drives an arm must not end by that.

A joint state of six joints takes about 60 us to build and serialise through rclpy; writing its
numbers into a serialised template takes a few.

To take them, an executor calls back for each message, which costs 25 to 30 % of a core at 1 kHz. In :class:`Capture` a
thread takes all that are queued and then sleeps for some milliseconds, so that the next turn takes many: 6 % at 1 kHz,
and no callback of the node can delay it. A second one hands chunks to the consumer, so that neither disk nor arithmetic
keeps messages waiting in the middleware's queue. rclpy has no public call that takes a message; what is used of it,
``Subscription.handle.take_message``, is what its own executors call, the same from Humble to Rolling.
"""

import json
import queue
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from builtin_interfaces.msg import Duration, Time
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.duration import Duration as Span
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, LivelinessPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from rclpy.topic_endpoint_info import TopicEndpointInfo
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robotid_ros.arrays import Array, require_names
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError

Result = TypeVar('Result')

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""For what a late subscriber must still see: descriptions, references, results."""
ALIVE = QoSProfile(
    depth=10, liveliness=LivelinessPolicy.AUTOMATIC, liveliness_lease_duration=Span(seconds=2.0)
)  # fmt: skip
"""For the status of a process that must be missed soon when it is killed.

The middleware says from a thread of its own that the process lives, so a busy one is not taken for a dead one. A
reader that asks for this hears only of publishers that offer it.
"""

_NAP = 0.01  # between taking turns [s]
_CHUNK = 0.25  # how often messages are handed on [s]
_BACKLOG = 240  # chunks the consumer may be behind before the middleware's queue has to hold messages
_ATTEMPTS = 20
# Marks that are searched for in the serialised template, so that nothing here has to know the
# layout of a message; none of them can occur there by chance.
_STAMP = struct.pack('=iI', 0x1F2E3D4C, 0x0B1A2938)


def newest(depth: int) -> QoSProfile:
    """Return the profile for what counts while it is new: best effort understands every publisher."""
    return QoSProfile(depth=depth, reliability=ReliabilityPolicy.BEST_EFFORT)


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


NAMELESS = 'a node without a name yet'


def node_names(endpoints: Sequence[TopicEndpointInfo]) -> list[str]:
    """Return the full name of the node of each publisher or subscription; it is discovered a little after them."""
    return [
        NAMELESS if 'UNKNOWN' in each.node_name else f'{each.node_namespace.rstrip("/")}/{each.node_name}'
        for each in endpoints
    ]


def seconds(stamp: Time | Duration) -> float:
    """Return a stamp or duration in seconds."""
    return float(stamp.sec) + 1e-9 * float(stamp.nanosec)


def time_message(value: float) -> Time:
    """Return a time in seconds as a message, rounded to nanoseconds."""
    sec, nanosec = divmod(round(value * 1e9), 1_000_000_000)
    return Time(sec=sec, nanosec=nanosec)


def duration_message(value: float) -> Duration:
    """Return a duration in seconds as a message, rounded to nanoseconds."""
    sec, nanosec = divmod(round(value * 1e9), 1_000_000_000)
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

    They have the shape (n,); velocity and effort are None where the message has none. Raises a DataError if a joint is
    missing or a field has another length than the names.
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

    Times, shape (N,), count from the message's stamp [s]. The others have the shape (N, n), or are None where a point
    lacks them. Raises a DataError if a joint is missing or a point has another number of positions than there are
    joints.
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


class JointStateTemplate:
    """A serialised ``sensor_msgs/msg/JointState`` of some joints."""

    def __init__(self, joint_names: Sequence[str]) -> None:
        n = len(joint_names)
        marks = {field: [float(-7e250 * (k + 1))] * n for k, field in enumerate(('position', 'velocity', 'effort'))}
        message = JointState(name=list(joint_names), **marks)
        message.header.stamp.sec, message.header.stamp.nanosec = struct.unpack('=iI', _STAMP)
        self._bytes = bytearray(serialize_message(message))
        self._stamp = self._bytes.index(_STAMP)
        self._fields = tuple(
            np.frombuffer(self._bytes, dtype='=f8', count=n, offset=self._bytes.index(struct.pack(f'={n}d', *mark)))
            for mark in marks.values()
        )

    def filled(self, nanoseconds: int, position: Array, velocity: Array, effort: Array) -> bytes:
        """Return the message with a stamp [ns since the epoch] and values of shape (n,)."""
        struct.pack_into('=iI', self._bytes, self._stamp, *divmod(nanoseconds, 1_000_000_000))
        for field, values in zip(self._fields, (position, velocity, effort), strict=True):
            field[:] = values
        return bytes(self._bytes)


def insist(act: Callable[[], Result]) -> Result:
    """Return what a call to the middleware gives, and try again while it fails.

    rclpy's RCLError is raised if it has failed twenty times, which takes two seconds where it waited.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return act()
        except RuntimeError:  # rclpy's RCLError, which has no public name
            continue
    return act()


def publish(publisher: Any, message: Any) -> None:
    """Publish a message, or its serialised bytes, and try again while the middleware fails; see :func:`insist`."""
    insist(partial(publisher.publish, message))


class _NoExecutor(ReentrantCallbackGroup):
    """A callback group that no executor serves."""

    def can_execute(self, entity: Any) -> bool:
        return False


class Capture:
    """Takes every message of a topic, raw, from construction to :meth:`stop`.

    The consumer gets chunks in order, in a thread of its own; what it raises is kept in ``failure``. The node's
    executor is not used. The middleware holds ``depth`` messages while this process is kept from
    running. The reliability is the publisher's, or best effort.
    """

    def __init__(
        self,
        node: Node,
        message_type: type,
        topic: str,
        consumer: Callable[[MessageChunk], None],
        depth: int = 5000,
        reliability: ReliabilityPolicy = ReliabilityPolicy.RELIABLE,
    ) -> None:
        self.received = 0
        self.failure: BaseException | None = None
        self.first = threading.Event()
        self._node = node
        self._type = message_type
        self._consumer = consumer
        self._chunks: queue.Queue[MessageChunk | None] = queue.Queue(maxsize=_BACKLOG)
        self._stop = threading.Event()
        self._subscription = node.create_subscription(
            message_type,
            topic,
            lambda _: None,
            QoSProfile(depth=depth, reliability=reliability),
            raw=True,
            callback_group=_NoExecutor(),
        )
        self._taker = threading.Thread(target=self._take_all, name='capture', daemon=True)
        self._worker = threading.Thread(target=self._consume, name='recording', daemon=True)
        self._worker.start()
        self._taker.start()

    def stop(self) -> None:
        """Take what has come, hand it on, and end; returns when the consumer has everything."""
        self._stop.set()
        self._taker.join()
        self._chunks.put(None)
        self._worker.join()
        self._node.destroy_subscription(self._subscription)

    def _take_all(self) -> None:
        try:
            self._take_until_stopped()
        except BaseException as cause:
            self.failure = cause

    def _take_until_stopped(self) -> None:
        handle, topic = self._subscription.handle, self._subscription.topic_name
        take, kind = handle.take_message, self._type
        messages: list[bytes] = []
        sent: list[int] = []
        numbers: list[int] = []
        publishers: list[int] = []
        known: dict[bytes, int] = {}
        handed_on = time.monotonic()
        with handle:
            while True:
                last_turn = self._stop.is_set()
                single = self._node.count_publishers(topic) == 1
                while (taken := take(kind, True)) is not None:
                    self.first.set()
                    message, info = taken
                    messages.append(message)
                    sent.append(info['source_timestamp'] or info['received_timestamp'])
                    # Up to Jazzy nothing tells publishers apart, and several mix their counts.
                    identity = info.get('publisher_gid')
                    number = info.get('publication_sequence_number') if single or identity else None
                    numbers.append(-1 if number is None else number)
                    publishers.append(known.setdefault(identity['data'] if identity else b'', len(known)))
                now = time.monotonic()
                if messages and (last_turn or now - handed_on >= _CHUNK):
                    self._chunks.put(MessageChunk.of(messages, sent, numbers, publishers))
                    self.received += len(messages)
                    messages, sent, numbers, publishers = [], [], [], []
                    handed_on = now
                if last_turn:
                    return
                time.sleep(_NAP)

    def _consume(self) -> None:
        while (chunk := self._chunks.get()) is not None:
            if self.failure is not None:
                continue
            try:
                self._consumer(chunk)
            except BaseException as cause:
                self.failure = cause
