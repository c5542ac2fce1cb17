# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The example, design to identification: ``python -m robotid_ros.free_floating.example --out DIR``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from robotid_ros.errors import RobotIdError
from robotid_ros.free_floating.command import add_arguments, run

__all__ = ['main']


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the three commands one after another on the packaged mission; return the exit code."""
    parser = argparse.ArgumentParser(
        prog='python -m robotid_ros.free_floating.example',
        description='Design, simulate and identify: an arm on a 300 kg satellite with a 40 kg target.',
    )
    parser.add_argument('--out', required=True, type=Path, metavar='DIR', help='folder for files and pictures')
    folder: Path = parser.parse_args(arguments).out
    folder.mkdir(parents=True, exist_ok=True)
    commands = argparse.ArgumentParser()
    add_arguments(commands)
    excitation, measurement = str(folder / 'excitation.yaml'), str(folder / 'measurement.csv')
    for words in (
        ['design', '--out', excitation, '--plots', str(folder)],
        ['simulate', excitation, '--out', measurement],
        ['identify', measurement, '--out', str(folder)],
    ):
        print(f'--- robotid free-floating {" ".join(words)}', flush=True)
        try:
            code = run(commands.parse_args(words))
        except RobotIdError as problem:
            print(f'free-floating example: {problem}', file=sys.stderr)
            return 2
        if code != 0:
            return code
    return 0


if __name__ == '__main__':
    sys.exit(main())
