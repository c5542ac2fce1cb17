# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The before/after table and what stands below it."""

from robotid_ros.calibration.accuracy import Accuracy
from robotid_ros.calibration.result import CalibrationResult

_COLUMNS = ('N', 'mean', 'rms', '95 %', 'max', 'x rms', 'y rms', 'z rms')


def accuracy_table(result: CalibrationResult) -> str:
    """Return the accuracy before and after, in millimetres (and degrees where orientations were measured)."""
    rows: list[tuple[str, str, Accuracy]] = [('fitted to', 'before', result.before), ('', 'after', result.after)]
    if result.before_inliers is not None and result.after_inliers is not None:
        rows += [('without outliers', 'before', result.before_inliers), ('', 'after', result.after_inliers)]
    cross = result.cross_validation
    if cross is not None:
        rows.append((f'cross-validated, {cross.folds} folds', 'before', cross.before))
        if result.terms.terms:
            rows.append(('', 'geometry', cross.geometric))
        rows.append(('', 'after', cross.after))
        if result.outliers:
            rows.append(('  without outliers', 'after', cross.after_inliers))
    if result.held_out is not None:
        rows += [('held out', 'before', result.held_out.before), ('', 'after', result.held_out.after)]
    turned = any(row.angle_rms is not None for _, _, row in rows)
    header = (
        f'{"position error [mm]":<28}{"":<9}' + f'{_COLUMNS[0]:>6}' + ''.join(f'{name:>9}' for name in _COLUMNS[1:])
    )
    lines = [header + (f'{"angle rms [deg]":>17}' if turned else '')]
    for title, stage, row in rows:
        values = (row.mean, row.rms, row.percentile_95, row.max, *row.axis_rms)
        line = f'{title:<28}{stage:<9}{row.count:>6}' + ''.join(f' {1e3 * value:>8.4g}' for value in values)
        if row.angle_rms is not None:
            line += f'{57.29577951308232 * row.angle_rms:>17.4g}'
        lines.append(line)
    return '\n'.join(lines)


def summary(result: CalibrationResult) -> str:
    """Return what a user should know besides the table, a line each."""
    known = result.points.std is not None
    noise = f'{result.noise:.3g} times the given deviations' if known else f'{1e3 * result.noise:.3g} mm per coordinate'
    count = f'{result.identifiable} independent parameters (of {result.structural} with unlimited poses)'
    lines = [f'{count}, condition number {result.condition_number:.3g}, noise {noise}']
    fixed = [p.name for p in result.parameters if p.reason]
    if fixed:
        lines.append(f'left at nominal: {", ".join(fixed)} (why: result.yaml, under fixed)')
    if result.terms.terms:
        lines.append(
            f'joint terms that lower the cross-validated error: {", ".join(term.name for term in result.terms.terms)}'
        )
    if result.outliers:
        rows = ', '.join(str(outlier.index + 1) for outlier in result.outliers[:20])
        more = f' and {len(result.outliers) - 20} more' if len(result.outliers) > 20 else ''
        lines.append(f'outliers: measurements {rows}{more}')
    if result.held_out is not None and result.held_out.fitted:
        lines.append(f'fitted to the held-out measurements themselves: {", ".join(result.held_out.fitted)}')
    lines += [f'warning: {text}' for text in result.warnings]
    return '\n'.join(lines)
