# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What is still taken as right of an arm that follows its reference."""

from dataclasses import dataclass

from robotid_ros.errors import ExcitationError
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchdogConfig(Settings):
    """What is still taken as right; each field's ``metadata`` has its description, unit and range."""

    error = ExcitationError

    # Less than 0.1 s cannot be told from a tick that came late.
    joint_state_timeout: float = setting(
        0.5, 'Longest time without a joint state before the arm is stopped', unit='s', range=(0.1, 60.0)
    )
    tracking_tolerance: float = setting(
        0.2,
        'Largest distance between a joint and its reference before the arm is stopped',
        unit='rad or m',
        range=(1e-4, 10.0),
    )
    tracking_delay: float = setting(
        0.0, 'Known delay of the arm behind its reference, taken out of the tracking error', unit='s', range=(0.0, 1.0)
    )
    path_distance: float = setting(
        0.03,
        'Largest distance between a joint and its path, apart from a delay, at which the arm counts as being on it: '
        'only then it is sent the next piece, or stopped along the path',
        unit='rad or m',
        range=(1e-4, 10.0),
    )
    delay_tolerance: float = setting(
        0.02,
        'Largest growth of the delay behind the reference before the arm is stopped: 0.02 s are reached after 20 s '
        'at 99.9 % of the speed',
        unit='s',
        range=(1e-3, 1.0),
    )
    push_tolerance: float = setting(
        1.0,
        'Factor on how far efforts may be from those of the model, and of the period before, until the arm counts as '
        'pressing on something and is stopped; 0: efforts are not watched',
        range=(0.0, 100.0),
    )
    # A window begins half a second in the past: with clocks apart by more, the arm would be led off its path.
    clock_tolerance: float = setting(
        0.25,
        "Largest difference between the joint states' clock and the node's at which a run starts",
        unit='s',
        range=(0.01, 0.4),
    )
    stamp_error: float = setting(
        0.0,
        'How wrong single stamps of joint states may be, beyond 10 ms: a position jumps where no joint can have moved '
        'so far in the time between two stamps and this',
        unit='s',
        range=(0.0, 1.0),
    )
