# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The arm as a chain of elementary motions, each of which may be a parameter.

Between two joints lies a rigid segment, a product of elementary rotations and translations. A
parameter moves everything beyond it along or about one axis, so that its column of the position
Jacobian is ``u`` (translation) or ``u x (p - o)`` (rotation), and of the orientation Jacobian 0 or
``u``, with ``u`` and ``o`` the axis and a point on it at the current pose: for a DH row, z_{i-1}
through o_{i-1} (theta, d), x_i through o_i (a, alpha) and y_i through o_i (beta).

Every joint term adds ``coefficient * basis(q)`` to the coordinate of one joint:

- eccentricity of an encoder: first harmonics, sin(q_i) and cos(q_i);
- an oval encoder or gear: second harmonics, sin(2 q_i) and cos(2 q_i);
- compliance, where the masses are known: minus the gravity torque that the joint holds, so that
  the coefficient is the spring's compliance [rad/(N m)];
- compliance, where they are not: the gravity torque of a unit weight at the origins of the later
  joints and at the tip, z_i . ((o_j - o_i) x g/|g|), so that each coefficient is compliance times
  an unknown weight [rad/m].
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import numpy as np

from robotid_ros.arrays import Array, BoolArray
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.model.dh_table import DHTable
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.transforms import cross_matrix, rotation_x, rotation_y, rotation_z, translation

PARALLEL = np.deg2rad(5.0)
"""Adjacent axes closer than this to parallel get Hayati's beta: their common normal is ill-defined."""

MOTIONS = ('x', 'y', 'z', 'rx', 'ry', 'rz')  # elementary motions of a frame: along its axes [m], then about them [rad]

Step: TypeAlias = int | Array  # an elementary motion, whose size is the next parameter, or a constant (4, 4)


