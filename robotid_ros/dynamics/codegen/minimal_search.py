# Copyright 2026 robotid_ros maintainers
#
# Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
# the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software distributed under the License is distributed on an
# "AS IS" BASIS, WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the License for the
# specific language governing permissions and limitations under the License.

"""Search for the shortest form of an arm's inverse dynamics, and its parameters."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from robotid_ros.arrays import Array, IntArray
from robotid_ros.dynamics.base_parameter_set import BaseParameters, reduced_columns
from robotid_ros.dynamics.chain import sample_motion
from robotid_ros.dynamics.codegen.expression import Expression, Graph, Number, Op, OperationCount
from robotid_ros.dynamics.codegen.minimal_frames import MinimalChain, joint_groups, minimal_chain
from robotid_ros.dynamics.codegen.minimal_recursion import PSEUDO_NAMES, Form, TorqueTracer, pseudo_parameter_map
from robotid_ros.dynamics.codegen.symbolic_regressor import combined
from robotid_ros.dynamics.standard_regressor import drive_symbols, full_regressor, observation_matrix
from robotid_ros.model.inertia import transform_inertial_parameters
from robotid_ros.progress import Progress

_ROUND_OFF = 1e-14


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalParameters:
    """Minimal parameters in the minimal frames.

    Attributes
    ----------
    columns : ndarray of int, shape (k,)
        Which of the standard parameters of the minimal frames (PSEUDO_NAMES link by link, then the
        drives') are kept; the others are zero.
    map : ndarray, shape (k, p)
        From the model's standard parameters.
    """

    columns: IntArray
    map: Array


def local_parameters(base: BaseParameters, chain: MinimalChain, tolerance: float) -> LocalParameters:
    """Return the minimal parameters of the minimal frames, laminae wherever possible."""
    model, count = base.model, len(base.columns)
    transform = np.eye(count)
    pseudo = pseudo_parameter_map()
    for k, frame in enumerate(chain.frames):
        turned = transform_inertial_parameters(np.eye(10), frame[:3, :3], frame[:3, 3]).T
        transform[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = pseudo @ turned
    motion = sample_motion(model, 2 * count + 20, np.random.default_rng(0))
    observations = observation_matrix(full_regressor(model, *motion, **base.options)) @ np.linalg.inv(transform)
    columns, _, grouping = reduced_columns(observations, tolerance)
    whole = grouping @ transform
    whole[np.abs(whole) < _ROUND_OFF * np.abs(whole).max(axis=1, keepdims=True, initial=0.0)] = 0.0
    return LocalParameters(columns=columns, map=whole)


def trace_torques(
    base: BaseParameters, chain: MinimalChain, columns: IntArray, form: Form, *, at_rest: bool = False
) -> tuple[Graph, tuple[int, ...]]:
    """Return the torques of the rigid body as a graph whose inputs are q, dq, ddq and the local parameters.

    ``columns`` are those of :class:`LocalParameters`. At rest there are no velocities, accelerations and rotor
    inertias: the torques of gravity.
    """
    model, graph = base.model, Graph()
    n = model.n
    q, dq, ddq = graph.inputs(0, n), graph.inputs(n, n), graph.inputs(2 * n, n)
    if at_rest:
        dq = ddq = [graph.constant(0.0)] * n
    parameters: list[dict[str, Number]] = [{} for _ in range(n)]
    symbols = drive_symbols(base.options)
    rotors: list[tuple[int, Expression]] = []
    for position, column in enumerate(columns.tolist()):
        parameter = graph.input(3 * n + position)
        if column < 10 * n:
            parameters[column // 10][PSEUDO_NAMES[column % 10]] = parameter
        elif symbols[(column - 10 * n) // n] == 'Ia':
            rotors.append((column % n, parameter))
    moved = [combined(model.coupling, x) for x in (q, dq, ddq)]
    torques = TorqueTracer(graph, chain, form, moved, parameters).torques()
    result = combined(model.coupling.T, [torque + graph.constant(0.0) for torque in torques])
    for joint, parameter in rotors if not at_rest else ():
        result[joint] = result[joint] + ddq[joint] * parameter
    return graph, tuple(torque.reference for torque in result)


def shortest_form(
    base: BaseParameters, tolerance: float, snap: float, progress: Progress | None = None
) -> tuple[Form, MinimalChain, LocalParameters]:
    """Return the form with the fewest operations, found by changing one choice at a time."""
    model, n = base.model, base.model.n
    groups = len(joint_groups(model, snap))

    @cache
    def geometry(sides: tuple[int, ...]) -> tuple[MinimalChain, LocalParameters]:
        chain = minimal_chain(model, sides, snap=snap)
        return chain, local_parameters(base, chain, tolerance)

    @cache
    def cost(form: Form) -> tuple[int, int]:
        chain, local = geometry(form.sides)
        graph, outputs = trace_torques(base, chain, local.columns, form)
        count = _motion_operations(graph, outputs, 3 * n)
        return count.multiplications + count.additions, count.multiplications

    revolute = [k for k in range(n) if model.joint_types[k] == 'revolute']
    # The tip's link is usually shortest in the frame before it, the others in their own.
    best = Form((0,) * groups, tuple(k == n - 1 for k in range(n)), (True,) * n, (False,) * n)
    flips = [('carried', k) for k in revolute] + [('traced', k) for k in revolute[1:]]
    flips += [('stepped', k) for k in revolute] + [('sides', g) for g in range(groups)]
    since, at = 0, 0
    while since < len(flips):
        field, k = flips[at % len(flips)]
        at, since = at + 1, since + 1
        values = list(getattr(best, field))
        values[k] = 1 - values[k] if field == 'sides' else not values[k]
        trial = replace(best, **{field: tuple(values)})
        if field == 'traced' and (best.carried[k] or not best.stepped[k]):
            continue
        if cost(trial) < cost(best):
            best, since = trial, 0
        if progress is not None:
            progress(min(0.9, at / (3.0 * len(flips))), f'{cost(best)[0]} operations')
    return best, *geometry(best.sides)


def _motion_operations(graph: Graph, outputs: tuple[int, ...], first: int) -> OperationCount:
    """Count the operations that depend on the motion; those on parameters alone are done beforehand."""
    fixed: dict[int, bool] = {}
    multiplications = additions = 0
    for node in graph.schedule(outputs):
        kind = graph.kind[node]
        if kind == Op.INPUT:
            fixed[node] = graph.first[node] >= first
            continue
        fixed[node] = all(fixed[argument >> 1] for argument in graph.arguments(node))
        if not fixed[node]:
            multiplications += kind == Op.MULTIPLY
            additions += kind == Op.ADD
    return OperationCount(multiplications, additions)
