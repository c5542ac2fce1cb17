# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The replay of a recording in the simulator, and the servo that drives it: motion errors of each joint.

Driven by the recorded torque, an arm has no feedback, and any error grows with the square of time. The
simulation therefore starts anew from the recorded state at the beginning of each window. Driven through a
servo model, it follows the command for as long as the recording lasts.
"""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.errors import DataError
from robotid_ros.simulation.mjcf import load_mujoco

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


def identify_servo(recorded: Dataset, command: Array, torque: Array, bias: Array) -> Servo:
    """Return the servos that explain the torque best.

    For each delay, gains are the least-squares solution joint by joint; the delay with the smallest
    residual of all joints, each relative to its torque, is refined by a parabola.

    Parameters
    ----------
    recorded : Dataset
        Measured motion; the first LONGEST_DELAY of each run is left out.
    command : ndarray, shape (N, n)
        Commanded positions [rad].
    torque, bias : ndarray, shape (N, n)
        Of the motors, measured or of an identified model, and of that model's gravity, Coriolis and centrifugal
        forces [N m].

    Raises
    ------
    DataError
        If there are too few samples, or the command does not differ from the position.
    """
    skip = int(np.ceil(LONGEST_DELAY * recorded.rate)) + 1
    kept = np.ones(len(recorded), dtype=bool)
    for run in np.unique(recorded.trajectory):
        kept[np.flatnonzero(recorded.trajectory == run)[:skip]] = False
    if kept.sum() < 10 * skip:
        raise DataError(f'a servo cannot be found in {kept.sum()} samples; give a recording of a few seconds of motion')
    if np.abs(command - recorded.q).max() < 1e-9:
        raise DataError('the command equals the measured position; give what was commanded, not what was measured')

    def fit(delay: float) -> tuple[Array, Array]:
        """Return the gains (n, 4), and the part of the torque's squares (n,) that they leave."""
        wanted, speed = _delayed(command, delay, recorded.rate)
        columns = np.stack([wanted - recorded.q, speed - recorded.dq, bias, np.ones_like(bias)], axis=2)[kept]
        size = np.maximum(np.linalg.norm(columns, axis=0), np.finfo(float).tiny)
        rows = (columns / size).transpose(1, 0, 2)
        solved = [np.linalg.lstsq(own, given, rcond=1e-10)[0] for own, given in zip(rows, torque[kept].T, strict=True)]
        left = torque[kept].T - np.einsum('nNk,nk->nN', rows, solved)
        return solved / size, np.sum(left**2, axis=1) / np.sum(torque[kept] ** 2, axis=0)

    delays = np.arange(0.0, LONGEST_DELAY, 0.5 / recorded.rate)
    costs = np.array([fit(delay)[1].sum() for delay in delays])
    best = int(np.argmin(costs))
    delay = float(delays[best])
    if 0 < best < len(delays) - 1:
        before, at, after = costs[best - 1 : best + 2]
        delay += float(0.5 * (before - after) / (before - 2.0 * at + after) * (delays[1] - delays[0]))
    gains, left = fit(delay)
    stiffness, damping, share, offset = gains.T
    match = 100.0 * (1.0 - np.sqrt(left))
    return Servo(stiffness=stiffness, damping=damping, share=share, offset=offset, delay=delay, match=match)


def _delayed(command: Array, delay: float, rate: float) -> tuple[Array, Array]:
    time = np.arange(len(command)) / rate
    speed = np.gradient(command, 1.0 / rate, axis=0)

    def late(values: Array) -> Array:
        return np.stack([np.interp(time - delay, time, column) for column in values.T], axis=1)

    return late(command), late(speed)


# Simulation steps at most this long [s]: a tenth of the fastest time constant of usual joint servos, 10 ms.
_STEP = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionError:
    """How far a simulated motion is from the recorded one.

    Attributes
    ----------
    rms : ndarray, shape (n,)
        Root mean square of the difference of positions [rad or m].
    relative : ndarray, shape (n,)
        100 |q_sim - q| / |q - q_start| over the windows' samples [%].
    relative_total : float
        The same over all joints stacked [%].
    """

    rms: Array
    relative: Array
    relative_total: float


