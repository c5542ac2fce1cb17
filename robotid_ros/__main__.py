# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The ``robotid`` command as a process: a Ctrl-C, whenever it comes, gives one line and exit code 130.

Little is imported here before it is ready for that: numpy and scipy take most of a second.
"""

import os
import signal
import sys

from robotid_ros.errors import INTERRUPTED


def main() -> int:
    """Run the command that the process was given and return its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as under nohup
        from robotid_ros.cli import main as run

        return run()
    # Nothing is open or half written while modules are imported, and many of them lose a KeyboardInterrupt.
    signal.signal(signal.SIGINT, _leave)
    from robotid_ros.cli import main as run

    try:
        return run(begin=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    except KeyboardInterrupt:  # between the end of the command and the next line
        _leave()
        return INTERRUPTED
    finally:
        signal.signal(signal.SIGINT, _leave)


def _leave(*_: object) -> None:
    os.write(2, b'robotid: interrupted\n')
    os._exit(INTERRUPTED)


if __name__ == '__main__':
    sys.exit(main())
