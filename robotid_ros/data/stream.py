# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Period average of serialised joint states as they come, with constant memory."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import robotid_ros
from robotid_ros.arrays import LARGEST, Array, IntArray, require_names
from robotid_ros.data.bag import Bag
from robotid_ros.data.dataset import Dataset
from robotid_ros.data.messages import COMPLETE, JointStateDecoder, MessageChunk
from robotid_ros.data.reference import PeriodicReference, decode_reference
from robotid_ros.data.runs import NoUsablePeriodError, averaged_dataset, period_average
from robotid_ros.data.settings import ProcessingSettings, torque_factors
from robotid_ros.errors import DataError
from robotid_ros.progress import Progress
from robotid_ros.signals.averaging import PeriodAverage, channel_names
from robotid_ros.signals.sample_times import LateStamps
from robotid_ros.signals.screening import SampleScreen, TurnUnwrapper


def screening_found(screen: SampleScreen, late: LateStamps, unwrapper: TurnUnwrapper) -> dict[str, Any]:
    """Return what was found in the samples that were screened so far, as plain values."""
    return {
        **screen.counts,
        'rate': 1.0 / screen.step if screen.step else 0.0,
        'bad_channels': dict(screen.bad_channels),
        'late_stamps': late.moved,
        'latest_stamp': late.latest,
        'wraps': unwrapper.wraps,
    }


