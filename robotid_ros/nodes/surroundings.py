# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is around a run, and has to stay as it was at the start: who commands the arm, who records, the robot's mode."""

import os
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile
from rclpy.topic_endpoint_info import TopicEndpointInfo
from std_msgs.msg import Bool, Float64, String

from robotid_ros.errors import ExcitationError
from robotid_ros.execution.sight import ENOUGH_TOLD, Sight
from robotid_ros.nodes.messages import ALIVE, LATCHED, NAMELESS, node_names, publish

try:
    from rclpy.event_handler import SubscriptionEventCallbacks
except ImportError:  # its name on Humble
    from rclpy.qos_event import SubscriptionEventCallbacks

_EVERY_CLAIM = QoSProfile(history=HistoryPolicy.KEEP_ALL, durability=DurabilityPolicy.TRANSIENT_LOCAL)
"""A reader that keeps the last one only would keep its own node's, and lose that of the node that was here before."""
_PERIOD = 0.2
"""How often the graph is looked at [s]."""
_SILENT = 5.0
"""How long a recorder that lives may say nothing [s]: it speaks every second, and a busy machine may hold it up."""
_SETTLED = 2.0
"""How long a recorder may still speak of what was before [s]."""
REFERENCE = '~/reference'
_MANAGER, _ACTIVITY, _ACTIVE = 'controller_manager', 'Controllers Activity', 'active'
"""Of ros2_control: its node, what it calls the states of its controllers on /diagnostics, and the one that follows."""
_FULL_SPEED = 100.0
_SCALING_TOLERANCE = 0.1
"""Deviation of the speed scaling that a run goes on with [%]: 1 ms of delay in a second."""


class Commanders:
    """Lists the endpoints that can command the controller, besides this node's own.

    Endpoints are told apart by their GID: another node of the same name has one of its own.

    ``topic``, ``action``: of the controller. ``acts``: whether this node has a client of the action; else it has a
    publisher on the topic.
    """

    def __init__(self, node: Node, topic: str, action: str, *, acts: bool) -> None:
        self._node, self._topic, self._acts = node, topic, acts
        self._feedback = f'{node.resolve_service_name(action)}/_action/feedback'
        self._accepted: frozenset[bytes] = frozenset()

    def others(self) -> dict[bytes, str]:
        """Return the GID and the node of every other endpoint."""
        node = self._node
        publishers = _others(node, node.get_publishers_info_by_topic(self._topic), own=not self._acts)
        # Every client of an action, and nobody else, subscribes to its feedback.
        clients = _others(node, node.get_subscriptions_info_by_topic(self._feedback), own=self._acts)
        return publishers | clients

    def controllers(self, patience: float = 0.0, cancelled: threading.Event | None = None) -> list[str]:
        """Return the nodes that take this node's trajectories, as far as their names are known by then.

        With a ``patience`` [s] it waits for them unless cancelled, and must be called off the executor's thread.
        """
        given_up = threading.Event() if cancelled is None else cancelled
        deadline = time.monotonic() + patience
        while True:
            if self._acts:
                found = self._node.get_publishers_info_by_topic(self._feedback)
            else:
                found = self._node.get_subscriptions_info_by_topic(self._topic)
            names = set(node_names(found))
            left = deadline - time.monotonic()
            if NAMELESS not in names or left <= 0.0 or given_up.wait(min(left, _PERIOD)):
                return sorted(names - {NAMELESS})

    def accept(self) -> list[str]:
        """Take those that are there now for no reason to stop, and return their names."""
        others = self.others()
        self._accepted = frozenset(others)
        return sorted(set(others.values()))

    def new(self) -> list[str]:
        """Return the names of those that came since."""
        return sorted({name for gid, name in self.others().items() if gid not in self._accepted})


def _others(node: Node, endpoints: list[TopicEndpointInfo], *, own: bool) -> dict[bytes, str]:
    """Return GID and node of endpoints but for one of this node's, where it has its ``own``."""
    me, found = node.get_fully_qualified_name(), {}
    for name, endpoint in zip(node_names(endpoints), endpoints, strict=True):
        if own and name == me:
            own = False
            continue
        found[bytes(endpoint.endpoint_gid)] = f'another node {name}' if name == me else name
    return found


