# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``identification``: answers with fitted dynamic and friction parameters."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rcl_interfaces.msg import SetParametersResult
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.task import Future
from std_msgs.msg import String
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.arrays import Array, require_names
from robotid_ros.data.context import Context, read_context
from robotid_ros.data.readers import recordings_in
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.dynamics import MinimalModel
from robotid_ros.errors import DataError, IdentificationError, ModelError, RobotIdError
from robotid_ros.files import output_folder
from robotid_ros.identification import IdentificationConfig, IdentificationResult, SelectionConfig
from robotid_ros.identification.session import IdentificationSession, RecursiveEstimate, averaged_period
from robotid_ros.model import RobotModel
from robotid_ros.nodes.description import Description
from robotid_ros.nodes.identified_arm import (
    IdentificationNodeConfig,
    PayloadService,
    TorqueWatch,
    publish_wrench,
    read_levels,
)
from robotid_ros.nodes.messages import LATCHED, average_label, publish, seconds, trajectory_arrays
from robotid_ros.nodes.parameters import declare_parameters, declare_robot_config, read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, failure, run_node, serve, steady_timer
from robotid_ros.nodes.status import Status, serve_identify
from robotid_ros.progress import Progress
from robotid_ros.workflow import Identification, load_by_purpose, write_identification

_STATUS_PERIOD = 0.5
_Take: TypeAlias = Callable[[IdentificationSession, JointTrajectory], None]


