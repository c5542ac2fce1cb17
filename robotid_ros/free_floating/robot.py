# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A robot arm on a floating base that holds a target, and its momentum.

With the screw s_j of joint j, the spatial inertia F_i of body i (body 0 is the base, body n the last link merged with
the target) and the composite inertias C_j = F_j + ... + F_n, momentum h and base twist V_0 are related by

    h = M V_0 + sum_j C_j s_j dq_j,      M = C_0,

so that without momentum V_0 = -M^-1 sum_j C_j s_j dq_j. In the base frame all of it depends on the joints alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.free_floating.body import RigidBody, bracket, cross, spatial_inertia
from robotid_ros.model.inertia import physical_violation, pseudo_inertia
from robotid_ros.model.kinematics import link_transforms
from robotid_ros.model.robot_model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeFloatingRobot:
    """A serial arm on a free-floating base; its last link, merged with the target, is body n.

    Attributes
    ----------
    arm : RobotModel
        Known: the base (``arm.base_inertial``, in the base frame) and all links. Gravity and rotor inertias
        are not used.
    body : RigidBody
        Body n, the last link merged with the target: a prior, an estimate or the truth.

    Raises
    ------
    ModelError
        If the base has no mass or is not a physical body.
    """

    arm: RobotModel
    body: RigidBody

    def __post_init__(self) -> None:
        base = self.arm.base_inertial
        if base[9] <= 0.0:
            message = (
                f"the base '{self.arm.base_name}' has no mass; a floating base needs one: give its link an "
                '<inertial> in the URDF, or pass base='
            )
            raise ModelError(message, name=self.arm.base_name)
        reason = physical_violation(base)
        if reason is not None:
            message = f"the base '{self.arm.base_name}' is not a physical body: {reason}"
            raise ModelError(message, name=self.arm.base_name)

    @classmethod
    def from_urdf(
        cls,
        source: str | Path,
        *,
        base: RigidBody | None = None,
        target: RigidBody | None = None,
        tip: str | None = None,
        joints: Sequence[str] | None = None,
    ) -> 'FreeFloatingRobot':
        """Read the arm from a URDF, with the inertia of its floating base and its target.

        Parameters
        ----------
        source : str or Path
            A file, or the XML text itself.
        base : RigidBody, optional
            Inertia of the base in the frame of the URDF's root link; by default what the URDF gives
            the root link and everything fixed to it.
        target : RigidBody, optional
            The target alone, in the frame of the last link (joint n's frame); none by default.
        tip, joints : optional
            As in :meth:`robotid_ros.model.RobotModel.from_urdf`.

        Raises
        ------
        ModelError
            If the URDF is unusable, or the base has no mass.
        """
        arm = RobotModel.from_urdf(source, tip=tip, joints=joints)
        if base is not None:
            arm = arm.with_inertial(arm.inertial, base_inertial=base.parameters)
        last = arm.inertial[-1] + (0.0 if target is None else target.parameters)
        return cls(arm=arm, body=RigidBody.from_parameters(last))

    @property
    def n(self) -> int:
        """Number of joints."""
        return self.arm.n

    @property
    def model(self) -> RobotModel:
        """The arm with body n as its last link."""
        inertial = self.arm.inertial.copy()
        inertial[-1] = self.body.parameters
        return self.arm.with_inertial(inertial)

    def require_physical_body(self) -> None:
        """Refuse a body n that is not physical, as an estimate or a difference may be.

        Raises
        ------
        ModelError
            With the reason.
        """
        if self.body.mass <= 0.0:
            message = f'the last link with its target needs a positive mass, got {self.body.mass:g} kg; give the target'
            raise ModelError(message, name='mass', found=float(self.body.mass))
        reason = self.body.violation
        if reason is not None:
            raise ModelError(f'the last link with its target is no physical body: {reason}')

    @property
    def target(self) -> RigidBody:
        """Body n less the bare last link, unchecked."""
        return RigidBody.from_parameters(self.body.parameters - self.arm.inertial[-1])

    def with_body(self, body: RigidBody) -> 'FreeFloatingRobot':
        """Return the robot with another body n (the last link merged with the target)."""
        return FreeFloatingRobot(arm=self.arm, body=body)

    def with_target(self, target: RigidBody) -> 'FreeFloatingRobot':
        """Return the robot with another target, given alone in the frame of the last link."""
        return self.with_body(RigidBody.from_parameters(self.arm.inertial[-1] + target.parameters))


