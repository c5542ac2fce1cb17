# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid report``: the report of an identification once more.

Write report.html anew from the result and the datasets in a folder of "robotid identify".
"""

import argparse
from pathlib import Path

from robotid_ros.commands.options import add_robot_arguments
from robotid_ros.commands.sources import source_of
from robotid_ros.commands.terminal import say_written
from robotid_ros.identification import IdentificationResult
from robotid_ros.workflow import render_again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('folder', metavar='DIR', type=Path, help='what "robotid identify --out DIR" wrote')
    add_robot_arguments(parser, required=False)
    parser.set_defaults(topic=None, excitation=None)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    options.result = options.folder
    source = source_of(options, [], IdentificationResult.load(options.folder))
    print(source.lines[0])
    say_written(render_again(options.folder, source.model))
    return 0
