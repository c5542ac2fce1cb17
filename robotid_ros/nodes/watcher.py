# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Follows the three nodes and shows them on a terminal or on a page."""

import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robotid_ros.nodes.conversions import seconds
from robotid_ros.nodes.runtime import run_node
from robotid_ros.nodes.simulated_time import steady_timer
from robotid_ros.report.live import LiveServer
from robotid_ros.report.watch import JointFit, NodeStatus, StatusLevel, progress_share, render_watch, status_details

NODES = ('excitation', 'recorder', 'identification')
SILENT_AFTER = 5.0  # seconds without a status
_SAMPLES = 1500  # of torque that a page which is opened late still gets
_CONVERGENCE = ('recordings', 'relative_error', 'condition_number', 'median_relative_std', 'change')
_LEVELS: dict[bytes, StatusLevel] = {
    DiagnosticStatus.OK: 'ok',
    DiagnosticStatus.WARN: 'warn',
    DiagnosticStatus.ERROR: 'error',
    DiagnosticStatus.STALE: 'error',
}


class Watcher(Node):
    """Follows the status of each node, and how well each joint's torque is predicted.

    It calls ``show`` with itself every ``interval`` seconds.
    """

    def __init__(self, interval: float, show: 'Callable[[Watcher], None]') -> None:
        super().__init__('robotid_watch')
        self._last: dict[str, tuple[float, DiagnosticStatus]] = {}
        self._predicted: dict[str, float] = {}
        self.fit: JointFit | None = None
        self.start = 0.0
        self.history: list[dict[str, float]] = []
        self.samples: deque[tuple[float, list[float], list[float]]] = deque(maxlen=_SAMPLES)
        for name in NODES:
            self.create_subscription(
                DiagnosticStatus,
                f'{name}/status',
                lambda message, name=name: self._keep(name, message),
                QoSProfile(depth=10),
            )
        self.create_subscription(JointState, 'identification/predicted_torque', self._on_predicted, 10)
        self.create_subscription(JointState, 'identification/external_torque', self._on_external, 10)
        self._stop = self.create_client(Trigger, 'excitation/stop')
        steady_timer(self, interval, lambda: show(self))

    def _keep(self, name: str, message: DiagnosticStatus) -> None:
        self._last[name] = (time.monotonic(), message)
        if name != 'identification':
            return
        found: dict[str, float] = {}
        for item in message.values:
            if item.key in _CONVERGENCE:
                with suppress(ValueError):
                    found[item.key] = float(item.value)
        found = {key: value for key, value in found.items() if np.isfinite(value)}
        if 'recordings' in found and (not self.history or self.history[-1]['recordings'] != found['recordings']):
            self.history.append(found)

    def _on_predicted(self, message: JointState) -> None:
        self._predicted = dict(zip(message.name, message.effort, strict=False))

    def _on_external(self, message: JointState) -> None:
        names = tuple(message.name)
        if set(names) != set(self._predicted) or len(message.effort) != len(names):
            return
        if self.fit is None or self.fit.joint_names != names:
            self.fit = JointFit(names)
            self.samples.clear()
            self.start = seconds(message.header.stamp)
        predicted = np.array([self._predicted[name] for name in names])
        external = np.asarray(message.effort)
        velocity = np.asarray(message.velocity) if len(message.velocity) == len(names) else None
        stamp = seconds(message.header.stamp)
        self.fit.update(stamp, predicted, external, velocity)
        self.samples.append((stamp, (predicted + external).tolist(), predicted.tolist()))

    def nodes(self) -> list[NodeStatus]:
        """Return the last status of each node."""
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
        return nodes

    def stop(self) -> 'Future[str]':
        """Ask the excitation node to stop the arm; from any thread. The future holds its answer."""
        answer: Future[str] = Future()

        def call() -> None:
            if not self._stop.service_is_ready():
                answer.set_result('no excitation node is there to stop: use the stop of the arm itself')
                return
            self._stop.call_async(Trigger.Request()).add_done_callback(
                lambda done: answer.set_result(str(done.result().message))
            )

        assert self.executor is not None
        self.executor.create_task(call)
        return answer


class _Screen:
    """The view as lines of a terminal."""

    def __init__(self, width: int, *, terminal: bool) -> None:
        self._width, self._terminal = width, terminal

    def __call__(self, watcher: Watcher) -> None:
        view = render_watch(watcher.nodes(), watcher.fit, width=self._width, colour=self._terminal)
        sys.stdout.write(('\033[H\033[2J' if self._terminal else '') + view + '\n')
        sys.stdout.flush()


class _Page:
    """The view as a page, to which what is new is sent."""

    def __init__(self, address: str, port: int) -> None:
        self._watcher: Watcher | None = None
        self._sent = -np.inf
        self._known = -1
        self._server = LiveServer(self._stop, self._everything, address=address, port=port)
        print(f'open {self._server.address} in a browser; Ctrl-C ends', flush=True)

    def __call__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        samples = list(watcher.samples)
        news = [sample for sample in samples if sample[0] > self._sent]
        if samples and samples[-1][0] < self._sent:  # the clock was set back
            news = samples
        self._sent = samples[-1][0] if samples else self._sent
        history = watcher.history if len(watcher.history) != self._known else None
        self._known = len(watcher.history)
        self._server.publish(_message(watcher, news, history))

    def _stop(self) -> 'Future[str]':
        if self._watcher is not None:
            return self._watcher.stop()
        answer: Future[str] = Future()
        answer.set_result('robotid watch is still starting: use the stop of the arm itself')
        return answer

    def _everything(self) -> dict[str, Any] | None:
        return (
            None
            if self._watcher is None
            else _message(self._watcher, list(self._watcher.samples), self._watcher.history)
        )

    def close(self) -> None:
        self._server.close()


def _message(
    watcher: Watcher, samples: list[tuple[float, list[float], list[float]]], history: list[dict[str, float]] | None
) -> dict[str, Any]:
    nodes, fit = watcher.nodes(), watcher.fit
    explained = [
        'has not moved yet' if torque == 0.0 else f'{100.0 * max(0.0, 1.0 - error / torque):.0f} % explained'
        for torque, error in (() if fit is None else zip(fit.torque_rms, fit.error_rms, strict=True))
    ]
    return {
        'nodes': [
            {'name': n.name, 'level': n.level, 'message': n.message, 'details': status_details(n.values)} for n in nodes
        ],
        'progress': progress_share(nodes[0].values),
        'joints': [] if fit is None else list(fit.joint_names),
        'notes': explained,
        'samples': {
            't': [round(sample[0] - watcher.start, 3) for sample in samples],
            'measured': [sample[1] for sample in samples],
            'predicted': [sample[2] for sample in samples],
        },
        'history': history,
    }


def watch(*, interval: float, width: int, terminal: bool, namespace: str, web: tuple[str, int] | None = None) -> int:
    """Show the nodes of a namespace, redrawn every ``interval`` seconds, until interrupted; return the exit code.

    Without ``web``, the address and port of a page, they are shown in ``width`` columns of the terminal, which is
    cleared and coloured if it is one. A RobotIdError says why the page cannot be served.
    """
    arguments: Sequence[str] = ['--ros-args', '-r', f'__ns:=/{namespace.strip("/")}'] if namespace.strip('/') else []
    if web is None:
        return run_node(lambda: Watcher(interval, _Screen(width, terminal=terminal)), arguments)
    page = _Page(*web)
    try:
        return run_node(lambda: Watcher(interval, page), arguments)
    finally:
        page.close()
