# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid calibrate``: options, and what they do."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import robotid_ros
from robotid_ros.arrays import Array
from robotid_ros.calibration.estimate import calibrate
from robotid_ros.calibration.files import joints_csv, read_joints, write_result
from robotid_ros.calibration.inverse_kinematics import compensated_joints
from robotid_ros.calibration.joint_terms import TERM_KINDS
from robotid_ros.calibration.plots import calibration_figure, png, workspace_figure
from robotid_ros.calibration.points import MeasuredPoints
from robotid_ros.calibration.points_file import ANGLE_UNITS, LENGTH_UNITS, read_points
from robotid_ros.calibration.pose_selection import select_poses
from robotid_ros.calibration.result import CalibrationResult
from robotid_ros.calibration.table import accuracy_table, summary
from robotid_ros.calibration.workspace import sample_workspace
from robotid_ros.errors import CalibrationError
from robotid_ros.files import atomic_file, file_hash, write_text
from robotid_ros.model.dh_file import DHTable, read_dh_file
from robotid_ros.model.packaged import arm_file
from robotid_ros.model.robot_model import RobotModel

__all__ = ['add_arguments', 'run']


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``robotid calibrate``."""
    parser.add_argument(
        'points',
        nargs='?',
        type=Path,
        metavar='POINTS.csv',
        help='columns position/<joint> [rad], x,y,z [m], optionally qw,qx,qy,qz, set, point, std, std_angle',
    )
    parser.add_argument(
        '--robot', required=True, type=Path, metavar='MDH.yaml|URDF', help='nominal arm: a DH table or a URDF'
    )
    parser.add_argument('--out', required=True, type=Path, metavar='DIR', help='folder for the results, made if needed')
    parser.add_argument(
        '--held-out', type=Path, metavar='POINTS.csv', help='measurements kept apart, for the accuracy alone'
    )
    parser.add_argument(
        '--tip', metavar='LINK', help="end of a URDF's chain; by default the last link before it branches"
    )
    _add_model_arguments(parser)
    _add_other_arguments(parser)


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    units = parser.add_argument_group('units of the points files')
    units.add_argument('--length-unit', choices=tuple(LENGTH_UNITS), default='m', help='default m')
    units.add_argument('--angle-unit', choices=tuple(ANGLE_UNITS), default='rad', help='default rad')
    model = parser.add_argument_group('what is estimated')
    model.add_argument(
        '--frame',
        choices=('unknown', 'known'),
        default='unknown',
        help='known: the points are in the base frame of the robot (default: estimate the frame of every set)',
    )
    model.add_argument(
        '--tool',
        choices=('auto', 'known', 'position', 'pose'),
        default='auto',
        help='what is unknown of the targets in the tip frame (default: all that can be measured)',
    )
    model.add_argument(
        '--tool-point', nargs=3, type=float, metavar=('X', 'Y', 'Z'), help='with --tool known: the target [m]'
    )
    model.add_argument(
        '--terms',
        nargs='*',
        choices=TERM_KINDS,
        default=list(TERM_KINDS),
        metavar='TERM',
        help=f'joint terms to try: {", ".join(TERM_KINDS)} (default: all; none after a bare --terms); '
        'used only where the cross-validated error falls',
    )
    model.add_argument(
        '--loss',
        choices=('hampel', 'huber', 'linear'),
        default='hampel',
        help='hampel and huber resist outliers (default hampel)',
    )
    model.add_argument('--folds', type=int, default=5, help='of the cross-validation, 0 for none (default 5)')
    model.add_argument('--seed', type=int, default=0, help='of everything random (default 0)')


def _add_other_arguments(parser: argparse.ArgumentParser) -> None:
    more = parser.add_argument_group('more')
    more.add_argument(
        '--compensate',
        type=Path,
        metavar='JOINTS.csv',
        help='write the joint positions [rad] at which the real tip is where the nominal arm has it at these',
    )
    more.add_argument(
        '--select-poses', type=int, metavar='N', help='write the N poses that show the parameters best; needs no points'
    )
    more.add_argument(
        '--workspace', type=int, metavar='N', help='sample the workspace with N random poses; needs no points'
    )
    more.add_argument('--no-plots', action='store_true', help='draw no pictures')


def run(
    options: argparse.Namespace,
    write_report: Callable[[CalibrationResult, Path], None] | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> int:
    """Calibrate, select poses or sample the workspace, as the options say; return the exit code.

    Parameters
    ----------
    options : argparse.Namespace
        Of :func:`add_arguments`.
    write_report : callable, optional
        Writes a report of the result into a file of the given name; called unless pictures are off.
    progress : callable, optional
        Called with a fraction and what is being done.
    """
    if options.points is None and options.select_poses is None and options.workspace is None:
        raise CalibrationError('expected POINTS.csv, or --select-poses N or --workspace N')
    if options.points is None and (options.held_out is not None or options.compensate is not None):
        raise CalibrationError('--held-out and --compensate need POINTS.csv to calibrate from')
    if options.tool_point is not None and options.tool != 'known':
        raise CalibrationError('--tool-point is for --tool known; otherwise the target is estimated')
    options.robot = arm_file(options.robot)
    robot = _robot(options.robot, options.tip)
    folder = _folder(options.out)
    draw = not options.no_plots and _can_draw()
    if options.workspace is not None:
        _workspace(options, robot, folder, draw)
    if options.select_poses is not None:
        _poses(options, robot, folder)
    if options.points is None:
        return 0
    result, written = _calibrate(options, robot, folder, progress)
    if draw:
        with atomic_file(folder / 'calibration.png') as file:
            file.write(png(calibration_figure(result)))
        written.append(folder / 'calibration.png')
        if write_report is not None:
            write_report(result, folder / 'report.html')
            written.append(folder / 'report.html')
    print(accuracy_table(result))
    print()
    print(summary(result))
    if result.terms.terms and not isinstance(robot, DHTable):
        print('the URDF holds the geometry only: the joint terms are in result.yaml')
    print(f'wrote {", ".join(str(path) for path in written)}')
    return 0 if result.converged else 1


def _calibrate(
    options: argparse.Namespace,
    robot: RobotModel | DHTable,
    folder: Path,
    progress: Callable[[float, str], None] | None,
) -> tuple[CalibrationResult, list[Path]]:
    points = _points(options.points, options, robot)
    held_out = None if options.held_out is None else _points(options.held_out, options, robot)
    commanded = None if options.compensate is None else read_joints(options.compensate, robot.joint_names)
    targets = None
    if options.tool_point is not None:
        targets = dict.fromkeys(points.points, options.tool_point)
    result = calibrate(
        robot,
        points,
        held_out=held_out,
        frame=options.frame,
        tool=options.tool,
        targets=targets,
        terms=options.terms,
        loss=options.loss,
        folds=options.folds,
        rng=np.random.default_rng(options.seed),
        progress=progress,
    )
    written = write_result(result, folder, _provenance(options))
    if commanded is not None:
        written.append(_compensate(result, commanded, folder))
    return result, written


def _robot(path: Path, tip: str | None) -> RobotModel | DHTable:
    if path.suffix.lower() in ('.yaml', '.yml'):
        if tip is not None:
            raise CalibrationError('--tip chooses from a URDF; a DH table is taken whole')
        return read_dh_file(path)
    return RobotModel.from_urdf(path, tip=tip)


def _points(path: Path, options: argparse.Namespace, robot: RobotModel | DHTable) -> MeasuredPoints:
    prismatic = [n for n, kind in zip(robot.joint_names, robot.joint_types, strict=True) if kind == 'prismatic']
    return read_points(
        path, length_unit=options.length_unit, angle_unit=options.angle_unit, prismatic=prismatic
    ).for_joints(robot.joint_names)


def _can_draw() -> bool:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


def _folder(path: Path) -> Path:
    folder = path.expanduser()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise CalibrationError(f"output folder '{folder}' cannot be made: {cause.strerror}") from cause
    return folder


def _provenance(options: argparse.Namespace) -> dict[str, Any]:
    files = [path for path in (options.points, options.held_out, options.robot) if path is not None]
    settings = {key: getattr(options, key) for key in ('length_unit', 'angle_unit', 'frame', 'tool', 'terms')}
    settings |= {key: getattr(options, key) for key in ('tool_point', 'loss', 'folds', 'seed', 'tip')}
    return {
        'version': robotid_ros.__version__,
        'files': {str(path): file_hash(path.expanduser()) for path in files},
        'settings': settings,
    }


def _compensate(result: CalibrationResult, q: Array, folder: Path) -> Path:
    compensated = compensated_joints(result, q)
    if not compensated.converged.all():
        lost = np.flatnonzero(~compensated.converged) + 1
        shown = ', '.join(str(k) for k in lost[:10])
        print(f'warning: no joint positions put the tip exactly there in rows {shown}; the closest were written')
    path = folder / 'compensated.csv'
    write_text(path, joints_csv(result.chain.joint_names, compensated.q))
    return path


def _poses(options: argparse.Namespace, robot: RobotModel | DHTable, folder: Path) -> None:
    selection = select_poses(robot, options.select_poses, frame=options.frame, rng=np.random.default_rng(options.seed))
    path = folder / 'poses.csv'
    write_text(path, joints_csv(robot.joint_names, selection.q))
    print(
        f'{len(selection.q)} poses of {selection.candidates} candidates: observability index O1 '
        f'{selection.observability_index:.4g}, {selection.random_index:.4g} on average for random ones; wrote {path}'
    )


def _workspace(options: argparse.Namespace, robot: RobotModel | DHTable, folder: Path, draw: bool) -> None:
    workspace = sample_workspace(robot, options.workspace, rng=np.random.default_rng(options.seed))
    content = {
        'samples': len(workspace.positions),
        'lower': workspace.lower.tolist(),
        'upper': workspace.upper.tolist(),
        'reach': workspace.reach,
    }
    write_text(folder / 'workspace.yaml', yaml.safe_dump(content, sort_keys=False))
    if draw:
        with atomic_file(folder / 'workspace.png') as file:
            file.write(png(workspace_figure(workspace)))
    extent = ', '.join(
        f'{axis} {low:.3f} to {high:.3f} m'
        for axis, low, high in zip('xyz', workspace.lower, workspace.upper, strict=True)
    )
    print(f'workspace: {extent}; reach {workspace.reach:.3f} m')
