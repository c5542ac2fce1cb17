# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Robots and motions of the micro-benchmarks: ``make bench-micro``; `make test` does not collect them."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / 'test'))

from dynamics_helpers import arm, motion

from robotid_ros.model import RobotModel


@pytest.fixture(scope='session')
def robot() -> RobotModel:
    """Return a UR10."""
    return arm('ur10')


@pytest.fixture(scope='session')
def at() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return 10 000 random states."""
    return motion(6, 10_000)