@dataclass(frozen=True, slots=True, kw_only=True)
class MomentumMap:
    """Momentum as a linear function of base twist and joint rates, at N configurations."""

    model: RobotModel
    poses: Array  # shape (N, n, 4, 4): link frames in the base frame
    screws: Array  # shape (N, n, 6): unit twists of the chain's joints
    composite: Array  # shape (N, n + 1, 6, 6): spatial inertia of bodies j .. n.

    @property
    def base(self) -> Array:
        """Momentum per base twist: the inertia M of the locked system, shape (N, 6, 6)."""
        return self.composite[:, 0]

    @property
    def joints(self) -> Array:
        """Momentum per measured joint rate, shape (N, 6, n): C_j s_j of the chain's joints, coupled."""
        columns = np.einsum('njab,njb->nja', self.composite[:, 1:], self.screws)
        return np.asarray(np.swapaxes(columns, 1, 2) @ self.model.coupling)

    def momentum(self, base_twist: Array, dq: Array) -> Array:
        """Return the momentum [P; L] about the base origin, shape (N, 6), for its twists (N, 6) and joint rates (N, n).

        Twists [v; w] are along the axes of the base [m/s, rad/s].
        """
        return np.asarray((self.base @ base_twist[..., None])[..., 0] + (self.joints @ dq[..., None])[..., 0])

    def base_twist(self, dq: Array) -> Array:
        """Return the twist of the base for joint rates (N, n) at zero momentum, shape (N, 6)."""
        twist: Array = np.linalg.solve(self.base, -(self.joints @ dq[..., None]))[..., 0].astype(np.float64, copy=False)
        return twist

    def link_twists(self, base_twist: Array, dq: Array) -> Array:
        """Return the twists of all links at the base origin, V_0 + sum_(i<=j) s_i dq_i, shape (N, n, 6)."""
        rates = (dq @ self.model.coupling.T)[..., None]
        return np.asarray(base_twist[:, None] + np.cumsum(self.screws * rates, axis=1))

    def outer_momenta(self, link_twists: Array) -> Array:
        """Return the momentum of bodies j .. n for j = 1 .. n, shape (N, n, 6)."""
        single = self.composite[:, 1:].copy()
        single[:, :-1] -= self.composite[:, 2:]
        each = np.einsum('njab,njb->nja', single, link_twists)
        return np.asarray(np.cumsum(each[:, ::-1], axis=1)[:, ::-1])

    def position_derivative(self, base_twist: Array, dq: Array) -> Array:
        """Return the derivative of the momentum with respect to the joint positions, shape (N, 6, n).

        dh/dq_j = -ad(s_j)^T K_j - C_j ad(s_j) V_j, with the twist V_j of link j and the momentum
        K_j of bodies j .. n; base twist and joint rates are held.
        """
        twists = self.link_twists(base_twist, dq)
        shifted = np.einsum('njab,njb->nja', self.composite[:, 1:], bracket(self.screws, twists))
        # -ad(s)^T [P; L] is ad(s) [L; P] with its halves exchanged
        turned = np.roll(bracket(self.screws, np.roll(self.outer_momenta(twists), 3, axis=-1)), 3, axis=-1)
        rows = turned - shifted
        return np.asarray(np.swapaxes(rows, 1, 2) @ self.model.coupling)

    def pull_back(self, base_twist: Array, dq: Array, wrench: Array) -> tuple[Array, Array]:
        """Return the derivatives of a function of the last link's motion, without momentum.

        For a function f of z = X V_n, with X fixed in the last link and df/dz = zbar, let
        y = X^T zbar and mu = -M^-1 y. Then, exactly,

            df/ddq_j = (y + C_j mu)^T s_j
            df/dq_j  = (y + C_j mu)^T ad(V_j) s_j + K_j^T ad(mu) s_j

        where V_0 is the base twist at zero momentum. The wrench y is that of one function or of several, shape
        (..., N, 6); the derivatives with respect to q and dq have the shape (..., N, n).
        """
        mu: Array = -np.linalg.solve(self.base, wrench[..., None]).astype(np.float64, copy=False)
        force = wrench[..., None, :] + (self.composite[:, 1:] @ mu[..., None, :, :])[..., 0]
        twists = self.link_twists(base_twist, dq)
        turned = bracket(twists, self.screws)
        pushed = bracket(mu[..., None, :, 0], self.screws)
        gradient_q = np.sum(force * turned + self.outer_momenta(twists) * pushed, axis=-1)
        gradient_dq = np.sum(force * self.screws, axis=-1)
        return gradient_q @ self.model.coupling, gradient_dq @ self.model.coupling


def momentum_in_base(momentum: Array, position: Array, rotation: Array) -> Array:
    """Return a constant momentum [P; L] about the base origin, along the base's axes at each sample, shape (N, 6).

    ``momentum``, shape (6,), is that of the whole system about the inertial origin, in the inertial frame, as are the
    base's positions (N, 3) and rotations (N, 3, 3).
    """
    linear = momentum[:3]
    angular = momentum[3:] - cross(position, linear)
    turned: Array = np.concatenate(
        [np.einsum('nba,b->na', rotation, linear), np.einsum('nba,nb->na', rotation, angular)], axis=1
    )
    return turned


def momentum_map(model: RobotModel, q: Array) -> MomentumMap:
    """Return the momentum map of a floating arm at joint positions (N, n) [rad or m].

    Its ``base_inertial`` is the floating base, its last link is merged with the target.
    """
    poses = link_transforms(model, q)
    axes = np.einsum('njab,jb->nja', poses[..., :3, :3], model.axes)
    revolute = model.revolute[:, None]
    screws = np.concatenate(
        [np.where(revolute, cross(poses[..., :3, 3], axes), axes), np.where(revolute, axes, 0.0)], axis=-1
    )
    composite = np.empty((len(poses), model.n + 1, 4, 4))
    placed = poses @ pseudo_inertia(model.inertial) @ np.swapaxes(poses, -1, -2)  # pseudo-inertias in the base frame
    composite[:, 1:] = np.cumsum(placed[:, ::-1], axis=1)[:, ::-1]
    composite[:, 0] = composite[:, 1] + pseudo_inertia(model.base_inertial)
    return MomentumMap(model=model, poses=poses, screws=screws, composite=spatial_inertia(composite))
