# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A client of the three nodes: calls their services and follows their status, as a user would."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import Trigger

from robotid_ros.errors import RobotIdError

NODES = ('excitation', 'recorder', 'identification')
ALWAYS = float('inf')  # a deadline for what takes as long as it takes: a design, a run, an identification


class ServiceError(RobotIdError, RuntimeError):
    """A node refused a request, or did not answer in time."""


_ASK_AGAIN = 1.0
"""How long a node has to answer the question that finds out whether it knows the client [s]."""


def introduce(node: Node, service: str, wait: Callable[[Callable[[], bool]], None]) -> None:
    """Return once the server of a service knows the clients that ``node`` has made so far.

    A server answers only readers that it has discovered. Fast DDS drops an answer to one that it has not met within
    0.1 s, and the client waits for ever; ``service_is_ready`` tells what the client knows, not what the server knows.
    Readers are announced in order. So a client that is made later and is answered proves that all before it are known.
    The question is one that may be asked any number of times: the values of no parameters.

    ``node``: the one that has made the client. ``service``: its name, ``<server's node>/<service>``. A server without
    parameters is not asked. ``wait``: handles messages until the condition it gets holds, or raises.
    """
    client = node.create_client(GetParameters, f'{service.rpartition("/")[0]}/get_parameters')
    try:
        asked: list[Any] = []
        last = -_ASK_AGAIN

        def answered() -> bool:
            nonlocal last
            if time.monotonic() - last >= _ASK_AGAIN:
                last = time.monotonic()
                asked.append(client.call_async(GetParameters.Request()))
            return any(question.done() for question in asked)

        if client.service_is_ready():
            wait(answered)
    finally:
        node.destroy_client(client)


class LoopClient:
    """Calls services one at a time while checking that the nodes run.

    Its own ``node`` looks at the graph and logs.

    ``watch``: called several times a second while waiting; raises to give up. ``domain``: ROS domain of the nodes; None
    for that of the environment. ``nodes``: nodes whose ``status`` topic is followed, in the namespace of this process.
    ``name``: of the client's own node. ``patience``: the deadline of all that is not given another [s].
    """

    def __init__(
        self,
        watch: Callable[[], None],
        domain: int | None,
        nodes: tuple[str, ...],
        name: str = 'robotid_client',
        patience: float = 10.0,
    ) -> None:
        self._watch, self._patience = watch, patience
        self._context = rclpy.Context()
        rclpy.init(context=self._context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
        self.node = rclpy.create_node(name, context=self._context)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        self.status: dict[str, DiagnosticStatus] = {}
        self._went_on = 0.0  # when a status last told progress
        for name in nodes:
            self.node.create_subscription(
                DiagnosticStatus, f'{name}/status', lambda message, name=name: self._keep(name, message), 10
            )

    def _keep(self, name: str, message: DiagnosticStatus) -> None:
        before = self.status_value(name, 'share')
        self.status[name] = message
        if self.status_value(name, 'share') != before:
            self._went_on = time.monotonic()

    def status_value(self, node: str, key: str) -> str | None:
        """Return one value of a node's last status, or None while there is none."""
        message = self.status.get(node)
        return None if message is None else next((item.value for item in message.values if item.key == key), None)

    def runs_ended(self) -> int:
        """Return how many runs of the excitation node have ended, at rest, by its last status."""
        return int(self.status_value('excitation', 'runs_ended') or 0)

    def run_is_over(self, before: int) -> bool:
        """Return whether a run ended since ``before`` runs had."""
        return self.runs_ended() > before and self.status_value('excitation', 'state') in ('finished', 'stopped')

    def require_healthy(self, node: str) -> None:
        """Raise a ServiceError with the node's own words if its last status is an error."""
        message = self.status.get(node)
        if message is not None and message.level == DiagnosticStatus.ERROR:
            raise ServiceError(f"the node '{node}' reports: {message.message}")

    def wait(self, condition: Callable[[], bool], what: str, deadline: float | None = None) -> None:
        """Handle messages until a condition holds; a ServiceError after ``deadline`` seconds without progress.

        Progress is a change of ``share`` in a status: how long a design or an identification takes is the computer's.
        """
        begun, deadline = time.monotonic(), self._patience if deadline is None else deadline
        while not condition():
            self._watch()
            if time.monotonic() > max(begun, self._went_on) + deadline:
                raise ServiceError(f'{what} did not happen within {deadline:g} s')
            self._executor.spin_once(timeout_sec=0.1)

    def wait_for_average(self) -> None:
        """Wait until the identification has all periods: the average is a large message, which answers overtake."""
        self.wait(
            lambda: self.status_value('identification', 'periods') == self.status_value('recorder', 'periods_averaged'),
            'the average of all periods',
        )

    def call(self, service: str, deadline: float | None = None) -> str:
        """Call a Trigger service and return its message; a ServiceError if it fails, or does not answer in time."""
        response = self._request(Trigger, service, Trigger.Request(), deadline)
        if not response.success:
            raise ServiceError(f'{service}: {response.message}')
        return str(response.message)

    def set_parameters(self, node: str, values: Mapping[str, Any]) -> None:
        """Set parameters of a node; a ServiceError if one is refused."""
        request = SetParameters.Request(
            parameters=[Parameter(k, value=v).to_parameter_msg() for k, v in values.items()]
        )
        response = self._request(SetParameters, f'{node}/set_parameters', request)
        for result in response.results:
            if not result.successful:
                raise ServiceError(f'/{node}: {result.reason}')

    def parameters(self, node: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the values of parameters of a node, None for one that it does not have."""
        request = GetParameters.Request(names=list(names))
        response = self._request(GetParameters, f'{node}/get_parameters', request)
        return dict(zip(names, map(parameter_value_to_python, response.values), strict=True))

    def _request(self, kind: Any, service: str, request: Any, deadline: float | None = None) -> Any:
        client = self.node.create_client(kind, service)
        try:
            self.wait(client.service_is_ready, f'the service {service} appearing', deadline)
            introduce(self.node, service, lambda known: self.wait(known, f'{service} knowing this client', deadline))
            future = client.call_async(request)
            self.wait(future.done, f'an answer of {service}', deadline)
            return future.result()
        finally:
            self.node.destroy_client(client)

    def close(self) -> None:
        """Leave the graph."""
        self._executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        rclpy.shutdown(context=self._context)
