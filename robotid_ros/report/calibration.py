# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The report of a kinematic calibration."""

from collections.abc import Iterator

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.accuracy import Accuracy
from robotid_ros.calibration.result import CalibrationResult, ParameterEstimate
from robotid_ros.report.chart import Axis, Chart, Dots, Line, Role, Rule
from robotid_ros.report.content import Column, Fact, Figure, Item, Level, Report, Section, Table, Verdict
from robotid_ros.report.decimate import spread
from robotid_ros.report.numbers import integer, number, percent
from robotid_ros.report.parameters import interval_chart
from robotid_ros.report.wording import sentence

__all__ = ['calibration_report']

_NORMAL_95 = 1.96
_ROWS = 14
_DOTS = 800
_SCALES = {'m': ('mm', 1e3, 'Lengths'), 'rad': ('mrad', 1e3, 'Angles')}


def calibration_report(result: CalibrationResult) -> Report:
    """Return the report of a calibration.

    Parameters
    ----------
    result : CalibrationResult
    """
    name, before, after = _fairest(result)
    estimated = [p for p in result.parameters if not p.reason]
    summary = (
        f'The geometry of {result.robot.name} was fitted to {integer(result.before.count)} measurements: '
        f'{len(estimated)} parameters of the arm were estimated together with the measurement frame and the target '
        f'({result.identifiable} independent parameters in all). Judged on {name}, the position error falls from '
        f'{_mm(before.rms)} to {_mm(after.rms)} mm rms.'
    )
    return Report(
        kind='Kinematic calibration',
        title=result.robot.name,
        summary=summary,
        verdict=_verdict(result, name, before, after),
        facts=(
            Fact(label=f'Error before, {name}', value=f'{_mm(before.rms)} mm', note=f'largest {_mm(before.max)} mm'),
            Fact(label=f'Error after, {name}', value=f'{_mm(after.rms)} mm', note=f'largest {_mm(after.max)} mm'),
            Fact(
                label='Parameters found',
                value=str(result.identifiable),
                note=f'{result.structural} with unlimited poses',
            ),
            Fact(
                label='Condition number',
                value=number(result.condition_number),
                note=f'observability index O1 {number(result.observability_index)}',
            ),
        ),
        sections=(
            Section(title='Accuracy', items=tuple(_accuracy_items(result))),
            Section(title='Corrections', items=tuple(_correction_items(result, estimated))),
        ),
    )


def _fairest(result: CalibrationResult) -> tuple[str, Accuracy, Accuracy]:
    """Return the accuracy that says most about poses not yet seen, and what it was measured on."""
    if result.held_out is not None:
        return 'held-out poses', result.held_out.before, result.held_out.after
    if result.cross_validation is not None:
        return 'cross-validation', result.cross_validation.before, result.cross_validation.after
    return 'the poses used', result.before, result.after


def _verdict(result: CalibrationResult, name: str, before: Accuracy, after: Accuracy) -> Verdict:
    gain = f'On {name}, the position error falls from {_mm(before.rms)} to {_mm(after.rms)} mm rms.'
    if not result.converged:
        return Verdict(level='bad', headline='Not usable', reasons=(f'The fit did not converge: {result.reason}.',))
    if after.rms >= before.rms:
        reason = (
            f'On {name}, the error is {_mm(before.rms)} mm rms before and {_mm(after.rms)} mm after: '
            'keep the nominal geometry.'
        )
        return Verdict(level='bad', headline='No improvement', reasons=(reason,))
    cautions = [sentence(warning) for warning in result.warnings]
    if result.held_out is None and result.cross_validation is None:
        cautions.append('No poses were left to check on, so the error of new poses is not known.')
    if result.outliers:
        count = len(result.outliers)
        cautions.append(
            f'{count} measurement{"s" if count > 1 else ""} of {len(result.points)} did not fit; see below.'
        )
    level: Level = 'caution' if cautions else 'good'
    headline = 'Usable with care' if cautions else 'Usable'
    return Verdict(level=level, headline=headline, reasons=(gain, *cautions))


