# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""One recording as it happens: raw messages to disk, the average in memory."""

import shutil
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from robotid_ros import __version__
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.processing import read_strokes
from robotid_ros.data.raw_log import MessageChunk, RawLogWriter, write_reference, write_summary
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.data.stream import PeriodicReference, StreamProcessor
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.errors import DataError

__all__ = ['RecordingSession']


class RecordingSession:
    """Records from start to finish; may be asked from another thread how it goes.

    Parameters
    ----------
    folder : Path
        Made for this recording; must not hold one yet.
    joints : sequence of str
        Joints wanted; empty takes those of the reference, or of the first messages.
    settings : ProcessingSettings
    description : mapping
        What the recording shall say about itself: topic, robot, versions.

    Attributes
    ----------
    dataset : Dataset or None
        The averaged period, after :meth:`finish`, where there was a reference.
    strokes : FrictionStrokes or None
        Those of a friction sweep, after :meth:`finish`.
    problem : str
        Why there is neither, or why raw messages can no longer be written.
    """

    def __init__(
        self, folder: Path, joints: Sequence[str], settings: ProcessingSettings, description: Mapping[str, Any]
    ) -> None:
        self.folder = folder
        self.dataset: Dataset | None = None
        self.strokes: FrictionStrokes | None = None
        self.problem = ''
        self._lock = threading.Lock()
        self._settings = settings
        self._processor = StreamProcessor(joints, settings)
        self._description = dict(description)
        self._log = RawLogWriter(folder, {**description, 'joints': list(joints), 'processing': settings.to_dict()})
        self._writing = self._processing = True

    def follow(self, reference: PeriodicReference) -> None:
        """Average over the periods of this reference from now on.

        Raises
        ------
        DataError
            If its joints are not recorded.
        """
        with self._lock:
            if reference == self._processor.reference:  # said once more
                return
            self._processor.follow(reference)
            write_reference(self.folder, reference.to_dict())

    @property
    def reference(self) -> PeriodicReference | None:
        """What the arm follows."""
        return self._processor.reference

    def take(self, chunk: MessageChunk) -> None:
        """Write messages to disk, then add them to the average; what ends the one does not end the other."""
        with self._lock:
            if self._writing:
                try:
                    self._log.append(chunk)
                except OSError as cause:
                    self._writing = False
                    self.problem = f'raw messages are no longer written to {self.folder}: {cause.strerror}'
            if self._processing:
                try:
                    self._processor.take(chunk)
                except Exception as cause:
                    self._processing = False
                    self.problem = f'raw messages are recorded, but no longer averaged: {cause}'

    def finish(self) -> None:
        """End the recording: close the files, write the summary, compute the averaged period."""
        with self._lock:
            self._log.close()
            found = self._processor.found()
            recording = {**self._description, 'file': self.folder.name, 'format': 'recorder'}
            provenance = {'recording': recording, 'version': __version__}
            reference = self._processor.reference
            if reference is not None and self._processing:
                try:
                    if reference.sweep:
                        self.strokes = read_strokes(self.folder, self._settings)
                    else:
                        self.dataset = self._processor.finish(provenance)
                except DataError as cause:
                    self.problem = str(cause)
            averaging = {} if self.dataset is None else self.dataset.provenance['averaging']
            write_summary(
                self.folder,
                {'found': found, 'averaging': averaging, 'problem': self.problem, 'raw_bytes': self._log.size},
            )

    def discard(self) -> None:
        """Remove the folder of a recording that never began."""
        with self._lock:
            self._log.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def progress(self) -> dict[str, Any]:
        """Return counts, periods and sizes so far, as plain values."""
        with self._lock:
            return {
                'found': self._processor.found(),
                'periods': self._processor.periods(),
                'raw_bytes': self._log.size,
                'last_stamp': self._processor.last_stamp,
                'joints': self._processor.joints,
            }
