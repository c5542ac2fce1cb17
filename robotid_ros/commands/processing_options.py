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

from robotid_ros.commands.robot_options import load_config, load_robot
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.settings import DIFFERENTIATIONS
from robotid_ros.errors import DataError
from robotid_ros.excitation.storage import load_excitation
from robotid_ros.model import RobotConfig, RobotModel


def add_processing_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--excitation``, ``--cutoff`` and the like."""
    parser.add_argument('--excitation', metavar='YAML', help='the excitation that was run: average over its periods')
    parser.add_argument('--period', type=float, metavar='S', help='average over periods of this length [s]')
    parser.add_argument(
        '--cutoff', type=float, metavar='HZ', help='cut-off of the zero-phase low-pass (default: from the data)'
    )
    parser.add_argument(
        '--differentiation', choices=DIFFERENTIATIONS, help='of recordings that are not periodic (default: central)'
    )
    parser.add_argument('--topic', metavar='NAME', help='which sensor_msgs/JointState topic of a bag')


def model_and_settings(options: argparse.Namespace) -> tuple[RobotModel, ProcessingSettings]:
    """Return the arm of ``--robot`` and ``--config``, and how its recordings are processed."""
    config = load_config(options)
    model = load_robot(options, config)
    return model, processing_settings(options, config, model.joint_names)


def processing_settings(
    options: argparse.Namespace, config: RobotConfig | None, joints: tuple[str, ...]
) -> ProcessingSettings:
    """Return the settings the options and the robot configuration ask for.

    A RobotIdError says where they contradict each other, or that the configuration does not say what ``effort`` holds.
    """
    if options.excitation and options.period:
        raise DataError('--excitation has the period already; leave --period out')
    period = options.period
    if options.excitation:
        period = _period(options.excitation, joints)
    values: dict[str, Any] = {'joints': joints, 'period': period, 'cutoff': options.cutoff}
    if options.differentiation:
        values['differentiation'] = options.differentiation
    if config is None:
        return ProcessingSettings(**values)
    return ProcessingSettings.for_robot(config, effort=dict(zip(joints, config.meaning(joints), strict=True)), **values)


def validation_period(options: argparse.Namespace, joints: tuple[str, ...]) -> float | None:
    """Return the period of the excitation of the recordings to judge by [s], or None where none was given."""
    return _period(options.validate_excitation, joints) if options.validate_excitation else None


def _period(path: str, joints: tuple[str, ...]) -> float:
    design = load_excitation(path)
    if joints and not set(joints) & set(design.joint_names):
        raise DataError(
            f'{path} is an excitation of the joints {", ".join(design.joint_names)}; '
            f'expected one of: {", ".join(joints)}'
        )
    return design.trajectory.period
