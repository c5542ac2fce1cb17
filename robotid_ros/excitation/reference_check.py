# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Check of a reference against all limits: joints, torques, workspace and clearances."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.constraints import Constraint
from robotid_ros.excitation.motion import Motion
from robotid_ros.excitation.observation import Observation
from robotid_ros.excitation.reference import Reference
from robotid_ros.excitation.verification import Peak, require_within
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel

_ROUND_OFF = 1e-6
_CHECK_RATE = 250.0  # [Hz]: 12 mrad apart at 3 rad/s


@dataclass(frozen=True, kw_only=True)
class ReferenceCheck:
    """The limits that every reference has to keep.

    Attributes
    ----------
    model : RobotModel
    limits : JointLimits
    constraints : tuple of Constraint
        Everything to keep, joint limits included.
    observation : Observation or None
        Needed by torque limits.
    """

    model: RobotModel
    limits: JointLimits
    constraints: tuple[Constraint, ...]
    observation: Observation | None

    def peaks(self, reference: Reference, *, rate: float = _CHECK_RATE, start: float = 0.0) -> list[Peak]:
        """Return how close a reference comes to every bound, at a rate [Hz]; ``start`` is added to the times [s]."""
        result: list[Peak] = []
        worst: dict[int, tuple[float, float]] = {}
        bounds = [bound for constraint in self.constraints for bound in constraint.bounds]
        for times, excess in self._sampled(reference, rate):
            for column in range(excess.shape[1]):
                row = int(np.argmax(excess[:, column]))
                if column not in worst or excess[row, column] > worst[column][0]:
                    worst[column] = float(excess[row, column]), float(times[row])
        for column, (value, time) in worst.items():
            result.append(Peak(bound=bounds[column], excess=value, time=time + start))
        return result

    def _sampled(self, reference: Reference, rate: float) -> Iterator[tuple[Array, Array]]:
        """Return times, shape (N,), and the normalised excess over every bound at them, shape (N, B), in pieces."""
        times = np.linspace(0.0, reference.duration, max(2, int(np.ceil(reference.duration * rate)) + 1))
        position, velocity, acceleration = reference.evaluate(times)
        jerk = np.gradient(acceleration, times, axis=0)
        regressor_of = None if self.observation is None else self.observation.regressor
        for k in range(0, len(times), 4000):
            part = slice(k, k + 4000)
            motion = Motion(
                self.model,
                times[part],
                (position[part], velocity[part], acceleration[part], jerk[part]),
                regressor_of,
            )
            yield times[part], np.hstack([constraint.evaluate(motion)[0] for constraint in self.constraints])

    def excess(self, reference: Reference, *, rate: float = _CHECK_RATE) -> float:
        """Return the largest normalised excess of a reference over all bounds."""
        return max((peak.excess for peak in self.peaks(reference, rate=rate)), default=-np.inf)

    def added_by(self, motions: Sequence[tuple[Array, Array, Array]]) -> Array:
        """Return what motions add to the normalised excesses at their beginnings, shape (M, B), none below 0.

        Each motion has its position, velocity and acceleration, shape (N, n) each, equal for all. A bound that is kept
        at the beginning counts with its excess.
        """
        position, velocity, acceleration = (np.concatenate([motion[k] for motion in motions]) for k in range(3))
        rows, count = len(motions[0][0]), len(motions)
        regressor_of = None if self.observation is None else self.observation.regressor
        derivatives = position, velocity, acceleration, np.zeros_like(position)
        motion = Motion(self.model, np.zeros(rows * count), derivatives, regressor_of)
        excess = np.hstack([constraint.evaluate(motion)[0] for constraint in self.constraints])
        excess = excess.reshape(count, rows, -1)
        added: Array = np.maximum((excess - np.maximum(excess[:, :1], 0.0)).max(axis=1), 0.0)
        return np.where(added > _ROUND_OFF, added, 0.0)

    def spell(self, excess: Array) -> str:
        """Return what is broken by excesses, shape (B,), the most first, and of how many more bounds."""
        bounds = [bound for constraint in self.constraints for bound in constraint.bounds]
        broken = np.argsort(-excess)[: int((excess > 0.0).sum())]
        more = f' ({len(broken) - 1} more limits are broken)' if len(broken) > 1 else ''
        return f'{bounds[int(broken[0])].spell(float(excess[broken[0]]), None)}{more}' if len(broken) else ''

    def require(self, reference: Reference, what: str) -> list[Peak]:
        """Refuse a reference that breaks a limit, naming what breaks which limit of which joint, and when."""
        peaks = self.peaks(reference)
        try:
            require_within(peaks)
        except ExcitationError as cause:
            raise ExcitationError(f'{what}: {cause}') from cause
        return peaks
