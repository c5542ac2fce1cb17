# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The report of a dynamic identification: its sections, and how the result came about."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset
from robotid_ros.export.replay import Replayed
from robotid_ros.identification.predictor import TorquePredictor
from robotid_ros.identification.result import IdentificationResult
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.report.content import Figure, Item, Report, Table, integer, number, quantities, sections_of, words
from robotid_ros.report.parameters import parameter_items
from robotid_ros.report.plot import chart, line
from robotid_ros.report.subject import Subject, consistent_error, predicted_run
from robotid_ros.report.torque import (
    coverage_figure,
    friction_items,
    residual_spectrum_figure,
    residual_velocity_figure,
    torque_figure,
)
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

_MOST = 24  # entries of a list
_SHOWN = 6  # alternatives of a decision, the best first
_USES = ('training', 'validation', 'test')


def provenance_items(result: IdentificationResult) -> Iterator[Item]:
    """Yield tables of decisions, files, settings, and what else the result keeps about its making."""
    if result.decisions:
        yield Table(
            caption='What was tried and chosen',
            columns=words('Choice', 'Chosen', 'Tried, with the held-out torque error'),
            rows=tuple(
                (each.subject, each.chosen, '; '.join(_alternatives(each.alternatives))) for each in result.decisions
            ),
            reading='The error is the root mean square over all joints against the torque as recorded, in groups of '
            'states that the fit had not seen. A choice that is not the best of its list held first, and no other was '
            'better by more than the scatter.',
        )
    origin = result.provenance
    if 'search' in origin:
        yield _search_figure(np.array(origin['search'], dtype=float))
    files = tuple(_files(origin))
    if files:
        yield Table(
            caption='Files',
            columns=(*words('File', 'Use'), *quantities('Samples'), *words('SHA-256')),
            rows=files,
            reading='Compare with sha256sum. A file without a hash was not read here: its samples came over ROS or '
            'from a program.',
        )
    if origin.get('command'):
        yield Table(
            caption='Command',
            columns=words('Run in', 'Words'),
            rows=((str(origin.get('folder', '')), str(origin['command'])),),
            reading='Repeats the identification with the same files, versions and settings.',
        )
    rest = {key: value for key, value in origin.items() if key not in (*_USES, 'command', 'folder', 'robot')}
    rows = tuple(_flat(rest)) + tuple(row for name in _USES for row in _flat({name: origin.get(name) or {}}))
    if rows:
        yield Table(
            caption='Settings, versions, and how each recording was processed',
            columns=words('Entry', 'Value'),
            rows=rows,
        )


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


def _search_figure(cost: Array) -> Figure:
    """Return the fitness of the best parameters over the cycles of a search."""
    cycle, fitness = np.arange(float(len(cost))), 1.0 / (1.0 + cost)
    drawn = chart(
        'Bee colony',
        'cycle',
        'fitness 1 / (1 + F)',
        line('predicted', cycle, fitness, 'best source'),
        note=f'{number(fitness[-1])} after {len(cost) - 1} cycles',
        alt=f'The fitness rises from {number(fitness[0])} to {number(fitness[-1])} in {len(cost) - 1} cycles.',
    )
    return Figure(
        name='search',
        caption='Fitness of the bee colony',
        reading='1 / (1 + F) of the best source so far; F is the sum over the joints of the squared torque error '
        'relative to the squared torque. A curve that still rises at its end asks for more cycles.',
        charts=(drawn,),
        wide=True,
    )


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

    Parameters
    ----------
    model : RobotModel
        The arm as described: its inertial parameters are the prior that is shown.
    result : IdentificationResult
    training : Dataset or sequence of Dataset
        What the model was fitted to.
    validation : Dataset or sequence of Dataset
        What it had not seen.
    true_base : ndarray, shape (b,), optional
        True base parameters, where a simulation knows them.
    true_friction : callable, optional
        True friction torque [N m or N] of velocities and loads, all of shape (K, n).
    replayed : Replayed, optional
        The replay of a recording by the identified arm.

    Raises
    ------
    IdentificationError
        If the result belongs to another arm, or a joint is not in the data.
    """
    predictor = TorquePredictor(model, result)
    trained = predicted_run('Training', training, predictor)
    held_out = [validation] if isinstance(validation, Dataset) else list(validation)
    unseen = predicted_run('Validation', held_out, predictor) if held_out else None
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
        sections=sections_of(
            ('Good for', uses_of(result)),
            ('Joints', (joint_table(subject),)),
            ('Torque', (error_table(subject), *map(torque_figure, runs))),
            ('Difference', (residual_velocity_figure(judged), residual_spectrum_figure(judged))),
            ('Friction', friction_items(subject)),
            ('Parameters', parameter_items(subject)),
            ('Excitation', (condition_table(result), coverage_figure(trained, model.limits))),
            ('Replay', () if replayed is None else replay_items(replayed)),
            ('How it was done', provenance_items(result)),
        ),
    )
