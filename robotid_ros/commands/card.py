# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid card``: one page and one YAML of an identified arm.

Write a card of an identified arm: what it was, what it was identified from, its errors on torque that was held out and
its parameters, without paths of this machine. A card is taken wherever a result is.
"""

import argparse

from robotid_ros.commands.terminal import say_written
from robotid_ros.export.card import STATED, Card
from robotid_ros.files import write_files
from robotid_ros.identification import IdentificationResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('result', metavar='RESULT', help='result.yaml of "robotid identify", or its folder')
    parser.add_argument('--out', default='card', metavar='DIR', help='default: card')
    for name, text in STATED.items():
        parser.add_argument(f'--{name}', default='', metavar='TEXT', help=text)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    result = IdentificationResult.load(options.result)
    card = Card.of(result, {name: getattr(options, name) for name in STATED})
    say_written(*write_files(options.out, {'card.yaml': card.to_yaml(), 'card.md': card.to_markdown()}))
    if card.judged == 'training':
        print('note: no torque was held out; identify with --validate or --train-fraction for figures that compare')
    return 0
