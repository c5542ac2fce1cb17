# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Joint servos: proportional and derivative gain, delay, and the model torque they add, found in recorded data."""

from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.errors import DataError

# Longest delay that is looked for [s]: position interfaces of arms take 2 to 50 ms.
LONGEST_DELAY = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Servo:
    """Servos of n joints.

        tau = kp (q_c(t - d) - q) + kd (dq_c(t - d) - dq) + share h(q, dq) + offset

    with h the torque of gravity, Coriolis and centrifugal forces, of which most controllers add a share.

    Attributes
    ----------
    stiffness, damping : ndarray, shape (n,)
        kp [N m/rad] and kd [N m s/rad].
    share : ndarray, shape (n,)
        0 without a model, 1 with a perfect one.
    offset : ndarray, shape (n,)
        [N m]
    delay : float
        d, one for all joints [s].
    match : ndarray, shape (n,)
        100 (1 - |tau - tau_servo| / |tau|): how well the servo explains the torque it was found in [%].
    """

    stiffness: Array
    damping: Array
    share: Array
    offset: Array
    delay: float
    match: Array

    def torque(self, error: Array, rate_error: Array, bias: Array) -> Array:
        """Return the torque for errors of position and velocity [rad, rad/s] and the model's torque h [N m]."""
        return self.stiffness * error + self.damping * rate_error + self.share * bias + self.offset

    def delayed(self, command: Array, rate: float) -> tuple[Array, Array]:
        """Return the command as it arrives, and its velocity; shapes (N, n), sampled at ``rate`` [Hz]."""
        return _delayed(command, self.delay, rate)


def identify_servo(
    command: Array, q: Array, dq: Array, torque: Array, bias: Array, rate: float, trajectory: IntArray
) -> Servo:
    """Return the servos that explain the torque best.

    For each delay, gains are the least-squares solution joint by joint; the delay with the smallest
    residual of all joints, each relative to its torque, is refined by a parabola.

    Parameters
    ----------
    command, q, dq : ndarray, shape (N, n)
        Commanded and measured positions, measured velocities [rad, rad/s], sampled at ``rate`` [Hz].
    torque, bias : ndarray, shape (N, n)
        Of the motors, measured or of an identified model, and of that model's gravity, Coriolis and centrifugal
        forces [N m].
    trajectory : ndarray of int, shape (N,)
        Runs; the first LONGEST_DELAY of each is left out.

    Raises
    ------
    DataError
        If there are too few samples, or the command does not differ from the position.
    """
    skip = int(np.ceil(LONGEST_DELAY * rate)) + 1
    first = np.concatenate([np.flatnonzero(trajectory == run)[:skip] for run in np.unique(trajectory)])
    kept = np.ones(len(q), dtype=bool)
    kept[first] = False
    if kept.sum() < 10 * skip:
        raise DataError(f'a servo cannot be found in {kept.sum()} samples; give a recording of a few seconds of motion')
    if np.abs(command - q).max() < 1e-9:
        raise DataError('the command equals the measured position; give what was commanded, not what was measured')
    delays = np.arange(0.0, LONGEST_DELAY, 0.5 / rate)
    costs = np.array([_fit(command, q, dq, torque, bias, rate, kept, delay)[1] for delay in delays])
    best = int(np.argmin(costs))
    delay = delays[best]
    if 0 < best < len(delays) - 1:
        before, at, after = costs[best - 1 : best + 2]
        delay += 0.5 * (before - after) / (before - 2.0 * at + after) * (delays[1] - delays[0])
    gains, _ = _fit(command, q, dq, torque, bias, rate, kept, delay)
    stiffness, damping, share, offset = gains.T
    servo = Servo(
        stiffness=stiffness, damping=damping, share=share, offset=offset, delay=float(delay), match=np.zeros(len(gains))
    )
    wanted, speed = servo.delayed(command, rate)
    rest = (torque - servo.torque(wanted - q, speed - dq, bias))[kept]
    return replace(servo, match=100.0 * (1.0 - np.linalg.norm(rest, axis=0) / np.linalg.norm(torque[kept], axis=0)))


def _fit(
    command: Array, q: Array, dq: Array, torque: Array, bias: Array, rate: float, kept: Array, delay: float
) -> tuple[Array, float]:
    wanted, speed = _delayed(command, delay, rate)
    gains, cost = np.empty((q.shape[1], 4)), 0.0
    for j in range(q.shape[1]):
        rows = np.stack([wanted[:, j] - q[:, j], speed[:, j] - dq[:, j], bias[:, j], np.ones(len(q))], axis=1)[kept]
        size = np.maximum(np.linalg.norm(rows, axis=0), np.finfo(float).tiny)
        solved = np.linalg.lstsq(rows / size, torque[kept, j], rcond=1e-10)[0]
        gains[j] = solved / size
        cost += float(np.sum((torque[kept, j] - rows @ gains[j]) ** 2) / np.sum(torque[kept, j] ** 2))
    return gains, cost


def _delayed(command: Array, delay: float, rate: float) -> tuple[Array, Array]:
    time = np.arange(len(command)) / rate
    speed = np.gradient(command, 1.0 / rate, axis=0)

    def late(values: Array) -> Array:
        return np.stack([np.interp(time - delay, time, column) for column in values.T], axis=1)

    return late(command), late(speed)
