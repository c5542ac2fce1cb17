"""The node ``excitation``: designs, checks and runs exciting trajectories on a trajectory controller.

Planning, checking and judging are functions of ``robotid_ros.excitation``; here are the messages,
the clock and the order of things. Whatever goes wrong while the arm moves ends in the same way: a
stop along the path, sent at once, and a status that says why.
"""

import sys
import threading
import time
from collections.abc import Awaitable, Callable, Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, ExcitationError, ModelError, RobotIdError
from robotid_ros.excitation import (
    ExcitationConfig,
    ExcitationDesign,
    load_excitation,
    optimize_excitation,
    save_excitation,
)
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.friction_sweep import FrictionSweep, FrictionSweepConfig, friction_sweep
from robotid_ros.excitation.preparation import design_limits, reference_check, validation_config
from robotid_ros.excitation.run import RunConfig, RunPlan, plan_run
from robotid_ros.excitation.watchdog import Watchdog, WatchdogConfig
from robotid_ros.excitation.windows import Window
from robotid_ros.model import RobotModel
from robotid_ros.nodes.conversions import (
    LATCHED,
    joint_state_values,
    seconds,
    status_message,
)
from robotid_ros.nodes.excitation_config import ExcitationNodeConfig, build_model, reordered
from robotid_ros.nodes.excitation_stream import RunStream
from robotid_ros.nodes.parameters import declare_parameters, declare_robot_config, read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, run_node

__all__ = ['ExcitationNode', 'main']

_MONITOR_PERIOD = 0.02
_STATUS_PERIOD = 0.5
_FULL_SPEED = 100.0
_MOVED = 0.01
_FIRST_JOINT_STATE = 3.0


