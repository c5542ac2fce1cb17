# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The table of a fleet, and its page: verdicts, what drifted, what stands out; arms with findings first."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import TypeAlias

import numpy as np

from robotid_ros.files import write_text
from robotid_ros.fleet.drift import FALSE_ALARM, Change, changes_of, series_of
from robotid_ros.fleet.outcome import Outcome
from robotid_ros.report.content import (
    Chart,
    Figure,
    Item,
    Level,
    Report,
    Table,
    Verdict,
    axis,
    chart,
    curve,
    dots,
    integer,
    line,
    listed,
    number,
    percent,
    quantities,
    sections_of,
    unit,
    words,
)
from robotid_ros.report.parameters import short_name
from robotid_ros.report.subject import judged

_Row: TypeAlias = tuple[tuple[int, float, str], Level, tuple[str, ...]]
_CHARTS = 9  # parameters over time that are drawn, the most conspicuous
_ROWS = 40  # of the table of changes
_WIDE = 8.0  # [σ] of the drift; ten recordings of each of five arms have a limit of 5
_DAY = 86400.0
_ORDER: dict[Level, int] = {'bad': 0, 'caution': 1, 'good': 2}


def write_table(outcomes: Sequence[Outcome], path: Path) -> None:
    """Write a row for each recording: its state, its errors, and every parameter with its standard deviation.

    Raises
    ------
    DataError
        If the file cannot be written.
    """
    rows = [_row(outcome) for outcome in outcomes]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, heads, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


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
        'friction model': result.friction_name,
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
        sections=sections_of(
            ('Arms', (_arm_table(rows),)),
            ('Changes', _change_items(changes) if changes else ()),
            ('Recordings', (*_error_figure(arms, rows), _recording_table(outcomes))),
        ),
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


def _arm_table(rows: Sequence[_Row]) -> Table:
    return Table(
        caption='Arm by arm',
        columns=(
            *words('Arm'),
            *quantities('Usable'),
            *words('Last'),
            *quantities('Torque error, last usable'),
            *words('Finding'),
        ),
        rows=tuple(row for _, _, row in rows),
        levels=tuple(level for _, level, _ in rows),
        reading='Red: the last recording failed, or its result is not usable, or the torque of a recording is not what '
        'the arm did before, with the cause. Amber: a parameter has drifted or stands '
        'out, or an earlier recording is not usable.',
    )


def _change_items(changes: Sequence[Change]) -> Iterator[Item]:
    def limit(value: float) -> str:
        return number(value, 2) if np.isfinite(value) else '–'

    shown = changes[:_ROWS]
    yield Table(
        caption='Friction, masses and inertias: what changed most',
        columns=(
            *words('Arm', 'Parameter'),
            *quantities('First', 'Last'),
            *words('Unit'),
            *quantities('Drift [σ]', 'limit [σ]', 'From the median [σ]', 'limit [σ]'),
        ),
        rows=tuple(
            (
                change.series.arm,
                change.series.parameter,
                number(change.first, 4),
                number(change.last, 4) + (f' ± {number(change.std, 2)}' if len(change.series.values) > 1 else ''),
                unit(change.series.unit),
                number(change.drift, 2),
                limit(change.drift_limit),
                number(change.apart, 2),
                limit(change.apart_limit),
            )
            for change in shown
        ),
        levels=tuple('caution' if change.moved or change.outlying else 'good' for change in shown),
        reading='First and last are values of the straight line through all recordings of the arm. Behind ± is the '
        'standard deviation of their difference, from the scatter of the recordings. Masses act on the torque only in '
        'combinations, the base parameters.',
    )
    for kind, title in (('friction', 'Friction over time'), ('inertia', 'Masses and inertias over time')):
        chosen = [change for change in changes if change.series.kind == kind and len(change.series.values) > 1]
        if chosen:
            yield Figure(
                name=f'fleet_{kind}',
                caption=title,
                reading='The parameters that changed most, each with the deviations of its values and the line '
                'through them. Grey: the other arms.',
                charts=tuple(_chart(change, changes) for change in chosen[:_CHARTS]),
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
    points = dots('predicted', time, own.values, own.arm, 7.0, text=list(own.names), showlegend=False)
    points['error_y'] = {'type': 'data', 'array': change.scale * own.std, 'thickness': 1.3, 'width': 3}
    return chart(
        f'{own.arm}: {_name(change)}',
        f'days since {date_of(begin * _DAY)[:10]}' if own.dated else 'recording',
        f'[{unit(own.unit)}]',
        *(line('measured', each.time - begin, each.values, each.arm, showlegend=False, line=pale) for each in others),
        points,
        line('predicted', time[[0, -1]], ends, 'line', showlegend=False),
        note=f'{number(change.drift, 2)} σ',
        alt=f'{own.parameter} of {own.arm} over {len(own.values)} recordings goes from {number(change.first, 4)} to '
        f'{number(change.last, 4)} {unit(own.unit)}.',
    )


def _error_figure(arms: dict[str, list[Outcome]], rows: Sequence[_Row]) -> Iterator[Figure]:
    traces = []
    for k, (_, _, row) in enumerate(rows):
        results = [each.result for each in arms[row[0]]]
        errors = [(n, judged(each)[1].relative_error_total) for n, each in enumerate(results) if each is not None]
        if errors:
            place, error = np.array(errors).T
            traces.append(curve(k, place, error, row[0], mode='lines+markers'))
    if traces:
        scale = axis('relative error [%]', log=True)
        yield Figure(
            name='fleet_errors',
            caption='Torque error of every recording',
            reading='Of all joints together, on held-out motion where there was some. After a jump, compare the two '
            'recordings: either the arm or the way of recording has changed.',
            charts=(chart('Torque error', 'recording of the arm', scale, *traces, height=340),),
            wide=True,
        )


def _recording_table(outcomes: Sequence[Outcome]) -> Table:
    order: dict[str, Level] = {'failed': 'bad', 'not usable': 'caution', 'usable': 'good'}
    shown = sorted(outcomes, key=lambda each: _ORDER[order[each.state]])
    rows = []
    for outcome in shown:
        on, error = '', '–'
        if outcome.result is not None:
            on, metrics = judged(outcome.result)
            error = percent(metrics.relative_error_total, 2)
        name = f'{outcome.entry.arm} {outcome.entry.name}'
        rows.append((name, date_of(outcome.entry.time), outcome.state, error, on, outcome.reason))
    return Table(
        caption='Recordings',
        columns=(*words('Recording', 'Time, UTC', 'State'), *quantities('Torque error'), *words('on', 'Reason')),
        rows=tuple(rows),
        levels=tuple(order[outcome.state] for outcome in shown),
        reading='Failed and not usable first. Each has its folder, with result.yaml and calibrated.urdf.',
    )
