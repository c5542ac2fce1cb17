# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Draws how an arm moved, from the joint states of a recording: the picture of docs/gazebo.md.

python docs/gazebo_picture.py RECORDING [URDF or packaged arm]
"""

import sys
from pathlib import Path

import numpy as np

from robotid_ros.data import read_recording
from robotid_ros.model import RobotModel
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.packaged import arm_description

TARGET = Path(__file__).parent / '_static' / 'gazebo.svg'
POSES, POINTS = 9, 500
SIZE, SCALE = (760, 520), 185.0  # px, px/m


def projected(points: np.ndarray) -> np.ndarray:
    """Return points [m] in the picture [px], seen from the front right and a little from above."""
    x, y, z = np.moveaxis(points, -1, 0)
    across, away = 0.80 * x - 0.60 * y, 0.60 * x + 0.80 * y
    return np.stack([SIZE[0] / 2 + SCALE * across, 0.72 * SIZE[1] - SCALE * (0.94 * z + 0.34 * away)], axis=-1)


def line(points: np.ndarray, style: str) -> str:
    """Return a polyline through points of the picture, shape (N, 2)."""
    return f'<polyline points="{" ".join(f"{u:.1f},{v:.1f}" for u, v in points)}" fill="none" {style}/>'


def main(recording: str, robot: str) -> None:
    """Draw the ground, the way of the tip, and the arm in some poses, the later the darker."""
    model = RobotModel.from_urdf(arm_description(robot))
    raw = read_recording(recording, None, model.joint_names)
    q = raw.position
    origins = link_transforms(model, q[np.linspace(0, len(q) - 1, POINTS).astype(int)])[..., :3, 3]
    origins = np.concatenate([np.zeros((POINTS, 1, 3)), origins], axis=1)
    parts = []
    for k in np.arange(-1.5, 1.6, 0.5):
        for ends in ([[k, -1.5, 0.0], [k, 1.5, 0.0]], [[-1.5, k, 0.0], [1.5, k, 0.0]]):
            parts.append(line(projected(np.array(ends)), 'stroke="#c9d1d9" stroke-width="1"'))
    parts.append(line(projected(origins[:, -1]), 'stroke="#d9822b" stroke-width="1.2"'))
    for shade, k in zip(np.linspace(0.25, 1.0, POSES), np.linspace(0, POINTS - 1, POSES).astype(int), strict=True):
        style = f'stroke="#1f6fb2" stroke-opacity="{shade:.2f}" stroke-width="5" stroke-linejoin="round"'
        parts.append(line(projected(origins[k]), style))
    title = f'{model.name}: {len(q)} recorded joint states'
    TARGET.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIZE[0]} {SIZE[1]}" role="img"><title>{title}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n',
        encoding='utf-8',
    )


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else 'ur10e')
