# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The controller's action ``FollowJointTrajectory``: trajectories with an answer, feedback and a result.

What a joint_trajectory_controller does was read in its source (ros-controls/ros2_controllers, at
2.54.0 for Humble, 4.42.1 for Jazzy, 5.17.0 for Kilted and 6.9.0 for Rolling):

- A new goal takes the place of the running one at the next control step, just as a message on the
  topic does; the old goal is aborted with INVALID_GOAL (Humble: cancelled), which is no fault.
- A goal goes on when its client dies. Each window ends at rest, so the arm does too.
- A cancelled or aborted goal makes the controller hold the position it measures, at once and at any
  speed; only where ``constraints.decelerate_on_cancel`` is set (not in Humble) it slows down. The
  arm is therefore stopped by a goal that leads it to rest, and a goal is cancelled only at rest, or
  where the controller refuses that last goal.
- A goal that is refused is refused without a reason; the controller's log has it.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import DataError, ExcitationError
from robotid_ros.nodes.controller_link import ControllerFeedback, wait_for_controller
from robotid_ros.nodes.conversions import (
    action_name,
    control_msgs,
    duration_message,
    outcome,
    seconds,
    tolerance_messages,
    tolerance_violated,
)
from robotid_ros.nodes.excitation_config import ActionLinkConfig
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.publishing import insist


@dataclass(slots=True, kw_only=True)
class _Goal:
    """One trajectory sent."""

    heard: float  # when the controller last said something of it, or when it was sent (monotonic) [s]
    stop: bool  # it leads to rest
    handle: Any = None  # once it is accepted
    refused: bool = False
    ended: bool = False
    outcome: str = ''  # what was wrong with its end
    told: bool = False  # fault() has reported its refusal or its end


