"""Kinematic calibration: the geometry of an arm from measured points or poses."""

from robotid_ros.calibration.estimate import calibrate
from robotid_ros.calibration.inverse_kinematics import compensated_inverse_kinematics, compensated_joints
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.points_file import points_csv, read_points
from robotid_ros.calibration.pose_selection import select_poses
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.calibration.workspace import sample_workspace

__all__ = [
    'CalibrationResult',
    'MeasuredPoints',
    'calibrate',
    'compensated_inverse_kinematics',
    'compensated_joints',
    'points_csv',
    'read_points',
    'sample_workspace',
    'select_poses',
]
