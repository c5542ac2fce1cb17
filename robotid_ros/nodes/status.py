# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What a node says of itself and of the work that goes on; and the services ``~/identify`` and ``~/cancel``."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import count

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import String

from robotid_ros.errors import RobotIdError
from robotid_ros.nodes.messages import LATCHED, publish
from robotid_ros.nodes.runtime import serve
from robotid_ros.progress import Progress


class Status:
    """What a node says of itself: on ``~/status``, and on ``/diagnostics`` for the tools of ROS.

    The full name of the node is the name of the status, so that two arms do not collide. ``values`` returns those of a
    message; numbers are spelled with four digits. The ``text`` may be changed at any time and goes out with the next
    message; ``state`` is for nodes that have several. The ``work`` that goes on, where there is any, is among the
    values.
    """

    def __init__(
        self, node: Node, qos: QoSProfile | int, values: Callable[[], Mapping[str, object]] = dict, text: str = ''
    ) -> None:
        self._node, self._values = node, values
        self._status = node.create_publisher(DiagnosticStatus, '~/status', qos)
        self._diagnostics = node.create_publisher(DiagnosticArray, '/diagnostics', 10)
        self.level, self.text, self.state = DiagnosticStatus.OK, text, 'idle'
        self.work: Underway | None = None
        self.identifications: int | None = None  # that have ended, where the node identifies

    @contextmanager
    def underway(self, name: str, error: type[RobotIdError]) -> Iterator['Underway']:
        """Tell the progress of a work while it goes on; see :class:`Underway`."""
        self.work = begun = Underway(name, error)
        try:
            yield begun
        finally:
            if self.work is begun:
                self.work = None

    def set(self, level: bytes, text: str, state: str = '') -> None:
        """Change the status, log it if it is another one, and publish it; an empty state leaves that as it is."""
        if (level, text) != (self.level, self.text):
            logger = self._node.get_logger()
            if level == DiagnosticStatus.OK:  # rclpy wants one severity per line of code
                logger.info(text)
            elif level == DiagnosticStatus.WARN:
                logger.warning(text)
            else:
                logger.error(text)
        self.level, self.text, self.state = level, text, state or self.state
        self.publish()

    def publish(self) -> None:
        """Publish the status as it is."""
        values = dict(self._values())
        if self.identifications is not None:
            values['identifications'] = self.identifications
        if (work := self.work) is not None:
            values |= work.values()
        self.send(self.level, self.text, values)

    def send(self, level: bytes, text: str, values: Mapping[str, object]) -> None:
        """Publish a status that is not kept."""
        spelled = {key: f'{value:.4g}' if isinstance(value, float) else str(value) for key, value in values.items()}
        status = DiagnosticStatus(
            name=self._node.get_fully_qualified_name(),
            hardware_id='robotid',
            level=level,
            message=text,
            values=[KeyValue(key=key, value=value) for key, value in spelled.items()],
        )
        publish(self._status, status)
        array = DiagnosticArray(status=[status])
        array.header.stamp = self._node.get_clock().now().to_msg()
        publish(self._diagnostics, array)


class Underway:
    """The progress callback of a work: a status tells how far it is, and :meth:`cancel` ends it at its next step.

    ``error`` is what the work then raises, with its ``name``. The work calls it from any thread.
    """

    def __init__(self, name: str, error: type[RobotIdError]) -> None:
        self.name, self._error = name, error
        self._begun = time.monotonic()
        self._share, self._step = 0.0, name
        self._cancelled = threading.Event()

    def __call__(self, share: float, step: str) -> None:
        """Take in how far the work is and what it does; raise where it was cancelled."""
        self._share, self._step = share, step
        if self._cancelled.is_set():
            raise self._error(f'the {self.name} was given up on request')

    def cancel(self) -> None:
        """End the work at its next step."""
        self._cancelled.set()

    def values(self) -> Mapping[str, object]:
        """Return share (0 to 1), step and remaining time [s], the last as if it went on as it did."""
        share, elapsed = min(max(self._share, 0.0), 1.0), time.monotonic() - self._begun
        remaining = {'remaining': elapsed * (1.0 - share) / share} if share > 0.0 else {}
        return {'share': share, 'step': self._step, **remaining}


def serve_identify(
    node: Node, status: Status, work: Callable[[Progress], Awaitable[tuple[str, str, bool]]], error: type[RobotIdError]
) -> None:
    """Answer ``~/identify`` with the YAML that ``work`` makes, which stays on the latched ``~/result``.

    ``work`` waits for another thread, so that the node goes on recording; it returns the YAML, a line for the status,
    and whether the result is good. ``~/cancel`` ends it, or what else the status says is under way. The status counts
    the identifications that have ended.
    """
    result = node.create_publisher(String, '~/result', LATCHED)
    status.identifications, ended = 0, count(1)

    async def identify() -> str:
        if status.work is not None:
            raise error(f'the {status.work.name} is under way; ~/cancel ends it')
        try:
            with status.underway('identification', error) as underway:
                status.set(DiagnosticStatus.OK, 'identifying')
                text, said, good = await work(underway)
        except Exception as cause:
            status.identifications = next(ended)
            status.set(DiagnosticStatus.WARN, str(cause))
            raise
        publish(result, String(data=text))
        status.identifications = next(ended)
        status.set(DiagnosticStatus.OK if good else DiagnosticStatus.WARN, said)
        return text

    async def cancel() -> str:
        if status.work is None:
            return 'nothing is under way'
        status.work.cancel()
        return f'the {status.work.name} is being given up; the recordings stay'

    serve(node, identify=identify, cancel=cancel)
