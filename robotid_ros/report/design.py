# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page of a designed motion: verdict, limits, settings, and the picture in which the arm moves.

Its bodies are triangles: the shapes and meshes of its URDF, or capsules.
"""

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias
from xml.etree import ElementTree

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robotid_ros.arrays import Array, IntArray
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import MissingDependencyError
from robotid_ros.excitation.constraints import worst_excesses
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.workspace import Capsule, configured_geometry, fixed_point, skeleton, workspace_constraints
from robotid_ros.files import write_text
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_tree import origin_of
from robotid_ros.report.content import (
    Figure,
    Item,
    Level,
    Report,
    Table,
    Verdict,
    axis,
    condition_fact,
    condition_level,
)
from robotid_ros.report.page import render_report
from robotid_ros.report.wording import number, percent, sentence, units_of

_SAMPLES = 2001
_TOLERANCE = 1e-6  # of a limit
_QUANTITIES = ('position', 'velocity', 'acceleration', 'torque')
_FAST, _VIOLENT = 20.0, 40.0
"""Joint acceleration [rad/s^2]. The Franka Control Interface allows 7.5 to 20; twice that is taken for a mistake."""
_BELOW = 0.05  # m below the base's mounting plane: deeper than a flange or a cable
_MOST_FACES = 3000  # of a link; the page moves all of them for every picture
_SLENDER = 0.05  # radius of a capsule over the length of the arm, where nothing says how thick it is
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


Body: TypeAlias = tuple[str, int, Array, IntArray]
"""Triangles that move with one link: a name, the number of the moving link, -1 for the base, the vertices in its frame,
shape (V, 3) [m], and the faces, shape (F, 3), as indices of vertices."""


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
                bodies.append((name, link, vertices, faces))
                break
        else:
            if failed:
                notes.append(f"the mesh of '{name}' could not be read ({failed})")
    shown = {link for _, link, _, _ in bodies}
    # Of the arm when all links lie in one line.
    length = float(np.linalg.norm(model.placements[:, :3, 3], axis=1).sum() + np.linalg.norm(model.tip[:3, 3])) or 1.0
    missing = [
        capsule
        for capsule in skeleton(model, _SLENDER * length).capsules
        if fixed_point(model, capsule.frame, capsule.end)[0] not in shown and np.linalg.norm(capsule.end) > 0.0
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
    above = [] if folder is None else [folder, *folder.parents][:6]
    found = [place / name.removeprefix('file://') for place in above[:1] or [Path()]]
    if name.startswith('package://'):
        package, _, inside = name.removeprefix('package://').partition('/')
        shares = [Path(each, 'share') for each in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if each]
        shares += [Path(each) for each in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep) if each]
        own = [place / inside for place in above if place.name == package]
        found = [*(place / package / inside for place in above), *own, *(each / package / inside for each in shares)]
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
    (link, start), (_, end) = (fixed_point(model, capsule.frame, point) for point in (capsule.start, capsule.end))
    along = end - start
    length = float(np.linalg.norm(along))
    mesh = trimesh.creation.capsule(height=max(length, 1e-6), radius=capsule.radius, count=[12, 12])
    turn = np.eye(4) if length == 0.0 else trimesh.geometry.align_vectors([0.0, 0.0, 1.0], along)
    middle = np.asarray(mesh.vertices) - mesh.bounds.mean(axis=0)
    vertices = middle @ turn[:3, :3].T + 0.5 * (start + end)
    return capsule.frame, link, vertices, np.asarray(mesh.faces, dtype=np.int64)


class DrawnMotion:
    """One period of a design at N instants ``time`` [s], with the torque of the description, and the bodies of the arm.

    ``signals``, shape (4, N, n), are position, velocity, acceleration and torque; ``share``, shape (4, n), says how
    close each comes to its limit, 1 at the limit, NaN where there is none, and ``nearest``, shape (4, n), at which
    instants; ``poses``, shape (N, n, 4, 4), are those of the links in the base frame, ``tip``, shape (N, 3), is the
    path of the tool [m], and ``floor`` the height of the ground, or of the plane that the base is mounted on, in the
    base frame [m]. For ``bodies`` and ``notes`` see :func:`arm_bodies`.
    """

    def __init__(self, model: RobotModel, design: ExcitationDesign, folder: Path | None = None) -> None:
        self.model, self.design = model, design
        self.bodies, self.notes = arm_bodies(model, folder)
        self.time = np.linspace(0.0, design.trajectory.period, _SAMPLES)
        q, dq, ddq = design.trajectory.evaluate(self.time)
        self.signals = np.stack([q, dq, ddq, inverse_dynamics(model, q, dq, ddq, friction=True)])
        limits = design.limits
        middle = np.zeros((4, model.n))
        with np.errstate(invalid='ignore'):
            middle[0] = 0.5 * (limits.upper + limits.lower)
            half = 0.5 * (limits.upper - limits.lower)
            largest = np.stack([half, limits.velocity, limits.acceleration, limits.effort])
            shares = np.abs(self.signals - middle[:, None]) / largest[:, None]
        shares = np.where(np.isfinite(shares), shares, 0.0)
        share = shares.max(axis=1)
        self.share = np.where(share == 0.0, np.nan, share)
        self.nearest = shares.argmax(axis=1)
        self.poses = link_transforms(model, q)
        self.tip = (self.poses[:, -1] @ model.tip)[:, :3, 3]
        self.floor = design.config.ground_height if design.config.ground else 0.0


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
        return np.asarray((points @ screen.T - [left, top]) * [scale, -scale])

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
        for _, link, vertices, _ in bodies:
            where = np.eye(4) if link < 0 else pose[link]
            points = vertices @ where[:3, :3].T + where[:3, 3]
            flat = placed(points)
            try:
                outline = flat[ConvexHull(flat).vertices]
            except QhullError:  # a body without thickness
                outline = flat[:2]
            colour = '#9aa1aa' if link < 0 else _SHADES[link % 2]
            drawn.append((float((points @ towards).mean()), polygon(outline, colour, '#566170')))
        arm = ''.join(polygon for _, polygon in sorted(drawn, key=lambda each: each[0]))
        pictures.append(
            f'<div><svg viewBox="0 0 {_WIDTH:.0f} {scale * np.ptp(ends[:, 1]):.0f}" role="img" '
            f'aria-label="The arm at {time:.1f} s">{around}{arm}</svg><p>{time:.1f} s</p></div>'
        )
    return f'<div class="stills">{"".join(pictures)}</div>'


def write_design_page(
    model: RobotModel, design: ExcitationDesign, path: str | Path, *, folder: Path | None = None
) -> None:
    """Write the page of a design as one self-contained HTML file; see :func:`design_page`."""
    write_text(path, design_page(model, design, folder=folder))


def design_page(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> str:
    """Return the page of a design; meshes are looked for in the folder where the arm's URDF lies.

    A MissingDependencyError says that plotly or trimesh is not installed.
    """
    motion = DrawnMotion(model, design, folder)
    bodies = motion.bodies
    period, config = design.trajectory.period, design.config
    along, tip, floor = motion.poses, motion.tip[::4], motion.floor
    corners = [tip]  # of a box around the arm over the whole motion, with some room [m]
    for _, link, vertices, _ in bodies:
        ends = np.stack([vertices.min(axis=0), vertices.max(axis=0)])
        pose = along[::10, link] if link >= 0 else np.eye(4)[None]
        corners += [pose[:, :3, :3] @ point + pose[:, :3, 3] for point in ends]
    points = np.concatenate(corners)
    room = 0.06 * float(np.ptp(points, axis=0).max())
    low, high = np.minimum(points.min(axis=0) - room, [np.inf, np.inf, floor]), points.max(axis=0) + room
    moments = np.linspace(0, _SAMPLES - 1, _STILLS, endpoint=False).astype(int)
    stills = _pictures(bodies, motion.time[moments], along[moments], tip, (low, high), floor)
    time = np.linspace(0.0, period, int(min(max(_FRAMES[0] * period, 60.0), _FRAMES[1])))
    poses = link_transforms(model, design.trajectory.position(time))[:, :, :3, :]
    gone = config.geometry and not Path(config.geometry).is_file()
    geometry = configured_geometry(model, replace(config, geometry='') if gone else config)

    def shape(body: Body) -> dict[str, Any]:
        name, link, vertices, faces = body
        return {'name': name, 'link': link, 'vertices': vertices.ravel(), 'faces': faces.ravel()}

    def finite(corner: tuple[float, ...]) -> list[float | None]:
        return [float(x) if np.isfinite(x) else None for x in corner] or [None, None, None]

    data = {
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
    return render_report(design_report(motion), before=_PLAYER.format(stills=stills), data=data, script='design.js')


def design_report(motion: DrawnMotion) -> Report:
    """Return what the page of a design says beside its moving picture."""
    design = motion.design
    table = Table('Settings of the design', ('Setting', 'Value'))
    for key, value in {**design.config.to_dict(), 'evaluations': design.evaluations}.items():
        if value not in ('', (), []):
            table.add(key.replace('_', ' '), str(value))
    found, trajectory = design.excitation, design.trajectory
    value, note = 'no limits', ''
    if not np.isnan(motion.share).all():
        k, j = np.unravel_index(np.nanargmax(motion.share), motion.share.shape)
        value = percent(100.0 * motion.share[k, j])
        note = f'{_QUANTITIES[k]} of {design.joint_names[j]} at {motion.time[motion.nearest[k, j]]:.1f} s'
    reach = np.linalg.norm(np.diff(motion.tip, axis=0), axis=1).sum()
    return Report(
        kind='Excitation',
        title=motion.model.name,
        summary=f'A Fourier trajectory of {design.trajectory.harmonics} harmonics that repeats after '
        f'{number(design.trajectory.period)} s and shows {design.counted}. '
        'Drag to turn the arm, scroll to come closer.',
        verdict=_verdict(motion),
        facts=(
            condition_fact(found.condition_scaled, found.condition),
            ('Period', f'{number(trajectory.period)} s', f'{trajectory.harmonics} harmonics'),
            ('Closest to a limit', value, note),
            ('Path of the tool', f'{number(reach)} m', 'in one period'),
        ),
        sections={'Limits': _limit_items(motion), 'How it was done': (table, *map(sentence, motion.notes))},
    )


def _verdict(motion: DrawnMotion) -> Verdict:
    """Return whether a design looks fit to be run, and why."""
    design, bad, caution = motion.design, list[str](), list[str]()
    for k, j in np.argwhere(motion.share > 1.0 + _TOLERANCE):
        bad.append(
            f'The {_QUANTITIES[k]} of {design.joint_names[j]} breaks its limit: '
            f'{percent(100.0 * motion.share[k, j])} of it.'
        )
    scaled = design.excitation.condition_scaled
    said = f'The column-scaled condition number is {number(scaled)}'
    if condition_level(scaled) == 'bad':
        bad.append(f'{said}: some parameters would not be determined. Allow more range or harmonics, or more starts.')
    elif condition_level(scaled) == 'caution':
        caution.append(f'{said}; below 30 is good.')
    fastest = np.abs(motion.signals[2]).max(axis=0) * motion.model.revolute
    j = int(fastest.argmax())
    if fastest[j] > _FAST:
        (bad if fastest[j] > _VIOLENT else caution).append(
            f'{design.joint_names[j]} accelerates with up to {number(fastest[j])} rad/s²; arms of this size are '
            f'made for 7.5 to {_FAST:.0f}.'
        )
    depth, time = _lowest_point(motion)
    if depth < motion.floor - _BELOW:
        below = 'the ground' if design.config.ground else 'its base'
        bad.append(
            f'The arm reaches {number(motion.floor - depth, 2)} m below {below} at {time:.1f} s: it hits a table it '
            'stands on.'
        )
    if not (design.config.link_radius > 0.0 or design.config.geometry):
        caution.append('Self-collision was not checked: give link_radius or geometry.')
    if not np.isfinite(design.limits.acceleration).all():
        caution.append('Some joints have no acceleration limit: give acceleration_limit.')
    if not np.isfinite(design.limits.velocity).all():
        caution.append('Some joints have no velocity limit: give them in the robot configuration.')
    if design.interrupted:
        caution.append('The optimisation was stopped early; this is the best motion until then.')
    level: Level = 'bad' if bad else 'caution' if caution else 'good'
    headline = {'good': 'Good', 'caution': 'Look closely', 'bad': 'Do not run this'}[level]
    reasons = (*bad, *caution) or ('All limits are kept, the arm stays above its base, and the parameters show well.',)
    return Verdict(level=level, headline=headline, reasons=reasons)


def _lowest_point(motion: DrawnMotion) -> tuple[float, float]:
    """Return how low the moving bodies come in the base frame [m], and when [s]."""
    height, time = np.inf, 0.0
    for _, link, vertices, _ in motion.bodies:
        if link >= 1:  # the base and the first link turn in place
            pose = motion.poses[::4, link]
            lowest = (vertices @ pose[:, 2, :3].T + pose[:, 2, 3]).min(axis=0)
            k = int(lowest.argmin())
            if lowest[k] < height:
                height, time = float(lowest[k]), float(motion.time[::4][k])
    return height, time


def _limit_items(motion: DrawnMotion) -> Iterator[Item]:
    """Yield how close each joint comes to its limits, how close the arm comes to bounds in space, and the motion."""
    model, design = motion.model, motion.design
    table = Table(
        'Closest approach to each limit',
        ('Joint', *(f'#{name.capitalize()}' for name in _QUANTITIES)),
        reading='In percent of the limit, from the middle of the range for positions. The torque is that of the robot '
        'description.',
    )
    for joint, shares, nearest in zip(model.joint_names, motion.share.T, motion.nearest.T, strict=True):
        cells = [
            'no limit' if np.isnan(share) else f'{percent(100 * share)} at {time:.1f} s'
            for share, time in zip(shares, motion.time[nearest], strict=True)
        ]
        table.add(joint, *cells, level='bad' if (shares > 1.0 + _TOLERANCE).any() else 'good')
    yield table
    peaks = worst_excesses(design.trajectory, model, workspace_constraints(model, design.config), rate=1000.0)
    closest = sorted(peaks, key=lambda peak: -peak.excess)[:12]
    if closest:
        reading = f'The {len(closest)} closest of {len(peaks)} workspace and clearance bounds.'
        table = Table('Closest approach in space', ('Bound', '#Left', '#At'), reading=reading)
        for peak in closest:
            left = f'{number(-1e3 * peak.bound.scale * peak.excess)} mm'
            level: Level = 'bad' if peak.excess > _TOLERANCE else 'good'
            table.add(peak.bound.label, left, f'{peak.time:.1f} s', level=level)
        yield table
    yield _limit_figure(motion)


def _limit_figure(motion: DrawnMotion) -> Figure:
    """Return position, velocity, acceleration and torque over one period with their limits, one chart per joint."""
    limits = motion.design.limits
    largest = limits.velocity, limits.acceleration, limits.effort
    bounds = np.array([(limits.lower, limits.upper), *((-bound, bound) for bound in largest)])
    figure = Figure(
        'limits',
        'Each joint against its limits',
        'Dotted lines are limits, where they are near; the orange point is the closest approach. The '
        'vertical line is the moment of the picture above; a click on a chart goes to that moment.',
    )
    for j, joint in enumerate(motion.design.joint_names):
        torque, speed, length = units_of(motion.model.joint_types[j])
        names = (f'q [{length}]', f'q̇ [{speed}]', f'q̈ [{speed}²]', f'τ [{torque}]')
        shares = np.nan_to_num(motion.share[:, j])
        worst = int(shares.argmax())
        note = f'{_QUANTITIES[worst]} to {percent(100.0 * shares[worst])}' if shares.any() else ''
        chart = figure.chart(joint, axis('time [s]', anchor='y4'), '', note=note, height=520, meta='linked')
        for k, name in enumerate(names):
            own = 'y' if k == 0 else f'y{k + 1}'
            values, (low, high), share = motion.signals[k, :, j], bounds[k, :, j].tolist(), motion.share[k, j]
            chart.line('predicted', motion.time, values, _QUANTITIES[k], yaxis=own, showlegend=False)
            # The axis shows the values, and limits that are no further than half their range away.
            bottom, top = float(values.min()), float(values.max())
            room = 0.5 * max(top - bottom, 1e-9)
            shown = (
                min(bottom, low if low > bottom - room else bottom) - 0.15 * room,
                max(top, high if high < top + room else top) + 0.15 * room,
            )
            chart.layout[f'yaxis{own[1:]}'] = axis(
                name, domain=[0.78 - 0.26 * k, 1.0 - 0.26 * k], nticks=4, limits=shown
            )
            for at in (low, high):
                if np.isfinite(at):
                    chart.rule('y', at, 'residual', yref=own)
            if np.isfinite(share):
                near = motion.nearest[[k], j]
                said = f'{percent(100.0 * share)} of the limit at {motion.time[near[0]]:.2f} s<extra></extra>'
                more = {'hovertemplate': said, 'yaxis': own}
                chart.dots('residual', motion.time[near], values[near], 'closest approach', 8.0, **more)
    return figure
