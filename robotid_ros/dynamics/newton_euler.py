# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The recursive Newton-Euler algorithm for a batch of samples.

J. Y. S. Luh, M. W. Walker and R. P. C. Paul, "On-line computational scheme for mechanical
manipulators", J. Dyn. Sys. Meas. Control 102 (1980); with inertias about the frame origins as in
W. Khalil and E. Dombre, "Modeling, Identification and Control of Robots" (2002), eq. 9.86-9.91.
"""

from typing import NamedTuple

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import BLOCK, Chain, Part, aligned_chain, checked_samples, moving
from robotid_ros.dynamics.compiled_recursion import packed_arm, recursion
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import inertia_matrix


class LinkMotion(NamedTuple):
    """Motion of one link's aligned frame in that frame; vectors have shape (3, N).

    Attributes
    ----------
    velocity_matrix : ndarray, shape (3, 3, N)
        U = [dw]x + [w]x [w]x, so that the point p of the link accelerates with a + U p.
    rate : ndarray
        Angular velocity w [rad/s].
    rate_change : ndarray
        Angular acceleration dw [rad/s^2].
    acceleration : ndarray
        Acceleration of the origin minus free fall [m/s^2].
    cosine, sine : ndarray, shape (N,)
        Of the joint angle (1 and 0 for a prismatic joint).
    origin : ndarray, shape (3, N) or (3, 1)
        Origin in the previous aligned frame [m].
    """

    velocity_matrix: Array
    rate: Array
    rate_change: Array
    acceleration: Array
    cosine: Array
    sine: Array
    origin: Array


def inverse_dynamics(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    part: Part = 'all',
    rotor_inertia: bool = True,
    friction: bool = False,
) -> Array:
    """Return the joint torques that make the arm move as given.

    tau = M(q) ddq + C(q, dq) dq + g(q) + Ia ddq, and + Fv dq + Fc sign(dq) where friction is asked for.

    Evaluated by one compiled recursion for all arms, whatever the number of samples; in numpy where
    there is no C compiler. Both agree to round-off.

    Parameters
    ----------
    model : RobotModel
    q, dq, ddq : ndarray, shape (N, n)
        Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints],
        in measured coordinates where the model has a coupling.
    part : {'all', 'gravity', 'kinetic'}
        All torques, those of gravity alone, or those of motion alone.
    rotor_inertia, friction : bool
        Whether the model's rotor inertia, and its prior viscous and Coulomb friction, take part.

    Returns
    -------
    ndarray, shape (N, n)
        Torques [N m], forces [N] for prismatic joints.

    Raises
    ------
    DataError
        If the shapes do not fit the model.

    References
    ----------
    Luh, Walker and Paul (1980); Khalil and Dombre (2002), eq. 9.86-9.91.
    """
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    rate, change = moving(part, dq, ddq)
    compiled = recursion('recursion_torque', model)
    if compiled is not None:
        tau = np.empty_like(q, order='C')
        compiled([packed_arm(model, part != 'kinetic', rotor_inertia, friction), q, rate, change], [tau])
        return tau
    tau = newton_euler(model, q, rate, change, part)
    if rotor_inertia:
        tau += model.rotor_inertia * change
    if friction:
        tau += model.damping * rate + model.friction * np.sign(rate)
    return tau


def newton_euler(model: RobotModel, q: Array, dq: Array, ddq: Array, part: Part = 'all') -> Array:
    """Return the torques of the rigid links by the recursion, block by block of samples.

    Parameters
    ----------
    model : RobotModel
    q, dq, ddq : ndarray, shape (N, n)
        Measured coordinates, checked.
    part : {'all', 'gravity', 'kinetic'}

    Returns
    -------
    ndarray, shape (N, n)
        [N m, or N]
    """
    chain = aligned_chain(model, part)
    inertial = np.einsum('kij,kj->ki', chain.to_aligned, model.inertial)
    tau = np.empty_like(q)
    moved = [np.ascontiguousarray(model.coupling @ x.T) for x in (q, *moving(part, dq, ddq))]
    for start in range(0, len(q), BLOCK):
        block = slice(start, start + BLOCK)
        motions = link_motions(chain, *(x[:, block] for x in moved))
        tau[block] = _backward(chain, motions, inertial).T @ model.coupling
    return tau


def link_motions(chain: Chain, q: Array, dq: Array, ddq: Array) -> list[LinkMotion]:
    """Return the motion of every link, base to tip.

    Parameters
    ----------
    chain : Chain
    q, dq, ddq : ndarray, shape (n, N)
        Chain coordinates, one row per joint.
    """
    count = q.shape[1]
    rate = np.zeros((3, count))
    change = np.zeros((3, count))
    acceleration = np.broadcast_to(chain.start[:, None], (3, count))
    matrix = np.zeros((3, 3, count))
    motions = []
    for k, revolute in enumerate(chain.revolute):
        basis = chain.rotations[k].T
        origin = chain.offsets[k][:, None]
        if not revolute:
            origin = origin + chain.slides[k][:, None] * q[k]
        if k > 0:
            acceleration = acceleration + np.einsum('ijn,jn->in', matrix, np.broadcast_to(origin, (3, count)))
        rate, change, acceleration = basis @ rate, basis @ change, basis @ acceleration
        if revolute:
            cosine, sine = np.cos(q[k]), np.sin(q[k])
            rate, change = turn(rate, cosine, sine), turn(change, cosine, sine)
            acceleration = turn(acceleration, cosine, sine)
            change[0] += rate[1] * dq[k]
            change[1] -= rate[0] * dq[k]
            change[2] += ddq[k]
            rate[2] += dq[k]
        else:
            cosine, sine = np.ones(count), np.zeros(count)
            double = 2.0 * dq[k]
            acceleration[0] += rate[1] * double
            acceleration[1] -= rate[0] * double
            acceleration[2] += ddq[k]
        matrix = _velocity_matrix(rate, change)
        motions.append(LinkMotion(matrix, rate, change, acceleration, cosine, sine, origin))
    return motions


def turn(vector: Array, cosine: Array, sine: Array) -> Array:
    """Return the components in a frame turned about z by +angle of vectors, shape (3, ..., N)."""
    result = np.empty_like(vector)
    np.multiply(cosine, vector[0], out=result[0])
    result[0] += sine * vector[1]
    np.multiply(cosine, vector[1], out=result[1])
    result[1] -= sine * vector[0]
    result[2] = vector[2]
    return result


def _velocity_matrix(rate: Array, change: Array) -> Array:
    x, y, z = rate
    xy, xz, yz = x * y, x * z, y * z
    xx, yy, zz = x * x, y * y, z * z
    matrix = np.empty((3, 3, rate.shape[1]))
    matrix[0, 0], matrix[1, 1], matrix[2, 2] = -(yy + zz), -(xx + zz), -(xx + yy)
    matrix[0, 1], matrix[1, 0] = xy - change[2], xy + change[2]
    matrix[0, 2], matrix[2, 0] = xz + change[1], xz - change[1]
    matrix[1, 2], matrix[2, 1] = yz - change[0], yz + change[0]
    return matrix


def _backward(chain: Chain, motions: list[LinkMotion], inertial: Array) -> Array:
    """Return the torques of the chain's joints, shape (n, N), from tip to base."""
    count = motions[0].rate.shape[1]
    force, moment = np.zeros((3, count)), np.zeros((3, count))
    tau = np.empty((len(motions), count))
    for k in range(len(motions) - 1, -1, -1):
        motion, pi = motions[k], inertial[k]
        if pi.any():
            tensor, first, mass = inertia_matrix(pi[:6]), pi[6:9], pi[9]
            momentum = tensor @ motion.rate
            force = force + mass * motion.acceleration + np.einsum('ijn,j->in', motion.velocity_matrix, first)
            moment = moment + tensor @ motion.rate_change + _cross(motion.rate, momentum)
            moment += _cross(np.broadcast_to(first[:, None], (3, 1)), motion.acceleration)
        tau[k] = moment[2] if chain.revolute[k] else force[2]
        if k > 0:
            force = chain.rotations[k] @ turn(force, motion.cosine, -motion.sine)
            moment = chain.rotations[k] @ turn(moment, motion.cosine, -motion.sine)
            moment += _cross(motion.origin, force)
    return tau


def _cross(a: Array, b: Array) -> Array:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])
