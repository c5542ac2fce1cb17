"""Free-floating space robots: identify the captured target from momentum conservation."""

from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.design import (
    FloatingExcitation,
    control_trajectory,
    design_excitation,
    predicted_conditions,
)
from robotid_ros.free_floating.files import read_excitation, read_measurement, write_measurement
from robotid_ros.free_floating.identification import identify_target
from robotid_ros.free_floating.measurement import FloatingMeasurement, SensorNoise
from robotid_ros.free_floating.mission import Mission, read_mission
from robotid_ros.free_floating.result import TargetIdentification
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.free_floating.simulation import simulate
from robotid_ros.free_floating.study import PriorCase, study_priors

__all__ = [
    'FloatingExcitation',
    'FloatingMeasurement',
    'FreeFloatingRobot',
    'Mission',
    'PriorCase',
    'RigidBody',
    'SensorNoise',
    'TargetIdentification',
    'control_trajectory',
    'design_excitation',
    'identify_target',
    'predicted_conditions',
    'read_excitation',
    'read_measurement',
    'read_mission',
    'simulate',
    'study_priors',
    'write_measurement',
]
