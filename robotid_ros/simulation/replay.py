# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The replay of a recording in the simulator: motion errors of each joint.

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
from robotid_ros.simulation.servo import Servo

# Simulation steps at most this long [s]: a tenth of the fastest time constant of usual joint servos, 10 ms.
_STEP = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class MotionError:
    """How far a simulated motion is from the recorded one; arrays of shape (n,)."""

    rms: Array  # of the difference of positions [rad or m]
    relative: Array  # 100 |q_sim - q| / |q - q_start| over the windows' samples [%]
    relative_total: float  # the same over all joints stacked [%]


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
    DataError
        If the simulated arm flies apart.
    """
    mujoco = load_mujoco('replay a recording')
    mujoco.set_mju_user_warning(lambda _: None)  # it would print each, and write a log file beside the user's
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
        if any(warning.number for warning in data.warning) or not np.isfinite(result[window]).all():
            raise DataError(
                'the simulated arm flies apart under the recorded torque: it is none that this arm can have, or the '
                'recording is damaged'
            )
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
