# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid fleet``: many recordings of many arms.

Identify every recording of a folder or of a list on several processes or on a Dask cluster, and write one table and
one page: the verdict on every arm, the drift of its friction and masses, the outliers first. Repeated after an
interruption, it does only what is not done. Exit code 1 means that some recording gave no usable result.
"""

import argparse
import shlex
from pathlib import Path

from robotid_ros.commands.options import (
    add_processing_arguments,
    add_robot_arguments,
    add_settings,
    number,
    settings_from,
)
from robotid_ros.commands.sources import source_of
from robotid_ros.commands.terminal import page_written, progress_bar, report_table, verdict_text
from robotid_ros.errors import DataError, RobotIdError
from robotid_ros.files import output_folder
from robotid_ros.fleet import Entry, Outcome, Task, entries_of, fleet_report, identify_fleet, write_table
from robotid_ros.fleet.outcome import keep
from robotid_ros.identification import IdentificationConfig
from robotid_ros.jobs import engine
from robotid_ros.report.content import Table
from robotid_ros.workflow import Files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        'recordings',
        type=Path,
        metavar='FOLDER|LIST',
        help='a folder with a folder of recordings for each arm, or a CSV file with the column recording and, where '
        'wanted, arm, time, robot, config, excitation, validate, friction_data',
    )
    add_robot_arguments(parser, required=False)
    parser.add_argument('--out', default='fleet', metavar='DIR', help='default: fleet')
    side_by_side = parser.add_mutually_exclusive_group()
    side_by_side.add_argument(
        '--jobs', type=number(int, -1, 1024), default=-1, metavar='N', help='processes; -1, the default: one per core'
    )
    side_by_side.add_argument('--dask', metavar='ADDRESS', help='scheduler of a Dask cluster, such as tcp://host:8786')
    parser.add_argument(
        '--train-fraction',
        type=number(float, 0.01, 0.99),
        metavar='X',
        help='train on this part of each recording, judge by the rest',
    )
    add_processing_arguments(parser)
    add_settings(parser.add_argument_group('settings of the identification'), IdentificationConfig)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.jobs == 0:
        raise DataError('--jobs: expected a number of processes, or -1 for one per core, got 0')
    folder = output_folder(options.out)
    entries = entries_of(options.recordings, leave_out=folder)
    config = settings_from(options, IdentificationConfig)
    if options.robot is not None:  # what is wrong for all recordings is said once
        source_of(options, [])
    with engine(options.dask), progress_bar('fleet') as progress:
        tasks = [_task(entry, options, config) for entry in entries]
        problems = {task.problem if isinstance(task, Outcome) else '' for task in tasks}
        if problems and len(problems) == 1 and '' not in problems:
            raise DataError(problems.pop())
        outcomes = identify_fleet(tasks, folder, jobs=int(options.jobs), progress=progress)
    for task in tasks:
        if isinstance(task, Outcome):
            keep(task, folder, '')
    report = fleet_report(outcomes, options.recordings.resolve().name)
    arms = next(item for item in report.sections[0][1] if isinstance(item, Table))
    print(verdict_text(report_table(arms), report))
    write_table(outcomes, folder / 'fleet.csv')
    print(f'\nwritten: {folder / "fleet.csv"}\n{page_written(report, folder / "fleet.html")}')
    return 0 if all(outcome.usable for outcome in outcomes) else 1


def _task(entry: Entry, options: argparse.Namespace, config: IdentificationConfig) -> Task | Outcome:
    """Return what is to be done with a recording, or that its own files cannot be used."""
    given = argparse.Namespace(**vars(options))
    given.robot = entry.robot or options.robot
    given.config = entry.config or options.config
    if entry.excitation is not None:
        given.excitation, given.period = entry.excitation, None
    try:
        source = source_of(given, [entry.recording])
        files = Files(
            training=[entry.recording],
            friction=entry.friction_data,
            validation=entry.validate,
            settings=source.settings,
            train_fraction=None if entry.validate else options.train_fraction,
            topic=options.topic,
        )
    except RobotIdError as cause:
        return Outcome(entry=entry, result=None, problem=str(cause))
    return Task(
        entry=entry, files=files, model=source.model, config=config, command=shlex.join(['robotid', *options.words])
    )
