# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid watch``: a live view of the three nodes on the terminal, or on a page.

Show phase, rate, gaps and faults of a run, and how well each joint is predicted, until Ctrl-C.
"""

import argparse
import shutil
import sys
from importlib.util import find_spec

from robotid_ros.errors import DataError, MissingDependencyError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('--namespace', default='', metavar='NAME', help='of the nodes')
    parser.add_argument(
        '--interval', type=float, default=0.5, metavar='S', help='between two drawings (default: 0.5 s)'
    )

    parser.add_argument('--web', action='store_true', help='serve a page on this machine, with a stop button')
    parser.add_argument('--port', type=int, default=8765, help='of the page; 0 takes any free one (default: 8765)')
    parser.add_argument(
        '--address',
        default='127.0.0.1',
        help='to serve the page on (default: 127.0.0.1, this machine alone); with any other, whoever has the '
        'printed one can stop the arm',
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not 0.05 <= options.interval <= 60.0:
        raise DataError(f'--interval: expected 0.05 to 60 s, got {options.interval:g}')
    if not 0 <= options.port <= 65535:
        raise DataError(f'--port: expected 0 to 65535, got {options.port}')
    if find_spec('rclpy') is None:
        raise MissingDependencyError.of('ros-rclpy', 'ros', 'watch the nodes')
    from robotid_ros.nodes.watcher import watch

    columns = shutil.get_terminal_size().columns
    return watch(
        interval=options.interval,
        width=columns,
        terminal=sys.stdout.isatty(),
        namespace=options.namespace,
        web=(options.address, options.port) if options.web else None,
    )
