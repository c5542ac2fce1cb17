"""``robotid free-floating``: identify what a space robot has captured."""

from robotid_ros.commands.command import Command
from robotid_ros.free_floating.command import add_arguments, run

__all__ = ['COMMAND']

COMMAND = Command(
    name='free-floating',
    summary='identify the target a space robot has captured',
    description='Design the motion of a free-floating arm, simulate it, and identify mass, centre of mass and inertia '
    'of a captured target from the conservation of momentum.',
    add_arguments=add_arguments,
    run=run,
)
