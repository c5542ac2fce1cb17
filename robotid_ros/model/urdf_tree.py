# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A URDF as a tree of links and joints, checked as it is read.

URDF specification: http://wiki.ros.org/urdf/XML. Rotor inertias and gear ratios, which URDF does
not have, are read from ``<transmission>`` (``mechanicalReduction``, and Drake's
``drake:rotor_inertia`` and ``drake:gear_ratio`` in its ``<actuator>``).
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import ModelError, SeveralArmsError
from robotid_ros.model.inertia import inertia_matrix, inertial_parameters
from robotid_ros.model.transforms import rpy_rotation, translation
from robotid_ros.reading import read_text

MOVING = ('revolute', 'continuous', 'prismatic')
_LARGEST = 1e9  # kg, kg m^2: no link of an arm comes near


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfJoint:
    """One ``<joint>``: origin (4, 4) [m], unit axis (3,), limits (infinite where there are none), in SI units."""

    name: str
    kind: str
    parent: str
    child: str
    origin: Array
    axis: Array
    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float
    friction: float
    mimics: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UrdfTree:
    """Links by name with their inertial parameters (10,), and joints by name and by parent link.

    ``gears`` holds gear ratio and rotor inertia [kg m^2] by joint, where a transmission gives them.
    """

    name: str
    root: str
    inertials: dict[str, Array]
    joints: dict[str, UrdfJoint]
    children: dict[str, list[UrdfJoint]]
    gears: dict[str, tuple[float, float]]

    def chain(self, base: str | None, tip: str | None, wanted: Set[str]) -> list[UrdfJoint]:
        """Return the joints from base to tip, fixed ones included; without a tip, along the joints that are wanted."""
        for role, link in (('base', base), ('tip', tip)):
            if link is not None:
                require_names([link], list(self.inertials), f'{role} link', 'the URDF', ModelError)
        start = base or self.root
        if tip is None:
            return self._chain_to_branching(start, wanted)
        parent_joint = {joint.child: joint for joint in self.joints.values()}
        chain: list[UrdfJoint] = []
        link = tip
        while link != start:
            if link not in parent_joint:
                raise ModelError(f"tip link '{tip}' is not below base link '{start}'", name=tip, expected=start)
            chain.append(parent_joint[link])
            link = parent_joint[link].parent
        return chain[::-1]

    def _chain_to_branching(self, start: str, wanted: Set[str], count: int = 0) -> list[UrdfJoint]:
        """Follow the arm past a head or wheels to its flange or gripper; ``count`` joints of it are before the start.

        Where several branches move, the arm goes on along the only one with joints that are wanted, unless another one
        follows them. Otherwise it is the one with the most joints, if these are at least as many as it has until there;
        shorter ones are the fingers of a gripper, where it ends.
        """
        lengths: dict[str, int] = {}  # joints that move one after the other from each on, dependent ones aside
        for joint in reversed(self._below(self.children[start])):
            further = max((lengths[each.name] for each in self.children[joint.child]), default=0)
            lengths[joint.name] = further + (joint.kind in MOVING and joint.mimics is None)
        chain: list[UrdfJoint] = []
        link = start
        while moving := [
            joint for joint in self.children[link] if any(each.kind in MOVING for each in self._below([joint]))
        ]:
            moving.sort(key=lambda joint: -lengths[joint.name])
            leading = [joint for joint in moving if any(each.name in wanted for each in self._below([joint]))]
            others = self._below([joint for joint in moving if joint not in leading])
            # Of fingers that follow one another, only the first is recorded.
            fingers = {each.mimics for each in others} & {each.name for each in self._below(leading)}
            if len(leading) == 1 and not fingers:
                moving = leading
            if len(moving) > 1:
                longest = lengths[moving[0].name]
                equal = [joint for joint in moving if lengths[joint.name] == longest]
                if len(equal) > 1 and longest > count:
                    arms = [[each, *self._chain_to_branching(each.child, wanted, count + 1)] for each in equal]
                    ends = [next(each.child for each in reversed(arm) if each.kind in MOVING) for arm in arms]
                    listed = ', '.join(ends[:20])
                    message = f"several parts move below link '{link}'; name the tip link of one, such as {listed}"
                    raise SeveralArmsError(message, name=link, expected=tuple(ends))
                if len(equal) > 1 or longest < count:
                    break
            chain.append(moving[0])
            count += moving[0].kind in MOVING
            link = moving[0].child
        while chain and chain[-1].kind not in MOVING:
            chain.pop()
        return chain

    def _below(self, joints: list[UrdfJoint]) -> list[UrdfJoint]:
        """Return some joints and all below them, each after its parent."""
        found = list(joints)
        for joint in found:  # grows meanwhile
            found += self.children[joint.child]
        return found


