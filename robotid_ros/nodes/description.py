# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The robot description of a node: from a file, or as it is published."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from rclpy.node import Node
from std_msgs.msg import String

from robotid_ros.errors import ModelError, RobotIdError
from robotid_ros.nodes.messages import LATCHED
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionConfig(Settings):
    """Where a node has its robot description from, and which part of that is the arm."""

    error: ClassVar[type[RobotIdError]] = ModelError

    urdf_file: str = setting('', 'URDF; empty: what is published on robot_description', read_only=True)
    base_link: str = setting('', 'Link at the start of the chain; empty: the root', read_only=True)
    tip_link: str = setting('', 'Link at the end of the chain; empty: the last one', read_only=True)

    def follow(self, node: Node, take: Callable[[str], None]) -> None:
        """Hand over the file, or else every description that is published."""
        if self.urdf_file:
            take(self.urdf_file)
        else:
            node.create_subscription(String, 'robot_description', lambda message: take(message.data), LATCHED)
