# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Look at the designed motion in RViz before the arm moves.

    ros2 launch robotid_ros view.launch.py urdf:=my_arm.urdf

The excitation node's topic ~/preview moves a second, translucent arm, with the trajectory it would run, and
~/preview_markers draws its path, red where little room is left. Nothing is published on the arm's own topics. Needs
robot_state_publisher and rviz2.
"""

import tempfile
from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

ARGUMENTS = (
    ('urdf', '', 'URDF of the arm, the one that the excitation node has'),
    ('namespace', '', 'namespace of the excitation node'),
    ('rviz', 'true', 'open RViz; false only publishes the frames of the previewed arm'),
    ('use_sim_time', 'false', 'take the time from /clock: true in simulation'),
)


def nodes(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    if not value('urdf'):
        raise ValueError('view.launch.py: give urdf:=my_arm.urdf, the file that the excitation node has')
    description = Path(value('urdf')).expanduser().read_text(encoding='utf-8')
    space = value('namespace').strip('/')
    clock = {'use_sim_time': ParameterValue(LaunchConfiguration('use_sim_time'), value_type=bool)}
    publisher = Node(
        package='robot_state_publisher',
        executable='robot_state_publisher',
        namespace='preview',
        parameters=[{'robot_description': description, 'frame_prefix': 'preview/'}, clock],
        remappings=[('joint_states', f'/{space}/excitation/preview' if space else '/excitation/preview')],
    )
    robot = ElementTree.fromstring(description)
    children = {child.get('link') for child in robot.iterfind('joint/child')}
    root = next(link.get('name') for link in robot.iterfind('link') if link.get('name') not in children)
    shipped = Path(get_package_share_directory('robotid_ros')) / 'config' / 'preview.rviz'
    view = Path(tempfile.mkdtemp(prefix='robotid_')) / 'preview.rviz'
    text = shipped.read_text(encoding='utf-8').replace('preview/base_link', f'preview/{root}')
    if space:
        text = text.replace('/excitation/preview_markers', f'/{space}/excitation/preview_markers')
    view.write_text(text, encoding='utf-8')
    rviz = Node(
        package='rviz2',
        executable='rviz2',
        arguments=['-d', str(view)],
        parameters=[clock],
        condition=IfCondition(LaunchConfiguration('rviz')),
    )
    return [publisher, rviz]


def generate_launch_description():
    declared = [
        DeclareLaunchArgument(name, default_value=default, description=text) for name, default, text in ARGUMENTS
    ]
    return LaunchDescription([*declared, OpaqueFunction(function=nodes)])
