# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Start an arm in Gazebo with its controllers, then excitation, recorder and identification.

    ros2 launch robotid_ros gazebo.launch.py
    ros2 launch robotid_ros gazebo.launch.py headless:=true
    ros2 launch robotid_ros gazebo.launch.py robot:=arm.urdf controllers:=controllers.yaml config:=arm.yaml

Needs ROS 2 Jazzy or Kilted with ros_gz, gz_ros2_control and ros2_controllers. Every node runs on
Gazebo's time. Nothing moves until the service excitation/start is called.
"""

import os

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    GroupAction,
    IncludeLaunchDescription,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterValue

from robotid_ros.model import RobotModel
from robotid_ros.model.packaged import arm_description
from robotid_ros.simulation import gazebo_description

ARGUMENTS = (
    ('robot', 'ur10e', 'packaged arm, or a URDF file without <ros2_control>'),
    ('controllers', '', "file with the controllers' parameters; empty: that of the ur10e"),
    ('config', 'gazebo_ur10e', 'robot configuration: a file, or the name of one in share/robotid_ros/config'),
    ('namespace', '', 'namespace of the arm, its controllers and the nodes'),
    ('world', 'empty.sdf', 'world file for Gazebo'),
    ('headless', 'false', 'true: the server only, without a window'),
    ('gazebo', 'true', 'false: Gazebo and the bridge of its clock run already, only spawn the arm'),
    ('controller_interface', '', 'topic, or action (needs control_msgs); empty: what the configuration says, or topic'),
    ('output_folder', '', 'where the recorder keeps its files; empty: ~/.ros/robotid'),
)
CONTROLLERS = ('joint_state_broadcaster', 'joint_trajectory_controller')


def share(package, *path):
    return os.path.join(get_package_share_directory(package), *path)


def controlled_joints(path):
    """Return the joints of the trajectory controller in a parameter file."""
    with open(path, encoding='utf-8') as file:
        content = yaml.safe_load(file)
    for node, values in content.items():
        if node.rpartition('/')[2] == 'joint_trajectory_controller':
            return values['ros__parameters']['joints']
    raise RuntimeError(f'{path} has no parameters of a joint_trajectory_controller')


def after(process, next_actions):
    """Start the next actions when a process has done its work; end everything when it failed."""

    def proceed(event, context):
        if event.returncode == 0:
            return next_actions
        if context.is_shutdown:
            return []
        message = f'{event.process_name} failed with exit code {event.returncode}'
        return [LogInfo(msg=message), EmitEvent(event=Shutdown(reason=message))]

    return RegisterEventHandler(OnProcessExit(target_action=process, on_exit=proceed))


def gazebo(world, headless):
    """Return Gazebo and the bridge that gives ROS its clock."""
    return [
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(share('ros_gz_sim', 'launch', 'gz_sim.launch.py')),
            launch_arguments={
                'gz_args': f'-r {"-s " if headless else ""}{world}',
                'on_exit_shutdown': 'true',
            }.items(),
        ),
        Node(
            package='ros_gz_bridge',
            executable='parameter_bridge',
            name='clock_bridge',
            arguments=['/clock@rosgraph_msgs/msg/Clock[gz.msgs.Clock'],
            output='screen',
        ),
    ]


def actions(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    controllers = value('controllers') or share('robotid_ros', 'config', 'gazebo_controllers.yaml')
    namespace = value('namespace').strip('/')
    plain = arm_description(value('robot'))
    joints = RobotModel.from_urdf(plain).joint_names
    if sorted(joints) != sorted(controlled_joints(controllers)):
        raise RuntimeError(
            f'{controllers} is for the joints {", ".join(controlled_joints(controllers))}, '
            f'but the arm has: {", ".join(joints)}; give a file for it with controllers:='
        )
    description = gazebo_description(plain, controllers, namespace=namespace)
    publisher = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        output='screen',
        parameters=[{'robot_description': ParameterValue(description, value_type=str), 'use_sim_time': True}],
    )
    spawn = Node(
        package='ros_gz_sim',
        executable='create',
        output='screen',
        arguments=[
            '-topic',
            'robot_description',
            '-name',
            namespace.replace('/', '_') or 'arm',
            '-allow_renaming',
            'true',
        ],
    )
    broadcaster, trajectory = (
        Node(
            package='controller_manager',
            executable='spawner',
            output='screen',
            arguments=[name, '--param-file', controllers, '--controller-manager-timeout', '60'],
        )
        for name in CONTROLLERS
    )
    nodes = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(share('robotid_ros', 'launch', 'identify.launch.py')),
        launch_arguments={
            'config': value('config'),
            'namespace': namespace,
            'controller_topic': 'joint_trajectory_controller/joint_trajectory',
            'use_sim_time': 'true',
            **{name: value(name) for name in ('controller_interface', 'output_folder')},
        }.items(),
    )

    def in_namespace(*started):
        return GroupAction([PushRosNamespace(namespace), *started])

    return [
        *(gazebo(value('world'), value('headless') == 'true') if value('gazebo') == 'true' else []),
        in_namespace(publisher, spawn),
        after(spawn, [in_namespace(broadcaster)]),
        after(broadcaster, [in_namespace(trajectory)]),
        # Only now: the clock runs, and every use_sim_time node starts at a time that is not zero.
        after(trajectory, [nodes]),
    ]


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=actions)])
