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

from robotid_ros.errors import ModelError
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.model.inertia import physical_violation
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
        """Refuse a body n that is not physical, as an estimate or a difference may be.

        Raises
        ------
        ModelError
            With the reason.
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
        """Body n less the bare last link, unchecked."""
        return RigidBody.from_parameters(self.body.parameters - self.arm.inertial[-1])

    def with_body(self, body: RigidBody) -> 'FreeFloatingRobot':
        """Return the robot with another body n (the last link merged with the target)."""
        return FreeFloatingRobot(arm=self.arm, body=body)

    def with_target(self, target: RigidBody) -> 'FreeFloatingRobot':
        """Return the robot with another target, given alone in the frame of the last link."""
        return self.with_body(RigidBody.from_parameters(self.arm.inertial[-1] + target.parameters))
