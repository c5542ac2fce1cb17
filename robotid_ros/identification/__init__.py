"""Identification of inertial and friction parameters from joint motion and torque."""

from robotid_ros.identification.calibrated import calibrated_urdf
from robotid_ros.identification.config import ESTIMATORS, IdentificationConfig
from robotid_ros.identification.identify import identify
from robotid_ros.identification.metrics import Metrics, torque_metrics
from robotid_ros.identification.payload import PayloadResult, drive_gains, identify_payload
from robotid_ros.identification.predictor import TorquePredictor, validate
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.identification.selection import select

__all__ = [
    'ESTIMATORS',
    'IdentificationConfig',
    'IdentificationResult',
    'Metrics',
    'PayloadResult',
    'TorquePredictor',
    'calibrated_urdf',
    'drive_gains',
    'identify',
    'identify_payload',
    'select',
    'torque_metrics',
    'validate',
]
