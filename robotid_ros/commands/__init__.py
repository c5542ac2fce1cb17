# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The sub-commands of ``robotid``, one file each, imported when they are asked for."""

from importlib import import_module

from robotid_ros.commands.command import Command

__all__ = ['NAMES', 'Command', 'load_command']

NAMES = (
    'demo',
    'design',
    'process',
    'identify',
    'validate',
    'payload',
    'calibrate',
    'free-floating',
    'codegen',
    'export',
    'replay',
    'report',
    'compare',
    'fleet',
    'watch',
)
"""In the order a user meets them."""


def load_command(name: str) -> Command:
    """Return a command; its module is named like it."""
    command: Command = import_module(f'robotid_ros.commands.{name.replace("-", "_")}').COMMAND
    return command
