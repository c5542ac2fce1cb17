# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arm of a design as a moving picture: what the browser draws, and stills for paper."""

from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.geometry import load_geometry, skeleton
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body, capsule_bodies
from robotid_ros.report.motion import Motion
from robotid_ros.report.stills import stills

_STILLS = 3  # pictures on paper
_FRAMES = (30.0, 900)  # pictures of the arm per second, and at most

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
    pictures = stills(bodies, motion.time[moments], motion.poses[moments], motion.tip[::4], box, motion.floor)
    return _PLAYER.format(stills=pictures)


def scene(model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...]) -> dict[str, Any]:
    """Return what the page's script needs: bodies, their poses for each picture, and what stands around."""
    count = int(min(max(_FRAMES[0] * design.trajectory.period, 60.0), _FRAMES[1]))
    time = np.linspace(0.0, design.trajectory.period, count)
    poses = link_transforms(model, design.trajectory.position(time))[:, :, :3, :]
    config = design.config
    geometry = None
    if config.geometry and Path(config.geometry).is_file():
        geometry = load_geometry(config.geometry)
    elif config.link_radius > 0.0:
        geometry = skeleton(model, config.link_radius)
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
