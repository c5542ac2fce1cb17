# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid identify``: recordings to a dynamic model.

Identify the base, standard and friction parameters of an arm from recordings of its motion and torque; write
result.yaml, calibrated.urdf and report.html. Exit code 1 means that the result is not usable.
"""

import argparse
import shlex
from dataclasses import replace
from pathlib import Path

from robotid_ros.commands.options import (
    add_processing_arguments,
    add_robot_arguments,
    add_settings,
    motion_settings,
    settings_from,
)
from robotid_ros.commands.sources import by_purpose, expanded, source_of
from robotid_ros.commands.terminal import metrics_table, parameter_table, progress_bar, say_written
from robotid_ros.errors import DataError
from robotid_ros.files import file_hash, output_folder
from robotid_ros.identification import IdentificationConfig, SelectionConfig
from robotid_ros.model.packaged import arm_file
from robotid_ros.workflow import Files, identify_files, write_identification


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add(
        'recordings',
        nargs='+',
        metavar='RECORDING',
        help='recordings, folders of them, or datasets made by "robotid process"',
    )
    add_robot_arguments(parser, required=False)
    add('--out', default='identification', metavar='DIR', help='default: identification')
    add('--friction-data', nargs='+', default=[], metavar='RECORDING', help='recordings of friction sweeps')
    held_out = parser.add_mutually_exclusive_group()
    held_out.add_argument('--validate', nargs='+', default=[], metavar='RECORDING', help='recordings to judge by')
    held_out.add_argument(
        '--train-fraction', type=float, metavar='X', help='train on this part of each recording, judge by the rest'
    )
    add(
        '--validate-excitation',
        metavar='YAML',
        help='the excitation of the recordings to judge by, if it is another; none: take any motion as it is',
    )
    add('--parameters', action='store_true', help='print every parameter')
    add_processing_arguments(parser)
    add_settings(parser.add_argument_group('settings of the identification'), IdentificationConfig)
    add_settings(parser.add_argument_group('selection among many recordings'), SelectionConfig)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    given, judging, sweeping = map(expanded, (options.recordings, options.validate, options.friction_data))
    source = source_of(options, [*given, *judging, *sweeping])
    model, settings = source.model, source.settings
    training, validation, sweeps = by_purpose(
        given, judging, sweeping, source.contexts, judged=options.train_fraction is not None
    )
    if options.validate_excitation and not validation:
        raise DataError('--validate-excitation belongs to the recordings to judge by; there are none')
    files = Files(
        training=training,
        friction=sweeps,
        validation=validation,
        settings=settings,
        validation_settings=replace(settings, **motion_settings(options.validate_excitation, model.joint_names)),
        train_fraction=options.train_fraction,
        topic=options.topic,
    )
    config = settings_from(options, IdentificationConfig)
    folder = output_folder(options.out)
    with progress_bar('identify') as progress:
        found = identify_files(
            files,
            model,
            config,
            selection=settings_from(options, SelectionConfig),
            context=source.context,
            progress=progress,
        )
    # What it takes to repeat it: the hash of the robot description, and the command.
    robot = None if options.robot is None else arm_file(options.robot)
    origin = {
        **({} if robot is None else {'robot': {'file': str(robot), 'sha256': file_hash(robot)}}),
        'command': shlex.join(['robotid', *options.words]),
        'folder': str(Path.cwd()),
    }
    result = replace(found.result, provenance={**origin, **found.result.provenance})
    print('\n'.join((*source.lines, *found.summaries)))
    print('\n'.join(f'note       {line}' for line in result.notes))
    print('\n'.join(f'decision   {line}' for line in result.decisions))
    print(f'condition  {result.condition_si:.4g} (SI), {result.condition_scaled:.4g} (columns scaled)\n')
    print(metrics_table(result.metrics))
    if options.parameters:
        print(f'\n{parameter_table(result)}')
    print(f'\n{"usable" if result.usable else "NOT USABLE"}{": " if result.reason else ""}{result.reason}')
    for use in result.good_for:
        print(f'{use.name:20} {"yes" if use.good else "no":3}  {use.text}')
    say_written(*write_identification(folder, replace(found, result=result)))
    return 0 if result.usable else 1
