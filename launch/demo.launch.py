# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Start the simulated arm and the nodes, and run everything: friction sweep, excitation, validation, identification.

    ros2 launch robotid_ros demo.launch.py
    ros2 launch robotid_ros demo.launch.py method:=alternating torque_threshold:=20.0

The log ends with what was found and where the report is. With run:=false nothing moves until the services are
called:

    ros2 service call /excitation/design std_srvs/srv/Trigger
    ros2 service call /excitation/start std_srvs/srv/Trigger
    ros2 service call /identification/identify std_srvs/srv/Trigger
"""

import runpy
from pathlib import Path

from launch import LaunchDescription
from launch.actions import GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace, SetParameter, SetRemap
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = (
    ('robot', 'ur10e', 'packaged arm, or a URDF file'),
    ('namespace', '', 'namespace of all nodes; two arms of a graph need two'),
    ('config', 'ur10e', 'robot configuration: a file, or the name of one that is shipped'),
    ('friction_law', 'coulomb_viscous', 'of the simulated joints: coulomb_viscous, static, stribeck, daemi_heimann'),
    ('speed', '1.0', 'simulated seconds per second, as far as the processor allows'),
    ('truth_file', '', 'where the simulated arm writes its true parameters; empty: nowhere'),
    ('output_folder', '~/.ros/robotid', 'where recordings, results and reports go, each to a folder of its own'),
    ('recordings', 'none', 'folders of recordings to identify with; none: the arm is a new one at each start'),
    ('period', '10', 'length of a period of the excitation [s]'),
    ('periods', '5', 'how many periods are run'),
    ('seed', '0', "of the design, and of the arm's true parameters and noise"),
    ('run', 'true', 'true: run everything at once; false: wait for the services; or what excitation/design makes then'),
)
# Nothing can be damaged here, so a machine that is busy for a moment is no reason to stop.
PATIENCE = {'joint_state_timeout': 20.0, 'controller_timeout': 20.0, 'start_timeout': 20.0, 'window_time': 20.0}
SWEEP = {'sweep_levels': 4, 'sweep_stroke_time': 1.0}  # shorter than on a real arm, whose friction is less simple
DECIDED = ('controller_topic', 'joint_states_topic', 'robot_description_topic', 'use_sim_time')


def arm_and_loop(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    identify = str(Path(__file__).with_name('identify.launch.py'))
    shared = runpy.run_path(identify)
    # The arm reads the same configuration as the nodes: what its effort holds, torque constants, limits.
    config = shared['config_file'](value('config'))
    own = {
        'robot': ParameterValue(LaunchConfiguration('robot'), value_type=str),
        'truth_file': ParameterValue(LaunchConfiguration('truth_file'), value_type=str),
        'friction_law': ParameterValue(LaunchConfiguration('friction_law'), value_type=str),
        'speed': ParameterValue(LaunchConfiguration('speed'), value_type=float),
        'seed': ParameterValue(LaunchConfiguration('seed'), value_type=int),
        'publish_clock': True,
    }
    arm = Node(
        package='robotid_ros',
        executable='simulated_arm',
        name='simulated_arm',
        output='screen',
        parameters=[*([config] if config else []), own],
        on_exit=shared['end_of_all'],
    )
    kind = value('run') if value('run').lower() not in ('true', 'false') else ''
    run = not kind and shared['truth']('run', value('run'))
    passed = shared['passed_on'](context, DECIDED)
    passed |= {'run': kind, 'chain': str(run or shared['truth']('chain', passed['chain'])), 'use_sim_time': 'true'}
    loop = IncludeLaunchDescription(PythonLaunchDescriptionSource(identify), launch_arguments=passed.items())
    # All nodes take their time from this arm: a busy machine makes the run longer and changes nothing else.
    clock = SetRemap('/clock', f'/{value("namespace").strip("/")}/clock'.replace('//', '/'))
    settings = {**PATIENCE, **SWEEP, 'start_at_once': run, 'simulated': True}
    of_all = [SetParameter(name, setting) for name, setting in settings.items()]
    return [GroupAction([clock, *of_all, GroupAction([PushRosNamespace(value('namespace')), arm]), loop])]


def generate_launch_description():
    shared = runpy.run_path(str(Path(__file__).with_name('identify.launch.py')))
    return LaunchDescription([*shared['declared'](ARGUMENTS, DECIDED), OpaqueFunction(function=arm_and_loop)])
