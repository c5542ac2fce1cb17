# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""How well a motion excited an arm: condition numbers, and where it went."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.report.content import Fact, Figure, Level, Table, quantities, words
from robotid_ros.report.plot import Chart, Trace, axis, dots, rule
from robotid_ros.report.wording import number, units_of

_GOOD_CONDITION = 30.0
_POOR_CONDITION = 200.0


def condition_level(scaled: float) -> Level:
    """Return the traffic light of a column-scaled condition number."""
    return 'good' if scaled <= _GOOD_CONDITION else 'caution' if scaled <= _POOR_CONDITION else 'bad'


def condition_fact(scaled: float, si: float) -> Fact:
    """Return a condition number as a fact, column-scaled and in SI units."""
    return Fact(label='Condition number', value=number(scaled), note=f'column-scaled; {number(si)} in SI')


def condition_table(result: IdentificationResult) -> Table:
    """Return the condition number of the training data, with its light."""
    return Table(
        caption='Condition number of the observation matrix',
        columns=(*words('Of'), *quantities('SI units', 'Column-scaled')),
        rows=(('Training data', number(result.condition_si), number(result.condition_scaled)),),
        levels=(condition_level(result.condition_scaled),),
        reading='The ratio of the largest singular value of the matrix to the smallest: by how much more the noise '
        'disturbs the combination of parameters that was excited worst than the one that was excited best. The '
        f'scaled number does not depend on units: below {_GOOD_CONDITION:.0f} is good, above {_POOR_CONDITION:.0f} '
        'some parameters are not determined.',
    )


def coverage_figure(dataset: Dataset, joint_types: Sequence[str], limits: JointLimits) -> Figure:
    """Return velocity against position, one chart per joint, with the limits where the motion comes near them."""
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        _, speed, length = units_of(joint_types[j])
        q, dq = dataset.q[:, j], dataset.dq[:, j]
        fast = float(np.abs(dq).max())
        charts.append(
            Chart(
                title=joint,
                note=f'range {number(np.ptp(q))} {length}, speed to {number(fast)} {speed}',
                alt=f'{joint}: positions from {number(q.min())} to {number(q.max())} {length} at speeds '
                f'up to {number(fast)} {speed}.',
                traces=(dots('predicted', q, dq, 'visited', showlegend=False),),
                layout={
                    'xaxis': axis(f'position [{length}]'),
                    'yaxis': axis(f'velocity [{speed}]'),
                    'shapes': _near(limits, j, q, dq),
                },
                height=250,
            )
        )
    return Figure(
        name='coverage',
        caption='Where the motion went',
        reading='Wide clouds on both sides of zero velocity determine gravity and friction; a joint that hardly moves '
        'cannot be identified. Dotted lines are limits of the arm.',
        charts=tuple(charts),
    )


def _near(limits: JointLimits, j: int, q: Array, dq: Array) -> list[Trace]:
    reach, fast = 0.3 * float(np.ptp(q)), float(np.abs(dq).max())
    rules = [
        rule('x', float(bound))
        for bound in (limits.lower[j], limits.upper[j])
        if q.min() - reach < bound < q.max() + reach
    ]
    if limits.velocity[j] < 1.3 * fast:
        rules += [rule('y', sign * float(limits.velocity[j])) for sign in (-1.0, 1.0)]
    return rules
