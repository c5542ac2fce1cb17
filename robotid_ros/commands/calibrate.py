# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid calibrate``: the geometry of an arm from measured points."""

import argparse

from robotid_ros.calibration.command import add_arguments, run
from robotid_ros.commands.command import Command
from robotid_ros.commands.progress import progress_bar
from robotid_ros.report import write_report
from robotid_ros.report.calibration import calibration_report

__all__ = ['COMMAND']


def _run(options: argparse.Namespace) -> int:
    with progress_bar('calibrate') as progress:
        return run(options, lambda result, path: write_report(calibration_report(result), path), progress)


COMMAND = Command(
    name='calibrate',
    summary='identify the geometry of an arm from measured points',
    description='Estimate the kinematic errors of an arm from positions or poses measured at its tool, and write the '
    'corrected table or URDF with the accuracy before and after.',
    add_arguments=add_arguments,
    run=_run,
)
