# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Measured torque of a recording, from efforts or currents as the settings define them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.recording import Recording
from robotid_ros.data.settings import ProcessingSettings
from robotid_ros.errors import DataError


def torque_factors(joints: tuple[str, ...], settings: ProcessingSettings, currents: tuple[bool, ...]) -> Array:
    """Return the torque per unit of each joint's signal, shape (n,): 1, or of a current ``r_j K_j`` [N m/A].

    K is the torque constant on the motor's side, negative where the current counts the other way round, and r the
    motor turns per joint turn. The losses of the gear are part of the torque.

    ``currents`` says which joints' signals are currents. Raises a DataError if one has no torque constant, or zero.
    """
    factors = np.ones(len(joints))
    for k, (joint, is_current) in enumerate(zip(joints, currents, strict=True)):
        if is_current and joint not in settings.torque_constants:
            known = ', '.join(settings.torque_constants) or 'none'
            raise DataError(
                f"joint '{joint}': its torque comes from a motor current, which needs a torque constant [N m/A]; "
                f'the configuration has them for: {known}; give torque_constants and gear_ratios in a robot '
                'configuration'
            )
        if is_current:
            factors[k] = settings.torque_constants[joint] * settings.gear_ratios.get(joint, 1.0)
        if factors[k] == 0.0 or not np.isfinite(factors[k]):
            raise DataError(f"joint '{joint}': expected a finite torque constant other than 0, got {factors[k]}")
    return factors


def measured_torque(recording: Recording, settings: ProcessingSettings) -> tuple[Array, tuple[str, ...]]:
    """Return the joint torques of a recording, shape (N, n) [N m], and what each came from.

    That is 'torque', 'current', or 'unknown' where neither the file format nor the settings say it; it is then taken as
    a torque, to be compared with the arm's description.

    A joint's effort is used, as torque or as current as the settings say; its ``current`` where there is no effort or
    where the effort is a current too. The settings describe ``JointState.effort``: in a CSV file effort is a torque.

    Raises
    ------
    DataError
        If a joint has neither effort nor current, or a current without torque constant.
    """
    joints = recording.joint_names
    columns = []
    meanings = []
    from_csv = _from_csv(recording.provenance)
    for j, joint in enumerate(joints):
        effort = _column(recording.effort, j)
        current = _column(recording.current, j)
        meaning = 'torque' if from_csv else settings.effort.get(joint, 'unknown')
        if current is not None and (effort is None or meaning == 'current'):
            columns.append(current)
            meanings.append('current')
        elif effort is not None:
            columns.append(effort)
            meanings.append(meaning)
        else:
            raise DataError(
                f"joint '{joint}' has neither effort nor current in this recording; an identification needs one of them"
            )
    factors = torque_factors(joints, settings, tuple(meaning == 'current' for meaning in meanings))
    return np.stack(columns, axis=1) * factors, tuple(meanings)


def _from_csv(provenance: Mapping[str, Any]) -> bool:
    while provenance:
        if provenance.get('format') == 'csv':
            return True
        provenance = provenance.get('origin') or {}
    return False


def _column(values: Array | None, j: int) -> Array | None:
    return None if values is None or np.isnan(values[:, j]).all() else values[:, j]
