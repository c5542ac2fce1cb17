# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The robot configuration: data of a real arm that a URDF does not have.

One YAML file per arm (``config/<robot>.yaml``) that is a ROS parameter file too:

    /**:
      ros__parameters:
        joints: [shoulder_pan_joint, ...]
        effort: {shoulder_pan_joint: current, ...}     # or one word for all
        torque_constants: {shoulder_pan_joint: 0.125, ...}   # motor side, N m/A; or a UR's own file, see ur_calibration
        gear_ratios: {shoulder_pan_joint: 101.0, ...}
        limits: {velocity: {shoulder_pan_joint: 2.0, ...}, ...}
        ...

Units are never guessed: without ``effort`` a recording's effort cannot become a torque.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ModelError
from robotid_ros.model.joint_limits import JointLimits
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.ur_calibration import read_torque_constants
from robotid_ros.reading import read_yaml, refusing
from robotid_ros.settings import Settings, setting, settings_of

EffortMeaning: TypeAlias = Literal['torque', 'current', 'unknown']

_LIMITS = tuple(item.name for item in fields(JointLimits))
DESIGN_KEYS = (
    'acceleration_limit',
    'clearance',
    'geometry',
    'ground',
    'ground_height',
    'link_radius',
    'workspace_frames',
    'workspace_lower',
    'workspace_upper',
)
"""Settings of an excitation design that belong to an arm and its workplace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotConfig(Settings):
    """Joints of an arm, the meaning of its signals, its limits and the names of its topics.

    Attributes
    ----------
    limits : mapping of str to mapping of str to float
        Kind (lower, upper, velocity, acceleration, jerk, effort) to joint to value, in SI units;
        they override the URDF's.
    drives : mapping of str to mapping of str to float
        Coupled drives: for a joint, the other joints that turn its motor too, and by how much, scaled to the joints:
        ``{joint_6: {joint_5: 1.0}}`` where the last motor is mounted before joint 5.
    design : mapping of str to object
        Settings of an excitation design, of the names in ``DESIGN_KEYS``, that hold for this arm.

    Raises
    ------
    ModelError
        If a value cannot be used, or a joint is not among ``joints``.
    """

    error = ModelError

    joints: tuple[str, ...] = setting((), 'joints of the arm, base to tip')
    effort: Mapping[str, EffortMeaning] = setting(
        {}, 'what JointState.effort holds, per joint: joint torque [N m], motor current [A], or unknown'
    )
    torque_constants: Mapping[str, float] = setting(
        {}, 'motor side; negative where current and torque have opposite signs', unit='N m/A', range=(-1e6, 1e6)
    )
    gear_ratios: Mapping[str, float] = setting({}, 'motor turns per joint turn; 1 where not given', range=(1e-6, 1e6))
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    drives: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    effort_at: Literal['joints', 'motors'] = setting(
        'joints', 'where drives are coupled, whose torques or currents the efforts are'
    )
    design: Mapping[str, Any] = field(default_factory=dict)
    urdf: str | None = setting(None, 'description to use offline')
    base: str | None = setting(None, 'link at the start of the chain')
    tip: str | None = setting(None, 'link at the end of the chain')
    gravity: tuple[float, float, float] = setting(
        (0.0, 0.0, -9.81), 'in the base frame', unit='m/s^2', range=(-1000.0, 1000.0), length=(3,)
    )
    controller: str | None = setting(None, 'name of the trajectory controller')
    controller_interface: Literal['topic', 'action'] | None = setting(None, 'how trajectories reach the controller')
    follow_joint_trajectory_action: str | None = setting(None, "the controller's action")
    joint_trajectory_topic: str | None = setting(None, "the controller's topic")
    joint_states_topic: str | None = setting(None, 'topic of the joint states')
    robot_description_topic: str | None = setting(None, 'topic of the URDF')
    speed_scaling_topic: str | None = setting(None, 'topic of the speed scaling, 100 is full speed')
    program_running_topic: str | None = setting(
        None, 'topic that says whether the robot takes commands (std_msgs/Bool)'
    )

    def check(self) -> None:
        """Refuse joints that are not those of the arm."""
        if not self.joints:
            raise self.error('joints: expected the names of the joints, base to tip; got none', name='joints', found=())
        for key in ('effort', 'torque_constants', 'gear_ratios'):
            self._check_joints(key, getattr(self, key))
        for joint, constant in self.torque_constants.items():
            if constant == 0.0:
                message = f"torque_constants: '{joint}': expected a number other than 0"
                raise self.error(message, name=joint, found=constant)
        for kind, values in self.limits.items():
            self._check_joints(f'limits: {kind}', values)
        self._check_joints('drives', self.drives)
        for motor, others in self.drives.items():
            self._check_joints(f'drives: {motor}', others)
            if motor in others:
                message = f"drives: '{motor}': a motor turns with its own joint by 1; name other joints only"
                raise self.error(message, name=motor)

    def _check_joints(self, key: str, values: Mapping[str, Any]) -> None:
        for joint in values:
            if joint not in self.joints:
                message = f"{key}: joint '{joint}' is not in 'joints': {', '.join(self.joints)}"
                raise self.error(message, name=joint, expected=self.joints)

    @classmethod
    def from_yaml(cls, path: str | Path) -> 'RobotConfig':
        """Read a robot configuration file.

        Raises
        ------
        ModelError
            If the file is absent, is not YAML, or holds an unknown key, joint, unit or word.
        """
        content = read_yaml(path, 'robot configuration', ModelError)
        for wrapper in ('/**', 'ros__parameters'):
            if isinstance(content, dict) and wrapper in content:
                content = content[wrapper]
        if not isinstance(content, dict):
            message = f"robot configuration '{path}': expected a mapping with 'joints', got {content!r:.60}"
            raise ModelError(message, file=str(path), found=content)
        with refusing(f"robot configuration '{path}'", ModelError, file=str(path)):
            try:
                return cls.from_dict(content)
            except ModelError as cause:
                raise cause.within(f"robot configuration '{path}'") from cause

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> 'RobotConfig':
        """Build a configuration from the mapping a file holds; see :meth:`from_yaml`.

        A single word is the effort of all joints, a single number the limit, constant or ratio of all. A word in place
        of the torque constants names the file of a UR that holds them (:mod:`robotid_ros.model.ur_calibration`).
        """
        known = cls.keys()
        unknown = [key for key in content if key not in known]
        if unknown:
            message = f"unknown key '{unknown[0]}'; expected one of: {', '.join(known)}"
            raise cls.error(message, name=unknown[0], expected=known)
        values: dict[str, Any] = {
            key: None if value == '' else value for key, value in content.items() if key not in DESIGN_KEYS
        }
        joints = values.get('joints')
        names = joints if isinstance(joints, list | tuple) else ()

        def of_all(value: Any) -> Any:
            return dict.fromkeys(names, value) if isinstance(value, str | int | float) else value

        path = values.get('torque_constants')
        if isinstance(path, str):
            constants = read_torque_constants(path).tolist()
            if len(constants) != len(names):
                raise cls.error(
                    f"torque_constants: '{path}' has {len(constants)} joints; 'joints' are {len(names)}: "
                    f'{", ".join(map(str, names))}'
                )
            values['torque_constants'] = dict(zip(names, constants, strict=True))
        for key in ('effort', 'torque_constants', 'gear_ratios'):
            if key in values:
                values[key] = of_all(values[key])
        limits = values.pop('limits', {})
        if not isinstance(limits, Mapping) or any(kind not in _LIMITS for kind in limits):
            message = f'limits: expected a mapping of {", ".join(_LIMITS)}, got {limits!r:.80}'
            raise cls.error(message, name='limits', expected=_LIMITS, found=limits)
        drives = values.pop('drives', {})
        if not isinstance(drives, Mapping) or not all(isinstance(others, Mapping) for others in drives.values()):
            raise cls.error(f'drives: expected joints to other joints to numbers, got {drives!r:.80}')
        number = next(item for item in settings_of(cls) if item.name == 'torque_constants')  # a number per joint
        for key, given in (('limits', limits), ('drives', drives)):
            try:
                values[key] = {name: number.converted(of_all(each)) for name, each in given.items()}
            except ValueError as cause:
                raise cls.error(f'{key}: {cause}', name=key) from None
        return cls(**values, design={key: content[key] for key in DESIGN_KEYS if key in content})

    @classmethod
    def keys(cls) -> tuple[str, ...]:
        """Return the keys a configuration file may hold."""
        return (*(item.name for item in settings_of(cls)), 'limits', 'drives', *DESIGN_KEYS)

    def content(self) -> dict[str, Any]:
        """Return plain values that :meth:`from_dict` takes, without those that are empty."""
        settings = {name: value for name, value in self.to_dict().items() if value not in (None, {}, [])}
        others = {name: {key: dict(each) for key, each in getattr(self, name).items()} for name in ('limits', 'drives')}
        return {**settings, **{name: value for name, value in others.items() if value}, **self.design}

    def meaning(self, joints: Sequence[str]) -> tuple[EffortMeaning, ...]:
        """Return what the effort of each joint holds.

        Raises
        ------
        ModelError
            If a joint's is not stated: units are never guessed.
        """
        for joint in joints:
            if joint not in self.effort:
                message = (
                    f"the configuration does not say what JointState.effort of joint '{joint}' holds; "
                    "set 'effort' to 'torque' (N m at the joint) or 'current' (A of the motor): a guess would scale "
                    'every identified parameter'
                )
                raise ModelError(message, name=joint)
        return tuple(self.effort[joint] for joint in joints)

    def torque_per_effort(self, joints: Sequence[str]) -> Array:
        """Return the torque per unit of the effort, shape (n,): 1, or [N m/A]; NaN where it is not stated."""
        constants = {
            'torque': dict.fromkeys(joints, 1.0),
            'current': {j: k * self.gear_ratios.get(j, 1.0) for j, k in self.torque_constants.items()},
        }
        return np.array([constants.get(self.effort.get(j, ''), {}).get(j, np.nan) for j in joints])

    def stated_torque_per_effort(self, joints: Sequence[str]) -> Array:
        """Return :meth:`torque_per_effort`, all of it stated.

        Raises
        ------
        ModelError
            If the meaning of a joint's effort, or the torque constant of one that is a current, is not given.
        """
        self.meaning(joints)
        factors = self.torque_per_effort(joints)
        for joint in np.array(joints)[np.isnan(factors)].tolist():
            message = (
                f"joint '{joint}' reports a current but has no torque constant: give it in 'torque_constants' "
                "[N m/A, motor side] from the motor's data sheet, or find it with a known payload (robotid payload)"
            )
            raise ModelError(message, name=joint)
        return factors

    def drive_coupling(self, joints: Sequence[str]) -> Array:
        """Return the positions of the motors over those of the joints, shape (n, n).

        Joints that are not among these do not move.
        """
        return np.array([[1.0 if j == k else self.drives.get(j, {}).get(k, 0.0) for k in joints] for j in joints])

    def apply_limits(self, joints: Sequence[str], limits: JointLimits) -> JointLimits:
        """Return the URDF's limits with those of this configuration in their place."""
        values = {kind: np.array([given.get(j, np.nan) for j in joints]) for kind, given in self.limits.items()}
        return limits.overridden(**values)

    def applied(self, model: RobotModel) -> RobotModel:
        """Return an arm with the limits, coupled drives and gear ratios of this configuration."""
        joints = model.joint_names
        ratios = zip(joints, model.gear_ratio, strict=True)
        return replace(
            model,
            limits=self.apply_limits(joints, model.limits),
            drives=self.drive_coupling(joints),
            effort_at=self.effort_at,
            gear_ratio=np.array([self.gear_ratios.get(name, ratio) for name, ratio in ratios]),
        )


def configured_arm(
    source: str | Path,
    config: RobotConfig | None,
    *,
    base: str = '',
    tip: str = '',
    joints: Sequence[str] = (),
    along: Collection[str] = (),
) -> RobotModel:
    """Return the arm of a URDF, a file or its text, as a configuration describes it.

    ``base``, ``tip`` and ``joints`` take the place of those in the configuration where they are not empty; see
    :meth:`RobotModel.from_urdf`, also for ``along``. Raises a ModelError if the description or the configuration cannot
    be used.
    """
    if config is None:
        return RobotModel.from_urdf(source, base=base or None, tip=tip or None, joints=joints or None, along=along)
    model = RobotModel.from_urdf(
        source,
        base=base or config.base,
        tip=tip or config.tip,
        joints=joints or config.joints,
        gravity=config.gravity,
        along=along,
    )
    return config.applied(model)
