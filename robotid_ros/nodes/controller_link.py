# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How trajectories reach the controller: what a run needs of it, and the topic that every one has."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import numpy as np
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import DataError, ExcitationError
from robotid_ros.nodes.conversions import node_names, seconds
from robotid_ros.nodes.publishing import publish

_ANSWER = 2.0
"""How long a controller may take to answer [s]."""
_REPLACEMENT, _INTERPOLATION, _TIME = 'allow_trajectory_replacement', 'interpolation_method', 'use_sim_time'
_POLL = 0.05
_STATE_PERIOD = 0.02
"""Of the controller states that are looked at [s]."""


def replacement(node: Node, controllers: Sequence[str]) -> str:
    """Return 'immediate' or 'blend', as the first controller that tells says; off the executor's thread.

    Raises
    ------
    ExcitationError
        If none tells, it does not interpolate, or its time is not that of this node.
    """
    for controller in controllers:
        known = _parameters(node, controller)
        _require_time(node, controller, known.get(_TIME))
        if known.get(_INTERPOLATION) == 'none':
            raise ExcitationError(
                f'{controller} does not interpolate (interpolation_method: none): it would leap from point to point; '
                'set it to splines'
            )
        if known.get(_REPLACEMENT):
            node.get_logger().warning(
                f'{controller} repeats its last command whenever it takes over a trajectory ({_REPLACEMENT}: true), a '
                f'step of up to its speed times its period; ros2 param set {controller} {_REPLACEMENT} false avoids it'
            )
            return 'blend'
        if _REPLACEMENT in known:
            return 'immediate'
        if _INTERPOLATION in known:  # a joint_trajectory_controller before that parameter
            return 'immediate'
    raise ExcitationError(
        f'the controller ({", ".join(controllers) or "none"}) does not say how it replaces a trajectory: set '
        'trajectory_replacement to immediate, or to blend where it goes on along its trajectory until the start of the '
        'new one'
    )


def _require_time(node: Node, controller: str, simulated: bool | None) -> None:
    """Refuse a controller that reads another clock: it would take every trajectory for one that is over, or far off."""
    here = bool(node.get_parameter(_TIME).value)
    if simulated in (None, here) or controller in node_names(node.get_publishers_info_by_topic('/clock')):
        return  # whoever sets the clock does not read it
    ours, theirs = ('simulated time', "this computer's clock")[:: 1 if here else -1]
    raise ExcitationError(
        f'{controller} runs on {theirs} (use_sim_time: {str(simulated).lower()}) and this node on {ours}: it would '
        f'refuse every trajectory, or run it at another time; give both the same use_sim_time'
    )


def _parameters(node: Node, controller: str) -> dict[str, Any]:
    """Return those of the parameters above that a node has; none where it does not answer."""
    listed = call_service(node, ListParameters, f'{controller}/list_parameters', ListParameters.Request())
    names = [
        name for name in (_REPLACEMENT, _INTERPOLATION, _TIME) if listed is not None and name in listed.result.names
    ]
    if not names:
        return {}
    answer = call_service(node, GetParameters, f'{controller}/get_parameters', GetParameters.Request(names=names))
    if answer is None:
        return {}
    return {
        name: value.bool_value if value.type == ParameterType.PARAMETER_BOOL else value.string_value
        for name, value in zip(names, answer.values, strict=True)
        if value.type in (ParameterType.PARAMETER_BOOL, ParameterType.PARAMETER_STRING)
    }


def call_service(node: Node, kind: Any, name: str, request: Any) -> Any:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFeedback:
    """What a controller says of its own work at one instant.

    The position it leads to, the one it measured and their difference have the shape (n,) [rad or m]; ``stamp`` is in
    s. ``speed`` is the part of the speed at which it follows its trajectory [%], where it tells that.
    """

    stamp: float
    desired: Array
    actual: Array
    error: Array
    speed: float | None = None


