# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The table of a fleet, and its page: verdicts, what drifted, what stands out; arms with findings first."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.special import chdtri, stdtrit

from robotid_ros.arrays import Array
from robotid_ros.fleet.outcome import Outcome
from robotid_ros.report.content import Chart, Figure, Item, Level, Report, Table, Verdict, axis
from robotid_ros.report.parameters import short_name
from robotid_ros.report.subject import judged, parameters_of
from robotid_ros.report.wording import integer, listed, number, percent, unit
from robotid_ros.tables import write_table as write_columns

FALSE_ALARM = 0.01  # chance that anything of an unchanged fleet is marked
_ARMS = 5  # fewer have no scatter to stand out from
_MAD = 1.4826  # standard deviation of a normal variable by its median absolute deviation
# Degrees of freedom of Student's distribution that bounds a distance from the median in units of _MAD times the median
# absolute deviation: the latter has 37 % of the efficiency of a standard deviation. At chances of 1e-2 to 1e-4 the
# limits exceed those of 10^6 normal samples of 5 to 50 arms.
_MAD_EFFICIENCY, _MAD_FREEDOM = 0.37, 0.5
_DAY = 86400.0


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
    series = []
    for arm, own in arms.items():
        moments = [outcome.entry.time for outcome in own]
        dated = len(own) > 1 and None not in moments and len(set(moments)) > 1
        time = np.array(moments, dtype=float) / _DAY if dated else np.arange(float(len(own)))
        results = [outcome.result for outcome in own if outcome.result is not None]
        found = [parameters_of(result) for result in results]
        for name, (_, _, of) in found[0].items():
            rows = [parameters.get(name) for parameters in found]
            table = np.array([row[:2] for row in rows if row is not None], dtype=float)
            if len(table) < len(rows) or not np.isfinite(table).all() or (table[:, 1] <= 0.0).any():
                continue
            series.append(
                Series(
                    arm=arm,
                    parameter=name,
                    unit=of,
                    kind='inertia' if name in results[0].base_names else 'friction',
                    names=tuple(outcome.entry.name for outcome in own),
                    time=time,
                    dated=dated,
                    values=table[:, 0],
                    std=table[:, 1],
                )
            )
    return tuple(series)


def changes_of(series: Sequence[Series]) -> tuple[Change, ...]:
    """Return drift and distance from the other arms of every parameter, the most conspicuous first.

    The deviations of an identification hold for one recording. How well another recording of the same arm repeats it,
    with another temperature of the grease, is seen in the scatter around the line: the deviations of a parameter are
    multiplied by the median over the arms of sqrt(scatter / median of chi-square), where that exceeds 1, and the limit
    is Student's with all arms' degrees of freedom (Bonferroni over everything compared). Two recordings of an arm count
    where there are five arms or more. Where there is nothing to know the scatter from, there is no limit.
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


_Row: TypeAlias = tuple[tuple[int, float, str], Level, tuple[str, ...]]
_CHARTS = 9  # parameters over time that are drawn, the most conspicuous
_ROWS = 40  # of the table of changes
_WIDE = 8.0  # [σ] of the drift; ten recordings of each of five arms have a limit of 5
_ORDER: dict[Level, int] = {'bad': 0, 'caution': 1, 'good': 2}


def write_table(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write a row for each recording: its state, its errors, and every parameter with its standard deviation.

    Raises a DataError if the file cannot be written.
    """
    rows = [_row(outcome) for outcome in outcomes]
    heads = dict.fromkeys(head for row in rows for head in row)
    write_columns(path, {head: [str(row.get(head, '')) for row in rows] for head in heads})


def date_of(time: float | None) -> str:
    """Return a time [s since 1970] as a date, 2026-05-31 14:00 (UTC); empty for None."""
    return '' if time is None else datetime.fromtimestamp(time, timezone.utc).strftime('%Y-%m-%d %H:%M')


