# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Exciting trajectories: Fourier series, criteria, limits, and their optimisation."""

from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.design import ExcitationDesign, load_excitation, save_excitation
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.optimizer import optimize_excitation

__all__ = [
    'ExcitationConfig',
    'ExcitationDesign',
    'FourierTrajectory',
    'load_excitation',
    'optimize_excitation',
    'save_excitation',
]
