# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Options that several commands share: which robot, which configuration, how recordings become datasets.

Options are also made from the settings of a configuration: both say the same.
"""

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from robotid_ros.data import ProcessingSettings
from robotid_ros.errors import DataError, ModelError
from robotid_ros.model import STANDARD_GRAVITY, RobotConfig, RobotModel
from robotid_ros.model.dh_table import read_dh_file
from robotid_ros.model.packaged import arm_file, config_file, packaged_arms
from robotid_ros.model.robot_config import configured_arm
from robotid_ros.model.urdf_tree import parse_urdf, read_urdf_text
from robotid_ros.reading import refusing
from robotid_ros.settings import Settings, settings_of

Config = TypeVar('Config', bound=Settings)

_PROCESSING = ('period', 'cutoff', 'differentiation')  # settings of the processing that are options of their own


def add_settings(parser: argparse._ActionsContainer, kind: type[Settings], names: Collection[str] = ()) -> None:
    """Add an option for every setting of a configuration, or for those named; the name with dashes is the option."""
    for item in settings_of(kind):
        if item.form == 'mapping' or (names and item.name not in names):
            continue
        unit = f' [{item.unit}]' if item.unit else ''
        shown = '' if item.default in (None, '', ()) else f' (default: {_spelled(item.default)})'
        span = f'; {item.span()}' if item.range is not None else ''
        text = f'{item.description.rstrip(".")}{unit if not span else ""}{span}{shown}'.replace('%', '%%')
        option = '--' + item.name.replace('_', '-')
        common: dict[str, Any] = {'dest': item.name, 'default': argparse.SUPPRESS, 'help': text}
        if item.kind is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, **common)
        elif item.form == 'list':
            parser.add_argument(
                option, nargs='+' if item.length else '*', type=item.kind, metavar=_metavar(item.kind), **common
            )
        elif item.choices:
            parser.add_argument(option, choices=item.choices, **common)
        else:
            parser.add_argument(option, type=item.kind, metavar=_metavar(item.kind), **common)


def given_settings(options: argparse.Namespace, kind: type[Settings]) -> Mapping[str, Any]:
    """Return the settings that were given on the command line, by field name."""
    given = vars(options)
    return {item.name: given[item.name] for item in settings_of(kind) if item.name in given}


def settings_from(options: argparse.Namespace, kind: type[Config]) -> Config:
    """Return a configuration of the given options; an error of its own type for a value out of its range."""
    return kind(**given_settings(options, kind))


def number(kind: type[int] | type[float], low: float, high: float) -> Callable[[str], float]:
    """Return a converter for the ``type`` of an option that belongs to no configuration; both bounds are allowed."""

    def converted(text: str) -> float:
        wanted = f'expected {low:.10g} to {high:.10g}'
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f'{wanted}, got {text!r}') from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'{wanted}, got {text}')
        return value

    return converted


def _metavar(kind: type) -> str:
    return {int: 'N', float: 'X'}.get(kind, 'TEXT')


def _spelled(value: object) -> str:
    return ' '.join(map(_spelled, value)) if isinstance(value, tuple) else str(value)


def add_robot_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``--robot``, ``--tip``, ``--joints`` and ``--config``."""
    add = parser.add_argument
    known = ', '.join(packaged_arms())
    add(
        '--robot',
        required=required,
        metavar='URDF',
        help=f'a URDF, a DH table (YAML), or the name of a packaged arm: {known}'
        + ('' if required else '; by default what the recording says'),
    )
    add('--tip', metavar='LINK', help='end of the chain; by default of the longest, before a gripper')
    add('--joints', nargs='+', metavar='JOINT', help='these joints only; the others must have stood still at zero')
    add('--config', metavar='YAML', help='robot configuration, or name of a packaged arm: limits, effort, motor data')


def load_config(options: argparse.Namespace) -> RobotConfig | None:
    """Return the robot configuration of ``--config``, or None where none was given."""
    return None if options.config is None else RobotConfig.from_yaml(config_file(options.config))


def named_joints(options: argparse.Namespace) -> Collection[str]:
    """Return the joints that options name, by which an arm is found among several in a bag; empty where none does."""
    config = None if options.joints else load_config(options)
    if config is not None or options.joints or options.robot is None:
        return options.joints or (() if config is None else config.joints)
    path = arm_file(options.robot)
    with refusing(f"'{path}'", ModelError, file=str(path)):
        return read_dh_file(path).joint_names if _is_table(path) else parse_urdf(read_urdf_text(path)).joints


def _is_table(path: Path) -> bool:
    return path.suffix in ('.yaml', '.yml')


def load_robot(options: argparse.Namespace, config: RobotConfig | None, along: Collection[str] = ()) -> RobotModel:
    """Return the arm of ``--robot`` with the configuration's limits, drives, chain ends and gravity.

    Of several arms it is the one with the joints ``along``.
    """
    path = arm_file(options.robot)
    if not _is_table(path):
        return configured_arm(path, config, tip=options.tip or '', joints=options.joints or (), along=along)
    model = read_dh_file(path).robot_model()
    if options.tip or tuple(options.joints or model.joint_names) != model.joint_names:
        raise ModelError('--joints and --tip choose from a URDF; a DH table is taken whole')
    if config is None:
        return model
    # Of two that give a gravity, the one counts that says something else than upright.
    table, given, upright = model.gravity, np.array(config.gravity), np.array(STANDARD_GRAVITY)
    if np.array_equal(given, upright):
        return config.applied(model)
    if not np.array_equal(table, upright) and not np.array_equal(table, given):
        raise ModelError(
            f'gravity is {table.tolist()} in {path} and {given.tolist()} in {options.config}; give it in one of them'
        )
    return config.applied(replace(model, gravity=given))


def add_processing_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--excitation``, ``--cutoff`` and the like."""
    add = parser.add_argument
    add(
        '--excitation',
        metavar='YAML',
        help='the excitation that was run, where it repeats with its period; none: take any motion as it is',
    )
    add_settings(parser, ProcessingSettings, _PROCESSING)
    add('--topic', metavar='NAME', help='which sensor_msgs/JointState topic of a bag')


def processing_settings(
    options: argparse.Namespace, config: RobotConfig | None, joints: tuple[str, ...]
) -> ProcessingSettings:
    """Return the settings the options and the robot configuration ask for.

    A RobotIdError says where they contradict each other.
    """
    values = {name: value for name, value in vars(options).items() if name in _PROCESSING}
    if options.excitation and values.get('period'):
        said = 'averages nothing' if options.excitation == 'none' else 'has the period already'
        raise DataError(f'--excitation {options.excitation} {said}; leave --period out')
    values |= {'joints': joints, **motion_settings(options.excitation, joints)}
    return ProcessingSettings.for_robot(config, **values)


def motion_settings(excitation: str | None, joints: tuple[str, ...]) -> dict[str, Any]:
    """Return what an excitation, a file or 'none', says of how recordings are processed; empty where none is given."""
    if not excitation:
        return {}
    if excitation == 'none':
        return {'period': None, 'average': False}
    from robotid_ros.excitation.design import load_excitation  # only here: not every command excites

    design = load_excitation(excitation)
    if joints and not set(joints) & set(design.joint_names):
        raise DataError(
            f'{excitation} is an excitation of the joints {", ".join(design.joint_names)}; '
            f'expected one of: {", ".join(joints)}'
        )
    return {'period': design.trajectory.period, 'average': True}
