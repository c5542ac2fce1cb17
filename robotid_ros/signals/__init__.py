"""Signals of an arm: averaging, smoothing, differentiation, filtering, the motor side."""

from robotid_ros.signals.averaging import AveragedPeriod, PeriodAverage
from robotid_ros.signals.differentiation import (
    FourierFit,
    central_difference,
    choose_harmonics,
    fit_fourier,
    savitzky_golay,
)
from robotid_ros.signals.filtering import Bandwidth, choose_cutoff, decimate_parallel, zero_phase_low_pass
from robotid_ros.signals.motor import check_motor_side, current_to_torque
from robotid_ros.signals.screening import SampleScreen, ScreenCounts
from robotid_ros.signals.smoothing import five_point_cubic, guarded_smoothing
from robotid_ros.signals.turns import TurnUnwrapper

__all__ = [
    'AveragedPeriod',
    'Bandwidth',
    'FourierFit',
    'PeriodAverage',
    'SampleScreen',
    'ScreenCounts',
    'TurnUnwrapper',
    'central_difference',
    'check_motor_side',
    'choose_cutoff',
    'choose_harmonics',
    'current_to_torque',
    'decimate_parallel',
    'fit_fourier',
    'five_point_cubic',
    'guarded_smoothing',
    'savitzky_golay',
    'zero_phase_low_pass',
]
