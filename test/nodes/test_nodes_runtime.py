# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What every node relies on: parameters from dataclasses, clean ends, answers from a worker thread."""

import ast
import os
import signal
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path
from threading import Thread
from time import sleep

import pytest
from ros_helpers import NodeProcess, assert_refused, ros_environment

pytest.importorskip('rclpy', reason='needs the ros extra')
pytestmark = pytest.mark.ros

import rclpy  # noqa: E402
from rclpy.executors import SingleThreadedExecutor  # noqa: E402
from std_srvs.srv import Trigger  # noqa: E402

from robotid_ros.nodes.runtime import call_service  # noqa: E402

ROOT = Path(__file__).parents[2]
PROBE = textwrap.dedent("""
    import dataclasses, sys, threading, time
    from rclpy.node import Node
    from std_srvs.srv import Trigger
    from robotid_ros.nodes.parameters import declare_parameters, declare_robot_config, read_parameters
    from robotid_ros.nodes.runtime import BackgroundWorker, run_node
    from robotid_ros.settings import Settings, setting

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Config(Settings):
        period: float = setting(20.0, 'period', unit='s', range=(0.1, 100.0))
        harmonics: int = setting(5, 'harmonics', range=(1, 20))
        criterion: str = setting('a', 'criterion', choices=('a', 'b'))
        names: tuple[str, ...] = setting((), 'names')
        weights: tuple[float, ...] = setting((1.0,), 'weights')

    class Probe(Node):
        def __init__(self):
            super().__init__('probe')
            self.config = declare_parameters(self, Config)
            self.robot = declare_robot_config(self)
            self.worker = BackgroundWorker(self)
            self.create_service(Trigger, '~/work', self.work)
            self.create_service(Trigger, '~/fail', self.fail)
            self.create_service(Trigger, '~/sleep', self.sleep)
            print('config', self.config, self.robot, flush=True)
        async def work(self, request, response):
            # Long enough for the executor to fall asleep before the answer is there.
            response.message = await self.worker.run(lambda: time.sleep(0.5) or threading.current_thread().name)
            response.success = True
            return response
        async def sleep(self, request, response):
            await self.worker.run(lambda: print('sleeping', flush=True) or time.sleep(1000.0))
            return response
        def fail(self, request, response):
            raise RuntimeError('broken callback')
        def close(self):
            print('closing', flush=True)
            self.worker.close()

    def main(args=None):
        return run_node(Probe, args)

    if __name__ == '__main__':
        sys.exit(main())
""")

CLIENT = textwrap.dedent("""
    import sys, rclpy
    from std_srvs.srv import Trigger
    from rcl_interfaces.srv import SetParameters
    from rclpy.parameter import Parameter
    rclpy.init()
    node = rclpy.create_node('client')
    def call(kind, name, request):
        client = node.create_client(kind, name)
        assert client.wait_for_service(30.0)
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=30.0)
        return future.result()
    print('worked', call(Trigger, '/probe/work', Trigger.Request()).message)
    def put(name, value):
        request = SetParameters.Request(parameters=[Parameter(name, value=value).to_parameter_msg()])
        result = call(SetParameters, '/probe/set_parameters', request).results[0]
        print(name, result.successful, result.reason)
    put('period', 10)
    put('period', -1.0)
    put('criterion', 'c')
    put('harmonics', 2.5)
    if len(sys.argv) > 1:
        client = node.create_client(Trigger, f'/probe/{sys.argv[1]}')
        client.wait_for_service(30.0)
        client.call_async(Trigger.Request())
        while client.service_is_ready():  # until the node is gone
            rclpy.spin_once(node, timeout_sec=0.1)
    rclpy.shutdown()
""")


@pytest.fixture
def scripts(tmp_path):
    (tmp_path / 'probe.py').write_text(PROBE)
    (tmp_path / 'client.py').write_text(CLIENT)
    return tmp_path


def test_parameters_services_and_a_clean_end(scripts) -> None:
    environment = ros_environment()
    arguments = ['--ros-args', '-p', 'period:=16', '-p', 'names:=[a, b]', '-p', 'weights:=[1, 2]']
    with NodeProcess([str(scripts / 'probe.py'), *arguments], environment) as probe:
        probe.wait_for_line('config')
        assert "period=16.0, harmonics=5, criterion='a', names=('a', 'b'), weights=(1.0, 2.0)" in probe.output
        with NodeProcess([str(scripts / 'client.py')], environment) as client:
            assert client.wait() == 0, client.output
        assert 'worked worker' in client.output
        assert 'period True' in client.output
        assert 'period False Parameter period out of range' in client.output
        assert "criterion False parameter 'criterion': expected one of a, b; got 'c'" in client.output
        assert "harmonics False parameter 'harmonics': expected a whole number, got 2.5" in client.output
        probe.signal(signal.SIGTERM)
        assert probe.wait() == 0
        assert probe.lines[-1] == 'closing'


def test_a_bad_value_at_start_is_refused_in_one_line(scripts) -> None:
    cases = {
        'Parameter period out of range Min: 0.1, Max: 100.0, value: 1000.0': ['period:=1000.0'],
        "parameter 'criterion': expected one of a, b; got 'best'": ['criterion:=best'],
        'Sequence should be of same type': ['weights:=[1, 2.5]'],
        "parameter 'names': expected a list of names, got 3": ['names:=3'],
    }
    assert_refused('probe', cases, {**ros_environment(), 'PYTHONPATH': f'{scripts}{os.pathsep}{ROOT}'})


