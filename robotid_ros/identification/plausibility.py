# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.


"""Recordings held against the arm's description: degrees, joints that moved unseen, torques of another unit or sign."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.data.dataset import Dataset, concatenate
from robotid_ros.dynamics import inverse_dynamics
from robotid_ros.errors import IdentificationError
from robotid_ros.identification.samples import joint_columns
from robotid_ros.model.robot_model import RobotModel
from robotid_ros.model.urdf_tree import MOVING, parse_urdf
from robotid_ros.signals import check_motor_side, prior_factors

__all__ = ['held_joints', 'other_unit', 'remarks', 'require_held', 'require_radians']

_STILL = 0.05  # rad or m: what a joint that holds its position may sway
_FAST = 5.0  # times the speed limit
_TURNS = 4.0 * np.pi  # rad: few arms turn a joint twice, in degrees it is a small motion
_ENOUGH = 20_000  # samples that tell a factor
_OTHER_UNIT = 100.0  # times the description's torque: no masses are that far off


def require_radians(datasets: Sequence[Dataset], model: RobotModel) -> None:
    """Refuse motion that only makes sense in degrees.

    That is certain where a revolute joint turns more than twice, leaving its range by more than that range
    or exceeding its speed limit five times, and everything fits once it is divided by 57.3.

    Parameters
    ----------
    datasets : sequence of Dataset
    model : RobotModel
        Its limits; those that are infinite or empty say nothing.

    Raises
    ------
    IdentificationError
        With the joint that shows it.
    """
    limits = model.limits
    revolute = np.array([kind == 'revolute' for kind in model.joint_types])
    ranged = revolute & (limits.upper > limits.lower) & np.isfinite(limits.upper - limits.lower)
    span = np.where(ranged, limits.upper - limits.lower, np.inf)
    paced = revolute & (limits.velocity > 0.0) & np.isfinite(limits.velocity)
    for dataset in datasets:
        columns = joint_columns(dataset, model)
        low, high = dataset.q[:, columns].min(axis=0), dataset.q[:, columns].max(axis=0)
        speed = np.abs(dataset.dq[:, columns]).max(axis=0)
        beyond = ranged & (np.maximum(limits.lower - low, high - limits.upper) > span)
        fast = paced & (speed > _FAST * limits.velocity)
        odd = (beyond | fast) & (high - low > _TURNS)
        scale = np.pi / 180.0
        within = ~ranged | ((scale * low > limits.lower - 0.1 * span) & (scale * high < limits.upper + 0.1 * span))
        within &= ~paced | (scale * speed < 1.5 * limits.velocity)
        if not (odd.any() and within[revolute].all()):
            continue
        j = int(np.flatnonzero(odd)[0])
        allowed = f'from {limits.lower[j]:.4g} to {limits.upper[j]:.4g} rad' if ranged[j] else 'any turn'
        raise IdentificationError(
            f'joint {model.joint_names[j]}: expected positions in rad, got {low[j]:.4g} to {high[j]:.4g} at up to '
            f'{speed[j]:.4g} per second, where the description allows {allowed} at {limits.velocity[j]:.4g} rad/s; '
            'divided by 57.3 every joint is within its limits: the positions are in degrees, convert them'
        )


def held_joints(model: RobotModel) -> tuple[str, ...]:
    """Return the joints of the description that the model holds at zero although they carry a part of the arm."""
    if model.source is None:
        return ()
    carried = {link.name for links in model.attached for link in links}
    return tuple(
        joint.name
        for joints in parse_urdf(model.source).children.values()
        for joint in joints
        if joint.kind in MOVING and joint.name not in model.joint_names and joint.child in carried
    )


def require_held(joints: Sequence[str], position: Array, model: RobotModel) -> tuple[str, ...]:
    """Refuse motion of joints that the model holds at zero, and say which of them stand elsewhere.

    The inertia and the gravity of what such a joint moves act on all joints before it, which the model of a
    subset of the joints has no parameters for.

    Parameters
    ----------
    joints : sequence of str
        All that were recorded.
    position : ndarray, shape (N, len(joints))
        [rad or m]
    model : RobotModel

    Raises
    ------
    IdentificationError
        If one of them moves.
    """
    held = set(held_joints(model))
    notes = []
    for k, joint in enumerate(joints):
        known = position[:, k][np.isfinite(position[:, k])]
        if joint not in held or not len(known):
            continue
        sway, place = float(np.ptp(known)), float(np.median(known))
        if sway > _STILL:
            raise IdentificationError(
                f'joint {joint} moves by {sway:.3g} rad (or m) in the recording, and acts on the joints that are '
                f'identified ({", ".join(model.joint_names)}); identify it with them, or record while it stands still'
            )
        if abs(place) > _STILL:
            notes.append(
                f'joint {joint} stands at {place:.3g} rad (or m), the model has it at zero: the parameters hold for '
                'this posture of it only'
            )
    return tuple(notes)


def remarks(datasets: Sequence[Dataset], model: RobotModel) -> tuple[str, ...]:
    """Return a sentence for everything that looks wrong in training data, none of it certain.

    Parameters
    ----------
    datasets : sequence of Dataset
    model : RobotModel

    Raises
    ------
    IdentificationError
        If a joint that the model holds at zero moves.
    """
    found: dict[str, None] = {}
    for dataset in datasets:
        found |= dict.fromkeys(require_held(dataset.joint_names, dataset.q, model))
        found |= dict.fromkeys(_beyond_limits(dataset, model))
    found |= dict.fromkeys(check_motor_side(*_beside_prior(datasets, model), model.joint_names))
    return tuple(found)


def other_unit(datasets: Sequence[Dataset], model: RobotModel) -> str:
    """Return a sentence where all joints' torques are a hundred times the description's or more; else nothing.

    A torque in mN m fits as well as one in N m, and a controller that believes the result drives the arm
    with a thousand times the torque.
    """
    factors = prior_factors(*_beside_prior(datasets, model))
    known = factors[np.isfinite(factors)]
    if not len(known) or not (known > _OTHER_UNIT).all():
        return ''
    return (
        f'the measured torque is {np.median(known):.2g} times that of the description: expected N m, and links with '
        'their masses; is it in mN m?'
    )


def _beside_prior(datasets: Sequence[Dataset], model: RobotModel) -> tuple[Array, Array, Array, Array]:
    """Return measured torque, the description's torque, velocity and acceleration, shapes (N, n)."""
    data = concatenate(list(datasets))
    columns = joint_columns(data, model)
    some = slice(None, None, 1 + len(data) // _ENOUGH)
    q, dq, ddq, torque = (x[some, columns] for x in (data.q, data.dq, data.ddq, data.tau_filtered))
    return torque, inverse_dynamics(model, q, dq, ddq), dq, ddq


def _beyond_limits(dataset: Dataset, model: RobotModel) -> list[str]:
    """Say which joints went where they cannot: another unit, another arm, or zeros elsewhere."""
    notes = []
    for j, column in enumerate(joint_columns(dataset, model)):
        position = dataset.q[:, column]
        low, high = float(model.limits.lower[j]), float(model.limits.upper[j])
        beyond = max(low - float(position.min()), float(position.max()) - high)
        if high > low and beyond > 0.1 * (high - low):
            unit = 'rad' if model.joint_types[j] == 'revolute' else 'm'
            notes.append(
                f'joint {model.joint_names[j]} went from {position.min():.4g} to {position.max():.4g} {unit}, its '
                f'limits are {low:.4g} to {high:.4g} {unit}; are the positions in {unit}, and of this arm?'
            )
    return notes
