# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""``robotid wrench``: what a force-torque sensor carries, its bias and how it is turned.

Find what a force-torque sensor at the flange carries (mass, centre of mass, inertia), its bias and how it is turned,
from static poses or any motion.
"""

import argparse

import numpy as np
from scipy.spatial.transform import Rotation

from robotid_ros.commands.options import add_robot_arguments, named_joints
from robotid_ros.commands.sources import arm_of, expanded
from robotid_ros.commands.terminal import save_yaml, text_table
from robotid_ros.data.context import read_context
from robotid_ros.errors import DataError
from robotid_ros.files import output_folder
from robotid_ros.loads.wrench import AXES, WrenchResult, identify_wrench, read_wrench
from robotid_ros.reading import read_yaml, refusing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('recordings', nargs='+', metavar='RECORDING', help='joint states and wrenches: bags or CSV')
    add_robot_arguments(parser, required=False)
    parser.add_argument('--wrench-topic', metavar='TOPIC', help='of bags with several wrenches')
    parser.add_argument('--cutoff', type=float, metavar='HZ', help='of the low-pass; by default chosen from the data')
    parser.add_argument('--payload', metavar='YAML', help='payload.yaml of the same tool by joint torques, to compare')
    parser.add_argument('--out', default='wrench', metavar='DIR', help='default: wrench')


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    recordings = expanded(options.recordings)
    named = named_joints(options)
    model, *_ = arm_of(options, {path: read_context(path, joints=named) for path in recordings})
    weighed = None  # the mass that joint torques gave, and its deviation
    if options.payload is not None:
        with refusing(f"payload '{options.payload}'", DataError, file=str(options.payload)):
            content = read_yaml(options.payload, 'payload', DataError)['payload']
            weighed = float(content['mass']), float(content['mass_std'])
    datasets = [
        read_wrench(path, model.joint_names, topic=options.wrench_topic, cutoff=options.cutoff) for path in recordings
    ]
    folder = output_folder(options.out)
    found = identify_wrench(datasets, model)
    x, y, z = found.centre_of_mass
    turned = np.degrees(Rotation.from_matrix(found.rotation).as_euler('xyz'))
    print(f'tool       {found.mass:.4g} ± {found.std[9]:.2g} kg at ({x:.4f}, {y:.4f}, {z:.4f}) m of {found.frame}')
    print(
        f'sensor     turned by roll {turned[0]:.2f}, pitch {turned[1]:.2f}, yaw {turned[2]:.2f} degrees '
        f'(± {np.degrees(found.rotation_std.max()):.2g}) against {found.frame}; it shows {found.to_dict()["shows"]}'
    )
    rows = [
        (axis, f'{bias:.4g}', f'± {std:.2g}', f'{before:.3g}', f'{after:.3g}')
        for axis, bias, std, before, after in zip(
            AXES, found.bias, found.bias_std, found.rmse_without, found.rmse_with, strict=True
        )
    ]
    print(text_table(('axis [N, N m]', 'bias', '', 'shown (rms)', 'left (rms)'), rows))
    notes = [*found.notes, *([] if weighed is None else [_compared(found, *weighed)])]
    for note in notes:
        print(f'note       {note}')
    save_yaml(folder / 'wrench.yaml', {'robot': model.name, 'wrench': found.to_dict(), 'notes': notes})
    return 0


def _compared(found: WrenchResult, mass: float, std: float) -> str:
    """Return what the weight by joint torques says of the torque constants."""
    factor = found.mass / mass
    spread = factor * float(np.hypot(found.std[9] / found.mass, std / mass))
    said = f'joint torques weigh {mass:.4g} ± {std:.2g} kg, the sensor {found.mass:.4g} ± {found.std[9]:.2g} kg'
    if abs(factor - 1.0) <= 2.0 * spread:
        return f'{said}: they agree'
    return (
        f'{said}: if it is right and everything hangs behind it, torque constants must be multiplied by {factor:.4f} ± '
        f'{spread:.2g}; what hangs before it (its own case, an adapter) is felt by the joints alone'
    )
