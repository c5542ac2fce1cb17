# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page of a designed motion: verdict, moving picture, limits, settings."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.verification import worst_excesses
from robotid_ros.excitation.workspace import workspace_constraints
from robotid_ros.files import write_text
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body, arm_bodies, moving_picture
from robotid_ros.report.content import (
    Fact,
    Figure,
    Item,
    Level,
    Report,
    Table,
    Verdict,
    condition_fact,
    condition_level,
    number,
    percent,
    quantities,
    sections_of,
    sentence,
    units_of,
    words,
)
from robotid_ros.report.page import render_report
from robotid_ros.report.plot import Trace, axis, chart, dots, line, rule

_SAMPLES = 2001
_TOLERANCE = 1e-6  # of a limit
_QUANTITIES = ('position', 'velocity', 'acceleration', 'torque')
_FAST, _VIOLENT = 20.0, 40.0
"""Joint acceleration [rad/s^2]. The Franka Control Interface allows 7.5 to 20; twice that is taken for a mistake."""
_BELOW = 0.05  # m below the base's mounting plane: deeper than a flange or a cable


@dataclass(frozen=True, slots=True, kw_only=True)
class _Motion:
    """One period of a design at N instants ``time`` [s]."""

    time: Array
    signals: Array  # shape (4, N, n): position, velocity, acceleration and torque
    share: Array  # shape (4, n): how close each comes to its limit, 1 at the limit, NaN where there is none
    nearest: IntArray  # shape (4, n): the instants at which
    poses: Array  # shape (N, n, 4, 4): of the links in the base frame
    tip: Array  # shape (N, 3): path of the tool [m]
    floor: float  # height of the ground, or of the plane that the base is mounted on, in the base frame [m]


def write_design_page(
    model: RobotModel, design: ExcitationDesign, path: str | Path, *, folder: Path | None = None
) -> None:
    """Write the page of a design as one self-contained HTML file; see :func:`design_page`."""
    write_text(path, design_page(model, design, folder=folder))