class ChainPose(NamedTuple):
    """The chain at N poses, in the frame it was placed in."""

    rotation: Array  # of the tip frame, shape (N, 3, 3)
    position: Array  # and (N, 3)
    axes: Array  # shape (N, 3, P + n): axis of each parameter and then of each joint, and a point on it
    origins: Array

    @property
    def transforms(self) -> Array:
        """Pose of the tip frame, shape (N, 4, 4)."""
        result = np.tile(np.eye(4), (len(self.position), 1, 1))
        result[:, :3, :3], result[:, :3, 3] = self.rotation, self.position
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class KinematicChain:
    """A serial arm as segments and joints, base to tip: S_0 M_1(q_1) S_1 ... M_n(q_n) S_n."""

    joint_names: tuple[str, ...]
    prismatic: BoolArray  # shape (n,)
    joint_axes: Array  # shape (n, 3): unit axes in the frame before the motion
    coupling: Array  # shape (n, n): chain coordinates are coupling @ q
    # n + 1 of them: elementary motions, by their index in MOTIONS, and constant transforms. The parameters are the
    # sizes of the motions, in their order.
    segments: tuple[tuple[Step, ...], ...]
    names: tuple[str, ...]  # of the P parameters
    nominal: Array  # shape (P,)
    zeros: BoolArray  # shape (P,): which parameters are (nearest to) the zeros of joints

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    @property
    def rotates(self) -> BoolArray:
        """Which parameters are angles [rad], shape (P,); the others are lengths [m]."""
        return np.array([step > 2 for steps in self.segments for step in steps if isinstance(step, int)], dtype=bool)

    def placed(self, values: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Yield the segments for values of the parameters, shape (P,), as transforms, shape (4, 4).

        With each come axes and origins of its k parameters in its first frame, (3, k) each.
        """
        sizes = iter(values.tolist())
        for steps in self.segments:
            transform, places = np.eye(4), []
            for step in steps:
                if isinstance(step, int):
                    places.append((transform[:3, step % 3], transform[:3, 3]))
                    size = next(sizes)
                    turned = (rotation_x, rotation_y, rotation_z)
                    transform = transform @ (
                        translation(size * np.eye(3)[step]) if step < 3 else turned[step - 3](size)
                    )
                else:
                    transform = transform @ step
            axes, origins = np.reshape(places, (-1, 2, 3)).transpose(1, 2, 0)
            yield transform, axes, origins

    def evaluate(self, values: Array, q: Array, *, base: Array | None = None, shift: Array | None = None) -> ChainPose:
        """Place the chain at N poses.

        ``values``, shape (P,). ``q``, shape (N, n): joint coordinates as measured [rad or m]. ``base``, shape (N, 4,
        4): base frame of each pose in the frame that the result is expressed in. ``shift``, shape (N, n): added to the
        chain coordinates.
        """
        count = len(q)
        chain_q = q @ self.coupling.T
        if shift is not None:
            chain_q = chain_q + shift
        rotation = np.tile(np.eye(3), (count, 1, 1)) if base is None else base[:, :3, :3]
        position = np.zeros((count, 3)) if base is None else base[:, :3, 3]
        axes, origins = np.empty((2, count, 3, len(self.names) + self.n))
        end = 0
        for i, (segment, local_axes, local_origins) in enumerate(self.placed(values)):
            own = slice(end, end := end + local_axes.shape[1])
            axes[:, :, own] = _times(rotation, local_axes)
            origins[:, :, own] = _times(rotation, local_origins) + position[:, :, None]
            position = position + _times(rotation, segment[:3, 3:])[:, :, 0]
            rotation = _times(rotation, segment[:3, :3])
            if i == self.n:
                break
            along = _times(rotation, self.joint_axes[i][:, None])[:, :, 0]
            axes[:, :, i - self.n], origins[:, :, i - self.n] = along, position
            if self.prismatic[i]:
                position = position + along * chain_q[:, i, None]
            else:
                # Rotation @ R(axis, angle) by Rodrigues' formula, shape (N, 3, 3)
                axis = self.joint_axes[i]
                angle = chain_q[:, i]
                skew = cross_matrix(axis)
                first = _times(rotation, skew)
                sine, versine = np.sin(angle)[:, None, None], 2.0 * np.square(np.sin(0.5 * angle))[:, None, None]
                rotation = np.asarray(rotation + sine * first + versine * _times(first, skew))
        return ChainPose(rotation, position, axes, origins)

    def jacobian(self, pose: ChainPose, point: Array) -> Array:
        """Return how the P parameters and the n joints move points (N, 3) beyond the last joint, shape (N, 6, P + n).

        For each the derivatives of the point [m], and of the orientation [rad].
        """
        turns = np.concatenate([self.rotates, ~self.prismatic])
        arm = point[:, :, None] - pose.origins
        result = np.empty((len(point), 6, len(turns)))
        for a, b, c in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):  # u x (p - o); several times faster than numpy's on batches
            result[:, a] = np.where(turns, pose.axes[:, b] * arm[:, c] - pose.axes[:, c] * arm[:, b], pose.axes[:, a])
        result[:, 3:] = np.where(turns, pose.axes, 0.0)
        return result


def _times(batch: Array, matrix: Array) -> Array:
    """Return batch @ matrix for one (3, k) matrix, as one product instead of N."""
    count = len(batch)
    return np.asarray((batch.reshape(3 * count, 3) @ matrix).reshape(count, 3, -1))


def parallel_rows(table: DHTable) -> list[int]:
    """Return the rows of a table that need beta: those between two (nearly) parallel axes, turning or sliding.

    A standard row i lies between joints i and i + 1, a modified one between i - 1 and i.
    """
    ends = range(table.n - 1) if table.convention == 'standard' else range(1, table.n)
    return [i for i in ends if abs(np.sin(table.alpha[i])) < np.sin(PARALLEL)]


def chain_of_dh(table: DHTable) -> KinematicChain:
    """Return the chain of a DH table: theta, d, a, alpha of every row, and beta where axes are parallel."""
    n = table.n
    segments: list[list[Step]] = [[] for _ in range(n + 1)]
    names: list[str] = []
    nominal: list[float] = []
    with_beta = set(parallel_rows(table))
    about, along = [('theta', 'rz'), ('d', 'z')], [('a', 'x'), ('alpha', 'rx')]
    for i, joint in enumerate(table.joint_names):
        tilt = [('beta', 'ry')] if i in with_beta or table.beta[i] != 0.0 else []
        standard = table.convention == 'standard'
        row = [(i + 1, about), (i + 1, along + tilt)] if standard else [(i, along[::-1] + tilt), (i + 1, about)]
        for segment, motions in row:
            for symbol, motion in motions:
                segments[segment].append(MOTIONS.index(motion))
                names.append(f'{joint}.{symbol}')
                nominal.append(float(getattr(table, symbol)[i]))
    zeros = {
        f'{name}.{"d" if kind == "prismatic" else "theta"}'
        for name, kind in zip(table.joint_names, table.joint_types, strict=True)
    }
    return KinematicChain(
        joint_names=table.joint_names,
        prismatic=np.array([kind == 'prismatic' for kind in table.joint_types]),
        joint_axes=np.tile([0.0, 0.0, 1.0], (n, 1)),
        coupling=np.diag(table.direction),
        segments=tuple(tuple(steps) for steps in segments),
        names=tuple(names),
        nominal=np.array(nominal),
        zeros=np.array([name in zeros for name in names]),
    )


def chain_of_model(model: RobotModel) -> KinematicChain:
    """Return the chain of a model: a small motion x, y, z, rx, ry, rz in the frame of every joint origin.

    placement_i = nominal placement_i @ Tx(x) Ty(y) Tz(z) Rx(rx) Ry(ry) Rz(rz), all zero nominally.
    """
    segments: list[tuple[Step, ...]] = [(placement, *range(6)) for placement in model.placements]
    names = [f'{joint}.{symbol}' for joint in model.joint_names for symbol in MOTIONS]
    zeros = np.zeros((model.n, 6), dtype=bool)
    zeros[np.arange(model.n), np.abs(model.axes).argmax(axis=1) + np.where(model.revolute, 3, 0)] = True
    return KinematicChain(
        joint_names=model.joint_names,
        prismatic=~model.revolute,
        joint_axes=model.axes,
        coupling=model.coupling,
        segments=(*segments, (model.tip,)),
        names=tuple(names),
        nominal=np.zeros(len(names)),
        zeros=zeros.ravel(),
    )


def chain_of(robot: RobotModel | DHTable) -> KinematicChain:
    """Return the chain of elementary motions that an arm is calibrated in."""
    return chain_of_dh(robot) if isinstance(robot, DHTable) else chain_of_model(robot)


_HARMONICS = (('eccentricity', 1, ''), ('second_harmonic', 2, '2'))


JointTerm: TypeAlias = tuple[str, int, int, str]
"""One basis function of one joint's offset: its name, joint, column among all basis functions, and unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTerms:
    """Basis functions over one arm with its nominal geometry."""

    chain: KinematicChain
    gravity: Array  # shape (3,): in the base frame [m/s^2]
    model: RobotModel | None = None  # gives the gravity torques where it has masses
    terms: tuple[JointTerm, ...] = ()

    def basis(self, q: Array) -> Array:
        """Return the basis functions at N poses, shape (N, T)."""
        chain_q = q @ self.chain.coupling.T
        columns = [wave(order * chain_q) for _, order, _ in _HARMONICS for wave in (np.sin, np.cos)]
        chosen = [column for _, _, column, _ in self.terms]
        if max(chosen, default=0) >= 4 * self.chain.n:
            if self.model is None:
                columns.append(self._levers(q))
            else:  # minus the gravity torque that each joint of the chain holds
                still = np.zeros_like(q)
                columns.append(-inverse_dynamics(self.model, q, still, still) @ np.linalg.inv(self.chain.coupling))
        return np.hstack(columns)[:, chosen]

    def offsets(self, basis: Array, coefficients: Array) -> Array:
        """Return what the terms add to the chain coordinates, shape (N, n), from their basis (N, T)."""
        shift = np.zeros((len(basis), self.chain.n))
        for k, (_, joint, _, _) in enumerate(self.terms):
            shift[:, joint] += coefficients[k] * basis[:, k]
        return shift

    def selected(self, index: Sequence[int]) -> 'JointTerms':
        """Return some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in index))

    def _levers(self, q: Array) -> Array:
        """Return z_i . ((o_j - o_i) x g/|g|) for every joint i and, within it, target j, shape (N, n (n + 1))."""
        pose = self.chain.evaluate(self.chain.nominal, q)
        axes, origins = pose.axes[:, :, -self.chain.n :], pose.origins[:, :, -self.chain.n :]
        targets = np.concatenate([origins, pose.position[:, :, None]], axis=2)
        down = self.gravity / np.linalg.norm(self.gravity)
        # z . (r x g) = r . (g x z)
        moment = np.cross(down[None, :, None], axes, axis=1)
        result: Array = np.einsum('nci,ncj->nij', moment, targets)
        result -= np.einsum('nci,nci->ni', moment, origins)[:, :, None]
        return result.reshape(len(q), -1)


def joint_terms(
    chain: KinematicChain, kinds: Sequence[str], gravity: Array, model: RobotModel | None = None
) -> tuple[JointTerms, tuple[tuple[int, ...], ...]]:
    """Return every candidate term of the given kinds, and the groups that enter together.

    Without gravity, shape (3,) in the base frame [m/s^2], there is no compliance term; it is of gravity torques where
    the model has masses, of levers elsewhere.
    """
    n = chain.n
    groups: list[list[JointTerm]] = []
    massive = model is not None and bool((model.inertial[:, 9] > 0.0).any())
    heavy = 'compliance' in kinds and bool(np.linalg.norm(gravity) > 0.0)
    for i, name in enumerate(chain.joint_names):
        if chain.prismatic[i]:
            continue
        for kind, order, mark in _HARMONICS:
            if kind in kinds:
                waves = enumerate(('sine', 'cosine'), 2 * (order - 1))
                groups.append([(f'{name}.{wave}{mark}', i, k * n + i, 'rad') for k, wave in waves])
        if heavy and massive:
            groups.append([(f'{name}.compliance', i, 4 * n + i, 'rad/(N*m)')])
        elif heavy:
            for j, carrier in list(enumerate((*chain.joint_names, 'tip')))[i + 1 :]:
                groups.append([(f'{name}.compliance[{carrier}]', i, 4 * n + i * (n + 1) + j, 'rad/m')])
    terms = tuple(term for group in groups for term in group)
    numbers = iter(range(len(terms)))
    together = tuple(tuple(next(numbers) for _ in group) for group in groups)
    return JointTerms(chain=chain, gravity=gravity, model=model if massive else None, terms=terms), together
