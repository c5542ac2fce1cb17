# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""What changes from recording to recording: parameters of an arm over time, and of arms beside each other."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri, stdtrit

from robotid_ros.arrays import Array
from robotid_ros.fleet.outcome import Outcome
from robotid_ros.report.subject import parameters_of

FALSE_ALARM = 0.01  # chance that anything of an unchanged fleet is marked
_ARMS = 5  # fewer have no scatter to stand out from
_MAD = 1.4826  # standard deviation of a normal variable by its median absolute deviation
# Degrees of freedom of Student's distribution that bounds a distance from the median in units of _MAD times the median
# absolute deviation: the latter has 37 % of the efficiency of a standard deviation. At chances of 1e-2 to 1e-4 the
# limits exceed those of 10^6 normal samples of 5 to 50 arms.
_MAD_EFFICIENCY, _MAD_FREEDOM = 0.37, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One parameter of one arm over its R recordings, in order.

    The kind is 'friction' or 'inertia' (base parameters: inertias, first moments, masses). ``time``, ``values`` and
    ``std`` have the shape (R,); the time is in days where every recording of the arm has a date, and counts recordings
    otherwise.
    """

    arm: str
    parameter: str
    unit: str
    kind: str
    names: tuple[str, ...]
    time: Array
    dated: bool
    values: Array
    std: Array

    def line(self) -> tuple[Array, Array, float, int]:
        """Return the weighted straight line through the values.

        That are its values at the first and at the last recording, shape (2,); the deviations of its change from the
        first to the last, and of its value at the last, shape (2,); the scatter, sum of (value - line)^2 / std^2; and
        its freedom R - 2: it is a chi-square variable of so many degrees if the deviations are right.
        """
        span = max(float(self.time[-1] - self.time[0]), np.finfo(float).tiny)
        rows = np.stack([np.ones_like(self.time), (self.time - self.time[0]) / span], axis=1)
        weight = 1.0 / self.std
        inverse = np.linalg.pinv(rows * weight[:, None])
        solved = inverse @ (self.values * weight)
        ends = np.array([solved[0], solved.sum()])
        deviations = np.array([np.linalg.norm(inverse[1]), np.linalg.norm(inverse.sum(axis=0))])
        return ends, deviations, float(np.sum(((self.values - rows @ solved) * weight) ** 2)), len(self.values) - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a parameter of an arm moved, and where it stands among the other arms."""

    series: Series
    first: float  # of the straight line through the values, as the next
    last: float
    std: float  # of last - first, scaled
    # how many of their deviations values of one arm scatter around their line, at least 1: the median over the arms
    scale: float
    drift: float  # (last - first) / std
    # what |drift| of an unchanged fleet exceeds anywhere with a chance of one per cent; infinite where too few
    # recordings tell drift from scatter
    drift_limit: float
    apart: float  # (last - median of the arms) / scatter of the arms; 0 below five arms
    apart_limit: float  # the same limit for it; infinite below five arms

    @property
    def moved(self) -> bool:
        """Whether the parameter drifted beyond its scatter."""
        return abs(self.drift) > self.drift_limit

    @property
    def outlying(self) -> bool:
        """Whether the arm differs from the others beyond their scatter."""
        return abs(self.apart) > self.apart_limit

    @property
    def score(self) -> float:
        """How far beyond its limit the worse of the two is."""
        return max(abs(self.drift) / self.drift_limit, abs(self.apart) / self.apart_limit)


def series_of(outcomes: Sequence[Outcome]) -> tuple[Series, ...]:
    """Return every parameter of every arm over its usable results.

    Friction terms that only some results of an arm have are left out.
    """
    arms: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        if outcome.usable:
            arms[outcome.entry.arm].append(outcome)
    return tuple(series for arm, found in arms.items() for series in _of_arm(arm, found))