def _accuracy_items(result: CalibrationResult) -> Iterator[Item]:
    rows = [('Poses used, before', result.before), ('Poses used, after', result.after)]
    pair = (result.residual_before, result.residual)
    where = 'poses used'
    if result.cross_validation is not None:
        cross = result.cross_validation
        rows += [('Cross-validation, before', cross.before), ('Cross-validation, after', cross.after)]
        pair, where = (cross.residual_before, cross.residual), 'cross-validation'
    if result.held_out is not None:
        held = result.held_out
        rows += [('Held-out poses, before', held.before), ('Held-out poses, after', held.after)]
        pair, where = (held.residual_before, held.residual), 'held-out poses'
    yield _accuracy_table(rows)
    seen = np.isfinite(pair[0][:, 0]) & np.isfinite(pair[1][:, 0])
    first, second = 1e3 * pair[0][seen, :3], 1e3 * pair[1][seen, :3]
    yield Figure(
        name='accuracy',
        caption=f'Position error of {where}',
        reading='The further left and the steeper the blue curve, the better; where it reaches 100 % is the largest '
        'error.',
        charts=(_cumulative(first, second, where),),
    )
    yield Figure(
        name='residuals',
        caption=f'Position error along the axes, {where}',
        reading='Blue should be a thin band around zero without trend; single far points are outliers.',
        charts=tuple(_along_axis(first[:, k], second[:, k], 'xyz'[k]) for k in range(3)),
    )
    if result.outliers:
        yield Table(
            caption='Measurements that did not fit',
            columns=(
                Column(name='Row', numeric=False),
                Column(name='Error', unit='mm'),
                Column(name='Weight', unit='%'),
            ),
            rows=tuple((str(o.index + 1), _mm(o.distance), f'{100 * o.weight:.0f}') for o in result.outliers),
            reading='Measured again or checked, they may be mistakes of the measurement; they count by their weight '
            'only.',
        )


def _accuracy_table(rows: list[tuple[str, Accuracy]]) -> Table:
    columns = [Column(name='Measured on', numeric=False), Column(name='Poses')]
    columns += [Column(name=head, unit='mm') for head in ('Mean', 'RMS', '95 %', 'Largest', 'x', 'y', 'z')]
    angles = any(accuracy.angle_rms is not None for _, accuracy in rows)
    if angles:
        columns += [Column(name='Angle', unit='mrad, rms')]
    cells = []
    for name, each in rows:
        row = [name, integer(each.count), _mm(each.mean), _mm(each.rms), _mm(each.percentile_95), _mm(each.max)]
        row += [_mm(value) for value in each.axis_rms]
        if angles:
            row.append('–' if each.angle_rms is None else number(1e3 * each.angle_rms))
        cells.append(tuple(row))
    return Table(
        caption='Position error before and after',
        columns=tuple(columns),
        rows=tuple(cells),
        reading='Before: nominal geometry with the best-fitting frame and target. x, y, z are rms along the axes of '
        'the measurement frame.',
    )


def _cumulative(before: Array, after: Array, where: str) -> Chart:
    lines, medians = [], []
    pairs: tuple[tuple[Role, str, Array], ...] = (('prior', 'before', before), ('predicted', 'after', after))
    for role, label, residual in pairs:
        distance = np.sort(np.linalg.norm(residual, axis=1))
        keep = spread(len(distance))
        share = 100.0 * (np.arange(len(distance)) + 1.0) / len(distance)
        lines.append(Line(role=role, x=distance[keep], y=share[keep], label=label))
        medians.append(float(np.median(distance)))
    smallest = max(min(float(line.x[0]) for line in lines), 1e-4 * max(float(line.x[-1]) for line in lines), 1e-12)
    return Chart(
        title=where,
        note=f'median {number(medians[0])} and {number(medians[1])} mm',
        alt=f'Share of poses with an error below a distance; the median falls from {number(medians[0])} to '
        f'{number(medians[1])} mm.',
        x=Axis(label='position error [mm]', log=True, limits=(smallest, 1.2 * float(lines[0].x[-1]))),
        y=Axis(label='poses with less error [%]', limits=(0.0, 103.0)),
        series=tuple(lines),
        height=0.66,
    )


