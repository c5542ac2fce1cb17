# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``simulated_arm``: an arm in a physics engine that listens and speaks like a real one.

It takes ``trajectory_msgs/JointTrajectory`` by the rules of ros2_control's joint_trajectory_controller, on its topic
and, where control_msgs is installed, by its action, and publishes ``sensor_msgs/JointState`` as its
joint_state_broadcaster does, and a latched ``robot_description``. With a ``mission`` the arm rides on a base that
floats freely, and ``base_twist`` and ``base_pose`` (``geometry_msgs``) tell how it moves.
"""

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped
from rcl_interfaces.msg import ParameterDescriptor
from rclpy.action import ActionServer, CancelResponse, GoalResponse
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_system_default
from rclpy.task import Future
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.nodes.controller_link import BLENDS, action_name, control_msgs
from robotid_ros.nodes.messages import LATCHED, JointStateTemplate, insist, newest, publish, seconds, time_message
from robotid_ros.nodes.parameters import declare_parameters, declare_robot_config, read_parameters
from robotid_ros.nodes.runtime import run_node, steady_timer
from robotid_ros.nodes.simulated_arm_config import SimulatedArmConfig, SimulatedArmParts, SimulatedFaults
from robotid_ros.simulation import CommandPoint, write_truth
from robotid_ros.simulation.controller import GoalEnd, GoalTolerances, GoalVerdict
from robotid_ros.simulation.plant import FloatingPlant, Wall

if TYPE_CHECKING:
    from robotid_ros.free_floating import SensorNoise

_NANOSECONDS = 1_000_000_000

# A subscriber may stall this long [s] before a reliable publisher forgets what it still has to send.
_HISTORY = 10.0

# How far the physics may fall behind before it is worth a line in the log, and how often [s].
_WORTH_A_WARNING = 0.2
# How far they make up for where they set the clock: a burst looks like a clock that jumps to a busy node.
_MADE_UP = 0.02
_WARNING_PERIOD = 10.0

# How fast simulated time goes at rest while nobody listens to the joint states: the processor is for those who compute.
_UNHEARD = 0.25

# How often the parameters of the faults are read [s].
_FAULT_PERIOD = 0.05
_MONITOR_PERIOD = 0.05  # the controller's action_monitor_rate [s]


@dataclass(slots=True, kw_only=True)
class FollowedGoal:
    """A goal that was accepted: the executor's thread makes and ends it, the physics fill in the rest."""

    handle: Any
    tolerances: GoalTolerances
    ended: Future
    end: float | None = None  # of its trajectory, once that was taken over [s]
    latest: tuple[float, tuple[Array, Array, Array], Array, Array] | None = None  # as observed, from the stamp on
    verdict: GoalVerdict | None = None

    def observe(
        self, now: float, stamp: float, desired: tuple[Array, Array, Array], position: Array, velocity: Array
    ) -> GoalVerdict | None:
        """Take in one control step; return how the goal ends with it, or None.

        The step is ``now`` in the controller's time and ``stamp`` as a stamp [s]. All arrays have the shape (n,):
        desired position, velocity and acceleration [rad, rad/s, rad/s^2; or m], and measured position and velocity.
        """
        self.latest = stamp, desired, position, velocity
        if self.end is not None and self.verdict is None:
            errors = desired[0] - position, desired[1] - velocity
            self.verdict = self.tolerances.judge(now - self.end, *errors)
        return self.verdict


