"""The steps of an identification from files to files: what the commands and the demonstration call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from robotid_ros.data import (
    Dataset,
    ProcessingSettings,
    concatenate,
    load_dataset,
    process_recording,
    read_recording,
    summarize,
)
from robotid_ros.data.storage import DATASET_KIND, npz_kind
from robotid_ros.errors import DataError, MissingDependencyError
from robotid_ros.files import write_text
from robotid_ros.identification import IdentificationConfig, IdentificationResult, calibrated_urdf, identify
from robotid_ros.model import RobotModel
from robotid_ros.report import write_report
from robotid_ros.report.identification import identification_report

__all__ = ['Identification', 'identify_files', 'load_datasets', 'write_identification']

Progress = Callable[[float, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identification:
    """An identified model together with the data it was made from.

    Attributes
    ----------
    model : RobotModel
    result : IdentificationResult
    training : Dataset
    validation : Dataset or None
    summaries : tuple of str
        What was found in each file.
    """

    model: RobotModel
    result: IdentificationResult
    training: Dataset
    validation: Dataset | None
    summaries: tuple[str, ...]


def load_datasets(
    paths: Sequence[str | Path],
    settings: ProcessingSettings,
    *,
    topic: str | None = None,
    train_fraction: float | None = None,
) -> tuple[list[Dataset], list[Dataset], list[str]]:
    """Read recordings, or datasets that were processed before.

    Parameters
    ----------
    paths : sequence of str or Path
    settings : ProcessingSettings
    topic : str, optional
        Of bags.
    train_fraction : float, optional
        Cut every recording there, before any filter sees it: the part before trains, the rest
        validates.

    Returns
    -------
    training, held_out : list of Dataset
        The second is empty without ``train_fraction``.
    summaries : list of str

    Raises
    ------
    DataError
        If a file cannot be used, or cannot be cut: an average over periods, or a dataset.
    """
    if train_fraction is not None and not 0.0 < train_fraction < 1.0:
        raise DataError(f'train_fraction: expected a number between 0 and 1, got {train_fraction:g}')
    if train_fraction is not None and settings.period is not None:
        raise DataError('an average over periods cannot be cut in two; give recordings to validate with instead')
    training, held_out, summaries = [], [], []
    for path in paths:
        if Path(path).suffix == '.npz' and npz_kind(path) == DATASET_KIND:
            if train_fraction is not None:
                raise DataError(f'{path} is processed already; give the recording, which can be cut before filtering')
            training.append(_of_joints(load_dataset(path), settings.joints, path))
            summaries.append(f'dataset    {Path(path).name}: {len(training[-1])} samples')
            continue
        recording = read_recording(path, topic, settings.joints or None)
        if train_fraction is None:
            parts = [recording]
        else:
            cut = round(train_fraction * len(recording))
            parts = [recording.slice(0, cut), recording.slice(cut, len(recording))]
        processed = [process_recording(part, settings) for part in parts]
        training.append(processed[0])
        held_out += processed[1:]
        summaries += [summarize(dataset) for dataset in processed]
    return training, held_out, summaries


def identify_files(
    paths: Sequence[str | Path],
    model: RobotModel,
    settings: ProcessingSettings,
    config: IdentificationConfig,
    *,
    validation: Sequence[str | Path] = (),
    train_fraction: float | None = None,
    topic: str | None = None,
    progress: Progress | None = None,
) -> Identification:
    """Identify an arm from files.

    Parameters
    ----------
    paths : sequence of str or Path
        Recordings or datasets to learn from.
    model : RobotModel
    settings : ProcessingSettings
    config : IdentificationConfig
    validation : sequence of str or Path
        Recordings or datasets that only the metrics see.
    train_fraction : float, optional
        Instead of ``validation``: see :func:`load_datasets`.
    topic : str, optional
        Of bags.
    progress : callable, optional

    Raises
    ------
    RobotIdError
        As reading, processing and identifying do.
    """
    if validation and train_fraction is not None:
        raise DataError('give recordings to validate with, or a fraction to train with, not both')
    same = {Path(path).resolve() for path in paths} & {Path(path).resolve() for path in validation}
    if same:
        raise DataError(
            f'{same.pop()} is given for training and for validation; a model cannot be judged on its own data'
        )
    training, held_out, summaries = load_datasets(paths, settings, topic=topic, train_fraction=train_fraction)
    if validation:
        held_out, _, more = load_datasets(validation, settings, topic=topic)
        summaries += more
    result = identify(training, model, validation=held_out, config=config, progress=progress)
    return Identification(
        model=model,
        result=result,
        training=concatenate(training),
        validation=concatenate(held_out) if held_out else None,
        summaries=tuple(summaries),
    )


def write_identification(folder: Path, identification: Identification) -> list[Path]:
    """Write result.yaml, calibrated.urdf (for a robot from a URDF) and report.html.

    The report is left out where its plotting library is not installed.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    DataError
        If the folder cannot be written.
    """
    model, result = identification.model, identification.result
    written = [folder / 'result.yaml']
    result.save(written[0])
    if model.source is not None:
        written.append(folder / 'calibrated.urdf')
        write_text(written[-1], calibrated_urdf(model, result))
    try:
        report = identification_report(model, result, identification.training, validation=identification.validation)
        write_report(report, folder / 'report.html')
        written.append(folder / 'report.html')
    except MissingDependencyError:
        pass
    return written


def _of_joints(dataset: Dataset, joints: tuple[str, ...], path: str | Path) -> Dataset:
    missing = [name for name in joints if name not in dataset.joint_names]
    if missing:
        raise DataError(f"{path}: joint '{missing[0]}' is not in the dataset; it has: {', '.join(dataset.joint_names)}")
    return dataset
