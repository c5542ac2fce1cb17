# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The node ``recorder``: keeps every joint state, averages the periods of an excitation.

It subscribes ``joint_states``, ``excitation/reference``, ``excitation/plan`` and ``robot_description``. All of them,
and the robot configuration (``~/robot_configuration``, latched), are in each recording. It publishes ``~/averaged``
(latched, anew after every period: one averaged, smoothed period), ``~/averaged_current`` (the same with motor
currents, of the joints whose effort is one), ``~/noise`` (latched: standard deviations of its positions and efforts),
``~/friction`` (latched: the steady strokes of a friction sweep) and ``~/status``. How many periods there are, the
excitation node's ``periods`` says; the first ``transient_periods`` are not averaged. Services: ``~/start``,
``~/stop``, ``~/save``.
"""

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import ReliabilityPolicy
from rclpy.time import Time
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from robotid_ros.data import Dataset, ProcessingSettings, process_file, save_dataset
from robotid_ros.data.bag import DESCRIPTION, WRENCH
from robotid_ros.data.bag_writer import writing_library
from robotid_ros.data.context import SCHEMAS, message_text
from robotid_ros.data.messages import FAULTS
from robotid_ros.data.reference import decode_reference
from robotid_ros.data.runs import thinned
from robotid_ros.data.session import RecordingSession
from robotid_ros.data.settings import AveragingSettings, torque_factors
from robotid_ros.errors import DataError, RobotIdError
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.nodes.description import Description, DescriptionConfig
from robotid_ros.nodes.messages import (
    ALIVE,
    LATCHED,
    Capture,
    average_frame,
    publish,
    reliability_of,
    trajectory_message,
)
from robotid_ros.nodes.parameters import declare_parameters, declare_robot_config, read_parameters
from robotid_ros.nodes.runtime import BackgroundWorker, run_node, serve, steady_timer, wait_for
from robotid_ros.nodes.status import Status
from robotid_ros.settings import setting, settings_of
from robotid_ros.signals.sample_times import late_stamps_remark

TOPIC, REFERENCE, PLAN = 'joint_states', 'excitation/reference', 'excitation/plan'
GONE = 5  # seconds without the publisher of a running reference until the run counts as over
_LEAST_SPACE = 1e9
"""Room for a recording [bytes]: an hour of seven joints at 1 kHz takes about this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderConfig(AveragingSettings):
    """Everything about the recorder that can be set."""

    effort: str = setting(
        '',
        "what JointState.effort holds; needed where no robot configuration says it ('current' needs one)",
        choices=('', 'torque', 'current', 'unknown'),
        read_only=True,
    )
    output_folder: str = setting(
        '~/.ros/robotid', 'each recording gets a folder of its own in here, below that of the namespace'
    )
    follow_reference: bool = setting(True, 'start recording by itself when a reference is published')
    reliability: str = setting(
        'auto',
        'of the subscription to joint states; auto: reliable unless a publisher is not',
        choices=('auto', 'reliable', 'best_effort'),
    )
    depth: int = setting(5000, 'messages the middleware holds while this process cannot run', range=(1, 1_000_000))
    wrench_topic: str = setting(
        '', 'geometry_msgs/WrenchStamped of a force-torque sensor to record beside, for robotid wrench; empty: none'
    )
    start_timeout: float = setting(5.0, 'how long start waits for the first joint state', unit='s', range=(0.1, 300.0))
    stale_after: float = setting(1.0, 'silence after which the status is an error', unit='s', range=(0.1, 300.0))
    harmonics: int = setting(
        0, 'of the Fourier series of averaged positions; 0: all that exceed the noise', range=(0, 1000)
    )
    averaged_points: int = setting(5000, 'points of the published average, at most', range=(16, 100_000))


def processing_settings(config: RecorderConfig, robot: RobotConfig | None) -> ProcessingSettings:
    """Return how recordings are processed.

    Raises a RobotIdError if it is not stated what the effort of each joint is.
    """
    if robot is None and config.effort not in ('torque', 'unknown'):
        raise DataError(
            'what JointState.effort holds is not said, and it is never guessed: give a robot configuration with '
            "'effort' per joint (torque [N m], or current [A] with torque constants), or set effort:=torque, or "
            'effort:=unknown to have it compared with the masses described'
        )
    averaging: dict[str, Any] = {item.name: getattr(config, item.name) for item in settings_of(AveragingSettings)}
    averaging['harmonics'] = config.harmonics or None
    if robot is None:
        return ProcessingSettings(**averaging)
    robot = stated(config, robot)
    robot.meaning(robot.joints)  # refuses a joint without one
    return ProcessingSettings.for_robot(robot, **averaging)


