# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The minimal model: the shortest inverse dynamics of one arm, as kernels and as source code.

Customised symbolic Newton-Euler in base parameters, after W. Khalil and J.-F. Kleinfinger,
"Minimum operations and minimum parameters of the dynamic models of tree structure robots", IEEE J.
Robotics and Automation 3 (1987), with the choices of :mod:`robotid_ros.dynamics.codegen.minimal_recursion`
searched for the fewest operations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.dynamics.base_parameter_set import BaseParameters, base_parameters
from robotid_ros.dynamics.chain import checked_samples
from robotid_ros.dynamics.codegen.c_source import c_header, c_source
from robotid_ros.dynamics.codegen.cache import content_key, load_arrays, save_arrays
from robotid_ros.dynamics.codegen.coefficients import Coefficients
from robotid_ros.dynamics.codegen.compiler import CompiledKernel
from robotid_ros.dynamics.codegen.expression import Graph, Op, OperationCount
from robotid_ros.dynamics.codegen.function import GraphFunction, InputBlock, OutputBlock
from robotid_ros.dynamics.codegen.kernel import KernelStore, SingleSample, checked_output
from robotid_ros.dynamics.codegen.minimal_search import shortest_form, trace_torques
from robotid_ros.dynamics.codegen.python_source import python_source
from robotid_ros.dynamics.codegen.regressor_function import motion_inputs, regressor_function
from robotid_ros.dynamics.codegen.simplify import simplified
from robotid_ros.dynamics.codegen.source_parts import GeneratedCode
from robotid_ros.dynamics.standard_regressor import drive_symbols
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.progress import Progress

__all__ = ['MinimalModel', 'minimal_model']

