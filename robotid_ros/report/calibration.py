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
from robotid_ros.calibration.result import CalibrationResult, ParameterEstimate
from robotid_ros.calibration.validation import Accuracy
from robotid_ros.report.content import Chart, Figure, Item, Report, Role, Table, Verdict, axis, usable
from robotid_ros.report.parameters import NORMAL_95, interval_chart
from robotid_ros.report.wording import integer, number, percent, sentence

_ROWS = 14
_SCALES = {'m': ('mm', 1e3, 'Lengths'), 'rad': ('mrad', 1e3, 'Angles')}


def calibration_report(result: CalibrationResult) -> Report:
    """Return the report of a calibration."""
    # What says most about poses not yet seen: its name, errors before and after, and residuals before and after.
    name, before, after = 'the poses used', result.before, result.after
    where, pair = 'poses used', (result.nominal.residual, result.fit.residual)
    for title, unseen in (('cross-validation', result.cross_validation), ('held-out poses', result.held_out)):
        if unseen is not None:
            name = where = title
            before, after, pair = unseen.before, unseen.after, (unseen.residual_before, unseen.residual)
    estimated = [p for p in result.parameters if not p.reason]
    return Report(
        kind='Kinematic calibration',
        title=result.robot.name,
        summary=f'The geometry of {result.robot.name} was fitted to {integer(result.before.count)} measurements: '
        f'{len(estimated)} parameters of the arm were estimated together with the measurement frame and the target '
        f'({result.identifiable} independent parameters in all). Judged on {name}, the position error falls from '
        f'{_mm(before.rms)} to {_mm(after.rms)} mm rms.',
        verdict=_verdict(result, name, before, after),
        facts=(
            (f'Error before, {name}', f'{_mm(before.rms)} mm', f'largest {_mm(before.max)} mm'),
            (f'Error after, {name}', f'{_mm(after.rms)} mm', f'largest {_mm(after.max)} mm'),
            ('Parameters found', str(result.identifiable), f'{result.structural} with unlimited poses'),
            (
                'Condition number',
                number(result.condition_number),
                f'observability index O1 {number(result.observability_index)}',
            ),
        ),
        sections={
            'Accuracy': _accuracy_items(result, where, pair),
            'Corrections': _correction_items(result, estimated),
        },
    )


def _verdict(result: CalibrationResult, name: str, before: Accuracy, after: Accuracy) -> Verdict:
    gain = f'On {name}, the position error falls from {_mm(before.rms)} to {_mm(after.rms)} mm rms.'
    if not result.fit.converged:
        return Verdict(level='bad', headline='Not usable', reasons=(f'The fit did not converge: {result.fit.reason}.',))
    if not result.determined:
        return Verdict(level='bad', headline='Not usable', reasons=(sentence(result.warnings[-1]), gain))
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
    return usable((gain,), cautions)


def _accuracy_items(result: CalibrationResult, where: str, pair: tuple[Array, Array]) -> Iterator[Item]:
    yield accuracy_table(result)
    before, after = _distance(result.nominal.residual), _distance(result.fit.residual)
    row = np.arange(1.0, len(before) + 1.0)
    error = axis('position error [mm]', log=True)
    chart = Chart('Each measurement', 'measurement', error, note=_rms(before, after), height=340)
    chart.dots('measured', row, np.maximum(before, 1e-6), 'before', size=4.5)
    chart.dots('predicted', row, np.maximum(after, 1e-6), 'after, poses fitted', size=4.5)
    yield Figure(
        'accuracy',
        'Position error of all poses',
        'The further left and the steeper a curve, the better; where it reaches 100 % is the largest error. '
        'Poses that the fit had not seen tell most.',
        (_cumulative(result), chart),
    )
    seen = np.isfinite(pair[0][:, 0]) & np.isfinite(pair[1][:, 0])
    first, second = 1e3 * pair[0][seen, :3], 1e3 * pair[1][seen, :3]
    row = np.arange(1.0, len(first) + 1.0)
    residuals = Figure(
        'residuals',
        f'Position error along the axes, {where}',
        'Blue should be a thin band around zero without trend; single far points are outliers.',
    )
    for k, name in enumerate('xyz'):
        note = _rms(first[:, k], second[:, k])
        chart = residuals.chart(f'{name} axis', 'measurement', 'error [mm]', note=note)
        chart.dots('measured', row, first[:, k], 'before', size=4.5)
        chart.dots('predicted', row, second[:, k], 'after', size=4.5)
        chart.rule('y', 0.0)
    yield residuals
    if result.outliers:
        yield Table(
            'Measurements that did not fit',
            ('Row', '#Error [mm]', '#Weight [%]'),
            ((str(k + 1), _mm(far), f'{100 * left:.0f}') for k, far, left in result.outliers),
            reading='Measured again or checked, they may be mistakes of the measurement; they count by their weight '
            'only.',
        )


def _rms(before: Array, after: Array) -> str:
    first, second = (number(float(np.sqrt(np.mean(values**2)))) for values in (before, after))
    return f'rms {first} and {second} mm'


