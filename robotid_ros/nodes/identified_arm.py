# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What an identified arm feels and carries, told live, and the parameters of the node that tells it.

It feels the torques of its joints, and a wrench that is published without bias and weight. What it carries since it
began to is answered by a service, and handed to the driver by its own service for it.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.data import ProcessingSettings, Recording, process_file, process_recording
from robotid_ros.errors import DataError, IdentificationError, MissingDependencyError
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.loads import PayloadResult, identify_payload
from robotid_ros.loads.contact import ContactDetector, ContactLevels, TorqueMonitor, standstill_friction
from robotid_ros.loads.wrench import WrenchResult, flange_motion
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.nodes.description import DescriptionConfig
from robotid_ros.nodes.messages import (
    LATCHED,
    joint_state_values,
    newest,
    publish,
    reliability_of,
    seconds,
    trajectory_arrays,
)
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, call_service, serve
from robotid_ros.reading import read_yaml
from robotid_ros.settings import setting

_QUIET = 5.0
"""Least time between two warnings of trajectories that get no efforts: a planner may send a hundred a second [s]."""
_MOST = 600_000
"""Joint states that are kept, the last ones: 20 minutes at 500 Hz."""
_PATIENCE = 5.0
"""How long the driver's service may take [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationNodeConfig(DescriptionConfig):
    """What the node is told besides the settings of the identification."""

    error = IdentificationError

    recordings: tuple[str, ...] = setting(
        (),
        'Folders whose recordings, at any depth, are taken at the start and at ~/identify, so that a restart loses '
        "none; a launch file gives that of the recorder unless it is told others, or 'none'",
    )
    joints: tuple[str, ...] = setting((), 'Joints to identify; empty: all of the arm', read_only=True)
    monitor_rate: float = setting(
        1000.0, 'How often at most torques are published, one message for a joint state', unit='Hz', range=(0.0, 1000.0)
    )
    monitor_cutoff: float = setting(
        10.0, 'Low-pass of the motion that torques are predicted from', unit='Hz', range=(0.1, 500.0)
    )
    stop_when: float = setting(
        0.0,
        'Deviation at which a run has told enough and is stopped: of the parameters in stop_parameters, or of the '
        'torque by any one parameter; 0: never',
        unit='%',
        range=(0.0, 100.0),
    )
    stop_parameters: tuple[str, ...] = setting((), 'Base parameters whose relative deviation stop_when means')
    output_folder: str = setting(
        '',
        'Where ~/identify writes result.yaml, calibrated.urdf, the data and report.html, each time to a folder of its '
        'own; empty: nowhere',
    )
    false_alarms: float = setting(1.0, 'Contacts reported without one, per hour of motion', range=(1e-6, 3600.0))
    contact_levels: str = setting(
        '',
        'contact.yaml of robotid contact: its levels and filter in place of the residual; empty: none',
        read_only=True,
    )
    arm_result: str = setting(
        '', 'result.yaml of the arm without a payload, for ~/payload; empty: what ~/identify found last'
    )
    wrench_result: str = setting(
        '',
        'wrench.yaml of robotid wrench: what comes on wrench goes out on ~/wrench without bias and weight; empty: not',
        read_only=True,
    )
    payload_torque_deviation: float = setting(
        5.0,
        'How far the torque constants may be off, in one standard deviation: mass_std_with_torque_constants has it; '
        'motor currents 5, joint torque sensors 1',
        unit='%',
        range=(0.0, 100.0),
    )
    payload_service: str = setting('', "The driver's service that ~/payload_to_driver calls; empty: none")
    payload_service_type: str = setting(
        '', 'Its type: ur_msgs/srv/SetPayload, franka_msgs/srv/SetLoad or xarm_msgs/srv/SetTcpLoad, for example'
    )
    payload_frame: str = setting('', 'Name of the flange in requests that have a frame; their values are in the tip')
    payload_length_unit: float = setting(
        1.0, 'Unit of a centre that is a list of numbers; 0.001 for xArm', unit='m', range=(1e-6, 1e3)
    )


def read_levels(path: str) -> ContactLevels | None:
    """Return the levels of a file of ``robotid contact``, None where none is named.

    Raises an IdentificationError if it is none.
    """
    if not path:
        return None
    content = read_yaml(path, 'levels of robotid contact', IdentificationError)
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


def publish_wrench(node: Node, path: str, arm: Callable[[], RobotModel | None]) -> None:
    """Publish ``~/wrench``: what comes on ``wrench`` less bias and weight, as the last joint state turns the tool.

    What the tool needs to be accelerated is left in it. ``arm`` returns the arm once it is known.

    Raises a RobotIdError if the file is not one of ``robotid wrench``.
    """
    content = read_yaml(path, 'result of robotid wrench', IdentificationError)
    found = WrenchResult.from_dict(content.get('wrench') if isinstance(content, dict) else None)
    weight: Array | None = None
    compensated = node.create_publisher(WrenchStamped, '~/wrench', 10)

    def turn(message: JointState) -> None:
        nonlocal weight
        model = arm()
        if model is None or not compensated.get_subscription_count():
            return
        try:
            position = joint_state_values(message, model.joint_names)[0]
        except DataError:
            return  # those of a gripper alone, for example
        still = np.zeros((1, model.n))
        weight = found.tool_wrench(*flange_motion(model, position[None], still, still))[0]

    def compensate(message: WrenchStamped) -> None:
        if weight is None:
            return
        parts = [(part, axis) for part in (message.wrench.force, message.wrench.torque) for axis in 'xyz']
        for (part, axis), less in zip(parts, (found.bias + weight).tolist(), strict=True):
            setattr(part, axis, getattr(part, axis) - less)
        publish(compensated, message)

    node.create_subscription(JointState, 'joint_states', turn, newest(10))
    node.create_subscription(WrenchStamped, 'wrench', compensate, newest(10))


class PayloadService:
    """Keeps joint states from ``~/payload_start`` on and answers ``~/payload`` with what the arm carried meanwhile.

    Without a start, the newest recording of the recorder is taken. After an answer the next one counts from there.
    ``robot`` says how efforts are read; ``arm`` returns the arm and its own result, where there is one; ``recordings``
    those that the recorder has left.
    """

    def __init__(
        self,
        node: Node,
        worker: BackgroundWorker,
        robot: RobotConfig | None,
        arm: Callable[[], tuple[RobotModel, IdentificationResult | None]],
        recordings: Callable[[], list[Path]],
    ) -> None:
        self._node, self._worker, self._robot, self._arm, self._recordings = node, worker, robot, arm, recordings
        self._kept: deque[tuple[float, Array, Array]] = deque(maxlen=_MOST)
        self._joint_states: Subscription | None = None
        self._joints: tuple[str, ...] = ()
        self._found: tuple[PayloadResult, Array] | None = None
        self._result = node.create_publisher(String, '~/payload_result', LATCHED)
        serve(node, payload_start=self._start, payload=self._identify, payload_to_driver=self._hand_over)

    def values(self) -> dict[str, object]:
        """Return what a status says of the joint states that are kept."""
        return {} if self._joint_states is None else {'payload_samples': len(self._kept)}

    async def _start(self) -> str:
        """Keep joint states from now on."""
        self._joints = self._arm()[0].joint_names
        self._kept.clear()
        if self._joint_states is None:
            publishers = self._node.get_publishers_info_by_topic('joint_states')
            profile = QoSProfile(depth=1000, reliability=reliability_of(publishers))
            self._joint_states = self._node.create_subscription(JointState, 'joint_states', self._keep, profile)
        return 'joint states are kept from now on; move the arm for about ten seconds, then call ~/payload'

    def _keep(self, message: JointState) -> None:
        try:
            position, _, effort = joint_state_values(message, self._joints)
        except DataError:
            return  # those of a gripper alone, for example
        if effort is not None:
            self._kept.append((seconds(message.header.stamp), position, effort))

    async def _identify(self) -> str:
        (model, arm), config = self._arm(), read_parameters(self._node, IdentificationNodeConfig)
        if config.arm_result:
            arm = IdentificationResult.load(Path(config.arm_result).expanduser())
        if arm is None:
            raise IdentificationError(
                'the arm alone is not known: call ~/identify without the payload, or set arm_result to a result.yaml'
            )
        kept = list(self._kept) if self._joint_states is not None else None
        found = await self._worker.run(self._payload, model, arm, kept)
        self._kept.clear()
        self._found = (found, model.tip)
        content = {
            'robot': model.name,
            'payload': found.to_dict(0.01 * config.payload_torque_deviation),
            'says': found.said(),
        }
        text = yaml.safe_dump(content, sort_keys=False)
        publish(self._result, String(data=text))
        return text

    async def _hand_over(self) -> str:
        """Give the last payload to the driver, and return what it answers."""
        config = read_parameters(self._node, IdentificationNodeConfig)
        if self._found is None:
            raise IdentificationError('no payload is known yet: call ~/payload first')
        if not config.payload_service or not config.payload_service_type:
            raise IdentificationError(
                "the driver's service is not named: set payload_service and payload_service_type, for example "
                '/io_and_status_controller/set_payload and ur_msgs/srv/SetPayload'
            )
        found, tip = self._found
        missing = [name for name in found.undetermined if name != 'inertia']
        if missing:
            raise IdentificationError(f'not handed over: its {" and ".join(missing)} are not known; {found.said()}')
        kind = service_type(config.payload_service_type)
        request = kind.Request()
        fill(request, found, tip, config.payload_frame, config.payload_length_unit)
        service = config.payload_service
        answer = await self._worker.run(call_service, self._node, kind, service, request, _PATIENCE)
        if answer is None:
            raise IdentificationError(
                f'{service} is not there, is no {config.payload_service_type}, or did not answer within '
                f'{_PATIENCE:g} s; is the driver on?'
            )
        refused = getattr(answer, 'success', True) is False or getattr(answer, 'ret', 0) != 0
        why = getattr(answer, 'error', '') or getattr(answer, 'message', '')
        if refused:
            raise IdentificationError(f'the driver refused the payload: {why or "it gives no reason"}')
        return f'{config.payload_service} took {found.mass:.4g} kg'

    def _payload(
        self, model: RobotModel, arm: IdentificationResult, kept: Sequence[tuple[float, Array, Array]] | None
    ) -> PayloadResult:
        """Return the payload from joint states that were kept, or from the newest recording."""
        joints = model.joint_names
        settings = ProcessingSettings.for_robot(self._robot, joints=joints, average=False)
        if kept is None:
            recordings = [(path.stat().st_mtime, path) for path in self._recordings()]
            if not recordings:
                raise DataError('nothing was recorded: call ~/payload_start when the arm has the payload, then move it')
            return identify_payload(process_file(max(recordings)[1], settings)[0], model, arm)
        if len(kept) < 2:
            raise DataError('no joint state with efforts came since the start; is the driver on?')
        time, position, effort = (np.array(column) for column in zip(*kept, strict=True))
        recording = Recording(joint_names=joints, time=time - time[0], position=position, effort=effort)
        return identify_payload(process_recording(recording, settings), model, arm)


def service_type(name: str) -> Any:
    """Return the type of a service by its name, as in ``ur_msgs/srv/SetPayload``.

    Raises a MissingDependencyError if its package is not installed. Raises an IdentificationError if the package has no
    such service.
    """
    package, _, kind = name.partition('/srv/')
    try:
        services = import_module(f'{package}.srv')
    except (ImportError, ValueError, TypeError) as cause:
        raise MissingDependencyError(
            f"{name} needs the ROS package '{package}', which is not here: install it with the driver"
        ) from cause
    if not hasattr(services, kind or ' '):
        raise IdentificationError(f"payload_service_type: expected the form 'ur_msgs/srv/SetPayload', got '{name}'")
    return getattr(services, kind)


def fill(message: Any, found: PayloadResult, tip: Array, frame: str, length: float) -> None:
    """Write a payload into a driver's request, whatever its layout: mass, centre and inertia are told by their names.

    Drivers want the payload in the frame of their flange, which is the tip of the arm's description: ``tip`` is its
    pose in the last link, shape (4, 4). ``length`` is the driver's unit of a centre that is a list of numbers [m].

    Raises an IdentificationError if the request has no place for a mass and a centre.
    """
    turn, offset = tip[:3, :3], tip[:3, 3]
    centre = turn.T @ (found.centre_of_mass - offset)
    inertia = turn.T @ found.inertia @ turn
    written: set[str] = set()
    parts = [message]
    for part in parts:  # it grows by the parts of a part
        for name, kind in part.get_fields_and_field_types().items():
            if kind == 'geometry_msgs/Inertia':
                body = getattr(part, name)
                body.m, (body.com.x, body.com.y, body.com.z) = found.mass, centre.tolist()
                for k, each in enumerate(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')):
                    setattr(body, each, float(inertia[np.triu_indices(3)][k]))
                written |= {'mass', 'centre'}
            elif kind == 'geometry_msgs/InertiaStamped':
                parts.append(getattr(part, name))
            elif kind == 'std_msgs/Header':
                getattr(part, name).frame_id = frame
            elif name in ('mass', 'weight'):
                setattr(part, name, found.mass)
                written.add('mass')
            elif 'center' in name and kind == 'geometry_msgs/Vector3':
                place = getattr(part, name)
                place.x, place.y, place.z = centre.tolist()
                written.add('centre')
            elif 'center' in name:
                setattr(part, name, (centre / length).tolist())
                written.add('centre')
            elif 'inertia' in name:
                setattr(part, name, inertia.T.ravel().tolist())  # column by column; it is symmetric
    if not {'mass', 'centre'} <= written:
        fields = ', '.join(message.get_fields_and_field_types())
        raise IdentificationError(f'payload_service_type: it has no place for a mass and its centre, but: {fields}')
