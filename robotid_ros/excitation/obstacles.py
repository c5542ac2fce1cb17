# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Things that stand around an arm, as capsules that are fixed to its base: what covers a shape covers the thing."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import yaml

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.workspace import Capsule, configured_geometry
from robotid_ros.files import write_text
from robotid_ros.model.robot_model import RobotModel

_ACROSS = 12
"""Most capsules side by side: a plate 1 m wide is then covered with 3 to 4 cm to spare."""


def box_capsules(frame: str, pose: Array, size: Sequence[float]) -> list[Capsule]:
    """Return capsules that cover a box, side by side along its longest edge.

    Each covers a bar of the cross-section w x h by a radius of half its diagonal. No point of a capsule is further than
    that radius from the box.

    Parameters
    ----------
    frame : str
        What the box is fixed to.
    pose : ndarray, shape (4, 4)
        Of the middle of the box in that frame.
    size : sequence of float, length 3
        Edges along its x, y and z [m].
    """
    edges = np.array(size, dtype=float)
    if edges.shape != (3,) or not (np.isfinite(edges) & (edges > 0.0)).all():
        raise ExcitationError(f'box: expected three edges above 0 [m], got {[float(x) for x in edges]}')
    thin, wide, long = np.argsort(edges, kind='stable')
    cell = max(edges[wide] / _ACROSS, edges[thin] / 2.0)
    counts = {k: int(np.ceil(edges[k] / cell - 1e-9)) for k in (thin, wide)}
    step = {k: edges[k] / counts[k] for k in counts}
    radius = 0.5 * float(np.hypot(*step.values()))
    half = np.zeros(3)
    half[long] = edges[long] / 2.0
    capsules = []
    for i in range(counts[thin]):
        for j in range(counts[wide]):
            middle = np.zeros(3)
            middle[thin] = (i + 0.5) * step[thin] - edges[thin] / 2.0
            middle[wide] = (j + 0.5) * step[wide] - edges[wide] / 2.0
            ends = [pose[:3, :3] @ point + pose[:3, 3] for point in (middle - half, middle + half)]
            capsules.append(Capsule(frame=frame, start=ends[0], end=ends[1], radius=radius))
    return capsules


def cylinder_capsules(frame: str, pose: Array, height: float, radius: float) -> list[Capsule]:
    """Return capsules that cover a cylinder along the z axis of a pose: one, or those of its box where it is flat.

    See :func:`box_capsules`. A height of 0 makes a sphere.
    """
    if not (radius > 0.0 and height >= 0.0 and np.isfinite([radius, height]).all()):
        raise ExcitationError(f'cylinder or sphere: expected a radius above 0 [m], got {radius:g}, height {height:g}')
    if 0.0 < height < 2.0 * radius:
        return box_capsules(frame, pose, (2.0 * radius, 2.0 * radius, height))
    up = 0.5 * height * pose[:3, 2]
    return [Capsule(frame=frame, start=pose[:3, 3] - up, end=pose[:3, 3] + up, radius=radius)]


def with_obstacles(
    model: RobotModel, config: ExcitationConfig, obstacles: Sequence[Capsule], path: str | Path
) -> ExcitationConfig:
    """Return settings whose geometry is that of the arm and the obstacles, written to a file for them.

    Raises
    ------
    ExcitationError
        If the settings do not say how thick the arm is, or the file cannot be written.
    """
    if not obstacles:
        return config
    geometry = configured_geometry(model, config)
    if geometry is None:
        raise ExcitationError(
            'there are obstacles around the arm, but how thick it is is not said: set link_radius, or geometry'
        )
    entries = [
        {'link': each.frame, 'from': each.start.tolist(), 'to': each.end.tolist(), 'radius': each.radius}
        for each in (*geometry.capsules, *obstacles)
    ]
    content = {'capsules': entries, 'ignore': [sorted(pair) for pair in geometry.ignored]}
    write_text(path, yaml.safe_dump(content, sort_keys=False, default_flow_style=None))
    return replace(config, geometry=str(path))
