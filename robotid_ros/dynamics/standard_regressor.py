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

from functools import lru_cache
from typing import TypedDict

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import Part, checked_output, checked_samples, moving
from robotid_ros.dynamics.codegen.kernel import Single
from robotid_ros.dynamics.newton_euler import (
    chosen_columns,
    packed_arm,
    recursion,
    regressor_kernel,
    single_regressor,
)
from robotid_ros.errors import DataError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import INERTIAL_NAMES


class Columns(TypedDict, total=False):
    """Columns beside the inertial ones, n of each kind, in this order; keyword arguments of several functions."""

    rotor_inertia: bool
    viscous: bool
    coulomb: bool
    offset: bool


_SYMBOLS = {'rotor_inertia': 'Ia', 'viscous': 'Fv', 'coulomb': 'Fc', 'offset': 'offset'}


@lru_cache(maxsize=16)
def drive_symbols(**columns: bool) -> tuple[str, ...]:
    """Return the symbols of the drive parameters asked for, in their order."""
    for name in columns:
        if name not in _SYMBOLS:
            raise TypeError(f"'{name}' is no kind of columns; there are: {', '.join(_SYMBOLS)}")
    return tuple(symbol for name, symbol in _SYMBOLS.items() if columns.get(name))


@lru_cache(maxsize=64)
def one_sample(model: RobotModel, **columns: bool) -> Single:
    """Return the full regressor of one sample, prepared; see :func:`single_regressor`."""
    drives = drive_symbols(**columns)
    return single_regressor(model, range((10 + len(drives)) * model.n), drives)


def full_regressor(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    part: Part = 'all',
    out: Array | None = None,
    **columns: bool,
) -> Array:
    """Return the regressor of the inertial parameters, link by link, and of the drive parameters asked for.

    tau_i = Y_i delta + Ia_i ddq_i + Fv_i dq_i + Fc_i sign(dq_i) + offset_i

    with delta the 10 n parameters in the order of :data:`robotid_ros.model.inertia.INERTIAL_NAMES`, each link's in its
    own frame. One sample in float64 arrays of shape (1, n) takes a shorter way.

    Parameters
    ----------
    model : RobotModel
    q, dq, ddq : ndarray, shape (N, n)
        Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints].
    part : {'all', 'gravity', 'kinetic'}
        All torques, those of gravity alone, or those of motion alone.
    out : ndarray, shape (N, n, p), optional
        Where to write the result. To large batches fresh memory costs more than the computation: give the same array
        again and again, and block after block of samples.
    **columns : bool
        Which columns to append, n each, in this order: rotor_inertia, viscous, coulomb, offset.

    Returns
    -------
    ndarray, shape (N, n, p)
        Columns as named by :func:`column_names`.

    Raises
    ------
    DataError
        If the shapes do not fit the model, or ``out`` not the result.

    References
    ----------
    Atkeson, An and Hollerbach (1986), eq. 13-16.
    """
    if part == 'all' and out is None:
        made = one_sample(model, **columns)(q, dq, ddq)
        if made is not None:
            return made
    drives = drive_symbols(**columns)
    wanted = range((10 + len(drives)) * model.n)
    return regressor_columns(model, q, dq, ddq, wanted, drives=drives, part=part, out=out)


def regressor_columns(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    columns: range | tuple[int, ...],
    *,
    drives: tuple[str, ...] = (),
    part: Part = 'all',
    out: Array | None = None,
) -> Array:
    """Return some columns of the full regressor; the others are not computed.

    Evaluated by one compiled recursion for all arms, in numpy where there is no C compiler. The columns ascend, among
    the 10 n inertial ones and n for each drive symbol, see :func:`drive_symbols`; the other arguments are those of
    :func:`full_regressor`.
    """
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    result = checked_output(out, (len(q), model.n, len(columns)), (q, dq, ddq))
    dq, ddq = moving(part, dq, ddq)
    compiled = recursion('recursion_regressor')
    if compiled is not None:
        arm, chosen = packed_arm(model, part != 'kinetic'), chosen_columns(model, columns, drives)
        compiled([arm, chosen, q, dq, ddq], result)
    else:
        kernel = regressor_kernel(model, columns, drives, part != 'kinetic')
        kernel([q, dq, ddq], result.reshape(len(q), model.n * len(columns)))
    if part != 'all' and 'offset' in drives:
        first = (10 + drives.index('offset')) * model.n
        result[:, :, [first <= column < first + model.n for column in columns]] = 0.0
    return result


def column_names(model: RobotModel, **columns: bool) -> tuple[str, ...]:
    """Return the names of the full regressor's columns: Ixx1 ... m1, Ixx2 ..., Ia1 ..., Fv1 ..., Fc1 ..., offset1 ....

    Links and joints are counted from 1, base to tip.
    """
    names = [f'{name}{k}' for k in range(1, model.n + 1) for name in INERTIAL_NAMES]
    symbols = drive_symbols(**columns)
    return (*names, *(f'{symbol}{k}' for symbol in symbols for k in range(1, model.n + 1)))


def standard_parameters(model: RobotModel, **columns: bool) -> Array:
    """Return the model's own parameters in the order of :func:`column_names`, shape (p,); its offsets are zero."""
    own = {'Ia': model.rotor_inertia, 'Fv': model.damping, 'Fc': model.friction, 'offset': np.zeros(model.n)}
    return np.concatenate([model.inertial.ravel(), *(own[symbol] for symbol in drive_symbols(**columns))])


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
