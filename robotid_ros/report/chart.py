# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""One chart as data: series, axes and the sentence a blind reader hears instead."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from robotid_ros.arrays import Array

__all__ = ['Axis', 'Band', 'Chart', 'Dots', 'Intervals', 'Line', 'Role', 'Rule', 'Series']

Role: TypeAlias = Literal['measured', 'predicted', 'residual', 'prior', 'truth', 'limit', 'accent']


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Line:
    """A curve; ``x`` and ``y`` have shape (N,)."""

    role: Role
    x: Array
    y: Array
    label: str = ''


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dots:
    """A cloud of points; ``x`` and ``y`` have shape (N,)."""

    role: Role
    x: Array
    y: Array
    label: str = ''
    size: float = 1.6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """The area between two curves over ``x``; all have shape (N,)."""

    role: Role
    x: Array
    low: Array
    high: Array
    label: str = ''


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Intervals:
    """A marker with a horizontal error bar on each named row.

    Attributes
    ----------
    value : ndarray, shape (N,)
        NaN leaves a row empty.
    half_width : ndarray, shape (N,), or None
        Half the length of each bar; None draws markers alone.
    shift : float
        How far above its row the marker stands, in rows.
    """

    role: Role
    value: Array
    half_width: Array | None = None
    label: str = ''
    shift: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A straight line across the chart at one value of x or y."""

    axis: Literal['x', 'y']
    at: float
    role: Role = 'limit'
    label: str = ''


Series: TypeAlias = Line | Dots | Band | Intervals | Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """Name with unit, scale, and range where it is not that of the data."""

    label: str
    log: bool = False
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart.

    Attributes
    ----------
    title : str
    note : str
        A few figures that belong to it.
    alt : str
        What it shows, in a sentence.
    x, y : Axis
    series : tuple of Series
    rows : tuple of str
        Names of the rows, first on top, where y is a list of names and not a scale.
    height : float
        Height over width.
    """

    title: str
    alt: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    note: str = ''
    rows: tuple[str, ...] = ()
    height: float = 0.58
