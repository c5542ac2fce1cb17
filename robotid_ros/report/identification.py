# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The report of a dynamic identification: its sections, torque and friction along a motion, and how it came about."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.export.replay import Replayed
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.content import Figure, Item, Report, Table, axis
from robotid_ros.report.parameters import interval_chart, parameter_items
from robotid_ros.report.subject import Run, Subject, consistent_error, friction_used, predicted_run, velocity_steps
from robotid_ros.report.verdict import (
    condition_table,
    error_table,
    facts,
    joint_table,
    replay_items,
    summary,
    uses_of,
    verdict,
)
from robotid_ros.report.wording import friction_label, integer, number, unit, units_of
from robotid_ros.signals.filtering import hann, power_spectrum

_MOST = 24  # entries of a list
_SHOWN = 6  # alternatives of a decision, the best first
_USES = ('training', 'validation', 'test')
_BINS = 15
_LINEAR = {'coulomb', 'viscous', 'offset'}
_IN_MOTION = 0.02  # of a joint's largest speed


def provenance_items(result: IdentificationResult) -> Iterator[Item]:
    """Yield tables of decisions, files, settings, and what else the result keeps about its making."""
    if result.decisions:
        yield Table(
            'What was tried and chosen',
            ('Choice', 'Chosen', 'Tried, with the held-out torque error'),
            ((each.subject, each.chosen, '; '.join(_alternatives(each.alternatives))) for each in result.decisions),
            reading='The error is the root mean square over all joints against the torque as recorded, in groups of '
            'states that the fit had not seen. A choice that is not the best of its list held first, and no other was '
            'better by more than the scatter.',
        )
    origin = result.provenance
    if 'search' in origin:
        cost = np.array(origin['search'], dtype=float)
        cycle, fitness = np.arange(float(len(cost))), 1.0 / (1.0 + cost)
        figure = Figure(
            'search',
            'Fitness of the bee colony',
            '1 / (1 + F) of the best source so far; F is the sum over the joints of the squared torque error '
            'relative to the squared torque. A curve that still rises at its end asks for more cycles.',
            wide=True,
        )
        note = f'{number(fitness[-1])} after {len(cost) - 1} cycles'
        alt = f'The fitness rises from {number(fitness[0])} to {number(fitness[-1])} in {len(cost) - 1} cycles.'
        chart = figure.chart('Bee colony', 'cycle', 'fitness 1 / (1 + F)', note=note, alt=alt)
        chart.line('predicted', cycle, fitness, 'best source')
        yield figure
    files = tuple(_files(origin))
    if files:
        yield Table(
            'Files',
            ('File', 'Use', '#Samples', 'SHA-256'),
            files,
            reading='Compare with sha256sum. A file without a hash was not read here: its samples came over ROS or '
            'from a program.',
        )
    if origin.get('command'):
        yield Table(
            'Command',
            ('Run in', 'Words'),
            [(str(origin.get('folder', '')), str(origin['command']))],
            reading='Repeats the identification with the same files, versions and settings.',
        )
    rest = {key: value for key, value in origin.items() if key not in (*_USES, 'command', 'folder', 'robot')}
    rows = tuple(_flat(rest)) + tuple(row for name in _USES for row in _flat({name: origin.get(name) or {}}))
    if rows:
        yield Table('Settings, versions, and how each recording was processed', ('Entry', 'Value'), rows)


def _alternatives(tried: Any) -> Iterator[str]:
    errors = [float(np.sqrt(np.mean(np.square(each.error)))) for each in tried]
    order = np.argsort(errors)
    for k in order[:_SHOWN]:
        yield f'{tried[k].name} {number(errors[k])}'
    if len(order) > _SHOWN:
        yield f'and {len(order) - _SHOWN} worse'


