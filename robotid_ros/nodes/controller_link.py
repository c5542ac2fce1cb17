# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How trajectories reach the controller: by the topic that every one has, or by its action with answers.

What a joint_trajectory_controller does was read in its source (ros-controls/ros2_controllers, at
2.54.0 for Humble, 4.42.1 for Jazzy, 5.17.0 for Kilted and 6.9.0 for Rolling):

- A new goal takes the place of the running one at the next control step, just as a message on the
  topic does; the old goal is aborted with INVALID_GOAL (Humble: cancelled), which is no fault. At
  6.9.0 one that lies ahead does so when it begins, and is not spoken of until then.
- A goal goes on when its client dies. Each window ends at rest, so the arm does too.
- A cancelled or aborted goal makes the controller hold the position it measures, at once and at any
  speed; only where ``constraints.decelerate_on_cancel`` is set (not in Humble) it slows down. The
  arm is therefore stopped by a goal that leads it to rest, and a goal is cancelled only at rest, or
  where the controller refuses that last goal.
- A goal that is refused is refused without a reason; the controller's log has it.
"""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
from action_msgs.msg import GoalStatus
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import DataError, ExcitationError, MissingDependencyError
from robotid_ros.nodes.messages import duration_message, insist, newest, node_names, publish, seconds
from robotid_ros.nodes.parameters import read_parameters
from robotid_ros.nodes.runtime import call_service
from robotid_ros.settings import Settings, setting

_REPLACEMENT, _INTERPOLATION, _TIME = 'allow_trajectory_replacement', 'interpolation_method', 'use_sim_time'
BLENDS = 'positions_upsampling.enable'
"""A parameter that only controllers have which blend: 6.8 and 6.9.0 have the first one above, and begin a trajectory
that lies ahead where the arm is measured then, behind their reference by all that it lags. Of one that began in the
past they take over the rest, as those before."""
_POLL = 0.05
_STATE_PERIOD = 0.02
"""Of the controller states that are looked at [s]."""
_MEANINGS: Mapping[int, tuple[str, str]] = {
    -1: ('INVALID_GOAL', 'the controller cannot use the trajectory, or another one took its place'),
    -2: ('INVALID_JOINTS', "the joints are not the controller's"),
    -3: ('OLD_HEADER_TIMESTAMP', 'the trajectory lies in the past'),
    -4: ('PATH_TOLERANCE_VIOLATED', 'a joint was too far from the trajectory'),
    -5: ('GOAL_TOLERANCE_VIOLATED', 'a joint did not reach the end of the trajectory'),
}
_STATUS: Mapping[int, str] = {GoalStatus.STATUS_CANCELED: 'cancelled', GoalStatus.STATUS_ABORTED: 'aborted'}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLinkConfig(Settings):
    """What is asked of a controller by its action; there are such parameters only with the action."""

    error = ExcitationError

    path_tolerance: tuple[float, ...] = setting(
        (),
        'How far a joint may be from the trajectory before the controller aborts: one number, or one per joint; '
        "0 or none: the controller's own",
        unit='rad or m',
        range=(0.0, 10.0),
    )
    goal_tolerance: tuple[float, ...] = setting(
        (),
        'How far a joint may be from the end of the trajectory: one number, or one per joint; 0 or none: the '
        "controller's own",
        unit='rad or m',
        range=(0.0, 10.0),
    )
    goal_time_tolerance: float = setting(
        0.0,
        "How long after its end the joints may take to get within goal_tolerance; 0: the controller's own",
        unit='s',
        range=(0.0, 60.0),
    )
    feedback_timeout: float = setting(
        1.0,
        'Longest time without an answer or feedback from the controller before the arm is stopped',
        unit='s',
        range=(0.1, 60.0),
    )


def replacement(node: Node, controllers: Sequence[str]) -> str:
    """Return 'immediate' or 'blend', as the first controller that tells says; off the executor's thread.

    Raises an ExcitationError if none tells, it does not interpolate, or its time is not that of this node.
    """
    for controller in controllers:
        known = _parameters(node, controller)
        _require_time(node, controller, known.get(_TIME))
        if known.get(_INTERPOLATION) == 'none':
            raise ExcitationError(
                f'{controller} does not interpolate (interpolation_method: none): it would leap from point to point; '
                'set it to splines'
            )
        if known.get(_REPLACEMENT) and BLENDS in known:
            node.get_logger().warning(
                f'{controller} repeats its last command whenever it takes over a trajectory ({_REPLACEMENT}: true), a '
                f'step of up to its speed times its period; ros2 param set {controller} {_REPLACEMENT} false avoids it'
            )
            return 'blend'
        if _REPLACEMENT in known or _INTERPOLATION in known:  # the second alone before there was the first
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
        name
        for name in (_REPLACEMENT, _INTERPOLATION, _TIME, BLENDS)
        if listed is not None and name in listed.result.names
    ]
    if not names:
        return {}
    answer = call_service(node, GetParameters, f'{controller}/get_parameters', GetParameters.Request(names=names))
    if answer is None:
        return {}
    values = zip(names, map(parameter_value_to_python, answer.values), strict=True)
    return {name: value for name, value in values if value is not None}


Listener: TypeAlias = Callable[[Array, Array, float, float | None], None]
"""Gets what a controller says of its own work: where it leads the joints and where it measured them, shape (n,) each
[rad or m], the stamp [s], and, where it tells that, the part of the speed at which it follows its trajectory [%]."""


def _positions(message: Any, fields: Sequence[str], joint_names: Sequence[str], what: str) -> list[Array]:
    """Return the positions of some fields in the order of the joints; a DataError where one of them is missing."""
    order = require_names(joint_names, message.joint_names, 'joint', what, DataError)
    columns = []
    for field in fields:
        values = np.asarray(getattr(message, field).positions, dtype=float)
        if len(values) != len(message.joint_names):
            raise DataError(f'{len(message.joint_names)} joints, but {len(values)} positions of {field}')
        columns.append(values[order])
    return columns


class ControllerLink:
    """Takes trajectories to a controller and brings back what it says; this base is one that says nothing.

    ``answers`` says whether the controller accepts or refuses every trajectory explicitly, ``holds`` whether it is
    known to hold the arm by itself, since it ended what it followed.
    """

    answers = False
    holds = False

    def __init__(self, node: Node) -> None:
        self._node = node
        self._joint_names: tuple[str, ...] = ()
        self._listener: Listener = lambda *_: None

    def _absent(self) -> str:
        """Return why the controller cannot be reached, '' where it can."""
        raise NotImplementedError

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait, off the executor's thread, until the controller can be reached.

        An ExcitationError says that it cannot be reached within ``timeout`` [s], or that ``given_up`` is set.
        """
        deadline = time.monotonic() + timeout
        while absent := self._absent():
            if time.monotonic() > deadline:
                raise ExcitationError(absent)
            if given_up.wait(_POLL):
                raise ExcitationError('the start was given up on request')

    def begin(self, joint_names: Sequence[str], listener: Listener) -> None:
        """Prepare a run; feedback, where there is any, goes to the listener from now on.

        An ExcitationError says which setting does not fit the arm.
        """
        self._joint_names, self._listener = tuple(joint_names), listener

    def send(self, message: JointTrajectory) -> None:
        """Replace what the controller follows."""
        raise NotImplementedError

    def stop(self, message: JointTrajectory) -> None:
        """Replace what the controller follows by a way to rest."""
        self.send(message)

    def fault(self) -> str | None:
        """Return what is wrong with the controller while the arm moves, or None."""
        return None

    def conclusion(self, waited: float) -> str | None:
        """Return what is wrong with how the controller ended: '' for nothing, None if it has to be waited for.

        The arm came to rest ``waited`` seconds ago.
        """
        return ''

    def values(self) -> Mapping[str, object]:
        """Return values for the status."""
        return {}


