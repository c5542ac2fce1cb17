# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""A client of the nodes of a test: it handles messages while it waits."""

import time

import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from ros_helpers import DEADLINE
from std_srvs.srv import Trigger

from robotid_ros.nodes.loop_client import introduce


class GraphClient:
    """A node in a ROS domain; subscriptions and publishers are made on ``node``."""

    def __init__(self, domain, name='client'):
        self.context = rclpy.Context()
        self.context.init(domain_id=domain)
        self.node = rclpy.create_node(name, context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)

    def said(self):
        """Return what a failure should tell of the nodes."""
        return ''

    def until(self, condition, what, deadline=DEADLINE):
        end = time.monotonic() + deadline
        while not condition():
            assert time.monotonic() < end, f'{what} did not happen within {deadline:g} s{self.said()}'
            self.executor.spin_once(timeout_sec=0.05)

    def answer(self, future, what):
        self.until(future.done, what)
        return future.result()

    def ask(self, service, kind=Trigger, request=None):
        client = self.node.create_client(kind, service)
        self.until(client.service_is_ready, f'{service} appears')
        introduce(self.node, service, lambda known: self.until(known, f'{service} knows this client'))
        answer = self.answer(client.call_async(kind.Request() if request is None else request), f'{service} answers')
        self.node.destroy_client(client)
        return answer

    def set_parameters(self, node, values):
        """Set parameters of a node and return its answers."""
        listed = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        request = SetParameters.Request(parameters=listed)
        return self.ask(f'/{node}/set_parameters', SetParameters, request).results

    def close(self):
        self.executor.shutdown(timeout_sec=1.0)
        self.node.destroy_node()
        self.context.try_shutdown()
