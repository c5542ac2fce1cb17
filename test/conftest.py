# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What every test relies on: helper modules by their plain names, nothing left to chance, nothing left behind."""

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Before any test imports rclpy: nothing that a test starts may be heard on the network.
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'

# A shell starts what runs in its background without SIGINT, and so would be all that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples every time, whatever the machine and its load: a change is judged by what it changes.
# HYPOTHESIS_PROFILE=search looks for new ones.
_UNHURRIED = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile('repeatable', deadline=None, suppress_health_check=_UNHURRIED, derandomize=True)
hypothesis.settings.register_profile('search', deadline=None, suppress_health_check=_UNHURRIED)
hypothesis.settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'repeatable'))


# Groups of tests that are skipped for want of something: a word of the reason, what it is, where they run.
_WORKFLOW = '.github/workflows/ros.yml'
_ELSEWHERE = {
    'ament': ('the linters of ament, which come with ROS 2', _WORKFLOW),
    'launch': ('launch and launch_ros of ROS 2', _WORKFLOW),
    'control_msgs': ('control_msgs, which is not on PyPI', _WORKFLOW),
    'tf2_msgs': ('tf2_msgs and nav_msgs, which are not on PyPI', _WORKFLOW),
    'nav_msgs': ('tf2_msgs and nav_msgs, which are not on PyPI', _WORKFLOW),
    'ros2_control': ('ros2_control', _WORKFLOW),
    'ROS 2': ('Gazebo with ROS 2', _WORKFLOW),
    'extra': ('an extra of this package', 'make test'),
    'recording': ('recordings of real arms', 'a checkout beside the recordings'),
}


@pytest.fixture(scope='session', autouse=True)
def _logs_of_nodes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the log files of ROS out of the home directory, which need not be writable."""
    os.environ['ROS_LOG_DIR'] = str(tmp_path_factory.mktemp('ros_log'))


@pytest.fixture
def set_up_as_described() -> Iterator[None]:
    """Let ``identify`` not search for set-ups."""
    from identification_helpers import as_described

    with as_described():
        yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line for each group of skipped tests: which, why, and where they run."""
    groups: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for report in terminalreporter.stats.get('skipped', []):
        where, _, reason = report.longrepr
        reason = reason.removeprefix('Skipped: ')
        group = next((group for word, group in _ELSEWHERE.items() if word in reason), None)
        groups[group or (reason.removeprefix('needs '), 'wherever that is installed')].add(Path(where).name)
    for (what, place), files in sorted(groups.items()):
        terminalreporter.write_line(f'SKIPPED {", ".join(sorted(files))}: needs {what} (runs in: {place})')
