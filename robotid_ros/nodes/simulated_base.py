# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What the sensors of a simulated floating base tell: its twist and its pose."""

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from robotid_ros.free_floating import FloatingMeasurement, SensorNoise
from robotid_ros.nodes.publishing import publish
from robotid_ros.simulation.floating_plant import FloatingPlant


class SimulatedBase:
    """Publishes ``base_twist``, along the axes of the base, and ``base_pose`` in the inertial frame."""

    def __init__(self, node: Node, plant: FloatingPlant, noise: SensorNoise, rng: np.random.Generator, depth: int):
        profile = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self._twists = node.create_publisher(TwistStamped, 'base_twist', profile)
        self._poses = node.create_publisher(PoseStamped, 'base_pose', profile)
        self._plant, self._noise, self._rng = plant, noise, rng

    def publish(self, nanoseconds: int) -> None:
        """Publish how the base moves where the last run of the physics began, with its stamp [ns since the epoch]."""
        plant = self._plant
        nothing = np.zeros((1, plant.nominal.n))
        seen = FloatingMeasurement(
            joint_names=plant.joint_names,
            time=np.zeros(1),
            q=nothing,
            dq=nothing,
            base_twist=plant.base_twist[None],
            base_position=plant.base_position[None],
            base_orientation=plant.base_orientation[None],
        ).with_noise(self._noise, self._rng)
        twist, pose = TwistStamped(), PoseStamped()
        for message, frame in ((twist, plant.nominal.base_name), (pose, 'inertial')):
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(nanoseconds, 1_000_000_000)
            message.header.frame_id = frame
        v = seen.base_twist[0].tolist()
        (twist.twist.linear.x, twist.twist.linear.y, twist.twist.linear.z) = v[:3]
        (twist.twist.angular.x, twist.twist.angular.y, twist.twist.angular.z) = v[3:]
        if seen.base_position is not None and seen.base_orientation is not None:
            place, turn = pose.pose.position, pose.pose.orientation
            place.x, place.y, place.z = seen.base_position[0].tolist()
            turn.w, turn.x, turn.y, turn.z = seen.base_orientation[0].tolist()
        publish(self._twists, twist)
        publish(self._poses, pose)
