"""Free-floating space robots: identify the captured target from momentum conservation."""

from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.identification import identify_target
from robotid_ros.free_floating.measurement import FloatingMeasurement, SensorNoise
from robotid_ros.free_floating.result import TargetIdentification
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.free_floating.simulation import simulate

__all__ = [
    'FloatingMeasurement',
    'FreeFloatingRobot',
    'RigidBody',
    'SensorNoise',
    'TargetIdentification',
    'identify_target',
    'simulate',
]
