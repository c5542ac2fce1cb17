# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Joint friction: models as lists of terms, and dissipative fits."""

from robotid_ros.friction.fit import dissipative_least_squares, initial_guess
from robotid_ros.friction.model import (
    FRICTION_MODELS,
    FRICTION_OPTIONS,
    FrictionModel,
    friction_model,
    parse_friction,
    unit_of,
)

__all__ = [
    'FRICTION_MODELS',
    'FRICTION_OPTIONS',
    'FrictionModel',
    'dissipative_least_squares',
    'friction_model',
    'initial_guess',
    'parse_friction',
    'unit_of',
]
