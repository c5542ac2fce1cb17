# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The services of the payload: what the arm carries since it began to, and the driver's own service for it."""

from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robotid_ros.arrays import Array
from robotid_ros.data import ProcessingSettings, Recording, process_file, process_recording
from robotid_ros.errors import DataError, IdentificationError, MissingDependencyError
from robotid_ros.identification import IdentificationResult, PayloadResult, identify_payload
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.nodes.identification_config import IdentificationNodeConfig
from robotid_ros.nodes.messages import LATCHED, joint_state_values, publish, reliability_of, seconds
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, call_service, serve

_MOST = 600_000
"""Joint states that are kept, the last ones: 20 minutes at 500 Hz."""
_PATIENCE = 5.0
"""How long the driver's service may take [s]."""


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
        settings = ProcessingSettings(joints=joints, average=False)
        if self._robot is not None:
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

    Raises
    ------
    MissingDependencyError
        If its package is not installed.
    IdentificationError
        If the package has no such service.
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

    Raises
    ------
    IdentificationError
        If the request has no place for a mass and a centre.
    """
    turn, offset = tip[:3, :3], tip[:3, 3]
    centre = turn.T @ (found.centre_of_mass - offset)
    inertia = turn.T @ found.inertia @ turn
    written = _fill(message, found.mass, centre, inertia, frame, length)
    if not {'mass', 'centre'} <= written:
        fields = ', '.join(message.get_fields_and_field_types())
        raise IdentificationError(f'payload_service_type: it has no place for a mass and its centre, but: {fields}')


def _fill(message: Any, mass: float, centre: Array, inertia: Array, frame: str, length: float) -> set[str]:
    written: set[str] = set()
    for name, kind in message.get_fields_and_field_types().items():
        if kind == 'geometry_msgs/Inertia':
            body = getattr(message, name)
            body.m, (body.com.x, body.com.y, body.com.z) = mass, centre.tolist()
            for k, each in enumerate(('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')):
                setattr(body, each, float(inertia[np.triu_indices(3)][k]))
            written |= {'mass', 'centre'}
        elif kind == 'geometry_msgs/InertiaStamped':
            written |= _fill(getattr(message, name), mass, centre, inertia, frame, length)
        elif kind == 'std_msgs/Header':
            getattr(message, name).frame_id = frame
        elif name in ('mass', 'weight'):
            setattr(message, name, mass)
            written.add('mass')
        elif 'center' in name and kind == 'geometry_msgs/Vector3':
            place = getattr(message, name)
            place.x, place.y, place.z = centre.tolist()
            written.add('centre')
        elif 'center' in name:
            setattr(message, name, (centre / length).tolist())
            written.add('centre')
        elif 'inertia' in name:
            setattr(message, name, inertia.T.ravel().tolist())  # column by column; it is symmetric
    return written
