# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Follows the three nodes and shows them on a terminal."""

import sys
import time
from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from robotid_ros.nodes.conversions import seconds
from robotid_ros.nodes.runtime import run_node
from robotid_ros.report.watch import JointFit, NodeStatus, StatusLevel, render_watch

__all__ = ['Watcher', 'watch']

NODES = ('excitation', 'recorder', 'identification')
SILENT_AFTER = 5.0  # seconds without a status
_LEVELS: dict[bytes, StatusLevel] = {
    DiagnosticStatus.OK: 'ok',
    DiagnosticStatus.WARN: 'warn',
    DiagnosticStatus.ERROR: 'error',
    DiagnosticStatus.STALE: 'error',
}


class Watcher(Node):
    """Draws the last status of each node, and how well each joint's torque is predicted."""

    def __init__(self, interval: float, width: int, *, terminal: bool) -> None:
        super().__init__('robotid_watch')
        self._width, self._terminal = width, terminal
        self._last: dict[str, tuple[float, DiagnosticStatus]] = {}
        self._predicted: dict[str, float] = {}
        self._fit: JointFit | None = None
        for name in NODES:
            self.create_subscription(
                DiagnosticStatus,
                f'{name}/status',
                lambda message, name=name: self._keep(name, message),
                QoSProfile(depth=10),
            )
        self.create_subscription(JointState, 'identification/predicted_torque', self._on_predicted, 10)
        self.create_subscription(JointState, 'identification/external_torque', self._on_external, 10)
        self.create_timer(interval, self._draw, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _keep(self, name: str, message: DiagnosticStatus) -> None:
        self._last[name] = (time.monotonic(), message)

    def _on_predicted(self, message: JointState) -> None:
        self._predicted = dict(zip(message.name, message.effort, strict=False))

    def _on_external(self, message: JointState) -> None:
        names = tuple(message.name)
        if set(names) != set(self._predicted) or len(message.effort) != len(names):
            return
        if self._fit is None or self._fit.joint_names != names:
            self._fit = JointFit(names)
        predicted = np.array([self._predicted[name] for name in names])
        velocity = np.asarray(message.velocity) if len(message.velocity) == len(names) else None
        self._fit.update(seconds(message.header.stamp), predicted, np.asarray(message.effort), velocity)

    def _draw(self) -> None:
        now = time.monotonic()
        nodes = []
        for name in NODES:
            heard, message = self._last.get(name, (-np.inf, DiagnosticStatus()))
            if now - heard > SILENT_AFTER:
                text = (
                    'no status' if message.message == '' else f'silent for {now - heard:.0f} s; last: {message.message}'
                )
                nodes.append(NodeStatus(name=name, level='silent', message=text))
                continue
            values = {item.key: item.value for item in message.values}
            nodes.append(NodeStatus(name=name, level=_LEVELS[message.level], message=message.message, values=values))
        view = render_watch(nodes, self._fit, width=self._width, colour=self._terminal)
        sys.stdout.write(('\033[H\033[2J' if self._terminal else '') + view + '\n')
        sys.stdout.flush()


def watch(*, interval: float, width: int, terminal: bool, namespace: str) -> int:
    """Show the nodes of a namespace until interrupted.

    Parameters
    ----------
    interval : float
        Between two drawings [s].
    width : int
        Columns of the terminal.
    terminal : bool
        Whether to clear the screen and use colours.
    namespace : str
        Of the nodes; empty for the root.

    Returns
    -------
    int
        Exit code.
    """
    arguments: Sequence[str] = ['--ros-args', '-r', f'__ns:=/{namespace.strip("/")}'] if namespace.strip('/') else []
    return run_node(lambda: Watcher(interval, width, terminal=terminal), arguments)