class IdentificationNode(Node):
    """Collects averaged recordings, shows the estimate converge, identifies when asked."""

    def __init__(self, **options: Any) -> None:
        super().__init__('identification', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        self._config = declare_parameters(self, IdentificationNodeConfig)
        declare_parameters(self, IdentificationConfig)
        declare_parameters(self, SelectionConfig)
        self._robot = declare_robot_config(self)
        self._session: IdentificationSession | None = None
        self._early: list[tuple[_Take, JointTrajectory]] = []  # before the description
        self._unfit: dict[str, str] = {}  # recordings that cannot be used, and why
        self._keys: dict[Path, str] = {}  # of the recordings in the folders
        self._read: dict[Path, float] = {}  # when those that were read had been changed
        self._asked = False  # whether the recordings were asked for a description
        self._forgotten: set[str] = set()  # recordings in the folders that ~/clear forgot
        self._found: IdentificationResult | None = None
        self._torque_factor: Array = np.zeros(0)
        self._periods = 0
        self._run = self._stopped = self._missing = ''
        self._stops_asked = 0
        self._values: dict[str, object] = {}
        self._seeds: set[int] = set()  # of the designs whose recordings lie in the folders
        self._folders_read = False
        self._torques: dict[str, object] = {}  # what following the joint states takes
        self._worker = BackgroundWorker(self)
        self._payload = PayloadService(
            self, self._worker, self._robot, lambda: (self._known().model, self._found), self._in_folders
        )
        self._calibrated = self.create_publisher(String, '~/robot_description', LATCHED)
        self.add_on_set_parameters_callback(self._refusal)
        self._status = Status(self, LATCHED, self._said, 'waiting for the robot description')
        serve_identify(self, self._status, self._identified, IdentificationError)
        read_levels(self._config.contact_levels)  # refused at the start, not when the arm is identified
        self._watch = TorqueWatch(self)
        for topic, take in (('recorder/averaged', self._take_average), ('recorder/friction', self._take_sweep)):
            self.create_subscription(JointTrajectory, topic, partial(self._receive, take), LATCHED)
        self._description = Description(
            self,
            self._config,
            self._robot,
            self._take_arm,
            lambda cause: self._status.set(DiagnosticStatus.ERROR, f'the robot description cannot be used: {cause}'),
            self._config.joints,
        )
        undecided = self._missing or self._description.undecided
        if self._config.urdf_file and self._session is None and not undecided:
            raise ModelError(self._status.text)
        self._stop = self.create_client(Trigger, 'excitation/stop', callback_group=ReentrantCallbackGroup())
        serve(self, clear=self._clear, generate=self._generate)
        if self._config.wrench_result:
            publish_wrench(
                self, self._config.wrench_result, lambda: None if self._session is None else self._session.model
            )
        steady_timer(self, _STATUS_PERIOD, self._on_timer)
        self._status.publish()

    # -- what comes in ------------------------------------------------------------------------------

    def _take_arm(self, model: RobotModel) -> bool:
        try:
            robot, joints = self._robot, model.joint_names
            factor = np.ones(model.n) if robot is None else robot.stated_torque_per_effort(joints)
        except RobotIdError as cause:  # recording does not need it, and the end of this node would end the launch
            self._missing, self._folders_read = f'nothing can be identified: {cause}', True
            self._status.set(DiagnosticStatus.ERROR, self._missing)
            return False
        self._missing = ''
        before = self._session
        session = self._session = IdentificationSession(model)
        self._found = None
        self._watch.stop()
        self._torque_factor, self._values, self._folders_read = factor, {}, False
        self._unfit, self._read = {}, {}
        self._status.set(DiagnosticStatus.OK, f'robot {model.name}: waiting for recordings')
        self._worker.run(self._take_over, session, before).add_done_callback(self._taken)
        try:  # settings given at the start are checked as soon as the arm is known
            self._require_fitting(
                read_parameters(self, IdentificationConfig), self._config.stop_parameters, self._session
            )
        except RobotIdError as cause:
            self._status.set(DiagnosticStatus.WARN, str(cause))
        early, self._early = self._early, []
        for take, message in early:
            take(session, message)
        return True

    @staticmethod
    def _require_fitting(
        config: IdentificationConfig, stop_parameters: Sequence[str], session: IdentificationSession
    ) -> None:
        """Refuse settings that do not fit the arm."""
        config.thresholds(session.model)
        if stop_parameters:
            names = session.base_names(config)
            require_names(stop_parameters, names, 'base parameter', 'the arm', IdentificationError)

    def _refusal(self, changes: list[Parameter]) -> SetParametersResult:
        """Refuse settings that do not fit the arm as soon as they are set."""
        if self._session is None:
            return SetParametersResult(successful=True)
        # A value that is not a list is refused by its type, after this.
        lists = {change.name: tuple(change.value) for change in changes if hasattr(change.value, '__len__')}
        try:
            config = read_parameters(self, IdentificationConfig)
            config = replace(config, torque_threshold=lists.get('torque_threshold', config.torque_threshold))
            self._require_fitting(config, lists.get('stop_parameters', ()), self._session)
        except RobotIdError as cause:
            return SetParametersResult(successful=False, reason=str(cause))
        return SetParametersResult(successful=True)

    def _receive(self, take: _Take, message: JointTrajectory) -> None:
        if not message.points:
            return  # a recorder that has been cleared
        if self._session is None:
            self._early.append((take, message))
        else:
            take(self._session, message)

    def _take_average(self, session: IdentificationSession, message: JointTrajectory) -> None:
        self._worker.run(self._averaged, session, message).add_done_callback(self._taken)

    def _take_sweep(self, session: IdentificationSession, message: JointTrajectory) -> None:
        names = tuple(message.joint_names)
        try:
            time, q, dq, _, tau = trajectory_arrays(message, names)
            if dq is None or tau is None:
                raise DataError('friction data: expected velocities and efforts in every point')
            strokes = FrictionStrokes(joint_names=names, time=time, q=q, dq=dq, tau=tau)
            strokes = strokes.of_joints(session.model.joint_names).require_whole()
        except RobotIdError as cause:
            self._status.set(DiagnosticStatus.WARN, f'a friction sweep cannot be used: {cause}')
            return
        session.strokes[message.header.frame_id or f'sweep at {seconds(message.header.stamp):.6f} s'] = strokes
        self._values |= self._counts(session)
        self._status.set(DiagnosticStatus.OK, f'{self._values["friction_strokes"]} steady strokes of friction sweeps')

    def _counts(self, session: IdentificationSession) -> dict[str, object]:
        """Return how many recordings there are of each kind, and which were left out."""
        left = '; '.join(f'{key}: {why}' for key, why in self._unfit.items())
        return {
            'friction_strokes': sum(each.count for each in session.strokes.values()),
            'friction_sweeps': len(session.strokes),
            'recordings': len(session.datasets),
            'validation_recordings': len(session.validation),
            **({'left_out': left} if left else {}),
        }

    def _averaged(self, session: IdentificationSession, message: JointTrajectory) -> RecursiveEstimate | None:
        names = tuple(message.joint_names)
        periods, validation, recording, remark = average_label(message.header.frame_id)
        key = recording or f'run at {seconds(message.header.stamp):.6f} s'
        dataset = averaged_period(names, *trajectory_arrays(message, names), key)
        if remark:
            dataset = replace(dataset, provenance={**dataset.provenance, 'remark': remark})
        if validation:
            session.validation[key] = dataset
            return None
        self._periods, self._run = periods, key
        return session.add(key, dataset, read_parameters(self, IdentificationConfig))

    def _take_over(
        self, session: IdentificationSession, before: IdentificationSession | None
    ) -> RecursiveEstimate | None:
        """Take what was recorded before another description came, and what lies in the folders."""
        estimate = None
        config = read_parameters(self, IdentificationConfig)
        for key, dataset in {} if before is None else dict(before.datasets).items():
            try:
                estimate = session.add(key, dataset, config)
            except RobotIdError as cause:
                self._leave_out(key, f'does not fit the new description: {cause}')
        joints = set(session.model.joint_names)
        for name in ('validation', 'strokes'):
            for key, data in {} if before is None else dict(getattr(before, name)).items():
                if joints <= set(data.joint_names):
                    getattr(session, name)[key] = data
                else:
                    self._leave_out(key, 'does not fit the new description: it has other joints')
        return self._take_folders(session) or estimate

    def _take_folders(self, session: IdentificationSession) -> RecursiveEstimate | None:
        """Take the recordings in the folders that are new, or have grown; return the estimate where there were any."""
        estimate = None
        config = read_parameters(self, IdentificationConfig)
        for path in self._in_folders():
            key = self._key(path)
            told = session.datasets | session.validation | session.strokes | self._unfit
            if key in self._forgotten or (path not in self._read and key in told):
                continue
            try:
                # One that is recorded still is read as it is, and anew later.
                files = (path, *(path.iterdir() if path.is_dir() else ()))
                age = float(max(file.stat().st_mtime for file in files))
                if self._read.get(path) == age:
                    continue
                self._read[path] = age
                self._unfit.pop(key, None)
                purpose, data = load_by_purpose(path, session.model, self._robot)
                if isinstance(data, FrictionStrokes):
                    session.strokes[key] = data.of_joints(session.model.joint_names).require_whole()
                elif purpose == 'validation':
                    session.validation[key] = data
                else:
                    estimate = session.add(key, data, config)
                    self._periods, self._run = data.periods, key
                    self._seeds |= read_context(path, joints=session.model.joint_names).seeds
                self.get_logger().info(f'{path} is taken; ~/clear forgets it')
            except (RobotIdError, OSError) as cause:  # it may be gone by now
                self._leave_out(key, str(cause))
        return estimate

    def _in_folders(self) -> list[Path]:
        """Return the recordings in the folders; that of a recorder may hold none yet, or not exist."""
        found: list[Path] = []
        for folder in read_parameters(self, IdentificationNodeConfig).recordings:
            path = Path(folder).expanduser()
            try:
                found += recordings_in(path) or ([path] if path.exists() else [])
            except RobotIdError as cause:
                self.get_logger().info(str(cause))
        return found

    def _in_newest(self) -> Context:
        """Return what the last recording with a description says; a recorder names them by their dates."""
        for path in reversed(self._in_folders()):
            with suppress(RobotIdError, OSError):
                context = read_context(path)
                if context.description:
                    return context
        return Context()

    def _key(self, path: Path) -> str:
        """Return the name of a recording, as the recorder tells it; of several of one name, the others' paths."""
        return self._keys.setdefault(path, str(path) if path.name in self._keys.values() else path.name)

    def _leave_out(self, key: str, why: str) -> None:
        self._unfit[key] = why
        self.get_logger().warning(f'{key} is left out: {why}')

    def _taken(self, future: Future) -> None:
        self._folders_read = True  # they are the first thing that the worker does with an arm
        try:
            estimate: RecursiveEstimate | None = future.result()
        except Exception as cause:
            self._status.set(DiagnosticStatus.WARN, f'a recording cannot be used: {failure(self, cause)}')
            return
        if self._session is None:
            return
        counts = self._counts(self._session)
        self._values |= counts
        if self._unfit:
            self._status.set(DiagnosticStatus.WARN, f'left out: {counts["left_out"]}')
        if estimate is None:
            return
        excited = estimate.persistently_exciting
        self._values = {
            **counts,
            'periods': self._periods,
            'stops_asked': self._stops_asked,
            'samples': estimate.samples,
            'condition_number': estimate.condition,
            'persistently_exciting': excited,
            'relative_error': estimate.relative_error,
            'median_relative_std': float(np.median(estimate.relative_std)),
            'change': estimate.change,
            **{
                f'parameter/{name}': f'{value:.4g} +- {std:.2g}'
                for name, value, std in zip(estimate.names, estimate.base_values, estimate.std, strict=True)
            },
        }
        config = read_parameters(self, IdentificationNodeConfig)
        try:
            name, deviation = estimate.worst(config.stop_parameters)
        except RobotIdError as cause:
            self._status.set(DiagnosticStatus.WARN, f'stop_parameters: {cause}')
            return
        self._values |= {'worst_parameter': name, 'worst_deviation': deviation, 'deviation_asked': config.stop_when}
        unexplained = f'{estimate.relative_error:.1f} % of the torque unexplained so far'
        text = f'{len(self._session.datasets)} recordings; {unexplained}'
        level = DiagnosticStatus.OK if excited else DiagnosticStatus.WARN
        self._status.set(level, text if excited else f'{text}; the motion does not excite all parameters')
        known = 0.0 < deviation <= config.stop_when and self._periods > 1  # the noise of one period is not known
        if known and self._stopped != self._run and self._stop.service_is_ready():
            self._stopped = self._run
            self._stops_asked += 1
            self._values['stops_asked'] = self._stops_asked
            self._status.publish()  # before the arm rests: the chain tells this stop from a user's by stops_asked
            self.get_logger().info(
                f'every deviation is below {config.stop_when:g} % ({name}: {deviation:.2g} %) after {self._periods} '
                'periods; the excitation is stopped'
            )
            self._stop.call_async(Trigger.Request())

    def _said(self) -> Mapping[str, object]:
        folders = {'folders_read': self._folders_read, 'seeds': ' '.join(map(str, sorted(self._seeds)))}
        return {**folders, **self._values, **self._torques, **self._payload.values()}

    # -- services -----------------------------------------------------------------------------------

    def _known(self) -> IdentificationSession:
        if self._session is None:
            raise ModelError(self._missing or 'no robot description has come yet')
        return self._session

    async def _identified(self, progress: Progress) -> tuple[str, str, bool]:
        session = self._known()
        self._config = read_parameters(self, IdentificationNodeConfig)
        config = read_parameters(self, IdentificationConfig)
        selection = read_parameters(self, SelectionConfig)
        await self._worker.run(self._take_folders, session)
        self._values |= self._counts(session)
        result, urdf = await self._worker.run(session.identify, config, selection, progress)
        if urdf is not None:
            publish(self._calibrated, String(data=urdf))
        if session is self._session:  # no other arm came in the meantime
            self._found = result
            self._watch.watch(session.model, self._torque_factor, result, self._config)
        for note in result.notes:
            self.get_logger().warning(note)
        self._values['notes'] = '; '.join(result.notes) or 'none'
        if self._config.output_folder:
            await self._worker.run(self._write, session, result)
        error = result.metrics['training'].relative_error_total
        said = f'identified; {error:.1f} % of the torque unexplained'
        if not result.usable:
            said = f'{result.reason}; gravity, contact and feed-forward torques are not published'
        return result.to_yaml(), '; '.join((said, *result.notes)), result.usable and not result.notes

    def _write(self, session: IdentificationSession, result: IdentificationResult) -> None:
        """Write the result with its data and report; a failure is logged, and the result is published all the same."""
        found = Identification(
            model=session.model,
            result=result,
            training=tuple(session.datasets.values()),
            validation=tuple(session.validation.values()),
        )
        parent = Path(self._config.output_folder).expanduser() / self.get_namespace().strip('/')
        try:
            folder = output_folder(parent / f'identification-{datetime.now():%Y%m%d-%H%M%S-%f}')
            written = write_identification(folder, found)
        except RobotIdError as cause:
            self._values['written'] = f'nothing: {cause}'
            self.get_logger().error(f'the result is published, but not written: {cause}')
            return
        self._values['written'] = str(folder)
        self.get_logger().info(f'written to {folder}: {", ".join(path.name for path in written)}')
        if not any(path.suffix == '.html' for path in written):
            self.get_logger().warning("report.html needs plotly and trimesh: pip install 'robotid_ros[plot]'")

    async def _generate(self) -> str:
        """Write the inverse dynamics of the result as C, and predict the torques of joint states with it."""
        session, result = self._session, self._found
        if session is None or result is None:
            raise IdentificationError('nothing is identified yet; call ~/identify first')
        if not result.usable:
            raise IdentificationError(f'the result is not usable: {result.reason}')
        written = str(self._values.get('written', ''))
        if not written or not Path(written).is_dir():
            raise IdentificationError('the result was not written: set output_folder, and call ~/identify again')
        model = session.model

        def work(progress: Progress) -> tuple[MinimalModel, tuple[Path, ...]]:
            from robotid_ros.export.identified import identified_model  # late: few ask for it
            from robotid_ros.export.source_code import write_code

            minimal = identified_model(model, result, progress=progress)
            minimal.inverse_dynamics(*np.zeros((3, 1, model.n)))  # compiles it
            return minimal, write_code(minimal, Path(written) / 'code', 'c')

        with self._status.underway('code generation', IdentificationError) as underway:
            minimal, files = await self._worker.run(work, underway)
        if result is self._found:
            self._watch.take_code(minimal.inverse_dynamics)
        multiplications, additions = minimal.operations
        return (
            f'{", ".join(map(str, files))}: inverse dynamics with friction in {multiplications} multiplications and '
            f'{additions} additions; torques are predicted with it from now on'
        )

    async def _clear(self) -> str:
        if self._session is not None:
            await self._worker.run(self._session.clear)
        self._found = None
        self._watch.stop()
        self._early, self._values, self._unfit = [], {}, {}
        self._seeds = set()
        self._forgotten = {self._key(path) for path in await self._worker.run(self._in_folders)}
        self._status.set(DiagnosticStatus.OK, 'all recordings forgotten')
        return self._status.text

    # -- what goes out ------------------------------------------------------------------------------

    def _on_timer(self) -> None:
        if self._session is None and not self._asked:  # the executor spins: a description that is latched has come
            self._asked = True

            def stand_in(future: Future) -> None:
                """Take the arm that the recordings describe until one is published: it need not run."""
                context: Context = future.result()
                if context.description:
                    self._description.stand_in(context.description, context.joints)

            self._worker.run(self._in_newest).add_done_callback(stand_in)
        self._watch.look()
        self._torques = self._watch.values()
        self._status.publish()

    def close(self) -> None:
        """End the worker."""
        self._worker.close()


main = partial(run_node, IdentificationNode)

if __name__ == '__main__':
    sys.exit(main())
