# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The report of a free-floating run: what the captured target weighs, and how soon that was known."""

from collections.abc import Iterator, Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.identification import TargetIdentification
from robotid_ros.free_floating.measurement import FloatingMeasurement
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.transforms import rotation_of_quaternion, vector_of_rotation
from robotid_ros.report.content import Chart, Figure, Item, Report, Role, Table, Verdict, axis, condition_fact, usable
from robotid_ros.report.wording import integer, number, percent, sentence, unit

_NAMES = ('m', 'cx', 'cy', 'cz', 'Ixx', 'Ixy', 'Ixz', 'Iyy', 'Iyz', 'Izz')
_UNITS = ('kg', 'm', 'm', 'm', *('kg*m^2',) * 6)


def free_floating_report(
    result: TargetIdentification, *, truth: RigidBody | None = None, measurement: FloatingMeasurement | None = None
) -> Report:
    """Return the report of a target identification.

    ``truth`` is the true last link merged with the target, where a simulation knows it. With the ``measurement`` it was
    identified from, the motion of the base is shown too.
    """
    target, deviation = result.target, result.target_deviation
    share = 100.0 * float(deviation[0]) / abs(target.mass)
    summary = (
        f'The base of {result.robot_name} floats freely, so momentum is conserved whatever the arm does. From '
        f'{integer(result.samples)} samples of base twist and joint motion, the mass, centre of mass and inertia of '
        f'the captured target follow by least squares ({result.estimator}). The target weighs '
        f'{number(target.mass, 4)} ± {number(deviation[0], 2)} kg (1 σ).'
    )
    return Report(
        kind='Free-floating identification',
        title=result.robot_name,
        summary=summary,
        verdict=_verdict(result),
        facts=(
            ('Mass of the target', f'{number(target.mass, 4)} kg', f'± {percent(share, 3)} (1 σ)'),
            condition_fact(result.condition_scaled, result.condition_si),
            ('Residual against noise', number(result.noise_scale), '1 where the model explains everything but noise'),
            ('Samples', integer(result.samples), f'momentum: {result.momentum_source}'),
        ),
        sections={
            'Target': _target_items(result, truth),
            'Convergence': _history_items(result, truth),
            'Base': () if measurement is None else (_base_figure(measurement),),
        },
    )


def _verdict(result: TargetIdentification) -> Verdict:
    if not result.usable:
        return Verdict(level='bad', headline='Not usable', reasons=(sentence(result.reason),))
    cautions = [sentence(result.reason)] if result.reason else []
    if result.condition_scaled > 10.0:
        cautions.append(
            f'The column-scaled condition number is {number(result.condition_scaled)}; a designed trajectory reaches '
            'about 1.'
        )
    gain = 'The estimate is a physical body, and the residual is what the sensor noise explains.'
    return usable(() if cautions else (gain,), cautions)


