# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The page of a designed motion: verdict, moving picture, limits, settings."""

from pathlib import Path

import numpy as np

from robotid_ros.excitation.design import ExcitationDesign
from robotid_ros.excitation.verification import worst_excesses
from robotid_ros.excitation.workspace import workspace_constraints
from robotid_ros.files import write_text
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.bodies import Body, arm_bodies
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
from robotid_ros.report.scene import player, scene

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
