# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Start the three nodes for a real arm, with the topics its configuration names.

    ros2 launch robotid_ros real_arm.launch.py robot:=ur
    ros2 launch robotid_ros real_arm.launch.py robot:=/home/me/my_arm.yaml

The driver of the arm must run. Nothing moves until the service excitation/start is called.
"""

import os

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

from robotid_ros.model import RobotConfig

ARGUMENTS = (
    ('robot', 'configuration: ur, franka, xarm, kinova_gen3, kuka_lbr, or a file like own_arm.yaml'),
    ('namespace', 'namespace of the nodes; give each arm of a graph its own'),
    ('trajectory', 'excitation YAML to run; empty: excitation/design makes one'),
    ('controller_interface', 'topic, or action (needs control_msgs); empty: what the configuration says, or topic'),
    ('output_folder', 'where the recorder keeps its files; empty: ~/.ros/robotid'),
    ('period', "length of a period of the excitation [s]; empty: the node's default"),
    ('periods', "how many periods are run; empty: the node's default"),
    ('seed', "of the excitation's design; empty: the node's default"),
)
TOPICS = {
    'controller_topic': 'joint_trajectory_topic',
    'joint_states_topic': 'joint_states_topic',
    'robot_description_topic': 'robot_description_topic',
}


def configuration(robot):
    """Return the path of a configuration given by its name or as a file."""
    shipped = os.path.join(get_package_share_directory('robotid_ros'), 'config', f'{robot}.yaml')
    return shipped if os.path.isfile(shipped) else robot


def nodes(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    path = configuration(value('robot'))
    config = RobotConfig.from_yaml(path)
    config.meaning(config.joints)  # refused here, before anything starts, if effort has no meaning
    topics = {name: getattr(config, key) for name, key in TOPICS.items() if getattr(config, key)}
    passed = {name: value(name) for name, _ in ARGUMENTS if name != 'robot'}
    identify = os.path.join(get_package_share_directory('robotid_ros'), 'launch', 'identify.launch.py')
    arguments = {'config': path, **topics, **passed}
    return [IncludeLaunchDescription(PythonLaunchDescriptionSource(identify), launch_arguments=arguments.items())]


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, description=text, **({} if name == 'robot' else {'default_value': ''}))
        for name, text in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=nodes)])
