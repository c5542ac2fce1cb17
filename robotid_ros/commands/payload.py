# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid payload``: what was added after the last link, or the drive gains from a known addition.

Find mass, centre of mass and inertia of what was added after the last link, from runs with and without it; or, from a
payload that is known, the factors of the torque constants.
"""

import argparse

import numpy as np

from robotid_ros.commands.options import add_processing_arguments, add_robot_arguments, add_settings, settings_from
from robotid_ros.commands.sources import expanded, source_of
from robotid_ros.commands.terminal import joint_table, progress_bar, save_yaml
from robotid_ros.errors import DataError
from robotid_ros.files import output_folder
from robotid_ros.identification import IdentificationConfig, IdentificationResult, identify
from robotid_ros.loads.payload import drive_gains, identify_payload
from robotid_ros.model.inertia import inertial_parameters
from robotid_ros.workflow import load_datasets


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add_robot_arguments(parser, required=False)
    add('--with', dest='loaded', nargs='+', required=True, metavar='RECORDING', help='runs with the payload')
    add('--without', nargs='+', default=[], metavar='RECORDING', help='runs without it')
    add('--result', metavar='YAML', help='the arm without payload, as "robotid identify" found it, to be used as it is')
    add('--out', default='payload', metavar='DIR', help='default: payload')
    known = parser.add_argument_group('drive gains: the payload is known')
    known.add_argument('--mass', type=float, metavar='KG', help='its mass: find the drive gains instead')
    known.add_argument('--centre', type=float, nargs=3, metavar=('X', 'Y', 'Z'), help='its centre in the last link [m]')
    add_processing_arguments(parser)
    add_settings(parser.add_argument_group('settings of the identification'), IdentificationConfig)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if not options.without and options.result is None:
        raise DataError('the arm alone must be known: give --without RECORDING..., or --result of an identification')
    if (options.mass is None) != (options.centre is None):
        raise DataError('a known payload needs both --mass and --centre')
    if options.mass is not None and not options.mass > 0.0:
        raise DataError(f'--mass: expected a positive number of kg, got {options.mass:g}')
    if options.mass is not None and not options.without:
        raise DataError('drive gains need runs without the payload too; give --without RECORDING...')
    arm = None if options.result is None else IdentificationResult.load(options.result)
    groups = expanded(options.loaded), expanded(options.without)
    source = source_of(options, [path for paths in groups for path in paths], arm)
    print('\n'.join(source.lines))
    model, settings = source.model, source.settings
    identification = settings_from(options, IdentificationConfig)
    folder = output_folder(options.out)
    loaded, without = (load_datasets(paths, settings, topic=options.topic)[0] for paths in groups)
    with progress_bar('payload') as progress:
        if arm is None:
            arm = identify(without, model, config=identification, progress=progress)
    if options.mass is not None:
        body = inertial_parameters(options.mass, np.array(options.centre), np.zeros((3, 3)))
        gains, std = drive_gains(without, loaded, model, body, arm)
        print('factor by which each measured torque, and so each torque constant, must be multiplied')
        print(joint_table(model.joint_names, {'factor': gains, 'std': std}, digits=4))
        by_joint = {
            joint: {'factor': float(gain), 'std': float(spread)}
            for joint, gain, spread in zip(model.joint_names, gains, std, strict=True)
        }
        save_yaml(folder / 'drive_gains.yaml', {'drive_gains': by_joint})
        return 0
    found = identify_payload(loaded, model, arm)
    print(f'payload: {found.said()}')
    print('torque error along the runs with the payload [N m; or N]')
    print(joint_table(model.joint_names, {'ignoring it': found.rmse_without, 'knowing it': found.rmse_with}))
    save_yaml(folder / 'payload.yaml', {'robot': model.name, 'payload': found.to_dict()})
    return 0
