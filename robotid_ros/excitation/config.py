# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Settings of an excitation design."""

from dataclasses import dataclass

from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.criteria import CriterionName
from robotid_ros.settings import Settings, setting


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcitationConfig(Settings):
    """Settings of an excitation design; each field's ``metadata`` has its description, unit and range.

    Raises
    ------
    ExcitationError
        If a value is out of its range, or lengths contradict each other.
    """

    error = ExcitationError

    period: float = setting(20.0, 'Period of the trajectory', unit='s', range=(0.1, 1000.0))
    harmonics: int = setting(5, 'Harmonics of the Fourier series', range=(2, 40))
    criterion: CriterionName = setting('condition', 'Criterion that the optimisation minimises')
    seed: int = setting(0, 'Seed of the random first guesses', range=(0, 2**31 - 1))
    starts: int = setting(8, 'Independent optimisations; the best one wins', range=(1, 1000))
    iterations: int = setting(200, 'Most iterations of the best start; the others get fewer', range=(5, 100000))
    jobs: int = setting(1, 'Processes that share the starts; -1 uses all cores', range=(-1, 1024))
    rotor_inertia: bool = setting(True, 'Identify rotor inertia too')
    viscous: bool = setting(True, 'Identify viscous friction too')
    coulomb: bool = setting(True, 'Identify Coulomb friction too')
    offset: bool = setting(True, 'Identify torque offsets too')
    noise: tuple[float, ...] = setting(
        (), 'Standard deviation of the torque of each joint; empty: all alike', unit='N m'
    )
    position_scaling: float = setting(1.0, 'Share of the position range to use, about its middle', range=(0.01, 1.0))
    position_margin: float = setting(
        0.03, 'Part of that range that a design leaves free, half of it at each end, for stops', range=(0.0, 0.5)
    )
    velocity_scaling: float = setting(1.0, 'Part of the velocity limits', range=(0.01, 1.0))
    velocity_margin: float = setting(
        0.03,
        'Part of the velocity limits that a design leaves free: at the limit itself, a controller that clamps its '
        'commands (enforce_command_limits) cannot make up for a late cycle',
        range=(0.0, 0.5),
    )
    acceleration_scaling: float = setting(1.0, 'Part of the acceleration limits', range=(0.01, 1.0))
    jerk_scaling: float = setting(1.0, 'Part of the jerk limits', range=(0.01, 1.0))
    torque_scaling: float = setting(1.0, 'Part of the torque limits, checked with the prior model', range=(0.01, 1.0))
    acceleration_limit: float = setting(
        0.0, 'Acceleration limit of the joints that have none; 0 leaves them without', unit='rad/s^2', range=(0.0, 1e4)
    )
    start_position: tuple[float, ...] = setting((), 'Where each period starts and ends; empty: anywhere', unit='rad')
    start_at_rest: bool = setting(
        False, 'Start and end each period with zero velocity and acceleration; false: only the run does, along its path'
    )
    workspace_frames: tuple[str, ...] = setting(
        (), "Links (or 'tip') whose frame origins stay inside the workspace box"
    )
    workspace_lower: tuple[float, ...] = setting(
        (), 'Lower corner x, y, z of the workspace box in the base frame', unit='m', length=(0, 3)
    )
    workspace_upper: tuple[float, ...] = setting(
        (), 'Upper corner x, y, z of the workspace box in the base frame', unit='m', length=(0, 3)
    )
    geometry: str = setting('', 'YAML file of capsules for link-to-link and link-to-ground clearance')
    link_radius: float = setting(
        0.0,
        'Radius of capsules laid between consecutive joints, where no geometry is given; 0: no check',
        unit='m',
        range=(0.0, 10.0),
    )
    clearance: float = setting(0.02, 'Least distance between capsules, and to the ground', unit='m', range=(0.0, 10))
    ground: bool = setting(False, 'Keep the capsules above the ground')
    ground_height: float = setting(0.0, 'Height of the ground in the base frame', unit='m', range=(-100.0, 100.0))

    def check(self) -> None:
        """Refuse contradicting values."""
        if self.jobs == 0:
            raise self.error('jobs: expected a positive number of processes or -1, got 0')
        for name in ('workspace_lower', 'workspace_upper'):
            corner = getattr(self, name)
            if bool(corner) != bool(self.workspace_frames) and corner:
                raise self.error(f'{name} is given, but workspace_frames names no frame that it holds for')
        if self.workspace_frames and not (self.workspace_lower or self.workspace_upper):
            raise self.error('workspace_frames is given, but neither workspace_lower nor workspace_upper')
