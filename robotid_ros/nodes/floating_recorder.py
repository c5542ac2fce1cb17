# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``floating_recorder``: records a free-floating robot, and identifies what it has captured.

It follows ``joint_states`` and the motion of the base: ``odom`` (``nav_msgs/Odometry``, where nav_msgs is installed) or
``base_twist`` (``geometry_msgs/TwistStamped``) with ``base_pose`` (``geometry_msgs/PoseStamped``), and writes the
messages as they came into one rosbag2 folder. Services: ``~/start``, ``~/stop``, and ``~/identify``, which answers from
the newest recording as ``robotid free-floating identify`` does. ``~/status`` counts messages.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.messages import MessageChunk
from robotid_ros.errors import DataError, IdentificationError, RobotIdError
from robotid_ros.free_floating import identify_target, read_measurement, read_mission
from robotid_ros.nodes.messages import subscribe_to_published
from robotid_ros.nodes.parameters import declare_parameters, read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, run_node, serve, steady_timer, wait_for
from robotid_ros.nodes.status import Status, serve_identify
from robotid_ros.progress import Progress
from robotid_ros.settings import Settings, setting

_DEPTH = 5000
_LOOK, _WRITE, _STATUS_PERIOD = 0.2, 0.5, 0.5  # [s]
_NEEDED = (({'joint_states'}, 'joint states'), ({'odom', 'base_twist'}, 'the twist of the base'))


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatingRecorderConfig(Settings):
    """Where recordings go, and how a target is identified from them."""

    error = DataError

    output_folder: str = setting('recordings', 'Folder in which each recording gets one of its own')
    start_timeout: float = setting(5.0, 'How long start waits for an arm to appear', unit='s', range=(0.1, 300.0))
    mission: str = setting('', 'Mission file with robot, prior and sensors; empty: the packaged example')
    estimator: Literal['weighted', 'ordinary', 'recursive'] = setting('weighted', 'How the target is estimated')
    momentum: Literal['zero', 'estimated'] = setting('zero', 'Momentum of the whole system; estimated needs the pose')


