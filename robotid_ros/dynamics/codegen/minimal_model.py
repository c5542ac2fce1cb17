# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""The minimal model of one arm: the shortest inverse dynamics, evaluated by kernels or written as source code.

Customised symbolic Newton-Euler in base parameters, after W. Khalil and J.-F. Kleinfinger,
"Minimum operations and minimum parameters of the dynamic models of tree structure robots", IEEE J.
Robotics and Automation 3 (1987), with the choices of :mod:`robotid_ros.dynamics.codegen.minimal_recursion`
searched for the fewest operations.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import scipy.linalg

from robotid_ros.arrays import Array, IntArray, frozen_array
from robotid_ros.dynamics.base_parameter_set import BaseParameters, base_parameters, reduced_columns, sampled_rows
from robotid_ros.dynamics.chain import checked_output, checked_samples
from robotid_ros.dynamics.codegen.expression import (
    Expression,
    Graph,
    GraphFunction,
    InputBlock,
    Number,
    Op,
    at_joints,
    factored,
    with_coefficients,
)
from robotid_ros.dynamics.codegen.kernel import (
    CompiledKernel,
    KernelStore,
    content_key,
    load_arrays,
    save_arrays,
    single_function,
)
from robotid_ros.dynamics.codegen.minimal_recursion import (
    Form,
    MinimalChain,
    minimal_chain,
    trace_torques,
)
from robotid_ros.dynamics.codegen.source import (
    GeneratedCode,
    as_comment,
    c_header,
    c_source,
    cpp_header,
    python_source,
)
from robotid_ros.dynamics.codegen.symbolic_regressor import motion_inputs, regressor_function
from robotid_ros.errors import ModelError
from robotid_ros.model import RobotModel
from robotid_ros.progress import Progress


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointFriction:
    """Friction of all joints as formulas."""

    name: str
    parameters: tuple[tuple[tuple[str, str], ...], ...]  # names and units of those of each joint; equally many
    # from (joint, velocity, its parameters, load, position) to the joint's friction torque, all of them expressions but
    # the joint's number; load is the torque without friction
    torque: Callable[[int, Expression, Sequence[Expression], Expression, Expression], Number]


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
        ``inverse_dynamics``, ``rigid_body``, ``gravity`` and ``friction``.
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
    def operations(self) -> tuple[int, int]:
        """Operations of one evaluation of the inverse dynamics: (multiplications, additions).

        Every multiplication, addition and subtraction of the generated code counts, by constants
        too; sines, cosines and signs do not, nor do minus signs, which only turn additions into
        subtractions.
        """
        return self.functions['inverse_dynamics'].operations

    def coefficients(self, parameters: Array | None = None) -> Array:
        """Return the formulas' coefficients, shape (m,), of parameters (p,), by default the model's own.

        A ModelError says that there are not p finite numbers.
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

        One sample in float64 arrays of shape (1, n) takes a shorter way, through compiled code of its own. Arguments,
        result and errors are those of :func:`robotid_ros.dynamics.inverse_dynamics`, but for the parameters, shape
        (p,), by default the model's own, and ``compiled``: false uses the numpy kernel in any case.
        """
        single = self._kernels.single
        if single is not None and parameters is None and out is None and compiled:
            tau = single(q, dq, ddq)
            if tau is not None:
                return tau
        return self._evaluate('inverse_dynamics', parameters, compiled, out, q=q, dq=dq, ddq=ddq)

    def rigid_body(
        self, q: Array, dq: Array, ddq: Array, parameters: Array | None = None, *, compiled: bool = True
    ) -> Array:
        """Return the torques without friction and offsets, shape (N, n) [N m, or N]; arguments as above."""
        return self._evaluate('rigid_body', parameters, compiled, q=q, dq=dq, ddq=ddq)

    def gravity(self, q: Array, parameters: Array | None = None, *, compiled: bool = True) -> Array:
        """Return the torques that hold the arm at rest, shape (N, n) [N m, or N]; arguments as above."""
        return self._evaluate('gravity', parameters, compiled, q=q)

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
        return self._evaluate('friction', parameters, compiled, q=position, dq=rate, load=torque)

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
        regressor = regressor_function(self.model, self.base.drive_symbols, self.base.independent.tolist())
        if self.drives is not None:
            regressor = at_joints(regressor, self.drives)
        if self.friction_model is not None:
            friction = f'with friction ({as_comment(self.friction_model.name)})'
        else:
            losses = set(self.base.drive_symbols) & {'Fv', 'Fc', 'offset'}
            friction = 'with friction' if losses else 'without friction'
        return GeneratedCode(
            model=self.model,
            names=tuple(name.replace('/', '_') for name in self.names),
            units=self.units,
            parameters=self.parameters,
            base=len(self.base.independent),
            coefficient_map=self.coefficient_map,
            coefficients=self.coefficients(),
            functions={**self.functions, 'regressor': regressor},
            friction=friction,
        )

    def _evaluate(
        self, name: str, parameters: Array | None, compiled: bool, out: Array | None = None, **given: Array
    ) -> Array:
        samples = checked_samples(self.model, **given)
        result = checked_output(out, samples[0].shape, samples)
        function = self.functions[name]
        kernel = self._kernels.get(name, function.key, lambda: function, compiled=compiled)
        first = len(result) == 1 and name == 'inverse_dynamics' and self._kernels.single is None
        if first and isinstance(kernel, CompiledKernel):
            self._kernels.single = single_function(function, self._own_coefficients)
        kernel([*samples, self.coefficients(parameters)], result)
        return result


