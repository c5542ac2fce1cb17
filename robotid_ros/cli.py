# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The ``robotid`` command: parses, calls one function, prints one line where something is wrong.

Exit codes: 0 success, 2 bad input, 1 failure, 130 interrupted, 70 a fault of this package.
"""

import argparse
import gc
import os
import sys
import warnings
from collections.abc import Callable, Sequence

from robotid_ros.commands import COMMANDS, load_command
from robotid_ros.errors import INTERRUPTED, RobotIdError
from robotid_ros.imports import use_one_thread


def build_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser, with the options of the command that is asked for; no other command is imported."""
    parser = argparse.ArgumentParser(
        prog='robotid',
        description='Identify the dynamics, friction and geometry of robot arms.',
        epilog='Every command explains itself: robotid COMMAND --help',
    )
    parser.add_argument('--version', action=_Version, nargs=0, help='print the version and exit')
    commands = parser.add_subparsers(dest='command', metavar='COMMAND', required=True)
    for name, summary in COMMANDS.items():
        sub = commands.add_parser(name, help=summary)
        if name == asked:
            gc.disable()  # what is imported stays: to look for garbage among it takes a tenth of a start
            try:
                command = load_command(name)
            finally:
                gc.enable()
            sub.description = (command.__doc__ or '').partition('\n\n')[2]  # the second paragraph
            command.add_arguments(sub)
            sub.set_defaults(run=command.run)
    return parser


class _Version(argparse.Action):
    """Look the version up when it is asked for: that takes as long as all the rest of a start."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from robotid_ros import __version__

        print(f'robotid_ros {__version__}')
        parser.exit()


def main(arguments: Sequence[str] | None = None, begin: Callable[[], object] = lambda: None) -> int:
    """Run one command and return its exit code; ``begin`` is called when everything is imported and the work begins."""
    use_one_thread()  # before the command brings numpy
    given = sys.argv[1:] if arguments is None else list(arguments)
    asked = next((word for word in given if word != '--'), None)
    name = f'robotid {asked}' if asked in COMMANDS else 'robotid'
    try:
        options = build_parser(asked).parse_args(given)
        try:
            os.getcwd()  # paths are relative to it
        except OSError:
            print(f'{name}: the current folder does not exist any more; change to another one', file=sys.stderr)
            return 2
        if not all(word.isascii() for word in given):
            from robotid_ros.files import require_text  # takes 0.04 s

            for word in given:
                require_text(word)
        options.words = given
        warnings.showwarning = _print_warning
        begin()
        code = int(options.run(options))
        sys.stdout.flush()
        return code
    except RobotIdError as problem:
        print(f'{name}: {problem}', file=sys.stderr)
        return 2 if isinstance(problem, ValueError | ImportError) else 1
    except KeyboardInterrupt:
        print(f'{name}: interrupted', file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe has gone, as in `robotid ... | head`
        import contextlib

        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except MemoryError:
        print(f'{name}: there is not enough memory for this; give less data at a time', file=sys.stderr)
        return 1
    except Exception as fault:
        print(f'{name}: {_described(fault)}', file=sys.stderr)
        return 70  # EX_SOFTWARE of sysexits.h
    finally:
        if 'robotid_ros.files' in sys.modules:  # a help text writes none
            from robotid_ros.files import remove_unused_folders

            remove_unused_folders()


def _described(fault: Exception) -> str:
    """Return one line on a fault of this package, and where its traceback is kept."""
    import tempfile
    import traceback

    kind = f'{type(fault).__name__}: {" ".join(str(fault).split())}'[:160]
    try:
        with tempfile.NamedTemporaryFile('w', prefix='robotid-fault-', suffix='.txt', delete=False) as file:
            file.write(''.join(traceback.format_exception(fault)))
    except OSError:
        return f'this is a fault of robotid_ros ({kind}); please report it'
    return f'this is a fault of robotid_ros ({kind}); please report it with {file.name}'


def _print_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    print(f'warning: {message}', file=sys.stderr)
