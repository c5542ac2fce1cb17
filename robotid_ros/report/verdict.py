# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The verdict on an identification: traffic light, reasons, and the numbers behind it."""

from collections.abc import Iterator

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.export.replay import READY, Replayed
from robotid_ros.identification import IdentificationResult
from robotid_ros.report.content import (
    GOOD_CONDITION,
    POOR_CONDITION,
    Fact,
    Figure,
    Item,
    Level,
    Table,
    Verdict,
    axis,
    condition_fact,
    condition_level,
    usable,
)
from robotid_ros.report.subject import Subject
from robotid_ros.report.wording import friction_label, integer, number, percent, sentence

_GOOD_MATCH, _FAIR_MATCH = 85.0, 65.0  # %
_WORSE_THAN_TRAINING = 1.5
_NOISE_FACTOR = 1.3  # below this multiple of the noise, an error is all noise
_BY_VELOCITY = 0.3  # of the difference's power; 20 bins of hundreds of samples of pure noise explain some per cent
_LITTLE = 0.05  # of the torque of the joint that carries most
_LARGE_ERROR = 5.0  # %; below, twice the training error is still a good model


def summary(subject: Subject) -> str:
    """Return what was done, in one paragraph."""
    result, data = subject.result, subject.training.dataset
    runs = len(data.sources)
    averaged = f', each the average of {data.periods} periods' if data.periods > 1 else ''
    text = (
        f'The dynamics of {result.robot} ({len(result.joint_names)} joints) were identified from '
        f'{integer(len(data))} samples of {f"{runs} runs" if runs > 1 else "one run"} at {number(data.rate)} Hz'
        f'{averaged}: {len(result.base_names)} base parameters and, for each joint, friction as '
        f'{friction_label(result.friction.name)}. '
    )
    if subject.unseen is None:
        return text + 'No data were kept back, so nothing here says how well the model predicts other motions.'
    return text + (
        f'The model then predicted the torque of {integer(len(subject.unseen.dataset))} samples that it had not seen; '
        'every error below is against the torque as recorded, without filtering.'
    )


def verdict(subject: Subject) -> Verdict:
    """Return whether the result can be used, and why."""
    result, metrics = subject.result, subject.metrics
    if not result.usable:
        return Verdict(level='bad', headline='Not usable', reasons=(sentence(result.reason),))
    worst = int(metrics.match.argmin())
    where = 'On motions it had not seen' if subject.unseen is not None else 'On the motions it was fitted to'
    gain = (
        f'{where}, the model explains {percent(100.0 - metrics.relative_error_total)} of the torque; the weakest joint '
        f'is {metrics.joint_names[worst]} with {percent(metrics.match[worst])}.'
    )
    return usable((gain,), list(_cautions(subject)))


def _cautions(subject: Subject) -> Iterator[str]:
    result, metrics = subject.result, subject.metrics
    if result.reason:
        yield sentence(result.reason)
    if subject.unseen is None:
        yield 'It was not checked on other motions: record a second trajectory and validate with it.'
    else:
        ratio = metrics.relative_error_total / max(result.metrics['training'].relative_error_total, 1e-12)
        if ratio > _WORSE_THAN_TRAINING and metrics.relative_error_total > _LARGE_ERROR:
            yield (
                f'The error on new motions is {number(ratio, 2)} times that of the training: record more varied '
                'motion, or use fewer parameters.'
            )
        described = subject.before.relative_error_total
        if described < metrics.relative_error_total and metrics.relative_error_total > _LARGE_ERROR:
            yield (
                f'The robot description explains more of it, {percent(100.0 - described)}: use that as it is, or '
                'identify with the estimator auto.'
            )
    if condition_level(result.condition_scaled) == 'bad':
        yield (
            f'The condition number is {number(result.condition_scaled)}: the motion left some parameters '
            'undetermined. The torque may be right where single parameters are not.'
        )
    if subject.consistent_error > _WORSE_THAN_TRAINING * metrics.relative_error_total + 1.0:
        yield (
            f'The physically consistent parameters, which calibrated.urdf holds, leave '
            f'{percent(subject.consistent_error)} of the torque unexplained: for control, use generated code or the '
            'predictor, which compute with the base parameters.'
        )
    weak = [name for j, name in enumerate(metrics.joint_names) if _joint_level(subject, j) == 'bad']
    if weak:
        yield f'Less than {_FAIR_MATCH:.0f} % of the torque is explained at {", ".join(weak)}.'


def facts(subject: Subject) -> tuple[Fact, ...]:
    """Return the numbers to see first."""
    result, metrics, data = subject.result, subject.metrics, subject.training.dataset
    worst = int(metrics.rmse.argmax())
    return (
        (
            f'Torque explained, {subject.judged.title.lower()}',
            percent(100.0 - metrics.relative_error_total),
            f'training {percent(100.0 - result.metrics["training"].relative_error_total)}',
        ),
        (
            'Largest rmse of a joint',
            f'{number(metrics.rmse[worst])} {subject.torque_unit(worst)}',
            metrics.joint_names[worst],
        ),
        condition_fact(result.condition_scaled, result.condition_si),
        (
            'Samples',
            integer(len(data)),
            (
                f'{number(data.rate)} Hz, '
                + (f'bandwidth {number(data.cutoff)} Hz' if data.cutoff < 0.49 * data.rate else 'not filtered')
            ),
        ),
    )


