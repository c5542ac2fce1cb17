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

from collections.abc import Callable
from typing import TypedDict

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import BLOCK, Chain, Part, aligned_chain, checked_samples, moving
from robotid_ros.dynamics.compiled_recursion import chosen_columns, packed_arm, recursion
from robotid_ros.dynamics.newton_euler import LinkMotion, link_motions, turn
from robotid_ros.errors import DataError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import INERTIAL_NAMES


class Columns(TypedDict):
    """Columns beside the inertial ones; keyword arguments of several functions."""

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
    """Return the regressor of the inertial and the drive parameters.

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
    columns = Columns(rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, offset=offset)
    drives = drive_symbols(columns)
    wanted = tuple(range((10 + len(drives)) * model.n))
    return regressor_columns(model, q, dq, ddq, wanted, drives=drives, part=part)


def regressor_columns(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    columns: tuple[int, ...],
    *,
    drives: tuple[str, ...] = (),
    part: Part = 'all',
    out: Array | None = None,
) -> Array:
    """Return some columns of the full regressor; the others are not computed.

    Evaluated by one compiled recursion for all arms, in numpy where there is no C compiler.

    Parameters
    ----------
    model, q, dq, ddq, part
        As in :func:`regressor`.
    columns : tuple of int
        Ascending, among the 10 n inertial columns and n for each drive symbol.
    drives : tuple of {'Ia', 'Fv', 'Fc', 'offset'}
        See :func:`drive_symbols`.
    out : ndarray, shape (N, n, len(columns)), optional
        Where to write the result; contiguous.

    Returns
    -------
    ndarray, shape (N, n, len(columns))
    """
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    dq, ddq = moving(part, dq, ddq)
    result = np.empty((len(q), model.n, len(columns))) if out is None else out
    compiled = recursion('recursion_regressor', model)
    if compiled is not None:
        arm, chosen = packed_arm(model, part != 'kinetic'), chosen_columns(model, columns, drives)
        compiled([arm, chosen, q, dq, ddq], [result])
    else:
        _in_numpy(model, (q, dq, ddq), columns, drives, part, result)
    if part != 'all' and 'offset' in drives:
        first = (10 + drives.index('offset')) * model.n
        result[:, :, [first <= column < first + model.n for column in columns]] = 0.0
    return result


def _in_numpy(
    model: RobotModel,
    samples: tuple[Array, Array, Array],
    columns: tuple[int, ...],
    drives: tuple[str, ...],
    part: Part,
    result: Array,
) -> None:
    """Fill in the columns, block by block of samples."""
    n, chain = model.n, aligned_chain(model, part)
    q, dq, ddq = samples
    result[:] = 0.0
    places: list[list[int]] = [[] for _ in range(n)]
    for position, column in enumerate(columns):
        if column < 10 * n:
            places[column // 10].append(position)
        else:
            joint, symbol = column % n, drives[(column - 10 * n) // n]
            column_values = {'Ia': ddq, 'Fv': dq, 'Fc': np.sign(dq), 'offset': np.ones_like(q)}[symbol]
            result[:, joint, position] = column_values[:, joint]
    moved = [np.ascontiguousarray(model.coupling @ x.T) for x in samples]
    coupled = not np.array_equal(model.coupling, np.eye(n))
    for start in range(0, len(q), BLOCK):
        block = slice(start, start + BLOCK)
        motions = link_motions(chain, *(x[:, block] for x in moved))
        angular = linear = np.zeros((3, 0, len(q[block])))
        for k, motion in enumerate(motions):
            angular, linear = _screws(chain, k, motion, angular, linear)
            if places[k]:
                weights = chain.to_aligned[k][:, [columns[place] % 10 for place in places[k]]]
                made = _columns(motion, angular, linear, weights).transpose(2, 1, 0)
                if coupled:
                    made = np.einsum('ki,Nkp->Nip', model.coupling[: k + 1], made)
                result[block, : made.shape[1], places[k][0] : places[k][-1] + 1] = made


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


def _screws(chain: Chain, k: int, motion: LinkMotion, angular: Array, linear: Array) -> tuple[Array, Array]:
    """Return the screws of joints 0..k in aligned frame k, shape (3, k + 1, N), from those in frame k - 1."""
    basis = chain.rotations[k].T
    origin = motion.origin
    x, y, z = origin[0], origin[1], origin[2]
    linear = linear + np.stack(
        [angular[1] * z - angular[2] * y, angular[2] * x - angular[0] * z, angular[0] * y - angular[1] * x]
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


def _columns(motion: LinkMotion, angular: Array, linear: Array, weights: Array) -> Array:
    """Return z . n + v . f, shape (c, joints, N), for combinations (10, c) of a link's ten unit parameters."""
    x, y, z = motion.rate
    ax, ay, az = motion.rate_change
    gx, gy, gz = motion.acceleration
    u = motion.velocity_matrix
    zx, zy, zz = angular
    vx, vy, vz = linear
    xy, xz, yz = x * y, x * z, y * z
    units: tuple[Callable[[], Array], ...] = (
        lambda: zx * ax + zy * xz - zz * xy,
        lambda: zx * (ay - xz) + zy * (ax + yz) + zz * (x * x - y * y),
        lambda: zx * (az + xy) + zy * (z * z - x * x) + zz * (ax - yz),
        lambda: zy * ay - zx * yz + zz * xy,
        lambda: zx * (y * y - z * z) + zy * (az - xy) + zz * (ay + xz),
        lambda: zx * yz - zy * xz + zz * az,
        lambda: vx * u[0, 0] + vy * u[1, 0] + vz * u[2, 0] + zz * gy - zy * gz,
        lambda: vx * u[0, 1] + vy * u[1, 1] + vz * u[2, 1] + zx * gz - zz * gx,
        lambda: vx * u[0, 2] + vy * u[1, 2] + vz * u[2, 2] + zy * gx - zx * gy,
        lambda: vx * gx + vy * gy + vz * gz,
    )
    needed = {k: units[k]() for k in np.flatnonzero(weights.any(axis=1))}
    columns = np.zeros((weights.shape[1], *zx.shape))
    for column, weight in zip(columns, weights.T, strict=True):
        for k in np.flatnonzero(weight):
            column += needed[k] if weight[k] == 1.0 else weight[k] * needed[k]
    return columns
