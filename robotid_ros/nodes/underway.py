# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Something long that goes on: how far it is, what it does now, how long it will take, and its end on request."""

import threading
import time
from collections.abc import Mapping

from robotid_ros.errors import RobotIdError


class Underway:
    """A progress callback whose state stands on a status, and which ends its work where :meth:`cancel` was called.

    ``error`` is what the work then raises, with the name of the work. The work calls it from any thread.
    """

    def __init__(self, work: str, error: type[RobotIdError]) -> None:
        self._work, self._error = work, error
        self._begun = time.monotonic()
        self._share, self._step = 0.0, work
        self._cancelled = threading.Event()

    def __call__(self, share: float, step: str) -> None:
        """Take in how far the work is and what it does; raise where it was cancelled."""
        self._share, self._step = share, step
        if self._cancelled.is_set():
            raise self._error(f'the {self._work} was given up on request')

    def cancel(self) -> None:
        """End the work at its next step."""
        self._cancelled.set()

    def values(self) -> Mapping[str, object]:
        """Return the values of a status."""
        return progress_values(self._share, self._step, time.monotonic() - self._begun)


def progress_values(share: float, step: str, elapsed: float) -> Mapping[str, object]:
    """Return share (0 to 1), step and remaining time [s] of what goes on, the last as if it went on as it did."""
    share = min(max(share, 0.0), 1.0)
    remaining = {'remaining': elapsed * (1.0 - share) / share} if share > 0.0 else {}
    return {'share': share, 'step': step, **remaining}
