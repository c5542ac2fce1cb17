# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Joint torques and their regressor for a batch of samples, by one recursion over the links (``recursion.c``).

J. Y. S. Luh, M. W. Walker and R. P. C. Paul, "On-line computational scheme for mechanical
manipulators", J. Dyn. Sys. Meas. Control 102 (1980); with inertias about the frame origins as in
W. Khalil and E. Dombre, "Modeling, Identification and Control of Robots" (2002), eq. 9.86-9.91.

The torques are a linear function of the standard parameters, tau = Y(q, dq, ddq) delta: C. G. Atkeson, C. H. An and J.
M. Hollerbach, "Estimation of inertial parameters of manipulator loads and links", Int. J. Robotics Research 5 (1986).
The columns of Y follow from the principle of virtual power with the joint screws seen in each link's frame.
"""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from robotid_ros.arrays import Array
from robotid_ros.dynamics.chain import Part, aligned_chain, checked_output, checked_samples, moving
from robotid_ros.dynamics.codegen.expression import GraphFunction, InputBlock
from robotid_ros.dynamics.codegen.kernel import CompiledKernel, NumpyKernel, Single, compiled_kernel, single_sample
from robotid_ros.dynamics.codegen.minimal_recursion import (
    Form,
    minimal_chain,
    trace_torques,
)
from robotid_ros.dynamics.codegen.symbolic_regressor import motion_inputs, regressor_function
from robotid_ros.errors import DataError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import INERTIAL_NAMES

_SYMBOLS = {'rotor_inertia': 'Ia', 'viscous': 'Fv', 'coulomb': 'Fc', 'offset': 'offset'}  # of drive parameters


def recursion(function: str) -> CompiledKernel | None:
    """Return a function of recursion.c, for batches or, ``..._from_python``, one sample; None without a compiler."""
    return _recursion(function, os.environ.get('ROBOTID_NO_COMPILER', ''))


@lru_cache(maxsize=8)
def _recursion(function: str, _: str) -> CompiledKernel | None:
    name, source = 'recursion', Path(__file__).with_name('recursion.c').read_text(encoding='ascii')
    if function.endswith('_from_python'):
        name, source = 'recursion_sample', f'#define LANES 1\n{source}'
    return compiled_kernel(name, hashlib.sha256(source.encode()).hexdigest(), lambda: source, function)


@lru_cache(maxsize=64)
def single_torque(model: RobotModel, rotor_inertia: bool, friction: bool) -> Single:
    """Return the torque of one sample, see :func:`single_sample`; arguments as below."""
    arm = packed_arm(model, True, rotor_inertia, friction)
    return single_sample(lambda: recursion('sample_torque_from_python'), arm, model.n, (1, model.n))


def single_regressor(model: RobotModel, columns: Sequence[int], drives: tuple[str, ...]) -> Single:
    """Return the regressor's columns for one sample, see :func:`single_sample`."""
    constants = np.concatenate([packed_arm(model), chosen_columns(model, columns, drives)])
    shape = (1, model.n, len(columns))
    return single_sample(lambda: recursion('sample_regressor_from_python'), constants, model.n, shape)


@lru_cache(maxsize=64)
def packed_arm(model: RobotModel, falls: bool = True, rotor_inertia: bool = False, friction: bool = False) -> Array:
    """Return an arm as recursion.c reads it, with gravity, the model's rotor inertia and prior friction or not."""
    n, (rotations, offsets, slides, to_aligned) = model.n, aligned_chain(model)
    joints = np.concatenate([model.revolute[:, None], rotations.reshape(n, 9), offsets, slides], axis=1)
    none = np.zeros(n)
    parts = [
        [n, not np.array_equal(model.coupling, np.eye(n))],
        -model.gravity if falls else np.zeros(3),
        joints,
        np.einsum('kij,kj->ki', to_aligned, model.inertial),
        model.coupling,
        model.rotor_inertia if rotor_inertia else none,
        model.damping if friction else none,
        model.friction if friction else none,
        _sparse(n, to_aligned.tobytes()),
    ]
    packed = np.concatenate([np.ravel(part) for part in parts]).astype(np.float64)
    packed.flags.writeable = False
    return packed


