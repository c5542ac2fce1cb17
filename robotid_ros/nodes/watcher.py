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
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.errors import DataError, ModelError
from robotid_ros.model.urdf_tree import parse_urdf
from robotid_ros.nodes.loop_client import NODES
from robotid_ros.nodes.messages import LATCHED, newest, seconds, trajectory_arrays
from robotid_ros.nodes.runtime import run_node, steady_timer
from robotid_ros.report.live import (
    SAMPLES,
    JointFit,
    LiveServer,
    MotionView,
    NodeStatus,
    StatusLevel,
    page_message,
    render_watch,
)

SILENT_AFTER = 5.0  # seconds without a status
_CONVERGENCE = ('recordings', 'relative_error', 'condition_number', 'median_relative_std', 'change')
_LEVELS: dict[bytes, StatusLevel] = {
    DiagnosticStatus.OK: 'ok',
    DiagnosticStatus.WARN: 'warn',
    DiagnosticStatus.ERROR: 'error',
    DiagnosticStatus.STALE: 'error',
}


class Watcher(Node):
    """Follows the status of each node, and how well each joint's torque is predicted.

    It calls ``show`` with itself every ``interval`` seconds. The motion is followed for a page, which draws it.
    """

    def __init__(
        self, interval: float, show: 'Callable[[Watcher], None]', *, motion: bool = False, **options: Any
    ) -> None:
        super().__init__('robotid_watch', **options)
        self._last: dict[str, tuple[float, NodeStatus]] = {}  # when it came, and what it said
        self._predicted: dict[str, float] = {}
        self.fit: JointFit | None = None
        self.start: float | None = None
        self.motion = MotionView()
        self.history: list[dict[str, float]] = []
        self.samples: deque[tuple[float, list[float], list[float]]] = deque(maxlen=SAMPLES)
        for name in NODES:
            self.create_subscription(
                DiagnosticStatus,
                f'{name}/status',
                lambda message, name=name: self._keep(name, message),
                QoSProfile(depth=10),
            )
        self.create_subscription(JointState, 'identification/predicted_torque', self._on_predicted, 10)
        self.create_subscription(JointState, 'identification/external_torque', self._on_external, 10)
        if motion:
            self.create_subscription(JointState, 'joint_states', self._on_state, newest(10))
            self.create_subscription(JointTrajectory, 'excitation/reference', self._on_reference, LATCHED)
            self.create_subscription(String, 'robot_description', self._on_description, LATCHED)
        self._stop = self.create_client(Trigger, 'excitation/stop')
        steady_timer(self, interval, lambda: show(self))

    def _keep(self, name: str, message: DiagnosticStatus) -> None:
        values = {item.key: item.value for item in message.values}
        status = NodeStatus(name=name, level=_LEVELS[message.level], message=message.message, values=values)
        self._last[name] = (time.monotonic(), status)
        if name != 'identification':
            return
        found: dict[str, float] = {}
        for key in _CONVERGENCE:
            with suppress(KeyError, ValueError):
                found[key] = float(values[key])
        found = {key: value for key, value in found.items() if np.isfinite(value)}
        # Before the first recording there is nothing that could converge.
        if found.get('recordings') and (not self.history or self.history[-1]['recordings'] != found['recordings']):
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
        predicted = np.array([self._predicted[name] for name in names])
        external = np.asarray(message.effort)
        velocity = np.asarray(message.velocity) if len(message.velocity) == len(names) else None
        stamp = seconds(message.header.stamp)
        self.start = stamp if self.start is None else self.start
        self.fit.update(stamp, predicted, external, velocity)
        self.samples.append((stamp, (predicted + external).tolist(), predicted.tolist()))

    def _on_state(self, message: JointState) -> None:
        stamp = seconds(message.header.stamp)
        if self.motion.take(stamp, tuple(message.name), message.position, message.effort) and self.start is None:
            self.start = stamp

    def _on_reference(self, message: JointTrajectory) -> None:
        names = tuple(message.joint_names)
        if not message.points:
            self.motion.reference = None
            return
        try:
            time, q, *_ = trajectory_arrays(message, names)
        except DataError as cause:
            self.get_logger().warning(f'the reference cannot be drawn: {cause}')
            return
        self.motion.joint_names = names
        self.motion.reference = (seconds(message.header.stamp), time, q)

    def _on_description(self, message: String) -> None:
        try:
            joints = parse_urdf(message.data).joints.values()
            self.motion.limits = {joint.name: (joint.lower, joint.upper) for joint in joints}
            self.motion.sliding = {joint.name for joint in joints if joint.kind == 'prismatic'}
        except ModelError as cause:
            self.get_logger().warning(f'no limits are drawn: {cause}')

    @property
    def stoppable(self) -> bool:
        """Whether an excitation node is there that can stop the arm."""
        return bool(self._stop.service_is_ready())

    def nodes(self) -> list[NodeStatus]:
        """Return the last status of each node."""
        now = time.monotonic()
        nodes = []
        for name in NODES:
            heard, status = self._last.get(name, (-np.inf, NodeStatus(name=name, level='silent', message='no status')))
            if 0.0 < now - heard - SILENT_AFTER < np.inf:
                text = f'silent for {now - heard:.0f} s; last: {status.message}' if status.message else 'no status'
                status = NodeStatus(name=name, level='silent', message=text)
            nodes.append(status)
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


