# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The bodies of an arm as triangles, and the picture in which they move: shapes and meshes of its URDF, or capsules."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robotid_ros.arrays import Array, IntArray
from robotid_ros.errors import MissingDependencyError
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.workspace import Capsule, configured_geometry, find_frame, skeleton
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_tree import origin_of

_MOST_FACES = 3000  # of a link; the page moves all of them for every picture
_SLENDER = 0.05  # radius of a capsule over the length of the arm, where nothing says how thick it is
_FINE = 2001  # instants of a period
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Body:
    """Triangles that move with one link.

    ``link`` is the number of the moving link, -1 for the base; ``vertices``, shape (V, 3), are in its frame [m], and
    ``faces``, shape (F, 3), are their indices.
    """

    name: str
    link: int
    vertices: Array
    faces: IntArray


def arm_bodies(model: RobotModel, folder: Path | None = None) -> tuple[tuple[Body, ...], tuple[str, ...]]:
    """Return the bodies of an arm, and what to know about them.

    The visual elements of the URDF are drawn; where the mesh of one cannot be read, the collision elements of that
    link; where these cannot either, or there is no URDF, a capsule from the link's joint to the next. Meshes are looked
    for in the URDF's folder, in those above, and in the sourced ROS packages. A MissingDependencyError says that
    trimesh is not installed.
    """
    bodies: list[Body] = []
    notes: list[str] = []
    frames = model.frames
    for element in () if model.source is None else ElementTree.fromstring(model.source).findall('link'):
        name, failed = str(element.get('name')), ''
        if name not in frames:  # above the base
            continue
        link, placement = frames[name]
        for kind in ('visual', 'collision'):
            try:
                pieces = [_piece(item, placement, folder) for item in element.findall(kind)]
            except (OSError, ValueError, ImportError, KeyError) as cause:
                failed = failed or ' '.join(str(cause).split())
                continue
            if pieces:
                vertices, faces = _trimesh().util.append_faces(*zip(*pieces, strict=True))
                bodies.append(Body(name=name, link=link, vertices=vertices, faces=faces))
                break
        else:
            if failed:
                notes.append(f"the mesh of '{name}' could not be read ({failed})")
    shown = {body.link for body in bodies}
    # Of the arm when all links lie in one line.
    length = float(np.linalg.norm(model.placements[:, :3, 3], axis=1).sum() + np.linalg.norm(model.tip[:3, 3])) or 1.0
    missing = [
        capsule
        for capsule in skeleton(model, _SLENDER * length).capsules
        if find_frame(model, capsule.frame)[0] not in shown and np.linalg.norm(capsule.end) > 0.0
    ]
    if missing:
        notes.append(f'capsules stand for {", ".join(capsule.frame for capsule in missing)}')
    return (*bodies, *(_capsule(model, capsule) for capsule in missing)), tuple(notes)


def _trimesh() -> Any:
    try:
        import trimesh
    except ImportError as cause:
        raise MissingDependencyError.of('trimesh', 'plot', 'draw an arm') from cause
    return trimesh


def _piece(element: ElementTree.Element, placement: Array, folder: Path | None) -> tuple[Array, IntArray]:
    """Return the triangles of one visual or collision element in the frame of the moving link."""
    trimesh = _trimesh()
    geometry = element.find('geometry')
    if geometry is None or len(geometry) == 0:
        raise ValueError('no geometry')
    shape = geometry[0]
    numbers = {key: [float(x) for x in value.split()] for key, value in shape.attrib.items() if key != 'filename'}
    if shape.tag == 'box':
        mesh = trimesh.creation.box(extents=numbers['size'])
    elif shape.tag == 'sphere':
        mesh = trimesh.creation.icosphere(subdivisions=2, radius=numbers['radius'][0])
    elif shape.tag in ('cylinder', 'capsule'):
        make = getattr(trimesh.creation, shape.tag)
        mesh = make(height=numbers['length'][0], radius=numbers['radius'][0])
        mesh.apply_translation(-mesh.bounds.mean(axis=0))  # trimesh's capsules have had their origin at one end
    elif shape.tag == 'mesh':
        mesh = trimesh.load(_mesh_file(str(shape.get('filename')), folder), force='mesh')
        mesh.apply_scale(numbers.get('scale', [1.0, 1.0, 1.0]))
    else:
        raise ValueError(f"unknown geometry '{shape.tag}'")
    vertices, faces = _reduced(np.asarray(mesh.vertices, dtype=float), np.asarray(mesh.faces, dtype=np.int64))
    moved = placement @ origin_of(element, element.tag)
    return vertices @ moved[:3, :3].T + moved[:3, 3], faces


