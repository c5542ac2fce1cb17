# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Contact of a moving arm: a torque residual beyond what its own noise and friction at standstill explain."""

from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.friction.model import FrictionModel
from robotid_ros.friction.terms import BREAKAWAY_SPEED

# The spread of the residual is that of about the last minute without contact [s].
_MEMORY = 60.0
# A contact ends below this part of the threshold, so that it does not flicker at it.
_RELEASE = 0.5
# Below this speed [rad/s or m/s] a joint may stick; the smooth sign of identified models is 0.01 to 0.1 wide.
_SLOW = 0.05


def standstill_friction(friction: FrictionModel, parameters: Array) -> Array:
    """Return how much friction a sticking joint may have, shape (n,) [N m]: the larger one of both directions."""
    n = len(parameters)
    speed = np.stack([np.full(n, sign * size) for size in (0.5 * BREAKAWAY_SPEED, _SLOW) for sign in (-1.0, 1.0)])
    still = np.zeros_like(speed)
    return np.asarray(np.abs(friction.torque(speed, parameters, still, still)).max(axis=0))


@dataclass(slots=True)
class ContactDetector:
    """Tells contact from noise, with a stated rate of false alarms.

    A Gaussian residual of n joints with standard deviation s, behind two first-order low-passes of the
    frequency f, exceeds the threshold

        u = s sqrt(2 ln(2 n f T / a))

    a times in the time T (S. O. Rice, Bell System Technical Journal 23 (1944), eq. 3.3-11: a process
    crosses zero upwards f times a second here). s follows the residual outside of contacts. A joint
    slower than 0.05 rad/s may stick; its threshold is larger by the friction that it may then have, for
    1/f longer: so long the filters still mix both directions.

    Parameters
    ----------
    spread : ndarray, shape (n,)
        First standard deviation, for example the residual of the identification [N m].
    bandwidth : float
        f [Hz].
    friction : ndarray, shape (n,)
        See :func:`standstill_friction` [N m].
    alarms_per_hour : float
        a / T.
    """

    spread: Array
    bandwidth: float
    friction: Array
    alarms_per_hour: float = 1.0
    _variance: Array = field(init=False)
    _touched: BoolArray = field(init=False)
    _slow_until: Array = field(init=False)
    _time: float | None = None

    def __post_init__(self) -> None:
        self._variance = np.asarray(self.spread, dtype=float) ** 2
        self._touched = np.zeros(len(self._variance), dtype=bool)
        self._slow_until = np.full(len(self._variance), -np.inf)

    @property
    def threshold(self) -> Array:
        """Threshold of joints in motion, shape (n,) [N m]."""
        crossings = 2.0 * len(self._variance) * self.bandwidth * 3600.0
        return np.asarray(np.sqrt(2.0 * np.log(max(crossings / self.alarms_per_hour, np.e)) * self._variance))

    @property
    def touched(self) -> BoolArray:
        """Which joints felt a contact at the last update."""
        return self._touched

    def update(self, time: float, external: Array, velocity: Array) -> BoolArray:
        """Return which joints feel a contact at a stamp [s], shape (n,) of bool.

        ``external`` is the measured less the predicted torque [N m], of shape (n,) as the velocities are [rad/s].
        """
        size = np.abs(external)
        self._slow_until = np.where(np.abs(velocity) < _SLOW, time + 1.0 / self.bandwidth, self._slow_until)
        slow = time < self._slow_until
        limit = self.threshold + slow * self.friction
        self._touched = size > np.where(self._touched, _RELEASE, 1.0) * limit
        step = 0.0 if self._time is None else time - self._time
        self._time = time
        if 0.0 < step < 1.0 and not self._touched.any():
            share = 1.0 - np.exp(-step / _MEMORY)
            self._variance = np.where(slow, self._variance, self._variance + share * (size**2 - self._variance))
        return self._touched.copy()
