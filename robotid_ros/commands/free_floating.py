# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid free-floating``: identify what a space robot has captured.

Design the motion of a free-floating arm, simulate it, and identify mass, centre of mass and inertia of a captured
target from the conservation of momentum.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.commands.terminal import progress_bar, report_table, say_written, text_table
from robotid_ros.errors import ExcitationError, IdentificationError
from robotid_ros.excitation import load_excitation, save_excitation
from robotid_ros.excitation.criteria import CRITERIA
from robotid_ros.files import output_folder, require_folder, write_text
from robotid_ros.free_floating import (
    Mission,
    control_trajectory,
    design_excitation,
    identify_target,
    read_measurement,
    read_mission,
    simulate,
    study_priors,
    write_measurement,
)
from robotid_ros.free_floating.design import judged_trajectory
from robotid_ros.free_floating.identification import ESTIMATORS
from robotid_ros.free_floating.mission import EXAMPLE
from robotid_ros.report import can_draw, write_report
from robotid_ros.report.free_floating import base_motion_report, body_table, free_floating_report, trajectory_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    actions = parser.add_subparsers(dest='action', metavar='design|simulate|identify', required=True)

    def action(name: str, summary: str, run: Any) -> Any:
        sub = actions.add_parser(name, help=summary, description=summary)
        sub.set_defaults(act=run)
        sub.add_argument(
            '--mission',
            metavar='YAML',
            help=f'robot, prior, limits and sensors (default: the packaged example {EXAMPLE})',
        )
        sub.add_argument('--seed', type=int, default=0, help='of everything random (default: 0)')
        return sub.add_argument

    add = action('design', 'Design the joint trajectory that identifies the target best.', _design)
    add('--out', default='excitation.yaml', type=Path, metavar='YAML', help='default: excitation.yaml')
    add(
        '--criterion',
        choices=CRITERIA,
        default='condition-scaled',
        help='of the ten unknowns, by their information matrix (default: condition-scaled)',
    )
    add('--starts', type=int, default=4, help='most starting points to try (default: 4)')
    add('--control', action='store_true', help='write the control trajectory that designs are compared with instead')
    add('--study', action='store_true', help='also design with priors half off, and print what each loses')
    add('--report', type=Path, metavar='HTML', help='draw the trajectory')

    add = action('simulate', 'Simulate the measurement of a trajectory, with sensor noise.', _simulate)
    add('excitation', metavar='excitation.yaml')
    add('--out', default='measurement.csv', type=Path, metavar='CSV', help='default: measurement.csv')
    add('--no-noise', action='store_true', help='perfect sensors')
    add(
        '--momentum',
        nargs=6,
        type=float,
        default=[0.0] * 6,
        metavar=('PX', 'PY', 'PZ', 'LX', 'LY', 'LZ'),
        help='of the whole system about the inertial origin [kg m/s, kg m^2/s] (default: zero)',
    )
    add('--report', type=Path, metavar='HTML', help='draw the motion of the base')

    add = action('identify', 'Identify the target from a measurement.', _identify)
    add('measurement', metavar='measurement.csv|BAG', help='CSV, or a bag with joint states and the twist of the base')
    add('--out', default='free_floating', metavar='DIR', help='default: free_floating')
    add('--estimator', choices=ESTIMATORS, default='weighted', help='default: weighted')
    add('--forgetting', type=float, default=1.0, help='of the recursive estimator (default: 1)')
    add(
        '--momentum',
        nargs='+',
        default=['zero'],
        metavar='zero|estimated|PX PY PZ LX LY LZ',
        help='of the whole system about the inertial origin (default: zero)',
    )
    add('--no-report', action='store_true', help='write no report')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.seed < 0:
        raise ExcitationError(f'--seed: expected a number of at least 0, got {options.seed}')
    return int(options.act(options, read_mission(options.mission)))