def accuracy_table(result: CalibrationResult) -> Table:
    """Return the position errors before and after, on everything they were measured on."""
    cross, held_out = result.cross_validation, result.held_out
    rows = [('fitted to', 'before', result.before), ('fitted to', 'after', result.after)]
    if result.before_inliers is not None and result.after_inliers is not None:
        name = 'fitted to, without outliers'
        rows += [(name, 'before', result.before_inliers), (name, 'after', result.after_inliers)]
    if cross is not None:
        name = f'cross-validated, {cross.folds} folds'
        rows += [(name, 'before', cross.before), (name, 'after', cross.after)]
        rows += [(name, 'geometry alone', cross.geometric)] if result.terms.terms else []
        rows += [(f'{name}, without outliers', 'after', cross.after_inliers)] if result.outliers else []
    if held_out is not None:
        rows += [('held out', 'before', held_out.before), ('held out', 'after', held_out.after)]
    angles = any(each.angle_rms is not None for _, _, each in rows)
    lengths = [f'#{head} [mm]' for head in ('Mean', 'RMS', '95 %', 'Largest', 'x', 'y', 'z')]
    table = Table(
        'Position error before and after',
        ('Position error', '', '#Poses', *lengths, *(['#Angle [mrad, rms]'] if angles else [])),
        reading='Before: nominal geometry with the best-fitting frame and target. x, y, z are rms along the axes of '
        'the measurement frame.',
    )
    for name, stage, each in rows:
        errors = each.mean, each.rms, each.percentile_95, each.max, *each.axis_rms
        turned = '–' if each.angle_rms is None else number(1e3 * each.angle_rms)
        table.add(name, stage, integer(each.count), *map(_mm, errors), *([turned] if angles else []))
    return table


def _cumulative(result: CalibrationResult) -> Chart:
    """Return the share of poses below each error, before, after, and for poses that were not fitted."""
    curves: list[tuple[Role, str, Array, str]] = [
        ('measured', 'before', result.nominal.residual, 'solid'),
        ('predicted', 'after, poses fitted', result.fit.residual, 'solid'),
    ]
    if result.cross_validation is not None:
        curves.append(('predicted', 'after, cross-validated', result.cross_validation.residual, 'dash'))
    if result.held_out is not None:
        curves.append(('predicted', 'after, held out', result.held_out.residual, 'dot'))
    chart = Chart(
        'Share of poses with less error',
        axis('position error [mm]', log=True),
        axis('poses [%]', limits=(0.0, 103.0)),
        height=340,
    )
    medians = []
    for role, label, residual, dash in curves:
        distance = np.sort(_distance(residual))
        distance = distance[np.isfinite(distance)]
        share = 100.0 * np.arange(1.0, len(distance) + 1.0) / max(len(distance), 1)
        chart.line(role, np.maximum(distance, 1e-6), share, label, dash)
        medians.append(float(np.median(distance)))
    chart.note = f'median {number(medians[0])} and {number(medians[1])} mm'
    return chart


def _distance(residual: Array) -> Array:
    """Return the position error of each pose, shape (N,) [mm]."""
    return np.asarray(1e3 * np.linalg.norm(residual[:, :3], axis=1))


def _correction_items(result: CalibrationResult, estimated: list[ParameterEstimate]) -> Iterator[Item]:
    if estimated:
        yield Figure(
            'corrections',
            'Corrections with 95 % intervals',
            'A bar that does not touch zero is a real deviation of this arm; one that does may be left as it is.',
            _correction_charts(estimated),
        )
        yield Table(
            'Parameters estimated',
            ('Parameter', '#Nominal', '#Calibrated', 'Unit', '#Correction', '#Deviation [1 σ]', 'Unit'),
            map(_parameter_row, estimated),
        )
    fixed = [(p.name, p.reason) for p in result.parameters if p.reason]
    if fixed:
        yield Table('Parameters left at their nominal value', ('Parameter', 'Reason'), fixed)
    share = 100.0 * sum(abs(p.correction) > NORMAL_95 * (p.std or np.inf) for p in estimated) / max(len(estimated), 1)
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


def workspace_report(points: Array) -> Report:
    """Return the report of a sampled workspace, shape (N, 3) [m]: where the tool can be, from three sides."""
    reading = 'Each point is the tool at one random configuration within the joint limits.'
    figure = Figure('workspace', 'Positions of the tool', reading)
    for first, second, side in ((0, 1, 'from above'), (0, 2, 'from the front'), (1, 2, 'from the side')):
        ends = ', '.join(
            f'{"xyz"[k]} from {number(points[:, k].min())} to {number(points[:, k].max())} m' for k in (first, second)
        )
        height = axis(f'{"xyz"[second]} [m]', scaleanchor='x', constrain='domain')
        alt = f'Positions of the tool {side}: {ends}.'
        chart = figure.chart(side, f'{"xyz"[first]} [m]', height, alt=alt, height=340)
        chart.dots('predicted', points[:, first], points[:, second], 'tool', showlegend=False)
    reach = f'{number(float(np.linalg.norm(points, axis=1).max()))} m'
    return Report(
        kind='Workspace',
        title='Workspace',
        summary=f'{integer(len(points))} random configurations within the joint limits; the tool reaches {reach}.',
        facts=(('Reach', reach, ''), ('Samples', integer(len(points)), '')),
        sections={'Where the tool can be': (figure,)},
    )
