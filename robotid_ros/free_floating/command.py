# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid free-floating``: design a trajectory, simulate a measurement, identify the target."""

import argparse
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import robotid_ros
from robotid_ros.errors import DataError, IdentificationError
from robotid_ros.files import require_folder
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.criteria import CRITERIA
from robotid_ros.free_floating.design import (
    FloatingExcitation,
    control_trajectory,
    design_excitation,
    predicted_conditions,
)
from robotid_ros.free_floating.files import read_excitation, read_measurement, write_measurement, write_yaml
from robotid_ros.free_floating.identification import ESTIMATORS, identify_target
from robotid_ros.free_floating.mission import EXAMPLE, Mission, read_mission
from robotid_ros.free_floating.plots import base_figure, identification_figures, save_figures, trajectory_figures
from robotid_ros.free_floating.result import TargetIdentification
from robotid_ros.free_floating.simulation import simulate
from robotid_ros.free_floating.study import study_priors

__all__ = ['add_arguments', 'run']

Progress = Callable[[float, str], None]
ReportWriter = Callable[[TargetIdentification, RigidBody | None, Path], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the sub-commands of ``robotid free-floating``."""
    commands = parser.add_subparsers(dest='action', metavar='design|simulate|identify', required=True)

    def command(name: str, summary: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=summary, description=summary)
        sub.add_argument(
            '--mission',
            type=Path,
            metavar='YAML',
            help=f'robot, prior, limits and sensors (default: the packaged example {EXAMPLE})',
        )
        sub.add_argument('--seed', type=int, default=0, help='of everything random (default 0)')
        return sub

    design = command('design', 'Design the joint trajectory that identifies the target best.')
    design.add_argument('--out', default='excitation.yaml', type=Path, metavar='YAML', help='default: excitation.yaml')
    design.add_argument(
        '--criterion',
        choices=CRITERIA,
        default='scaled',
        help='condition number of the column-scaled regressor, in SI units, or determinant (default scaled)',
    )
    design.add_argument('--starts', type=int, default=4, help='most starting points to try (default 4)')
    design.add_argument(
        '--study', action='store_true', help='also design with priors half off, and print what each loses'
    )
    design.add_argument('--plots', type=Path, metavar='DIR', help='draw the trajectory')

    simulation = command('simulate', 'Simulate the measurement of a trajectory, with sensor noise.')
    simulation.add_argument('excitation', type=Path, metavar='excitation.yaml')
    simulation.add_argument(
        '--out', default='measurement.csv', type=Path, metavar='CSV', help='default: measurement.csv'
    )
    simulation.add_argument('--no-noise', action='store_true', help='perfect sensors')
    simulation.add_argument(
        '--momentum',
        nargs=6,
        type=float,
        default=[0.0] * 6,
        metavar=('PX', 'PY', 'PZ', 'LX', 'LY', 'LZ'),
        help='of the whole system about the inertial origin [kg m/s, kg m^2/s] (default zero)',
    )
    simulation.add_argument('--plots', type=Path, metavar='DIR', help='draw the motion of the base')

    identify = command('identify', 'Identify the target from a measurement.')
    identify.add_argument('measurement', type=Path, metavar='measurement.csv')
    identify.add_argument('--out', default='free_floating', type=Path, metavar='DIR', help='default: free_floating')
    identify.add_argument('--estimator', choices=ESTIMATORS, default='weighted', help='default weighted')
    identify.add_argument('--forgetting', type=float, default=1.0, help='of the recursive estimator (default 1)')
    identify.add_argument(
        '--momentum',
        nargs='+',
        default=['zero'],
        metavar='zero|estimated|PX PY PZ LX LY LZ',
        help='of the whole system about the inertial origin (default zero)',
    )
    identify.add_argument('--no-plots', action='store_true', help='draw no pictures')


def run(options: argparse.Namespace, progress: Progress | None = None, write_report: ReportWriter | None = None) -> int:
    """Run one of the sub-commands and return the exit code.

    Parameters
    ----------
    options : argparse.Namespace
    progress : callable, optional
        Called with the part done and a message by what takes long.
    write_report : callable, optional
        Writes a report of a result, with the true body where it is known, into a file of the given name;
        called unless pictures are off.
    """
    mission = read_mission(options.mission)
    if options.action == 'design':
        return _design(options, mission, progress)
    if options.action == 'simulate':
        return _simulate(options, mission)
    return _identify(options, mission, write_report)


def _design(options: argparse.Namespace, mission: Mission, progress: Progress | None) -> int:
    require_folder(options.out)
    settings: dict[str, Any] = {
        'start': mission.start,
        'base_frequency': 1.0 / mission.period,
        'harmonics': mission.harmonics,
        'limits': mission.limits,
        'starts': options.starts,
    }
    design = design_excitation(
        mission.robot,
        criterion=options.criterion,
        rng=np.random.default_rng(options.seed),
        progress=progress,
        **settings,
    )
    speed = float(np.min(mission.limits.velocity))
    control = control_trajectory(mission.start, speed, 1.0 / mission.period, mission.harmonics)
    write_yaml(options.out, _excitation_content(options, mission, design))
    control_si, control_scaled = predicted_conditions(mission.robot, control)
    print(f'{"condition number":<34}{"SI":>10}{"scaled":>10}')
    print(f'{"designed (" + design.criterion + ")":<34}{design.condition_si:>10.4f}{design.condition_scaled:>10.4f}')
    print(f'{"control (first and last harmonic)":<34}{control_si:>10.1f}{control_scaled:>10.1f}')
    print(
        f'{design.evaluations} evaluations in {design.seconds:.1f} s; the bounds are used to '
        f'{100.0 * design.bound_ratio:.0f} %'
    )
    written = [options.out]
    if options.study:
        print()
        print(f'{"prior half off in":<18}{"criterion":<10}{"expected":>10}{"true":>10}')
        cases = study_priors(mission.robot, seed=options.seed, progress=progress, **settings)
        for case in cases:
            expected, true = (
                (case.expected_scaled, case.true_scaled)
                if case.criterion == 'scaled'
                else (case.expected_si, case.true_si)
            )
            print(f'{case.prior:<18}{case.criterion:<10}{expected:>10.3f}{true:>10.3f}')
    if options.plots is not None:
        figures = trajectory_figures(design.trajectory, mission.robot.arm.joint_names, mission.limits)
        written += save_figures(figures, _folder(options.plots))
    _report(written)
    return 0


def _excitation_content(options: argparse.Namespace, mission: Mission, design: FloatingExcitation) -> dict[str, Any]:
    limits = mission.limits
    return {
        'robot': mission.robot.arm.name,
        'joints': list(mission.robot.arm.joint_names),
        'period': mission.period,
        'harmonics': mission.harmonics,
        'trajectory': design.trajectory.to_dict(),
        'criterion': design.criterion,
        'condition_number': {'si': design.condition_si, 'scaled': design.condition_scaled},
        'prior': mission.robot.target.to_dict(),
        'limits': {name: getattr(limits, name).tolist() for name in ('lower', 'upper', 'velocity', 'acceleration')},
        'samples': design.samples,
        'seed': options.seed,
        'version': robotid_ros.__version__,
    }


def _simulate(options: argparse.Namespace, mission: Mission) -> int:
    require_folder(options.out)
    robot = mission.true_robot
    trajectory = read_excitation(options.excitation, robot.arm.joint_names)
    measurement = simulate(robot, trajectory, mission.sample_times(trajectory), momentum=options.momentum)
    written = [options.out]
    if options.plots is not None:
        written += save_figures({'base_motion': base_figure(measurement)}, _folder(options.plots))
    if not options.no_noise:
        measurement = measurement.with_noise(mission.noise, np.random.default_rng(options.seed))
    write_measurement(options.out, measurement)
    print(f'{len(measurement)} samples over {measurement.time[-1]:g} s')
    _report(written)
    return 0


def _identify(options: argparse.Namespace, mission: Mission, write_report: ReportWriter | None) -> int:
    measurement = read_measurement(options.measurement, mission.robot.arm.joint_names)
    result = identify_target(
        mission.robot,
        measurement,
        estimator=options.estimator,
        noise=mission.noise,
        momentum=_momentum(options.momentum),
        forgetting=options.forgetting,
    )
    folder = _folder(options.out)
    content = result.to_dict()
    content['provenance'] = {
        **content['provenance'],
        'mission': mission.name,
        'forgetting': options.forgetting,
        'version': robotid_ros.__version__,
    }
    write_yaml(folder / 'result.yaml', content)
    written = [folder / 'result.yaml']
    if not options.no_plots and importlib.util.find_spec('matplotlib') is not None:
        truth = None if mission.target is None else mission.true_robot.body
        figures = identification_figures(result, truth)
        figures['base_motion'] = base_figure(measurement)
        written += save_figures(figures, folder)
        if write_report is not None:
            write_report(result, truth, folder / 'report.html')
            written.append(folder / 'report.html')
    print(_table(result))
    _report(written)
    if not result.usable:
        print(f'not usable: {result.reason}')
        return 1
    if result.reason:
        print(f'note: {result.reason}')
    return 0


def _momentum(words: list[str]) -> Any:
    if words in (['zero'], ['estimated']):
        return words[0]
    try:
        numbers = [float(word) for word in words]
    except ValueError as cause:
        raise IdentificationError(
            f"--momentum: expected 'zero', 'estimated' or six numbers; got '{' '.join(words)}'"
        ) from cause
    if len(numbers) != 6:
        raise IdentificationError(f"--momentum: expected 'zero', 'estimated' or six numbers; got {len(numbers)}")
    return numbers


def _table(result: TargetIdentification) -> str:
    rows = [('m', 'kg'), *((f'c{axis}', 'm') for axis in 'xyz')]
    rows += [(name, 'kg m^2') for name in ('Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')]
    target = np.concatenate([[result.target.mass], result.target.unknowns[1:]])
    lines = [f'{"target":<8}{"value":>14}{"std":>12}']
    for (name, unit), value, deviation in zip(rows, target, result.target_deviation, strict=True):
        lines.append(f'{name:<8}{value:>14.6g}{deviation:>12.2g}  {unit}')
    lines.append(
        f'condition number: {result.condition_scaled:.4g} column-scaled, {result.condition_si:.4g} in SI units'
    )
    if result.momentum_source == 'estimated':
        spelled = ', '.join(f'{value:.4g}' for value in result.momentum)
        lines.append(f'momentum [P; L]: {spelled} (kg m/s, kg m^2/s)')
    return '\n'.join(lines)


def _folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise DataError(f"cannot make the folder '{path}': {cause.strerror}") from cause
    return path


def _report(paths: list[Path]) -> None:
    for path in paths:
        print(f'wrote {path}')
