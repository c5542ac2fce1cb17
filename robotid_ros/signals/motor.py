# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The motor side: whether signs and sizes of measured torques can be right."""

from collections.abc import Sequence

import numpy as np

from robotid_ros.arrays import Array

_ALLOWED = 1.8  # largest factor to the prior, and to the other joints' median: described masses are wrong by less


def prior_factors(torque: Array, prior: Array, velocity: Array, acceleration: Array) -> Array:
    """Return the factor between each joint's measured torque and that of a prior model.

    Per joint ``tau = s tau_prior + c sign(dq) + v dq + I ddq + o`` is fitted by least squares, so that
    friction, the rotor's inertia and an offset do not count.

    Parameters
    ----------
    torque, prior : ndarray, shape (N, n)
        Measured, and predicted by the prior model [N m].
    velocity, acceleration : ndarray, shape (N, n)
        [rad/s, rad/s^2]

    Returns
    -------
    ndarray, shape (n,)
        ``s``; NaN where it is less than six standard deviations from zero (with one independent sample in
        twenty), that is, where the data do not determine it.
    """
    factors = np.full(torque.shape[1], np.nan)
    for j in range(torque.shape[1]):
        own_motion = [np.sign(velocity[:, j]), velocity[:, j], acceleration[:, j]]
        columns = np.stack([prior[:, j], *own_motion, np.ones(len(prior))], axis=1)
        solution, _, rank, _ = np.linalg.lstsq(columns, torque[:, j], rcond=None)
        residual = torque[:, j] - columns @ solution
        others = np.linalg.lstsq(columns[:, 1:], prior[:, j], rcond=None)[0]
        own = float(np.sum((prior[:, j] - columns[:, 1:] @ others) ** 2))
        if rank < 2 or own <= 1e-12 * max(float(np.sum(prior[:, j] ** 2)), 1e-300):
            continue
        if abs(solution[0]) > 6.0 * float(np.sqrt(20.0 * np.mean(residual**2) / own)):  # a torque of zero has none
            factors[j] = solution[0]
    return factors


def check_motor_side(factors: Array, joint_names: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence on signs, and one on sizes, of measured torques that look wrong beside a prior model's.

    Parameters
    ----------
    factors : ndarray, shape (n,)
        Of measured torques over those of the prior model, see :func:`prior_factors`: they should be near one, and near
        each other.
    joint_names : sequence of str
    """
    known = np.abs(factors[np.isfinite(factors)])
    usual = float(np.median(known)) if len(known) > 2 else 1.0
    told = dict(zip(joint_names, factors.tolist(), strict=True))
    turned = [name for name, factor in told.items() if factor < 0.0]
    off = [
        f'{factor:.2g} times at {name}'
        for name, factor in told.items()
        if factor > 0.0 and any(max(x, 1.0 / x) > _ALLOWED for x in (factor, factor / usual))
    ]
    notes = []
    if turned:
        notes.append(
            f'beside the masses of the description, the torque of {", ".join(turned)} looks reversed; check the '
            'sign of torque or current'
        )
    if off:
        notes.append(
            f'the torque is {", ".join(off)} of what the masses of the description need (median of all joints '
            f'{np.median(known):.2g}); check torque constants, gear ratios and units, or those masses'
        )
    return tuple(notes)