class FloatingRecorder(Node):
    """Writes joint states and the motion of the base, as they come."""

    def __init__(self, **options: Any) -> None:
        super().__init__('floating_recorder', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        declare_parameters(self, FloatingRecorderConfig)
        self._worker = BackgroundWorker(self)
        self._solver = BackgroundWorker(self)  # so that recording goes on
        self._lock = threading.Lock()
        self._writer: BagWriter | None = None
        self._waiting: deque[tuple[str, bytes, int]] = deque()  # topic, message, arrival [ns]
        self._kinds: dict[str, Any] = {'joint_states': JointState, 'base_twist': TwistStamped, 'base_pose': PoseStamped}
        with suppress(ImportError):
            from nav_msgs.msg import Odometry

            self._kinds['odom'] = Odometry
        self._unheard: dict[str, tuple[Any, Callable[[Any], None]]] = {
            topic: (kind, partial(self._receive, topic)) for topic, kind in self._kinds.items()
        }
        self._counts: Mapping[str, int] = {}  # messages of the recording, by topic
        self._status = Status(self, 10, lambda: self._counts)
        serve_identify(self, self._status, partial(self._solver.run, self._identified), IdentificationError)
        serve(self, start=partial(self._worker.run, self._start), stop=partial(self._worker.run, self._stop))
        steady_timer(self, _STATUS_PERIOD, self._status.publish)
        steady_timer(self, _LOOK, partial(subscribe_to_published, self, self._unheard, _DEPTH, raw=True))
        steady_timer(self, _WRITE, lambda: self._worker.run(self._write))

    def close(self) -> None:
        """End a recording that is going on, so that nothing of it is lost."""
        with suppress(RobotIdError):
            self._stop()
        self._solver.close()
        self._worker.close()

    def _receive(self, topic: str, message: bytes) -> None:
        if self._writer is not None:
            self._waiting.append((topic, bytes(message), time.time_ns()))

    # --- in the worker's thread ---

    def _start(self) -> str:
        if self._writer is not None:
            return f'recording already, to {self._writer.folder}'
        config = read_parameters(self, FloatingRecorderConfig)
        wait_for(lambda: all(topics & self._heard() for topics, _ in _NEEDED), config.start_timeout)
        heard = self._heard()
        for topics, what in _NEEDED:
            if not topics & heard:
                names = ' or '.join(self.resolve_topic_name(topic) for topic in sorted(topics))
                raise DataError(f'nobody publishes {what}, on {names}')
        parent = Path(config.output_folder).expanduser()
        folder = parent / datetime.now().strftime('%Y%m%d-%H%M%S-%f')
        types = dict(self._topic(topic) for topic in sorted(heard))
        self._waiting.clear()
        self._writer = BagWriter(folder, types)
        self._counts = self._writer.messages
        return f'recording to {folder}'

    def _heard(self) -> set[str]:
        return set(self._kinds) - set(self._unheard)

    def _topic(self, topic: str) -> tuple[str, str]:
        """Return the name of a topic, and that of its type, as a bag has them."""
        kind = self._kinds[topic]
        return self.resolve_topic_name(topic), f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'

    def _write(self) -> None:
        """Write what has come."""
        with self._lock:
            writer = self._writer
            if writer is None:
                return
            waiting: dict[str, list[tuple[bytes, int]]] = {}
            for _ in range(len(self._waiting)):  # more may be appended meanwhile
                topic, message, arrival = self._waiting.popleft()
                waiting.setdefault(topic, []).append((message, arrival))
            try:
                for topic, messages in waiting.items():
                    name, kind = self._topic(topic)
                    writer.add_topic(name, kind)
                    data, arrivals = zip(*messages, strict=True)
                    writer.append(name, MessageChunk.of(data, arrivals))
            except OSError as cause:
                self._writer = None
                self._status.set(DiagnosticStatus.ERROR, f'recording failed: {cause.strerror}')
                return
        self._status.set(DiagnosticStatus.OK, f'recording to {writer.folder}')

    def _stop(self) -> str:
        if self._writer is None:
            raise DataError('nothing is being recorded')
        self._write()
        with self._lock:
            writer, self._writer = self._writer, None
        if writer is None:
            raise DataError('the recording failed; see the log')
        writer.close()
        text = f'{sum(writer.messages.values())} messages in {writer.folder}'
        self._status.set(DiagnosticStatus.OK, text)
        return text

    # --- in the thread of ~/identify ---

    def _identified(self, progress: Progress) -> tuple[str, str, bool]:
        """Return the result of the newest recording as YAML, a line, and whether it is usable."""
        if self._writer is not None:
            raise DataError('a recording is going on; call ~/stop first')
        config = read_parameters(self, FloatingRecorderConfig)
        folder = Path(config.output_folder).expanduser()
        recordings = sorted(path.parent for path in folder.glob('*/metadata.yaml'))
        if not recordings:
            raise DataError(f'no recording in {folder}; call ~/start, move the arm, and call ~/stop')
        mission = read_mission(config.mission)
        progress(0.0, f'reading {recordings[-1]}')
        measurement = read_measurement(recordings[-1], mission.robot.arm.joint_names)
        progress(0.2, 'estimating')
        result = identify_target(
            mission.robot, measurement, estimator=config.estimator, noise=mission.noise, momentum=config.momentum
        )
        said = f'identified: {result.target.mass:.4g} +- {result.target_deviation[0]:.2g} kg'
        said = f'{said}; {result.reason}' if result.reason else said
        return result.to_yaml(mission=mission.name, recording=str(recordings[-1])), said, result.usable


main = partial(run_node, FloatingRecorder)

if __name__ == '__main__':
    sys.exit(main())
