# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Configurations whose fields carry their own description, unit, range and choices.

A configuration is a frozen dataclass derived from :class:`Settings` whose fields are made by
:func:`setting`. Every value is checked when the object is made, so Python, the command line, YAML
and ROS parameters refuse the same values with the same message.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from robotid_ros.errors import RobotIdError

Config = TypeVar('Config', bound='Settings')

_WORDS = {float: 'number', int: 'whole number', bool: 'true or false', str: 'text', Path: 'path'}
_PLURALS = {float: 'numbers', int: 'whole numbers', bool: 'true or false', str: 'names', Path: 'paths'}


def setting(default: Any, description: str, **more: Any) -> Any:
    """Return the dataclass field of a setting; ``more`` is its unit, its range and so on, see :class:`Setting`."""
    metadata = {'description': description, **more}
    if isinstance(default, Mapping):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One field of a configuration, for the command line, the nodes and the manual."""

    name: str
    kind: type  # float, int, bool, str or Path: of the value, of each entry of a list, or of each value of a mapping
    form: Literal['one', 'list', 'mapping']
    optional: bool  # whether None is allowed
    default: Any
    description: str  # a short phrase; the command line, the ROS parameter and the manual show it
    # The next four are those of each entry, where the value is a list.
    unit: str = ''
    range: tuple[float, float] | None = None  # smallest and largest number allowed, both included
    choices: tuple[str, ...] = ()  # words allowed
    accepted: Callable[[Any], object] | None = None  # raises a ValueError that says what is wrong with a value
    length: tuple[int, ...] = ()  # lengths allowed of a list
    read_only: bool = False  # whether the ROS parameter cannot be changed after the node has started

    def converted(self, value: Any) -> Any:
        """Return a value as the field holds it; the message of a ValueError, if it cannot be used, follows "name: "."""
        if value is None and self.optional:
            return None
        if self.form == 'mapping':
            if not isinstance(value, Mapping):
                raise ValueError(f'expected a mapping of names to values, got {value!r:.60}')
            return {str(key): self._entry(entry, f"'{key}': ") for key, entry in value.items()}
        if self.form == 'list':
            if isinstance(value, str | bytes | Mapping) or not hasattr(value, '__iter__'):
                raise ValueError(f'expected a list of {_PLURALS[self.kind]}, got {value!r:.60}')
            entries = tuple(self._entry(entry, '') for entry in value)
            if self.length and len(entries) not in self.length:
                raise ValueError(f'expected {" or ".join(map(str, self.length))} entries, got {len(entries)}')
            return entries
        return self._entry(value, '')

    def _entry(self, value: Any, where: str) -> Any:
        entry = self._typed(value)
        if entry is None:
            wanted = f'a {_WORDS[self.kind]}' if self.kind in (float, int, Path) else _WORDS[self.kind]
            raise ValueError(f'{where}expected {wanted}, got {value!r:.60}')
        if self.range is not None and not self.range[0] <= entry <= self.range[1]:
            raise ValueError(f'{where}expected {self.span()}, got {entry:g}')
        if self.choices and entry not in self.choices:
            allowed = ', '.join(choice or "''" for choice in self.choices)
            raise ValueError(f"{where}expected one of {allowed}; got '{entry}'")
        if self.accepted is not None:
            self.accepted(entry)
        return entry

    def _typed(self, value: Any) -> Any:
        """Return the value in the field's type, None where it has another."""
        if self.kind is Path:
            return Path(value) if isinstance(value, str | Path) else None
        if self.kind in (bool, str):
            return value if isinstance(value, self.kind) else None
        if isinstance(value, str | bytes | bool):
            return None
        try:
            number = self.kind(value)
            return number if number == value and math.isfinite(number) else None
        except (TypeError, ValueError, OverflowError):
            return None

    def span(self) -> str:
        """Return the range in words, with its unit."""
        assert self.range is not None
        low, high = self.range
        text = f'{low:.10g} or more' if math.isinf(high) else f'{low:.10g} to {high:.10g}'
        return f'{text} {self.unit}'.rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Base of every configuration: values are converted to the type of their field and checked.

    A derived class sets ``error`` and overrides :meth:`check` where values depend on each other.
    Fields that :func:`setting` did not make are left as they are.
    """

    error: ClassVar[type[RobotIdError]] = RobotIdError

    def __post_init__(self) -> None:
        for item in settings_of(type(self)):
            value = getattr(self, item.name)
            try:
                object.__setattr__(self, item.name, item.converted(value))
            except ValueError as cause:
                about = {'name': item.name, 'expected': item.range or item.choices or item.kind, 'found': value}
                raise self.error(f'{item.name}: {cause}', **about) from None
        self.check()

    def check(self) -> None:
        """Refuse values that contradict each other, by raising ``self.error``."""

    @classmethod
    def from_dict(cls: type[Config], content: Mapping[str, Any]) -> Config:
        """Build from plain values, as a YAML file holds them.

        Raises a RobotIdError, of the class's own type, if a name is unknown or a value cannot be used.
        """
        if not isinstance(content, Mapping):
            raise cls.error(f'expected a mapping of settings, got {content!r:.60}')
        cls._require_known(content)
        return cls(**content)

    def changed(self: Config, content: Mapping[str, Any]) -> Config:
        """Return the configuration with other values of some settings; raises as :meth:`from_dict` does."""
        self._require_known(content)
        return replace(self, **content)

    @classmethod
    def _require_known(cls, names: Iterable[str]) -> None:
        known = tuple(item.name for item in settings_of(cls))
        for name in names:
            if name not in known:
                message = f"'{name}' is not a setting; there are: {', '.join(known)}"
                raise cls.error(message, name=name, expected=known)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for YAML, tuples as lists."""
        return {item.name: _plain(getattr(self, item.name)) for item in settings_of(type(self))}


_KNOWN: dict[type[Settings], tuple[Setting, ...]] = {}


def settings_of(kind: type[Settings]) -> tuple[Setting, ...]:
    """Return the settings of a configuration, in the order of its fields."""
    if kind in _KNOWN:
        return _KNOWN[kind]
    hints = get_type_hints(kind)
    _KNOWN[kind] = tuple(
        Setting(
            name=item.name,
            default=item.default_factory() if item.default_factory is not MISSING else item.default,
            **{**item.metadata, **_type(hints[item.name], item.metadata)},
        )
        for item in fields(kind)
        if 'description' in item.metadata
    )
    return _KNOWN[kind]


def _type(hint: Any, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return kind, form, whether None is allowed, and choices from an annotation."""
    optional = get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint)
    if optional:
        hint = next(part for part in get_args(hint) if part is not NoneType)
    form = 'one'
    if get_origin(hint) is tuple:
        form, hint = 'list', get_args(hint)[0]
    elif get_origin(hint) is not Literal and get_args(hint):
        form, hint = 'mapping', get_args(hint)[-1]
    choices = metadata.get('choices', ())
    if get_origin(hint) is Literal:
        choices, hint = choices or get_args(hint), str
    if hint not in _WORDS:
        raise TypeError(f'a setting cannot be of type {hint}')
    return {'kind': hint, 'form': form, 'optional': optional, 'choices': choices}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Mapping):
        return dict(value)
    return str(value) if isinstance(value, Path) else value
