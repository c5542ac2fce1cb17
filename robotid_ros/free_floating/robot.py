# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A robot arm on a floating base that holds a target."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import ModelError
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.momentum import MomentumMap, momentum_map
from robotid_ros.free_floating.spatial import cross_matrix
from robotid_ros.model.inertia import physical_violation
from robotid_ros.model.robot_model import RobotModel

__all__ = ['FreeFloatingRobot']


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeFloatingRobot:
    """A serial arm on a free-floating base; its last link, merged with the target, is body n.

    Attributes
    ----------
    arm : RobotModel
        Known: the base (``arm.base_inertial``, in the base frame) and all links. Gravity plays no
        part, and neither do rotor inertias: momentum is that of the bodies.
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
            raise ModelError(
                f"the base '{self.arm.base_name}' has no mass; a floating base needs one: give its link an "
                '<inertial> in the URDF, or pass base='
            )
        reason = physical_violation(base)
        if reason is not None:
            raise ModelError(f"the base '{self.arm.base_name}' is not a physical body: {reason}")

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
        """Refuse to go on with a body n that cannot be: an estimate or a difference may be any.

        Raises
        ------
        ModelError
            Saying what is wrong with it.
        """
        if self.body.mass <= 0.0:
            raise ModelError(
                f'the last link with its target needs a positive mass, got {self.body.mass:g} kg; give the target'
            )
        reason = self.body.violation
        if reason is not None:
            raise ModelError(f'the last link with its target is no physical body: {reason}')

    @property
    def target(self) -> RigidBody:
        """What body n has more than the bare last link, unchecked."""
        return RigidBody.from_parameters(self.body.parameters - self.arm.inertial[-1])

    def with_body(self, body: RigidBody) -> 'FreeFloatingRobot':
        """Return the robot with another body n (the last link merged with the target)."""
        return FreeFloatingRobot(arm=self.arm, body=body)

    def with_target(self, target: RigidBody) -> 'FreeFloatingRobot':
        """Return the robot with another target, given alone in the frame of the last link."""
        return self.with_body(RigidBody.from_parameters(self.arm.inertial[-1] + target.parameters))

    def momentum_map(self, q: Array) -> MomentumMap:
        """Return what relates base twist and joint rates to momentum, at q of shape (N, n)."""
        return momentum_map(self.model, frozen_array(q, 'q', (None, self.n), ModelError))

    def momentum(self, q: Array, base_twist: Array, dq: Array) -> Array:
        """Return the momentum [P; L] about the origin of the base frame, along its axes.

        Parameters
        ----------
        q, dq : ndarray, shape (N, n)
            [rad, rad/s, or m, m/s]
        base_twist : ndarray, shape (N, 6)
            [v; w] of the base frame's origin, along the base frame's axes [m/s, rad/s].

        Returns
        -------
        ndarray, shape (N, 6)
            [kg m/s, kg m^2/s]
        """
        return self.momentum_map(q).momentum(np.asarray(base_twist, float), np.asarray(dq, float))

    def base_twist(self, q: Array, dq: Array) -> Array:
        """Return the twist [v; w] of the base that keeps the momentum zero, shape (N, 6)."""
        return self.momentum_map(q).base_twist(np.asarray(dq, float))

    def generalized_jacobian(self, q: Array, point: Sequence[float] = (0.0, 0.0, 0.0)) -> Array:
        """Return the generalised Jacobian: joint rates to the twist of the last link, without momentum.

        J* = J_m - J_b M^-1 H: the base's reaction is in it (Umetani and Yoshida, IEEE Trans. Robotics
        and Automation 5(3), 1989, eq. 21).

        Parameters
        ----------
        q : ndarray, shape (N, n)
        point : sequence of float, shape (3,)
            The point whose velocity is wanted, in the last link's frame [m].

        Returns
        -------
        ndarray, shape (N, 6, n)
            Linear rows first; inertial velocities, along the base frame's axes.
        """
        maps = self.momentum_map(q)
        screws = np.swapaxes(maps.screws, 1, 2) @ self.arm.coupling
        twists = screws - np.linalg.solve(maps.base, maps.joints)
        where = maps.poses[:, -1, :3, :3] @ np.asarray(point, float) + maps.poses[:, -1, :3, 3]
        twists[:, :3] -= cross_matrix(where) @ twists[:, 3:]
        return twists
