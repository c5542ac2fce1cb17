# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The minimal model of one arm: the shortest inverse dynamics, evaluated by kernels or written as source code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robotid_ros.arrays import Array, frozen_array
from robotid_ros.dynamics.base_parameter_set import BaseParameters
from robotid_ros.dynamics.chain import checked_output, checked_samples
from robotid_ros.dynamics.codegen.compiler import CompiledKernel
from robotid_ros.dynamics.codegen.expression import Expression, Number, OperationCount
from robotid_ros.dynamics.codegen.function import GraphFunction
from robotid_ros.dynamics.codegen.kernel import KernelStore, single_function
from robotid_ros.dynamics.codegen.rewriting import at_joints
from robotid_ros.dynamics.codegen.source import (
    GeneratedCode,
    as_comment,
    c_header,
    c_source,
    cpp_header,
    python_source,
)
from robotid_ros.dynamics.codegen.symbolic_regressor import regressor_function
from robotid_ros.dynamics.standard_regressor import drive_symbols
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointFriction:
    """Friction of all joints as formulas.

    Attributes
    ----------
    name : str
    parameters : tuple of tuple of (str, str)
        For each joint, names and units of its parameters; equally many.
    torque : callable
        From (joint, velocity, its parameters, load, position) to the joint's friction torque, all of
        them expressions but the joint's number; load is the torque without friction.
    rest : ndarray, shape (n, 2), optional
        Speed below which a joint rests, and its friction there against the direction of the last motion
        [rad/s, N m]; speed 0 for a joint that has none.
    """

    name: str
    parameters: tuple[tuple[tuple[str, str], ...], ...]
    torque: Callable[[int, Expression, Sequence[Expression], Expression, Expression], Number]
    rest: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MinimalModel:
    """An arm's dynamics in the fewest operations found.

    Its parameters are the base parameters, then those of the friction model joint by joint, if there is one.

    Attributes
    ----------
    base : BaseParameters
    friction_model : JointFriction or None
    coefficient_map : ndarray, shape (m, p)
        Coefficients of the formulas from the parameters, computed once per parameter set; m is p, or slightly
        more where a combination of two parameters is used too.
    functions : mapping of str to GraphFunction
        ``inverse_dynamics``, ``rigid_body``, ``gravity``, ``friction``, and ``recorded_torque`` where there is
        friction at rest.
    parameters : ndarray, shape (p,)
        Parameters of the arm.
    drives : ndarray, shape (n, n), or None
        Positions of the motors over those of the joints, where they are coupled. Base and friction parameters are
        those of the motors then.
    """

    base: BaseParameters
    friction_model: JointFriction | None
    coefficient_map: Array
    functions: Mapping[str, GraphFunction]
    parameters: Array
    drives: Array | None = None
    _own_coefficients: Array = field(init=False, repr=False)
    _kernels: KernelStore = field(default_factory=KernelStore, init=False, repr=False)

    def __post_init__(self) -> None:
        own = frozen_array(self.parameters, 'parameters', (self.coefficient_map.shape[1],), ModelError)
        object.__setattr__(self, 'parameters', own)
        object.__setattr__(self, '_own_coefficients', self.coefficient_map @ own)

    def with_parameters(self, parameters: Array) -> 'MinimalModel':
        """Return the same formulas with other parameters, shape (p,)."""
        return replace(self, parameters=parameters)

    @property
    def model(self) -> RobotModel:
        """The arm."""
        return self.base.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        friction = () if self.friction_model is None else self.friction_model.parameters
        return (*self.base.names, *(name for joint in friction for name, _ in joint))

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        friction = () if self.friction_model is None else self.friction_model.parameters
        return (*self.base.units, *(unit for joint in friction for _, unit in joint))

    @property
    def operations(self) -> OperationCount:
        """Operations of one evaluation of the inverse dynamics: (multiplications, additions).

        Every multiplication, addition and subtraction of the generated code counts, by constants
        too; sines, cosines and signs do not, nor do minus signs, which only turn additions into
        subtractions.
        """
        return self.functions['inverse_dynamics'].operations

    def coefficients(self, parameters: Array | None = None) -> Array:
        """Return the formulas' coefficients.

        Parameters
        ----------
        parameters : ndarray, shape (p,), optional
            By default the model's own.

        Returns
        -------
        ndarray, shape (m,)

        Raises
        ------
        ModelError
            If there are not p finite numbers.
        """
        if parameters is None:
            return self._own_coefficients
        given = frozen_array(parameters, 'parameters', (self.coefficient_map.shape[1],), ModelError)
        return np.asarray(self.coefficient_map @ given)

    def inverse_dynamics(
        self,
        q: Array,
        dq: Array,
        ddq: Array,
        parameters: Array | None = None,
        *,
        out: Array | None = None,
        compiled: bool = True,
    ) -> Array:
        """Return the joint torques, friction included.

        One sample in float64 arrays of shape (1, n) takes a shorter way, through compiled code of its own.

        Parameters
        ----------
        q, dq, ddq : ndarray, shape (N, n)
            Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints].
        parameters : ndarray, shape (p,), optional
            By default the model's own.
        out : ndarray, shape (N, n), optional
            Where to write the result.
        compiled : bool
            False to use the numpy kernel in any case.

        Returns
        -------
        ndarray, shape (N, n)
            [N m, or N]

        Raises
        ------
        DataError
            If the shapes do not fit the model.
        """
        single = self._kernels.single
        if single is not None and parameters is None and out is None and compiled:
            tau = single(q, dq, ddq)
            if tau is not None:
                return tau
        samples = checked_samples(self.model, q=q, dq=dq, ddq=ddq)
        return self._evaluate('inverse_dynamics', samples, parameters, out, compiled)

    def rigid_body(
        self, q: Array, dq: Array, ddq: Array, parameters: Array | None = None, *, compiled: bool = True
    ) -> Array:
        """Return the torques without friction and offsets, shape (N, n) [N m, or N]; arguments as above."""
        samples = checked_samples(self.model, q=q, dq=dq, ddq=ddq)
        return self._evaluate('rigid_body', samples, parameters, None, compiled)

    def gravity(self, q: Array, parameters: Array | None = None, *, compiled: bool = True) -> Array:
        """Return the torques that hold the arm at rest, shape (N, n) [N m, or N]; arguments as above."""
        samples = checked_samples(self.model, q=q)
        return self._evaluate('gravity', samples, parameters, None, compiled)

    def friction(
        self,
        dq: Array,
        parameters: Array | None = None,
        *,
        q: Array | None = None,
        load: Array | None = None,
        compiled: bool = True,
    ) -> Array:
        """Return the torques of friction and offsets, shape (N, n) [N m, or N].

        ``q`` matters to a torque ripple and ``load``, the torque of :meth:`rigid_body`, to friction that
        depends on it; both are zero by default.
        """
        rate = np.asarray(dq, dtype=np.float64)
        position, torque = (np.zeros_like(rate) if x is None else x for x in (q, load))
        samples = checked_samples(self.model, q=position, dq=rate, load=torque)
        return self._evaluate('friction', samples, parameters, None, compiled)

    def regressor(self, q: Array, dq: Array, ddq: Array, *, out: Array | None = None) -> Array:
        """Return the base regressor, shape (N, n, b); see :meth:`BaseParameters.regressor`."""
        if self.drives is None:
            return self.base.regressor(q, dq, ddq, out=out)
        rows = self.base.regressor(*(np.asarray(x) @ self.drives.T for x in (q, dq, ddq)))
        return np.einsum('mj,Nmb->Njb', self.drives, rows, out=out)

    def c_source(self, prefix: str = '', *, header: str | None = None) -> str:
        """Return C99 source with inverse_dynamics, rigid_body, gravity, friction and regressor.

        Parameters
        ----------
        prefix : str
            Put before every name that is visible outside.
        header : str, optional
            Name of the header file to include, see :meth:`c_header`; without it the source stands alone.

        Raises
        ------
        ModelError
            If the prefix cannot start a C name.
        """
        return c_source(self._code(), prefix, header)

    def c_header(self, prefix: str = '', *, name: str = 'inverse_dynamics.h') -> str:
        """Return the header that goes with :meth:`c_source`: declarations, sizes, units."""
        return c_header(self._code(), prefix, name)

    def cpp_header(self, namespace: str, *, name: str = 'inverse_dynamics.hpp') -> str:
        """Return one C++11 header with the same functions as :meth:`c_source`, inline in a namespace.

        Parameters
        ----------
        namespace : str
            A C++ identifier.
        name : str
            Of the file, for its include guard.

        Raises
        ------
        ModelError
            If the namespace is no identifier.
        """
        return cpp_header(self._code(), namespace, name)

    def python_source(self) -> str:
        """Return Python source over numpy arrays with the same functions as :meth:`c_source`."""
        return python_source(self._code())

    def _code(self) -> GeneratedCode:
        regressor = regressor_function(self.model, drive_symbols(**self.base.options), self.base.independent.tolist())
        if self.drives is not None:
            regressor = at_joints(regressor, self.drives)
        if self.friction_model is not None:
            friction = f'with friction ({as_comment(self.friction_model.name)})'
        else:
            drives = drive_symbols(**self.base.options)
            friction = 'with friction' if {'Fv', 'Fc', 'offset'} & set(drives) else 'without friction'
        return GeneratedCode(
            model=self.model,
            names=tuple(name.replace('/', '_') for name in self.names),
            units=self.units,
            parameters=self.parameters,
            base=len(self.base.independent),
            coefficient_map=self.coefficient_map,
            functions={**self.functions, 'regressor': regressor},
            friction=friction,
            rest=None if self.friction_model is None else self.friction_model.rest,
        )

    def _evaluate(
        self, name: str, samples: list[Array], parameters: Array | None, out: Array | None, compiled: bool
    ) -> Array:
        result = checked_output(out, samples[0].shape, samples)
        function = self.functions[name]
        kernel = self._kernels.get(name, function.key, lambda: function, compiled=compiled)
        first = len(result) == 1 and name == 'inverse_dynamics' and self._kernels.single is None
        if first and isinstance(kernel, CompiledKernel):
            self._kernels.single = single_function(function, self._own_coefficients)
        kernel([*samples, self.coefficients(parameters)], result)
        return result