_ROUND_OFF = 1e-14


def local_parameters(base: BaseParameters, chain: MinimalChain, tolerance: float) -> tuple[IntArray, Array]:
    """Return the minimal parameters of the minimal frames, laminae wherever possible.

    That are, of the standard parameters of the minimal frames (pseudo-parameters link by link, then the drives'), the k
    that are kept, the others being zero, and the map to these from the model's standard parameters, shape (k, p).
    """
    rows = sampled_rows(base.model, base.drive_symbols)
    transform = scipy.linalg.block_diag(*chain.from_links, np.eye(rows.shape[1] - 10 * base.model.n))
    columns, _, grouping = reduced_columns(rows @ np.linalg.inv(transform), tolerance)
    whole = grouping @ transform
    whole[np.abs(whole) < _ROUND_OFF * np.abs(whole).max(axis=1, keepdims=True, initial=0.0)] = 0.0
    return columns, whole


def shortest_form(
    base: BaseParameters, tolerance: float, snap: float, progress: Progress | None = None
) -> tuple[Form, MinimalChain, IntArray, Array]:
    """Return the form with the fewest operations, found by changing one choice at a time, and what belongs to it.

    That are its frames, and what :func:`local_parameters` returns for them.
    """
    model, n = base.model, base.model.n
    groups = len(minimal_chain(model, snap=snap).groups)

    @cache
    def geometry(sides: tuple[bool, ...]) -> tuple[MinimalChain, IntArray, Array]:
        chain = minimal_chain(model, sides, snap=snap)
        return chain, *local_parameters(base, chain, tolerance)

    @cache
    def cost(form: Form) -> tuple[int, int]:
        chain, columns, _ = geometry(form.sides)
        graph, outputs = trace_torques(model, base.drive_symbols, chain, columns.tolist(), form)
        # Operations that depend on the motion count; those on parameters alone are done beforehand.
        fixed: dict[int, bool] = {}
        counts = {Op.MULTIPLY: 0, Op.ADD: 0}
        for node in graph.schedule(outputs):
            kind, arguments = graph.kind[node], graph.arguments(node)
            fixed[node] = all(fixed[a >> 1] for a in arguments) if kind != Op.INPUT else graph.first[node] >= 3 * n
            if kind in counts and not fixed[node]:
                counts[kind] += 1
        return sum(counts.values()), counts[Op.MULTIPLY]

    revolute = [k for k in range(n) if model.joint_types[k] == 'revolute']
    # The tip's link is usually shortest in the frame before it, the others in their own.
    best = Form((False,) * groups, tuple(k == n - 1 for k in range(n)), (True,) * n, (False,) * n)
    flips = [('carried', k) for k in revolute] + [('traced', k) for k in revolute[1:]]
    flips += [('stepped', k) for k in revolute] + [('sides', g) for g in range(groups)]
    since, at = 0, 0
    while since < len(flips):
        field, k = flips[at % len(flips)]
        at, since = at + 1, since + 1
        values = list(getattr(best, field))
        values[k] = not values[k]
        trial = replace(best, **{field: tuple(values)})
        if field == 'traced' and (best.carried[k] or not best.stepped[k]):
            continue
        if cost(trial) < cost(best):
            best, since = trial, 0
        if progress is not None:
            progress(min(0.9, at / (3.0 * len(flips))), f'{cost(best)[0]} operations')
    return best, *geometry(best.sides)


