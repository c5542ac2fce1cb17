# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Replay of recorded motion in MuJoCo: does the simulated arm move as the real one did?

Driven by the recorded torque, an arm has no feedback, and any error grows with the square of time. The
simulation therefore starts anew from the recorded state at the beginning of each window. Driven through a
servo model, it follows the command for as long as the recording lasts.
"""

from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.errors import DataError
from robotid_ros.simulation.mjcf import load_mujoco
from robotid_ros.simulation.servo import Servo

# Simulation steps at most this long [s]: a tenth of the fastest time constant of usual joint servos, 10 ms.
_STEP = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the real arm did: N samples of n joints, filtered alike.

    Attributes
    ----------
    joint_names : tuple of str
    rate : float
        [Hz]
    q, dq, tau : ndarray, shape (N, n)
        [rad, rad/s, N m; or m, m/s, N]
    trajectory : ndarray of int, shape (N,)
        Runs, between which the arm is not simulated.
    """

    joint_names: tuple[str, ...]
    rate: float
    q: Array
    dq: Array
    tau: Array
    trajectory: IntArray


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


def windows_of(recorded: Recorded, seconds: float) -> list[slice]:
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


def replayed_torque(mjcf: str, recorded: Recorded, windows: list[slice]) -> Array:
    """Return the positions of an arm that gets the recorded torque, from the recorded state on in each window.

    Parameters
    ----------
    mjcf : str
        The arm; its joints have the recorded ones' names.
    recorded : Recorded
    windows : list of slice

    Returns
    -------
    ndarray, shape (N, n)
        NaN outside of the windows.

    Raises
    ------
    MissingDependencyError
        Without MuJoCo.
    """
    scene = _Scene(mjcf, recorded)
    result = np.full_like(recorded.q, np.nan)
    for window in windows:
        scene.start(recorded.q[window.start], recorded.dq[window.start])
        result[window.start] = recorded.q[window.start]
        for row in range(window.start, window.stop - 1):
            for share in scene.shares:
                scene.drive((1.0 - share) * recorded.tau[row] + share * recorded.tau[row + 1])
            result[row + 1] = scene.position
    return result


def replayed_command(mjcf: str, recorded: Recorded, command: Array, servo: Servo, windows: list[slice]) -> Array:
    """Return the positions of an arm whose servos follow a command, from the recorded state on in each window.

    Parameters
    ----------
    mjcf, recorded, windows
        As in :func:`replayed_torque`.
    command : ndarray, shape (N, n)
        Commanded positions at the recorded instants [rad or m].
    servo : Servo

    Returns
    -------
    ndarray, shape (N, n)
        NaN outside of the windows.
    """
    scene = _Scene(mjcf, recorded)
    result = np.full_like(recorded.q, np.nan)
    wanted, speed = servo.delayed(command, recorded.rate)
    for window in windows:
        scene.start(recorded.q[window.start], recorded.dq[window.start])
        result[window.start] = recorded.q[window.start]
        for row in range(window.start, window.stop - 1):
            for share in scene.shares:
                q, dq = ((1.0 - share) * x[row] + share * x[row + 1] for x in (wanted, speed))
                scene.drive(servo.torque(q - scene.position, dq - scene.velocity, scene.bias))
            result[row + 1] = scene.position
    return result


def motion_error(recorded: Recorded, simulated: Array, windows: list[slice]) -> MotionError:
    """Return the error of a replay, see :class:`MotionError`; the start of each window, which is given, not counted."""
    gaps = np.concatenate([simulated[w][1:] - recorded.q[w][1:] for w in windows])
    moves = np.concatenate([recorded.q[w][1:] - recorded.q[w][0] for w in windows])
    gap, move = np.linalg.norm(gaps, axis=0), np.linalg.norm(moves, axis=0)
    return MotionError(
        rms=np.sqrt(np.mean(gaps**2, axis=0)),
        relative=100.0 * gap / np.maximum(move, np.finfo(float).tiny),
        relative_total=float(100.0 * np.linalg.norm(gap) / np.linalg.norm(move)),
    )


class _Scene:
    """An arm in MuJoCo, stepped at a fraction of the recording's sampling time."""

    def __init__(self, mjcf: str, recorded: Recorded) -> None:
        mujoco = self._mujoco = load_mujoco('replay a recording')
        self.model = mujoco.MjModel.from_xml_string(mjcf)
        steps = int(np.ceil(1.0 / (recorded.rate * _STEP)))
        self.model.opt.timestep = 1.0 / (recorded.rate * steps)
        self.model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
        self.data = mujoco.MjData(self.model)
        self.rows = [int(self.model.joint(name).dofadr[0]) for name in recorded.joint_names]
        self.shares = (np.arange(steps) + 0.5) / steps

    def start(self, q: Array, dq: Array) -> None:
        self._mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[self.rows], self.data.qvel[self.rows] = q, dq
        self._mujoco.mj_forward(self.model, self.data)

    def drive(self, torque: Array) -> None:
        self.data.qfrc_applied[self.rows] = torque
        self._mujoco.mj_step(self.model, self.data)

    @property
    def position(self) -> Array:
        return np.array(self.data.qpos[self.rows])

    @property
    def velocity(self) -> Array:
        return np.array(self.data.qvel[self.rows])

    @property
    def bias(self) -> Array:
        """Gravity, Coriolis and centrifugal torques."""
        return np.array(self.data.qfrc_bias[self.rows])
