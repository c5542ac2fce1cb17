# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Base parameters: the combinations of standard parameters that the joint torques depend on.

M. Gautier, "Numerical calculation of the base inertial parameters of robots", J. Robotic Systems
8 (1991). The regressor of random samples H is reduced column by column in the given order, so that
the columns kept are those of the classical symbolic rules: H P = [Hb Hd], Hd = Hb Kd,
beta = delta_b + Kd delta_d.
"""

from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from robotid_ros.arrays import Array, IntArray
from robotid_ros.dynamics.chain import checked_samples
from robotid_ros.dynamics.codegen.kernel import KernelStore, content_key
from robotid_ros.dynamics.codegen.symbolic_regressor import regressor_gradient_function
from robotid_ros.dynamics.recursion import (
    column_names,
    drive_symbols,
    observation_matrix,
    regressor_columns,
    single_regressor,
    standard_parameters,
)
from robotid_ros.errors import DataError, ModelError
from robotid_ros.model import RobotModel
from robotid_ros.model.inertia import INERTIAL_UNITS, joint_unit

DATA_TOLERANCE = 1e-5
"""Tolerance for work with data: a column whose independent part is smaller cannot be identified.

Descriptions with rounded right angles (1.5708) have such columns; with them an identification has a condition
number of a million.
"""

_DRIVE_UNITS = {'Ia': 'kg*m^2', 'Fv': 'N*m*s/rad', 'Fc': 'N*m', 'offset': 'N*m'}  # at revolute joints
_NEGLIGIBLE = 1e-12  # coefficients below this are round-off
_TERMS_IN_NAME = 4
_SHOWN = 1e-5  # least coefficient in a name, relative to the largest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseParameters:
    """A minimal set of parameters, as independent columns and a linear map.

    tau = Y_b beta with Y_b the independent columns of the full regressor and beta = map @ delta.

    Attributes
    ----------
    model : RobotModel
    rotor_inertia, viscous, coulomb, offset : bool
        Columns beside the inertial ones.
    independent : ndarray of int, shape (b,)
        Columns of the full regressor that are kept, ascending.
    map : ndarray, shape (b, p)
        Base parameters from standard parameters.
    columns : tuple of str, length p
        Names of the standard parameters.
    never_acting : tuple of str
        Standard parameters without influence on the torques of any motion.
    """

    model: RobotModel
    rotor_inertia: bool = False
    viscous: bool = False
    coulomb: bool = False
    offset: bool = False
    independent: IntArray
    map: Array
    columns: tuple[str, ...]
    never_acting: tuple[str, ...]
    _kernels: KernelStore = field(default_factory=KernelStore, init=False, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names, the kept parameter first, then those regrouped with it: 'Izz1 + Iyy2 + 0.4624*m3 + ...'."""
        return tuple(self._combination(k, limit=_TERMS_IN_NAME, digits=4) for k in range(len(self.independent)))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the base parameters."""
        n, drives = self.model.n, self.drive_symbols
        found = []
        for column in self.independent.tolist():
            if column < 10 * n:
                found.append(INERTIAL_UNITS[column % 10])
            else:
                block, joint = divmod(column - 10 * n, n)
                found.append(joint_unit(_DRIVE_UNITS[drives[block]], self.model.joint_types[joint]))
        return tuple(found)

    @property
    def options(self) -> dict[str, bool]:
        """Keyword arguments for the columns of the full regressor."""
        return {name: getattr(self, name) for name in ('rotor_inertia', 'viscous', 'coulomb', 'offset')}

    @property
    def drive_symbols(self) -> tuple[str, ...]:
        """Symbols of the parameters beside the inertial ones, in the order of their columns."""
        return drive_symbols(**self.options)

    @property
    def values(self) -> Array:
        """The model's own base parameters beta, shape (b,)."""
        return np.asarray(self.map @ standard_parameters(self.model, **self.options))

    def regressor(self, q: Array, dq: Array, ddq: Array, *, out: Array | None = None) -> Array:
        """Return the independent columns of the regressor.

        Evaluated by one compiled recursion for all arms, in numpy where there is no C compiler. Arguments and errors
        are those of :func:`full_regressor`, the result has the shape (N, n, b).
        """
        single = self._kernels.single
        made = None if single is None or out is not None else single(q, dq, ddq)
        if made is not None:
            return made
        columns, drives = tuple(self.independent.tolist()), self.drive_symbols
        if single is None:
            self._kernels.single = single_regressor(self.model, columns, drives)
        return regressor_columns(self.model, q, dq, ddq, columns, drives=drives, out=out)

    def regressor_vjp(
        self, q: Array, dq: Array, ddq: Array, weights: Array, *, compiled: bool = True
    ) -> tuple[Array, Array, Array]:
        """Return the gradient of a weighted sum of the regressor's entries, sample by sample.

        With s = sum_ij weights_ij Y_ij: the derivatives of s by q, dq and ddq, exact, by reverse accumulation.
        For a scalar f of all regressors, pass the weights df/dY. The sign in a Coulomb column counts
        as constant. The weights have the shape (N, n, b), each derivative (N, n); the numpy kernel is used where there
        is no C compiler, or ``compiled`` is false. A DataError says that the shapes do not fit the model.
        """
        samples = checked_samples(self.model, q=q, dq=dq, ddq=ddq)
        shape = (len(samples[0]), self.model.n, len(self.independent))
        weights = np.ascontiguousarray(weights, dtype=np.float64)
        if weights.shape != shape:
            raise DataError(f'weights: expected shape {shape}, as the regressor has, got {weights.shape}')
        slopes = np.empty((shape[0], 3 * shape[1]))
        drives, columns = self.drive_symbols, self.independent.tolist()
        kernel = self._kernels.get(
            'regressor_gradient',
            content_key(self.model, f'regressor gradient {drives} {columns}'),
            lambda: regressor_gradient_function(self.model, drives, columns),
            compiled=compiled,
        )
        kernel([*samples, weights.reshape(shape[0], -1)], slopes)
        by_q, by_dq, by_ddq = np.split(slopes, 3, axis=1)
        return by_q, by_dq, by_ddq

    @property
    def combinations(self) -> tuple[dict[str, float], ...]:
        """For each base parameter the factors of the standard parameters in it, the kept one first."""
        found = []
        for row, head in zip(self.map, self.independent.tolist(), strict=True):
            others = [k for k in np.flatnonzero(row).tolist() if k != head]
            found.append({self.columns[k]: float(row[k]) for k in (head, *others)})
        return tuple(found)

    def relations(self) -> tuple[str, ...]:
        """Return the regrouping as equations, one per base parameter, such as 'Izz1_b = Izz1 + Iyy2 + 0.4624*m3'."""
        return tuple(
            f'{self.columns[column]}_b = {self._combination(k, limit=None, digits=10)}'
            for k, column in enumerate(self.independent)
        )

    def _combination(self, k: int, *, limit: int | None, digits: int) -> str:
        head = int(self.independent[k])
        row = self.map[k]
        # Names leave out terms from rounded angles of the description; relations have all.
        least = 0.0 if limit is None else _SHOWN * float(np.abs(row).max())
        others = [int(j) for j in np.flatnonzero(np.abs(row) > least) if j != head]
        text = self.columns[head]
        for j in others[:limit]:
            size = f'{abs(row[j]):.{digits}g}'
            text += f' {"-" if row[j] < 0.0 else "+"} {"" if size == "1" else size + "*"}{self.columns[j]}'
        return text + (' + ...' if limit is not None and len(others) > limit else '')


