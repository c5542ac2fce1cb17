# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page of a designed motion: the arm moving in three dimensions, and how close it comes to each limit."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.geometry import load_geometry, skeleton
from robotid_ros.excitation.verification import Peak, worst_excesses
from robotid_ros.excitation.workspace import workspace_constraints
from robotid_ros.files import write_text
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body, arm_bodies, capsule_bodies
from robotid_ros.report.content import Column, Fact, Figure, Level, Report, Section, Table, Verdict
from robotid_ros.report.excitation import condition_level
from robotid_ros.report.numbers import number, percent
from robotid_ros.report.page import render_report
from robotid_ros.report.plot import Chart, Trace, axis, line, rule
from robotid_ros.report.stills import stills
from robotid_ros.report.torque import units_of
from robotid_ros.report.wording import sentence

_SAMPLES = 2001
_STILLS = 3  # pictures on paper
_FRAMES = (30.0, 900)  # pictures of the arm per second, and at most
_FAST, _VIOLENT = 20.0, 40.0
"""Joint acceleration [rad/s^2]. The Franka Control Interface allows 7.5 to 20; twice that is taken for a mistake."""
_BELOW = 0.05  # m below the base's mounting plane: deeper than a flange or a cable
_TOLERANCE = 1e-6
_QUANTITIES = ('position', 'velocity', 'acceleration', 'torque')


@dataclass(frozen=True, slots=True, kw_only=True)
class Approach:
    """How close one joint comes to one of its limits: ``share`` of it, 1 at the limit, NaN where there is none."""

    quantity: str
    joint: str
    share: float
    time: float
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Motion:
    """One period of a design.

    Attributes
    ----------
    time : ndarray, shape (N,)
        [s]
    signals : dict of str to ndarray, shape (N, n)
        Position, velocity, acceleration and torque.
    poses : ndarray, shape (N, n, 4, 4)
        Of the links in the base frame.
    tip : ndarray, shape (N, 3)
        Path of the tool [m].
    approaches : tuple of Approach
    """

    time: Array
    signals: dict[str, Array]
    poses: Array
    tip: Array
    approaches: tuple[Approach, ...]


def write_design_page(
    model: RobotModel, design: ExcitationDesign, path: str | Path, *, folder: Path | None = None
) -> None:
    """Write the page of a design as one self-contained HTML file; see :func:`design_page`.

    Raises
    ------
    MissingDependencyError
        If plotly or trimesh is not installed.
    DataError
        If the file cannot be written.
    """
    write_text(path, design_page(model, design, folder=folder))


