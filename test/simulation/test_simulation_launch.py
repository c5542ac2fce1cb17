# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""gazebo.launch.py and demo.launch.py run by the real launch system, with stand-ins for what they start.

The stand-ins note what they were started with; Gazebo itself is not needed.
"""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ros_helpers import NodeProcess, wait_until
from simulation_helpers import CRANE

pytest.importorskip('launch', reason='needs ROS 2 launch')
pytest.importorskip('launch_ros', reason='needs ROS 2 launch_ros')
pytestmark = pytest.mark.ros

ROOT = Path(__file__).parents[2]

STAND_IN = f"""#!{sys.executable}
import json, os, signal, sys, time
name = os.path.basename(sys.argv[0])
log = os.environ['STAND_IN_LOG']
files = [open(b).read() for a, b in zip(sys.argv, sys.argv[1:]) if a == '--params-file']
with open(log, 'a') as file:
    file.write(json.dumps({{'name': name, 'arguments': sys.argv[1:], 'parameters': files}}) + chr(10))
if name == os.environ.get('STAND_IN_FAILS'):
    sys.exit(3)
if name not in ('create', 'spawner'):
    signal.pause()
"""

GZ_SIM = """
import os
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess
from launch.substitutions import LaunchConfiguration

def generate_launch_description():
    here = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return LaunchDescription([
        DeclareLaunchArgument('gz_args', default_value=''),
        DeclareLaunchArgument('on_exit_shutdown', default_value='false'),
        ExecuteProcess(cmd=[os.path.join(here, 'lib', 'ros_gz_sim', 'gz'), LaunchConfiguration('gz_args')]),
    ])
"""

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = [word.split(':=', 1) for word in sys.argv[2:]]
service = LaunchService()
source = PythonLaunchDescriptionSource(sys.argv[1])
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)])
)
sys.exit(service.run())
"""