class ExcitationNode(Node):
    """Designs excitations, runs them on the arm, and stops it when anything looks wrong."""

    def __init__(self) -> None:
        super().__init__('excitation')
        self._config = declare_parameters(self, ExcitationNodeConfig)
        declare_parameters(self, ExcitationConfig)
        declare_parameters(self, FrictionSweepConfig)
        declare_parameters(self, RunConfig)
        declare_parameters(self, WatchdogConfig)
        self._robot = declare_robot_config(self)
        self._model: RobotModel | None = None
        self._description = self._description_problem = ''
        self._motion: FourierTrajectory | FrictionSweep | None = None
        self._motion_values: dict[str, object] = {}
        self._loaded = ''
        self._state, self._level, self._text = 'idle', DiagnosticStatus.OK, 'no trajectory yet: call ~/design'
        self._busy = ''
        self._cancelled = threading.Event()
        self._run: RunStream | None = None
        self._latest: tuple[Array, float] | None = None
        self._joint_states: Subscription | None = None
        self._joint_state_problem = ''
        self._heard = threading.Event()
        self._speed_scaling = _FULL_SPEED
        self._rested = threading.Event()
        self._worker = BackgroundWorker(self)

        self._commands = self.create_publisher(
            JointTrajectory,
            'joint_trajectory',
            QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._reference = self.create_publisher(JointTrajectory, '~/reference', LATCHED)
        self._status = self.create_publisher(DiagnosticStatus, '~/status', LATCHED)
        if self._config.urdf_file:
            self._take_description(self._config.urdf_file)
        else:
            self.create_subscription(
                String, 'robot_description', lambda message: self._take_description(message.data), LATCHED
            )
        topic = self._config.speed_scaling_topic or (self._robot.speed_scaling_topic if self._robot else None)
        if topic:
            self.create_subscription(Float64, topic, self._on_speed_scaling, 10)
        services = ReentrantCallbackGroup()
        self.create_service(Trigger, '~/design', self._on_design, callback_group=services)
        self.create_service(Trigger, '~/start', self._on_start, callback_group=services)
        self.create_service(Trigger, '~/stop', self._on_stop, callback_group=services)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._monitor = self.create_timer(_MONITOR_PERIOD, self._on_monitor, clock=steady)
        self._monitor.cancel()
        self.create_timer(_STATUS_PERIOD, self._publish_status, clock=steady)
        if self._config.urdf_file and self._model is None:
            raise ModelError(self._description_problem)
        self._publish_status()

    # -- what comes in ------------------------------------------------------------------------------

    def _take_description(self, source: str) -> None:
        if source == self._description:
            return
        if self._run is not None or self._busy:
            self.get_logger().warning('another robot description came while this one is in use; it is left aside')
            return
        self._description = source
        try:
            self._model = build_model(source, self._config, self._robot)
        except ModelError as cause:
            self._description_problem = f'the robot description cannot be used: {cause}'
            self._set('idle', DiagnosticStatus.ERROR, self._description_problem)
            return
        self._motion, self._loaded = None, ''
        self.get_logger().info(f'robot {self._model.name}: {", ".join(self._model.joint_names)}')

    def _listen(self) -> None:
        """Follow the joint states: only while they are needed, since every single one costs time."""
        self._latest = None
        self._heard.clear()
        if self._joint_states is not None:
            return
        # The newest joint state is what counts; best effort understands every publisher.
        self._joint_states = self.create_subscription(
            JointState,
            'joint_states',
            self._on_joint_state,
            QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
            qos_overriding_options=QoSOverridingOptions.with_default_policies(),
        )
        self._joint_state_problem = f'none has come on {self._joint_states.topic_name}'

    def _stop_listening(self) -> None:
        if self._joint_states is not None:
            self.destroy_subscription(self._joint_states)
            self._joint_states = None

    def _on_joint_state(self, message: JointState) -> None:
        if self._model is None:
            return
        try:
            position, velocity, _ = joint_state_values(message, self._model.joint_names)
        except DataError as cause:
            self._joint_state_problem = str(cause)  # joints of a gripper, say, may come by themselves
            return
        now = time.monotonic()
        stamp = seconds(message.header.stamp) or self._now()
        if np.isfinite(position).all():
            self._latest = position, now
            self._heard.set()
        else:
            self._latest = None
            self._joint_state_problem = 'the last one has positions that are not finite'
        run = self._run
        if run is None or run.rest is not None:
            return
        problem = run.judge(position, velocity, stamp)
        if problem is not None:
            self._stop_arm(problem, fault=True)

    def _on_speed_scaling(self, message: Float64) -> None:
        self._speed_scaling = message.data
        if self._run is not None and self._run.rest is None and not self._full_speed():
            self._stop_arm(f'speed scaling went to {message.data:g} %: it stretches time', fault=True)

    def _full_speed(self) -> bool:
        return abs(self._speed_scaling - _FULL_SPEED) < 0.5

    # -- services -----------------------------------------------------------------------------------

    async def _on_design(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._serve('design', self._design, response)

    async def _on_start(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return await self._serve('start', self._start, response)

    async def _serve(
        self, work: str, function: Callable[[RobotModel], Awaitable[str]], response: Trigger.Response
    ) -> Trigger.Response:
        """Do one thing at a time; a refusal becomes the answer, and the status if nothing else is going on."""
        response.success = False
        try:
            model = self._claim()
        except RobotIdError as cause:
            response.message = str(cause)
            return response
        self._busy = work
        self._cancelled.clear()
        try:
            self._config = read_parameters(self, ExcitationNodeConfig)
            response.message = await function(model)
            response.success = True
        except RobotIdError as cause:
            response.message = str(cause)
            self._set('ready' if self._motion is not None else 'idle', DiagnosticStatus.ERROR, str(cause))
        finally:
            self._busy = ''
            if self._run is None:
                self._stop_listening()
        return response

    def _on_stop(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = True
        if self._busy:
            self._cancelled.set()
            response.message = f'{self._busy} is being given up'
        elif self._run is None:
            response.message = 'the arm is not moving under this node'
        elif self._run.rest is not None:
            response.message = f'the arm is stopping already: {self._run.reason}'
        else:
            self._stop_arm('stopped on request', fault=False)
            response.message = 'the arm is brought to rest'
        return response

    def _claim(self) -> RobotModel:
        """Return the robot, if nothing else is under way."""
        if self._busy:
            raise ExcitationError(f'{self._busy} is under way; wait for it, or call ~/stop')
        if self._run is not None:
            raise ExcitationError('the arm is moving; wait for the end, or call ~/stop')
        if self._model is None:
            raise ExcitationError(
                self._description_problem
                or 'no robot description yet: publish robot_description (latched), or set urdf_file'
            )
        return self._model

    async def _design(self, model: RobotModel) -> str:
        if self._config.run == 'friction_sweep':
            return await self._design_sweep(model)
        config = read_parameters(self, ExcitationConfig)
        if self._config.run == 'validation':
            config = validation_config(config)
        self._set('designing', DiagnosticStatus.OK, 'optimising the trajectory')

        def progress(part: float, what: str) -> None:
            self._text = f'optimising the trajectory: {100.0 * part:.0f} %, {what}'

        def work() -> ExcitationDesign:
            return optimize_excitation(model, config, progress=progress, cancelled=self._cancelled.is_set)

        design: ExcitationDesign = await self._worker.run(work)
        if self._cancelled.is_set():
            raise ExcitationError('the design was given up on request')
        if self._config.save_to:
            save_excitation(design, self._config.save_to)
        return self._take_design(design, model)

    async def _design_sweep(self, model: RobotModel) -> str:
        config = read_parameters(self, ExcitationConfig)
        start = np.array(config.start_position) if config.start_position else await self._measure()
        settings = read_parameters(self, FrictionSweepConfig)

        def work() -> FrictionSweep:
            return friction_sweep(model, design_limits(model, config), settings, start)

        sweep: FrictionSweep = await self._worker.run(work)
        self._motion = sweep
        self._motion_values = {'strokes': len(sweep.joint), 'duration': sweep.reference.duration}
        text = f'friction sweep of {len(sweep.joint)} strokes, {sweep.reference.duration:.0f} s'
        self._set('ready', DiagnosticStatus.OK, text)
        return text

    def _take_design(self, design: ExcitationDesign, model: RobotModel) -> str:
        self._motion = reordered(design, model)
        self._motion_values = {
            'condition_number': design.excitation.condition,
            'condition_number_scaled': design.excitation.condition_scaled,
            'period': design.trajectory.period,
            'harmonics': design.trajectory.harmonics,
        }
        text = design.summary()
        self.get_logger().info(text)
        self._set('ready', DiagnosticStatus.OK, text.replace('\n', '; '))
        return text

    async def _start(self, model: RobotModel) -> str:
        if self._config.trajectory and self._config.trajectory != self._loaded:
            self._take_design(load_excitation(self._config.trajectory), model)
            self._loaded = self._config.trajectory
        if self._motion is None:
            raise ExcitationError("no trajectory yet: call ~/design first, or set the parameter 'trajectory' to a file")
        motion = self._motion
        if not self._full_speed():
            raise ExcitationError(
                f'the controller runs at {self._speed_scaling:g} % of its speed, which stretches time; set it to 100 %'
            )
        position = await self._measure()
        config, run_config = read_parameters(self, ExcitationConfig), read_parameters(self, RunConfig)

        def work() -> tuple[RunPlan, Window]:
            self._wait_for_controller()
            plan = plan_run(position, motion, reference_check(model, config), run_config)
            return plan, plan.windows.window(0)

        plan, first = await self._worker.run(work)
        if self._cancelled.is_set():
            raise ExcitationError('the start was given up on request')
        moved = np.abs(self._fresh_position() - position)
        if moved.max() > _MOVED:
            name = model.joint_names[int(np.argmax(moved))]
            raise ExcitationError(f"joint '{name}' moved while the run was planned; let the arm rest, then start")
        self._begin(plan, first, model)
        whole = plan.reference.duration
        return f'started: {plan.begin:.1f} s to the start, then {plan.end - plan.begin:.1f} s, {whole:.1f} s in all'

    async def _measure(self) -> Array:
        """Return the measured position as soon as a joint state comes; go on listening."""
        self._listen()
        await self._worker.run(self._heard.wait, _FIRST_JOINT_STATE)
        return self._fresh_position()

    def _fresh_position(self) -> Array:
        """Return the measured position, or refuse if it is missing, broken or old."""
        timeout = read_parameters(self, WatchdogConfig).joint_state_timeout
        if self._latest is None:
            raise ExcitationError(f'no usable joint state: {self._joint_state_problem}')
        position, received = self._latest
        age = time.monotonic() - received
        if age > timeout:
            raise ExcitationError(f'the last joint state is {age:.1f} s old (allowed: {timeout:g} s)')
        return position

    def _wait_for_controller(self) -> None:
        """Wait, off the executor's thread, until somebody listens to the commands."""
        deadline = time.monotonic() + self._config.controller_timeout
        while self._commands.get_subscription_count() == 0:
            if time.monotonic() > deadline:
                raise ExcitationError(
                    f'no controller listens to {self._commands.topic_name}; remap joint_trajectory to its topic'
                )
            if self._cancelled.wait(0.05):
                raise ExcitationError('the start was given up on request')

    # -- the run ------------------------------------------------------------------------------------

    def _now(self) -> float:
        return float(self.get_clock().now().nanoseconds) * 1e-9

    def _begin(self, plan: RunPlan, first: Window, model: RobotModel) -> None:
        now = self._now()
        if now <= 0.0:
            raise ExcitationError('the clock stands at zero: use_sim_time is set, but nothing has come on /clock')
        watchdog = Watchdog(model.joint_names, model.limits.velocity, read_parameters(self, WatchdogConfig))
        watchdog.receive(self._fresh_position(), None, now, time.monotonic())
        self._rested.clear()
        self._run = RunStream(plan, now + self._config.start_delay, watchdog, self._worker, self._commands.publish)
        self._run.start(first)
        self._reference.publish(self._run.reference_message())
        self._set('running', DiagnosticStatus.OK, 'on the way to the start')
        self._monitor.reset()

    def _on_monitor(self) -> None:
        run = self._run
        if run is None:
            self._monitor.cancel()
            return
        elapsed = self._now() - run.begin
        if run.rest is not None:
            if elapsed >= run.rest + _MONITOR_PERIOD:
                self._end_run()
            return
        problem = run.advance(elapsed)
        if problem is not None:
            self._stop_arm(problem, fault=True)
        elif elapsed >= run.plan.reference.duration:
            self._end_run()
        else:
            phase = run.plan.phase(elapsed)
            self._text = {'ramp': 'on the way to the start', 'end': 'coming to rest'}.get(phase, phase)

    def _stop_arm(self, reason: str, *, fault: bool) -> None:
        """Bring the arm to rest along its path, and say why."""
        run = self._run
        if run is None or run.rest is not None:
            return
        run.stop(reason, self._now() - run.begin, self._config.latency, fault=fault)
        self._reference.publish(JointTrajectory(joint_names=list(run.plan.joint_names)))
        level = DiagnosticStatus.ERROR if fault else DiagnosticStatus.WARN
        self._set('stopping', level, f'stopping: {reason}')
        self._monitor.reset()

    def _end_run(self) -> None:
        run = self._run
        assert run is not None
        self._run = None
        self._monitor.cancel()
        self._stop_listening()
        if run.rest is None:
            self._reference.publish(JointTrajectory(joint_names=list(run.plan.joint_names)))
            self._set('finished', DiagnosticStatus.OK, 'the run is complete; the arm is at rest')
        else:
            level = DiagnosticStatus.ERROR if run.fault else DiagnosticStatus.WARN
            self._set('stopped', level, f'stopped: {run.reason}')
        self._rested.set()

    # -- what goes out ------------------------------------------------------------------------------

    def _set(self, state: str, level: bytes, text: str) -> None:
        """Change the state, publish it, and log it once."""
        self._state, self._level, self._text = state, level, text
        log = self.get_logger()
        if level == DiagnosticStatus.ERROR:
            log.error(text)
        elif level == DiagnosticStatus.WARN:
            log.warning(text)
        elif state not in ('ready', 'designing'):
            log.info(text)
        self._publish_status()

    def _publish_status(self) -> None:
        run = self._run
        values: dict[str, object] = {
            'robot': self._model.name if self._model is not None else '',
            'state': self._state,
            'run': self._config.run,
            **self._motion_values,
        }
        if run is not None:
            values['phase'] = run.plan.phase(self._now() - run.begin)
            values['tracking_error'] = run.watchdog.tracking_error
            values['elapsed'] = self._now() - run.begin
            values['duration'] = run.plan.reference.duration
        self._status.publish(status_message(self.get_name(), self._level, self._text, values))

    def close(self) -> None:
        """Bring the arm to rest before the node goes."""
        self._cancelled.set()
        asked = threading.Event()

        def end() -> None:
            asked.set()
            if self._run is None:
                self._rested.set()
            else:
                self._stop_arm('the node is shut down', fault=False)

        if self.executor is not None:
            self.executor.create_task(end)
        if asked.wait(timeout=0.5):
            self._rested.wait(timeout=4.0)
        else:  # the executor has ended; a message can still be sent
            self._stop_arm('the node is shut down', fault=False)
        self._worker.close()


def main(args: Sequence[str] | None = None) -> int:
    """Run the node; see ``ros2 run robotid_ros excitation``."""
    return run_node(ExcitationNode, args)


if __name__ == '__main__':
    sys.exit(main())
