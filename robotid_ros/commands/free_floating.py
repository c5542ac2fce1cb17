"""``robotid free-floating``: identify what a space robot has captured."""

import argparse

from robotid_ros.commands.command import Command
from robotid_ros.commands.progress import progress_bar
from robotid_ros.free_floating import command

__all__ = ['COMMAND']


def run(options: argparse.Namespace) -> int:
    """Run it with a progress bar; return the exit code."""
    with progress_bar('free-floating') as progress:
        return command.run(options, progress)


COMMAND = Command(
    name='free-floating',
    summary='identify the target a space robot has captured',
    description='Design the motion of a free-floating arm, simulate it, and identify mass, centre of mass and inertia '
    'of a captured target from the conservation of momentum.',
    add_arguments=command.add_arguments,
    run=run,
)