def base_parameters(model: RobotModel, *, tolerance: float = 1e-9, **columns: bool) -> BaseParameters:
    """Return the base parameters of an arm.

    Parameters
    ----------
    model : RobotModel
    tolerance : float
        A column is dependent when its part that is independent of the columns before it is smaller
        than this part of its length. Raise it to, say, 1e-5 for descriptions whose right angles are written with
        five digits.
    **columns : bool
        Drive parameters beside the inertial ones: rotor_inertia, viscous, coulomb, offset.

    Raises
    ------
    ModelError
        If the tolerance is not between 0 and 1.

    References
    ----------
    Gautier (1991), section III.
    """
    if not 0.0 < tolerance < 1.0:
        raise ModelError(f'tolerance: expected a number between 0 and 1, got {tolerance}')
    names = column_names(model, **columns)
    independent, never, grouping = reduced_columns(sampled_rows(model, drive_symbols(**columns)), tolerance)
    grouping.flags.writeable = False
    independent.flags.writeable = False
    return BaseParameters(
        model=model,
        **columns,
        independent=independent,
        map=grouping,
        columns=names,
        never_acting=tuple(names[k] for k in never),
    )


def sampled_rows(model: RobotModel, drives: tuple[str, ...]) -> Array:
    """Return the full regressor of N random samples, stacked, shape (N n, c): some three rows for every column.

    Positions are over a whole turn, or 2 m of a prismatic joint.
    """
    columns, rng = range((10 + len(drives)) * model.n), np.random.default_rng(0)
    shape = (2 * len(columns) // model.n + 20, model.n)
    span = np.where(model.revolute, np.pi, 1.0)
    q = rng.uniform(-span, span, shape)
    dq, ddq = rng.uniform(-np.pi, np.pi, (2, *shape))
    return observation_matrix(regressor_columns(model, q, dq, ddq, columns, drives=drives))


def reduced_columns(observations: Array, tolerance: float) -> tuple[IntArray, IntArray, Array]:
    """Return the columns kept, those that are zero, and the map: a QR that skips dependent columns.

    Each column is orthogonalised twice against those already kept, so that round-off in a dependent
    column cannot enter the basis, as it does in a QR without pivoting.
    """
    length = np.linalg.norm(observations, axis=0)
    acting = length > tolerance * max(float(length.max()), np.finfo(float).tiny)
    vectors = np.empty((observations.shape[0], min(observations.shape)), order='F')
    kept: list[int] = []
    triangle = np.zeros((observations.shape[1], observations.shape[1]))
    for k in np.flatnonzero(acting):
        column = observations[:, k] / length[k]
        basis, projection = vectors[:, : len(kept)], np.zeros(len(kept))
        for _ in range(2):
            step = basis.T @ column
            projection += step
            column = column - basis @ step
        rest = float(np.linalg.norm(column))
        triangle[: len(kept), k] = projection
        if rest > tolerance:
            triangle[len(kept), k] = rest
            vectors[:, len(kept)] = column / rest
            kept.append(int(k))
    rank = len(kept)
    independent = np.array(kept, dtype=np.int64)
    dependent = np.array([k for k in np.flatnonzero(acting) if k not in set(kept)], dtype=np.int64)
    grouping = np.zeros((rank, observations.shape[1]))
    grouping[np.arange(rank), independent] = 1.0
    if rank and len(dependent):
        solved = scipy.linalg.solve_triangular(triangle[:rank, independent], triangle[:rank, dependent])
        solved *= length[dependent] / length[independent][:, None]
        solved[np.abs(solved) < _NEGLIGIBLE] = 0.0
        whole = np.round(solved)
        grouping[:, dependent] = np.where(np.abs(solved - whole) < _NEGLIGIBLE, whole, solved)
    return independent, np.flatnonzero(~acting), grouping