_FUNCTIONS = ('inverse_dynamics', 'gravity', 'friction')


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MinimalModel:
    """An arm's dynamics in the fewest operations found.

    Attributes
    ----------
    base : BaseParameters
        The parameters it is a function of.
    coefficient_map : ndarray, shape (m, b)
        What the formulas hold, from the base parameters. Computed once per parameter set; m is b,
        or slightly more where a combination of two parameters is used beside them.
    functions : mapping of str to GraphFunction
        ``inverse_dynamics``, ``gravity`` and ``friction``.
    key : str
        A hash of what it was generated from.
    own_coefficients : ndarray, shape (m,)
        Coefficients of the model's own parameters.
    """

    base: BaseParameters
    coefficient_map: Array
    functions: Mapping[str, GraphFunction]
    key: str
    own_coefficients: Array
    _kernels: KernelStore = field(default_factory=KernelStore, init=False, repr=False)

    @property
    def model(self) -> RobotModel:
        """The arm."""
        return self.base.model

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.base.names

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
        parameters : ndarray, shape (b,), optional
            Base parameters; by default the model's own.

        Returns
        -------
        ndarray, shape (m,)

        Raises
        ------
        ModelError
            If there are not b finite numbers.
        """
        if parameters is None:
            return self.own_coefficients
        beta = frozen_array(parameters, 'parameters', (len(self.base.independent),), ModelError)
        return np.asarray(self.coefficient_map @ beta)

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
        """Return the joint torques, of everything the base parameters hold.

        Parameters
        ----------
        q, dq, ddq : ndarray, shape (N, n)
            Joint positions, velocities and accelerations [rad, rad/s, rad/s^2; m for prismatic joints].
        parameters : ndarray, shape (b,), optional
            Base parameters; by default the model's own.
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
        if parameters is None and out is None and compiled and self._kernels.single is not None:
            tau = self._kernels.single(q, dq, ddq)
            if tau is not None:
                return tau
        samples = checked_samples(self.model, q=q, dq=dq, ddq=ddq)
        return self._evaluate('inverse_dynamics', samples, parameters, out, compiled)

    def gravity(self, q: Array, parameters: Array | None = None, *, compiled: bool = True) -> Array:
        """Return the torques that hold the arm at rest, shape (N, n) [N m, or N]; arguments as above."""
        samples = checked_samples(self.model, q=q)
        return self._evaluate('gravity', samples, parameters, None, compiled)

    def friction(self, dq: Array, parameters: Array | None = None, *, compiled: bool = True) -> Array:
        """Return the torques of friction and offsets, shape (N, n) [N m, or N]; arguments as above."""
        samples = checked_samples(self.model, dq=dq)
        return self._evaluate('friction', samples, parameters, None, compiled)

    def regressor(self, q: Array, dq: Array, ddq: Array, *, out: Array | None = None) -> Array:
        """Return the base regressor, shape (N, n, b); see :meth:`BaseParameters.regressor`."""
        return self.base.regressor(q, dq, ddq, out=out)

    def c_source(self, prefix: str = '', *, parameters: Array | None = None, header: str | None = None) -> str:
        """Return C99 source with inverse_dynamics, regressor, gravity and friction.

        Parameters
        ----------
        prefix : str
            Put before every name that is visible outside.
        parameters : ndarray, shape (b,), optional
            Base parameters for the tables in the source; by default the model's own.
        header : str, optional
            Name of the header file to include, see :meth:`c_header`; without it the source stands alone.

        Raises
        ------
        ModelError
            If the prefix cannot start a C name.
        """
        return c_source(self._code(parameters), prefix, header)

    def c_header(self, prefix: str = '', *, name: str = 'inverse_dynamics.h') -> str:
        """Return the header that goes with :meth:`c_source`: declarations, sizes, units."""
        return c_header(self._code(None), prefix, name)

    def python_source(self, *, parameters: Array | None = None) -> str:
        """Return Python source over numpy arrays with inverse_dynamics, regressor, gravity and friction.

        Parameters
        ----------
        parameters : ndarray, shape (b,), optional
            Base parameters for the tables in the source; by default the model's own.
        """
        return python_source(self._code(parameters))

    def _code(self, parameters: Array | None) -> GeneratedCode:
        regressor = regressor_function(self.model, drive_symbols(self.base.options), self.base.independent.tolist())
        beta = self.base.values if parameters is None else parameters
        return GeneratedCode(
            base=self.base,
            coefficient_map=self.coefficient_map,
            functions={**self.functions, 'regressor': regressor},
            parameters=frozen_array(beta, 'parameters', (len(self.base.independent),), ModelError),
        )

    def _evaluate(
        self, name: str, samples: list[Array], parameters: Array | None, out: Array | None, compiled: bool
    ) -> Array:
        result = checked_output(out, samples[0].shape)
        kernel = self._kernels.get(name, lambda: self.key, lambda: self.functions[name], compiled=compiled)
        if name == 'inverse_dynamics' and self._kernels.single is None and isinstance(kernel, CompiledKernel):
            self._kernels.single = SingleSample(kernel, self.model.n, self.own_coefficients)
        kernel([*samples, self.coefficients(parameters)], [result])
        return result