def changes_of(series: Sequence[Series]) -> tuple[Change, ...]:
    """Return drift and distance from the other arms of every parameter, the most conspicuous first.

    The deviations of an identification hold for one recording. How well another recording of the same
    arm repeats it, with another temperature of the grease, is seen in the scatter around the line: the deviations
    of a parameter are multiplied by the median over the arms of sqrt(scatter / median of chi-square), where
    that exceeds 1, and the limit is Student's with all arms' degrees of freedom (Bonferroni over everything compared).
    Two recordings of an arm count where there are five arms or more. Where there is nothing to know the scatter
    from, there is no limit.
    """
    groups: dict[tuple[str, str], list[Series]] = defaultdict(list)
    for each in series:
        groups[each.parameter, each.unit].append(each)
    count = sum(len(each.values) > 1 for each in series)
    arms = len({each.arm for each in series})
    found = []
    for members in groups.values():
        found += list(_changes(members, count, len(groups) * arms))
    return tuple(sorted(found, key=lambda each: (-each.score, -abs(each.drift))))


def _changes(members: Sequence[Series], drifts: int, arms: int) -> Iterator[Change]:
    lines = [each.line() for each in members]
    repeated = [(scatter, freedom) for _, _, scatter, freedom in lines if freedom > 0]
    if len(members) >= _ARMS:  # most arms do not drift, so the difference of two recordings is scatter
        repeated += [
            (float((ends[1] - ends[0]) ** 2 / deviations[0] ** 2), 1)
            for ends, deviations, _, freedom in lines
            if freedom == 0
        ]
    scale = max(1.0, float(np.median([np.sqrt(s / chdtri(f, 0.5)) for s, f in repeated]))) if repeated else 1.0
    freedom = sum(f for _, f in repeated) // 2  # a median is about half as efficient as a sum
    drift_limit = _limit(freedom, drifts)
    last = np.array([ends[1] for ends, *_ in lines])
    centre = float(np.median(last))
    spread = _MAD * float(np.median(np.abs(last - centre)))
    apart_freedom = _MAD_EFFICIENCY * (len(members) - 1) + _MAD_FREEDOM
    apart_limit = _limit(apart_freedom, arms) if len(members) >= _ARMS else np.inf
    for each, (ends, deviations, *_) in zip(members, lines, strict=True):
        std, here = scale * deviations
        single = len(each.values) < 2
        yield Change(
            series=each,
            first=float(ends[0]),
            last=float(ends[1]),
            std=float(std),
            scale=scale,
            drift=0.0 if single else float((ends[1] - ends[0]) / std),
            drift_limit=np.inf if single else drift_limit,
            apart=float((ends[1] - centre) / np.hypot(spread, here)) if len(members) >= _ARMS else 0.0,
            apart_limit=apart_limit,
        )


def _limit(freedom: float, count: int) -> float:
    return float(stdtrit(freedom, 1.0 - 0.5 * FALSE_ALARM / max(count, 1))) if freedom > 0 else np.inf


def _of_arm(arm: str, outcomes: Sequence[Outcome]) -> Iterator[Series]:
    moments = [outcome.entry.time for outcome in outcomes]
    dated = len(outcomes) > 1 and None not in moments and len(set(moments)) > 1
    time = np.array(moments, dtype=float) / 86400.0 if dated else np.arange(float(len(outcomes)))
    results = [outcome.result for outcome in outcomes if outcome.result is not None]
    found = [parameters_of(result) for result in results]
    for name, (_, _, unit) in found[0].items():
        rows = [parameters.get(name) for parameters in found]
        table = np.array([row[:2] for row in rows if row is not None], dtype=float)
        if len(table) < len(rows) or not np.isfinite(table).all() or (table[:, 1] <= 0.0).any():
            continue
        yield Series(
            arm=arm,
            parameter=name,
            unit=unit,
            kind='inertia' if name in results[0].base_names else 'friction',
            names=tuple(outcome.entry.name for outcome in outcomes),
            time=time,
            dated=dated,
            values=table[:, 0],
            std=table[:, 1],
        )
