# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""ROS parameters declared from, and read back into, a configuration (:mod:`robotid_ros.settings`)."""

from array import array
from typing import Any, TypeVar

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.exceptions import InvalidParameterException, ParameterException
from rclpy.node import Node
from rclpy.parameter import Parameter

from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.settings import Setting, Settings, settings_of

Config = TypeVar('Config', bound=Settings)


def declare_parameters(node: Node, config_type: type[Config]) -> Config:
    """Declare every setting of a configuration as a parameter and return the values given at start.

    Later changes are checked as they are made: a bad value is refused with the reason. A value at start that cannot be
    used raises the configuration's own type of RobotIdError.
    """
    known = {item.name: item for item in settings_of(config_type)}
    for name, item in known.items():
        text = f'{item.description} [{item.unit}]' if item.unit else item.description
        # Our own check takes the place of static typing, so that 20 is accepted where 20.0 is meant.
        descriptor = ParameterDescriptor(description=text, dynamic_typing=True, read_only=item.read_only)
        if item.choices:
            descriptor.additional_constraints = 'one of: ' + ', '.join(item.choices)
        if item.range is not None and item.form == 'one':
            low, high = item.range
            if item.kind is int:
                descriptor.integer_range = [IntegerRange(from_value=int(low), to_value=int(high), step=0)]
            else:
                descriptor.floating_point_range = [
                    FloatingPointRange(from_value=float(low), to_value=float(high), step=0.0)
                ]
        value = list(item.default) if isinstance(item.default, tuple) else item.default
        try:
            node.declare_parameter(name, value, descriptor)
        except (ParameterException, InvalidParameterException, TypeError) as cause:
            raise config_type.error(f"parameter '{name}': {cause}") from cause

    def check(changes: list[Parameter]) -> SetParametersResult:
        for change in changes:
            if change.name in known:
                try:
                    _value(known[change.name], change.value)
                except ValueError as problem:
                    return SetParametersResult(successful=False, reason=f"parameter '{change.name}': {problem}")
        return SetParametersResult(successful=True)

    config = read_parameters(node, config_type)
    node.add_on_set_parameters_callback(check)
    return config


def read_parameters(node: Node, config_type: type[Config]) -> Config:
    """Return the present values of parameters that :func:`declare_parameters` declared; errors are the same."""
    values: dict[str, Any] = {}
    for item in settings_of(config_type):
        try:
            values[item.name] = _value(item, node.get_parameter(item.name).value)
        except ValueError as problem:
            raise config_type.error(f"parameter '{item.name}': {problem}") from None
    return config_type(**values)


def declare_robot_config(node: Node) -> RobotConfig | None:
    """Return the robot configuration among the node's parameters, or None where there is none.

    The configuration file is given to the node as a ROS parameter file; all that it holds is declared read-only and
    checked by :meth:`RobotConfig.from_dict`, whose ModelError says what is not valid.
    """
    content: dict[str, Any] = {}
    keys = RobotConfig.keys()
    # No public call lists what was given at start. automatically_declare_parameters_from_overrides declares it, but
    # refuses empty lists, as a parameter dump has them, and an integer where a number is meant. Names made from the
    # joints could be declared one by one, but a misspelt joint, and with it its limit, would be passed over unseen.
    for name, given in node._parameter_overrides.items():
        path = name.split('.')
        if path[0] not in keys:
            continue
        if not node.has_parameter(name):
            description = ParameterDescriptor(description='robot configuration', dynamic_typing=True, read_only=True)
            node.declare_parameter(name, given.value, description)
        # Joint names may hold dots; only the first levels are ours.
        depth = 2 if path[0] in ('limits', 'drives') else 1
        *above, last = [*path[:depth], '.'.join(path[depth:])] if len(path) > depth else path
        level = content
        for key in above:
            level = level.setdefault(key, {})
        level[last] = list(given.value) if isinstance(given.value, tuple | array) else given.value
    if 'joints' not in content:
        return None
    return RobotConfig.from_dict(content)


def _value(item: Setting, value: Any) -> Any:
    """Return a parameter's value as the field holds it; one without a value has the default."""
    return item.default if value is None else item.converted(value)
