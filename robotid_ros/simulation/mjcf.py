# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Write a serial arm in MuJoCo's format without loss.

MuJoCo's own URDF reader merges the links of fixed joints, re-orders joints and takes no rotor inertia, so the model is
written from what this package read.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import MissingDependencyError, ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.model.transforms import quaternion_of_rotation
from robotid_ros.model.urdf_edit import quoted, spelled


def load_mujoco(purpose: str) -> Any:
    """Return the module ``mujoco``.

    Raises a MissingDependencyError if it is not installed; ``purpose`` says what it is needed for.
    """
    try:
        import mujoco
    except ImportError as cause:
        raise MissingDependencyError.of('mujoco', 'sim', purpose) from cause
    return mujoco


def mjcf_of(model: RobotModel, *, time_step: float, floating: bool = False) -> str:
    """Return the MJCF text of an arm fixed to the world, without friction, contacts or limits.

    With ``floating`` its base moves freely and without gravity, and the integrator is a Runge-Kutta method of order 4.

    Every joint has a friction-loss constraint of level zero, to be set by the plant. Its reference stops the joint
    within one step (time constant 2 h, the shortest MuJoCo takes) and its impedance is almost one: the constraint then
    is dry friction in its set-valued form, with exactly the given level as long as the joint slips. Rotor inertias
    become ``armature``; h is ``time_step`` [s]. Raises a ModelError if the joints are coupled, or a link has neither
    mass nor rotor inertia.
    """
    if not np.array_equal(model.coupling, np.eye(model.n)):
        raise ModelError('coupled joints cannot be simulated: expected the identity as coupling matrix')
    for name, mass in zip(model.link_names, model.inertial[:, 9], strict=True):
        if mass <= 0.0:
            message = f"link '{name}' has no mass and cannot be simulated; give it one in the URDF"
            raise ModelError(message, name=name, found=0.0)
    dry = {'solreffriction': f'{spelled(2.0 * time_step)} 1', 'solimpfriction': '0.9999 0.9999 0.001 0.5 1'}
    bodies = ''.join(body_lines(model, [{'armature': spelled(inertia), **dry} for inertia in model.rotor_inertia]))
    gravity = np.zeros(3) if floating else model.gravity
    if floating:
        base = f'<body name={quoted(model.base_name)}><freejoint/>{_inertial(model.base_inertial)}'
        bodies = f'{base}{bodies}</body>'
    return (
        f'<mujoco model={quoted(model.name)}>'
        '<compiler angle="radian" autolimits="false" balanceinertia="false"/>'
        f'<option timestep="{spelled(time_step)}" gravity="{spelled(gravity)}" '
        f'integrator="{"RK4" if floating else "Euler"}" '
        'solver="Newton" iterations="100" tolerance="1e-14">'
        # Damping is applied at the velocity of the instant; MuJoCo's implicit damping would
        # evaluate it half a step late.
        '<flag contact="disable" limit="disable" eulerdamp="disable" island="disable"/></option>'
        f'<worldbody>{bodies}</worldbody></mujoco>'
    )


def body_lines(arm: RobotModel, joints: Sequence[Mapping[str, str]], shapes: Sequence[str] = ()) -> list[str]:
    """Return the links of an arm as bodies, each within the one before, a line for each element.

    ``joints``, length n: attributes of each joint beside its name, type and axis. ``shapes``, length n: one more
    element of each body; none where it is empty.
    """
    lines: list[str] = []
    for i, name in enumerate(arm.link_names):
        place, space = arm.placements[i], '  ' * (i + 2)
        kind = 'slide' if arm.joint_types[i] == 'prismatic' else 'hinge'
        numbers = ' '.join(f'{key}="{value}"' for key, value in {'axis': spelled(arm.axes[i]), **joints[i]}.items())
        orientation = spelled(quaternion_of_rotation(place[:3, :3]))
        lines += [
            f'{space}<body name={quoted(name)} pos="{spelled(place[:3, 3])}" quat="{orientation}">',
            f'{space}  {_inertial(arm.inertial[i])}',
            f'{space}  <joint name={quoted(arm.joint_names[i])} type="{kind}" {numbers}/>',
        ]
        if shapes and shapes[i]:
            lines.append(f'{space}  {shapes[i]}')
    return lines + [f'{"  " * (i + 2)}</body>' for i in reversed(range(arm.n))]


def _inertial(parameters: Array) -> str:
    mass, com, tensor = split_inertial_parameters(parameters)
    return f'<inertial pos="{spelled(com)}" mass="{spelled(mass)}" fullinertia="{full_inertia(tensor)}"/>'


def full_inertia(tensor: Array) -> str:
    """Return the six entries in MuJoCo's order: the diagonal, then xy, xz, yz."""
    return spelled(tensor[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]])
