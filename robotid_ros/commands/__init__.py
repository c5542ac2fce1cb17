"""The sub-commands of ``robotid``, one file each, in the order a user meets them."""

from robotid_ros.commands.calibrate import COMMAND as CALIBRATE
from robotid_ros.commands.codegen import COMMAND as CODEGEN
from robotid_ros.commands.command import Command
from robotid_ros.commands.demo import COMMAND as DEMO
from robotid_ros.commands.design import COMMAND as DESIGN
from robotid_ros.commands.free_floating import COMMAND as FREE_FLOATING
from robotid_ros.commands.identify import COMMAND as IDENTIFY
from robotid_ros.commands.process import COMMAND as PROCESS
from robotid_ros.commands.report import COMMAND as REPORT
from robotid_ros.commands.validate import COMMAND as VALIDATE
from robotid_ros.commands.watch import COMMAND as WATCH

__all__ = ['COMMANDS', 'Command']

COMMANDS: tuple[Command, ...] = (
    DEMO,
    DESIGN,
    PROCESS,
    IDENTIFY,
    VALIDATE,
    CALIBRATE,
    FREE_FLOATING,
    CODEGEN,
    REPORT,
    WATCH,
)
