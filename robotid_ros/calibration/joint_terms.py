# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Joint offsets that depend on the pose: eccentricity, second harmonics and compliance.

Every term adds ``coefficient * basis(q)`` to the coordinate of one joint:

- eccentricity of an encoder: first harmonics, sin(q_i) and cos(q_i);
- an oval encoder or gear: second harmonics, sin(2 q_i) and cos(2 q_i);
- compliance, where the masses are known: minus the gravity torque that the joint holds, so that
  the coefficient is the spring's compliance [rad/(N m)];
- compliance, where they are not: the gravity torque of a unit weight at the origins of the later
  joints and at the tip, z_i . ((o_j - o_i) x g/|g|), so that each coefficient is compliance times
  an unknown weight [rad/m].
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.chain import KinematicChain
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.model.robot_model import RobotModel

_HARMONICS = (('eccentricity', 1, ''), ('second_harmonic', 2, '2'))


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTerm:
    """One basis function of one joint's offset: its name, joint, unit, and column among all basis functions."""

    name: str
    joint: int
    column: int
    unit: str = 'rad'


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
        if any(term.column >= 4 * self.chain.n for term in self.terms):
            columns.append(self._levers(q) if self.model is None else self._torque(self.model, q))
        return np.hstack(columns)[:, [term.column for term in self.terms]]

    def offsets(self, basis: Array, coefficients: Array) -> Array:
        """Return what the terms add to the chain coordinates, shape (N, n), from their basis (N, T)."""
        shift = np.zeros((len(basis), self.chain.n))
        for k, term in enumerate(self.terms):
            shift[:, term.joint] += coefficients[k] * basis[:, k]
        return shift

    def selected(self, index: Sequence[int]) -> 'JointTerms':
        """Return some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in index))

    def _torque(self, model: RobotModel, q: Array) -> Array:
        """Return minus the gravity torque that each joint of the chain holds, shape (N, n)."""
        still = np.zeros_like(q)
        return np.asarray(-inverse_dynamics(model, q, still, still) @ np.linalg.inv(self.chain.coupling))

    def _levers(self, q: Array) -> Array:
        """Return z_i . ((o_j - o_i) x g/|g|) for every joint i and, within it, target j, shape (N, n (n + 1))."""
        pose = self.chain.evaluate(self.chain.nominal, q)
        targets = np.concatenate([pose.joint_origins, pose.position[:, :, None]], axis=2)
        down = self.gravity / np.linalg.norm(self.gravity)
        # z . (r x g) = r . (g x z)
        moment = np.cross(down[None, :, None], pose.joint_axes, axis=1)
        result: Array = np.einsum('nci,ncj->nij', moment, targets)
        result -= np.einsum('nci,nci->ni', moment, pose.joint_origins)[:, :, None]
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
                groups.append([JointTerm(name=f'{name}.{wave}{mark}', joint=i, column=k * n + i) for k, wave in waves])
        if heavy and massive:
            groups.append([JointTerm(name=f'{name}.compliance', joint=i, column=4 * n + i, unit='rad/(N*m)')])
        elif heavy:
            for j, carrier in list(enumerate((*chain.joint_names, 'tip')))[i + 1 :]:
                column = 4 * n + i * (n + 1) + j
                groups.append([JointTerm(name=f'{name}.compliance[{carrier}]', joint=i, column=column, unit='rad/m')])
    terms = tuple(term for group in groups for term in group)
    numbers = iter(range(len(terms)))
    together = tuple(tuple(next(numbers) for _ in group) for group in groups)
    return JointTerms(chain=chain, gravity=gravity, model=model if massive else None, terms=terms), together
