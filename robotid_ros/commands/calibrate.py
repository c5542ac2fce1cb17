"""``robotid calibrate``: the geometry of an arm from measured points."""

from robotid_ros.calibration.command import add_arguments, run
from robotid_ros.commands.command import Command

__all__ = ['COMMAND']

COMMAND = Command(
    name='calibrate',
    summary='identify the geometry of an arm from measured points',
    description='Estimate the kinematic errors of an arm from positions or poses measured at its tool, and write the '
    'corrected table or URDF with the accuracy before and after.',
    add_arguments=add_arguments,
    run=run,
)
