# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Identification of inertial and friction parameters from joint motion and torque."""

from typing import TYPE_CHECKING

from robotid_ros.imports import on_demand

if TYPE_CHECKING:
    from robotid_ros.identification.config import ESTIMATORS, IdentificationConfig
    from robotid_ros.identification.predictor import TorquePredictor, calibrated_urdf, validate
    from robotid_ros.identification.result import IdentificationResult
    from robotid_ros.identification.selection import SelectionConfig, select
    from robotid_ros.identification.steps import identify
    from robotid_ros.identification.verdict import Metrics, torque_metrics

__all__ = [
    'ESTIMATORS',
    'IdentificationConfig',
    'IdentificationResult',
    'Metrics',
    'SelectionConfig',
    'TorquePredictor',
    'calibrated_urdf',
    'identify',
    'select',
    'torque_metrics',
    'validate',
]

__getattr__ = on_demand(
    __name__,
    {
        'ESTIMATORS': 'config',
        'IdentificationConfig': 'config',
        'IdentificationResult': 'result',
        'Metrics': 'verdict',
        'SelectionConfig': 'selection',
        'TorquePredictor': 'predictor',
        'calibrated_urdf': 'predictor',
        'identify': 'steps',
        'select': 'selection',
        'torque_metrics': 'verdict',
        'validate': 'predictor',
    },
)
