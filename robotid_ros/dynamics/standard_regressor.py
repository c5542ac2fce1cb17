# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The regressor: joint torques as a linear function of the standard parameters.

tau = Y(q, dq, ddq) delta. C. G. Atkeson, C. H. An and J. M. Hollerbach, "Estimation of inertial
parameters of manipulator loads and links", Int. J. Robotics Research 5 (1986); the columns follow
from the principle of virtual power with the joint screws seen in each link's frame.
"""

from typing import TypedDict

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import BLOCK, Chain, Part, aligned_chain, checked_samples, moving
from robotid_ros.dynamics.newton_euler import LinkMotion, link_motions, turn
from robotid_ros.errors import DataError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import INERTIAL_NAMES

__all__ = [
    'Columns',
    'column_names',
    'drive_symbols',
    'full_regressor',
    'observation_matrix',
    'regressor',
    'standard_parameters',
]


class Columns(TypedDict):
    """Which columns stand beside the inertial ones; keyword arguments of several functions."""

    rotor_inertia: bool
    viscous: bool
    coulomb: bool
    offset: bool


def drive_symbols(columns: Columns) -> tuple[str, ...]:
    """Return the symbols of the drive parameters asked for, in their order."""
    wanted = (
        ('Ia', columns['rotor_inertia']),
        ('Fv', columns['viscous']),
        ('Fc', columns['coulomb']),
        ('offset', columns['offset']),
    )
    return tuple(symbol for symbol, asked in wanted if asked)


def regressor(model: RobotModel, q: Array, dq: Array, ddq: Array, *, part: Part = 'all') -> Array:
    """Return the regressor of the standard inertial parameters, link by link.

    tau = Y delta with delta the 10 n parameters in the order of
    :data:`robotid_ros.model.inertia.INERTIAL_NAMES`, each link's in its own frame.

    Parameters
    ----------
    model : RobotModel
    q, dq, ddq : ndarray, shape (N, n)
        Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints].
    part : {'all', 'gravity', 'kinetic'}
        All torques, those of gravity alone, or those of motion alone.

    Returns
    -------
    ndarray, shape (N, n, 10 n)

    Raises
    ------
    DataError
        If the shapes do not fit the model.

    References
    ----------
    Atkeson, An and Hollerbach (1986), eq. 13-16.
    """
    return full_regressor(model, q, dq, ddq, part=part)


def full_regressor(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    rotor_inertia: bool = False,
    viscous: bool = False,
    coulomb: bool = False,
    offset: bool = False,
    part: Part = 'all',
) -> Array:
    """Return the regressor of inertial parameters and of whatever else acts on the joints.

    tau_i = Y_i delta + Ia_i ddq_i + Fv_i dq_i + Fc_i sign(dq_i) + offset_i

    Parameters
    ----------
    model, q, dq, ddq, part
        As in :func:`regressor`.
    rotor_inertia, viscous, coulomb, offset : bool
        Which columns to append, n each, in this order.

    Returns
    -------
    ndarray, shape (N, n, p)
        Columns as named by :func:`column_names`.
    """
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    dq, ddq = moving(part, dq, ddq)
    n = model.n
    drives = [
        column
        for wanted, column in (
            (rotor_inertia, ddq),
            (viscous, dq),
            (coulomb, np.sign(dq)),
            (offset, np.ones_like(q) if part == 'all' else np.zeros_like(q)),
        )
        if wanted
    ]
    result = np.zeros((len(q), n, 10 * n + n * len(drives)))
    chain = aligned_chain(model, part)
    moved = [np.ascontiguousarray(model.coupling @ x.T) for x in (q, dq, ddq)]
    for start in range(0, len(q), BLOCK):
        block = slice(start, start + BLOCK)
        _fill(chain, link_motions(chain, *(x[:, block] for x in moved)), result[block])
    if not np.array_equal(model.coupling, np.eye(n)):
        result[:, :, : 10 * n] = np.einsum('ki,nkp->nip', model.coupling, result[:, :, : 10 * n])
    joint = np.arange(n)
    for k, column in enumerate(drives):
        result[:, joint, 10 * n + k * n + joint] = column
    return result


def column_names(
    model: RobotModel,
    *,
    rotor_inertia: bool = False,
    viscous: bool = False,
    coulomb: bool = False,
    offset: bool = False,
) -> tuple[str, ...]:
    """Return the names of the full regressor's columns: Ixx1 ... m1, Ixx2 ..., Ia1 ..., Fv1 ..., Fc1 ..., offset1 ....

    Links and joints are counted from 1, base to tip.
    """
    names = [f'{name}{k}' for k in range(1, model.n + 1) for name in INERTIAL_NAMES]
    columns = Columns(rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, offset=offset)
    return (*names, *(f'{symbol}{k}' for symbol in drive_symbols(columns) for k in range(1, model.n + 1)))


def standard_parameters(
    model: RobotModel,
    *,
    rotor_inertia: bool = False,
    viscous: bool = False,
    coulomb: bool = False,
    offset: bool = False,
) -> Array:
    """Return the model's own parameters in the order of :func:`column_names`; its offsets are zero.

    Returns
    -------
    ndarray, shape (p,)
    """
    parts = [model.inertial.ravel()]
    for wanted, value in (
        (rotor_inertia, model.rotor_inertia),
        (viscous, model.damping),
        (coulomb, model.friction),
        (offset, np.zeros(model.n)),
    ):
        if wanted:
            parts.append(value)
    return np.concatenate(parts)


def observation_matrix(regressors: Array) -> Array:
    """Return the regressors of all samples stacked: row k n + i is joint i of sample k.

    W[k n + i, :] = Y[k, i, :]; torques stack the same way with ``tau.ravel()``.

    Parameters
    ----------
    regressors : ndarray, shape (N, n, p)

    Returns
    -------
    ndarray, shape (N n, p)
        A view where the memory allows it.

    Raises
    ------
    DataError
        If the array does not have three axes.
    """
    if regressors.ndim != 3:
        raise DataError(f'regressors: expected shape (N, n, p), got {regressors.shape}')
    return regressors.reshape(-1, regressors.shape[2])


def _fill(chain: Chain, motions: list[LinkMotion], result: Array) -> None:
    """Write the inertial columns of one block into ``result``, shape (N, n, >= 10 n)."""
    count = len(result)
    angular, linear = np.zeros((3, 0, count)), np.zeros((3, 0, count))
    for k, motion in enumerate(motions):
        angular, linear = _screws(chain, k, motion, angular, linear)
        columns = _columns(motion, angular, linear)
        if not chain.aligned[k]:
            columns = np.einsum('ain,ab->bin', columns, chain.to_aligned[k])
        result[:, : k + 1, 10 * k : 10 * k + 10] = columns.transpose(2, 1, 0)


def _screws(chain: Chain, k: int, motion: LinkMotion, angular: Array, linear: Array) -> tuple[Array, Array]:
    """Return the screws of joints 0..k in aligned frame k, shape (3, k + 1, N), from those in frame k - 1."""
    basis = chain.rotations[k].T
    origin = motion.origin
    x, y, z = origin[0], origin[1], origin[2]
    linear = linear + np.stack(
        [
            angular[1] * z - angular[2] * y,
            angular[2] * x - angular[0] * z,
            angular[0] * y - angular[1] * x,
        ]
    )
    shape = (3, k + 1, motion.rate.shape[1])
    moved = []
    for vector, own in ((angular, chain.revolute[k]), (linear, not chain.revolute[k])):
        turned = np.zeros(shape)
        if k > 0:
            flat = (basis @ vector.reshape(3, -1)).reshape(vector.shape)
            turned[:, :k] = turn(flat, motion.cosine, motion.sine) if chain.revolute[k] else flat
        turned[2, k] = 1.0 if own else 0.0
        moved.append(turned)
    return moved[0], moved[1]


def _columns(motion: LinkMotion, angular: Array, linear: Array) -> Array:
    """Return z . n + v . f for the ten unit parameters of a link, shape (10, joints, N)."""
    x, y, z = motion.rate
    ax, ay, az = motion.rate_change
    gx, gy, gz = motion.acceleration
    u = motion.velocity_matrix
    zx, zy, zz = angular
    vx, vy, vz = linear
    xy, xz, yz = x * y, x * z, y * z
    columns = np.empty((10, *zx.shape))
    columns[0] = zx * ax + zy * xz - zz * xy
    columns[1] = zx * (ay - xz) + zy * (ax + yz) + zz * (x * x - y * y)
    columns[2] = zx * (az + xy) + zy * (z * z - x * x) + zz * (ax - yz)
    columns[3] = zy * ay - zx * yz + zz * xy
    columns[4] = zx * (y * y - z * z) + zy * (az - xy) + zz * (ay + xz)
    columns[5] = zx * yz - zy * xz + zz * az
    columns[6] = vx * u[0, 0] + vy * u[1, 0] + vz * u[2, 0] + zz * gy - zy * gz
    columns[7] = vx * u[0, 1] + vy * u[1, 1] + vz * u[2, 1] + zx * gz - zz * gx
    columns[8] = vx * u[0, 2] + vy * u[1, 2] + vz * u[2, 2] + zy * gx - zx * gy
    columns[9] = vx * gx + vy * gy + vz * gz
    return columns
