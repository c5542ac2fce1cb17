# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What an identified arm feels, published live: torques of its joints, the wrench without bias and weight."""

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.identification.contact import ContactDetector, ContactLevels, TorqueMonitor, standstill_friction
from robotid_ros.identification.wrench import WrenchResult, flange_motion
from robotid_ros.model import RobotModel
from robotid_ros.nodes.identification_config import IdentificationNodeConfig
from robotid_ros.nodes.messages import joint_state_values, newest, publish, seconds, trajectory_arrays
from robotid_ros.reading import read_yaml

_QUIET = 5.0
"""Least time between two warnings of trajectories that get no efforts: a planner may send a hundred a second [s]."""


def read_levels(path: str) -> ContactLevels | None:
    """Return the levels of a file of ``robotid contact``, None where none is named.

    Raises
    ------
    IdentificationError
        If it is none.
    """
    if not path:
        return None
    content = read_yaml(Path(path).expanduser(), 'levels of robotid contact', IdentificationError)
    return ContactLevels.from_dict(content.get('contact') if isinstance(content, dict) else None)


class TorqueWatch:
    """Publishes predicted, external, gravity and contact torques of the joint states, and the torques of trajectories.

    Gravity and contact torques, and those of trajectories, come from a usable result only. Predicted and external
    torques come from any result, since they show how far it is off.

    Every joint state takes processor time, so they are followed only while there is a result and a subscriber;
    ``values`` says how much it takes.

    A trajectory that comes on ``~/trajectory`` goes out on ``~/feedforward`` with the torque of each point as its
    effort, as the driver tells its own: joint_trajectory_controller adds it to its effort commands.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._predicted, self._external, self._gravity, self._contacts = (
            node.create_publisher(JointState, f'~/{name}_torque', 10)
            for name in ('predicted', 'external', 'gravity', 'contact')
        )
        self._feedforward = node.create_publisher(JointTrajectory, '~/feedforward', 10)
        node.create_subscription(JointTrajectory, '~/trajectory', self._on_trajectory, 10)
        self._predictor: TorquePredictor | None = None
        self._usable = False
        self._joint_states: Subscription | None = None
        self._monitor: TorqueMonitor | None = None
        self._contact: ContactDetector | None = None
        self._joints: tuple[str, ...] = ()
        self._factor: Array = np.zeros(0)
        self._period = self._published = np.inf
        self._began = self._busy = 0.0
        self._count = 0

    def watch(
        self, model: RobotModel, factor: Array, result: IdentificationResult, config: IdentificationNodeConfig
    ) -> None:
        """Compare the joint states with a result from now on.

        ``factor``, shape (n,), is the torque per unit of the efforts in the joint states; 1 where they are torques.
        """
        self.stop()
        self._joints, self._factor = model.joint_names, factor
        self._predictor, self._usable = TorquePredictor(model, result), result.usable
        if config.monitor_rate <= 0.0:
            return
        self._period, self._published = 1.0 / config.monitor_rate, -np.inf
        levels = read_levels(config.contact_levels)
        if levels is not None and levels.joint_names != self._joints:
            self._node.get_logger().error(f'{config.contact_levels} is of other joints than the arm: it is not used')
            levels = None
        cutoff = config.monitor_cutoff if levels is None else levels.cutoff
        self._contact = ContactDetector(
            spread=result.metrics['training'].rmse,
            bandwidth=cutoff,
            friction=standstill_friction(result.friction, result.friction_values),
            alarms_per_hour=config.false_alarms,
            levels=levels,
        )
        self._monitor = TorqueMonitor(self._predictor, cutoff)
        self.look()

    def stop(self) -> None:
        """Forget the result."""
        self._predictor = self._monitor = self._contact = None
        self.look()

    def take_code(self, torque: Callable[[Array, Array, Array], Array]) -> None:
        """Predict with generated code from now on."""
        if self._monitor is not None:
            self._monitor.torque = torque

    def values(self) -> dict[str, object]:
        """Return how much is computed, and what of one core it takes, since the last call; nothing where none is."""
        now, count, busy = time.monotonic(), self._count, self._busy
        passed, self._began = now - self._began, now
        self._count, self._busy = 0, 0.0
        if self._monitor is None or count == 0:
            return {}
        return {
            'torques/source': 'generated code' if self._monitor.torque else 'regressor',
            'torques/rate': count / passed,
            'torques/time_of_one': busy / count,
            'torques/share_of_a_core': busy / passed,
        }

    def look(self) -> None:
        """Follow the joint states while there are subscribers, and leave them when there are none."""
        publishers = (self._predicted, self._external, self._gravity, self._contacts)
        wanted = self._monitor is not None and any(each.get_subscription_count() for each in publishers)
        if wanted and self._joint_states is None:
            self._joint_states = self._node.create_subscription(
                JointState,
                'joint_states',
                self._on_joint_state,
                newest(1),
                qos_overriding_options=QoSOverridingOptions.with_default_policies(),
            )
        elif not wanted and self._joint_states is not None:
            self._node.destroy_subscription(self._joint_states)
            self._joint_states = None

    def _on_trajectory(self, message: JointTrajectory) -> None:
        log = self._node.get_logger()
        try:
            if self._predictor is None:
                raise DataError('a trajectory came before anything was identified: it gets no efforts')
            _, position, velocity, acceleration, _ = trajectory_arrays(message, self._joints)
            if velocity is None or acceleration is None:
                raise DataError('trajectory: expected velocities and accelerations in every point')
            if not np.isfinite([position, velocity, acceleration]).all():
                raise DataError('trajectory: expected finite positions, velocities and accelerations')
            if not self._usable:
                raise DataError('a trajectory gets no efforts: the result is not usable')
        except DataError as cause:
            log.warning(str(cause), throttle_duration_sec=_QUIET)
            return
        place = [message.joint_names.index(joint) for joint in self._joints]
        efforts = np.zeros((len(position), len(message.joint_names)))
        torque = self._predictor.torque(position, velocity, acceleration)
        efforts[:, place] = self._predictor.setup.efforts(torque)
        for point, effort in zip(message.points, efforts.tolist(), strict=True):
            point.effort = effort
        publish(self._feedforward, message)

    def _on_joint_state(self, message: JointState) -> None:
        began = time.thread_time()
        self._compare(message)
        self._busy += time.thread_time() - began
        self._count += 1

    def _compare(self, message: JointState) -> None:
        monitor, contact = self._monitor, self._contact
        if monitor is None or contact is None:
            return
        try:
            position, velocity, effort = joint_state_values(message, self._joints)
        except DataError:
            return  # those of a gripper alone, for example
        if velocity is None or effort is None:
            return
        stamp = seconds(message.header.stamp)
        torques = monitor.update(stamp, position, velocity, effort * self._factor)
        if torques is None:
            return
        begins = not contact.touched.any()
        touched = contact.update(stamp, torques.external, torques.velocity)
        begins = begins and bool(touched.any())
        if not begins and 0.0 <= stamp - self._published < self._period:
            return
        self._published = stamp
        published = [(self._predicted, torques.predicted), (self._external, torques.external)]
        if self._usable:
            gravity = monitor.predictor.gravity_torque(position[None])[0]
            published += [(self._gravity, gravity), (self._contacts, np.where(touched, torques.external, 0.0))]
        for publisher, values in published:
            answer = JointState(name=list(self._joints), effort=values.tolist(), velocity=torques.velocity.tolist())
            answer.header.stamp = message.header.stamp
            publish(publisher, answer)


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
        node.create_subscription(JointState, 'joint_states', self._on_joint_state, newest(10))
        node.create_subscription(WrenchStamped, 'wrench', self._on_wrench, newest(10))

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
