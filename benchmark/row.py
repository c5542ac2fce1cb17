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
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np

SPREADS = ('spread', 'their_spread')
HERE = ('measured', 'computed', 'counted', 'by definition')  # sources of an anchor's figure of the same run


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    what, unit : str
    values : tuple of float
        This package's figures: one, or one for each joint; empty where nothing could be measured.
    better : {'lower', 'higher'}
    anchor : str
        Whose figure it is compared with, and how that was obtained.
    theirs : tuple of float
        The anchor's figures: one for each of ``values``, or one for all; empty where there is only a name.
    source : str
        'measured' in the same run, or where the anchor's figures were published.
    low, high : float or None
        Limits of the figures to be reached; the limits themselves are allowed.
    times : float or None
        How many times better than the anchor each figure is to be, whichever direction is the better one.
    by : str
        Who set what is to be reached.
    runs : str
        How often it was measured and what is stated of it.
    note : str
        Why nothing could be measured, or what to know when reading the figure.
    failure : str
        The error that ended the measurement.
    spread, their_spread : float
        Half of the range of the middle half of the runs, as a part of the figure; NaN where it was measured once.
    area, case : str
        The module and the function that measured it; whoever runs them fills them in.
    measured : str
        When, at which commit and load; whoever writes the file fills it in.
    """

    what: str
    unit: str = ''
    values: Any = ()
    better: Literal['lower', 'higher'] = 'lower'
    anchor: str = ''
    theirs: Any = ()
    source: str = 'measured'
    low: float | None = None
    high: float | None = None
    times: float | None = None
    by: str = 'this project'
    runs: str = ''
    note: str = ''
    failure: str = ''
    spread: float = math.nan
    their_spread: float = math.nan
    area: str = ''
    case: str = ''
    measured: str = ''

    def __post_init__(self) -> None:
        for name in ('values', 'theirs'):  # a number or an array will do; six digits are more than a run repeats
            kept = (float(f'{value:.6g}') for value in np.ravel(getattr(self, name)).astype(float).tolist())
            object.__setattr__(self, name, tuple(kept))

    @property
    def ratio(self) -> float | None:
        """How many times better than the anchor the figure is, the worst of several; None without an anchor."""
        if not self.theirs or not self.values:
            return None
        own, other = np.broadcast_arrays(self.values, self.theirs)
        with np.errstate(divide='ignore', invalid='ignore'):
            return float(np.min(own / other if self.better == 'higher' else other / own))

    @property
    def ahead(self) -> str:
        """Who is ahead and how many times, in words; empty without an anchor."""
        if self.ratio is None:
            return ''
        if 0.98 < self.ratio < 1.02:
            return 'equal'
        if self.ratio > 1.0:
            return f'here, {figures((self.ratio,))}'
        return f'theirs, {figures((1.0 / self.ratio,))}' if self.ratio > 0.0 else 'theirs'

    @property
    def quoted(self) -> bool:
        """Whether the anchor's figure comes from somewhere else than this run."""
        return bool(self.theirs) and self.source not in HERE

    @property
    def bar(self) -> str:
        """What is to be reached, in words; empty where nothing is."""
        if self.times is not None:
            limits = f'>= {self.times:.3g} x anchor'
        elif self.low is not None and self.high is not None:
            limits = f'{self.low:g} to {self.high:g}'
        elif self.low is not None:
            limits = f'>= {self.low:g}'
        elif self.high is not None:
            limits = f'<= {self.high:g}'
        else:
            return ''
        return f'{limits} ({self.by})'

    @property
    def state(self) -> Literal['met', 'missed', 'compared', 'not run', 'failed']:
        """What became of it. A NaN misses every bar."""
        if self.failure:
            return 'failed'
        if not self.values or (self.times is not None and self.ratio is None):
            return 'not run'
        if not self.bar:
            return 'compared'
        judged, low = (self.values, self.low) if self.times is None else ((self.ratio,), self.times)
        low, high = -math.inf if low is None else low, math.inf if self.high is None else self.high
        return 'met' if all(low <= value <= high for value in judged) else 'missed'

    def as_dict(self) -> dict[str, Any]:
        """Return what goes into the file: no empty entries, and what follows from them written out for others."""
        finite = self.ratio is not None and math.isfinite(self.ratio)  # JSON has no infinity
        spreads = {name: value for name in SPREADS if math.isfinite(value := getattr(self, name))}
        entry = {
            name: value
            for name, value in asdict(self).items()
            if name in ('case', 'values') or (name not in SPREADS and value not in ('', None, ()))
        }
        return {**entry, **spreads, 'ratio': self.ratio if finite else None, 'state': self.state}

    @classmethod
    def of(cls, entry: dict[str, Any]) -> 'Row':
        """Return the row that ``as_dict`` wrote."""
        return cls(**{field.name: entry[field.name] for field in fields(cls) if field.name in entry})


def spread_of(values: Sequence[float]) -> float:
    """Return half of the range of the middle half of the figures over their median."""
    low, middle, high = np.percentile(values, [25, 50, 75])
    return float((high - low) / 2.0 / middle) if len(values) > 1 and middle else math.nan


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
