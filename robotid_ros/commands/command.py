"""What a sub-command of ``robotid`` consists of."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ['Command']


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One sub-command.

    Attributes
    ----------
    name : str
        As typed.
    summary : str
        One line of the list of commands.
    description : str
        First paragraph of its own help.
    add_arguments : callable
        Adds options to its parser.
    run : callable
        Does the work and returns the exit code; raises :class:`RobotIdError` for bad input.
    """

    name: str
    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
