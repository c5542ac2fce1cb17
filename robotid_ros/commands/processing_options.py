# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Options that say how recordings become datasets."""

import argparse
from typing import Any

from robotid_ros.data import ProcessingSettings
from robotid_ros.data.settings import DIFFERENTIATIONS
from robotid_ros.errors import DataError
from robotid_ros.excitation.storage import load_excitation
from robotid_ros.model import RobotConfig


def add_processing_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--excitation``, ``--cutoff`` and the like."""
    parser.add_argument(
        '--excitation',
        metavar='YAML',
        help='the excitation that was run, where it repeats with its period; none: take any motion as it is',
    )
    parser.add_argument(
        '--period', type=float, metavar='S', help='average over periods of this length, where it repeats [s]'
    )
    parser.add_argument(
        '--cutoff', type=float, metavar='HZ', help='cut-off of the zero-phase low-pass (default: from the data)'
    )
    parser.add_argument(
        '--differentiation', choices=DIFFERENTIATIONS, help='of recordings that are not periodic (default: central)'
    )
    parser.add_argument('--topic', metavar='NAME', help='which sensor_msgs/JointState topic of a bag')


def processing_settings(
    options: argparse.Namespace, config: RobotConfig | None, joints: tuple[str, ...]
) -> ProcessingSettings:
    """Return the settings the options and the robot configuration ask for.

    A RobotIdError says where they contradict each other.
    """
    if options.excitation and options.period:
        said = 'averages nothing' if options.excitation == 'none' else 'has the period already'
        raise DataError(f'--excitation {options.excitation} {said}; leave --period out')
    values: dict[str, Any] = {'joints': joints, 'period': options.period, 'cutoff': options.cutoff}
    values |= motion_settings(options.excitation, joints)
    if options.differentiation:
        values['differentiation'] = options.differentiation
    if config is None:
        return ProcessingSettings(**values)
    return ProcessingSettings.for_robot(config, **values)


def motion_settings(excitation: str | None, joints: tuple[str, ...]) -> dict[str, Any]:
    """Return what an excitation, a file or 'none', says of how recordings are processed; empty where none is given."""
    if not excitation:
        return {}
    none = excitation == 'none'
    return {'period': None if none else _period(excitation, joints), 'average': not none}


def _period(path: str, joints: tuple[str, ...]) -> float:
    design = load_excitation(path)
    if joints and not set(joints) & set(design.joint_names):
        raise DataError(
            f'{path} is an excitation of the joints {", ".join(design.joint_names)}; '
            f'expected one of: {", ".join(joints)}'
        )
    return design.trajectory.period
