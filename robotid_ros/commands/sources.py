# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""The arm, its signals and how recordings are processed: what the recordings say, and the options that override it."""

import argparse
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from robotid_ros.commands.options import load_config, load_robot, named_joints, processing_settings
from robotid_ros.data import ProcessingSettings
from robotid_ros.data.context import Context, read_context
from robotid_ros.data.readers import recordings_in
from robotid_ros.errors import DataError, RobotIdError
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.model.robot_config import configured_arm

if TYPE_CHECKING:
    from robotid_ros.identification import IdentificationResult

COLUMNS = 'as the columns of CSV say: effort a torque [N m or N], current [A] by torque constants'
_NOT_OF_CSV = '; what the configuration says of effort is of joint states: columns of currents are called current/JOINT'


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What the recordings of a command are taken with."""

    model: RobotModel
    config: RobotConfig | None
    settings: ProcessingSettings
    contexts: dict[Path, Context]  # what each recording says
    lines: tuple[str, ...]  # what was taken from where, to be printed first

    @property
    def context(self) -> dict[str, object]:
        """What was used, for the datasets made with it."""
        robot = {} if self.config is None else self.config.content()
        return Context(description=self.model.source or '', robot=robot).to_dict()


def expanded(paths: Sequence[str | Path]) -> list[Path]:
    """Return recordings, with those below each folder that is none itself."""
    return [each for path in map(Path, paths) for each in (recordings_in(path) or [path])]


def source_of(
    options: argparse.Namespace, recordings: Sequence[str | Path], result: 'IdentificationResult | None' = None
) -> Source:
    """Return the arm and the settings for some recordings: what an option gives, otherwise what they say.

    With the result of an identification, its joints are taken, and the description it was made from stands in where
    the recordings have none; ``options.result`` is its path. Raises a RobotIdError if nothing describes the arm,
    recordings contradict each other, or what they say cannot be used.
    """
    if result is not None:
        options.joints = options.joints or list(result.joint_names)
    named = named_joints(options)
    contexts = {Path(path): read_context(path, options.topic, named) for path in recordings}
    told = dict(contexts)
    if result is not None:  # what the data of its identification say, which lie beside it
        place = Path(options.result)
        kept = (place if place.is_dir() else place.parent) / 'training_1.npz'
        told |= {kept: read_context(kept)} if kept.is_file() else {}
    along = {name for context in contexts.values() for name in context.joints}
    model, config, where, whence = arm_of(options, told, along)
    settings = processing_settings(options, config, model.joint_names)
    csv = bool(recordings) and all(path.suffix in ('.csv', '.txt') for path in contexts)
    currents = config is not None and 'current' in config.effort.values()
    meaning = f'{COLUMNS}{_NOT_OF_CSV * currents}' if csv else f'{_meaning(model.joint_names, config)}{whence}'
    lines = [f'arm        {model.name}, {model.n} joints to {model.link_names[-1]}: {where}', f'effort     {meaning}']
    lines += [] if options.joints else _slow(model)
    return Source(model=model, config=config, settings=settings, contexts=contexts, lines=tuple(lines))


def arm_of(
    options: argparse.Namespace, told: dict[Path, Context], along: Collection[str] = ()
) -> tuple[RobotModel, RobotConfig | None, str, str]:
    """Return the arm that an option names or recordings describe, its configuration, and where both were found.

    Of several arms it is the one with the joints ``along``. A RobotIdError is raised as by :func:`source_of`.
    """
    config, whence = configuration(options, told)
    if options.robot is not None:
        return load_robot(options, config, along), config, f'--robot {options.robot}', whence
    path, context = _one('description', told, '--robot')
    topic = context.topics.get('robot_description')
    tip, joints = options.tip or '', options.joints or ()
    try:
        model = configured_arm(context.description, config, tip=tip, joints=joints, along=along)
    except RobotIdError as cause:
        raise cause.within(f'{topic or "the description"} in {path}', file=str(path)) from None
    return model, config, f'{topic or "kept"} in {path.name}', whence


def _slow(model: RobotModel) -> list[str]:
    """Name joints, such as a torso, that are too slow to be excited together with the others."""
    speed = model.limits.velocity
    slow = speed < 0.2 * np.median(speed)
    if not slow.any() or not np.isfinite(speed[slow]).all():
        return []
    names = [name for name, each in zip(model.joint_names, slow.tolist(), strict=True) if each]
    rest = ' '.join(name for name in model.joint_names if name not in names)
    return [f'note       slow beside the others: {", ".join(names)}; if it stood still, leave it out: --joints {rest}']


def by_purpose(
    recordings: Sequence[Path],
    validation: Sequence[Path],
    sweeps: Sequence[Path],
    contexts: dict[Path, Context],
    *,
    judged: bool,
) -> tuple[list[Path], list[Path], list[Path]]:
    """Return recordings to learn from, to judge by, and of friction sweeps, by what each was recorded for.

    Nobody says it of a recording given as one to judge by, or as a sweep. One recorded for validation judges, unless
    others were given for that, or the result is ``judged`` already, or there is no other to learn from.
    """
    found = [path for path in recordings if contexts[path].purpose == 'friction_sweep']
    rest = [path for path in recordings if path not in found]
    judges = [] if judged or validation else [path for path in rest if contexts[path].purpose == 'validation']
    if len(judges) == len(rest):
        judges = []
    return [path for path in rest if path not in judges], [*validation, *judges], [*sweeps, *found]


def configuration(options: argparse.Namespace, told: dict[Path, Context]) -> tuple[RobotConfig | None, str]:
    """Return the robot configuration of ``--config``, or of the recordings, and where it was found."""
    if options.config is not None:
        return load_config(options), f': --config {options.config}'
    if not any(context.robot for context in told.values()):
        return None, ': no recording has a robot configuration, and no --config was given'
    path, context = _one('robot', told, '--config')
    topic = context.topics.get('robot_configuration', 'kept')
    try:
        return context.configuration(), f': {topic} in {path.name}'
    except RobotIdError as cause:
        raise cause.within(f'{topic} in {path}', file=str(path)) from None


def _one(part: str, told: dict[Path, Context], option: str) -> tuple[Path, Context]:
    """Return the first that says something; refuse recordings that contradict each other."""
    found = [(path, context) for path, context in told.items() if getattr(context, part)]
    if not found:
        raise DataError(f'which arm? No recording has a robot_description; give it by {option}')
    first = getattr(found[0][1], part)
    for path, context in found:
        if getattr(context, part) != first:
            what = 'another arm' if part == 'description' else 'another robot configuration'
            raise DataError(f'{path} has {what} than {found[0][0]}; if both are meant, give it by {option}')
    return found[0]


def _meaning(joints: Sequence[str], config: RobotConfig | None) -> str:
    """Return in words what the effort of the joints is."""
    effort = {} if config is None else config.effort
    kinds: dict[str, list[str]] = {}
    for joint in joints:
        kinds.setdefault(effort.get(joint, 'unknown'), []).append(joint)
    names = {
        'torque': 'torque',
        'current': 'motor current, by torque constants',
        'unknown': 'unknown, taken as torque; compare masses with the description, or say it by --config',
    }
    if len(kinds) == 1:
        return names[next(iter(kinds))]
    return '; '.join(f'{names[kind]} ({", ".join(own)})' for kind, own in kinds.items())
