# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page of a designed motion: verdict, moving picture, limits, settings."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from robotid_ros.arrays import Array
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.verification import worst_excesses
from robotid_ros.excitation.workspace import configured_geometry, workspace_constraints
from robotid_ros.files import write_text
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body, arm_bodies, capsule_bodies
from robotid_ros.report.content import Fact, Level, Report, Section, Table, Verdict, number, percent, sentence, words
from robotid_ros.report.motion import (
    TOLERANCE,
    Motion,
    approach_table,
    closest,
    condition_fact,
    condition_level,
    limit_figure,
    lowest_point,
    motion_of,
    space_table,
)
from robotid_ros.report.page import render_report

_FAST, _VIOLENT = 20.0, 40.0
"""Joint acceleration [rad/s^2]. The Franka Control Interface allows 7.5 to 20; twice that is taken for a mistake."""
_BELOW = 0.05  # m below the base's mounting plane: deeper than a flange or a cable


def write_design_page(
    model: RobotModel, design: ExcitationDesign, path: str | Path, *, folder: Path | None = None
) -> None:
    """Write the page of a design as one self-contained HTML file; see :func:`design_page`."""
    write_text(path, design_page(model, design, folder=folder))


def design_page(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> str:
    """Return the page of a design; meshes are looked for in the folder where the arm's URDF lies.

    A MissingDependencyError says that plotly or trimesh is not installed.
    """
    motion = motion_of(model, design)
    bodies, notes = arm_bodies(model, folder)
    report = _report(model, design, motion, bodies, notes)
    data = scene(model, design, motion, bodies)
    return render_report(report, before=player(motion, bodies), data=data, script='design.js')


def design_report(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> Report:
    """Return what the page of a design says beside its moving picture; see :func:`design_page`."""
    bodies, notes = arm_bodies(model, folder)
    return _report(model, design, motion_of(model, design), bodies, notes)


def _report(
    model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...], notes: tuple[str, ...]
) -> Report:
    peaks = worst_excesses(design.trajectory, model, workspace_constraints(model, design.config), rate=1000.0)
    tables = (approach_table(motion, model.joint_names), *space_table(peaks))
    return Report(
        kind='Excitation',
        title=model.name,
        summary=f'A Fourier trajectory of {design.trajectory.harmonics} harmonics that repeats after '
        f'{number(design.trajectory.period)} s and shows {design.counted}. '
        'Drag to turn the arm, scroll to come closer.',
        verdict=_verdict(model, design, motion, bodies),
        facts=_facts(design, motion),
        sections=(
            Section(title='Limits', items=(*tables, limit_figure(model, design, motion))),
            Section(title='How it was done', items=(_settings_table(design), *(sentence(note) for note in notes))),
        ),
    )


def _verdict(model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...]) -> Verdict:
    """Return whether a design looks fit to be run, and why."""
    bad, caution = _findings(model, design, motion, bodies)
    level: Level = 'bad' if bad else 'caution' if caution else 'good'
    headline = {'good': 'Good', 'caution': 'Look closely', 'bad': 'Do not run this'}[level]
    reasons = (*bad, *caution) or ('All limits are kept, the arm stays above its base, and the parameters show well.',)
    return Verdict(level=level, headline=headline, reasons=tuple(reasons))


def _findings(
    model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...]
) -> tuple[list[str], list[str]]:
    bad, caution = [], []
    for each in motion.approaches:
        if each.share > 1.0 + TOLERANCE:
            bad.append(f'The {each.quantity} of {each.joint} breaks its limit: {percent(100.0 * each.share)} of it.')
    scaled = design.excitation.condition_scaled
    level = condition_level(scaled)
    if level != 'good':
        said = f'The column-scaled condition number is {number(scaled)}'
        if level == 'bad':
            bad.append(
                f'{said}: some parameters would not be determined. Allow more range or harmonics, or more starts.'
            )
        else:
            caution.append(f'{said}; below 30 is good.')
    turning = np.array([kind == 'revolute' for kind in model.joint_types])
    fastest = np.abs(motion.signals['acceleration']).max(axis=0) * turning
    j = int(fastest.argmax())
    if fastest[j] > _FAST:
        (bad if fastest[j] > _VIOLENT else caution).append(
            f'{design.joint_names[j]} accelerates with up to {number(fastest[j])} rad/s²; arms of this size are '
            f'made for 7.5 to {_FAST:.0f}.'
        )
    depth, time = lowest_point(motion, bodies)
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
    return bad, caution


def _facts(design: ExcitationDesign, motion: Motion) -> tuple[Fact, ...]:
    found = design.excitation
    near = closest(motion.approaches)
    reach = np.linalg.norm(np.diff(motion.tip, axis=0), axis=1).sum()
    return (
        condition_fact(found.condition_scaled, found.condition),
        Fact(
            label='Period',
            value=f'{number(design.trajectory.period)} s',
            note=f'{design.trajectory.harmonics} harmonics',
        ),
        Fact(
            label='Closest to a limit',
            value='no limits' if near is None else percent(100.0 * near.share),
            note='' if near is None else f'{near.quantity} of {near.joint} at {near.time:.1f} s',
        ),
        Fact(label='Path of the tool', value=f'{number(reach)} m', note='in one period'),
    )


def _settings_table(design: ExcitationDesign) -> Table:
    rows = [
        (key.replace('_', ' '), str(value))
        for key, value in design.config.to_dict().items()
        if value not in ('', (), [])
    ]
    rows.append(('evaluations', str(design.evaluations)))
    return Table(caption='Settings of the design', columns=words('Setting', 'Value'), rows=tuple(rows))


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
