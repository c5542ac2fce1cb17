# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The result of a design: a trajectory that keeps its limits, and its quality."""

from dataclasses import dataclass

from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.criteria import Excitation
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.excitation.verification import Peak
from robotid_ros.model.joint_limits import JointLimits

_ACTIVE = 0.01  # of a bound's scale: closer bounds count as active


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationDesign:
    """A trajectory that keeps its limits, and how well it excites the base parameters.

    Attributes
    ----------
    trajectory : FourierTrajectory
    joint_names : tuple of str
    excitation : Excitation
        All criteria.
    config : ExcitationConfig
    limits : JointLimits
        Limits of the check, scaling included.
    base_parameters : int
        Number of base parameters.
    peaks : tuple of Peak
        How close it comes to every bound.
    interrupted : bool
        The optimisation was stopped early; this is the best trajectory until then.
    evaluations : int
        Of the objective and its gradient, over all starts.
    """

    trajectory: FourierTrajectory
    joint_names: tuple[str, ...]
    excitation: Excitation
    config: ExcitationConfig
    limits: JointLimits
    base_parameters: int
    peaks: tuple[Peak, ...] = ()
    interrupted: bool = False
    evaluations: int = 0

    @property
    def active(self) -> tuple[Peak, ...]:
        """The active bounds: reached within one per cent of their range."""
        return tuple(peak for peak in self.peaks if peak.excess > -_ACTIVE)

    def summary(self) -> str:
        """Return the result in a few sentences: criteria, size of the problem, active limits."""
        found = self.excitation
        lines = [
            f'{self.base_parameters} base parameters, {self.trajectory.harmonics} harmonics',
            f'period {self.trajectory.period:g} s',
            f'condition number {found.condition:.4g} (SI), {found.condition_scaled:.4g} (columns scaled)',
            f'ln det of the information matrix {found.log_det:.4g}',
        ]
        if self.interrupted:
            lines.append('the optimisation was interrupted; this is the best trajectory until then')
        if self.active:
            lines.append('active limits: ' + '; '.join(peak.bound.label for peak in self.active))
        elif self.peaks:
            lines.append('no limit is active')
        settings = self.config
        if not (settings.workspace_frames or settings.geometry or settings.link_radius > 0.0):
            lines.append(
                'self-collision was not checked'
                + ('' if settings.ground else ', nor was the workspace')
                + ': give workspace_frames, ground, link_radius or geometry, or watch the arm closely'
            )
        return '\n'.join(lines)