def claim(node: Node, moves: Callable[[], bool]) -> None:
    """Say that a node is here, and end it by an ExcitationError if another one of its name was here before.

    Clocks of computers differ: a node that ``moves`` an arm was here before all others, and says so.
    """
    mine = f'{time.time_ns():020d} {os.getpid()} {uuid4().hex}'
    first = f'{0:020d} {os.getpid()} {uuid4().hex}'

    def hear(message: String) -> None:
        nonlocal mine
        if message.data >= mine or (moves() and mine == first):
            return
        pid = ' '.join(message.data.split(' ')[1:2])
        said = f'another node {node.get_fully_qualified_name()} runs already (process {pid}): two of them would command'
        if not moves():
            raise ExcitationError(f'{said} one arm; this one ends')
        node.get_logger().error(f'{said} one arm; this one moves it, so the other has to end')
        mine = first
        publish(publisher, String(data=mine))

    publisher = node.create_publisher(String, '~/claim', LATCHED)
    node.create_subscription(String, '~/claim', hear, _EVERY_CLAIM)
    publish(publisher, String(data=mine))


class Surroundings:
    """Watches them while an arm moves.

    Topics that are '' are not watched; the states that a controller manager tells on ``/diagnostics`` always are. The
    topic of the speed scaling carries ``std_msgs/Float64`` (100 is full speed), and ``scaling_came`` is set when it
    comes; that of the program carries ``std_msgs/Bool``: a driver says with it that its robot takes commands, which is
    false in a protective stop, with brakes locked, or while the program on the robot is paused.

    What was said last holds, whenever it came: :meth:`require` refuses a start for it, and :meth:`look`, which calls
    ``report`` with what ends a run, looks at it each time. So nothing is lost that comes between the two.
    """

    def __init__(
        self,
        node: Node,
        commanders: Commanders,
        report: Callable[..., None],
        *,
        speed_scaling_topic: str,
        program_running_topic: str,
    ) -> None:
        self._node, self.commanders, self._report = node, commanders, report
        self._recorded = False
        self._speed, self._runs = _FULL_SPEED, True
        self.scaling_topic, self._program_topic = speed_scaling_topic, program_running_topic
        self.scaling_came = threading.Event()
        self.scaling_sight: Sight | None = None
        self._recorder: DiagnosticStatus | None = None
        self._missed = self.recorder_died = False
        """The process of the recorder is no more, and what it subscribed to seems to be there for a while yet."""
        self._heard = self._begun = self._looked = -float('inf')
        self._inactive = ''
        node.create_subscription(DiagnosticStatus, 'recorder/status', self._on_recorder, 10)
        node.create_subscription(
            DiagnosticStatus,
            'recorder/status',
            lambda _: None,
            ALIVE,
            event_callbacks=SubscriptionEventCallbacks(liveliness=self._on_life, incompatible_qos=lambda _: None),
        )
        node.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics, 10)
        if speed_scaling_topic:
            node.create_subscription(Float64, speed_scaling_topic, self._on_scaling, 10)
        if program_running_topic:
            # Drivers say it once and latch it, or over and over. Only a reader that asks for what was said before
            # hears the first, and only one that does not ask hears the second.
            for durability in (DurabilityPolicy.TRANSIENT_LOCAL, DurabilityPolicy.VOLATILE):
                node.create_subscription(
                    Bool,
                    program_running_topic,
                    self._on_program,
                    QoSProfile(depth=10, durability=durability),
                    event_callbacks=SubscriptionEventCallbacks(incompatible_qos=lambda _: None),
                )

    def _on_recorder(self, message: DiagnosticStatus) -> None:
        self._recorder, self._heard = message, time.monotonic()

    def _on_life(self, change: Any) -> None:
        self.recorder_died = change.alive_count == 0 < change.not_alive_count
        self._missed = self._missed or self.recorder_died

    def _on_scaling(self, message: Float64) -> None:
        if self.scaling_sight is not None:
            self.scaling_sight.saw(time.monotonic(), usable=message.data == message.data)
        self.take_speed(message.data)
        self.scaling_came.set()

    def take_speed(self, percent: float) -> bool:
        """Take in a speed scaling [%]; return whether time is not stretched."""
        self._speed = percent
        return abs(percent - _FULL_SPEED) <= _SCALING_TOLERANCE

    def _on_program(self, message: Bool) -> None:
        self._runs = message.data

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        """Take in the states of controllers, which a controller manager tells once a second; two would be mixed up."""
        told = [status for status in message.status if status.name.endswith(_ACTIVITY)]
        if not told or self._node.get_node_names().count(_MANAGER) > 1:
            return
        mine = {name.rpartition('/')[2] for name in self.commanders.controllers()}
        states = {item.key.removesuffix('.state'): item.value for status in told for item in status.values}
        self._inactive = next(
            (f'{name} is {states[name]}' for name in mine if states.get(name, _ACTIVE) != _ACTIVE), ''
        )

    def has_recorder(self) -> bool:
        """Return whether a recorder takes the reference."""
        return self._node.count_subscribers(REFERENCE) > 0 and not self.recorder_died

    def recorder_values(self) -> dict[str, str]:
        """Return the values of the recorder's last status; none before the first."""
        return {} if self._recorder is None else {item.key: item.value for item in self._recorder.values}

    def mode_problem(self) -> str:
        """Return why the arm does not follow in the mode that it is in, '' where it does."""
        if self._inactive:
            return f'the controller {self._inactive}: activate it'
        if not abs(self._speed - _FULL_SPEED) <= _SCALING_TOLERANCE:
            return f'the controller runs at {self._speed:g} % of its speed, which stretches time; set it to 100 %'
        if not self._runs:
            return (
                f'the robot takes no commands ({self._program_topic} is false): a protective stop, locked brakes, or '
                'a program that is paused or ended'
            )
        return ''

    def require(self) -> None:
        """Refuse, with an ExcitationError, to begin in a mode in which the arm would not follow."""
        problem = self.mode_problem()
        if problem:
            raise ExcitationError(problem)

    def begin(self, over: float, *, recorded: bool) -> list[Sight]:
        """Return the sights of a run, counted ``over`` a time [s]; where ``recorded``, somebody takes the reference."""
        self._begun = self._looked = time.monotonic()
        self._recorded, self._missed = recorded, False
        if self.recorder_died:
            self._recorder = None  # before this run, which was allowed to do without
        sights = [Sight('messages of the speed scaling', over, enough=ENOUGH_TOLD)] if self.scaling_topic else []
        self.scaling_sight = sights[0] if sights else None
        return sights

    def look(self) -> None:
        """Report what ends a run; called often."""
        problem = self.mode_problem()  # as it is now, whenever it was told
        if problem:
            self._report(problem)
            return
        now = time.monotonic()
        if now - self._looked < _PERIOD:
            return
        self._looked = now
        others = self.commanders.new()
        if others:
            self._report(f'{", ".join(others)} can command the arm too now', foreign=True)
        problem = self._recorder_problem(now)
        if problem:
            self._report(problem)

    def _recorder_problem(self, now: float) -> str:
        if self._recorded and not self._node.count_subscribers(REFERENCE):
            return 'nobody takes the reference any more: nothing is recorded'
        status = self._recorder
        if status is None or self._heard < self._begun - _SILENT:
            return ''  # none has said anything in this run
        if self._missed or now - self._heard > _SILENT:
            return 'the recorder is gone: nothing is recorded any more'
        values = self.recorder_values()
        if values.get('refusal'):
            return f'the recorder cannot record: {values["refusal"]}'
        follows = values.get('follow_reference') == str(True)
        if follows and values.get('state') != 'recording' and self._heard - self._begun > _SILENT:
            return f'the recorder does not record: {status.message}'
        if values.get('state') == 'failed' and self._heard - self._begun > _SETTLED:
            return f'the recorder cannot record: {status.message}'
        return ''
