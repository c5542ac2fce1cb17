# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The designed motion on a topic of its own, to be looked at before the arm moves."""

import time
from collections.abc import Callable

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.friction_sweep import FrictionSweep
from robotid_ros.excitation.pose_tour import PoseTour
from robotid_ros.nodes.runtime import SimulatedTime, steady_timer

_RATE = 50.0  # Hz; RViz draws 30 pictures a second
_LOOK = 0.5  # between checks for subscribers [s]; 50 checks a second take 4 % of a core


class Preview:
    """Publishes the joint states of a motion on ``~/preview``, over and over, while somebody listens.

    Nothing of the arm's own topics is touched. ``motion`` returns the joint names and the motion, or None while there
    is none to show; the node's parameter ``preview_speed`` says how fast it is shown.
    """

    def __init__(
        self,
        node: Node,
        motion: Callable[[], tuple[tuple[str, ...], FourierTrajectory | FrictionSweep | PoseTour] | None],
    ) -> None:
        self._node, self._motion = node, motion
        self._publisher = node.create_publisher(JointState, '~/preview', 10)
        self._elapsed = 0.0
        self._last: float | None = None
        self._time = SimulatedTime(node)
        self._timer = steady_timer(node, _LOOK, self._show)

    def _show(self) -> None:
        now = time.monotonic()
        shown = self._motion() if self._publisher.get_subscription_count() else None
        if shown is None:
            if self._last is not None:
                self._time.leave()
                self._timer.timer_period_ns = int(1e9 * _LOOK)
            self._elapsed, self._last = 0.0, None
            return
        if self._last is None:
            self._time.follow()
            self._timer.timer_period_ns = int(1e9 / _RATE)
            self._timer.reset()  # else the second message would come after the old period, and the motion would jump
        names, motion = shown
        if self._last is not None:
            self._elapsed += float(self._node.get_parameter('preview_speed').value) * (now - self._last)
        self._last = now
        if isinstance(motion, FourierTrajectory):
            position, velocity, _ = motion.evaluate(np.array([self._elapsed % motion.period]))
        else:
            position, velocity, _ = motion.reference.evaluate(np.array([self._elapsed % motion.reference.duration]))
        message = JointState(name=list(names), position=position[0].tolist(), velocity=velocity[0].tolist())
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)
