# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The replay of a recording in the simulator: motion errors of each joint, before and after."""

from collections.abc import Iterator

import numpy as np

from robotid_ros.export.replay import READY, Replayed
from robotid_ros.report.content import Figure, Item, Table, number, percent, quantities, sentence, words
from robotid_ros.report.plot import Chart, axis, intervals, rule


def replay_items(found: Replayed) -> Iterator[Item]:
    """Yield the verdict, the errors of each joint as a chart and as a table, and the servos where there are some."""
    yield sentence(found.verdict)
    yield _figure(found)
    errors = {'Error [before]': found.described, 'Error [after]': found.identified}
    more = {'All friction': found.whole, 'Possible': found.possible}
    errors |= {name: error for name, error in more.items() if error is not None}
    rows = []
    for j, joint in enumerate(found.joint_names):
        cells = [percent(error.relative[j]) for error in errors.values()]
        cells += [number(error.rms[j]) for error in (found.described, found.identified)]
        rows.append((joint, *cells))
    yield Table(
        caption='Motion errors',
        columns=(*words('Joint'), *quantities(*errors, 'RMS [before]', 'RMS [after]')),
        rows=tuple(rows),
        levels=tuple('good' if value < READY else 'caution' for value in found.identified.relative),
        reading='Difference of the simulated from the recorded positions, as a part of the motion within the windows, '
        'and its root mean square [rad or m]. Before: the arm as described; after: as the exported MJCF holds it; '
        'all friction: with what no MJCF holds; possible: of an arm exactly as identified, driven by a torque '
        'signal of the recorded bandwidth.',
    )
    if found.servo is not None:
        yield _servos(found)


def _figure(found: Replayed) -> Figure:
    errors = {'described': found.described.relative, 'identified': found.identified.relative}
    rows = found.joint_names
    low = min(float(each.min()) for each in errors.values())
    high = max(float(each.max()) for each in errors.values())
    chart = Chart(
        title='Error of the motion',
        note=f'windows of {found.window:g} s',
        alt='Motion error of each joint: '
        + '; '.join(
            f'{name} {number(found.described.relative[j])} % before, {number(found.identified.relative[j])} % after'
            for j, name in enumerate(rows)
        ),
        traces=(
            intervals('prior', errors['described'], 'before: as described', rows, shift=0.12),
            intervals('predicted', errors['identified'], 'after: as identified', rows, shift=-0.12),
        ),
        layout={
            'xaxis': axis('error [%]', log=True, limits=(0.5 * max(low, 1e-3), 2.0 * max(high, READY))),
            'yaxis': axis(rows=rows),
            'shapes': [rule('x', READY)],
        },
        height=90 + 34 * len(rows),
    )
    return Figure(
        name='replay',
        caption='Does the simulated arm move as the recorded one did?',
        reading=f'Left of the dotted line, at {READY:g} %, a joint is ready for simulation.',
        charts=(chart,),
        wide=True,
    )


def _servos(found: Replayed) -> Table:
    servo = found.servo
    assert servo is not None
    columns = np.stack([servo.stiffness, servo.damping, 100.0 * servo.share, servo.match], axis=1)
    return Table(
        caption='Servos',
        columns=(
            *words('Joint'),
            *quantities('Stiffness [N·m/rad]', 'Damping [N·m·s/rad]', 'Model torque [%]', 'Match [%]'),
        ),
        rows=tuple(
            (joint, *(number(value) for value in row)) for joint, row in zip(found.joint_names, columns, strict=True)
        ),
        reading='Found in the first half of the recording. '
        f'The command arrives {number(1e3 * servo.delay, 2)} ms late.',
    )
