# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid demo``: the whole loop over real ROS 2 with a simulated arm.

Start the simulated arm and the three nodes, design and run an excitation, identify the arm, validate the model on a
second trajectory, and compare it with the truth.
"""

import argparse
import sys
import time
from pathlib import Path

from robotid_ros.commands.options import number
from robotid_ros.commands.terminal import joint_table, progress_bar, say_written, text_table
from robotid_ros.demo.run import WELL_EXCITED, DemoSettings, ParameterComparison, configuration_text, run_demo
from robotid_ros.files import output_folder, write_text
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.packaged import arm_file, packaged_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('--robot', default='ur10e', metavar='NAME', help='packaged arm, or a URDF (default: ur10e)')
    parser.add_argument(
        '--config', metavar='YAML', help="robot configuration; by default the packaged arm's, or one made from the URDF"
    )
    parser.add_argument('--out', default='robotid_demo', metavar='DIR', help='default: robotid_demo')
    parser.add_argument(
        '--seed', type=number(int, 0, 2**31 - 1), default=0, metavar='N', help='of the simulated truth and the noise'
    )
    parser.add_argument('--headless', action='store_true', help='plain lines instead of a progress bar')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    robot, made = arm_file(options.robot), ''
    config = robot.with_suffix('.yaml') if options.config is None else Path(options.config)
    if options.config is not None:
        RobotConfig.from_yaml(config)
    else:
        model = RobotModel.from_urdf(robot)
        is_packaged = robot.parent == packaged_folder() and config.is_file()
        if not is_packaged or 'ros__parameters' not in config.read_text('utf-8'):
            made = configuration_text(model)
    # What is wrong with arm or configuration has been said: a refused command leaves nothing behind.
    folder = output_folder(options.out)
    if made:
        config = folder / 'robot.yaml'
        write_text(config, made)
    settings = DemoSettings(robot=str(robot.resolve()), config=config, folder=folder, seed=options.seed)
    begun = time.monotonic()
    with progress_bar('demo', plain=options.headless) as step:
        outcome = run_demo(settings, step)
    result = outcome.result
    joints = result.joint_names
    print(parameter_table(outcome.comparison))
    print('\nvalidation on a second trajectory, which the fit has not seen')
    measured = result.metrics['validation']
    columns = {'rmse [N m]': measured.rmse, 'match %': measured.match, 'friction off': outcome.friction_rmse}
    print(joint_table(joints, columns))
    print('friction off: rms of the found friction against the true one, which a simulation knows [N m]\n')
    print('The simulated arm has what the model does not describe wholly: breakaway, friction of the load, torque')
    print('ripple, a delayed effort, coarse encoders, wrong link lengths and flexible joints. With that and noise')
    print(f'{measured.relative_error_total:.1f} % of the measured torque is not explained.\n')
    say_written(*outcome.written)
    print(f'{"usable" if result.usable else "NOT USABLE: " + result.reason}; {time.monotonic() - begun:.0f} s in all')
    sys.stdout.flush()
    return 0 if result.usable else 1


def parameter_table(comparison: ParameterComparison) -> str:
    """Return true and found values, standard deviations and differences in standard deviations."""
    agreeing, excited = comparison.agreeing, comparison.well_excited
    numbers = zip(
        comparison.true, comparison.found, comparison.std, comparison.relative_std, comparison.deviations, strict=True
    )
    rows = [
        (
            comparison.names[k],
            f'{true:.4f}',
            f'{found:.4f}',
            f'{std:.2g}',
            f'{relative:.2f}' if relative < 1000.0 else '>1000',
            f'{deviation:.1f} σ',
            '(hardly excited)' if not excited[k] else '' if agreeing[k] else '<- more than 3 std off',
        )
        for k, (true, found, std, relative, deviation) in enumerate(numbers)
    ]
    return (
        f'{text_table(("parameter", "true", "found", "std", "std %", "off by", ""), rows, "<>>>>><")}\n'
        f'{(excited & agreeing).sum()} of the {excited.sum()} parameters found to better than {WELL_EXCITED:g} % lie '
        'within 3 std of the truth'
    )
