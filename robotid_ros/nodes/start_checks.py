# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Reasons to refuse a start or a design, other than the trajectory itself.

Each reason is one line and has a name. A reason whose name is in the parameter ``start_anyway`` does not refuse.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError, ExcitationError
from robotid_ros.excitation import ExcitationConfig
from robotid_ros.excitation.preparation import design_limits
from robotid_ros.execution.effort_watch import holds_no_gravity
from robotid_ros.identification.prior import is_placeholder
from robotid_ros.model import RobotConfig, RobotModel
from robotid_ros.nodes.messages import joint_state_values, newest, seconds
from robotid_ros.nodes.runtime import BackgroundWorker, wait_for
from robotid_ros.nodes.surroundings import REFERENCE, Surroundings
from robotid_ros.settings import Settings, setting

_RISKS = (
    'no_recorder',
    'no_effort',
    'no_gravity',
    'slow_joint_states',
    'unstamped',
    'unchecked_workspace',
    'no_acceleration_limit',
    'implausible_velocity',
    'poor_condition',
    'other_commanders',
    'silent_speed_scaling',
    'busy_computer',
)
_MESSAGES = 26
_LONGEST = 1.0
"""How long joint states are looked at once they come [s]; 26 of them are enough."""
_MEASURED = 0.95
"""Part of the rate asked for that has to be measured: 26 stamps at 50 Hz that are 10 ms off tell it to 2 %."""
_LOST = 0.7
"""Part of the messages that arrive where a few may be lost."""
_PATIENCE = 3.0
"""How long the first joint state, the recorder's status and the speed scaling may take to come [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartConfig(Settings):
    """What a start, and a design, are refused for."""

    error = ExcitationError

    start_anyway: tuple[str, ...] = setting(
        (), 'Reasons that do not refuse a start or a design; each refusal names its own', choices=_RISKS
    )
    # Below 50 Hz an arm moves by several degrees between two joint states, and accelerations are lost.
    least_joint_state_rate: float = setting(
        50.0, 'Lowest rate of joint states that an arm is started with', unit='Hz', range=(0.0, 1e5)
    )
    # Well excited trajectories have some tens; at a thousand a noise of 1 % is ten times the smallest parameter.
    largest_condition_number: float = setting(
        1000.0, 'Largest condition number of the scaled regressor that an arm is started with', range=(1.0, 1e12)
    )
    # The fastest wrists of industrial arms turn at about 15 rad/s; URDFs with 100 rad/s hold a placeholder.
    largest_velocity_limit: float = setting(
        20.0, 'Largest velocity limit that is believed', unit='rad/s or m/s', range=(0.01, 1000.0)
    )


class StartChecks:
    """Looks at the graph, the joint states and the settings before an arm is moved.

    A topic of the speed scaling has to be alive. The robot configuration says what the efforts of the joint states are.
    """

    def __init__(
        self, node: Node, worker: BackgroundWorker, surroundings: Surroundings, robot: RobotConfig | None = None
    ) -> None:
        self._node, self._worker, self._surroundings, self._robot = node, worker, surroundings, robot

    def require_design(self, model: RobotModel, config: ExcitationConfig, start: StartConfig) -> None:
        """Refuse, with a line per reason, limits and a workspace that a design could not keep the arm safe with."""
        _refuse(_design_reasons(model, config, start), start)

    async def require_start(
        self, model: RobotModel, config: ExcitationConfig, start: StartConfig, condition: float | None
    ) -> None:
        """Refuse, with a line per reason, a start that could not be recorded, or that others would disturb.

        ``condition`` is the condition number of the trajectory's scaled regressor; None for a friction sweep. An
        ExcitationError has the reasons.
        """
        reasons = _design_reasons(model, config, start)
        if condition is not None and condition > start.largest_condition_number:
            reasons['poor_condition'] = (
                f'the condition number is {condition:.3g} (columns scaled; largest_condition_number is '
                f'{start.largest_condition_number:g}): the parameters could not be told apart; give it a longer '
                'period, more harmonics or more room'
            )
        others = self._surroundings.commanders.accept()  # those that come later end the run, whenever they come
        if others:
            reasons['other_commanders'] = (
                f'{", ".join(others)} can command the arm too, on '
                f'{self._node.resolve_topic_name("joint_trajectory")} or by the action of its controller: end it'
            )
        self._surroundings.scaling_came.clear()
        messages: list[JointState] = []
        subscription = self._node.create_subscription(JointState, 'joint_states', messages.append, newest(100))
        try:
            await self._worker.run(self._look, start, messages)
        finally:
            self._node.destroy_subscription(subscription)
        reasons |= self._recording_reasons(model, start, messages)
        topic = self._surroundings.scaling_topic
        if topic and not self._surroundings.scaling_came.is_set():
            reasons['silent_speed_scaling'] = (
                f'nothing comes on the speed scaling topic {topic}: start its broadcaster, or correct '
                'speed_scaling_topic'
            )
        _refuse(reasons, start)

    # -- what comes in ------------------------------------------------------------------------------

    def _look(self, start: StartConfig, messages: list[JointState]) -> None:
        """Wait, off the executor's thread, until there is enough to judge."""
        begun = time.monotonic()
        wait_for(lambda: messages, _PATIENCE)
        wait_for(lambda: len(messages) >= _MESSAGES, _LONGEST)
        if self._surroundings.scaling_topic and 'silent_speed_scaling' not in start.start_anyway:
            self._surroundings.scaling_came.wait(max(0.0, begun + _PATIENCE - time.monotonic()))
        if 'no_recorder' not in start.start_anyway:
            wait_for(self._surroundings.has_recorder, begun + _PATIENCE - time.monotonic())

    def _recording_reasons(
        self, model: RobotModel, start: StartConfig, messages: Sequence[JointState]
    ) -> dict[str, str]:
        reasons: dict[str, str] = {}
        joints = model.joint_names
        if not self._surroundings.has_recorder():
            reasons['no_recorder'] = (
                f'nobody records: no recorder takes {self._node.resolve_topic_name(REFERENCE)}; start the recorder'
            )
        elif refusal := self._surroundings.recorder_values().get('refusal'):
            reasons['no_recorder'] = f'the recorder cannot record: {refusal}'
        positions, efforts, stamps = [], [], []
        for message in messages:
            try:
                position, _, effort = joint_state_values(message, joints)
            except DataError:
                continue  # those of a gripper alone, for example
            positions.append(position)
            stamps.append(seconds(message.header.stamp))
            efforts.append(np.full(len(joints), np.nan) if effort is None else effort)
        if not efforts:
            return reasons  # ArmDriver reports what is wrong with the joint states
        effort = np.array(efforts)
        missing = [name for name, column in zip(joints, effort.T, strict=True) if not np.isfinite(column).any()]
        if missing or not effort.any():
            what = f'no effort for {", ".join(missing)}' if missing else 'efforts that are all exactly zero'
            reasons['no_effort'] = (
                f'the joint states on {self._node.resolve_topic_name("joint_states")} have {what}: without a torque '
                'or a current nothing can be identified; see the effort state interface of the driver'
            )
        elif self._weightless(model, np.array(positions), effort):
            reasons['no_gravity'] = (
                'the efforts of the arm at rest hold nothing of its weight: the driver takes gravity out before it '
                'tells them, the brakes hold the arm, or it stands otherwise than described (gravity); an '
                'identification needs the whole torque, or the currents, of the motors'
            )
        if not all(stamps):
            reasons['unstamped'] = (
                'the joint states have no stamp: when they were measured is not known; correct the driver'
            )
        elif len(stamps) > 1 and stamps[-1] > stamps[0]:
            rate = (len(stamps) - 1) / (stamps[-1] - stamps[0])
            # Where messages are lost here, the least steps still show the rate that they are sent at.
            sent = 1.0 / max(float(np.quantile(np.diff(np.sort(stamps)), 0.1)), 1e-6)
            if rate < _MEASURED * start.least_joint_state_rate <= _MEASURED * sent and rate < _LOST * sent:
                reasons['busy_computer'] = (
                    f'joint states are sent at {sent:.3g} Hz, but only {rate:.3g} a second arrive here: this computer, '
                    'or the network, is too busy; end other programs'
                )
            elif rate < _MEASURED * start.least_joint_state_rate:
                reasons['slow_joint_states'] = (
                    f'joint states come at {rate:.3g} Hz, expected at least {start.least_joint_state_rate:g} Hz '
                    "(least_joint_state_rate): take the broadcaster's own topic, or raise its rate"
                )
        return reasons

    def _weightless(self, model: RobotModel, positions: Array, efforts: Array) -> bool:
        """Return whether efforts at rest, shape (N, n), hold no gravity; they need a unit, and masses to compare."""
        if self._robot is None or is_placeholder(model):
            return False
        torque = model.torque_of(np.mean(efforts, axis=0) * self._robot.torque_per_effort(model.joint_names))
        return holds_no_gravity(model, np.mean(positions, axis=0), torque)


