# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The robot model: a serial chain of moving joints and rigid links; from a URDF with locked joints and lumped links."""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, BoolArray, freeze_fields, require_names, unset
from robotid_ros.errors import ModelError, ModelWarning
from robotid_ros.model.inertia import physical_violation, transform_inertial_parameters
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.urdf_tree import MOVING, UrdfJoint, UrdfTree, parse_urdf, read_urdf_text
from robotid_ros.reading import refusing

JointType: TypeAlias = Literal['revolute', 'prismatic']

STANDARD_GRAVITY = (0.0, 0.0, -9.81)

MOST_JOINTS = 40  # equations written out grow with the third power: those of 100 joints need 5 GB


def require_few_joints(n: int) -> None:
    """Refuse a chain with more than :data:`MOST_JOINTS` moving joints."""
    if n > MOST_JOINTS:
        message = f'expected at most {MOST_JOINTS} joints, got {n}; name those wanted, or a tip'
        raise ModelError(message, expected=MOST_JOINTS, found=n)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedLink:
    """A link of the description that moves rigidly with one joint."""

    name: str
    placement: Array  # of its frame in that of the moving link it belongs to, shape (4, 4) [m]
    inertial: Array  # in its own frame, as described, shape (10,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RobotModel:
    """A serial arm of n moving joints, base to tip.

    Link i (0-based) moves with joint i; its frame is the joint's frame after the motion:

        T_i(q_i) = placements[i] @ M(axes[i], q_i)

    with M a rotation about, or a translation along, the axis. Measured (motor-side, but scaled to
    the joint) coordinates q relate to the chain's by q_chain = coupling @ q, hence
    tau = coupling^T tau_chain.

    Attributes
    ----------
    name : str
    joint_names, link_names : tuple of str
    joint_types : tuple of {'revolute', 'prismatic'}
    placements : ndarray, shape (n, 4, 4)
        Frame of joint i in the frame of link i - 1 (the base frame for i = 0), at q = 0 [m].
    axes : ndarray, shape (n, 3)
        Unit joint axes in the joint frames.
    inertial : ndarray, shape (n, 10)
        Standard inertial parameters of each link, fixed attachments included, in the order of
        :data:`robotid_ros.model.inertia.INERTIAL_NAMES`, about the link frame's origin.
    rotor_inertia : ndarray, shape (n,)
        Inertia of the rotors times the square of the gear ratio [kg m^2, or kg].
    damping, friction : ndarray, shape (n,)
        Prior viscous [N m s/rad] and Coulomb [N m] friction.
    gear_ratio : ndarray, shape (n,)
    limits : JointLimits
    gravity : ndarray, shape (3,)
        Acceleration of free fall in the base frame [m/s^2].
    coupling : ndarray, shape (n, n)
    drives : ndarray, shape (n, n)
        Positions of the motors, scaled to the joints, over those of the joints: q_motor = drives @ q. Friction and
        rotors act at the motors; see :meth:`at_motors`.
    effort_at : str
        Where drives are coupled, whose torques a driver tells and takes: 'joints', or 'motors' (scaled to the joints).
        All that reads or writes efforts goes by :attr:`effort_map`.
    tip : ndarray, shape (4, 4)
        Tip frame in the frame of the last link.
    base_inertial : ndarray, shape (10,)
        Inertial parameters of everything fixed to the base, in the base frame; used only for a floating base.
    base_name, tip_name : str
    attached : tuple of tuple of AttachedLink
        For each moving link, the links of the description that were lumped into it, itself among them.
    base_attached : tuple of AttachedLink
        Those that are fixed to the base, and the base.
    source : str or None
        Text of the URDF it came from.
    """

    name: str
    joint_names: tuple[str, ...]
    joint_types: tuple[JointType, ...]
    placements: Array
    axes: Array
    inertial: Array
    link_names: tuple[str, ...] = ()
    rotor_inertia: Array = field(default_factory=unset)
    damping: Array = field(default_factory=unset)
    friction: Array = field(default_factory=unset)
    gear_ratio: Array = field(default_factory=unset)
    limits: JointLimits = field(default_factory=lambda: JointLimits.unlimited(0))
    gravity: Array = field(default_factory=lambda: np.array(STANDARD_GRAVITY))
    coupling: Array = field(default_factory=unset)
    drives: Array = field(default_factory=unset)
    effort_at: Literal['joints', 'motors'] = 'joints'
    tip: Array = field(default_factory=lambda: np.eye(4))
    base_inertial: Array = field(default_factory=lambda: np.zeros(10))
    base_name: str = 'base'
    tip_name: str = 'tip'
    attached: tuple[tuple[AttachedLink, ...], ...] = ()
    base_attached: tuple[AttachedLink, ...] = ()
    source: str | None = None

    def __post_init__(self) -> None:
        n = len(self.joint_names)
        if n == 0:
            raise ModelError('a robot needs at least one moving joint; the chain has none')
        require_few_joints(n)
        if len(set(self.joint_names)) != n:
            raise ModelError(f'joint names must differ; got {", ".join(self.joint_names)}')
        if len(self.joint_types) != n or not set(self.joint_types) <= {'revolute', 'prismatic'}:
            raise ModelError(f"joint_types: expected {n} of 'revolute' or 'prismatic', got {self.joint_types}")

        shapes: dict[str, tuple[int, ...]] = {'placements': (n, 4, 4), 'axes': (n, 3), 'inertial': (n, 10)}
        shapes |= {'gravity': (3,), 'tip': (4, 4), 'base_inertial': (10,)}
        defaults: dict[str, Array] = dict.fromkeys(('rotor_inertia', 'damping', 'friction'), np.zeros(n))
        defaults |= {'gear_ratio': np.ones(n), 'coupling': np.eye(n), 'drives': np.eye(n)}
        shapes |= {name: value.shape for name, value in defaults.items()}
        freeze_fields(self, ModelError, shapes, defaults=defaults)
        if not self.link_names:
            object.__setattr__(self, 'link_names', tuple(f'link{k + 1}' for k in range(n)))
        if len(self.limits.lower) == 0:
            object.__setattr__(self, 'limits', JointLimits.unlimited(n))
        if np.abs(np.linalg.norm(self.axes, axis=1) - 1.0).max() > 1e-9:
            raise ModelError('axes: expected unit vectors')
        if len(self.limits.lower) != n:
            raise ModelError(f'limits: expected {n} joints, got {len(self.limits.lower)}')
        for name in ('coupling', 'drives'):
            if abs(np.linalg.det(getattr(self, name))) < 1e-12:
                raise ModelError(f'{name}: expected an invertible matrix')
        for name, transforms in (('placements', self.placements), ('tip', self.tip[None])):
            rotations = transforms[:, :3, :3]
            skew = np.abs(np.swapaxes(rotations, 1, 2) @ rotations - np.eye(3)).max()
            if skew > 1e-6 or (np.linalg.det(rotations) < 0.0).any() or (transforms[:, 3] != [0, 0, 0, 1]).any():
                raise ModelError(f'{name}: expected rigid transforms (a rotation, and a last row of 0 0 0 1)')

    @property
    def n(self) -> int:
        """Number of moving joints."""
        return len(self.joint_names)

    @property
    def revolute(self) -> BoolArray:
        """Which joints turn, shape (n,); the others slide."""
        return np.array(self.joint_types) == 'revolute'

    @property
    def frames(self) -> dict[str, tuple[int, Array]]:
        """Moving link that each link of the description is fixed to, -1 for the base, and its placement in that."""
        own = {name: (k, np.eye(4)) for k, name in enumerate((self.base_name, *self.link_names), -1)}
        groups = enumerate((self.base_attached, *self.attached), -1)
        return {**own, **{link.name: (k, link.placement) for k, links in groups for link in links}}

    @property
    def has_coupled_drives(self) -> bool:
        """Whether a motor turns with more than its own joint."""
        return not np.array_equal(self.drives, np.eye(self.n))

    @property
    def effort_map(self) -> Array:
        """T, shape (n, n): torques of the joints over the efforts of the driver, tau = T effort."""
        return self.drives.T if self.effort_at == 'motors' else np.eye(self.n)

    def torque_of(self, effort: Array) -> Array:
        """Return the torques of the joints from the efforts of the driver, shape (..., n) [N m or N]."""
        return np.asarray(effort @ self.effort_map.T) if self.effort_at == 'motors' else effort

    def at_motors(self) -> 'RobotModel':
        """Return the same arm in the coordinates of its motors.

            q_motor = drives q,  tau = drives^T tau_motor

        where each motor has a friction and a rotor of its own.
        """
        if not self.has_coupled_drives:
            return self
        return replace(
            self, coupling=self.coupling @ np.linalg.inv(self.drives), drives=np.eye(self.n), effort_at='joints'
        )

    @classmethod
    @refusing('the URDF', ModelError)
    def from_urdf(
        cls,
        source: str | Path,
        tip: str | None = None,
        joints: Sequence[str] | None = None,
        *,
        base: str | None = None,
        gravity: Sequence[float] = STANDARD_GRAVITY,
        along: Collection[str] = (),
    ) -> 'RobotModel':
        """Read an arm from a URDF.

        Parameters
        ----------
        source : str or Path
            A file, or the XML text itself.
        tip : str, optional
            Link at the end of the chain. By default the arm ends at its last moving link or before the fingers of a
            gripper; where the tree branches it goes on along the branch with the most joints, and a warning names
            what is left out.
        joints : sequence of str, optional
            Joints to keep moving, in any order; the other joints of the chain are locked at zero.
        base : str, optional
            Link at the start of the chain; by default the root.
        gravity : sequence of float
            Acceleration of free fall in the base link's frame [m/s^2].
        along : collection of str
            Without tip and joints, the branch with these joints is taken where the tree branches, such as those that
            were recorded.

        Raises
        ------
        ModelError
            If the file is absent, is not XML, or describes no usable serial arm.
        """
        text = read_urdf_text(source)
        tree = parse_urdf(text)
        chain = tree.chain(base, tip, set(along) if joints is None or isinstance(joints, str) else set(joints))
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
        return cls(
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

    @classmethod
    def from_mdh(cls, rows: Sequence[Sequence[float]], **options: Any) -> 'RobotModel':
        """Build an arm from modified (Khalil/Craig) DH rows ``(alpha, a, d, theta)``.

        T_i = Rx(alpha) Tx(a) Rz(theta + q) Tz(d), and Tz(d + q) for a prismatic joint. See
        :func:`robotid_ros.model.dh_table.model_of_dh_rows` for the options.
        """
        from robotid_ros.model.dh_table import model_of_dh_rows

        return model_of_dh_rows(rows, 'modified', **options)

    @classmethod
    def from_dh(cls, rows: Sequence[Sequence[float]], **options: Any) -> 'RobotModel':
        """Build an arm from standard DH rows ``(theta, d, a, alpha)``.

        T_i = Rz(theta + q) Tz(d) Tx(a) Rx(alpha). The model's link frame i has the axis of joint i: it is
        DH frame i seen from its near end. See :func:`robotid_ros.model.dh_table.model_of_dh_rows` for the options.
        """
        from robotid_ros.model.dh_table import model_of_dh_rows

        return model_of_dh_rows(rows, 'standard', **options)

    def with_inertial(self, inertial: Array, **changes: Any) -> 'RobotModel':
        """Return a copy with other inertial parameters, shape (n, 10), and any other fields changed."""
        return replace(self, inertial=inertial, **changes)


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
        warnings.warn(message, ModelWarning, stacklevel=4)
    if beside and chosen:
        warnings.warn(f'joints that are no part of the arm: {_listed(beside)}{ends}', ModelWarning, stacklevel=4)
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
