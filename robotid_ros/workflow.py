# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The steps of an identification from files to files: what the commands and the demonstration call."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from os.path import realpath
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.data import (
    Dataset,
    ProcessingSettings,
    load_dataset,
    process_file,
    process_recording,
    read_recording,
    read_strokes,
    save_dataset,
    summarize,
)
from robotid_ros.data.context import read_context
from robotid_ros.data.storage import is_dataset
from robotid_ros.data.strokes import FrictionStrokes
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.files import together, write_text
from robotid_ros.identification import (
    IdentificationConfig,
    IdentificationResult,
    SelectionConfig,
    TorquePredictor,
    calibrated_urdf,
)
from robotid_ros.identification.plausibility import held_joints, require_held
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.progress import Progress

REPLAY = 'replay.yaml'  # beside a result: the last replay of a recording


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """An identified model together with the data it was made from, a dataset for each recording.

    ``summaries`` say what was found in each file.
    """

    model: RobotModel
    result: IdentificationResult
    training: tuple[Dataset, ...]
    validation: tuple[Dataset, ...]
    summaries: tuple[str, ...] = ()


def load_datasets(
    paths: Sequence[str | Path],
    settings: ProcessingSettings,
    *,
    topic: str | None = None,
    train_fraction: float | None = None,
) -> tuple[list[Dataset], list[Dataset], list[str]]:
    """Read recordings, or datasets that were processed before.

    With ``train_fraction``, every recording is cut there before any filter sees it: the part before trains, the rest is
    held out. ``topic`` is that of bags. Raises a DataError if a file cannot be used, or cannot be cut: an average over
    periods, or a dataset.

    Returns ``training``, ``held_out``: the second is empty without ``train_fraction``.
    """
    if train_fraction is not None and not 0.0 < train_fraction < 1.0:
        raise DataError(f'train_fraction: expected a number between 0 and 1, got {train_fraction:g}')
    training, held_out, summaries = [], [], []
    for path in paths:
        if is_dataset(path):
            if train_fraction is not None:
                raise DataError(f'{path} is processed already; give the recording, which can be cut before filtering')
            training.append(load_dataset(path))
            require_names(settings.joints, training[-1].joint_names, 'joint', f"the dataset '{path}'", DataError)
            summaries.append(f'dataset    {Path(path).name}: {len(training[-1])} samples')
            continue
        if train_fraction is None:
            try:
                dataset, summary = process_file(path, settings, topic)
            except DataError as cause:  # with several files given, which one it is about
                raise cause if Path(path).name in str(cause) else cause.within(str(path), file=str(path)) from cause
            training.append(_named(dataset, Path(path).name))
            summaries.append(summary)
            continue
        recording = read_recording(path, topic, settings.joints or None)
        cut = round(train_fraction * len(recording))
        processed = [
            process_recording(part, settings)
            for part in (recording.slice(0, cut), recording.slice(cut, len(recording)))
        ]
        training.append(processed[0])
        held_out += processed[1:]
        summaries += [summarize(dataset) for dataset in processed]
    return training, held_out, summaries


