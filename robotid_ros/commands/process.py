# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid process``: a recording to a dataset, and what was found in it.

Screen, average or filter, differentiate; print what was found: rate, gaps, periods, noise.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from robotid_ros.commands.options import add_processing_arguments, named_joints, processing_settings
from robotid_ros.commands.sources import configuration
from robotid_ros.commands.terminal import progress_bar
from robotid_ros.data import process_file, save_dataset
from robotid_ros.data.context import read_context
from robotid_ros.files import require_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('recording', metavar='RECORDING', help='CSV, npz, or a bag, such as the recorder writes')
    parser.add_argument('--config', metavar='YAML', help='robot configuration: meaning of effort, motor data')
    parser.add_argument('--joints', nargs='+', metavar='JOINT', default=(), help='joints to take; all by default')
    parser.add_argument('--out', default='dataset.npz', metavar='NPZ', help='default: dataset.npz')
    add_processing_arguments(parser)
    parser.set_defaults(robot=None)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    context = read_context(options.recording, options.topic, named_joints(options))
    config, whence = configuration(options, {Path(options.recording): context})
    joints = tuple(options.joints) or (config.joints if config is not None else ())
    settings = processing_settings(options, config, joints)
    require_folder(options.out)
    with progress_bar('process') as progress:
        dataset, summary = process_file(options.recording, settings, options.topic, progress)
    if config is not None:
        dataset = replace(dataset, context={**dataset.context, 'robot': config.content()})
    save_dataset(options.out, dataset)
    if dataset.context.get('description'):
        print(f'arm        {context.topics.get("robot_description", "described")} in {options.recording}')
    print(f'effort     {", ".join(dict.fromkeys(dataset.effort))}{whence}')
    print(summary)
    print(f'written: {options.out} ({len(dataset)} samples of {dataset.n} joints)')
    return 0