def uses_of(result: IdentificationResult) -> Iterator[Item]:
    """Yield what the model is good for, each with its number."""
    if result.good_for:
        table = Table('What the model is good for', ('Use', 'Answer'))
        for use in result.good_for:
            answer = f'{"Yes" if use.good else "No"}: {sentence(use.text)}'
            table.add(use.name, answer, level='good' if use.good else 'bad')
        yield table


def joint_table(subject: Subject) -> Table:
    """Return what can be said of each joint, and what to do next."""
    reading = f'On the {subject.judged.title.lower()} data.'
    table = Table('Joint by joint', ('Joint', 'Finding', 'Next'), reading=reading)
    for j, name in enumerate(subject.result.joint_names):
        level, *said = _joint_advice(subject, j)
        table.add(name, *said, level=level)
    return table


def _is_noise(subject: Subject, j: int) -> bool:
    return subject.noise is not None and bool(subject.metrics.rmse[j] <= _NOISE_FACTOR * subject.noise[j])


def _joint_level(subject: Subject, j: int) -> Level:
    """Return the traffic light of a joint: its match, or an error that is all noise."""
    match = float(subject.metrics.match[j])
    if match >= _GOOD_MATCH or _is_noise(subject, j):
        return 'good'
    return 'caution' if match >= _FAIR_MATCH else 'bad'


def _joint_advice(subject: Subject, j: int) -> tuple[Level, str, str]:
    """Return the light of a joint, what was found, and what to do."""
    result, metrics, run = subject.result, subject.metrics, subject.judged
    if j < len(result.joints) and result.joints[j].reason:
        said = result.joints[j]
        return 'caution' if said.usable else 'bad', sentence(said.reason), sentence(said.advice) if said.advice else ''
    unit, rmse, match = subject.torque_unit(j), float(metrics.rmse[j]), float(metrics.match[j])
    if _is_noise(subject, j):
        return 'good', f'The error of {number(rmse)} {unit} is all noise.', 'Nothing.'
    level = _joint_level(subject, j)
    by_velocity = velocity_share(run.dataset.dq[:, j], run.residual[:, j])
    training = float(result.metrics['training'].rmse[j])
    torque = np.sqrt(np.mean(run.dataset.tau**2, axis=0))
    if by_velocity > _BY_VELOCITY and level != 'good':
        return (
            level,
            f'{percent(100.0 * by_velocity, 0)} of the difference depends on velocity alone: friction that is missed.',
            'Record a friction sweep of this joint, or let --friction auto choose from more data.',
        )
    if subject.unseen is not None and rmse > max(_WORSE_THAN_TRAINING * training, 0.05 * float(torque[j])):
        return (
            'caution' if level == 'good' else level,
            f'The error on new motions is {number(rmse / max(training, 1e-12), 2)} times that of the training.',
            'Record motions of more variety for this joint and those that carry it.',
        )
    if level == 'good':
        return 'good', f'{percent(match)} of the torque is explained.', 'Nothing.'
    if torque[j] < _LITTLE * torque.max():
        return (
            level,
            f'It carries little torque ({number(torque[j])} {unit} rms), so {number(rmse)} {unit} weigh much.',
            'Judge it by its error; excite it faster, or with a load, to tell more.',
        )
    return (
        level,
        f'{percent(100.0 - match)} of the torque is not explained, at no velocity in particular.',
        'Look at the difference by frequency: a peak is a resonance; check the torque constant and the cutoff.',
    )


def velocity_share(velocity: Array, residual: Array) -> float:
    """Return which part of a difference's power its mean at each velocity explains, 0 to 1."""
    edges = np.quantile(velocity, np.linspace(0.0, 1.0, 21)[1:-1])
    group = np.searchsorted(edges, velocity)
    count = np.maximum(np.bincount(group, minlength=20), 1)
    mean = np.bincount(group, residual, 20) / count
    return float(np.sum(count * mean**2) / max(float(np.sum(residual**2)), 1e-300))