def read_urdf_text(source: str | Path) -> str:
    """Return the XML text of a URDF given as a path or as the text itself."""
    if isinstance(source, str) and source.lstrip().startswith('<'):
        return source
    path = Path(source).expanduser()
    if path.suffix == '.xacro':
        message = f"'{path}' is a xacro macro file; expand it first: xacro {path.name} > {path.stem}"
        raise ModelError(message, file=str(path))
    return read_text(path, 'URDF file', ModelError)


def parse_urdf(text: str) -> UrdfTree:
    """Return the tree of a URDF's text; refuse what is no XML, no URDF, no single tree, or lacks a number."""
    try:
        robot = ElementTree.fromstring(text.encode('utf-8'))
    except (ElementTree.ParseError, LookupError, ValueError) as cause:  # the latter of an encoding in its first line
        raise ModelError(f'the URDF is not well-formed XML: {cause}') from cause
    if robot.tag != 'robot':
        raise ModelError(f'the URDF must have <robot> at its root; it has <{robot.tag}>')
    inertials: dict[str, Array] = {}
    for link in robot.findall('link'):
        name = _attribute(link, 'name', 'the URDF')
        if name in inertials:
            raise ModelError(f"the URDF has two links named '{name}'", name=name)
        inertials[name] = _inertial(link)
    if not inertials:
        raise ModelError('the URDF has no links')
    joints: dict[str, UrdfJoint] = {}
    children: dict[str, list[UrdfJoint]] = {name: [] for name in inertials}
    parents: dict[str, str] = {}
    for element in robot.findall('joint'):
        joint = _joint(element)
        for end in (joint.parent, joint.child):
            if end not in inertials:
                raise ModelError(f"joint '{joint.name}' names the link '{end}', which the URDF does not have", name=end)
        if joint.child in parents:
            message = f"link '{joint.child}' has two parents, '{parents[joint.child]}' and '{joint.parent}'"
            raise ModelError(message, name=joint.child, found=(parents[joint.child], joint.parent))
        if joint.name in joints:
            raise ModelError(f"the URDF has two joints named '{joint.name}'", name=joint.name)
        parents[joint.child] = joint.parent
        joints[joint.name] = joint
        children[joint.parent].append(joint)
    roots = [name for name in inertials if name not in parents]
    if len(roots) != 1:
        message = f'the URDF must have one root link; it has {len(roots)}: {", ".join(roots) or "a closed loop"}'
        raise ModelError(message, expected=1, found=tuple(roots))
    reached = [roots[0]]
    for link_name in reached:
        reached += [joint.child for joint in children[link_name]]
    if len(reached) < len(inertials):
        lost = [name for name in inertials if name not in set(reached)]
        message = f'the URDF has a closed loop that nothing joins to its root: {", ".join(lost)}'
        raise ModelError(message, found=tuple(lost))
    return UrdfTree(
        name=robot.get('name', 'robot'),
        root=roots[0],
        inertials=inertials,
        joints=joints,
        children=children,
        gears=_gears(robot),
    )


def _attribute(element: ElementTree.Element, key: str, owner: str) -> str:
    value = element.get(key)
    if value is None:
        raise ModelError(f"a <{element.tag}> of {owner} lacks the attribute '{key}'", expected=key)
    return value


def _numbers(text: str | None, count: int, default: Sequence[float], what: str) -> Array:
    if text is None:
        return np.array(default, dtype=float)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError as cause:
        raise ModelError(f"{what}: expected {count} number(s), got '{text}'", expected=count, found=text) from cause
    if len(values) != count or not np.isfinite(values).all():
        raise ModelError(f"{what}: expected {count} finite number(s), got '{text}'", expected=count, found=text)
    return values


def _number(element: ElementTree.Element | None, key: str, default: float, owner: str) -> float:
    if element is None:
        return default
    return float(_numbers(element.get(key), 1, [default], f'{owner}: {key}')[0])


