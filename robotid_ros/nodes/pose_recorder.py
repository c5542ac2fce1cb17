# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``pose_recorder``: pairs the joints of a resting arm with the measured pose or point of its tool.

It follows ``joint_states`` and ``measured_pose`` (``geometry_msgs/PoseStamped``) or ``measured_point``
(``geometry_msgs/PointStamped``) of a tracker or camera, or a frame on ``/tf``. The service ``~/measure`` averages both
and adds a row to the points file that ``robotid calibrate`` reads; with ``automatic`` a row is added wherever the arm
comes to rest. ``~/status`` tells what was measured last. ``~/identify`` answers from the points file as ``robotid
calibrate`` does, with the calibrated arm on ``~/robot_description``.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PointStamped, PoseStamped, Quaternion
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String

from robotid_ros.calibration import CalibrationConfig, append_points, calibrate, read_points
from robotid_ros.calibration.pairing import PairingConfig, RestingPairs
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.result import calibrated_urdf
from robotid_ros.errors import CalibrationError, DataError, MissingDependencyError, RobotIdError
from robotid_ros.model import RobotModel
from robotid_ros.nodes.messages import LATCHED, joint_state_values, publish, seconds, subscribe_to_published
from robotid_ros.nodes.parameters import declare_parameters, read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, run_node, serve, steady_timer
from robotid_ros.nodes.status import Status, serve_identify
from robotid_ros.progress import Progress
from robotid_ros.settings import Settings, setting

_POLL, _LOOK, _STATUS_PERIOD = 0.02, 0.2, 0.5  # [s]
_DEPTH = 2000  # joint states: four seconds at 500 Hz
_FRAMES = 20  # transforms of /tf that a refusal names at most


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseRecorderConfig(Settings):
    """What the node is told besides the settings of a pairing."""

    error = CalibrationError

    points_file: str = setting('points.csv', 'Points file to add rows to', read_only=True)
    joints: tuple[str, ...] = setting((), 'Joints to record; empty: all of the first joint state', read_only=True)
    automatic: bool = setting(False, 'Add a row wherever the arm comes to rest, without being asked')
    timeout: float = setting(5.0, 'How long ~/measure waits for enough data', unit='s', range=(0.0, 600.0))
    tf_parent: str = setting('', 'Frame of the instrument, to take the target from /tf', read_only=True)
    tf_child: str = setting('', 'Frame of the target, to take it from /tf', read_only=True)

    def check(self) -> None:
        """Refuse one frame without the other."""
        if bool(self.tf_parent) != bool(self.tf_child):
            raise self.error('tf_parent and tf_child: expected both, the frames of instrument and target, or neither')


