# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The services ``~/identify`` and ``~/cancel`` of a node that answers with a result."""

from collections.abc import Callable, Mapping

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from std_msgs.msg import String
from std_srvs.srv import Trigger

from robotid_ros.errors import RobotIdError
from robotid_ros.nodes.conversions import LATCHED
from robotid_ros.nodes.publishing import Status, publish
from robotid_ros.nodes.runtime import BackgroundWorker, answering
from robotid_ros.nodes.simulated_time import steady_timer
from robotid_ros.nodes.underway import Underway
from robotid_ros.progress import Progress

_STATUS_PERIOD = 0.5


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
        self._worker = BackgroundWorker(node)
        self._result = node.create_publisher(String, '~/result', LATCHED)
        group = ReentrantCallbackGroup()
        node.create_service(Trigger, '~/identify', answering(node, self._identify), callback_group=group)
        node.create_service(Trigger, '~/cancel', answering(node, self._cancel), callback_group=group)
        steady_timer(node, _STATUS_PERIOD, status.publish)

    def values(self) -> Mapping[str, object]:
        """Return what a status says while an identification is under way."""
        return {} if self._underway is None else self._underway.values()

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
            self._status.set(DiagnosticStatus.WARN, str(cause))
            raise
        finally:
            self._underway = None
        publish(self._result, String(data=text))
        self._status.set(DiagnosticStatus.OK if usable else DiagnosticStatus.WARN, said)
        return str(text)

    async def _cancel(self) -> str:
        if self._underway is None:
            return 'no identification is under way'
        self._underway.cancel()
        return 'the identification is being given up; the recordings stay'