def stated(config: RecorderConfig, robot: RobotConfig) -> RobotConfig:
    """Return a robot configuration in which the parameter says what the effort is where nothing else does."""
    otherwise: dict[str, Any] = dict.fromkeys(robot.joints, config.effort) if config.effort else {}
    return replace(robot, effort=otherwise | dict(robot.effort))


def storage_refusal(folder: Path) -> str:
    """Return why nothing can be recorded in a folder, which need not exist yet; empty where it can."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return f'{there} is not a folder'
    if not os.access(there, os.W_OK):
        return f'{there} cannot be written to'
    free = shutil.disk_usage(there).free
    if free < _LEAST_SPACE:
        return f'{there} has {free / 1e6:.0f} MB left, expected at least {_LEAST_SPACE / 1e6:.0f} MB'
    return ''


def recorder_status(
    session: RecordingSession | None, last: RecordingSession | None, problem: str, silence: float
) -> tuple[bytes, str, dict[str, object]]:
    """Return level, message and values of the status.

    The sessions are the one that runs and the one that ended last; ``problem`` says what failed, and ``silence`` is how
    long no joint state has come [s], 0 while that is not too long.
    """
    shown = session or last
    if shown is None:
        level = DiagnosticStatus.ERROR if problem else DiagnosticStatus.OK
        state = 'failed' if problem else 'idle'
        return level, problem or 'idle: call ~/start, or start an excitation', {'state': state}
    progress = shown.progress()
    found, periods = progress['found'], progress['periods']
    values: dict[str, object] = {
        'state': 'recording' if session is not None else 'failed' if problem else 'finished',
        'folder': shown.folder,
        'messages': found['messages'],
        'rate': found['rate'],
        'raw_megabytes': progress['raw_bytes'] / 1e6,
    }
    faults = {name: found[name] for name in FAULTS if found[name]}
    values.update(faults)
    if found['extra_joints']:
        values['extra_joints'] = ', '.join(found['extra_joints'])
    values.update({f'not_a_number/{name}': count for name, count in found['bad_channels'].items()})
    values.update(_period_values(shown, periods))
    problem = problem or shown.problem
    if problem:
        # What is on disk can be identified later, from a run that was stopped too, and with torque constants.
        harmless = problem == shown.problem and shown.whole
        if not harmless:
            values['state'] = 'failed'
        return DiagnosticStatus.WARN if harmless else DiagnosticStatus.ERROR, problem, values
    if silence:
        return DiagnosticStatus.ERROR, f'no joint state for {silence:.1f} s', values
    text = f'{"recorded" if session is None else "recording"} {values["messages"]} messages'
    if 'strokes' in values:
        text += ' of a friction sweep' + (f', {values["strokes"]} steady strokes' if session is None else '')
    elif 'periods_averaged' in values:
        text += f', {values["periods_averaged"]} periods averaged, {values["periods_left_out"]} left out'
    if faults:
        named = ', '.join(f'{count} {name.replace("_", " ")}' for name, count in faults.items())
        return DiagnosticStatus.WARN, f'{text}; found: {named}', values
    return DiagnosticStatus.OK, text, values


def _period_values(session: RecordingSession, periods: dict[str, Any]) -> dict[str, object]:
    if session.reference is None:
        return {}
    if session.reference.sweep:
        return {'strokes': -1 if session.strokes is None else session.strokes.count}
    excluded = periods['excluded']
    values: dict[str, object] = {
        'period': -1 if periods['current'] is None else periods['current'],
        'period_length': session.reference.period,
        'periods_averaged': periods['used'],
        'periods_left_out': len(excluded),
    }
    values.update({f'left_out/{number}': reason for number, reason in excluded[-10:]})
    if periods['noise_std'] is not None:
        names = session.reference.joints
        values.update({f'noise/{joint}': std for joint, std in zip(names, periods['noise_std'], strict=True)})
    return values


class Recorder(Node):
    """Records joint states while it is told to, or while a reference runs."""

    def __init__(self, **options: Any) -> None:
        super().__init__('recorder', **options)  # as rclpy's Node: namespace, parameter_overrides, context
        config = declare_parameters(self, RecorderConfig)
        self._robot = declare_robot_config(self)
        settings = processing_settings(config, self._robot)  # refuse at once what would fail later
        writing_library()
        self._worker = BackgroundWorker(self)
        self._lock = threading.RLock()
        self._session: RecordingSession | None = None
        self._capture: Capture | None = None
        self._last: RecordingSession | None = None
        self._reference: tuple[bytes, int] | None = None  # serialised, and when it came [ns]
        self._problem = ''
        self._watched = (0, time.monotonic())  # messages received, and when that last changed
        self._seconds_alone = 0
        self._averaged_periods = 0
        self._averaged = self.create_publisher(JointTrajectory, '~/averaged', LATCHED)
        self._current = self.create_publisher(JointTrajectory, '~/averaged_current', LATCHED)
        self._friction = self.create_publisher(JointTrajectory, '~/friction', LATCHED)
        self._noise = self.create_publisher(JointState, '~/noise', LATCHED)
        self._status = Status(self, ALIVE)
        self.create_subscription(JointTrajectory, REFERENCE, self._receive_reference, LATCHED, raw=True)
        self._configuration: Publisher | None = None
        self._wrench: Capture | None = None
        self._texts: dict[str, str] = {}  # what is known of the arm and the motion, by topic
        if self._robot is not None:
            self._say_configuration(stated(config, self._robot))
        for topic in (DESCRIPTION, PLAN):
            self.create_subscription(String, topic, partial(self._receive_text, topic), LATCHED)
        if self._robot is None:  # of an arm that nobody can read, nothing is known
            self._arm = Description(self, DescriptionConfig(), None, self._describe, lambda _: None)
        actions = {'start': self._start, 'stop': self._stop, 'save': self._save}
        locked = {name: partial(self._worker.run, self._locked, action) for name, action in actions.items()}
        serve(self, **locked)
        steady_timer(self, 1.0, self._look_around)
        self.get_logger().info(f'records {self.resolve_topic_name(TOPIC)} on ~/start or when a reference starts')
        currents = settings.without_constant
        if currents:
            self.get_logger().warning(
                f'{", ".join(currents)}: motor currents without a torque constant are recorded and averaged in ampere. '
                "The identification needs the constants: from a data sheet, as 'torque_constants' of the robot "
                'configuration, or found with a known payload (robotid payload --mass)'
            )

    def close(self) -> None:
        """End a recording that is going on, so that nothing of it is lost."""
        with self._lock:
            if self._session is not None:
                self._end('the node is shut down')
        self._worker.close()

    def _locked(self, action: Callable[[], str]) -> str:
        """Do what a service asks for, and publish the status before it answers."""
        try:
            with self._lock:
                return action()
        finally:
            self._publish_status()

    # --- actions: in the worker's thread, under the lock ---

    def _start(self) -> str:
        if self._session is not None:
            return f'recording already, to {self._session.folder}'
        config = read_parameters(self, RecorderConfig)
        settings = processing_settings(config, self._robot)
        reliability = self._wait_for_publisher(config)
        folder = self._parent(config) / datetime.now().strftime('%Y%m%d-%H%M%S-%f')
        session = RecordingSession(
            folder,
            settings.joints,
            settings,
            {'began': time.time()},
            topic=self.resolve_topic_name(TOPIC),
            reference_topic=self.resolve_topic_name(REFERENCE),
            texts=self._texts,
        )
        capture = Capture(self, JointState, TOPIC, session.take, config.depth, reliability)
        if not capture.first.wait(config.start_timeout):
            capture.stop()
            session.discard()
            raise DataError(
                f'no joint state on {self.resolve_topic_name(TOPIC)} within {config.start_timeout:g} s, although it '
                'has a publisher; is the controller running?'
            )
        self._problem = ''
        self._session, self._capture, self._watched = session, capture, (0, time.monotonic())
        if config.wrench_topic:
            name = self.resolve_topic_name(config.wrench_topic)
            reliability = reliability_of(self.get_publishers_info_by_topic(name))
            keep = partial(session.keep, name, WRENCH)
            self._wrench = Capture(self, WrenchStamped, name, keep, config.depth, reliability)
        self._averaged_periods = 0
        if self._reference is not None:
            session.follow(*self._reference)
        self.get_logger().info(f'recording to {folder}')
        return f'recording to {folder}'

    def _parent(self, config: RecorderConfig) -> Path:
        """Return the folder of all recordings; the namespace keeps several arms apart that share one."""
        parent: Path = Path(config.output_folder).expanduser() / self.get_namespace().strip('/')
        return parent

    def _stop(self) -> str:
        if self._session is None:
            raise DataError('nothing is being recorded')
        return self._end('stopped')

    def _save(self) -> str:
        if self._session is not None:
            raise DataError('the recording is still going on; stop it first')
        if self._last is None:
            raise DataError('nothing has been recorded yet')
        dataset = self._last.dataset
        if self._last.strokes is not None:
            raise DataError(
                f'{self._last.folder} is a friction sweep, which is no periodic motion: give the folder itself to an '
                'identification, with --friction-data'
            )
        if dataset is None:
            settings = processing_settings(read_parameters(self, RecorderConfig), self._robot)
            dataset, _ = process_file(self._last.folder, settings)
        path = self._last.folder / 'dataset.npz'
        save_dataset(path, dataset)
        return str(path)

    def _wait_for_publisher(self, config: RecorderConfig) -> ReliabilityPolicy:
        """Return the reliability to ask for, once somebody publishes joint states."""
        publishers = wait_for(lambda: self.get_publishers_info_by_topic(TOPIC), config.start_timeout)
        if not publishers:
            raise DataError(
                f'nobody publishes {self.resolve_topic_name(TOPIC)}; start the arm driver, or remap joint_states'
            )
        if config.reliability != 'auto':
            return ReliabilityPolicy[config.reliability.upper()]
        return reliability_of(publishers)

    def _end(self, why: str) -> str:
        session, capture = self._session, self._capture
        assert session is not None
        assert capture is not None
        try:
            capture.stop()
            if self._wrench is not None:
                self._wrench.stop()
                if not self._wrench.received:
                    self.get_logger().warning('no wrench came while this was recorded; is wrench_topic right?')
            session.finish()
            text = f'{why}: {capture.received} messages in {session.folder}'
            strokes, reference = session.strokes, session.reference
            if strokes is not None and reference is not None:
                columns = strokes.q, strokes.dq, np.zeros_like(strokes.dq), strokes.tau
                message = trajectory_message(strokes.joint_names, 0.0, strokes.time, *columns)
                message.header.frame_id = session.folder.name
                message.header.stamp = Time(nanoseconds=reference.start).to_msg()
                publish(self._friction, message)
                text += f', {strokes.count} steady strokes of a friction sweep'
            average = session.dataset or session.currents
            if average is not None:
                self._publish_average(session, average)
                text += f', {average.periods} periods averaged'
        finally:
            self._session, self._capture, self._wrench, self._last = None, None, None, session
        self._problem = session.problem or (f'recording failed: {capture.failure!r}' if capture.failure else '')
        if self._problem:
            whole = session.whole and capture.failure is None
            (self.get_logger().warning if whole else self.get_logger().error)(f'{text}; {self._problem}')
            return f'{text}; {self._problem}'
        self.get_logger().info(text)
        return text

    def _publish_average(self, session: RecordingSession, dataset: Dataset) -> None:
        reference = session.reference
        assert reference is not None
        points = thinned(dataset, read_parameters(self, RecorderConfig).averaged_points)
        message = trajectory_message(dataset.joint_names, 0.0, *points)
        # Seconds since 1970 in a double would be off by up to 0.2 microseconds.
        message.header.stamp = Time(nanoseconds=reference.start).to_msg()
        late = late_stamps_remark(dataset.provenance.get('screening', {}))
        message.header.frame_id = average_frame(
            dataset.periods, session.folder.name, validation=reference.purpose == 'validation', remark=late
        )
        # The same average with motor currents [A] as effort, of the joints whose effort is a current
        settings, joints = session.averaging, dataset.joint_names
        measured = tuple(settings.effort.get(joint) == 'current' for joint in joints)
        own = np.flatnonzero(measured)
        if len(own):
            time, *motion, torque = points
            current = torque / torque_factors(joints, settings, measured)
            columns = [values[:, own] for values in (*motion, current)]
            currents = trajectory_message([joints[k] for k in own], 0.0, time, *columns)
            currents.header = message.header
            publish(self._current, currents)
        if session.settings.without_constant:
            return  # a current is among the torques
        publish(self._averaged, message)
        if dataset.noise_std is not None:
            noise = JointState(name=list(dataset.joint_names))
            noise.header.stamp = message.header.stamp
            noise.effort = dataset.noise_std.tolist()
            position = np.asarray(dataset.provenance['averaging']['position_noise_std'])
            noise.position = (position / np.sqrt(dataset.periods)).tolist()
            publish(self._noise, noise)

    # --- callbacks: in the executor's thread ---

    def _say_configuration(self, robot: RobotConfig) -> None:
        """Publish the robot configuration, so that any recorder of bags has it, and keep it for the recordings."""
        text = message_text(SCHEMAS['robot_configuration'], robot.content())
        self._configuration = self.create_publisher(String, '~/robot_configuration', LATCHED)
        self._texts[self._configuration.topic_name] = text
        publish(self._configuration, String(data=text))

    def _describe(self, model: RobotModel) -> bool:
        if self._configuration is None:
            config = read_parameters(self, RecorderConfig)
            self._say_configuration(stated(config, RobotConfig(joints=model.joint_names)))
        return True

    def _receive_text(self, topic: str, message: String) -> None:
        # By its own name, wherever it was remapped from: readers look for it.
        name, stamp = f'{self.get_namespace().rstrip("/")}/{topic}', time.time_ns()
        self._texts[name] = message.data
        session = self._session
        if session is not None:
            self._worker.run(session.say, name, message.data, stamp)

    def _receive_reference(self, message: bytes) -> None:
        arrival = time.time_ns()
        try:
            reference = decode_reference(message)
        except RobotIdError as refusal:
            self._problem = f'the reference cannot be used: {refusal}'
            self.get_logger().error(self._problem)
            return
        if reference is None:
            self._worker.run(self._reference_ended, 'the excitation ended', message, arrival)
        else:
            self._worker.run(self._reference_started, message, arrival)

    def _reference_started(self, message: bytes, arrival: int) -> None:
        with self._lock:
            self._reference = message, arrival
            try:
                if self._session is None and read_parameters(self, RecorderConfig).follow_reference:
                    self._start()
                elif self._session is not None:
                    self._session.follow(message, arrival)
            except RobotIdError as refusal:
                self._problem = f'the excitation is not recorded: {refusal}'
                self.get_logger().error(self._problem)
        self._publish_status()

    def _reference_ended(self, why: str, message: bytes | None = None, arrival: int = 0) -> None:
        with self._lock:
            self._reference = None
            if self._session is not None and self._session.reference is not None:
                if message is not None:
                    self._session.follow(message, arrival)
                self._end(why)
                self._publish_status()

    def _publish_so_far(self, session: RecordingSession) -> None:
        """Publish the average after another whole period."""
        with self._lock:
            if session is not self._session:
                return  # the recording has ended meanwhile, and its average was published
            dataset = session.average_so_far()
            if dataset is not None:
                self._publish_average(session, dataset)

    def _look_around(self) -> None:
        session = self._session
        if session is not None and session.whole_periods > self._averaged_periods:
            self._averaged_periods = session.whole_periods
            self._worker.run(self._publish_so_far, session)
        # The end of an excitation whose node is gone will not be announced.
        gone = self._reference is not None and self.count_publishers(REFERENCE) == 0
        self._seconds_alone = self._seconds_alone + 1 if gone else 0
        if self._seconds_alone == GONE:
            self._worker.run(self._reference_ended, 'the excitation node is gone')
        self._publish_status()

    def _publish_status(self) -> None:
        session, capture = self._session, self._capture
        silence = 0.0
        if capture is not None:
            if capture.received != self._watched[0]:
                self._watched = (capture.received, time.monotonic())
            silence = time.monotonic() - self._watched[1]
            if capture.failure is not None:
                self._problem = f'recording failed: {capture.failure!r}'
        config = read_parameters(self, RecorderConfig)
        stale = silence > config.stale_after
        level, text, values = recorder_status(session, self._last, self._problem, silence if stale else 0.0)
        values['follow_reference'] = config.follow_reference  # this and the next are for the excitation node
        refusal = storage_refusal(self._parent(config))
        if refusal:
            values['refusal'] = refusal
        self._status.send(level, text, values)


main = partial(run_node, Recorder)

if __name__ == '__main__':
    sys.exit(main())
