# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A serial arm from a URDF's tree: the chain, locked joints and lumped links."""

import warnings
from collections.abc import Collection, Sequence, Set
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, require_names
from robotid_ros.errors import ModelError, ModelWarning, SeveralArmsError
from robotid_ros.model.inertia import physical_violation, transform_inertial_parameters
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import STANDARD_GRAVITY, AttachedLink, RobotModel, require_few_joints
from robotid_ros.model.urdf_tree import MOVING, UrdfJoint, UrdfTree, parse_urdf, read_urdf_text
from robotid_ros.reading import refusing


@refusing('the URDF', ModelError)
def robot_model_from_urdf(
    source: str | Path,
    *,
    tip: str | None = None,
    joints: Sequence[str] | None = None,
    base: str | None = None,
    gravity: Sequence[float] = STANDARD_GRAVITY,
    along: Collection[str] = (),
) -> RobotModel:
    """Read an arm from a URDF; see :meth:`RobotModel.from_urdf`."""
    text = read_urdf_text(source)
    tree = parse_urdf(text)
    chain = _chain(tree, base, tip, set(along) if joints is None or isinstance(joints, str) else set(joints))
    base_name = chain[0].parent if chain else (base or tree.root)
    tip_name = chain[-1].child if chain else (tip or tree.root)
    moving = _moving_joints(tree, chain, joints)
    require_few_joints(len(moving))
    placements, attached, tip_placement, on_base = _lump(
        tree, chain, base_name, moving, chosen=tip is None and joints is None
    )
    inertial = np.stack([_lumped_inertial(links) for links in attached])
    _warn_of_inertias(moving, attached, inertial)
    _warn_of_limits(moving)
    gears = [tree.gears.get(joint.name, (1.0, 0.0)) for joint in moving]
    unlimited = np.full(len(moving), np.inf)
    return RobotModel(
        name=tree.name,
        joint_names=tuple(joint.name for joint in moving),
        joint_types=tuple('prismatic' if joint.kind == 'prismatic' else 'revolute' for joint in moving),
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
        base_attached=on_base,
        source=text,
    )


def _chain(tree: UrdfTree, base: str | None, tip: str | None, wanted: Set[str]) -> list[UrdfJoint]:
    """Return the joints from base to tip, fixed ones included; without a tip, along the joints that are wanted."""
    for role, link in (('base', base), ('tip', tip)):
        if link is not None:
            require_names([link], list(tree.inertials), f'{role} link', 'the URDF', ModelError)
    start = base or tree.root
    if tip is None:
        return _chain_to_branching(tree, start, wanted)
    parent_joint = {joint.child: joint for joint in tree.joints.values()}
    chain: list[UrdfJoint] = []
    link = tip
    while link != start:
        if link not in parent_joint:
            raise ModelError(f"tip link '{tip}' is not below base link '{start}'", name=tip, expected=start)
        chain.append(parent_joint[link])
        link = parent_joint[link].parent
    return chain[::-1]


def _chain_to_branching(tree: UrdfTree, start: str, wanted: Set[str], count: int = 0) -> list[UrdfJoint]:
    """Follow the arm past a head or wheels to its flange or gripper; ``count`` joints of it are before the start.

    Where several branches move, the arm goes on along the only one with joints that are wanted, unless another one
    follows them. Otherwise it is the one with the most joints, if these are at least as many as it has until there;
    shorter ones are the fingers of a gripper, where it ends.
    """
    lengths: dict[str, int] = {}  # joints that move one after the other from each on, dependent ones aside
    for joint in reversed(_below(tree, tree.children[start])):
        further = max((lengths[each.name] for each in tree.children[joint.child]), default=0)
        lengths[joint.name] = further + (joint.kind in MOVING and joint.mimics is None)
    chain: list[UrdfJoint] = []
    link = start
    while moving := [
        joint for joint in tree.children[link] if any(each.kind in MOVING for each in _below(tree, [joint]))
    ]:
        moving.sort(key=lambda joint: -lengths[joint.name])
        leading = [joint for joint in moving if any(each.name in wanted for each in _below(tree, [joint]))]
        others = _below(tree, [joint for joint in moving if joint not in leading])
        # Of fingers that follow one another, only the first is recorded.
        fingers = {each.mimics for each in others} & {each.name for each in _below(tree, leading)}
        if len(leading) == 1 and not fingers:
            moving = leading
        if len(moving) > 1:
            longest = lengths[moving[0].name]
            equal = [joint for joint in moving if lengths[joint.name] == longest]
            if len(equal) > 1 and longest > count:
                arms = [[each, *_chain_to_branching(tree, each.child, wanted, count + 1)] for each in equal]
                ends = [next(each.child for each in reversed(arm) if each.kind in MOVING) for arm in arms]
                message = (
                    f"several parts move below link '{link}'; name the tip link of one, such as {', '.join(ends[:20])}"
                )
                raise SeveralArmsError(message, name=link, expected=tuple(ends))
            if len(equal) > 1 or longest < count:
                break
        chain.append(moving[0])
        count += moving[0].kind in MOVING
        link = moving[0].child
    while chain and chain[-1].kind not in MOVING:
        chain.pop()
    return chain


