# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid calibrate``: the geometry of an arm from measured points.

Estimate the kinematic errors of an arm from positions or poses measured at its tool, and write the corrected table or
URDF with the accuracy before and after.
"""

import argparse
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration import (
    CalibrationConfig,
    CalibrationResult,
    MeasuredPoints,
    calibrate,
    compensated_joints,
    read_points,
    sample_workspace,
    select_poses,
    write_points,
)
from robotid_ros.calibration.points import read_joints, write_joints
from robotid_ros.calibration.result import write_result
from robotid_ros.commands.options import add_settings, load_config, settings_from
from robotid_ros.commands.terminal import progress_bar, report_table, save_yaml, say_written
from robotid_ros.errors import CalibrationError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import clear_poses
from robotid_ros.files import output_folder, write_text
from robotid_ros.model import RobotModel
from robotid_ros.model.dh_table import ANGLE_UNITS, LENGTH_UNITS, DHTable, read_dh_file
from robotid_ros.model.packaged import arm_file
from robotid_ros.model.robot_config import RobotConfig, configured_arm
from robotid_ros.report import can_draw, write_report
from robotid_ros.report.calibration import accuracy_table, calibration_report, workspace_report
from robotid_ros.report.wording import listed
from robotid_ros.simulation.measured_arm import example_arm, example_table

_CANDIDATES = 2000  # poses that are chosen among
_DRAWN = 20_000  # poses drawn for that many of them that are clear


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add(
        'points',
        nargs='?',
        type=Path,
        metavar='POINTS.csv',
        help='columns position/<joint> [rad], x,y,z [m], optionally qw,qx,qy,qz, set, point, std, std_angle',
    )
    add('--robot', metavar='MDH.yaml|URDF', help='nominal arm: a DH table or a URDF')
    add('--out', required=True, metavar='DIR', help='folder for the results, made if needed')
    add('--held-out', type=Path, metavar='POINTS.csv', help='measurements kept apart, for the accuracy alone')
    add('--tip', metavar='LINK', help="end of a URDF's chain; by default that of the longest, before a gripper")
    add('--config', metavar='YAML', help='robot configuration, or name of a packaged arm: limits, mount, obstacles')

    add = parser.add_argument_group('units of the points files').add_argument
    add('--length-unit', choices=tuple(LENGTH_UNITS), default='m', help='default: m')
    add('--angle-unit', choices=tuple(ANGLE_UNITS), default='rad', help='default: rad')

    group = parser.add_argument_group('what is estimated, and how')
    add_settings(group, CalibrationConfig)
    group.add_argument(
        '--tool-point', nargs=3, type=float, metavar=('X', 'Y', 'Z'), help='with --tool known: the target [m]'
    )

    add = parser.add_argument_group('more').add_argument
    add(
        '--compensate',
        type=Path,
        metavar='JOINTS.csv',
        help='write the joint positions [rad] at which the real tip is where the nominal arm has it at these',
    )
    add('--select-poses', type=int, metavar='N', help='write the N most informative poses to measure; needs no points')
    add('--workspace', type=int, metavar='N', help='sample the workspace with N random poses; needs no points')
    add(
        '--example',
        action='store_true',
        help='write nominal.yaml, points.csv and held_out.csv of a simulated arm to try the command on',
    )
    add('--no-report', action='store_true', help='write no report')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    config = settings_from(options, CalibrationConfig)
    if options.example:
        return _write_example(options, config)
    if options.robot is None:
        raise CalibrationError('expected --robot, the nominal arm: a DH table or a URDF')
    if options.points is None and options.select_poses is None and options.workspace is None:
        raise CalibrationError('expected POINTS.csv, or --select-poses N or --workspace N')
    if options.points is None and (options.held_out is not None or options.compensate is not None):
        raise CalibrationError('--held-out and --compensate need POINTS.csv to calibrate from')
    if options.tool_point is not None and config.tool != 'known':
        raise CalibrationError('--tool-point is for --tool known; otherwise the target is estimated')
    arm = load_config(options)
    robot = _load_robot(options, arm)
    folder = output_folder(options.out)
    report = not options.no_report and can_draw()
    if options.workspace is not None:
        positions = sample_workspace(robot, options.workspace, rng=np.random.default_rng(config.seed))
        lower, upper = positions.min(axis=0).tolist(), positions.max(axis=0).tolist()
        reach = float(np.linalg.norm(positions, axis=1).max())
        save_yaml(
            folder / 'workspace.yaml', {'samples': len(positions), 'lower': lower, 'upper': upper, 'reach': reach}
        )
        if report:
            write_report(workspace_report(positions), folder / 'workspace.html')
        extent = (f'{axis} {low:.3f} to {high:.3f} m' for axis, low, high in zip('xyz', lower, upper, strict=True))
        print(f'workspace: {", ".join(extent)}; reach {reach:.3f} m')
    if options.select_poses is not None:
        candidates: Array | int = _CANDIDATES
        if arm is not None and isinstance(robot, RobotModel):
            candidates = clear_poses(robot, ExcitationConfig(**arm.design), _DRAWN)[:_CANDIDATES]
        selection = select_poses(
            robot,
            options.select_poses,
            candidates=candidates,
            frame=config.frame,
            rng=np.random.default_rng(config.seed),
        )
        write_joints(folder / 'poses.csv', robot.joint_names, selection.q)
        print(
            f'{len(selection.q)} poses of {selection.candidates} candidates: observability index O1 '
            f'{selection.observability_index:.4g}, {selection.random_index:.4g} on average for random ones'
        )
        say_written(folder / 'poses.csv')
    return 0 if options.points is None else _calibrate(options, config, robot, folder, report)


def _load_robot(options: argparse.Namespace, arm: RobotConfig | None) -> RobotModel | DHTable:
    options.robot = arm_file(options.robot)
    if options.robot.suffix.lower() not in ('.yaml', '.yml'):
        return configured_arm(str(options.robot), arm, tip=options.tip or '')
    if options.tip is not None:
        raise CalibrationError('--tip chooses from a URDF; a DH table is taken whole')
    if arm is not None:
        raise CalibrationError('--config goes with a URDF; a DH table has limits of its own')
    return read_dh_file(options.robot)


def _read_points(path: Path, options: argparse.Namespace, robot: RobotModel | DHTable) -> MeasuredPoints:
    sliding = [n for n, kind in zip(robot.joint_names, robot.joint_types, strict=True) if kind == 'prismatic']
    units = {'length_unit': options.length_unit, 'angle_unit': options.angle_unit}
    return read_points(path, **units, prismatic=sliding).for_joints(robot.joint_names)


def _calibrate(
    options: argparse.Namespace, config: CalibrationConfig, robot: RobotModel | DHTable, folder: Path, report: bool
) -> int:
    points = _read_points(options.points, options, robot)
    held_out = None if options.held_out is None else _read_points(options.held_out, options, robot)
    joints = None if options.compensate is None else read_joints(options.compensate, robot.joint_names)
    with progress_bar('calibrate') as progress:
        targets = None if options.tool_point is None else dict.fromkeys(points.points, options.tool_point)
        result = calibrate(robot, points, config, held_out=held_out, targets=targets, progress=progress)
    files = [path for path in (options.points, options.held_out, options.robot) if path is not None]
    others = {name: getattr(options, name) for name in ('length_unit', 'angle_unit', 'tool_point', 'tip')}
    written = write_result(result, folder, files, config.to_dict() | others)
    if joints is not None:
        compensated = compensated_joints(result, joints)
        if not compensated.converged.all():
            rows = ', '.join(str(k + 1) for k in np.flatnonzero(~compensated.converged)[:10])
            print(f'warning: no joint positions put the tip exactly there in rows {rows}; the closest were written')
        written.append(folder / 'compensated.csv')
        write_joints(written[-1], result.chain.joint_names, compensated.q)
    if report:
        write_report(calibration_report(result), folder / 'report.html')
        written.append(folder / 'report.html')
    print(f'{report_table(accuracy_table(result))}\n')
    print(_summary(result))
    if result.terms.terms and not isinstance(robot, DHTable):
        print('the URDF holds the geometry only: the joint terms are in result.yaml')
    say_written(*written)
    return 0 if result.usable else 1


def _summary(result: CalibrationResult) -> str:
    """Return what a user should know besides the table, a line each."""
    known = result.points.std is not None
    noise = result.fit.noise
    spread = f'{noise:.3g} times the given deviations' if known else f'{1e3 * noise:.3g} mm per coordinate'
    count = f'{result.identifiable} independent parameters (of {result.structural} with unlimited poses)'
    lines = [f'{count}, condition number {result.condition_number:.3g}, noise {spread}'] if result.determined else []
    fixed = [p.name for p in result.parameters if p.reason]
    if fixed:
        lines.append(f'left at nominal: {", ".join(fixed)} (why: result.yaml, under fixed)')
    if result.terms.terms:
        lines.append(
            f'joint terms that lower the cross-validated error: {", ".join(name for name, *_ in result.terms.terms)}'
        )
    if result.outliers:
        lines.append(f'outliers: measurements {listed([str(k + 1) for k, _, _ in result.outliers], 20)}')
    if result.held_out is not None and result.held_out.fitted:
        lines.append(f'fitted to the held-out measurements themselves: {", ".join(result.held_out.fitted)}')
    if result.averaged:
        errors = ', '.join(f'{1e3 * each.rms:.3g} mm ({name})' for name, each in result.averaged.items())
        lines.append(f'average of the answers to single measurements, for comparison: rms {errors}')
    lines += [f'warning: {text}' for text in result.warnings]
    return '\n'.join(lines)


def _write_example(options: argparse.Namespace, config: CalibrationConfig) -> int:
    rng = np.random.default_rng(config.seed)
    arm, folder = example_arm(rng), output_folder(options.out)
    paths = [folder / name for name in ('nominal.yaml', 'points.csv', 'held_out.csv')]
    write_text(paths[0], example_table().to_yaml())
    for path, count in zip(paths[1:], (100, 200), strict=True):
        write_points(path, arm.measure(arm.configurations(count, rng), rng))
    say_written(*paths)
    return 0
