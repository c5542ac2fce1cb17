# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The state of the excitation node, published and logged as it changes."""

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from robotid_ros.nodes.conversions import LATCHED
from robotid_ros.nodes.publishing import StatusPublisher


class ExcitationStatus:
    """Publishes ``~/status``.

    Attributes
    ----------
    text : str
        May be changed at any time; it is published with the next message.

    Parameters
    ----------
    node : Node
    values : callable
        Returns the values of the message.
    """

    def __init__(self, node: Node, values: Callable[[], Mapping[str, object]]) -> None:
        self._values = values
        self._publisher = StatusPublisher(node, LATCHED)
        self.state, self.level, self.text = 'idle', DiagnosticStatus.OK, 'no trajectory yet: call ~/design'

    def set(self, state: str, level: bytes, text: str) -> None:
        """Change the state, publish it, and log it once."""
        self.state, self.level, self.text = state, level, text
        if level != DiagnosticStatus.OK or state not in ('ready', 'designing'):
            self._publisher.log(level, text)
        self.publish()

    def publish(self) -> None:
        """Publish the state as it is."""
        self._publisher.publish(self.level, self.text, self._values())