def load_by_purpose(path: Path, model: RobotModel, config: RobotConfig | None) -> tuple[str, Dataset | FrictionStrokes]:
    """Return what a recording of an arm was made for, and its data: strokes of a friction sweep, or a dataset.

    Without a configuration, that of the recording says what its efforts are. Raises a DataError if it cannot be used.
    """
    context = read_context(path, joints=model.joint_names)
    config = config or context.configuration()
    settings = ProcessingSettings.for_robot(config, joints=model.joint_names)
    if context.purpose == 'friction_sweep':
        return context.purpose, read_strokes(path, settings)
    return context.purpose, _named(process_file(path, settings)[0], path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Recordings or datasets to identify an arm from, and how they are read.

    Raises a DataError if a fraction is given beside recordings to judge by, or one file for both purposes.
    """

    training: Sequence[str | Path]
    friction: Sequence[str | Path] = ()  # recordings of friction sweeps
    validation: Sequence[str | Path] = ()  # recordings or datasets that only the metrics see
    settings: ProcessingSettings
    # how those for validation are processed where they were made with another excitation; by default as the others
    validation_settings: ProcessingSettings | None = None
    # as the next: see :func:`load_datasets`; a fraction takes the place of ``validation``
    train_fraction: float | None = None
    topic: str | None = None

    def __post_init__(self) -> None:
        if self.validation and self.train_fraction is not None:
            raise DataError('give recordings to validate with, or a fraction to train with, not both')
        same = set(map(realpath, self.training)) & set(map(realpath, self.validation))  # takes links that lead back
        if same:
            raise DataError(
                f'{same.pop()} is given for training and for validation; a model cannot be judged on its own data'
            )

    def read(self, model: RobotModel) -> tuple[list[Dataset], list[Dataset], list[FrictionStrokes], list[str]]:
        """Return what trains, what is held out, the friction strokes, and what was found in each file.

        Raises a DataError as :func:`load_datasets` does; if a joint moves that the model holds at zero.
        """
        # Joints that are in a recording, carry a part of the arm, and are not identified, must stand still.
        held = set(held_joints(model)) if self.settings.joints else set()
        unseen: list[str] = []
        for path in (*self.training, *self.validation) if held else ():
            if is_dataset(path):
                continue  # holds no joints but those it was made for, or is looked at when it is used
            context = read_context(path, self.topic, self.settings.joints)
            if held & set(context.joints):
                recording = read_recording(path, context.topics.get('joint_states'))
                said = require_held(recording.joint_names, recording.position, model)
                unseen += [f'{Path(path).name}: {text}' for text in said]
        training, held_out, summaries = load_datasets(
            self.training, self.settings, topic=self.topic, train_fraction=self.train_fraction
        )
        summaries += [f'note       {sentence}' for sentence in unseen]
        if self.validation:
            judging = self.validation_settings or self.settings
            held_out, _, more = load_datasets(self.validation, judging, topic=self.topic)
            summaries += more
            _require_different(training, held_out)
        strokes = [read_strokes(path, self.settings, self.topic) for path in self.friction]
        summaries += [
            f'friction   {Path(path).name}: {each.count} steady strokes'
            for path, each in zip(self.friction, strokes, strict=True)
        ]
        return training, held_out, strokes, summaries


def _require_different(training: Sequence[Dataset], held_out: Sequence[Dataset]) -> None:
    """Raise a DataError if one recording, be it in two files, trains and judges."""
    for one, other in product(training, held_out):
        if len(one) == len(other) and np.array_equal(one.q, other.q) and np.array_equal(one.tau, other.tau):
            names = ' and '.join(each.sources[0] for each in (one, other))
            raise DataError(f'{names} are one recording; a model cannot be judged on its own data')


def identify_files(
    files: Files,
    model: RobotModel,
    config: IdentificationConfig,
    *,
    selection: SelectionConfig | None = None,
    context: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Identification:
    """Identify an arm from files.

    ``selection``: whether the recordings are dealt out to training, validation and test, and friction models compete:
    see :func:`robotid_ros.identification.selection.select`. ``context``: the arm as it was used, kept with the datasets
    in place of what their recordings say; see :meth:`robotid_ros.data.context.Context.to_dict`. Raises a RobotIdError
    as reading, processing and identifying do.
    """
    training, held_out, strokes, summaries = files.read(model)
    selection = selection or SelectionConfig()
    if selection.select and files.train_fraction is not None:
        raise DataError('the selection deals whole recordings out; leave out the fraction to train with')
    result = selection.method(
        training, model, friction_data=strokes, validation=held_out, config=config, progress=progress
    )
    predictor = TorquePredictor(model, result)
    training, held_out = (
        [each if context is None else replace(each, context=context) for each in predictor.prepared(datasets)]
        for datasets in (training, held_out)
    )
    return Identification(
        model=model, result=result, training=tuple(training), validation=tuple(held_out), summaries=tuple(summaries)
    )


_WRITTEN = ('calibrated.urdf', 'training_*.npz', 'validation_*.npz', 'report.html', REPLAY)
"""Beside result.yaml: of another identification they would be taken for its own."""


def write_identification(
    folder: Path,
    identification: Identification,
    *,
    true_base: Array | None = None,
    true_friction: Callable[[Array, Array], Array] | None = None,
) -> list[Path]:
    """Write result.yaml, the datasets, report.html and, for a robot from a URDF, calibrated.urdf; return the paths.

    They take their names together, in place of those of an earlier identification. The report is left out where its
    plotting library is not installed. For the truth of a simulation see
    :func:`robotid_ros.report.identification.identification_report`. A DataError says that the folder cannot be written.
    """
    from robotid_ros.report.identification import identification_report  # not at the top: no command needs it to start
    from robotid_ros.report.page import write_report

    model, result = identification.model, identification.result
    names = ['result.yaml']
    with together(folder, names[0], _WRITTEN) as place:
        result.save(place / names[0])
        if model.source is not None:
            names.append('calibrated.urdf')
            write_text(place / names[-1], calibrated_urdf(model, result))
        for name, datasets in (('training', identification.training), ('validation', identification.validation)):
            for number, dataset in enumerate(datasets, 1):
                names.append(f'{name}_{number}.npz')
                save_dataset(place / names[-1], dataset)
        with suppress(MissingDependencyError):
            report = identification_report(
                model,
                result,
                identification.training,
                validation=identification.validation,
                true_base=true_base,
                true_friction=true_friction,
            )
            write_report(report, place / 'report.html')
            names.append('report.html')
    return [folder / name for name in names]


def render_again(folder: Path, model: RobotModel) -> Path:
    """Write report.html anew from what :func:`write_identification` left in a folder, with its replay if there is one.

    The model is the arm as it was described for the identification. A RobotIdError says that a file is missing or
    belongs to another arm, or that the plotting library is absent.
    """
    from robotid_ros.export.replay import Replayed  # see write_identification
    from robotid_ros.report.identification import identification_report
    from robotid_ros.report.page import write_report

    result = IdentificationResult.load(folder / 'result.yaml')
    training, validation = (
        # 10 comes after 9, as they were numbered
        [load_dataset(path) for path in sorted(folder.glob(f'{name}_*.npz'), key=lambda path: (len(path.name), path))]
        for name in ('training', 'validation')
    )
    if not training:
        raise DataError(f'{folder}: expected training_1.npz beside result.yaml, as "robotid identify" writes it')
    replayed = Replayed.load(folder / REPLAY) if (folder / REPLAY).is_file() else None
    report = identification_report(model, result, training, validation=validation, replayed=replayed)
    write_report(report, folder / 'report.html')
    return folder / 'report.html'


def _named(dataset: Dataset, file: str) -> Dataset:
    """Return a dataset whose trajectories are called by their file."""
    count = len(dataset.sources)
    names = (file,) if count == 1 else tuple(f'{file}, run {k + 1}' for k in range(count))
    return replace(dataset, sources=names)
