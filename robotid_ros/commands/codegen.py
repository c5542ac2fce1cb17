# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid codegen``: source code of an arm's inverse dynamics.

Write the smallest inverse dynamics, regressor, gravity and friction of an arm as C99, C++ or Python source, with the
parameters of its description or of an identification.
"""

import argparse

from robotid_ros.commands.options import add_robot_arguments, load_config, load_robot
from robotid_ros.commands.terminal import progress_bar, say_written
from robotid_ros.export.identified import described_model, identified_model, require_usable
from robotid_ros.export.source_code import LANGUAGES, write_code
from robotid_ros.files import output_folder
from robotid_ros.identification import IdentificationResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot_arguments(parser)
    parser.add_argument('--result', metavar='YAML', help='result.yaml: write the identified parameters into the code')
    parser.add_argument('--language', choices=LANGUAGES, default='c', help='default: c (C99); cpp: one header (C++11)')
    parser.add_argument(
        '--prefix', default='', metavar='NAME', help='put before every C name visible outside; the namespace in C++'
    )
    parser.add_argument(
        '--snap',
        type=float,
        default=1e-12,
        metavar='X',
        help='take sines of angles and relative lengths below this as zero: 1e-4 makes shorter code for descriptions '
        'whose right angles are rounded (default: 1e-12)',
    )
    parser.add_argument('--force', action='store_true', help='write a result that is marked as not usable all the same')
    parser.add_argument('--out', default='.', metavar='DIR', help='default: this folder')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    model = load_robot(options, load_config(options))
    result = None if options.result is None else IdentificationResult.load(options.result)
    if result is not None:
        require_usable(result, force=options.force)
    folder = output_folder(options.out)
    with progress_bar('codegen') as progress:
        if result is None:
            minimal, note = described_model(model, snap=options.snap, progress=progress), 'of the description'
        else:
            minimal = identified_model(model, result, snap=options.snap, progress=progress)
            note = f'identified, friction: {result.friction.name}'
    written = write_code(minimal, folder, options.language, prefix=options.prefix)
    multiplications, additions = minimal.operations
    print(f'inverse dynamics in {multiplications} multiplications and {additions} additions; parameters {note}')
    say_written(*written)
    return 0
