"""Kinematic calibration: the geometry of an arm from measured points or poses."""

from robotid_ros.calibration.estimate import calibrate
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.points_file import points_csv, read_points
from robotid_ros.calibration.result import CalibrationResult

__all__ = ['CalibrationResult', 'MeasuredPoints', 'calibrate', 'points_csv', 'read_points']
