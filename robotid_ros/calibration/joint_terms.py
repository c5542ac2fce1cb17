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
from typing import Literal

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.calibration.chain import KinematicChain
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import CalibrationError
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTerm:
    """One basis function of one joint's offset.

    Attributes
    ----------
    name : str
    joint : int
    function : {'sine', 'cosine', 'torque', 'lever'}
    target : int
        For a lever: index of the joint whose origin carries the weight; n is the tip.
    order : int
        Of the harmonic.
    unit : str
    """

    name: str
    joint: int
    function: Literal['sine', 'cosine', 'torque', 'lever']
    target: int = -1
    order: int = 1
    unit: str = 'rad'


@dataclass(frozen=True, slots=True, kw_only=True)
class JointTerms:
    """Basis functions over one arm with its nominal geometry.

    Attributes
    ----------
    chain : KinematicChain
    gravity : ndarray, shape (3,)
        In the base frame [m/s^2].
    model : RobotModel or None
        Gives the gravity torques where it has masses.
    terms : tuple of JointTerm
    """

    chain: KinematicChain
    gravity: Array
    model: RobotModel | None = None
    terms: tuple[JointTerm, ...] = ()

    def basis(self, q: Array) -> Array:
        """Return the basis functions at N poses, shape (N, T)."""
        result = np.empty((len(q), len(self.terms)))
        functions = {term.function for term in self.terms}
        chain_q = q @ self.chain.coupling.T
        torque = self._torque(q) if 'torque' in functions else chain_q
        lever = self._levers(q) if 'lever' in functions else np.zeros((len(q), 0, 0))
        for k, term in enumerate(self.terms):
            if term.function == 'sine':
                result[:, k] = np.sin(term.order * chain_q[:, term.joint])
            elif term.function == 'cosine':
                result[:, k] = np.cos(term.order * chain_q[:, term.joint])
            elif term.function == 'torque':
                result[:, k] = -torque[:, term.joint]
            else:
                result[:, k] = lever[:, term.joint, term.target]
        return result

    def offsets(self, basis: Array, coefficients: Array) -> Array:
        """Return what the terms add to the chain coordinates, shape (N, n), from their basis (N, T)."""
        shift = np.zeros((len(basis), self.chain.n))
        for k, term in enumerate(self.terms):
            shift[:, term.joint] += coefficients[k] * basis[:, k]
        return shift

    def selected(self, index: Sequence[int]) -> 'JointTerms':
        """Return some of the terms."""
        return replace(self, terms=tuple(self.terms[k] for k in index))

    def _torque(self, q: Array) -> Array:
        if self.model is None:
            raise CalibrationError('compliance by torque needs a model with masses')
        still = np.zeros_like(q)
        measured: Array = inverse_dynamics(self.model, q, still, still)
        return measured @ np.linalg.inv(self.chain.coupling)

    def _levers(self, q: Array) -> Array:
        """Return z_i . ((o_j - o_i) x g/|g|) for every joint i and target j, shape (N, n, n + 1)."""
        pose = self.chain.evaluate(self.chain.nominal, q)
        targets = np.concatenate([pose.joint_origins, pose.position[:, :, None]], axis=2)
        down = self.gravity / np.linalg.norm(self.gravity)
        # z . (r x g) = r . (g x z)
        moment = np.cross(down[None, :, None], pose.joint_axes, axis=1)
        result: Array = np.einsum('nci,ncj->nij', moment, targets)
        result -= np.einsum('nci,nci->ni', moment, pose.joint_origins)[:, :, None]
        return result


def joint_terms(
    chain: KinematicChain, kinds: Sequence[str], gravity: Array, model: RobotModel | None = None
) -> tuple[JointTerms, tuple[tuple[int, ...], ...]]:
    """Return every candidate term of the given kinds, and the groups that enter together.

    Without gravity, shape (3,) in the base frame [m/s^2], there is no compliance term; it is of gravity torques where
    the model has masses, of levers elsewhere.
    """
    terms: list[JointTerm] = []
    groups: list[tuple[int, ...]] = []

    def put(members: list[JointTerm]) -> None:
        groups.append(tuple(range(len(terms), len(terms) + len(members))))
        terms.extend(members)

    massive = model is not None and bool((model.inertial[:, 9] > 0.0).any())
    heavy = bool(np.linalg.norm(gravity) > 0.0)
    for i, name in enumerate(chain.joint_names):
        if chain.prismatic[i]:
            continue
        for kind, order, mark in (('eccentricity', 1, ''), ('second_harmonic', 2, '2')):
            if kind in kinds:
                put(
                    [
                        JointTerm(name=f'{name}.sine{mark}', joint=i, function='sine', order=order),
                        JointTerm(name=f'{name}.cosine{mark}', joint=i, function='cosine', order=order),
                    ]
                )
        if 'compliance' in kinds and heavy and massive:
            put([JointTerm(name=f'{name}.compliance', joint=i, function='torque', unit='rad/(N*m)')])
        elif 'compliance' in kinds and heavy:
            for j in range(i + 1, chain.n + 1):
                carrier = chain.joint_names[j] if j < chain.n else 'tip'
                put(
                    [JointTerm(name=f'{name}.compliance[{carrier}]', joint=i, function='lever', target=j, unit='rad/m')]
                )
    return JointTerms(chain=chain, gravity=gravity, model=model if massive else None, terms=tuple(terms)), tuple(groups)
