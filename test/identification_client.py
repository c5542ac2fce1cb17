# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A user of the identification node, and averages as the recorder publishes them."""

import os

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from identification_helpers import TWO_LINKS, fourier_motion, pinocchio_torque
from ros_client import GraphClient
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.model import RobotModel
from robotid_ros.nodes.messages import LATCHED, trajectory_message

MODEL = RobotModel.from_urdf(TWO_LINKS, tip='tool')
COULOMB, VISCOUS = np.array([2.0, 1.0]), np.array([1.5, 0.7])


def motion_with_torque(seed: int) -> tuple[tuple, np.ndarray]:
    motion = fourier_motion(2, np.random.default_rng(seed))
    torque = pinocchio_torque(MODEL, *motion[1:]) + COULOMB * np.sign(motion[2]) + VISCOUS * motion[2]
    return motion, torque + np.random.default_rng(seed).normal(0.0, 0.02, torque.shape)


def averaged(seed: int, start: float) -> JointTrajectory:
    (time, q, dq, ddq), torque = motion_with_torque(seed)
    order = [1, 0]  # the recorder may name the joints in any order
    names = [MODEL.joint_names[k] for k in order]
    return trajectory_message(names, start, time, q[:, order], dq[:, order], ddq[:, order], torque[:, order])


class Client(GraphClient):
    """A user of the node: publishes what the recorder would, calls services, keeps what comes back."""

    def __init__(self, environment: dict[str, str]) -> None:
        os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
        super().__init__(int(environment['ROS_DOMAIN_ID']))
        self.averaged = self.node.create_publisher(JointTrajectory, '/recorder/averaged', LATCHED)
        self.friction = self.node.create_publisher(JointTrajectory, '/recorder/friction', LATCHED)
        self.description = self.node.create_publisher(String, '/robot_description', LATCHED)
        self.states = self.node.create_publisher(JointState, '/joint_states', 10)
        self.planned = self.node.create_publisher(JointTrajectory, '/identification/trajectory', 10)
        self.seen: dict[str, object] = {}
        self.listeners = []
        self.status: dict[str, str] = {}
        for kind, topic, quality in (
            (String, '/identification/result', LATCHED),
            (String, '/identification/robot_description', LATCHED),
            (JointState, '/identification/predicted_torque', 10),
            (JointState, '/identification/external_torque', 10),
            (JointState, '/identification/gravity_torque', 10),
            (JointState, '/identification/contact_torque', 10),
            (JointTrajectory, '/identification/feedforward', 10),
            (String, '/identification/payload_result', LATCHED),
        ):
            self.listeners.append(
                self.node.create_subscription(kind, topic, lambda m, topic=topic: self.seen.update({topic: m}), quality)
            )
        self.node.create_subscription(DiagnosticStatus, '/identification/status', self._on_status, LATCHED)

    def _on_status(self, message: DiagnosticStatus) -> None:
        self.status = {'message': message.message, **{item.key: item.value for item in message.values}}

    def call(self, name: str) -> Trigger.Response:
        return self.ask(f'/identification/{name}')

    def set(self, **values: object) -> str:
        """Set parameters; return why they are refused, empty where they are not."""
        results = self.set_parameters('identification', values)
        return '; '.join(result.reason for result in results if not result.successful)
