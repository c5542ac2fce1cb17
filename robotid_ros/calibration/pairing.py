# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Pairs of joint states and target measurements while the arm rests."""

from collections import deque
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.errors import CalibrationError
from robotid_ros.model.transforms import mean_quaternion
from robotid_ros.settings import Settings, setting

_FEWEST = 5  # measurements of the target for a mean and a scatter
_AGAIN = 30.0  # times the rest tolerance: how far the arm has to go to count as being somewhere else


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingConfig(Settings):
    """Conditions for a measurement, and its labels."""

    error = CalibrationError

    averaging_time: float = setting(
        1.0, 'Time over which joints and target are averaged', unit='s', range=(0.05, 60.0), read_only=True
    )
    largest_lag: float = setting(
        1.0,
        'Largest difference between the newest stamps of joints and target',
        unit='s',
        range=(0.0, 60.0),
        read_only=True,
    )
    rest_tolerance: float = setting(
        3e-4, 'How far a joint may move in that time and count as resting', unit='rad or m', range=(1e-6, 0.1)
    )
    set: str = setting('', 'Label of the set: give another after the instrument was moved')
    point: str = setting('', 'Label of the target on the tool')


class RestingPairs:
    """The last joint states and target measurements, by their stamps."""

    def __init__(self, joint_names: tuple[str, ...], config: PairingConfig) -> None:
        self.joint_names = joint_names
        self.averaging_time, self._lag = config.averaging_time, config.largest_lag
        self._joints: deque[tuple[float, Array]] = deque()
        self._targets: deque[tuple[float, Array]] = deque()
        self._looked = -np.inf  # until when a new place was looked for
        self._taken: Array | None = None  # joints of the last measurement

    def receive_joints(self, stamp: float, position: Array) -> None:
        """Take in a joint state of shape (n,), measured at ``stamp`` [s]."""
        self._put(self._joints, stamp, position)

    def receive_target(self, stamp: float, position: Array, quaternion: Array | None = None) -> None:
        """Take in the target's position (3,) [m] and quaternion (w, x, y, z), measured at ``stamp`` [s]."""
        self._put(
            self._targets, stamp, np.concatenate([position, np.full(4, np.nan) if quaternion is None else quaternion])
        )

    def _put(self, queue: deque[tuple[float, Array]], stamp: float, values: Array) -> None:
        if queue and stamp < queue[-1][0]:
            queue.clear()  # the clock was set back
            self._looked = -np.inf
        queue.append((stamp, values))
        while stamp - queue[0][0] > 2.0 * self.averaging_time + self._lag:
            queue.popleft()

    @property
    def has_target(self) -> bool:
        """Whether a measurement of the target has come."""
        return bool(self._targets)

    @property
    def ready(self) -> bool:
        """Whether the last averaging time is covered by joint states and by measurements of the target."""
        return self._problem(*self._window()) is None

    @property
    def advanced(self) -> bool:
        """Whether joint states and measurements reach further than where a new place was last looked for."""
        return self._end > self._looked

    @property
    def _end(self) -> float:
        """Return the newest stamp that both have reached [s]."""
        return min(queue[-1][0] if queue else -np.inf for queue in (self._joints, self._targets))

    def _window(self) -> tuple[Array, Array]:
        """Return joints (N, n) and targets (M, 7) of the last averaging time that both cover."""
        end = self._end
        begin = end - self.averaging_time - 1e-6  # stamps in seconds since 1970 are rounded to 2e-7 s
        joints, targets = (
            [
                values
                for stamp, values in takewhile(lambda entry: entry[0] >= begin, reversed(queue))  # the newest first
                if stamp <= end
            ]
            for queue in (self._joints, self._targets)
        )
        return np.array(joints).reshape(-1, len(self.joint_names)), np.array(targets).reshape(-1, 7)

    def _problem(self, joints: Array, targets: Array) -> str | None:
        """Return what is missing, or None."""
        for queue, what in ((self._joints, 'joint states'), (self._targets, 'measurements of the target')):
            if not queue:
                return f'no {what} have come'
            if queue[-1][0] - queue[0][0] < self.averaging_time:
                return f'the {what} cover {queue[-1][0] - queue[0][0]:.2f} s of {self.averaging_time:g} s'
        apart = abs(self._joints[-1][0] - self._targets[-1][0])
        if apart > self._lag:
            return (
                f'the newest joint state and the newest measurement of the target are {apart:.2f} s apart '
                f'(largest_lag: {self._lag:g} s)'
            )
        if not len(joints):
            return 'no joint state came while the target was measured'
        if len(targets) < _FEWEST:
            return f'{len(targets)} measurements of the target came in time; at least {_FEWEST} are needed'
        return None

    def measure(self, config: PairingConfig) -> tuple[MeasuredPoints, float]:
        """Return the mean over the last averaging time, and the scatter of the target about it [m].

        Raises a CalibrationError if the arm moves, or joint states or measurements of the target are missing or not
        finite.
        """
        found = self._mean(config)
        self._taken = found[0].q[0]
        return found

    def measure_new_place(self, config: PairingConfig) -> tuple[MeasuredPoints, float] | None:
        """Return what ``measure`` does if the arm rests where it was not measured last, or None.

        Asked after whatever came, joints or target, it misses no rest, in whatever order the two arrive.
        """
        if not self.advanced:
            return None
        self._looked, taken = self._end, self._taken
        try:
            found = self._mean(config)
        except CalibrationError:  # it moves, or too little has come
            return None
        here = found[0].q[0]
        if taken is not None and np.abs(here - taken).max() <= _AGAIN * config.rest_tolerance:
            return None
        self._taken = here
        return found

    def _mean(self, config: PairingConfig) -> tuple[MeasuredPoints, float]:
        """Return the last averaging time's mean and scatter, or raise a CalibrationError."""
        joints, targets = self._window()
        problem = self._problem(joints, targets)
        if problem is not None:
            raise CalibrationError(problem)
        moved = np.ptp(joints, axis=0)
        if not (moved <= config.rest_tolerance).all():
            k = int(np.argmax(moved))
            raise CalibrationError(
                f"the arm moves: joint '{self.joint_names[k]}' by {moved[k]:.3g} within {self.averaging_time:g} s "
                f'(allowed: {config.rest_tolerance:g}); wait until it rests'
            )
        turned = np.isfinite(targets[:, 3:]).all(axis=1)
        scatter = float(np.sqrt(np.mean(np.var(targets[:, :3], axis=0))))
        point = MeasuredPoints(
            joint_names=self.joint_names,
            q=joints.mean(axis=0)[None],
            position=targets[:, :3].mean(axis=0)[None],
            orientation=mean_quaternion(targets[turned, 3:])[None] if turned.all() else None,
            sets=(config.set,),
            points=(config.point,),
        )
        return point, scatter
