# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The wrench of a force-torque sensor without its bias and without the weight of its tool, published live."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.identification.wrench import WrenchResult, flange_motion
from robotid_ros.model import RobotModel
from robotid_ros.nodes.conversions import joint_state_values
from robotid_ros.nodes.publishing import publish
from robotid_ros.reading import read_yaml

_QUEUE = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class WrenchWatch:
    """Publishes ``~/wrench``, what comes on ``wrench`` less bias and weight, as the last joint state turns the tool.

    What the tool needs to be accelerated is left in it. ``model`` returns the arm once it is known.

    Raises
    ------
    RobotIdError
        If the file is not one of ``robotid wrench``.
    """

    def __init__(self, node: Node, path: str, model: Callable[[], RobotModel | None]) -> None:
        content = read_yaml(Path(path).expanduser(), 'result of robotid wrench', IdentificationError)
        self._found = WrenchResult.from_dict(content.get('wrench') if isinstance(content, dict) else None)
        self._model = model
        self._weight: Array | None = None
        self._compensated = node.create_publisher(WrenchStamped, '~/wrench', 10)
        node.create_subscription(JointState, 'joint_states', self._on_joint_state, _QUEUE)
        node.create_subscription(WrenchStamped, 'wrench', self._on_wrench, _QUEUE)

    def _on_joint_state(self, message: JointState) -> None:
        model = self._model()
        if model is None or not self._compensated.get_subscription_count():
            return
        try:
            position = joint_state_values(message, model.joint_names)[0]
        except DataError:
            return  # those of a gripper alone, for example
        still = np.zeros((1, model.n))
        self._weight = self._found.tool_wrench(*flange_motion(model, position[None], still, still))[0]

    def _on_wrench(self, message: WrenchStamped) -> None:
        if self._weight is None:
            return
        parts = [(part, axis) for part in (message.wrench.force, message.wrench.torque) for axis in 'xyz']
        for (part, axis), less in zip(parts, (self._found.bias + self._weight).tolist(), strict=True):
            setattr(part, axis, getattr(part, axis) - less)
        publish(self._compensated, message)
