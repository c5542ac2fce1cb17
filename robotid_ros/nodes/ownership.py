# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Who can command an arm: everybody who publishes on the topic of its controller, or is a client of its action."""

import os
import time
from collections.abc import Callable
from uuid import uuid4

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile
from rclpy.topic_endpoint_info import TopicEndpointInfo
from std_msgs.msg import String

from robotid_ros.nodes.conversions import LATCHED, node_names
from robotid_ros.nodes.publishing import publish

_EVERY_CLAIM = QoSProfile(history=HistoryPolicy.KEEP_ALL, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""A reader that keeps the last one only would keep its own node's, and lose that of the node that was here before."""


class Commanders:
    """Lists the endpoints that can command the controller, besides this node's own.

    Endpoints are told apart by their GID: another node of the same name has one of its own.

    Parameters
    ----------
    node : Node
    topic, action : str
        Of the controller.
    publishes, acts : bool
        Whether this node has a publisher on the topic, and a client of the action.
    """

    def __init__(self, node: Node, topic: str, action: str, *, publishes: bool, acts: bool) -> None:
        self._node, self._topic, self._publishes, self._acts = node, topic, publishes, acts
        self._feedback = f'{node.resolve_service_name(action)}/_action/feedback'
        self._accepted: frozenset[bytes] = frozenset()

    def others(self) -> dict[bytes, str]:
        """Return the GID and the node of every other endpoint."""
        node = self._node
        publishers = _others(node, node.get_publishers_info_by_topic(self._topic), own=self._publishes)
        # Every client of an action, and nobody else, subscribes to its feedback.
        clients = _others(node, node.get_subscriptions_info_by_topic(self._feedback), own=self._acts)
        return publishers | clients

    def accept(self) -> list[str]:
        """Take those that are there now for no reason to stop, and return their names."""
        others = self.others()
        self._accepted = frozenset(others)
        return sorted(set(others.values()))

    def new(self) -> list[str]:
        """Return the names of those that came since."""
        return sorted({name for gid, name in self.others().items() if gid not in self._accepted})


def _others(node: Node, endpoints: list[TopicEndpointInfo], *, own: bool) -> dict[bytes, str]:
    """Return GID and node of endpoints but for one of this node's, where it has its ``own``."""
    me, found = node.get_fully_qualified_name(), {}
    for name, endpoint in zip(node_names(endpoints), endpoints, strict=True):
        if own and name == me:
            own = False
            continue
        found[bytes(endpoint.endpoint_gid)] = f'another node {name}' if name == me else name
    return found


class Claim:
    """Says that this node is here, and hears whether another one of its name was here before.

    ``second`` is called with a sentence where it was.
    """

    def __init__(self, node: Node, second: Callable[[str], None]) -> None:
        self._mine, self._second = f'{time.time_ns():020d} {os.getpid()} {uuid4().hex}', second
        self._name = node.get_fully_qualified_name()
        self._publisher = node.create_publisher(String, '~/claim', LATCHED)
        node.create_subscription(String, '~/claim', self._heard, _EVERY_CLAIM)
        publish(self._publisher, String(data=self._mine))

    def _heard(self, message: String) -> None:
        if message.data < self._mine:
            pid = message.data.split(' ')[1:2]
            self._second(
                f'another node {self._name} runs already (process {" ".join(pid)}): two of them would command one arm; '
                'this one ends'
            )
