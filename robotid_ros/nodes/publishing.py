# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What nodes publish: their state on a machine that is too busy, joint states in bulk, a motion before it is run.

A reliable publisher of Fast DDS waits at most 100 ms for its own lock and then fails. Where many processes share a
core, the thread that holds the lock may not run for as long. A node that drives an arm must not end by that.

A joint state of six joints takes about 60 us to build and serialise through rclpy; writing its
numbers into a serialised template takes a few.
"""

import struct
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import LivelinessPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robotid_ros.arrays import Array
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.friction_sweep import FrictionSweep
from robotid_ros.excitation.pose_tour import PoseTour
from robotid_ros.nodes.runtime import SimulatedTime, steady_timer

Result = TypeVar('Result')

ALIVE = QoSProfile(
    depth=10, liveliness=LivelinessPolicy.AUTOMATIC, liveliness_lease_duration=Duration(seconds=2.0)
)  # fmt: skip
"""For the status of a process that must be missed soon when it is killed.

The middleware says from a thread of its own that the process lives, so a busy one is not taken for a dead one. A
reader that asks for this hears only of publishers that offer it.
"""

_ATTEMPTS = 20
# Marks that are searched for in the serialised template, so that nothing here has to know the
# layout of a message; none of them can occur there by chance.
_STAMP = struct.pack('=iI', 0x1F2E3D4C, 0x0B1A2938)
_NANOSECONDS = 1_000_000_000
_RATE = 50.0  # Hz; RViz draws 30 pictures a second
_LOOK = 0.5  # between checks for subscribers [s]; 50 checks a second take 4 % of a core


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


class Status:
    """What a node says of itself: on ``~/status``, and on ``/diagnostics`` for the tools of ROS.

    The full name of the node is the name of the status, so that two arms do not collide. ``values`` returns those of a
    message; numbers are spelled with four digits. The ``text`` may be changed at any time and goes out with the next
    message; ``state`` is for nodes that have several.
    """

    def __init__(
        self, node: Node, qos: QoSProfile | int, values: Callable[[], Mapping[str, object]] = dict, text: str = ''
    ) -> None:
        self._node, self._values = node, values
        self._status = node.create_publisher(DiagnosticStatus, '~/status', qos)
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.level, self.text, self.state = DiagnosticStatus.OK, text, 'idle'

    def set(self, level: bytes, text: str, state: str = '') -> None:
        """Change the status, log it if it is another one, and publish it; an empty state leaves that as it is."""
        if (level, text) != (self.level, self.text):
            logger = self._node.get_logger()
            if level == DiagnosticStatus.OK:  # rclpy wants one severity per line of code
                logger.info(text)
            elif level == DiagnosticStatus.WARN:
                logger.warning(text)
            else:
                logger.error(text)
        self.level, self.text, self.state = level, text, state or self.state
        self.publish()

    def publish(self) -> None:
        """Publish the status as it is."""
        self.send(self.level, self.text, self._values())

    def send(self, level: bytes, text: str, values: Mapping[str, object]) -> None:
        """Publish a status that is not kept."""
        spelled = {key: f'{value:.4g}' if isinstance(value, float) else str(value) for key, value in values.items()}
        status = DiagnosticStatus(
            name=self._node.get_fully_qualified_name(),
            hardware_id='robotid',
            level=level,
            message=text,
            values=[KeyValue(key=key, value=value) for key, value in spelled.items()],
        )
        publish(self._status, status)
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        publish(self._diagnostics, array)


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
        struct.pack_into('=iI', self._bytes, self._stamp, *divmod(nanoseconds, _NANOSECONDS))
        for field, values in zip(self._fields, (position, velocity, effort), strict=True):
            field[:] = values
        return bytes(self._bytes)


class Preview:
    """Publishes the joint states of a motion on ``~/preview``, over and over, while somebody listens.

    Nothing of the arm's own topics is touched. ``motion`` returns the joint names and the motion, or None while there
    is none to show; the node's parameter ``preview_speed`` says how fast it is shown.
    """

    def __init__(
        self,
        node: Node,
        motion: Callable[[], tuple[tuple[str, ...], FourierTrajectory | FrictionSweep | PoseTour] | None],
    ) -> None:
        self._node, self._motion = node, motion
        self._publisher = node.create_publisher(JointState, '~/preview', 10)
        self._elapsed = 0.0
        self._last: float | None = None
        self._time = SimulatedTime(node)
        self._timer = steady_timer(node, _LOOK, self._show)

    def _show(self) -> None:
        now = time.monotonic()
        shown = self._motion() if self._publisher.get_subscription_count() else None
        if shown is None:
            if self._last is not None:
                self._time.leave()
                self._timer.timer_period_ns = int(1e9 * _LOOK)
            self._elapsed, self._last = 0.0, None
            return
        if self._last is None:
            self._time.follow()
            self._timer.timer_period_ns = int(1e9 / _RATE)
            self._timer.reset()  # else the second message would come after the old period, and the motion would jump
        names, motion = shown
        if self._last is not None:
            self._elapsed += float(self._node.get_parameter('preview_speed').value) * (now - self._last)
        self._last = now
        if isinstance(motion, FourierTrajectory):
            position, velocity, _ = motion.evaluate(np.array([self._elapsed % motion.period]))
        else:
            position, velocity, _ = motion.reference.evaluate(np.array([self._elapsed % motion.reference.duration]))
        message = JointState(name=list(names), position=position[0].tolist(), velocity=velocity[0].tolist())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
