# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The replay gate: the identified arm in the simulator beside the described one, on a recording."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data import Dataset
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import DataError
from robotid_ros.export.arm import identified_arm
from robotid_ros.export.mjcf import mjcf_of
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.simulation.replay import (
    MotionError,
    Recorded,
    motion_error,
    replayed_command,
    replayed_torque,
    windows_of,
)
from robotid_ros.simulation.servo import Servo, identify_servo

__all__ = ['Replayed', 'replay']

# Driven by torque, errors grow with time squared: long enough for a motion to be seen above the noise of encoders.
TORQUE_WINDOW = 0.25
# Driven by servos, a few of their time constants.
SERVO_WINDOW = 2.0
READY = 10.0
"""A simulation is ready when its error is below this part of the motion [%], the 90 % match asked of torques."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay showed.

    Attributes
    ----------
    joint_names : tuple of str
    window : float
        [s]
    described, identified : MotionError
        Of the arm as it was described, and as it was identified.
    servo : Servo or None
        Where the arm followed a command.
    """

    joint_names: tuple[str, ...]
    window: float
    described: MotionError
    identified: MotionError
    servo: Servo | None

    @property
    def ready(self) -> bool:
        """Whether the identified arm's simulation reproduces the motion."""
        return self.identified.relative_total < READY

    @property
    def verdict(self) -> str:
        """One sentence."""
        before, after = self.described.relative_total, self.identified.relative_total
        times = f'{before / after:.1f} times better than' if before > after else 'no better than'
        return (
            f'{"ready for simulation" if self.ready else "not ready for simulation"}: the identified arm misses '
            f'{after:.2g} % of the motion in windows of {self.window:g} s, the described one {before:.2g} % '
            f'({times} the description; ready below {READY:g} %)'
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings and lists."""

        def errors(error: MotionError) -> dict[str, Any]:
            return {
                'relative_total': error.relative_total,
                'relative': dict(zip(self.joint_names, error.relative.tolist(), strict=True)),
                'rms': dict(zip(self.joint_names, error.rms.tolist(), strict=True)),
            }

        found: dict[str, Any] = {
            'ready': self.ready,
            'verdict': self.verdict,
            'window': self.window,
            'described': errors(self.described),
            'identified': errors(self.identified),
        }
        if self.servo is not None:
            arrays = ('stiffness', 'damping', 'share', 'offset', 'match')
            found['servo'] = {'delay': self.servo.delay}
            for name in arrays:
                values = getattr(self.servo, name).tolist()
                found['servo'][name] = dict(zip(self.joint_names, values, strict=True))
        return found


def replay(
    model: RobotModel,
    result: IdentificationResult,
    dataset: Dataset,
    *,
    command: Array | None = None,
    window: float | None = None,
) -> Replayed:
    """Replay a recording with the identified and with the described arm, as :func:`mjcf_of` writes them.

    Parameters
    ----------
    model : RobotModel
        The arm as described.
    result : IdentificationResult
    dataset : Dataset
        A recording that was not identified from.
    command : ndarray, shape (N, n), optional
        Commanded positions at the dataset's instants, joints in the dataset's order: the arms follow it by servos,
        identified from the first half of the samples, and the second half is replayed. By default the arms
        get the recorded torque.
    window : float, optional
        See :func:`windows_of` [s].

    Raises
    ------
    RobotIdError
        If the result belongs to another arm, a joint is not in the dataset, or MuJoCo is not installed.
    """
    TorquePredictor(model, result)  # refuses the result of another arm
    missing = [name for name in model.joint_names if name not in dataset.joint_names]
    if missing:
        raise DataError(f"joint '{missing[0]}' is not in the recording; it has: {', '.join(dataset.joint_names)}")
    columns = [dataset.joint_names.index(name) for name in model.joint_names]
    arm = identified_arm(model, result)
    rows = slice(0, None) if command is None else slice(len(dataset.q) // 2, None)
    recorded = Recorded(
        joint_names=model.joint_names,
        rate=dataset.rate,
        q=dataset.q[rows, columns],
        dq=dataset.dq[rows, columns],
        tau=dataset.tau_filtered[rows, columns],
        trajectory=dataset.trajectory[rows],
    )
    seconds = window if window is not None else TORQUE_WINDOW if command is None else SERVO_WINDOW
    windows = windows_of(recorded, seconds)
    servo = None
    if command is not None:
        early = slice(0, rows.start)
        q, dq = dataset.q[early, columns], dataset.dq[early, columns]
        bias = inverse_dynamics(arm, q, dq, np.zeros_like(q))
        torque = dataset.tau_filtered[early, columns]
        servo = identify_servo(command[early, columns], q, dq, torque, bias, dataset.rate, dataset.trajectory[early])

    def error(of: RobotModel) -> MotionError:
        text = mjcf_of(of)
        if servo is None or command is None:
            simulated = replayed_torque(text, recorded, windows)
        else:
            simulated = replayed_command(text, recorded, command[rows, columns], servo, windows)
        return motion_error(recorded, simulated, windows)

    return Replayed(
        joint_names=model.joint_names, window=seconds, described=error(model), identified=error(arm), servo=servo
    )
