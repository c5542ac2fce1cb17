# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The sub-commands of ``robotid``: a table, and one file each, imported when the command is called.

Of a command's file, the first paragraph of its docstring is for readers, the second one is that of its help.
``add_arguments(parser)`` adds its options, ``run(options)`` does the work and returns the exit code; it raises a
:class:`RobotIdError` for bad input.
"""

from importlib import import_module

TYPE_CHECKING = False

if TYPE_CHECKING:  # its imports would take a third of `robotid --help`
    from typing import Any

__all__ = ['COMMANDS', 'load_command']

COMMANDS = {
    'demo': 'run the whole loop over real ROS 2 with a simulated arm',
    'design': 'design an optimised excitation',
    'process': 'turn a recording into a dataset',
    'identify': 'identify dynamics and friction from recordings',
    'validate': 'judge an identified model by recordings it has not seen',
    'payload': 'identify a payload or gripper, or the drive gains',
    'wrench': 'find what a force-torque sensor carries, its bias and how it is turned',
    'calibrate': 'identify the geometry of an arm from measured points',
    'free-floating': 'identify the target a space robot has captured',
    'codegen': 'generate C, C++ or Python code of the inverse dynamics',
    'export': 'write an identified arm for a simulator or a controller',
    'replay': 'see whether the simulated arm moves as the recorded one',
    'report': 'write the report of an identification again',
    'contact': 'find the external torques that are a contact',
    'card': 'write one page and one YAML of an identified arm, to share and to compare',
    'compare': 'compare results of one arm, months apart or before and after a repair',
    'fleet': 'identify many recordings of many arms, and follow the arms over time',
    'watch': 'watch the nodes on the terminal, or on a page, while a run goes on',
}
"""A line for each command, in the order a user meets them; its module is named like it."""


def load_command(name: str) -> 'Any':
    """Return the module of a command of the table; this imports all that it needs."""
    return import_module(f'robotid_ros.commands.{name.replace("-", "_")}')
