# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid design``: an optimised excitation for an arm.

Optimise a Fourier trajectory that makes the base parameters of an arm best identifiable, within all its limits, and
write it as YAML, with a page that shows the arm moving.
"""

import argparse
from pathlib import Path

import numpy as np

from robotid_ros.commands.options import add_robot_arguments, add_settings, given_settings, load_config, load_robot
from robotid_ros.commands.terminal import progress_bar, say_written
from robotid_ros.data import Recording, write_csv
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.design import save_excitation
from robotid_ros.execution.stopping_room import stoppable_design
from robotid_ros.files import require_folder
from robotid_ros.jobs import engine
from robotid_ros.model.packaged import arm_file
from robotid_ros.report.design import write_design_page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot_arguments(parser)
    parser.add_argument('--out', default='excitation.yaml', metavar='YAML', help='default: excitation.yaml')
    parser.add_argument('--no-page', action='store_true', help='do not write the page that shows the arm moving')
    parser.add_argument('--csv', metavar='CSV', help='write one period of position, velocity and acceleration too')
    parser.add_argument('--rate', type=float, default=100.0, metavar='HZ', help='of the rows of --csv (default: 100)')
    parser.add_argument('--dask', metavar='ADDRESS', help='search on the Dask cluster of this scheduler')
    add_settings(parser.add_argument_group('settings of the design'), ExcitationConfig)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    config = load_config(options)
    settings = ExcitationConfig(**{**(config.design if config else {}), **given_settings(options, ExcitationConfig)})
    model = load_robot(options, config)
    require_folder(options.out, options.csv)
    if not 1.0 <= options.rate <= 1e5:
        raise DataError(f'--rate: expected 1 to 100000 Hz, got {options.rate:g}')
    with engine(options.dask), progress_bar('design') as progress:
        progress(0.0, f'prepare the equations of {model.n} joints, which many joints make long')
        design = stoppable_design(model, settings, progress=progress)
    save_excitation(design, options.out)
    print(design.summary())
    say_written(options.out)
    if options.csv:
        period = design.trajectory.period  # from its first to its last instant, both included
        time = np.linspace(0.0, period, max(2, round(period * options.rate) + 1))
        q, dq, ddq = design.trajectory.evaluate(time)
        joints = model.joint_names
        write_csv(options.csv, Recording(joint_names=joints, time=time, position=q, velocity=dq, acceleration=ddq))
        say_written(options.csv)
    if not options.no_page:
        page = Path(options.out).with_suffix('.html')
        try:
            write_design_page(model, design, page, folder=arm_file(options.robot).resolve().parent)
            say_written(page)
        except MissingDependencyError as cause:
            print(f'no page: {cause}')
    return 1 if design.interrupted else 0