def windows_of(recorded: Dataset, seconds: float) -> list[slice]:
    """Return the windows: consecutive, within runs, of this length.

    Raises
    ------
    DataError
        If a window has fewer than two steps, or no run is as long.
    """
    if not 2.0 <= seconds * recorded.rate < np.inf:
        raise DataError(f'windows: expected at least two steps, {2.0 / recorded.rate:g} s, got {seconds:g} s')
    length = round(seconds * recorded.rate)
    windows = []
    for run in np.unique(recorded.trajectory):
        rows = np.flatnonzero(recorded.trajectory == run)
        windows += [slice(k, k + length + 1) for k in range(rows[0], rows[-1] - length + 1, length)]
    if not windows:
        raise DataError(f'no run of the recording lasts {seconds:g} s; give shorter windows')
    return windows


def replayed(
    mjcf: str,
    recorded: Dataset,
    windows: list[slice],
    servo: Servo | None = None,
    command: Array | None = None,
    extra: Array | None = None,
) -> Array:
    """Return the positions of an arm that gets the recorded torque, from the recorded state on in each window.

    Parameters
    ----------
    mjcf : str
        The arm; its joints have the recorded ones' names.
    recorded : Dataset
    windows : list of slice
    servo : Servo, optional
        Drives the arm along a command, in place of the recorded torque.
    command : ndarray, shape (N, n), optional
        Commanded positions at the recorded instants, for the servo [rad or m].
    extra : ndarray, shape (N, n), optional
        Torque on top of that [N m or N].

    Returns
    -------
    ndarray, shape (N, n)
        NaN outside of the windows.

    Raises
    ------
    MissingDependencyError
        Without MuJoCo.
    """
    mujoco = load_mujoco('replay a recording')
    model = mujoco.MjModel.from_xml_string(mjcf)
    steps = int(np.ceil(1.0 / (recorded.rate * _STEP)))
    model.opt.timestep = 1.0 / (recorded.rate * steps)
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = mujoco.MjData(model)
    joints = [int(model.joint(name).dofadr[0]) for name in recorded.joint_names]
    signals = [recorded.tau] if servo is None or command is None else [*servo.delayed(command, recorded.rate)]
    signals.append(np.zeros_like(recorded.q) if extra is None else extra)
    result = np.full_like(recorded.q, np.nan)
    for window in windows:
        mujoco.mj_resetData(model, data)
        data.qpos[joints], data.qvel[joints] = recorded.q[window.start], recorded.dq[window.start]
        mujoco.mj_forward(model, data)
        result[window.start] = recorded.q[window.start]
        for row in range(window.start, window.stop - 1):
            for share in (np.arange(steps) + 0.5) / steps:
                torque, *speed, more = ((1.0 - share) * x[row] + share * x[row + 1] for x in signals)
                if servo is not None:
                    errors = torque - data.qpos[joints], speed[0] - data.qvel[joints]
                    torque = servo.torque(*errors, data.qfrc_bias[joints])
                data.qfrc_applied[joints] = torque + more
                mujoco.mj_step(model, data)
            result[row + 1] = data.qpos[joints]
    return result


def motion_error(recorded: Dataset, simulated: Array, windows: list[slice]) -> MotionError:
    """Return the error of a replay, see :class:`MotionError`; the start of each window, which is given, not counted."""
    gaps = np.concatenate([simulated[w][1:] - recorded.q[w][1:] for w in windows])
    moves = np.concatenate([recorded.q[w][1:] - recorded.q[w][0] for w in windows])
    gap, move = np.linalg.norm(gaps, axis=0), np.linalg.norm(moves, axis=0)
    return MotionError(
        rms=np.sqrt(np.mean(gaps**2, axis=0)),
        relative=100.0 * gap / np.maximum(move, np.finfo(float).tiny),
        relative_total=float(100.0 * np.linalg.norm(gap) / np.linalg.norm(move)),
    )
