# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Tables on the terminal."""

from collections.abc import Mapping, Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.identification import IdentificationResult, Metrics
from robotid_ros.report.subject import friction_used


def joint_table(joints: Sequence[str], columns: Mapping[str, Array], digits: int = 3) -> str:
    """Return a table with a row per joint and a column per figure."""
    width = max(len(name) for name in ('joint', *joints))
    widths = [max(len(head), 8) for head in columns]
    lines = [f'{"joint":<{width}}  ' + '  '.join(f'{h:>{w}}' for h, w in zip(columns, widths, strict=True))]
    for k, joint in enumerate(joints):
        cells = (f'{values[k]:>{w}.{digits}f}' for values, w in zip(columns.values(), widths, strict=True))
        lines.append(f'{joint:<{width}}  ' + '  '.join(cells))
    return '\n'.join(lines)


def metrics_table(metrics: Mapping[str, Metrics]) -> str:
    """Return rms error [N m] and match [%] per joint, for each set."""
    columns: dict[str, Array] = {}
    for name, found in metrics.items():
        columns[f'{name} rmse'] = found.rmse
        columns[f'{name} match %'] = found.match
    joints = next(iter(metrics.values())).joint_names
    totals = ', '.join(f'{name} {found.relative_error_total:.2f} %' for name, found in metrics.items())
    return (
        f'{joint_table(joints, columns)}\nrmse in N m, or N of a sliding joint; relative error of all joints: {totals}'
    )


def parameter_table(result: IdentificationResult) -> str:
    """Return base and friction parameters with their standard deviations."""
    rows = [
        (name, value, std, unit)
        for name, value, std, unit in zip(
            result.base_names, result.base_values, result.base_std, result.base_units, strict=True
        )
    ]
    for j, k in np.argwhere(friction_used(result)):
        name = f'{result.friction_names[k]} {result.joint_names[j]}'
        rows.append((name, result.friction_values[j, k], result.friction_std[j, k], result.friction_units[j][k]))
    width = min(max(len(row[0]) for row in rows), 60)
    return '\n'.join(f'{name[:width]:<{width}}  {value:12.5g} ± {std:<9.2g} {unit}' for name, value, std, unit in rows)
