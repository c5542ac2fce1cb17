# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A live recording: raw messages on disk, the average in memory."""

import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import robotid_ros
from robotid_ros.data.bag import JOINT_STATE, TRAJECTORY
from robotid_ros.data.bag_writer import BagWriter
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.messages import MessageChunk
from robotid_ros.data.processing import read_strokes
from robotid_ros.data.reference import PeriodicReference, decode_reference
from robotid_ros.data.runs import averaged_dataset
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.data.stream import StreamProcessor
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.errors import DataError


class RecordingSession:
    """Records from start to finish; its progress may be read from another thread.

    The ``folder`` is made for this recording and must not hold one yet. Without ``joints``, those of the reference, or
    of the first messages, are taken. The ``description`` is written into the recording: robot, versions. The topics are
    those of the joint states and of the reference. ``texts`` say what is known of the arm and the motion, by latched
    topics of std_msgs/msg/String, see :mod:`robotid_ros.data.context`; they are written first.

    After :meth:`finish`, ``dataset`` is the averaged period, where there was a reference; in place of it ``currents``,
    where a joint's effort is a current without a torque constant: the same average, with the motor currents of these
    joints as their torque [A], with which nothing can be identified; ``strokes`` are those of a friction sweep, and
    ``problem`` says why there is none of these, or why raw messages can no longer be written: then not every message is
    on disk, and the recording is not ``whole``. ``settings`` are those given, ``averaging`` those that the average was
    made with.
    """

    def __init__(
        self,
        folder: Path,
        joints: Sequence[str],
        settings: ProcessingSettings,
        description: Mapping[str, Any],
        topic: str = '/joint_states',
        reference_topic: str = '/excitation/reference',
        texts: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.dataset: Dataset | None = None
        self.currents: Dataset | None = None
        self.strokes: FrictionStrokes | None = None
        self.problem = ''
        self._topic, self._reference_topic = topic, reference_topic
        self._lock = threading.Lock()
        self.settings = settings
        self.averaging = settings.in_amperes()
        self._processor = StreamProcessor(joints, self.averaging)
        self._description = {**description, 'version': robotid_ros.__version__, 'topic': topic}
        self._bag = BagWriter(folder, {topic: JOINT_STATE, reference_topic: TRAJECTORY}, latched=[reference_topic])
        self.whole = self._processing = True
        self._said: dict[str, str] = {}
        for name, text in (texts or {}).items():
            self.say(name, text, time.time_ns())

    def say(self, topic: str, text: str, stamp: int) -> None:
        """Record what a latched topic of std_msgs/msg/String says from a time on [ns]; nothing where it is no news."""
        with self._lock:
            if text and self._said.get(topic) != text:
                self._said[topic] = text
                self._write(self._bag.say, topic, text, stamp)

    def keep(self, topic: str, kind: str, chunk: MessageChunk) -> None:
        """Record messages of another topic beside the joint states, by its type."""
        with self._lock:
            self._write(self._bag.add_topic, topic, kind)
            self._write(self._bag.append, topic, chunk)

    def follow(self, message: bytes, arrival: int) -> PeriodicReference | None:
        """Record a reference, and average over its periods from now on.

        The message is a serialised ``trajectory_msgs/msg/JointTrajectory``; one without points says that the arm stops,
        and gives None. Raises a DataError if it cannot be decoded, or its joints are not recorded; it is written
        nonetheless.
        """
        with self._lock:
            write = partial(self._write, self._bag.append, self._reference_topic, MessageChunk.of([message], [arrival]))
            try:
                reference = decode_reference(message)
            except DataError:
                write()
                raise
            if reference is not None and reference == self._processor.reference:  # announced again
                return reference
            write()
            if reference is not None:
                self._processor.follow(reference)
            return reference

    @property
    def reference(self) -> PeriodicReference | None:
        """The reference that the arm follows."""
        return self._processor.reference

    def take(self, chunk: MessageChunk) -> None:
        """Write messages to disk, then add them to the average; if one of the two fails, the other continues."""
        with self._lock:
            self._write(self._bag.append, self._topic, chunk)
            if self._processing:
                try:
                    self._processor.take(chunk)
                except Exception as cause:
                    self._processing = False
                    self.problem = f'raw messages are recorded, but no longer averaged: {cause}'

    def finish(self) -> None:
        """End the recording: compute the averaged period, write the summary, close the file."""
        with self._lock:
            found = self._processor.found()
            recording = {**self._description, 'file': self.folder.name, 'format': 'rosbag2 mcap'}
            provenance = {'recording': recording, 'version': robotid_ros.__version__}
            reference = self._processor.reference
            sweep = reference is not None and reference.sweep
            if reference is not None and self._processing and not sweep:
                try:
                    average = self._processor.finish(provenance)
                    missing = self.settings.without_constant
                    if missing:
                        self.currents = average
                        self.problem = (
                            f'the motor currents were averaged, the torques were not: that of {", ".join(missing)} '
                            'needs a torque constant [N m/A]'
                        )
                    else:
                        self.dataset = average
                except DataError as cause:
                    self.problem = str(cause)
            averaging = {} if self.dataset is None else self.dataset.provenance['averaging']
            self._write(self._bag.close, {'found': found, 'averaging': averaging, 'problem': self.problem})
            if sweep:  # cut from the finished recording
                try:
                    self.strokes = read_strokes(self.folder, self.settings)
                except DataError as cause:
                    self.problem = str(cause)

    def _write(self, write: Callable[..., None], *what: Any) -> None:
        """Write to the bag, until that fails."""
        if self.whole:
            try:
                write(*what)
            except (OSError, DataError) as cause:
                self.whole = False
                self._bag.abandon()
                reason = cause.strerror if isinstance(cause, OSError) else cause
                self.problem = f'raw messages are no longer written to {self.folder}: {reason}'

    @property
    def whole_periods(self) -> int:
        """Number of whole periods that are in the average so far."""
        average = self._processor.average
        return 0 if average is None else average.whole

    def average_so_far(self) -> Dataset | None:
        """Return the average of the whole periods so far; None before the first."""
        with self._lock:
            running, reference = self._processor.average, self._processor.reference
            average = None if running is None else running.so_far()
            provenance = {'recording': self._description, 'screening': self._processor.found()}
        if average is None or reference is None:
            return None
        return averaged_dataset(average, reference.joints, self.settings, provenance)

    def discard(self) -> None:
        """Remove the folder of a recording that never began."""
        with self._lock:
            self._bag.abandon()
            shutil.rmtree(self.folder, ignore_errors=True)

    def progress(self) -> dict[str, Any]:
        """Return counts, periods and sizes so far, as plain values."""
        with self._lock:
            return {
                'found': self._processor.found(),
                'periods': self._processor.periods(),
                'raw_bytes': self._bag.size,
                'last_stamp': self._processor.last_stamp,
                'joints': self._processor.joints,
            }
