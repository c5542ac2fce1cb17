# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Settings of a calibration."""

from dataclasses import dataclass
from typing import Literal

from robotid_ros.errors import CalibrationError
from robotid_ros.settings import Settings, setting

TERM_KINDS = ('eccentricity', 'second_harmonic', 'compliance')


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationConfig(Settings):
    """Settings of a calibration."""

    error = CalibrationError

    frame: Literal['unknown', 'known'] = setting(
        'unknown', 'known: the points are in the base frame of the robot; unknown: estimate the frame of every set'
    )
    tool: Literal['auto', 'known', 'position', 'pose'] = setting(
        'auto', 'what is unknown of the targets in the tip frame; auto: all that can be measured'
    )
    terms: tuple[Literal['eccentricity', 'second_harmonic', 'compliance'], ...] = setting(
        TERM_KINDS, 'joint terms to try; they are used only where the cross-validated error falls'
    )
    loss: Literal['hampel', 'huber', 'linear'] = setting(
        'hampel',
        'linear: least squares; huber: constant influence beyond the 95 % quantile; hampel: none beyond twice what one '
        'in ten thousand Gaussian measurements exceeds',
    )
    prior: float | None = setting(
        0.01, 'first guess of how far parameters are from nominal', unit='m, rad', range=(1e-9, 1.0)
    )
    few_poses: Literal['refused', 'least_norm'] = setting(
        'refused',
        'what happens where the poses give no more numbers than there are parameters; least_norm: of all geometries '
        'that explain them the one nearest to the nominal, to look at, not to use',
    )
    folds: int = setting(5, 'of the cross-validation, 0 for none', range=(0, 1000))
    seed: int = setting(0, 'of everything random', range=(0, 2**31 - 1))

    def check(self) -> None:
        """Refuse a single fold, which leaves nothing to estimate from, and a least norm without a measure of it."""
        if self.folds == 1:
            raise CalibrationError('folds: expected 0 (no cross-validation) or at least 2, got 1')
        if self.few_poses == 'least_norm' and self.prior is None:
            raise CalibrationError('few_poses: least_norm needs a prior, which says what counts as near')