class ActionLink:
    """Sends every window as a goal that takes the place of the one before.

    The node has declared the parameters of :class:`ActionLinkConfig`. Without a name, the action is
    ``follow_joint_trajectory`` beside the topic ``joint_trajectory``. A MissingDependencyError says that control_msgs
    is not installed.
    """

    answers = True

    def __init__(self, node: Node, name: str) -> None:
        self._action, self._tolerance = control_msgs("controller_interface 'action'")
        self._node = node
        name = name or action_name(node.resolve_topic_name('joint_trajectory'))
        self._name = node.resolve_service_name(name)
        self._client = ActionClient(node, self._action, name)
        self._config = read_parameters(node, ActionLinkConfig)
        self._joint_names: tuple[str, ...] = ()
        self._listener: Callable[[ControllerFeedback], None] = lambda _: None
        self._problem, self._looked = '', 0.0
        self._error: Array | None = None
        self._sent: _Goal | None = None
        self._running: _Goal | None = None

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait until exactly one controller serves the action; see :class:`ControllerLink`."""
        wait_for_controller(
            self._client.server_is_ready,
            f'no controller serves the action {self._name}; set follow_joint_trajectory_action to the name of its '
            'action, or controller_interface to topic',
            timeout,
            given_up,
        )
        servers = self._node.count_services(f'{self._name}/_action/send_goal')
        if servers > 1:
            raise ExcitationError(f'{servers} controllers serve the action {self._name}: all of them would move')

    def begin(self, joint_names: Sequence[str], listener: Callable[[ControllerFeedback], None]) -> None:
        """Read the tolerances, and forget an earlier run; see :class:`ControllerLink`."""
        config = read_parameters(self._node, ActionLinkConfig)
        for name in ('path_tolerance', 'goal_tolerance'):
            count = len(getattr(config, name))
            if count not in (0, 1, len(joint_names)):
                raise ExcitationError(
                    f'parameter {name!r}: expected one number, or one for each of the {len(joint_names)} joints, '
                    f'got {count}'
                )
        self._config, self._joint_names, self._listener = config, tuple(joint_names), listener
        self._sent = self._running = self._error = None
        self._problem, self._looked = '', time.monotonic()

    def send(self, message: JointTrajectory) -> None:
        """Send the trajectory as a goal."""
        self._send(message, stop=False)

    def stop(self, message: JointTrajectory) -> None:
        """Send the way to rest as a goal; if the controller refuses it, cancel the one it follows."""
        self._send(message, stop=True)

    def _send(self, message: JointTrajectory, *, stop: bool) -> None:
        config, names = self._config, self._joint_names
        goal = self._action.Goal(
            trajectory=message,
            path_tolerance=tolerance_messages(self._tolerance, names, _each(config.path_tolerance, len(names))),
            goal_tolerance=tolerance_messages(self._tolerance, names, _each(config.goal_tolerance, len(names))),
            goal_time_tolerance=duration_message(config.goal_time_tolerance),
        )
        sent = self._sent = _Goal(heard=time.monotonic(), stop=stop)
        answer = insist(partial(self._client.send_goal_async, goal, feedback_callback=partial(self._on_feedback, sent)))
        answer.add_done_callback(partial(self._on_answer, sent))

    def _on_answer(self, goal: _Goal, answer: Future) -> None:
        handle = answer.result()
        goal.heard = time.monotonic()
        if handle.accepted:
            goal.handle = handle
            insist(handle.get_result_async).add_done_callback(partial(self._on_result, goal))
            self._running = goal
            if self._sent is None:  # the run has been given up without waiting for this answer
                self._cancel()
            return
        goal.refused = True
        if goal.stop:
            self._cancel()

    def _on_feedback(self, goal: _Goal, message: Any) -> None:
        goal.heard = time.monotonic()
        if self._sent is None:
            return
        try:
            feedback = self._feedback(message.feedback)
        except DataError as cause:
            self._problem = f'the feedback of the controller cannot be used: {cause}'
            return
        self._error = feedback.error
        self._listener(feedback)

    def _feedback(self, message: Any) -> ControllerFeedback:
        """Return a feedback message in the order of the joints; a DataError where a joint or a position is missing."""
        order = require_names(self._joint_names, message.joint_names, 'joint', 'the feedback', DataError)
        columns = {}
        for name in ('desired', 'actual', 'error'):
            values = np.asarray(getattr(message, name).positions, dtype=float)
            if len(values) != len(message.joint_names):
                raise DataError(f'{len(message.joint_names)} joints, but {len(values)} positions of {name}')
            columns[name] = values[order]
        stamp = seconds(message.header.stamp) or 1e-9 * self._node.get_clock().now().nanoseconds
        desired, actual, error = columns.values()
        return ControllerFeedback(stamp=stamp, desired=desired, actual=actual, error=error)

    def _on_result(self, goal: _Goal, answer: Future) -> None:
        response = answer.result()
        goal.ended, goal.outcome = True, outcome(response.status, response.result)
        if goal is not self._sent and tolerance_violated(response.result):
            # The goal ended by itself, before the next one could take its place.
            self._problem = goal.outcome

    def fault(self) -> str | None:
        """Return a refusal, the end of the goal, or the silence of the controller."""
        goal = self._sent
        if goal is None:
            return None
        if goal.refused:
            goal.told = True
            return 'the controller refuses the trajectory; its log says why'
        if goal.ended:
            goal.told = True
            return goal.outcome or None
        if self._problem:
            return self._problem
        if not self._client.server_is_ready():
            return f'the action {self._name} has gone'
        now = time.monotonic()
        # After a late check, messages may still be in the queue: the next check decides.
        slept, self._looked = now - self._looked > 0.5 * self._config.feedback_timeout, now
        silence = now - goal.heard
        if silence > self._config.feedback_timeout and not slept:
            what = 'answer' if goal.handle is None else 'feedback'
            return f'no {what} from the controller for {silence:.2f} s (allowed: {self._config.feedback_timeout:g} s)'
        return None

    def conclusion(self, waited: float) -> str | None:
        """Return how the last goal ended; cancel it if it does not end by itself."""
        goal = self._sent
        if goal is None:
            return ''
        if goal.told:
            problem = ''
        elif goal.refused:
            problem = 'the controller refused to be led to rest: what it followed was cancelled'
        elif goal.ended:
            problem = goal.outcome
        elif waited < self._config.goal_time_tolerance + self._config.feedback_timeout:
            return None
        else:
            said = 'has not answered' if goal.handle is None else 'does not say that the end was reached'
            problem = f'the controller {said}: what it follows is cancelled'
            self._cancel()
        self._sent = None
        return problem

    def _cancel(self) -> None:
        """Have the controller hold the arm where it is."""
        goal = self._running
        if goal is not None and not goal.ended:
            insist(goal.handle.cancel_goal_async)

    def values(self) -> Mapping[str, object]:
        """Return the largest error of the latest feedback, and its joint."""
        if self._error is None:
            return {}
        k = int(np.argmax(np.abs(self._error)))
        return {'controller_error': float(self._error[k]), 'controller_error_joint': self._joint_names[k]}


def _each(values: Sequence[float], count: int) -> Sequence[float]:
    """Return one value for each joint: one stands for all, and none for 0."""
    return values if len(values) == count else [values[0] if values else 0.0] * count
