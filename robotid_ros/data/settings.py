# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Settings of the processing of a recording into a dataset, and the torques that they make of its signals."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.recording import Recording
from robotid_ros.errors import DataError
from robotid_ros.model.robot_config import EffortMeaning, RobotConfig
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class AveragingSettings(Settings):
    """How periods are averaged, by the recorder and from a recording alike."""

    error = DataError

    transient_periods: int = setting(1, 'periods left out at the start', range=(0, 1000))
    outlier_factor: float = setting(
        3.0, 'a period that deviates by more than this times the usual is left out', range=(1.0, 1e6)
    )
    smoothing_passes: int = setting(1, 'of the five-point cubic over the averaged torque', range=(0, 100))
    smoothing_guard: float = setting(
        0.1, 'largest move of a sample by smoothing, per range of its signal', range=(0.0, 1.0)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingSettings(AveragingSettings):
    """Settings of :func:`robotid_ros.data.process_recording`.

    Raises
    ------
    DataError
        If a value makes no sense.
    """

    joints: tuple[str, ...] = setting((), 'joints of the dataset, in order; empty: all of the recording')
    effort: Mapping[str, EffortMeaning] = setting({}, "what a recording's effort holds, per joint; unknown by default")
    effort_at: Literal['joints', 'motors'] = setting('joints', 'where drives are coupled, whose efforts they are')
    torque_constants: Mapping[str, float] = setting({}, 'torque per motor current, motor side', unit='N m/A')
    gear_ratios: Mapping[str, float] = setting({}, 'motor turns per joint turn; 1 by default', range=(1e-6, 1e6))
    average: bool = setting(True, 'average over periods where the motion repeats; false: take it as any motion')
    period: float | None = setting(
        None, 'period of the excitation; by default that of the plan, or measured', unit='s', range=(1e-3, 1e6)
    )
    start: int | None = setting(
        None, 'stamp at which the first period starts; by default where the arm begins to move', unit='ns'
    )
    harmonics: int | None = setting(
        None, 'of the Fourier series of averaged positions; by default all above the noise', range=(1, 1000)
    )
    cutoff: float | None = setting(
        None, 'cutoff of the zero-phase low-pass; by default chosen from the data', unit='Hz', range=(1e-3, 1e6)
    )
    differentiation: Literal['central', 'savitzky-golay'] = setting('central', 'of recordings that are not periodic')
    trimmed: float | None = setting(
        None, 'cut off at both ends of every run; by default one period of the cutoff', unit='s', range=(0.0, 1e6)
    )
    largest_gap: float = setting(
        1.0,
        'longest gap that is interpolated, over what is harmless: the recording shows it; at most 0.1 s or 3 samples',
        range=(0.0, 1000.0),
    )

    @property
    def without_constant(self) -> tuple[str, ...]:
        """Joints whose effort is a current without a torque constant: no torque follows from it."""
        return tuple(
            joint
            for joint, meaning in self.effort.items()
            if meaning == 'current' and joint not in self.torque_constants
        )

    def in_amperes(self) -> 'ProcessingSettings':
        """Return settings with which the "torque" of every joint :attr:`without_constant` is its motor current [A]."""
        others = dict.fromkeys(self.without_constant, 1.0)
        return replace(
            self, torque_constants={**self.torque_constants, **others}, gear_ratios={**self.gear_ratios, **others}
        )

    @classmethod
    def for_robot(cls, config: RobotConfig | None, **others: Any) -> 'ProcessingSettings':
        """Return settings with joints and motor side of a robot configuration, if any, and others in place of these."""
        of_robot = ('joints', 'effort', 'effort_at', 'torque_constants', 'gear_ratios') if config is not None else ()
        return cls(**{name: getattr(config, name) for name in of_robot} | others)


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
            message = (
                f"joint '{joint}': its torque comes from a motor current, which needs a torque constant [N m/A]; "
                f'the configuration has them for: {known}; give torque_constants and gear_ratios in a robot '
                'configuration'
            )
            raise DataError(message, name=joint, expected=tuple(settings.torque_constants))
        if is_current:
            factors[k] = settings.torque_constants[joint] * settings.gear_ratios.get(joint, 1.0)
        if factors[k] == 0.0 or not np.isfinite(factors[k]):
            message = f"joint '{joint}': expected a finite torque constant other than 0, got {factors[k]}"
            raise DataError(message, name=joint, found=float(factors[k]))
    return factors


def measured_torque(recording: Recording, settings: ProcessingSettings) -> tuple[Array, tuple[str, ...]]:
    """Return the joint torques of a recording, shape (N, n) [N m], and what each came from.

    That is 'torque', 'current', or 'unknown' where neither the file format nor the settings say it; it is then taken as
    a torque, to be compared with the arm's description.

    A joint's effort is used, as torque or as current as the settings say; its ``current`` where there is no effort or
    where the effort is a current too. The settings describe ``JointState.effort``: in a CSV file effort is a torque.
    Raises a DataError if a joint has neither effort nor current, or a current without torque constant.
    """
    joints, columns, meanings = recording.joint_names, [], []
    source = recording.provenance
    while source and source.get('format') != 'csv':
        source = source.get('origin') or {}
    for j, joint in enumerate(joints):
        effort, current = (
            None if values is None or np.isnan(values[:, j]).all() else values[:, j]
            for values in (recording.effort, recording.current)
        )
        meaning = 'torque' if source else settings.effort.get(joint, 'unknown')
        if current is not None and (effort is None or meaning == 'current'):
            columns.append(current)
            meanings.append('current')
        elif effort is not None:
            columns.append(effort)
            meanings.append(meaning)
        else:
            message = (
                f"joint '{joint}' has neither effort nor current in this recording; an identification needs one of them"
            )
            raise DataError(message, name=joint)
    factors = torque_factors(joints, settings, tuple(meaning == 'current' for meaning in meanings))
    return np.stack(columns, axis=1) * factors, tuple(meanings)
