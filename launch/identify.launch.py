# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Start excitation, recorder and identification for one arm.

    ros2 launch robotid_ros identify.launch.py config:=own_arm.yaml \
        controller_topic:=/scaled_joint_trajectory_controller/joint_trajectory

Nothing moves until the service excitation/start is called.
"""

import os
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, GroupAction, LogInfo, OpaqueFunction
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterValue

import robotid_ros

ARGUMENTS = (
    ('config', '', 'robot configuration: a file, or the name of one that is shipped'),
    ('namespace', '', 'namespace of the nodes; give each arm of a graph its own'),
    ('controller_topic', 'joint_trajectory', 'where the controller takes trajectory_msgs/JointTrajectory'),
    ('controller_interface', '', 'topic, or action (needs control_msgs); empty: what the configuration says, or topic'),
    ('joint_states_topic', 'joint_states', 'where the arm publishes sensor_msgs/JointState'),
    ('robot_description_topic', 'robot_description', 'latched topic with the URDF'),
    ('use_sim_time', 'false', 'take the time from /clock: true in simulation'),
    ('trajectory', '', 'excitation YAML to run; empty: excitation/design makes one'),
    ('output_folder', '', 'where the recorder keeps its files; empty: ~/.ros/robotid'),
    ('period', '', "length of a period of the excitation [s]; empty: the node's default"),
    ('periods', '', "how many periods are run; empty: the node's default"),
    ('seed', '', "of the excitation's design; empty: the node's default"),
    ('gravity', '', "in the base frame, 'x y z' [m/s^2]; empty: the configuration's"),
    ('ground_height', '', "of the ground in the base frame [m]; empty: the configuration's"),
)
EXCITATION = {
    'trajectory': str,
    'controller_interface': str,
    'period': float,
    'periods': int,
    'seed': int,
    'ground_height': float,
}


def config_file(name):
    """Return the path of a configuration given as a path or as a name."""
    if not name or os.path.isfile(name):
        return name
    folders = (
        Path(get_package_share_directory('robotid_ros')) / 'config',
        Path(robotid_ros.__file__).parent / 'robots',
    )
    for folder in folders:
        for candidate in (folder / name, folder / f'{name}.yaml'):
            if candidate.is_file():
                return str(candidate)
    raise FileNotFoundError(f"robot configuration '{name}': no such file, and none of that name is shipped")


def end_of_all(event, context):
    """End everything when a node ends by itself: the excitation node brings the arm to rest on its way out."""
    if context.is_shutdown:
        return []
    message = f'{event.process_name} ended with exit code {event.returncode}; the others are ended too'
    return [LogInfo(msg=message), EmitEvent(event=Shutdown(reason=message))]


def nodes(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    config = config_file(value('config'))
    clock = {'use_sim_time': ParameterValue(LaunchConfiguration('use_sim_time'), value_type=bool)}
    gravity = [{'gravity': [float(word) for word in value('gravity').split()]}] if value('gravity') else []
    shared = [*([config] if config else []), *gravity, clock]
    extra = {
        'excitation': {
            name: ParameterValue(LaunchConfiguration(name), value_type=kind)
            for name, kind in EXCITATION.items()
            if value(name)
        },
        'recorder': {'output_folder': value('output_folder')} if value('output_folder') else {},
        'identification': {},
    }
    remappings = [
        ('joint_trajectory', value('controller_topic')),
        ('joint_states', value('joint_states_topic')),
        ('robot_description', value('robot_description_topic')),
    ]
    started = [
        Node(
            package='robotid_ros',
            executable=name,
            name=name,
            output='screen',
            parameters=[*shared, *([own] if own else [])],
            remappings=remappings,
            on_exit=end_of_all,
        )
        for name, own in extra.items()
    ]
    return [GroupAction([PushRosNamespace(value('namespace')), *started])]


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=nodes)])
