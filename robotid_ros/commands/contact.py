# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid contact``: the external torques that are a contact, from recordings without one.

Find the external torque of each joint beyond which it is a contact, with a stated rate of false alarms, from
recordings without contact; write it for the identification node and as a C++ header.
"""

import argparse
from pathlib import Path

import numpy as np
import yaml

from robotid_ros.arrays import Array
from robotid_ros.commands.options import add_processing_arguments, add_robot_arguments
from robotid_ros.commands.sources import Source, expanded, source_of
from robotid_ros.commands.terminal import joint_table, say_written
from robotid_ros.data import read_recording
from robotid_ros.data.settings import measured_torque
from robotid_ros.errors import DataError
from robotid_ros.export.source_code import contact_header, identifier
from robotid_ros.files import output_folder, write_files
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.loads.contact import RELEASE, contact_levels, monitored, smallest_push

_POSES = 100  # of a recording, in which pushes are looked at


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('result', metavar='RESULT', help='result.yaml of "robotid identify", its folder, or a card')
    parser.add_argument(
        '--with', dest='free', nargs='+', required=True, metavar='RECORDING', help='recordings without contact, raw'
    )
    parser.add_argument('--judge', nargs='+', default=[], metavar='RECORDING', help='others, to count false alarms in')
    parser.add_argument('--alarms', type=float, default=1.0, metavar='N', help='false alarms an hour (default: 1)')
    parser.add_argument('--filter', type=float, default=10.0, metavar='HZ', help='of the two low-passes (default: 10)')
    parser.add_argument('--out', default='contact', metavar='DIR', help='default: contact')
    add_robot_arguments(parser, required=False)
    add_processing_arguments(parser)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not options.filter > 0.0:
        raise DataError(f'--filter: expected a positive number of Hz, got {options.filter:g}')
    result = IdentificationResult.load(options.result)
    if not result.usable:
        raise DataError(f'the result is not usable, so its torques tell no contact: {result.reason}')
    free, judging = expanded(options.free), expanded(options.judge)
    source = source_of(options, [*free, *judging], result)
    predictor = TorquePredictor(source.model, result)
    folder = output_folder(options.out)
    runs = [_external(path, source, predictor, options) for path in free]
    found = contact_levels([run[:2] for run in runs], source.model.joint_names, options.filter, options.alarms)
    rms = np.sqrt(np.mean(np.concatenate([each for _, each, _ in runs]) ** 2, axis=0))
    print(f'{options.alarms:g} false alarms an hour, from {found.seconds:.0f} s in {len(runs)} recordings [N m; or N]')
    print(joint_table(source.model.joint_names, {'level': found.levels, 'rms': rms}))
    push = smallest_push(source.model, found.levels, np.concatenate([each for _, _, each in runs]))
    print(
        f'smallest push at {source.model.tip_name} that is felt, over poses and directions: {push[0]:.0f} N in the '
        f'median, {push[1]:.0f} N for nine of ten'
    )
    if len(runs) == 1:
        print('note: models err differently in each motion; several recordings make levels that hold in others')
    for path in judging:
        rate, external, _ = _external(path, source, predictor, options)
        count = 0
        for column in (np.abs(external) / found.levels).T:
            on = False
            for size in column.tolist():
                begins = not on and size > 1.0
                count += begins
                on = begins or (on and size > RELEASE)
        print(f'{path.name}: {count} alarms in {len(external) / rate:.0f} s')
    content = {'robot': source.model.name, 'contact': found.to_dict()}
    files = {
        'contact.yaml': yaml.safe_dump(content, sort_keys=False),
        'contact.hpp': contact_header(found, identifier(f'{source.model.name}_dynamics')),
    }
    say_written(*write_files(folder, files))
    return 0


def _external(
    path: Path, source: Source, predictor: TorquePredictor, options: argparse.Namespace
) -> tuple[float, Array, Array]:
    """Return rate, external torque and some positions of a recording, evenly sampled as it came."""
    recording = read_recording(path, options.topic, source.model.joint_names)
    torque, _ = measured_torque(recording, source.settings)
    whole = np.isfinite(recording.position).all(axis=1) & np.isfinite(torque).all(axis=1)
    time, first = np.unique(recording.time[whole], return_index=True)
    if len(time) < 32:
        raise DataError(f'{path}: expected at least 32 samples with positions and torques, got {len(time)}')
    rate = 1.0 / float(np.median(np.diff(time)))
    if options.filter >= 0.5 * rate:
        raise DataError(
            f'--filter: expected less than half the rate of {path}, {0.5 * rate:.4g} Hz, got {options.filter:g}'
        )
    even = np.arange(time[0], time[-1], 1.0 / rate)
    q, tau = (
        np.stack([np.interp(even, time, column) for column in values[whole][first].T], axis=1)
        for values in (recording.position, torque)
    )
    external = monitored(predictor, rate, q, tau, options.filter)
    return rate, external, q[:: max(1, len(q) // _POSES)]
