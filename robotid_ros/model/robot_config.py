# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The robot configuration: what a URDF does not say about a real arm.

One YAML file per arm (``config/<robot>.yaml``) that is a ROS parameter file too:

    /**:
      ros__parameters:
        joints: [shoulder_pan_joint, ...]
        effort: {shoulder_pan_joint: current, ...}     # or one word for all
        torque_constants: {shoulder_pan_joint: 0.125, ...}   # motor side, N m/A
        gear_ratios: {shoulder_pan_joint: 101.0, ...}
        limits: {velocity: {shoulder_pan_joint: 2.0, ...}, ...}
        ...

Units are never guessed: without ``effort`` a recording's effort cannot become a torque.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import yaml

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.model.joint_limits import JointLimits

__all__ = ['EFFORT_MEANINGS', 'EffortMeaning', 'RobotConfig']

EffortMeaning: TypeAlias = Literal['torque', 'current']
EFFORT_MEANINGS: tuple[EffortMeaning, ...] = ('torque', 'current')

_LIMITS = ('lower', 'upper', 'velocity', 'acceleration', 'jerk', 'effort')
_KEYS = (
    'joints',
    'effort',
    'torque_constants',
    'gear_ratios',
    'limits',
    'urdf',
    'base',
    'tip',
    'gravity',
    'controller',
    'controller_interface',
    'follow_joint_trajectory_action',
    'joint_trajectory_topic',
    'joint_states_topic',
    'robot_description_topic',
    'speed_scaling_topic',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotConfig:
    """Joints of an arm, the meaning of its signals, its limits and the names of its topics.

    Attributes
    ----------
    joints : tuple of str
        Joints of the arm, base to tip.
    effort : mapping of str to {'torque', 'current'}
        What ``JointState.effort`` holds, per joint: joint torque [N m] or motor current [A].
    torque_constants : mapping of str to float
        Motor side [N m/A].
    gear_ratios : mapping of str to float
        Motor turns per joint turn; 1 where not given.
    limits : mapping of str to mapping of str to float
        Kind (lower, upper, velocity, acceleration, jerk, effort) to joint to value, in SI units;
        they override the URDF's.
    urdf, base, tip : str or None
        Description to use offline, and the ends of the chain in it.
    gravity : tuple of float
        [m/s^2], in the base frame.
    controller_interface : {'topic', 'action'} or None
        How trajectories reach the controller.
    controller, follow_joint_trajectory_action, joint_trajectory_topic, joint_states_topic : str or None
    robot_description_topic, speed_scaling_topic : str or None
        Names in the ROS graph.
    """

    joints: tuple[str, ...]
    effort: Mapping[str, EffortMeaning] = field(default_factory=dict)
    torque_constants: Mapping[str, float] = field(default_factory=dict)
    gear_ratios: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    urdf: str | None = None
    base: str | None = None
    tip: str | None = None
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    controller: str | None = None
    controller_interface: str | None = None
    follow_joint_trajectory_action: str | None = None
    joint_trajectory_topic: str | None = None
    joint_states_topic: str | None = None
    robot_description_topic: str | None = None
    speed_scaling_topic: str | None = None

    @classmethod
    def from_yaml(cls, path: str | Path) -> 'RobotConfig':
        """Read a robot configuration file.

        Raises
        ------
        ModelError
            If the file is absent, is not YAML, or holds an unknown key, joint, unit or word.
        """
        path = Path(path).expanduser()
        if not path.is_file():
            raise ModelError(f"robot configuration '{path}' does not exist")
        try:
            content = yaml.safe_load(path.read_text(encoding='utf-8'))
        except (yaml.YAMLError, UnicodeDecodeError, OSError) as cause:
            detail = str(cause).replace('\n', ' ')
            raise ModelError(f"robot configuration '{path}' cannot be read: {detail}") from cause
        for wrapper in ('/**', 'ros__parameters'):
            if isinstance(content, dict) and wrapper in content:
                content = content[wrapper]
        if not isinstance(content, dict):
            raise ModelError(f"robot configuration '{path}': expected a mapping with 'joints', got {content!r:.60}")
        try:
            return cls.from_dict(content)
        except ModelError as cause:
            raise ModelError(f"robot configuration '{path}': {cause}") from cause

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> 'RobotConfig':
        """Build a configuration from the mapping a file holds; see :meth:`from_yaml`."""
        unknown = [key for key in content if key not in _KEYS]
        if unknown:
            raise ModelError(f"unknown key '{unknown[0]}'; expected one of: {', '.join(_KEYS)}")
        joints = content.get('joints')
        if not isinstance(joints, list) or not joints or not all(isinstance(name, str) for name in joints):
            raise ModelError(f"'joints': expected a list of joint names, got {joints!r}")
        effort = content.get('effort', {})
        if isinstance(effort, str):
            effort = dict.fromkeys(joints, effort)
        _check_joint_keys('effort', effort, joints)
        for joint, meaning in effort.items():
            if meaning not in EFFORT_MEANINGS:
                raise ModelError(
                    f"effort of joint '{joint}': expected 'torque' (N m) or 'current' (A), got {meaning!r}"
                )
        limits = content.get('limits', {})
        if not isinstance(limits, dict) or any(kind not in _LIMITS for kind in limits):
            raise ModelError(f"'limits': expected a mapping of {', '.join(_LIMITS)}, got {limits!r:.80}")
        texts = {
            key: None if content.get(key) in (None, '') else str(content[key])
            for key in _KEYS
            if key in ('urdf', 'base', 'tip', 'controller') or key.endswith(('_topic', '_action', '_interface'))
        }
        if texts['controller_interface'] not in (None, 'topic', 'action'):
            raise ModelError(f"'controller_interface': expected topic or action, got {texts['controller_interface']!r}")
        gravity = content.get('gravity', (0.0, 0.0, -9.81))
        if not isinstance(gravity, list | tuple) or len(gravity) != 3 or not all(map(_is_number, gravity)):
            raise ModelError(f"'gravity': expected three numbers [m/s^2], got {gravity!r}")
        return cls(
            joints=tuple(joints),
            effort=dict(effort),
            torque_constants=_positive('torque_constants', content.get('torque_constants', {}), joints),
            gear_ratios=_positive('gear_ratios', content.get('gear_ratios', {}), joints),
            limits={kind: _joint_numbers(f'limits: {kind}', values, joints) for kind, values in limits.items()},
            gravity=(float(gravity[0]), float(gravity[1]), float(gravity[2])),
            **texts,
        )

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys a configuration file may hold."""
        return _KEYS

    def meaning(self, joints: Sequence[str]) -> tuple[EffortMeaning, ...]:
        """Return what the effort of each joint holds.

        Raises
        ------
        ModelError
            If a joint's is not stated: units are never guessed.
        """
        for joint in joints:
            if joint not in self.effort:
                raise ModelError(
                    f"the configuration does not say what JointState.effort of joint '{joint}' holds; "
                    "set 'effort' to 'torque' (N m at the joint) or 'current' (A of the motor): a guess would scale "
                    'every identified parameter'
                )
        return tuple(self.effort[joint] for joint in joints)

    def torque_per_ampere(self, joints: Sequence[str]) -> Array:
        """Return joint torque per motor current, torque constant times gear ratio [N m/A], shape (n,).

        Raises
        ------
        ModelError
            If the torque constant of a joint is not given.
        """
        for joint in joints:
            if joint not in self.torque_constants:
                raise ModelError(
                    f"joint '{joint}' reports a current but has no torque constant; "
                    "give it in 'torque_constants' [N m/A, motor side]"
                )
        return np.array([self.torque_constants[j] * self.gear_ratios.get(j, 1.0) for j in joints])

    def apply_limits(self, joints: Sequence[str], limits: JointLimits) -> JointLimits:
        """Return the URDF's limits with those of this configuration in their place."""
        values = {kind: np.array([given.get(j, np.nan) for j in joints]) for kind, given in self.limits.items()}
        return limits.overridden(**values)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(np.isfinite(value))


def _check_joint_keys(key: str, values: object, joints: Sequence[str]) -> None:
    if not isinstance(values, dict):
        raise ModelError(f"'{key}': expected a mapping of joint to value, got {values!r:.60}")
    for joint in values:
        if joint not in joints:
            raise ModelError(f"'{key}' names joint '{joint}', which is not in 'joints': {', '.join(joints)}")


def _joint_numbers(key: str, values: object, joints: Sequence[str]) -> dict[str, float]:
    """Return joint to number; one number stands for all joints."""
    if _is_number(values):
        values = dict.fromkeys(joints, values)
    _check_joint_keys(key, values, joints)
    assert isinstance(values, dict)
    for joint, value in values.items():
        if not _is_number(value):
            raise ModelError(f"'{key}' of joint '{joint}': expected a number, got {value!r}")
    return {joint: float(value) for joint, value in values.items()}


def _positive(key: str, values: object, joints: Sequence[str]) -> dict[str, float]:
    numbers = _joint_numbers(key, values, joints)
    for joint, value in numbers.items():
        if value <= 0.0:
            raise ModelError(f"'{key}' of joint '{joint}': expected a positive number, got {value:g}")
    return numbers