def design_page(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> str:
    """Return the page of a design; meshes are looked for in the folder where the arm's URDF lies.

    A MissingDependencyError says that plotly or trimesh is not installed.
    """
    bodies, notes = arm_bodies(model, folder)
    picture, data = moving_picture(model, design, bodies)
    return render_report(_report(model, design, bodies, notes), before=picture, data=data, script='design.js')


def design_report(model: RobotModel, design: ExcitationDesign, *, folder: Path | None = None) -> Report:
    """Return what the page of a design says beside its moving picture; see :func:`design_page`."""
    return _report(model, design, *arm_bodies(model, folder))


def _motion_of(model: RobotModel, design: ExcitationDesign) -> _Motion:
    """Return one period of a design, with the torque of the robot description."""
    time = np.linspace(0.0, design.trajectory.period, _SAMPLES)
    q, dq, ddq = design.trajectory.evaluate(time)
    signals = np.stack([q, dq, ddq, inverse_dynamics(model, q, dq, ddq, friction=True)])
    limits = design.limits
    middle = np.zeros((4, model.n))
    with np.errstate(invalid='ignore'):
        middle[0] = 0.5 * (limits.upper + limits.lower)
        largest = np.stack([0.5 * (limits.upper - limits.lower), limits.velocity, limits.acceleration, limits.effort])
        shares = np.abs(signals - middle[:, None]) / largest[:, None]
    shares = np.where(np.isfinite(shares), shares, 0.0)
    share = shares.max(axis=1)
    poses = link_transforms(model, q)
    return _Motion(
        time=time,
        signals=signals,
        share=np.where(share == 0.0, np.nan, share),
        nearest=shares.argmax(axis=1),
        poses=poses,
        tip=(poses[:, -1] @ model.tip)[:, :3, 3],
        floor=design.config.ground_height if design.config.ground else 0.0,
    )


def _report(model: RobotModel, design: ExcitationDesign, bodies: tuple[Body, ...], notes: tuple[str, ...]) -> Report:
    motion = _motion_of(model, design)
    return Report(
        kind='Excitation',
        title=model.name,
        summary=f'A Fourier trajectory of {design.trajectory.harmonics} harmonics that repeats after '
        f'{number(design.trajectory.period)} s and shows {design.counted}. '
        'Drag to turn the arm, scroll to come closer.',
        verdict=_verdict(model, design, motion, bodies),
        facts=_facts(design, motion),
        sections=sections_of(
            ('Limits', _limit_items(model, design, motion)),
            ('How it was done', (_settings_table(design), *map(sentence, notes))),
        ),
    )


def _verdict(model: RobotModel, design: ExcitationDesign, motion: _Motion, bodies: tuple[Body, ...]) -> Verdict:
    """Return whether a design looks fit to be run, and why."""
    bad, caution = [], []
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
    turning = np.array([kind == 'revolute' for kind in model.joint_types])
    fastest = np.abs(motion.signals[2]).max(axis=0) * turning
    j = int(fastest.argmax())
    if fastest[j] > _FAST:
        (bad if fastest[j] > _VIOLENT else caution).append(
            f'{design.joint_names[j]} accelerates with up to {number(fastest[j])} rad/s²; arms of this size are '
            f'made for 7.5 to {_FAST:.0f}.'
        )
    depth, time = _lowest_point(motion, bodies)
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


def _lowest_point(motion: _Motion, bodies: tuple[Body, ...]) -> tuple[float, float]:
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


def _facts(design: ExcitationDesign, motion: _Motion) -> tuple[Fact, ...]:
    found, trajectory = design.excitation, design.trajectory
    value, note = 'no limits', ''
    if not np.isnan(motion.share).all():
        k, j = np.unravel_index(np.nanargmax(motion.share), motion.share.shape)
        value = percent(100.0 * motion.share[k, j])
        note = f'{_QUANTITIES[k]} of {design.joint_names[j]} at {motion.time[motion.nearest[k, j]]:.1f} s'
    reach = np.linalg.norm(np.diff(motion.tip, axis=0), axis=1).sum()
    return (
        condition_fact(found.condition_scaled, found.condition),
        Fact(label='Period', value=f'{number(trajectory.period)} s', note=f'{trajectory.harmonics} harmonics'),
        Fact(label='Closest to a limit', value=value, note=note),
        Fact(label='Path of the tool', value=f'{number(reach)} m', note='in one period'),
    )


def _settings_table(design: ExcitationDesign) -> Table:
    settings = {key: value for key, value in design.config.to_dict().items() if value not in ('', (), [])}
    rows = [(key.replace('_', ' '), str(value)) for key, value in settings.items()]
    rows.append(('evaluations', str(design.evaluations)))
    return Table(caption='Settings of the design', columns=words('Setting', 'Value'), rows=tuple(rows))


def _limit_items(model: RobotModel, design: ExcitationDesign, motion: _Motion) -> Iterator[Item]:
    """Yield how close each joint comes to its limits, how close the arm comes to bounds in space, and the motion."""
    rows = []
    for joint, shares, nearest in zip(model.joint_names, motion.share.T, motion.nearest.T, strict=True):
        cells = [
            'no limit' if np.isnan(share) else f'{percent(100 * share)} at {time:.1f} s'
            for share, time in zip(shares, motion.time[nearest], strict=True)
        ]
        rows.append((joint, *cells))
    yield Table(
        caption='Closest approach to each limit',
        columns=(*words('Joint'), *quantities(*(name.capitalize() for name in _QUANTITIES))),
        rows=tuple(rows),
        levels=tuple('bad' if (shares > 1.0 + _TOLERANCE).any() else 'good' for shares in motion.share.T),
        reading='In percent of the limit, from the middle of the range for positions. The torque is that of the robot '
        'description.',
    )
    peaks = worst_excesses(design.trajectory, model, workspace_constraints(model, design.config), rate=1000.0)
    closest = sorted(peaks, key=lambda peak: -peak.excess)[:12]
    if closest:
        yield Table(
            caption='Closest approach in space',
            columns=(*words('Bound'), *quantities('Left', 'At')),
            rows=tuple(
                (peak.bound.label, f'{number(-1e3 * peak.bound.scale * peak.excess)} mm', f'{peak.time:.1f} s')
                for peak in closest
            ),
            levels=tuple('bad' if peak.excess > _TOLERANCE else 'good' for peak in closest),
            reading=f'The {len(closest)} closest of {len(peaks)} workspace and clearance bounds.',
        )
    yield _limit_figure(model, design, motion)


def _limit_figure(model: RobotModel, design: ExcitationDesign, motion: _Motion) -> Figure:
    """Return position, velocity, acceleration and torque over one period with their limits, one chart per joint."""
    limits = design.limits
    largest = limits.velocity, limits.acceleration, limits.effort
    bounds = np.array([(limits.lower, limits.upper), *((-bound, bound) for bound in largest)])
    charts = []
    for j, joint in enumerate(design.joint_names):
        torque, speed, length = units_of(model.joint_types[j])
        names = (f'q [{length}]', f'q̇ [{speed}]', f'q̈ [{speed}²]', f'τ [{torque}]')
        traces: list[Trace] = []
        layout: Trace = {}
        rules: list[Trace] = []
        for k, name in enumerate(names):
            own = 'y' if k == 0 else f'y{k + 1}'
            values, (low, high), share = motion.signals[k, :, j], bounds[k, :, j].tolist(), motion.share[k, j]
            traces.append(line('predicted', motion.time, values, _QUANTITIES[k], yaxis=own, showlegend=False))
            layout[f'yaxis{own[1:]}'] = axis(
                name, domain=[0.78 - 0.26 * k, 1.0 - 0.26 * k], nticks=4, limits=_seen(values, low, high)
            )
            rules += [{**rule('y', at, 'residual'), 'yref': own} for at in (low, high) if np.isfinite(at)]
            if np.isfinite(share):
                at = motion.nearest[[k], j]
                said = f'{percent(100.0 * share)} of the limit at {motion.time[at[0]]:.2f} s<extra></extra>'
                near = dots('residual', motion.time[at], values[at], 'closest approach', 8.0, hovertemplate=said)
                traces.append({**near, 'yaxis': own})
        shares = np.nan_to_num(motion.share[:, j])
        worst = int(shares.argmax())
        charts.append(
            chart(
                joint,
                axis('time [s]', anchor='y4'),
                layout.pop('yaxis'),
                *traces,
                note=f'{_QUANTITIES[worst]} to {percent(100.0 * shares[worst])}' if shares.any() else '',
                height=520,
                meta='linked',
                shapes=rules,
                **layout,
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
    return (
        min(bottom, low if low > bottom - room else bottom) - 0.15 * room,
        max(top, high if high < top + room else top) + 0.15 * room,
    )