class StreamProcessor:
    """Decodes, screens and averages messages chunk by chunk.

    Without joints, those of the reference, or of the first messages, are taken.
    """

    def __init__(self, joints: Sequence[str], settings: ProcessingSettings) -> None:
        self.settings = settings
        self.reference: PeriodicReference | None = None
        self.last_stamp = 0
        self._given = tuple(joints)
        self._decoder = JointStateDecoder(joints=self._given)
        self._without_effort = 0
        self._screen = SampleScreen()
        self._late = LateStamps()
        self._unwrapper = TurnUnwrapper()
        self._lost = 0
        self._last: dict[int, int] = {}  # sequence number by publisher
        self.average: PeriodAverage | None = None
        self._step = 0.0  # of a simulation whose efforts are averaged with the accelerations of their own steps [s]
        self._factors: Array | None = None
        self._index: list[int] = []

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints that are recorded; empty before the first message where none were given."""
        return self._decoder.joints

    def follow(self, reference: PeriodicReference) -> None:
        """Average over the periods of a reference from now on; refuse one whose joints are not among those wanted."""
        if self._given:
            require_names(reference.joints, self._given, 'joint', 'the recording', NoUsablePeriodError)
        elif self.joints != reference.joints:
            self._decoder = JointStateDecoder(joints=reference.joints, counts=self._decoder.counts)
            self._late = LateStamps()
        self.reference = reference
        self.average = None
        self._factors = None

    def take(self, chunk: MessageChunk) -> None:
        """Process messages in the order of their arrival."""
        if not len(chunk):
            return
        # What is missing in the publishers' sequence numbers
        for publisher in np.unique(chunk.publisher).tolist():
            numbers = chunk.sequence[(chunk.publisher == publisher) & (chunk.sequence >= 0)]
            if len(numbers):
                steps = np.diff(numbers, prepend=self._last.get(publisher, int(numbers[0]) - 1))
                self._lost += int((steps[steps > 1] - 1).sum())
                self._last[publisher] = int(numbers[-1])
        batch = self._decoder.decode_block(chunk.payload, chunk.lengths)
        complete = np.flatnonzero(batch['reason'] == COMPLETE)
        if not len(complete):
            return
        if self._factors is None:
            # The columns, once the joints are known
            wanted = self.joints if self.reference is None else self.reference.joints
            self._index = require_names(wanted, self.joints, 'joint', 'the recording', NoUsablePeriodError)
            currents = tuple(self.settings.effort.get(joint) == 'current' for joint in wanted)
            self._factors = torque_factors(wanted, self.settings, currents)
            self._screen.channels = channel_names(wanted, ('position', 'torque'))
            self._unwrapper = TurnUnwrapper(wraps=self._unwrapper.wraps)
        assert self._factors is not None
        state = {name: values[complete] for name, values in batch.items()}
        position, effort = state['position'][:, self._index], state['effort'][:, self._index]
        without = np.asarray(np.isnan(state['effort']).all(axis=1))
        self._without_effort += int(without.sum())
        values = np.concatenate([position, effort * self._factors], axis=1)
        values[~(np.abs(values) < LARGEST)] = np.nan
        stamp = self._late.correct(state['stamp'], state['position'], state['velocity'])
        # A missing effort has a count of its own and does not count as a value that is not finite.
        judged = np.where(without[:, None] & (np.arange(values.shape[1]) >= position.shape[1]), 0.0, values)
        usable, displaced, _ = self._screen.screen(stamp, judged, chunk.arrival[complete])
        self.last_stamp = int(state['stamp'][-1])
        good = usable & ~displaced & ~without
        good_values = values[good]
        n = position.shape[1]
        good_values[:, :n] = self._unwrapper.unwrap(good_values[:, :n])
        own = self._late.acceleration
        self._add(stamp[good], good_values, None if own is None else own[good][:, self._index])

    def finish(self, provenance: Mapping[str, Any]) -> Dataset:
        """Return the dataset of the averaged period; refuse where no reference came or no period is usable."""
        if self.reference is None:
            raise DataError('there is no reference whose periods could be averaged')
        if self.reference.sweep:
            raise DataError('a friction sweep is no periodic motion: give its recording with --friction-data')
        self._screen.finish()
        average = None if self.average is None else self.average.finish()
        if average is None:
            raise NoUsablePeriodError(f'no usable period of {self.reference.period:g} s: {self._why_none()}')
        if len(average.used) == 1:
            self.reference.require_followed(average.time, average.mean)
        motion = f'follows its reference: repeats every {self.reference.period:.9g} s'
        found = {**provenance, 'screening': self.found(), 'motion': motion}
        return averaged_dataset(average, self.reference.joints, self.settings, found, self._step)

    def found(self) -> dict[str, Any]:
        """Return every count so far, as plain values."""
        return {
            **screening_found(self._screen, self._late, self._unwrapper),
            **self._decoder.counts,
            'missing_effort': self._without_effort,
            'extra_joints': self._decoder.extra,
            'lost_before_capture': self._lost,
        }

    def periods(self) -> dict[str, Any]:
        """Return the state of the average: current period, periods used and left out, noise of single samples."""
        average = self.average
        if average is None:
            return {'current': None, 'used': 0, 'excluded': [], 'noise_std': None}
        noise, n = average.noise_std(), len(self._index)
        return {
            'current': average.current,
            'used': len(average.used),
            'excluded': list(average.excluded),
            'noise_std': None if noise is None else noise[n : 2 * n].tolist(),
        }

    def _add(self, stamp: IntArray, values: Array, acceleration: Array | None) -> None:
        if self.reference is None or self.reference.sweep or not len(stamp):
            return
        elapsed = np.asarray((stamp - self.reference.start) * 1e-9, dtype=np.float64)
        if self.average is None:
            # The rate is known after the first samples; the motion to the start shows whether a simulated clock is late
            if not self._screen.step or elapsed[-1] < 0.0:
                return
            self._step = self._late.step
            self.average = period_average(
                self.reference.joints,
                self.reference.period,
                max(self._screen.step, 4.0 * self._step),  # of four steps hardly ever all are without an acceleration
                self.settings,
                self.reference.travel,
                accelerations=self._step > 0.0,
            )
        if self._step > 0.0:
            if acceleration is None:
                return
            known = np.isfinite(acceleration).all(axis=1)
            elapsed, values = elapsed[known], np.concatenate([values, acceleration], axis=1)[known]
        self.average.add(elapsed, values)

    def _why_none(self) -> str:
        messages = self._decoder.counts['messages']
        if self._without_effort == messages > 0:
            return 'no joint state has an effort'
        if self.average is None:
            bad = ', '.join(f'{name} of {count} samples' for name, count in self._screen.bad_channels.items())
            return f'of {messages} messages none could be averaged' + (f'; not finite: {bad}' if bad else '')
        return '; '.join(f'period {number}: {reason}' for number, reason in self.average.excluded) or 'none was reached'


def average_bag(
    bag: Bag, settings: ProcessingSettings, topic: str | None = None, progress: Progress | None = None
) -> Dataset | None:
    """Average the periods of a bag with a reference from disk, a piece at a time; None of a bag without one.

    Memory does not grow with the recording. Messages after the end of the reference are left out. Joints, period and
    start of the settings are used where given, otherwise those of the recorded reference. Raises a DataError if no
    period is usable.
    """
    topic = bag.choose(topic, joints=settings.joints)
    announced = bag.reference_topic(topic)
    if not announced:
        return None
    processor: StreamProcessor | None = None
    running = False
    for name, chunk in bag.messages({topic, announced}, progress):
        if name == announced:
            for message in chunk.messages():
                reference = decode_reference(message)
                running = reference is not None
                if reference is not None:
                    joints = settings.joints or reference.joints
                    same = settings.period is None and set(joints) == set(reference.joints)
                    reference = replace(
                        reference,
                        travel=reference.travel if same else None,
                        points=reference.points if same else None,
                        joints=joints,
                        period=reference.period if settings.period is None else settings.period,
                        start=reference.start if settings.start is None else settings.start,
                    )
                    processor = processor or StreamProcessor(settings.joints, settings)
                    processor.follow(reference)
        elif processor is not None and running:
            processor.take(chunk)
    if processor is None:
        return None
    return processor.finish({'recording': bag.provenance(topic), 'version': robotid_ros.__version__})
