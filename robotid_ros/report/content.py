# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The contents of a report, independent of their form: tables, figures, numbers and sentences."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from robotid_ros.report.plot import Chart

_SUPERSCRIPT = str.maketrans('0123456789-', '⁰¹²³⁴⁵⁶⁷⁸⁹⁻')
_MINUS = '−'
Level: TypeAlias = Literal['good', 'caution', 'bad']
GOOD_CONDITION, POOR_CONDITION = 30.0, 200.0  # of a column-scaled observation matrix


def number(value: float, digits: int = 3) -> str:
    """Return a value with some significant digits: 4.06, −0.0312, 1.2·10⁻⁵, ∞; a dash for NaN."""
    if math.isnan(value):
        return '–'
    if math.isinf(value):
        return '∞' if value > 0 else f'{_MINUS}∞'
    if value == 0.0:
        return '0'
    mantissa, exponent = f'{value:.{digits - 1}e}'.split('e')
    power = int(exponent)
    if -5 < power < 6:
        text = f'{float(f"{mantissa}e{power}"):.{max(digits - 1 - power, 0)}f}'
    else:
        text = f'{mantissa}·10{str(power).translate(_SUPERSCRIPT)}'
    return text.replace('-', _MINUS, 1) if text.startswith('-') else text


def percent(value: float, digits: int = 1) -> str:
    """Return a share in percent: 97.3 %."""
    if not math.isfinite(value):
        return number(value)
    return f'{value:.{digits}f} %'.replace('-', _MINUS)


def integer(value: int) -> str:
    """Return a count with narrow spaces between thousands."""
    return f'{value:,}'.replace(',', '\u202f')


def unit(text: str) -> str:
    """Return a unit as it is printed: N·m·s/rad for N*m*s/rad, kg·m² for kg*m^2."""
    return text.replace('*', '·').replace('^2', '²').replace('^3', '³')


def units_of(joint_type: str) -> tuple[str, str, str]:
    """Return the units of torque, speed and position of a joint, as printed."""
    return ('N', 'm/s', 'm') if joint_type == 'prismatic' else ('N·m', 'rad/s', 'rad')


def sentence(text: str) -> str:
    """Return a text with a capital at its beginning and a stop at its end."""
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '!', '?')) else '.')


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return the first of some names, and how many more there are: 'a, b and 3 more'."""
    return ', '.join(names[:most]) + (f' and {len(names) - most} more' if len(names) > most else '')


def friction_label(name: str) -> str:
    """Return a friction model's name as people say it: Coulomb + viscous + offset."""
    words = name.replace('daemi_heimann', 'Daemi-Heimann').replace('_', '+').split('+')
    return ' + '.join(word.capitalize() if word in ('coulomb', 'stribeck') else word for word in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to "can I use this?": a traffic light, a few words ("Usable"), and the reasons, a sentence each."""

    level: Level
    headline: str
    reasons: tuple[str, ...]


def usable(gain: Sequence[str], cautions: Sequence[str]) -> Verdict:
    """Return the verdict on a result that can be used, with care where there are cautions."""
    if cautions:
        return Verdict(level='caution', headline='Usable with care', reasons=(*gain, *cautions))
    return Verdict(level='good', headline='Usable', reasons=tuple(gain))


Fact: TypeAlias = tuple[str, str, str]
"""A number that everybody wants to see first: what it is, the number with its unit, what to compare it with or ''."""


def condition_level(scaled: float) -> Level:
    """Return the traffic light of a column-scaled condition number."""
    return 'good' if scaled <= GOOD_CONDITION else 'caution' if scaled <= POOR_CONDITION else 'bad'


def condition_fact(scaled: float, si: float) -> Fact:
    """Return a condition number as a fact, column-scaled and in SI units."""
    return ('Condition number', number(scaled), f'column-scaled; {number(si)} in SI')


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Charts of one kind side by side, usually one per joint, each over the whole width where they are ``wide``.

    The ``name`` is for programs, ``reading`` one line that says how to read them.
    """

    name: str
    caption: str
    reading: str
    charts: tuple[Chart, ...]
    wide: bool = False


Column: TypeAlias = tuple[str, str, bool]
"""Head of a table's column: its name, what is printed below it, and whether it holds numbers."""


def words(*names: str) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple((name, '', False) for name in names)


def quantities(*heads: str) -> tuple[Column, ...]:
    """Return columns of numbers; what stands in brackets is printed below the name: 'Mass [kg]'."""
    split = [head.removesuffix(']').partition(' [') for head in heads]
    return tuple((name, below, True) for name, _, below in split)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text; the first cell names the row.

    ``levels`` are the traffic lights of the rows, if they have some, ``reading`` is one line that says how to read it.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    levels: tuple[Level | None, ...] = ()
    reading: str = ''


Item: TypeAlias = Figure | Table | str


def sections_of(*named: tuple[str, Iterable[Item]]) -> tuple[tuple[str, tuple[Item, ...]], ...]:
    """Return sections, each a title with what stands under it; one without items is left out."""
    listed = [(title, tuple(items)) for title, items in named]
    return tuple((title, items) for title, items in listed if items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report: what was done (kind: "Dynamic identification") with what (title: the robot's name).

    The summary is one paragraph. There is no verdict where there is nothing to judge. A section is a heading with what
    stands under it; a plain string is a paragraph.
    """

    kind: str
    title: str
    summary: str
    verdict: Verdict | None
    facts: tuple[Fact, ...]
    sections: tuple[tuple[str, tuple[Item, ...]], ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        return tuple(item for _, items in self.sections for item in items if isinstance(item, Figure))
