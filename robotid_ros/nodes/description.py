# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The robot description of a node: from a file, or as it is published."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rclpy.node import Node
from rclpy.subscription import Subscription
from rclpy.timer import Timer
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from robotid_ros.errors import ModelError, RobotIdError, SeveralArmsError
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.robot_config import configured_arm
from robotid_ros.nodes.messages import LATCHED, newest
from robotid_ros.nodes.runtime import steady_timer
from robotid_ros.settings import Settings, setting

_HEARD = 1.0
"""How long joint states are heard to learn an arm's joints [s]: a gripper's, or another arm's, may come between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DescriptionConfig(Settings):
    """Where a node has its robot description from, and which part of that is the arm."""

    error: ClassVar[type[RobotIdError]] = ModelError

    urdf_file: str = setting('', 'URDF; empty: what is published on robot_description', read_only=True)
    base_link: str = setting('', 'Link at the start of the chain; empty: the root', read_only=True)
    tip_link: str = setting('', 'Link at the end of the chain; empty: the last one', read_only=True)


class Description:
    """Hands over the arm of a file, or of every description that is published, or why it cannot be used.

    Of several equal arms it is the one whose joints come on ``joint_states``, once they come; of two whose joints both
    come there, none.

    ``take`` gets the arm and returns whether it was taken; a description that was is not handed over again, one that
    was not is by :meth:`again`. ``refuse`` gets why a description cannot be used. ``joints`` are those of the arm;
    empty takes all.
    """

    def __init__(
        self,
        node: Node,
        config: DescriptionConfig,
        robot: RobotConfig | None,
        take: Callable[[RobotModel], bool],
        refuse: Callable[[RobotIdError], None],
        joints: tuple[str, ...] = (),
    ) -> None:
        self._node, self._config, self._robot, self._joints = node, config, robot, joints
        self._take, self._refuse = take, refuse
        self._taken, self._left, self._came = '', '', False
        self._heard: set[str] = set()
        self._listening: Subscription | None = None
        self._waiting: Timer | None = None
        if config.urdf_file:
            self._on_description(config.urdf_file)
        else:
            node.create_subscription(String, 'robot_description', lambda text: self._on_description(text.data), LATCHED)

    @property
    def undecided(self) -> bool:
        """Whether joint states are to tell which of several arms is meant."""
        return self._listening is not None

    def again(self) -> None:
        """Hand over a description that was not taken when it came."""
        if self._left:
            self._offer(self._left)

    def stand_in(self, source: str, joints: Collection[str]) -> None:
        """Hand over the arm with these joints of a description that a recording holds, unless one was published."""
        if not self._came:
            self._heard = set(joints)
            self._offer(source)
            self._heard = set()

    def _on_description(self, source: str) -> None:
        self._came = True
        if source == self._taken:
            return
        self._leave()
        if self._offer(source, 'or the one is taken whose joint states come'):
            hear = partial(self._hear, source)
            self._listening = self._node.create_subscription(JointState, 'joint_states', hear, newest(10))

    def _offer(self, source: str, otherwise: str = '') -> bool:
        """Hand over the arm of a description, or why it cannot be used; return whether it is one of several."""
        base, tip, joints = self._config.base_link, self._config.tip_link, self._joints
        try:
            model = configured_arm(source, self._robot, base=base, tip=tip, joints=joints, along=self._heard)
        except RobotIdError as cause:
            several = isinstance(cause, SeveralArmsError)
            self._refuse(SeveralArmsError(f'{cause}; {otherwise}') if several and otherwise else cause)
            return several
        taken = self._take(model)
        self._taken, self._left = (source, '') if taken else ('', source)
        return False

    def _hear(self, source: str, message: JointState) -> None:
        self._heard.update(message.name)
        if self._waiting is None:
            self._waiting = steady_timer(self._node, _HEARD, partial(self._choose, source))

    def _choose(self, source: str) -> None:
        self._offer(source)
        self._leave()

    def _leave(self) -> None:
        """Follow the joint states no longer."""
        if self._waiting is not None:
            self._node.destroy_timer(self._waiting)
        if self._listening is not None:
            self._node.destroy_subscription(self._listening)
        self._listening, self._waiting, self._heard = None, None, set()
