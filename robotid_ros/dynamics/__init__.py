# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Dynamics of serial arms: inverse dynamics, regressors, base parameters, generated minimal models."""

from typing import TYPE_CHECKING

from robotid_ros.dynamics.base_parameter_set import DATA_TOLERANCE, BaseParameters, base_parameters
from robotid_ros.dynamics.recursion import (
    column_names,
    full_regressor,
    inverse_dynamics,
    observation_matrix,
    standard_parameters,
)
from robotid_ros.imports import on_demand

if TYPE_CHECKING:
    from robotid_ros.dynamics.codegen.minimal_model import MinimalModel, minimal_model

__all__ = [
    'DATA_TOLERANCE',
    'BaseParameters',
    'MinimalModel',
    'base_parameters',
    'column_names',
    'full_regressor',
    'inverse_dynamics',
    'minimal_model',
    'observation_matrix',
    'standard_parameters',
]

__getattr__ = on_demand(__name__, dict.fromkeys(('MinimalModel', 'minimal_model'), 'codegen.minimal_model'))