def _mesh_file(name: str, folder: Path | None) -> Path:
    """Return where the file of a mesh lies."""
    package, _, inside = (
        name.removeprefix('package://').partition('/') if name.startswith('package://') else ('', '', '')
    )
    plain = Path(name.removeprefix('file://'))
    above = [] if folder is None else [folder, *folder.parents][:6]
    if not package:
        found = [plain] if plain.is_absolute() else [place / plain for place in above[:1]]
    else:
        prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
        found = [place / package / inside for place in above]
        found += [place / inside for place in above if place.name == package]
        found += [Path(prefix) / 'share' / package / inside for prefix in prefixes if prefix]
        found += [
            Path(each) / package / inside for each in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep) if each
        ]
    for path in found:
        if path.is_file():
            return path
    raise FileNotFoundError(f'{name} was not found')


def _reduced(vertices: Array, faces: IntArray) -> tuple[Array, IntArray]:
    """Return fewer triangles of the same shape: vertices in one cell of a grid become one, at their mean."""
    cells = 64
    while len(faces) > _MOST_FACES and cells > 4:
        size = float(np.ptp(vertices, axis=0).max()) / cells
        _, first, group = np.unique(
            np.floor(vertices / size).astype(np.int64), axis=0, return_index=True, return_inverse=True
        )
        group = group.reshape(-1)
        counts = np.bincount(group, minlength=len(first))
        means = np.stack([np.bincount(group, vertices[:, k], len(first)) / counts for k in range(3)], axis=1)
        joined = group[faces]
        apart = (joined[:, 0] != joined[:, 1]) & (joined[:, 1] != joined[:, 2]) & (joined[:, 2] != joined[:, 0])
        _, kept = np.unique(np.sort(joined[apart], axis=1), axis=0, return_index=True)
        if len(kept) <= _MOST_FACES:
            return means, joined[apart][kept]
        cells = int(cells / 1.3)
    return vertices, faces


def _capsule(model: RobotModel, capsule: Capsule) -> Body:
    trimesh = _trimesh()
    along = capsule.end - capsule.start
    length = float(np.linalg.norm(along))
    mesh = trimesh.creation.capsule(height=max(length, 1e-6), radius=capsule.radius, count=[12, 12])
    link, placement = find_frame(model, capsule.frame)
    turn = np.eye(4) if length == 0.0 else trimesh.geometry.align_vectors([0.0, 0.0, 1.0], along)
    middle = np.asarray(mesh.vertices) - mesh.bounds.mean(axis=0)
    vertices = middle @ turn[:3, :3].T + 0.5 * (capsule.start + capsule.end)
    placed = vertices @ placement[:3, :3].T + placement[:3, 3]
    return Body(name=capsule.frame, link=link, vertices=placed, faces=np.asarray(mesh.faces, dtype=np.int64))


def moving_picture(model: RobotModel, design: ExcitationDesign, bodies: tuple[Body, ...]) -> tuple[str, dict[str, Any]]:
    """Return the place of a design's moving picture as HTML, with controls and stills, and what its script needs.

    That is the bodies, their poses for each picture, and what stands around.
    """
    period, config = design.trajectory.period, design.config
    fine = np.linspace(0.0, period, _FINE)
    along = link_transforms(model, design.trajectory.position(fine))
    tip = (along[:, -1] @ model.tip)[::4, :3, 3]
    floor = config.ground_height if config.ground else 0.0
    low, high = _box(along, tip, bodies)
    low = np.minimum(low, [np.inf, np.inf, floor])
    moments = np.linspace(0, _FINE - 1, _STILLS, endpoint=False).astype(int)
    stills = _pictures(bodies, fine[moments], along[moments], tip, (low, high), floor)
    time = np.linspace(0.0, period, int(min(max(_FRAMES[0] * period, 60.0), _FRAMES[1])))
    poses = link_transforms(model, design.trajectory.position(time))[:, :, :3, :]
    gone = config.geometry and not Path(config.geometry).is_file()
    geometry = configured_geometry(model, replace(config, geometry='') if gone else config)

    def shape(body: Body) -> dict[str, Any]:
        return {'name': body.name, 'link': body.link, 'vertices': body.vertices.ravel(), 'faces': body.faces.ravel()}

    def finite(corner: tuple[float, ...]) -> list[float | None]:
        return [float(x) if np.isfinite(x) else None for x in corner] or [None, None, None]

    return _PLAYER.format(stills=stills), {
        'time': time,
        'poses': poses.ravel(),
        'links': model.n,
        'bodies': [shape(body) for body in bodies],
        'capsules': [] if geometry is None else [shape(_capsule(model, each)) for each in geometry.capsules],
        'tip': tip,
        'tip_link': model.tip[:3, :].ravel(),
        'low': low.tolist(),
        'high': high.tolist(),
        'floor': floor,
        'ground': config.ground,
        'walls': [finite(corner) for corner in (config.workspace_lower, config.workspace_upper)],
    }