def minimal_model(
    model: RobotModel,
    *,
    friction: JointFriction | None = None,
    tolerance: float = 1e-9,
    snap: float = 1e-12,
    progress: Progress | None = None,
    **columns: bool,
) -> MinimalModel:
    """Generate the minimal model of an arm.

    The recursions are traced into an expression graph once for each of several choices of frames
    and recursions. The shortest is shortened further by common factors, and saved in the user's cache directory.

    Parameters
    ----------
    model : RobotModel
    friction : JointFriction, optional
        Added to the torques; its parameters are zero until they are given.
    tolerance : float
        Of the base parameters, see :func:`base_parameters`.
    snap : float
        Sines of angles, and lengths relative to the arm's, that are taken as zero. Raise it to, say,
        1e-5 for descriptions whose right angles are written with five digits: the code becomes
        shorter and the torques change by that part.
    progress : callable, optional
        Called with a fraction between 0 and 1 and a text.
    **columns : bool
        Drive parameters beside the inertial ones: rotor_inertia, viscous, coulomb, offset.

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
    drives = model.drives if model.has_coupled_drives else None
    model = model.at_motors()
    base = base_parameters(model, tolerance=tolerance, **columns)
    key = content_key(model, f'minimal model {base.drive_symbols} {tolerance} {snap}')
    arrays = load_arrays(key)
    if arrays is None:
        arrays = _generate(base, tolerance, snap, progress)
        save_arrays(key, arrays)
    if progress is not None:
        progress(1.0, 'minimal model ready')
    made = 0 if friction is None else sum(len(joint) for joint in friction.parameters)
    matrix = scipy.linalg.block_diag(arrays['coefficient_map'], np.eye(made))
    functions = _functions(model.n, arrays, friction, matrix.shape[0])
    if drives is not None:
        functions = {name: at_joints(function, drives) for name, function in functions.items()}
    return MinimalModel(
        base=base,
        friction_model=friction,
        coefficient_map=frozen_array(matrix, 'coefficient_map', (None, None), ModelError),
        functions=functions,
        parameters=np.concatenate([base.values, np.zeros(made)]),
        drives=drives,
    )


def _functions(
    n: int, arrays: Mapping[str, Array | IntArray], friction: JointFriction | None, coefficients: int
) -> dict[str, GraphFunction]:
    motion, last = motion_inputs(n), InputBlock('coefficients', coefficients, shared=True)
    functions: dict[str, GraphFunction] = {}

    def loaded() -> Graph:
        return Graph.from_arrays(arrays['nodes'], arrays['values'])

    def add(name: str, graph: Graph, references: Iterable[int], *inputs: InputBlock) -> None:
        functions[name] = GraphFunction(name=name, graph=graph, inputs=inputs, references=tuple(references))

    outputs = arrays['outputs'].astype(int).tolist()
    graph = loaded()
    torques = [Expression(graph, reference) for reference in outputs]
    losses = _friction_torques(graph, torques, n, arrays, friction)
    whole = (a + b for a, b in zip(torques, losses, strict=True))
    add('inverse_dynamics', graph, (torque.reference for torque in whole), *motion, last)
    add('rigid_body', loaded(), outputs, *motion, last)
    still = Graph()

    def at_rest(slot: int) -> int:
        if slot < n:
            return still.input(slot).reference
        return still.constant_reference(0.0) if slot < 3 * n else still.input(slot - 2 * n).reference

    add('gravity', *factored(still, functions['rigid_body'].with_inputs(still, at_rest)), motion[0], last)
    graph = Graph()
    losses = _friction_torques(graph, graph.inputs(2 * n, n), n, arrays, friction)
    add('friction', graph, (loss.reference for loss in losses), *motion[:2], InputBlock('load', n), last)
    return functions


def _friction_torques(
    graph: Graph,
    load: Sequence[Expression],
    n: int,
    arrays: Mapping[str, Array | IntArray],
    friction: JointFriction | None,
) -> list[Expression]:
    """Return the joints' friction in a graph whose inputs are q, dq, n others, and the coefficients."""
    q, dq = graph.inputs(0, n), graph.inputs(n, n)
    torques = [graph.constant(0.0)] * n
    first = 3 * n
    for coefficient, kind, joint in arrays['drives'].astype(int).tolist():
        factor = (dq[joint], dq[joint].sign(), graph.constant(1.0))[kind]
        torques[joint] = torques[joint] + factor * graph.input(first + coefficient)
    if friction is not None:
        first += len(arrays['coefficient_map'])
        for joint, parameters in enumerate(friction.parameters):
            own = graph.inputs(first, len(parameters))
            torques[joint] = torques[joint] + friction.torque(joint, dq[joint], own, load[joint], q[joint])
            first += len(parameters)
    return torques


def _generate(
    base: BaseParameters, tolerance: float, snap: float, progress: Progress | None
) -> dict[str, Array | IntArray]:
    """Return the rigid body's graph with coefficients for inputs, these, and which of them are those of friction."""
    n, symbols = base.model.n, base.drive_symbols
    form, chain, columns, local_map = shortest_form(base, tolerance, snap, progress)
    traced = factored(*trace_torques(base.model, symbols, chain, columns.tolist(), form))
    graph, outputs, weights = with_coefficients(*traced, 3 * n, len(columns))
    nodes, values = graph.arrays()
    drives, alone = [], np.eye(len(columns))
    for position, column in enumerate(columns.tolist()):
        symbol = symbols[(column - 10 * n) // n] if column >= 10 * n else ''
        if symbol in ('Fv', 'Fc', 'offset'):
            drives.append((len(weights), ('Fv', 'Fc', 'offset').index(symbol), column % n))
            weights = np.vstack([weights, alone[position]])
    return {
        'nodes': nodes,
        'values': values,
        'outputs': np.array(outputs, dtype=np.int64),
        'drives': np.array(drives, dtype=np.int64).reshape(-1, 3),
        'coefficient_map': weights @ local_map[:, base.independent],
    }
