# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The table of the manual's page on Gazebo: ``python -m benchmark.gazebo``.

Each arm is launched by ``gazebo.launch.py`` and led by the services alone: design, start, the same of a validation,
identify. Needs Gazebo with ROS 2; what is missing is named, with exit code 2. ``--simulated`` runs the same services
beside the simulated arm of this package, to see that the bench works: a few minutes, and no Gazebo.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robotid_ros.demo.processes import NodeGroup, die_with_parent, isolated_environment, parameter_arguments
from robotid_ros.dynamics import DATA_TOLERANCE, base_parameters
from robotid_ros.errors import RobotIdError
from robotid_ros.model import RobotModel
from robotid_ros.model.packaged import arm_description, arm_file

PACKAGES = (
    'ros_gz_sim',
    'ros_gz_bridge',
    'gz_ros2_control',
    'controller_manager',
    'joint_state_broadcaster',
    'joint_trajectory_controller',
    'robot_state_publisher',
    'robotid_ros',
)
NODES = ('excitation', 'recorder', 'identification')
PATIENCE = 3600.0
"""How long one step may take [s]: a world on two busy cores runs at a tenth of real time."""
ROBOTS = Path(__file__).resolve().parents[1] / 'test' / 'robots'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """An arm, and the motion that it is identified by."""

    name: str
    robot: str
    period: float
    periods: int


CASES = (
    Case(name='UR10e-class', robot='ur10e', period=20.0, periods=4),
    Case(name='Panda', robot=str(ROBOTS / 'panda.urdf'), period=6.0, periods=2),
    Case(name='xArm 7', robot=str(ROBOTS / 'xarm7.urdf'), period=4.0, periods=2),
)


def missing() -> list[str]:
    """Return what Gazebo's table needs and this environment has not."""
    prefixes = [Path(each) for each in os.environ.get('AMENT_PREFIX_PATH', '').split(':') if each]
    index = Path('share') / 'ament_index' / 'resource_index' / 'packages'
    lacks = [name for name in PACKAGES if not any((prefix / index / name).exists() for prefix in prefixes)]
    return lacks + ([] if shutil.which('ros2') else ['the command ros2 (ros2launch)'])


def led_by_services(client: Any, model: RobotModel, periods: int, say: Callable[[str], None]) -> str:
    """Run a trajectory and a validation, identify, and return the cells of a row behind the arm's name."""
    client.wait(lambda: bool(client.status_value('excitation', 'robot')), 'the robot description', PATIENCE)
    client.set_parameters('excitation', {'periods': periods + 1})  # the first one is the transient
    averaged, late = '', []
    for number, run in enumerate(('excitation', 'validation')):
        say(run)
        client.set_parameters('excitation', {'run': run})
        client.call('/excitation/design', PATIENCE)
        before = client.runs_ended()
        client.call('/excitation/start', PATIENCE)
        client.wait(lambda before=before: client.run_is_over(before), 'the end of the run', PATIENCE)
        client.require_healthy('excitation')
        client.wait(lambda: client.status_value('recorder', 'state') in ('finished', 'failed'), 'the record', PATIENCE)
        client.require_healthy('recorder')
        known = ('recordings', 'validation_recordings')[number]
        client.wait(lambda known=known: client.status_value('identification', known) == '1', 'the average', PATIENCE)
        averaged = averaged or str(client.status_value('recorder', 'periods_averaged'))
        count = float(client.status_value('recorder', 'late_stamps') or 0.0)
        late.append(100.0 * count / float(client.status_value('recorder', 'messages') or 1.0))
    say('identify')
    return row_of(yaml.safe_load(client.call('/identification/identify', PATIENCE)), model, averaged, late)


def row_of(result: dict[str, Any], model: RobotModel, averaged: str, late: list[float]) -> str:
    """Return the cells of a row: periods, late stamps, errors, base parameters off the description's, verdict."""
    true = base_parameters(model, tolerance=DATA_TOLERANCE)
    described = true.map @ model.inertial.ravel()
    found = np.array([entry['value'] for entry in result['base_parameters']])
    off = 'other ones' if len(found) != len(described) else (
        f'{100.0 * np.linalg.norm(found - described) / np.linalg.norm(described):.3f} %'
    )  # fmt: skip
    metrics = result['metrics']
    errors = [metrics[name]['relative_error_total'] for name in ('training', 'validation') if name in metrics]
    cells = [
        averaged,
        ', '.join(f'{each:.0f} %' for each in late),
        ', '.join(f'{each:.2f} %' for each in errors),
        off,
        'usable' if result['usable'] else f'not usable: {result["reason"]}',
    ]
    return ' | '.join(cells)


