# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The periodic motion that the arm is commanded to repeat."""

from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.messages import CdrReader
from robotid_ros.data.runs import NoUsablePeriodError
from robotid_ros.data.strokes import is_friction_sweep
from robotid_ros.errors import DataError
from robotid_ros.signals.averaging import travel


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodicReference:
    """One period of a motion that repeats itself.

    ``travel``, shape (S,), is the motion of the joints in each of S equal parts of the period, see
    :func:`~robotid_ros.signals.averaging.travel` [rad]. ``points`` are times from the start, shape (P,) [s], and
    positions, shape (P, n) [rad or m].
    """

    joints: tuple[str, ...]
    period: float  # [s]
    start: int  # stamp of the start of the first period [ns]
    sweep: bool = False  # whether it is a friction sweep, which is cut into strokes in place of being averaged
    purpose: str = field(default='', compare=False)  # of the run, from the frame of the message's header: 'validation'
    travel: Array | None = field(default=None, compare=False)
    points: tuple[Array, Array] | None = field(default=None, compare=False)

    def require_followed(self, time: Array, position: Array) -> None:
        """Refuse positions of one period, (N, n) or more columns, that are not the reference's, but for a lag."""
        if self.points is None:
            return
        for j, joint in enumerate(self.joints):
            asked = np.interp(time, self.points[0], self.points[1][:, j], period=self.period)
            apart = float(np.std(asked - position[:, j]))
            if apart > 0.5 * max(float(np.std(asked)), 1e-3):
                raise NoUsablePeriodError(f"joint '{joint}' is {apart:.3g} (rms) away from it", name=joint, found=apart)


def decode_reference(message: bytes) -> PeriodicReference | None:
    """Return the reference in a serialised ``trajectory_msgs/msg/JointTrajectory``, None where it has no points.

    The message holds one period; its first point begins at the stamp of the header. Raises a DataError if it cannot be
    decoded, or there are fewer than three points, or their times do not increase.
    """
    for aligned_empty in (False, True):
        try:
            reader = CdrReader(message, aligned_empty)
            start = reader.time()
            purpose = reader.string()
            joints = reader.strings()
            times, position, velocity = [], [], []
            for _ in range(reader.length(len(reader.data) // 24)):
                position.append(reader.doubles())
                velocity.append(reader.doubles())
                reader.skip_doubles()
                reader.skip_doubles()
                times.append(reader.time())
            if not reader.ended():
                raise ValueError('the message does not end where it should')
            if not times:
                return None
            if any(len(row) != len(joints) for row in position) or any(
                len(row) not in (0, len(joints)) for row in velocity
            ):
                raise ValueError('a point has not one value per joint')
            rates = np.array(velocity) if all(velocity) else None
            place = np.array(times) * 1e-9
            period = reference_period(place, np.array(position), rates)
            ways = travel((place - place[0]) / period, np.array(position))
            sweep = rates is not None and is_friction_sweep(rates)
            return PeriodicReference(
                joints=joints,
                period=period,
                start=start + times[0],
                sweep=sweep,
                purpose=purpose,
                travel=ways,
                points=(place - place[0], np.array(position)),
            )
        except DataError:
            raise
        except ValueError as cause:  # UnicodeDecodeError is one, too
            reason = cause
    raise DataError(f'reference: expected a serialised JointTrajectory, got {len(message)} other bytes') from reason


def reference_period(times: Array, position: Array, velocity: Array | None) -> float:
    """Return the period of one sampled period, whether or not its last point repeats the first.

    Where the last point equals the first, the period ends with it; where one more step along its velocity leads to the
    first point, it ends one step later. Times have the shape (N,) [s], positions and velocities (N, n).
    """
    if len(times) < 3 or not (np.diff(times) > 0.0).all():
        message = f'reference: expected at least 3 points with increasing times, got {len(times)}'
        raise DataError(message, expected=3, found=len(times))
    step = float(times[1] - times[0])
    last = position[-1] - position[-2] if velocity is None else velocity[-1] * step
    closed = float(np.abs(position[-1] - position[0]).max())
    one_more = float(np.abs(position[-1] + last - position[0]).max())
    span = float(times[-1] - times[0])
    return span if closed <= one_more else span + step