def test_a_broken_callback_ends_the_node_with_its_reason(scripts) -> None:
    environment = ros_environment()
    with NodeProcess([str(scripts / 'probe.py')], environment) as probe:
        probe.wait_for_line('config')
        with NodeProcess([str(scripts / 'client.py'), 'fail'], environment) as client:
            client.wait()
        assert probe.wait() == 1
        assert 'broken callback' in probe.output
        assert 'closing' in probe.output


def test_a_node_that_is_told_to_end_does_not_wait_for_its_worker(scripts) -> None:
    environment = ros_environment()
    with NodeProcess([str(scripts / 'probe.py')], environment) as probe:
        probe.wait_for_line('config')
        with NodeProcess([str(scripts / 'client.py'), 'sleep'], environment):
            probe.wait_for_line('sleeping')
            probe.signal(signal.SIGINT)
            assert probe.wait() == 0
    assert probe.lines[-1] == 'closing'


def test_a_storm_of_signals_ends_a_node_once(scripts) -> None:
    """As launch sends SIGINT twice, and a dying parent SIGTERM from every thread."""
    with NodeProcess([str(scripts / 'probe.py')], ros_environment()) as probe:
        probe.wait_for_line('config')
        for _ in range(200):
            if probe.process.poll() is None:
                probe.signal(signal.SIGTERM)
                probe.signal(signal.SIGINT)
        assert probe.wait() == 0
    assert probe.lines.count('closing') == 1


def test_a_robot_configuration_file_is_a_parameter_file(scripts, tmp_path) -> None:
    config = tmp_path / 'arm.yaml'
    config.write_text(
        '/**:\n  ros__parameters:\n    joints: [j1, j2]\n    effort: {j1: current, j2: torque}\n'
        '    torque_constants: {j1: 0.1}\n    gear_ratios: {j1: 101}\n    limits: {velocity: {j1: 2, j2: 1.5}}\n'
    )
    with NodeProcess([str(scripts / 'probe.py'), '--ros-args', '--params-file', str(config)], ros_environment()) as p:
        p.wait_for_line('config')
        assert "joints=('j1', 'j2'), effort={'j1': 'current', 'j2': 'torque'}" in p.output
        assert "limits={'velocity': {'j1': 2.0, 'j2': 1.5}}" in p.output


@pytest.mark.skipif(not find_spec('rclpy.qos_event'), reason='this rclpy no longer has the old name')
def test_the_events_of_a_subscription_are_found_by_their_name_on_humble() -> None:
    """Where rclpy has no ``event_handler``: before, no excitation node started there."""
    code = """
        import sys, warnings
        warnings.simplefilter('ignore')
        import rclpy.node, rclpy.qos_event
        sys.modules['rclpy.event_handler'] = None
        from robotid_ros.nodes import surroundings
        assert surroundings.SubscriptionEventCallbacks is rclpy.qos_event.SubscriptionEventCallbacks
    """
    subprocess.run([sys.executable, '-c', textwrap.dedent(code)], check=True)


# What rclpy 9.1.2 (Kilted) has and 3.3.15 (Humble) has not, from their sources.
NOT_ON_HUMBLE = """
    add_post_set_parameters_callback add_pre_set_parameters_callback configure_introspection count_clients
    count_services create_future get_content_filter get_fully_qualified_node_names get_publisher_count
    is_cft_enabled list_parameters logger_name remove_done_callback service_name set_content_filter
    topic_type_hash wait_for_node
"""


def test_nodes_call_nothing_that_humble_lacks() -> None:
    """Before, no recorder recorded there, and no action started."""
    for path in (Path(__file__).parents[2] / 'robotid_ros' / 'nodes').glob('*.py'):
        used = {node.attr for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Attribute)}
        assert not used & set(NOT_ON_HUMBLE.split()), path.name


def test_a_service_that_drops_its_first_answer_is_asked_again() -> None:
    context = rclpy.Context()
    context.init(domain_id=int(ros_environment()['ROS_DOMAIN_ID']))
    server, asker = (rclpy.create_node(name, context=context) for name in ('server', 'asker'))

    def answer(_: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.message = 'to the second question'
        return response

    service, got = server.create_service(Trigger, 'reluctant', answer), []
    asking, answering = (SingleThreadedExecutor(context=context) for _ in range(2))
    asking.add_node(asker)
    answering.add_node(server)
    threads = [
        Thread(target=asking.spin, daemon=True),
        Thread(target=lambda: got.append(call_service(asker, Trigger, 'reluctant', Trigger.Request(), 10.0))),
    ]
    for thread in threads:
        thread.start()
    dropped = 0
    while threads[1].is_alive():
        if dropped:
            answering.spin_once(timeout_sec=0.05)
        else:
            taken = service.handle.service_take_request(Trigger.Request)
            dropped += bool(taken and taken[0] is not None)
            sleep(0.01)
    asking.shutdown()
    context.shutdown()
    assert dropped == 1
    assert got[0].message == 'to the second question'
