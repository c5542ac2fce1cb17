# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Torque and friction measured and predicted, and what the model leaves of them."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.export.replay import READY, Replayed
from robotid_ros.report.content import (
    Figure,
    Item,
    Table,
    friction_label,
    number,
    percent,
    quantities,
    sentence,
    units_of,
    words,
)
from robotid_ros.report.plot import Chart, axis, band, dots, intervals, line, rule, spread
from robotid_ros.report.subject import Run, Subject, described_friction, velocity_steps

_BINS = 15
_LINEAR = {'coulomb', 'viscous', 'offset'}
_IN_MOTION = 0.02  # of a joint's largest speed


def torque_figure(run: Run, joint_types: Sequence[str]) -> Figure:
    """Return measured and predicted torque over time, one chart per joint, the difference below it.

    Of several trajectories, the one with the largest error is shown.
    """
    dataset, title = run.dataset, run.title
    worst = _worst_trajectory(dataset, run.predicted)
    rows = dataset.trajectory == worst
    time = dataset.time[rows] - dataset.time[rows][0]
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        unit = units_of(joint_types[j])[0]
        measured, model, before = dataset.tau[rows, j], run.predicted[rows, j], run.described[rows, j]
        errors = [float(np.sqrt(np.mean((measured - other) ** 2))) for other in (before, model)]
        charts.append(
            Chart(
                title=joint,
                note=f'rmse {number(errors[0])} → {number(errors[1])} {unit}',
                alt=f'{title}, {joint}: measured torque from {number(measured.min())} to '
                f'{number(measured.max())} {unit} over {number(time[-1])} s. The root mean square '
                f'difference falls from {number(errors[0])} {unit} by the robot description to {number(errors[1])} '
                f'{unit} by the identified model.',
                traces=(
                    line('measured', time, measured, 'measured'),
                    line('prior', time, before, 'robot description'),
                    line('predicted', time, model, 'identified'),
                    line('residual', time, measured - model, 'difference', yaxis='y2'),
                ),
                layout={
                    'xaxis': axis('time [s]', anchor='y2'),
                    'yaxis': axis(f'torque [{unit}]', domain=[0.4, 1.0], limits=_in_sight(measured, model, before)),
                    'yaxis2': axis(f'difference [{unit}]', domain=[0.0, 0.32], nticks=4),
                    'meta': 'linked',
                },
                height=360,
            )
        )
    count = len(dataset.sources)
    which = f' Of {count} runs, the one with the largest error: {dataset.sources[worst]}.' if count > 1 else ''
    return Figure(
        name=f'torque_{title.lower()}',
        caption=f'{title}: torque measured, and predicted before and after',
        reading='Blue (identified) should cover grey (measured). The difference below has a scale of its own and '
        'should look like noise; spikes where a joint reverses are friction near standstill.' + which,
        charts=tuple(charts),
    )


def _in_sight(measured: Array, predicted: Array, described: Array) -> tuple[float, float]:
    """Return an axis range that shows the whole measurement, and of the description what is near it."""
    low, high = float(min(measured.min(), predicted.min())), float(max(measured.max(), predicted.max()))
    room = 0.5 * (high - low) + 1e-9
    low, high = max(low - room, min(low, float(described.min()))), min(high + room, max(high, float(described.max())))
    return low - 0.1 * room, high + 0.1 * room


def residual_velocity_figure(run: Run, joint_types: Sequence[str]) -> Figure:
    """Return the torque residual against joint velocity, where a wrong friction model shows."""
    dataset, title = run.dataset, run.title
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        torque, speed, _ = units_of(joint_types[j])
        residual, velocity = dataset.tau[:, j] - run.predicted[:, j], dataset.dq[:, j]
        centre, mean, deviation = _binned(velocity, residual)
        worst = float(np.abs(mean).max(initial=0.0))
        charts.append(
            Chart(
                title=joint,
                note=f'largest mean {number(worst, 2)} {torque}',
                traces=(
                    dots('measured', velocity, residual, 'samples'),
                    band('residual', centre, mean - deviation, mean + deviation, '± 1 deviation'),
                    line('residual', centre, mean, 'mean at this velocity'),
                ),
                layout={
                    'xaxis': axis(f'velocity [{speed}]'),
                    'yaxis': axis(f'difference [{torque}]'),
                    'shapes': [rule('y', 0.0)],
                },
            )
        )
    return Figure(
        name='residual_velocity',
        caption=f'{title}: difference against velocity',
        reading='The mean should lie on zero. A step or a bend at low speed means that the friction model misses '
        'something.',
        charts=tuple(charts),
    )


