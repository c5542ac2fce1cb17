# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""SDF: the identified arm for Gazebo, with the shapes of its URDF."""

from collections.abc import Sequence
from html import escape
from xml.etree import ElementTree

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.export.identified import require_accepted
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import split_inertial_parameters
from robotid_ros.model.transforms import rpy_of_rotation
from robotid_ros.model.urdf_edit import quoted, spelled
from robotid_ros.model.urdf_tree import origin_of

_FIXED = 'fixed_to_world'


def sdf_of(arm: RobotModel) -> str:
    """Return an arm in SDF 1.8, fixed to the world at its base.

    Links that the URDF fixes to a moving link are part of it, as its shapes and as frames. SDF has
    damping and Coulomb friction of joints, and no rotor inertia; gravity belongs to the world.

    ``arm``: see :func:`robotid_ros.export.identified.identified_arm`. Raises a ModelError if a link has no mass.
    """
    require_accepted(arm)
    shapes, frames = _shapes(arm)
    named = _names(arm, [name for name, _, _ in frames])
    base = named[arm.base_name]
    lines = [
        '<?xml version="1.0"?>',
        '<sdf version="1.8">',
        f'  <model name={quoted(arm.name)}>',
        f'    <joint name={quoted(_FIXED)} type="fixed">',
        f'      <parent>world</parent><child>{escape(base)}</child>',
        '    </joint>',
        *_link(base, arm.base_inertial, '', shapes.get(arm.base_name, [])),
    ]
    for i, link in enumerate(arm.link_names):
        lines += _link(named[link], arm.inertial[i], arm.joint_names[i], shapes.get(link, []))
        parent = named[arm.link_names[i - 1]] if i else base
        child = named[link]
        limits = {
            'lower': arm.limits.lower[i],
            'upper': arm.limits.upper[i],
            'effort': arm.limits.effort[i],
            'velocity': arm.limits.velocity[i],
        }
        bounds = ''.join(f'<{key}>{spelled(value)}</{key}>' for key, value in limits.items() if np.isfinite(value))
        dynamics = f'<damping>{spelled(arm.damping[i])}</damping><friction>{spelled(arm.friction[i])}</friction>'
        lines += [
            f'    <joint name={quoted(arm.joint_names[i])} type="{arm.joint_types[i]}">',
            f'      <pose relative_to={quoted(parent)}>{_pose(arm.placements[i])}</pose>',
            f'      <parent>{escape(parent)}</parent><child>{escape(child)}</child>',
            f'      <axis><xyz>{spelled(arm.axes[i])}</xyz><limit>{bounds}</limit>',
            f'        <dynamics>{dynamics}</dynamics></axis>',
            '    </joint>',
        ]
    for name, owner, pose in frames:
        place = f'<pose>{_pose(pose)}</pose>'
        lines.append(f'    <frame name={quoted(named[name])} attached_to={quoted(named[owner])}>{place}</frame>')
    return '\n'.join([*lines, '  </model>', '</sdf>', ''])


def _names(arm: RobotModel, frames: Sequence[str]) -> dict[str, str]:
    """Return the links' names in an SDF: there, 'world' is reserved, and no link is called as a joint is."""
    taken, found = {'world', _FIXED, *arm.joint_names}, {}
    for name in (arm.base_name, *arm.link_names, *frames):
        own = name.replace('::', '_')  # '::' divides the names of nested models
        while own in taken or (own.startswith('__') and own.endswith('__')):
            own += '_link'
        taken.add(own)
        found[name] = own
    return found


def _link(name: str, inertial: Array, joint: str, shapes: list[str]) -> list[str]:
    mass, com, tensor = split_inertial_parameters(inertial)
    lines = [f'    <link name={quoted(name)}>']
    if joint:
        lines.append(f'      <pose relative_to={quoted(joint)}>0 0 0 0 0 0</pose>')
    if mass > 0.0:
        names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
        six = zip(names, tensor[np.triu_indices(3)], strict=True)
        inertia = ''.join(f'<{key}>{spelled(value)}</{key}>' for key, value in six)
        lines += [
            '      <inertial>',
            f'        <pose>{spelled(com)} 0 0 0</pose><mass>{spelled(mass)}</mass>',
            f'        <inertia>{inertia}</inertia>',
            '      </inertial>',
        ]
    return [*lines, *shapes, '    </link>']


def _shapes(arm: RobotModel) -> tuple[dict[str, list[str]], list[tuple[str, str, Array]]]:
    """Return the URDF's shapes in the links that carry them, and the links that are fixed to others as frames."""
    if arm.source is None:
        return {}, []
    owners, places = (arm.base_name, *arm.link_names), arm.frames
    shapes: dict[str, list[str]] = {}
    frames: list[tuple[str, str, Array]] = []
    for link in ElementTree.fromstring(arm.source.encode('utf-8')).findall('link'):
        name = link.get('name', '')
        if name not in places:  # above the base
            continue
        number, pose = places[name]
        owner = owners[number + 1]
        if name != owner:
            frames.append((name, owner, pose))
        for kind in ('visual', 'collision'):
            for k, element in enumerate(link.findall(kind)):
                shapes.setdefault(owner, []).extend(_shape(element, kind, f'{name}_{kind}_{k}', pose))
    return shapes, frames


def _shape(element: ElementTree.Element, kind: str, name: str, frame: Array) -> list[str]:
    geometry = element.find('geometry')
    shape = None if geometry is None else next(iter(geometry), None)
    if shape is None:
        return []
    inside = ''.join(
        f'<{key}>{escape(value)}</{key}>'
        for key, value in (('uri' if key == 'filename' else key, value) for key, value in shape.attrib.items())
    )
    return [
        f'      <{kind} name={quoted(name)}>',
        f'        <pose>{_pose(frame @ origin_of(element, name))}</pose>',
        f'        <geometry><{shape.tag}>{inside}</{shape.tag}></geometry>',
        f'      </{kind}>',
    ]


def _pose(transform: Array) -> str:
    return f'{spelled(transform[:3, 3])} {spelled(rpy_of_rotation(transform))}'
