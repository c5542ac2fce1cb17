# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What a sub-command of ``robotid`` consists of, and its options made from a configuration: both say the same."""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from robotid_ros.settings import Settings, settings_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One sub-command, whose name and line in the list of commands stand in ``COMMANDS``.

    ``description`` is the first paragraph of its own help. ``add_arguments`` adds options to its parser. ``run`` does
    the work and returns the exit code; it raises a :class:`RobotIdError` for bad input.
    """

    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


Config = TypeVar('Config', bound=Settings)


def add_settings(parser: argparse._ActionsContainer, kind: type[Settings]) -> None:
    """Add an option for every setting of a configuration; a field's name with dashes is the option."""
    for item in settings_of(kind):
        if item.form == 'mapping':
            continue
        unit = f' [{item.unit}]' if item.unit else ''
        shown = '' if item.default in (None, '', ()) else f' (default: {_spelled(item.default)})'
        span = f'; {item.span()}' if item.range is not None else ''
        text = f'{item.description.rstrip(".")}{unit if not span else ""}{span}{shown}'.replace('%', '%%')
        option = '--' + item.name.replace('_', '-')
        common: dict[str, Any] = {'dest': item.name, 'default': argparse.SUPPRESS, 'help': text}
        if item.kind is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, **common)
        elif item.form == 'list':
            parser.add_argument(
                option, nargs='+' if item.length else '*', type=item.kind, metavar=_metavar(item.kind), **common
            )
        elif item.choices:
            parser.add_argument(option, choices=item.choices, **common)
        else:
            parser.add_argument(option, type=item.kind, metavar=_metavar(item.kind), **common)


def given_settings(options: argparse.Namespace, kind: type[Settings]) -> Mapping[str, Any]:
    """Return the settings that were given on the command line, by field name."""
    given = vars(options)
    return {item.name: given[item.name] for item in settings_of(kind) if item.name in given}


def settings_from(options: argparse.Namespace, kind: type[Config]) -> Config:
    """Return a configuration of the given options; an error of its own type for a value out of its range."""
    return kind(**given_settings(options, kind))


def number(kind: type[int] | type[float], low: float, high: float) -> Callable[[str], float]:
    """Return a converter for the ``type`` of an option that belongs to no configuration; both bounds are allowed."""

    def converted(text: str) -> float:
        wanted = f'expected {low:.10g} to {high:.10g}'
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f'{wanted}, got {text!r}') from None
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f'{wanted}, got {text}')
        return value

    return converted


def _metavar(kind: type) -> str:
    return {int: 'N', float: 'X'}.get(kind, 'TEXT')


def _spelled(value: object) -> str:
    return ' '.join(map(_spelled, value)) if isinstance(value, tuple) else str(value)