def _target_items(result: TargetIdentification, truth: RigidBody | None) -> Iterator[Item]:
    yield body_table('Target alone, in the frame of the last link', result.target, result.target_deviation)
    yield body_table('Last link merged with the target', result.body, result.body_deviation, truth)
    if result.momentum_deviation is not None:
        heads = ('Component', '#Found', '#Deviation [1 σ]', 'Unit')
        table = Table('Momentum of the whole system, estimated', heads)
        for k, (value, std) in enumerate(zip(result.momentum, result.momentum_deviation, strict=True)):
            table.add('PL'[k // 3] + 'xyz'[k % 3], number(value), number(std, 2), ('kg·m/s', 'kg·m²/s')[k // 3])
        yield table


def body_table(caption: str, body: RigidBody, deviation: Array, truth: RigidBody | None = None) -> Table:
    """Return the ten parameters of a body with their deviations, shape (10,), and with the true ones where known."""
    values = body.values
    columns = [[number(value, 5) for value in values], [number(value, 2) for value in deviation]]
    columns += [] if truth is None else [[number(value, 5) for value in truth.values]]
    heads = ('#Found', '#Deviation [1 σ]', '#True')[: len(columns)]
    sizes = np.array([values[0], *(np.linalg.norm(values[1:4]),) * 3, *(np.abs(values[4:]).max(),) * 6])
    shares = deviation / np.maximum(sizes, 1e-300)
    return Table(
        caption,
        ('Parameter', *heads, 'Unit'),
        zip(_NAMES, *columns, map(unit, _UNITS), strict=True),
        ('good' if share < 0.05 else 'caution' if share < 0.3 else 'bad' for share in shares),
        reading='Inertia about the centre of mass, entries of the tensor itself (Ixy = −∫xy dm). Green: deviation '
        'below 5 % of the largest entry of its kind; red: above 30 %.',
    )


def _history_items(result: TargetIdentification, truth: RigidBody | None) -> Iterator[Item]:
    kept = np.isfinite(result.estimates).all(axis=1)
    if int(kept.sum()) < 2:
        yield 'Too few samples to show how the estimate converged.'
        return
    time = result.time[kept]
    with np.errstate(divide='ignore'):
        mass = 1.0 / result.estimates[kept, 0]
    values = np.column_stack([mass, result.estimates[kept, 1:]])
    final = result.body.values
    true = None if truth is None else truth.values
    yield Figure(
        'convergence',
        'Estimates while the run went on',
        'Curves should settle early and stay; where they still move at the end, record longer. The band is the '
        'last estimate with two deviations. Axes show the last nine tenths of the run.',
        (_history_chart(k, time, values[:, k], final, result.body_deviation, true) for k in range(len(_NAMES))),
    )
    shown: tuple[tuple[Role, str, Array], ...] = (
        ('predicted', 'column-scaled', result.conditions[kept, 1]),
        ('residual', 'SI units', result.conditions[kept, 0]),
    )
    condition = Figure(
        'condition',
        'Condition number while the run went on',
        'It falls as the motion shows the unknowns from all sides; the column-scaled number does not depend on '
        'units, and 1 is perfect.',
    )
    note = f'ends at {number(result.condition_scaled)} and {number(result.condition_si)}'
    chart = condition.chart('Condition number', 'time [s]', axis('condition number', log=True), note=note)
    for role, label, each in shown:
        chart.line(role, time[np.isfinite(each)], each[np.isfinite(each)], label)
    yield condition


def _history_chart(k: int, time: Array, values: Array, final: Array, deviation: Array, true: Array | None) -> Chart:
    name, of = _NAMES[k], unit(_UNITS[k])
    last, spread = float(final[k]), 2.0 * float(deviation[k])
    around = np.array([time[0], time[-1]])
    ends = [last] if true is None else [last, float(true[k])]
    low, high = (float(q) for q in np.quantile(values[len(values) // 10 :], [0.02, 0.98]))
    low, high = min(low, *ends), max(high, *ends)
    margin = 0.15 * (high - low) + 1e-3 * max(abs(low), abs(high)) + 1e-12
    scale = axis(of, limits=(low - margin, high + margin))
    chart = Chart(name, 'time [s]', scale, note=f'{number(last, 4)} {of}', meta='linked')
    chart.band('predicted', around, np.full(2, last - spread), np.full(2, last + spread), 'last ± 2 σ')
    chart.line('predicted', time, values, 'estimate')
    if true is not None:
        chart.line('truth', around, np.full(2, true[k]), 'true')
    return chart


def trajectory_report(
    name: str, trajectory: FourierTrajectory, joint_names: Sequence[str], limits: JointLimits | None = None
) -> Report:
    """Return the report of one period of a designed motion of an arm: positions, velocities and accelerations.

    Limits are drawn where all joints share them.
    """
    time = np.linspace(0.0, trajectory.period, 1001)
    bounds = (None, None if limits is None else limits.velocity, None if limits is None else limits.acceleration)
    kinds = (('Positions', 'rad'), ('Velocities', 'rad/s'), ('Accelerations', 'rad/s²'))
    figure = Figure('motion', 'One period of the motion', 'Dotted lines are limits that all joints share.', wide=True)
    for (title, of), values, bound in zip(kinds, trajectory.evaluate(time), bounds, strict=True):
        chart = _over_time(figure, title, of, time, values, joint_names)
        if bound is not None and np.isfinite(bound).all() and np.ptp(bound) == 0.0:
            chart.rule('y', float(bound[0]))
            chart.rule('y', -float(bound[0]))
    period = f'{number(trajectory.period)} s'
    return Report(
        kind='Free-floating excitation',
        title=name,
        summary=f'A Fourier trajectory of {len(joint_names)} joints that repeats after {period}.',
        facts=(('Period', period, ''),),
        sections={'Motion': (figure,)},
    )


def base_motion_report(name: str, measurement: FloatingMeasurement) -> Report:
    """Return the report of how the base of an arm drifts and turns against the first sample.

    Where its pose was not measured, its linear and angular velocity are shown instead.
    """
    duration = f'{number(measurement.time[-1] - measurement.time[0])} s'
    return Report(
        kind='Free-floating simulation',
        title=name,
        summary=f'Motion of the free-floating base over {duration}.',
        facts=(('Duration', duration, ''), ('Samples', integer(len(measurement.time)), '')),
        sections={'Base': (_base_figure(measurement),)},
    )


def _base_figure(measurement: FloatingMeasurement) -> Figure:
    position, orientation = measurement.base_position, measurement.base_orientation
    if position is not None and orientation is not None:
        rotation = rotation_of_quaternion(orientation)
        first = rotation[0].T
        shown = (
            ('Base position', 'mm', 1e3 * (position - position[0]) @ first.T),
            ('Base rotation', '°', np.degrees(vector_of_rotation(first @ rotation))),
        )
    else:
        twist = measurement.base_twist
        shown = (('Base velocity', 'mm/s', 1e3 * twist[:, :3]), ('Base rate', '°/s', np.degrees(twist[:, 3:])))
    reading = 'Against the first sample. The more the base moves, the better the target is determined.'
    figure = Figure('base_motion', 'The base reacts to the arm', reading, wide=True)
    for title, of, values in shown:
        _over_time(figure, title, of, measurement.time, values, 'xyz')
    return figure


def _over_time(figure: Figure, title: str, of: str, time: Array, values: Array, names: Sequence[str]) -> Chart:
    """Add a chart with one curve for each column, in colours of its own, and return it."""
    note = f'up to {number(np.abs(values).max())} {of}'
    chart = figure.chart(title, 'time [s]', of, note=note, height=320, meta='linked')
    for k, name in enumerate(names):
        chart.line(k, time, values[:, k], name)
    return chart
