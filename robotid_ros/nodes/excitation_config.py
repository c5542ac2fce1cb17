# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters of the excitation node that are not settings of a design, a run or the watchdog."""

from dataclasses import dataclass

import numpy as np

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation import ExcitationDesign, FourierTrajectory
from robotid_ros.model import RobotModel
from robotid_ros.settings import Settings, setting

_RISKS = (
    'no_recorder',
    'no_effort',
    'no_gravity',
    'slow_joint_states',
    'unstamped',
    'unchecked_workspace',
    'no_acceleration_limit',
    'implausible_velocity',
    'poor_condition',
    'other_commanders',
    'silent_speed_scaling',
    'busy_computer',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationNodeConfig(Settings):
    """What the node is told besides the settings of the design, the run and the watchdog."""

    error = ExcitationError

    run: str = setting(
        'excitation',
        'What ~/design makes and ~/start runs; a validation is an excitation of another seed, poses are a tour with '
        'rests for a calibration, free_floating is for the target that a space robot holds',
        choices=('excitation', 'validation', 'friction_sweep', 'poses', 'free_floating'),
    )
    mission: str = setting('', 'Mission file of a free-floating robot; empty: the packaged example')
    trajectory: str = setting('', 'Excitation YAML to run instead of a design of its own')
    save_to: str = setting('', 'Where ~/design writes its excitation YAML; empty: nowhere')
    preview_speed: float = setting(
        1.0, 'How fast ~/preview shows the motion before it is run; 1 is its own speed', range=(0.01, 20.0)
    )
    urdf_file: str = setting('', 'URDF; empty: what is published on robot_description', read_only=True)
    base_link: str = setting('', 'Link at the start of the chain; empty: the root', read_only=True)
    tip_link: str = setting('', 'Link at the end of the chain; empty: the last one', read_only=True)
    start_delay: float = setting(0.5, 'From ~/start to the first motion', unit='s', range=(0.1, 60.0))
    latency: float = setting(0.1, 'What a message takes to the controller', unit='s', range=(0.0, 1.0))
    controller_timeout: float = setting(
        5.0, 'How long ~/start waits for the controller to listen', unit='s', range=(0.0, 60.0)
    )
    speed_scaling_topic: str = setting(
        '', 'Topic of the speed scaling to watch (std_msgs/Float64, 100 is full speed)', read_only=True
    )
    program_running_topic: str = setting(
        '',
        'Topic on which the driver says whether its robot takes commands (std_msgs/Bool): false in a protective stop, '
        'with locked brakes, or while the program is paused',
        read_only=True,
    )
    planning_scene: str = setting(
        'get_planning_scene',
        "Service of MoveIt's planning scene; where it is in the graph, the scene's objects are obstacles of designs "
        'and runs; empty: not asked',
    )
    controller_interface: str = setting(
        'topic',
        'How trajectories reach the controller: on the topic joint_trajectory, or by the action '
        'FollowJointTrajectory, with answers and feedback; the action needs control_msgs',
        choices=('topic', 'action'),
        read_only=True,
    )
    follow_joint_trajectory_action: str = setting(
        '',
        "Name of the controller's action; empty: follow_joint_trajectory beside the topic joint_trajectory",
        read_only=True,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfig(Settings):
    """What a start, and a design, are refused for."""

    error = ExcitationError

    start_anyway: tuple[str, ...] = setting(
        (), 'Reasons that do not refuse a start or a design; each refusal names its own', choices=_RISKS
    )
    # Below 50 Hz an arm moves by several degrees between two joint states, and accelerations are lost.
    least_joint_state_rate: float = setting(
        50.0, 'Lowest rate of joint states that an arm is started with', unit='Hz', range=(0.0, 1e5)
    )
    # Well excited trajectories have some tens; at a thousand a noise of 1 % is ten times the smallest parameter.
    largest_condition_number: float = setting(
        1000.0, 'Largest condition number of the scaled regressor that an arm is started with', range=(1.0, 1e12)
    )
    # The fastest wrists of industrial arms turn at about 15 rad/s; URDFs with 100 rad/s hold a placeholder.
    largest_velocity_limit: float = setting(
        20.0, 'Largest velocity limit that is believed', unit='rad/s or m/s', range=(0.01, 1000.0)
    )


def reordered(design: ExcitationDesign, model: RobotModel) -> FourierTrajectory:
    """Return the trajectory of a design in the joint order of a model; an ExcitationError if the joints are others."""
    if sorted(design.joint_names) != sorted(model.joint_names):
        raise ExcitationError(
            f'the trajectory moves {", ".join(design.joint_names)}; the robot has {", ".join(model.joint_names)}'
        )
    order = np.array([design.joint_names.index(name) for name in model.joint_names])
    trajectory = design.trajectory
    return FourierTrajectory(
        a=trajectory.a[order],
        b=trajectory.b[order],
        offset=trajectory.offset[order],
        base_frequency=trajectory.base_frequency,
    )