class TrajectoryActionServer:
    """Serves the action beside the topic ``joint_trajectory``; everything in the executor's thread.

    Goals are accepted or refused by the rules of the topic: ``check`` raises DataError for a trajectory that the
    controller refuses. ``follow`` hands an accepted one to the physics, with the goal. A new goal aborts the one before
    with INVALID_GOAL; a cancelled one, and one outside its tolerances, has ``hold`` stop the arm where it is, at once.

    Raises a MissingDependencyError if control_msgs is not installed.
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
        asked = handle.request
        try:
            after = seconds(asked.goal_time_tolerance)
            tolerances = GoalTolerances(self._joint_names, asked.path_tolerance, asked.goal_tolerance, after)
        except DataError as problem:
            self._node.get_logger().error(f'the tolerances of a goal are left aside: {problem}')
            tolerances = GoalTolerances(self._joint_names)
        goal = FollowedGoal(handle=handle, tolerances=tolerances, ended=Future())
        self._goal = goal
        self._follow(handle.request.trajectory, goal)
        handle.execute(partial(self._carry_out, ended=goal.ended))
        self._monitor.reset()

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
            (stamp, desired, position, velocity), goal.latest = goal.latest, None  # each observation once
            feedback = self._type.Feedback(
                joint_names=self._joint_names,
                desired=_point(*desired),
                actual=_point(position, velocity),
                error=_point(desired[0] - position, desired[1] - velocity),
            )
            feedback.header.stamp = time_message(stamp)
            insist(partial(goal.handle.publish_feedback, feedback))

    def _end(self, how: str, verdict: GoalVerdict) -> None:
        assert self._goal is not None
        self._goal.ended.set_result((how, verdict))
        self._goal = None


def _point(position: Array, velocity: Array, acceleration: Array | None = None) -> JointTrajectoryPoint:
    return JointTrajectoryPoint(
        positions=position.tolist(),
        velocities=velocity.tolist(),
        accelerations=[] if acceleration is None else acceleration.tolist(),
    )


class SimulatedArm(Node):
    """An arm in a physics engine, in real time or faster.

    The physics run in a thread of their own, step after step against absolute deadlines: a delay is made up for by
    computing faster, or by a clock that waits where this node publishes it, and no step or joint state is left out. A
    command takes effect at the step that was due when it came, so that a busy machine delays the joint states but does
    not change the motion; where the node publishes the clock, all nodes wait instead. There it is faster than real time
    only while the arm follows a trajectory, and slower at rest while nobody listens to its joint states: nodes have
    time to find each other, to compute and to send. Stamps are the simulated time, which begins at the system's time
    and does not drift from it at speed 1 without a clock.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__('simulated_arm', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        self._config = declare_parameters(self, SimulatedArmConfig)
        self._parts = SimulatedArmParts(self._config, declare_robot_config(self))
        names = self._parts.plant.joint_names
        if self._config.truth_file:
            write_truth(self._config.truth_file, self._parts.truth)

        depth = max(10, round(_HISTORY * self._config.publish_rate * self._config.speed))
        reliable = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self._states = self.create_publisher(JointState, 'joint_states', reliable)
        self._description = self.create_publisher(String, 'robot_description', LATCHED)
        publish(self._description, String(data=self._parts.description))
        if isinstance(self._parts.plant, FloatingPlant):
            self._twists = self.create_publisher(TwistStamped, 'base_twist', reliable)
            self._poses = self.create_publisher(PoseStamped, 'base_pose', reliable)
        self._clock_publisher = (
            self.create_publisher(Clock, '/clock', newest(1)) if self._config.publish_clock else None
        )
        # The controller's own subscription has the system's default profile.
        self.create_subscription(JointTrajectory, 'joint_trajectory', self._receive, qos_profile_system_default)
        # What the physics are to do, with the moment it came, which they may not have reached yet.
        self._commands: deque[tuple[float, Callable[[float], None]]] = deque()
        # What a joint_trajectory_controller tells of itself.
        fixed = ParameterDescriptor(read_only=True)
        blends = self._config.trajectory_replacement == 'blend'
        self.declare_parameter('allow_trajectory_replacement', blends, fixed)
        self.declare_parameter('interpolation_method', 'splines', fixed)
        if blends:
            self.declare_parameter(BLENDS, False, fixed)
        self._goal: FollowedGoal | None = None
        self._moves_until = -np.inf  # the end of the last trajectory, in the physics' time
        self._faults = declare_parameters(self, SimulatedFaults)
        steady_timer(self, _FAULT_PERIOD, self._look_for_faults)
        self._measured: Array = np.zeros(len(names))
        self._velocity: Array = np.zeros(len(names))
        self._failure: BaseException | None = None
        self._report_failure = self.create_guard_condition(self._raise_failure)

        if self._config.speed != 1.0 and not self._config.publish_clock:
            self.get_logger().warning(
                f'simulated time runs at {self._config.speed:g} times the real one and no clock is published: set '
                'publish_clock, and use_sim_time in every other node'
            )
        with suppress(MissingDependencyError):
            TrajectoryActionServer(
                self,
                names,
                self._check,
                self._receive,
                lambda: self._commands.append((time.perf_counter(), self._hold)),
            )
        self.get_logger().info(
            f'simulating {self._parts.plant.nominal.name} ({", ".join(names)}): physics at '
            f'{self._config.physics_rate:g} Hz, joint states at {self._config.publish_rate:g} Hz, '
            f'{self._config.speed:g} times real time'
        )
        self._stop = threading.Event()
        self._begin, self._origin = time.perf_counter(), time.time_ns()
        self._thread = threading.Thread(target=self._simulate, name='physics', daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the physics."""
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _receive(self, message: JointTrajectory, goal: FollowedGoal | None = None) -> None:
        arrival = time.perf_counter() + self._faults.message_delay / self._config.speed
        self._commands.append((arrival, partial(self._take, *self._trajectory(message), goal)))

    def _check(self, message: JointTrajectory) -> None:
        """Refuse, with a DataError, a trajectory that the follower would refuse now."""
        now = (time.perf_counter() - self._begin) * self._config.speed
        if not self._parts.controller.active:
            raise DataError('the controller is not active')
        self._parts.controller.follower.checked(*self._trajectory(message), now)

    def _look_for_faults(self) -> None:
        faults = read_parameters(self, SimulatedFaults)
        if faults != self._faults:
            self._faults = faults
            self._commands.append((time.perf_counter(), self._break_down))

    def _break_down(self, now: float) -> None:
        """Apply the faults that the parameters ask for, and remove the others."""
        faults, controller, plant = self._faults, self._parts.controller, self._parts.plant
        if controller.active and not faults.controller_active and self._goal is not None:
            self._goal.verdict = GoalVerdict(
                GoalEnd.INVALID_GOAL, 'Current goal cancelled during deactivate transition.'
            )
            self._goal = None
        controller.set_active(faults.controller_active)
        controller.speed_scaling = 0.01 * faults.controller_speed
        controller.path_tolerance = faults.controller_path_tolerance
        plant.wall = None
        if faults.wall_joint in plant.joint_names:
            joint = plant.joint_names.index(faults.wall_joint)
            side = 1.0 if self._measured[joint] < faults.wall_position else -1.0
            plant.wall = Wall(joint=joint, position=faults.wall_position, side=side)

    def _trajectory(self, message: JointTrajectory) -> tuple[Sequence[str], float | None, list[CommandPoint]]:
        """Return joints, start in the physics' time, and points."""
        stamp = Time.from_msg(message.header.stamp).nanoseconds
        points = [
            CommandPoint(
                seconds(point.time_from_start), point.positions, point.velocities, point.accelerations, point.effort
            )
            for point in message.points
        ]
        return message.joint_names, None if stamp == 0 else (stamp - self._origin) / _NANOSECONDS, points

    def _simulate(self) -> None:
        try:
            self._run_physics()
        except BaseException as cause:
            self._failure = cause
            self._report_failure.trigger()

    def _run_physics(self) -> None:
        parts, config = self._parts, self._config
        template = JointStateTemplate(parts.plant.joint_names)
        offsets = np.arange(parts.steps)
        clock_every = max(1, round(config.publish_rate / config.clock_rate))
        begin = self._begin
        last_warning = -np.inf
        late: deque[Array] = deque(maxlen=1 + round(parts.truth.drive.delay * config.publish_rate))
        block = 0
        while not self._stop.is_set():
            step = block * parts.steps
            now = step / config.physics_rate
            due = begin + now / config.speed
            ahead = due - time.perf_counter()
            if ahead > 0.0:
                time.sleep(ahead)
            elif self._clock_publisher is not None:
                self._begin = begin = begin + max(-ahead - _MADE_UP, 0.0)  # all nodes wait for the clock
            elif -ahead > _WORTH_A_WARNING and begin + now - last_warning > _WARNING_PERIOD:
                last_warning = begin + now
                self.get_logger().warning(
                    f'the physics are {-ahead:.2f} s late; the steps are made up for: lower physics_rate, '
                    'publish_rate or speed if this goes on'
                )
            # A node that follows the clock means the time that the physics have reached.
            while self._commands and (self._clock_publisher is not None or self._commands[0][0] <= due):
                self._commands.popleft()[1](now)
            reference = parts.controller.sample((step + offsets) / config.physics_rate, self._measured)
            links = parts.of_links(reference)
            motion = parts.plant.run(links, *reference[1:]).rows(slice(0, 1))
            at_motors = parts.truth.drive.shown(motion)
            seen = parts.sensors.measure(at_motors, parts.sensor_rng)
            stamp = self._origin + round(step * _NANOSECONDS / config.physics_rate)
            late.append(np.where(parts.shows_current, seen['current'][0], seen['effort'][0]))
            # A new trajectory begins here. The reference of the plant is that of the links: without the deflection of
            # flexible joints, which the measured position contains.
            self._measured = seen['position'][0] - (at_motors.position - motion.position + links - reference[0])[0]
            self._velocity = seen['velocity'][0]
            if self._goal is not None:
                desired = (reference[0][0], reference[1][0], reference[2][0])
                verdict = self._goal.observe(now, 1e-9 * stamp, desired, self._measured, self._velocity)
                if verdict is not None:
                    self._goal = None
                    if verdict.end is not GoalEnd.SUCCESSFUL:
                        self._hold(now)
            if self._clock_publisher is not None and block % clock_every == 0:
                publish(self._clock_publisher, Clock(clock=Time(nanoseconds=stamp).to_msg()))
            if isinstance(parts.plant, FloatingPlant) and parts.base_noise is not None:
                self._publish_base(parts.plant, parts.base_noise, stamp)
            publish(self._states, template.filled(stamp, seen['position'][0], self._velocity, late[0]))
            block += 1
            slower = 1.0 / self._pace(now) - 1.0 / config.speed
            self._begin = begin = begin + slower * parts.steps / config.physics_rate

    def _pace(self, now: float) -> float:
        """Return how many simulated seconds pass in one: an arm at rest that gives the time is in no hurry."""
        speed = self._config.speed
        if self._clock_publisher is None or now <= self._moves_until:
            return speed
        return min(speed, 1.0 if self._states.get_subscription_count() else _UNHEARD)

    def _publish_base(self, plant: FloatingPlant, noise: 'SensorNoise', nanoseconds: int) -> None:
        """Publish how the base moves where the last run of the physics began, with its stamp [ns since the epoch].

        The twist is along the axes of the base, the pose in the inertial frame.
        """
        from robotid_ros.free_floating import FloatingMeasurement  # late: few robots float

        nothing = np.zeros((1, plant.nominal.n))
        seen = FloatingMeasurement(
            joint_names=plant.joint_names,
            time=np.zeros(1),
            q=nothing,
            dq=nothing,
            base_twist=plant.base_twist[None],
            base_position=plant.base_position[None],
            base_orientation=plant.base_orientation[None],
        ).with_noise(noise, self._parts.sensor_rng)
        twist, pose = TwistStamped(), PoseStamped()
        for message, frame in ((twist, plant.nominal.base_name), (pose, 'inertial')):
            message.header.stamp, message.header.frame_id = Time(nanoseconds=nanoseconds).to_msg(), frame
        v = seen.base_twist[0].tolist()
        (twist.twist.linear.x, twist.twist.linear.y, twist.twist.linear.z) = v[:3]
        (twist.twist.angular.x, twist.twist.angular.y, twist.twist.angular.z) = v[3:]
        if seen.base_position is not None and seen.base_orientation is not None:
            place, turn = pose.pose.position, pose.pose.orientation
            place.x, place.y, place.z = seen.base_position[0].tolist()
            turn.w, turn.x, turn.y, turn.z = seen.base_orientation[0].tolist()
        publish(self._twists, twist)
        publish(self._poses, pose)

    def _hold(self, now: float) -> None:
        """Hold the arm where it was measured, at once and at any speed, as the controller does."""
        self._goal, self._moves_until = None, now
        self._parts.controller.hold(self._measured)

    def _take(
        self,
        names: Sequence[str],
        start: float | None,
        points: list[CommandPoint],
        goal: FollowedGoal | None,
        now: float,
    ) -> None:
        """Hand a trajectory to the follower, and say once what became of it."""
        try:
            self._parts.controller.command(names, start, points, now, (self._measured, self._velocity))
        except DataError as refusal:
            self.get_logger().error(f'trajectory rejected: {refusal}')
            if goal is not None:
                goal.verdict = GoalVerdict(GoalEnd.INVALID_GOAL, str(refusal))
            return
        self._moves_until = (now if start is None else start) + points[-1].time
        if goal is not None:
            goal.end = self._moves_until
            self._goal = goal
        self.get_logger().debug(f'trajectory of {len(points)} points over {points[-1].time:.3f} s taken over')

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


main = partial(run_node, SimulatedArm)

if __name__ == '__main__':
    sys.exit(main())
