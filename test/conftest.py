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
import sys
from collections import defaultdict
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).parent))

# Before any test imports rclpy: nothing that a test starts may be heard on the network.
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'

# The same examples every time, whatever the machine and its load: a change is judged by what it changes.
# HYPOTHESIS_PROFILE=search looks for new ones.
_UNHURRIED = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile('repeatable', deadline=None, suppress_health_check=_UNHURRIED, derandomize=True)
hypothesis.settings.register_profile('search', deadline=None, suppress_health_check=_UNHURRIED)
hypothesis.settings.load_profile(os.environ.get('HYPOTHESIS_PROFILE', 'repeatable'))


# Where a test runs that is skipped for want of something, by a word of the reason.
_ELSEWHERE = {
    'ROS 2': '.github/workflows/ros.yml',
    'tf2_msgs': '.github/workflows/ros.yml',
    'control_msgs': '.github/workflows/ros.yml',
    'ros2_control': '.github/workflows/ros.yml',
    'extra': 'make test',
    'recording': 'a checkout beside the recordings',
}


@pytest.fixture(scope='session', autouse=True)
def _logs_of_nodes(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the log files of ROS out of the home directory, which need not be writable."""
    os.environ['ROS_LOG_DIR'] = str(tmp_path_factory.mktemp('ros_log'))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line for each group of skipped tests: which, why, and where they run."""
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for report in terminalreporter.stats.get('skipped', []):
        where, _, reason = report.longrepr
        groups[reason.removeprefix('Skipped: ')].add(Path(where).name)
    for reason, files in sorted(groups.items()):
        place = next((place for word, place in _ELSEWHERE.items() if word in reason), 'wherever that is installed')
        terminalreporter.write_line(f'SKIPPED {", ".join(sorted(files))}: {reason} (runs in: {place})')
