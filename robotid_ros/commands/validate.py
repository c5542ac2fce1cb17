# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid validate``: an identified model against recordings it has not seen.

Predict the torque along recordings with an identified model and print the errors per joint.
"""

import argparse

from robotid_ros.commands.options import add_processing_arguments, add_robot_arguments
from robotid_ros.commands.sources import expanded, source_of
from robotid_ros.commands.terminal import metrics_table
from robotid_ros.identification import IdentificationResult, validate
from robotid_ros.workflow import load_datasets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('recordings', nargs='+', metavar='RECORDING', help='recordings or datasets')
    add_robot_arguments(parser, required=False)
    parser.add_argument(
        '--result', required=True, metavar='RESULT', help='result.yaml of "robotid identify", or its folder'
    )
    add_processing_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    result = IdentificationResult.load(options.result)
    recordings = expanded(options.recordings)
    source = source_of(options, recordings, result)
    datasets, _, summaries = load_datasets(recordings, source.settings, topic=options.topic)
    print('\n'.join((*source.lines, *summaries)))
    metrics = validate(result, source.model, datasets)
    print(f'\n{metrics_table({"validation": metrics})}')
    return 0