def minimal_model(
    model: RobotModel,
    *,
    rotor_inertia: bool = False,
    viscous: bool = False,
    coulomb: bool = False,
    offset: bool = False,
    tolerance: float = 1e-9,
    snap: float = 1e-12,
    progress: Progress | None = None,
) -> MinimalModel:
    """Generate the minimal model of an arm.

    The recursions are traced into an expression graph once for each of several choices of frames
    and recursions; the shortest is kept, shortened further by common factors and shared sums, and
    remembered in the user's cache directory.

    Parameters
    ----------
    model : RobotModel
    rotor_inertia, viscous, coulomb, offset : bool
        Which drive parameters stand beside the inertial ones.
    tolerance : float
        Of the base parameters, see :func:`base_parameters`.
    snap : float
        Sines of angles, and lengths relative to the arm's, that are taken as zero. Raise it to, say,
        1e-5 for descriptions whose right angles are written with five digits: the code becomes
        shorter and the torques change by that part.
    progress : callable, optional
        Called with a fraction between 0 and 1 and a text.

    Returns
    -------
    MinimalModel

    Raises
    ------
    ModelError
        If ``tolerance`` or ``snap`` is not between 0 and 1.

    References
    ----------
    Khalil and Kleinfinger (1987).
    """
    if not 0.0 < snap < 1.0:
        raise ModelError(f'snap: expected a number between 0 and 1, got {snap}')
    base = base_parameters(
        model, rotor_inertia=rotor_inertia, viscous=viscous, coulomb=coulomb, offset=offset, tolerance=tolerance
    )
    settings = {'settings': np.array([tolerance, snap])}
    key = content_key(model, settings, f'minimal model {sorted(base.options.items())}')
    arrays = load_arrays(key)
    if arrays is None:
        arrays = _generate(base, tolerance, snap, progress)
        save_arrays(key, arrays)
    if progress is not None:
        progress(1.0, 'minimal model ready')
    n = model.n
    functions = {
        name: GraphFunction(
            name=name,
            graph=Graph.from_arrays(arrays[f'{name}_nodes'], arrays[f'{name}_values']),
            inputs=(*_inputs(name, n), InputBlock('coefficients', len(arrays['coefficient_map']), shared=True)),
            outputs=(OutputBlock('tau', tuple(arrays[f'{name}_outputs'].tolist())),),
        )
        for name in _FUNCTIONS
    }
    count = len(base.independent)
    matrix = frozen_array(arrays['coefficient_map'], 'coefficient_map', (None, count), ModelError)
    own = frozen_array(matrix @ base.values, 'own_coefficients', (None,), ModelError)
    return MinimalModel(base=base, coefficient_map=matrix, functions=functions, key=key, own_coefficients=own)


def _inputs(name: str, n: int) -> tuple[InputBlock, ...]:
    motion = motion_inputs(n)
    return {'inverse_dynamics': motion, 'gravity': motion[:1], 'friction': motion[1:2]}[name]


def _generate(
    base: BaseParameters, tolerance: float, snap: float, progress: Progress | None
) -> dict[str, Array | IntArray]:
    n = base.model.n
    form, chain, local = shortest_form(base, tolerance, snap, progress)
    dynamics = simplified(*trace_torques(base, chain, local.columns, form))
    gravity = simplified(*trace_torques(base, chain, local.columns, form, at_rest=True))
    friction = _friction(base, local.columns)
    coefficients = Coefficients(3 * n, len(local.columns))
    arrays: dict[str, Array | IntArray] = {}
    for name, (graph, outputs) in zip(_FUNCTIONS, (dynamics, gravity, friction), strict=True):
        graph, outputs = coefficients.extract(graph, outputs)
        graph, outputs = _renumbered(graph, outputs, name, n)
        arrays[f'{name}_nodes'], arrays[f'{name}_values'] = graph.arrays()
        arrays[f'{name}_outputs'] = np.array(outputs, dtype=np.int64)
    arrays['coefficient_map'] = coefficients.matrix @ local.map[:, base.independent]
    return arrays


def _friction(base: BaseParameters, columns: IntArray) -> tuple[Graph, tuple[int, ...]]:
    graph, n = Graph(), base.model.n
    torques = [graph.constant(0.0)] * n
    symbols = drive_symbols(base.options)
    for position, column in enumerate(columns.tolist()):
        symbol, joint = (symbols[(column - 10 * n) // n], (column - 10 * n) % n) if column >= 10 * n else ('', 0)
        if symbol in ('Fv', 'Fc', 'offset'):
            rate = graph.input(n + joint)
            factor = {'Fv': rate, 'Fc': rate.sign(), 'offset': graph.constant(1.0)}[symbol]
            torques[joint] = torques[joint] + factor * graph.input(3 * n + position)
    return graph, tuple(torque.reference for torque in torques)


def _renumbered(graph: Graph, outputs: tuple[int, ...], name: str, n: int) -> tuple[Graph, tuple[int, ...]]:
    """Number the inputs of q, dq, ddq through those that the function has."""
    shift = {'inverse_dynamics': (0, 0), 'gravity': (0, 2 * n), 'friction': (n, 2 * n)}[name]
    kinds = list(graph.kind)
    first = [
        slot - shift[0 if slot < 3 * n else 1] if kind == Op.INPUT else slot
        for kind, slot in zip(kinds, graph.first, strict=True)
    ]
    return Graph.restored(kinds, first, list(graph.second), list(graph.value)), outputs
