# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Command-line options made from a settings dataclass, so that both say the same.

A field's ``metadata`` holds ``description``, ``unit``, ``range`` and ``choices``; its name with
dashes is the option.
"""

import argparse
from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

__all__ = ['add_settings', 'given_settings', 'settings_from']

Settings = TypeVar('Settings')


def add_settings(parser: argparse._ActionsContainer, kind: type, *, skip: Collection[str] = ()) -> None:
    """Add an option for every field of a settings dataclass.

    Parameters
    ----------
    parser : argparse.ArgumentParser, or a group of one
    kind : type
        The dataclass.
    skip : collection of str
        Fields that are given another way.
    """
    kinds = get_type_hints(kind)
    for item in fields(kind):
        if item.name in skip:
            continue
        meta = item.metadata
        unit = f' [{meta["unit"]}]' if meta.get('unit') else ''
        default = item.default if item.default is not MISSING else None
        shown = '' if default in (None, '', ()) else f' (default: {_spelled(default)})'
        text = f'{meta.get("description", "").rstrip(".")}{unit}{shown}'.replace('%', '%%')
        option = '--' + item.name.replace('_', '-')
        scalar = _scalar(kinds[item.name])
        common: dict[str, Any] = {'dest': item.name, 'default': argparse.SUPPRESS, 'help': text}
        if scalar is bool:
            parser.add_argument(option, action=argparse.BooleanOptionalAction, **common)
        elif get_origin(kinds[item.name]) is tuple:
            parser.add_argument(option, nargs='+', type=scalar, metavar=_metavar(scalar), **common)
        elif meta.get('choices'):
            parser.add_argument(option, choices=meta['choices'], **common)
        else:
            parser.add_argument(option, type=scalar, metavar=_metavar(scalar), **common)


def given_settings(options: argparse.Namespace, kind: type) -> Mapping[str, Any]:
    """Return the settings that were given on the command line, by field name."""
    given = vars(options)
    values = {item.name: given[item.name] for item in fields(kind) if item.name in given}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def settings_from(options: argparse.Namespace, kind: type[Settings], **fixed: Any) -> Settings:
    """Return a settings object of the given options; ``fixed`` values win.

    Raises
    ------
    RobotIdError
        As the dataclass does for a value out of its range.
    """
    return kind(**{**given_settings(options, kind), **fixed})


def _scalar(kind: Any) -> type:
    candidates = (kind, *get_args(kind))
    return next((scalar for scalar in (bool, int, float, str) if scalar in candidates), str)


def _metavar(scalar: type) -> str:
    return {int: 'N', float: 'X', str: 'TEXT'}[scalar]


def _spelled(value: object) -> str:
    return ' '.join(map(_spelled, value)) if isinstance(value, tuple) else str(value)
