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
    ros2 launch robotid_ros gazebo.launch.py robot:=arm.urdf
    ros2 launch robotid_ros gazebo.launch.py gazebo:=false namespace:=second x:=2.0 yaw:=1.57

Needs ROS 2 Jazzy or Kilted with ros_gz, gz_ros2_control and ros2_controllers. Every node runs on
Gazebo's time. Nothing moves until the service excitation/start is called.
"""

import os
import runpy
import tempfile
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import (
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
from launch_ros.actions import Node, PushRosNamespace, SetParameter
from launch_ros.parameter_descriptions import ParameterValue

from robotid_ros.demo.run import configuration_text
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import clear_pose
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.packaged import arm_description
from robotid_ros.simulation import gazebo_controllers, gazebo_description, world_physics

ARGUMENTS = (
    ('robot', 'ur10e', 'packaged arm, or a URDF file without <ros2_control>'),
    ('controllers', '', "file with the controllers' parameters; empty: made for the arm and the world"),
    ('config', '', 'robot configuration: a file, or the name of one that is shipped; empty: made from the URDF'),
    ('namespace', '', 'namespace of the arm, its controllers and the nodes'),
    ('x', '0.0', 'where the arm stands in the world [m]'),
    ('y', '0.0', 'where the arm stands in the world [m]'),
    ('z', '0.0', 'where the arm stands in the world, above its ground [m]'),
    ('yaw', '0.0', 'how the arm is turned about the vertical [rad]'),
    ('world', '', 'world file for Gazebo (SDF); empty: a ground plane'),
    ('headless', 'false', 'true: the server only, without a window'),
    ('gazebo', 'true', 'false: Gazebo and the bridge of its clock run already, only spawn the arm'),
    ('friction_sweep', 'false', 'whether the chain begins with a friction sweep; no friction shows in the effort'),
    ('validation', 'true', 'whether the chain runs a second trajectory to judge the result by'),
)
IDENTIFY = Path(__file__).with_name('identify.launch.py')
CONTROLLERS = ('joint_state_broadcaster', 'joint_trajectory_controller')
DECIDED = (
    'controller_topic',
    'joint_states_topic',
    'robot_description_topic',
    'use_sim_time',
    'gravity',
    'ground_height',
)
# A world can be paused, and on a busy computer /clock comes late: the commanded motion stands still and jumps ahead. No
# arm can be damaged by it.
IN_GAZEBO = {
    'joint_state_timeout': 60.0,
    'stale_after': 60.0,
    'controller_timeout': 20.0,
    'stamp_error': 0.05,  # those of /clock, over a bridge
    'start_timeout': 20.0,
    'tracking_tolerance': 0.6,
    'path_distance': 0.3,
    'delay_tolerance': 0.5,
    'rotor_inertia': False,  # a joint in Gazebo has no motor
}
LINK_RADIUS = 0.05  # of an arm that is known from its URDF alone [m]


def share(package, *path):
    return os.path.join(get_package_share_directory(package), *path)


def kept(name, text):
    """Return the path of a file with a text, in a folder of its own."""
    path = Path(tempfile.mkdtemp(prefix='robotid_gazebo_')) / name
    path.write_text(text, encoding='utf-8')
    return str(path)


def configured(robot, name, z):
    """Return the URDF of an arm, its configuration file, and where it starts."""
    description = arm_description(robot)
    model = RobotModel.from_urdf(description)
    if name:
        path = runpy.run_path(str(IDENTIFY))['config_file'](name)
    elif robot == 'ur10e':
        path = share('robotid_ros', 'config', 'gazebo_ur10e.yaml')
    else:
        path = kept('robot.yaml', configuration_text(model, ground=True, link_radius=LINK_RADIUS))
    config = RobotConfig.from_yaml(path)
    model = config.applied(model)
    design = ExcitationConfig(**{**config.design, 'ground_height': -z})
    return description, path, model, clear_pose(model, design)


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

    shared, namespace = runpy.run_path(str(IDENTIFY)), value('namespace').strip('/')
    world = value('world') or share('robotid_ros', 'config', 'gazebo_world.sdf')
    said = []
    if os.path.isfile(world):
        gravity, rate = world_physics(world)
    else:
        gravity, rate = (0.0, 0.0, -9.8), 1000.0
        said = [LogInfo(msg=f"[robotid] '{world}' is no file: gravity 9.8 m/s^2 and steps of 1 ms are taken for it")]
    plain, config, model, start = configured(value('robot'), value('config'), float(value('z')))
    controllers = value('controllers')
    if not controllers:
        template = Path(share('robotid_ros', 'config', 'gazebo_controllers.yaml')).read_text(encoding='utf-8')
        controllers = kept('controllers.yaml', gazebo_controllers(template, model.joint_names, rate))
    description = gazebo_description(plain, controllers, namespace=namespace, initial_position=start)
    publisher = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        output='screen',
        parameters=[{'robot_description': ParameterValue(description, value_type=str), 'use_sim_time': True}],
    )
    place = [('-x', 'x'), ('-y', 'y'), ('-z', 'z'), ('-Y', 'yaw')]
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
            *(word for flag, name in place for word in (flag, value(name))),
        ],
    )
    broadcaster, trajectory = (
        Node(
            package='controller_manager',
            executable='spawner',
            output='screen',
            arguments=[name, '--param-file', controllers, '--controller-manager-timeout', '180'],
        )
        for name in CONTROLLERS
    )
    nodes = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(str(IDENTIFY)),
        launch_arguments={
            **shared['passed_on'](context, DECIDED),
            'config': config,
            'namespace': namespace,
            'controller_topic': 'joint_trajectory_controller/joint_trajectory',
            'use_sim_time': 'true',
            'gravity': ' '.join(map(str, gravity)),
            'ground_height': str(-float(value('z'))),
        }.items(),
    )

    def in_namespace(*started):
        return GroupAction([PushRosNamespace(namespace), *started])

    return [
        *said,
        *(gazebo(world, value('headless') == 'true') if value('gazebo') == 'true' else []),
        in_namespace(publisher, spawn),
        after(spawn, [in_namespace(broadcaster)]),
        after(broadcaster, [in_namespace(trajectory)]),
        # Only now: the clock runs, and every use_sim_time node starts at a time that is not zero.
        after(trajectory, [GroupAction([*(SetParameter(name, value) for name, value in IN_GAZEBO.items()), nodes])]),
    ]


def generate_launch_description():
    declared = runpy.run_path(str(IDENTIFY))['declared'](ARGUMENTS, DECIDED)
    return LaunchDescription([*declared, OpaqueFunction(function=actions)])
