# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""A mission file: which robot, what is expected of its target, how it may move, what its sensors do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.errors import DataError, ExcitationError, ModelError
from robotid_ros.excitation.fourier import FourierTrajectory
from robotid_ros.free_floating.body import RigidBody
from robotid_ros.free_floating.measurement import SensorNoise
from robotid_ros.free_floating.robot import FreeFloatingRobot
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.packaged import arm_description, packaged_folder
from robotid_ros.reading import read_yaml, refusing
from robotid_ros.settings import Settings, setting, settings_of

EXAMPLE = 'iiwa14_space.yaml'
"""Name of the packaged example: KUKA iiwa geometry on a 300 kg satellite, with a 40 kg target."""

_KEYS = ('robot', 'tip', 'joints', 'base', 'prior', 'target', 'start', 'period', 'harmonics', 'limits', 'rate', 'noise')


@dataclass(frozen=True, slots=True, kw_only=True)
class Mission(Settings):
    """Everything the commands need to know.

    Attributes
    ----------
    name : str
    robot : FreeFloatingRobot
        With the prior of the target merged into its last link.
    target : RigidBody or None
        The true target alone, for simulations.
    start : ndarray, shape (n,)
        Where the trajectory starts and ends [rad].
    limits : JointLimits
        Those of the URDF, narrowed by the mission's.
    noise : SensorNoise
    """

    error = DataError

    name: str
    robot: FreeFloatingRobot
    target: RigidBody | None
    start: Array
    limits: JointLimits
    noise: SensorNoise
    period: float = setting(10.0, 'of the trajectory', unit='s', range=(1e-3, 1e6))
    harmonics: int = setting(5, 'of the trajectory', range=(1, 1000))
    rate: float = setting(24.0, 'of the samples of the measurement', unit='Hz', range=(1e-3, 1e6))

    @property
    def true_robot(self) -> FreeFloatingRobot:
        """The robot with the true target.

        Raises
        ------
        ModelError
            If the mission names no true target.
        """
        if self.target is None:
            message = f"{self.name}: a simulation needs 'target', the true one; the mission has 'prior' only"
            raise ModelError(message, name='target')
        return self.robot.with_target(self.target)

    def sample_times(self, trajectory: FourierTrajectory) -> Array:
        """Return the sample times of one period of a trajectory, the end included, shape (N,) [s].

        Raises
        ------
        ExcitationError
            If the rate gives fewer than the three samples that ten unknowns need.
        """
        count = round(trajectory.period * self.rate) + 1
        if count < 3:
            message = (
                f'rate: {self.rate:g} Hz gives {count} samples in a period of {trajectory.period:g} s; '
                'at least three are needed'
            )
            raise ExcitationError(message, name='rate', expected=3, found=count)
        return np.linspace(0.0, trajectory.period, count)


def read_mission(path: str | Path | None = None) -> Mission:
    """Read a mission from YAML.

    Parameters
    ----------
    path : str or Path, optional
        A file, or the name of the packaged example, which is the default.

    Raises
    ------
    ModelError
        If the file cannot be read, an entry is missing, unknown or out of range.
    """
    name = str(path or EXAMPLE)
    file = packaged_folder() / EXAMPLE if name == EXAMPLE and not Path(name).is_file() else Path(name).expanduser()
    content = read_yaml(file, 'mission file', ModelError)
    with refusing(f"mission file '{name}'", ModelError, file=str(file)):
        if not isinstance(content, Mapping):
            raise ModelError(f"mission file '{name}': expected {', '.join(_KEYS)}; got {type(content).__name__}")
        unknown = [str(key) for key in content if key not in _KEYS]
        if unknown:
            message = f"mission file '{name}': '{unknown[0]}' is not known; available: {', '.join(_KEYS)}"
            raise ModelError(message, name=unknown[0], expected=_KEYS)
        for key in ('robot', 'prior', 'start'):
            if key not in content:
                raise ModelError(f"mission file '{name}' lacks '{key}'", name=key)
        base = RigidBody.from_dict(content['base'], f'{name}: base') if 'base' in content else None
        beside = file.parent / str(content['robot'])
        robot = FreeFloatingRobot.from_urdf(
            arm_description(beside if beside.is_file() else str(content['robot'])),
            base=base,
            target=RigidBody.from_dict(content['prior'], f'{name}: prior'),
            tip=content.get('tip'),
            joints=content.get('joints'),
        )
        target = RigidBody.from_dict(content['target'], f'{name}: target') if 'target' in content else None
        start = frozen_array(content['start'], f'{name}: start', (robot.n,), ExcitationError)
        return Mission(
            name=name,
            robot=robot,
            target=target,
            start=start,
            limits=_limits(robot, content.get('limits', {}), start, name),
            noise=SensorNoise.from_dict(content.get('noise', {})),
            **{item.name: content[item.name] for item in settings_of(Mission) if item.name in content},
        )


def _limits(robot: FreeFloatingRobot, content: Any, start: Array, name: str) -> JointLimits:
    """Return the URDF's limits, narrowed by velocity, acceleration and excursion from the start."""
    known = ('velocity', 'acceleration', 'excursion')
    if not isinstance(content, Mapping) or not set(content) <= set(known):
        message = f'{name}: limits: expected some of {", ".join(known)}; got {content!r:.80}'
        raise ModelError(message, name='limits', expected=known)
    limits = robot.arm.limits

    def given(key: str) -> Array:
        value: float | Sequence[float] = content.get(key, np.inf)
        spread = np.broadcast_to(value, robot.n) if np.ndim(value) == 0 else value
        array = frozen_array(spread, f'{name}: limits: {key}', (robot.n,), ModelError, finite=False)
        if not (array > 0.0).all():
            message = f'{name}: limits: {key}: expected positive numbers, got {array.min():g}'
            raise ModelError(message, name=key, found=float(array.min()))
        return array

    return limits.overridden(
        velocity=np.minimum(limits.velocity, given('velocity')),
        acceleration=np.minimum(limits.acceleration, given('acceleration')),
        lower=np.maximum(limits.lower, start - given('excursion')),
        upper=np.minimum(limits.upper, start + given('excursion')),
    )
