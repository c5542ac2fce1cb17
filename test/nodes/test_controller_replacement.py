# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How a controller replaces a trajectory is read from its parameters, over DDS."""

import threading

import pytest

rclpy = pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402
from ros_helpers import ros_environment  # noqa: E402

from robotid_ros.nodes.controller_link import replacement  # noqa: E402

KNOWN = {'interpolation_method': 'splines', 'allow_trajectory_replacement': True, 'positions_upsampling.enable': False}


@pytest.mark.parametrize(
    ('parameters', 'expected'),
    [
        (KNOWN, 'blend'),
        (KNOWN | {'allow_trajectory_replacement': False}, 'immediate'),
        # 6.9.0, which begins what lies ahead where the arm is measured then, and what is past in its middle
        ({name: KNOWN[name] for name in list(KNOWN)[:2]}, 'immediate'),
        ({name: KNOWN[name] for name in list(KNOWN)[:1]}, 'immediate'),
    ],
)
def test_only_a_controller_that_blends_gets_windows_that_lie_ahead(parameters, expected) -> None:
    context = rclpy.Context()
    context.init(domain_id=int(ros_environment()['ROS_DOMAIN_ID']))
    values = [Parameter(name, value=value) for name, value in parameters.items()]
    options = {'context': context, 'automatically_declare_parameters_from_overrides': True}
    controller = rclpy.create_node('controller', parameter_overrides=values, **options)
    node = rclpy.create_node('asks', context=context)
    executor = SingleThreadedExecutor(context=context)
    for each in (controller, node):
        executor.add_node(each)
    thread = threading.Thread(target=executor.spin)
    thread.start()
    try:
        assert replacement(node, ['/controller']) == expected
    finally:
        context.shutdown()
        thread.join()