class TopicLink(ControllerLink):
    """Publishes trajectories on ``joint_trajectory``.

    The topic does not answer. Where control_msgs is installed, the state that a joint_trajectory_controller
    publishes beside it (``controller_state``) tells where it leads the arm.
    """

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self._publisher = node.create_publisher(
            JointTrajectory,
            'joint_trajectory',
            QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._state: Subscription | None = None
        self._type: Any = None  # of the controller's state, where control_msgs is installed
        with suppress(ImportError):
            self._type = import_module('control_msgs.msg').JointTrajectoryControllerState
        self._looked = 0.0
        self._tells_speed = False

    def _absent(self) -> str:
        if self._publisher.get_subscription_count():
            return ''
        return f'no controller listens to {self._publisher.topic_name}; remap joint_trajectory to its topic'

    def begin(self, joint_names: Sequence[str], listener: Listener) -> None:
        """Listen to the state of the controller, if it can be had; see :class:`ControllerLink`."""
        super().begin(joint_names, listener)
        self._tells_speed = False
        if self._type is not None and self._state is None:
            name = f'{self._publisher.topic_name.rpartition("/")[0]}/controller_state'
            profile = newest(1)
            self._state = self._node.create_subscription(self._type, name, self._on_state, profile, raw=True)

    def _on_state(self, serialised: bytes) -> None:
        """Take the controller's state; it comes at the controller's rate, of which ``_STATE_PERIOD`` is enough."""
        now = time.monotonic()
        if now - self._looked < _STATE_PERIOD:
            return
        self._looked = now
        message = deserialize_message(serialised, self._type)
        try:
            fields = 'reference', 'feedback'
            desired, actual = _positions(message, fields, self._joint_names, 'the controller state')
        except DataError:
            return  # of another arm, or not yet filled
        # A controller that does not fill its speed scaling in leaves 0: it tells it once it has been full.
        factor = float(getattr(message, 'speed_scaling_factor', 0.0))
        self._tells_speed = self._tells_speed or factor == 1.0
        speed = 100.0 * factor if self._tells_speed else None
        self._listener(desired, actual, seconds(message.header.stamp), speed)

    def send(self, message: JointTrajectory) -> None:
        """Publish the trajectory."""
        publish(self._publisher, message)

    def conclusion(self, waited: float) -> str | None:
        """Return that nothing is wrong: a topic does not answer."""
        if self._state is not None:
            self._node.destroy_subscription(self._state)
            self._state = None
        return ''


@dataclass(slots=True, kw_only=True)
class _Goal:
    """One trajectory sent."""

    heard: float  # when the controller last said something of it, or when it was sent (monotonic) [s]
    begins: float  # one that lies ahead is not spoken of until then by a controller that follows another meanwhile [s]
    stop: bool  # it leads to rest
    handle: Any = None  # once it is accepted
    refused: bool = False
    ended: bool = False
    held: bool = False  # by the controller, which ended it outside a tolerance
    outcome: str = ''  # what was wrong with its end
    told: bool = False  # its refusal or its end has been reported

    def report(self) -> str | None:
        """Return what is wrong with its refusal or its end, '' where nothing is, None while it goes on."""
        if not (self.refused or self.ended):
            return None
        self.told = True
        if not self.refused:
            return self.outcome
        if self.stop:
            return 'the controller refused to be led to rest: what it followed was cancelled'
        return 'the controller refuses the trajectory; its log says why'


class ActionLink(ControllerLink):
    """Sends every window as a goal that takes the place of the one before.

    The node has declared the parameters of :class:`ActionLinkConfig`. A MissingDependencyError says that control_msgs
    is not installed.
    """

    answers = True

    def __init__(self, node: Node, name: str) -> None:
        super().__init__(node)
        self._action, self._tolerance = control_msgs("controller_interface 'action'")
        self._name = node.resolve_service_name(name)
        self._client = ActionClient(node, self._action, name)
        self._config = read_parameters(node, ActionLinkConfig)
        self._problem, self._looked = '', 0.0
        self._error: Array | None = None
        self._sent: _Goal | None = None
        self._running: _Goal | None = None

    def _absent(self) -> str:
        if self._client.server_is_ready():
            return ''
        return (
            f'no controller serves the action {self._name}; set follow_joint_trajectory_action to the name of its '
            'action, or controller_interface to topic'
        )

    def require_controller(self, timeout: float, given_up: threading.Event) -> None:
        """Wait until exactly one controller serves the action; see :class:`ControllerLink`."""
        super().require_controller(timeout, given_up)
        servers = self._node.count_publishers(f'{self._name}/_action/status')  # each has one; Humble counts no services
        if servers > 1:
            raise ExcitationError(f'{servers} controllers serve the action {self._name}: all of them would move')

    def begin(self, joint_names: Sequence[str], listener: Listener) -> None:
        """Read the tolerances, and forget an earlier run; see :class:`ControllerLink`."""
        config = read_parameters(self._node, ActionLinkConfig)
        for name in ('path_tolerance', 'goal_tolerance'):
            count = len(getattr(config, name))
            if count not in (0, 1, len(joint_names)):
                raise ExcitationError(
                    f'parameter {name!r}: expected one number, or one for each of the {len(joint_names)} joints, '
                    f'got {count}'
                )
        super().begin(joint_names, listener)
        self._config = config
        self._sent = self._running = self._error = None
        self._problem, self._looked, self.holds = '', time.monotonic(), False

    def send(self, message: JointTrajectory) -> None:
        """Send the trajectory as a goal."""
        self._send(message, stop=False)

    def stop(self, message: JointTrajectory) -> None:
        """Send the way to rest as a goal; if the controller refuses it, cancel the one it follows.

        A controller that ended the last goal by itself holds the arm, which may press on something: the way to rest
        would lead it on. It is sent where the arm moves all the same, and this is called again.
        """
        last = self._sent
        if last is not None and last.held:
            last.held, self.holds = False, True
        else:
            self._send(message, stop=True)

    def _send(self, message: JointTrajectory, *, stop: bool) -> None:
        config = self._config
        goal = self._action.Goal(
            trajectory=message,
            path_tolerance=self._tolerances(config.path_tolerance),
            goal_tolerance=self._tolerances(config.goal_tolerance),
            goal_time_tolerance=duration_message(config.goal_time_tolerance),
        )
        self.holds = False
        now, stamp = time.monotonic(), seconds(message.header.stamp)
        ahead = stamp - 1e-9 * self._node.get_clock().now().nanoseconds if stamp else 0.0
        sent = self._sent = _Goal(heard=now, begins=now + ahead, stop=stop)
        answer = insist(partial(self._client.send_goal_async, goal, feedback_callback=partial(self._on_feedback, sent)))
        answer.add_done_callback(partial(self._on_answer, sent))

    def _tolerances(self, values: Sequence[float]) -> list[Any]:
        """Return the messages of tolerances that are not 0, the controller's own; one stands for all joints."""
        names = self._joint_names
        each = [*values] * len(names) if len(values) == 1 else values
        return [self._tolerance(name=k, position=value) for k, value in zip(names, each, strict=False) if value]

    def _on_answer(self, goal: _Goal, answer: Future) -> None:
        handle = answer.result()
        goal.heard = max(time.monotonic(), goal.begins)
        if handle.accepted:
            goal.handle = handle
            insist(handle.get_result_async).add_done_callback(partial(self._on_result, goal))
            self._running = goal
            if self._sent is None:  # the run has been given up without waiting for this answer
                self._cancel()
            return
        goal.refused = True
        if goal.stop:
            self.holds = True
            self._cancel()

    def _on_feedback(self, goal: _Goal, message: Any) -> None:
        goal.heard = time.monotonic()
        if self._sent is None:
            return
        told, fields = message.feedback, ('desired', 'actual', 'error')
        try:
            desired, actual, self._error = _positions(told, fields, self._joint_names, 'the feedback')
        except DataError as cause:
            self._problem = f'the feedback of the controller cannot be used: {cause}'
            return
        stamp = seconds(told.header.stamp) or 1e-9 * self._node.get_clock().now().nanoseconds
        self._listener(desired, actual, stamp, None)

    def _on_result(self, goal: _Goal, answer: Future) -> None:
        response = answer.result()
        goal.ended, goal.outcome = True, outcome(response.status, response.result)
        goal.held = response.result.error_code in (-4, -5)  # outside a tolerance
        if goal.held and goal is not self._sent:  # before the next one could take its place
            self._problem = goal.outcome

    def fault(self) -> str | None:
        """Return a refusal, the end of the goal, or the silence of the controller."""
        goal = self._sent
        if goal is None:
            return None
        end = goal.report()
        if end is not None:
            return end or None
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
        end = '' if goal.told else goal.report()
        if end is not None:
            problem = end
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


def control_msgs(purpose: str) -> tuple[Any, Any]:
    """Return the types of the action and of ``JointTolerance``.

    A MissingDependencyError, whose subject is the ``purpose``, names what to install where they cannot be imported.
    """
    try:
        actions, messages = import_module('control_msgs.action'), import_module('control_msgs.msg')
        return actions.FollowJointTrajectory, messages.JointTolerance
    except ImportError as cause:
        distribution = os.environ.get('ROS_DISTRO', '<distribution>')
        raise MissingDependencyError(
            f'{purpose} needs the ROS package control_msgs ({cause}); it is not on PyPI: install it with '
            f"'sudo apt install ros-{distribution}-control-msgs' and source that ROS, "
            'or set controller_interface to topic'
        ) from cause


def action_name(topic: str) -> str:
    """Return the name of the action beside a topic: a joint_trajectory_controller has both in one namespace."""
    return f'{topic.rpartition("/")[0]}/follow_joint_trajectory'


def outcome(status: int, result: Any) -> str:
    """Return how a goal ended, by ``action_msgs/msg/GoalStatus`` and its result, in words; '' if it reached its end."""
    if status == GoalStatus.STATUS_SUCCEEDED:
        return ''
    text = f'the controller {_STATUS.get(status, "forgot")} the trajectory'
    if result.error_code:
        name, meaning = _MEANINGS.get(result.error_code, (f'error code {result.error_code}', 'unknown'))
        text = f'{text}: {name} ({meaning})'
    return f'{text}: {result.error_string}' if result.error_string else text
