"""Options that say how recordings become datasets."""

import argparse
from pathlib import Path
from typing import Any

from robotid_ros.data import Dataset, ProcessingSettings, load_dataset, process_file
from robotid_ros.data.settings import DIFFERENTIATIONS
from robotid_ros.data.storage import DATASET_KIND, npz_kind
from robotid_ros.errors import DataError
from robotid_ros.excitation.storage import load_excitation
from robotid_ros.model import RobotConfig

__all__ = ['add_processing_arguments', 'processing_settings', 'read_datasets']


def add_processing_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--excitation``, ``--cutoff`` and the like."""
    parser.add_argument('--excitation', metavar='YAML', help='the excitation that was run: average over its periods')
    parser.add_argument('--period', type=float, metavar='S', help='average over periods of this length [s]')
    parser.add_argument('--cutoff', type=float, metavar='HZ', help='cut-off of the zero-phase low-pass; from the data')
    parser.add_argument(
        '--differentiation', choices=DIFFERENTIATIONS, help='of recordings that are not periodic (default: central)'
    )
    parser.add_argument('--topic', metavar='NAME', help='which sensor_msgs/JointState topic of a bag')
    parser.add_argument(
        '--effort',
        choices=('torque', 'current'),
        help="what the recording's effort holds, where no --config says it (default: torque [N m])",
    )


def processing_settings(
    options: argparse.Namespace, config: RobotConfig | None, joints: tuple[str, ...]
) -> ProcessingSettings:
    """Return the settings the options and the robot configuration ask for.

    Raises
    ------
    RobotIdError
        If they contradict each other, or the configuration does not say what ``effort`` holds.
    """
    if options.excitation and options.period:
        raise DataError('--excitation has the period already; leave --period out')
    period = options.period
    if options.excitation:
        period = load_excitation(options.excitation).trajectory.period
    values: dict[str, Any] = {'joints': joints, 'period': period, 'cutoff': options.cutoff}
    if options.differentiation:
        values['differentiation'] = options.differentiation
    if config is not None:
        if options.effort:
            raise DataError('the configuration says what effort holds; leave --effort out')
        meaning = dict(zip(joints, config.meaning(joints), strict=True))
        values |= {'effort': meaning, 'torque_constants': config.torque_constants, 'gear_ratios': config.gear_ratios}
    elif options.effort:
        values['effort'] = dict.fromkeys(joints, options.effort)
    return ProcessingSettings(**values)


def read_datasets(paths: list[str], settings: ProcessingSettings, topic: str | None) -> tuple[list[Dataset], list[str]]:
    """Return the datasets of recordings, or of files that hold datasets already, and what was found.

    Raises
    ------
    RobotIdError
        As the readers do, naming the file.
    """
    datasets, summaries = [], []
    for path in paths:
        if Path(path).suffix == '.npz' and npz_kind(path) == DATASET_KIND:
            dataset, summary = load_dataset(path), f'dataset    {Path(path).name}'
            if settings.joints and dataset.joint_names != settings.joints:
                raise DataError(
                    f'{path}: a dataset of the joints {", ".join(dataset.joint_names)}; '
                    f'the robot has {", ".join(settings.joints)}'
                )
        else:
            dataset, summary = process_file(path, settings, topic)
        datasets.append(dataset)
        summaries.append(summary)
    return datasets, summaries