PROGRAMS = {
    'ros_gz_sim': ('gz', 'create'),
    'ros_gz_bridge': ('parameter_bridge',),
    'robot_state_publisher': ('robot_state_publisher',),
    'controller_manager': ('spawner',),
    'robotid_ros': ('simulated_arm', 'chain', 'excitation', 'recorder', 'identification'),
}


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which the stand-ins are what ROS finds."""
    prefix = tmp_path / 'prefix'
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    for package, programs in PROGRAMS.items():
        (index / package).touch()
        (prefix / 'share' / package).mkdir()
        folder = prefix / 'lib' / package
        folder.mkdir(parents=True)
        for program in programs:
            (folder / program).write_text(STAND_IN)
            (folder / program).chmod(stat.S_IRWXU)
    (prefix / 'share' / 'ros_gz_sim' / 'launch').mkdir()
    (prefix / 'share' / 'ros_gz_sim' / 'launch' / 'gz_sim.launch.py').write_text(GZ_SIM)
    for folder in ('launch', 'config'):
        (prefix / 'share' / 'robotid_ros' / folder).symlink_to(ROOT / folder)
    path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')]).rstrip(os.pathsep)
    return {
        **os.environ,
        'AMENT_PREFIX_PATH': str(prefix),
        'PYTHONPATH': path,
        'ROS_LOG_DIR': str(tmp_path / 'log'),
        'STAND_IN_LOG': str(tmp_path / 'started.jsonl'),
    }


def launch(environment: dict[str, str], file: str = 'gazebo.launch.py', **arguments: str) -> NodeProcess:
    words = [f'{name}:={value}' for name, value in arguments.items()]
    return NodeProcess(['-c', LAUNCH, str(ROOT / 'launch' / file), *words], environment)


def started(environment: dict[str, str]) -> list[dict]:
    path = Path(environment['STAND_IN_LOG'])
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def until_started(environment: dict[str, str], process: NodeProcess, names: set[str]) -> dict[str, list[dict]]:
    def all_there() -> bool:
        assert process.process.poll() is None, process.output
        return names <= {entry['name'] for entry in started(environment)}

    wait_until(all_there, f'the start of {names} (output: {process.output})')
    return {name: [entry for entry in started(environment) if entry['name'] == name] for name in names}


ALL = {
    'gz',
    'parameter_bridge',
    'robot_state_publisher',
    'create',
    'spawner',
    'excitation',
    'recorder',
    'identification',
}


def test_everything_starts_in_order_on_simulated_time(environment) -> None:
    with launch(environment, headless='true') as process:
        seen = until_started(environment, process, ALL)
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.output
    order = [entry['name'] for entry in started(environment)]
    assert order.index('create') < order.index('spawner')
    assert order.count('spawner') == 2
    assert max(k for k, name in enumerate(order) if name == 'spawner') < order.index('excitation')
    (words,) = seen['gz'][0]['arguments']
    assert words.startswith('-r -s ')
    assert words.endswith('config/gazebo_world.sdf')
    assert seen['parameter_bridge'][0]['arguments'][0] == '/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock'
    assert [entry['arguments'][0] for entry in seen['spawner']] == [
        'joint_state_broadcaster',
        'joint_trajectory_controller',
    ]
    controllers = seen['spawner'][0]['arguments'][2]
    parameters = yaml.safe_load(Path(controllers).read_text())
    assert parameters['/**/controller_manager']['ros__parameters']['update_rate'] == 1000
    create = seen['create'][0]['arguments']
    assert create[create.index('-x') : create.index('-x') + 8] == ['-x', '0.0', '-y', '0.0', '-z', '0.0', '-Y', '0.0']
    description = yaml.safe_load(seen['robot_state_publisher'][0]['parameters'][0])
    (values,) = (content['ros__parameters'] for content in description.values())
    assert values['use_sim_time'] is True
    assert f'<parameters>{controllers}</parameters>' in values['robot_description']
    assert 'gz_ros2_control/GazeboSimSystem' in values['robot_description']
    for name in ('excitation', 'recorder', 'identification'):
        (entry,) = seen[name]
        assert any('use_sim_time: true' in text.replace('"', '') for text in entry['parameters'])
        assert any('wrist_3_joint' in text for text in entry['parameters'])
        assert any('gravity:' in text.replace('"', '') and '-9.81' in text for text in entry['parameters'])
        assert 'joint_trajectory:=joint_trajectory_controller/joint_trajectory' in entry['arguments']


def test_a_namespace_holds_the_arm_its_controllers_and_the_nodes(environment) -> None:
    with launch(environment, namespace='left', gazebo='false') as process:
        seen = until_started(environment, process, ALL - {'gz', 'parameter_bridge'})
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.output
    assert not {'gz', 'parameter_bridge'} & {entry['name'] for entry in started(environment)}
    for entries in seen.values():
        for entry in entries:
            assert '__ns:=/left' in entry['arguments'], entry
    description = seen['robot_state_publisher'][0]['parameters'][0]
    assert '<ros><namespace>/left</namespace></ros>' in ''.join(description.split('\\\n'))


def test_a_failed_step_ends_everything_with_its_name(environment) -> None:
    environment['STAND_IN_FAILS'] = 'spawner'
    with launch(environment) as process:
        process.wait()
        assert 'failed with exit code 3' in process.output
    assert 'excitation' not in {entry['name'] for entry in started(environment)}


@pytest.mark.parametrize('ended', ['excitation', 'recorder', 'identification'])
def test_a_node_that_ends_is_named_and_ends_the_others(environment, ended) -> None:
    environment['STAND_IN_FAILS'] = ended
    with launch(environment, 'identify.launch.py', config='ur10e') as process:
        assert process.wait() == 0, process.output
        assert re.search(rf'{ended}-\d ended with exit code 3; the others are ended too', process.output)


def test_another_arm_gets_controllers_a_configuration_and_a_start_of_its_own(environment, tmp_path) -> None:
    arm, world = tmp_path / 'crane.urdf', tmp_path / 'moon.sdf'
    arm.write_text(CRANE)
    world.write_text(
        '<sdf version="1.9"><world name="w"><gravity>0 0 -1.62</gravity>'
        '<physics type="dart"><max_step_size>0.002</max_step_size></physics></world></sdf>'
    )
    with launch(environment, robot=str(arm), world=str(world), x='1.5', z='0.25', yaw='0.5') as process:
        seen = until_started(environment, process, ALL)
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.output
    parameters = yaml.safe_load(Path(seen['spawner'][0]['arguments'][2]).read_text())
    assert parameters['/**/joint_trajectory_controller']['ros__parameters']['joints'] == ['turn', 'luff', 'reach']
    assert parameters['/**/controller_manager']['ros__parameters']['update_rate'] == 500
    create = seen['create'][0]['arguments']
    assert [create[create.index(flag) + 1] for flag in ('-x', '-y', '-z', '-Y')] == ['1.5', '0.0', '0.25', '0.5']
    texts = ''.join(seen['excitation'][0]['parameters']).replace('"', '')
    assert '- -1.62' in texts
    assert 'ground_height: -0.25' in texts
    assert 'ground: true' in texts
    for name in ('excitation', 'identification'):
        assert 'rotor_inertia:=False' in seen[name][0]['arguments'], seen[name][0]


def test_every_argument_is_described_and_has_a_default(environment) -> None:
    """What ``ros2 launch --show-args`` shows."""
    program = """
import sys
from launch.launch_description_sources import get_launch_description_from_python_launch_file
for argument in get_launch_description_from_python_launch_file(sys.argv[1]).get_launch_arguments():
    assert argument.description and argument.default_value is not None, argument.name
    print(argument.name)
"""
    command = [sys.executable, '-c', program, str(ROOT / 'launch' / 'gazebo.launch.py')]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert shown.returncode == 0, shown.stderr
    assert {'robot', 'controllers', 'config', 'namespace', 'world', 'headless'} <= set(shown.stdout.split())


def test_the_demo_gives_the_arm_and_the_nodes_one_configuration(environment, tmp_path) -> None:
    """What the arm's effort holds has to be what the others take it for."""
    names = {'simulated_arm', 'excitation', 'recorder', 'identification'}
    given = {'namespace': 'left', 'truth_file': str(tmp_path / 'truth.yaml'), 'controller_interface': 'action'}
    with launch(environment, 'demo.launch.py', **given) as process:
        seen = until_started(environment, process, names)
        process.signal(signal.SIGINT)
        assert process.wait() == 0, process.output
    files = {}
    for name, (entry,) in seen.items():
        assert '__ns:=/left' in entry['arguments'], entry
        files[name] = [text for text in entry['parameters'] if 'torque_constants' in text]
    assert len(files['simulated_arm']) == 1
    assert all(held == files['simulated_arm'] for held in files.values())
    assert any('truth.yaml' in text for text in seen['simulated_arm'][0]['parameters'])
    assert any('controller_interface: action' in text.replace('"', '') for text in seen['excitation'][0]['parameters'])
