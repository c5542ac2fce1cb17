# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""``robotid export``: an identified arm for simulators, controllers and other programs.

Write an identified arm as URDF, MJCF, USD, SDF, Pinocchio model, C, Python or ros2_control package, and say how its
torque differs from the identified one.
"""

import argparse
from pathlib import Path

from robotid_ros.commands.options import add_robot_arguments, load_config, load_robot
from robotid_ros.commands.terminal import say_written
from robotid_ros.errors import ModelError
from robotid_ros.export.formats import FORMATS, export
from robotid_ros.export.replay import Replayed
from robotid_ros.identification import IdentificationResult
from robotid_ros.model import RobotModel


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('result', metavar='RESULT', help='result.yaml of "robotid identify", or its folder')
    parser.add_argument('--to', required=True, choices=FORMATS, help='the format')
    add_robot_arguments(parser, required=False)
    parser.add_argument('--mjcf', metavar='XML', help='with --to mjcf: put the numbers into this file, keep the rest')
    parser.add_argument(
        '--servo',
        metavar='YAML',
        help='with --to mjcf or usd: the servos of this replay.yaml, of "robotid replay --command"',
    )
    parser.add_argument(
        '--force', action='store_true', help='export a result that is marked as not usable all the same'
    )
    parser.add_argument('--out', default='.', metavar='DIR', help='default: this folder')


def result_and_robot(options: argparse.Namespace) -> tuple[IdentificationResult, RobotModel]:
    """Return the result, and the arm of ``--robot`` or of the calibrated.urdf beside the result."""
    result, path = IdentificationResult.load(options.result), Path(options.result)
    if options.robot is not None:
        return result, load_robot(options, load_config(options))
    beside = (path if path.is_dir() else path.parent) / 'calibrated.urdf'
    if not beside.is_file():
        raise ModelError('there is no calibrated.urdf beside result.yaml; give the arm by --robot')
    return result, RobotModel.from_urdf(beside, joints=result.joint_names, gravity=result.gravity.tolist())


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    result, model = result_and_robot(options)
    servo = None
    if options.servo is not None:
        found = Replayed.load(options.servo)
        if found.servo is None:
            raise ModelError(
                f'{options.servo} holds no servos; replay a recording with its commanded positions (--command)'
            )
        if found.joint_names != model.joint_names:
            raise ModelError(
                f'{options.servo}: expected the joints {", ".join(model.joint_names)}, '
                f'got {", ".join(found.joint_names)}'
            )
        servo = found.servo
    paths, said = export(model, result, options.to, options.out, mjcf=options.mjcf, servo=servo, force=options.force)
    print(f'{options.to}: {said}')
    say_written(*paths)
    return 0
