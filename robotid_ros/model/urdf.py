"""Read a serial arm from a URDF: the tree, the chain, what is locked and what is lumped.

URDF specification: http://wiki.ros.org/urdf/XML. Rotor inertias and gear ratios, which URDF does
not have, are read from ``<transmission>`` (``mechanicalReduction``, and Drake's
``drake:rotor_inertia`` and ``drake:gear_ratio`` in its ``<actuator>``).
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError, ModelWarning
from robotid_ros.model.inertia import inertial_parameters, physical_violation, transform_inertial_parameters
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import STANDARD_GRAVITY, AttachedLink, JointType, RobotModel
from robotid_ros.model.transforms import rpy_rotation, translation

__all__ = ['read_urdf_text', 'robot_model_from_urdf']

_MOVING = ('revolute', 'continuous', 'prismatic')


@dataclass(frozen=True, slots=True, kw_only=True)
class _UrdfJoint:
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
class _UrdfTree:
    name: str
    root: str
    inertials: dict[str, Array]
    joints: dict[str, _UrdfJoint]
    children: dict[str, list[_UrdfJoint]]
    gears: dict[str, tuple[float, float]]


def robot_model_from_urdf(
    source: str | Path,
    *,
    tip: str | None = None,
    joints: Sequence[str] | None = None,
    base: str | None = None,
    gravity: Sequence[float] = STANDARD_GRAVITY,
) -> RobotModel:
    """Read an arm from a URDF; see :meth:`RobotModel.from_urdf`."""
    text = read_urdf_text(source)
    tree = _parse(text)
    chain = _chain(tree, base, tip)
    base_name = chain[0].parent if chain else (base or tree.root)
    tip_name = chain[-1].child if chain else (tip or tree.root)
    moving = _moving_joints(tree, chain, joints)
    placements, attached, tip_placement, on_base = _lump(tree, chain, base_name, moving)
    inertial = np.stack([_lumped_inertial(links) for links in attached])
    _warn_of_inertias(moving, attached, inertial)
    _warn_of_limits(moving)
    gears = [tree.gears.get(joint.name, (1.0, 0.0)) for joint in moving]
    unlimited = np.full(len(moving), np.inf)
    return RobotModel(
        name=tree.name,
        joint_names=tuple(joint.name for joint in moving),
        joint_types=tuple(_joint_type(joint) for joint in moving),
        link_names=tuple(joint.child for joint in moving),
        placements=placements,
        axes=np.stack([joint.axis for joint in moving]),
        inertial=inertial,
        rotor_inertia=np.array([ratio * ratio * rotor for ratio, rotor in gears]),
        gear_ratio=np.array([ratio for ratio, _ in gears]),
        damping=np.array([joint.damping for joint in moving]),
        friction=np.array([joint.friction for joint in moving]),
        limits=JointLimits(
            lower=np.array([joint.lower for joint in moving]),
            upper=np.array([joint.upper for joint in moving]),
            velocity=np.array([joint.velocity for joint in moving]),
            effort=np.array([joint.effort for joint in moving]),
            acceleration=unlimited,
            jerk=unlimited,
        ),
        gravity=np.asarray(gravity, dtype=float),
        tip=tip_placement,
        base_inertial=_lumped_inertial(on_base),
        base_name=base_name,
        tip_name=tip_name,
        attached=attached,
        source=text,
    )


def read_urdf_text(source: str | Path) -> str:
    """Return the XML text of a URDF given as a path or as the text itself.

    Raises
    ------
    ModelError
        If the file is absent, unreadable or not text.
    """
    if isinstance(source, str) and source.lstrip().startswith('<'):
        return source
    path = Path(source).expanduser()
    if not path.is_file():
        raise ModelError(f"URDF file '{path}' does not exist")
    if path.suffix == '.xacro':
        raise ModelError(f"'{path}' is a xacro macro file; expand it first: xacro {path.name} > {path.stem}")
    try:
        return path.read_text(encoding='utf-8')
    except (OSError, UnicodeDecodeError) as cause:
        raise ModelError(f"URDF file '{path}' cannot be read: {cause}") from cause


def _parse(text: str) -> _UrdfTree:
    try:
        robot = ElementTree.fromstring(text.encode('utf-8'))
    except ElementTree.ParseError as cause:
        raise ModelError(f'the URDF is not well-formed XML: {cause}') from cause
    if robot.tag != 'robot':
        raise ModelError(f'the URDF must have <robot> at its root; it has <{robot.tag}>')
    inertials: dict[str, Array] = {}
    for link in robot.findall('link'):
        name = _attribute(link, 'name', 'the URDF')
        if name in inertials:
            raise ModelError(f"the URDF has two links named '{name}'")
        inertials[name] = _inertial(link)
    if not inertials:
        raise ModelError('the URDF has no links')
    joints: dict[str, _UrdfJoint] = {}
    children: dict[str, list[_UrdfJoint]] = {name: [] for name in inertials}
    parents: dict[str, str] = {}
    for element in robot.findall('joint'):
        joint = _joint(element)
        for end in (joint.parent, joint.child):
            if end not in inertials:
                raise ModelError(f"joint '{joint.name}' names the link '{end}', which the URDF does not have")
        if joint.child in parents:
            raise ModelError(f"link '{joint.child}' has two parents, '{parents[joint.child]}' and '{joint.parent}'")
        if joint.name in joints:
            raise ModelError(f"the URDF has two joints named '{joint.name}'")
        parents[joint.child] = joint.parent
        joints[joint.name] = joint
        children[joint.parent].append(joint)
    roots = [name for name in inertials if name not in parents]
    if len(roots) != 1:
        raise ModelError(
            f'the URDF must have one root link; it has {len(roots)}: {", ".join(roots) or "a closed loop"}'
        )
    reached = [roots[0]]
    for link_name in reached:
        reached += [joint.child for joint in children[link_name]]
    if len(reached) < len(inertials):
        lost = [name for name in inertials if name not in set(reached)]
        raise ModelError(f'the URDF has a closed loop that nothing joins to its root: {", ".join(lost)}')
    return _UrdfTree(
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
        raise ModelError(f"a <{element.tag}> of {owner} lacks the attribute '{key}'")
    return value


def _numbers(text: str | None, count: int, default: Sequence[float], what: str) -> Array:
    if text is None:
        return np.array(default, dtype=float)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError as cause:
        raise ModelError(f"{what}: expected {count} number(s), got '{text}'") from cause
    if len(values) != count or not np.isfinite(values).all():
        raise ModelError(f"{what}: expected {count} finite number(s), got '{text}'")
    return values


def _number(element: ElementTree.Element | None, key: str, default: float, owner: str) -> float:
    if element is None:
        return default
    return float(_numbers(element.get(key), 1, [default], f'{owner}: {key}')[0])


def _origin(element: ElementTree.Element, owner: str) -> Array:
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
        raise ModelError(f'{owner}: <inertial> has no <mass>')
    mass = _number(mass_element, 'value', 0.0, owner)
    if mass < 0.0:
        raise ModelError(f'{owner}: the mass is negative ({mass:g} kg)')
    entries = {key: _number(tensor_element, key, 0.0, owner) for key in ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')}
    tensor = np.array(
        [
            [entries['ixx'], entries['ixy'], entries['ixz']],
            [entries['ixy'], entries['iyy'], entries['iyz']],
            [entries['ixz'], entries['iyz'], entries['izz']],
        ]
    )
    origin = _origin(element, owner)
    rotation = origin[:3, :3]
    return inertial_parameters(mass, origin[:3, 3], rotation @ tensor @ rotation.T)


def _joint(element: ElementTree.Element) -> _UrdfJoint:
    name = _attribute(element, 'name', 'the URDF')
    owner = f"joint '{name}'"
    kind = element.get('type', '')
    if kind not in (*_MOVING, 'fixed', 'floating', 'planar'):
        raise ModelError(f"{owner}: unknown type '{kind}'")
    parent, child = element.find('parent'), element.find('child')
    if parent is None or child is None:
        raise ModelError(f'{owner} lacks <parent> or <child>')
    axis_element = element.find('axis')
    axis = _numbers(None if axis_element is None else axis_element.get('xyz'), 3, (1, 0, 0), f'{owner}: axis')
    length = float(np.linalg.norm(axis))
    if kind in _MOVING and length < 1e-9:
        raise ModelError(f'{owner}: the axis has no length')
    limit, dynamics, mimic = element.find('limit'), element.find('dynamics'), element.find('mimic')
    bounded = kind in ('revolute', 'prismatic') and limit is not None
    return _UrdfJoint(
        name=name,
        kind=kind,
        parent=_attribute(parent, 'link', owner),
        child=_attribute(child, 'link', owner),
        origin=_origin(element, owner),
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


def _chain(tree: _UrdfTree, base: str | None, tip: str | None) -> list[_UrdfJoint]:
    """Return the joints from base to tip, fixed ones included."""
    for role, link in (('base', base), ('tip', tip)):
        if link is not None and link not in tree.inertials:
            raise ModelError(f"{role} link '{link}' is not in the URDF; it has: {', '.join(tree.inertials)}")
    start = base or tree.root
    if tip is None:
        return _chain_to_branching(tree, start)
    parent_joint = {joint.child: joint for joint in tree.joints.values()}
    chain: list[_UrdfJoint] = []
    link = tip
    while link != start:
        if link not in parent_joint:
            raise ModelError(f"tip link '{tip}' is not below base link '{start}'")
        chain.append(parent_joint[link])
        link = parent_joint[link].parent
    return chain[::-1]


def _chain_to_branching(tree: _UrdfTree, start: str) -> list[_UrdfJoint]:
    """Follow the only branch that moves; stop at the flange, or where several branches move."""
    chain: list[_UrdfJoint] = []
    link = start
    while True:
        moving = [joint for joint in tree.children[link] if _moves_below(tree, joint)]
        if len(moving) != 1:
            break
        chain.append(moving[0])
        link = moving[0].child
    while chain and chain[-1].kind not in _MOVING:
        chain.pop()
    return chain


def _moves_below(tree: _UrdfTree, joint: _UrdfJoint) -> bool:
    return joint.kind in _MOVING or any(_moves_below(tree, below) for below in tree.children[joint.child])


def _moving_joints(tree: _UrdfTree, chain: list[_UrdfJoint], wanted: Sequence[str] | None) -> list[_UrdfJoint]:
    for joint in chain:
        if joint.kind in ('floating', 'planar'):
            raise ModelError(
                f"joint '{joint.name}' is {joint.kind}; a serial arm has revolute and prismatic joints only: "
                'choose a base link below it'
            )
    moving = [joint for joint in chain if joint.kind in _MOVING]
    if not moving:
        raise ModelError(f'the chain from base to tip has no moving joint{_ends_of_branches(tree, chain)}')
    if wanted is not None:
        names = [joint.name for joint in moving]
        for name in wanted:
            if name not in names:
                where = 'the chain' if name in tree.joints else 'the URDF'
                raise ModelError(f"joint '{name}' is not in {where}; it has: {', '.join(names)}")
        moving = [joint for joint in moving if joint.name in set(wanted)]
        if not moving:
            raise ModelError(f'expected at least one joint to identify; the chain has: {", ".join(names)}')
    for joint in moving:
        if joint.mimics is not None:
            raise ModelError(
                f"joint '{joint.name}' mimics '{joint.mimics}'; a serial arm cannot have a dependent joint: "
                'choose a tip before it, or name the joints to keep'
            )
    return moving


def _ends_of_branches(tree: _UrdfTree, chain: list[_UrdfJoint]) -> str:
    """Return which tips there are to choose from: the last moving link of every branch."""
    ends = [
        joint.child
        for joint in tree.joints.values()
        if joint.kind in _MOVING and not any(_moves_below(tree, below) for below in tree.children[joint.child])
    ]
    if chain or not ends:
        return ''
    return f': several parts move; name the tip link of one, such as {", ".join(ends)}'


def _joint_type(joint: _UrdfJoint) -> JointType:
    return 'prismatic' if joint.kind == 'prismatic' else 'revolute'


def _lump(
    tree: _UrdfTree, chain: list[_UrdfJoint], base_name: str, moving: list[_UrdfJoint]
) -> tuple[Array, tuple[tuple[AttachedLink, ...], ...], Array, tuple[AttachedLink, ...]]:
    """Walk the tree with every joint that is not moving held at zero.

    Returns the placement of each moving joint in its predecessor's frame, the links carried by
    each, the chain's end in the last frame, and the links fixed to the base.
    """
    index = {joint.name: k for k, joint in enumerate(moving)}
    placements = np.empty((len(moving), 4, 4))
    attached: list[list[AttachedLink]] = [[] for _ in moving]
    end = chain[-1].child
    end_placement = np.eye(4)
    on_base: list[AttachedLink] = []
    locked: list[str] = []

    stack: list[tuple[str, int, Array]] = [(base_name, -1, np.eye(4))]
    while stack:
        link, owner, placement = stack.pop()
        carried = on_base if owner < 0 else attached[owner]
        carried.append(AttachedLink(name=link, placement=placement, inertial=tree.inertials[link]))
        if link == end:
            end_placement = placement
        for joint in tree.children[link]:
            below = placement @ joint.origin
            if joint.name in index:
                placements[index[joint.name]] = below
                stack.append((joint.child, index[joint.name], np.eye(4)))
            else:
                if joint.kind in _MOVING and owner >= 0:
                    locked.append(joint.name)
                stack.append((joint.child, owner, below))
    if locked:
        warnings.warn(
            f'joints held at zero, their links lumped into the arm: {", ".join(sorted(locked))}',
            ModelWarning,
            stacklevel=5,
        )
    return placements, tuple(tuple(links) for links in attached), end_placement, tuple(on_base)


def _lumped_inertial(links: Sequence[AttachedLink]) -> Array:
    moved = (transform_inertial_parameters(a.inertial, a.placement[:3, :3], a.placement[:3, 3]) for a in links)
    return sum(moved, start=np.zeros(10))


def _warn_of_inertias(moving: list[_UrdfJoint], attached: Sequence[Sequence[AttachedLink]], inertial: Array) -> None:
    """Warn of each link that no real body can be, and of joints that move no mass."""
    for joint, links, pi in zip(moving, attached, inertial, strict=True):
        moved_by = f"(moved by joint '{joint.name}')"
        if pi[9] == 0.0:
            warnings.warn(f"link '{joint.child}' {moved_by} has no mass", ModelWarning, stacklevel=4)
        for link in links:
            reason = physical_violation(link.inertial)
            if reason is not None:
                message = f"link '{link.name}' {moved_by} is not a physical body: {reason}"
                warnings.warn(message, ModelWarning, stacklevel=4)


def _warn_of_limits(moving: list[_UrdfJoint]) -> None:
    for joint in moving:
        lacking = [
            name for name, value in (('velocity', joint.velocity), ('effort', joint.effort)) if not np.isfinite(value)
        ]
        if joint.kind != 'continuous' and not np.isfinite(joint.upper):
            lacking.insert(0, 'position')
        if lacking:
            warnings.warn(f"joint '{joint.name}' has no {', '.join(lacking)} limit", ModelWarning, stacklevel=4)
        if joint.lower == joint.upper:
            message = f"joint '{joint.name}' has no room to move: its lower and upper limits are both {joint.lower:g}"
            warnings.warn(message, ModelWarning, stacklevel=4)
