# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arm of a design as a moving picture: what the browser draws, and stills for paper."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robotid_ros.arrays import Array
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.workspace import configured_geometry
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body, capsule_bodies
from robotid_ros.report.motion import Motion

_STILLS = 3  # pictures on paper
_FRAMES = (30.0, 900)  # pictures of the arm per second, and at most
_EYE = np.array([1.0, -1.1, 0.55])  # from where the moving picture is seen at first
_WIDTH = 300.0  # of a picture, in its own units
_SHADES = ('#7fb0d6', '#dfe3e8')

_PLAYER = """<figure class="player"><div id="scene" role="img" aria-label="The arm at the chosen
moment, with the path of its tool, the ground and the walls"></div>
<div class="controls"><button type="button" id="play" aria-pressed="false">Play</button>
<input type="range" id="time" min="0" value="0" step="1" aria-label="Time">
<output id="clock" for="time">0.0 s</output>
<label>Speed <select id="speed"><option>0.25</option><option selected>1</option><option>2</option>
<option>4</option></select></label><label><input type="checkbox" id="capsules"> safety capsules</label></div>
{stills}<noscript><style>.stills {{ display: grid }} #scene, .controls {{ display: none }}</style></noscript></figure>
"""


def player(motion: Motion, bodies: tuple[Body, ...]) -> str:
    """Return the moving picture's place on the page, with its controls and the stills, as HTML."""
    moments = np.linspace(0, len(motion.time) - 1, _STILLS, endpoint=False).astype(int)
    box = _box(motion, bodies)
    pictures = _pictures(bodies, motion.time[moments], motion.poses[moments], motion.tip[::4], box, motion.floor)
    return _PLAYER.format(stills=pictures)


def scene(model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...]) -> dict[str, Any]:
    """Return what the page's script needs: bodies, their poses for each picture, and what stands around."""
    count = int(min(max(_FRAMES[0] * design.trajectory.period, 60.0), _FRAMES[1]))
    time = np.linspace(0.0, design.trajectory.period, count)
    poses = link_transforms(model, design.trajectory.position(time))[:, :, :3, :]
    config = design.config
    gone = config.geometry and not Path(config.geometry).is_file()
    geometry = configured_geometry(model, replace(config, geometry='') if gone else config)
    capsules = () if geometry is None else capsule_bodies(model, geometry)
    low, high = _box(motion, bodies)
    return {
        'time': time,
        'poses': poses.ravel(),
        'links': model.n,
        'bodies': [_shape(body) for body in bodies],
        'capsules': [_shape(body) for body in capsules],
        'tip': motion.tip[::4],
        'tip_link': model.tip[:3, :].ravel(),
        'low': np.minimum(low, [np.inf, np.inf, motion.floor]).tolist(),
        'high': high.tolist(),
        'floor': motion.floor,
        'ground': config.ground,
        'walls': [_finite(corner) for corner in (config.workspace_lower, config.workspace_upper)],
    }


def _pictures(
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


def _finite(corner: tuple[float, ...]) -> list[float | None]:
    return [float(x) if np.isfinite(x) else None for x in corner] or [None, None, None]


def _shape(body: Body) -> dict[str, Any]:
    return {'name': body.name, 'link': body.link, 'vertices': body.vertices.ravel(), 'faces': body.faces.ravel()}


def _box(motion: Motion, bodies: tuple[Body, ...]) -> tuple[Array, Array]:
    """Return the corners of a box around the arm over the whole motion, with some room [m]."""
    corners = [motion.tip]
    for body in bodies:
        ends = np.stack([body.vertices.min(axis=0), body.vertices.max(axis=0)])
        if body.link < 0:
            corners.append(ends)
            continue
        pose = motion.poses[::10, body.link]
        corners += [pose[:, :3, :3] @ point + pose[:, :3, 3] for point in ends]
    points = np.concatenate(corners)
    room = 0.06 * float(np.ptp(points, axis=0).max())
    return points.min(axis=0) - room, points.max(axis=0) + room
