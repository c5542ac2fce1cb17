# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Still pictures of a moving arm as SVG: for paper, and for browsers that draw nothing in three dimensions."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robotid_ros.arrays import Array
from robotid_ros.report.bodies import Body

_EYE = np.array([1.0, -1.1, 0.55])  # from where the moving picture is seen at first
_WIDTH = 300.0  # of a picture, in its own units
_SHADES = ('#7fb0d6', '#dfe3e8')


def stills(
    bodies: Sequence[Body], times: Array, poses: Array, path: Array, box: tuple[Array, Array], floor: float
) -> str:
    """Return pictures of an arm at K moments ``times`` [s], side by side, as HTML.

    Each body is drawn as the outline of its convex hull, the far ones first, in an orthographic projection. ``poses``,
    shape (K, n, 4, 4), are those of the links, ``path``, shape (N, 3), is that of the tool over the whole motion,
    ``box`` holds the lowest and the highest corner of what is shown, and ``floor`` is the height of the ground [m].
    """
    low, high = np.minimum(box[0], [np.inf, np.inf, floor]), box[1]
    corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T
    ends = corners @ _screen()[:2].T
    left, top = ends[:, 0].min(), ends[:, 1].max()
    scale = _WIDTH / np.ptp(ends[:, 0])
    height = scale * np.ptp(ends[:, 1])

    def placed(points: Array) -> Array:
        flat: Array = (points @ _screen()[:2].T - [left, top]) * [scale, -scale]
        return flat

    ground = [(low[0], low[1], floor), (high[0], low[1], floor), (high[0], high[1], floor), (low[0], high[1], floor)]
    still = _polygon(placed(np.array(ground)), '#e9ebe4', '#c9cdbf')
    way = f'<polyline points="{_points(placed(path))}" fill="none" stroke="#d55e00" stroke-width="0.8"/>'
    pictures = []
    for time, pose in zip(times, poses, strict=True):
        drawn = []
        for body in bodies:
            where = np.eye(4) if body.link < 0 else pose[body.link]
            points = body.vertices @ where[:3, :3].T + where[:3, 3]
            colour = '#9aa1aa' if body.link < 0 else _SHADES[body.link % 2]
            drawn.append((float((points @ _screen()[2]).mean()), _polygon(_outline(placed(points)), colour, '#566170')))
        arm = ''.join(polygon for _, polygon in sorted(drawn, key=lambda each: each[0]))
        pictures.append(
            f'<div><svg viewBox="0 0 {_WIDTH:.0f} {height:.0f}" role="img" aria-label="The arm at {time:.1f} s">'
            f'{still}{way}{arm}</svg><p>{time:.1f} s</p></div>'
        )
    return f'<div class="stills">{"".join(pictures)}</div>'


def _screen() -> Array:
    """Return the directions right, up and towards the eye, shape (3, 3)."""
    towards = _EYE / np.linalg.norm(_EYE)
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(towards, right), towards])


def _outline(points: Array) -> Array:
    try:
        outline: Array = points[ConvexHull(points).vertices]
    except QhullError:  # a body without thickness
        outline = points[:2]
    return outline


def _polygon(points: Array, fill: str, stroke: str) -> str:
    return f'<polygon points="{_points(points)}" fill="{fill}" stroke="{stroke}" stroke-width="0.6"/>'


def _points(points: Array) -> str:
    return ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
