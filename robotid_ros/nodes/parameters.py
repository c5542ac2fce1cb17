# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""ROS parameters declared from, and read back into, a frozen dataclass.

A field of the dataclass is a parameter: its name, default and type are the parameter's, its
``metadata`` holds ``description``, ``unit``, ``range``, ``choices`` and ``read_only``.
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import InvalidParameterException, ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

from robotid_ros.errors import RobotIdError
from robotid_ros.model.robot_config import RobotConfig

__all__ = ['ParameterError', 'declare_parameters', 'declare_robot_config', 'parameter', 'read_parameters']

Config = TypeVar('Config')


class ParameterError(RobotIdError, ValueError):
    """A ROS parameter has a value the node cannot use."""


def parameter(
    description: str,
    *,
    unit: str = '',
    range: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    read_only: bool = False,
) -> Mapping[str, Any]:
    """Return the ``metadata`` of a dataclass field that is a ROS parameter."""
    return {'description': description, 'unit': unit, 'range': range, 'choices': choices, 'read_only': read_only}


def declare_parameters(node: Node, config_type: type[Config]) -> Config:
    """Declare every field of a dataclass as a parameter and return the values given at start.

    Later changes are checked as they are made: a bad value is refused with the reason.

    Raises
    ------
    ParameterError
        If a value given at start has the wrong type, is out of range or is not a choice.
    """
    kinds = get_type_hints(config_type)
    known = {item.name: item for item in fields(config_type)}  # type: ignore[arg-type]
    for name, item in known.items():
        default = _default(item)
        value = list(default) if isinstance(default, tuple) else default
        try:
            # An empty list has no type in ROS: it is declared without a value.
            node.declare_parameter(name, None if value == [] else value, _descriptor(item, kinds[name]))
        except (ParameterException, InvalidParameterException, TypeError) as cause:
            raise ParameterError(f"parameter '{name}': {cause}") from cause

    def check(changes: list[Parameter]) -> SetParametersResult:
        for change in changes:
            if change.name in known:
                problem = _problem(known[change.name], kinds[change.name], change.value)
                if problem:
                    return SetParametersResult(successful=False, reason=f"parameter '{change.name}': {problem}")
        return SetParametersResult(successful=True)

    config = read_parameters(node, config_type)
    node.add_on_set_parameters_callback(check)
    return config


def read_parameters(node: Node, config_type: type[Config]) -> Config:
    """Return the present values of parameters that :func:`declare_parameters` declared.

    Raises
    ------
    ParameterError
        If a value has the wrong type, is out of range or is not a choice.
    """
    kinds = get_type_hints(config_type)
    values: dict[str, Any] = {}
    for item in fields(config_type):  # type: ignore[arg-type]
        value = node.get_parameter(item.name).value
        if value is None:
            values[item.name] = _default(item)
            continue
        problem = _problem(item, kinds[item.name], value)
        if problem:
            raise ParameterError(f"parameter '{item.name}': {problem}")
        values[item.name] = _converted(kinds[item.name], value)
    return config_type(**values)


def declare_robot_config(node: Node) -> RobotConfig | None:
    """Return the robot configuration among the node's parameters, or None where there is none.

    The configuration file is given to the node as a ROS parameter file; whatever it holds is
    declared read-only and checked by :meth:`RobotConfig.from_dict`.

    Raises
    ------
    ModelError
        If the configuration is not valid.
    """
    content: dict[str, Any] = {}
    keys = RobotConfig.keys()
    for name, given in node._parameter_overrides.items():
        path = name.split('.')
        if path[0] not in keys:
            continue
        if not node.has_parameter(name):
            description = ParameterDescriptor(description='robot configuration', dynamic_typing=True, read_only=True)
            node.declare_parameter(name, given.value, description)
        # Joint names may hold dots; only the first levels are ours.
        depth = 2 if path[0] == 'limits' else 1
        *above, last = [*path[:depth], '.'.join(path[depth:])] if len(path) > depth else path
        level = content
        for key in above:
            level = level.setdefault(key, {})
        level[last] = list(given.value) if isinstance(given.value, (tuple, np.ndarray)) else given.value
    if 'joints' not in content:
        return None
    content['joints'] = list(content['joints'])
    return RobotConfig.from_dict(content)


def _default(item: 'Field[Any]') -> Any:
    if item.default is not MISSING:
        return item.default
    if item.default_factory is not MISSING:
        return item.default_factory()
    return None


def _descriptor(item: 'Field[Any]', kind: Any) -> ParameterDescriptor:
    meta = item.metadata
    text = meta.get('description', '')
    if meta.get('unit'):
        text = f'{text} [{meta["unit"]}]'
    # Our own check takes the place of static typing, so that 20 is accepted where 20.0 is meant.
    descriptor = ParameterDescriptor(description=text, dynamic_typing=True, read_only=bool(meta.get('read_only')))
    if meta.get('choices'):
        descriptor.additional_constraints = 'one of: ' + ', '.join(meta['choices'])
    if meta.get('range'):
        low, high = meta['range']
        if _scalar(kind) is int:
            descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=0)]
        elif _scalar(kind) is float and not _is_sequence(kind):
            descriptor.floating_point_range = [
                FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)
            ]
    return descriptor


def _is_sequence(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _scalar(kind: Any) -> type:
    """Return float, int, bool or str: what a field, or an entry of it, holds."""
    for candidate in (kind, *get_args(kind)):
        if candidate in (float, int, bool, str):
            return candidate  # type: ignore[no-any-return]
    return str


def _problem(item: 'Field[Any]', kind: Any, value: Any) -> str | None:
    """Return why a value cannot be used, or None where it can."""
    if value is None:
        return None
    scalar = _scalar(kind)
    if _is_sequence(kind):
        if isinstance(value, (str, bytes, int, float, bool)):
            return f'expected a list of {scalar.__name__}, got {value!r}'
        entries = list(value)
    else:
        entries = [value]
    for entry in entries:
        fits = isinstance(entry, scalar) or (scalar is float and isinstance(entry, int))
        if not fits or (scalar is not bool and isinstance(entry, bool)):
            return f'expected {scalar.__name__}, got {entry!r}'
        if scalar in (float, int):
            low, high = item.metadata.get('range') or (-np.inf, np.inf)
            if not low <= entry <= high:
                return f'expected a value from {low:g} to {high:g}, got {entry!r}'
        choices = item.metadata.get('choices')
        if choices and entry not in choices:
            return f'expected one of {", ".join(choices)}, got {entry!r}'
    return None


def _converted(kind: Any, value: Any) -> Any:
    scalar = _scalar(kind)
    return tuple(scalar(entry) for entry in value) if _is_sequence(kind) else scalar(value)
