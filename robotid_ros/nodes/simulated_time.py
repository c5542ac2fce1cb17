# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Simulated time that is followed only while it is needed."""

import threading
from collections.abc import Callable

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.subscription import Subscription
from rclpy.time import Time
from rclpy.timer import Timer
from rosgraph_msgs.msg import Clock as ClockMessage

_TOPIC = '/clock'


def steady_timer(node: Node, period: float, callback: Callable[[], object]) -> Timer:
    """Return a timer with a period in real seconds: it goes on while simulated time stands still."""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


class SimulatedTime:
    """Takes a node's time from /clock between :meth:`follow` and :meth:`leave`.

    A node with ``use_sim_time`` subscribes to /clock for good, and a simulation ticks a thousand times a second: that
    is a fifth of a processor core for a node that does nothing. Whoever constructs this takes that subscription away.
    Outside of :meth:`follow` and :meth:`leave` the node's clock stands at the last time that came.

    The event ``came`` is set while the node's time is that of now. A node without ``use_sim_time`` keeps its clock: for
    it the methods do nothing, and the event is always set.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._subscription: Subscription | None = None
        self.came = threading.Event()
        self.leave()
        for subscription in list(node.subscriptions):
            if subscription.topic_name == _TOPIC and subscription.msg_type is ClockMessage:
                node.destroy_subscription(subscription)

    @property
    def simulated(self) -> bool:
        """Whether the node's time is that of /clock."""
        return bool(self._node.get_clock().ros_time_is_active)

    def follow(self) -> None:
        """Follow /clock; the time is known once :attr:`came` is set."""
        if not self.simulated:
            self.came.set()
        elif self._subscription is None:
            self.came.clear()
            self._subscription = self._node.create_subscription(
                ClockMessage, _TOPIC, self._take, QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            )

    def leave(self) -> None:
        """Follow /clock no longer."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)
            self._subscription = None
        if self.simulated:
            self.came.clear()
        else:
            self.came.set()

    def _take(self, message: ClockMessage) -> None:
        self._node.get_clock().set_ros_time_override(Time.from_msg(message.clock))
        self.came.set()
