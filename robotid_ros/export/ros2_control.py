# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""ros2_control: a package with the generated C++, a controller that commands its torque, and its tests."""

import math
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.export.identified import identified_model, without_friction
from robotid_ros.export.source_code import identifier
from robotid_ros.identification import IdentificationResult, TorquePredictor
from robotid_ros.model import RobotModel
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.transforms import rpy_of_rotation
from robotid_ros.model.urdf_edit import quoted

_TEMPLATES = Path(__file__).with_name('templates')
_STATES = 20


def package_files(model: RobotModel, result: IdentificationResult) -> dict[str, str]:
    """Return the files of the package of an identified arm, by name; the folder is that of the package.

    Torque ripple is left out: fed back from the measured position, it would be a spring of the ripple's frequency.
    """
    result = without_friction(result, 'ripple')
    minimal = identified_model(model, result)
    name = identifier(f'{model.name}_torque')
    at_zero = link_transforms(model, np.zeros((1, model.n)))[0]
    turned = model.axes.copy()
    turned[-1] += 0.05 * np.roll(turned[-1], 1) - 0.05 * turned[-1] * (turned[-1] @ np.roll(turned[-1], 1))
    # Positions, velocities and accelerations to test the package with, shape (states, 3, n).
    states = np.random.default_rng(0).uniform(-2.0, 2.0, (_STATES, 3, model.n))
    entries = {
        'NAME': name,
        'JOINTS': ', '.join(map(_string, model.joint_names)),
        'EFFORT': _row(model.limits.effort),
        'BASE': _string('' if model.source is None else model.base_name),
        'DIRECTIONS': _rows(np.einsum('kij,kj->ki', at_zero[:, :3, :3], model.axes)),
        'POINTS': _rows(at_zero[:, :3, 3]),
        'SLIDING': ', '.join('true' if kind == 'prismatic' else 'false' for kind in model.joint_types),
        'STATES': ', '.join(f'{{{_rows(state)}}}' for state in states),
        'TORQUES': _rows(TorquePredictor(model, result).torque(*states.transpose(1, 0, 2))),
        'URDF': _string(_bare_urdf(model, model.axes)),
        'TURNED': _string(_bare_urdf(model, turned)),
    }
    files = {'inverse_dynamics.hpp': minimal.cpp_header(name)}
    for path in sorted(_TEMPLATES.iterdir()):
        files[path.name] = re.sub(r'@([A-Z]+)@', lambda match: entries[match[1]], path.read_text(encoding='utf-8'))
    return {f'{name}/{file}': text for file, text in files.items()}


def _bare_urdf(model: RobotModel, axes: Array) -> str:
    """Return the joints of an arm, its coupling and zeros left out, and nothing else."""
    links = [model.base_name, *model.link_names]
    text = ''.join(f'<link name={quoted(link)}/>' for link in links)
    for k, (joint, kind) in enumerate(zip(model.joint_names, model.joint_types, strict=True)):
        place = model.placements[k]
        text += (
            f'<joint name={quoted(joint)} type="{kind}"><parent link={quoted(links[k])}/>'
            f'<child link={quoted(links[k + 1])}/><axis xyz="{_row(axes[k], " ")}"/>'
            f'<origin xyz="{_row(place[:3, 3], " ")}" rpy="{_row(rpy_of_rotation(place), " ")}"/>'
            '<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>'
        )
    return f'<robot name="arm">{text}</robot>'


def _row(values: Iterable[float], between: str = ', ') -> str:
    return between.join(repr(float(value)) if math.isfinite(value) else 'INFINITY' for value in values)


def _rows(values: Array) -> str:
    return ', '.join(f'{{{_row(row)}}}' for row in values)


def _string(text: str) -> str:
    """Return a C++ string literal: UTF-8 as octal escapes, which no following character can join."""
    safe = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f'\\{byte:03o}' for byte in text.encode())
    return f'"{"".join(safe)}"'