def _box(poses: Array, tip: Array, bodies: tuple[Body, ...]) -> tuple[Array, Array]:
    """Return the corners of a box around the arm over the whole motion, with some room [m]."""
    corners = [tip]
    for body in bodies:
        ends = np.stack([body.vertices.min(axis=0), body.vertices.max(axis=0)])
        if body.link < 0:
            corners.append(ends)
            continue
        pose = poses[::10, body.link]
        corners += [pose[:, :3, :3] @ point + pose[:, :3, 3] for point in ends]
    points = np.concatenate(corners)
    room = 0.06 * float(np.ptp(points, axis=0).max())
    return points.min(axis=0) - room, points.max(axis=0) + room


def _pictures(
    bodies: tuple[Body, ...], times: Array, poses: Array, path: Array, box: tuple[Array, Array], floor: float
) -> str:
    """Return pictures of an arm at K moments ``times`` [s], side by side, as HTML.

    Each body is drawn as the outline of its convex hull, the far ones first, in an orthographic projection. ``poses``,
    shape (K, n, 4, 4), are those of the links, ``path``, shape (N, 3), is that of the tool over the whole motion,
    ``box`` holds the lowest and the highest corner of what is shown, and ``floor`` is the height of the ground [m].
    """
    low, high = box
    towards = _EYE / np.linalg.norm(_EYE)
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    screen = np.stack([right, np.cross(towards, right)])
    ends = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, -1).T @ screen.T
    left, top = ends[:, 0].min(), ends[:, 1].max()
    scale = _WIDTH / np.ptp(ends[:, 0])

    def placed(points: Array) -> Array:
        flat: Array = (points @ screen.T - [left, top]) * [scale, -scale]
        return flat

    def spelled(points: Array) -> str:
        return ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)

    def polygon(points: Array, fill: str, stroke: str) -> str:
        return f'<polygon points="{spelled(points)}" fill="{fill}" stroke="{stroke}" stroke-width="0.6"/>'

    ground = [(low[0], low[1], floor), (high[0], low[1], floor), (high[0], high[1], floor), (low[0], high[1], floor)]
    around = polygon(placed(np.array(ground)), '#e9ebe4', '#c9cdbf')
    around += f'<polyline points="{spelled(placed(path))}" fill="none" stroke="#d55e00" stroke-width="0.8"/>'
    pictures = []
    for time, pose in zip(times, poses, strict=True):
        drawn = []
        for body in bodies:
            where = np.eye(4) if body.link < 0 else pose[body.link]
            points = body.vertices @ where[:3, :3].T + where[:3, 3]
            flat = placed(points)
            try:
                outline = flat[ConvexHull(flat).vertices]
            except QhullError:  # a body without thickness
                outline = flat[:2]
            colour = '#9aa1aa' if body.link < 0 else _SHADES[body.link % 2]
            drawn.append((float((points @ towards).mean()), polygon(outline, colour, '#566170')))
        arm = ''.join(polygon for _, polygon in sorted(drawn, key=lambda each: each[0]))
        pictures.append(
            f'<div><svg viewBox="0 0 {_WIDTH:.0f} {scale * np.ptp(ends[:, 1]):.0f}" role="img" '
            f'aria-label="The arm at {time:.1f} s">{around}{arm}</svg><p>{time:.1f} s</p></div>'
        )
    return f'<div class="stills">{"".join(pictures)}</div>'
