# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Launch files run by the real launch system, with this working copy in place of an installed package."""

import os
import sys
from pathlib import Path

from ros_helpers import ros_environment

ROOT = Path(__file__).parents[1]
LAUNCH = """
import ctypes, signal, sys
if sys.platform == 'linux':
    ctypes.CDLL(None).prctl(1, signal.SIGINT)  # if the test is killed: on SIGTERM, launch would leave its nodes behind
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in a script's background
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = [word.split(':=', 1) for word in sys.argv[2:]]
service = LaunchService()
source = PythonLaunchDescriptionSource(sys.argv[1])
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)]))
sys.exit(service.run())
"""


def installed_environment(folder: Path) -> dict[str, str]:
    """Return an environment in which ROS finds this working copy, and a domain for it alone."""
    prefix = folder / 'prefix'
    index = prefix / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'robotid_ros').touch()
    (prefix / 'share' / 'robotid_ros').mkdir()
    (prefix / 'lib').mkdir()
    for name in ('launch', 'config'):
        (prefix / 'share' / 'robotid_ros' / name).symlink_to(ROOT / name)
    (prefix / 'lib' / 'robotid_ros').symlink_to(ROOT / 'resource' / 'executables')
    others = os.environ.get('AMENT_PREFIX_PATH', '')
    return {
        **ros_environment(),
        'AMENT_PREFIX_PATH': os.pathsep.join(filter(None, (str(prefix), others))),
        'PATH': os.pathsep.join((str(Path(sys.executable).parent), os.environ['PATH'])),
        'PYTHONPATH': os.pathsep.join(filter(None, (str(ROOT), os.environ.get('PYTHONPATH', '')))),
        'ROS_LOG_DIR': str(folder / 'log'),
    }
