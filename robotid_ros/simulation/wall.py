# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A wall that a joint runs into: a stiff spring from an angle on."""

from dataclasses import dataclass

from robotid_ros.arrays import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Wall:
    """What one joint cannot pass.

        tau = -(k (q - q_w) + d dq) beyond the wall, never pulling;  0 before it

    Attributes
    ----------
    joint : int
        Index of the joint.
    position : float
        q_w [rad or m]
    side : float
        +1: the wall is in the way of growing positions, -1: of falling ones.
    stiffness, damping : float
        k [N m/rad or N/m] and d [N m s/rad or N s/m]; 2e4 N m/rad is a table of 2e4 N/m at a reach of 1 m.
    """

    joint: int
    position: float
    side: float
    stiffness: float = 2e4
    damping: float = 200.0

    def torque(self, q: Array, dq: Array) -> float:
        """Return the torque on the joint at positions and velocities of shape (n,) [N m or N]."""
        depth = self.side * (float(q[self.joint]) - self.position)
        if depth <= 0.0:
            return 0.0
        return -self.side * max(0.0, self.stiffness * depth + self.damping * self.side * float(dq[self.joint]))
