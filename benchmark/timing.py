# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Times that can be compared: warmed up, repeated, in turn, on one thread."""

import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of the runs of one task.

    Attributes
    ----------
    processor : float
        Median time of the processor, which other processes hardly change.
    wall : float
        Median time on the clock.
    runs : int
    """

    processor: float
    wall: float
    runs: int


def measure(tasks: Mapping[str, Callable[[], object]], runs: int) -> dict[str, Timing]:
    """Return the times of each task after one run that does not count.

    The tasks take turns, so that a busy machine treats all alike.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in tasks}
    for task in tasks.values():
        task()
    for _ in range(runs):
        for name, task in tasks.items():
            processor, wall = time.process_time(), time.perf_counter()
            task()
            times[name].append((time.process_time() - processor, time.perf_counter() - wall))
    return {
        name: Timing(
            processor=statistics.median(p for p, _ in pairs),
            wall=statistics.median(w for _, w in pairs),
            runs=runs,
        )
        for name, pairs in times.items()
    }


def seconds(task: Callable[[], object], runs: int) -> Timing:
    """Return the times of one task."""
    return measure({'': task}, runs)['']


def own_seconds() -> float:
    """Return processor time of this process."""
    return _used(resource.RUSAGE_SELF)


def children_seconds() -> float:
    """Return processor time of the processes that this one started and that have ended."""
    return _used(resource.RUSAGE_CHILDREN)


def _used(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
