# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``excitation``: designs, checks and runs exciting trajectories on a trajectory controller.

Planning and checking are functions of ``robotid_ros.excitation`` and ``robotid_ros.execution``. :class:`ArmDriver`
moves the arm. This module holds the services and their order.
"""

import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from std_msgs.msg import String

from robotid_ros.calibration.points import read_joints
from robotid_ros.data.context import SCHEMAS, message_text
from robotid_ros.errors import ExcitationError, ModelError, RobotIdError
from robotid_ros.excitation import ExcitationConfig, ExcitationDesign, load_excitation, save_excitation
from robotid_ros.excitation.design import design_to_dict
from robotid_ros.excitation.friction_sweep import FrictionSweep, FrictionSweepConfig, friction_sweep, sweep_start
from robotid_ros.excitation.preparation import (
    arm_check,
    design_limits,
    margin_limits,
    reference_check,
    validation_config,
)
from robotid_ros.excitation.reference import PoseTour, PoseTourConfig, pose_tour
from robotid_ros.excitation.workspace import workspace_constraints
from robotid_ros.execution.following import WatchdogConfig
from robotid_ros.execution.run import Motion, RunConfig, RunPlan, plan_run
from robotid_ros.execution.stopping_room import stoppable_design
from robotid_ros.execution.windows import Window
from robotid_ros.model import RobotModel
from robotid_ros.nodes.arm_driver import ArmDriver, ArmDriverConfig
from robotid_ros.nodes.controller_link import ActionLinkConfig, replacement
from robotid_ros.nodes.description import Description, DescriptionConfig
from robotid_ros.nodes.messages import LATCHED, publish
from robotid_ros.nodes.parameters import declare_parameters, declare_robot_config, read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, failure, run_node, serve, steady_timer
from robotid_ros.nodes.scene import PlanningScene, Preview
from robotid_ros.nodes.start_checks import StartChecks, StartConfig
from robotid_ros.nodes.status import Status
from robotid_ros.nodes.surroundings import claim
from robotid_ros.progress import Progress
from robotid_ros.settings import setting

NO_TRAJECTORY = 'no trajectory yet: call ~/design'
_STATUS_PERIOD = 0.5
_MOVED = 0.02
"""How far apart joint states of an arm at rest may be [rad or m]: some steps of the coarsest encoders."""
_LAST_WAIT = 4.0
"""How long a node that ends waits for the arm to be seen at rest [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationNodeConfig(DescriptionConfig):
    """What the node is told besides the settings of the design, the run and the driver."""

    error = ExcitationError

    run: str = setting(
        'excitation',
        'What ~/design makes and ~/start runs; a validation is an excitation of another seed, poses are a tour with '
        'rests for a calibration, free_floating is for the target that a space robot holds',
        choices=('excitation', 'validation', 'friction_sweep', 'poses', 'free_floating'),
    )
    mission: str = setting('', 'Mission file of a free-floating robot; empty: the packaged example')
    trajectory: str = setting('', 'Excitation YAML to run instead of a design of its own')
    save_to: str = setting('', 'Where ~/design writes its excitation YAML; empty: nowhere')
    preview_speed: float = setting(
        1.0, 'How fast ~/preview shows the motion before it is run; 1 is its own speed', range=(0.01, 20.0)
    )
    planning_scene: str = setting(
        'get_planning_scene',
        "Service of MoveIt's planning scene; where it is in the graph, the scene's objects are obstacles of designs "
        'and runs; empty: not asked',
    )


class ExcitationNode(Node):
    """Designs excitations, and has them run on the arm."""

    def __init__(self, **options: Any) -> None:
        super().__init__('excitation', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        self._config = declare_parameters(self, ExcitationNodeConfig)
        for kind in (ExcitationConfig, FrictionSweepConfig, PoseTourConfig, RunConfig, WatchdogConfig, StartConfig):
            declare_parameters(self, kind)
        if declare_parameters(self, ArmDriverConfig).controller_interface == 'action':
            declare_parameters(self, ActionLinkConfig)
        self._robot = declare_robot_config(self)
        self._model: RobotModel | None = None
        self._description_problem = ''
        self._motion: Motion | None = None
        self._motion_values: dict[str, Any] = {}
        self._loaded = ''
        self._purpose = self._config.run  # of the motion at hand; the parameter may have changed since its design
        self._unreadable = ''
        self._busy = ''
        self._cancelled = threading.Event()
        self._worker = BackgroundWorker(self)
        self._status = Status(self, LATCHED, self._values, NO_TRAJECTORY)
        self._driver = ArmDriver(self, self._status, self._worker, self._robot)
        self._checks = StartChecks(self, self._worker, self._driver.surroundings, self._robot)
        self._description = Description(self, self._config, self._robot, self._take_arm, self._refuse_arm)
        design, start = partial(self._serve, 'design', self._design), partial(self._serve, 'start', self._start)
        # cancel is of a design or a run; what was recorded of it stays
        serve(self, design=design, start=start, stop=self._stop, cancel=self._stop)
        self._plan = self.create_publisher(String, '~/plan', LATCHED)
        self._preview = Preview(self, self._worker, self._previewed)
        self._scene = PlanningScene(self)
        steady_timer(self, _STATUS_PERIOD, self._status.publish)
        claim(self, lambda: self._driver.run is not None)
        if self._config.urdf_file and self._model is None and not self._description.undecided:
            raise ModelError(self._description_problem)
        self._status.publish()

    def _values(self) -> dict[str, object]:
        """Return the values of the status."""
        return {
            'robot': self._model.name if self._model is not None else '',
            'state': self._status.state,
            'run': self._config.run,
            **self._motion_values,
            **self._driver.values(),
        }

    def _previewed(self) -> tuple[tuple[str, ...], Motion] | None:
        """Return the motion that ~/start would run; a trajectory file is read when its preview is first asked for."""
        if self._model is None or self._busy or self._driver.run is not None:
            return None
        if self._config.trajectory not in ('', self._loaded, self._unreadable):
            try:
                self._load(self._model)
            except RobotIdError as cause:
                self._unreadable = self._config.trajectory
                self._status.set(DiagnosticStatus.ERROR, str(cause).replace('\n', '; '), 'idle')
        if self._config.trajectory not in ('', self._loaded):
            return None
        return None if self._motion is None else (self._model.joint_names, self._motion)

    def _load(self, model: RobotModel) -> None:
        config = read_parameters(self, ExcitationConfig)
        self._take_design(load_excitation(self._config.trajectory), model, config)
        self._loaded = self._config.trajectory

    def _take_arm(self, model: RobotModel) -> bool:
        if self._driver.run is not None or self._busy:
            self.get_logger().warning('another robot description came while this one is in use; it is taken after that')
            return False
        self._model, self._description_problem = model, ''
        self._motion, self._motion_values, self._loaded = None, {}, ''
        self._status.set(DiagnosticStatus.OK, NO_TRAJECTORY, 'idle')
        self.get_logger().info(f'robot {model.name}: {", ".join(model.joint_names)}')
        return True

    def _refuse_arm(self, cause: RobotIdError) -> None:
        if self._driver.run is None and not self._busy:
            self._description_problem = f'the robot description cannot be used: {cause}'
            self._status.set(DiagnosticStatus.ERROR, self._description_problem, 'idle')

    # -- services -----------------------------------------------------------------------------------

    async def _serve(self, work: str, function: Callable[[RobotModel], Awaitable[str]]) -> str:
        """Do one thing at a time; a refusal becomes the status too, if nothing else is going on."""
        if self._busy:
            raise ExcitationError(f'{self._busy} is under way; wait for it, or call ~/stop')
        if self._driver.run is not None:
            raise ExcitationError(f'the arm is moving; wait for the end, or call ~/stop: {self._driver.rest_text()}')
        self._description.again()
        model = self._model
        if model is None:
            raise ExcitationError(
                self._description_problem
                or 'no robot description yet: publish robot_description (latched), or set urdf_file'
            )
        self._busy = work
        self._cancelled.clear()
        try:
            self._config = read_parameters(self, ExcitationNodeConfig)
            return await function(model)
        except Exception as cause:
            said = failure(self, cause)
            state = 'ready' if self._motion is not None else 'idle'
            self._status.set(DiagnosticStatus.ERROR, said.replace('\n', '; '), state)
            raise ExcitationError(said) from cause
        finally:
            self._busy = ''
            if self._driver.run is None:
                self._driver.state.stop_listening()

    async def _stop(self) -> str:
        run = self._driver.run
        if self._busy:
            self._cancelled.set()
            return f'{self._busy} is being given up'
        if run is None:
            return 'the arm is not moving under this node'
        if run.reason:
            return f'the arm is stopping already: {run.reason}; {self._driver.rest_text()}'
        self._driver.stop('stopped on request', fault=False)
        return f'the arm is brought to rest; {self._driver.rest_text()}'

    async def _design(self, model: RobotModel) -> str:
        self._checks.require_design(model, read_parameters(self, ExcitationConfig), read_parameters(self, StartConfig))
        config = await self._surrounded(model)
        if self._config.run == 'friction_sweep':
            return await self._design_sweep(model, config)
        if self._config.run == 'poses':
            return await self._design_tour(model, config)
        floating = None
        if self._config.run == 'free_floating':
            from robotid_ros.free_floating import design_excitation, read_mission  # late: few robots float

            floating = read_mission(self._config.mission)
        if self._config.run == 'validation':
            config = validation_config(config)
        self._status.set(DiagnosticStatus.OK, 'optimising the trajectory', 'designing')

        def work(underway: Progress) -> ExcitationDesign:
            def progress(part: float, what: str) -> None:
                underway(part, what)
                self._status.text = f'optimising the trajectory: {100.0 * part:.0f} %, {what}'

            if floating is not None:
                return design_excitation(
                    floating.robot,
                    start=floating.start,
                    period=floating.period,
                    harmonics=floating.harmonics,
                    limits=floating.limits,
                    seed=config.seed,
                    progress=progress,
                )
            return stoppable_design(model, config, progress=progress, cancelled=self._cancelled.is_set)

        with self._status.underway('design', ExcitationError) as underway:
            design: ExcitationDesign = await self._worker.run(work, underway)
        if self._cancelled.is_set():
            raise ExcitationError('the design was given up on request')
        if self._config.save_to:
            save_excitation(design, self._config.save_to)
        return self._take_design(design, model, config)

    async def _surrounded(self, model: RobotModel) -> ExcitationConfig:
        """Return the settings of designs and runs, with what stands around the arm now."""
        config, scene = read_parameters(self, ExcitationConfig), self._config.planning_scene
        found: ExcitationConfig = await self._worker.run(self._scene.surrounded, scene, model, config)
        return found

    async def _design_sweep(self, model: RobotModel, config: ExcitationConfig) -> str:
        measured = await self._driver.state.measure(model.joint_names)
        settings = read_parameters(self, FrictionSweepConfig)

        def work() -> FrictionSweep:
            limits, walls = design_limits(model, config), workspace_constraints(model, config)
            asked = np.array(config.start_position)
            limits = margin_limits(limits, config, asked if len(asked) else measured)
            start = asked if len(asked) else sweep_start(model, limits, walls, measured)
            return friction_sweep(model, limits, settings, start, walls)

        sweep: FrictionSweep = await self._worker.run(work)
        values = {'strokes': len(sweep.strokes), 'duration': sweep.reference.duration}
        text = f'friction sweep of {len(sweep.strokes)} strokes, {sweep.reference.duration:.0f} s'
        return self._ready(sweep, values, text, {'friction_sweep': settings.to_dict()}, config)

    async def _design_tour(self, model: RobotModel, config: ExcitationConfig) -> str:
        settings = read_parameters(self, PoseTourConfig)
        if not settings.poses:
            raise ExcitationError("run: poses needs the parameter 'poses', a CSV file of joint positions")
        poses = read_joints(settings.poses, model.joint_names)
        start = await self._driver.state.measure(model.joint_names)
        velocity = read_parameters(self, RunConfig).ramp_velocity

        def work() -> PoseTour:
            return pose_tour(start, poses, reference_check(model, config), velocity=velocity, dwell=settings.dwell)

        tour: PoseTour = await self._worker.run(work)
        for reason in tour.skipped:
            self.get_logger().warning(f'pose left out: {reason}')
        values = {'poses': len(tour.poses), 'poses_left_out': len(tour.skipped)}
        text = f'tour of {len(tour.poses)} of {len(poses)} poses, {tour.reference.duration:.0f} s'
        return self._ready(tour, values, text, {'poses': settings.to_dict()}, config)

    def _take_design(self, design: ExcitationDesign, model: RobotModel, config: ExcitationConfig) -> str:
        """Take a design in the joint order of the arm; an ExcitationError if its joints are others."""
        if sorted(design.joint_names) != sorted(model.joint_names):
            raise ExcitationError(
                f'the trajectory moves {", ".join(design.joint_names)}; the robot has {", ".join(model.joint_names)}'
            )
        order, planned = [design.joint_names.index(name) for name in model.joint_names], design.trajectory
        motion = replace(planned, a=planned.a[order], b=planned.b[order], offset=planned.offset[order])
        values = {
            'condition_number': design.excitation.condition,
            'condition_number_scaled': design.excitation.condition_scaled,
            'period': design.trajectory.period,
            'harmonics': design.trajectory.harmonics,
        }
        return self._ready(motion, values, design.summary(), {'excitation': design_to_dict(design)}, config)

    def _ready(
        self, motion: Motion, values: dict[str, Any], text: str, planned: dict[str, Any], config: ExcitationConfig
    ) -> str:
        self._purpose, self._motion, self._motion_values = self._config.run, motion, values
        self._status.set(DiagnosticStatus.OK, text.replace('\n', '; '), 'ready')
        publish(self._plan, String(data=message_text(SCHEMAS['plan'], {'purpose': self._purpose, **planned})))
        if self._model is not None:
            self._preview.draw(self._model, config, motion)
        return text

    async def _start(self, model: RobotModel) -> str:
        if self._config.trajectory and self._config.trajectory != self._loaded:
            self._load(model)
        if self._motion is None:
            raise ExcitationError("no trajectory yet: call ~/design first, or set the parameter 'trajectory' to a file")
        motion = self._motion
        self._driver.surroundings.require()
        position = await self._driver.state.measure(model.joint_names)
        config, run_config = await self._surrounded(model), read_parameters(self, RunConfig)
        start, patience = read_parameters(self, StartConfig), read_parameters(self, ArmDriverConfig).controller_timeout
        if self._purpose in ('poses', 'free_floating'):  # measured by another recorder, and without torque
            start = replace(start, start_anyway=(*start.start_anyway, 'no_recorder', 'no_effort', 'no_gravity'))
        await self._checks.require_start(model, config, start, self._motion_values.get('condition_number_scaled'))
        self._require_rest(model)

        def work() -> tuple[RunPlan, Window]:
            self._driver.link.require_controller(patience, self._cancelled)
            run = run_config
            if run.trajectory_replacement == 'auto':
                controllers = self._driver.surroundings.commanders.controllers(patience, self._cancelled)
                run = replace(run, trajectory_replacement=replacement(self, controllers))
            plan = plan_run(position, motion, reference_check(model, config), run, arm_check(model, config))
            return plan, plan.windows.window(0)

        plan, first = await self._worker.run(work)
        if self._cancelled.is_set():
            raise ExcitationError('the start was given up on request')
        self._require_rest(model)
        recorded = 'no_recorder' not in start.start_anyway
        self._driver.begin(plan, first, model, self._purpose, recorded=recorded)
        whole = plan.reference.duration
        return f'started: {plan.begin:.1f} s to the start, then {plan.end - plan.begin:.1f} s, {whole:.1f} s in all'

    def _require_rest(self, model: RobotModel) -> None:
        """Refuse a start where joint states since it was asked for differ: of an arm that moves, or of two arms."""
        self._driver.state.fresh_position()
        apart = self._driver.state.spread
        if apart.max() > _MOVED:
            name = model.joint_names[int(np.argmax(apart))]
            raise ExcitationError(
                f"joint '{name}' moved while the run was planned; let the arm rest, then start: its joint states are "
                f'{apart.max():.3g} apart, or two nodes publish some'
            )

    def close(self) -> None:
        """Bring the arm to rest before the node goes."""
        self._cancelled.set()
        asked = threading.Event()

        def end() -> None:
            asked.set()
            if self._driver.run is None:
                self._driver.rested.set()
            else:
                self._driver.stop('the node is shut down', fault=False)

        if self.executor is not None:
            self.executor.create_task(end)
        if asked.wait(timeout=0.5):
            self._driver.rested.wait(timeout=_LAST_WAIT)
        else:  # the executor has ended; a message can still be sent
            self._driver.stop('the node is shut down', fault=False)
        self._worker.close()


main = partial(run_node, ExcitationNode)

if __name__ == '__main__':
    sys.exit(main())
