"""Start the simulated arm and the three nodes.

ros2 launch robotid_ros demo.launch.py
ros2 service call /excitation/design std_srvs/srv/Trigger
ros2 service call /excitation/start std_srvs/srv/Trigger
ros2 service call /identification/identify std_srvs/srv/Trigger
"""

import os
import runpy

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, GroupAction, IncludeLaunchDescription, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace

ARGUMENTS = (
    ('robot', 'ur10e', 'packaged arm, or a URDF file'),
    ('namespace', '', 'namespace of all nodes'),
    ('config', 'ur10e', 'robot configuration: a file, or the name of one that is shipped'),
    ('truth_file', '', 'where the simulated arm writes its true parameters; empty: nowhere'),
    ('output_folder', '', 'where the recorder keeps its files; empty: ~/.ros/robotid'),
)


def arm_and_loop(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    identify = os.path.join(get_package_share_directory('robotid_ros'), 'launch', 'identify.launch.py')
    # The arm reads the same configuration as the nodes: what its effort holds, torque constants, limits.
    config = runpy.run_path(identify)['config_file'](value('config'))
    arm = Node(
        package='robotid_ros',
        executable='simulated_arm',
        name='simulated_arm',
        output='screen',
        parameters=[*([config] if config else []), {'robot': value('robot'), 'truth_file': value('truth_file')}],
    )
    loop = IncludeLaunchDescription(
        PythonLaunchDescriptionSource(identify),
        launch_arguments={name: value(name) for name in ('config', 'namespace', 'output_folder')}.items(),
    )
    return [GroupAction([PushRosNamespace(value('namespace')), arm]), loop]


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=arm_and_loop)])
