# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The motor side: currents to torques, and whether their signs and sizes can be right."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from robotid_ros.arrays import Array
from robotid_ros.errors import DataError

__all__ = ['check_motor_side', 'current_to_torque']


def current_to_torque(current: Array, torque_constant: ArrayLike, gear_ratio: ArrayLike) -> Array:
    """Return the joint torque of motor currents, ``tau_j = r_j K_j i_j``.

    Parameters
    ----------
    current : ndarray, shape (N, n)
        [A]
    torque_constant : array_like, shape (n,)
        K, motor side [N m/A]; negative where the current counts the other way round.
    gear_ratio : array_like, shape (n,)
        r, motor turns per joint turn.

    Returns
    -------
    ndarray, shape (N, n)
        Joint side, losses of the gear included [N m].

    Raises
    ------
    DataError
        If a constant is zero or not finite.
    """
    factor = np.asarray(torque_constant, dtype=np.float64) * np.asarray(gear_ratio, dtype=np.float64)
    if not (np.isfinite(factor).all() and (factor != 0.0).all()):
        raise DataError(
            f'torque constants and gear ratios must be finite and not zero; their products are {factor.tolist()}'
        )
    return np.asarray(current, dtype=np.float64) * factor


def check_motor_side(
    torque: Array,
    prior: Array,
    velocity: Array,
    acceleration: Array,
    joint_names: Sequence[str],
    allowed: float = 3.0,
) -> tuple[str, ...]:
    """Compare measured torques with those of a prior model and say what looks wrong.

    Per joint ``tau = s tau_prior + c sign(dq) + v dq + I ddq + o`` is fitted by least squares, so that
    friction, the rotor's inertia and an offset do not count; ``s`` should be near one. Only a prior that the data speak
    for or against clearly (``s`` more than six of its standard deviations from zero, counting one
    independent sample in twenty) is held against the measurement.

    Parameters
    ----------
    torque, prior : ndarray, shape (N, n)
        Measured, and predicted by the prior model [N m].
    velocity, acceleration : ndarray, shape (N, n)
        [rad/s, rad/s^2]
    joint_names : sequence of str
    allowed : float
        Largest factor between measurement and prior, either way.

    Returns
    -------
    tuple of str
        One sentence per joint that looks wrong.
    """
    sentences = []
    for j, joint in enumerate(joint_names):
        own_motion = [np.sign(velocity[:, j]), velocity[:, j], acceleration[:, j]]
        columns = np.stack([prior[:, j], *own_motion, np.ones(len(prior))], axis=1)
        solution, _, rank, _ = np.linalg.lstsq(columns, torque[:, j], rcond=None)
        residual = torque[:, j] - columns @ solution
        others = np.linalg.lstsq(columns[:, 1:], prior[:, j], rcond=None)[0]
        own = float(np.sum((prior[:, j] - columns[:, 1:] @ others) ** 2))
        if rank < 2 or own <= 1e-12 * max(float(np.sum(prior[:, j] ** 2)), 1e-300):
            continue
        slope = float(solution[0])
        deviation = float(np.sqrt(20.0 * np.mean(residual**2) / own))
        if abs(slope) < 6.0 * deviation:
            continue
        if slope < 0.0:
            sentences.append(
                f'joint {joint}: sign of current or torque looks reversed (measured = {slope:.2g} x prior)'
            )
        elif not 1.0 / allowed <= slope <= allowed:
            sentences.append(
                f'joint {joint}: measured torque is {slope:.2g} times that of the prior model; '
                "check torque constant, gear ratio and unit, or the model's masses"
            )
    return tuple(sentences)