def error_table(subject: Subject) -> Table:
    """Return rmse and match of each joint before and after, and on the other data that were judged."""
    result, noise, judged = subject.result, subject.noise, subject.judged.title.lower()
    pair = subject.before, subject.metrics
    others = [name for name in ('validation', 'test', 'training') if name in result.metrics and name != judged]
    heads = ['#Match [before]', '#Match [after]', '#RMSE [before]', '#RMSE [after]']
    heads += [f'#{title} [{name}]' for name in others for title in ('RMSE', 'Match')]
    heads += [] if noise is None else [f'#Noise [{judged}]']
    table = Table(
        'Error per joint, before and after',
        ('Joint', *heads, 'Unit'),
        reading=f'On the {judged} data. Before: the prediction of the robot description, with its friction where that '
        'is nearer; after: of the identified model. Match is 100 % less the relative error. Green: '
        f'{_GOOD_MATCH:.0f} % or more; amber: {_FAIR_MATCH:.0f} % or more. Joints that carry little torque match less: '
        'look at their rmse'
        + ('.' if noise is None else '; where it is no more than the noise, nothing is left to explain.'),
    )

    def match(value: float) -> str:  # below zero where the error is larger than the torque
        return 'none' if value < 0.0 else percent(value)

    for j, joint in enumerate(result.joint_names):
        cells = [match(errors.match[j]) for errors in pair] + [number(errors.rmse[j]) for errors in pair]
        for name in others:
            cells += [number(result.metrics[name].rmse[j]), match(result.metrics[name].match[j])]
        cells += [] if noise is None else [number(noise[j])]
        table.add(joint, *cells, subject.torque_unit(j), level=_joint_level(subject, j))
    total = [match(100.0 - errors.relative_error_total) for errors in pair] + ['', '']
    for name in others:
        total += ['', match(100.0 - result.metrics[name].relative_error_total)]
    table.add('All joints', *total, *('' for _ in heads[len(total) :]), '')
    return table


def condition_table(result: IdentificationResult) -> Table:
    """Return the condition number of the training data, with its light."""
    return Table(
        'Condition number of the observation matrix',
        ('Of', '#SI units', '#Column-scaled'),
        [('Training data', number(result.condition_si), number(result.condition_scaled))],
        [condition_level(result.condition_scaled)],
        reading='The ratio of the largest singular value of the matrix to the smallest: by how much more the noise '
        'disturbs the combination of parameters that was excited worst than the one that was excited best. The '
        f'scaled number does not depend on units: below {GOOD_CONDITION:.0f} is good, above {POOR_CONDITION:.0f} '
        'some parameters are not determined.',
    )


def replay_items(found: Replayed) -> Iterator[Item]:
    """Yield the verdict, the errors of each joint as a chart, and the tables."""
    yield sentence(found.verdict)
    rows = found.joint_names
    before, after = found.described.relative, found.identified.relative
    low, high = float(min(before.min(), after.min())), float(max(before.max(), after.max()))
    figure = Figure(
        'replay',
        'Does the simulated arm move as the recorded one did?',
        f'Left of the dotted line, at {READY:g} %, a joint is ready for simulation.',
        wide=True,
    )
    chart = figure.chart(
        'Error of the motion',
        axis('error [%]', log=True, limits=(0.5 * max(low, 1e-3), 2.0 * max(high, READY))),
        axis(rows=rows),
        note=f'windows of {found.window:g} s',
        alt='Motion error of each joint: '
        + '; '.join(f'{name} {number(before[j])} % before, {number(after[j])} % after' for j, name in enumerate(rows)),
        height=90 + 34 * len(rows),
    )
    chart.intervals('prior', before, 'before: as described', rows, shift=0.12)
    chart.intervals('predicted', after, 'after: as identified', rows, shift=-0.12)
    chart.rule('x', READY)
    yield figure
    yield from replay_tables(found)


def replay_tables(found: Replayed) -> Iterator[Table]:
    """Yield the motion errors of each joint, and the servos where there are some."""
    rows = found.joint_names
    errors = {'#Error [before]': found.described, '#Error [after]': found.identified}
    more = {'#All friction': found.whole, '#Possible': found.possible}
    errors |= {name: error for name, error in more.items() if error is not None}
    relative = zip(*(map(percent, error.relative) for error in errors.values()), strict=True)
    rms = zip(*(map(number, error.rms) for error in (found.described, found.identified)), strict=True)
    yield Table(
        'Motion errors',
        ('Joint', *errors, '#RMS [before]', '#RMS [after]'),
        ((joint, *shares, *sizes) for joint, shares, sizes in zip(rows, relative, rms, strict=True)),
        ('good' if value < READY else 'caution' for value in found.identified.relative),
        reading='Difference of the simulated from the recorded positions, as a part of the motion within the windows, '
        'and its root mean square [rad or m]. Before: the arm as described; after: as the exported MJCF holds it; '
        'all friction: with what no MJCF holds; possible: of an arm exactly as identified, driven by a torque '
        'signal of the recorded bandwidth.',
    )
    servo = found.servo
    if servo is not None:
        columns = zip(servo.stiffness, servo.damping, 100.0 * servo.share, servo.play, servo.match, strict=True)
        heads = ('#Stiffness [N·m/rad]', '#Damping [N·m·s/rad]', '#Model torque [%]', '#Play [rad]', '#Match [%]')
        yield Table(
            'Servos',
            ('Joint', *heads),
            ((joint, *map(number, row)) for joint, row in zip(rows, columns, strict=True)),
            reading='Found in the first half of the recording. '
            f'The command arrives {number(1e3 * servo.delay, 2)} ms late.',
        )
