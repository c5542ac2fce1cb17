# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``simulated_tracker``: measures where the tool of a simulated arm is, as an instrument does.

It follows ``joint_states`` and ``robot_description`` and publishes ``measured_pose``
(``geometry_msgs/PoseStamped``): the target on the tool of an arm whose geometry differs from its description.
"""

import sys
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robotid_ros.errors import RobotIdError
from robotid_ros.model import RobotModel
from robotid_ros.nodes.messages import LATCHED, joint_state_values, publish, seconds
from robotid_ros.nodes.parameters import declare_parameters
from robotid_ros.nodes.runtime import run_node
from robotid_ros.simulation.measured_arm import SimulatedArm, TrackerConfig, tracked_arm


class SimulatedTracker(Node):
    """An instrument beside a simulated arm."""

    def __init__(self, **options: Any) -> None:
        super().__init__('simulated_tracker', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        self._config = declare_parameters(self, TrackerConfig)
        self._rng = np.random.default_rng([self._config.seed, 1])
        self._arm: SimulatedArm | None = None
        self._next = 0.0
        self._publisher = self.create_publisher(PoseStamped, 'measured_pose', 1000)
        self.create_subscription(String, 'robot_description', self._receive_description, LATCHED)
        self.create_subscription(JointState, 'joint_states', self._receive_joints, 1000)

    def _receive_description(self, message: String) -> None:
        try:
            self._arm = tracked_arm(RobotModel.from_urdf(message.data), self._config)
        except RobotIdError as refusal:
            self.get_logger().error(f'the robot description cannot be used: {refusal}')

    def _receive_joints(self, message: JointState) -> None:
        stamp = seconds(message.header.stamp)
        if self._arm is None or 0.0 <= self._next - stamp < 2.0 / self._config.rate:
            return
        self._next = stamp + 1.0 / self._config.rate
        position, _, _ = joint_state_values(message, self._arm.nominal.joint_names)
        noise, angle_noise = self._config.noise, self._config.angle_noise
        seen = self._arm.measure(position[None], self._rng, noise=noise, angle_noise=angle_noise)
        assert seen.orientation is not None
        measured = PoseStamped()
        measured.header.stamp, measured.header.frame_id = message.header.stamp, 'tracker'
        place, turn = measured.pose.position, measured.pose.orientation
        place.x, place.y, place.z = seen.position[0].tolist()
        turn.w, turn.x, turn.y, turn.z = seen.orientation[0].tolist()
        publish(self._publisher, measured)


main = partial(run_node, SimulatedTracker)

if __name__ == '__main__':
    sys.exit(main())
