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
from typing import NamedTuple, Protocol

from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.nodes.publishing import publish

__all__ = ['ControllerFeedback', 'ControllerLink', 'LinkFault', 'TopicLink', 'wait_for_controller']

_POLL = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFeedback:
    """What a controller says of its own work at one instant.

    Attributes
    ----------
    stamp : float
        [s]
    desired, actual, error : ndarray, shape (n,)
        Position it leads to, position it measured, and their difference [rad or m].
    """

    stamp: float
    desired: Array
    actual: Array
    error: Array


class LinkFault(NamedTuple):
    """Why a run cannot go on, and whether the controller has brought the arm to a halt by itself."""

    reason: str
    held: bool


class ControllerLink(Protocol):
    """Takes trajectories to a controller and brings back what it says."""

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait, off the executor's thread, until the controller can be reached.

        Raises
        ------
        ExcitationError
            If nobody is there after ``timeout`` [s], or ``given_up`` is set.
        """

    def begin(self, joint_names: Sequence[str], listener: Callable[[ControllerFeedback], None]) -> None:
        """Prepare a run; feedback, where there is any, goes to the listener from now on.

        Raises
        ------
        ExcitationError
            If a setting does not fit the arm.
        """

    def send(self, message: JointTrajectory) -> None:
        """Replace what the controller follows."""

    def stop(self, message: JointTrajectory) -> None:
        """Replace what the controller follows by a way to rest."""

    def fault(self) -> LinkFault | None:
        """Return what is wrong with the controller while the arm moves, or None."""

    def conclusion(self, waited: float) -> str | None:
        """Return what is wrong with how the controller ended: '' for nothing, None if it has to be waited for.

        Parameters
        ----------
        waited : float
            Since the arm came to rest [s].
        """

    def values(self) -> Mapping[str, object]:
        """Return what is worth a place in the status."""


def wait_for_controller(there: Callable[[], bool], absent: str, timeout: float, given_up: threading.Event) -> None:
    """Wait until a controller is there.

    Raises
    ------
    ExcitationError
        With the sentence ``absent`` after ``timeout`` [s]; or if ``given_up`` is set.
    """
    deadline = time.monotonic() + timeout
    while not there():
        if time.monotonic() > deadline:
            raise ExcitationError(absent)
        if given_up.wait(_POLL):
            raise ExcitationError('the start was given up on request')


class TopicLink:
    """Publishes trajectories on ``joint_trajectory``; nothing comes back."""

    def __init__(self, node: Node) -> None:
        self._publisher = node.create_publisher(
            JointTrajectory,
            'joint_trajectory',
            QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait until somebody listens; see :class:`ControllerLink`."""
        wait_for_controller(
            lambda: bool(self._publisher.get_subscription_count()),
            f'no controller listens to {self._publisher.topic_name}; remap joint_trajectory to its topic',
            timeout,
            given_up,
        )

    def begin(self, joint_names: Sequence[str], listener: Callable[[ControllerFeedback], None]) -> None:
        """Do nothing: there is no feedback."""

    def send(self, message: JointTrajectory) -> None:
        """Publish the trajectory."""
        publish(self._publisher, message)

    def stop(self, message: JointTrajectory) -> None:
        """Publish the trajectory."""
        publish(self._publisher, message)

    def fault(self) -> LinkFault | None:
        """Return None: a topic does not answer."""
        return None

    def conclusion(self, waited: float) -> str | None:
        """Return that nothing is wrong: a topic does not answer."""
        return ''

    def values(self) -> Mapping[str, object]:
        """Return nothing."""
        return {}