class ControllerLink(Protocol):
    """Takes trajectories to a controller and brings back what it says.

    ``answers`` says whether the controller accepts or refuses every trajectory explicitly.
    """

    answers: bool

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait, off the executor's thread, until the controller can be reached.

        An ExcitationError says that it cannot be reached within ``timeout`` [s], or that ``given_up`` is set.
        """

    def begin(self, joint_names: Sequence[str], listener: Callable[[ControllerFeedback], None]) -> None:
        """Prepare a run; feedback, where there is any, goes to the listener from now on.

        An ExcitationError says which setting does not fit the arm.
        """

    def send(self, message: JointTrajectory) -> None:
        """Replace what the controller follows."""

    def stop(self, message: JointTrajectory) -> None:
        """Replace what the controller follows by a way to rest."""

    def fault(self) -> str | None:
        """Return what is wrong with the controller while the arm moves, or None."""

    def conclusion(self, waited: float) -> str | None:
        """Return what is wrong with how the controller ended: '' for nothing, None if it has to be waited for.

        The arm came to rest ``waited`` seconds ago.
        """

    def values(self) -> Mapping[str, object]:
        """Return values for the status."""


def wait_for_controller(there: Callable[[], bool], absent: str, timeout: float, given_up: threading.Event) -> None:
    """Wait until a controller is there.

    An ExcitationError has the sentence ``absent`` after ``timeout`` [s], or says that ``given_up`` is set.
    """
    deadline = time.monotonic() + timeout
    while not there():
        if time.monotonic() > deadline:
            raise ExcitationError(absent)
        if given_up.wait(_POLL):
            raise ExcitationError('the start was given up on request')


class TopicLink:
    """Publishes trajectories on ``joint_trajectory``.

    The topic does not answer. Where control_msgs is installed, the state that a joint_trajectory_controller
    publishes beside it (``controller_state``) tells where it leads the arm.
    """

    answers = False

    def __init__(self, node: Node) -> None:
        self._node = node
        self._publisher = node.create_publisher(
            JointTrajectory,
            'joint_trajectory',
            QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._joint_names: tuple[str, ...] = ()
        self._listener: Callable[[ControllerFeedback], None] = lambda _: None
        self._state: Subscription | None = None
        self._type = _controller_state_type()
        self._looked = 0.0
        self._tells_speed = False

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait until somebody listens; see :class:`ControllerLink`."""
        wait_for_controller(
            lambda: bool(self._publisher.get_subscription_count()),
            f'no controller listens to {self._publisher.topic_name}; remap joint_trajectory to its topic',
            timeout,
            given_up,
        )

    def begin(self, joint_names: Sequence[str], listener: Callable[[ControllerFeedback], None]) -> None:
        """Listen to the state of the controller, if it can be had."""
        self._joint_names, self._listener = tuple(joint_names), listener
        self._tells_speed = False
        if self._type is not None and self._state is None:
            name = f'{self._publisher.topic_name.rpartition("/")[0]}/controller_state'
            profile = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
            self._state = self._node.create_subscription(self._type, name, self._on_state, profile, raw=True)

    def _on_state(self, serialised: bytes) -> None:
        """Take the controller's state; it comes at the controller's rate, of which ``_STATE_PERIOD`` is enough."""
        now = time.monotonic()
        if now - self._looked < _STATE_PERIOD:
            return
        self._looked = now
        message = deserialize_message(serialised, self._type)
        columns: dict[str, Array] = {}
        try:
            order = require_names(self._joint_names, message.joint_names, 'joint', 'the controller state', DataError)
            for name in ('reference', 'feedback', 'error'):
                columns[name] = np.asarray(getattr(message, name).positions, dtype=float)[order]
        except (DataError, IndexError):
            return  # of another arm, or not yet filled
        self._listener(
            ControllerFeedback(
                stamp=seconds(message.header.stamp),
                desired=columns['reference'],
                actual=columns['feedback'],
                error=columns['error'],
                speed=self._speed(message),
            )
        )

    def _speed(self, message: Any) -> float | None:
        """Return the speed scaling [%], once it has been full: a controller that does not fill it in leaves 0."""
        factor = float(getattr(message, 'speed_scaling_factor', 0.0))
        self._tells_speed = self._tells_speed or factor == 1.0
        return 100.0 * factor if self._tells_speed else None

    def send(self, message: JointTrajectory) -> None:
        """Publish the trajectory."""
        publish(self._publisher, message)

    stop = send

    def fault(self) -> str | None:
        """Return None: a topic does not answer."""
        return None

    def conclusion(self, waited: float) -> str | None:
        """Return that nothing is wrong: a topic does not answer."""
        if self._state is not None:
            self._node.destroy_subscription(self._state)
            self._state = None
        return ''

    def values(self) -> Mapping[str, object]:
        """Return nothing."""
        return {}


def _controller_state_type() -> Any:
    """Return the message type of a controller's state, or None where control_msgs is not installed."""
    try:
        return import_module('control_msgs.msg').JointTrajectoryControllerState
    except ImportError:
        return None
