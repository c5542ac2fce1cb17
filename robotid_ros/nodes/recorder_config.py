# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Parameters of the recorder, and how it processes what it records."""

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from robotid_ros.data import ProcessingSettings
from robotid_ros.data.settings import AveragingSettings
from robotid_ros.errors import DataError
from robotid_ros.model.robot_config import RobotConfig
from robotid_ros.settings import setting, settings_of

_LEAST_SPACE = 1e9
"""Room for a recording [bytes]: an hour of seven joints at 1 kHz takes about this much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderConfig(AveragingSettings):
    """Everything about the recorder that can be set."""

    effort: str = setting(
        '',
        "what JointState.effort holds; needed where no robot configuration says it ('current' needs one)",
        choices=('', 'torque', 'current', 'unknown'),
        read_only=True,
    )
    output_folder: str = setting(
        '~/.ros/robotid', 'each recording gets a folder of its own in here, below that of the namespace'
    )
    follow_reference: bool = setting(True, 'start recording by itself when a reference is published')
    reliability: str = setting(
        'auto',
        'of the subscription to joint states; auto: reliable unless a publisher is not',
        choices=('auto', 'reliable', 'best_effort'),
    )
    depth: int = setting(5000, 'messages the middleware holds while this process cannot run', range=(1, 1_000_000))
    wrench_topic: str = setting(
        '', 'geometry_msgs/WrenchStamped of a force-torque sensor to record beside, for robotid wrench; empty: none'
    )
    start_timeout: float = setting(5.0, 'how long start waits for the first joint state', unit='s', range=(0.1, 300.0))
    stale_after: float = setting(1.0, 'silence after which the status is an error', unit='s', range=(0.1, 300.0))
    harmonics: int = setting(
        0, 'of the Fourier series of averaged positions; 0: all that exceed the noise', range=(0, 1000)
    )
    averaged_points: int = setting(5000, 'points of the published average, at most', range=(16, 100_000))


def processing_settings(config: RecorderConfig, robot: RobotConfig | None) -> ProcessingSettings:
    """Return how recordings are processed.

    Raises
    ------
    RobotIdError
        If it is not stated what the effort of each joint is.
    """
    if robot is None and config.effort not in ('torque', 'unknown'):
        raise DataError(
            'what JointState.effort holds is not said, and it is never guessed: give a robot configuration with '
            "'effort' per joint (torque [N m], or current [A] with torque constants), or set effort:=torque, or "
            'effort:=unknown to have it compared with the masses described'
        )
    averaging: dict[str, Any] = {item.name: getattr(config, item.name) for item in settings_of(AveragingSettings)}
    averaging['harmonics'] = config.harmonics or None
    if robot is None:
        return ProcessingSettings(**averaging)
    robot = stated(config, robot)
    robot.meaning(robot.joints)  # refuses a joint without one
    return ProcessingSettings.for_robot(robot, **averaging)


def stated(config: RecorderConfig, robot: RobotConfig) -> RobotConfig:
    """Return a robot configuration in which the parameter says what the effort is where nothing else does."""
    otherwise: dict[str, Any] = dict.fromkeys(robot.joints, config.effort) if config.effort else {}
    return replace(robot, effort=otherwise | dict(robot.effort))


def storage_refusal(folder: Path) -> str:
    """Return why nothing can be recorded in a folder, which need not exist yet; empty where it can."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    if not there.is_dir():
        return f'{there} is not a folder'
    if not os.access(there, os.W_OK):
        return f'{there} cannot be written to'
    free = shutil.disk_usage(there).free
    if free < _LEAST_SPACE:
        return f'{there} has {free / 1e6:.0f} MB left, expected at least {_LEAST_SPACE / 1e6:.0f} MB'
    return ''
