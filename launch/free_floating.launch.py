# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Start a simulated free-floating robot that holds a target, and the nodes that identify it.

    ros2 launch robotid_ros free_floating.launch.py

Then, in another terminal:

    ros2 service call /excitation/design std_srvs/srv/Trigger
    ros2 service call /floating_recorder/start std_srvs/srv/Trigger
    ros2 service call /excitation/start std_srvs/srv/Trigger
    ros2 service call /floating_recorder/stop std_srvs/srv/Trigger        # when the run has ended
    ros2 service call /floating_recorder/identify std_srvs/srv/Trigger

With simulated:=false the robot is your own.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace, SetParameter, SetRemap
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = (
    ('mission', 'iiwa14_space.yaml', 'mission file; the packaged one by default'),
    ('simulated', 'true', 'whether the robot is simulated, and time comes from it'),
    ('acceleration_limit', '2.0', 'of the joints, for the way into the motion and for stops [rad/s^2]'),
    ('seed', '0', 'of the design and of the noise'),
    ('namespace', '', 'namespace of all nodes'),
    ('output_folder', '~/.ros/robotid', 'where recordings go, each to a folder of its own'),
)
# Nothing can be damaged by a simulated robot, so a machine that is busy for a moment is no reason to stop.
PATIENCE = {'joint_state_timeout': 20.0, 'controller_timeout': 20.0, 'window_time': 20.0}


def generate_launch_description():
    def given(name, kind=str):
        return ParameterValue(LaunchConfiguration(name), value_type=kind)

    shared = {'mission': given('mission'), 'use_sim_time': given('simulated', bool)}
    robot = Node(
        package='robotid_ros',
        executable='simulated_arm',
        name='simulated_arm',
        output='screen',
        condition=IfCondition(LaunchConfiguration('simulated')),
        parameters=[
            {
                'mission': given('mission'),
                'seed': given('seed', int),
                'publish_clock': True,
                'physics_rate': 500.0,
                'publish_rate': 100.0,
                'bandwidth': 10.0,
            }
        ],
    )
    excitation = Node(
        package='robotid_ros',
        executable='excitation',
        name='excitation',
        output='screen',
        parameters=[
            shared,
            {
                'run': 'free_floating',
                'periods': 1,
                'seed': given('seed', int),
                'acceleration_limit': given('acceleration_limit', float),
                # The excursion of the mission keeps the target clear of the satellite.
                'start_anyway': ['unchecked_workspace'],
            },
        ],
    )
    recorder = Node(
        package='robotid_ros',
        executable='floating_recorder',
        name='floating_recorder',
        output='screen',
        parameters=[shared, {'output_folder': given('output_folder')}],
    )
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS
    ]
    namespace = LaunchConfiguration('namespace')
    simulated = IfCondition(LaunchConfiguration('simulated'))
    patience = [SetParameter(name, seconds, condition=simulated) for name, seconds in PATIENCE.items()]
    of_all = [PushRosNamespace(namespace), SetRemap('/clock', 'clock'), *patience]
    nodes = GroupAction([*of_all, robot, excitation, recorder])
    return LaunchDescription([*declared, nodes])
