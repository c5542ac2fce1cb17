# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""What a service answers where something goes wrong: one line."""

import traceback

from rclpy.node import Node

from robotid_ros.errors import RobotIdError


def failure(node: Node, cause: Exception) -> str:
    """Return the line that answers a call; a fault of this package goes to the log with its traceback.

    Parameters
    ----------
    node : Node
    cause : Exception
        A :class:`RobotIdError` is a refusal, and everything else a fault.
    """
    if isinstance(cause, RobotIdError):
        return str(cause)
    node.get_logger().error(''.join(traceback.format_exception(cause)))
    return f'a fault of robotid_ros, please report it with the traceback in the log: {type(cause).__name__}: {cause}'