class PoseRecorder(Node):
    """Adds rows to a points file."""

    def __init__(self, **options: Any) -> None:
        super().__init__('pose_recorder', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        self._config = declare_parameters(self, PoseRecorderConfig)
        declare_parameters(self, PairingConfig)
        self._joints = self._config.joints  # the robot configuration's are the same parameter
        self._pairs: RestingPairs | None = None
        self._problem = ''
        self._others: set[str] = set()  # transforms of /tf that are not the one wanted
        self._count = 0
        self._worker = BackgroundWorker(self)
        self._solver = BackgroundWorker(self)  # so that recording goes on
        declare_parameters(self, CalibrationConfig)
        self._description = ''
        self.create_subscription(String, 'robot_description', self._receive_description, LATCHED)
        self._calibrated = self.create_publisher(String, '~/robot_description', LATCHED)
        points_file = self._config.points_file
        self._status = Status(self, 10, lambda: {'rows': self._count, 'points_file': points_file})
        serve_identify(self, self._status, partial(self._solver.run, self._identified), CalibrationError)
        receive = self._receive_target
        wanted: dict[str, tuple[Any, Callable[[Any], None]]] = {
            'joint_states': (JointState, self._receive_joints),
            'measured_pose': (PoseStamped, lambda m: receive(m.header, m.pose.position, m.pose.orientation)),
            'measured_point': (PointStamped, lambda m: receive(m.header, m.point, None)),
        }
        if self._config.tf_parent:
            try:
                from tf2_msgs.msg import TFMessage
            except ImportError as cause:
                raise MissingDependencyError(
                    'tf_parent and tf_child need the ROS package tf2_msgs; install it, or publish the target as '
                    'measured_pose'
                ) from cause
            wanted['/tf'] = (TFMessage, self._receive_transforms)
        steady_timer(self, _STATUS_PERIOD, self._status.publish)
        steady_timer(self, _LOOK, partial(subscribe_to_published, self, wanted, _DEPTH))
        serve(self, measure=self._measure)

    def close(self) -> None:
        """Forget work that has not begun."""
        self._solver.close()
        self._worker.close()

    # --- what comes in ---

    def _receive_joints(self, message: JointState) -> None:
        joints = self._joints = self._joints or tuple(message.name)
        try:
            position, _, _ = joint_state_values(message, joints)
        except DataError as refusal:
            self._problem = str(refusal)
            return
        if self._pairs is None:
            self._pairs = RestingPairs(joints, read_parameters(self, PairingConfig))
        if np.isfinite(position).all():
            self._pairs.receive_joints(seconds(message.header.stamp), position)
            self._look()

    def _receive_description(self, message: String) -> None:
        self._description = message.data

    def _receive_transforms(self, message: Any) -> None:
        for each in message.transforms:
            frames = (each.header.frame_id, each.child_frame_id)
            if frames == (self._config.tf_parent, self._config.tf_child):
                self._receive_target(each.header, each.transform.translation, each.transform.rotation)
            elif len(self._others) < _FRAMES:
                self._others.add(f"'{frames[0]}' to '{frames[1]}'")

    def _receive_target(self, header: Header, place: Any, turn: Quaternion | None) -> None:
        position = np.array([place.x, place.y, place.z])
        quaternion = None if turn is None else np.array([turn.w, turn.x, turn.y, turn.z])
        if self._pairs is None or not np.isfinite(position).all():
            return
        self._pairs.receive_target(seconds(header.stamp), position, quaternion)
        self._look()

    def _look(self) -> None:
        """Add a row if that is to be done unasked and the arm rests where none was taken yet."""
        assert self._pairs is not None
        if self._pairs.advanced and self.get_parameter('automatic').value:
            found = self._pairs.measure_new_place(read_parameters(self, PairingConfig))
            if found is not None:
                self._add_row(*found)

    # --- the service ---

    async def _measure(self) -> str:
        end = time.monotonic() + read_parameters(self, PoseRecorderConfig).timeout
        while (self._pairs is None or not self._pairs.ready) and time.monotonic() <= end:
            await self._worker.run(time.sleep, _POLL)
        if self._pairs is None:
            raise CalibrationError(f'no joint state has come{": " + self._problem if self._problem else ""}')
        if self._config.tf_parent and not self._pairs.has_target:
            wanted = f"no transform from '{self._config.tf_parent}' to '{self._config.tf_child}' has come on /tf"
            others = f'; those from {", ".join(sorted(self._others))} have' if self._others else ''
            raise CalibrationError(wanted + others)
        return str(await self._add_row(*self._pairs.measure(read_parameters(self, PairingConfig))))

    def _add_row(self, point: MeasuredPoints, scatter: float) -> Any:
        """Add a row to the file, off the executor's thread; return a future of what to say."""

        def write() -> str:
            try:
                self._count = append_points(self._config.points_file, point)
                text = f'{self._count} rows in {self._config.points_file}; the target scattered {1e3 * scatter:.3g} mm'
                self._status.set(DiagnosticStatus.OK, text)
                return text
            except RobotIdError as refusal:
                self._status.set(DiagnosticStatus.ERROR, str(refusal))
                raise

        return self._worker.run(write)

    # --- in the thread of ~/identify ---

    def _identified(self, progress: Progress) -> tuple[str, str, bool]:
        """Return the calibration from the points file as YAML, a line, and whether it converged."""
        if not self._description:
            raise CalibrationError('no robot description has come yet; the nominal arm is taken from it')
        robot = RobotModel.from_urdf(self._description, joints=self._joints or None)
        config = read_parameters(self, CalibrationConfig)
        path = Path(self._config.points_file).expanduser()
        result = calibrate(robot, read_points(path).for_joints(robot.joint_names), config, progress=progress)
        publish(self._calibrated, String(data=calibrated_urdf(result)))
        cross = result.cross_validation
        after, kind = (result.after, 'fitted to') if cross is None else (cross.after, 'cross-validated')
        said = f'calibrated from {len(result.points)} measurements: {1e3 * result.before.rms:.3g} mm before, '
        said += f'{1e3 * after.rms:.3g} mm after ({kind})'
        return result.to_yaml([path], config.to_dict()), said, result.usable


main = partial(run_node, PoseRecorder)

if __name__ == '__main__':
    sys.exit(main())
