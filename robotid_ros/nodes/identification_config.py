# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters of the identification node that are not settings of the identification."""

from dataclasses import dataclass

from robotid_ros.errors import IdentificationError
from robotid_ros.nodes.description import DescriptionConfig
from robotid_ros.settings import setting


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentificationNodeConfig(DescriptionConfig):
    """What the node is told besides the settings of the identification."""

    error = IdentificationError

    recordings: tuple[str, ...] = setting(
        (),
        'Folders whose recordings, at any depth, are taken at the start and at ~/identify, so that a restart loses '
        "none; a launch file gives that of the recorder unless it is told others, or 'none'",
    )
    joints: tuple[str, ...] = setting((), 'Joints to identify; empty: all of the arm', read_only=True)
    monitor_rate: float = setting(
        1000.0, 'How often at most torques are published, one message for a joint state', unit='Hz', range=(0.0, 1000.0)
    )
    monitor_cutoff: float = setting(
        10.0, 'Low-pass of the motion that torques are predicted from', unit='Hz', range=(0.1, 500.0)
    )
    stop_when: float = setting(
        0.0,
        'Deviation at which a run has told enough and is stopped: of the parameters in stop_parameters, or of the '
        'torque by any one parameter; 0: never',
        unit='%',
        range=(0.0, 100.0),
    )
    stop_parameters: tuple[str, ...] = setting((), 'Base parameters whose relative deviation stop_when means')
    output_folder: str = setting(
        '',
        'Where ~/identify writes result.yaml, calibrated.urdf, the data and report.html, each time to a folder of its '
        'own; empty: nowhere',
    )
    false_alarms: float = setting(1.0, 'Contacts reported without one, per hour of motion', range=(1e-6, 3600.0))
    contact_levels: str = setting(
        '',
        'contact.yaml of robotid contact: its levels and filter in place of the residual; empty: none',
        read_only=True,
    )
    arm_result: str = setting(
        '', 'result.yaml of the arm without a payload, for ~/payload; empty: what ~/identify found last'
    )
    wrench_result: str = setting(
        '',
        'wrench.yaml of robotid wrench: what comes on wrench goes out on ~/wrench without bias and weight; empty: not',
        read_only=True,
    )
    payload_torque_deviation: float = setting(
        5.0,
        'How far the torque constants may be off, in one standard deviation: mass_std_with_torque_constants has it; '
        'motor currents 5, joint torque sensors 1',
        unit='%',
        range=(0.0, 100.0),
    )
    payload_service: str = setting('', "The driver's service that ~/payload_to_driver calls; empty: none")
    payload_service_type: str = setting(
        '', 'Its type: ur_msgs/srv/SetPayload, franka_msgs/srv/SetLoad or xarm_msgs/srv/SetTcpLoad, for example'
    )
    payload_frame: str = setting('', 'Name of the flange in requests that have a frame; their values are in the tip')
    payload_length_unit: float = setting(
        1.0, 'Unit of a centre that is a list of numbers; 0.001 for xArm', unit='m', range=(1e-6, 1e3)
    )
