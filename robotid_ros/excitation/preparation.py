# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Limits and parameters of a design, from its settings."""

from dataclasses import replace

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.errors import ExcitationError
from robotid_ros.excitation.config import ExcitationConfig
from robotid_ros.excitation.constraints import Constraint, FallingLimits, JointRanges, TorqueLimits, excess_at_rest
from robotid_ros.excitation.motion import observation_of
from robotid_ros.excitation.reference import ReferenceCheck
from robotid_ros.excitation.workspace import WORKSPACE_SCALE, random_positions, workspace_constraints
from robotid_ros.model.joint_limits import FALLING_QUANTITIES, JointLimits
from robotid_ros.model.robot_model import RobotModel

_OTHER_SEED = 7919  # added to the seed for the validation's trajectory; any other number would do
_POSES = 2000  # tried for a clear pose
_CLEAR = 0.05  # [m]


def design_limits(model: RobotModel, config: ExcitationConfig) -> JointLimits:
    """Return the joint limits a design keeps: the model's, scaled, with accelerations filled in.

    Position ranges shrink about their middle; one that is open on one side keeps its finite side.
    """
    limits = model.limits
    acceleration = limits.acceleration
    if config.acceleration_limit > 0.0:
        acceleration = np.where(np.isfinite(acceleration), acceleration, config.acceleration_limit)
    closed = np.isfinite(limits.upper - limits.lower)
    low, high = np.where(closed, limits.lower, 0.0), np.where(closed, limits.upper, 0.0)
    middle, half = (low + high) / 2.0, (high - low) / 2.0
    return replace(
        limits,
        lower=np.where(closed, middle - config.position_scaling * half, limits.lower),
        upper=np.where(closed, middle + config.position_scaling * half, limits.upper),
        velocity=limits.velocity * config.velocity_scaling,
        acceleration=acceleration * config.acceleration_scaling,
        jerk=limits.jerk * config.jerk_scaling,
        effort=limits.effort * config.torque_scaling,
    )


def margin_limits(limits: JointLimits, config: ExcitationConfig, start: Array) -> JointLimits:
    """Return the limits that a motion is made for: inside those of its run by ``position_margin``, for stops.

    They contain the start, shape (n,) [rad or m], where one is given; shape (0,) otherwise.
    """
    reach = limits.upper - limits.lower
    room = np.where(np.isfinite(reach), 0.5 * config.position_margin * reach, 0.0)
    lower, upper = limits.lower + room, limits.upper - room
    if len(start):
        lower, upper = np.minimum(lower, start), np.maximum(upper, start)
    return replace(limits, lower=lower, upper=upper)


def other_constraints(model: RobotModel, config: ExcitationConfig, limits: JointLimits) -> list[Constraint]:
    """Return the torque, workspace and clearance limits that there are, and those that fall with position."""
    torque = [TorqueLimits(model, limits.effort)] if np.isfinite(limits.effort).any() else []
    falling = [
        FallingLimits(model, limits, quantity)
        for quantity in FALLING_QUANTITIES
        if limits.falling(quantity) is not None
    ]
    return [*torque, *falling, *workspace_constraints(model, config)]


def reference_check(model: RobotModel, config: ExcitationConfig) -> ReferenceCheck:
    """Return the limits that everything sent to an arm has to keep under the given settings."""
    limits = design_limits(model, config)
    constraints = (JointRanges(model, limits), *other_constraints(model, config, limits))
    observation = observation_of(model, config).exact
    return ReferenceCheck(model=model, limits=limits, constraints=constraints, observation=observation)


def arm_check(model: RobotModel, config: ExcitationConfig) -> ReferenceCheck:
    """Return what stops keep where none keeps the settings' limits: all that the arm has, at half the clearance.

    A motion may run along its clearance, and a stop leaves the motion's path: it needs some of it.
    """
    full = replace(
        config,
        velocity_scaling=1.0,
        acceleration_scaling=1.0,
        jerk_scaling=1.0,
        torque_scaling=1.0,
        clearance=0.5 * config.clearance,
    )
    return reference_check(model, full)


def clear_poses(model: RobotModel, config: ExcitationConfig, count: int) -> Array:
    """Return poses within the limits that are off the ground, the walls and the arm itself, of ``count`` drawn.

    The result has the shape (P, n): the same ones each time [rad or m].
    """
    drawn = random_positions(model, count, design_limits(model, config))
    return np.asarray(drawn[excess_at_rest(workspace_constraints(model, config), model, drawn) <= 0.0])


def clear_pose(model: RobotModel, config: ExcitationConfig) -> Array:
    """Return a pose to start a simulated arm in, shape (n,): inside its limits, off the ground and off itself.

    It is the middle of the joints' ranges, or the nearest of many others with a clearance of 5 cm, or else the one with
    the largest clearance. Raises an ExcitationError if none of them keeps the limits of the workspace.
    """
    limits = design_limits(model, config)
    drawn = random_positions(model, _POSES, limits)
    closed = np.isfinite(limits.upper - limits.lower)
    middle = np.clip(0.0, limits.lower, limits.upper)
    middle[closed] = 0.5 * (limits.lower[closed] + limits.upper[closed])
    distance = np.linalg.norm((drawn - middle) / np.ptp(drawn, axis=0), axis=1)
    poses = np.vstack([middle, drawn[np.argsort(distance)]])
    worst = excess_at_rest(workspace_constraints(model, config), model, poses)
    clear = np.flatnonzero(worst <= -_CLEAR / WORKSPACE_SCALE)
    chosen = int(clear[0] if len(clear) else np.argmin(worst))
    if worst[chosen] > 0.0:
        raise ExcitationError(
            'no pose of the arm is off the ground, the walls and itself: check link_radius and ground'
        )
    return np.asarray(poses[chosen])


def validation_config(config: ExcitationConfig) -> ExcitationConfig:
    """Return the settings of another trajectory for the same arm, to validate with."""
    return replace(config, seed=(config.seed + _OTHER_SEED) % 2**31)