def _design_reasons(model: RobotModel, config: ExcitationConfig, start: StartConfig) -> dict[str, str]:
    reasons: dict[str, str] = {}
    if not (config.ground or config.workspace_frames or config.geometry or config.link_radius > 0.0):
        reasons['unchecked_workspace'] = (
            'nothing keeps the arm off the ground, a wall or itself: set ground and link_radius, workspace_frames with '
            'their box, or geometry'
        )
    limits = design_limits(model, config)
    without = [name for name, most in zip(model.joint_names, limits.acceleration, strict=True) if not np.isfinite(most)]
    if without:
        reasons['no_acceleration_limit'] = (
            f'no acceleration limit for {", ".join(without)}: a URDF has none; give limits: acceleration in the robot '
            'configuration, or acceleration_limit'
        )
    for name, most in zip(model.joint_names, limits.velocity, strict=True):
        if not most <= start.largest_velocity_limit:
            reasons['implausible_velocity'] = (
                f"the velocity limit of joint '{name}' is {most:g} rad/s or m/s, more than largest_velocity_limit "
                f'({start.largest_velocity_limit:g}): give limits: velocity in the robot configuration'
            )
            break
    return reasons


def _refuse(reasons: dict[str, str], start: StartConfig) -> None:
    lines = [
        f'{text} (or allow it: start_anyway: [{name}])'
        for name, text in reasons.items()
        if name not in start.start_anyway
    ]
    if lines:
        raise ExcitationError('\n'.join(lines))