def _design(options: argparse.Namespace, mission: Mission) -> int:
    require_folder(options.out, options.report)
    settings: dict[str, Any] = {
        'start': mission.start,
        'period': mission.period,
        'harmonics': mission.harmonics,
        'limits': mission.limits,
        'starts': options.starts,
        'seed': options.seed,
    }
    speed = float(np.min(mission.limits.velocity))
    if options.control:  # it is to be run: its acceleration, (1 + L) w/2 times its speed at most, has a limit too
        steepest = (1.0 + mission.harmonics) * np.pi / mission.period
        speed = float(min(speed, np.min(mission.limits.acceleration) / steepest))
    control = control_trajectory(mission.start, speed, mission.period, mission.harmonics)
    design = judged_trajectory(mission.robot, control, mission.limits)
    rows = [('control (first and last harmonic)', design.excitation)]
    with progress_bar('design') as progress:
        if not options.control:
            design = design_excitation(mission.robot, criterion=options.criterion, progress=progress, **settings)
            rows.insert(0, (f'designed ({options.criterion})', design.excitation))
        cases = study_priors(mission.robot, progress=progress, **settings) if options.study else ()
    save_excitation(design, options.out)
    found = [(name, f'{each.condition:.4g}', f'{each.condition_scaled:.4g}') for name, each in rows]
    print(text_table(('condition number', 'SI', 'scaled'), found))
    if cases:
        lost = [
            (prior, criterion, *(f'{each[criterion == "condition-scaled"]:.3f}' for each in (expected, true)))
            for criterion, prior, expected, true in cases
        ]
        print(f'\n{text_table(("prior half off in", "criterion", "expected", "true"), lost, "<<")}')
    written = [options.out]
    if options.report is not None:
        arm = mission.robot.arm
        write_report(trajectory_report(arm.name, design.trajectory, arm.joint_names, mission.limits), options.report)
        written.append(options.report)
    say_written(*written)
    return 0


def _simulate(options: argparse.Namespace, mission: Mission) -> int:
    require_folder(options.out, options.report)
    robot = mission.true_robot
    design = load_excitation(options.excitation)
    if design.joint_names != robot.arm.joint_names:
        raise ExcitationError(
            f"excitation '{options.excitation}' moves {', '.join(design.joint_names)}; "
            f"the arm's joints are {', '.join(robot.arm.joint_names)}"
        )
    trajectory = design.trajectory
    measurement = simulate(robot, trajectory, mission.sample_times(trajectory), momentum=options.momentum)
    written = [options.out]
    if options.report is not None:
        write_report(base_motion_report(robot.arm.name, measurement), options.report)
        written.append(options.report)
    if not options.no_noise:
        measurement = measurement.with_noise(mission.noise, np.random.default_rng(options.seed))
    write_measurement(options.out, measurement)
    print(f'{len(measurement)} samples over {measurement.time[-1]:g} s')
    say_written(*written)
    return 0


def _identify(options: argparse.Namespace, mission: Mission) -> int:
    measurement = read_measurement(options.measurement, mission.robot.arm.joint_names)
    result = identify_target(
        mission.robot,
        measurement,
        estimator=options.estimator,
        noise=mission.noise,
        momentum=_momentum(options.momentum),
        forgetting=options.forgetting,
    )
    folder = output_folder(options.out)
    write_text(folder / 'result.yaml', result.to_yaml(mission=mission.name, forgetting=options.forgetting))
    written = [folder / 'result.yaml']
    if not options.no_report and can_draw():
        truth = None if mission.target is None else mission.true_robot.body
        write_report(free_floating_report(result, truth=truth, measurement=measurement), folder / 'report.html')
        written.append(folder / 'report.html')
    print(report_table(body_table('Target', result.target, result.target_deviation)))
    print(f'condition number: {result.condition_scaled:.4g} column-scaled, {result.condition_si:.4g} in SI units')
    if result.momentum_source == 'estimated':
        spelled = ', '.join(f'{value:.4g}' for value in result.momentum)
        print(f'momentum [P; L]: {spelled} (kg m/s, kg m^2/s)')
    say_written(*written)
    if result.reason:
        print(f'{"note" if result.usable else "not usable"}: {result.reason}')
    return 0 if result.usable else 1


def _momentum(words: list[str]) -> Any:
    if words in (['zero'], ['estimated']):
        return words[0]
    try:
        numbers = [float(word) for word in words]
    except ValueError:
        numbers = []
    if len(numbers) != 6:
        raise IdentificationError(f"--momentum: expected 'zero', 'estimated' or six numbers; got '{' '.join(words)}'")
    return numbers