def residual_spectrum_figure(run: Run, joint_types: Sequence[str]) -> Figure:
    """Return amplitude spectra of the measured torque and of the residual, one chart per joint.

    Welch's estimate over the longest trajectory, with a window of a quarter of it.
    """
    from scipy.signal import welch  # not at the top: see robotid_ros.signals.filtering

    dataset, title = run.dataset, run.title
    rows = dataset.trajectory == int(np.bincount(dataset.trajectory).argmax())
    count = int(rows.sum())
    window = min(count, max(64, count // 4))
    rules = [rule('x', dataset.cutoff)] if dataset.cutoff < 0.5 * dataset.rate else []
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        torque = units_of(joint_types[j])[0]
        measured = dataset.tau[rows, j]
        frequency, power = welch(measured, fs=dataset.rate, nperseg=window)
        _, left = welch(measured - run.predicted[rows, j], fs=dataset.rate, nperseg=window)
        frequency, power, left = frequency[1:], power[1:], left[1:]
        reach = _explained(frequency, power, left)
        charts.append(
            Chart(
                title=joint,
                note=f'explained up to {number(reach, 2)} Hz' if reach else 'nothing explained',
                traces=(
                    line('measured', frequency, np.sqrt(power), 'measured torque'),
                    line('residual', frequency, np.sqrt(left), 'difference'),
                ),
                layout={
                    'xaxis': axis('frequency [Hz]', log=True),
                    'yaxis': axis(f'amplitude [{torque}/√Hz]', log=True, limits=_visible(power, left)),
                    'shapes': rules,
                },
            )
        )
    return Figure(
        name='residual_spectrum',
        caption=f'{title}: difference by frequency',
        reading='Where the difference lies far below the torque, the model explains that frequency. Where they meet, '
        'only noise and vibration are left; a single high peak is a resonance or a gear.'
        + (f' Dotted line: the fit used frequencies up to {number(dataset.cutoff)} Hz.' if rules else ''),
        charts=tuple(charts),
    )


def _explained(frequency: Array, power: Array, left: Array) -> float:
    """Return the frequency up to which at least half of the amplitude is explained [Hz]."""
    explained = (power > 4.0 * left) & (power > 1e-8 * power.max())
    count = len(explained) if explained.all() else int(explained.argmin())
    return float(frequency[count - 1]) if count else 0.0


def _visible(power: Array, left: Array) -> tuple[float, float]:
    """Return an axis range that shows both spectra, but not the depths beyond a filter's cutoff."""
    top = float(np.sqrt(max(power.max(), left.max())))
    return max(0.2 * float(np.sqrt(left.min())), 1e-6 * top, 1e-30), 2.0 * max(top, 1e-29)


def _worst_trajectory(dataset: Dataset, predicted: Array) -> int:
    square = np.sum((dataset.tau - predicted) ** 2, axis=1)
    power = np.sum(dataset.tau**2, axis=1)
    count = len(dataset.sources)
    error = np.bincount(dataset.trajectory, square, count) / np.maximum(
        np.bincount(dataset.trajectory, power, count), 1e-300
    )
    return int(error.argmax())


def _binned(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Return mean and standard deviation of y in bins of x; bins with fewer than five samples are left out."""
    edges = np.linspace(x.min(), x.max() + 1e-12, _BINS + 1)
    index = np.clip(np.searchsorted(edges, x, side='right') - 1, 0, _BINS - 1)
    count = np.bincount(index, minlength=_BINS)
    full = count >= 5
    safe = np.maximum(count, 1)
    mean = np.bincount(index, y, _BINS) / safe
    variance = np.bincount(index, y**2, _BINS) / safe - mean**2
    centre = np.bincount(index, x, _BINS) / safe
    return centre[full], mean[full], np.sqrt(np.maximum(variance[full], 0.0))


def friction_figure(subject: Subject) -> Figure:
    """Return friction torque against velocity in the training data, one chart per joint.

    The points are tau - tau_hat + friction_hat: the measured torque without that of the rigid body. The curves are at
    the median load, where friction depends on the load.
    """
    run, model, truth = subject.training, subject.model, None
    dataset = run.dataset
    velocity = velocity_steps()[:, None] * np.abs(dataset.dq).max(axis=0)
    carried = np.abs(subject.predictor.rigid_torque(dataset.q, dataset.dq, dataset.ddq))
    load = np.broadcast_to(np.median(carried, axis=0), velocity.shape)
    curve = subject.predictor.motor_friction(velocity, load)
    described = described_friction(model, velocity) if model.damping.any() or model.friction.any() else None
    if subject.true_friction is not None:
        truth = subject.true_friction(velocity, load)
    points = dataset.tau - run.predicted + run.friction
    charts = []
    for j, joint in enumerate(dataset.joint_names):
        torque, speed, _ = units_of(subject.result.joint_types[j])
        v, fitted = velocity[:, j], curve[:, j]
        traces = [dots('measured', dataset.dq[:, j], points[:, j], 'measured, rigid body subtracted')]
        if described is not None:
            traces.append(line('prior', v, described[:, j], 'robot description'))
        if truth is not None:
            traces.append(line('truth', v, truth[:, j], 'true'))
        traces.append(line('predicted', v, fitted, f'fitted: {friction_label(subject.result.friction_name)}'))
        low, high = np.quantile(points[:, j], [0.002, 0.998])  # a few wild samples do not set the scale
        low, high = min(float(low), float(fitted.min())), max(float(high), float(fitted.max()))
        margin = 0.06 * (high - low) + 1e-9
        fast = float(np.abs(v).max())
        charts.append(
            Chart(
                title=joint,
                note=f'{number(fitted[-1])} {torque} at {number(fast, 2)} {speed}',
                alt=f'{joint}: friction torque against velocity; the fitted curve runs from {number(fitted[0])} '
                f'to {number(fitted[-1])} {torque} between {number(-fast, 2)} and {number(fast, 2)} {speed}.',
                traces=tuple(traces),
                layout={
                    'xaxis': axis(f'velocity [{speed}]'),
                    'yaxis': axis(f'friction [{torque}]', limits=(low - margin, high + margin)),
                    'shapes': [rule('y', 0.0)],
                },
            )
        )
    return Figure(
        name='friction',
        caption='Friction curves with data',
        reading='The curve should run through the middle of the points. Friction opposes the motion: positive on the '
        'right, negative on the left, but for a constant offset.',
        charts=tuple(charts),
    )


def friction_gain_figure(subject: Subject) -> Figure | None:
    """Return the torque error over time with the friction model and with a linear one, one chart per joint.

    The linear one is Coulomb and viscous friction and an offset, fitted by least squares to what the rigid body leaves
    of the training data in motion; the errors are those of the judged run. None where the model is linear itself.

    Source: the figure by which W. Xi et al. compare a linear and a non-linear friction model.
    """
    result, trained, run = subject.result, subject.training, subject.judged
    if set(result.friction_names) <= _LINEAR:
        return None
    # Measured torque less that of the rigid body, shape (N, n).
    before, after = (each.dataset.tau - each.predicted + each.friction for each in (trained, run))
    data, judged = trained.dataset, run.dataset
    rows = judged.trajectory == 0
    time = judged.time[rows] - judged.time[rows][0]
    charts = []
    for j, joint in enumerate(judged.joint_names):
        unit, speed = units_of(result.joint_types[j])[0], data.dq[:, j]
        moving = np.abs(speed) > _IN_MOTION * np.abs(speed).max()
        fitted = np.linalg.lstsq(_linear(speed[moving]), before[moving, j], rcond=None)[0]
        errors = after[rows, j] - _linear(judged.dq[rows, j]) @ fitted, (judged.tau - run.predicted)[rows, j]
        rms = [float(np.sqrt(np.mean(error**2))) for error in errors]
        name = friction_label(result.friction_name)
        charts.append(
            Chart(
                title=joint,
                note=f'rmse {number(rms[0])} → {number(rms[1])} {unit}',
                alt=f'{joint}: torque error over {number(time[-1])} s, rms {number(rms[0])} {unit} with linear '
                f'friction and {number(rms[1])} {unit} with {name}.',
                traces=(
                    line('prior', time, errors[0], 'linear friction'),
                    line('predicted', time, errors[1], name),
                ),
                layout={'xaxis': axis('time [s]'), 'yaxis': axis(f'torque error [{unit}]')},
            )
        )
    return Figure(
        name='friction_gain',
        caption='Torque error with linear friction and with the friction model',
        reading='What is left of the torque over time. Where the curves lie on each other, Coulomb and viscous '
        'friction with an offset would do.',
        charts=tuple(charts),
    )


def _linear(velocity: Array) -> Array:
    return np.stack([np.sign(velocity), velocity, np.ones_like(velocity)], axis=1)


def ripple_figure(
    dataset: Dataset,
    predicted: Array,
    ripple: Callable[[Array, Array], Array],
    frequency: Array,
    joint_types: Sequence[str],
) -> Figure:
    """Return torque ripple against position for the joints that have some.

    The points are tau - tau_hat + ripple_hat: the measured torque without anything else that is explained. The curve is
    drawn about where the joint is slowest, over at most ten ripples, at creeping speed. ``predicted``, shape (N, n), is
    the whole predicted torque [N m or N], and ``ripple`` returns the ripple in it at velocities and positions of shape
    (K, n); ``frequency``, shape (n,), is that of the ripple [1/rad], zero for joints without.
    """
    centre = dataset.q[np.abs(dataset.dq).argmin(axis=0), np.arange(dataset.n)]
    half = 10.0 * np.pi / np.where(frequency > 0.0, frequency, np.inf)
    low, high = (np.clip(centre + s * half, dataset.q.min(axis=0), dataset.q.max(axis=0)) for s in (-1.0, 1.0))
    position = low + np.linspace(0.0, 1.0, 400)[:, None] * (high - low)
    curve, along = ripple(np.full_like(position, 1e-6), position), ripple(dataset.dq, dataset.q)
    points = dataset.tau - predicted + along
    charts = []
    for j in np.flatnonzero(frequency):
        torque, _, length = units_of(joint_types[int(j)])
        inside = np.flatnonzero((dataset.q[:, j] >= position[0, j]) & (dataset.q[:, j] <= position[-1, j]))
        inside = inside[spread(len(inside))]
        q = dataset.q[inside, j]
        rate, size = number(frequency[j]), number(np.abs(curve[:, j]).max())
        joint = dataset.joint_names[j]
        charts.append(
            Chart(
                title=joint,
                note=f'{rate} per {length}',
                alt=f'{joint}: torque ripple against position, {rate} per {length} with an amplitude of {size} '
                f'{torque} at creeping speed.',
                traces=(
                    dots('measured', q, points[inside, j], 'measured, the rest subtracted'),
                    line('prior', position[:, j], curve[:, j], 'fitted, at creeping speed'),
                    dots('predicted', q, along[inside, j], 'fitted, along the motion'),
                ),
                layout={'xaxis': axis(f'position [{length}]'), 'yaxis': axis(f'ripple [{torque}]')},
            )
        )
    return Figure(
        name='ripple',
        caption='Torque ripple of motor and gear',
        reading='Cogging and gear errors repeat with the motor shaft, and fast motion hides them. Blue points should '
        'lie on grey ones; where grey stays at zero throughout, do not believe the ripple of that joint.',
        charts=tuple(charts),
    )


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
