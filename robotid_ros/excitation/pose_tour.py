# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A tour of poses: straight from one to the next, with a rest at each, for measurements at rest."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.reference import Chain, Move, Reference, ReferenceCheck, Rest, move_duration
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseTourConfig(Settings):
    """Settings of a tour of poses."""

    error = ExcitationError

    poses: str = setting('', 'CSV file of the poses to visit, columns position/<joint>; "robotid calibrate" writes one')
    dwell: float = setting(3.0, 'Rest at each pose', unit='s', range=(0.1, 600.0))


@dataclass(frozen=True, kw_only=True)
class PoseTour:
    """A reference that visits poses and rests at each."""

    reference: Chain  # begins and ends at rest
    poses: Array  # shape (K, n): those that are visited [rad or m]
    skipped: tuple[str, ...]  # for each pose that is not visited, the limit that the way to it from the last one breaks


def pose_tour(start: Array, poses: Array, check: ReferenceCheck, *, velocity: float, dwell: float) -> PoseTour:
    """Plan a tour: straight, each time, to the nearest pose left whose way breaks no limit.

    A pose that cannot be reached from one place waits for another. The start is where the arm stands, shape (n,), the
    poses have the shape (K, n) [rad or m]. No joint moves faster than ``velocity``; the arm rests ``dwell`` [s] at each
    pose. Refused where no pose can be reached.
    """
    parts: list[Reference] = []
    visited: list[Array] = []
    skipped: list[str] = []
    at, left = start, dict(enumerate(poses, start=1))
    while left:
        ways = [(move_duration(at, goal, check.limits, velocity), k) for k, goal in left.items()]
        skipped = []
        for duration, k in sorted(ways):
            way = Move(start=at, goal=left[k], duration=duration)
            try:
                check.require(way, f'the straight way to pose {k}')
            except ExcitationError as cause:
                skipped.append(str(cause))
                continue
            at = left.pop(k)
            parts += [way, Rest(position=at, duration=dwell)]
            visited.append(at)
            break
        else:
            break
    if not parts:
        raise ExcitationError('no pose can be reached: ' + (skipped[0] if skipped else 'the file has none'))
    return PoseTour(reference=Chain(parts=tuple(parts)), poses=np.array(visited), skipped=tuple(skipped))
