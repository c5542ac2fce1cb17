# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The services ``~/identify`` and ``~/cancel`` of a node that answers with a result."""

import threading
import time
from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robotid_ros.errors import RobotIdError
from robotid_ros.nodes.conversions import LATCHED
from robotid_ros.nodes.publishing import Status, publish
from robotid_ros.nodes.runtime import BackgroundWorker, answering, steady_timer
from robotid_ros.progress import Progress

_STATUS_PERIOD = 0.5


class Underway:
    """A progress callback whose state stands on a status, and which ends its work where :meth:`cancel` was called.

    ``error`` is what the work then raises, with the name of the work. The work calls it from any thread.
    """

    def __init__(self, work: str, error: type[RobotIdError]) -> None:
        self._work, self._error = work, error
        self._begun = time.monotonic()
        self._share, self._step = 0.0, work
        self._cancelled = threading.Event()

    def __call__(self, share: float, step: str) -> None:
        """Take in how far the work is and what it does; raise where it was cancelled."""
        self._share, self._step = share, step
        if self._cancelled.is_set():
            raise self._error(f'the {self._work} was given up on request')

    def cancel(self) -> None:
        """End the work at its next step."""
        self._cancelled.set()

    def values(self) -> Mapping[str, object]:
        """Return the values of a status."""
        return progress_values(self._share, self._step, time.monotonic() - self._begun)


def progress_values(share: float, step: str, elapsed: float) -> Mapping[str, object]:
    """Return share (0 to 1), step and remaining time [s] of what goes on, the last as if it went on as it did."""
    share = min(max(share, 0.0), 1.0)
    remaining = {'remaining': elapsed * (1.0 - share) / share} if share > 0.0 else {}
    return {'share': share, 'step': step, **remaining}


class IdentifyService:
    """Answers ``~/identify`` with the YAML that ``work`` makes, which stays on the latched ``~/result``.

    ``work`` runs in a thread of its own, so that the node goes on recording; it returns the YAML, a line for the
    status, and whether the result is usable.
    """

    def __init__(
        self, node: Node, status: Status, work: Callable[[Progress], tuple[str, str, bool]], error: type[RobotIdError]
    ) -> None:
        self._status, self._work, self._error = status, work, error
        self._underway: Underway | None = None
        self._answered = 0
        self._worker = BackgroundWorker(node)
        self._result = node.create_publisher(String, '~/result', LATCHED)
        group = ReentrantCallbackGroup()
        node.create_service(Trigger, '~/identify', answering(node, self._identify), callback_group=group)
        node.create_service(Trigger, '~/cancel', answering(node, self._cancel), callback_group=group)
        steady_timer(node, _STATUS_PERIOD, status.publish)

    def values(self) -> Mapping[str, object]:
        """Return what a status says: how many identifications have ended, and how far the one under way is."""
        return {'identifications': self._answered, **({} if self._underway is None else self._underway.values())}

    def close(self) -> None:
        """Forget what has not begun."""
        self._worker.close()

    async def _identify(self) -> str:
        if self._underway is not None:
            raise self._error('an identification is under way; ~/cancel ends it')
        self._underway = Underway('identification', self._error)
        self._status.set(DiagnosticStatus.OK, 'identifying')
        try:
            text, said, usable = await self._worker.run(self._work, self._underway)
        except Exception as cause:
            self._ended(DiagnosticStatus.WARN, str(cause))
            raise
        finally:
            self._underway = None  # however it ended
        publish(self._result, String(data=text))
        self._ended(DiagnosticStatus.OK if usable else DiagnosticStatus.WARN, said)
        return str(text)

    def _ended(self, level: bytes, text: str) -> None:
        self._underway, self._answered = None, self._answered + 1
        self._status.set(level, text)

    async def _cancel(self) -> str:
        if self._underway is None:
            return 'no identification is under way'
        self._underway.cancel()
        return 'the identification is being given up; the recordings stay'