def _along_axis(before: Array, after: Array, axis: str) -> Chart:
    keep = spread(len(before), _DOTS)
    row = (keep + 1).astype(np.float64)
    rms = [float(np.sqrt(np.mean(values**2))) for values in (before, after)]
    return Chart(
        title=f'{axis} axis',
        note=f'rms {number(rms[0])} and {number(rms[1])} mm',
        alt=f'Error along {axis} of each measurement; its rms falls from {number(rms[0])} to {number(rms[1])} mm.',
        x=Axis(label='measurement'),
        y=Axis(label='error [mm]'),
        series=(
            Rule(axis='y', at=0.0),
            Dots(role='measured', x=row, y=before[keep], label='before', size=2.2),
            Dots(role='predicted', x=row, y=after[keep], label='after', size=2.2),
        ),
    )


def _correction_items(result: CalibrationResult, estimated: list[ParameterEstimate]) -> Iterator[Item]:
    if estimated:
        yield Figure(
            name='corrections',
            caption='Corrections with 95 % intervals',
            reading='A bar that does not touch zero is a real deviation of this arm; one that does may be left as it '
            'is.',
            charts=tuple(_correction_charts(estimated)),
        )
        yield Table(
            caption='Parameters estimated',
            columns=(
                Column(name='Parameter', numeric=False),
                Column(name='Nominal'),
                Column(name='Calibrated'),
                Column(name='Unit', numeric=False),
                Column(name='Correction'),
                Column(name='Deviation', unit='1 σ'),
                Column(name='Unit', numeric=False),
            ),
            rows=tuple(_parameter_row(p) for p in estimated),
        )
    fixed = [p for p in result.parameters if p.reason]
    if fixed:
        yield Table(
            caption='Parameters left at their nominal value',
            columns=(Column(name='Parameter', numeric=False), Column(name='Reason', numeric=False)),
            rows=tuple((p.name, p.reason) for p in fixed),
        )
    share = 100.0 * sum(abs(p.correction) > _NORMAL_95 * (p.std or np.inf) for p in estimated) / max(len(estimated), 1)
    yield f'{percent(share, 0)} of the estimated parameters differ from their nominal value beyond doubt.'


def _parameter_row(parameter: ParameterEstimate) -> tuple[str, ...]:
    name, scale, _ = _SCALES.get(parameter.unit, (parameter.unit, 1.0, ''))
    return (
        parameter.name,
        f'{parameter.nominal:.6f}'.replace('-', '−'),
        f'{parameter.value:.6f}'.replace('-', '−'),
        parameter.unit,
        number(scale * parameter.correction),
        number(float('nan') if parameter.std is None else scale * parameter.std, 2),
        name,
    )


def _correction_charts(estimated: list[ParameterEstimate]) -> Iterator[Chart]:
    for raw in dict.fromkeys(p.unit for p in estimated):
        name, scale, title = _SCALES.get(raw, (raw, 1.0, 'Joint terms'))
        members = [p for p in estimated if p.unit == raw]
        parts = -(-len(members) // _ROWS)
        for part in range(parts):
            piece = members[part * len(members) // parts : (part + 1) * len(members) // parts]
            value = scale * np.array([p.correction for p in piece])
            std = scale * np.array([np.nan if p.std is None else p.std for p in piece])
            yield interval_chart(title, tuple(p.name for p in piece), f'correction [{name}]', value, std)


def _mm(metres: float) -> str:
    return number(1e3 * metres)
