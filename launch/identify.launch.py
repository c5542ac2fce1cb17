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

Nothing moves until the service excitation/start is called. With chain:=true one service runs everything, from the
friction sweep to the report:

    ros2 service call /chain/start std_srvs/srv/Trigger
"""

import os
from pathlib import Path

import yaml
from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, EmitEvent, GroupAction, LogInfo, OpaqueFunction
from launch.events import Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node, PushRosNamespace
from launch_ros.parameter_descriptions import ParameterValue

import robotid_ros
from robotid_ros.identification import IdentificationConfig, SelectionConfig
from robotid_ros.nodes.identified_arm import IdentificationNodeConfig
from robotid_ros.settings import settings_of

ARGUMENTS = (
    ('config', '', 'robot configuration: a file, or the name of one that is shipped'),
    ('namespace', '', 'namespace of the nodes; give each arm of a graph its own'),
    ('controller_topic', 'joint_trajectory', 'where the controller takes trajectory_msgs/JointTrajectory'),
    ('controller_interface', '', 'topic, or action (needs control_msgs); empty: what the configuration says, or topic'),
    ('joint_states_topic', 'joint_states', 'where the arm publishes sensor_msgs/JointState'),
    ('robot_description_topic', 'robot_description', 'latched topic with the URDF'),
    ('use_sim_time', 'false', 'take the time from /clock: true in simulation'),
    ('trajectory', '', 'excitation YAML to run; empty: excitation/design makes one'),
    ('output_folder', '~/.ros/robotid', 'where recordings, results and reports go, each to a folder of its own'),
    ('period', '', "length of a period of the excitation [s]; empty: the node's default"),
    ('periods', '', "how many periods are run; empty: the node's default"),
    ('seed', '', "of every random choice; empty: the node's default"),
    ('start_at_rest', '', "whether every period starts and ends at rest, or only the run; empty: the node's default"),
    ('run', '', 'what excitation/design makes: excitation, validation, friction_sweep, poses, free_floating'),
    ('poses', '', 'CSV file of joint positions, for run:=poses'),
    ('gravity', '', "in the base frame, 'x y z' [m/s^2]; empty: the configuration's"),
    ('ground_height', '', "of the ground in the base frame [m]; empty: the configuration's"),
    ('chain', 'false', 'true: also the node chain, whose service chain/start runs everything; with run:=poses a tour'),
    ('friction_sweep', 'true', 'whether the chain runs a friction sweep before each excitation'),
    ('validation', '', 'whether the chain runs a trajectory more to judge the result by; empty: unless it selects'),
    ('trajectories', '', 'excitations that the chain runs, each with a seed of its own; empty: 1, with a method 10'),
    ('method', '', 'alternating: the chain, with selection among its trajectories; needs torque_threshold'),
)
METHODS = {'': {}, 'alternating': {'estimator': 'alternating', 'select': True}}
# Every setting of the identification is an argument too; two of them are settings of the excitation as well.
SETTINGS = {
    item.name: item
    for kind in (IdentificationConfig, SelectionConfig, IdentificationNodeConfig)
    for item in settings_of(kind)
    if item.name == 'seed' or item.name not in {name for name, *_ in ARGUMENTS}
}
SHARED = ('seed', 'rotor_inertia')
MEASURED = ('poses', 'free_floating')  # runs that the chain takes as they are
CHAIN_ENDS = (0, 1)  # one that was to start at once is through, or was stopped: the other nodes stay
EXCITATION = {
    'trajectory': str,
    'run': str,
    'poses': str,
    'controller_interface': str,
    'period': float,
    'periods': int,
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


def parsed(item, text):
    """Return the value of a setting from the text of a launch argument; lists are words or YAML."""
    if item.kind is bool:
        return truth(item.name, text)
    try:
        if item.form == 'one':
            return item.converted(item.kind(text))
        words = yaml.safe_load(text) if text.startswith('[') else text.split()
        return list(item.converted([item.kind(word) for word in words]))
    except ValueError as cause:
        raise ValueError(f'{item.name}:={text}: {cause}') from None


def truth(name, text):
    """Return what a launch argument that is true or false says."""
    if text.lower() not in ('true', 'false'):
        raise ValueError(f"{name}: expected true or false, got '{text}'")
    return text.lower() == 'true'


def recording_folders(asked, output_folder, namespace):
    """Return folders of recordings: those asked for, or that of the recorder, so that a restart loses none."""
    if asked == ['none']:
        return []
    return asked or [os.path.join(output_folder, namespace.strip('/'))]


def end_of_all(event, context):
    """End everything when a node ends by itself: the excitation node brings the arm to rest on its way out."""
    if context.is_shutdown:
        return []
    if event.process_name.startswith('chain') and event.returncode in CHAIN_ENDS:
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
    folder = {'output_folder': value('output_folder') or '~/.ros/robotid'}
    asked = {name: parsed(item, value(name)) for name, item in SETTINGS.items() if value(name)}
    method = value('method')
    if method not in METHODS:
        raise ValueError(f'method:={method}: expected one of {", ".join(filter(None, METHODS))}')
    if method and not asked.get('torque_threshold'):
        raise ValueError(f'method:={method} decides by torque thresholds: give torque_threshold, one or one per joint')
    asked = {**METHODS[method], **asked}
    recordings = recording_folders(asked.pop('recordings', []), folder['output_folder'], value('namespace'))
    asked |= {'recordings': recordings} if recordings else {}
    excitation = {
        name: ParameterValue(LaunchConfiguration(name), value_type=kind)
        for name, kind in EXCITATION.items()
        if value(name)
    }
    if value('start_at_rest'):
        excitation['start_at_rest'] = truth('start_at_rest', value('start_at_rest'))
    extra = {
        'excitation': {**excitation, **{name: asked[name] for name in SHARED if name in asked}},
        'recorder': folder,
        'identification': {**folder, **asked},
    }
    if truth('chain', value('chain')) or method:
        extra['chain'] = {
            'friction_sweep': truth('friction_sweep', value('friction_sweep')),
            'validation': truth('validation', value('validation') or str(not method)),
            'trajectories': int(value('trajectories') or (10 if method else 1)),
            'trajectory': value('trajectory'),
            **({'run': value('run')} if value('run') in MEASURED else {}),
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


def declared(own=(), without=()):
    """Return a launch file's own arguments, and those of this one that it neither has nor decides by itself."""
    settings = [
        (name, '', f'{item.description} [{item.unit}]' if item.unit else item.description)
        for name, item in SETTINGS.items()
        if name != 'seed'
    ]
    taken = {*without, *(name for name, *_ in own)}
    return [
        DeclareLaunchArgument(name, default_value=default, description=text)
        for name, default, text in (*own, *(each for each in (*ARGUMENTS, *settings) if each[0] not in taken))
    ]


def passed_on(context, own=()):
    """Return the arguments of this launch file as another one has them, but for those that it decides by itself."""
    names = {*(name for name, *_ in ARGUMENTS), *SETTINGS} - set(own)
    return {name: LaunchConfiguration(name).perform(context) for name in sorted(names)}


def generate_launch_description():
    return LaunchDescription([*declared(), OpaqueFunction(function=nodes)])