def _row(outcome: Outcome) -> dict[str, object]:
    entry, result = outcome.entry, outcome.result
    row: dict[str, object] = {
        'arm': entry.arm,
        'recording': entry.name,
        'file': entry.recording,
        'time': date_of(entry.time),
        'state': outcome.state,
        'reason': outcome.reason,
        'seconds': round(outcome.seconds, 2),
        'errors on': '',
        'relative error [%]': '',
        'weakest joint': '',
        'error by the previous result [%]': '' if outcome.finding is None else f'{outcome.finding.error:.4g}',
        'change': '' if outcome.finding is None else outcome.finding.cause,
        'friction model': '',
    }
    if result is None:
        return row
    on, metrics = judged(result)
    row |= {
        'errors on': on,
        'relative error [%]': f'{metrics.relative_error_total:.4g}',
        'weakest joint': metrics.joint_names[int(metrics.match.argmin())],
        'friction model': result.friction.name,
    }
    for name, value, std, base_unit in zip(
        result.base_names, result.base_values, result.base_std, result.base_units, strict=True
    ):
        row |= {f'{name} [{base_unit}]': f'{value:.8g}', f'std of {name}': f'{std:.4g}'}
    for j, joint in enumerate(result.joint_names):
        for k, term in enumerate(result.friction_names):
            name = f'{term} {joint}'
            row |= {
                f'{name} [{result.friction_units[j][k]}]': f'{result.friction_values[j, k]:.8g}',
                f'std of {name}': f'{result.friction_std[j, k]:.4g}',
            }
    return row


def fleet_report(outcomes: Sequence[Outcome], title: str = 'Fleet') -> Report:
    """Return the page of a fleet; the outcomes of each arm are in the order of time."""
    changes = changes_of(series_of(outcomes))
    arms: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        arms[outcome.entry.arm].append(outcome)
    rows = sorted((_arm(name, found, changes) for name, found in arms.items()), key=lambda each: each[0])
    good = sum(level == 'good' for _, level, _ in rows)
    failed = sum(outcome.result is None for outcome in outcomes)
    refused = sum(outcome.state == 'not usable' for outcome in outcomes)
    moved = [change for change in changes if change.moved]
    apart = [change for change in changes if change.outlying]
    by_arm = Table(
        'Arm by arm',
        ('Arm', '#Usable', 'Last', '#Torque error, last usable', 'Finding'),
        (row for _, _, row in rows),
        (level for _, level, _ in rows),
        reading='Red: the last recording failed, or its result is not usable, or the torque of a recording is not what '
        'the arm did before, with the cause. Amber: a parameter has drifted or stands '
        'out, or an earlier recording is not usable.',
    )

    def count(number_of: int, what: str) -> str:
        return f'{integer(number_of)} {what}{"" if number_of == 1 else "s"}'

    def first(found: Sequence[Change]) -> str:
        return f'{found[0].series.arm}: {_name(found[0])}' if found else 'parameters'

    return Report(
        kind='Fleet',
        title=title,
        summary=f'{count(len(outcomes), "recording")} of {count(len(arms), "arm")}, each identified on its own. A '
        'parameter has drifted when the straight line through its values over time changes by more than their scatter '
        'explains. An arm stands out when its last value is too far from the median of the arms. In a fleet where '
        f'nothing changes, each of these two tests gives a false alarm on one page in {1.0 / FALSE_ALARM:.0f}.',
        verdict=_verdict(rows, failed, refused, changes),
        facts=(
            ('Arms', integer(len(arms)), f'{good} without a finding'),
            ('Recordings', integer(len(outcomes)), f'{integer(failed)} failed, {integer(refused)} not usable'),
            ('Drifted', integer(len(moved)), first(moved)),
            ('Apart from the others', integer(len(apart)), first(apart)),
        ),
        sections={
            'Arms': (by_arm,),
            'Changes': _change_items(changes) if changes else (),
            'Recordings': (*_error_figure(arms, rows), _recording_table(outcomes)),
        },
    )


def _name(change: Change) -> str:
    return short_name(change.series.parameter)


