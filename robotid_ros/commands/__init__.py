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
    'report',
    'watch',
)
"""In the order a user meets them."""


def load_command(name: str) -> Command:
    """Return a command; its module is named like it."""
    command: Command = import_module(f'robotid_ros.commands.{name.replace("-", "_")}').COMMAND
    return command
