# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Friction of a joint at rest, from the direction of its last motion.

A joint that comes to rest keeps a part of its friction torque against the direction of the last motion, in elastic
gears and seals. The model's sign(v) is noise there. With d(t) the direction in which the joint last moved faster than
v0, the torque at rest is taken as

    tau_f = rho d(t)    where |v| < v0,

one coefficient rho per joint. It is used to predict recorded torque, not as feed-forward.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, BoolArray, frozen_array
from robotid_ros.errors import IdentificationError


def last_direction(dq: Array, speed: Array, runs: Sequence[tuple[int, int]]) -> Array:
    """Return d(t): 1 or -1 where a joint rests after motion in that direction, 0 where it moves or has not moved yet.

    Parameters
    ----------
    dq : ndarray, shape (N, n)
        [rad/s]
    speed : ndarray, shape (n,)
        v0, below which a joint rests [rad/s].
    runs : sequence of (start, stop)

    Returns
    -------
    ndarray, shape (N, n)
    """
    moving = np.abs(dq) >= speed
    result = np.zeros_like(dq)
    for start, stop in runs:
        rows = slice(start, stop)
        index = np.arange(stop - start)[:, None] * np.ones(dq.shape[1], dtype=np.int64)
        last = np.maximum.accumulate(np.where(moving[rows], index, -1), axis=0)
        direction = np.take_along_axis(np.sign(dq[rows]), np.maximum(last, 0), axis=0)
        result[rows] = np.where((last >= 0) & ~moving[rows], direction, 0.0)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class RestFriction:
    """Friction at rest of each joint.

    Attributes
    ----------
    speed : ndarray, shape (n,)
        v0 [rad/s or m/s]; 0 for a joint whose friction at rest is that of its friction model.
    torque : ndarray, shape (n,)
        rho [N m or N].
    """

    speed: Array
    torque: Array

    def __post_init__(self) -> None:
        n = len(np.atleast_1d(self.speed))
        for name in ('speed', 'torque'):
            object.__setattr__(self, name, frozen_array(getattr(self, name), name, (n,), IdentificationError))

    def resting(self, dq: Array) -> BoolArray:
        """Return which samples are at rest, shape (N, n)."""
        return np.asarray(np.abs(dq) < self.speed)

    def friction_speed(self, dq: Array) -> Array:
        """Return the speed for the friction model, shape (N, n): exactly zero at rest."""
        return np.where(self.resting(dq), 0.0, dq)

    def rest_torque(self, dq: Array, runs: Sequence[tuple[int, int]]) -> Array:
        """Return the torque at rest, shape (N, n) [N m]; zero where the joint moves."""
        return last_direction(dq, self.speed, runs) * self.torque