def _arm(name: str, outcomes: Sequence[Outcome], changes: Sequence[Change]) -> _Row:
    """Return the sort key of an arm, its level, and its row of the table."""
    own = [change for change in changes if change.series.arm == name]
    moved = []
    for change in own:
        if change.moved:
            share = 100.0 * (change.last - change.first) / abs(change.first) if change.first else np.inf
            moved.append(f'{_name(change)} {number(share, 2)} % ({number(change.drift, 2)} σ)')
    apart = [
        f'{_name(change)} {number(change.last)} {unit(change.series.unit)} ({number(change.apart, 2)} σ)'
        for change in own
        if change.outlying
    ]
    last = outcomes[-1]
    usable = [outcome for outcome in outcomes if outcome.usable]
    found = [(each.entry.name, each.finding) for each in outcomes if each.finding is not None and each.finding.cause]
    said = [f'{name}: {finding.cause}.' for name, finding in found[-2:]]
    level: Level = 'caution' if moved or apart or len(usable) < len(outcomes) else 'good'
    if found or not last.usable:
        level = 'bad'
    if not last.usable:
        reason = f'{"failed" if last.result is None else "is not usable"}: {last.reason}'
        said.append(f'The last recording {reason.removesuffix(".")}.')
    elif len(usable) < len(outcomes):
        said.append(f'{len(outcomes) - len(usable)} of {len(outcomes)} recordings are not usable.')
    if moved:
        said.append(f'Drifted: {listed(moved, 3)}.')
    if apart:
        said.append(f'Apart from the others: {listed(apart, 3)}.')
    result = usable[-1].result if usable else None
    scores = [0.0 if last.usable else np.inf, *(change.score for change in own), *(each.score for _, each in found)]
    row = (
        name,
        f'{len(usable)} of {len(outcomes)}',
        date_of(last.entry.time)[:10] or last.entry.name,
        '–' if result is None else percent(judged(result)[1].relative_error_total),
        ' '.join(said) or 'Nothing.',
    )
    return (_ORDER[level], -max(scores), name), level, row


def _verdict(rows: Sequence[_Row], failed: int, refused: int, changes: Sequence[Change]) -> Verdict:
    named = [row[0] for _, level, row in rows if level != 'good']
    reasons = []
    if named:
        order = ', the most urgent first' if len(named) > 1 else ''
        reasons.append(f'To look at{order}: {listed(named)}.')
    if failed or refused:
        reasons.append(
            f'Recordings that failed: {integer(failed)}. Results that are not usable: {integer(refused)}. The table of '
            'recordings gives the reasons.'
        )
    bad = [key for key, level, _ in rows if level == 'bad']
    without = sum(np.isinf(score) for _, score, _ in bad)
    if without:
        headline = f'No usable result from the last recording of {without} of {len(rows)} arms'
        return Verdict(level='bad', headline=headline, reasons=tuple(reasons))
    if reasons:
        headline = f'{len(named)} of {len(rows)} arms to look at'
        return Verdict(level='bad' if bad else 'caution', headline=headline, reasons=tuple(reasons))
    reasons.append('Every recording gave a usable result.')
    limit = max((change.drift_limit for change in changes if np.isfinite(change.drift_limit)), default=np.inf)
    if np.isinf(limit):
        reasons.append('There are too few recordings to see a drift.')
    elif limit > _WIDE:
        reasons.append(f'With so few recordings, only a drift of more than {number(limit, 2)} σ would be noticed.')
    return Verdict(level='good', headline='Nothing stands out', reasons=tuple(reasons))


