# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The contents of a report, independent of their form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from robotid_ros.report.plot import Chart

Level: TypeAlias = Literal['good', 'caution', 'bad']


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to "can I use this?", as a traffic light with its reason.

    Attributes
    ----------
    level : {'good', 'caution', 'bad'}
    headline : str
        A few words: "Usable".
    reasons : tuple of str
        One sentence each.
    """

    level: Level
    headline: str
    reasons: tuple[str, ...]


def usable(gain: Sequence[str], cautions: Sequence[str]) -> Verdict:
    """Return the verdict on a result that can be used, with care where there are cautions."""
    if cautions:
        return Verdict(level='caution', headline='Usable with care', reasons=(*gain, *cautions))
    return Verdict(level='good', headline='Usable', reasons=tuple(gain))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One number that everybody wants to see first.

    Attributes
    ----------
    label : str
    value : str
        With its unit.
    note : str
        What to compare it with.
    """

    label: str
    value: str
    note: str = ''


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Charts of one kind side by side, usually one per joint.

    Attributes
    ----------
    name : str
        For programs.
    caption : str
    reading : str
        One line that says how to read it.
    charts : tuple of Chart
    wide : bool
        Whether each chart takes the whole width.
    """

    name: str
    caption: str
    reading: str
    charts: tuple[Chart, ...]
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Head of a table's column."""

    name: str
    unit: str = ''
    numeric: bool = True


def words(*names: str) -> tuple[Column, ...]:
    """Return columns of text."""
    return tuple(Column(name=name, numeric=False) for name in names)


def quantities(*heads: str) -> tuple[Column, ...]:
    """Return columns of numbers; what stands in brackets is printed below the name: 'Mass [kg]'."""
    split = [head.removesuffix(']').partition(' [') for head in heads]
    return tuple(Column(name=name, unit=below) for name, _, below in split)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text; the first cell names the row.

    Attributes
    ----------
    caption : str
    columns : tuple of Column
    rows : tuple of tuple of str
    levels : tuple of Level or None
        Traffic light of each row; empty for none.
    reading : str
        One line that says how to read it.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    levels: tuple[Level | None, ...] = ()
    reading: str = ''


Item: TypeAlias = Figure | Table | str


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with what stands under it; a plain string is a paragraph."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole report.

    Attributes
    ----------
    kind : str
        What was done: "Dynamic identification".
    title : str
        With what: the robot's name.
    summary : str
        One paragraph.
    verdict : Verdict or None
        None where there is nothing to judge.
    facts : tuple of Fact
    sections : tuple of Section
    """

    kind: str
    title: str
    summary: str
    verdict: Verdict | None
    facts: tuple[Fact, ...]
    sections: tuple[Section, ...]

    @property
    def figures(self) -> tuple[Figure, ...]:
        """All figures, in order."""
        return tuple(item for section in self.sections for item in section.items if isinstance(item, Figure))
