# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The joint states of one arm, followed while they are needed: where it is, how it moves, and how old that is."""

import threading
import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, ExcitationError
from robotid_ros.execution.run_clock import ClockOffset
from robotid_ros.execution.watchdog import WatchdogConfig
from robotid_ros.nodes.messages import joint_state_values, newest, seconds
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, SimulatedTime

_FIRST = 3.0
"""How long the first joint state may take [s]."""
_CATCH_UP = 10.0
"""How long a driver that lags because its computer is busy may take to be in time again [s]."""


class ArmState:
    """Follows the joint states of an arm; everything but :meth:`measure` is for the executor's thread.

    Why the last joint state cannot be used is in ``problem``, empty where it can; ``offset`` is that of the clock that
    stamps the joint states. The node has declared the parameters of :class:`WatchdogConfig`.

    Parameters
    ----------
    node : Node
    worker : BackgroundWorker
    take : callable
        Gets position, velocity, effort, stamp [s] or None, and when it came, by a clock that never stands still [s],
        of every joint state with all joints.
    guarded : callable
        Returns a callback that deals with whatever the given one raises.
    """

    def __init__(
        self,
        node: Node,
        worker: BackgroundWorker,
        take: Callable[[Array, Array | None, Array | None, float | None, float], None],
        guarded: Callable[[Callable[..., None]], Callable[..., None]],
    ) -> None:
        self._node, self._worker, self._take, self._guarded = node, worker, take, guarded
        self._joint_names: tuple[str, ...] = ()
        self._latest: tuple[Array, float] | None = None
        self._joint_states: Subscription | None = None
        self.problem = ''
        self._heard = threading.Event()
        self.offset = ClockOffset()
        self.time = SimulatedTime(node)
        self._unstamped = False

    def listen(self, joint_names: tuple[str, ...]) -> None:
        """Follow the joint states: only while they are needed, since every single one costs time."""
        self.time.follow()
        self._joint_names = joint_names
        self._latest = None
        self._heard.clear()
        self.offset = ClockOffset()
        if self._joint_states is not None:
            return
        self._joint_states = self._node.create_subscription(
            JointState,
            'joint_states',
            self._guarded(self._on_message),
            newest(10),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self.problem = f'none has come on {self._joint_states.topic_name}'

    def stop_listening(self) -> None:
        """Follow the joint states no longer."""
        if self._joint_states is not None:
            self._node.destroy_subscription(self._joint_states)
            self._joint_states = None
        self.time.leave()

    def _on_message(self, message: JointState) -> None:
        try:
            position, velocity, effort = joint_state_values(message, self._joint_names)
        except DataError as cause:
            self.problem = str(cause)  # joints of a gripper, say, may come by themselves
            return
        now = time.monotonic()
        stamp, clock = seconds(message.header.stamp), 1e-9 * self._node.get_clock().now().nanoseconds
        self._unstamped = not stamp
        if stamp and self.time.came.is_set():
            self.offset.update(stamp, clock)
        if np.isfinite(position).all():
            self._latest, self.problem = (position, now), ''
            self._heard.set()
        else:
            self._latest = None
            self.problem = 'the last one has positions that are not finite'
        self._take(position, velocity, effort, stamp or None, now)

    def clock_remark(self, tolerance: float) -> str | None:
        """Return what of the stamps may explain that the arm does not seem to follow; ``tolerance`` in s."""
        if self._unstamped:
            return 'the joint states carry no stamps, and what was late on its way looks like a lag'
        return self.offset.remark(tolerance)

    async def measure(self, joint_names: tuple[str, ...]) -> Array:
        """Return the measured position, shape (n,), as soon as a joint state comes; go on listening.

        Raises
        ------
        ExcitationError
            If none comes, or it cannot be used.
        """
        self.listen(joint_names)
        await self._worker.run(self._wait_for_joint_state)
        return self.fresh_position()

    def _wait_for_joint_state(self) -> None:
        """Wait, off the executor's thread, for a joint state that is in time."""
        deadline = time.monotonic() + _CATCH_UP
        tolerance = read_parameters(self._node, WatchdogConfig).clock_tolerance
        if self._heard.wait(_FIRST) and self.time.came.wait(_FIRST):
            while self.offset.behind > tolerance and time.monotonic() < deadline:
                time.sleep(0.02)

    def fresh_position(self) -> Array:
        """Return the measured position, shape (n,); an ExcitationError where it is missing, broken or old."""
        config = read_parameters(self._node, WatchdogConfig)
        if self._latest is None:
            hint = '; a simulated world that was reset has to be started anew' if self.time.simulated else ''
            raise ExcitationError(f'no usable joint state: {self.problem}{hint}')
        position, received = self._latest
        age = time.monotonic() - received
        if age > config.joint_state_timeout:
            raise ExcitationError(
                f'the last joint state is {age:.1f} s old (allowed: {config.joint_state_timeout:g} s)'
            )
        problem = self.offset.problem(config.clock_tolerance)
        if problem is not None:
            raise ExcitationError(problem)
        return position
