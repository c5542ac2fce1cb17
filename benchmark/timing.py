# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Times that can be compared: warmed up, repeated, in turn, on one thread. The anchors are timed by this file too."""

import math
import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmark.row import spread_of


class Timing(NamedTuple):
    """Median seconds of a task, of the processor and on the clock, and the spread of the former."""

    processor: float
    wall: float
    spread: float = math.nan


def measure(tasks: Mapping[str, Callable[[], object]], runs: int) -> dict[str, Timing]:
    """Return the times of each task after one run that does not count.

    The tasks take turns, so that a busy machine treats all alike.
    """
    times: dict[str, list[Timing]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(runs):
        for name, task in tasks.items():
            processor, wall = time.process_time(), time.perf_counter()
            task()
            times[name].append(Timing(time.process_time() - processor, time.perf_counter() - wall))
    return {name: _median(pairs) for name, pairs in times.items()}


def _median(pairs: Sequence[Timing]) -> Timing:
    processor, wall = ([getattr(pair, name) for pair in pairs] for name in ('processor', 'wall'))
    return Timing(statistics.median(processor), statistics.median(wall), spread_of(processor))


def seconds(task: Callable[[], object], runs: int) -> Timing:
    """Return the times of one task."""
    return measure({'': task}, runs)['']


def processor_seconds() -> float:
    """Return processor time of this process and of those that it started and that have ended."""
    return sum(os.times()[:4])


def processor_seconds_of(pid: int) -> float:
    """Return processor time of another process that runs."""
    fields = Path(f'/proc/{pid}/stat').read_text(encoding='ascii').rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')
