# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The action ``control_msgs/action/FollowJointTrajectory``: its types where they are installed, its words."""

import os
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from action_msgs.msg import GoalStatus

from robotid_ros.errors import MissingDependencyError

ACTION = 'follow_joint_trajectory'

_MEANINGS: Mapping[int, tuple[str, str]] = {
    -1: ('INVALID_GOAL', 'the controller cannot use the trajectory, or another one took its place'),
    -2: ('INVALID_JOINTS', "the joints are not the controller's"),
    -3: ('OLD_HEADER_TIMESTAMP', 'the trajectory lies in the past'),
    -4: ('PATH_TOLERANCE_VIOLATED', 'a joint was too far from the trajectory'),
    -5: ('GOAL_TOLERANCE_VIOLATED', 'a joint did not reach the end of the trajectory'),
}
_STATUS: Mapping[int, str] = {GoalStatus.STATUS_CANCELED: 'cancelled', GoalStatus.STATUS_ABORTED: 'aborted'}


def control_msgs(purpose: str) -> tuple[Any, Any]:
    """Return the types of the action and of ``JointTolerance``.

    A MissingDependencyError, whose subject is the ``purpose``, names what to install where they cannot be imported.
    """
    try:
        return import_module('control_msgs.action').FollowJointTrajectory, import_module(
            'control_msgs.msg'
        ).JointTolerance
    except ImportError as cause:
        distribution = os.environ.get('ROS_DISTRO', '<distribution>')
        raise MissingDependencyError(
            f'{purpose} needs the ROS package control_msgs ({cause}); it is not on PyPI: install it with '
            f"'sudo apt install ros-{distribution}-control-msgs' and source that ROS, "
            'or set controller_interface to topic'
        ) from cause


def action_name(topic: str) -> str:
    """Return the name of the action beside a topic: a joint_trajectory_controller has both in one namespace."""
    return f'{topic.rpartition("/")[0]}/{ACTION}'


def outcome(status: int, result: Any) -> str:
    """Return how a goal ended, by ``action_msgs/msg/GoalStatus`` and its result, in words; '' if it reached its end."""
    if status == GoalStatus.STATUS_SUCCEEDED:
        return ''
    text = f'the controller {_STATUS.get(status, "forgot")} the trajectory'
    if result.error_code:
        name, meaning = _MEANINGS.get(result.error_code, (f'error code {result.error_code}', 'unknown'))
        text = f'{text}: {name} ({meaning})'
    return f'{text}: {result.error_string}' if result.error_string else text


def tolerance_violated(result: Any) -> bool:
    """Return whether a goal ended because a joint was outside a tolerance."""
    return result.error_code in (-4, -5)


def tolerance_messages(kind: Any, joint_names: Sequence[str], positions: Sequence[float]) -> list[Any]:
    """Return ``JointTolerance`` messages of the positions [rad or m] that are not 0, which is the controller's own."""
    return [kind(name=name, position=value) for name, value in zip(joint_names, positions, strict=True) if value]
