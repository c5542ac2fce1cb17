# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What was found against what is true: the tables at the end of the demonstration."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robotid_ros.arrays import Array
from robotid_ros.report.parameters import relative_deviation

WELL_EXCITED = 5.0  # relative standard deviation [%] below which a parameter counts as found
DEVIATIONS = 3.0  # standard deviations within which a found parameter agrees with the truth


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterComparison:
    """True and found values of p parameters, and the standard deviations stated with those found; shape (p,)."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    true: Array
    found: Array
    std: Array

    @property
    def relative_std(self) -> Array:
        """100 std / |found|, shape (p,) [%]; infinite for a value of zero."""
        return relative_deviation(self.found, self.std)

    @property
    def well_excited(self) -> NDArray[np.bool_]:
        """Whether the run determines a parameter to better than 5 %, shape (p,)."""
        result: NDArray[np.bool_] = self.relative_std < WELL_EXCITED
        return result

    @property
    def deviations(self) -> Array:
        """(found - true) / std, shape (p,)."""
        with np.errstate(divide='ignore', invalid='ignore'):
            result: Array = np.where(self.std > 0.0, (self.found - self.true) / self.std, np.inf)
        return result

    @property
    def agreeing(self) -> NDArray[np.bool_]:
        """Whether the truth lies within three standard deviations, shape (p,)."""
        result: NDArray[np.bool_] = np.abs(self.deviations) <= DEVIATIONS
        return result