class _Page:
    """The view as a page, to which what is new is sent."""

    def __init__(self, address: str, port: int) -> None:
        self._watcher: Watcher | None = None
        self._sent = {'torque': -np.inf, 'motion': -np.inf}  # the last stamp of each
        self._known = -1
        self._server = LiveServer(self._stop, self._everything, address=address, port=port)
        print(f'open {self._server.address} in a browser; Ctrl-C ends', flush=True)

    def __call__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        samples, moved = self._new('torque', watcher.samples), self._new('motion', watcher.motion.samples)
        history = watcher.history if len(watcher.history) != self._known else None
        self._known = len(watcher.history)
        self._server.publish(self._message(watcher, samples, moved, history))

    def _new(self, name: str, samples: deque[Any]) -> list[Any]:
        """Return the samples that were not sent yet; each begins with its stamp."""
        found, sent = list(samples), self._sent[name]
        if not found:
            return found
        self._sent[name] = found[-1][0]
        # Where the clock was set back, all of them are new.
        return found if found[-1][0] < sent else [sample for sample in found if sample[0] > sent]

    def _stop(self) -> 'Future[str]':
        if self._watcher is not None:
            return self._watcher.stop()
        answer: Future[str] = Future()
        answer.set_result('robotid watch is still starting: use the stop of the arm itself')
        return answer

    def _everything(self) -> dict[str, Any] | None:
        watcher = self._watcher
        if watcher is None:
            return None
        return self._message(watcher, list(watcher.samples), list(watcher.motion.samples), watcher.history)

    @staticmethod
    def _message(
        watcher: Watcher, samples: list[Any], moved: list[Any], history: list[dict[str, float]] | None
    ) -> dict[str, Any]:
        nodes, start = watcher.nodes(), watcher.start or 0.0
        shown = page_message(nodes, watcher.fit, watcher.motion, samples, moved, start)
        return {**shown, 'stoppable': watcher.stoppable, 'history': history}

    def close(self) -> None:
        self._server.close()


def watch(*, interval: float, width: int, terminal: bool, namespace: str, web: tuple[str, int] | None = None) -> int:
    """Show the nodes of a namespace, redrawn every ``interval`` seconds, until interrupted; return the exit code.

    Without ``web``, the address and port of a page, they are shown in ``width`` columns of the terminal, which is
    cleared and coloured if it is one. A RobotIdError says why the page cannot be served.
    """
    arguments: Sequence[str] = ['--ros-args', '-r', f'__ns:=/{namespace.strip("/")}'] if namespace.strip('/') else []
    if web is not None:
        page = _Page(*web)
        try:
            return run_node(lambda: Watcher(interval, page, motion=True), arguments)
        finally:
            page.close()

    def show(watcher: Watcher) -> None:
        view = render_watch(watcher.nodes(), watcher.fit, width=width, colour=terminal)
        sys.stdout.write(('\033[H\033[2J' if terminal else '') + view + '\n')
        sys.stdout.flush()

    return run_node(lambda: Watcher(interval, show), arguments)