def _below(tree: UrdfTree, joints: list[UrdfJoint]) -> list[UrdfJoint]:
    """Return some joints and all below them, each after its parent."""
    found = list(joints)
    for joint in found:  # grows meanwhile
        found += tree.children[joint.child]
    return found


def _moving_joints(tree: UrdfTree, chain: list[UrdfJoint], wanted: Sequence[str] | None) -> list[UrdfJoint]:
    for joint in chain:
        if joint.kind in ('floating', 'planar'):
            message = (
                f"joint '{joint.name}' is {joint.kind}; a serial arm has revolute and prismatic joints only: "
                'choose a base link below it'
            )
            raise ModelError(message, name=joint.name, found=joint.kind)
    moving = [joint for joint in chain if joint.kind in MOVING]
    if not moving:
        raise ModelError('the chain from base to tip has no moving joint')
    if isinstance(wanted, str):
        message = f"joints: expected a list of names, got '{wanted}'; give ['{wanted}']"
        raise ModelError(message, name='joints', found=wanted)
    if wanted is not None:
        names = [joint.name for joint in moving]
        for name in wanted:
            where = 'the chain' if name in tree.joints else 'the URDF'
            require_names([name], names, 'joint', where, ModelError)
        moving = [joint for joint in moving if joint.name in set(wanted)]
        if not moving:
            message = f'expected at least one joint to identify; the chain has: {", ".join(names)}'
            raise ModelError(message, expected=tuple(names))
    for joint in moving:
        if joint.mimics is not None:
            message = (
                f"joint '{joint.name}' mimics '{joint.mimics}'; a serial arm cannot have a dependent joint: "
                'choose a tip before it, or name the joints to keep'
            )
            raise ModelError(message, name=joint.name, found=joint.mimics)
    return moving


def _lump(
    tree: UrdfTree, chain: list[UrdfJoint], base_name: str, moving: list[UrdfJoint], *, chosen: bool
) -> tuple[Array, tuple[tuple[AttachedLink, ...], ...], Array, tuple[AttachedLink, ...]]:
    """Walk the tree with every joint that is not moving held at zero.

    Returns the placement of each moving joint in its predecessor's frame, the links carried by
    each, the chain's end in the last frame, and the links fixed to the base. A chain that was chosen here, not by the
    user, is named in the warning of what is left out.
    """
    index = {joint.name: k for k, joint in enumerate(moving)}
    placements = np.empty((len(moving), 4, 4))
    attached: list[list[AttachedLink]] = [[] for _ in moving]
    end = chain[-1].child
    end_placement = np.eye(4)
    on_base: list[AttachedLink] = []
    locked: list[str] = []
    beside: list[str] = []

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
                if joint.kind in MOVING:
                    (beside if owner < 0 else locked).append(joint.name)
                stack.append((joint.child, owner, below))
    ends = f"; the arm ends at link '{end}', a tip names another" if chosen else ''
    if locked:
        message = f'joints held at zero, their links lumped into the arm: {_listed(locked)}{ends}'
        warnings.warn(message, ModelWarning, stacklevel=5)
    if beside and chosen:
        warnings.warn(f'joints that are no part of the arm: {_listed(beside)}{ends}', ModelWarning, stacklevel=5)
    return placements, tuple(tuple(links) for links in attached), end_placement, tuple(on_base)


def _listed(names: list[str]) -> str:
    return ', '.join(sorted(names)[:20]) + (f' and {len(names) - 20} more' if len(names) > 20 else '')


def _lumped_inertial(links: Sequence[AttachedLink]) -> Array:
    moved = (transform_inertial_parameters(a.inertial, a.placement[:3, :3], a.placement[:3, 3]) for a in links)
    return sum(moved, start=np.zeros(10))


def _warn_of_inertias(moving: list[UrdfJoint], attached: Sequence[Sequence[AttachedLink]], inertial: Array) -> None:
    """Warn of each link whose inertial parameters no rigid body can have, and of joints that move no mass."""
    for joint, links, pi in zip(moving, attached, inertial, strict=True):
        moved_by = f"(moved by joint '{joint.name}')"
        if pi[9] == 0.0:
            warnings.warn(f"link '{joint.child}' {moved_by} has no mass", ModelWarning, stacklevel=4)
        for link in links:
            reason = physical_violation(link.inertial)
            if reason is not None:
                message = f"link '{link.name}' {moved_by} is not a physical body: {reason}"
                warnings.warn(message, ModelWarning, stacklevel=4)


def _warn_of_limits(moving: list[UrdfJoint]) -> None:
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
