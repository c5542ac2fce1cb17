# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""demo.launch.py run by the real launch system: two arms in one graph, each to a result of its own."""

import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
import yaml
from launch_helpers import LAUNCH, installed_environment
from ros_helpers import NodeProcess

pytest.importorskip('rclpy', reason='needs rclpy')
pytest.importorskip('mujoco', reason='needs MuJoCo')
pytest.importorskip('launch', reason='needs ROS 2 launch')
pytest.importorskip('launch_ros', reason='needs ROS 2 launch_ros')
pytestmark = pytest.mark.ros

ROOT = Path(__file__).parents[2]
ARMS = ('arm_1', 'arm_2')
DEADLINE = 900.0


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return installed_environment(tmp_path)


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    """Return the packaged arm's configuration for a machine of any speed: few joint states, much patience."""
    path = ROOT / 'robotid_ros' / 'robots' / 'ur10e.yaml'
    content = yaml.safe_load(path.read_text(encoding='utf-8'))
    content['/**']['ros__parameters'].update(
        {'physics_rate': 500.0, 'publish_rate': 100.0, 'joint_state_timeout': 60.0, 'tracking_tolerance': 3.0}
        | {'window_time': 20.0}
    )
    copied = tmp_path / 'patient.yaml'
    copied.write_text(yaml.safe_dump(content), encoding='utf-8')
    return copied


TOGETHER = """
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource


def generate_launch_description():
    source = {source!r}
    return LaunchDescription([
        IncludeLaunchDescription(PythonLaunchDescriptionSource(source), launch_arguments=words)
        for words in {arms!r}
    ])
"""
"""A launch file of a user with two arms: the demonstration twice, in two namespaces."""


@pytest.mark.parametrize('together', [False, True], ids=['two launches', 'one launch'])
def test_two_arms_come_to_results_of_their_own(environment, configuration, tmp_path, together) -> None:
    from robotid_ros.nodes.loop_client import LoopClient

    demo = str(ROOT / 'launch' / 'demo.launch.py')

    def words_of(name: str, seed: int) -> list[tuple[str, str]]:
        words = {
            'namespace': name,
            'seed': seed,
            'config': configuration,
            'period': 6,
            'periods': 3,
            'friction_sweep': 'false',
            'validation': 'false',
            'friction': 'coulomb_viscous+offset',
            'output_folder': tmp_path / 'recordings',
            'truth_file': tmp_path / f'{name}.yaml',
        }
        return [(key, str(value)) for key, value in words.items()]

    given = [words_of(name, seed) for seed, name in enumerate(ARMS, start=1)]
    if together:
        both = tmp_path / 'both.launch.py'
        both.write_text(TOGETHER.format(source=demo, arms=given), encoding='utf-8')
        commands = [[str(both)]]
    else:
        commands = [[demo, *(f'{key}:={value}' for key, value in words)] for words in given]
    with ExitStack() as stack:
        started = [stack.enter_context(NodeProcess(['-c', LAUNCH, *each], environment)) for each in commands]
        arms = dict(zip(ARMS, (started[0], started[-1]), strict=True))

        def watch() -> None:
            for process in started:
                assert not process.ended, process.output

        client = LoopClient(watch, int(environment['ROS_DOMAIN_ID']), tuple(f'{name}/recorder' for name in ARMS))
        try:
            for name, process in arms.items():
                process.wait_for_line(f'written to {tmp_path / "recordings" / name}/identification-', DEADLINE)
                process.wait_for_line(f'{name}.chain]: identified, ', DEADLINE)
            outside = [
                name for name, space in client.node.get_node_names_and_namespaces() if space.strip('/') not in ARMS
            ]
            assert outside == ['robotid_client']
            for name in ARMS:
                publishers = client.node.get_publishers_info_by_topic(f'/{name}/joint_states')
                assert [(end.node_namespace, end.node_name) for end in publishers] == [(f'/{name}', 'simulated_arm')]
            results = {name: yaml.safe_load(client.call(f'/{name}/identification/identify', DEADLINE)) for name in ARMS}
        finally:
            client.close()
        for process in started:
            process.signal(signal.SIGINT)
            process.signal(signal.SIGINT)  # as an impatient user does
        for process in started:
            assert process.wait() == 0, process.output
            assert 'Traceback' not in process.output
    for name, result in results.items():
        assert result['robot'] == 'ur10e'
        assert result['metrics']['training']['relative_error_total'] < 20.0, name
        folder, written, again = sorted((tmp_path / 'recordings' / name).iterdir())
        assert yaml.safe_load((written / 'result.yaml').read_text())['friction']['model'] == 'coulomb_viscous+offset'
        assert yaml.safe_load((again / 'result.yaml').read_text()) == result
        assert (folder / f'{folder.name}.mcap').stat().st_size > 0
    values = [[entry['value'] for entry in result['base_parameters']] for result in results.values()]
    assert values[0] != values[1]


def test_the_demonstration_moves_nothing_beside_another_arm(environment, configuration, tmp_path) -> None:
    """Nobody watches it as they would a real arm, and its topics have the usual names."""
    from sensor_msgs.msg import JointState

    from robotid_ros.nodes.loop_client import LoopClient

    words = {'config': configuration, 'period': 6, 'periods': 3, 'output_folder': tmp_path / 'recordings'}
    arguments = [f'{key}:={value}' for key, value in words.items()]
    client = LoopClient(lambda: None, int(environment['ROS_DOMAIN_ID']), ())
    try:
        client.node.create_publisher(JointState, '/joint_states', 10)
        with NodeProcess(['-c', LAUNCH, str(ROOT / 'launch' / 'demo.launch.py'), *arguments], environment) as process:
            process.wait_for_line('nothing was moved: choose a namespace', DEADLINE)
            process.wait_for_line('exit code 1', DEADLINE)
            assert '/robotid_client' in process.output
            assert 'on the way to the start' not in process.output
            process.signal(signal.SIGINT)
            process.wait()
    finally:
        client.close()
    assert not (tmp_path / 'recordings').exists()
