# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Signals of an arm: averaging, smoothing, differentiation, filtering, the motor side."""

from robotid_ros.signals.averaging import AveragedPeriod, PeriodAverage
from robotid_ros.signals.differentiation import (
    FourierFit,
    choose_harmonics,
    fit_fourier,
    noise_of_one_period,
)
from robotid_ros.signals.filtering import Bandwidth, choose_cutoff, guarded_smoothing, motion_band, zero_phase_low_pass
from robotid_ros.signals.motor import check_motor_side, prior_factors
from robotid_ros.signals.sample_times import LateStamps
from robotid_ros.signals.screening import SampleScreen, TurnUnwrapper

__all__ = [
    'AveragedPeriod',
    'Bandwidth',
    'FourierFit',
    'PeriodAverage',
    'SampleScreen',
    'LateStamps',
    'TurnUnwrapper',
    'check_motor_side',
    'choose_cutoff',
    'choose_harmonics',
    'motion_band',
    'fit_fourier',
    'noise_of_one_period',
    'guarded_smoothing',
    'prior_factors',
    'zero_phase_low_pass',
]
