# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid free-floating``: identify what a space robot has captured."""

import argparse
from pathlib import Path

from robotid_ros.commands.command import Command
from robotid_ros.commands.progress import progress_bar
from robotid_ros.free_floating import RigidBody, TargetIdentification, command
from robotid_ros.report import write_report
from robotid_ros.report.free_floating import free_floating_report

__all__ = ['COMMAND']


def run(options: argparse.Namespace) -> int:
    """Run it with a progress bar; return the exit code."""

    def write(result: TargetIdentification, truth: RigidBody | None, path: Path) -> None:
        write_report(free_floating_report(result, truth=truth), path)

    with progress_bar('free-floating') as progress:
        return command.run(options, progress, write)


COMMAND = Command(
    name='free-floating',
    summary='identify the target a space robot has captured',
    description='Design the motion of a free-floating arm, simulate it, and identify mass, centre of mass and inertia '
    'of a captured target from the conservation of momentum.',
    add_arguments=command.add_arguments,
    run=run,
)
