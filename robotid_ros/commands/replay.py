# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""``robotid replay``: does the simulated arm move as the recorded one did?

Drive the identified arm in MuJoCo by the recorded torque, or by the command through its servos, and compare its motion
with the recorded one, beside the arm as it was described.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from robotid_ros.commands.options import add_processing_arguments, add_robot_arguments, number
from robotid_ros.commands.sources import source_of
from robotid_ros.commands.terminal import report_table, save_yaml, say_written
from robotid_ros.data import Dataset, ProcessingSettings, process_recording, read_recording
from robotid_ros.data.processing import summarize
from robotid_ros.data.storage import is_dataset
from robotid_ros.errors import DataError
from robotid_ros.export.replay import replay
from robotid_ros.files import output_folder, write_text
from robotid_ros.identification import IdentificationResult
from robotid_ros.report import can_draw
from robotid_ros.report.verdict import replay_tables
from robotid_ros.workflow import REPLAY, load_datasets, render_again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add(
        'result',
        nargs='?',
        metavar='RESULT',
        help='result.yaml of "robotid identify", or its folder; none for an arm whose servos tell positions only',
    )
    add('--with', dest='recording', required=True, metavar='RECORDING', help='a recording that was not identified from')
    add('--command', metavar='CSV', help='commanded positions on the same clock: the arm follows them by its servos')
    # In shorter windows nothing is seen but the recorded state from which they start.
    add(
        '--window',
        type=number(float, 0.1, 1000.0),
        metavar='S',
        help='start again from the recorded state so often (default: 0.25, or 2 with --command)',
    )
    add_robot_arguments(parser, required=False)
    add_processing_arguments(parser)
    add('--out', metavar='DIR', help='write replay.yaml there (default: beside the result)')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    result = None if options.result is None else IdentificationResult.load(options.result)
    folder = Path(options.result or '.')
    folder = folder if folder.is_dir() else folder.parent
    source = source_of(options, [options.recording], result)
    print('\n'.join(source.lines))
    model, settings = source.model, source.settings
    still = _without_torque(options, settings)
    if still is None:
        (dataset,), _, (summary,) = load_datasets([options.recording], settings, topic=options.topic)
    else:
        dataset = still
        whose = 'identified model' if result is not None else "description's bodies"
        summary = f'{summarize(still)}\ntorque     none: servos are identified with the torque of the {whose}'
    print(summary)
    for finding in () if result is None or result.setup is None else result.setup.findings:
        print(f'set-up     as in the identification: {finding.text}')
    command = None
    if options.command is not None:
        given = read_recording(options.command, None, model.joint_names)
        if given.time[0] > dataset.time[-1] or given.time[-1] < dataset.time[0]:
            raise DataError(f'{options.command}: its times are not those of {options.recording}')
        command = np.stack([np.interp(dataset.time, given.time, column) for column in given.position.T], axis=1)
    found = replay(model, result, dataset, command=command, window=options.window, has_torque=still is None)
    for table in replay_tables(found):
        print(f'{report_table(table)}\n')
    if found.servo is not None:
        print(f'servo delay {1e3 * found.servo.delay:.1f} ms')
    print(found.verdict)
    path = (folder if options.out is None else output_folder(options.out)) / REPLAY
    save_yaml(path, found.to_dict())
    if found.mjcf:
        write_text(path.with_name('servos.xml'), found.mjcf)
        say_written(path.with_name('servos.xml'))
    if result is not None and options.out is None and (folder / 'training_1.npz').is_file() and can_draw():
        say_written(render_again(folder, model))
    return 0


def _without_torque(options: argparse.Namespace, settings: ProcessingSettings) -> Dataset | None:
    """Return a recording without torque as a dataset, its torque zero; None where there is a torque."""
    if is_dataset(options.recording):
        return None
    recording = read_recording(options.recording, options.topic, settings.joints or None)
    if any(signal is not None and np.isfinite(signal).any() for signal in (recording.effort, recording.current)):
        return None
    zero = replace(recording, effort=np.zeros_like(recording.position), current=None)
    return process_recording(zero, replace(settings, effort={}))