def design_page(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> str:
    """Return the page of a design.

    Parameters
    ----------
    model : RobotModel
    design : ExcitationDesign
    folder : Path, optional
        Where the arm's URDF lies, to find its meshes.

    Raises
    ------
    MissingDependencyError
        If plotly or trimesh is not installed.
    """
    motion = _motion(model, design)
    bodies, notes = arm_bodies(model, folder)
    report = _report(model, design, motion, bodies, notes)
    moments = np.linspace(0, _SAMPLES - 1, _STILLS, endpoint=False).astype(int)
    floor = design.config.ground_height if design.config.ground else 0.0
    pictures = stills(bodies, motion.time[moments], motion.poses[moments], motion.tip[::4], _box(motion, bodies), floor)
    return render_report(
        report, before=_PLAYER.format(stills=pictures), data=_scene(model, design, motion, bodies), script='design.js'
    )


def design_report(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> Report:
    """Return what the page of a design says beside its moving picture; see :func:`design_page`."""
    bodies, notes = arm_bodies(model, folder)
    return _report(model, design, _motion(model, design), bodies, notes)


def _report(
    model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...], notes: tuple[str, ...]
) -> Report:
    peaks = worst_excesses(design.trajectory, model, workspace_constraints(model, design.config), rate=1000.0)
    tables = (_approach_table(model, motion), *_space_table(peaks))
    return Report(
        kind='Excitation',
        title=model.name,
        summary=f'A Fourier trajectory of {design.trajectory.harmonics} harmonics that repeats after '
        f'{number(design.trajectory.period)} s and shows {design.base_parameters} base parameters. '
        'Drag to turn the arm, scroll to come closer.',
        verdict=_verdict(model, design, motion, bodies),
        facts=_facts(design, motion),
        sections=(
            Section(title='Limits', items=(*tables, _limit_figure(model, design, motion))),
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
        if each.share > 1.0 + _TOLERANCE:
            bad.append(f'The {each.quantity} of {each.joint} breaks its limit: {percent(100.0 * each.share)} of it.')
    scaled = design.excitation.condition_scaled
    level = condition_level(scaled)
    if level != 'good':
        words = f'The column-scaled condition number is {number(scaled)}'
        if level == 'bad':
            bad.append(
                f'{words}: some parameters would not be determined. Allow more range or harmonics, or more starts.'
            )
        else:
            caution.append(f'{words}; below 30 is good.')
    turning = np.array([kind == 'revolute' for kind in model.joint_types])
    fastest = np.abs(motion.signals['acceleration']).max(axis=0) * turning
    j = int(fastest.argmax())
    if fastest[j] > _FAST:
        words = f'{design.joint_names[j]} accelerates with up to {number(float(fastest[j]))} rad/s²'
        (bad if fastest[j] > _VIOLENT else caution).append(
            f'{words}; arms of this size are made for 7.5 to {_FAST:.0f}.'
        )
    depth, time = _lowest(motion, bodies)
    floor = design.config.ground_height if design.config.ground else 0.0
    if depth < floor - _BELOW:
        words = (
            f'The arm reaches {number(floor - depth, 2)} m below {"the ground" if design.config.ground else "its base"}'
        )
        bad.append(f'{words} at {time:.1f} s: it hits a table it stands on.')
    if not (design.config.link_radius > 0.0 or design.config.geometry):
        caution.append('Self-collision was not checked: give link_radius or geometry.')
    if not np.isfinite(design.limits.acceleration).all():
        caution.append('Some joints have no acceleration limit: give acceleration_limit.')
    if not np.isfinite(design.limits.velocity).all():
        caution.append('Some joints have no velocity limit: give them in the robot configuration.')
    if design.interrupted:
        caution.append('The optimisation was stopped early; this is the best motion until then.')
    return bad, caution


def _motion(model: RobotModel, design: ExcitationDesign) -> Motion:
    time = np.linspace(0.0, design.trajectory.period, _SAMPLES)
    q, dq, ddq = design.trajectory.evaluate(time)
    torque = inverse_dynamics(model, q, dq, ddq) + model.damping * dq + model.friction * np.sign(dq)
    signals = dict(zip(_QUANTITIES, (q, dq, ddq, torque), strict=True))
    poses = link_transforms(model, q)
    limits = design.limits
    approaches = []
    with np.errstate(invalid='ignore'):
        for name in _QUANTITIES:
            if name == 'position':
                half = 0.5 * (limits.upper - limits.lower)
                shares = np.abs(q - 0.5 * (limits.upper + limits.lower)) / half
            else:
                bound = limits.effort if name == 'torque' else getattr(limits, name)
                shares = np.abs(signals[name]) / bound
            shares = np.where(np.isfinite(shares), shares, 0.0)
            for j, joint in enumerate(design.joint_names):
                k = int(shares[:, j].argmax())
                share = float(shares[k, j]) or float('nan')
                value = float(signals[name][k, j])
                approaches.append(Approach(quantity=name, joint=joint, share=share, time=float(time[k]), value=value))
    tip = poses[:, -1] @ model.tip
    return Motion(time=time, signals=signals, poses=poses, tip=tip[:, :3, 3], approaches=tuple(approaches))


def _lowest(motion: Motion, bodies: tuple[Body, ...]) -> tuple[float, float]:
    """Return how low the moving bodies come in the base frame [m], and when [s]."""
    height, time = np.inf, 0.0
    for body in bodies:
        if body.link >= 1:  # the base and the first link turn in place
            pose = motion.poses[::4, body.link]
            lowest = (body.vertices @ pose[:, 2, :3].T + pose[:, 2, 3]).min(axis=0)
            k = int(lowest.argmin())
            if lowest[k] < height:
                height, time = float(lowest[k]), float(motion.time[::4][k])
    return height, time


def _facts(design: ExcitationDesign, motion: Motion) -> tuple[Fact, ...]:
    found = design.excitation
    near = max(
        (each for each in motion.approaches if np.isfinite(each.share)), key=lambda each: each.share, default=None
    )
    reach = np.linalg.norm(np.diff(motion.tip, axis=0), axis=1).sum()
    return (
        Fact(
            label='Condition number',
            value=number(found.condition_scaled),
            note=f'column-scaled; {number(found.condition)} in SI',
        ),
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
        Fact(label='Way of the tool', value=f'{number(float(reach))} m', note='in one period'),
    )


def _approach_table(model: RobotModel, motion: Motion) -> Table:
    rows: list[tuple[str, ...]] = []
    levels: list[Level | None] = []
    for joint in model.joint_names:
        own = [each for each in motion.approaches if each.joint == joint]
        cells = [
            'no limit' if np.isnan(each.share) else f'{percent(100 * each.share)} at {each.time:.1f} s' for each in own
        ]
        worst = max((each.share for each in own if np.isfinite(each.share)), default=0.0)
        rows.append((joint, *cells))
        levels.append('bad' if worst > 1.0 + _TOLERANCE else 'good')
    return Table(
        caption='Closest approach to each limit',
        columns=(Column(name='Joint', numeric=False), *(Column(name=name.capitalize()) for name in _QUANTITIES)),
        rows=tuple(rows),
        levels=tuple(levels),
        reading='In percent of the limit, from the middle of the range for positions. The torque is that of the robot '
        'description.',
    )


def _space_table(peaks: list[Peak]) -> Iterator[Table]:
    if not peaks:
        return
    closest = sorted(peaks, key=lambda peak: -peak.excess)[:12]
    rows = tuple(
        (peak.bound.label, f'{number(-1e3 * peak.bound.scale * peak.excess)} mm', f'{peak.time:.1f} s')
        for peak in closest
    )
    levels: tuple[Level, ...] = tuple('bad' if peak.excess > _TOLERANCE else 'good' for peak in closest)
    yield Table(
        caption='Closest approach in space',
        columns=(Column(name='Bound', numeric=False), Column(name='Left'), Column(name='At')),
        rows=rows,
        levels=levels,
        reading=f'The {len(rows)} closest of {len(peaks)} workspace and clearance bounds.',
    )


def _limit_figure(model: RobotModel, design: ExcitationDesign, motion: Motion) -> Figure:
    charts = []
    for j, joint in enumerate(design.joint_names):
        torque, speed, length = units_of(model.joint_types[j])
        names = (f'q [{length}]', f'q̇ [{speed}]', f'q̈ [{speed}²]', f'τ [{torque}]')
        limits = design.limits
        bounds = (
            (limits.lower[j], limits.upper[j]),
            *((-bound[j], bound[j]) for bound in (limits.velocity, limits.acceleration, limits.effort)),
        )
        own = [each for each in motion.approaches if each.joint == joint]
        traces: list[Trace] = []
        layout: Trace = {'xaxis': axis('time [s]', anchor='y4'), 'meta': 'linked', 'shapes': []}
        for k, (name, (low, high), each) in enumerate(zip(names, bounds, own, strict=True)):
            suffix = '' if k == 0 else str(k + 1)
            values = motion.signals[each.quantity][:, j]
            traces.append(line('predicted', motion.time, values, each.quantity, yaxis=f'y{suffix}', showlegend=False))
            layout[f'yaxis{suffix}'] = axis(
                name, domain=[0.78 - 0.26 * k, 1.0 - 0.26 * k], nticks=4, limits=_seen(values, float(low), float(high))
            )
            layout['shapes'] += [_limit_rule(f'y{suffix}', float(at)) for at in (low, high) if np.isfinite(at)]
            if np.isfinite(each.share):
                traces.append(_closest(each, f'y{suffix}'))
        worst = max((each for each in own if np.isfinite(each.share)), key=lambda each: each.share, default=None)
        charts.append(
            Chart(
                title=joint,
                note='' if worst is None else f'{worst.quantity} to {percent(100.0 * worst.share)}',
                alt=f'{joint}: position, velocity, acceleration and torque over one period with their limits'
                + ('.' if worst is None else f'; closest is the {worst.quantity} with {percent(100.0 * worst.share)}.'),
                traces=tuple(traces),
                layout=layout,
                height=520,
            )
        )
    return Figure(
        name='limits',
        caption='Each joint against its limits',
        reading='Dotted lines are limits, where they are near; the orange point is the closest approach. The '
        'vertical line is the moment of the picture above; a click on a chart goes to that moment.',
        charts=tuple(charts),
    )


def _seen(values: Array, low: float, high: float) -> tuple[float, float]:
    """Return a range that shows the values, and limits that are no further than half their range away."""
    bottom, top = float(values.min()), float(values.max())
    room = 0.5 * max(top - bottom, 1e-9)
    bottom, top = (low if low > bottom - room else bottom), (high if high < top + room else top)
    return min(bottom, float(values.min())) - 0.15 * room, max(top, float(values.max())) + 0.15 * room


def _limit_rule(along: str, at: float) -> Trace:
    shape = rule('y', at, 'residual')
    return {**shape, 'yref': along}


def _closest(each: Approach, along: str) -> Trace:
    return {
        'type': 'scatter',
        'mode': 'markers',
        'x': np.array([each.time]),
        'y': np.array([each.value]),
        'yaxis': along,
        'name': 'closest approach',
        'marker': {'color': '#d55e00', 'size': 8},
        'hovertemplate': f'{percent(100.0 * each.share)} of the limit at {each.time:.2f} s<extra></extra>',
    }


def _settings_table(design: ExcitationDesign) -> Table:
    rows = [
        (key.replace('_', ' '), str(value))
        for key, value in design.config.to_dict().items()
        if value not in ('', (), [])
    ]
    rows.append(('evaluations', str(design.evaluations)))
    return Table(
        caption='Settings of the design',
        columns=(Column(name='Setting', numeric=False), Column(name='Value', numeric=False)),
        rows=tuple(rows),
    )


def _scene(model: RobotModel, design: ExcitationDesign, motion: Motion, bodies: tuple[Body, ...]) -> dict[str, Any]:
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
    floor = config.ground_height if config.ground else 0.0
    walls = [_finite(corner) for corner in (config.workspace_lower, config.workspace_upper)]
    return {
        'time': time,
        'poses': poses.ravel(),
        'links': model.n,
        'bodies': [_shape(body) for body in bodies],
        'capsules': [_shape(body) for body in capsules],
        'tip': motion.tip[::4],
        'tip_link': model.tip[:3, :].ravel(),
        'low': np.minimum(low, [np.inf, np.inf, floor]).tolist(),
        'high': high.tolist(),
        'floor': floor,
        'ground': config.ground,
        'walls': walls,
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


_PLAYER = """<figure class="player"><div id="scene" role="img" aria-label="The arm at the chosen
moment, with the path of its tool, the ground and the walls"></div>
<div class="controls"><button type="button" id="play" aria-pressed="false">Play</button>
<input type="range" id="time" min="0" value="0" step="1" aria-label="Time">
<output id="clock" for="time">0.0 s</output>
<label>Speed <select id="speed"><option>0.25</option><option selected>1</option><option>2</option>
<option>4</option></select></label><label><input type="checkbox" id="capsules"> safety capsules</label></div>
{stills}<noscript><style>.stills {{ display: grid }} #scene, .controls {{ display: none }}</style></noscript></figure>
"""
