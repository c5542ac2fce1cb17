# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Predicted and measured torque while the arm moves; their difference shows contact."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.identification.predictor import TorquePredictor


@dataclass(frozen=True, slots=True, kw_only=True)
class TorqueResidual:
    """Torques at one instant, each of shape (n,) [N m].

    Attributes
    ----------
    predicted : ndarray
    measured : ndarray
        Passed through the same first-order low-pass as the motion; in the coordinates of the description.
    external : ndarray
        measured - predicted: what acts on the arm from outside, or what the model lacks.
    velocity : ndarray
        Of the prediction [rad/s]; at standstill friction is indeterminate.
    """

    predicted: Array
    measured: Array
    external: Array
    velocity: Array


@dataclass(slots=True)
class TorqueMonitor:
    """Predicts the torque of each joint state as it comes.

    Position, velocity, acceleration (the slope of the filtered velocity) and torque pass the same
    two first-order low-passes, so that they are delayed alike.

    Parameters
    ----------
    predictor : TorquePredictor
    cutoff : float
        Of each low-pass [Hz].
    torque : callable, optional
        The same torques in another way, from positions, velocities and accelerations of shape (1, n): generated code.
    """

    predictor: TorquePredictor
    cutoff: float = 10.0
    torque: Callable[[Array, Array, Array], Array] | None = None
    _time: float | None = None
    _state: Array = field(default_factory=lambda: np.zeros(0))
    _count: int = 0

    def update(self, time: float, position: Array, velocity: Array, torque: Array) -> TorqueResidual | None:
        """Return the torques after one more joint state, or None until the filters have settled.

        Parameters
        ----------
        time : float
            Stamp [s].
        position, velocity, torque : ndarray, shape (n,)
            [rad, rad/s, N m]
        """
        row = self.predictor.setup.state(position, velocity, torque)
        step = 0.0 if self._time is None else time - self._time
        if self._time is None or not 0.0 < step < 0.5:
            self._time, self._count = time, 0
            self._state = np.stack([row, row])
            return None
        share = 1.0 - np.exp(-2.0 * np.pi * self.cutoff * step)
        before = self._state[1, 1].copy()
        self._state[0] += share * (row - self._state[0])
        self._state[1] += share * (self._state[0] - self._state[1])
        self._time = time
        self._count += 1
        if self._count * step < 1.0 / self.cutoff:
            return None
        q, dq, tau = self._state[1]
        ddq = (dq - before) / step
        predicted = (self.torque or self.predictor.torque)(q[None], dq[None], ddq[None])[0]
        return TorqueResidual(predicted=predicted, measured=tau.copy(), external=tau - predicted, velocity=dq.copy())
