# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The simulated arm's action ``FollowJointTrajectory``, as a joint_trajectory_controller serves it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.task import Future
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError
from robotid_ros.nodes.controller_link import action_name, control_msgs
from robotid_ros.nodes.messages import insist, seconds, time_message
from robotid_ros.nodes.runtime import steady_timer
from robotid_ros.simulation.controller import GoalEnd, GoalTolerances, GoalVerdict

_MONITOR_PERIOD = 0.05  # the controller's action_monitor_rate


class _Observation(NamedTuple):
    """What the controller wanted and measured at one instant; each of shape (n,)."""

    stamp: float
    desired: tuple[Array, Array, Array]
    position: Array
    velocity: Array


@dataclass(slots=True, kw_only=True)
class FollowedGoal:
    """A goal that was accepted: the executor's thread makes and ends it, the physics fill in the rest."""

    handle: Any
    joint_names: Sequence[str]
    tolerances: GoalTolerances
    ended: Future
    end: float | None = None  # of its trajectory, once that was taken over [s]
    latest: _Observation | None = None
    verdict: GoalVerdict | None = None

    def observe(
        self, now: float, stamp: float, desired: tuple[Array, Array, Array], position: Array, velocity: Array
    ) -> GoalVerdict | None:
        """Take in one control step; return how the goal ends with it, or None.

        The step is ``now`` in the controller's time and ``stamp`` as a stamp [s]. All arrays have the shape (n,):
        desired position, velocity and acceleration [rad, rad/s, rad/s^2; or m], and measured position and velocity.
        """
        self.latest = _Observation(stamp, desired, position, velocity)
        if self.end is not None and self.verdict is None:
            errors = desired[0] - position, desired[1] - velocity
            self.verdict = self.tolerances.judge(self.joint_names, now - self.end, *errors)
        return self.verdict


class TrajectoryActionServer:
    """Serves the action beside the topic ``joint_trajectory``; everything in the executor's thread.

    Goals are accepted or refused by the rules of the topic: ``check`` raises DataError for a trajectory that the
    controller refuses. ``follow`` hands an accepted one to the physics, with the goal. A new goal aborts the one before
    with INVALID_GOAL; a cancelled one, and one outside its tolerances, has ``hold`` stop the arm where it is, at once.

    Raises
    ------
    MissingDependencyError
        If control_msgs is not installed.
    """

    def __init__(
        self,
        node: Node,
        joint_names: Sequence[str],
        check: Callable[[JointTrajectory], None],
        follow: Callable[[JointTrajectory, FollowedGoal], None],
        hold: Callable[[], None],
    ) -> None:
        self._type, _ = control_msgs('the action FollowJointTrajectory')
        self._node, self._joint_names = node, list(joint_names)
        self._check, self._follow, self._hold = check, follow, hold
        self._goal: FollowedGoal | None = None
        self.name = action_name(node.resolve_topic_name('joint_trajectory'))
        self._server = ActionServer(
            node,
            self._type,
            self.name,
            self._carry_out,
            goal_callback=self._decide,
            handle_accepted_callback=self._accept,
            cancel_callback=self._cancel,
        )
        self._monitor = steady_timer(node, _MONITOR_PERIOD, self._on_monitor)
        self._monitor.cancel()

    def _decide(self, request: Any) -> GoalResponse:
        try:
            self._check(request.trajectory)
        except DataError as refusal:
            self._node.get_logger().error(f'trajectory rejected: {refusal}')
            return GoalResponse.REJECT
        return GoalResponse.ACCEPT

    def _accept(self, handle: Any) -> None:
        if self._goal is not None:
            self._end('abort', GoalVerdict(GoalEnd.INVALID_GOAL, 'Current goal preempted by new incoming action.'))
        tolerances = self._tolerances(handle.request)
        goal = FollowedGoal(handle=handle, joint_names=self._joint_names, tolerances=tolerances, ended=Future())
        self._goal = goal
        self._follow(handle.request.trajectory, goal)
        handle.execute(partial(self._carry_out, ended=goal.ended))
        self._monitor.reset()

    def _tolerances(self, request: Any) -> GoalTolerances:
        usual = GoalTolerances.usual(len(self._joint_names))
        asked = request.path_tolerance, request.goal_tolerance, seconds(request.goal_time_tolerance)
        try:
            return usual.requested(self._joint_names, *asked)
        except DataError as problem:
            self._node.get_logger().error(f'the tolerances of a goal are left aside: {problem}')
            return usual

    async def _carry_out(self, handle: Any, ended: Future) -> Any:
        """Wait for the end of a goal, and tell its client."""
        how, verdict = await ended
        getattr(handle, how)()
        return self._type.Result(error_code=int(verdict.end), error_string=verdict.text)

    def _cancel(self, handle: Any) -> CancelResponse:
        if self._goal is not None and self._goal.handle is handle:
            self._hold()
            self._end('canceled', GoalVerdict(GoalEnd.SUCCESSFUL, ''))
        return CancelResponse.ACCEPT

    def _on_monitor(self) -> None:
        goal = self._goal
        if goal is None:
            self._monitor.cancel()
        elif goal.verdict is not None:
            succeeded = goal.verdict.end is GoalEnd.SUCCESSFUL
            if not succeeded:
                self._node.get_logger().warning(f'goal aborted: {goal.verdict.text}')
            self._end('succeed' if succeeded else 'abort', goal.verdict)
        elif goal.latest is not None:
            seen, goal.latest = goal.latest, None  # each observation once
            insist(partial(goal.handle.publish_feedback, self._feedback(seen)))

    def _end(self, how: str, verdict: GoalVerdict) -> None:
        assert self._goal is not None
        self._goal.ended.set_result((how, verdict))
        self._goal = None

    def _feedback(self, seen: _Observation) -> Any:
        position, velocity, acceleration = seen.desired
        feedback = self._type.Feedback(
            joint_names=self._joint_names,
            desired=_point(position, velocity, acceleration),
            actual=_point(seen.position, seen.velocity),
            error=_point(position - seen.position, velocity - seen.velocity),
        )
        feedback.header.stamp = time_message(seen.stamp)
        return feedback


def _point(position: Array, velocity: Array, acceleration: Array | None = None) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(
        positions=position.tolist(),
        velocities=velocity.tolist(),
        accelerations=[] if acceleration is None else acceleration.tolist(),
    )
