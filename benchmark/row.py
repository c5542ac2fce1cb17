# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A line of the table: what was measured, beside what, and what was to be reached."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

Direction = Literal['lower', 'higher']
HERE = ('measured', 'computed', 'counted', 'by definition')  # sources of an anchor's figure of the same run
STATES = ('met', 'missed', 'compared', 'not run', 'failed')


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What is to be reached, by the figures themselves or by their ratios to the anchor.

    Attributes
    ----------
    low, high : float or None
        Limits; the limits themselves are allowed unless ``strict``.
    of : {'figure', 'ratio'}
        A ratio above 1 is better than the anchor, whichever direction is the better one.
    strict : bool
        Whether the limits themselves miss it.
    by : str
        Who set it.
    """

    low: float | None = None
    high: float | None = None
    of: Literal['figure', 'ratio'] = 'figure'
    strict: bool = False
    by: str = 'this project'

    def passed_by(self, value: float) -> bool:
        """Whether a value lies within the limits; a NaN never does."""
        if self.strict:
            above = self.low is None or value > self.low
            below = self.high is None or value < self.high
        else:
            above = self.low is None or value >= self.low
            below = self.high is None or value <= self.high
        return not math.isnan(value) and above and below

    def __str__(self) -> str:
        return f'{self._limits()} ({self.by})'

    def _limits(self) -> str:
        times = ' x anchor' if self.of == 'ratio' else ''
        if self.low is not None and self.high is not None:
            return f'{self.low:g} to {self.high:g}{times}'
        if self.of == 'ratio' and self.strict and self.low == 1.0:
            return 'better than the anchor'
        if self.low is not None:
            return f'{">" if self.strict else ">="} {self.low:g}{times}'
        return f'{"<" if self.strict else "<="} {self.high:g}{times}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What a figure is compared with.

    Attributes
    ----------
    name : str
        Whose figure, and how it was obtained.
    values : tuple of float
        One for each figure, or one for all; empty where there is only a name.
    source : str
        'measured' in the same run, or where it was published.
    """

    name: str
    values: tuple[float, ...] = ()
    source: str = 'measured'


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    area, what, unit : str
    values : tuple of float
        This package's figures: one, or one for each joint; empty where nothing could be measured.
    better : {'lower', 'higher'}
    anchor : Anchor or None
    bar : Bar or None
    runs : str
        How often it was measured and what is stated of it.
    note : str
        Why nothing could be measured, or what to know when reading the figure.
    failure : str
        The error that ended the measurement.
    """

    area: str
    what: str
    unit: str = ''
    values: tuple[float, ...] = ()
    better: Direction = 'lower'
    anchor: Anchor | None = None
    bar: Bar | None = None
    runs: str = ''
    note: str = ''
    failure: str = ''

    @property
    def ratios(self) -> tuple[float, ...]:
        """How many times better than the anchor each figure is; empty without an anchor."""
        if self.anchor is None or not self.anchor.values or not self.values:
            return ()
        others = self.anchor.values
        if len(others) == 1:
            others *= len(self.values)
        pairs = zip(self.values, others, strict=True)
        if self.better == 'higher':
            return tuple(_quotient(own, other) for own, other in pairs)
        return tuple(_quotient(other, own) for own, other in pairs)

    @property
    def ratio(self) -> float | None:
        """The worst of the ratios."""
        return min(self.ratios, default=None)

    @property
    def quoted(self) -> bool:
        """Whether the anchor's figure comes from somewhere else than this run."""
        anchor = self.anchor
        return anchor is not None and bool(anchor.values) and anchor.source not in HERE

    @property
    def state(self) -> str:
        """One of STATES."""
        if self.failure:
            return 'failed'
        if not self.values:
            return 'not run'
        if self.bar is None:
            return 'compared'
        judged = self.values if self.bar.of == 'figure' else self.ratios
        if not judged:  # the anchor is missing, so that nothing can be said
            return 'not run'
        return 'met' if all(self.bar.passed_by(value) for value in judged) else 'missed'

    def as_dict(self) -> dict[str, Any]:
        """Return what goes into the file, with what follows from it written out for other readers."""
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ('anchor', 'bar'):
            part = own[name]
            own[name] = None if part is None else {f.name: getattr(part, f.name) for f in fields(part)}
        finite = self.ratio is not None and math.isfinite(self.ratio)  # JSON has no infinity
        return {**own, 'ratio': self.ratio if finite else None, 'state': self.state}

    @classmethod
    def of(cls, entry: dict[str, Any]) -> 'Row':
        """Return the row that ``as_dict`` wrote."""
        known = {field.name for field in fields(cls)}
        own = {name: value for name, value in entry.items() if name in known}
        own['values'] = tuple(own['values'])
        if own['anchor'] is not None:
            own['anchor'] = Anchor(**{**own['anchor'], 'values': tuple(own['anchor']['values'])})
        if own['bar'] is not None:
            own['bar'] = Bar(**own['bar'])
        return cls(**own)


def _quotient(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else math.inf


def figures(values: Sequence[float]) -> str:
    """Return numbers as people write them: three or four digits, thousands in groups, powers of ten where tiny."""
    return ' '.join(_figure(value) for value in values)


def _figure(value: float) -> str:
    size = abs(value)
    if not math.isfinite(value):
        return str(value)
    if size >= 1e4:
        digits = 3 - math.ceil(math.log10(size))
        return f'{round(value, digits):,.0f}'.replace(',', ' ')
    if size >= 1.0:
        return f'{value:.4g}'
    return '0' if value == 0.0 else f'{value:.1e}' if size < 1e-3 else f'{value:.3g}'
