# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Statistics of the distance between predicted and measured positions and orientations."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, BoolArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """Statistics of the distance between predicted and measured position.

    Attributes
    ----------
    count : int
        Number of measurements.
    mean, rms, percentile_95, max : float
        Of the distance [m].
    axis_rms : tuple of float
        Root mean square along x, y, z of the measurement frame [m].
    angle_rms, angle_max : float or None
        Of the angle between predicted and measured orientation [rad].
    """

    count: int
    mean: float
    rms: float
    percentile_95: float
    max: float
    axis_rms: tuple[float, float, float]
    angle_rms: float | None = None
    angle_max: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers for a YAML file [m, rad]."""
        values = {name: value for name, value in asdict(self).items() if value is not None}
        return {'measurements': values.pop('count'), **values, 'axis_rms': list(self.axis_rms)}


def accuracy(residual: Array, oriented: BoolArray | None = None) -> Accuracy:
    """Return the statistics of residuals, measured minus predicted, shape (N, 3 or 6) with N > 0 [m, rad].

    ``oriented``, bool of shape (N,), tells which rows have an orientation.
    """
    distance = np.linalg.norm(residual[:, :3], axis=1)
    angles = np.zeros(0)
    if residual.shape[1] == 6:
        angles = np.linalg.norm(residual[:, 3:] if oriented is None else residual[oriented, 3:], axis=1)
    x, y, z = np.sqrt(np.mean(np.square(residual[:, :3]), axis=0))
    return Accuracy(
        count=len(residual),
        mean=float(distance.mean()),
        rms=float(np.sqrt(np.mean(np.square(distance)))),
        percentile_95=float(np.percentile(distance, 95.0)),
        max=float(distance.max()),
        axis_rms=(float(x), float(y), float(z)),
        angle_rms=float(np.sqrt(np.mean(np.square(angles)))) if len(angles) else None,
        angle_max=float(angles.max()) if len(angles) else None,
    )
