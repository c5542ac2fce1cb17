# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Torque constants that the controller of a Universal Robots e-series arm holds of the arm's own motors.

``robot_calibration_summary.txt``, in the folder ``.urcontrol`` of the controller, has one block for each joint, base
first. ``K_tau`` is the torque of the motor, before its gear, per ampere [N m/A]; the table below it lists currents
and torques at some speeds, with ``Tau = K_tau I``:

    **** Joint 0, serial number ...:
      K_tau    tau_avg  Stiction-  Stiction+ ...
      +0.1005   0.1037  -0.05894    +0.05545 ...

      Ang. vel.    U        I      Temp     Tau       Km
        -3.20   +23.862   -1.805  +45.74   -0.181   +0.072
"""

import re
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.reading import read_text, refusing

_JOINT = re.compile(r'^\*+ *Joint +(\d+)', re.MULTILINE)
_TABLE = ['Ang.', 'vel.', 'U', 'I', 'Temp', 'Tau', 'Km']
_ROUNDED = 1e-3
"""Of torques with three decimals; those of eight arms are off by 0.0006 at most [N m]."""


def read_torque_constants(path: str | Path) -> Array:
    """Return the torque constants of an arm's joints, base first, shape (n,) [N m/A, motor side].

    Raises a ModelError if the file is not a ``robot_calibration_summary.txt``, or its torques are not those of its
    currents.
    """
    text = read_text(path, 'calibration summary of a UR', ModelError)
    with refusing(f"calibration summary of a UR '{path}'", ModelError, file=str(path)):
        _, *parts = _JOINT.split(text)
        numbers, blocks = parts[::2], parts[1::2]
        if not numbers or [int(number) for number in numbers] != list(range(len(numbers))):
            raise ValueError(
                f"expected a block '**** Joint 0', then 1 and so on, got {', '.join(numbers) or 'none'}; the file is "
                "robot_calibration_summary.txt in the controller's folder .urcontrol"
            )
        return np.array([_constant(block, number) for number, block in zip(numbers, blocks, strict=True)])


def _constant(block: str, joint: str) -> float:
    """Return the torque constant of one joint, once its own table has confirmed it."""
    lines = [line.split() for line in block.splitlines()]
    heads = [k for k, words in enumerate(lines[:-1]) if words[:1] == ['K_tau']]
    if len(heads) != 1 or not lines[heads[0] + 1] or _TABLE not in lines:
        raise ValueError(f'joint {joint}: expected one K_tau and a table of {" ".join(_TABLE)}')
    constant = float(lines[heads[0] + 1][0])
    rows = [words for words in lines[lines.index(_TABLE) + 1 :] if len(words) == len(_TABLE) - 1]
    current, torque = np.array([[float(row[2]), float(row[4])] for row in rows]).reshape(-1, 2).T
    if not (constant > 0.0 and np.any(current)):
        raise ValueError(f'joint {joint}: expected a K_tau above 0 and currents, got {constant:g} and {len(rows)} rows')
    if not (np.abs(constant * current - torque) <= _ROUNDED).all():
        raise ValueError(f"joint {joint}: K_tau {constant:g} times the currents does not give the file's torques")
    return constant