@contextmanager
def gazebo(case: Case, folder: Path, environment: dict[str, str]) -> Iterator[Callable[[], None]]:
    """Launch an arm in Gazebo; yields what raises a RobotIdError if the launch has ended."""
    words = {'headless': 'true', 'robot': case.robot, 'period': case.period, 'output_folder': folder / 'recordings'}
    command = ['ros2', 'launch', 'robotid_ros', 'gazebo.launch.py', *(f'{k}:={v}' for k, v in words.items())]
    with open(folder / 'launch.log', 'w', encoding='utf-8') as log:
        process = subprocess.Popen(
            command, env=environment, stdout=log, stderr=log, start_new_session=True, preexec_fn=die_with_parent
        )

    def watch() -> None:
        if process.poll() is not None:
            raise RobotIdError(f'the launch ended with exit code {process.returncode}; see {folder / "launch.log"}')

    try:
        yield watch
    finally:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=60.0)
        with suppress(ProcessLookupError):  # Gazebo's server may outlive the launch
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def simulated(case: Case, folder: Path, environment: dict[str, str]) -> Iterator[Callable[[], None]]:
    """Start the simulated arm and the nodes; yields what raises a RobotIdError if one has ended."""
    settings: dict[str, dict[str, object]] = {
        'simulated_arm': {'robot': case.robot, 'publish_clock': True},
        'recorder': {'output_folder': str(folder / 'recordings'), 'use_sim_time': True},
        'excitation': {
            'period': case.period,
            'starts': 1,
            'iterations': 40,
            'joint_state_timeout': 20.0,
            'rotor_inertia': False,  # as in Gazebo, so that the base parameters are those of the links
            'use_sim_time': True,
        },
        'identification': {'rotor_inertia': False, 'use_sim_time': True},
    }
    configuration = ['--params-file', str(arm_file('ur10e').with_suffix('.yaml'))]
    with NodeGroup(environment, folder) as group:
        for name, values in settings.items():
            group.start(name, [*parameter_arguments(values), *configuration])
        yield group.check


def main(words: list[str] | None = None) -> int:
    """Print the table; exit code 2 if something is missing, 1 if a row failed."""
    parser = argparse.ArgumentParser(prog='python -m benchmark.gazebo', description=__doc__.split('\n')[0])
    parser.add_argument('--simulated', action='store_true', help='the simulated arm instead, a short motion')
    parser.add_argument('--only', default='', help='arms with this in their names')
    parser.add_argument('--robot', metavar='URDF', help='this arm instead, with 2 periods of 6 s')
    options = parser.parse_args(words)
    if not options.simulated and missing():
        print(
            f'not here: {", ".join(missing())}. Gazebo: sudo apt install ros-$ROS_DISTRO-ros-gz '
            'ros-$ROS_DISTRO-gz-ros2-control ros-$ROS_DISTRO-ros2-controllers ros-$ROS_DISTRO-robot-state-publisher; '
            'robotid_ros by pip: export AMENT_PREFIX_PATH=$VIRTUAL_ENV:$AMENT_PREFIX_PATH'
        )
        return 2
    try:
        from robotid_ros.nodes.loop_client import LoopClient
    except ImportError as cause:
        print(f'not here: rclpy ({cause}): source ROS 2, or pip install robotid_ros[ros]')
        return 2
    cases = [case for case in CASES if options.only.lower() in case.name.lower()]
    if options.robot:
        cases = [Case(name=Path(options.robot).stem, robot=options.robot, period=6.0, periods=2)]
    if options.simulated:
        cases = [Case(name='UR10e, simulated', robot='ur10e', period=4.0, periods=1)]
    print('| arm | periods averaged | late stamps | unexplained, in validation | base parameters off by | verdict |')
    print('|---|---|---|---|---|---|', flush=True)
    failed = 0
    for case in cases:
        folder, environment = Path(tempfile.mkdtemp(prefix='gazebo-')), isolated_environment()
        model = RobotModel.from_urdf(arm_description(case.robot))
        try:
            with (simulated if options.simulated else gazebo)(case, folder, environment) as watch:
                client = LoopClient(watch, int(environment['ROS_DOMAIN_ID']), NODES)
                try:
                    cells = led_by_services(
                        client, model, case.periods, lambda what: print(f'  {what}', file=sys.stderr, flush=True)
                    )
                finally:
                    client.close()
        except RobotIdError as cause:
            failed += 1
            cells = f'failed: {" ".join(str(cause).split())}; logs in {folder} | | | |'
        print(f'| {case.name} | {cells} |', flush=True)
    return int(failed > 0)


if __name__ == '__main__':
    for number in (signal.SIGINT, signal.SIGTERM):  # either way what was started is ended
        signal.signal(number, lambda *_: sys.exit(1))
    sys.exit(main())
