# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a controller's parameters say of how it takes trajectories."""

import threading
import time
from collections.abc import Sequence
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.node import Node

from robotid_ros.errors import ExcitationError
from robotid_ros.nodes.conversions import node_names

_ANSWER = 2.0
"""How long a controller may take to answer [s]."""
_REPLACEMENT, _INTERPOLATION = 'allow_trajectory_replacement', 'interpolation_method'


def controllers_of(node: Node, topic: str, action: str, *, by_action: bool) -> list[str]:
    """Return the nodes that take trajectories on a topic, or serve an action."""
    if by_action:
        found = node.get_publishers_info_by_topic(f'{node.resolve_service_name(action)}/_action/feedback')
    else:
        found = node.get_subscriptions_info_by_topic(topic)
    return sorted(set(node_names(found)))


def replacement(node: Node, controllers: Sequence[str]) -> str:
    """Return 'immediate' or 'blend', as the first controller that tells says; off the executor's thread.

    Raises
    ------
    ExcitationError
        If none tells, or it does not interpolate.
    """
    for controller in controllers:
        known = _parameters(node, controller)
        if known.get(_INTERPOLATION) == 'none':
            raise ExcitationError(
                f'{controller} does not interpolate (interpolation_method: none): it would leap from point to point; '
                'set it to splines'
            )
        if _REPLACEMENT in known:
            return 'blend' if known[_REPLACEMENT] else 'immediate'
        if _INTERPOLATION in known:  # a joint_trajectory_controller before that parameter
            return 'immediate'
    raise ExcitationError(
        f'the controller ({", ".join(controllers) or "none"}) does not say how it replaces a trajectory: set '
        'trajectory_replacement to immediate, or to blend where it goes on along its trajectory until the start of the '
        'new one'
    )


def _parameters(node: Node, controller: str) -> dict[str, Any]:
    """Return those of the parameters above that a node has; none where it does not answer."""
    listed = _call(node, ListParameters, f'{controller}/list_parameters', ListParameters.Request())
    names = [name for name in (_REPLACEMENT, _INTERPOLATION) if listed is not None and name in listed.result.names]
    if not names:
        return {}
    answer = _call(node, GetParameters, f'{controller}/get_parameters', GetParameters.Request(names=names))
    if answer is None:
        return {}
    return {
        name: value.bool_value if value.type == ParameterType.PARAMETER_BOOL else value.string_value
        for name, value in zip(names, answer.values, strict=True)
        if value.type in (ParameterType.PARAMETER_BOOL, ParameterType.PARAMETER_STRING)
    }


def _call(node: Node, kind: Any, name: str, request: Any) -> Any:
    """Return the answer of a service, or None; the executor spins in another thread."""
    client, answered = node.create_client(kind, name), threading.Event()
    try:
        deadline = time.monotonic() + _ANSWER
        while not client.service_is_ready():
            if time.monotonic() > deadline:
                return None
            time.sleep(0.02)
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        return future.result() if answered.wait(_ANSWER) else None
    finally:
        node.destroy_client(client)