def origin_of(element: ElementTree.Element, owner: str) -> Array:
    """Return the transform of an element's ``<origin>``, the identity without one; ``owner`` is named in errors."""
    origin = element.find('origin')
    if origin is None:
        return np.eye(4)
    xyz = _numbers(origin.get('xyz'), 3, (0, 0, 0), f'{owner}: origin xyz')
    rpy = _numbers(origin.get('rpy'), 3, (0, 0, 0), f'{owner}: origin rpy')
    return translation(xyz) @ rpy_rotation(*rpy)


def _inertial(link: ElementTree.Element) -> Array:
    element = link.find('inertial')
    if element is None:
        return np.zeros(10)
    owner = f"link '{link.get('name')}'"
    mass_element, tensor_element = element.find('mass'), element.find('inertia')
    if mass_element is None:
        raise ModelError(f'{owner}: <inertial> has no <mass>', name=link.get('name'))
    mass = _number(mass_element, 'value', 0.0, owner)
    if mass < 0.0:
        raise ModelError(f'{owner}: the mass is negative ({mass:g} kg)', name=link.get('name'), found=mass)
    tensor = np.array([_number(tensor_element, key, 0.0, owner) for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')])
    origin = origin_of(element, owner)
    rotation = origin[:3, :3]
    largest = max(mass, float(np.abs(tensor).max()))
    if largest > _LARGEST:
        message = f'{owner}: expected mass and inertia of at most {_LARGEST:g} in SI units, got {largest:g}'
        raise ModelError(message, name=link.get('name'), expected=_LARGEST, found=largest)
    return inertial_parameters(mass, origin[:3, 3], rotation @ inertia_matrix(tensor) @ rotation.T)


def _joint(element: ElementTree.Element) -> UrdfJoint:
    name = _attribute(element, 'name', 'the URDF')
    owner = f"joint '{name}'"
    kind = element.get('type', '')
    if kind not in (*MOVING, 'fixed', 'floating', 'planar'):
        raise ModelError(f"{owner}: unknown type '{kind}'", name=name, found=kind)
    parent, child = element.find('parent'), element.find('child')
    if parent is None or child is None:
        raise ModelError(f'{owner} lacks <parent> or <child>', name=name)
    axis_element = element.find('axis')
    axis = _numbers(None if axis_element is None else axis_element.get('xyz'), 3, (1, 0, 0), f'{owner}: axis')
    length = float(np.linalg.norm(axis))
    if kind in MOVING and length < 1e-9:
        raise ModelError(f'{owner}: the axis has no length', name=name)
    limit, dynamics, mimic = element.find('limit'), element.find('dynamics'), element.find('mimic')
    bounded = kind in ('revolute', 'prismatic') and limit is not None
    return UrdfJoint(
        name=name,
        kind=kind,
        parent=_attribute(parent, 'link', owner),
        child=_attribute(child, 'link', owner),
        origin=origin_of(element, owner),
        axis=axis / max(length, 1e-9),
        lower=_number(limit, 'lower', 0.0, owner) if bounded else -np.inf,
        upper=_number(limit, 'upper', 0.0, owner) if bounded else np.inf,
        velocity=_number(limit, 'velocity', 0.0, owner) or np.inf,
        effort=_number(limit, 'effort', 0.0, owner) or np.inf,
        damping=_number(dynamics, 'damping', 0.0, owner),
        friction=_number(dynamics, 'friction', 0.0, owner),
        mimics=None if mimic is None else mimic.get('joint', '?'),
    )


def _gears(robot: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Return gear ratio and rotor inertia by joint name, where a transmission gives them."""
    gears: dict[str, tuple[float, float]] = {}
    for transmission in robot.findall('transmission'):
        joint, actuator = transmission.find('joint'), transmission.find('actuator')
        if joint is None or joint.get('name') is None:
            continue
        ratio, rotor = 1.0, 0.0
        for holder in (joint, actuator):
            for element in holder if holder is not None else ():
                owner = f"transmission of joint '{joint.get('name')}'"
                tag = element.tag.rpartition('}')[2].removeprefix('drake:')
                if tag == 'mechanicalReduction':
                    ratio = float(_numbers(element.text, 1, (1,), owner)[0])
                elif tag == 'gear_ratio':
                    ratio = _number(element, 'value', 1.0, owner)
                elif tag == 'rotor_inertia':
                    rotor = _number(element, 'value', 0.0, owner)
        gears[joint.get('name', '')] = (ratio, rotor)
    return gears
