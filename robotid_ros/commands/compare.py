# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid compare``: results of one arm over each other.

Say which parameters moved beyond their deviations, and write a page with the changes by link, the friction curves over
each other and the drift over all results.
"""

import argparse
from pathlib import Path

from robotid_ros.commands.terminal import page_written, verdict_text
from robotid_ros.files import require_folder
from robotid_ros.identification import IdentificationResult
from robotid_ros.report.compare import comparison_report


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        'results', nargs='+', type=Path, metavar='RESULT', help='result.yaml, or the folder it is in; the oldest first'
    )
    parser.add_argument('--out', type=Path, default=Path('compare.html'), metavar='HTML', help='default: compare.html')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    require_folder(options.out)
    report = comparison_report([(_name(path), IdentificationResult.load(path)) for path in options.results])
    print(f'{verdict_text(report.summary, report)}\n\n{page_written(report, options.out)}')
    return 0


def _name(path: Path) -> str:
    """Return what tells one result from another: its folder where the file has the usual name."""
    if path.is_dir():
        return path.resolve().name
    return path.resolve().parent.name if path.name in ('result.yaml', 'card.yaml') else path.stem