def _files(origin: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield the name, use, number of samples and hash of each file; of the robot description too."""
    robot = origin.get('robot')
    if isinstance(robot, Mapping):
        yield str(robot.get('file', '')), 'robot description', '', str(robot.get('sha256', ''))
    for use in _USES:
        for entry in origin.get(use) or ():
            if not isinstance(entry, Mapping):
                continue
            recording = entry.get('recording')
            samples = integer(int(entry['samples'])) if 'samples' in entry else ''
            if not isinstance(recording, Mapping):
                yield ', '.join(map(str, entry.get('sources', ()))), use, samples, ''
                continue
            hashes = recording.get('sha256', '')
            name = str(recording.get('file', ''))
            if isinstance(hashes, Mapping):
                for part, value in hashes.items():
                    yield f'{name}/{part}' if name != part else name, use, samples, str(value)
            else:
                yield name, use, samples, str(hashes)


def _flat(content: Mapping[str, Any], name: str = '') -> Iterator[tuple[str, str]]:
    """Yield one row for the plain entries of each mapping; what is empty is left out."""
    plain = {key: value for key, value in content.items() if not _nested(value) and value not in (None, '', [], ())}
    if plain:
        yield name or 'run', '; '.join(f'{key.replace("_", " ")}: {_brief(value)}' for key, value in plain.items())
    for key, value in content.items():
        below = f'{name} · {key}' if name else key
        if isinstance(value, Mapping):
            yield from _flat(value, below)
        elif _nested(value):
            for k, item in enumerate(value):
                yield from _flat(item, f'{below} {k + 1}') if isinstance(item, Mapping) else [(below, _brief(item))]


def _nested(value: Any) -> bool:
    several = isinstance(value, list | tuple)
    return isinstance(value, Mapping) or (several and any(isinstance(item, Mapping) for item in value))


def _brief(value: Any) -> str:
    if isinstance(value, list | tuple):
        shown = ', '.join(_brief(item) for item in value[:_MOST])
        return shown + (' …' if len(value) > _MOST else '')
    return f'{value:.6g}' if isinstance(value, float) else str(value)


def torque_figure(run: Run) -> Figure:
    """Return measured and predicted torque over time, one chart per joint, the difference below it.

    Of several trajectories, the one with the largest error is shown.
    """
    dataset, title, count = run.dataset, run.title, len(run.dataset.sources)
    missed, power = (
        np.bincount(dataset.trajectory, np.sum(torque**2, axis=1), count) for torque in (run.residual, dataset.tau)
    )
    worst = int((missed / np.maximum(power, 1e-300)).argmax())
    rows = dataset.trajectory == worst
    time = dataset.time[rows] - dataset.time[rows][0]
    which = f' Of {count} runs, the one with the largest error: {dataset.sources[worst]}.' if count > 1 else ''
    figure = Figure(
        f'torque_{title.lower()}',
        f'{title}: torque measured, and predicted before and after',
        'Blue (identified) should cover grey (measured). The difference below has a scale of its own and '
        'should look like noise; spikes where a joint reverses are friction near standstill.' + which,
    )
    for j, joint, (torque, _, _) in run.joints:
        measured, model, before = dataset.tau[rows, j], run.predicted[rows, j], run.described[rows, j]
        errors = [float(np.sqrt(np.mean((measured - other) ** 2))) for other in (before, model)]
        chart = figure.chart(
            joint,
            axis('time [s]', anchor='y2'),
            axis(f'torque [{torque}]', domain=[0.4, 1.0], limits=_in_sight(measured, model, before)),
            note=f'rmse {number(errors[0])} → {number(errors[1])} {torque}',
            alt=f'{title}, {joint}: measured torque from {number(measured.min())} to {number(measured.max())} '
            f'{torque} over {number(time[-1])} s. The root mean square difference falls from {number(errors[0])} '
            f'{torque} by the robot description to {number(errors[1])} {torque} by the identified model.',
            height=360,
            yaxis2=axis(f'difference [{torque}]', domain=[0.0, 0.32], nticks=4),
            meta='linked',
        )
        chart.line('measured', time, measured, 'measured')
        chart.line('prior', time, before, 'robot description')
        chart.line('predicted', time, model, 'identified')
        chart.line('residual', time, measured - model, 'difference', yaxis='y2')
    return figure


def _in_sight(measured: Array, predicted: Array, described: Array) -> tuple[float, float]:
    """Return an axis range that shows the whole measurement, and of the description what is near it."""
    low, high = float(min(measured.min(), predicted.min())), float(max(measured.max(), predicted.max()))
    room = 0.5 * (high - low) + 1e-9
    low, high = max(low - room, min(low, float(described.min()))), min(high + room, max(high, float(described.max())))
    return low - 0.1 * room, high + 0.1 * room


def residual_velocity_figure(run: Run) -> Figure:
    """Return the torque residual against joint velocity, where a wrong friction model shows."""
    figure = Figure(
        'residual_velocity',
        f'{run.title}: difference against velocity',
        'The mean should lie on zero. A step or a bend at low speed means that the friction model misses something.',
    )
    for j, joint, (torque, speed, _) in run.joints:
        residual, velocity = run.residual[:, j], run.dataset.dq[:, j]
        # Mean velocity and difference, and its deviation, in bins of velocity of five samples at least
        edges = np.linspace(velocity.min(), velocity.max() + 1e-12, _BINS + 1)
        index = np.clip(np.searchsorted(edges, velocity, side='right') - 1, 0, _BINS - 1)
        count = np.bincount(index, minlength=_BINS)
        full, safe = count >= 5, np.maximum(count, 1)
        centre, mean, square = (
            np.bincount(index, values, _BINS) / safe for values in (velocity, residual, residual**2)
        )
        centre, mean, deviation = centre[full], mean[full], np.sqrt(np.maximum((square - mean**2)[full], 0.0))
        note = f'largest mean {number(float(np.abs(mean).max(initial=0.0)), 2)} {torque}'
        chart = figure.chart(joint, f'velocity [{speed}]', f'difference [{torque}]', note=note)
        chart.dots('measured', velocity, residual, 'samples')
        chart.band('residual', centre, mean - deviation, mean + deviation, '± 1 deviation')
        chart.line('residual', centre, mean, 'mean at this velocity')
        chart.rule('y', 0.0)
    return figure


def residual_spectrum_figure(run: Run) -> Figure:
    """Return amplitude spectra of the measured torque and of the residual, one chart per joint.

    Welch's estimate over the longest trajectory, with a window of a quarter of it.
    """
    dataset = run.dataset
    rows = dataset.trajectory == int(np.bincount(dataset.trajectory).argmax())
    count = int(rows.sum())
    window = hann(min(count, max(64, count // 4)))
    filtered = dataset.cutoff < 0.5 * dataset.rate
    figure = Figure(
        'residual_spectrum',
        f'{run.title}: difference by frequency',
        'Where the difference lies far below the torque, the model explains that frequency. Where they meet, '
        'only noise and vibration are left; a single high peak is a resonance or a gear.'
        + (f' Dotted line: the fit used frequencies up to {number(dataset.cutoff)} Hz.' if filtered else ''),
    )
    for j, joint, (torque, _, _) in run.joints:
        frequency, power = power_spectrum(dataset.tau[rows, j], dataset.rate, window)
        _, left = power_spectrum(run.residual[rows, j], dataset.rate, window)
        frequency, power, left = frequency[1:], power[1:], left[1:]
        # At least half of the amplitude is explained up to where it first is not.
        explained = (power > 4.0 * left) & (power > 1e-8 * power.max())
        known = len(explained) if explained.all() else int(explained.argmin())
        # Both spectra are shown, but not the depths beyond a filter's cutoff.
        top = float(np.sqrt(max(power.max(), left.max())))
        shown = max(0.2 * float(np.sqrt(left.min())), 1e-6 * top, 1e-30), 2.0 * max(top, 1e-29)
        note = f'explained up to {number(frequency[known - 1], 2)} Hz' if known else 'nothing explained'
        amplitude = axis(f'amplitude [{torque}/√Hz]', log=True, limits=shown)
        chart = figure.chart(joint, axis('frequency [Hz]', log=True), amplitude, note=note)
        chart.line('measured', frequency, np.sqrt(power), 'measured torque')
        chart.line('residual', frequency, np.sqrt(left), 'difference')
        if filtered:
            chart.rule('x', dataset.cutoff)
    return figure


def coverage_figure(run: Run, limits: JointLimits) -> Figure:
    """Return velocity against position, one chart per joint, with the limits where the motion comes near them."""
    figure = Figure(
        'coverage',
        'Where the motion went',
        'Wide clouds on both sides of zero velocity determine gravity and friction; a joint that hardly moves '
        'cannot be identified. Dotted lines are limits of the arm.',
    )
    for j, joint, (_, speed, length) in run.joints:
        q, dq = run.dataset.q[:, j], run.dataset.dq[:, j]
        reach, fast = 0.3 * float(np.ptp(q)), float(np.abs(dq).max())
        chart = figure.chart(
            joint,
            f'position [{length}]',
            f'velocity [{speed}]',
            note=f'range {number(np.ptp(q))} {length}, speed to {number(fast)} {speed}',
            alt=f'{joint}: positions from {number(q.min())} to {number(q.max())} {length} at speeds '
            f'up to {number(fast)} {speed}.',
            height=250,
        )
        chart.dots('predicted', q, dq, 'visited', showlegend=False)
        for end in (float(limits.lower[j]), float(limits.upper[j])):
            if q.min() - reach < end < q.max() + reach:
                chart.rule('x', end)
        for speed_limit in (-float(limits.velocity[j]), float(limits.velocity[j])):
            if abs(speed_limit) < 1.3 * fast:
                chart.rule('y', speed_limit)
    return figure


def friction_items(subject: Subject) -> Iterator[Item]:
    """Yield the friction curves, what a linear model would miss, the ripple where there is some, and the parameters."""
    result, run = subject.result, subject.training
    if not result.friction_names:
        yield 'No friction was identified.'
        return
    yield _curve_figure(subject)
    if not set(result.friction_names) <= _LINEAR:
        yield _gain_figure(subject)
    frequency = result.friction.ripple_frequency
    if frequency is not None:

        def ripple(dq: Array, q: Array) -> Array:
            load, torque = np.zeros_like(dq), subject.predictor.friction_torque
            return torque(dq, load, q) - torque(dq, load)

        yield ripple_figure(run.dataset, run.predicted, ripple, np.asarray(frequency), run.joint_types)
    figure = Figure(
        'friction_parameters',
        'Friction parameters with 95 % intervals',
        'A bar that crosses zero: this joint does not need that term, or did not move fast or slowly enough '
        'to show it.',
    )
    for k, used in enumerate(friction_used(result).T):
        of = result.friction_units[0][k]
        drawn = interval_chart(
            result.friction_names[k].replace('_', ' '),
            [joint for joint, kept in zip(result.joint_names, used, strict=True) if kept],
            'ratio' if of == '1' else unit(of),
            result.friction_values[used, k],
            result.friction_std[used, k],
        )
        figure.charts.append(drawn)
    yield figure


def _curve_figure(subject: Subject) -> Figure:
    """Return friction torque against velocity in the training data, one chart per joint.

    The points are tau - tau_hat + friction_hat: the measured torque without that of the rigid body. The curves are at
    the median load, where friction depends on the load.
    """
    run, model, dataset = subject.training, subject.model, subject.training.dataset
    velocity = velocity_steps()[:, None] * np.abs(dataset.dq).max(axis=0)
    carried = np.abs(subject.predictor.rigid_torque(dataset.q, dataset.dq, dataset.ddq))
    load = np.broadcast_to(np.median(carried, axis=0), velocity.shape)
    fitted = subject.predictor.motor_friction(velocity, load)
    described = model.damping * velocity + model.friction * np.sign(velocity)
    truth = None if subject.true_friction is None else subject.true_friction(velocity, load)
    points = run.residual + run.friction
    figure = Figure(
        'friction',
        'Friction curves with data',
        'The curve should run through the middle of the points. Friction opposes the motion: positive on the '
        'right, negative on the left, but for a constant offset.',
    )
    for j, joint, (torque, speed, _) in run.joints:
        v, curve = velocity[:, j], fitted[:, j]
        low, high = np.quantile(points[:, j], [0.002, 0.998])  # a few wild samples do not set the scale
        low, high = min(float(low), float(curve.min())), max(float(high), float(curve.max()))
        margin = 0.06 * (high - low) + 1e-9
        fast = float(np.abs(v).max())
        chart = figure.chart(
            joint,
            f'velocity [{speed}]',
            axis(f'friction [{torque}]', limits=(low - margin, high + margin)),
            note=f'{number(curve[-1])} {torque} at {number(fast, 2)} {speed}',
            alt=f'{joint}: friction torque against velocity; the fitted curve runs from {number(curve[0])} '
            f'to {number(curve[-1])} {torque} between {number(-fast, 2)} and {number(fast, 2)} {speed}.',
        )
        chart.dots('measured', dataset.dq[:, j], points[:, j], 'measured, rigid body subtracted')
        if described.any():
            chart.line('prior', v, described[:, j], 'robot description')
        if truth is not None:
            chart.line('truth', v, truth[:, j], 'true')
        chart.line('predicted', v, curve, f'fitted: {friction_label(subject.result.friction.name)}')
        chart.rule('y', 0.0)
    return figure


def _gain_figure(subject: Subject) -> Figure:
    """Return the torque error over time with the friction model and with a linear one, one chart per joint.

    The linear one is Coulomb and viscous friction and an offset, fitted by least squares to what the rigid body leaves
    of the training data in motion; the errors are those of the judged run.

    Source: the figure by which W. Xi et al. compare a linear and a non-linear friction model.
    """
    trained, run, name = subject.training, subject.judged, friction_label(subject.result.friction.name)
    rows = run.dataset.trajectory == 0
    time = run.dataset.time[rows] - run.dataset.time[rows][0]

    def linear(velocity: Array) -> Array:
        return np.stack([np.sign(velocity), velocity, np.ones_like(velocity)], axis=1)

    figure = Figure(
        'friction_gain',
        'Torque error with linear friction and with the friction model',
        'What is left of the torque over time. Where the curves lie on each other, Coulomb and viscous '
        'friction with an offset would do.',
    )
    for j, joint, (torque, _, _) in run.joints:
        speed = trained.dataset.dq[:, j]
        moving = np.abs(speed) > _IN_MOTION * np.abs(speed).max()
        # Measured torque less that of the rigid body, of the data fitted to and of those shown.
        before, after = ((each.residual + each.friction)[:, j] for each in (trained, run))
        fitted = np.linalg.lstsq(linear(speed[moving]), before[moving], rcond=None)[0]
        errors = (after - linear(run.dataset.dq[:, j]) @ fitted)[rows], run.residual[rows, j]
        rms = [number(float(np.sqrt(np.mean(error**2)))) for error in errors]
        chart = figure.chart(
            joint,
            'time [s]',
            f'torque error [{torque}]',
            note=f'rmse {rms[0]} → {rms[1]} {torque}',
            alt=f'{joint}: torque error over {number(time[-1])} s, rms {rms[0]} {torque} with linear '
            f'friction and {rms[1]} {torque} with {name}.',
        )
        chart.line('prior', time, errors[0], 'linear friction')
        chart.line('predicted', time, errors[1], name)
    return figure


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
    figure = Figure(
        'ripple',
        'Torque ripple of motor and gear',
        'Cogging and gear errors repeat with the motor shaft, and fast motion hides them. Blue points should '
        'lie on grey ones; where grey stays at zero throughout, do not believe the ripple of that joint.',
    )
    for j in np.flatnonzero(frequency):
        torque, _, length = units_of(joint_types[int(j)])
        inside = np.flatnonzero((dataset.q[:, j] >= position[0, j]) & (dataset.q[:, j] <= position[-1, j]))
        q, joint, rate = dataset.q[inside, j], dataset.joint_names[j], number(frequency[j])
        alt = (
            f'{joint}: torque ripple against position, {rate} per {length} with an amplitude of '
            f'{number(np.abs(curve[:, j]).max())} {torque} at creeping speed.'
        )
        note = f'{rate} per {length}'
        chart = figure.chart(joint, f'position [{length}]', f'ripple [{torque}]', note=note, alt=alt)
        chart.dots('measured', q, points[inside, j], 'measured, the rest subtracted')
        chart.line('prior', position[:, j], curve[:, j], 'fitted, at creeping speed')
        chart.dots('predicted', q, along[inside, j], 'fitted, along the motion')
    return figure


def identification_report(
    model: RobotModel,
    result: IdentificationResult,
    training: Dataset | Sequence[Dataset],
    *,
    validation: Dataset | Sequence[Dataset] = (),
    true_base: Array | None = None,
    true_friction: Callable[[Array, Array], Array] | None = None,
    replayed: Replayed | None = None,
) -> Report:
    """Return the report of an identification.

    The inertial parameters of the model, the arm as described, are the prior that is shown. ``training`` is what the
    model was fitted to, ``validation`` what it had not seen. A simulation knows the true base parameters, shape (b,),
    and the true friction torque [N m or N], a function of velocities and loads, all of shape (K, n). ``replayed`` is
    the replay of a recording by the identified arm.

    Raises an IdentificationError if the result belongs to another arm, or a joint is not in the data.
    """
    predictor = TorquePredictor(model, result)
    trained = predicted_run('Training', training, predictor)
    unseen = predicted_run('Validation', validation, predictor) if validation else None
    subject = Subject(
        model=model,
        result=result,
        predictor=predictor,
        training=trained,
        unseen=unseen,
        true_base=true_base,
        true_friction=true_friction,
        consistent_error=consistent_error(predictor, unseen or trained),
    )
    judged, runs = subject.judged, [run for run in (unseen, trained) if run is not None]
    return Report(
        kind='Dynamic identification',
        title=result.robot,
        summary=summary(subject),
        verdict=verdict(subject),
        facts=facts(subject),
        sections={
            'Good for': uses_of(result),
            'Joints': (joint_table(subject),),
            'Torque': (error_table(subject), *map(torque_figure, runs)),
            'Difference': (residual_velocity_figure(judged), residual_spectrum_figure(judged)),
            'Friction': friction_items(subject),
            'Parameters': parameter_items(subject),
            'Excitation': (condition_table(result), coverage_figure(trained, model.limits)),
            'Replay': () if replayed is None else replay_items(replayed),
            'How it was done': provenance_items(result),
        },
    )
