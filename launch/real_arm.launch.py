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

The driver of the arm must run. Where a topic of the configuration does not work but the graph has one that does, that
one is taken, with a line in the log. Nothing moves until the service excitation/start is called.
"""

import os
import runpy
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription, LogInfo, OpaqueFunction
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration

from robotid_ros.model import RobotConfig
from robotid_ros.nodes.discovery import find_topics

ARGUMENTS = (
    ('robot', None, 'configuration: ur, franka, xarm, kinova_gen3, kuka_lbr, or a file like own_arm.yaml'),
    ('controller', '', "name of the trajectory controller; empty: the configuration's, or one found in its place"),
    ('joint_states_topic', '', "topic of the joint states; empty: the configuration's, or one found in its place"),
    ('discover', 'true', 'true: look for working topics in the graph; false: take those of the configuration'),
)
DECIDED = ('config', 'controller_topic', 'robot_description_topic')
IDENTIFY = Path(__file__).with_name('identify.launch.py')


def configuration(robot):
    """Return the path of a configuration given by its name or as a file."""
    if os.path.isfile(robot):
        return robot
    folder = Path(get_package_share_directory('robotid_ros')) / 'config'
    shipped = sorted(path.stem for path in folder.glob('*.yaml') if not path.stem.startswith('gazebo'))
    if robot in shipped:
        return str(folder / f'{robot}.yaml')
    raise FileNotFoundError(
        f'robot:={robot}: no such file, and none of that name is shipped; there are: {", ".join(shipped)}'
    )


def nodes(context):
    def value(name):
        return LaunchConfiguration(name).perform(context)

    path = configuration(value('robot'))
    config = RobotConfig.from_yaml(path)
    config.meaning(config.joints)  # refused here, before anything starts, if effort has no meaning
    trajectory = config.joint_trajectory_topic or 'joint_trajectory'
    if value('controller'):
        above = trajectory.rsplit('/', 2)[0]
        trajectory = f'{above}/{value("controller")}/joint_trajectory'
    states = value('joint_states_topic') or config.joint_states_topic or 'joint_states'
    said = []
    if value('discover') == 'true' and states.startswith('/') and trajectory.startswith('/'):
        heard, commanded, remarks = find_topics(config.joints, states, trajectory)
        states = value('joint_states_topic') or heard
        trajectory = trajectory if value('controller') else commanded
        said = [LogInfo(msg=f'[robotid] {sentence}') for sentence in remarks]
    arguments = {
        **runpy.run_path(str(IDENTIFY))['passed_on'](context, DECIDED),
        'config': path,
        'joint_states_topic': states,
        'controller_topic': trajectory,
        **({'robot_description_topic': config.robot_description_topic} if config.robot_description_topic else {}),
    }
    return [
        *said,
        IncludeLaunchDescription(PythonLaunchDescriptionSource(str(IDENTIFY)), launch_arguments=arguments.items()),
    ]


def generate_launch_description():
    declared = runpy.run_path(str(IDENTIFY))['declared'](ARGUMENTS, DECIDED)
    return LaunchDescription([*declared, OpaqueFunction(function=nodes)])
