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
from robotid_ros.identification import IdentificationResult
from robotid_ros.report.content import (
    Fact,
    Level,
    Table,
    Verdict,
    friction_label,
    integer,
    number,
    percent,
    sentence,
    usable,
    words,
)
from robotid_ros.report.motion import condition_fact, condition_level
from robotid_ros.report.subject import Subject

GOOD_MATCH = 85.0  # %
FAIR_MATCH = 65.0
_WORSE_THAN_TRAINING = 1.5
_NOISE_FACTOR = 1.3  # below this multiple of the noise, an error is all noise
_BY_VELOCITY = 0.3  # of the difference's power; 20 bins of hundreds of samples of pure noise explain some per cent
_LITTLE = 0.05  # of the torque of the joint that carries most
_LARGE_ERROR = 5.0  # %; below, twice the training error is still a good model


def summary(subject: Subject) -> str:
    """Return what was done, in one paragraph."""
    result, data = subject.result, subject.training.dataset
    runs = len(data.sources)
    text = (
        f'The dynamics of {result.robot} ({len(result.joint_names)} joints) were identified from '
        f'{integer(len(data))} samples of {f"{runs} runs" if runs > 1 else "one run"} at {number(data.rate)} Hz'
    )
    if data.periods > 1:
        text += f', each the average of {data.periods} periods'
    text += (
        f': {len(result.base_names)} base parameters and, for each joint, friction as '
        f'{friction_label(result.friction_name)}. '
    )
    if subject.unseen is None:
        return text + 'No data were kept back, so nothing here says how well the model predicts other motions.'
    count = integer(len(subject.unseen.dataset))
    return text + (
        f'The model then predicted the torque of {count} samples that it had not seen; every error below is against '
        'the torque as recorded, without filtering.'
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
    if result.usable and subject.consistent_error > _WORSE_THAN_TRAINING * metrics.relative_error_total + 1.0:
        yield (
            f'The physically consistent parameters, which calibrated.urdf holds, leave '
            f'{percent(subject.consistent_error)} of the torque unexplained: for control, use generated code or the '
            'predictor, which compute with the base parameters.'
        )
    weak = [name for j, name in enumerate(metrics.joint_names) if joint_level(subject, j) == 'bad']
    if weak:
        yield f'Less than {FAIR_MATCH:.0f} % of the torque is explained at {", ".join(weak)}.'


def facts(subject: Subject) -> tuple[Fact, ...]:
    """Return the numbers to see first."""
    result, metrics, data = subject.result, subject.metrics, subject.training.dataset
    where = subject.judged.title.lower()
    worst = int(metrics.rmse.argmax())
    training = result.metrics['training'].relative_error_total
    return (
        Fact(
            label=f'Torque explained, {where}',
            value=percent(100.0 - metrics.relative_error_total),
            note=f'training {percent(100.0 - training)}',
        ),
        Fact(
            label='Largest rmse of a joint',
            value=f'{number(metrics.rmse[worst])} {subject.torque_unit(worst)}',
            note=metrics.joint_names[worst],
        ),
        condition_fact(result.condition_scaled, result.condition_si),
        Fact(
            label='Samples',
            value=integer(len(data)),
            note=f'{number(data.rate)} Hz, '
            + (f'bandwidth {number(data.cutoff)} Hz' if data.cutoff < 0.49 * data.rate else 'not filtered'),
        ),
    )


def joint_level(subject: Subject, joint: int) -> Level:
    """Return the traffic light of a joint: its match, or an error that is all noise."""
    match = float(subject.metrics.match[joint])
    noise = subject.noise
    if noise is not None and subject.metrics.rmse[joint] <= _NOISE_FACTOR * noise[joint]:
        return 'good'
    return 'good' if match >= GOOD_MATCH else 'caution' if match >= FAIR_MATCH else 'bad'


def good_for(result: IdentificationResult) -> Table:
    """Return what the model is good for, each with its number."""
    return Table(
        caption='What the model is good for',
        columns=words('Use', 'Answer'),
        rows=tuple((use.name, f'{"Yes" if use.good else "No"}: {sentence(use.text)}') for use in result.good_for),
        levels=tuple('good' if use.good else 'bad' for use in result.good_for),
    )


def joint_table(subject: Subject) -> Table:
    """Return what can be said of each joint, and what to do next."""
    found = [_joint_advice(subject, j) for j in range(len(subject.result.joint_names))]
    return Table(
        caption='Joint by joint',
        columns=words('Joint', 'Finding', 'Next'),
        rows=tuple((name, *said[1:]) for name, said in zip(subject.result.joint_names, found, strict=True)),
        levels=tuple(level for level, _, _ in found),
        reading=f'On the {subject.judged.title.lower()} data.',
    )


def match_text(value: float) -> str:
    """Return a match as it is printed: 'none' where the error is larger than the torque."""
    return 'none' if value < 0.0 else percent(value)


def _joint_advice(subject: Subject, j: int) -> tuple[Level, str, str]:
    """Return the light of a joint, what was found, and what to do."""
    result, metrics, run = subject.result, subject.metrics, subject.judged
    if j < len(result.joints) and result.joints[j].reason:
        said = result.joints[j]
        return 'caution' if said.usable else 'bad', sentence(said.reason), sentence(said.advice) if said.advice else ''
    unit, rmse, match = subject.torque_unit(j), float(metrics.rmse[j]), float(metrics.match[j])
    noise = subject.noise
    if noise is not None and rmse <= _NOISE_FACTOR * noise[j]:
        return 'good', f'The error of {number(rmse)} {unit} is all noise.', 'Nothing.'
    level = joint_level(subject, j)
    residual = run.dataset.tau[:, j] - run.predicted[:, j]
    by_velocity = velocity_share(run.dataset.dq[:, j], residual)
    training = float(result.metrics['training'].rmse[j])
    if by_velocity > _BY_VELOCITY and level != 'good':
        return (
            level,
            f'{percent(100.0 * by_velocity, 0)} of the difference depends on velocity alone: friction that is missed.',
            'Record a friction sweep of this joint, or let --friction auto choose from more data.',
        )
    if (
        subject.unseen is not None
        and rmse > _WORSE_THAN_TRAINING * training
        and rmse > 0.05 * float(np.sqrt(np.mean(run.dataset.tau[:, j] ** 2)))
    ):
        return (
            'caution' if level == 'good' else level,
            f'The error on new motions is {number(rmse / max(training, 1e-12), 2)} times that of the training.',
            'Record motions of more variety for this joint and those that carry it.',
        )
    if level == 'good':
        return 'good', f'{percent(match)} of the torque is explained.', 'Nothing.'
    torque = np.sqrt(np.mean(run.dataset.tau**2, axis=0))
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