def _change_items(changes: Sequence[Change]) -> Iterator[Item]:
    def limit(value: float) -> str:
        return number(value, 2) if np.isfinite(value) else '–'

    heads = ('Arm', 'Parameter', '#First', '#Last', 'Unit', '#Drift [σ]', '#limit [σ]', '#From the median [σ]')
    table = Table(
        'Friction, masses and inertias: what changed most',
        (*heads, '#limit [σ]'),
        reading='First and last are values of the straight line through all recordings of the arm. Behind ± is the '
        'standard deviation of their difference, from the scatter of the recordings. Masses act on the torque only in '
        'combinations, the base parameters.',
    )
    for change in changes[:_ROWS]:
        table.add(
            change.series.arm,
            change.series.parameter,
            number(change.first, 4),
            number(change.last, 4) + (f' ± {number(change.std, 2)}' if len(change.series.values) > 1 else ''),
            unit(change.series.unit),
            number(change.drift, 2),
            limit(change.drift_limit),
            number(change.apart, 2),
            limit(change.apart_limit),
            level='caution' if change.moved or change.outlying else 'good',
        )
    yield table
    for kind, title in (('friction', 'Friction over time'), ('inertia', 'Masses and inertias over time')):
        chosen = [change for change in changes if change.series.kind == kind and len(change.series.values) > 1]
        if chosen:
            yield Figure(
                f'fleet_{kind}',
                title,
                'The parameters that changed most, each with the deviations of its values and the line '
                'through them. Grey: the other arms.',
                (_chart(change, changes) for change in chosen[:_CHARTS]),
            )


def _chart(change: Change, changes: Sequence[Change]) -> Chart:
    own = change.series
    others = [
        each.series
        for each in changes
        if each is not change
        and (each.series.parameter, each.series.unit, each.series.dated) == (own.parameter, own.unit, own.dated)
    ]
    begin = min(float(each.time[0]) for each in (own, *others)) if own.dated else 0.0
    pale = {'width': 1, 'color': '#c3c9d1'}
    time, ends = own.time - begin, np.array([change.first, change.last])
    chart = Chart(
        f'{own.arm}: {_name(change)}',
        f'days since {date_of(begin * _DAY)[:10]}' if own.dated else 'recording',
        f'[{unit(own.unit)}]',
        note=f'{number(change.drift, 2)} σ',
        alt=f'{own.parameter} of {own.arm} over {len(own.values)} recordings goes from {number(change.first, 4)} to '
        f'{number(change.last, 4)} {unit(own.unit)}.',
    )
    for each in others:
        chart.line('measured', each.time - begin, each.values, each.arm, showlegend=False, line=pale)
    bars = {'type': 'data', 'array': change.scale * own.std, 'thickness': 1.3, 'width': 3}
    chart.dots('predicted', time, own.values, own.arm, 7.0, text=list(own.names), showlegend=False, error_y=bars)
    chart.line('predicted', time[[0, -1]], ends, 'line', showlegend=False)
    return chart


def _error_figure(arms: dict[str, list[Outcome]], rows: Sequence[_Row]) -> Iterator[Figure]:
    chart = Chart('Torque error', 'recording of the arm', axis('relative error [%]', log=True), height=340)
    for k, (_, _, row) in enumerate(rows):
        results = [each.result for each in arms[row[0]]]
        errors = [(n, judged(each)[1].relative_error_total) for n, each in enumerate(results) if each is not None]
        if errors:
            place, error = np.array(errors).T
            chart.line(k, place, error, row[0], mode='lines+markers')
    if chart.traces:
        yield Figure(
            'fleet_errors',
            'Torque error of every recording',
            'Of all joints together, on held-out motion where there was some. After a jump, compare the two '
            'recordings: either the arm or the way of recording has changed.',
            [chart],
            wide=True,
        )


def _recording_table(outcomes: Sequence[Outcome]) -> Table:
    order: dict[str, Level] = {'failed': 'bad', 'not usable': 'caution', 'usable': 'good'}
    table = Table(
        'Recordings',
        ('Recording', 'Time, UTC', 'State', '#Torque error', 'on', 'Reason'),
        reading='Failed and not usable first. Each has its folder, with result.yaml and calibrated.urdf.',
    )
    for outcome in sorted(outcomes, key=lambda each: _ORDER[order[each.state]]):
        on, error = '', '–'
        if outcome.result is not None:
            on, metrics = judged(outcome.result)
            error = percent(metrics.relative_error_total, 2)
        name, level = f'{outcome.entry.arm} {outcome.entry.name}', order[outcome.state]
        table.add(name, date_of(outcome.entry.time), outcome.state, error, on, outcome.reason, level=level)
    return table
