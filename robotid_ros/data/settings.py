# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How a recording is turned into a dataset: every setting, with its default."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from robotid_ros.errors import DataError
from robotid_ros.model.robot_config import EFFORT_MEANINGS, EffortMeaning, RobotConfig

__all__ = ['ProcessingSettings']

DIFFERENTIATIONS = ('central', 'savitzky-golay')


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessingSettings:
    """Settings of :func:`robotid_ros.data.process_recording`.

    Attributes
    ----------
    joints : tuple of str
        Joints of the dataset, in order; empty takes all of the recording.
    effort : mapping of str to {'torque', 'current'}
        What a recording's ``effort`` holds, per joint; torque [N m], as the message is defined,
        for joints that are not named.
    torque_constants, gear_ratios : mapping of str to float
        For joints whose torque comes from a current: motor side [N m/A]; motor turns per joint
        turn, 1 where not given.
    period : float or None
        Period of the excitation [s]; None for a recording that is not periodic.
    start : int or None
        Stamp at which the first period starts [ns]; None takes where the arm begins to move.
    transient_periods : int
        Periods dropped at the start.
    outlier_factor : float
        A period is left out whose deviation exceeds this many times the usual one.
    harmonics : int or None
        Of the Fourier series of averaged positions; None takes as many as stand out of the noise.
    smoothing_passes : int
        Of the five-point cubic over the averaged torque.
    smoothing_guard : float
        Largest move of any sample by smoothing, per range of its signal.
    cutoff : float or None
        Of the zero-phase low-pass for recordings that are not periodic [Hz]; None chooses it from
        the data.
    differentiation : {'central', 'savitzky-golay'}
        For recordings that are not periodic.
    trimmed : float or None
        Seconds cut off at both ends of every run after filtering; None takes one period of the cutoff.
    largest_gap : float
        Gaps up to this many periods of the cutoff are interpolated; longer ones split the run.

    Raises
    ------
    DataError
        If a value makes no sense.
    """

    joints: tuple[str, ...] = ()
    effort: Mapping[str, EffortMeaning] = field(default_factory=dict)
    torque_constants: Mapping[str, float] = field(default_factory=dict)
    gear_ratios: Mapping[str, float] = field(default_factory=dict)
    period: float | None = None
    start: int | None = None
    transient_periods: int = 1
    outlier_factor: float = 3.0
    harmonics: int | None = None
    smoothing_passes: int = 1
    smoothing_guard: float = 0.1
    cutoff: float | None = None
    differentiation: Literal['central', 'savitzky-golay'] = 'central'
    trimmed: float | None = None
    largest_gap: float = 0.25

    def __post_init__(self) -> None:
        for name in ('period', 'cutoff'):
            value = getattr(self, name)
            if value is not None and not 0.0 < value < float('inf'):
                raise DataError(f'{name}: expected a positive number, got {value!r}')
        for name, least in (('transient_periods', 0), ('smoothing_passes', 0), ('outlier_factor', 1.0)):
            if not getattr(self, name) >= least:
                raise DataError(f'{name}: expected {least} or more, got {getattr(self, name)!r}')
        if self.harmonics is not None and self.harmonics < 1:
            raise DataError(f'harmonics: expected 1 or more, got {self.harmonics}')
        for name in ('smoothing_guard', 'largest_gap'):
            if not getattr(self, name) >= 0.0:
                raise DataError(f'{name}: expected 0 or more, got {getattr(self, name)!r}')
        if self.trimmed is not None and not self.trimmed >= 0.0:
            raise DataError(f'trimmed: expected 0 s or more, got {self.trimmed!r}')
        if self.differentiation not in DIFFERENTIATIONS:
            raise DataError(
                f'differentiation: expected one of {", ".join(DIFFERENTIATIONS)}; got {self.differentiation!r}'
            )
        for joint, meaning in self.effort.items():
            if meaning not in EFFORT_MEANINGS:
                raise DataError(f"effort of joint '{joint}': expected 'torque' [N m] or 'current' [A], got {meaning!r}")

    @classmethod
    def for_robot(cls, config: RobotConfig, **others: Any) -> 'ProcessingSettings':
        """Return settings with the joints and the motor side of a robot configuration."""
        return cls(
            joints=config.joints,
            effort=config.effort,
            torque_constants=config.torque_constants,
            gear_ratios=config.gear_ratios,
            **others,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the settings as plain values, for a provenance."""
        return {**asdict(self), 'joints': list(self.joints), 'effort': dict(self.effort)}