@lru_cache(maxsize=64)
def _sparse(n: int, to_aligned: bytes) -> Array:
    """Return of each parameter how many weights are not zero, then their places and values, shape (n, 10, 21)."""
    terms = np.zeros((n, 10, 21))
    for k, link in enumerate(np.frombuffer(to_aligned).reshape(n, 10, 10)):
        for row, weights in zip(terms[k], link.T, strict=True):
            places = np.flatnonzero(weights)
            row[0] = len(places)
            row[1 : 1 + 2 * len(places)] = np.column_stack([places, weights[places]]).ravel()
    terms.flags.writeable = False
    return terms


@lru_cache(maxsize=64)
def chosen_columns(model: RobotModel, columns: Sequence[int], drives: tuple[str, ...]) -> Array:
    """Return the chosen columns of the regressor, see :func:`regressor_columns`, as recursion.c reads them."""
    n, known = model.n, list(_SYMBOLS.values())
    place = np.full(14 * n, -1.0)
    for position, column in enumerate(columns):
        block, joint = divmod(column, n)
        place[column if block < 10 else (10 + known.index(drives[block - 10])) * n + joint] = position
    *_, to_aligned = aligned_chain(model)
    same_frame = (to_aligned == np.eye(10)).all(axis=(1, 2))
    return np.concatenate([[len(columns)], same_frame, place]).astype(np.float64)


@lru_cache(maxsize=32)
def torque_kernel(model: RobotModel, falls: bool) -> tuple[NumpyKernel, Array]:
    """Return a function of q, dq, ddq and parameters to the torques of the rigid links, and the model's parameters."""
    model, n = model if falls else _weightless(model), model.n
    chain = minimal_chain(model)
    form = Form((False,) * len(chain.groups), (False,) * n, (True,) * n, (False,) * n)
    graph, references = trace_torques(model, (), chain, range(10 * n), form)
    inputs = (*motion_inputs(n), InputBlock('parameters', 10 * n, shared=True))
    function = GraphFunction(name='torque', graph=graph, inputs=inputs, references=references)
    return NumpyKernel(function), np.einsum('kij,kj->ki', chain.from_links, model.inertial).ravel()


@lru_cache(maxsize=32)
def regressor_kernel(model: RobotModel, columns: tuple[int, ...], drives: tuple[str, ...], falls: bool) -> NumpyKernel:
    """Return a function of q, dq and ddq to some columns of the full regressor, row by row; arguments as above."""
    return NumpyKernel(regressor_function(model if falls else _weightless(model), drives, columns))


def _weightless(model: RobotModel) -> RobotModel:
    return replace(model, gravity=np.zeros(3))


def inverse_dynamics(
    model: RobotModel,
    q: Array,
    dq: Array,
    ddq: Array,
    *,
    part: Part = 'all',
    rotor_inertia: bool = True,
    friction: bool = False,
    out: Array | None = None,
) -> Array:
    """Return the joint torques that make the arm move as given.

    tau = M(q) ddq + C(q, dq) dq + g(q) + Ia ddq, and + Fv dq + Fc sign(dq) where friction is asked for.

    Evaluated by one compiled recursion for all arms, whatever the number of samples; in numpy where
    there is no C compiler. Both agree to round-off. One sample in float64 arrays of shape (1, n) takes a shorter way.

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
    out : ndarray, shape (N, n), optional
        Where to write the result.

    Returns
    -------
    ndarray, shape (N, n)
        Torques [N m], forces [N] for prismatic joints.

    Raises
    ------
    DataError
        If the shapes do not fit the model, or ``out`` not the result.

    References
    ----------
    Luh, Walker and Paul (1980); Khalil and Dombre (2002), eq. 9.86-9.91.
    """
    if part == 'all' and out is None:
        made = single_torque(model, rotor_inertia, friction)(q, dq, ddq)
        if made is not None:
            return made
    q, dq, ddq = checked_samples(model, q=q, dq=dq, ddq=ddq)
    tau = checked_output(out, q.shape, (q, dq, ddq))
    rate, change = moving(part, dq, ddq)
    compiled = recursion('recursion_torque')
    if compiled is not None:
        compiled([packed_arm(model, part != 'kinetic', rotor_inertia, friction), q, rate, change], tau)
        return tau
    kernel, parameters = torque_kernel(model, part != 'kinetic')
    kernel([q, rate, change, parameters], tau)
    if rotor_inertia:
        tau += model.rotor_inertia * change
    if friction:
        tau += model.damping * rate + model.friction * np.sign(rate)
    return tau


@lru_cache(maxsize=16)
def drive_symbols(**columns: bool) -> tuple[str, ...]:
    """Return the symbols of the drive parameters asked for, in their order, in which each has n columns."""
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
