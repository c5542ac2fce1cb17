# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A progress bar on the terminal for whatever takes longer than two seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from robotid_ros.progress import Progress

PATIENCE = 2.0  # seconds before a bar appears
INTERVAL = 0.1  # seconds between two drawings
WIDTH = 28


@contextmanager
def progress_bar(title: str, *, plain: bool = False) -> Iterator[Progress]:
    """Yield a callback that draws a bar on a terminal, and a line per tenth elsewhere or where it is to be plain.

    It writes to standard error; the title stands before the bar.
    """
    out = sys.stderr
    terminal = out.isatty() and not plain
    begun = time.monotonic()
    drawn = 0.0
    tenth = -1
    shown = False

    def report(fraction: float, message: str) -> None:
        nonlocal drawn, tenth, shown
        now = time.monotonic()
        fraction = min(max(fraction, 0.0), 1.0)
        if now - begun < PATIENCE:
            return
        if terminal and now - drawn >= INTERVAL:
            drawn, shown = now, True
            filled = round(WIDTH * fraction)
            bar = '█' * filled + '·' * (WIDTH - filled)
            out.write(f'\r\033[K{title} {bar} {100 * fraction:3.0f} % {message}'[:200])
            out.flush()
        elif not terminal and int(10 * fraction) > tenth:
            tenth = int(10 * fraction)
            out.write(f'{title}: {100 * fraction:.0f} % {message}\n')
            out.flush()

    try:
        yield report
    finally:
        if shown:
            out.write('\r\033[K')
            out.flush()
